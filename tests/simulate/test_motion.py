"""Motion: derivatives that agree with the pose, people who neither collide nor fly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt
from scipy.spatial.transform import Rotation

from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import DEVICE_CPF, MICROPHONES_CPF_M, Wearer, plan_motion
from synorama.simulate.scene.room import KINDS, Kind, Room
from synorama.simulate.scene.trajectory import GRAVITY_M_S2

START_NS = 7_000_000_000_123
SECONDS = 40.0
S = 1_000_000_000

Pair = tuple[Wearer, Wearer]


@pytest.fixture(scope="module", params=KINDS)
def played(request: pytest.FixtureRequest) -> tuple[Room, Pair]:
    kind: Kind = request.param
    room = build_room(2, kind)
    return room, plan_motion(room, 9, start_ns=START_NS, seconds=SECONDS)


@pytest.fixture(scope="module")
def pair() -> Pair:
    room = build_room(1, "kitchen")
    return plan_motion(room, 3, start_ns=START_NS, seconds=SECONDS)


def _times(step_ns: int = 10_000_000) -> np.ndarray:
    return START_NS + np.arange(0, round(SECONDS * S), step_ns)


def test_derivatives_agree_with_the_pose(pair: Pair) -> None:
    imu = pair[0].device.attached(_some_pose())
    step_ns, t_ns = 1_000_000, _times(137_000_000)
    step = 2 * step_ns / S
    before, now, after = (imu(t_ns + k) for k in (-step_ns, 0, step_ns))
    speed = (after.position_m - before.position_m) / step
    assert np.abs(speed - now.velocity_m_s).max() < 1e-4
    pull = (after.velocity_m_s - before.velocity_m_s) / step
    assert np.abs(pull - now.acceleration_m_s2).max() < 1e-3
    turned = np.swapaxes(before.rotation, 1, 2) @ after.rotation
    omega = Rotation.from_matrix(turned).as_rotvec() / step
    assert np.abs(omega - now.angular_velocity_rad_s).max() < 1e-3
    spin = (after.angular_velocity_rad_s - before.angular_velocity_rad_s) / step
    assert np.abs(spin - now.angular_acceleration_rad_s2).max() < 5e-3


def _some_pose() -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec([0.3, -1.2, 0.4]).as_matrix()
    matrix[:3, 3] = (0.05, -0.1, 0.03)
    return matrix


def test_integrated_imu_returns_to_the_pose(pair: Pair) -> None:
    """Dead reckoning of gyroscope and accelerometer follows the truth for two seconds."""
    t_ns = START_NS + 8 * S + np.arange(0, 2 * S, 500_000)
    truth = pair[1].device(t_ns)
    rotation, velocity, position = truth.rotation[0], truth.velocity_m_s[0], truth.position_m[0]
    dt = 500_000 / S
    for k in range(len(t_ns) - 1):
        rate = (truth.angular_velocity_rad_s[k] + truth.angular_velocity_rad_s[k + 1]) / 2
        turned = rotation @ Rotation.from_rotvec(rate * dt).as_matrix()
        force = rotation @ truth.specific_force_m_s2[k] + turned @ truth.specific_force_m_s2[k + 1]
        pull = force / 2 + GRAVITY_M_S2
        position = position + velocity * dt + pull * dt**2 / 2
        velocity, rotation = velocity + pull * dt, turned
    assert np.abs(position - truth.position_m[-1]).max() < 1e-4
    assert np.abs(rotation - truth.rotation[-1]).max() < 1e-5


def test_pose_and_motion_agree(pair: Pair) -> None:
    t_ns = _times(S)
    motion = pair[0].device(t_ns)
    assert np.allclose(pair[0].device.pose(t_ns), motion.matrix, atol=1e-12)
    xyzw = Rotation.from_matrix(motion.rotation).as_quat(canonical=True)
    assert np.allclose(motion.quat_wxyz[:, 1:], xyzw[:, :3])
    gravity_seen = motion.specific_force_m_s2.mean(axis=0)
    assert np.linalg.norm(gravity_seen) > 5.0


def test_points_fixed_to_the_head(pair: Pair) -> None:
    t_ns = _times(S)
    places = pair[0].places_m(t_ns, MICROPHONES_CPF_M)
    part = np.eye(4)
    part[:3, 3] = MICROPHONES_CPF_M[4]
    assert places.shape == (len(t_ns), 7, 3)
    assert np.allclose(places[:, 4], pair[0].head.attached(part)(t_ns).position_m, atol=1e-12)


def test_moves_like_a_person(played: tuple[Room, Pair]) -> None:
    room, people = played
    for person in people:
        motion = person.head(_times())
        speed = np.linalg.norm(motion.velocity_m_s[:, :2], axis=1)
        turning = np.rad2deg(np.linalg.norm(motion.angular_velocity_rad_s, axis=1))
        assert speed.max() < 1.3
        assert np.percentile(turning, 95) < 200
        assert turning.max() < 320
        assert np.linalg.norm(motion.acceleration_m_s2, axis=1).max() < 8
        height = motion.position_m[:, 2]
        assert height.min() > 1.0
        assert height.max() < 1.8
        assert (np.abs(motion.position_m[:, :2]) < np.array(room.size_m[:2]) / 2).all()


def test_people_stay_apart_and_off_the_furniture(played: tuple[Room, Pair]) -> None:
    room, (first, second) = played
    t_ns = _times(50_000_000)
    gap = first.head(t_ns).position_m - second.head(t_ns).position_m
    assert np.linalg.norm(gap, axis=1).min() > 0.5
    floor = room.floor()
    clear = distance_transform_edt(np.pad(floor.free, 1))[1:-1, 1:-1] * floor.cell_m
    for person in (first, second):
        place = person.body(t_ns)[:, :2]
        chairs = np.array([seat.xy_m for seat in room.seats]).reshape(-1, 1, 2)
        at_chair = (np.linalg.norm(place - chairs, axis=2) < 0.65).any(axis=0)
        cell = np.rint((place - floor.origin_m) / floor.cell_m).astype(int)
        assert clear[tuple(cell[~at_chair].T)].min() > 0.15


def test_everybody_does_several_things(played: tuple[Room, Pair]) -> None:
    for person in played[1]:
        acts = [act for act in person.acts if act.end_s > 0 and act.start_s < SECONDS]
        assert len({act.doing for act in acts}) >= 2
        for before, after in pairwise(acts):
            assert after.start_s == pytest.approx(before.end_s)


def test_gaze_meets_its_target(pair: Pair) -> None:
    """Where the target lies within reach of the eyes, gaze and depth lead to it."""
    person, t_ns = pair[0], _times(50_000_000)
    gaze, depth = person.gaze(t_ns)
    assert np.allclose(np.linalg.norm(gaze, axis=1), 1.0)
    off_axis = np.arccos(gaze[:, 2])
    pose = person.head.pose(t_ns)
    there = pose[:, :3, 3] + np.einsum("nij,nj->ni", pose[:, :3, :3], gaze * depth[:, np.newaxis])
    free = off_axis < np.deg2rad(37.5)
    assert free.mean() > 0.85
    assert np.abs(there - person.gaze_target(t_ns))[free].max() < 1e-9
    assert np.percentile(np.rad2deg(off_axis), 50) < 20


def test_looks_at_the_other_face(pair: Pair) -> None:
    t_ns = _times(50_000_000)
    near = np.linalg.norm(pair[0].gaze_target(t_ns) - pair[1].head(t_ns).position_m, axis=1) < 0.2
    assert near.any()


def test_hands_are_within_reach(pair: Pair) -> None:
    person, t_ns = pair[0], _times(50_000_000)
    hands = person.hands_m(t_ns)
    away = np.linalg.norm(hands[:, :, 0] - person.head(t_ns).position_m[:, np.newaxis], axis=2)
    assert away.max() < 1.0
    palm = np.linalg.norm(hands[:, :, 1] - hands[:, :, 0], axis=2)
    assert palm.max() < 0.12


def test_same_seed_same_motion() -> None:
    room = build_room(1, "kitchen")
    poses = [
        plan_motion(room, seed, start_ns=START_NS, seconds=10.0)[0].head.pose(START_NS + 5 * S)
        for seed in (4, 4, 5)
    ]
    assert np.array_equal(poses[0], poses[1])
    assert not np.array_equal(poses[0], poses[2])


def test_refuses_times_that_were_not_planned(pair: Pair) -> None:
    with pytest.raises(ValueError, match="motion is known"):
        pair[0].head(START_NS - 60 * S)


def test_geometry_of_the_glasses_is_the_vendors() -> None:
    calibration = pytest.importorskip("projectaria_tools.core.calibration")
    from synorama.simulate.devices.aria_calibration import GEN1, calibration_json

    device = calibration.device_calibration_from_json_string(calibration_json(GEN1, "S", {}))
    pose = device.get_transform_device_cpf().to_matrix()
    assert np.abs(pose - DEVICE_CPF).max() < 1e-6
    for k, place in enumerate(MICROPHONES_CPF_M):
        drawn = device.get_transform_device_sensor(f"mic{k}", True).to_matrix()
        assert np.abs((np.linalg.inv(pose) @ drawn)[:3, 3] - place).max() < 1e-4
