"""From nearly right to right: points onto a surface, by robust weighted least squares.

Each point is held to the plane of the surface point nearest to it, weighed by how surely its place
is known. Far off, the kernel forgives little so that the basin is wide; at the end it forgives all
that was moved between scan and session. The vertical is known to a fraction of a degree on both
sides, which enters as a prior: first turn and shift only, then all six degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.surface import Surface

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Matches", "Near", "Step", "match", "moved_about", "refine", "rotation_of"]

TILT_SIGMA_RAD = float(np.deg2rad(0.5))
POINTS_A_MEASUREMENT = 200.0  # neighbours err together: so many count as one against the prior
POINT_TO_POINT = 0.02  # share that keeps a shift along bare walls from running away
LEAST_MATCHES = 30
STILL_RAD = STILL_M = 2e-5


class Near(Protocol):
    """What tells the nearest points of a surface."""

    def nearest(self, places_m: Float64, reach_m: float) -> tuple[Float64, Int64]:
        """Return distances and numbers, inf where nothing is within reach."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of the way.

    Parameters
    ----------
    scale_m
        Misfit [m] from which a point counts less.
    reach_m
        How far a point looks for the surface.
    rounds
        At most.
    freedom
        4: turn about the vertical and shift; 6: all.
    kernel
        ``huber`` keeps a pull from afar, ``redescending`` lets go.
    """

    scale_m: float
    reach_m: float
    rounds: int
    freedom: Literal[4, 6] = 6
    kernel: Literal["huber", "redescending"] = "redescending"


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Points and the planes they belong to, in the surface's frame.

    Parameters
    ----------
    points_m, normals, apart_m
        ``(M, 3)``: the point, the surface's normal, the way from the surface to the point.
    distance_m, misfit_m
        ``(M,)``: length of that way, and its part along the normal.
    which, surface_point
        ``(M,)``: which of the points given, and which of the surface's.
    """

    points_m: Float64
    normals: Float64
    apart_m: Float64
    distance_m: Float64
    misfit_m: Float64
    which: Int64
    surface_point: Int64


def match(points_m: Float64, surface: Surface, near: Near, T: Float64, reach_m: float) -> Matches:
    """Return which points, carried by ``T`` ``(4, 4)``, meet the surface, and where."""
    placed = points_m @ T[:3, :3].T + T[:3, 3]
    distance, there = near.nearest(placed, reach_m)
    which = np.flatnonzero(np.isfinite(distance))
    there = there[which]
    apart = placed[which] - surface.points_m[there]
    normals = surface.normals[there]
    misfit = np.einsum("ni,ni->n", apart, normals)
    return Matches(placed[which], normals, apart, distance[which], misfit, which, there)


def refine(
    points_m: Float64,
    variance: Float64,
    surface: Surface,
    near: Near,
    start: Float64,
    steps: Sequence[Step],
    tilt_sigma_rad: float = TILT_SIGMA_RAD,
) -> Float64:
    """Return the transform ``(4, 4)`` that lays the points onto the surface.

    Parameters
    ----------
    points_m, variance
        ``(N, 3)`` [m] and ``(N,)`` [m^2] of their places.
    near
        The surface itself, or a faster look-up of it.
    start
        ``(4, 4)`` from where to begin.
    tilt_sigma_rad
        How surely both verticals are known.
    """
    T: Float64 = start.copy()
    for step in steps:
        for _ in range(step.rounds):
            found = match(points_m, surface, near, T, step.reach_m)
            if len(found.which) < LEAST_MATCHES:
                return T
            motion, middle = _increment(found, variance[found.which], step, T, tilt_sigma_rad)
            T = moved_about(T, motion, middle)
            if np.linalg.norm(motion[:3]) < STILL_RAD and np.linalg.norm(motion[3:]) < STILL_M:
                break
    return T


def _increment(
    found: Matches, variance: Float64, step: Step, T: Float64, tilt_sigma_rad: float
) -> tuple[Float64, Float64]:
    weight = _kernel(found, step) / variance
    middle = np.average(found.points_m, axis=0, weights=weight)
    H, b = _normal_equations(found, weight, middle)
    if step.freedom == 4:
        free = [2, 3, 4, 5]
        solved = np.zeros(6)
        solved[free] = _solved(H[np.ix_(free, free)], b[free])
        return solved, middle
    H, b = H / POINTS_A_MEASUREMENT, b / POINTS_A_MEASUREMENT
    upright = np.diag([1.0, 1.0, 0.0]) / tilt_sigma_rad**2
    H[:3, :3] += upright
    b[:3] -= upright @ np.cross([0.0, 0.0, 1.0], T[:3, 2])
    return _solved(H, b), middle


def _solved(H: Float64, b: Float64) -> Float64:
    return np.linalg.solve(H + 1e-9 * np.trace(H) * np.eye(len(H)), b)


def _kernel(found: Matches, step: Step) -> Float64:
    """Return weights between 0 and 1 by misfit along the normal and by distance."""
    misfit, scale = np.abs(found.misfit_m), step.scale_m
    if step.kernel == "huber":
        return np.asarray(scale / np.maximum(misfit, scale), np.float64)
    near = scale**2 / (scale**2 + misfit**2)
    around = (2 * scale) ** 2 / ((2 * scale) ** 2 + found.distance_m**2)
    return np.asarray((near * around) ** 2, np.float64)


def _normal_equations(found: Matches, weight: Float64, middle: Float64) -> tuple[Float64, Float64]:
    """Return H ``(6, 6)`` and b ``(6,)`` of a small turn about the middle, and a shift."""
    arm = found.points_m - middle
    J = np.concatenate([np.cross(arm, found.normals), found.normals], axis=1)
    H = (J * weight[:, np.newaxis]).T @ J
    b = -J.T @ (weight * found.misfit_m)
    return _with_point_to_point(H, b, found, arm, POINT_TO_POINT * weight)


def _with_point_to_point(
    H: Float64, b: Float64, found: Matches, arm: Float64, weight: Float64
) -> tuple[Float64, Float64]:
    total, first = float(weight.sum()), _skew(weight @ arm)
    square = np.einsum("n,ni,nj->ij", weight, arm, arm)
    H[:3, :3] += np.trace(square) * np.eye(3) - square
    H[:3, 3:] += first
    H[3:, :3] += first.T
    H[3:, 3:] += total * np.eye(3)
    b[:3] -= weight @ np.cross(arm, found.apart_m)
    b[3:] -= weight @ found.apart_m
    return H, b


def _skew(v: Float64) -> Float64:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_of(vector: Float64) -> Float64:
    """Return the rotation ``(3, 3)`` of a rotation vector [rad]."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3)
    k = _skew(vector / angle)
    return np.asarray(np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k, np.float64)


def moved_about(T: Float64, motion: Float64, middle: Float64) -> Float64:
    """Return a transform turned about a middle [rad], then shifted [m], by a motion ``(6,)``."""
    step = np.eye(4)
    step[:3, :3] = rotation_of(motion[:3])
    step[:3, 3] = middle + motion[3:] - step[:3, :3] @ middle
    moved = step @ T
    u, _, v = np.linalg.svd(moved[:3, :3])  # rounding adds up over many steps
    moved[:3, :3] = u @ v
    return moved
