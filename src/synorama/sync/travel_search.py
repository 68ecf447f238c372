"""Where to begin: clocks and places at which the speech of many stays would arrive together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.travel_rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Start", "room_grid", "starts"]

LOW, HIGH = 2.5, 10.5  # heights of peaks that count, in root mean squares of their curve
EARLIEST_S, LATEST_S = -0.08, 0.08  # error of the rough clock
LONGEST_S = 0.15  # any lag
ENDS_S = 0.01  # how far the rough clock may be tilted, at the ends
AROUND_M = 2.5  # a camera stands at most that far outside of where people talk
GRID_M = 0.5
HEIGHTS_M = (-0.6, 0.0, 0.6)  # over mouths
LOOKED_AT = 5000
APART_M, APART_S = 1.0, 4e-3  # of starts that are worth trying both: places, and ends of clocks


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A clock error at the middle [s], its slope, and the camera's place."""

    offset_s: float
    slope: float
    place_m: Float64


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Curves of whole stays on one axis of lags, which begins at ``-LONGEST_S``."""

    curves: Float32
    t: Float64
    mouth_m: Float64
    step_s: float


def room_grid(rows: Rows) -> Float64:
    """Return the places ``(P, 3)`` at which a camera of the same room may stand."""
    low, high = rows.mouth_m.min(axis=0), rows.mouth_m.max(axis=0)
    x, y = (np.arange(low[k] - AROUND_M, high[k] + AROUND_M + GRID_M, GRID_M) for k in (0, 1))
    z = float(np.mean(rows.mouth_m[:, 2])) + np.array(HEIGHTS_M)
    return np.stack(np.meshgrid(x, y, z), axis=-1).reshape(-1, 3)


def starts(
    rows: Rows, places_m: Float64, speed_m_s: float, *, step_s: float, slopes: int, most: int
) -> list[Start]:
    """Return the best starts over all places, with distinct clocks or places, best first.

    Parameters
    ----------
    places_m
        ``(P, 3)`` to try.
    step_s
        Of lags: about the time that sound takes from one place to the next.
    slopes
        How many tilts of the clock to try.
    most
        How many starts to return.
    """
    pool = _pooled(rows, step_s)
    reach = max(float(np.abs(pool.t).max()), 1.0)
    tilts = np.linspace(-ENDS_S, ENDS_S, slopes) / reach
    found = [row for tilt in tilts for row in _best_at(pool, places_m, float(tilt), speed_m_s)]
    found.sort(key=lambda row: -row[0])
    return _distinct(found, places_m, reach, step_s, most)


def _pooled(rows: Rows, step_s: float) -> _Pool:
    """Sum the peaks of each stay's windows, blurred to the step."""
    from scipy.ndimage import convolve1d

    stays = np.unique(rows.stay)
    length = round(2 * LONGEST_S / step_s) + 1
    lag = (np.arange(rows.curves.shape[1]) - rows.half) / rows.rate_hz
    sums = np.zeros((len(stays), length), np.float32)
    for k, stay in enumerate(stays):
        mine = np.flatnonzero(rows.stay == stay)
        at = np.rint((rows.lags_s[mine, np.newaxis] + lag + LONGEST_S) / step_s).astype(np.int64)
        heights = np.clip(rows.curves[mine] - LOW, 0, HIGH - LOW)
        inside = (at >= 0) & (at < length)
        counted = np.bincount(at[inside], heights[inside], minlength=length)
        sums[k] = counted / np.sqrt(len(mine))
    sums -= np.median(sums, axis=1, keepdims=True)
    sums = convolve1d(sums, [0.5, 1.0, 0.5], axis=1, mode="constant")
    np.clip(sums, 0, max(float(np.percentile(sums.max(axis=1), 30)), 1e-6), out=sums)
    middle = [rows.stay == stay for stay in stays]
    times = np.array([rows.times_s[m].mean() for m in middle]) - rows.times_s.mean()
    mouths = np.array([rows.mouth_m[m].mean(axis=0) for m in middle])
    return _Pool(sums, times, mouths, step_s)


def _best_at(
    pool: _Pool, places_m: Float64, tilt: float, speed_m_s: float
) -> list[tuple[float, float, float, int]]:
    """Return height, offset, tilt and number of each place's two best offsets."""
    from numpy.lib.stride_tricks import sliding_window_view

    ways = np.linalg.norm(places_m[:, np.newaxis] - pool.mouth_m, axis=2)
    expected = ways / speed_m_s + tilt * pool.t + EARLIEST_S + LONGEST_S
    begin = np.rint(expected / pool.step_s).astype(np.int64)
    offsets = round((LATEST_S - EARLIEST_S) / pool.step_s) + 1
    total = np.zeros((len(places_m), offsets), np.float32)
    for k, curve in enumerate(pool.curves):
        shifted = sliding_window_view(np.pad(curve, offsets), offsets)
        total += shifted[np.clip(begin[:, k] + offsets, 0, len(shifted) - 1)]
    row, found = np.arange(len(places_m)), []
    for _ in range(2):
        best = total.argmax(axis=1)
        offset = EARLIEST_S + best * pool.step_s
        found += [
            (float(total[p, best[p]]), float(offset[p]), tilt, p) for p in range(len(places_m))
        ]
        for aside in range(-2, 3):
            total[row, np.clip(best + aside, 0, offsets - 1)] = -1.0
    return found


def _distinct(
    found: list[tuple[float, float, float, int]],
    places_m: Float64,
    reach_s: float,
    step_s: float,
    most: int,
) -> list[Start]:
    out: list[Start] = []
    for _, offset, slope, place in found[:LOOKED_AT]:
        new = all(
            abs(offset - s.offset_s) > 1.5 * step_s
            or abs(slope - s.slope) * reach_s > APART_S
            or np.linalg.norm(places_m[place] - s.place_m) > APART_M
            for s in out
        )
        if new:
            out.append(Start(offset, slope, places_m[place]))
        if len(out) == most:
            break
    return out
