"""Leaps told by loudness: those that are there, and none where people walk about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.media.audio import MonoSound
from synorama.sync.correlate import align
from synorama.sync.features import Features, band_features
from synorama.sync.jumps import Segment, _between_supports, _Support
from synorama.sync.leaps import stretches
from synorama.sync.lines import Line
from tests.sync.sounds import RATE, affine, heard, room, speech

SECONDS = 100.0
WALKS_S = 0.005  # three metres away and back


@pytest.fixture(scope="module")
def pair() -> tuple[MonoSound, MonoSound]:
    """Two people who take turns, and walk: one microphone beside the first, one across the room."""
    voices = [speech(SECONDS + 4, seed) for seed in (71, 72)]
    turns = (np.arange(len(voices[0])) // (5 * RATE)) % 2
    first, second = (v * (turns == k) for k, v in enumerate(voices))
    near = heard(room(first + 0.3 * _walked(second, 0.3), 1), affine(0), SECONDS, name="near")
    far = room(_walked(first, 0.0), 2) + room(_walked(second, 0.6), 3)
    return near, heard(far, affine(0.5, 20), SECONDS - 1, name="far", snr_db=10, seed=2)


def _walked(sound: NDArray[np.float64], phase: float) -> NDArray[np.float64]:
    """Return sound that arrives later and earlier as its source walks."""
    t = np.arange(len(sound)) / RATE
    late = WALKS_S * (1 + np.sin(2 * np.pi * (t / 21 + phase)))
    return np.interp(t - late, t, sound)


def _lost(sound: MonoSound, at_s: float, by_s: float) -> MonoSound:
    first = round(at_s * RATE)
    rest = sound.samples[first + round(by_s * RATE) :]
    return replace(sound, samples=np.concatenate([sound.samples[:first], rest]))


def test_people_who_walk_are_no_leap(pair: tuple[MonoSound, MonoSound]) -> None:
    near, far = pair
    evidence = align(near, far)
    assert evidence.accepted
    assert evidence.jumps == ()


@pytest.mark.parametrize(("gives_way_s", "leaps"), [(33.0, True), (44.4, False), (12.0, False)])
def test_a_small_leap_lies_between_the_windows_of_its_two_lines(
    gives_way_s: float, leaps: bool
) -> None:
    """A talker walked away from 32 to 36 s and back from 47 s: the new line fitted to the end."""
    lines = [
        _Support(Line(2.775), 2.3, 31.2, 19.6, 17, 23, 1),
        _Support(Line(2.767), 36.4, 47.3, 41.9, 7, 9, 1),
    ]
    parts = [
        Segment(lines[0].line, (0.0, gives_way_s), 0.0012),
        Segment(lines[1].line, (gives_way_s, 57.2), 0.0012),
    ]
    assert _between_supports(parts, lines) == leaps


@pytest.mark.parametrize("by_s", [0.08, 0.3, 1.3])
def test_a_loss_while_people_walk_is_found(pair: tuple[MonoSound, MonoSound], by_s: float) -> None:
    near, far = pair
    ((at_ns, leap_ns),) = align(near, _lost(far, 51.0, by_s)).jumps
    assert abs(at_ns / 1e9 - 51.0) < 1.0
    assert abs(leap_ns / 1e9 - by_s) < 2 * WALKS_S


@settings(max_examples=20)
@given(st.integers(-150, 150), st.integers(4, 150), st.integers(20, 100), st.integers(0, 99))
def test_a_leap_of_any_size_within_three_seconds(off: int, by: int, at: int, seed: int) -> None:
    """Frames of which every second one is noise: the lags are exact, and the place to 2 s."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((12, 9000)).astype(np.float16)
    reference = Features(values, 62.5)
    by = by if off + by <= 180 else -by
    first = 400 + off + np.arange(62 * at)
    frames = np.concatenate([first, first[-1] + by + 1 + np.arange(62 * (120 - at))])
    noise = rng.standard_normal((12, len(frames))).astype(np.float16)
    other = Features(np.where(np.arange(len(frames)) % 2, noise, values[:, frames]), 62.5)
    found = stretches(reference, other, Line(400 / 62.5), (0.0, len(frames) / 62.5))
    assert len(found) == 2
    assert abs(found[0].last_s - 62 * at / 62.5) < 2.0
    lags = [s.lag_s * 62.5 for s in found]
    np.testing.assert_allclose(lags, [400 + off, 400 + off + by], atol=1.1)


def test_silence_has_no_leaps() -> None:
    quiet = MonoSound("quiet", 0, RATE, np.zeros(30 * RATE, np.int16))
    features = band_features(quiet)
    assert len(stretches(features, features, Line(0.0), (0.0, 30.0))) == 1
