"""Generalized cross-correlation of short windows around an expected delay.

Knapp and Carter (1976): the cross spectrum is divided by a power of its magnitude, so that the
phase, which holds the delay, counts equally at all frequencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Correlograms", "Windowing", "correlate_windows", "parabola", "whitened"]

LOW_HZ, HIGH_HZ = 150.0, 7200.0
RAMP_S = 0.005
AT_ONCE = 4  # windows: more of them take memory, and no less time


@dataclass(frozen=True, slots=True)
class Windowing:
    """Width of the windows, how far around the expected delay to look, and how much to whiten."""

    width_s: float
    reach_s: float
    whitening: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Correlograms:
    """One correlation curve a window, in units of its own root mean square.

    Parameters
    ----------
    times_s
        ``(R,)`` centres of the windows on the other's time.
    lags_s
        ``(R,)`` lag that the middle of each curve stands for.
    curves
        ``(R, 2 half + 1)`` float32; one step is one sample of lag.
    rate_hz
        Samples per second.
    """

    times_s: Float64
    lags_s: Float64
    curves: Float32
    rate_hz: int

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.times_s)

    @property
    def half(self) -> int:
        """Index of the middle of the curves."""
        return int(self.curves.shape[1] // 2)

    def inverted(self) -> Correlograms:
        """Return them as if one of the microphones had the other polarity."""
        return replace(self, curves=-self.curves)

    def between(self, first_s: float, last_s: float) -> Correlograms:
        """Return those of windows whose centres lie between two times."""
        k = (self.times_s > first_s) & (self.times_s < last_s)
        return replace(self, times_s=self.times_s[k], lags_s=self.lags_s[k], curves=self.curves[k])

    def peaks(self) -> tuple[Float64, Float64]:
        """Return each window's best lag [s] and the height of its peak."""
        k = np.argmax(self.curves, axis=1)
        rows = np.arange(self.count)
        inside = np.clip(k, 1, self.curves.shape[1] - 2)
        bend = parabola(
            self.curves[rows, inside - 1], self.curves[rows, inside], self.curves[rows, inside + 1]
        )
        at = k - self.half + np.where(inside == k, bend, 0.0)
        return self.lags_s + at / self.rate_hz, self.curves[rows, k].astype(np.float64)


def correlate_windows(
    reference: MonoSound,
    other: MonoSound,
    lag: Callable[[float], float],
    centres_s: Float64,
    windowing: Windowing,
) -> Correlograms:
    """Correlate windows of ``other`` with the reference around the expected lag.

    Windows that reach beyond either sound, or in which one is mostly digital silence, are left
    out: where a signal sets in, everything would seem to correlate.
    """
    rate = other.rate_hz
    width, reach = int(windowing.width_s * rate), int(windowing.reach_s * rate)
    firsts = np.array(list(_firsts(reference, other, lag, centres_s, width, reach)), np.int64)
    i, j = firsts.reshape(-1, 2).T
    curves = np.empty((len(i), 2 * reach + 1), np.float32)
    for k in range(0, len(i), AT_ONCE):
        rows = slice(k, k + AT_ONCE)
        a = _cut(reference, j[rows] - reach, width + 2 * reach)
        b = _cut(other, i[rows], width)
        curves[rows] = whitened(a, b, 2 * reach + 1, rate, windowing.whitening)
    return Correlograms((i + width / 2) / rate, (j - i) / rate, curves, rate)


def _firsts(
    reference: MonoSound,
    other: MonoSound,
    lag: Callable[[float], float],
    centres_s: Float64,
    width: int,
    reach: int,
) -> Iterator[tuple[int, int]]:
    """Yield the first samples, in ``other`` and the reference, of windows that can be used."""
    for centre in centres_s:
        i = int(centre * other.rate_hz) - width // 2
        j = round(i + lag(float(centre)) * other.rate_hz)
        if not _inside(i, i + width, other) or not _inside(j - reach, j + width + reach, reference):
            continue
        a, b = reference.samples[j - reach : j + width + reach], other.samples[i : i + width]
        if _alive(a) and _alive(b):
            yield i, j


def _cut(sound: MonoSound, firsts: NDArray[np.int64], count: int) -> NDArray[np.int16]:
    return np.stack([sound.samples[first : first + count] for first in firsts])


def parabola(left: Float32, peak: Float32, right: Float32) -> Float64:
    """Return where between -1 and 1 the parabola through three equidistant values peaks."""
    bend = np.asarray(left, np.float64) - 2 * np.asarray(peak, np.float64) + right
    tilt = 0.5 * (np.asarray(left, np.float64) - right)
    out: Float64 = np.where(bend < 0, tilt / np.where(bend < 0, bend, 1.0), 0.0)
    return out


def _alive(samples: NDArray[np.int16]) -> bool:
    thinned = samples[::11]
    return bool(2 * np.count_nonzero(thinned) > len(thinned))


def _inside(first: int, end: int, sound: MonoSound) -> bool:
    return first >= 0 and end <= len(sound.samples)


def whitened(
    a: NDArray[np.int16], b: NDArray[np.int16], count: int, rate_hz: int, whitening: float
) -> Float32:
    """Correlate ``b`` with the ``count`` places in ``a`` from its first sample on.

    The last axis is time; several at once take a third of the time. The result is in units of
    the root mean square over all places that the FFT holds.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = next_fast_len(a.shape[-1] + b.shape[-1] // 8, real=True)
    ramp = int(RAMP_S * rate_hz)
    heard = _band(n, rate_hz)
    cross = rfft(_eased(a, ramp), n)
    cross[..., : heard.start] = cross[..., heard.stop :] = 0
    inside = cross[..., heard]
    inside *= np.conj(rfft(_eased(b, ramp), n)[..., heard])
    inside *= (np.abs(inside) + np.float32(1e-3)) ** np.float32(-whitening)
    curve = irfft(cross, n)
    level = np.sqrt(np.mean(curve * curve, axis=-1, keepdims=True)) + 1e-20
    out: Float32 = curve[..., :count] / level
    return out


def _eased(samples: NDArray[np.int16], ramp: int) -> Float32:
    """Fade in and out: cut ends are clicks, which fill bands that the sounds leave empty."""
    out = samples.astype(np.float32)
    rise = np.arange(1, ramp + 1, dtype=np.float32) / (ramp + 1)
    length = out.shape[-1]
    out[..., :ramp] *= rise[:length]
    out[..., -ramp:] *= rise[::-1][-length:]
    return out


@lru_cache(maxsize=16)
def _band(n: int, rate_hz: int) -> slice:
    """Return which frequencies of a spectrum count."""
    hz = np.fft.rfftfreq(n, 1 / rate_hz)
    return slice(int(np.searchsorted(hz, LOW_HZ, "right")), int(np.searchsorted(hz, HIGH_HZ)))
