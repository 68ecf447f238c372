"""The simulated lab: rooms with furniture and texture, from a seed alone."""
