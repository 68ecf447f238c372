"""Flashes with beeps, and claps, as a camera with a known skew records them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synorama.media.audio import MonoSound

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
RATE = 16_000
PARTS = (18, 32)
GAMMA = 2.2


def moments(count: int, rng: np.random.Generator, *, apart_s: float = 1.1) -> Float64:
    """Return irregular moments [s] at which something happens."""
    return np.asarray(1.0 + np.cumsum(apart_s + rng.uniform(0, 0.3, count)))


def beeps(at_s: Float64, seconds: float, rng: np.random.Generator) -> MonoSound:
    """Return beeps of 80 ms over a quiet room."""
    t = np.arange(int(seconds * RATE)) / RATE
    out = rng.normal(0, 20, len(t))
    for a in at_s:
        on = (t >= a) & (t < a + 0.08)
        out[on] += 8000 * np.sin(2 * np.pi * 1000 * (t[on] - a))
    return MonoSound("camera", 0, RATE, np.clip(out, -32767, 32767).astype(np.int16))


def frame_times(fps: float, seconds: float) -> Int64:
    """Return the stamps of a camera's frames [ns]."""
    return np.asarray(np.rint(np.arange(int(seconds * fps)) * 1e9 / fps), np.int64)


def lit_share(times_ns: Int64, at_s: Float64, exposure_s: float, lasts_s: float = 0.12) -> Float64:
    """Return the share of each exposure, centred on its stamp, for which the flash was lit."""
    opened = times_ns / 1e9 - exposure_s / 2
    share = np.zeros(len(times_ns))
    for a in at_s:
        both = np.minimum(opened + exposure_s, a + lasts_s) - np.maximum(opened, a)
        share += np.clip(both, 0, None) / exposure_s
    return np.asarray(share)


def filmed(share: Float64, rng: np.random.Generator) -> Float64:
    """Return the brightness of parts of the pictures: a flash in some of them, noise in all."""
    scene = rng.uniform(30, 120, PARTS[0] * PARTS[1])
    lit = np.zeros(PARTS)
    lit[5:9, 10:18] = 0.5
    light = (scene / 255) ** GAMMA + share[:, None] * lit.reshape(-1)
    stored = 255 * np.clip(light, 0, 1) ** (1 / GAMMA)
    return np.asarray(stored + rng.normal(0, 0.4, stored.shape))


def clapping(times_ns: Int64, at_s: Float64, rng: np.random.Generator) -> Float64:
    """Return parts of pictures in which two bright hands swing together and stay."""
    scene = rng.uniform(40, 60, PARTS)
    out = np.empty((len(times_ns), PARTS[0] * PARTS[1]))
    x = np.arange(PARTS[1] * 4) / 4
    for k, t in enumerate(times_ns / 1e9):
        gap = _gap(t, at_s)
        row = np.exp(-((x - 16 - gap) ** 2) / 2) + np.exp(-((x - 16 + gap) ** 2) / 2)
        picture = scene.copy()
        picture[6:12] += 120 * row.reshape(-1, 4).mean(axis=1)
        out[k] = picture.reshape(-1)
    return out + rng.normal(0, 0.3, out.shape)


def _gap(t: float, at_s: Float64) -> float:
    """Return half the distance of the hands: closing at speed for 0.15 s, opening slowly."""
    before = [a - t for a in at_s if 0 <= a - t < 0.15]
    if before:
        return 1.0 + 6.0 * float(before[0]) / 0.15
    since = min((t - a for a in at_s if t >= a), default=9.0)
    return float(np.clip(1.0 + (since - 0.25) * 10, 1.0, 7.0)) if since < 9 else 7.0
