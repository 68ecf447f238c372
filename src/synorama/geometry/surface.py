"""A cloud as a surface: points with normals, and what lies nearest to a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.geometry.voxels import voxel_down

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["NearGrid", "Surface", "surface_of"]

NEIGHBOURS = 16
MOST_CELLS = 30_000_000  # a room has a fifth of it


@dataclass(frozen=True)
class Surface:
    """Points of a cloud at one resolution.

    Parameters
    ----------
    points_m, normals
        ``(N, 3)``; normals are unit vectors of either sign.
    side_m
        Side of the cubes in which points were averaged.
    """

    points_m: Float64
    normals: Float64
    side_m: float

    @cached_property
    def tree(self) -> Any:
        """The k-d tree of the points."""
        return _tree(self.points_m)

    def nearest(self, places_m: Float64, reach_m: float) -> tuple[Float64, Int64]:
        """Return distances and numbers of the nearest points; inf and N beyond the reach."""
        distance, which = self.tree.query(places_m, distance_upper_bound=reach_m)
        return distance, which


def _tree(points: Float64) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(points, balanced_tree=False, compact_nodes=False)


def surface_of(points_m: Float64, side_m: float) -> Surface:
    """Return a cloud as a surface, averaged in cubes of a side.

    Normals are the least axis of the covariance of the nearest points.
    """
    import small_gicp

    points = voxel_down(points_m, side_m)
    cloud = small_gicp.PointCloud(points)
    small_gicp.estimate_normals(cloud, num_neighbors=min(NEIGHBOURS, len(points)), num_threads=1)
    return Surface(points, np.ascontiguousarray(cloud.normals()[:, :3], np.float64), side_m)


class NearGrid:
    """For every cell of a grid about a surface the point that is nearest to its middle.

    Looking up is some hundred times faster than a tree, and off by half a cell. Where the grid
    would hold too many cells, as outdoors, they are larger.

    Parameters
    ----------
    surface
        The points.
    cell_m
        Side of a cell.
    margin_m
        How far the grid goes beyond the points.
    """

    def __init__(self, surface: Surface, cell_m: float, margin_m: float) -> None:
        from scipy.ndimage import distance_transform_edt

        spans = np.ptp(surface.points_m, axis=0) + 2 * margin_m
        least_m = float(np.cbrt(np.prod(spans) / MOST_CELLS))
        self.surface, self.cell_m = surface, max(cell_m, least_m)
        self.low_m = surface.points_m.min(axis=0) - margin_m
        cells = self._cells(surface.points_m)
        self.shape = cells.max(axis=0) + 1 + int(np.ceil(margin_m / self.cell_m))
        owner = np.full(self.shape, -1, np.int32)
        owner[tuple(cells.T)] = np.arange(len(cells), dtype=np.int32)
        nearest = distance_transform_edt(owner < 0, return_distances=False, return_indices=True)
        self._owner = owner[tuple(nearest)]

    def _cells(self, places_m: Float64) -> Int64:
        cells: Int64 = np.floor((places_m - self.low_m) / self.cell_m).astype(np.int64)
        return cells

    def nearest(self, places_m: Float64, reach_m: float) -> tuple[Float64, Int64]:
        """Return distances and numbers of the nearest points; inf and N beyond the reach."""
        cells = self._cells(places_m)
        inside = ((cells >= 0) & (cells < self.shape)).all(axis=1)
        which = np.full(len(places_m), len(self.surface.points_m), np.int64)
        distance = np.full(len(places_m), np.inf)
        which[inside] = self._owner[tuple(cells[inside].T)]
        apart = places_m[inside] - self.surface.points_m[which[inside]]
        distance[inside] = np.sqrt(np.einsum("ni,ni->n", apart, apart))
        beyond = distance > reach_m
        distance[beyond], which[beyond] = np.inf, len(self.surface.points_m)
        return distance, which
