"""A wearer's trajectory on the session clock, interpolated between its poses only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import NotInSessionError
from synorama.records import Column, Samples
from synorama.transform import RigidTransform, interpolate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAX_GAP_S", "TRAJECTORY", "Trajectory"]

TRAJECTORY = "closed_loop_trajectory"
MAX_GAP_S = 0.1
POSITION = ("tx", "ty", "tz")
ROTATION = ("qw", "qx", "qy", "qz")
WORLD = "graph_uid"


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Poses ``T_world_device`` in order of session time.

    Parameters
    ----------
    times_ns
        ``(N,)`` int64, session time.
    poses
        ``(N, 7)`` float64: tx ty tz [m], qw qx qy qz.
    worlds
        ``(N,)``: poses with different values are in different world frames.
    world, device
        Names of the two frames.
    """

    times_ns: NDArray[np.int64]
    poses: NDArray[np.float64]
    worlds: NDArray[Any]
    world: str
    device: str

    @classmethod
    def of(cls, rows: Samples, columns: Sequence[Column], world: str, device: str) -> Trajectory:
        """Take the poses out of the rows of a pose track whose times are on the session clock.

        Raises
        ------
        NotInSessionError
            The track has no column for a part of the pose.
        """
        names = [column.name for column in columns]
        missing = [name for name in (*POSITION, *ROTATION) if name not in names]
        if missing:
            raise NotInSessionError(f"the trajectory has no column '{missing[0]}'")
        picked = [names.index(name) for name in (*POSITION, *ROTATION)]
        order = np.argsort(rows.times_ns, kind="stable")
        poses = rows.values[order][:, picked].astype(np.float64)
        worlds = rows.extra.get(WORLD, np.zeros(len(order), np.uint8))[order]
        return cls(rows.times_ns[order], poses, worlds, world or "world", device)

    def at(self, t_ns: int, max_gap_ns: int) -> RigidTransform | None:
        """Interpolate between the poses around an instant that are at most a gap apart."""
        after = int(np.searchsorted(self.times_ns, t_ns, side="left"))
        if after < len(self.times_ns) and self.times_ns[after] == t_ns:
            return self._pose(after)
        if after in (0, len(self.times_ns)):
            return None
        before = after - 1
        gap = int(self.times_ns[after] - self.times_ns[before])
        if gap > max_gap_ns or self.worlds[before] != self.worlds[after]:
            return None
        share = int(t_ns - self.times_ns[before]) / gap
        first, second = self._pose(before), self._pose(after)
        return None if first is None or second is None else interpolate(first, second, share)

    def _pose(self, i: int) -> RigidTransform | None:
        pose = self.poses[i]
        if not np.isfinite(pose).all():  # the device gave none
            return None
        return RigidTransform.from_quat_wxyz(self.world, self.device, pose[3:], pose[:3])
