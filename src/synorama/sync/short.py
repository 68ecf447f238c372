"""A sound of a few seconds within another: too short for windows to outvote chance.

The whole of the short sound is correlated, whitened, with block after block of the other. What
counts is how far the best place stands out from all others, and that the parts of the short sound
agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.lines import Line
from synorama.sync.windows import Windowing, correlate_windows, whitened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float32 = NDArray[np.float32]

__all__ = ["LEAST_S", "SHORT_S", "ShortPlace", "place_short"]

LEAST_S = 1.0
SHORT_S = 6.0
WHITENING = 0.8
BLOCK_S = 16.0
GUARD_S = 0.05  # echoes
PARTS = 6
PART_REACH_S = 0.012
PART_AGREES_S = 0.004
PART_HEIGHT = 4.0


@dataclass(frozen=True, slots=True)
class ShortPlace:
    """Where it fits best.

    Parameters
    ----------
    lag_s
        Reference time less the other's.
    z
        Height of the peak in units of its block's root mean square.
    runner_up
        The highest value elsewhere, over the peak.
    agreeing
        How many of the six parts of the short sound agree.
    """

    lag_s: float
    z: float
    runner_up: float
    agreeing: int


def place_short(reference: MonoSound, other: MonoSound) -> ShortPlace:
    """Find the shorter of two sounds in the longer one."""
    swapped = reference.duration_s < other.duration_s
    long, short = (other, reference) if swapped else (reference, other)
    rate = long.rate_hz
    curve = _slide(long.samples, short.samples, rate)
    k = int(np.argmax(curve))
    z, guard = float(curve[k]), int(GUARD_S * rate)
    curve[max(0, k - guard) : k + guard + 1] = 0
    runner_up = float(curve.max()) / max(z, 1e-9)
    place_s = (k - len(short.samples) // 2) / rate
    agreeing = _agreeing(long, short, place_s)
    return ShortPlace(-place_s if swapped else place_s, z, runner_up, agreeing)


def _slide(long: NDArray[np.int16], short: NDArray[np.int16], rate_hz: int) -> Float32:
    """Return the correlation for every start, from half the short sound before the long one."""
    half = len(short) // 2
    padded = np.pad(long, half)
    step = max(int(BLOCK_S * rate_hz), 4 * len(short))
    out = np.zeros(max(len(padded) - len(short), 1), np.float32)
    for first in range(0, len(out), step):
        count = min(step, len(out) - first)
        block = padded[first : first + count + len(short)]
        if block.any():
            out[first : first + count] = whitened(block, short, count, rate_hz, WHITENING)
    return out


def _agreeing(long: MonoSound, short: MonoSound, place_s: float) -> int:
    width = short.duration_s / (PARTS - 2)
    centres = np.linspace(width / 2, short.duration_s - width / 2, PARTS)
    windowing = Windowing(0.95 * width, PART_REACH_S, WHITENING)
    rows = correlate_windows(long, short, Line(place_s), centres, windowing)
    if not rows.count:
        return 0
    lags, heights = rows.peaks()
    return int(((np.abs(lags - place_s) < PART_AGREES_S) & (heights > PART_HEIGHT)).sum())
