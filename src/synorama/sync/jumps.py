"""Dropped samples: a recording whose lag leaps falls into segments, each with its own line.

Loudness tells the leaps of two frames (32 ms) and more; smaller ones are told by windows, where
these are not moved by echoes and by people who walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.coarse import ChunkPeak, Coarse
from synorama.sync.leaps import LEAPS_REACH_S, stretches
from synorama.sync.lines import Line, ransac
from synorama.sync.verify import (
    REACH_S,
    TOLERANCES_S,
    WHITENING,
    Verified,
    apart,
    chance_log10,
    verify,
)
from synorama.sync.windows import Correlograms, Windowing, correlate_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float64 = NDArray[np.float64]
    Bool = NDArray[np.bool_]

__all__ = ["Segment", "find_segments"]

WINDOW_S = (1.0, 3.0)
WINDOW_SHARE = 0.05  # of the span: a stretch that counts holds several of them
SPACING_S = 6.0
WINDOWS = (40, 160)
LONG_S = 120.0  # from here on, leaps out of the windows' reach are seen by chunks of a minute
SHORT_REACH_S = 0.6
LEAST_SPAN_S = 10.0
LEAST_ROWS = 12
LEAST_WINDOWS = 5
CLEAR_SHARE, MOST_ELSEWHERE = 0.6, 0.25
CLEAR_WINDOWS, CLEAR_HEIGHT = 3, 15.0  # unrelated windows peak at 4 to 8
LEAST_CHANCE = -4.0
DEPTH = 3
SMALL_JUMPS = 6
ENOUGH = 0.8
CHUNKS_CHANCE, CHUNK_CHANCE = -3.0, -6.0
CERTAIN = -8.0  # a candidate for the whole recording, all the more for a part of it
MISS = -0.45  # what a window that disagrees costs a run
CHUNK_Z = 8.0
CHUNK_SAME_S = 0.06
CHUNK_HALF_S = 25.0
FOUND_SAME_S = 0.05  # other places may cut the found one short, never replace it
OVERLAP_S = 12.0  # by how much supports may overlap: windows straddle the break
BREAK_WINDOWS_S = (0.5, 0.1)
LEAST_END_S = 1.0
BREAK_MARGIN_S = 8.0
INDIFFERENT = 4.0  # what windows of noise may add up to


@dataclass(frozen=True, slots=True)
class Segment:
    """A line, the span of the other's time on which it holds, and how closely it does.

    ``begins_s``: between which times it begins, if after a leap; in a pause nothing tells when.
    """

    line: Line
    span_s: tuple[float, float]
    tolerance_s: float
    begins_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Support:
    """A line and the windows that agree with it.

    Parameters
    ----------
    first_s, last_s, middle_s
        The densest run of them.
    windows, of
        How many agree in the run, of how many.
    elsewhere
        How many agree outside of it.
    """

    line: Line
    first_s: float
    last_s: float
    middle_s: float
    windows: int
    of: int
    elsewhere: int

    @classmethod
    def of_line(cls, line: Line, times_s: Float64, agree: Bool) -> _Support:
        """Take the densest run of the agreeing windows: others agree by chance."""
        run = _densest(agree)
        inside = times_s[run & agree]
        first, middle, last = np.percentile(inside, [2, 50, 98])
        return cls(
            line, float(first), float(last), float(middle), len(inside), int(run.sum()),
            int((agree & ~run).sum()),
        )  # fmt: skip

    @property
    def clear(self) -> bool:
        """Whether it holds in its run and nowhere else: echoes come and go as people walk."""
        return self.windows >= CLEAR_SHARE * self.of and self.elsewhere <= (
            MOST_ELSEWHERE * self.windows
        )


def find_segments(
    reference: MonoSound,
    other: MonoSound,
    found: Verified,
    others: Sequence[Verified],
    coarse: Coarse,
    span_s: tuple[float, float],
) -> tuple[Segment, ...]:
    """Return the segments of a span in which ``found`` holds at least in part, in order.

    Other lines come from loudness near this one; out of its reach from the other verified
    candidates, and from chunks that agree on another lag; within a segment from its windows.
    """
    whole = Segment(found.line, span_s, found.tolerance_s)
    if span_s[1] - span_s[0] <= LEAST_SPAN_S:
        return (whole,)
    lines = _by_loudness(reference, other, coarse, found.line, span_s)
    lines = lines or [_Support.of_line(found.line, found.times_s, found.agree)]
    far = [v for v in others if v.log10_p < CERTAIN and _out_of_reach(v.line, found.line, span_s)]
    lines += [_Support.of_line(v.line, v.times_s, v.agree) for v in far]
    lines += _large_jumps(reference, other, found.line, coarse.chunks, span_s, lines)
    kept = _compatible(lines, TOLERANCES_S[1])
    parts = _cut(reference, other, kept, whole, found.tolerance_s)
    found_at = float(np.median(found.times_s[found.agree]))
    segments = [s for p in parts for s in _divide(reference, other, p, DEPTH)]
    holds = any(abs(s.line(found_at) - found.line(found_at)) < FOUND_SAME_S for s in segments)
    return tuple(_meeting(reference, other, segments)) if holds else (whole,)


def _out_of_reach(line: Line, found: Line, span_s: tuple[float, float]) -> bool:
    """Tell whether loudness says nothing of it; nearer, echoes and people who walk look like it."""
    middle = sum(span_s) / 2
    return abs(line(middle) - found(middle)) > LEAPS_REACH_S


def _meeting(
    reference: MonoSound, other: MonoSound, segments: Sequence[Segment]
) -> Iterator[Segment]:
    """Yield the segments, which meet where their own lines say: they were cut by rougher ones."""
    first = segments[0]
    for after in segments[1:]:
        end = first.span_s[1]
        span = first.span_s[0], after.span_s[1]
        begins = _break(
            reference, other, (first.line, after.line), (end, end), span, first.tolerance_s
        )
        end = sum(begins) / 2
        yield replace(first, span_s=(span[0], end))
        first = replace(after, span_s=(end, span[1]), begins_s=begins)
    yield first


def _by_loudness(
    reference: MonoSound,
    other: MonoSound,
    coarse: Coarse,
    line: Line,
    span_s: tuple[float, float],
) -> list[_Support]:
    """Return the lines of the stretches between leaps, where windows agree on them."""
    found = stretches(*coarse.loudness, line, span_s)
    if len(found) < 2:
        return []
    checked = []
    for s in found:
        rough = Line(s.lag_s, line.slope, (s.first_s + s.last_s) / 2)
        checked.append(verify(reference, other, rough, (s.first_s, s.last_s)))
    return [
        _Support.of_line(v.line, v.times_s, v.agree)
        for v in checked
        if v is not None and v.log10_p < CHUNKS_CHANCE
    ]


def _divide(
    reference: MonoSound, other: MonoSound, segment: Segment, depth: int
) -> tuple[Segment, ...]:
    """Look closely for small jumps within a segment: around its own line, which may be new.

    Where people walk, windows agree only widely: then nothing small can be told.
    """
    if depth == 0 or segment.span_s[1] - segment.span_s[0] <= LEAST_SPAN_S:
        return (segment,)
    close = TOLERANCES_S[0]
    lines = list(_small_jumps(reference, other, segment, close))
    kept = _compatible([s for s in lines if s.clear], close)
    wide = segment.tolerance_s > close and list(
        _small_jumps(reference, other, segment, segment.tolerance_s)
    )
    if not kept or (wide and _windows(kept) < ENOUGH * _windows(wide[:1])):
        return (segment,)
    parts = tuple(_cut(reference, other, kept, segment, close))
    if not _between_supports(parts, kept):
        return (segment,)
    return tuple(
        s
        for p in parts
        for s in (_divide(reference, other, p, depth - 1) if len(kept) > 1 else (p,))
    )


def _between_supports(parts: Sequence[Segment], lines: Sequence[_Support]) -> bool:
    """Tell whether each line gives way to the next between the middles of their supports.

    A loss does; a talker who walked there and back makes lines that fit before and after.
    """
    return all(
        before.middle_s < part.span_s[1] < after.middle_s
        for part, (before, after) in zip(parts, pairwise(lines), strict=False)
    )


def _windows(lines: Sequence[_Support]) -> int:
    return sum(s.windows for s in lines)


def _small_jumps(
    reference: MonoSound,
    other: MonoSound,
    segment: Segment,
    tolerance_s: float,
) -> Iterator[_Support]:
    """Find the lines that windows near the segment's agree on, strongest first."""
    windowing = _windowing(segment.span_s)
    rows = _rows(reference, other, segment, windowing)
    if rows.count < LEAST_ROWS:
        return
    lags, heights = rows.peaks()
    t, left = rows.times_s, np.ones(rows.count, bool)
    for _ in range(SMALL_JUMPS):
        trial = ransac(t[left], lags[left], heights[left], tolerance_s)
        if trial is None:
            return
        agree = np.abs(lags - trial(t)) < tolerance_s
        if not _convince(rows.times_s, heights, agree & left, left, tolerance_s, windowing):
            return
        yield _Support.of_line(trial, t, agree)
        left &= ~agree


def _convince(
    times_s: Float64,
    heights: Float64,
    agree: Bool,
    left: Bool,
    tolerance_s: float,
    windowing: Windowing,
) -> bool:
    """Tell whether so many windows agree, or so clearly, that it is no chance."""
    count = apart(times_s[agree], windowing.width_s)
    if count >= CLEAR_WINDOWS and np.median(heights[agree]) > CLEAR_HEIGHT:
        return True
    of = apart(times_s[left], windowing.width_s)
    chance = chance_log10(count, of, tolerance_s, windowing.reach_s)
    return count >= LEAST_WINDOWS and chance <= LEAST_CHANCE


def _rows(
    reference: MonoSound, other: MonoSound, segment: Segment, windowing: Windowing
) -> Correlograms:
    first, last = segment.span_s
    margin = windowing.width_s / 2
    count = int(np.clip((last - first) / SPACING_S, *WINDOWS))
    centres = np.linspace(first + margin, last - margin, count)
    return correlate_windows(reference, other, segment.line, centres, windowing)


def _windowing(span_s: tuple[float, float]) -> Windowing:
    """Return how wide windows are, and how far they reach: recordings of seconds leap as far."""
    span = span_s[1] - span_s[0]
    width = float(np.clip(WINDOW_SHARE * span, *WINDOW_S))
    return Windowing(width, SHORT_REACH_S if span < LONG_S else REACH_S, WHITENING)


def _densest(agree: Bool) -> Bool:
    """Return the run in which most windows agree (Kadane's maximum subarray)."""
    best, run, start, bounds = -1.0, 0.0, 0, (0, 0)
    for k, hit in enumerate(agree):
        if run <= 0:
            run, start = 0.0, k
        run += 1.0 if hit else MISS
        if run > best:
            best, bounds = run, (start, k)
    inside = np.zeros(len(agree), bool)
    inside[bounds[0] : bounds[1] + 1] = True
    return inside


def _large_jumps(
    reference: MonoSound,
    other: MonoSound,
    line: Line,
    chunks: Sequence[ChunkPeak],
    span_s: tuple[float, float],
    known: Sequence[_Support],
) -> list[_Support]:
    """Find lines out of loudness' reach, where chunks of a minute agree on another lag."""
    out: list[_Support] = []
    slope = line.slope if abs(line.slope) < 3e-4 else 0.0
    for group in _chunk_groups(chunks, span_s):
        lag = float(np.median([p.lag_s for p in group]))
        first = max(span_s[0], group[0].centre_s - CHUNK_HALF_S, -lag, 0.0)
        last = min(span_s[1], group[-1].centre_s + CHUNK_HALF_S)
        far = _out_of_reach(Line(lag), line, (first, last))
        if not far or any(_explains(s, lag, first, last) for s in [*known, *out]):
            continue
        bounds = (first, min(last, other.duration_s, reference.duration_s - lag))
        checked = verify(reference, other, Line(lag, slope, other.duration_s / 2), bounds)
        needed = CHUNKS_CHANCE if len(group) > 1 else CHUNK_CHANCE
        if checked is not None and checked.log10_p < needed:
            out.append(_Support.of_line(checked.line, checked.times_s, checked.agree))
    return out


def _chunk_groups(
    chunks: Sequence[ChunkPeak], span_s: tuple[float, float]
) -> list[list[ChunkPeak]]:
    """Group the chunks' best peaks by lag, in order of time."""
    best: dict[float, ChunkPeak] = {}
    for p in chunks:
        inside = span_s[0] - 30 < p.centre_s < span_s[1] + 30
        if p.z > CHUNK_Z and inside and (p.centre_s not in best or p.z > best[p.centre_s].z):
            best[p.centre_s] = p
    groups: list[list[ChunkPeak]] = []
    for p in sorted(best.values(), key=lambda p: p.centre_s):
        for group in groups:
            if abs(p.lag_s - float(np.median([g.lag_s for g in group]))) < CHUNK_SAME_S:
                group.append(p)
                break
        else:
            groups.append([p])
    return groups


def _explains(support: _Support, lag_s: float, first_s: float, last_s: float) -> bool:
    same = abs(support.line((first_s + last_s) / 2) - lag_s) < CHUNK_SAME_S
    return same and support.first_s < last_s and support.last_s > first_s


def _compatible(lines: Sequence[_Support], tolerance_s: float) -> list[_Support]:
    """Keep the best supported lines whose supports follow each other, in order of time."""
    kept: list[_Support] = []
    for s in sorted(lines, key=lambda s: -s.windows):
        if all(_follows(s, k, tolerance_s) for k in kept):
            kept.append(s)
    return sorted(kept, key=lambda s: s.first_s)


def _follows(s: _Support, k: _Support, tolerance_s: float) -> bool:
    third = 0.35 * (k.last_s - k.first_s)
    beside = s.middle_s < k.first_s + third or s.middle_s > k.last_s - third
    apart = abs(s.line(s.middle_s) - k.line(s.middle_s)) > max(0.002, 1.5 * tolerance_s)
    return (
        beside and apart and (s.last_s < k.first_s + OVERLAP_S or s.first_s > k.last_s - OVERLAP_S)
    )


def _common_slope(kept: Sequence[_Support]) -> list[_Support]:
    """Give all the slope of the longest: one clock made them all."""
    slope = max(kept, key=lambda s: s.windows).line.slope
    out = []
    for s in kept:
        middle = (s.first_s + s.last_s) / 2
        out.append(replace(s, line=Line(s.line(middle), slope, middle)))
    return out


def _cut(
    reference: MonoSound,
    other: MonoSound,
    kept: Sequence[_Support],
    whole: Segment,
    tolerance_s: float,
) -> Iterator[Segment]:
    """Yield the segments between the moments at which the next line begins to fit better."""
    start, last = whole.span_s
    lines = _common_slope(kept) if kept else []
    if len(lines) < 2:
        line = lines[0].line if lines else whole.line
        yield Segment(line, whole.span_s, tolerance_s)
        return
    for before, after in pairwise(lines):
        around = min(before.last_s, after.first_s), max(before.last_s, after.first_s)
        both = before.line, after.line
        end = sum(_break(reference, other, both, around, whole.span_s, tolerance_s)) / 2
        yield Segment(before.line, (start, end), tolerance_s)
        start = end
    yield Segment(lines[-1].line, (start, last), tolerance_s)


def _break(
    reference: MonoSound,
    other: MonoSound,
    lines: tuple[Line, Line],
    around_s: tuple[float, float],
    span_s: tuple[float, float],
    tolerance_s: float,
) -> tuple[float, float]:
    """Return from when to when the line after may begin to fit better: a moment, or a pause.

    It is looked for with wide windows, then with narrow ones.
    """
    first, last = around_s
    margin = BREAK_MARGIN_S
    for width in BREAK_WINDOWS_S:
        earliest = max(first - margin, span_s[0] + LEAST_END_S)
        times = np.arange(earliest, min(last + margin, span_s[1] - LEAST_END_S), width / 2)
        if not len(times):
            break
        windowing = Windowing(width, max(0.004, 1.5 * tolerance_s))
        gain = _fit_along(reference, other, lines[0], times, windowing)
        gain -= _fit_along(reference, other, lines[1], times, windowing)
        k = _near_highest(np.concatenate([[0.0], np.cumsum(gain)]))
        first, last = (float(times[0] + (i - 0.5) * width / 2) for i in k)
        margin = 2 * width
    return first, last


def _near_highest(total: Float64) -> tuple[int, int]:
    """Return first and last index around the highest value, of values that are hardly lower."""
    k = int(np.argmax(total))
    low = np.flatnonzero(total < total[k] - INDIFFERENT)
    before, after = low[low < k], low[low > k]
    return (
        int(before[-1]) + 1 if len(before) else 0,
        int(after[0]) - 1 if len(after) else len(total) - 1,
    )


def _fit_along(
    reference: MonoSound, other: MonoSound, line: Line, times_s: Float64, windowing: Windowing
) -> Float64:
    """Return how well the line fits at each time."""
    rows = correlate_windows(reference, other, line, times_s, windowing)
    out = np.zeros(len(times_s))
    for t, curve in zip(rows.times_s, rows.curves, strict=True):
        out[int(np.argmin(np.abs(times_s - t)))] = max(float(curve.max()) - 3, 0.0)
    return out
