"""Services' output: read by the vendor's reader and by our own, and compared with the truth."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from projectaria_tools.core import mps
from projectaria_tools.core.mps import hand_tracking

from synorama.capture.mps import find_mps, mps_tracks
from synorama.records import PointTrack, Track
from synorama.simulate.devices.aria_streams import times_ns
from synorama.simulate.mps import MpsOptions, MpsTruth, write_mps
from synorama.simulate.mps.calibration import cameras_of
from tests.simulate.lab import CALIBRATION, distance_m, lab

POINTS = 6000
Float64 = NDArray[np.float64]


def _write(folder: Path, options: MpsOptions) -> dict[str, MpsTruth]:
    for worn in lab().worn:
        (folder / worn.vrs.parent).mkdir(parents=True)
        (folder / worn.vrs).write_bytes(b"")
    return write_mps(folder, lab().worn, lab().session, options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, MpsTruth]]:
    folder = tmp_path_factory.mktemp("mps")
    return folder, _write(folder, MpsOptions(points=POINTS))


Written = tuple[Path, dict[str, MpsTruth]]
NAMES = ("leader", "helper")


def _slam(written: Written, name: str) -> Path:
    return written[0] / written[1][name].folders[0] / "slam"


def _us(times: list[Any]) -> NDArray[np.int64]:
    """Times of the vendor's reader, which are timedeltas, in microseconds."""
    return np.array([(t.days * 86400 + t.seconds) * 10**6 + t.microseconds for t in times])


def _truth(name: str, device_us: NDArray[np.int64]) -> Float64:
    """True poses in the room, asked for without the writer's code."""
    worn = lab().worn[NAMES.index(name)]
    return worn.wearer.device.pose(worn.glasses.clock.apply(device_us * 1000))


# --- trajectories ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_closed_loop_is_the_truth_with_a_small_slow_error(written: Written, name: str) -> None:
    rows = mps.read_closed_loop_trajectory(str(_slam(written, name) / "closed_loop_trajectory.csv"))
    us = _us([row.tracking_timestamp for row in rows])
    told = np.array([row.transform_world_device.to_matrix() for row in rows])
    true = written[1][name].mps_world.matrix @ _truth(name, us)
    error = np.linalg.norm(told[:, :3, 3] - true[:, :3, 3], axis=1)
    turned = np.swapaxes(told[:, :3, :3], 1, 2) @ true[:, :3, :3]
    angle = np.degrees(np.arccos(np.clip((np.trace(turned, axis1=1, axis2=2) - 1) / 2, -1, 1)))
    assert 0.0005 < np.sqrt((error**2).mean()) < 0.015
    assert 0.005 < np.sqrt((angle**2).mean()) < 0.4
    assert np.abs(np.diff(error)).max() < 1e-4  # slow: no jump within a millisecond


@pytest.mark.parametrize("name", NAMES)
def test_velocities_are_those_of_the_poses(written: Written, name: str) -> None:
    rows = mps.read_closed_loop_trajectory(str(_slam(written, name) / "closed_loop_trajectory.csv"))
    us = _us([row.tracking_timestamp for row in rows])[::50]
    rows = rows[::50]
    place = np.array([row.transform_world_device.translation()[0] for row in rows])
    turn = np.array([row.transform_world_device.rotation().to_matrix() for row in rows])
    speed = np.gradient(place, us / 1e6, axis=0)
    told = np.array([row.device_linear_velocity_device for row in rows])
    assert np.abs(np.einsum("nij,nj->ni", turn, told) - speed)[1:-1].max() < 0.08


@pytest.mark.parametrize("name", NAMES)
def test_rows_come_a_thousand_times_a_second_and_with_each_picture(
    written: Written, name: str
) -> None:
    rows = mps.read_closed_loop_trajectory(str(_slam(written, name) / "closed_loop_trajectory.csv"))
    us = _us([row.tracking_timestamp for row in rows])
    assert (np.diff(us) > 0).all()
    assert 1000 < (len(us) - 1) / np.ptp(us) * 1e6 < 1020
    pictures = times_ns(lab().worn[NAMES.index(name)].glasses, "slam-left", 10.0, 0.0) // 1000
    inside = pictures[(pictures > us[0]) & (pictures < us[-1])]
    assert np.isin(inside, us).all()


@pytest.mark.parametrize("name", NAMES)
def test_open_loop_drifts_away_and_starts_at_its_own_origin(written: Written, name: str) -> None:
    rows = mps.read_open_loop_trajectory(str(_slam(written, name) / "open_loop_trajectory.csv"))
    us = _us([row.tracking_timestamp for row in rows])
    pose = np.array([row.transform_odometry_device.to_matrix() for row in rows])
    true = _truth(name, us)
    assert np.allclose(pose[0, :3, 3], 0)
    begin = pose[0] @ np.linalg.inv(true[0])  # T_odometry_world at the start
    gap = np.linalg.norm((begin @ true - pose)[:, :3, 3], axis=1)
    assert gap[: len(gap) // 20].max() < 0.01
    assert 0.003 < gap.max() < 0.3


def test_wearers_share_a_frame_or_each_has_its_own(written: Written, tmp_path: Path) -> None:
    shared = written[1]
    assert shared["leader"].graph_uid == shared["helper"].graph_uid
    assert np.array_equal(shared["leader"].mps_world.matrix, shared["helper"].mps_world.matrix)
    own = _write(tmp_path, MpsOptions(frames="own", points=200))
    assert own["leader"].graph_uid != own["helper"].graph_uid
    apart = own["leader"].mps_world.matrix @ np.linalg.inv(own["helper"].mps_world.matrix)
    assert np.linalg.norm(apart[:3, 3]) > 0.1
    assert np.allclose(apart[2, :3], [0, 0, 1])  # both stand upright
    for worn in lab().worn:
        (folder,) = find_mps(tmp_path / worn.vrs)
        assert {t.name for t in mps_tracks(folder)[0]} >= {
            "closed_loop_trajectory",
            "hand_tracking_results",
        }


# --- points ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_points_lie_on_the_room_as_well_as_their_sigma_says(written: Written, name: str) -> None:
    points = mps.read_global_point_cloud(str(_slam(written, name) / "semidense_points.csv.gz"))
    truth = written[1][name]
    assert truth.points is not None
    assert len(points) == len(truth.points.uid) == POINTS
    assert [p.uid for p in points] == truth.points.uid.tolist()
    assert {p.graph_uid for p in points} == {truth.graph_uid}
    told = np.array([p.position_world for p in points])
    sigma = np.array([p.distance_std for p in points])
    true = truth.mps_world.apply(truth.points.true_m, frame="world")
    error = np.linalg.norm(told - true, axis=1)
    near = ~truth.points.far & (sigma > 0.01)
    assert 0.5 < np.median(error[near] / sigma[near]) < 2.0
    sure = ~truth.points.far & (sigma < 0.003)
    assert np.median(error[sure]) < 0.012


def test_few_points_are_far_outside_the_room(written: Written) -> None:
    points = mps.read_global_point_cloud(str(_slam(written, "leader") / "semidense_points.csv.gz"))
    place = np.array([p.position_world for p in points])
    away = np.linalg.norm(place - np.median(place, axis=0), axis=1)
    assert 0.008 < (away > 10).mean() < 0.03
    assert away.max() > 40


def test_true_points_are_on_surfaces_of_the_session_not_of_the_scan(written: Written) -> None:
    points = written[1]["leader"].points
    assert points is not None
    assert distance_m(points.true_m, "session").max() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_observations_are_pixels_of_the_true_points(written: Written, name: str) -> None:
    rows = mps.read_point_observations(str(_slam(written, name) / "semidense_observations.csv.gz"))
    truth = written[1][name]
    assert truth.points is not None
    cameras = {f"SIM-{c.name}": c for c in cameras_of(CALIBRATION)}
    place = dict(zip(truth.points.uid.tolist(), truth.points.true_m, strict=True))
    rows = rows[:: max(1, len(rows) // 500)]
    pose = _truth(name, _us([row.frame_capture_timestamp for row in rows]))
    off = []
    for row, device in zip(rows, pose, strict=True):
        camera = cameras[row.camera_serial]
        local = np.linalg.inv(device @ camera.device_camera) @ [*place[row.point_uid], 1.0]
        pixel, seen = camera.lens.project(local[:3])
        assert seen
        off.append(pixel - row.uv)
    assert 0.2 < np.std(off) < 0.5
    assert np.abs(np.mean(off, axis=0)).max() < 0.1


# --- gaze, hands, calibration ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gaze_is_right_to_a_degree_or_two(written: Written, name: str) -> None:
    folder = written[0] / written[1][name].folders[1]
    rows = mps.read_eyegaze(str(folder / "eye_gaze" / "general_eye_gaze.csv"))
    worn = lab().worn[NAMES.index(name)]
    us = _us([row.tracking_timestamp for row in rows])
    true, depth = worn.wearer.gaze(worn.glasses.clock.apply(us * 1000))
    told = np.array([mps.get_unit_vector_from_yaw_pitch(r.yaw, r.pitch).ravel() for r in rows])
    angle = np.degrees(np.arccos(np.clip((told * true).sum(axis=1), -1, 1)))
    assert 0.2 < np.median(angle) < 4.0
    assert np.median(np.abs(np.log([row.depth for row in rows] / depth))) < 0.7
    eyes = [row.vergence for row in rows]
    assert all(eye.left_yaw_low < eye.left_yaw < eye.left_yaw_high for eye in eyes)


@pytest.mark.parametrize("name", NAMES)
def test_hands_are_where_they_were(written: Written, name: str) -> None:
    folder = written[0] / written[1][name].folders[1] / "hand_tracking"
    rows = hand_tracking.read_hand_tracking_results(str(folder / "hand_tracking_results.csv"))
    worn = lab().worn[NAMES.index(name)]
    us = _us([row.tracking_timestamp for row in rows])
    true = worn.wearer.hands_m(worn.glasses.clock.apply(us * 1000))
    pose = np.linalg.inv(_truth(name, us))
    seen = 0
    for row, hands, device_world in zip(rows, true, pose, strict=True):
        for hand, (wrist, palm) in zip((row.left_hand, row.right_hand), hands, strict=True):
            if hand is None:
                continue
            seen += 1
            for told, place in ((5, wrist), (20, palm)):
                local = (device_world @ [*place, 1.0])[:3]
                assert np.linalg.norm(hand.landmark_positions_device[told] - local) < 0.025
            normal = hand.wrist_and_palm_normal_device.palm_normal_device
            assert np.isclose(np.linalg.norm(normal), 1.0)
    assert 0 < seen < 2 * len(rows)


def test_thumbs_point_to_each_other_when_palms_face_down(written: Written) -> None:
    folder = written[0] / written[1]["leader"].folders[1] / "hand_tracking"
    rows = hand_tracking.read_hand_tracking_results(str(folder / "hand_tracking_results.csv"))
    both = [row for row in rows if row.left_hand and row.right_hand]
    assert both
    for row in both:
        left = np.array(row.left_hand.landmark_positions_device)
        right = np.array(row.right_hand.landmark_positions_device)
        thumbs = np.linalg.norm(left[0] - right[0])
        pinkies = np.linalg.norm(left[4] - right[4])
        assert thumbs < pinkies


def test_online_calibration_is_near_the_factory(written: Written) -> None:
    path = _slam(written, "leader") / "online_calibration.jsonl"
    rows = mps.read_online_calibration(str(path))
    assert len(rows) == pytest.approx(73, abs=2)
    factory = cameras_of(CALIBRATION)
    for camera, told in zip(factory, rows[10].camera_calibs, strict=False):
        pixel = told.project_no_checks(np.array([0.3, -0.2, 1.0]))
        assert 0 < np.linalg.norm(pixel - camera.lens.project([0.3, -0.2, 1.0])[0]) < 0.5
    assert rows[0].camera_calibs[2].get_image_size().tolist() == [2880, 2880]


# --- the folder ------------------------------------------------------------------------------


def test_our_reader_finds_all_of_it_without_a_complaint(written: Written) -> None:
    folder, truths = written
    for worn in lab().worn:
        found = find_mps(folder / worn.vrs)
        assert [f.relative_to(folder) for f in found] == list(truths[worn.glasses.name].folders)
        tracks: dict[str, Track] = {}
        for place in found:
            read, problems = mps_tracks(place)
            assert problems == ()
            tracks |= {track.name: track for track in read}
        assert set(tracks) == {
            "closed_loop_trajectory", "open_loop_trajectory", "semidense_points",
            "semidense_observations", "online_calibration", "general_eye_gaze",
            "wrist_and_palm_poses", "hand_tracking_results",
        }  # fmt: skip
        cloud = tracks["semidense_points"]
        assert isinstance(cloud, PointTrack)
        assert cloud.count == POINTS


def test_one_wearer_may_have_no_trajectory(tmp_path: Path) -> None:
    truths = _write(tmp_path, MpsOptions(missing=("helper",), points=200))
    assert truths["helper"].points is None
    (folder,) = find_mps(tmp_path / lab().worn[1].vrs)
    names = {track.name for track in mps_tracks(folder)[0]}
    assert names == {"general_eye_gaze", "wrist_and_palm_poses", "hand_tracking_results"}
    assert len(find_mps(tmp_path / lab().worn[0].vrs)) == 2


def test_the_same_seed_gives_the_same_bytes(written: Written, tmp_path: Path) -> None:
    _write(tmp_path, MpsOptions(points=POINTS))
    assert _digests(tmp_path) == _digests(written[0])


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.*"))
        if path.is_file()
    }
