"""Smooth motion of a rigid body, with exact derivatives: a simulated IMU agrees with the pose.

Position and three angles are splines of fifth degree, so that velocity, acceleration and angular
acceleration are smooth as well. Whatever is fixed to the body (a camera, an IMU, a microphone) has
a trajectory of its own: `Trajectory.attached`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["GRAVITY_M_S2", "Motion", "Track", "Trajectory"]

GRAVITY_M_S2 = np.array([0.0, 0.0, -9.81])
HEAD_AXES = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
"""Axes of the head (x left, y up, z ahead) in a body that has x ahead, y left, z up."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """A smooth vector function of session time.

    Parameters
    ----------
    start_ns
        Session time of second 0 of the spline.
    spline
        ``scipy.interpolate.BSpline`` over seconds since `start_ns`.
    """

    start_ns: int
    spline: Any

    @classmethod
    def through(
        cls, start_ns: int, step_s: float, first_s: float, values: Float64, *, degree: int = 5
    ) -> Track:
        """Return the spline through values ``(N, k)``, evenly spaced from second `first_s` on."""
        from scipy.interpolate import make_interp_spline

        seconds = first_s + step_s * np.arange(len(values))
        return cls(start_ns, make_interp_spline(seconds, values, k=degree))

    def __call__(self, t_ns: ArrayLike, order: int = 0) -> Float64:
        """Return values ``(..., k)``, or their derivatives per second, at session times [ns].

        Raises
        ------
        ValueError
            A time lies outside the time that was planned.
        """
        seconds = (np.asarray(t_ns, np.int64) - self.start_ns) / NS_PER_S
        first, last = self.spline.t[0], self.spline.t[-1]
        if seconds.size and not (first <= seconds.min() and seconds.max() <= last):
            raise ValueError(f"motion is known from {first} s to {last} s of the session only")
        return np.asarray(self.spline(seconds, nu=order), np.float64)


@dataclass(frozen=True, eq=False)
class Motion:
    """Where a body was at N times, and how it moved.

    Parameters
    ----------
    position_m, velocity_m_s, acceleration_m_s2
        ``(N, 3)`` in frame ``world``.
    rotation
        ``(N, 3, 3)``, from the body's frame to ``world``.
    angular_velocity_rad_s, angular_acceleration_rad_s2
        ``(N, 3)`` in the body's frame.
    """

    position_m: Float64
    velocity_m_s: Float64
    acceleration_m_s2: Float64
    rotation: Float64
    angular_velocity_rad_s: Float64
    angular_acceleration_rad_s2: Float64

    @cached_property
    def matrix(self) -> Float64:
        """``(N, 4, 4)`` poses ``T_world_body``."""
        whole = np.zeros((len(self.position_m), 4, 4))
        whole[:, :3, :3], whole[:, :3, 3], whole[:, 3, 3] = self.rotation, self.position_m, 1.0
        return whole

    @property
    def quat_wxyz(self) -> Float64:
        """``(N, 4)`` unit quaternions (w, x, y, z), w >= 0."""
        from scipy.spatial.transform import Rotation

        xyzw = Rotation.from_matrix(self.rotation).as_quat(canonical=True)
        return np.asarray(np.roll(xyzw, 1, axis=1), np.float64)

    @property
    def specific_force_m_s2(self) -> Float64:
        """``(N, 3)`` what an ideal accelerometer in the body's frame shows: acceleration less g."""
        force = self.acceleration_m_s2 - GRAVITY_M_S2
        return np.asarray(np.einsum("nji,nj->ni", self.rotation, force), np.float64)

    def attached(self, body_part: ArrayLike) -> Motion:
        """Return the motion of a part whose pose on the body ``(4, 4)`` is fixed."""
        matrix = np.asarray(body_part, np.float64)
        turn, arm = matrix[:3, :3], matrix[:3, 3]
        omega, alpha = self.angular_velocity_rad_s, self.angular_acceleration_rad_s2
        swing = np.cross(omega, arm)
        pull = np.cross(alpha, arm) + np.cross(omega, swing)
        return Motion(
            self.position_m + self.rotation @ arm,
            self.velocity_m_s + np.einsum("nij,nj->ni", self.rotation, swing),
            self.acceleration_m_s2 + np.einsum("nij,nj->ni", self.rotation, pull),
            self.rotation @ turn,
            omega @ turn,
            alpha @ turn,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Pose of a body at any session time.

    Parameters
    ----------
    track
        x, y, z [m] and yaw, pitch (nose down), roll [rad] of the head.
    head_body
        ``(4, 4)`` fixed pose of the body on the head.
    """

    track: Track
    head_body: Float64

    def __call__(self, t_ns: ArrayLike) -> Motion:
        """Return the motion at session times ``(N,)`` [ns]."""
        times = np.atleast_1d(np.asarray(t_ns, np.int64))
        value, first, second = (self.track(times, order) for order in (0, 1, 2))
        omega, alpha = _turning(value[:, 3:], first[:, 3:], second[:, 3:])
        head = Motion(
            value[:, :3],
            first[:, :3],
            second[:, :3],
            _rotations(value[:, 3:]) @ HEAD_AXES,
            omega @ HEAD_AXES,
            alpha @ HEAD_AXES,
        )
        return head.attached(self.head_body)

    def pose(self, t_ns: ArrayLike) -> Float64:
        """Return poses ``(N, 4, 4)`` ``T_world_body`` alone, which costs less."""
        times = np.atleast_1d(np.asarray(t_ns, np.int64))
        value = self.track(times)
        whole = np.zeros((len(times), 4, 4))
        whole[:, :3, :3] = _rotations(value[:, 3:]) @ HEAD_AXES
        whole[:, :3, 3], whole[:, 3, 3] = value[:, :3], 1.0
        return np.asarray(whole @ self.head_body, np.float64)

    def attached(self, body_part: ArrayLike) -> Trajectory:
        """Return the trajectory of a part whose pose on this body ``(4, 4)`` is fixed."""
        return replace(self, head_body=self.head_body @ np.asarray(body_part, np.float64))


def _rotations(angles: Float64) -> Float64:
    """Return ``(N, 3, 3)`` rotations Rz(yaw) Ry(pitch) Rx(roll)."""
    (cy, cp, cr), (sy, sp, sr) = np.cos(angles).T, np.sin(angles).T
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def _turning(angles: Float64, first: Float64, second: Float64) -> tuple[Float64, Float64]:
    """Return angular velocity and acceleration in the body, ``(N, 3)``, from yaw, pitch, roll."""
    _, pitch, roll = angles.T
    (dy, dp, dr), (ddy, ddp, ddr) = first.T, second.T
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    omega = np.array([dr - dy * sp, dp * cr + dy * cp * sr, dy * cp * cr - dp * sr])
    level, level_rate = dy * cp, ddy * cp - dy * sp * dp  # yaw rate about the body's upright plane
    alpha = np.array(
        [
            ddr - ddy * sp - dy * cp * dp,
            ddp * cr - dp * sr * dr + level_rate * sr + level * cr * dr,
            -ddp * sr - dp * cr * dr + level_rate * cr - level * sr * dr,
        ]
    )
    return omega.T, alpha.T
