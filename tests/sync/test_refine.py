"""A session's cameras without the travel of sound: who can be used, and what is left as it was."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from synorama.errors import NoSoundError
from synorama.media.audio import MonoSound
from synorama.records import (
    AudioTrack,
    CameraPose,
    Column,
    GeometryResult,
    Recording,
    RecordingClock,
    RegistrationResult,
    Samples,
    SampleTrack,
    SyncResult,
    leaps_ns,
)
from synorama.session.travel_io import read_refined, write_refined
from synorama.sync import refine
from synorama.sync.acoustics import Place
from synorama.sync.refine import Refined, refine_clocks
from synorama.sync.solve import unknown_positions_words
from synorama.timebase import ClockMap
from synorama.transform import RigidTransform
from tests.sync import talks
from tests.sync.talks import CAMERA_M, Scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCENE = Scene(seed=21)
NAMES = ("leader", "helper")
MODEL = "Aria Gen 1"
DEVICE_NS = (talks.START_NS, 7 * 10**11)
OTHER_FRAME = RigidTransform.from_quat_wxyz(
    "leader", "helper", np.array([np.cos(0.3), 0.0, 0.0, np.sin(0.3)]), np.array([1.0, -2.0, 0.1])
)


def sound_track() -> AudioTrack:
    knots = np.array([[0, 0]], np.int64)
    return AudioTrack("audio", "pcm_s16le", 16_000.0, 1, 16_000, knots, "container", stream_index=0)


def trajectory(who: int, graph: str, frame: RigidTransform | None = None) -> SampleTrack:
    """Return poses whose mouth is where the scene has it, in the world or in another frame."""
    t_ns = np.arange(0, round(SCENE.seconds * 1e9), 20_000_000, dtype=np.int64)
    mouth = talks.places_of(SCENE.talks(), who)(talks.START_NS + t_ns)
    turn = np.tile([1.0, 0.0, 0.0, 0.0], (len(t_ns), 1))
    place = mouth - np.array(refine.MOUTH_DEVICE_M[MODEL])
    if frame is not None:
        there = frame.inverse()
        turn = np.tile(there.quat_wxyz, (len(t_ns), 1))
        place = place @ there.rotation.T + there.translation_m
    device_ns = DEVICE_NS[who] + t_ns
    uid = np.full(len(t_ns), graph.encode(), "S8")
    rows = Samples(device_ns, np.hstack([place, turn]), {"graph_uid": uid})
    columns = tuple(Column(name) for name in refine.POSE)
    ends = int(device_ns[0]), int(device_ns[-1])
    return SampleTrack(refine.TRAJECTORY, "pose", columns, len(t_ns), *ends, lambda: rows, "world")


def glasses(who: int, *tracks: SampleTrack) -> Recording:
    both: dict[str, Any] = {"audio": sound_track()} | {t.name: t for t in tracks}
    return Recording(NAMES[who], "aria", (), both, model=MODEL)


def recordings(*graphs: str, frame: RigidTransform | None = None) -> list[Recording]:
    worn = [
        glasses(who, trajectory(who, graph, frame if who else None))
        for who, graph in enumerate(graphs)
    ]
    return [*worn, Recording("camera", "webcam", (), {"audio": sound_track()})]


def clocks() -> SyncResult:
    found = {"camera": talks.rough_clock(SCENE)}
    for who, name in enumerate(NAMES):
        own = (ClockMap("session", name, np.array([[DEVICE_NS[who], talks.START_NS]])),)
        found[name] = RecordingClock(name, own, "tic_sync" if who else "reference", 0.2 * who)
    warnings = ("something else", unknown_positions_words(["camera"]))
    return SyncResult("leader", found, warnings=warnings)


@cache
def made_sounds() -> dict[str, MonoSound]:
    made = {t.sound.name: t.sound for t in talks.talkers(SCENE)}
    return made | {"camera": talks.camera_sound(SCENE, SCENE.talks())}


@pytest.fixture(autouse=True)
def sounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_sounds()

    def read(recording: Recording, sources: object = None, *, name: str) -> MonoSound:
        if not recording.audios:
            raise NoSoundError("the recording has no sound")
        return made[name]

    monkeypatch.setattr(refine, "read_sound", read)


def off_ms(result: Refined) -> float:
    at = np.linspace(0, SCENE.seconds * 1e9, 11).astype(np.int64)
    error: NDArray[np.int64] = result.sync.clocks["camera"].apply(at) - talks.true_clock(SCENE, at)
    return float(np.abs(error).max()) / 1e6


def test_the_clock_is_refined_and_warnings_fit_it() -> None:
    said = {"camera": Place(CAMERA_M + 0.03, 0.0025 * np.eye(3))}
    result = refine_clocks(recordings("g1", "g1"), clocks(), places=said)
    assert off_ms(result) < 0.3
    assert result.sync.warnings == ("something else",)
    assert result.travels[0].accepted
    assert result.sync.clocks["leader"].method == "reference"


@pytest.mark.parametrize(("at_s", "enough_after"), [(30.0, True), (54.3, False)])
def test_a_loss_that_nothing_else_noticed_is_told(
    monkeypatch: pytest.MonkeyPatch, at_s: float, enough_after: bool
) -> None:
    lossy = replace(SCENE, camera_error=lambda s: np.where(s > at_s, -0.04, 0.0))
    made = made_sounds() | {"camera": talks.camera_sound(lossy, SCENE.talks())}
    monkeypatch.setattr(refine, "read_sound", lambda recording, name: made[name])
    said = {"camera": Place(CAMERA_M + 0.03, 0.0025 * np.eye(3))}
    before = clocks()
    result = refine_clocks(recordings("g1", "g1"), before, places=said)
    clock, travel = result.sync.clocks["camera"], result.travels[0]
    assert any("'camera' lost 40 ms between" in w for w in result.sync.warnings)
    assert travel.accepted == enough_after
    if enough_after:
        assert [round(leap / 1e6) for leap in leaps_ns(clock)] == [40]
    else:
        assert clock.maps == before.clocks["camera"].maps
        assert clock.interval95_ms == pytest.approx(25.0 + 40.0, abs=0.5)


def test_a_position_that_speech_contradicts_makes_no_losses() -> None:
    said = {"camera": Place(CAMERA_M + 3.0, 0.0025 * np.eye(3))}
    result = refine_clocks(recordings("g1", "g1"), clocks(), places=said)
    assert not result.travels[0].accepted
    assert not len(result.travels[0].losses_ns)


def test_registration_says_where_the_camera_is_before_the_operator_does() -> None:
    pose = np.eye(4)[np.newaxis].copy()
    pose[0, :3, 3] = CAMERA_M
    seen = CameraPose("camera", "accepted", "", np.zeros(1, np.int64), pose, 1e-4 * np.eye(6))
    wrong = {"camera": Place(CAMERA_M + 1.0, 0.0025 * np.eye(3))}
    geometry = GeometryResult("leader", cameras={"camera": seen})
    result = refine_clocks(recordings("g1", "g1"), clocks(), geometry=geometry, places=wrong)
    assert off_ms(result) < 0.1


def test_a_camera_that_was_moved_keeps_its_clock() -> None:
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 0, 3] = 0.5
    seen = CameraPose("camera", "accepted", "", np.arange(2), poses)
    geometry = GeometryResult("leader", cameras={"camera": seen})
    result = refine_clocks(recordings("g1", "g1"), clocks(), geometry=geometry)
    assert not result.travels[0].accepted
    assert "moved" in result.travels[0].reason
    assert unknown_positions_words(["camera"]) in result.sync.warnings


def test_wearers_in_different_frames_are_told_to_be_joined() -> None:
    result = refine_clocks(recordings("g1", "g2", frame=OTHER_FRAME), clocks())
    assert "different world frames" in result.why_not
    assert not result.travels


def test_a_registered_wearer_is_carried_into_the_world() -> None:
    joined = RegistrationResult("accepted", "", OTHER_FRAME)
    geometry = GeometryResult("leader", wearers={"helper": joined})
    said = {"camera": Place(CAMERA_M, 0.0025 * np.eye(3))}
    given = recordings("g1", "g2", frame=OTHER_FRAME)
    assert off_ms(refine_clocks(given, clocks(), geometry=geometry, places=said)) < 0.3


def test_one_pair_of_glasses_or_no_trajectory_is_not_enough() -> None:
    camera = recordings("g1")[-1]
    one = refine_clocks([*recordings("g1")[:1], camera], clocks())
    assert "two pairs of glasses" in one.why_not
    none = refine_clocks([glasses(0), glasses(1), camera], clocks())
    assert "trajectory" in none.why_not


def test_a_camera_without_sound_or_with_another_clock_is_left_alone() -> None:
    mute = Recording("camera", "webcam", (), {})
    given = [*recordings("g1", "g1")[:2], mute]
    assert not refine_clocks(given, clocks()).travels
    known = clocks()
    by_hand = replace(known.clocks["camera"], method="manual")
    known = replace(known, clocks={**known.clocks, "camera": by_hand})
    assert not refine_clocks(recordings("g1", "g1"), known).travels


def test_a_path_has_no_places_where_there_are_no_poses() -> None:
    path = refine._Path(np.array([0, 10**7, 10**9]), np.array([[0.0] * 3, [1.0] * 3, [2.0] * 3]))
    found = path(np.array([-1, 5 * 10**6, 10**7, 5 * 10**8, 2 * 10**9]))
    assert found[:, 0] == pytest.approx([np.nan, 0.5, 1.0, np.nan, np.nan], nan_ok=True)


def test_what_was_found_survives_its_part(tmp_path: Path) -> None:
    before = clocks()
    result = refine_clocks(recordings("g1", "g1"), before)
    path = tmp_path / "refine-clock.h5"
    write_refined(path, result.sync, result.travels, before.clocks)
    sync, (travel,) = read_refined(path)
    assert travel.reason == result.travels[0].reason
    assert travel.score == result.travels[0].score
    assert np.array_equal(travel.residuals_ns, result.travels[0].residuals_ns)
    assert travel.losses_ns.shape == (0, 3)
    assert sync.clocks["camera"].basis == result.sync.clocks["camera"].basis
    mine, its = (c.clocks["camera"].maps[0].knots for c in (sync, result.sync))
    assert np.array_equal(mine, its)
    assert travel.clock is not None
    assert isinstance(travel.clock.maps[0], ClockMap)
