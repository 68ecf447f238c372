"""What a surface says against points that are laid onto it, asked only where it can tell.

What the scanner did not see, a shadow behind a cupboard or half a room, says nothing: a point there
lies on no surface wherever it belongs. So a point that meets nothing counts only if the surface
goes on behind it, seen from where the point was seen: there, the scanner looked past its place.
Pairs of one room and pairs of two are far apart by that, however much of the room was scanned;
and in a room that half a turn carries nearly into itself, it is how a mug decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.confidence import kernel_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.fine import Near
    from synorama.geometry.prepare import Points
    from synorama.geometry.surface import Surface

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["contradicted", "contrast"]

MISSED = 0.5  # of the kernel: less is no meeting
BEHIND_M, STEP_M, FOUND_M = (0.10, 0.80), 0.04, 0.05
CELL_M, FEWEST = 0.08, 4  # points of a cell, which count as one


def contradicted(
    points: Points, surface: Surface, near: Near, T: Float64, unit: float
) -> float | None:
    """Return which share of the points the surface speaks against, of those where it can tell.

    None where nobody knows from where they were seen. Parameters as for `contrast`.
    """
    if points.seen_from_m is None:
        return None
    met = kernel_of(points.points_m, surface, T, unit)
    asked = _can_tell(points, near, T, met, unit)
    return float((met[asked] < MISSED).mean()) if asked.any() else 1.0


def contrast(
    points: Points, surface: Surface, near: Near, places: tuple[Float64, Float64], unit: float
) -> float:
    """Return how much more the points speak for the first of two places than for the second.

    Cells of 8 cm are asked one by one, and count by the square of what they say: a few that are
    sure outweigh many that hardly differ.

    Parameters
    ----------
    points
        And from where each was seen, if that is known.
    surface, near
        The surface, and a look-up of it.
    places
        Two transforms ``(4, 4)`` of points onto the surface.
    unit
        Of `synorama.geometry.prepare.resolution`.
    """
    first, second = (kernel_of(points.points_m, surface, T, unit) for T in places)
    asked = _can_tell(points, near, places[0], first, unit)
    asked &= _can_tell(points, near, places[1], second, unit)
    if not asked.any():
        return 0.0
    said = _by_cell(points.points_m[asked], (first - second)[asked], CELL_M * unit)
    return float((np.sign(said) * said**2).sum())


def _can_tell(points: Points, near: Near, T: Float64, met: Float64, unit: float) -> Bool:
    """Return of which points the surface says whether they belong where they are put."""
    told = np.ones(len(met), bool)
    missed = np.flatnonzero(met < MISSED)
    if points.seen_from_m is None or not len(missed):
        return told
    ray = points.points_m[missed] - points.seen_from_m[missed]
    ray /= np.maximum(np.linalg.norm(ray, axis=1, keepdims=True), 1e-9)
    away = np.arange(*BEHIND_M, STEP_M) * unit
    behind = points.points_m[missed, np.newaxis] + ray[:, np.newaxis] * away[:, np.newaxis]
    placed = behind.reshape(-1, 3) @ T[:3, :3].T + T[:3, 3]
    found = np.isfinite(near.nearest(placed, FOUND_M * unit)[0])
    told[missed] = found.reshape(len(missed), -1).any(axis=1)
    return told


def _by_cell(points_m: Float64, values: Float64, side_m: float) -> Float64:
    """Return the means of values in cubes that hold enough of them."""
    cells = np.floor(points_m / side_m).astype(np.int64)
    _, which, count = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(which.ravel(), values) / count
    return np.asarray(means[count >= FEWEST], np.float64)
