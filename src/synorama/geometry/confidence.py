"""How sure a registration is: overlap, misfit, covariance, and what the geometry leaves open.

Neighbouring points err together (one pose of the glasses, one bend of the scan), so that a plain
inverse Hessian promises 5 to 20 times too much. How far they err together is read off the misfits
(`misfit.py`), with a floor that no scanner goes below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.fine import Matches, match
from synorama.geometry.misfit import field_of, local_shifts
from synorama.geometry.surface import Surface

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
]

MEETS_M, MEETS_AROUND_M = 0.05, 0.12
KERNEL_M = 0.03
WEAK_SHARE = 0.145  # of the information; a third each would be even, furnished rooms have 0.17
FLOOR_M, FLOOR_RAD = 0.0012, 3e-4
BENT_FLOOR_M = 0.010  # a scan that bends is known no better anywhere
BENT_M = (
    0.003  # of the slow field of misfits, above which a scan bends: rigid ones have up to 2.5 mm
)
SCORE_AROUND = 2.5
SCALE_M, REACH_M = 0.03, 0.15  # of the last look at each point


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
    overlap
        Share of the points that meet the surface.
    inlier_rmse_m
        Their misfit along the normals.
    covariance
        ``(6, 6)`` of a small turn [rad] about `middle_m` and a shift [m].
    middle_m
        ``(3,)`` the middle of what meets.
    shares
        ``(3,)`` of what is known of shifts, by direction; a third each would be even.
    weak
        Directions of shift that are held badly.
    bend_m
        How far the scan bends: one sigma of the slow field of misfits along each axis.
    """

    overlap: float
    inlier_rmse_m: float
    covariance: Float64
    middle_m: Float64
    shares: Float64
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

    Parameters
    ----------
    points_m, variance
        ``(N, 3)`` [m] and ``(N,)`` [m^2].
    unit
        Of `resolution`.
    handheld
        Whether the scanner was moved; None where its misfits must tell.
    """
    found = match(points_m, surface, surface, T, MEETS_AROUND_M * unit)
    meets = np.abs(found.misfit_m) < MEETS_M * unit
    if meets.sum() < 50:
        return None
    found = _only(found, meets)
    weight = (KERNEL_M**2 * unit**2 / (KERNEL_M**2 * unit**2 + found.misfit_m**2)) ** 2
    weight /= variance[found.which]
    middle = np.average(found.points_m, axis=0, weights=weight)
    field = field_of(local_shifts(found, weight, unit), middle, unit)
    bent = handheld if handheld is not None else field.size_m > BENT_M * unit
    rmse = float(np.sqrt((found.misfit_m**2).mean()))
    shares, ways = _held(_information(found, weight, middle), float(weight.sum()))
    weak = tuple(
        Weakness(way, float(share))
        for way, share in zip(ways, shares, strict=True)
        if share < WEAK_SHARE
    )
    covariance = _floored(field.covariance, BENT_FLOOR_M if bent else 0.0)
    overlap = float(meets.sum()) / len(points_m)
    return Evidence(overlap, rmse, covariance, middle, shares, weak, field.size_m)


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


def _information(found: Matches, weight: Float64, middle: Float64) -> Float64:
    arm = found.points_m - middle
    J = np.concatenate([np.cross(arm, found.normals), found.normals], axis=1)
    return np.asarray((J * weight[:, np.newaxis]).T @ J, np.float64)


def _floored(covariance: Float64, least_m: float) -> Float64:
    """Return the covariance with a scanner's own added, and one sigma of the shift not below."""
    own = covariance + np.diag([FLOOR_RAD**2 / 3] * 3 + [FLOOR_M**2 / 3] * 3)
    missing = max(0.0, least_m**2 - float(np.trace(own[3:, 3:])))
    return np.asarray(own + np.diag([0.0] * 3 + [missing / 3] * 3), np.float64)


def _held(H: Float64, total: float) -> tuple[Float64, Float64]:
    """Return what is known of a shift by direction once the turn may adapt, least first.

    Shares ``(3,)`` and directions ``(3, 3)``, one a row.
    """
    turn = H[:3, :3] + 1e-9 * np.trace(H[:3, :3]) * np.eye(3)
    shift = H[3:, 3:] - H[3:, :3] @ np.linalg.solve(turn, H[:3, 3:])
    shares, ways = np.linalg.eigh(shift / total)
    return shares, ways.T
