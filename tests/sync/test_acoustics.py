"""Clocks of cameras without the travel of sound: exact scenes, their limits, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.records import RecordingClock, SoundTravel
from synorama.sync.acoustics import Place, hear_speech, own_speech, refine_camera
from synorama.sync.travel_rows import Rows
from synorama.timebase import ClockMap
from tests.sync import talks
from tests.sync.talks import CAMERA_M, Scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

SECOND = 1_000_000_000


def near_camera(off_m: float, seed: int = 0) -> Place:
    off = np.random.default_rng(seed).standard_normal(3)
    return Place(CAMERA_M + off_m * off / np.linalg.norm(off), off_m**2 * np.eye(3))


def worst_ms(scene: Scene, clock: RecordingClock | None, first_s: float = 0.0) -> float:
    assert clock is not None
    at = np.linspace(first_s * 1e9, scene.seconds * 1e9, 41).astype(np.int64)
    return float(np.abs(clock.apply(at) - talks.true_clock(scene, at)).max()) / 1e6


def check_holds(scene: Scene, found: SoundTravel) -> float:
    """Return the interval, which must hold the truth."""
    assert found.accepted, found.reason
    assert found.clock is not None
    interval = found.clock.interval95_ms
    assert interval is not None
    assert worst_ms(scene, found.clock) <= interval
    return interval


# --- what it must find -----------------------------------------------------------------------


@pytest.mark.parametrize(("off_m", "bar_ms"), [(0.0001, 0.1), (0.05, 0.2), (0.1, 0.4)])
def test_a_known_position_gives_the_clock(off_m: float, bar_ms: float) -> None:
    scene = Scene(seed=1)
    found = refine_camera(talks.heard(scene), near_camera(off_m))
    assert worst_ms(scene, found.clock) < bar_ms
    assert check_holds(scene, found) < 1.0
    assert found.position_given
    assert "positions known" in (found.clock.basis if found.clock else "")


def test_an_unknown_position_is_found_and_no_sub_millisecond_claim_is_made() -> None:
    scene = Scene(seed=30)
    found = refine_camera(talks.heard(scene), None)
    assert np.linalg.norm(found.position_m[:2] - CAMERA_M[:2]) < 0.1
    assert check_holds(scene, found) >= 1.0
    assert worst_ms(scene, found.clock) < 0.5
    assert not found.position_given


def test_echoes_that_are_louder_than_direct_sound_do_not_win() -> None:
    scene = Scene(seed=3, echo=1.6)
    for place in (near_camera(0.05), None):
        found = refine_camera(talks.heard(scene), place)
        check_holds(scene, found)
        assert worst_ms(scene, found.clock) < 0.5


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6), st.floats(-90e-6, 90e-6))
def test_any_session_is_solved(seed: int, drift: float) -> None:
    scene = Scene(seed=seed, drift=drift, seconds=40.0)
    found = refine_camera(talks.heard(scene), near_camera(0.05, seed))
    check_holds(scene, found)
    assert worst_ms(scene, found.clock) < 0.4
    assert not len(found.losses_ns)


def test_a_clock_that_wanders_is_followed() -> None:
    scene = Scene(seed=4, seconds=240.0, camera_error=lambda s: 1e-3 * np.sin(np.pi * s / 240.0))
    found = refine_camera(talks.heard(scene), near_camera(0.05))
    assert worst_ms(scene, found.clock) < 0.4
    assert found.clock is not None
    assert len(found.clock.maps[0].knots) > 2


def test_a_camera_that_lost_samples_is_refined_on_both_sides() -> None:
    scene = Scene(seed=5, seconds=90.0, camera_error=lambda s: np.where(s > 45.0, -0.08, 0.0))
    speech = own_speech(talks.talkers(scene))
    sound = talks.camera_sound(scene, scene.talks())
    middle = 45 * SECOND
    ends = np.array([[0, middle - SECOND], [middle + SECOND, 90 * SECOND]])
    maps = tuple(
        ClockMap(
            "session",
            "camera",
            np.column_stack([span, talks.true_clock(scene, span) - 9_000_000 * (k + 1)]),
        )
        for k, span in enumerate(ends)
    )
    clock = RecordingClock("camera", maps, "sound", 25.0)
    found = refine_camera(hear_speech(speech, sound, clock), near_camera(0.05))
    assert found.accepted, found.reason
    assert found.clock is not None
    at = np.concatenate([np.linspace(a, b, 9).astype(np.int64) for a, b in ends.tolist()])
    off = found.clock.apply(at) - talks.true_clock(scene, at)
    assert np.abs(off).max() < 400_000


@pytest.mark.parametrize(("lost_ms", "at_s"), [(10, 24.0), (30, 45.0), (70, 72.0)])
def test_a_loss_that_nothing_else_noticed_is_found(lost_ms: int, at_s: float) -> None:
    lost_s = 1e-3 * lost_ms
    scene = Scene(seed=7, seconds=90.0, camera_error=lambda s: np.where(s > at_s, -lost_s, 0.0))
    speech = own_speech(talks.talkers(scene))
    sound = talks.camera_sound(scene, scene.talks())
    unaware = talks.rough_clock(Scene(seed=7, seconds=90.0))
    found = refine_camera(hear_speech(speech, sound, unaware), near_camera(0.05))
    assert found.accepted, found.reason
    assert found.clock is not None
    assert len(found.clock.maps) == 2
    after_ns, before_ns, by_ns = found.losses_ns[0].tolist()
    # Whatever began before is heard to its end.
    assert after_ns - SECOND <= at_s * SECOND <= before_ns + SECOND / 4
    assert by_ns == pytest.approx(lost_ms * 1e6, abs=1e5)
    at = np.linspace(0, 90 * SECOND, 61).astype(np.int64)
    at = at[(at < after_ns - SECOND) | (at > before_ns + SECOND)]
    off = found.clock.apply(at) - talks.true_clock(scene, at)
    assert np.abs(off).max() < 400_000


def test_two_losses_are_found() -> None:
    scene = Scene(
        seed=8,
        seconds=120.0,
        camera_error=lambda s: np.where(s > 35.0, -0.02, 0.0) + np.where(s > 80.0, -0.03, 0.0),
    )
    sound = talks.camera_sound(scene, scene.talks())
    heard = hear_speech(
        own_speech(talks.talkers(scene)), sound, talks.rough_clock(Scene(seed=8, seconds=120.0))
    )
    found = refine_camera(heard, near_camera(0.05))
    assert found.losses_ns[:, 2] == pytest.approx([20e6, 30e6], abs=1e5)
    assert found.clock is not None
    assert len(found.clock.maps) == 3


def test_the_clock_of_the_glasses_may_be_off_by_what_is_told() -> None:
    scene = Scene(seed=6)
    leader, helper = talks.talkers(scene)
    knots = helper.clock[0].knots + np.array([0, 300_000])
    helper = replace(helper, clock=(replace(helper.clock[0], knots=knots),), clock_sigma_s=3e-4)
    sound = talks.camera_sound(scene, scene.talks())
    speech = own_speech([leader, helper])
    found = refine_camera(hear_speech(speech, sound, talks.rough_clock(scene)), near_camera(0.05))
    check_holds(scene, found)


def test_a_wearer_whom_nobody_followed_only_tells_who_speaks() -> None:
    scene = Scene(seed=7)
    leader, helper = talks.talkers(scene)
    speech = own_speech([leader, talks.without_trajectory(helper)])
    assert set(speech.talker.tolist()) == {0}
    sound = talks.camera_sound(scene, scene.talks())
    found = refine_camera(hear_speech(speech, sound, talks.rough_clock(scene)), near_camera(0.05))
    check_holds(scene, found)


# --- what it must refuse ---------------------------------------------------------------------


@pytest.mark.parametrize("place", [near_camera(0.05), None])
def test_sound_of_another_session_is_refused(place: Place | None) -> None:
    scene, other = Scene(seed=8), Scene(seed=9)
    sound = talks.camera_sound(other, other.talks())
    speech = own_speech(talks.talkers(scene))
    found = refine_camera(hear_speech(speech, sound, talks.rough_clock(scene)), place)
    assert not found.accepted
    assert found.clock is None
    assert found.score < 0.2 < found.score_needed


@pytest.mark.parametrize("off_m", [1.0, 2.0])
def test_a_position_that_speech_contradicts_is_refused_in_words(off_m: float) -> None:
    said = Place(CAMERA_M + np.array([off_m, 0.0, 0.0]), 0.05**2 * np.eye(3))
    found = refine_camera(talks.heard(Scene(seed=1)), said)
    assert not found.accepted
    assert "check the position" in found.reason


def test_wearers_who_stay_where_they_are_cannot_tell_where_the_camera_is() -> None:
    scene = Scene(seed=10, still=True)
    found = refine_camera(talks.heard(scene), None)
    if found.accepted:  # then it must know how little it knows
        assert check_holds(scene, found) > 1.0
    assert refine_camera(talks.heard(scene), near_camera(0.05)).accepted


def test_too_little_speech_is_refused_in_words() -> None:
    scene = Scene(seed=11, seconds=8.0)
    found = refine_camera(talks.heard(scene), near_camera(0.05))
    assert not found.accepted
    assert "needed" in found.reason


def test_silence_is_refused() -> None:
    scene = Scene(seed=12)
    sound = talks.camera_sound(scene, scene.talks())
    sound = replace(sound, samples=np.zeros_like(sound.samples))
    speech = own_speech(talks.talkers(scene))
    found = refine_camera(hear_speech(speech, sound, talks.rough_clock(scene)), None)
    assert not found.accepted
    assert "0 windows" in found.reason


# --- who speaks ------------------------------------------------------------------------------


@pytest.mark.parametrize("gains", [(1.0, 1.0), (1.0, 8.0), (0.1, 1.0)])
@pytest.mark.parametrize("speakers", [(0, 1), (0,), (1,)])
def test_own_speech_is_told_whatever_the_gains(
    gains: tuple[float, float], speakers: tuple[int, ...]
) -> None:
    scene = Scene(seed=13, gains=gains, speakers=speakers, seconds=30.0)
    speech = own_speech(talks.talkers(scene))
    told = scene.talks()
    said = [
        next((t.who for t in told if t.at_s - 0.1 <= s <= t.end_s + 0.1), None)
        for s in (speech.first_ns - talks.START_NS) / 1e9 + 0.125
    ]
    assert speech.count > 60
    assert np.mean(speech.talker == np.array(said, float)) > 0.95


def test_nobody_recorded_together_gives_no_windows() -> None:
    leader, helper = talks.talkers(Scene(seed=14, seconds=20.0))
    later = replace(helper.clock[0], knots=helper.clock[0].knots + np.array([0, 60 * SECOND]))
    assert own_speech([leader, replace(helper, clock=(later,))]).count == 0


# --- rows ------------------------------------------------------------------------------------


def test_peaks_are_found_where_they_are_and_none_beyond_the_curves() -> None:
    curves = np.zeros((2, 101), np.float32)
    curves[0, 59:62] = 3.0, 6.0, 3.0
    rows = Rows(
        0, np.zeros(2, np.intp), np.zeros(2, np.intp), np.arange(2.0), np.zeros((2, 3)),
        np.array([0.5, 0.5]), curves, 1000,
    )  # fmt: skip
    lag, height = rows.peaks(np.array([0.508, 9.0]), 0.005)
    assert lag == pytest.approx([0.51, 9.0])
    assert height == pytest.approx([6.0, 0.0])
    assert rows.highest(np.array([0.508, 0.508]), -0.02, 0.0) == pytest.approx([0.0, 0.0])
