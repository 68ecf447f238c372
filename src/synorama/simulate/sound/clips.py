"""Sound before it has travelled: clips on the session's grid of 48 kHz.

Sample ``i`` of the grid is ``i / 48000`` s after the start of the session; before it, ``i`` is
negative. Nothing is mixed until somebody asks for it, so that long sessions fit in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["GRID_HZ", "Clip", "Clips", "Dry"]

GRID_HZ = 48_000
MADE_AT_ONCE = 16  # clips kept, as the next block asks for the same


class Dry(Protocol):
    """What a source gives off, at 1 m and without a room."""

    def samples(self, first: int, count: int) -> Float32 | None:
        """Return samples ``first`` to ``first + count`` of the grid, or None for silence."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Some sound at some time.

    Parameters
    ----------
    start, count
        Its first sample on the grid, and how many it has.
    make
        Returns its samples ``(count,)``, always the same.
    """

    start: int
    count: int
    make: Callable[[], Float32]

    @property
    def stop(self) -> int:
        """One after its last sample on the grid."""
        return self.start + self.count


class Clips:
    """Clips that one source gives off one after the other, or at once."""

    def __init__(self, clips: Iterable[Clip]) -> None:
        self.clips = tuple(sorted(clips, key=lambda clip: clip.start))
        self._starts = [clip.start for clip in self.clips]
        self._longest = max((clip.count for clip in self.clips), default=0)
        self._made = lru_cache(MADE_AT_ONCE)(lambda k: self.clips[k].make())

    def samples(self, first: int, count: int) -> Float32 | None:
        """Return the sum of what sounds then ``(count,)``, or None if nothing does."""
        low = bisect_left(self._starts, first - self._longest)
        high = bisect_left(self._starts, first + count)
        sounding = [k for k in range(low, high) if self.clips[k].stop > first]
        if not sounding:
            return None
        mixed = np.zeros(count, np.float32)
        for k in sounding:
            clip = self.clips[k]
            begin, end = max(first, clip.start), min(first + count, clip.stop)
            made = self._made(k)[begin - clip.start : end - clip.start]
            mixed[begin - first : end - first] += made
        return mixed
