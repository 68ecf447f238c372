"""Open3D's multi-scale point-to-plane with a Huber kernel: the peer of the fine stage."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tests.geometry.rooms import Pair

from synorama.geometry.prepare import cleaned

Float64: TypeAlias = NDArray[np.float64]

STAGES = ((0.10, 0.30), (0.05, 0.15), (0.02, 0.08))  # voxel and reach [m]


def clouds(pair: Pair) -> tuple[Float64, Float64]:
    """Return scan and glasses' points, the latter filtered as ours are."""
    return pair.scan.points_m, cleaned(pair.glasses).points_m


def as_open3d(points: Float64) -> Any:
    import open3d

    return open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))


def multi_scale(pair: Pair, start: Float64) -> Float64:
    """Return where it lays the glasses' points onto the scan, ``(4, 4)``, as is the start."""
    import open3d

    reg: Any = open3d.pipelines.registration
    scan, points = (as_open3d(p) for p in clouds(pair))
    T = start
    for voxel, reach in STAGES:
        surface = scan.voxel_down_sample(voxel)
        surface.estimate_normals(
            open3d.geometry.KDTreeSearchParamHybrid(radius=3 * voxel, max_nn=30)
        )
        some = points.voxel_down_sample(voxel / 2)
        estimate = reg.TransformationEstimationPointToPlane(reg.HuberLoss(voxel / 2))
        T = reg.registration_icp(
            some, surface, reach, T, estimate, reg.ICPConvergenceCriteria(max_iteration=50)
        ).transformation
    return np.asarray(T, np.float64)
