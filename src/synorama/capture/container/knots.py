"""From the times of sound frames to the few knots that say when every sample was taken.

The rule: decoded frames in their order; each frame's own time says when its first sample was
taken. Containers round these times, Matroska to 1 ms, and a knot at every rounding step would
make the sound wobble. So frames that follow one another within 20 ms form a segment, and a segment
is described by as few straight lines as stay within the rounding, or half a millisecond, of its
frames. Fitted to many frames, a line is better than the rounding of one. Few frames say little of
the rate: where nothing but rounding speaks against it, their line has the nominal one.
What remains where the frames' length is a whole number of ticks is a constant of up to half a tick,
which the container does not tell: 0.5 ms in Matroska and WebM with Opus.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["GAP_NS", "Placed", "place_frames"]

GAP_NS = 20_000_000
HALF_MS_NS = 500_000
ENOUGH_FRAMES = 64  # for their times to tell a rate better than the nominal one
SLACK_NS = 100_000  # beyond the rounding, for a nominal rate to be believed
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """When sound was taken.

    Parameters
    ----------
    knots
        ``(K, 2)`` int64: sample index, device time ns; as in `synorama.records.AudioTrack`.
    gaps
        ``(at_ns, length_ns)`` where nothing was recorded.
    overlaps
        ``(at_ns, length_ns)`` where times go back: the later frames were moved to the end of the
        earlier ones.
    """

    knots: Int64
    gaps: tuple[tuple[int, int], ...] = ()
    overlaps: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Laying:
    """Segments laid so far, one after another."""

    knots: list[tuple[int, int]]
    gaps: list[tuple[int, int]]
    overlaps: list[tuple[int, int]]
    end_ns: int | None = None

    def start(self, at_ns: int) -> int:
        """Note the gap or overlap before a segment; return by how much it has to move."""
        if self.end_ns is None or at_ns == self.end_ns:
            return 0
        if at_ns > self.end_ns:
            self.gaps.append((self.end_ns, at_ns - self.end_ns))
            return 0
        self.overlaps.append((at_ns, self.end_ns - at_ns))
        return self.end_ns - at_ns


def place_frames(counts: Int64, times_ns: Int64, rate_hz: float, tick_ns: int) -> Placed:
    """Return when each sample of decoded sound was taken.

    Parameters
    ----------
    counts
        ``(F,)`` samples per channel of each frame, all positive.
    times_ns
        ``(F,)`` time of each frame's first sample.
    rate_hz
        Nominal rate.
    tick_ns
        What the container's times are rounded to.
    """
    if not len(counts):
        return Placed(np.zeros((0, 2), np.int64))
    first = np.cumsum(counts) - counts
    lasts = np.rint(counts * (NS_PER_S / rate_hz)).astype(np.int64)
    cuts = np.flatnonzero(np.abs(np.diff(times_ns) - lasts[:-1]) > GAP_NS) + 1
    laying = _Laying([], [], [])
    for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), len(counts)], strict=True):
        times = times_ns[a:b] + laying.start(int(times_ns[a]))
        last_sample = int(first[b - 1] + counts[b - 1]) - 1
        laying.knots += _segment(first[a:b], times, last_sample, rate_hz, tick_ns)
        laying.end_ns = int(times[-1] + lasts[b - 1])
    knots = _increasing(np.array(laying.knots, np.int64))
    return Placed(knots, tuple(laying.gaps), tuple(laying.overlaps))


def _increasing(knots: Int64) -> Int64:
    """Drop knots that do not lie before all later ones: a single frame may lie far ahead."""
    after = np.minimum.accumulate(knots[::-1], axis=0)[::-1][1:]
    keep = np.append((knots[:-1] < after).all(axis=1), True)
    kept: Int64 = knots[keep]
    return kept


# --- straight lines --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """Time offset as a line over the frames ``a .. b`` of a segment."""

    a: int
    b: int
    slope: float
    intercept: float
    at_first: float

    def at(self, sample: float) -> float:
        """Evaluate it."""
        return self.intercept + self.slope * sample


def _segment(
    samples: Int64, times: Int64, last_sample: int, rate_hz: float, tick_ns: int
) -> list[tuple[int, int]]:
    """Return the knots of frames that follow one another, from the first sample to the last."""
    x = (samples - samples[0]).astype(np.float64)
    y = (times - times[0]).astype(np.float64)
    lines = _nominal(x, y, rate_hz, tick_ns) or _lines(x, y, rate_hz, tick_ns)
    knots = [(0.0, lines[0].at(0.0))]
    for before, after in pairwise(lines):
        knots += _joint(before, after, float(x[after.a]))
    end = float(last_sample - samples[0])
    knots += [(end, lines[-1].at(end))] if end else []
    return [(int(samples[0]) + int(e), int(times[0]) + round(v)) for e, v in knots]


def _joint(before: _Line, after: _Line, at: float) -> list[tuple[float, float]]:
    """Return one knot where two lines meet, and two close together where time leaps.

    Where it leaps back the sound before has to hurry: over twice the leap, and no longer.
    """
    leap = after.at(at) - before.at(at)
    if abs(leap) <= HALF_MS_NS:
        return [(at, before.at(at) + leap / 2)]
    hurry = 1.0 if leap > 0 else float(np.ceil(-2 * leap / before.slope))
    leaves = [(at - hurry, before.at(at - hurry))] if at - before.at_first > hurry else []
    return [*leaves, (at, after.at(at))]


def _nominal(x: Float64, y: Float64, rate_hz: float, tick_ns: int) -> list[_Line]:
    """Return the line of nominal rate for few frames if only rounding speaks against it."""
    step = NS_PER_S / rate_hz
    left = y - x * step
    if len(x) >= ENOUGH_FRAMES or np.ptp(left) > tick_ns + SLACK_NS:
        return []
    return [_Line(0, len(x), step, float(left.mean()), 0.0)]


def _lines(x: Float64, y: Float64, rate_hz: float, tick_ns: int) -> list[_Line]:
    """Return the fewest lines found that stay close to all frames.

    Where that takes more than a line a second, times jitter for another reason than rounding (a
    browser's main thread). The sound itself was sampled evenly: stay less close to its times.
    """
    close = max(HALF_MS_NS, tick_ns + tick_ns // 4)  # rounding, and what it does to the line
    most = 8 + int(x[-1] / rate_hz)
    while close < GAP_NS:
        lines = _split(x, y, NS_PER_S / rate_hz, close, most)
        if len(lines) <= most:
            return lines
        close *= 2
    return _split(x, y, NS_PER_S / rate_hz, close, len(x))


def _split(x: Float64, y: Float64, step: float, close: int, most: int) -> list[_Line]:
    """Split at the worst frame until every line stays close to its frames; stop at too many."""
    todo, done = [(0, len(x))], list[_Line]()
    while todo and len(done) <= most:
        a, b = todo.pop()
        line = _fit(x, y, a, b, step)
        off = np.abs(y[a:b] - line.intercept - line.slope * x[a:b])
        if off.max() <= close or b - a <= 2:
            done.append(line)
            continue
        middle = a + min(max(int(off.argmax()), 1), b - a - 1)
        todo += [(middle, b), (a, middle)]
    return done


def _fit(x: Float64, y: Float64, a: int, b: int, step: float) -> _Line:
    """Least squares; the nominal rate where one frame says nothing of it."""
    mean_x, mean_y = x[a:b].mean(), y[a:b].mean()
    spread = x[a:b] - mean_x
    slope = float(spread @ (y[a:b] - mean_y) / (spread @ spread)) if b - a > 1 else step
    return _Line(a, b, slope, float(mean_y - slope * mean_x), float(x[a]))
