"""The one sound of a session, and how a device's microphone samples it.

Two voices take turns, things clatter, now and then something beeps: wide-band, and never the
same twice. The sound exists once, at 48 kHz on the session clock. A device hears it on its own
clock by spline interpolation of degree five, which is symmetric and so moves nothing in time.
Sound arrives at once everywhere: travel times belong to a simulated room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["SOUND_RATE_HZ", "Hearing", "Sound", "columns"]

SOUND_RATE_HZ = 48_000
MARGIN_S = 6  # sound before and after the session, for devices that start early or stop late
BAND_HZ = 12_000  # a quarter of the rate: up to there the spline is exact to -60 dB
LEVEL_RMS, PEAK = 0.08, 0.7  # of full scale, 1.0
SPLINE_DEGREE = 5
SPLINE_REACH = 6  # samples to both sides that a spline of this degree may touch


@dataclass(frozen=True, slots=True)
class Hearing:
    """How a device hears: gain and its own noise, as share of full scale."""

    gain: float
    noise_rms: float


def columns(heard: Float32) -> Float32:
    """Return samples ``(count, M)``; what all microphones hear alike becomes one column."""
    return heard.reshape(len(heard), -1)


class Sound:
    """The sound of a session.

    Parameters
    ----------
    start_ns
        Session time at which the session starts.
    seconds
        How long it lasts; the sound goes on for `MARGIN_S` on both sides.
    seed
        The same seed makes the same sound.
    """

    def __init__(self, start_ns: int, seconds: float, seed: int) -> None:
        from scipy import ndimage

        self._first_ns = start_ns - MARGIN_S * NS_PER_S
        samples = _make((seconds + 2 * MARGIN_S), seed)
        self._spline = ndimage.spline_filter1d(samples, SPLINE_DEGREE, output=np.float32)

    def heard(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> Float32:
        """Sample the sound; as `synorama.simulate.sound.acoustic_scene.Hears`."""
        from scipy import ndimage

        at = self._positions(clock, rate_hz, first_ns, start, count)
        low = int(at[0]) - SPLINE_REACH
        piece = self._spline[low : int(at[-1]) + SPLINE_REACH + 2]
        if low < 0 or at[-1] + SPLINE_REACH >= len(self._spline):
            raise ValueError("the device listens outside the session")
        heard: Float32 = ndimage.map_coordinates(
            piece, [at - low], order=SPLINE_DEGREE, output=np.float32, prefilter=False
        )
        return heard

    def _positions(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> Float64:
        """Return where the samples lie on the sound's own grid, to far below a nanosecond."""
        step_ns = NS_PER_S / rate_hz
        ends_ns = np.array([start, start + count]) * step_ns
        anchors = np.floor(ends_ns).astype(np.int64)
        session = clock.apply(first_ns + anchors) - self._first_ns + (ends_ns - anchors)
        ends = session * (SOUND_RATE_HZ / NS_PER_S)
        return np.linspace(ends[0], ends[1], count, endpoint=False)


def _make(seconds: float, seed: int) -> Float32:
    """Return ``seconds`` of sound at `SOUND_RATE_HZ`, below `BAND_HZ`, near `LEVEL_RMS`."""
    from scipy import signal

    sound = np.zeros(round(seconds * SOUND_RATE_HZ), np.float32)
    _add_voices(sound, randomness(seed, "sound", "voices"))
    _add_clatter(sound, randomness(seed, "sound", "clatter"))
    _add_beeps(sound, randomness(seed, "sound", "beeps"))
    hiss = randomness(seed, "sound", "hiss").standard_normal(len(sound), np.float32)
    sound += 0.003 * hiss
    sound *= LEVEL_RMS / np.sqrt(np.mean(np.square(sound)))
    np.tanh(sound / PEAK, out=sound)  # before the filter, so that nothing lands above the band
    low_pass = signal.firwin(129, BAND_HZ - 800, fs=SOUND_RATE_HZ, window=("kaiser", 8.0))
    band: Float32 = signal.oaconvolve(sound * PEAK, low_pass.astype(np.float32), mode="same")
    return band


def _add_voices(sound: Float32, rng: np.random.Generator) -> None:
    """Let two voices take turns of a few syllables, with pauses between."""
    at, pitch_hz = 0.0, (115.0, 205.0)
    speaker = 0
    while at * SOUND_RATE_HZ < len(sound):
        for _ in range(rng.integers(3, 12)):
            syllable = _syllable(rng, pitch_hz[speaker])
            _add(sound, at, syllable)
            at += len(syllable) / SOUND_RATE_HZ * rng.uniform(0.9, 1.2)
        at += rng.uniform(0.15, 0.9)
        speaker = 1 - speaker


def _syllable(rng: np.random.Generator, pitch_hz: float) -> Float64:
    """Return a buzz and a hiss through three formants, rising and falling."""
    from scipy import signal

    count = int(rng.uniform(0.09, 0.28) * SOUND_RATE_HZ)
    pitch = pitch_hz * rng.uniform(0.8, 1.3) * np.linspace(1.0, rng.uniform(0.8, 1.2), count)
    buzz = np.diff(np.cumsum(pitch / SOUND_RATE_HZ) % 1.0, prepend=0.0)
    source = buzz + rng.uniform(0.02, 0.3) * rng.standard_normal(count)
    formants = rng.uniform((300, 900, 2200), (900, 2200, 6500))
    voiced = sum(signal.lfilter(*_resonance(f, 0.1 * f + 40), source) for f in formants)
    envelope = np.sin(np.pi * (np.arange(count) + 0.5) / count) ** rng.uniform(0.5, 2.0)
    syllable: Float64 = voiced * envelope * rng.uniform(0.3, 1.0)
    return syllable


def _add_clatter(sound: Float32, rng: np.random.Generator) -> None:
    """Let hard things touch hard things, about one and a half times a second."""
    from scipy import signal

    at = 0.0
    while at * SOUND_RATE_HZ < len(sound):
        count = int(rng.uniform(0.03, 0.15) * SOUND_RATE_HZ)
        decay = np.exp(-np.arange(count) / (0.2 * count))
        ring = signal.lfilter(
            *_resonance(rng.uniform(1500, 9000), 900.0), rng.standard_normal(count)
        )
        _add(sound, at, rng.uniform(0.3, 2.0) * ring * decay)
        at += rng.exponential(0.65)


def _add_beeps(sound: Float32, rng: np.random.Generator) -> None:
    """Let some appliance beep every few seconds, each time at another pitch."""
    at = rng.uniform(0.5, 3.0)
    while at * SOUND_RATE_HZ < len(sound):
        t = np.arange(int(rng.uniform(0.1, 0.4) * SOUND_RATE_HZ)) / SOUND_RATE_HZ
        _add(sound, at, 0.15 * np.sin(2 * np.pi * rng.uniform(700, 4000) * t) * np.hanning(len(t)))
        at += rng.exponential(6.0) + 1.0


def _resonance(centre_hz: float, width_hz: float) -> tuple[list[float], list[float]]:
    """Return a second-order resonator of unit peak: numerator and denominator."""
    radius = np.exp(-np.pi * width_hz / SOUND_RATE_HZ)
    angle = 2 * np.pi * centre_hz / SOUND_RATE_HZ
    return [1 - radius], [1.0, -2 * radius * np.cos(angle), radius**2]


def _add(sound: Float32, at_s: float, event: Float64) -> None:
    first = int(at_s * SOUND_RATE_HZ)
    room = sound[first : first + len(event)]
    room += event[: len(room)]
