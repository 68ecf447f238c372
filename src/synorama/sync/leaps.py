"""Where a recording's lag leaps, told by its loudness.

Echoes, and people who walk about, move the peaks of single windows by tens of milliseconds, back
and forth: that is no loss of samples. When loudness rises and falls is not moved by them. Second
by second the two recordings' loudness is compared at all lags near a line, and the best path
through these is sought at a price for every leap (Viterbi).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.features import Features
from synorama.sync.lines import Line
from synorama.sync.smoothing import moving_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Int64 = NDArray[np.int64]

__all__ = ["LEAPS_REACH_S", "Stretch", "stretches"]

LEAPS_REACH_S = 3.0
CELL = 62  # frames, about a second
REACH = 188  # frames, as far
FFT = 512  # holds a cell and the reach on both sides
BATCH = 64
LOW, HIGH = -3.0, 6.0  # one loud second must not outvote the others
LEAP_PRICE = 12.0  # noise alone gains that much in no stretch that is found again by its windows
STEP_PRICE = 6.0  # to the next frame: the line may be tilted, or lie between two frames


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span of the other's time without a leap, and the lag in its middle [s]."""

    first_s: float
    last_s: float
    lag_s: float


def stretches(
    reference: Features, other: Features, line: Line, span_s: tuple[float, float]
) -> list[Stretch]:
    """Return the stretches of a span between leaps of two frames or more, within 3 s of a line."""
    first = round(span_s[0] * other.rate_hz)
    count = (min(round(span_s[1] * other.rate_hz), other.count) - first) // CELL
    if count < 2:
        return []
    start = first + CELL * np.arange(count)
    expected = np.array([round(k + line(k / other.rate_hz) * other.rate_hz) for k in start])
    path = _best_path(_alike(_table(reference, other, start, expected)))
    return list(_between_leaps(path, start, line, other.rate_hz))


def _table(reference: Features, other: Features, start: Int64, expected: Int64) -> Float32:
    """Correlate each cell with the reference around where it is expected, ``(cells, lags)``."""
    out = [
        _correlated(reference, other, start[k : k + BATCH], expected[k : k + BATCH])
        for k in range(0, len(start), BATCH)
    ]
    return np.concatenate(out)


def _correlated(reference: Features, other: Features, start: Int64, expected: Int64) -> Float32:
    from scipy.fft import irfft, rfft

    near = expected[:, np.newaxis] + np.arange(-REACH, REACH + CELL)
    inside = (near >= 0) & (near < reference.count)
    theirs = reference.values[:, np.where(inside, near, 0)] * inside.astype(np.float32)
    ours = other.values[:, start[:, np.newaxis] + np.arange(CELL)].astype(np.float32)
    cross = (rfft(theirs, FFT) * np.conj(rfft(ours, FFT))).sum(axis=0)
    curves: Float32 = irfft(cross, FFT)[:, : 2 * REACH + 1]
    return curves


def _alike(table: Float32) -> Float32:
    """Return the table in units of its own noise; neighbours help where a lag is between frames."""
    smooth = moving_mean(table, 3)
    smooth -= np.median(smooth, axis=1, keepdims=True)
    noise = 1.4826 * np.median(np.abs(smooth)) + 1e-9
    alike: Float32 = np.clip(smooth / noise, LOW, HIGH)
    return alike


def _best_path(alike: Float32) -> Int64:
    """Return one lag a cell, as an index: high values, at the price of steps and leaps."""
    value, back = alike[0], []
    stay = np.arange(alike.shape[1])
    choices = np.full((4, len(stay)), -np.inf, np.float32)  # to stay, a step up or down, a leap
    for row in alike[1:]:
        leap = int(value.argmax())
        choices[0], choices[3] = value, value[leap] - LEAP_PRICE
        choices[1, 1:], choices[2, :-1] = value[:-1] - STEP_PRICE, value[1:] - STEP_PRICE
        chosen = choices.argmax(axis=0)
        back.append(np.choose(chosen, [stay, stay - 1, stay + 1, leap]))
        value = choices.max(axis=0) + row
    path = [int(value.argmax())]
    for origin in reversed(back):
        path.append(int(origin[path[-1]]))
    return np.array(path[::-1], np.int64)


def _between_leaps(path: Int64, start: Int64, line: Line, rate_hz: float) -> Iterator[Stretch]:
    leaps = np.flatnonzero(np.abs(np.diff(path)) > 1) + 1
    for cells in np.split(np.arange(len(path)), leaps):
        first, last = (float(start[k]) / rate_hz for k in cells[[0, -1]])
        last += CELL / rate_hz
        off = (float(np.median(path[cells])) - REACH) / rate_hz
        yield Stretch(first, last, line((first + last) / 2) + off)
