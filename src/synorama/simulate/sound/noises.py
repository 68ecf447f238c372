"""What else sounds in a kitchen: clatter, alarms, music, a fan, and hum. All of it from a seed.

Levels are of full scale at 1 m. Nothing repeats unless it is asked to: a sound that comes again
can be taken for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.sound.clips import GRID_HZ, Clip, Clips

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Fan", "Hum", "alarm", "clatter", "music"]

BLOCK = GRID_HZ  # of steady noise: made one by one, each fading into the next
SCALE = (0, 2, 4, 7, 9)  # half tones of a scale in which nothing sounds wrong
TUNE_ROOT_HZ, BASS_ROOT_HZ = 220.0, 55.0
BAR_BEATS = 4


def clatter(
    seed: int, name: str, first_s: float, last_s: float, *, every_s: float = 1.5, level: float = 0.1
) -> Clips:
    """Return hard things that touch hard things, about every so many seconds of the session."""
    return Clips(_knocks(randomness(seed, name, "clatter"), first_s, last_s, every_s, level))


def _knocks(
    rng: np.random.Generator, first_s: float, last_s: float, every_s: float, level: float
) -> Iterator[Clip]:
    at = first_s + rng.exponential(every_s)
    while at < last_s:
        count = int(rng.uniform(0.05, 0.25) * GRID_HZ)
        loud = level * 10 ** rng.uniform(-0.6, 0.3)
        make = partial(_knock, int(rng.integers(2**31)), count, loud)
        yield Clip(round(at * GRID_HZ), count, make)
        at += rng.exponential(every_s)


def _knock(seed: int, count: int, level: float) -> Float32:
    """Return a burst that rings on in a few damped modes of metal, glass or wood."""
    rng = np.random.default_rng(seed)
    t = np.arange(count) / GRID_HZ
    ring = np.zeros(count)
    for _ in range(rng.integers(3, 8)):
        hz, decay_s = rng.uniform(700, 9_000), rng.uniform(0.008, 0.05)
        phase = rng.uniform(0, 2 * np.pi)
        ring += rng.uniform(0.2, 1.0) * np.sin(2 * np.pi * hz * t + phase) * np.exp(-t / decay_s)
    burst = rng.standard_normal(count) * np.exp(-t / 0.004)
    fade = np.minimum(1.0, np.minimum(t / 0.0004, (t[-1] - t) / 0.01))
    sound = (ring + 0.7 * burst) * fade
    return np.asarray(_below_band(level * sound / np.abs(sound).max()), np.float32)


def alarm(
    at_s: Iterable[float], *, hz: float = 2_050.0, beeps: int = 4, level: float = 0.03
) -> Clips:
    """Return the alarm of a timer at times of the session: short beeps, two a second."""
    beep = partial(_beep, hz, level)
    count = GRID_HZ // 4
    starts = (round((at + k / 2) * GRID_HZ) for at in at_s for k in range(beeps))
    return Clips(Clip(start, count, beep) for start in starts)


def _beep(hz: float, level: float) -> Float32:
    t = np.arange(GRID_HZ // 4) / GRID_HZ
    fade = np.minimum(1.0, np.minimum(t, t[-1] - t) / 0.005)
    tone = np.sin(2 * np.pi * hz * t) + 0.3 * np.sin(6 * np.pi * hz * t)
    return np.asarray(level * fade * tone, np.float32)


def music(
    seed: int,
    first_s: float,
    last_s: float,
    *,
    beats_per_minute: float = 104.0,
    repeat_bars: int = 0,
    level: float = 0.02,
) -> Clips:
    """Return music that a loudspeaker plays: a tune over a bass.

    Parameters
    ----------
    seed
        Of the tune.
    first_s, last_s
        When in the session.
    beats_per_minute
        How fast.
    repeat_bars
        After so many bars the same comes again, exactly; 0: never.
    level
        Of a note at 1 m.
    """
    beat_s = 60.0 / beats_per_minute
    bars = int((last_s - first_s) / (beat_s * BAR_BEATS))
    notes: list[Clip] = []
    for bar in range(bars):
        rng = randomness(seed, "music", str(bar % repeat_bars if repeat_bars else bar))
        at = round((first_s + bar * BAR_BEATS * beat_s) * GRID_HZ)
        notes += _bar(rng, at, beat_s, level)
    return Clips(notes)


def _bar(rng: np.random.Generator, at: int, beat_s: float, level: float) -> Iterator[Clip]:
    half = round(beat_s * GRID_HZ / 2)
    bass_hz = BASS_ROOT_HZ * 2 ** (rng.choice(SCALE) / 12)
    yield _note(at, bass_hz, 2 * half * BAR_BEATS, level)
    for eighth in range(2 * BAR_BEATS):
        if rng.random() < 0.7:
            hz = TUNE_ROOT_HZ * 2 ** (rng.choice(SCALE) / 12 + rng.integers(0, 3))
            loud = level * rng.uniform(0.4, 1.0)
            yield _note(at + eighth * half, hz, half * int(rng.integers(1, 4)), loud)


def _note(start: int, hz: float, count: int, level: float) -> Clip:
    return Clip(start, count, partial(_plucked, hz, count, level))


def _plucked(hz: float, count: int, level: float) -> Float32:
    """Return a plucked note: harmonics, of which the higher ones die out sooner."""
    t = np.arange(count) / GRID_HZ
    tone = np.zeros(count)
    for k in range(1, min(12, int(9_000 / hz)) + 1):
        tone += np.sin(2 * np.pi * k * hz * t) / k * np.exp(-t * k / 0.5)
    fade = np.minimum(1.0, np.minimum(t / 0.004, (t[-1] - t) / 0.02))
    return np.asarray(level * tone * fade, np.float32)


class Fan:
    """A fan: noise that never pauses, most of it low; root mean square ``level``."""

    def __init__(self, seed: int, name: str, level: float = 0.002) -> None:
        self._key = (seed, name)
        self._level = level
        self._block = lru_cache(8)(self._make)

    def samples(self, first: int, count: int) -> Float32:
        """Return samples ``(count,)`` of the grid."""
        blocks = range(first // BLOCK, (first + count - 1) // BLOCK + 1)
        whole = np.concatenate([self._between(k) for k in blocks])
        begin = first - blocks[0] * BLOCK
        return whole[begin : begin + count]

    def _between(self, k: int) -> Float32:
        """Return block k, over which one piece of noise fades into the next."""
        share = np.arange(BLOCK, dtype=np.float32) / BLOCK
        old, new = self._block(k - 1)[BLOCK:], self._block(k)[:BLOCK]
        faded: Float32 = old * np.sqrt(1 - share) + new * np.sqrt(share)
        return faded

    def _make(self, k: int) -> Float32:
        from scipy import signal

        rng = randomness(self._key[0], self._key[1], "fan", str(k))
        noise = rng.standard_normal(2 * BLOCK + 512, np.float32)
        coloured = signal.oaconvolve(noise, _fan_taps(), mode="valid")[: 2 * BLOCK]
        made: Float32 = (self._level * coloured).astype(np.float32)
        return made


class Hum:
    """The hum of a motor or a transformer on the mains; root mean square ``level``."""

    def __init__(self, mains_hz: float = 50.0, level: float = 0.001) -> None:
        self._mains_hz, self._level = mains_hz, level

    def samples(self, first: int, count: int) -> Float32:
        """Return samples ``(count,)`` of the grid."""
        seconds = np.arange(first, first + count) / GRID_HZ
        tone = np.zeros(count)
        shares = {1: 0.5, 2: 1.0, 3: 0.3, 4: 0.4, 6: 0.2}
        for k, share in shares.items():
            tone += share * np.sin(2 * np.pi * k * self._mains_hz * seconds)
        rms = np.sqrt(sum(share**2 for share in shares.values()) / 2)
        return np.asarray(self._level / rms * tone, np.float32)


@lru_cache(1)
def _fan_taps() -> Float32:
    """Return a filter of unit energy that falls with frequency, from 80 Hz to 8 kHz."""
    from scipy import signal

    hz = (0, 80, 200, 1_000, 4_000, 8_000, 12_000, GRID_HZ / 2)
    taps = signal.firwin2(513, hz, (0, 0.5, 1, 0.35, 0.1, 0.03, 0, 0), fs=GRID_HZ)
    return np.asarray(taps / np.sqrt(np.sum(taps**2)), np.float32)


def _below_band(sound: Float64) -> Float64:
    """Return sound without what the microphones' splines could not carry."""
    from scipy import signal

    taps = signal.firwin(65, 11_000, fs=GRID_HZ, window=("kaiser", 7.0))
    return np.asarray(signal.oaconvolve(sound, taps, mode="same"), np.float64)
