"""Every device hears the one sound exactly on its own clock."""

from __future__ import annotations

import numpy as np
import pytest

from synorama.simulate.clocks import steady_clock
from synorama.simulate.sound.plain import BAND_HZ, SOUND_RATE_HZ, Sound
from synorama.timebase import NS_PER_S, ClockMap

START_NS = 5_000_000_000_000
RATE = SOUND_RATE_HZ


@pytest.fixture(scope="module")
def sound() -> Sound:
    return Sound(START_NS, 8.0, seed=4)


def session_clock(shift_ns: int = 0, drift_ppm: float = 0.0) -> ClockMap:
    return steady_clock(
        "device",
        device_ns=77,
        session_ns=START_NS + shift_ns,
        length_ns=8 * NS_PER_S,
        drift_ppm=drift_ppm,
    )


@pytest.mark.parametrize("shift_ns", [0, 1_234, 10_417, 999_999])
def test_a_late_start_is_a_shift_of_the_spectrum(sound: Sound, shift_ns: int) -> None:
    count = 6 * RATE
    here = sound.heard(session_clock(), RATE, 77, 0, count).astype(float)
    late = sound.heard(session_clock(shift_ns), RATE, 77, 0, count).astype(float)
    window = np.hanning(count)
    a, b = np.fft.rfft(here * window), np.fft.rfft(late * window)
    f = np.fft.rfftfreq(count, 1 / RATE)
    phase = np.angle(np.sum((b * a.conj() * np.exp(-2j * np.pi * f * shift_ns * 1e-9)) * f))
    mean_hz = np.sum(np.abs(a) ** 2 * f**2) / np.sum(np.abs(a) ** 2 * f)
    assert abs(phase / (2 * np.pi * mean_hz)) < 20e-9  # seconds


@pytest.mark.parametrize("drift_ppm", [-100.0, 37.0, 100.0])
def test_drift_stretches_it(sound: Sound, drift_ppm: float) -> None:
    """Sample n of a drifting device is what the true clock hears at its own time."""
    drifting = sound.heard(session_clock(0, drift_ppm), RATE, 77, 0, 6 * RATE)
    at = 5 * RATE
    late_ns = at / RATE * drift_ppm * 1e-6 * NS_PER_S
    shifted = sound.heard(session_clock(round(late_ns)), RATE, 77, at, 48)
    unshifted = sound.heard(session_clock(), RATE, 77, at, 48)
    error = np.abs(drifting[at : at + 48] - shifted).max()
    assert error < 0.01 * np.abs(unshifted - shifted).max()


def test_blocks_join_without_a_seam(sound: Sound) -> None:
    clock = session_clock(4321, 63.0)
    whole = sound.heard(clock, RATE, 77, 0, RATE)
    parts = [sound.heard(clock, RATE, 77, k, 1000) for k in range(0, RATE, 1000)]
    assert np.abs(whole - np.concatenate(parts)).max() < 1e-4


def test_it_is_wide_band_and_ends_where_the_spline_is_exact(sound: Sound) -> None:
    heard = sound.heard(session_clock(), RATE, 77, 0, 8 * RATE).astype(float)
    power = np.abs(np.fft.rfft(heard)) ** 2
    f = np.fft.rfftfreq(len(heard), 1 / RATE)
    for low in range(200, 10_000, 1400):
        assert power[(f >= low) & (f < low + 1400)].sum() > 1e-5 * power.sum()
    assert power[f > BAND_HZ].sum() < 1e-5 * power.sum()


def test_it_never_repeats(sound: Sound) -> None:
    heard = sound.heard(session_clock(), RATE, 77, 0, 8 * RATE)[::4].astype(float)
    spectrum = np.fft.rfft(heard, 2 * len(heard))
    whitened = spectrum / np.maximum(np.abs(spectrum), 1e-9)
    correlation = np.fft.irfft(whitened * whitened.conj())
    assert np.abs(correlation[RATE // 40 : len(heard)]).max() < 0.1 * correlation[0]


def test_seeds_decide(sound: Sound) -> None:
    clock = session_clock()
    again, other = Sound(START_NS, 8.0, seed=4), Sound(START_NS, 8.0, seed=5)
    here = sound.heard(clock, RATE, 77, 0, 9600)
    assert np.array_equal(here, again.heard(clock, RATE, 77, 0, 9600))
    assert not np.allclose(here, other.heard(clock, RATE, 77, 0, 9600), atol=1e-3)


def test_nobody_listens_outside_the_session(sound: Sound) -> None:
    with pytest.raises(ValueError, match="outside the session"):
        sound.heard(session_clock(20 * NS_PER_S), RATE, 77, 0, 100)
