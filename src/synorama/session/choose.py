"""Which frame an instant means, and which samples lie in a stretch of session time."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from synorama.records import AudioTrack, RecordingClock
from synorama.timebase import ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["Select", "Timeline", "sample_spans"]

Select: TypeAlias = Literal["previous", "nearest"]
NS_PER_S = 1_000_000_000
TOLERANCE_STEPS = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The session times of a view's frames, ready to be searched.

    Parameters
    ----------
    times_ns
        ``(N,)`` int64 in display order; they go back only where the clock jumps back.
    order
        ``(N,)`` frame indices in order of time.
    tolerance_ns
        How far from an instant its frame may be if the caller does not say.
    """

    times_ns: Int64
    order: NDArray[np.intp]
    tolerance_ns: int

    @classmethod
    def of(cls, times_ns: Int64, rate_hz: float | None) -> Timeline:
        """Make a timeline; the nominal rate counts only where a single frame tells none."""
        order = np.argsort(times_ns, kind="stable")
        if len(times_ns) > 1:
            step_ns = float(np.median(np.diff(times_ns[order])))
        else:
            step_ns = NS_PER_S / rate_hz if rate_hz else 0.0
        return cls(times_ns, order, round(TOLERANCE_STEPS * step_ns))

    def pick(self, t_ns: int, select: Select, tolerance_ns: int | None) -> int | None:
        """Return the index of the frame that an instant means; None beyond the tolerance."""
        at = int(np.searchsorted(self.times_ns, t_ns, side="right", sorter=self.order)) - 1
        places = (at,) if select == "previous" else (at, at + 1)
        frames = [int(self.order[k]) for k in places if 0 <= k < len(self.order)]
        best = min(frames, key=lambda i: abs(int(self.times_ns[i]) - t_ns), default=None)
        most = self.tolerance_ns if tolerance_ns is None else tolerance_ns
        if best is None or abs(int(self.times_ns[best]) - t_ns) > most:
            return None
        return best


def sample_spans(
    clock: RecordingClock, track: AudioTrack, t0_ns: int, t1_ns: int
) -> list[tuple[int, int]]:
    """Return ``(first, count)`` of the samples with session times in ``[t0, t1)``.

    One span a segment of the clock, in order of the device's time; within a segment session time
    increases with the sample, so its ends are found by bisection.
    """

    def device_ns(i: int) -> int:
        return int(track.sample_times_ns(np.array([i], np.int64))[0])

    every = range(track.sample_count)
    starts = [bisect_left(every, one.range_ns[0], key=device_ns) for one in clock.maps[1:]]
    edges = [0, *starts, track.sample_count]
    spans = []
    for one, low, high in zip(clock.maps, edges[:-1], edges[1:], strict=True):
        free = replace(
            one, limit_ns=None
        )  # a search may look anywhere; the result may not lie there

        def session_ns(i: int, free: ClockMap = free) -> int:
            return free.apply(device_ns(i))

        first = bisect_left(every, t0_ns, low, high, key=session_ns)
        end = bisect_left(every, t1_ns, low, high, key=session_ns)
        if end > first:
            spans.append((first, end - first))
    return spans
