"""File formats without meaning: what lies where, in arrays. Adapters give it meaning."""
