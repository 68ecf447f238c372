"""Samples that a camera lost, though nothing else noticed.

Where people walk about in an echoing room a small loss is within what sound does on its way. Not
so once the ways are solved for: the solution of the longer side hears every window of it when it
is expected, and none of the other side; there all of them come at one other time. After a loss
speech comes too early for the clock of before, which an echo never does. Before it speech comes too
late for the clock of after, by one time wherever it is said; echoes change as people move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.travel_fit import (
    BEFORE_S,
    CLEAR,
    EARLY_SHARE,
    EXACT_S,
    STANDS_OUT,
    STANDS_OUT_BEFORE,
    Fit,
)
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.sync.travel_rows import Rows

    Float32 = NDArray[np.float32]

__all__ = ["Loss", "lost", "meeting"]

LEAST_S, MOST_S = 6e-3, 0.085  # what is nearer may be an echo's; curves reach no farther
# How much clearer all windows of a side must be, what six gain that come to stand fully out. Of 396
# solutions without a loss the best gained 25; of 198 with one of 30 ms 19 in 20 more than 100.
LEAST_GAIN = 35.0
# Of the gain: where more is heard when it is expected, or so near that it may be an echo's, nothing
# was lost. Of 130 losses all but one heard 0.32 of it there or less; of 800 further solutions
# without a loss three gained so much, and heard as well.
HEARD_NEARBY = 0.4
UNTOLD = CLEAR - STANDS_OUT  # what one window gains that stands fully out tells no moment


@dataclass(frozen=True, slots=True)
class Loss:
    """The session times between which samples were lost, and how much."""

    after_ns: int
    before_ns: int
    lost_ns: int

    @property
    def middle_ns(self) -> int:
        """When it is taken to have been: in a pause nothing tells."""
        return (self.after_ns + self.before_ns) // 2


def lost(found: Fit) -> Loss | None:
    """Find the loss that a solution shows most clearly; None where it shows none.

    Parameters
    ----------
    found
        The best solution for a stretch of a recording, whatever its score.
    """
    rows = found.model.rows
    order = np.argsort(rows.times_s, kind="stable")
    reach = round(MOST_S * rows.rate_hz)
    shifts_s = np.arange(-reach, reach + 1) / rows.rate_hz
    clearer = _clearer(found, reach)[order]
    upto = np.cumsum(clearer, axis=0)
    gain = np.where(shifts_s >= LEAST_S, upto, 0.0)
    gain += np.where(shifts_s <= -LEAST_S, upto[-1] - upto, 0.0)
    at, k = np.unravel_index(int(np.argmax(gain[:-1])), gain[:-1].shape)
    side = slice(at + 1) if shifts_s[k] > 0 else slice(at + 1, None)
    nearby = clearer[side][:, np.abs(shifts_s) < LEAST_S].sum(axis=0).max()
    heard = found.clarity[order][side].sum() + nearby
    if gain[at, k] < LEAST_GAIN or heard > HEARD_NEARBY * gain[at, k]:
        return None
    seconds = (*rows.times_s[order][at : at + 2], abs(shifts_s[k]))
    after, before, by = (round(float(s) * NS_PER_S) for s in seconds)
    return Loss(rows.origin_ns + after, rows.origin_ns + before, by)


def meeting(rows: Rows, before: Fit, after: Fit) -> tuple[int, int]:
    """Return where one clock gives way to another.

    Parameters
    ----------
    rows
        All windows of two stretches, one after the other.
    before, after
        Their solutions.

    Returns
    -------
    The session times [ns] of the last window that is surely the one's, and the first of the other.
    """
    order = np.argsort(rows.times_s, kind="stable")
    fits_before, fits_after = (np.cumsum(f.clarity_of(rows)[order]) for f in (before, after))
    told = (fits_before - fits_after)[:-1]
    near = np.flatnonzero(told >= told.max() - UNTOLD)
    ends = rows.times_s[order][[near[0], near[-1] + 1]]
    first, last = (rows.origin_ns + round(float(s) * NS_PER_S) for s in ends)
    return first, last


def _clearer(found: Fit, reach: int) -> Float32:
    """Return how much clearer each window is at other lags than at the expected one.

    ``(R, 2 reach + 1)``; lags are in samples around the expected one.
    """
    rows = found.model.rows
    heard, before = _highest(rows, -EXACT_S, EXACT_S), _highest(rows, *BEFORE_S)
    clarity = np.clip(heard - STANDS_OUT, 0, CLEAR - STANDS_OUT)
    clarity -= EARLY_SHARE * np.clip(before - STANDS_OUT_BEFORE, 0, CLEAR - STANDS_OUT)
    off_s = found.model.expected_s(found.x) - rows.lags_s
    middle = np.rint(off_s * rows.rate_hz).astype(np.int64) + rows.half
    at = middle[:, np.newaxis] + np.arange(-reach, reach + 1)
    inside = (at >= 0) & (at < clarity.shape[1])
    there = np.take_along_axis(clarity, np.where(inside, at, 0), axis=1)
    there[~inside] = 0.0
    return np.asarray(there - there[:, reach : reach + 1])


def _highest(rows: Rows, low_s: float, high_s: float) -> Float32:
    """Return how high each curve reaches between two lags, given relative to every one."""
    from scipy.ndimage import maximum_filter1d

    low, high = round(low_s * rows.rate_hz), round(high_s * rows.rate_hz)
    width = high - low + 1
    highest = maximum_filter1d(rows.curves, width, axis=1, mode="constant")
    shift = low + width // 2  # the filter looks from -(width // 2) on
    padded = np.pad(highest, ((0, 0), (max(-shift, 0), max(shift, 0))))
    return np.asarray(padded[:, max(shift, 0) :][:, : rows.curves.shape[1]])
