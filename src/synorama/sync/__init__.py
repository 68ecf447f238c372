"""From recordings, each on its own clock, to one session clock."""

from synorama.sync.correlate import align
from synorama.sync.solve import SESSION_CLOCK, synchronize

__all__ = ["SESSION_CLOCK", "align", "synchronize"]
