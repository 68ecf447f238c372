"""What the services believe of where the glasses were: the truth with a slow, small error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.scene.motion import Wearer
from synorama.simulate.scene.trajectory import Motion
from synorama.timebase import NS_PER_S
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["CLOSED_SIGMA", "Estimate", "Wander", "turn"]

CLOSED_SIGMA = (0.003, 0.003, 0.002, 6e-4, 6e-4, 1.2e-3)
"""One sigma of the error of a closed-loop pose: x, y, z [m], about x, y, z [rad]."""

WAVES = 6
PERIODS_S = (7.0, 70.0)


@dataclass(frozen=True, slots=True, eq=False)
class Wander:
    """A slow random function of time: waves of several periods.

    Parameters
    ----------
    frequency_rad_s, phase_rad
        ``(WAVES, k)``.
    amplitude
        ``(k,)`` of each wave.
    """

    frequency_rad_s: Float64
    phase_rad: Float64
    amplitude: Float64

    @classmethod
    def draw(cls, rng: np.random.Generator, sigma: Sequence[float]) -> Wander:
        """Return a function whose columns have these standard deviations over long times."""
        size = (WAVES, len(sigma))
        shortest, longest = np.log(PERIODS_S)
        period = np.exp(rng.uniform(shortest, longest, size))
        scale = np.asarray(sigma) * np.sqrt(2.0 / WAVES)
        return cls(2 * np.pi / period, rng.uniform(0, 2 * np.pi, size), scale)

    def __call__(self, seconds: Float64) -> Float64:
        """Return values ``(N, k)``."""
        angle = seconds[:, np.newaxis, np.newaxis] * self.frequency_rad_s + self.phase_rad
        return np.asarray(np.sin(angle).sum(axis=1) * self.amplitude, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """One wearer's glasses, as they were and as the services believe.

    Parameters
    ----------
    glasses, wearer
        Which glasses, and who wore them.
    mps_world
        ``T_FRAME_world``: from the room to the frame in which the services give poses.
    error
        Six columns as in `CLOSED_SIGMA`.
    """

    glasses: Glasses
    wearer: Wearer
    mps_world: RigidTransform
    error: Wander

    def session_ns(self, device_ns: Int64) -> Int64:
        """Return session times of device times."""
        return self.glasses.clock.apply(device_ns)

    def motion(self, device_ns: Int64) -> Motion:
        """Return the true motion of the device in frame ``world``."""
        return self.wearer.device(self.session_ns(device_ns))

    def true_pose(self, device_ns: Int64) -> Float64:
        """Return true poses ``T_world_device`` ``(N, 4, 4)``."""
        return self.wearer.device.pose(self.session_ns(device_ns))

    def pose(self, device_ns: Int64) -> Float64:
        """Return estimated poses ``T_FRAME_device`` ``(N, 4, 4)``."""
        return self.seen(self.true_pose(device_ns), device_ns)

    def seen(self, true_pose: Float64, device_ns: Int64) -> Float64:
        """Return true poses ``(N, 4, 4)`` with the error of their times, in the services' frame."""
        seconds = (device_ns - self.glasses.start_ns) / NS_PER_S
        error = self.error(seconds)
        wrong = true_pose.copy()
        wrong[:, :3, :3] = turn(error[:, 3:]) @ true_pose[:, :3, :3]
        wrong[:, :3, 3] += error[:, :3]
        return np.asarray(self.mps_world.matrix @ wrong, np.float64)


def turn(vectors: Float64) -> Float64:
    """Return rotations ``(N, 3, 3)`` of rotation vectors ``(N, 3)`` [rad]."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_rotvec(vectors).as_matrix(), np.float64)
