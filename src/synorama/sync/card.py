"""The clock card: what a screen shows when, and how what a camera saw of it becomes a time.

The card shows a QR code that says when it appeared, and below it a row of fourteen cells of which
one is lit. The code changes every seven steps of the light, so that most exposures see one code
only; the light moves with every picture of the screen. An exposure that spans a step sees two
cells lit in part, and how the light is divided tells the middle of the exposure to a part of a
step. Codes take turns between the left and the right seven cells: an exposure that spans a change
of codes is told from one that spans the end of the next.

A code is 17 digits, all that the smallest code holds at the highest redundancy (version 1, level
H: up to 30 % of it may be unreadable): two of the card and the side, ten of the time in tenths of
a millisecond, three of the length of a step, two that check the rest.

Pure: no picture is decoded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "CARD_HEIGHT",
    "CARD_WIDTH",
    "CELLS",
    "LEAST_STEP_MS",
    "STEPS",
    "Code",
    "Fit",
    "fit_exposures",
    "parse",
    "shown_ns",
]

# Layout, in modules of the code, from the card's upper left corner.
CARD_WIDTH, CARD_HEIGHT = 33.0, 36.0
CODE_LEFT, CODE_TOP, CODE_SIZE = 6.0, 4.0, 21.0
BAND_LEFT, BAND_TOP, BAND_WIDTH, BAND_HEIGHT = 0.5, 28.0, 32.0, 6.0
CELL_LEFT, CELL_TOP, CELL_WIDTH, CELL_HEIGHT = 1.1, 29.0, 2.2, 4.0
STEPS = 7  # of the light, for each code: no whole number of frames of usual cameras
CELLS = 2 * STEPS
LEAST_STEP_MS = 15.0  # faster screens keep the light where it is for more than one picture

CARDS = 50
TICK_NS = 100_000  # the code counts tenths of a millisecond
TIMES = 10**10  # and begins anew after 11.6 days
MODULUS = 97
DIGITS = 17

BEFORE = STEPS // 2
SPAN = np.arange(-BEFORE, CELLS - BEFORE)  # steps around a code that its cells can mean
OFFSET_STEP_NS = 250_000
LONGEST_EXPOSURE_NS = 42_000_000
EXPOSURES = 48
LIKELY = 3.84  # of chi square with one degree of freedom: 95 %
PHASE_NS = 1_000_000  # frames whose stamps lie alike within a step, to this, say the same
ALIKE = 3.0  # and of those that do not, so many count as one: all are read through one lens
LEAST_SCATTER = 0.05  # of a cell's light: tone curves and screens are known no better
LEAST_HALF_NS = 300_000  # what nothing seen of a screen is surer than


@dataclass(frozen=True, slots=True)
class Code:
    """What a code says.

    Parameters
    ----------
    card
        Number of the card, drawn anew each time the page is loaded.
    side
        0: the left seven cells belong to it; 1: the right seven.
    shown_ns
        When it appeared, on the card's clock, which begins anew after 11.6 days.
    step_ns
        How long the light stays in a cell.
    """

    card: int
    side: int
    shown_ns: int
    step_ns: int

    def text(self) -> str:
        """Return the digits that the code shows."""
        head = f"{2 * self.card + self.side:02d}{self.shown_ns // TICK_NS % TIMES:010d}"
        body = f"{head}{self.step_ns // TICK_NS:03d}"
        return f"{body}{int(body) % MODULUS:02d}"


def parse(text: str) -> Code | None:
    """Read the digits of a code; None where this is no code of a card."""
    if len(text) != DIGITS or not (text.isascii() and text.isdigit()):
        return None
    body, check = text[:-2], int(text[-2:])
    step_ns = int(body[12:15]) * TICK_NS
    if int(body) % MODULUS != check or step_ns < LEAST_STEP_MS * 1e6 / 2:
        return None
    card, side = divmod(int(body[:2]), 2)
    return Code(card, side, int(body[2:12]) * TICK_NS, step_ns)


def shown_ns(codes: Sequence[Code]) -> Int64:
    """Return when codes appeared, without the leap where the card's clock begins anew."""
    whole = TIMES * TICK_NS
    raw = np.array([c.shown_ns for c in codes], np.int64)
    return np.asarray(raw[0] + (raw - raw[0] + whole // 2) % whole - whole // 2, np.int64)


# --- from light to time ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """Where frames lie on the card's clock.

    Parameters
    ----------
    offset_ns
        Card's time minus the frames' times.
    half_ns
        Half width of the interval that holds it with 95 % probability.
    exposure_ns
        How long the frames were exposed, as far as the light tells.
    frames
        How many it rests on.
    """

    offset_ns: int
    half_ns: float
    exposure_ns: int
    frames: int


def fit_exposures(times_ns: Int64, codes: Sequence[Code], light: Float64) -> Fit | None:
    """Find the offset at which exposures would have seen the light as it was seen.

    Offset and length of the exposures are tried on a grid. The interval holds all offsets that
    explain the light nearly as well, so that frames that never saw a step leave it as wide as the
    steps are.

    Parameters
    ----------
    times_ns
        ``(N,)`` times of the frames on the camera's clock.
    codes
        What each of them read.
    light
        ``(N, CELLS)`` share of the exposure for which each cell was lit.

    Returns
    -------
    Fit or None
        None where the frames do not agree on a time.
    """
    start = shown_ns(codes) - times_ns
    step = np.array([c.step_ns for c in codes], np.float64)
    seen = np.stack([np.roll(row, -STEPS * c.side) for row, c in zip(light, codes, strict=True)])
    seen = np.roll(seen, BEFORE, axis=1)  # now in the order of SPAN
    rough = start + step * ((seen * (SPAN + 0.5)).sum(axis=1) / seen.sum(axis=1))
    middle = int(start[0] + np.median(rough - start[0]))
    near = np.abs(rough - middle) < 2 * step
    if near.sum() < max(3, len(near) // 2):
        return None
    return _search(middle - start[near], step[near], seen[near], middle)


def _search(since_ns: Int64, step_ns: Float64, seen: Float64, middle_ns: int) -> Fit:
    """Try offsets around the middle; ``since_ns`` is the time since each code appeared there."""
    offsets = np.arange(-1.5 * step_ns.max(), 1.5 * step_ns.max() + 1, OFFSET_STEP_NS)
    exposures = np.geomspace(1e6, LONGEST_EXPOSURE_NS, EXPOSURES)
    misfit = np.array([_misfits(since_ns, step_ns, seen, offsets, e) for e in exposures])
    best = np.unravel_index(int(misfit.argmin()), misfit.shape)
    along = misfit.min(axis=0)
    scatter = max(float(misfit[best]) / 2, LEAST_SCATTER**2)  # of each of two cells
    alike = offsets[along <= misfit[best] + LIKELY * scatter / _independent(since_ns, step_ns)]
    offset = (alike[0] + alike[-1]) / 2
    half = (alike[-1] - alike[0] + OFFSET_STEP_NS) / 2
    return Fit(
        middle_ns + round(float(offset)),
        max(float(half), LEAST_HALF_NS),
        round(float(exposures[best[0]])),
        len(since_ns),
    )


def _independent(since_ns: Int64, step_ns: Float64) -> float:
    """Return how many observations the frames are worth: as many as they saw phases of the step."""
    phases = np.unique((since_ns % step_ns) // PHASE_NS)
    return max(len(phases) / ALIKE, 1.0)


def _misfits(
    since_ns: Int64, step_ns: Float64, seen: Float64, offsets: Float64, exposure_ns: float
) -> Float64:
    """Return for each offset the mean square of what the light is off, robustly."""
    opened = (since_ns[:, None] + offsets[None, :] - exposure_ns / 2)[:, :, None]
    lit = SPAN[None, None, :] * step_ns[:, None, None]
    from_ = np.maximum(opened, lit)
    to = np.minimum(opened + exposure_ns, lit + step_ns[:, None, None])
    share = np.clip(to - from_, 0, None) / exposure_ns
    off = ((share - seen[:, None, :]) ** 2).sum(axis=2)
    return np.asarray(np.minimum(off, 0.5).mean(axis=0))
