"""Sound in which no voice was detected, although somebody may talk there.

A detector of voices misses whole sentences of a hoarse voice in a noisy room. Talk still gives
itself away by its level, which rises and falls, where the noise of a fan is even. So
does clatter: what is found here is no more than worth a second look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["unheard_talk"]

BAND_HZ = (300.0, 3800.0)
STEP = SPEECH_HZ // 50
SMOOTH_STEPS = 5  # 100 ms, half a syllable
LEAST_POWER = 1e-12
SHORTEST = 2 * SPEECH_HZ  # samples
LEAST_SWING_DB = 3.0  # of the level; steady noise has 2 at most
MOST_BELOW_DB = 20.0  # what is said is that loud beside the speech that was heard


def unheard_talk(samples: Float32, heard: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ``(first, end)`` samples of stretches that may hold talk besides what was heard.

    Parameters
    ----------
    samples
        ``(N,)`` at 16 kHz.
    heard
        ``(first, end)`` of the spans in which voices were detected, in order.
    """
    rest = [(first, end) for first, end in _between(heard, len(samples)) if end - first >= SHORTEST]
    if not rest:
        return []
    level_db = _level_db(samples)
    spoken = [level_db[first // STEP : end // STEP] for first, end in heard]
    least_db = np.percentile(np.concatenate(spoken), 95) - MOST_BELOW_DB if spoken else -np.inf
    return [span for span in rest if _swings(level_db[span[0] // STEP : span[1] // STEP], least_db)]


def _between(heard: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    starts = [0, *(end for _, end in heard)]
    return list(zip(starts, [*(first for first, _ in heard), count], strict=True))


def _level_db(samples: Float32) -> Float64:
    """Return the level of each `STEP` in the band of speech."""
    from scipy import signal

    band = signal.butter(4, BAND_HZ, "bandpass", fs=SPEECH_HZ, output="sos")
    filtered = signal.sosfilt(band, samples)
    steps = len(filtered) // STEP
    power = np.square(filtered[: steps * STEP]).reshape(steps, STEP).mean(axis=1)
    smooth = np.convolve(power, np.ones(SMOOTH_STEPS) / SMOOTH_STEPS, "same")
    return np.asarray(10 * np.log10(smooth + LEAST_POWER))


def _swings(level_db: Float64, least_db: float) -> bool:
    low_db, high_db = np.percentile(level_db, [5, 95])
    return bool(high_db - low_db >= LEAST_SWING_DB and high_db >= least_db)
