"""How misfits hang together over a room, and what that means for the pose fitted to them.

What is left between points and surface after the best fit is not noise. Glasses err by stances:
what was seen from one place is off together. A scan that was made by hand bends slowly. Both are a
field of small shifts, alike at places that are near each other, and the part of it that is the same
everywhere, or grows evenly, has gone into the pose unseen. How large that part is follows from the
part that can be seen: the field is taken as a random one, whose size is estimated by restricted
maximum likelihood (Patterson and Thompson 1971), which allows for what the pose has taken away. The
pose's covariance is then what such a field does to the estimate.

Where a scan bends, its pose is the one that leaves it off by nothing on average. Points that are
laid onto it see only part of it, and of each wall only whether it stands too near or too far. The
field's most likely course follows from what they see (universal kriging, Matheron 1969), and from
it the average over all of the scan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.fine import Matches

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Along = tuple[Float64, Float64]  # places ``(K, 3)`` and a unit vector at each

__all__ = [
    "Field",
    "LocalShifts",
    "common_motion",
    "field_of",
    "local_shifts",
    "mean_motion",
]

CELL_M = 0.6
OTHER_CELLS = (0.5, 0.25, 2.0, 4.0)  # of its side, where that gives too few
FEWEST_POINTS = 20  # of a cell that counts
LEAST_SHARE = 0.12  # of a cell's normals, by which it holds a direction
FEWEST, MOST = 60, 600  # local shifts wanted; their matrices are inverted
ALIKE_M = 4.0  # within which the field is much the same: half a room
USUAL_M, USUAL_ROUGH_M = 0.0015, 0.0005  # of rigid scans of simulated rooms
SPREAD = 1.0  # of the logarithm of these, between rooms
REACH = 5.0  # of the logarithm, in which the size is sought
AVERAGED = 300  # places over which a field is averaged
MOVED = 6.0  # sigmas of most local shifts: what is off by more was moved
NEARLY_RAD, NEARLY_M = 0.03, 0.1  # by how much a pose may be off that was fitted to a bent scan


@dataclass(frozen=True, slots=True, eq=False)
class LocalShifts:
    """By how much the points of a cell are off the surface, in the directions that it holds.

    Parameters
    ----------
    places_m, ways
        ``(K, 3)``: the middle of the cell's points and a unit vector.
    off_m, variance
        ``(K,)``: the shift along it [m], and its variance [m^2] as the points scatter.
    information
        ``(K,)`` weight that it has in the fit.
    """

    places_m: Float64
    ways: Float64
    off_m: Float64
    variance: Float64
    information: Float64

    @property
    def along(self) -> Along:
        """Places and ways together."""
        return self.places_m, self.ways

    @property
    def fewness(self) -> Float64:
        """``(K,)`` how little each counts in the fit: few points are thrown off by more."""
        return np.asarray(np.median(self.information) / self.information, np.float64)

    def design(self, middle_m: Float64) -> Float64:
        """Return how a small turn about a middle and a shift move each, ``(K, 6)``."""
        return _design(self.along, middle_m)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What the misfits say of the field: its size, and the pose's uncertainty.

    Parameters
    ----------
    size_m, rough_m
        One sigma of the slow shift of a place along each axis, and of what each cell is off beside.
    covariance
        ``(6, 6)`` of a small turn [rad] about the middle and a shift [m].
    """

    size_m: float
    rough_m: float
    covariance: Float64


def local_shifts(found: Matches, weight: Float64, unit: float) -> LocalShifts:
    """Return what matches ``(M,)`` with their weights in the fit say of shifts, cell by cell.

    Cells are smaller where a thing has too few, larger where points are thin or cells too many;
    where all are too few, every point speaks for itself. What was moved is left out: no field that
    is off by millimetres bends a cabinet by centimetres.
    """
    return _unmoved(_local_shifts(found, weight, unit))


def _unmoved(shifts: LocalShifts) -> LocalShifts:
    """Return the shifts that are not beyond all others (by the median of their sizes)."""
    off = np.abs(shifts.off_m)
    kept = off <= MOVED * 1.4826 * np.median(off)
    return LocalShifts(
        shifts.places_m[kept],
        shifts.ways[kept],
        shifts.off_m[kept],
        shifts.variance[kept],
        shifts.information[kept],
    )


def _local_shifts(found: Matches, weight: Float64, unit: float) -> LocalShifts:
    shifts = _shifts(found, weight, unit)
    if len(shifts.off_m) > MOST:
        larger = 1.1 * np.sqrt(len(shifts.off_m) / MOST)
        return _shifts(found, weight, unit, larger)
    if len(shifts.off_m) >= FEWEST:
        return shifts
    others = (_shifts(found, weight, unit, part) for part in OTHER_CELLS)
    most = max(others, key=lambda one: len(one.off_m))
    return most if len(most.off_m) >= FEWEST else _each(found, weight)


def _each(found: Matches, weight: Float64) -> LocalShifts:
    some = slice(None, None, 1 + len(weight) // MOST)
    scatter = np.full(len(weight), np.average(found.misfit_m**2, weights=weight))
    return LocalShifts(
        found.points_m[some], found.normals[some], found.misfit_m[some], scatter[some], weight[some]
    )


def field_of(shifts: LocalShifts, middle_m: Float64, unit: float) -> Field:
    """Return the field that explains local shifts best, and what it does to the pose."""
    J = shifts.design(middle_m)
    alike = _alike(shifts.along, shifts.along, unit)
    slow, rough = _variances(shifts, J, alike, unit)
    V = _spread(shifts, alike, slow, rough)
    weighted = J * shifts.information[:, np.newaxis]
    H = weighted.T @ J
    pull = np.linalg.solve(H + 1e-9 * np.trace(H) * np.eye(6), weighted.T)
    return Field(float(np.sqrt(slow)), float(np.sqrt(rough)), np.asarray(pull @ V @ pull.T))


def common_motion(shifts: LocalShifts, middle_m: Float64) -> Float64:
    """Return by which turn [rad] and shift [m] ``(6,)`` the points are off that were not moved."""
    J = shifts.design(middle_m)
    weighted = J * shifts.information[:, np.newaxis]
    H = weighted.T @ J
    return np.linalg.solve(H + 1e-9 * np.trace(H) * np.eye(6), weighted.T @ shifts.off_m)


def mean_motion(
    shifts: LocalShifts, field: Field, middle_m: Float64, surface_m: Float64, unit: float
) -> tuple[Float64, Float64]:
    """Return by how much the points are off a surface on average over all of it.

    Parameters
    ----------
    shifts, field
        What is seen, and the field that explains it.
    middle_m
        ``(3,)`` about which the turn is told.
    surface_m
        ``(N, 3)`` of the surface, seen and unseen.

    Returns
    -------
    motion, covariance
        A small turn [rad] and a shift [m], ``(6,)``, and how well both are known, ``(6, 6)``.
    """
    everywhere = _all_ways(surface_m[:: 1 + len(surface_m) // AVERAGED])
    average = _average_over(everywhere, middle_m)
    slow = field.size_m**2
    seen = slow * average @ _alike(everywhere, shifts.along, unit)
    whole = slow * average @ _alike(everywhere, everywhere, unit) @ average.T
    alike = _alike(shifts.along, shifts.along, unit)
    W = np.linalg.inv(_spread(shifts, alike, slow, field.rough_m**2))
    J = shifts.design(middle_m)
    H = J.T @ W @ J
    common = np.linalg.solve(H + _nearly(unit), J.T @ W @ shifts.off_m)
    motion = common + seen @ W @ (shifts.off_m - J @ common)
    missed = np.eye(6) - seen @ W @ J
    known = np.linalg.inv(H + 1e-9 * np.trace(H) * np.eye(6))
    return motion, whole - seen @ W @ seen.T + missed @ known @ missed.T


def _nearly(unit: float) -> Float64:
    """Return what is known of a motion beforehand: what holds nothing must not run away."""
    return np.diag([NEARLY_RAD**-2.0] * 3 + [(NEARLY_M * unit) ** -2.0] * 3)


def _spread(shifts: LocalShifts, alike: Float64, slow: float, rough: float) -> Float64:
    """Return the covariance of local shifts by a slow field, each cell's own, and noise."""
    return np.asarray(slow * alike + np.diag(rough * shifts.fewness + shifts.variance), np.float64)


def _all_ways(places_m: Float64) -> Along:
    """Return each place three times, along x, y and z."""
    return np.repeat(places_m, 3, axis=0), np.tile(np.eye(3), (len(places_m), 1))


def _average_over(along: Along, middle_m: Float64) -> Float64:
    """Return what makes of shifts along ways ``(K,)`` the motion that they have in common."""
    J = _design(along, middle_m)
    return np.asarray(np.linalg.solve(J.T @ J, J.T), np.float64)


def _design(along: Along, middle_m: Float64) -> Float64:
    """Return how a small turn about a middle and a shift move places along ways, ``(K, 6)``."""
    places, ways = along
    return np.concatenate([np.cross(places - middle_m, ways), ways], axis=1)


def _shifts(found: Matches, weight: Float64, unit: float, part: float = 1.0) -> LocalShifts:
    # by where they would lie, or the border of two cells along a wall would part them by misfit
    feet = found.points_m - found.misfit_m[:, np.newaxis] * found.normals
    cells, count = _cells(feet, part * CELL_M * unit)
    total = np.bincount(cells, weight)
    places = _sums(cells, weight[:, np.newaxis] * found.points_m) / total[:, np.newaxis]
    pairs = found.normals[:, :, np.newaxis] * found.normals[:, np.newaxis, :]
    G = _sums(cells, weight[:, np.newaxis, np.newaxis] * pairs)
    pull = _sums(cells, (weight * found.misfit_m)[:, np.newaxis] * found.normals)
    shares, ways = np.linalg.eigh(G / total[:, np.newaxis, np.newaxis])
    ways = ways.transpose(0, 2, 1)
    held = (shares > LEAST_SHARE) & (count >= FEWEST_POINTS)[:, np.newaxis]
    information = np.where(held, shares * total[:, np.newaxis], np.inf)
    off = np.einsum("cki,ci->ck", ways, pull) / information
    left = found.misfit_m - np.einsum(
        "ni,ni->n", found.normals, np.einsum("ck,cki->ci", off, ways)[cells]
    )
    scatter = _sums(cells, ((weight * left) ** 2)[:, np.newaxis, np.newaxis] * pairs)
    noise = np.einsum("cki,cij,ckj->ck", ways, scatter, ways) / information**2
    which = np.nonzero(held)
    return LocalShifts(places[which[0]], ways[which], off[which], noise[which], information[which])


def _cells(points_m: Float64, side_m: float) -> tuple[Int64, Int64]:
    """Return to which cell each point belongs, counted from 0, and how many each has."""
    corners = np.floor(points_m / side_m).astype(np.int64)
    _, number, count = np.unique(corners, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(number.ravel(), np.int64), np.asarray(count, np.int64)


def _sums(cells: Int64, values: Float64) -> Float64:
    """Return the sums of values ``(N, ...)`` over each cell."""
    columns = values.reshape(len(values), -1).T
    sums = np.stack([np.bincount(cells, column) for column in columns], axis=-1)
    return np.asarray(sums.reshape(-1, *values.shape[1:]), np.float64)


def _alike(some: Along, others: Along, unit: float) -> Float64:
    """Return how alike a field of one sigma is along ways: Matern's, once differentiable."""
    apart = some[0][:, np.newaxis] - others[0][np.newaxis]
    far = np.sqrt(3.0) / (ALIKE_M * unit) * np.linalg.norm(apart, axis=2)
    return np.asarray((some[1] @ others[1].T) * (1 + far) * np.exp(-far), np.float64)


def _variances(shifts: LocalShifts, J: Float64, alike: Float64, unit: float) -> tuple[float, float]:
    """Return the most likely variances of the slow field and of each cell by itself [m^2]."""
    from scipy.optimize import minimize

    usual = np.log([USUAL_M * unit, USUAL_ROUGH_M * unit])

    def unlikely(beside: Float64) -> float:
        slow, rough = np.exp(2 * (usual + beside))
        V = _spread(shifts, alike, slow, rough)
        return _unlikely(shifts.off_m, J, V) + 0.5 * float(beside @ beside) / SPREAD**2

    found = minimize(
        unlikely,
        np.zeros(2),
        method="Nelder-Mead",
        bounds=[(-REACH, REACH)] * 2,
        options={"xatol": 0.02, "fatol": 0.02, "initial_simplex": [[0, 0], [1, 0], [0, 1]]},
    )
    slow, rough = np.exp(2 * (usual + found.x))
    return float(slow), float(rough)


def _unlikely(off_m: Float64, J: Float64, V: Float64) -> float:
    """Return minus the restricted log-likelihood, but for a constant."""
    from scipy.linalg import solve_triangular

    L = np.linalg.cholesky(V)
    white = solve_triangular(L, np.column_stack([J, off_m]), lower=True, check_finite=False)
    A = white[:, :6].T @ white[:, :6] + 1e-9 * np.eye(6)
    b = white[:, :6].T @ white[:, 6]
    square = white[:, 6] @ white[:, 6] - b @ np.linalg.solve(A, b)
    return float(np.log(np.diag(L)).sum() + 0.5 * np.linalg.slogdet(A)[1] + 0.5 * square)
