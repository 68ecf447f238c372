"""What two microphones in one room have in common: when the energy of each band rises and falls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.smoothing import moving_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float16 = NDArray[np.float16]
    Float32 = NDArray[np.float32]

__all__ = ["Features", "band_features"]

HOP = 256
FRAME = 512
BANDS = 12
LOW_HZ, HIGH_HZ = 200.0, 7200.0
MEAN_S = 1.0  # loudness is judged against its surroundings
CLIP = 3.0
FLOOR = np.float32(1e3)  # energy of rounding to int16
BATCH = 96  # fits into a cache, and BLAS starts no threads, which would spin, for so small products


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Standardised log energies, ``(BANDS, frames)``, and frames per second."""

    values: Float16
    rate_hz: float

    @property
    def count(self) -> int:
        """Number of frames."""
        return int(self.values.shape[1])


def band_features(sound: MonoSound) -> Features:
    """Return log energies of 12 mel bands every 16 ms, less their mean over 1 s, clipped."""
    rate = sound.rate_hz / HOP
    energies = _band_energies(sound.samples, sound.rate_hz)
    values = np.empty(energies.shape, np.float16)
    for band, out in zip(energies, values, strict=True):  # one by one, to save memory
        band += FLOOR
        np.log(band, out=band)
        band -= moving_mean(band, int(MEAN_S * rate) | 1)
        band /= band.std() + np.float32(1e-6)
        out[:] = np.clip(band, -CLIP, CLIP, out=band)
    return Features(values, rate)


def _band_energies(samples: NDArray[np.int16], rate_hz: int) -> Float32:
    from scipy.fft import rfft

    frames = max(0, (len(samples) - FRAME) // HOP + 1)
    out = np.empty((BANDS, frames), np.float32)
    window = np.hanning(FRAME).astype(np.float32)
    heard, weights = _mel_weights(rate_hz)
    for start in range(0, frames, BATCH):
        count = min(BATCH, frames - start)
        part = samples[start * HOP : (start + count - 1) * HOP + FRAME].astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(part, FRAME)[::HOP] * window
        spectra = rfft(windows)[:, heard]
        out[:, start : start + count] = ((spectra.real**2 + spectra.imag**2) @ weights).T
    return out


@cache
def _mel_weights(rate_hz: int) -> tuple[slice, Float32]:
    """Return which frequencies count, and ``(those, BANDS)`` triangles, equally wide in mel."""
    hz = np.linspace(0, rate_hz / 2, FRAME // 2 + 1)
    mel = 1127 * np.log(1 + hz / 700)
    low, high = 1127 * np.log(1 + np.array([LOW_HZ, HIGH_HZ]) / 700)
    edges = np.linspace(low, high, BANDS + 2)
    rise = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    triangles = np.asarray(np.maximum(0, np.minimum(rise, fall)), np.float32)
    inside = np.flatnonzero(triangles.any(axis=1))
    heard = slice(int(inside[0]), int(inside[-1]) + 1)
    return heard, triangles[heard]
