"""Whether two clouds that should lie in one frame do."""

from __future__ import annotations

from synorama.geometry.prepare import cleaned
from synorama.geometry.voxels import voxel_down
from synorama.records import PointCloud

__all__ = ["share_met"]

SIDE_M, MEETS_M = 0.05, 0.08


def share_met(points: PointCloud, others: PointCloud) -> float:
    """Return the share of the places of one cloud that are near a place of the other, 0 to 1."""
    from scipy.spatial import cKDTree

    mine, theirs = (voxel_down(cleaned(c).points_m, SIDE_M) for c in (points, others))
    if not len(mine) or not len(theirs):
        return 0.0
    distance, _ = cKDTree(theirs).query(mine, distance_upper_bound=MEETS_M)
    return float((distance <= MEETS_M).mean())
