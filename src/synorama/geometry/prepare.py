"""What a cloud must be before it is registered, and what of it is used.

Whatever would lead a search astray unnoticed is refused here: no points, all in one place or plane,
another unit. Points of glasses come with sigmas and reach kilometres; those are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import CloudUnitError, EmptyCloudError, FlatCloudError
from synorama.geometry.voxels import cube_numbers, voxel_down
from synorama.records import PointCloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]

__all__ = [
    "Points",
    "check_cloud",
    "check_units",
    "cleaned",
    "evened",
    "few_enough",
    "middle_m",
    "resolution",
    "span_m",
    "thinned",
]

MOST_INVERSE_SIGMA, MOST_SIGMA_M = 0.005, 0.05
MOST_AWAY_M = 60.0  # of glasses' points from their middle
FEWEST = 200
SAMPLE = 200_000
FLAT_SHARE = 0.004  # of the largest extent: thinner is a plane, and narrower a line
ONE_PLACE_M = 0.02
UNIT_RATIO = 25.0
UNITS = {0.001: "millimetres", 0.01: "centimetres", 0.0254: "inches", 1000.0: "kilometres"}
ROOM_SPACING_M, ROOM_SPAN_M = 0.05, 3.0
LONE_NEIGHBOURS, LONE_REACH, THIN_CELL = 5, 3.3, 0.06
MANY = 2_000_000
SUREST_M = 0.006  # glasses' points are worse than they say


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points that are used: ``points_m`` ``(N, 3)``, ``sigma_m`` ``(N,)``, places of the eyes.

    ``seen_from_m`` ``(N, 3)`` is where each was seen from, or None where nobody knows.
    """

    points_m: Float64
    sigma_m: Float64
    seen_from_m: Float64 | None = None


def check_cloud(cloud: PointCloud) -> Float64:
    """Return the finite points, and refuse a cloud that fixes no pose.

    Raises
    ------
    EmptyCloudError
        Fewer than 200 finite points.
    FlatCloudError
        All in one place, on one line or in one plane.
    """
    finite = np.isfinite(cloud.points_m)
    points = cloud.points_m if finite.all() else cloud.points_m[finite.all(axis=1)]
    if len(points) < FEWEST:
        raise EmptyCloudError(
            f"'{cloud.frame}' has {len(points)} usable points, and {FEWEST} are the least",
            hint="export the cloud again, and check that it holds the whole room",
        )
    extents = _extents(points)
    if extents[0] < ONE_PLACE_M / 10 or extents[1] < FLAT_SHARE * extents[0]:
        raise FlatCloudError(
            f"the points of '{cloud.frame}' lie in one place or on one line",
            hint="export the cloud again: its coordinates are lost",
        )
    if extents[2] < FLAT_SHARE * extents[0]:
        raise FlatCloudError(
            f"the points of '{cloud.frame}' lie in one plane, which fixes no place",
            hint="scan more of the room: floor and two walls at least",
        )
    return points


def _extents(points: Float64) -> Float64:
    """Return the robust spreads along the principal axes, largest first [m]."""
    some = points[:: max(1, len(points) // SAMPLE)]
    middle = np.median(some, axis=0)
    apart = some - middle
    reach = np.linalg.norm(apart, axis=1)
    apart = apart[reach <= np.quantile(reach, 0.95)]
    values = np.linalg.eigvalsh(apart.T @ apart / len(apart))
    return np.sqrt(np.maximum(values[::-1], 0.0))


def span_m(points_m: Float64) -> float:
    """Return how far the inner nine tenths of the points reach, along the longest axis."""
    low, high = np.quantile(points_m[:: max(1, len(points_m) // SAMPLE)], (0.05, 0.95), axis=0)
    return float((high - low).max())


def check_units(source_m: Float64, target_m: Float64, names: tuple[str, str]) -> None:
    """Refuse two clouds whose sizes say that one is in another unit.

    Raises
    ------
    CloudUnitError
        One is 25 times as large as the other, or more.
    """
    spans = span_m(source_m), span_m(target_m)
    ratio = spans[0] / spans[1]
    if 1 / UNIT_RATIO < ratio < UNIT_RATIO:
        return
    larger, least = (0, 1) if ratio > 1 else (1, 0)
    factor = spans[least] / spans[larger]
    near = min(UNITS, key=lambda unit: abs(np.log(unit / factor)))
    raise CloudUnitError(
        f"'{names[larger]}' spans {spans[larger]:.4g} m and '{names[least]}' {spans[least]:.4g} m: "
        f"they are not in one unit; '{names[larger]}' may be in {UNITS[near]}",
        hint="give its unit, such as --source-unit mm or --target-unit mm",
    )


def cleaned(cloud: PointCloud, trajectory_m: Float64 | None = None) -> Points:
    """Return what is used of a cloud: of glasses' points those that are sure and near.

    Parameters
    ----------
    trajectory_m
        ``(K, 3)`` where the glasses were; each point is taken to be seen from the nearest place.
    """
    from scipy.spatial import cKDTree

    good = np.isfinite(cloud.points_m).all(axis=1)
    if cloud.sigma_m is not None:
        good &= cloud.sigma_m < MOST_SIGMA_M
        inverse = cloud.extra.get("inv_dist_std")
        if inverse is not None:
            good &= inverse < MOST_INVERSE_SIGMA
        if good.any():
            middle = np.median(cloud.points_m[good], axis=0)
            good &= np.linalg.norm(cloud.points_m - middle, axis=1) < MOST_AWAY_M
    points = cloud.points_m[good]
    sigma = np.zeros(len(points)) if cloud.sigma_m is None else cloud.sigma_m[good]
    if trajectory_m is None or not len(trajectory_m):
        return Points(points, np.asarray(sigma, np.float64))
    _, nearest = cKDTree(trajectory_m).query(points)
    return Points(points, np.asarray(sigma, np.float64), trajectory_m[nearest])


def middle_m(points_m: Float64) -> Float64:
    """Return whole metres near the median of a cloud ``(N, 3)``, of some of its points."""
    some = points_m[:: max(1, len(points_m) // SAMPLE)]
    return np.asarray(np.floor(np.median(some, axis=0)), np.float64)


def few_enough(points_m: Float64) -> Float64:
    """Return two of many million points, the same every time; fewer as they are.

    Every later step averages over 2 cm or more, for which a room needs no more. One is drawn of
    each few that follow each other: every tenth might be one column of a scanner's grid.
    """
    step = len(points_m) // MANY
    if step < 2:
        return points_m
    drawn = np.arange(0, len(points_m) - step + 1, step)
    drawn += np.random.default_rng(0).integers(0, step, len(drawn))
    return np.asarray(points_m[drawn], np.float64)


def evened(points: Points, side_m: float) -> Float64:
    """Return means ``(M, 3)`` of points in cubes of a side, so that they lie evenly over surfaces.

    Within a cube points count by how surely each is known. Between cubes they do not: neighbours
    are off together, by what no sigma tells, and a wall that was watched for long is one wall.
    """
    _, cubes = np.unique(cube_numbers(points.points_m, side_m), return_inverse=True)
    weights = 1.0 / (SUREST_M**2 + points.sigma_m**2)
    total = np.bincount(cubes, weights)
    sums = [np.bincount(cubes, weights * axis) for axis in points.points_m.T]
    return np.stack(sums, axis=1) / total[:, np.newaxis]


def thinned(points_m: Float64, unit: float) -> Float64:
    """Return the points' means in cubes, without those that stand alone."""
    from scipy.spatial import cKDTree

    means = voxel_down(points_m, THIN_CELL * unit)
    tree = cKDTree(means)
    near = tree.query(means, k=LONE_NEIGHBOURS, distance_upper_bound=LONE_REACH * THIN_CELL * unit)
    return np.asarray(means[np.isfinite(near[0][:, -1])], np.float64)


def resolution(points_m: Float64) -> float:
    """Return by which factor a cloud is coarser than one of a room, or smaller.

    All lengths of search and refinement are multiplied by it: 1 for rooms; more where points lie
    further apart than 5 cm, as outdoors; less for things smaller than a room.
    """
    from scipy.spatial import cKDTree

    span = span_m(points_m)
    if span < ROOM_SPAN_M / 2:
        return span / ROOM_SPAN_M
    rng = np.random.default_rng(0)
    means = voxel_down(points_m, ROOM_SPACING_M)
    some = rng.choice(len(means), min(2000, len(means)), replace=False)
    distance, _ = cKDTree(means).query(means[some], k=4)
    return max(1.0, float(np.median(distance[:, -1])) / (2 * ROOM_SPACING_M))
