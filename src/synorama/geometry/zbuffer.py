"""What a camera sees of a cloud: the nearest point in each direction, and distances along rays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.lenses import Lens, project

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["ZBuffer", "lifted", "zbuffer"]

NOTHING = -1
AT_ONCE = 500_000
AROUND = np.stack(np.meshgrid((-1, 0, 1), (-1, 0, 1)), axis=-1).reshape(-1, 2)
LEAST_NEIGHBOURS = 5  # of the nine cells about a ray
STEEPEST = 0.12  # spread of the distances about a ray, as a share: more is an edge
FLATTEST = 0.1  # cosine between ray and surface
UNEVEN_M, UNEVEN_SHARE = 0.006, 0.003  # most that points about a ray leave their plane


@dataclass(frozen=True, slots=True, eq=False)
class ZBuffer:
    """The nearest point of a cloud in each cell of a coarse picture.

    Parameters
    ----------
    lens
        Of the coarse picture.
    points_m
        ``(N, 3)`` the cloud in the camera's frame.
    nearest
        ``(H, W)`` which of them, -1 for none.
    """

    lens: Lens
    points_m: Float32
    nearest: Int64

    @property
    def distance_m(self) -> Float32:
        """``(H, W)`` distance of the nearest point, infinite where there is none."""
        found = self.nearest != NOTHING
        out = np.full(self.nearest.shape, np.inf, np.float32)
        out[found] = np.linalg.norm(self.points_m[self.nearest[found]], axis=-1)
        return out


def zbuffer(lens: Lens, points_m: Float64, T_camera_cloud: Float64) -> ZBuffer:
    """Return which points of a cloud a camera sees.

    Parameters
    ----------
    lens
        Of the picture that is filled: coarse enough that most cells meet a point.
    points_m
        ``(N, 3)`` in the cloud's frame.
    T_camera_cloud
        ``(4, 4)``.
    """
    local = np.empty((len(points_m), 3), np.float32)
    cells = lens.width * lens.height
    best = np.full(cells, np.iinfo(np.int64).max)
    for begin in range(0, len(points_m), AT_ONCE):
        some = slice(begin, min(begin + AT_ONCE, len(points_m)))
        local[some] = points_m[some] @ T_camera_cloud[:3, :3].T + T_camera_cloud[:3, 3]
        _fill(best, lens, local[some], begin)
    number = (best & 0xFFFFFFFF).astype(np.int64)
    nearest = np.where(best == np.iinfo(np.int64).max, NOTHING, number)
    return ZBuffer(lens, local, nearest.reshape(lens.height, lens.width))


def _fill(best: Int64, lens: Lens, local: Float32, first: int) -> None:
    """Keep the nearest point of each cell: distance [0.1 mm] and number in one integer."""
    pixels, seen = project(lens, local)
    kept = np.flatnonzero(seen)
    x, y = np.rint(pixels[kept]).astype(np.int64).T
    cell = np.clip(y, 0, lens.height - 1) * lens.width + np.clip(x, 0, lens.width - 1)
    distance = np.linalg.norm(local[kept], axis=1).astype(np.float64)
    coarse = np.minimum(distance * 1e4, 2**30).astype(np.int64)
    np.minimum.at(best, cell, (coarse << 32) | (kept + first))


def lifted(buffer: ZBuffer, rays: Float64) -> tuple[Float64, Bool]:
    """Return where rays meet the surface behind a z-buffer.

    A plane through the points about a ray gives the distance, so that a slanting floor is not
    drawn nearer by the points that happen to lie in front.

    Parameters
    ----------
    buffer
        The z-buffer.
    rays
        ``(N, 3)`` unit directions in the camera's frame.

    Returns
    -------
    Points ``(N, 3)`` in the camera's frame, and which rays surely meet a surface away from edges.
    """
    lens = buffer.lens
    pixels, seen = project(lens, rays)
    cells = np.rint(pixels).astype(np.int64)[:, np.newaxis] + AROUND
    if lens.model == "spherical":
        cells[..., 0] %= lens.width
    inside = ((cells >= 0) & (cells < (lens.width, lens.height))).all(axis=2)
    x, y = np.where(inside[..., np.newaxis], cells, 0).transpose(2, 0, 1)
    number = np.where(inside, buffer.nearest[y, x], NOTHING)
    return _planes_met(buffer.points_m[number].astype(np.float64), number != NOTHING, rays, seen)


def _planes_met(points: Float64, there: Bool, rays: Float64, seen: Bool) -> tuple[Float64, Bool]:
    """Return where rays meet the planes through ``(N, 9, 3)`` points, where these make one."""
    count = np.maximum(there.sum(axis=1), 1)
    weight = there[..., np.newaxis] / count[:, np.newaxis, np.newaxis]
    middle = (points * weight).sum(axis=1)
    arms = (points - middle[:, np.newaxis]) * there[..., np.newaxis]
    normal = np.linalg.eigh(np.einsum("nki,nkj->nij", arms, arms))[1][:, :, 0]
    facing = (normal * rays).sum(axis=1)
    distance = np.where(there, np.linalg.norm(points, axis=2), np.nan)
    whole = seen & (there.sum(axis=1) >= LEAST_NEIGHBOURS)
    distance[~whole] = 1.0
    near, far = np.nanmin(distance, axis=1), np.nanmax(distance, axis=1)
    flat = whole & (np.abs(facing) > FLATTEST) & (far - near < STEEPEST * near)
    uneven = np.abs((arms * normal[:, np.newaxis]).sum(axis=2)).max(axis=1)
    flat &= uneven < np.maximum(UNEVEN_M, UNEVEN_SHARE * near)
    reach = (normal * middle).sum(axis=1) / np.where(flat, facing, 1.0)
    good = flat & (reach > 0.8 * near) & (reach < 1.2 * far)
    return rays * np.where(good, reach, 0.0)[:, np.newaxis], good
