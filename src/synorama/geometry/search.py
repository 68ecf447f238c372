"""Where one cloud could lie in another, if nothing is known but which way is up.

Both clouds stand upright, so that a turn about the vertical and a shift are unknown. For each of
many turns all shifts are tried at once: the correlation of the points with the surface's proximity,
by Fourier transform. Where glasses looked through the air nothing solid can be; a second
correlation with that free space is a penalty. It is a second source of hypotheses, not a filter:
what was moved since the scan may stand where the glasses saw air.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Hypothesis", "SearchOptions", "free_space", "search", "turned"]

PROXIMITY_CELLS = 2.0 / 3.0  # one sigma of the proximity
PEAKS_A_TURN = 4
PEAK_CELLS = 3  # a peak blots out so many cells about it
ALIKE_RAD, ALIKE_CELLS = np.deg2rad(7.0), 3.75
MOST_CELLS = 8_000_000  # of the padded grid
FREE_RAYS, FREE_STEPS = 12_000, 8
FREE_STOP_M = 0.3  # rays end so far before what they met
FREE_REACH_M = 5.0
FREE_NEIGHBOURS = 18  # of 27: thinner free space is left out


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How finely to search.

    Parameters
    ----------
    cell_m
        Side of the grid's cells; larger where the grid would not fit into memory.
    step_rad
        Between turns.
    keep
        Hypotheses of each source.
    yaw_rad
        Middle and half width of the turns to try, or None for all.
    """

    cell_m: float = 0.12
    step_rad: float = float(np.deg2rad(3.0))
    keep: int = 16
    yaw_rad: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A turn about the vertical and a shift: ``p_surface = Rz(yaw) p_points + shift``."""

    score: float
    yaw_rad: float
    shift_m: Float64

    @property
    def matrix(self) -> Float64:
        """``(4, 4)``."""
        return turned(self.yaw_rad, self.shift_m)


def turned(yaw_rad: float, shift_m: Float64 | None = None) -> Float64:
    """Return the ``(4, 4)`` turn about z, then shift."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    matrix = np.eye(4)
    matrix[:2, :2] = [[c, -s], [s, c]]
    if shift_m is not None:
        matrix[:3, 3] = shift_m
    return matrix


def search(
    surface_m: Float64, points_m: Float64, free_m: Float64 | None, options: SearchOptions
) -> list[Hypothesis]:
    """Return hypotheses of where points lie on a surface, best first by each source.

    Parameters
    ----------
    surface_m, points_m
        ``(N, 3)`` and ``(M, 3)``, each with z up.
    free_m
        ``(F, 3)`` places of the points' frame where nothing was, or None.
    """
    grid = _Grid.about(surface_m, points_m, free_m, options.cell_m)
    found: list[list[Hypothesis]] = [[], []]
    for yaw in _turns(options):
        for source, (score, shift) in grid.peaks(yaw):
            found[source].append(Hypothesis(score, yaw, shift))
    kept = [_distinct(some, grid.middle_m, grid.cell_m, options.keep) for some in found]
    return [hypothesis for some in kept for hypothesis in some]


def _turns(options: SearchOptions) -> Float64:
    if options.yaw_rad is None:
        return np.asarray(np.arange(0.0, 2 * np.pi - 1e-9, options.step_rad), np.float64)
    middle, half = options.yaw_rad
    steps = int(np.ceil(half / options.step_rad))
    return np.asarray(middle + options.step_rad * np.arange(-steps, steps + 1), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The surface's proximity, transformed, and the points that are laid over it."""

    cell_m: float
    low_m: Float64
    size: tuple[int, ...]  # of the surface's grid
    shape: tuple[int, int, int]  # padded
    spectrum: NDArray[np.complex64]
    middle_m: Float64
    points_m: Float64  # about their middle
    free_m: Float64 | None
    box: tuple[int, int, int]  # of the points' grid
    corner_m: Float64

    @classmethod
    def about(cls, surface: Float64, points: Float64, free: Float64 | None, cell_m: float) -> _Grid:
        from scipy.fft import next_fast_len, rfftn

        middle = points.mean(axis=0)
        points = points - middle
        free = None if free is None else free - middle
        everything = points if free is None else np.concatenate([points, free])
        radius = float(np.linalg.norm(everything[:, :2], axis=1).max())
        spans = np.array([2 * radius, 2 * radius, np.ptp(everything[:, 2])])
        whole = spans + np.ptp(surface, axis=0)
        cell = max(cell_m, float(np.cbrt(np.prod(whole) / MOST_CELLS)))
        low = surface.min(axis=0) - 2 * cell
        near = _proximity(surface, low, cell)
        sides = (int(np.ceil(s / cell)) + 3 for s in spans)
        box = (next(sides), next(sides), next(sides))
        padded = (next_fast_len(int(n + b), True) for n, b in zip(near.shape, box, strict=True))
        shape = (next(padded), next(padded), next(padded))
        corner = np.array([-radius - cell, -radius - cell, everything[:, 2].min() - cell])
        return cls(
            cell, low, near.shape, shape, rfftn(near, shape), middle, points, free, box, corner
        )

    def peaks(self, yaw: float) -> list[tuple[int, tuple[float, Float64]]]:
        """Return the best shifts at a turn, by points alone (0) and with free space (1)."""
        from scipy.fft import irfftn, rfftn

        occupied = self._laid(self.points_m, yaw)
        weight = float(occupied.sum())
        by_points = irfftn(self.spectrum * np.conj(rfftn(occupied, self.shape)), self.shape)
        found = [(0, peak) for peak in self._best(by_points / weight, yaw)]
        if self.free_m is None:
            return found
        air = self._laid(self.free_m, yaw)
        air[occupied > 0] = 0.0
        through = irfftn(self.spectrum * np.conj(rfftn(air, self.shape)), self.shape)
        both = by_points / weight - through / max(float(air.sum()), 1.0)
        return found + [(1, peak) for peak in self._best(both, yaw)]

    def _laid(self, places: Float64, yaw: float) -> Float32:
        """Return which cells hold one of the places, turned."""
        cells = ((places @ turned(yaw)[:3, :3].T - self.corner_m) / self.cell_m).astype(np.int64)
        laid = np.zeros(self.box, np.float32)
        laid[tuple(cells.T)] = 1.0
        return laid

    def _best(self, scores: Float32, yaw: float) -> list[tuple[float, Float64]]:
        found = []
        turn = turned(yaw)[:3, :3]
        for _ in range(PEAKS_A_TURN):
            at = np.unravel_index(int(np.argmax(scores)), scores.shape)
            cells = np.array(
                [k if k < n else k - p for k, n, p in zip(at, self.size, self.shape, strict=True)]
            )
            shift = self.low_m + cells * self.cell_m - self.corner_m - turn @ self.middle_m
            found.append((float(scores[at]), shift))
            about = [np.arange(k - PEAK_CELLS, k + PEAK_CELLS + 1) % p
                     for k, p in zip(at, self.shape, strict=True)]  # fmt: skip
            scores[np.ix_(*about)] = -1.0
        return found


def _proximity(surface: Float64, low: Float64, cell: float) -> Float32:
    """Return how near each cell is to the surface, 1 on it, fading within a cell or two."""
    from scipy.ndimage import distance_transform_edt

    cells = ((surface - low) / cell).astype(np.int64)
    empty = np.ones(cells.max(axis=0) + 3, bool)
    empty[tuple(cells.T)] = False
    away = distance_transform_edt(empty)
    return np.asarray(np.exp(-0.5 * (away / PROXIMITY_CELLS) ** 2), np.float32)


def _distinct(found: list[Hypothesis], middle: Float64, cell: float, keep: int) -> list[Hypothesis]:
    """Return the best hypotheses that are not nearly the same."""
    kept: list[Hypothesis] = []
    places: list[Float64] = []
    for one in sorted(found, key=lambda h: -h.score):
        place = turned(one.yaw_rad)[:3, :3] @ middle + one.shift_m
        if not any(
            abs(_wrapped(one.yaw_rad - other.yaw_rad)) < ALIKE_RAD
            and np.linalg.norm(place - there) < ALIKE_CELLS * cell
            for other, there in zip(kept, places, strict=True)
        ):
            kept.append(one)
            places.append(place)
        if len(kept) == keep:
            break
    return kept


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


# --- free space ------------------------------------------------------------------------------


def free_space(
    points_m: Float64, seen_from_m: Float64, cell_m: float, rng: np.random.Generator
) -> Float64:
    """Return middles of cells through which somebody looked ``(F, 3)`` [m].

    Rays from where points were seen end well before them, and only the inside of what they cross
    counts: without that, corridors are pushed off their walls.

    Parameters
    ----------
    points_m, seen_from_m
        ``(N, 3)`` each.
    """
    from scipy.ndimage import binary_dilation, uniform_filter

    some = rng.choice(len(points_m), min(FREE_RAYS, len(points_m)), replace=False)
    rays = points_m[some] - seen_from_m[some]
    length = np.linalg.norm(rays, axis=1)
    usable = (length < FREE_REACH_M) & (length > FREE_STOP_M + 0.2)
    if not usable.any():
        return np.zeros((0, 3))
    share = rng.random((int(usable.sum()), FREE_STEPS)) * (1 - FREE_STOP_M / length[usable, None])
    places = seen_from_m[some][usable][:, None] + rays[usable][:, None] * share[..., None]
    places = places.reshape(-1, 3)
    low = places.min(axis=0) - 2 * cell_m
    cells = ((places - low) / cell_m).astype(np.int64)
    crossed = np.zeros(cells.max(axis=0) + 3, np.float32)
    crossed[tuple(cells.T)] = 1.0
    thick = uniform_filter(crossed, 3, mode="constant") * 27 >= FREE_NEIGHBOURS - 0.5
    solid = _occupied(points_m, low, cell_m, crossed.shape)
    inside = (crossed > 0) & thick & ~binary_dilation(solid, np.ones((3, 3, 3)))
    return np.asarray(np.argwhere(inside) * cell_m + low + cell_m / 2, np.float64)


def _occupied(points: Float64, low: Float64, cell: float, shape: tuple[int, ...]) -> Bool:
    cells = np.floor((points - low) / cell).astype(np.int64)
    inside = ((cells >= 0) & (cells < shape)).all(axis=1)
    solid = np.zeros(shape, bool)
    solid[tuple(cells[inside].T)] = True
    return solid
