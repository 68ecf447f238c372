"""MPS output: equal to the vendor's readers on real files, to truth on made ones, honest on bad."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from projectaria_tools.core import mps as vendor

from synorama.capture.mps import find_mps, mappings_left, mps_summary, mps_tracks
from synorama.capture.mps import table as table_module
from synorama.errors import (
    CorruptFileError,
    InputNotFoundError,
    InputUnreadableError,
    MpsSchemaError,
)
from synorama.records import PointCloud, PointTrack, Problem, Samples, SampleTrack, Track

GEN1 = Path("2_mps/projectaria_tools/gen1/mps_sample")
GEN2 = Path("2_mps/projectaria_tools/gen2/mps_sample")
EVERYDAY = Path("1_vrs/projectaria_tools/gen1/aria_everyday_activities_test_data/mps")

# --- help ------------------------------------------------------------------------------------


def tracks_of(folder: Path) -> tuple[dict[str, Track], list[Problem]]:
    tracks, problems = mps_tracks(folder)
    return {t.name: t for t in tracks}, list(problems)


def sample_track(folder: Path, name: str) -> SampleTrack:
    track = tracks_of(folder)[0][name]
    assert isinstance(track, SampleTrack)
    return track


def codes(folder: Path) -> list[str]:
    return [p.code for p in mps_tracks(folder)[1]]


def us(delta: timedelta) -> int:
    return delta // timedelta(microseconds=1)


def column(track: SampleTrack, samples: Samples, name: str) -> NDArray[np.float64]:
    k = [c.name for c in track.columns].index(name)
    return np.asarray(samples.values[:, k], np.float64)


def columns(track: SampleTrack, samples: Samples, *names: str) -> NDArray[np.float64]:
    return np.column_stack([column(track, samples, name) for name in names])


def write_table(
    path: Path, table: Mapping[str, Iterable[Any]], order: Iterable[str] | None = None
) -> Path:
    names = list(order or table)
    rows = zip(*(list(table[name]) for name in names), strict=True)
    text = "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows), ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def placed(data: Path, tmp_path: Path, name: str) -> Path:
    """Put one real file under its published name into a folder of its own."""
    folder = tmp_path / "mps"
    (folder / "slam").mkdir(parents=True)
    target = folder / name
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(data, target)
    return folder


def assert_track_fits(track: SampleTrack, samples: Samples) -> None:
    times = samples.times_ns
    assert times.dtype == np.int64
    assert track.count == len(times)
    assert (track.first_ns, track.last_ns) == (times.min(), times.max())
    assert samples.values.shape == (track.count, len(track.columns))


# --- the vendor's reading of the same file -----------------------------------------------------

POSE = ("tx", "ty", "tz", "qw", "qx", "qy", "qz")


def assert_pose_matrix(values: NDArray[np.float64], transforms: list[Any]) -> None:
    translation = np.array([np.ravel(t.translation()) for t in transforms])
    quat_wxyz = np.array([np.ravel(t.rotation().to_quat()) for t in transforms])
    np.testing.assert_allclose(values[:, :3], translation, rtol=1e-13, atol=1e-15)
    unit = values[:, 3:] / np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    np.testing.assert_allclose(unit, quat_wxyz, rtol=1e-9, atol=1e-12)


def assert_closed_loop(folder: Path, path: Path) -> None:
    theirs = vendor.read_closed_loop_trajectory(str(path))
    track = sample_track(folder, "closed_loop_trajectory")
    mine = track.read()
    assert_track_fits(track, mine)
    assert track.kind == "pose"
    assert track.frame == "world"
    assert [us(p.tracking_timestamp) * 1000 for p in theirs] == mine.times_ns.tolist()
    assert_utc([p.utc_timestamp for p in theirs], mine.extra["utc_ns"])
    assert [p.graph_uid.encode() for p in theirs] == mine.extra["graph_uid"].tolist()
    assert_pose_matrix(columns(track, mine, *POSE), [p.transform_world_device for p in theirs])
    assert_vectors(
        track,
        mine,
        {
            "device_linear_velocity_{}_device": [p.device_linear_velocity_device for p in theirs],
            "angular_velocity_{}_device": [p.angular_velocity_device for p in theirs],
            "gravity_{}_world": [p.gravity_world for p in theirs],
        },
    )
    quality = column(track, mine, "quality_score")
    np.testing.assert_allclose(quality, [p.quality_score for p in theirs], rtol=1e-6)


def assert_open_loop(folder: Path, path: Path) -> None:
    theirs = vendor.read_open_loop_trajectory(str(path))
    track = sample_track(folder, "open_loop_trajectory")
    mine = track.read()
    assert_track_fits(track, mine)
    assert track.frame == "odometry"
    assert [us(p.tracking_timestamp) * 1000 for p in theirs] == mine.times_ns.tolist()
    assert_utc([p.utc_timestamp for p in theirs], mine.extra["utc_ns"])
    assert [p.session_uid.encode() for p in theirs] == mine.extra["session_uid"].tolist()
    assert_pose_matrix(columns(track, mine, *POSE), [p.transform_odometry_device for p in theirs])
    assert_vectors(
        track,
        mine,
        {
            "device_linear_velocity_{}_odometry": [
                p.device_linear_velocity_odometry for p in theirs
            ],
            "angular_velocity_{}_device": [p.angular_velocity_device for p in theirs],
            "gravity_{}_odometry": [p.gravity_odometry for p in theirs],
        },
    )
    quality = column(track, mine, "quality_score")
    np.testing.assert_allclose(quality, [p.quality_score for p in theirs], rtol=1e-6)


def assert_utc(theirs: list[timedelta], utc_ns: NDArray[np.int64]) -> None:
    """Compare to the microseconds that the vendor's Python type can hold (-1 becomes 0)."""
    assert [us(t) for t in theirs] == np.where(utc_ns < 0, 0, utc_ns // 1000).tolist()


def assert_vectors(track: SampleTrack, mine: Samples, theirs: Mapping[str, list[Any]]) -> None:
    for pattern, vectors in theirs.items():
        values = columns(track, mine, *(pattern.format(a) for a in "xyz"))
        expected = np.array([np.ravel(v) for v in vectors])
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)


def assert_points(folder: Path, path: Path) -> None:
    theirs = vendor.read_global_point_cloud(str(path))
    track = tracks_of(folder)[0]["semidense_points"]
    assert isinstance(track, PointTrack)
    mine = track.read()
    assert isinstance(mine, PointCloud)
    assert track.count == len(theirs) == len(mine.points_m)
    assert mine.frame == track.frame == "world"
    assert mine.extra["uid"].tolist() == [p.uid for p in theirs]
    assert mine.extra["graph_uid"].tolist() == [p.graph_uid.encode() for p in theirs]
    positions = np.array([np.ravel(p.position_world) for p in theirs])
    np.testing.assert_allclose(mine.points_m, positions, rtol=1e-13, atol=1e-15)
    inverse = [p.inverse_distance_std for p in theirs]
    std = [p.distance_std for p in theirs]
    np.testing.assert_allclose(mine.extra["inv_dist_std"], inverse, rtol=1e-6)
    np.testing.assert_allclose(mine.extra["dist_std"], std, rtol=1e-6)
    assert mine.sigma_m is not None
    np.testing.assert_array_equal(mine.sigma_m, mine.extra["dist_std"])


def assert_observations(folder: Path, path: Path) -> None:
    theirs = vendor.read_point_observations(str(path))
    track = sample_track(folder, "semidense_observations")
    mine = track.read()
    assert_track_fits(track, mine)
    assert [us(p.frame_capture_timestamp) * 1000 for p in theirs] == mine.times_ns.tolist()
    assert mine.extra["uid"].tolist() == [p.point_uid for p in theirs]
    assert mine.extra["camera_serial"].tolist() == [p.camera_serial.encode() for p in theirs]
    uv = np.array([np.ravel(p.uv) for p in theirs])
    np.testing.assert_allclose(mine.values, uv, rtol=2e-7)


GAZE_OF_VENDOR: dict[str, Callable[[Any], float]] = {
    "yaw_rads_cpf": lambda g: g.yaw,
    "pitch_rads_cpf": lambda g: g.pitch,
    "depth_m": lambda g: g.depth,
    "yaw_low_rads_cpf": lambda g: g.yaw_low,
    "pitch_low_rads_cpf": lambda g: g.pitch_low,
    "yaw_high_rads_cpf": lambda g: g.yaw_high,
    "pitch_high_rads_cpf": lambda g: g.pitch_high,
    "left_yaw_rads_cpf": lambda g: g.vergence.left_yaw,
    "right_yaw_rads_cpf": lambda g: g.vergence.right_yaw,
    "left_pitch_rads_cpf": lambda g: g.vergence.left_pitch,
    "right_pitch_rads_cpf": lambda g: g.vergence.right_pitch,
    "left_yaw_low_rads_cpf": lambda g: g.vergence.left_yaw_low,
    "right_yaw_low_rads_cpf": lambda g: g.vergence.right_yaw_low,
    "left_yaw_high_rads_cpf": lambda g: g.vergence.left_yaw_high,
    "right_yaw_high_rads_cpf": lambda g: g.vergence.right_yaw_high,
    "tx_left_eye_cpf": lambda g: g.vergence.tx_left_eye,
    "ty_left_eye_cpf": lambda g: g.vergence.ty_left_eye,
    "tz_left_eye_cpf": lambda g: g.vergence.tz_left_eye,
    "tx_right_eye_cpf": lambda g: g.vergence.tx_right_eye,
    "ty_right_eye_cpf": lambda g: g.vergence.ty_right_eye,
    "tz_right_eye_cpf": lambda g: g.vergence.tz_right_eye,
}


def assert_gaze(folder: Path, path: Path, name: str = "general_eye_gaze") -> None:
    theirs = vendor.read_eyegaze(str(path))
    track = sample_track(folder, name)
    mine = track.read()
    assert_track_fits(track, mine)
    assert track.kind == "gaze"
    assert track.frame == "cpf"
    assert len(theirs) > 0
    assert [us(g.tracking_timestamp) * 1000 for g in theirs] == mine.times_ns.tolist()
    for k, c in enumerate(track.columns):
        expected = np.array([GAZE_OF_VENDOR[c.name](g) for g in theirs])
        values = mine.values[:, k]
        missing = np.isnan(values)
        assert not missing.any() or c.name == "depth_m"  # the vendor says 0 there
        assert (expected[missing] == 0).all()
        np.testing.assert_allclose(values[~missing], expected[~missing], rtol=2e-6, atol=1e-9)
    if "session_uid" in mine.extra:
        assert mine.extra["session_uid"].tolist() == [g.session_uid.encode() for g in theirs]


def assert_hands(folder: Path, path: Path) -> None:
    theirs = vendor.hand_tracking.read_hand_tracking_results(str(path))
    track = sample_track(folder, "hand_tracking_results")
    mine = track.read()
    assert_track_fits(track, mine)
    assert track.kind == "hands"
    assert track.frame == "device"
    assert [us(h.tracking_timestamp) * 1000 for h in theirs] == mine.times_ns.tolist()
    for side in ("left", "right"):
        hands = [getattr(h, f"{side}_hand") for h in theirs]
        tracked = np.array([h is not None for h in hands])
        of_side = [k for k, c in enumerate(track.columns) if f"_{side}_" in c.name]
        assert np.isnan(mine.values[~tracked][:, of_side]).all()
        there = [h for h in hands if h is not None]
        if there:
            assert_hand(track, mine, side, tracked, there)


def assert_hand(
    track: SampleTrack, mine: Samples, side: str, tracked: NDArray[np.bool_], hands: list[Any]
) -> None:
    def mine_of(*names: str) -> NDArray[np.float64]:
        return columns(track, mine, *names)[tracked]

    confidence = mine_of(f"{side}_tracking_confidence")[:, 0]
    np.testing.assert_allclose(confidence, [h.confidence for h in hands], rtol=1e-6)
    for k in range(21):
        values = mine_of(*(f"t{a}_{side}_landmark_{k}_device" for a in "xyz"))
        expected = [np.ravel(h.landmark_positions_device[k]) for h in hands]
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)
    wrist = mine_of(
        *(f"t{a}_{side}_device_wrist" for a in "xyz"),
        *(f"q{a}_{side}_device_wrist" for a in "wxyz"),
    )
    assert_pose_matrix(wrist, [h.transform_device_wrist for h in hands])
    if any(c.name.startswith("nx_") for c in track.columns):
        assert_normals(mine_of, side, hands)


def assert_normals(
    mine_of: Callable[..., NDArray[np.float64]], side: str, hands: list[Any]
) -> None:
    normals = [h.wrist_and_palm_normal_device for h in hands]
    for part in ("palm", "wrist"):
        values = mine_of(*(f"n{a}_{side}_{part}_device" for a in "xyz"))
        expected = [np.ravel(getattr(n, f"{part}_normal_device")) for n in normals]
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)


def assert_wrist_and_palm(folder: Path, path: Path) -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        theirs = vendor.hand_tracking.read_wrist_and_palm_poses(str(path))
    track = sample_track(folder, "wrist_and_palm_poses")
    mine = track.read()
    assert_track_fits(track, mine)
    assert [us(h.tracking_timestamp) * 1000 for h in theirs] == mine.times_ns.tolist()
    for side in ("left", "right"):
        hands = [getattr(h, f"{side}_hand") for h in theirs]
        tracked = np.array([h is not None for h in hands])
        there = [h for h in hands if h is not None]
        of_side = [k for k, c in enumerate(track.columns) if f"_{side}_" in c.name]
        assert np.isnan(mine.values[~tracked][:, of_side]).all()
        for part in ("wrist", "palm") if there else ():
            values = columns(track, mine, *(f"t{a}_{side}_{part}_device" for a in "xyz"))
            expected = [np.ravel(getattr(h, f"{part}_position_device")) for h in there]
            np.testing.assert_allclose(values[tracked], expected, rtol=1e-12, atol=1e-15)
        if there and any(c.name.startswith("nx_") for c in track.columns):
            assert_normals(lambda *n, on=tracked: columns(track, mine, *n)[on], side, there)


def assert_calibration(folder: Path, path: Path) -> None:
    theirs = vendor.read_online_calibration(str(path))
    track = sample_track(folder, "online_calibration")
    mine = track.read()
    assert_track_fits(track, mine)
    assert len(theirs) == track.count
    assert [us(c.tracking_timestamp) * 1000 for c in theirs] == mine.times_ns.tolist()
    assert_utc([c.utc_timestamp for c in theirs], mine.extra["utc_ns"])
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    assert mine.extra["json"].tolist() == lines
    for document, calibration in zip(mine.extra["json"], theirs, strict=True):
        parsed = json.loads(bytes(document))
        for camera, its in zip(
            parsed["CameraCalibrations"], calibration.camera_calibs, strict=True
        ):
            assert camera["Label"] == its.get_label()
            np.testing.assert_array_equal(
                camera["Projection"]["Params"], its.get_projection_params()
            )


# --- real files --------------------------------------------------------------------------------

REAL: list[tuple[Path, str, Callable[[Path, Path], None]]] = [
    (
        GEN1 / "trajectory/closed_loop_trajectory.csv",
        "slam/closed_loop_trajectory.csv",
        assert_closed_loop,
    ),
    (
        GEN1 / "trajectory/closed_loop_trajectory_geo_available.csv",
        "trajectory/closed_loop_trajectory.csv",
        assert_closed_loop,
    ),
    (
        GEN1 / "trajectory/closed_loop_trajectory_geo_missing.csv",
        "closed_loop_trajectory.csv",
        assert_closed_loop,
    ),
    (
        GEN1 / "trajectory/open_loop_trajectory.csv",
        "slam/open_loop_trajectory.csv",
        assert_open_loop,
    ),
    (GEN1 / "trajectory/global_points.csv.gz", "slam/global_points.csv.gz", assert_points),
    (GEN1 / "trajectory/global_points.csv.gz", "slam/semidense_points.csv.gz", assert_points),
    (
        GEN1 / "trajectory/online_calibration.jsonl",
        "slam/online_calibration.jsonl",
        assert_calibration,
    ),
    (
        GEN1 / "trajectory/online_calibration_v1_1_0.jsonl",
        "slam/online_calibration.jsonl",
        assert_calibration,
    ),
    (GEN1 / "eye_gaze/eyegaze.csv", "eye_gaze/eyegaze.csv", assert_gaze),
    (
        GEN1 / "eye_gaze/generalized_eye_gaze.csv",
        "eye_gaze/generalized_eye_gaze.csv",
        assert_gaze,
    ),
    (
        GEN1 / "eye_gaze_vergence/generalized_gaze.csv",
        "eye_gaze/general_eye_gaze.csv",
        assert_gaze,
    ),
    (EVERYDAY / "eye_gaze/general_eye_gaze.csv", "eye_gaze/general_eye_gaze.csv", assert_gaze),
    (GEN2 / "eye_gaze/general_eye_gaze.csv", "eye_gaze/general_eye_gaze.csv", assert_gaze),
    (
        GEN2 / "eye_gaze/personalized_eye_gaze.csv",
        "eye_gaze/personalized_eye_gaze.csv",
        lambda folder, path: assert_gaze(folder, path, "personalized_eye_gaze"),
    ),
    (
        GEN1 / "hand_tracking/hand_tracking_results_v1.csv",
        "hand_tracking/hand_tracking_results.csv",
        assert_hands,
    ),
    (
        GEN1 / "hand_tracking/hand_tracking_results_v2.csv",
        "hand_tracking/hand_tracking_results.csv",
        assert_hands,
    ),
    (
        GEN1 / "hand_tracking/wrist_and_palm_poses.csv",
        "hand_tracking/wrist_and_palm_poses.csv",
        assert_wrist_and_palm,
    ),
    (
        GEN1 / "hand_tracking/wrist_and_palm_poses_v2.csv",
        "hand_tracking/wrist_and_palm_poses.csv",
        assert_wrist_and_palm,
    ),
]


@pytest.mark.parametrize(("source", "name", "check"), REAL, ids=[str(r[0]) for r in REAL])
def test_real_file_equals_the_vendors_reader(
    shared_data: Path,
    tmp_path: Path,
    source: Path,
    name: str,
    check: Callable[[Path, Path], None],
) -> None:
    folder = placed(shared_data / source, tmp_path, name)
    check(folder, folder / name)
    assert not [p for p in mps_tracks(folder)[1] if p.severe]


def test_real_sample_folder_as_it_is(shared_data: Path) -> None:
    tracks, problems = tracks_of(shared_data / GEN1)
    assert list(tracks) == [
        "closed_loop_trajectory",
        "open_loop_trajectory",
        "semidense_points",
        "general_eye_gaze",
        "wrist_and_palm_poses",
        "online_calibration",
    ]
    assert [p.code for p in problems] == ["mps_superseded"]
    assert tracks["general_eye_gaze"].source == "eye_gaze/generalized_eye_gaze.csv"
    summary = mps_summary(shared_data / GEN1)
    assert summary["hand_tracking"]["total_frames"] == 311
    assert summary["trajectory"]["SLAM"]["status"] == "SUCCESS"


def test_real_place_on_earth_is_a_track_of_its_own(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / GEN1 / "trajectory/closed_loop_trajectory_geo_available.csv"
    folder = placed(source, tmp_path, "slam/closed_loop_trajectory.csv")
    tracks, _ = tracks_of(folder)
    ecef = sample_track(folder, "closed_loop_trajectory_ecef")
    assert ecef.location
    assert not sample_track(folder, "closed_loop_trajectory").location
    assert ecef.count == tracks["closed_loop_trajectory"].count
    assert [c.name for c in ecef.columns] == list(POSE)


def test_real_place_on_earth_that_nobody_knows_is_no_track(shared_data: Path) -> None:
    assert "closed_loop_trajectory_ecef" not in tracks_of(shared_data / GEN1)[0]


# --- made files, every schema -------------------------------------------------------------------

XYZ = "xyz"
SIDES = ("left", "right")


def pose_columns(suffix: str) -> list[str]:
    return [f"t{a}_{suffix}" for a in XYZ] + [f"q{a}_{suffix}" for a in "xyzw"]


def vector(pattern: str) -> list[str]:
    return [pattern.format(a) for a in XYZ]


CLOSED = [
    *pose_columns("world_device"),
    *vector("device_linear_velocity_{}_device"),
    *vector("angular_velocity_{}_device"),
    *vector("gravity_{}_world"),
]
OPEN = [
    *pose_columns("odometry_device"),
    *vector("device_linear_velocity_{}_odometry"),
    *vector("angular_velocity_{}_device"),
    *vector("gravity_{}_odometry"),
]
ECEF = pose_columns("ecef_device")
BOUNDS = [f"{a}_{e}_rads_cpf" for e in ("low", "high") for a in ("yaw", "pitch")]
COMBINED = ["yaw_rads_cpf", "pitch_rads_cpf"]
VERGENCE = ["left_yaw_rads_cpf", "right_yaw_rads_cpf", "pitch_rads_cpf", "depth_m"]
VERGENCE_BOUNDS = [
    f"{a}_{e}_rads_cpf" for e in ("low", "high") for a in ("left_yaw", "right_yaw", "pitch")
]
EYES = [f"t{a}_{s}_eye_cpf" for s in SIDES for a in XYZ]
BOTH_EYES = [f"{s}_{a}_rads_cpf" for s in SIDES for a in ("yaw", "pitch")]
NORMALS = [f"n{a}_{s}_{p}_device" for s in SIDES for p in ("palm", "wrist") for a in XYZ]
WRISTS = [c for s in SIDES for c in pose_columns(f"{s}_device_wrist")]


def hand_columns(parts: Iterable[str]) -> list[str]:
    names = list(parts)
    return [
        c
        for s in SIDES
        for c in (
            f"{s}_tracking_confidence",
            *(f"t{a}_{s}_{p}_device" for p in names for a in XYZ),
        )
    ]


LANDMARKS = hand_columns(f"landmark_{k}" for k in range(21))
WRIST_AND_PALM = hand_columns(("wrist", "palm"))

MADE: dict[str, tuple[str, list[str], list[str], Callable[[Path, Path], None] | None]] = {
    # published name; numbers; texts; the vendor's reader, if it still reads this version
    "closed": (
        "slam/closed_loop_trajectory.csv",
        [*CLOSED, "quality_score"],
        ["graph_uid"],
        assert_closed_loop,
    ),
    "closed, oldest": ("slam/closed_loop_trajectory.csv", CLOSED, ["graph_uid"], None),
    "closed, geo": (
        "slam/closed_loop_trajectory.csv",
        [*CLOSED, "quality_score", "geo_available", *ECEF],
        ["graph_uid"],
        assert_closed_loop,
    ),
    "open": (
        "slam/open_loop_trajectory.csv",
        [*OPEN, "quality_score"],
        ["session_uid"],
        assert_open_loop,
    ),
    "open, oldest": ("slam/open_loop_trajectory.csv", OPEN, ["session_uid"], None),
    "gaze, angles only": ("eye_gaze/eyegaze.csv", COMBINED, [], None),
    "gaze, first": ("eye_gaze/eyegaze.csv", [*COMBINED, "depth_m", *BOUNDS], [], assert_gaze),
    "gaze, with session": (
        "eye_gaze/generalized_eye_gaze.csv",
        [*COMBINED, "depth_m", *BOUNDS],
        ["session_uid"],
        assert_gaze,
    ),
    "gaze, vergence": (
        "eye_gaze/general_eye_gaze.csv",
        [*VERGENCE, *VERGENCE_BOUNDS, *EYES],
        ["session_uid"],
        None,
    ),
    "gaze, second generation": (
        "eye_gaze/general_eye_gaze.csv",
        [*COMBINED, *BOTH_EYES, *EYES],
        [],
        assert_gaze,
    ),
    "hands, no wrist": ("hand_tracking/hand_tracking_results.csv", LANDMARKS, [], None),
    "hands, first": (
        "hand_tracking/hand_tracking_results.csv",
        [*LANDMARKS, *WRISTS],
        [],
        assert_hands,
    ),
    "hands, second": (
        "hand_tracking/hand_tracking_results.csv",
        [*LANDMARKS, *WRISTS, *NORMALS],
        [],
        assert_hands,
    ),
    "wrists, first": (
        "hand_tracking/wrist_and_palm_poses.csv",
        WRIST_AND_PALM,
        [],
        assert_wrist_and_palm,
    ),
    "wrists, second": (
        "hand_tracking/wrist_and_palm_poses.csv",
        [*WRIST_AND_PALM, *NORMALS],
        [],
        assert_wrist_and_palm,
    ),
}
START_US = 86_400_000_123  # a day after the glasses were switched on


def truth(
    numbers: Iterable[str], texts: Iterable[str], rows: int = 7, seed: int = 5
) -> dict[str, list[Any]]:
    """Numbers of which every column is different, so that a swapped column is seen."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {
        "tracking_timestamp_us": [START_US + 999 * k for k in range(rows)]
    }
    for name in numbers:
        table[name] = np.round(rng.uniform(-1, 1, rows), 9).tolist()
        if name.endswith("_confidence") or name == "quality_score":
            table[name] = np.round(rng.uniform(0.1, 1, rows), 6).tolist()
    for name in texts:
        table[name] = [f"uid-{k // 4 if name == 'session_uid' else 0}" for k in range(rows)]
    if "tx_world_device" in table or "tx_odometry_device" in table:
        table["utc_timestamp_ns"] = [1_700_000_000_123_456_789 + k for k in range(rows)]
    if "geo_available" in table:
        table["geo_available"] = [k % 2 for k in range(rows)]
    if "left_tracking_confidence" in table:
        table["left_tracking_confidence"][2] = -1
        table["right_tracking_confidence"][0] = -1
    return table


@pytest.mark.parametrize("schema", MADE)
def test_made_file_gives_back_its_truth(tmp_path: Path, schema: str) -> None:
    name, numbers, texts, check = MADE[schema]
    table = truth(numbers, texts)
    shuffled = np.random.default_rng(1).permutation(list(table)).tolist()
    path = write_table(tmp_path / name, table, shuffled)
    tracks, problems = tracks_of(tmp_path)
    assert not problems
    track = next(iter(tracks.values()))
    assert isinstance(track, SampleTrack)
    samples = track.read()
    assert_track_fits(track, samples)
    assert samples.times_ns.tolist() == [t * 1000 for t in table["tracking_timestamp_us"]]
    assert_values_are(track, samples, table)
    for text in texts:
        assert samples.extra[text].tolist() == [word.encode() for word in table[text]]
    if "utc_timestamp_ns" in table:
        assert samples.extra["utc_ns"].tolist() == table["utc_timestamp_ns"]
    if check is not None:
        check(tmp_path, path)


def assert_values_are(track: SampleTrack, samples: Samples, table: dict[str, list[Any]]) -> None:
    suffix = {"world": "_world_device", "odometry": "_odometry_device"}.get(track.frame, "")
    given = {c.name for c in track.columns}
    left_out = {"tracking_timestamp_us", "utc_timestamp_ns", "graph_uid", "session_uid"}
    kept = [n for n in table if n not in left_out and n not in ("geo_available", *ECEF)]
    assert len(kept) == len(given)
    for name in kept:
        short = name.removesuffix(suffix) if name.startswith(("t", "q")) else name
        short = short if short in given else name
        side = next((s for s in SIDES if f"{s}_tracking_confidence" in table and s in name), "")
        values = np.array(table[name], float)
        if side and not name.endswith("confidence"):
            values[np.array(table[f"{side}_tracking_confidence"]) <= 0] = np.nan
        np.testing.assert_array_equal(column(track, samples, short), values, err_msg=name)


def test_units_and_order_of_a_pose(tmp_path: Path) -> None:
    table = truth([*CLOSED, "quality_score"], ["graph_uid"])
    write_table(tmp_path / "slam/closed_loop_trajectory.csv", table)
    track = sample_track(tmp_path, "closed_loop_trajectory")
    assert tuple(c.name for c in track.columns[:7]) == POSE
    assert [c.unit for c in track.columns[::3]] == ["m", "1", "1", "m/s", "rad/s", "m/s^2"]


def test_place_on_earth_only_where_it_is_known(tmp_path: Path) -> None:
    name, numbers, texts, _ = MADE["closed, geo"]
    table = truth(numbers, texts)
    write_table(tmp_path / name, table)
    track = sample_track(tmp_path, "closed_loop_trajectory_ecef")
    samples = track.read()
    assert_track_fits(track, samples)
    assert samples.times_ns.tolist() == [t * 1000 for t in table["tracking_timestamp_us"][1::2]]
    for c in track.columns:
        expected = table[f"{c.name}_ecef_device"][1::2]
        assert column(track, samples, c.name).tolist() == expected


def test_gaze_with_vergence_equals_the_vendors_reader(tmp_path: Path) -> None:
    _, numbers, texts, _ = MADE["gaze, vergence"]
    path = tmp_path / "eye_gaze/personalized_eye_gaze.csv"
    published = [
        "tracking_timestamp_us",
        *VERGENCE,
        *VERGENCE_BOUNDS,
        *EYES,
        "session_uid",
    ]
    write_table(path, truth(numbers, texts), published)
    assert_gaze(tmp_path, path, "personalized_eye_gaze")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_points_and_observations_equal_truth_and_the_vendors_reader(
    tmp_path: Path, suffix: str
) -> None:
    rng = np.random.default_rng(2)
    numbers = rng.uniform(-3000, 3000, (5, 50)).round(6).tolist()
    points = dict(zip(["px_world", "py_world", "pz_world"], numbers, strict=False))
    stds = {"inv_dist_std": numbers[3], "dist_std": [abs(x) for x in numbers[4]]}
    uids: dict[str, list[Any]] = {"uid": list(range(50)), "graph_uid": ["a-b"] * 50}
    path = write_table(tmp_path / f"slam/semidense_points{suffix}", {**uids, **points, **stds})
    assert_points(tmp_path, path)
    cloud = tracks_of(tmp_path)[0]["semidense_points"]
    assert isinstance(cloud, PointTrack)
    np.testing.assert_array_equal(cloud.read().points_m, np.transpose(numbers[:3]))

    observed: dict[str, list[Any]] = {
        "uid": [3, 1, 2, 1],
        "frame_tracking_timestamp_us": [START_US + 9, START_US, START_US + 5, START_US + 9],
        "camera_serial": ["0072510f1b21", "0072510f1b99", "0072510f1b21", "0072510f1b99"],
        "u": [1.5, 20.25, 639.125, 0.0],
        "v": [479.875, 3.1, 4.2, 5.3],
    }
    path = write_table(tmp_path / f"slam/semidense_observations{suffix}", observed)
    assert_observations(tmp_path, path)
    assert not mps_tracks(tmp_path)[1]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    times_us=st.lists(st.integers(0, 2**53), min_size=1, max_size=40),
    seed=st.integers(0, 2**31),
    block=st.integers(200, 4096),
    zipped=st.booleans(),
)
def test_any_times_and_numbers_come_back_exactly_whatever_the_block(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    times_us: list[int],
    seed: int,
    block: int,
    zipped: bool,
) -> None:
    monkeypatch.setattr(table_module, "READ", block)
    folder = tmp_path_factory.mktemp("mps")
    rng = np.random.default_rng(seed)
    numbers = (rng.standard_normal((2, len(times_us))) * 10.0 ** rng.integers(-9, 9)).tolist()
    path = folder / "eye_gaze/general_eye_gaze.csv"
    write_table(
        path, {"tracking_timestamp_us": times_us, **dict(zip(COMBINED, numbers, strict=True))}
    )
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    track = sample_track(folder, "general_eye_gaze")
    samples = track.read()
    assert_track_fits(track, samples)
    assert samples.times_ns.tolist() == [t * 1000 for t in times_us]
    np.testing.assert_array_equal(samples.values.T, numbers)
    goes_back = any(b < a for a, b in pairwise(times_us))
    assert ("time_goes_back" in codes(folder)) == goes_back


def test_online_calibration_before_june_2023_had_its_content_in_quotes(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "tracking_timestamp_us": str(START_US + k),
                "utc_timestamp_ns": "-1",
                "CameraCalibrations": "[]",
                "ImuCalibrations": "[{'Calibrated': True}]",
            }
        )
        for k in range(3)
    ]
    path = tmp_path / "slam/online_calibration.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines))
    track = sample_track(tmp_path, "online_calibration")
    samples = track.read()
    assert samples.times_ns.tolist() == [(START_US + k) * 1000 for k in range(3)]
    assert samples.extra["utc_ns"].tolist() == [-1] * 3
    assert samples.extra["json"].tolist() == [line.encode() for line in lines]


# --- bad files ----------------------------------------------------------------------------------

GAZE = "eye_gaze/general_eye_gaze.csv"


def gaze_file(folder: Path, rows: int = 6) -> Path:
    return write_table(folder / GAZE, truth(COMBINED, [], rows))


def test_reading_is_put_off_until_asked_for(tmp_path: Path) -> None:
    path = gaze_file(tmp_path)
    track = sample_track(tmp_path, "general_eye_gaze")
    path.unlink()
    with pytest.raises(InputNotFoundError):
        track.read()


@pytest.mark.parametrize("rows", [5, 7])
def test_file_that_changed_after_it_was_opened(tmp_path: Path, rows: int) -> None:
    gaze_file(tmp_path)
    track = sample_track(tmp_path, "general_eye_gaze")
    gaze_file(tmp_path, rows)
    with pytest.raises(CorruptFileError, match="changed"):
        track.read()


def test_unknown_column_names_what_was_found_and_expected(tmp_path: Path) -> None:
    table = truth([*COMBINED, "pupil_mm"], [])
    path = write_table(tmp_path / GAZE, table)
    with pytest.raises(MpsSchemaError) as refused:
        mps_tracks(tmp_path)
    assert refused.value.path == str(path)
    assert "unknown pupil_mm" in refused.value.message
    assert "expected tracking_timestamp_us, yaw_rads_cpf, pitch_rads_cpf" in refused.value.message
    assert refused.value.hint


def test_missing_column_is_named(tmp_path: Path) -> None:
    write_table(tmp_path / GAZE, truth(["yaw_rads_cpf"], []))
    with pytest.raises(MpsSchemaError, match="missing pitch_rads_cpf"):
        mps_tracks(tmp_path)


def test_half_an_optional_group_is_no_schema(tmp_path: Path) -> None:
    write_table(tmp_path / GAZE, truth([*COMBINED, *BOUNDS[:3]], []))
    with pytest.raises(MpsSchemaError):
        mps_tracks(tmp_path)


def test_column_twice_is_no_schema(tmp_path: Path) -> None:
    write_table(tmp_path / GAZE, truth(COMBINED, []), ["tracking_timestamp_us", *COMBINED * 2])
    with pytest.raises(MpsSchemaError):
        mps_tracks(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00" * 100, b"\xef\xbb\xbf"])
def test_empty_file_gives_no_track_and_a_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / GAZE).parent.mkdir()
    (tmp_path / GAZE).write_bytes(content)
    try:
        tracks, problems = tracks_of(tmp_path)
    except MpsSchemaError:
        assert content[:1] == b"\x00"
    else:
        assert not tracks
        assert [p.code for p in problems] == ["unusable"]
        assert "empty" in problems[0].text


def test_header_only_gives_no_track_and_a_problem(tmp_path: Path) -> None:
    gaze_file(tmp_path, 0)
    tracks, problems = tracks_of(tmp_path)
    assert not tracks
    assert [(p.code, p.track) for p in problems] == [("no_rows", "general_eye_gaze")]


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cut=st.integers(1, 200))
def test_cut_file_gives_whole_rows_only_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("mps")
    table = truth(COMBINED, [], 10)
    path = write_table(folder / GAZE, table)
    path.write_bytes(path.read_bytes()[:-cut])
    track = sample_track(folder, "general_eye_gaze")
    samples = track.read()
    times = [t * 1000 for t in table["tracking_timestamp_us"]]
    assert samples.times_ns.tolist() == times[: track.count]
    said = codes(folder)
    unended = path.read_bytes()[-1:] != b"\n"
    assert (said in (["truncated"], ["no_line_end", "no_value"])) if unended else not said
    values = columns(track, samples, *COMBINED)
    expected = np.column_stack([table[name][: track.count] for name in COMBINED])
    if "no_line_end" in said:
        expected[-1, -1] = np.nan  # how long it was nobody knows
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_truncated_gzip_gives_the_rows_before(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(3)
    count = 20_000
    numbers = rng.uniform(0, 9, (5, count)).round(6).tolist()
    names = ["px_world", "py_world", "pz_world", "inv_dist_std", "dist_std"]
    table = {
        "uid": range(count),
        "graph_uid": ["g"] * count,
        **dict(zip(names, numbers, strict=True)),
    }
    path = write_table(tmp_path / "slam/semidense_points.csv.gz", table)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    tracks, problems = tracks_of(tmp_path)
    assert [(p.code, p.severe) for p in problems] == [("truncated", True)]
    cloud = tracks["semidense_points"]
    assert isinstance(cloud, PointTrack)
    points = cloud.read().points_m
    assert cloud.count == len(points)
    assert abs(cloud.count - share * count) < 0.1 * count
    np.testing.assert_array_equal(points, np.transpose(numbers[:3])[: cloud.count])


def test_damaged_gzip_is_said(tmp_path: Path) -> None:
    points = {
        "uid": range(5000),
        "graph_uid": ["g"] * 5000,
        **{
            n: np.random.default_rng(k).uniform(size=5000).tolist()
            for k, n in enumerate(["px_world", "py_world", "pz_world", "inv_dist_std", "dist_std"])
        },
    }
    path = write_table(tmp_path / "slam/semidense_points.csv.gz", points)
    data = bytearray(path.read_bytes())
    data[-6] ^= 0xFF  # its checksum
    path.write_bytes(data)
    _, problems = tracks_of(tmp_path)
    assert [p.code for p in problems] == ["unusable"]
    assert "damaged" in problems[0].text


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    path = gaze_file(tmp_path)
    data = path.read_bytes()
    path.write_bytes(gzip.compress(data[:90]) + gzip.compress(data[90:]))
    assert sample_track(tmp_path, "general_eye_gaze").read().times_ns.shape == (6,)
    assert not codes(tmp_path)


def test_line_of_another_length_is_left_out(tmp_path: Path) -> None:
    path = gaze_file(tmp_path)
    lines = path.read_text().splitlines()
    lines[3] += ",1"
    path.write_text("\n".join([*lines, ""]))
    assert codes(tmp_path) == ["bad_rows"]
    assert sample_track(tmp_path, "general_eye_gaze").read().times_ns.shape == (5,)


def test_rows_without_numbers_are_nan_and_said(tmp_path: Path) -> None:
    table = truth(COMBINED, [])
    table["yaw_rads_cpf"][2:4] = ["nan", ""]
    write_table(tmp_path / GAZE, table)
    _, problems = tracks_of(tmp_path)
    assert [p.code for p in problems] == ["no_value"]
    assert "2 of 7" in problems[0].text
    track = sample_track(tmp_path, "general_eye_gaze")
    yaw = column(track, track.read(), "yaw_rads_cpf")
    assert np.flatnonzero(np.isnan(yaw)).tolist() == [2, 3]


def test_row_without_time_is_left_out_and_said(tmp_path: Path) -> None:
    table = truth(COMBINED, [])
    times = list(table["tracking_timestamp_us"])
    table["tracking_timestamp_us"][3] = ""
    write_table(tmp_path / GAZE, table)
    assert codes(tmp_path) == ["no_time"]
    samples = sample_track(tmp_path, "general_eye_gaze").read()
    assert samples.times_ns.tolist() == [t * 1000 for t in times[:3] + times[4:]]


def test_time_that_goes_back_is_said_with_its_size(tmp_path: Path) -> None:
    table = truth(COMBINED, [])
    table["tracking_timestamp_us"][4] -= 2500
    write_table(tmp_path / GAZE, table)
    _, problems = tracks_of(tmp_path)
    assert [(p.code, p.severe) for p in problems] == [("time_goes_back", True)]
    assert "1 times, by up to 1.501 ms" in problems[0].text


def test_text_instead_of_a_time_is_a_problem_and_other_files_stay_usable(tmp_path: Path) -> None:
    table = truth(COMBINED, [])
    write_table(tmp_path / "eye_gaze/personalized_eye_gaze.csv", table)
    table["tracking_timestamp_us"][3] = "soon"
    write_table(tmp_path / GAZE, table)
    tracks, problems = tracks_of(tmp_path)
    assert list(tracks) == ["personalized_eye_gaze"]
    assert [(p.code, p.track) for p in problems] == [("unusable", "general_eye_gaze")]
    assert "soon" in problems[0].text


def test_text_instead_of_a_value_is_refused_when_read(tmp_path: Path) -> None:
    table = truth([*COMBINED, "depth_m"], [])
    table["depth_m"][1] = "far"
    write_table(tmp_path / GAZE, table)
    with pytest.raises(CorruptFileError, match="far"):
        sample_track(tmp_path, "general_eye_gaze").read()


def test_islands_that_were_not_aligned_are_said(tmp_path: Path) -> None:
    name, numbers, texts, check = MADE["closed"]
    table = truth(numbers, texts)
    table["graph_uid"][5:] = ["another", "another"]
    path = write_table(tmp_path / name, table)
    _, problems = tracks_of(tmp_path)
    assert [(p.code, p.severe) for p in problems] == [("several_worlds", True)]
    assert check is not None
    check(tmp_path, path)


def test_mixed_up_hand_columns_are_noticed(tmp_path: Path) -> None:
    name, numbers, _, _ = MADE["wrists, second"]
    table = truth(numbers, [])
    table["right_tracking_confidence"][4] = -0.42  # a normal's component under this heading
    write_table(tmp_path / name, table)
    assert codes(tmp_path) == ["implausible"]


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = gaze_file(tmp_path)
    expected = sample_track(tmp_path, "general_eye_gaze").read()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    samples = sample_track(tmp_path, "general_eye_gaze").read()
    np.testing.assert_array_equal(samples.values, expected.values)
    assert not codes(tmp_path)


def test_calibration_line_cut_off_or_broken(tmp_path: Path) -> None:
    line = json.dumps(
        {
            "tracking_timestamp_us": START_US,
            "utc_timestamp_ns": -1,
            "CameraCalibrations": [],
            "ImuCalibrations": [],
        }
    )
    path = tmp_path / "slam/online_calibration.jsonl"
    path.parent.mkdir()
    path.write_text(f"{line}\nnonsense\n{line}\n{line[:50]}")
    assert codes(tmp_path) == ["truncated", "bad_rows"]
    assert sample_track(tmp_path, "online_calibration").read().times_ns.shape == (2,)
    path.write_text(line.replace("ImuCalibrations", "Imus") + "\n")
    with pytest.raises(MpsSchemaError, match="Imus"):
        mps_tracks(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_file_without_permission(tmp_path: Path) -> None:
    gaze_file(tmp_path).chmod(0)
    with pytest.raises(InputUnreadableError):
        mps_tracks(tmp_path)


def test_files_are_not_changed(tmp_path: Path) -> None:
    path = gaze_file(tmp_path)
    path.chmod(0o444)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    sample_track(tmp_path, "general_eye_gaze").read()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_memory_stays_near_that_of_the_result(tmp_path: Path) -> None:
    import pyarrow as pa

    name, numbers, texts, _ = MADE["open"]
    write_table(tmp_path / name, truth(numbers, texts, 60_000))
    track = sample_track(tmp_path, "open_loop_trajectory")
    size = track.read().values.nbytes
    assert pa.total_allocated_bytes() < size
    assert pa.default_memory_pool().max_memory() < 10 * table_module.BLOCK


# --- summaries ----------------------------------------------------------------------------------


def write_summary(folder: Path, service: str, summary: Any) -> None:
    (folder / service).mkdir(parents=True, exist_ok=True)
    (folder / service / "summary.json").write_text(json.dumps(summary))


def test_failed_service_is_a_problem_in_its_own_words(tmp_path: Path) -> None:
    gaze_file(tmp_path)
    write_summary(tmp_path, "eye_gaze", {"GazeInference": {"status": "SUCCESS", "message": ""}})
    slam = {
        "VRS Health Check": {"status": "SUCCESS", "errors": []},
        "SLAM": {"status": "FAILURE", "errors": ["too dark", "no motion"]},
        "version": "1.2.3",
    }
    write_summary(tmp_path, "slam", slam)
    (problem,) = mps_tracks(tmp_path)[1]
    assert (problem.code, problem.severe) == ("mps_failed", True)
    assert problem.text == "MPS slam: SLAM ended with FAILURE: too dark; no motion"
    assert mps_summary(tmp_path)["slam"] == slam


def test_summary_that_is_no_json(tmp_path: Path) -> None:
    gaze_file(tmp_path)
    (tmp_path / "eye_gaze/summary.json").write_text("{")
    assert codes(tmp_path) == ["mps_summary_unreadable"]
    assert mps_summary(tmp_path) == {}


def test_folder_without_output_says_so(tmp_path: Path) -> None:
    (problem,) = mps_tracks(tmp_path)[1]
    assert problem.code == "mps_empty"
    (tmp_path / "slam.zip").write_bytes(b"PK")
    (problem,) = mps_tracks(tmp_path)[1]
    assert "slam.zip is not unpacked" in problem.text


# --- where MPS output lies -----------------------------------------------------------------------


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def multi_slam(folder: Path, mapping: Mapping[str, Any]) -> Path:
    for number in mapping.values():
        (folder / str(number) / "slam").mkdir(parents=True)
    (folder / "vrs_to_multi_slam.json").write_text(json.dumps(mapping))
    return folder


def test_folder_named_after_the_recording(tmp_path: Path) -> None:
    leader, helper = tmp_path / "leader.vrs", tmp_path / "helper.vrs"
    touch(leader, helper)
    (tmp_path / "mps_leader_vrs/slam").mkdir(parents=True)
    (tmp_path / "mps_helper").mkdir()
    assert find_mps(leader) == (tmp_path / "mps_leader_vrs",)
    assert find_mps(helper) == (tmp_path / "mps_helper",)


def test_one_wearer_has_no_output(tmp_path: Path) -> None:
    leader, helper = tmp_path / "leader.vrs", tmp_path / "helper.vrs"
    touch(leader, helper)
    (tmp_path / "mps_leader_vrs/slam").mkdir(parents=True)
    (tmp_path / "mps/slam").mkdir(parents=True)  # of nobody knows whom
    (tmp_path / "slam").mkdir()
    assert find_mps(helper) == ()
    assert find_mps(leader) == (tmp_path / "mps_leader_vrs",)


def test_mps_beside_the_only_recording(tmp_path: Path) -> None:
    vrs = tmp_path / "recording.vrs"
    touch(vrs)
    (tmp_path / "mps/eye_gaze").mkdir(parents=True)
    assert find_mps(vrs) == (tmp_path / "mps",)
    (tmp_path / "trajectory").mkdir()
    assert find_mps(vrs) == (tmp_path / "mps", tmp_path)


def test_mps_in_the_real_sample_of_a_recording(shared_data: Path) -> None:
    folder = shared_data / EVERYDAY.parent
    assert find_mps(folder / "recording.vrs") == (folder / "mps",)
    assert find_mps(shared_data / GEN2.parent.parent.parent.parent / "none.vrs") == ()


def test_recordings_in_a_folder_of_their_own(tmp_path: Path) -> None:
    vrs = tmp_path / "trimmed_vrs/helper_trimmed.vrs"
    touch(vrs, tmp_path / "trimmed_vrs/leader_trimmed.vrs")
    own = tmp_path / "mps_helper_trimmed_vrs"
    (own / "hand_tracking").mkdir(parents=True)
    multi = multi_slam(
        tmp_path / "multislam_output",
        {
            "0123-id/trimmed_vrs/helper_trimmed.vrs": "7",
            "0123-id/trimmed_vrs/leader_trimmed.vrs": "4",
        },
    )
    assert find_mps(vrs) == (multi / "7", own)
    assert find_mps(tmp_path / "trimmed_vrs/leader_trimmed.vrs") == (multi / "4",)


@pytest.mark.parametrize("where", ["", "multi", "mps/multi"])
@pytest.mark.parametrize("number", ["0", 0])
def test_multi_slam_by_file_name(tmp_path: Path, where: str, number: str | int) -> None:
    vrs = tmp_path / "leader.vrs"
    touch(vrs, tmp_path / "helper.vrs")
    mapping = {"/lab/machine/leader.vrs": number, "/lab/machine/helper.vrs": "1"}
    multi = multi_slam(tmp_path / where, mapping)
    assert find_mps(vrs) == (multi / "0",)
    assert find_mps(tmp_path / "helper.vrs") == (multi / "1",)
    assert find_mps(tmp_path / "third.vrs") == ()


def test_multi_slam_with_paths_of_windows(tmp_path: Path) -> None:
    touch(tmp_path / "leader.vrs")
    multi = multi_slam(tmp_path / "multi", {"C:\\data\\leader.vrs": "0", "C:\\data\\b.vrs": "1"})
    assert find_mps(tmp_path / "leader.vrs") == (multi / "0",)


def test_multi_slam_of_recordings_with_one_name_in_two_folders(tmp_path: Path) -> None:
    first, second = tmp_path / "a/recording.vrs", tmp_path / "b/recording.vrs"
    touch(first, second)
    multi = multi_slam(tmp_path / "multi", {"/x/b/recording.vrs": "0", "/x/a/recording.vrs": "1"})
    (tmp_path / "mps_recording_vrs").mkdir()  # of which of the two?
    assert find_mps(first) == (multi / "1",)
    assert find_mps(second) == (multi / "0",)


def test_multi_slam_that_fits_two_entries_is_left(tmp_path: Path) -> None:
    vrs = tmp_path / "session/recording.vrs"
    touch(vrs)
    multi_slam(tmp_path / "session/multi", {"/x/a/recording.vrs": "0", "/x/b/recording.vrs": "1"})
    assert find_mps(vrs) == ()


def test_multi_slam_of_another_session_is_left(tmp_path: Path) -> None:
    mine, other = tmp_path / "monday/leader.vrs", tmp_path / "tuesday/leader.vrs"
    touch(mine, other)
    multi = multi_slam(tmp_path / "tuesday", {"/x/leader.vrs": "0"})
    (tmp_path / "wednesday").mkdir()
    multi_slam(tmp_path / "wednesday", {"/x/wednesday/leader.vrs": "0"})
    assert find_mps(mine) == ()
    assert find_mps(other) == (multi / "0",)


def test_multi_slam_left_in_doubt_is_told(tmp_path: Path) -> None:
    """The folder was renamed since MPS was asked for: the file's name alone says too little."""
    vrs = tmp_path / "kitchen/leader/abc.vrs"
    touch(vrs)
    multi = multi_slam(tmp_path / "kitchen/multi", {"/x/monday/abc.vrs": "0", "/x/b.vrs": "1"})
    assert find_mps(vrs) == ()
    assert mappings_left(vrs) == (multi / "vrs_to_multi_slam.json",)
    mapping = {"/x/leader/abc.vrs": "0", "/x/b.vrs": "1"}
    (multi / "vrs_to_multi_slam.json").write_text(json.dumps(mapping))
    assert find_mps(vrs) == (multi / "0",)
    assert mappings_left(vrs) == ()
    shutil.rmtree(multi / "0")  # its own, but not there yet
    assert mappings_left(vrs) == ()


def test_multi_slam_folder_that_has_not_arrived(tmp_path: Path) -> None:
    touch(tmp_path / "leader.vrs")
    multi = multi_slam(tmp_path / "multi", {"leader.vrs": "0"})
    shutil.rmtree(multi / "0")
    assert find_mps(tmp_path / "leader.vrs") == ()


@pytest.mark.parametrize("text", ["{", "[1]", '{"leader.vrs": "../elsewhere"}', '{"a": "/"}'])
def test_multi_slam_mapping_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    touch(tmp_path / "leader.vrs", tmp_path / "multi/vrs_to_multi_slam.json")
    (tmp_path / "multi/vrs_to_multi_slam.json").write_text(text)
    with pytest.raises(CorruptFileError) as refused:
        find_mps(tmp_path / "leader.vrs")
    assert refused.value.hint
