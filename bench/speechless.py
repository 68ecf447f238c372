"""Sounds of rooms in which nobody speaks, made up: noise, hum, music, clicks and kitchens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from synorama.speech.sound import SPEECH_HZ

__all__ = ["KINDS", "speechless"]

Sound: TypeAlias = "NDArray[np.float64]"
Rng: TypeAlias = np.random.Generator

SECONDS = (10.0, 30.0)
FULL_SCALE = 32_767


def speechless(kind: str, seed: int) -> NDArray[np.int16]:
    """Return 10 to 30 s of a kind of sound at 16 kHz, at any level."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    sound = KINDS[kind](rng, round(SPEECH_HZ * rng.uniform(*SECONDS)))
    peak = float(np.abs(sound).max()) or 1.0
    return np.asarray(sound / peak * rng.uniform(0.05, 0.9) * FULL_SCALE, np.int16)


# --- what they are made of --------------------------------------------------------------------


def _times(count: int) -> Sound:
    return np.arange(count) / SPEECH_HZ


def _noise(rng: Rng, count: int, slope: float = 0.0) -> Sound:
    """Return noise of unit power whose amplitude falls with a power of the frequency."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    sound = np.fft.irfft(spectrum / np.maximum(np.arange(len(spectrum)), 1) ** slope, count)
    return np.asarray(sound / sound.std(), np.float64)


def _band(sound: Sound, low_hz: float, high_hz: float) -> Sound:
    band = signal.butter(4, [low_hz, high_hz], "bandpass", fs=SPEECH_HZ, output="sos")
    return np.asarray(signal.sosfilt(band, sound), np.float64)


def _ring(rng: Rng, hz: float, decay_s: float) -> Sound:
    """Return what a struck pot does: partials that are no multiples of each other."""
    t = _times(6000)
    partials = [hz * k for k in (1, 2.76, 5.4, 8.9) if hz * k < SPEECH_HZ / 2]
    tones = [rng.uniform(0.2, 1) * np.sin(2 * np.pi * f * t + rng.uniform(0, 6)) for f in partials]
    return np.asarray(np.exp(-t / decay_s) * np.sum(tones, axis=0), np.float64)


def _knock(rng: Rng, low_hz: float, high_hz: float, decay_s: float) -> Sound:
    return _band(np.exp(-_times(4000) / decay_s) * rng.standard_normal(4000), low_hz, high_hz)


def _put(sound: Sound, at: int, what: Sound, gain: float = 1.0) -> None:
    part = what[: len(sound) - at]
    sound[at : at + len(part)] += gain * part


def _moments(rng: Rng, count: int, a_second: float) -> Iterator[int]:
    many = max(round(count / SPEECH_HZ * a_second), 1)
    yield from (int(at) for at in rng.integers(0, count, many))


def _beats(rng: Rng, count: int, shortest_s: float, longest_s: float) -> Iterator[int]:
    at = 0
    while at < count:
        yield at
        at += round(SPEECH_HZ * rng.uniform(shortest_s, longest_s))


# --- kinds ------------------------------------------------------------------------------------


def _silence(_: Rng, count: int) -> Sound:
    return np.zeros(count)


def _hum(rng: Rng, count: int) -> Sound:
    t, hz = _times(count), rng.choice([50, 60])
    tones = [np.sin(2 * np.pi * hz * k * t + rng.uniform(0, 6)) / k for k in range(1, 9)]
    return np.asarray(np.sum(tones, axis=0) + 0.02 * _noise(rng, count), np.float64)


def _fan(rng: Rng, count: int) -> Sound:
    air = np.convolve(_noise(rng, count), np.ones(20) / 4, "same")
    return np.asarray(air * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(5, 20) * _times(count))))


def _clicks(rng: Rng, count: int) -> Sound:
    return np.where(rng.random(count) < 3 / SPEECH_HZ, 20.0, 0.0) + 0.02 * _noise(rng, count)


def _melody(rng: Rng, count: int) -> Sound:
    sound, scale = np.zeros(count), np.array([0, 2, 4, 5, 7, 9, 11, 12, 14, 16])
    length = round(SPEECH_HZ * rng.uniform(0.2, 0.45))
    t = _times(length)
    for at in range(0, count, length):
        hz = 220 * 2 ** (rng.choice(scale) / 12)
        tones = [np.sin(2 * np.pi * hz * k * t) / k for k in range(1, 6)]
        _put(sound, at, np.exp(-4 * t) * np.sum(tones, axis=0))
    return sound


def _band_playing(rng: Rng, count: int) -> Sound:
    sound, beat = _melody(rng, count), round(SPEECH_HZ * 60 / rng.uniform(80, 140))
    drum = np.exp(-_times(4000) / 0.06) * np.sin(2 * np.pi * 60 * _times(4000))
    for k, at in enumerate(range(0, count, beat)):
        _put(sound, at, drum if k % 2 else _knock(rng, 2000, 7000, 0.03), 3)
        if k % 4 == 0:
            root = rng.choice([98, 110, 130.8, 146.8, 164.8])
            chord = [
                signal.sawtooth(2 * np.pi * root * q * _times(4 * beat)) for q in (1, 1.26, 1.5)
            ]
            _put(sound, at, np.sum(chord, axis=0), 0.4)
    return sound


def _chord(root_hz: float, t: Sound) -> Sound:
    tones = [signal.sawtooth(2 * np.pi * root_hz * ratio * t) for ratio in (1, 1.26, 1.5)]
    return np.asarray(np.sum(tones, axis=0), np.float64)


def _kitchen(rng: Rng, count: int) -> Sound:
    sound = 0.3 * _fan(rng, count)
    for at in _moments(rng, count, 2):
        ring = _ring(rng, rng.uniform(500, 3500), rng.uniform(0.02, 0.15))
        _put(sound, at, ring, rng.uniform(1, 5))
    return sound


def _chopping(rng: Rng, count: int) -> Sound:
    sound = 0.05 * _noise(rng, count, 0.5)
    for at in _beats(rng, count, 0.15, 0.45):
        _put(sound, at, _knock(rng, 150, rng.uniform(1500, 5000), 0.02), rng.uniform(3, 8))
    return sound


def _steps(rng: Rng, count: int) -> Sound:
    sound = 0.05 * _noise(rng, count, 1)
    for at in _beats(rng, count, 0.45, 0.65):
        _put(sound, at, _knock(rng, 60, 900, 0.03), rng.uniform(2, 5))
    return sound


def _tap(rng: Rng, count: int) -> Sound:
    marks = np.arange(0, count + 4000, 4000)
    swell = np.interp(np.arange(count), marks, rng.standard_normal(len(marks)))
    return _band(_noise(rng, count), 800, 7000) * (1 + 0.3 * swell)


def _sizzle(rng: Rng, count: int) -> Sound:
    spit = np.where(rng.random(count) < 60 / SPEECH_HZ, rng.uniform(2, 12, count), 0)
    return 0.5 * _band(_noise(rng, count), 2000, 7500) + spit


def _beeps(rng: Rng, count: int) -> Sound:
    t = _times(count)
    on = np.mod(t, rng.uniform(0.5, 1.2)) < 0.25
    return on * np.sin(2 * np.pi * rng.uniform(900, 3200) * t) + 0.03 * _noise(rng, count, 0.5)


def _mixer(rng: Rng, count: int) -> Sound:
    t = _times(count)
    hz = rng.uniform(90, 240) * (1 + 0.1 * np.clip(np.sin(0.4 * np.pi * t), -0.5, 0.5))
    motor = signal.sawtooth(2 * np.pi * np.cumsum(hz) / SPEECH_HZ)
    return np.asarray(motor * (1 + 0.2 * np.sin(24 * np.pi * t)) + 0.4 * _noise(rng, count))


def _noise_in_syllables(rng: Rng, count: int) -> Sound:
    """Return noise with the spectrum of speech that comes and goes as its syllables do."""
    marks = np.arange(0, count + 2000, 2000)
    swell = np.interp(np.arange(count), marks, rng.gamma(0.7, 1, len(marks)))
    return _band(_noise(rng, count, 0.5), 150, 4000) * swell


def _drawers(rng: Rng, count: int) -> Sound:
    sound = 0.03 * _noise(rng, count, 0.5)
    for at in _moments(rng, count, 0.4):
        _put(sound, at, _band(rng.standard_normal(12_000) * np.hanning(12_000), 300, 3000), 3)
        if at + 11_000 < count:
            _put(sound, at + 11_000, _ring(rng, rng.uniform(120, 400), 0.05), 8)
    return sound


def _bubbles(rng: Rng, count: int) -> Sound:
    sound = 0.05 * _noise(rng, count)
    for at in _moments(rng, count, 20):
        length = int(rng.integers(400, 2500))
        hz = np.linspace(rng.uniform(300, 900), rng.uniform(900, 2500), length)
        tone = np.sin(2 * np.pi * np.cumsum(hz) / SPEECH_HZ)
        _put(sound, at, np.hanning(length) * tone, rng.uniform(0.3, 2))
    return sound


def _scraping(rng: Rng, count: int) -> Sound:
    sound = 0.05 * _noise(rng, count, 0.5)
    for at in _moments(rng, count, 0.5):
        t = _times(int(rng.integers(4000, 18_000)))
        wobble = 3 * np.sin(2 * np.pi * rng.uniform(20, 60) * t)
        squeal = np.sin(2 * np.pi * rng.uniform(1500, 4500) * t + wobble)
        _put(sound, at, np.hanning(len(t)) * (squeal + 0.5 * rng.standard_normal(len(t))), 2)
    return sound


def _kettle(rng: Rng, count: int) -> Sound:
    hz = rng.uniform(1500, 2800) + 200 * np.sin(0.6 * np.pi * _times(count))
    return np.sin(2 * np.pi * np.cumsum(hz) / SPEECH_HZ) + 0.3 * _noise(rng, count)


KINDS: dict[str, Callable[[Rng, int], Sound]] = {
    "silence": _silence,
    "white noise": _noise,
    "pink noise": lambda rng, count: _noise(rng, count, 0.5),
    "brown noise": lambda rng, count: _noise(rng, count, 1.0),
    "hum": _hum,
    "fan": _fan,
    "clicks": _clicks,
    "melody": _melody,
    "a band": _band_playing,
    "pots and a fan": _kitchen,
    "chopping": _chopping,
    "steps": _steps,
    "tap": _tap,
    "frying": _sizzle,
    "alarm": _beeps,
    "mixer": _mixer,
    "noise in syllables": _noise_in_syllables,
    "drawers": _drawers,
    "bubbles": _bubbles,
    "scraping": _scraping,
    "kettle": _kettle,
}
