"""Slices and residuals of a registration: pictures at which a person sees whether it is right.

In a thin slice walls are lines. Where the glasses' points lie beside the scan's line, 5 cm and
1.5 degrees are seen at a glance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.raster import Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["Slice", "horizontal_slice", "residual_map", "residuals_m", "vertical_slices"]

HALF_M = 0.04
BLACK, RED = (30, 30, 30), (220, 20, 20)
PIXELS_A_METRE = 160.0
BEYOND_M = 0.3  # of the scan that is shown around it
ABOVE_FLOOR_M = 1.0  # where a slice meets furniture and walls
WORST_M = 0.06  # residual that is drawn darkest
CELL_M = 0.05
NEAREST_M = 0.30  # further off, a point has no counterpart in the scan


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: what it is called, where it lies, and its picture as PNG."""

    name: str
    at_m: float
    png: bytes


def horizontal_slice(
    scan_m: Float64, points_m: Float64, *, height_m: float | None = None, up: int = 2
) -> Slice:
    """Draw a level slice, four centimetres to both sides: scan black, glasses' points red.

    Parameters
    ----------
    scan_m, points_m
        ``(N, 3)`` in one frame, whose z is up.
    height_m
        Where along z; a metre above the scan's floor by default.
    up
        Which axis is up.
    """
    low, high = _box(scan_m)
    at = low[up] + ABOVE_FLOOR_M if height_m is None else height_m
    return _slice(scan_m, points_m, up, at, (low, high), f"level slice at {at:.2f} m")


def vertical_slices(scan_m: Float64, points_m: Float64) -> tuple[Slice, Slice]:
    """Draw two upright slices, across x and across y, where most points of the glasses lie."""
    low, high = _box(scan_m)
    made = []
    for axis, name in ((0, "x"), (1, "y")):
        at = _fullest(points_m[:, axis], low[axis], high[axis])
        title = f"upright slice at {name} = {at:.2f} m"
        made.append(_slice(scan_m, points_m, axis, at, (low, high), title))
    return made[0], made[1]


def _box(scan_m: Float64) -> tuple[Float64, Float64]:
    """Return the corners of the scan without its outermost points."""
    return np.quantile(scan_m, 0.002, axis=0), np.quantile(scan_m, 0.998, axis=0)


def _fullest(values: Float64, low: float, high: float) -> float:
    """Return where most points lie, in the middle half."""
    edges = np.linspace(low + (high - low) / 4, high - (high - low) / 4, 25)
    counts = np.histogram(values, edges)[0]
    k = int(counts.argmax())
    return float((edges[k] + edges[k + 1]) / 2)


def _slice(
    scan_m: Float64,
    points_m: Float64,
    axis: int,
    at_m: float,
    box: tuple[Float64, Float64],
    title: str,
) -> Slice:
    kept = [k for k in range(3) if k != axis]
    low, high = box[0][kept] - BEYOND_M, box[1][kept] + BEYOND_M
    plan = Plan.over(low, high, PIXELS_A_METRE, f"{title}: scan black, glasses' points red")
    for cloud, colour, size in ((scan_m, BLACK, 2), (points_m, RED, 2)):
        near = np.abs(cloud[:, axis] - at_m) < HALF_M
        plan.dots(cloud[near][:, kept], colour, size)
    return Slice(title, at_m, plan.png())


def residuals_m(scan_m: Float64, points_m: Float64) -> Float64:
    """Return how far ``(N,)`` [m] each point is from the scan's nearest; infinite beyond 30 cm."""
    from scipy.spatial import cKDTree

    distance, _ = cKDTree(scan_m).query(points_m, distance_upper_bound=NEAREST_M)
    return np.asarray(distance, np.float64)


def residual_map(scan_m: Float64, points_m: Float64, residual_m: Float64) -> bytes:
    """Return a PNG from above: how far the glasses' points are off the scan, cell by cell.

    Parameters
    ----------
    scan_m
        ``(M, 3)``, drawn pale beneath.
    points_m, residual_m
        ``(N, 3)`` and ``(N,)``, as of `residuals_m`; the median of a cell of 5 cm is drawn, from
        green at nothing over yellow to red at 6 cm and more. Points without a counterpart are
        left out: they tell of moved things, not of the registration.
    """
    low, high = _box(scan_m)
    yellow, red = 50 * WORST_M, 100 * WORST_M
    title = f"median distance to the scan: green 0, yellow {yellow:.0f}, red {red:.0f} cm"
    plan = Plan.over(low[:2] - BEYOND_M, high[:2] + BEYOND_M, PIXELS_A_METRE / 2, title)
    plan.dots(scan_m[:: max(1, len(scan_m) // 200_000), :2], (225, 225, 225))
    there = np.isfinite(residual_m)
    cells, back = np.unique(
        np.floor(points_m[there, :2] / CELL_M).astype(np.int64), axis=0, return_inverse=True
    )
    worst = _medians(residual_m[there], back.ravel(), len(cells))
    size = max(1, round(CELL_M * plan.pixels_a_metre))
    plan.dots(np.asarray((cells + 0.5) * CELL_M, np.float64), _heat(worst / WORST_M), size)
    return plan.png()


def _medians(values: Float64, group: NDArray[np.int64], count: int) -> Float64:
    """Return the median of each group of values."""
    order = np.lexsort((values, group))
    sizes = np.bincount(group, minlength=count)
    first = np.cumsum(sizes) - sizes
    return np.asarray(values[order][first + sizes // 2], np.float64)


def _heat(share: Float64) -> Picture:
    """Return colours ``(N, 3)`` from green at 0 over yellow to red at 1."""
    part = np.clip(share, 0.0, 1.0)
    red, green = np.clip(2 * part, 0, 1), np.clip(2 - 2 * part, 0, 1)
    return np.stack([230 * red, 190 * green, 30 + 0 * part], axis=1).astype(np.uint8)
