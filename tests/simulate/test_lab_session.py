"""A whole lab session in a room: what independent readers find in its files is what it tells."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from projectaria_tools.core.stream_id import StreamId

from synorama.capture.discover import discover, open_found
from synorama.pipeline import Workspace, process
from synorama.records import PointTrack
from synorama.simulate import simulate, simulate_plan
from synorama.simulate.check import check_session
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.rhythm import sensor_times_ns
from synorama.simulate.formats.barcode import Stamp, read
from synorama.simulate.lab import DEVICES
from synorama.simulate.scene.render import Film, Studio
from synorama.timebase import ClockMap
from tests.simulate.measures import (
    Written,
    arrival_off_us,
    camera_of,
    geometric_arrivals,
    picture,
    pose_at,
)

SECONDS = 8.0
GLASSES, CAMERAS = ("leader", "helper"), ("gopro-front", "gopro-rear", "webcam")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("lab") / "kitchen"
    simulate(folder, seed=3, seconds=SECONDS)
    return Written(folder)


# --- sound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEVICES)
def test_speech_stands_in_every_file_when_geometry_says(lab: Written, name: str) -> None:
    words = [w["speaker"] for w in lab.truth["words"]]
    speaker = max(sorted(set(words)), key=words.count)
    off_us, peak = arrival_off_us(lab, name, speaker)
    assert abs(off_us) < 20
    assert peak > 0.04  # of a whole phase that agrees, in a room that answers


@pytest.mark.parametrize("name", DEVICES)
def test_arrival_is_told_as_geometry_has_it(lab: Written, name: str) -> None:
    for speaker in ("leader", "helper"):
        emitted, arrived = geometric_arrivals(lab, name, speaker)
        knots = np.array(lab.recording(name)["acoustic"][speaker], np.int64)
        told = ClockMap("made", "device", knots).apply(lab.clock(name).inverse()(arrived))
        assert np.abs(told - emitted).max() < 150_000  # four knots a second, and heads that turn
        fine = lab.tables[f"acoustic/{name}/{speaker}/t_device_arrived_ns"][:, 0]
        made = lab.tables["acoustic/t_session_emitted_ns"]
        there = np.interp(emitted, made, lab.clock(name).apply(fine) - made)
        assert np.abs(there - (arrived - emitted)).max() < 10_000


def test_words_lie_in_the_session_and_have_a_speaker(lab: Written) -> None:
    words = lab.truth["words"]
    assert len(words) > 5
    assert all(w["speaker"] in ("leader", "helper") and w["text"] for w in words)
    assert all(
        lab.truth["start_ns"] <= w["start_ns"] < w["end_ns"] <= lab.truth["end_ns"] for w in words
    )


def test_aligned_sound_reaches_all_at_once(tmp_path: Path) -> None:
    simulate(
        tmp_path / "x", seed=3, seconds=4, aligned=True, render=False, mps=None, scan=None,
        devices=["helper", "webcam"],
    )  # fmt: skip
    lab = Written(tmp_path / "x")
    for name in ("helper", "webcam"):
        for knots in lab.recording(name)["acoustic"].values():
            device_ns, made_ns = np.array(knots, np.int64).T
            assert np.abs(lab.clock(name).apply(device_ns) - made_ns).max() <= 2


# --- pictures and motion ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "track", "label"),
    [
        ("leader", "rgb", "camera-rgb"),
        ("helper", "rgb", "camera-rgb"),
        ("helper", "slam-left", "camera-slam-left"),
        ("leader", "slam-right", "camera-slam-right"),
        ("gopro-front", "video", "gopro-front"),
        ("webcam", "video", "webcam"),
    ],
)
def test_pictures_show_the_room_from_the_true_pose(
    lab: Written, name: str, track: str, label: str
) -> None:
    """Seen again from the poses and intrinsics of the truth alone, nothing has moved."""
    import cv2

    camera, pose = camera_of(lab, name, track, label), pose_at(lab, name, track, label)
    bare, rng = Studio(lab.stage.room), np.random.default_rng(0)
    times = lab.tables[f"frames/{name}/{track}/t_session_ns"]
    shifts = []
    for index in range(1, len(times), max(1, len(times) // 10)):
        shown = picture(lab, name, track, index)
        again = bare.fixed(camera, pose(times[index : index + 1])[0], 0, Film(), rng)
        below = slice(16, None)  # the barcode
        grey = [np.float32(p if p.ndim == 2 else p.mean(axis=2))[below] for p in (shown, again)]
        window = cv2.createHanningWindow(grey[0].shape[::-1], cv2.CV_32F)
        (x, y), _ = cv2.phaseCorrelate(grey[0], grey[1], window)
        shifts.append(np.hypot(x, y))
    assert np.median(shifts) < 0.25


def test_poses_in_the_tables_are_those_of_the_frames(lab: Written) -> None:
    for name in GLASSES:
        prefix = f"frames/{name}/rgb"
        times = lab.tables[f"{prefix}/t_session_ns"]
        told = lab.tables[f"{prefix}/camera-rgb/T_world_camera"]
        assert np.allclose(pose_at(lab, name, "rgb", "camera-rgb")(times), told)
        device_ns = lab.tables[f"{prefix}/t_device_ns"]
        found = lab.provider(name).get_timestamps_ns(StreamId("214-1"), _device_time())
        assert found == device_ns.tolist()
        assert np.array_equal(lab.clock(name).apply(device_ns), times)


def _device_time() -> object:
    from projectaria_tools.core.sensor_data import TimeDomain

    return TimeDomain.DEVICE_TIME


def test_pictures_carry_their_numbers_through_every_codec(lab: Written) -> None:
    for name, track in (
        ("leader", "rgb"),
        ("helper", "et"),
        ("gopro-rear", "video"),
        ("webcam", "video"),
    ):
        told = lab.recording(name)["tracks"][track]
        for index in (0, 20, told["count"] - 1):
            assert read(picture(lab, name, track, index)) == Stamp(index, told["barcode"])


@pytest.mark.parametrize("name", GLASSES)
def test_inertial_units_feel_the_motion(lab: Written, name: str) -> None:
    """Turning rates of both units, summed up, turn the glasses as the truth's poses do."""
    provider = lab.provider(name)
    calibration = provider.get_device_calibration()
    for label, source in (("imu-right", "1202-1"), ("imu-left", "1202-2")):
        stream = StreamId(source)
        rows = [
            provider.get_imu_data_by_index(stream, k) for k in range(provider.get_num_data(stream))
        ]
        t_ns = np.array([row.capture_timestamp_ns for row in rows], np.int64)
        mount = calibration.get_imu_calib(label).get_transform_device_imu().to_matrix()
        motion = lab.stage.wearers[name].device(lab.clock(name).apply(t_ns)).attached(mount)
        for seen, true in (
            ([row.accel_msec2 for row in rows], motion.specific_force_m_s2),
            ([row.gyro_radsec for row in rows], motion.angular_velocity_rad_s),
        ):
            away = np.array(seen) - true
            assert np.abs(away.mean(axis=0)).max() < 0.005
            assert away.std() < 0.03
        forces = np.array([row.accel_msec2 for row in rows])
        assert 9.5 < np.linalg.norm(forces, axis=1).mean() < 10.1


# --- the session as a whole ------------------------------------------------------------------


def test_everything_that_belongs_to_a_session_is_found(lab: Written) -> None:
    found = discover(lab.folder)
    assert len(found.found) == 5
    assert {p.suffix for p in found.scans} == {".e57", ".laz"}
    assert {p.suffix for p in found.objects} == {".obj", ".stl", ".ply"}
    assert not found.unread
    for one in found.found:
        if one.reader.name == "aria":
            tracks = open_found(one).tracks
            assert {"rgb", "mic", "closed_loop_trajectory"} <= set(tracks)
            assert any(isinstance(track, PointTrack) for track in tracks.values())
    truth = lab.truth
    assert np.array(truth["scan"]["T_world_scan"]).shape == (4, 4)
    assert len(truth["objects"]) >= 3
    assert truth["mps"]["leader"]["graph_uid"] == truth["mps"]["helper"]["graph_uid"] != ""


def test_a_processed_session_keeps_its_promises(lab: Written) -> None:
    process(Workspace(lab.folder))
    lines = check_session(lab.folder)
    assert [line for line in lines if line.held is False] == []
    clocks = {line.of: line for line in lines if line.what == "clock"}
    assert clocks["leader"].values["worst_ms"] == 0
    compared = {"clock", "arrival", "frames", "pose", "scan", "object"}
    assert {line.what for line in lines} == compared
    assert len([line for line in lines if line.what == "pose" and line.held]) == 2
    for line in lines:
        if line.what == "arrival":
            assert 0.1 < (line.values["travel_least_ms"] or 0) < 30


def test_the_same_seed_gives_the_same_session(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        simulate(tmp_path / name, seed=seed, seconds=4, devices=["leader", "gopro-rear"])
    a, b, c = (_digests(tmp_path / name) for name in "abc")
    assert a == b
    assert a["truth.npz"] != c["truth.npz"]
    assert a["scan/room.laz"] != c["scan/room.laz"]


def _digests(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


@pytest.mark.parametrize("kind", ["symmetric", "corridor", "open"])
def test_every_kind_of_room_can_be_recorded(tmp_path: Path, kind: str) -> None:
    simulate(
        tmp_path / "x", seed=1, seconds=4, room=kind, mps="separate", scan="handheld",  # type: ignore[arg-type]
        devices=["helper"],
    )  # fmt: skip
    lab = Written(tmp_path / "x")
    assert lab.truth["room"]["kind"] == kind
    assert {p.name for p in (tmp_path / "x" / "scan").iterdir()} == {"room.laz", "room.ply"}


def test_cameras_stand_inside_and_see_people(lab: Written) -> None:
    half = np.array(lab.truth["room"]["size_m"]) / 2
    places = []
    for name in CAMERAS:
        ((_, told),) = lab.recording(name)["cameras"]["video"].items()
        pose = np.array(told["T_world_camera"])
        places.append(pose[:3, 3])
        assert (np.abs(pose[:2, 3]) < half[:2]).all()
        t_ns = np.linspace(lab.truth["start_ns"], lab.truth["end_ns"], 20).astype(np.int64)
        camera = camera_of(lab, name, "video", name)
        heads = np.concatenate([w.head(t_ns).position_m for w in lab.stage.wearers.values()])
        pixels, ahead = camera.lens.project((heads - pose[:3, 3]) @ pose[:3, :3])
        inside = ahead & (np.abs(pixels - [80, 48]) < [80, 48]).all(axis=1)
        assert inside.mean() > 0.5
    gaps = [np.linalg.norm(a - b) for k, a in enumerate(places) for b in places[:k]]
    assert min(gaps) > 0.8


@pytest.mark.parametrize(
    "asked",
    [{"room": "garage"}, {"mps": "twice"}, {"scan": "xray"}, {"faults": ("rain",)},
     {"faults": ("bystander-talking",), "room": None},
     {"faults": ("missing-chapter",), "devices": ("leader",)}],
)  # fmt: skip
def test_what_cannot_be_is_refused(asked: dict[str, object]) -> None:
    from synorama.errors import UsageError

    with pytest.raises(UsageError) as caught:
        simulate_plan(**asked)
    assert caught.value.hint or "needs" in str(caught.value)


def test_numbers_out_of_bounds_are_refused() -> None:
    from synorama.errors import UsageError

    for knob, value in (("contrast", 1.5), ("moved_share", -0.1), ("coverage", 0.0)):
        with pytest.raises(UsageError, match=knob) as caught:
            simulate_plan(**{knob: value})
        assert "give" in caught.value.hint


def test_clocks_wander_as_far_as_asked_for() -> None:
    straight, bent = simulate_plan(seconds=300.0), simulate_plan(seconds=300.0, wander_ms=1.5)
    for name, device in bent.devices.items():
        first, last = device.clock.knots[[0, -1], 0].tolist()
        times = np.linspace(first, last, 2000).astype(np.int64)
        off_ns = device.clock.apply(times) - straight.devices[name].clock.apply(times)
        assert np.abs(off_ns).max() == pytest.approx(0 if name == "leader" else 1_500_000, rel=0.02)


def test_sensors_keep_the_rhythms_of_real_ones() -> None:
    """Numbers of two real recordings of the first generation."""
    rates, steps = [], []
    for seed in range(20):
        glasses = simulate_plan(seed=seed).devices["leader"]
        assert isinstance(glasses, Glasses)
        right = np.diff(sensor_times_ns(glasses, "imu-right")) / 1e3
        assert (right > 0).all()
        left = np.diff(sensor_times_ns(glasses, "imu-left")) / 1e3
        steps.append((right.std(), left.std(), np.quantile(right, 0.9) - np.median(right)))
        rates.append((1e6 / right.mean(), 1e6 / left.mean()))
    assert np.allclose(np.mean(steps, axis=0), (29.1, 0.02, 45.7), rtol=0.1, atol=0.01)
    low, high = np.min(rates, axis=0), np.max(rates, axis=0)
    assert (low < (999.9, 798.3)).all()
    assert (high > (1001.0, 807.3)).all()
