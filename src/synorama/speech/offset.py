"""Whether two devices that should be on one clock really heard the same at the same time.

An independent check of synchronization: the levels of speech rise and fall together wherever they
are heard, whatever the microphones. Levels a few tens of milliseconds apart would give words to
the wrong speaker, so what is left is measured before anybody is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.levels import FRAME_NS, Levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["MOST_NS", "ResidualOffset", "residual_offset"]

MOST_NS = 50_000_000
"""Clocks that disagree by more contradict what was heard."""

REACH = 200  # frames to both sides: 2 s
BLOCK = 6_000  # frames: 60 s
LEAST_BLOCK = 1_000
TREND = 101  # frames of which the mean is taken away
HIGHEST_DB = 40.0
LEAST_SCORE = 6.0


@dataclass(frozen=True, slots=True)
class ResidualOffset:
    """How much later one device heard the same than another.

    Parameters
    ----------
    offset_ns
        The median over the blocks; 0 where it is unknown.
    known
        Whether the sound told it.
    spread_ns
        Between the blocks.
    blocks
        How many told it.
    """

    offset_ns: int
    known: bool
    spread_ns: int
    blocks: int


def residual_offset(levels: Levels, a: int, b: int) -> ResidualOffset:
    """Measure how much later device ``b`` heard the same than device ``a``."""
    both = np.isfinite(levels.power[a]) & np.isfinite(levels.power[b])
    lags = []
    for first in range(0, levels.frames, BLOCK):
        part = slice(first, first + BLOCK)
        if both[part].sum() < LEAST_BLOCK:
            continue
        lag = _lag(_shape(levels, a, part), _shape(levels, b, part))
        if lag is not None:
            lags.append(lag)
    if not lags:
        return ResidualOffset(0, False, 0, 0)
    found = np.array(lags) * FRAME_NS
    spread = float(np.percentile(found, 90) - np.percentile(found, 10))
    return ResidualOffset(round(float(np.median(found))), True, round(spread), len(lags))


def _shape(levels: Levels, device: int, part: slice) -> Float64:
    """Return how the level rises and falls [dB] without its slow trend."""
    from scipy.ndimage import uniform_filter1d

    power = levels.power[device, part]
    floor = float(np.nanmin(power)) if np.isfinite(power).any() else 1.0
    level = 10 * np.log10(np.where(np.isfinite(power), power, floor) / floor)
    level = np.clip(level - 10.0, 0.0, HIGHEST_DB)  # a tenth of the noise floor is left of noise
    return np.asarray(level - uniform_filter1d(level, TREND, mode="nearest"), np.float64)


def _lag(one: Float64, other: Float64) -> float | None:
    """Return by how many frames the other is later, or None where nothing common stands out."""
    from scipy.signal import correlate

    reach = min(REACH, len(one) // 3)
    whole = correlate(other, one, mode="full", method="fft")
    middle = len(one) - 1
    near = whole[middle - reach : middle + reach + 1]
    best = int(np.argmax(near))
    far = np.concatenate([whole[: middle - reach], whole[middle + reach + 1 :]])
    noise = float(np.std(far))
    if noise <= 0 or near[best] < LEAST_SCORE * noise or best in (0, len(near) - 1):
        return None
    return best - reach + _vertex(near[best - 1], near[best], near[best + 1])


def _vertex(before: float, at: float, after: float) -> float:
    """Return where between three values a parabola through them is highest."""
    bend = before - 2 * at + after
    return 0.0 if bend == 0 else 0.5 * (before - after) / bend
