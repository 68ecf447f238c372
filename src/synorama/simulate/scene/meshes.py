"""Triangle meshes with texture coordinates, and the few solids from which everything is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int32 = NDArray[np.int32]

__all__ = [
    "Look",
    "Mesh",
    "box",
    "decal",
    "lathe",
    "merge",
    "pose",
    "quad",
    "sphere",
    "tube",
]

CELL_M = 0.3  # larger faces are divided, because light is known at corners only
ROUND = 14  # sides of round things
FACE_STEP = 0.377  # shift of the texture from face to face, so that no two are alike


@dataclass(frozen=True, slots=True)
class Look:
    """How a surface looks.

    Parameters
    ----------
    tile
        Number of its texture.
    tint
        Factors of red, green and blue.
    span_m
        Length that the texture covers before it repeats; 0 stretches it once over each face.
    offset
        Where in the texture the surface begins, in widths of the texture.
    glow
        Light of its own, as a share of white; 0 for everything but lamps and windows.
    """

    tile: int
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    span_m: float = 1.28
    offset: tuple[float, float] = (0.0, 0.0)
    glow: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles with texture.

    Parameters
    ----------
    vertices
        ``(V, 3)`` float64 [m]. Corners are shared only where the surface is smooth.
    triangles
        ``(T, 3)`` int32, counter-clockwise seen from outside.
    uv
        ``(T, 3, 2)`` float32, texture coordinates of the corners in widths of the texture.
    tile, tint, glow
        ``(T,)`` int32, ``(T, 3)`` and ``(T,)`` float32: as in `Look`.
    """

    vertices: Float64
    triangles: Int32
    uv: Float32
    tile: Int32
    tint: Float32
    glow: Float32

    def moved(self, matrix: ArrayLike) -> Mesh:
        """Return the mesh carried by a ``(4, 4)`` affine matrix."""
        carry = np.asarray(matrix, np.float64)
        return replace(self, vertices=self.vertices @ carry[:3, :3].T + carry[:3, 3])

    def at(self, x: float, y: float, z: float = 0.0, yaw_rad: float = 0.0) -> Mesh:
        """Return the mesh turned about the vertical and shifted [m]."""
        return self.moved(pose(x, y, z, yaw_rad))

    @property
    def bounds_m(self) -> tuple[Float64, Float64]:
        """Least and greatest coordinates, each ``(3,)``."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)


def pose(x: float, y: float, z: float = 0.0, yaw_rad: float = 0.0) -> Float64:
    """Return the ``(4, 4)`` pose of something upright: turned about the vertical, then shifted."""
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.array([[cos, -sin, 0, x], [sin, cos, 0, y], [0, 0, 1, z], [0, 0, 0, 1]], np.float64)


def merge(meshes: Sequence[Mesh]) -> Mesh:
    """Return all meshes as one, triangles in the given order."""
    counts = np.cumsum([0] + [len(m.vertices) for m in meshes])
    shifted = [m.triangles + n for m, n in zip(meshes, counts[:-1], strict=True)]
    return Mesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate(shifted).astype(np.int32),
        *(
            np.concatenate([getattr(m, name) for m in meshes])
            for name in ("uv", "tile", "tint", "glow")
        ),
    )


def quad(corner: ArrayLike, right: ArrayLike, up: ArrayLike, look: Look, step: int = 0) -> Mesh:
    """Return a rectangle, divided into cells; it faces along ``right`` x ``up``.

    Parameters
    ----------
    corner
        ``(3,)`` lower left corner, seen from its front [m].
    right, up
        ``(3,)`` its edges [m]; the texture's first row lies along the upper edge.
    step
        Number of the face of a body: shifts the texture.
    """
    corner, right, up = (np.asarray(v, np.float64) for v in (corner, right, up))
    size = np.array([np.linalg.norm(right), np.linalg.norm(up)])
    cols, rows = np.maximum(np.ceil(size / CELL_M).astype(int), 1)
    across, along = np.meshgrid(np.linspace(0, 1, cols + 1), np.linspace(0, 1, rows + 1))
    share = np.column_stack([across.ravel(), along.ravel()])
    points = corner + share[:, :1] * right + share[:, 1:] * up
    uv = np.column_stack([share[:, 0], 1.0 - share[:, 1]])
    if look.span_m > 0:
        uv = uv * (size / look.span_m) + np.array(look.offset) + step * FACE_STEP
    return _dressed(points, _grid_triangles(rows, cols), uv, look)


def box(size: ArrayLike, centre: ArrayLike, look: Look) -> Mesh:
    """Return a block of ``size`` ``(3,)`` [m] about ``centre`` ``(3,)`` [m]."""
    x, y, z = (np.diag(np.asarray(size, np.float64))[k] for k in range(3))
    low = np.asarray(centre, np.float64) - (x + y + z) / 2
    faces = (
        (low, x, z),  # front, towards -y
        (low + x, y, z),
        (low + x + y, -x, z),
        (low + y, -y, z),
        (low + z, x, y),  # top
        (low + y, x, -y),
    )
    return merge([quad(*face, look, k) for k, face in enumerate(faces)])


def decal(width_m: float, height_m: float, centre: ArrayLike, look: Look) -> Mesh:
    """Return an upright rectangle that faces +y, shown from there with its texture upright."""
    corner = np.add(centre, (width_m / 2, 0.0, -height_m / 2))
    return quad(corner, (-width_m, 0, 0), (0, 0, height_m), look)


def lathe(profile: Sequence[tuple[float, float]], look: Look, sides: int = ROUND) -> Mesh:
    """Return a body of revolution about the vertical.

    Parameters
    ----------
    profile
        ``(radius, height)`` [m] from the bottom up along the outside.
    """
    line = np.array(profile, np.float64)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.concatenate(
        [np.column_stack([r * ring, np.full(sides + 1, z)]) for r, z in line], axis=0
    )
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    uv = np.array([(a / (2 * np.pi), 1 - s / length[-1]) for s in length for a in angle])
    if look.span_m > 0:
        around = max(1.0, np.round(2 * np.pi * line[:, 0].max() / look.span_m * 4) / 4)
        uv = uv * (around if look.span_m < 1 else 0.25, length[-1] / look.span_m) + look.offset
    return _dressed(points, _grid_triangles(len(line) - 1, sides), uv, look)


def sphere(radius_m: float, centre: ArrayLike, look: Look, sides: int = ROUND) -> Mesh:
    """Return a ball."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, 8)
    ball = lathe([(radius_m * np.cos(a), radius_m * np.sin(a)) for a in angle], look, sides)
    return ball.at(*np.asarray(centre, np.float64))


def tube(
    start: ArrayLike, end: ArrayLike, radii_m: tuple[float, float], look: Look, sides: int = 8
) -> Mesh:
    """Return a tapered tube with closed ends between two points [m]."""
    start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
    length = float(np.linalg.norm(end - start))
    (low, high) = radii_m
    profile = [(0.0, 0.0), (low, 0.0), (high, length), (0.0, length)]
    carry = np.eye(4)
    carry[:3, :3] = _frame_along((end - start) / max(length, 1e-9))
    carry[:3, 3] = start
    return lathe(profile, look, sides).moved(carry)


def _frame_along(axis: Float64) -> Float64:
    """Return a rotation whose third column is ``axis``."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _grid_triangles(rows: int, cols: int) -> Int32:
    row, col = np.divmod(np.arange(rows * cols), cols)
    a = row * (cols + 1) + col
    b, c, d = a + 1, a + cols + 2, a + cols + 1
    return np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3).astype(np.int32)


def _dressed(points: Float64, triangles: Int32, uv: Float64, look: Look) -> Mesh:
    count = len(triangles)
    return Mesh(
        points,
        triangles,
        uv[triangles].astype(np.float32),
        np.full(count, look.tile, np.int32),
        np.tile(np.array(look.tint, np.float32), (count, 1)),
        np.full(count, look.glow, np.float32),
    )
