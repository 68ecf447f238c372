"""Closed-loop and open-loop trajectories: 1 kHz, with the times of the IMU and of the pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.devices.rhythm import sensor_times_ns
from synorama.simulate.mps.estimate import Estimate, Wander, turn
from synorama.simulate.mps.tables import columns_of
from synorama.simulate.scene.trajectory import Motion
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["closed_loop", "open_loop", "trajectory_times_us"]

NS_PER_US = 1000
BEGIN_US = 700_000  # the services are sure of nothing in the first moments
UNSURE_ROWS = 101  # with half the quality, at the start
VELOCITY_SIGMA_M_S, TURNING_SIGMA_RAD_S = 0.004, 0.003
GRAVITY_M_S2 = (0.0, 0.0, -9.81)
NO_PLACE_ON_EARTH = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}

YAW_DRIFT_RAD_S = np.deg2rad(0.8) / 60.0
SCALE_SIGMA = 0.004
ODOMETRY_SIGMA = (0.003, 0.003, 0.002)  # m/s, of the slow error of velocity


def trajectory_times_us(estimate: Estimate, frames_ns: Int64) -> Int64:
    """Return the device times [us] at which poses are given: of the IMU and of each picture."""
    measured = sensor_times_ns(estimate.glasses, "imu-right") // NS_PER_US
    grid = measured[measured >= measured[0] + BEGIN_US]
    pictures = frames_ns // NS_PER_US
    pictures = pictures[(pictures > grid[0]) & (pictures < grid[-1])]
    return np.unique(np.concatenate([grid, pictures]))


def closed_loop(estimate: Estimate, times_us: Int64, graph_uid: str) -> dict[str, Any]:
    """Return the columns of ``closed_loop_trajectory.csv``."""
    motion = estimate.motion(times_us * NS_PER_US)
    pose = estimate.seen(motion.matrix, times_us * NS_PER_US)
    velocity = np.einsum("nji,nj->ni", motion.rotation, motion.velocity_m_s)
    rng = estimate.glasses.random("mps closed loop")
    velocity += VELOCITY_SIGMA_M_S * rng.standard_normal(velocity.shape)
    return {
        "graph_uid": graph_uid,
        "tracking_timestamp_us": times_us,
        "utc_timestamp_ns": _utc_ns(estimate, times_us),
        **_pose_columns("world", pose),
        **columns_of("device_linear_velocity_{}_device", velocity, 6),
        **_turning(estimate, motion),
        **_gravity("world", len(times_us)),
        "quality_score": _quality(len(times_us)),
        "geo_available": np.zeros(len(times_us), np.int64),
        **{
            f"{'q' if part == 'q' else 't'}{axis}_ecef_device": np.full(len(times_us), value)
            for part in ("t", "q")
            for axis, value in NO_PLACE_ON_EARTH.items()
            if part == "q" or axis != "w"
        },
    }


def open_loop(estimate: Estimate, times_us: Int64) -> dict[str, Any]:
    """Return the columns of ``open_loop_trajectory.csv``: odometry, which drifts away."""
    motion = estimate.motion(times_us * NS_PER_US)
    pose, velocity = _odometry(estimate, motion, times_us)
    return {
        "tracking_timestamp_us": times_us,
        "utc_timestamp_ns": _utc_ns(estimate, times_us),
        "session_uid": estimate.glasses.uuid("odometry"),
        **_pose_columns("odometry", pose),
        **columns_of("device_linear_velocity_{}_odometry", velocity, 6),
        **_turning(estimate, motion),
        **_gravity("odometry", len(times_us)),
        "quality_score": _quality(len(times_us)),
    }


def _odometry(estimate: Estimate, motion: Motion, times_us: Int64) -> tuple[Float64, Float64]:
    """Return poses ``(N, 4, 4)`` and velocities ``(N, 3)``: an integral of velocity with errors."""
    rng = estimate.glasses.random("mps odometry")
    seconds = (times_us - times_us[0]) / 1e6
    yaw = rng.uniform(-np.pi, np.pi) + rng.normal(0, YAW_DRIFT_RAD_S) * seconds
    to_odometry = turn(np.outer(yaw, (0.0, 0.0, 1.0)))
    true = motion.velocity_m_s * (1.0 + rng.normal(0, SCALE_SIGMA))
    true += Wander.draw(rng, ODOMETRY_SIGMA)(seconds)
    velocity = np.einsum("nij,nj->ni", to_odometry, true)
    middle = (velocity[1:] + velocity[:-1]) / 2
    pose = np.tile(np.eye(4), (len(seconds), 1, 1))
    pose[:, :3, :3] = to_odometry @ motion.rotation
    pose[1:, :3, 3] = np.cumsum(middle * np.diff(seconds)[:, np.newaxis], axis=0)
    return pose, velocity


def _pose_columns(frame: str, pose: Float64) -> dict[str, Any]:
    from scipy.spatial.transform import Rotation

    xyzw = Rotation.from_matrix(pose[:, :3, :3]).as_quat(canonical=True)
    return {
        **columns_of(f"t{{}}_{frame}_device", pose[:, :3, 3], 6),
        **columns_of(f"q{{}}_{frame}_device", np.roll(xyzw, 1, axis=1), 9),
    }


def _turning(estimate: Estimate, motion: Motion) -> dict[str, Any]:
    rng = estimate.glasses.random("mps turning")
    omega = motion.angular_velocity_rad_s
    noisy = omega + TURNING_SIGMA_RAD_S * rng.standard_normal(omega.shape)
    return columns_of("angular_velocity_{}_device", noisy, 6)


def _gravity(frame: str, count: int) -> dict[str, Any]:
    return columns_of(f"gravity_{{}}_{frame}", np.tile(GRAVITY_M_S2, (count, 1)), 6)


def _quality(count: int) -> Float64:
    return np.where(np.arange(count) < UNSURE_ROWS, 0.5, 1.0)


def _utc_ns(estimate: Estimate, times_us: Int64) -> Int64:
    """Return wall-clock times as the glasses' own clock, set at the start, tells them."""
    glasses = estimate.glasses
    since = times_us * NS_PER_US - glasses.start_ns
    return np.asarray(glasses.start_epoch_s * NS_PER_S + since, np.int64)
