"""Rigid transforms between named frames: ``p_a = T_a_b @ p_b``, the only sign convention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import FrameMismatchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]

__all__ = ["RigidTransform", "interpolate"]

ORTHONORMAL_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class RigidTransform:
    """The pose ``T_target_source``: it carries points of frame source to frame target.

    Parameters
    ----------
    target, source
        Frame names, such as ``world`` and ``leader/device``.
    matrix
        ``(4, 4)`` float64, translation in metres. Its rotation must be orthonormal to 1e-6 and
        right-handed: a mirrored or scaled matrix is an error, never silently mended.
    """

    target: str
    source: str
    matrix: Float64

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64, copy=True)
        if matrix.shape != (4, 4):
            raise ValueError(f"a rigid transform is (4, 4), got {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ValueError("a rigid transform must be finite")
        if not np.array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0]):
            raise ValueError(f"the last row must be 0 0 0 1, got {matrix[3]}")
        rotation = matrix[:3, :3]
        if np.abs(rotation @ rotation.T - np.eye(3)).max() > ORTHONORMAL_TOLERANCE:
            raise ValueError("the rotation is not orthonormal: it scales or shears")
        if np.linalg.det(rotation) < 0:
            raise ValueError("the rotation is left-handed: it mirrors")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def identity(cls, frame: str) -> RigidTransform:
        """Return the transform of a frame onto itself."""
        return cls(frame, frame, np.eye(4))

    @classmethod
    def from_quat_wxyz(
        cls, target: str, source: str, quat_wxyz: ArrayLike, translation_m: ArrayLike
    ) -> RigidTransform:
        """Make a transform from a unit quaternion ``(w, x, y, z)`` and a translation [m].

        Raises
        ------
        ValueError
            The quaternion's norm is off one by more than 1e-3.
        """
        quat = np.asarray(quat_wxyz, np.float64)
        norm = float(np.linalg.norm(quat))
        if quat.shape != (4,) or not abs(norm - 1.0) <= 1e-3:
            raise ValueError(f"expected a unit quaternion (w, x, y, z), got {quat}")
        matrix = np.eye(4)
        matrix[:3, :3] = _matrix_of_quat(quat / norm)
        matrix[:3, 3] = translation_m
        return cls(target, source, matrix)

    @property
    def rotation(self) -> Float64:
        """``(3, 3)`` rotation."""
        return self.matrix[:3, :3]

    @property
    def translation_m(self) -> Float64:
        """``(3,)`` translation [m]: the origin of source, seen in target."""
        return self.matrix[:3, 3]

    @property
    def quat_wxyz(self) -> Float64:
        """``(4,)`` unit quaternion (w, x, y, z), w >= 0."""
        return _quat_of_matrix(self.rotation)

    def inverse(self) -> RigidTransform:
        """Return ``T_source_target``."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation.T
        matrix[:3, 3] = -self.rotation.T @ self.translation_m
        return RigidTransform(self.source, self.target, matrix)

    def __matmul__(self, inner: RigidTransform) -> RigidTransform:
        """Compose: ``T_a_c = T_a_b @ T_b_c``.

        Raises
        ------
        FrameMismatchError
            The inner frames differ.
        """
        if self.source != inner.target:
            raise FrameMismatchError(
                f"cannot compose T_{self.target}_{self.source} with "
                f"T_{inner.target}_{inner.source}: '{self.source}' is not '{inner.target}'"
            )
        return RigidTransform(self.target, inner.source, self.matrix @ inner.matrix)

    def apply(self, points_m: ArrayLike, *, frame: str) -> Float64:
        """Carry points ``(..., 3)`` [m] of ``frame``, which must be the source, to the target.

        Raises
        ------
        FrameMismatchError
            The points are given in another frame.
        """
        if frame != self.source:
            raise FrameMismatchError(
                f"T_{self.target}_{self.source} takes points in '{self.source}', not in '{frame}'"
            )
        points = np.asarray(points_m, np.float64)
        carried: Float64 = points @ self.rotation.T + self.translation_m
        return carried


def interpolate(first: RigidTransform, second: RigidTransform, share: float) -> RigidTransform:
    """Return the pose at ``share`` (0 to 1) of the way: slerp of rotation, line of translation.

    Raises
    ------
    FrameMismatchError
        The two poses are not between the same frames.
    """
    if (first.target, first.source) != (second.target, second.source):
        raise FrameMismatchError(
            f"cannot interpolate from T_{first.target}_{first.source} "
            f"to T_{second.target}_{second.source}"
        )
    quat = _slerp(first.quat_wxyz, second.quat_wxyz, share)
    translation = (1.0 - share) * first.translation_m + share * second.translation_m
    return RigidTransform.from_quat_wxyz(first.target, first.source, quat, translation)


def _matrix_of_quat(quat: Float64) -> Float64:
    w, x, y, z = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _quat_of_matrix(rotation: Float64) -> Float64:
    """Return the quaternion as the main eigenvector of Bar-Itzhack's matrix: no branches.

    I. Y. Bar-Itzhack, "New method for extracting the quaternion from a rotation matrix", JGCD 2000.
    """
    r = rotation
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], r[1, 0] + r[0, 1], r[2, 0] + r[0, 2], r[2, 1] - r[1, 2]],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], r[2, 1] + r[1, 2], r[0, 2] - r[2, 0]],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    x, y, z, w = np.linalg.eigh(k)[1][:, -1]
    quat = np.array([w, x, y, z])
    return quat if w >= 0 else -quat


def _slerp(first: Float64, second: Float64, share: float) -> Float64:
    cosine = float(first @ second)
    if cosine < 0:  # the two signs of a quaternion are one rotation: take the short way
        second, cosine = -second, -cosine
    if cosine > 1 - 1e-9:
        mixed = (1 - share) * first + share * second
    else:
        angle = np.arccos(cosine)
        mixed = np.sin((1 - share) * angle) * first + np.sin(share * angle) * second
    out: Float64 = mixed / np.linalg.norm(mixed)
    return out
