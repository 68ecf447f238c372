"""Everything that sounds, and how it reaches microphones."""
