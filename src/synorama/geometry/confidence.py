"""How sure a registration is: overlap, misfit, covariance, and what the geometry leaves open.

Neighbouring points err together (one pose of the glasses, one bend of the scan), so that a plain
inverse Hessian promises 5 to 20 times too much. How far they err together is read off the misfits
(`misfit.py`), with a floor that no scanner goes below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.fine import Matches, match, moved_about
from synorama.geometry.misfit import common_motion, field_of, local_shifts, mean_motion
from synorama.geometry.surface import Surface
from synorama.geometry.voxels import cube_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.fine import Near

    Float64 = NDArray[np.float64]

__all__ = [
    "Evidence",
    "Weakness",
    "displacement_sigma_m",
    "evidence_of",
    "kernel_of",
    "pushed_through",
    "score",
    "slid",
]

MEETS_M, MEETS_AROUND_M = 0.05, 0.12
KERNEL_M = 0.03
WEAK_SHARE = 0.12  # of what is known of shifts; along corridors that is 0.14 to 0.19
STRETCH_M = 0.3
FLOOR_M, FLOOR_RAD = 0.0012, 3e-4
FEWEST = 50  # points that meet
BENT_FLOOR_M = 0.010  # a scan that bends is known no better anywhere
BENT_OVER_M = 6.0  # a room's length, over which a bend turns it
BENT_M = 0.0033  # of the slow field, above which a scan bends: rigid ones have up to 2.5 mm
SCORE_AROUND = 2.5
SCALE_M, REACH_M = 0.03, 0.15  # of the last look at each point
SLID_M = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
SLID_SCALE_M, SLID_REACH_M = 0.05, 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Weakness:
    """A direction in which the geometry holds little: unit vector ``(3,)`` of the target frame.

    ``share`` of the information about a shift that it has; a third would be even.
    """

    direction: Float64
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What speaks for a transform, in the surface's frame.

    Parameters
    ----------
    T
        ``(4, 4)`` the transform, moved by what was told of local shifts.
    overlap
        Share of the points that meet the surface.
    inlier_rmse_m
        Their misfit along the normals.
    covariance
        ``(6, 6)`` of a small turn [rad] about `middle_m` and a shift [m].
    middle_m
        ``(3,)`` the middle of what meets.
    shares, ways
        ``(3,)`` of what is known of shifts, by direction, least first; a third each would be even.
        ``(3, 3)`` these directions, one a row.
    weak
        Directions of shift that are held badly.
    bend_m
        How far the scan bends: one sigma of the slow field of misfits along each axis.
    """

    T: Float64
    overlap: float
    inlier_rmse_m: float
    covariance: Float64
    middle_m: Float64
    shares: Float64
    ways: Float64
    weak: tuple[Weakness, ...]
    bend_m: float


def score(
    points_m: Float64, surface: Surface, near: Near, T: Float64, scale_m: float, reach_m: float
) -> float:
    """Return how well points lie on a surface, 0 to 1: the mean of a kernel of their misfits."""
    found = match(points_m, surface, near, T, reach_m)
    return float(_kernel(found, scale_m).sum()) / max(len(points_m), 1)


def kernel_of(points_m: Float64, surface: Surface, T: Float64, unit: float) -> Float64:
    """Return how well each point lies on a surface, ``(N,)`` from 0 to 1; their mean is `score`."""
    found = match(points_m, surface, surface, T, REACH_M * unit)
    met = np.zeros(len(points_m))
    met[found.which] = _kernel(found, SCALE_M * unit)
    return met


def _kernel(found: Matches, scale_m: float) -> Float64:
    around = SCORE_AROUND * scale_m
    off = (found.misfit_m / scale_m) ** 2 + (found.distance_m / around) ** 2
    return np.asarray(np.exp(-0.5 * off), np.float64)


def slid(
    points_m: Float64, surface: Surface, near: Near, T: Float64, way: Float64, unit: float
) -> float:
    """Return how well points fit once they are shifted along a unit vector, over how they fit now.

    The median over shifts by 0.3 to 1 m either way: a table may repeat itself, a corridor does all
    along.
    """

    def fits(shift_m: float) -> float:
        moved = T.copy()
        moved[:3, 3] += shift_m * way
        return score(points_m, surface, near, moved, SLID_SCALE_M * unit, SLID_REACH_M * unit)

    shifts = unit * np.concatenate([-SLID_M, SLID_M])
    return float(np.median([fits(shift) for shift in shifts])) / max(fits(0.0), 1e-9)


def pushed_through(free_m: Float64, near: Near, T: Float64, reach_m: float) -> float:
    """Return the share of free space that is solid under ``T``, 0 to 1."""
    if not len(free_m):
        return 0.0
    placed = free_m @ T[:3, :3].T + T[:3, 3]
    return float(np.isfinite(near.nearest(placed, reach_m)[0]).mean())


def evidence_of(
    points_m: Float64,
    variance: Float64,
    surface: Surface,
    T: Float64,
    *,
    unit: float = 1.0,
    handheld: bool | None = None,
) -> Evidence | None:
    """Return what speaks for a transform, or None where hardly anything meets.

    The fit is moved to where what was not moved is off by nothing on average; where the surface
    bends, to where all of it is. What was moved is told by cells, of which even a few millimetres
    are sure, so that no single point need be let go for being far off.

    Parameters
    ----------
    points_m, variance
        ``(N, 3)`` [m] and ``(N,)`` [m^2].
    unit
        Of `resolution`.
    handheld
        Whether the scanner was moved; None where its misfits must tell.
    """
    found = _meeting(points_m, surface, T, unit)
    if len(found.which) < FEWEST:
        return None
    weight = _weight(found, variance, KERNEL_M * unit)
    middle = np.average(found.points_m, axis=0, weights=weight)
    field = field_of(local_shifts(found, weight, unit), middle, unit)
    shares, ways = _held(found, unit)
    alike = local_shifts(found, 1.0 / variance[found.which], unit)
    if handheld if handheld is not None else field.size_m > BENT_M * unit:
        motion, covariance = mean_motion(alike, field, middle, surface.points_m, unit)
        least_m = max(BENT_FLOOR_M, field.size_m)
    else:
        motion, covariance, least_m = common_motion(alike, middle), field.covariance, 0.0
    T = moved_about(T, -motion, middle)
    found = _meeting(points_m, surface, T, unit)
    return Evidence(
        T,
        len(found.which) / len(points_m),
        float(np.sqrt((found.misfit_m**2).mean())),
        _floored(covariance, least_m),
        middle,
        shares,
        ways,
        tuple(Weakness(w, float(s)) for w, s in zip(ways, shares, strict=True) if s < WEAK_SHARE),
        field.size_m,
    )


def _meeting(points_m: Float64, surface: Surface, T: Float64, unit: float) -> Matches:
    """Return the points that meet the surface."""
    found = match(points_m, surface, surface, T, MEETS_AROUND_M * unit)
    return _only(found, np.abs(found.misfit_m) < MEETS_M * unit)


def _weight(found: Matches, variance: Float64, scale_m: float) -> Float64:
    """Return what each match counts, by its misfit and by how well its point is known."""
    forgiven = (scale_m**2 / (scale_m**2 + found.misfit_m**2)) ** 2
    return np.asarray(forgiven / variance[found.which], np.float64)


def displacement_sigma_m(covariance: Float64, places_m: Float64) -> float:
    """Return one sigma of where a place ends up [m], root mean square over places ``(N, 3)``.

    Turn and shift both move it; the turn is about the middle of the places.
    """
    some = places_m[:: max(1, len(places_m) // 20_000)]
    arm = some - np.median(some, axis=0)
    arm = arm[np.linalg.norm(arm, axis=1) <= np.quantile(np.linalg.norm(arm, axis=1), 0.9)]
    square = arm.T @ arm / len(arm)
    turn = np.trace(square) * np.eye(3) - square
    return float(np.sqrt(np.trace(covariance[3:, 3:]) + np.trace(turn @ covariance[:3, :3])))


def _only(found: Matches, kept: NDArray[np.bool_]) -> Matches:
    return Matches(
        found.points_m[kept],
        found.normals[kept],
        found.apart_m[kept],
        found.distance_m[kept],
        found.misfit_m[kept],
        found.which[kept],
        found.surface_point[kept],
    )


def _floored(covariance: Float64, least_m: float) -> Float64:
    """Return the covariance with a scanner's own added, and one sigma of the shift not below.

    Nor is the turn known better than by that much over a room's length.
    """
    own = covariance + np.diag([FLOOR_RAD**2 / 3] * 3 + [FLOOR_M**2 / 3] * 3)
    floors = (least_m / BENT_OVER_M) ** 2, least_m**2
    told = np.trace(own[:3, :3]), np.trace(own[3:, 3:])
    missing = np.maximum(np.subtract(floors, told), 0.0) / 3
    return np.asarray(own + np.diag(np.repeat(missing, 3)), np.float64)


def _held(found: Matches, unit: float) -> tuple[Float64, Float64]:
    """Return what is known of a shift by direction once the turn may adapt, least first.

    Every stretch of the room counts once, however many points were seen of it: what is asked is
    whether its shape holds it. Shares ``(3,)`` and directions ``(3, 3)``, one a row.
    """
    feet = found.points_m - found.misfit_m[:, np.newaxis] * found.normals
    _, cubes, count = np.unique(
        cube_numbers(feet, STRETCH_M * unit), return_inverse=True, return_counts=True
    )
    weight = 1.0 / count[cubes]
    arm = found.points_m - np.average(found.points_m, axis=0, weights=weight)
    J = np.concatenate([np.cross(arm, found.normals), found.normals], axis=1)
    H = (J * weight[:, np.newaxis]).T @ J
    turn = H[:3, :3] + 1e-9 * np.trace(H[:3, :3]) * np.eye(3)
    shift = H[3:, 3:] - H[3:, :3] @ np.linalg.solve(turn, H[:3, 3:])
    shares, ways = np.linalg.eigh(shift / weight.sum())
    return shares, ways.T
