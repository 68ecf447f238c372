"""Skew between picture and sound: events with a known skew, and what must be refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.errors import SkewRefusedError
from synorama.media.audio import MonoSound
from synorama.sync.skew import SkewMeasurement, measure_skew, onsets
from tests.sync.flashes import (
    RATE,
    beeps,
    clapping,
    filmed,
    frame_times,
    lit_share,
    moments,
)

Float64 = NDArray[np.float64]
SKEWS_S = (-0.110, 0.0, 0.037)


def measured(
    fps: float, exposure_s: float, skew_s: float, seed: int, at_s: Float64 | None = None
) -> SkewMeasurement:
    rng = np.random.default_rng(seed)
    at_s = moments(12, rng) if at_s is None else at_s
    seconds = float(at_s[-1]) + 1.5
    times = frame_times(fps, seconds)
    pictures = filmed(lit_share(times, at_s, exposure_s), rng)
    return measure_skew(times, pictures, beeps(at_s + skew_s, seconds, rng))


@pytest.mark.parametrize("fps", [24, 29.97, 30, 50, 60])
@pytest.mark.parametrize("skew_s", SKEWS_S)
def test_flashes_that_frames_see_in_part_tell_the_skew_to_a_millisecond(
    fps: float, skew_s: float
) -> None:
    for seed, share in ((1, 0.5), (2, 1.0)):
        found = measured(fps, share / fps, skew_s, seed)
        assert found.method == "flash"
        assert abs(found.skew_ns / 1e6 - skew_s * 1e3) < 1.0
        assert found.half_ns < 7e6


def test_a_short_exposure_leaves_a_wider_interval_that_holds_the_truth() -> None:
    for seed in range(12):
        found = measured(24, 0.001, 0.02, seed)
        assert abs(found.skew_ns - 20e6) <= found.half_ns < 12e6


def test_the_sign_is_positive_where_sound_is_stamped_later() -> None:
    assert measured(30, 0.02, 0.08, 3).skew_ns > 70e6
    assert measured(30, 0.02, -0.08, 3).skew_ns < -70e6


@pytest.mark.parametrize("fps", [24, 25, 30, 60])
def test_a_made_file_counts_from_its_first_bright_frame_and_says_so(fps: int) -> None:
    at_s = np.round(np.arange(1, 9) * 1.5 * fps) / fps
    rng = np.random.default_rng(0)
    times = frame_times(fps, 15)
    stamps = times / 1e9
    lit = np.array([any(a - 1e-6 <= t < a + 0.12 for a in at_s) for t in stamps], float)
    found = measure_skew(times, filmed(lit, rng), beeps(at_s + 0.045, 15, rng))
    assert abs(found.skew_ns - 45e6) < 1e6
    assert "made and not filmed" in found.note
    assert found.half_ns >= 1e9 / fps - 1e6


@pytest.mark.parametrize("fps", [30, 60])
def test_claps_tell_it_to_a_fraction_of_a_frame(fps: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        at_s = moments(10, rng)
        seconds = float(at_s[-1]) + 1.5
        times = frame_times(fps, seconds)
        found = measure_skew(times, clapping(times, at_s, rng), beeps(at_s + 0.03, seconds, rng))
        assert found.method == "clap"
        assert abs(found.skew_ns - 30e6) <= found.half_ns < 1e9 / fps


def test_a_flash_that_contradicts_the_others_is_left_out() -> None:
    rng = np.random.default_rng(5)
    at_s = moments(10, rng)
    seconds = float(at_s[-1]) + 1.5
    times = frame_times(30, seconds)
    late = at_s.copy()
    late[4] += 0.2
    pictures = filmed(lit_share(times, late, 0.02), rng)
    found = measure_skew(times, pictures, beeps(at_s, seconds, rng))
    assert (found.events, found.dropped) == (9, 1)
    assert abs(found.skew_ns) <= found.half_ns < 4e6


# --- refusals --------------------------------------------------------------------------------


def refused(pictures: Float64, sound: MonoSound, fps: float = 30) -> str:
    times = frame_times(fps, len(pictures) / fps)[: len(pictures)]
    with pytest.raises(SkewRefusedError) as caught:
        measure_skew(times, pictures, sound, path="file.mp4")
    assert caught.value.hint
    return caught.value.message


def test_silence_one_event_and_a_dark_picture_are_refused_in_words() -> None:
    rng = np.random.default_rng(0)
    at_s = np.array([2.0, 3.3, 5.1])
    times = frame_times(30, 7)
    light = filmed(lit_share(times, at_s, 0.02), rng)
    dark = filmed(np.zeros(len(times)), rng)
    assert "no sharp sound" in refused(light, beeps(np.zeros(0), 7, rng))
    assert "only one" in refused(light, beeps(at_s[:1], 7, rng))
    assert "nothing in the picture" in refused(dark, beeps(at_s, 7, rng))
    silent = MonoSound("camera", 0, RATE, np.zeros(7 * RATE, np.int16))
    assert "no sharp sound" in refused(light, silent)


def test_events_that_contradict_each_other_are_refused() -> None:
    rng = np.random.default_rng(1)
    at_s = moments(8, rng)
    seconds = float(at_s[-1]) + 1.5
    times = frame_times(30, seconds)
    apart = at_s + np.linspace(-0.3, 0.3, 8)[rng.permutation(8)]
    said = refused(filmed(lit_share(times, apart, 0.02), rng), beeps(at_s, seconds, rng))
    assert "contradict" in said


def test_onsets_are_found_to_half_a_millisecond_in_noise() -> None:
    rng = np.random.default_rng(2)
    at_s = moments(20, rng)
    found = onsets(beeps(at_s, float(at_s[-1]) + 1, rng)) / 1e9
    assert len(found) == 20
    assert np.abs(found - at_s).max() < 0.0005


@pytest.mark.parametrize("seed", range(8))
def test_flashes_that_have_nothing_to_do_with_the_sounds_are_refused(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    at_s = moments(8, rng)
    seconds = float(at_s[-1]) + 1.5
    others = np.sort(rng.uniform(1, seconds - 1, 8))
    times = frame_times(30, seconds)
    assert refused(filmed(lit_share(times, others, 0.015), rng), beeps(at_s, seconds, rng))
