"""Steady noise is turned down where there is much, and nothing else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.speech.quieter import BLOCK, quieter
from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

SECONDS = 12


def voice(seconds: float = SECONDS) -> Float32:
    """Return syllables that glide as a voice does for half a second, then a pause, and so on."""
    t = np.arange(round(seconds * SPEECH_HZ)) / SPEECH_HZ
    at = t % 1
    turns = 120 * at + 120 * np.square(at)  # from 120 to 240 Hz
    buzz = np.sum([np.sin(2 * np.pi * k * turns) / k for k in range(1, 16)], axis=0)
    return np.asarray(0.1 * buzz * np.square(np.sin(4 * np.pi * t)) * (at < 0.5), np.float32)


def noise(snr_db: float, seconds: float = SECONDS, seed: int = 3) -> Float32:
    given = np.random.default_rng(seed).standard_normal(round(seconds * SPEECH_HZ))
    return np.asarray(given * voice(4).std() * 10 ** (-snr_db / 20), np.float32)


def pauses(samples: Float32) -> Float32:
    """Return the middle of each half second in which nobody speaks."""
    t = np.arange(len(samples)) / SPEECH_HZ % 1
    return samples[(t > 0.6) & (t < 0.9)]


def change_db(before: Float32, after: Float32) -> float:
    return float(20 * np.log10(after.std() / before.std()))


@pytest.mark.parametrize(
    "sound", [voice(), voice() + noise(40), np.zeros(SPEECH_HZ, np.float32), voice(0.2)]
)
def test_sound_without_much_noise_stays_as_it_is(sound: Float32) -> None:
    assert np.array_equal(quieter(sound), sound)


@pytest.mark.parametrize("snr_db", [0, 5, 10])
def test_noise_is_turned_down_and_the_voice_is_not(snr_db: float) -> None:
    sound = voice() + noise(snr_db)
    quiet = quieter(sound)
    assert -9.1 < change_db(pauses(sound), pauses(quiet)) < -5
    spoken = voice() != 0
    kept = np.vdot(quiet[spoken], voice()[spoken]) / np.vdot(voice()[spoken], voice()[spoken])
    assert 0.9 < kept < 1.02
    before, after = (np.std((s - voice())[spoken]) for s in (sound, quiet))
    assert after < before  # what is left of noise and what is lacking of the voice


def test_only_the_part_of_a_recording_that_is_noisy_is_touched() -> None:
    part = BLOCK // SPEECH_HZ
    sound = np.concatenate([voice(part), voice(part) + noise(5, part), voice(part)])
    quiet = quieter(sound)
    assert np.array_equal(quiet[:BLOCK], sound[:BLOCK])
    assert np.array_equal(quiet[2 * BLOCK :], sound[2 * BLOCK :])
    assert change_db(pauses(sound[BLOCK : 2 * BLOCK]), pauses(quiet[BLOCK : 2 * BLOCK])) < -5


def test_noise_is_found_beside_what_a_gate_turned_down() -> None:
    sound = voice() + noise(5)
    gated = sound.copy()
    gated[2 * SPEECH_HZ : 6 * SPEECH_HZ] *= 0.01
    change = change_db(pauses(gated[6 * SPEECH_HZ :]), pauses(quieter(gated)[6 * SPEECH_HZ :]))
    assert change == pytest.approx(change_db(pauses(sound), pauses(quieter(sound))), abs=1)


@given(st.integers(0, 3 * BLOCK), st.floats(-10, 30), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_it_never_makes_sound_longer_or_louder(count: int, snr_db: float, seed: int) -> None:
    seconds = count / SPEECH_HZ
    sound = voice(seconds) + noise(snr_db, seconds, seed)
    quiet = quieter(sound)
    assert quiet.shape == sound.shape
    assert quiet.dtype == np.float32
    assert np.isfinite(quiet).all()
    assert np.square(quiet).sum() <= 1.001 * np.square(sound).sum()
