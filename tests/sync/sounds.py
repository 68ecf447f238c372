"""Sounds with a known truth: speech-like noise in rooms, heard by devices with known clocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, fftconvolve, sosfilt

from synorama.media.audio import MonoSound

Float64 = NDArray[np.float64]
RATE = 16_000
PHASES, TAPS = 1024, 32


def speech(seconds: float, seed: int) -> Float64:
    """Return noise whose bands rise and fall like syllables, with pauses; rms about 1."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    out = np.zeros(n)
    for low, high in ((150, 500), (500, 1200), (1200, 2400), (2400, 4200), (4200, 7400)):
        sos = butter(2, (low, high), "bandpass", fs=RATE, output="sos")
        out += sosfilt(sos, rng.standard_normal(n)) * _envelope(n, rng)
    out *= _talking(n, rng)
    return np.asarray(out / np.sqrt(np.mean(out**2)))


def _envelope(n: int, rng: np.random.Generator) -> Float64:
    steps = rng.gamma(0.6, 1.0, n // (RATE // 6) + 2)
    return np.asarray(np.interp(np.arange(n), np.arange(len(steps)) * (RATE // 6), steps))


def _talking(n: int, rng: np.random.Generator) -> Float64:
    steps = (rng.random(n // RATE + 2) < 0.75).astype(float)
    return np.asarray(np.interp(np.arange(n), np.arange(len(steps)) * RATE, steps))


def room(sound: Float64, seed: int, *, reverb: float = 0.7, t60_s: float = 0.35) -> Float64:
    """Add an exponentially decaying tail after the direct sound."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(t60_s * RATE)) / RATE
    tail = rng.standard_normal(len(t)) * 10 ** (-3 * t / t60_s)
    tail[: int(0.002 * RATE)] = 0
    tail *= reverb / np.sqrt(np.sum(tail**2))
    tail[0] = 1
    return np.asarray(fftconvolve(sound, tail)[: len(sound)])


def at_times(sound: Float64, times_s: Float64) -> Float64:
    """Return the band-limited sound at arbitrary times (windowed sinc); silence outside."""
    phase = np.arange(PHASES)[:, None] / PHASES
    x = np.arange(TAPS) - TAPS // 2 + 1 - phase
    table = np.sinc(x) * np.cos(np.pi * x / (TAPS + 2)) ** 2
    place = np.rint(times_s * RATE * PHASES).astype(np.int64)
    k, p = place // PHASES, place % PHASES
    padded = np.concatenate([np.zeros(TAPS), sound, np.zeros(TAPS)])
    k = np.clip(k + TAPS // 2 + 1, 0, len(padded) - TAPS)
    out = np.zeros(len(k))
    for tap in range(TAPS):
        out += padded[k + tap] * table[p, tap]
    return out


def heard(
    sound: Float64,
    clock: Callable[[Float64], Float64],
    seconds: float,
    *,
    snr_db: float = 20.0,
    seed: int = 0,
    name: str = "other",
    start_ns: int = 0,
    gain: float = 1.0,
) -> MonoSound:
    """Record ``seconds`` of the sound; ``clock`` carries the device's seconds to the sound's."""
    t = np.arange(int(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed + 1000).standard_normal(len(t))
    mixed = at_times(sound, clock(t)) + noise * 10 ** (-snr_db / 20)
    scaled = 1000 * gain * mixed / np.sqrt(np.mean(mixed**2))
    samples = np.clip(np.rint(scaled), -32767, 32767).astype(np.int16)
    return MonoSound(name, start_ns, RATE, samples)


def affine(offset_s: float, drift_ppm: float = 0.0) -> Callable[[Float64], Float64]:
    """Return ``t -> offset + (1 + drift) t``."""
    return lambda t: np.asarray(offset_s + t * (1 + drift_ppm * 1e-6))


def dropped(
    inner: Callable[[Float64], Float64], at_s: float, by_s: float
) -> Callable[[Float64], Float64]:
    """Return a clock that loses ``by_s`` of sound at its time ``at_s``."""
    return lambda t: inner(t + np.where(t >= at_s, by_s, 0.0))
