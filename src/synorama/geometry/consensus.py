"""One rigid motion that most sightings agree on: minimal solvers, votes, what chance gives.

A sighting says that a ray of a camera meets a point. Rays stand in one frame, points in another;
sought is the motion between the two. Where both frames know the vertical, two sightings give a
motion (C. Sweeney et al., "Solving for relative pose with a partially known rotation is a
quadratic eigenvalue problem", 3DV 2014, for rays of several cameras; here yaw and shift follow
from one linear and one quadratic equation). For one camera of unknown lean three are needed
(J. Grunert 1841, as told by R. Haralick et al., IJCV 1994).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "Consensus",
    "Motions",
    "Sightings",
    "angles_off",
    "by_three",
    "by_two_upright",
    "consensus",
    "from_the_front",
]

AT_ONCE = 4_000_000  # hypotheses times sightings that are held in memory
FIRST_LOOK = 900  # sightings that are asked before all are
SECOND_ROUND = 200  # hypotheses that all are asked about
REACH_M = (0.1, 25.0)  # from a camera to what it sees
LEVEL = 0.03  # two rays that are both as level as this do not tell the height
SEEN_FROM = 0.2  # least cosine between the two directions in which a point was seen
EXPLAINED = 2.0  # times the limit: so near to the best motion a sighting speaks for no other


@dataclass(frozen=True, slots=True, eq=False)
class Sightings:
    """Rays and the points that they are said to meet.

    Parameters
    ----------
    origins, rays
        ``(N, 3)`` where each ray begins, and its unit direction, in the target frame.
    points
        ``(N, 3)`` in the source frame.
    frame
        ``(N,)`` number of the picture in which it was seen.
    feature
        ``(N,)`` which feature of all; one may have been likened to several points.
    seen_along
        ``(N, 3)`` in the source frame: in which direction the point was seen from where it is
        known.
    """

    origins: Float64
    rays: Float64
    points: Float64
    frame: Int64
    feature: Int64
    seen_along: Float64

    def __len__(self) -> int:
        return len(self.points)

    def chosen(self, which: Bool | Int64) -> Sightings:
        """Return some of them."""
        return Sightings(
            self.origins[which],
            self.rays[which],
            self.points[which],
            self.frame[which],
            self.feature[which],
            self.seen_along[which],
        )

    def permuted(self, rng: np.random.Generator) -> Sightings:
        """Return them with the points dealt anew: whatever still agrees does so by chance."""
        dealt = rng.permutation(len(self))
        return replace(self, points=self.points[dealt], seen_along=self.seen_along[dealt])


@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """Rigid motions ``p_target = R p_source + t``: ``(H, 3, 3)`` and ``(H, 3)``."""

    rotations: Float64
    shifts: Float64

    def __len__(self) -> int:
        return len(self.shifts)

    def chosen(self, which: Bool | Int64) -> Motions:
        """Return some of them."""
        return Motions(self.rotations[which], self.shifts[which])


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """The motion with the most votes.

    Parameters
    ----------
    rotation, shift
        ``p_target = R p_source + t``.
    votes
        How many different features agree.
    runner_up
        How many of the others agree on the best motion elsewhere.
    elsewhere
        That motion: rotation and shift.
    """

    rotation: Float64
    shift: Float64
    votes: int
    runner_up: int
    elsewhere: tuple[Float64, Float64]


def consensus(
    sightings: Sightings,
    solver: Callable[[Sightings, np.random.Generator, int], Motions],
    *,
    within_rad: float,
    trials: int,
    rng: np.random.Generator,
) -> Consensus | None:
    """Return the motion that most sightings agree on; None where no minimal set gives one.

    Parameters
    ----------
    sightings
        Right and wrong ones.
    solver
        `by_two_upright` or `by_three`.
    within_rad
        Angle between a ray and its point up to which they agree.
    trials
        How many minimal sets are drawn.
    rng
        Draws them.
    """
    if len(sightings) < 4:
        return None
    motions = solver(sightings, rng, trials)
    if not len(motions):
        return None
    rotation, shift = _elected(sightings, motions, within_rad, rng)
    off = angles_off(sightings, rotation, shift)
    unexplained = sightings.chosen(off > EXPLAINED * within_rad)
    elsewhere = _elected(unexplained, motions, within_rad, rng)
    runner_up = _voters(unexplained, *elsewhere, within_rad)
    votes = _voters(sightings, rotation, shift, within_rad)
    return Consensus(rotation, shift, votes, runner_up, elsewhere)


def _elected(
    sightings: Sightings, motions: Motions, within_rad: float, rng: np.random.Generator
) -> tuple[Float64, Float64]:
    """Return the motion on which most features agree.

    It is asked a second time of the sightings that the best leaves unexplained: motions near the
    best have the same sightings behind them, and none of another place may be among the first.
    """
    some = sightings
    if len(sightings) > FIRST_LOOK:
        some = sightings.chosen(rng.choice(len(sightings), FIRST_LOOK, replace=False))
    if not len(some):
        return motions.rotations[0], motions.shifts[0]
    best = motions.chosen(_most(_votes(some, motions, within_rad), SECOND_ROUND))
    voters = [
        _voters(sightings, rotation, shift, within_rad)
        for rotation, shift in zip(best.rotations, best.shifts, strict=True)
    ]
    first = int(np.argmax(voters))
    return best.rotations[first], best.shifts[first]


def _voters(sightings: Sightings, rotation: Float64, shift: Float64, within_rad: float) -> int:
    """Return how many different features agree with a motion."""
    agree = angles_off(sightings, rotation, shift) < within_rad
    return len(np.unique(sightings.feature[agree]))


def _most(votes: Int64, count: int) -> Int64:
    return np.argsort(-votes, kind="stable")[:count]


def angles_off(sightings: Sightings, rotation: Float64, shift: Float64) -> Float64:
    """Return the angle ``(N,)`` [rad] between each ray and the way to its point."""
    ways = sightings.points @ rotation.T + shift - sightings.origins
    along = (ways * sightings.rays).sum(axis=1)
    across = np.linalg.norm(ways - along[:, np.newaxis] * sightings.rays, axis=1)
    return np.asarray(np.arctan2(across, along), np.float64)


def from_the_front(sightings: Sightings, rotation: Float64) -> Bool:
    """Return which points ``(N,)`` were seen from about the side from which they are known.

    A mirrored wall looks right from behind; nobody looks through walls.
    """
    along = (sightings.seen_along @ rotation.T * sightings.rays).sum(axis=1)
    return np.asarray(along > SEEN_FROM, np.bool_)


def _votes(sightings: Sightings, motions: Motions, within_rad: float) -> Int64:
    """Return how many sightings agree with each motion."""
    points = sightings.points.T.astype(np.float32)
    origins, rays = (a.T.astype(np.float32) for a in (sightings.origins, sightings.rays))
    least = np.float32(np.cos(within_rad))
    at_once = max(1, AT_ONCE // len(sightings))
    counts = np.empty(len(motions), np.int64)
    for begin in range(0, len(motions), at_once):
        some = slice(begin, begin + at_once)
        ways = motions.rotations[some].astype(np.float32) @ points - origins
        ways += motions.shifts[some, :, np.newaxis].astype(np.float32)
        along = np.einsum("hkm,km->hm", ways, rays)
        lengths = np.sqrt(np.einsum("hkm,hkm->hm", ways, ways))
        counts[some] = (along > least * lengths).sum(axis=1)
    return counts


# --- two sightings, vertical known -----------------------------------------------------------


def by_two_upright(sightings: Sightings, rng: np.random.Generator, trials: int) -> Motions:
    """Return motions about the vertical z that carry the points of two sightings onto their rays.

    With ``R d = c + l b - m e``, d the way between the two points, c that between the origins, b
    and e the rays and l, m how far along them the points lie: z gives a line of (l, m), the length
    of x and y a quadratic equation along it.
    """
    one, two = _pairs(sightings, rng, trials)
    d = sightings.points[one] - sightings.points[two]
    c = sightings.origins[one] - sightings.origins[two]
    b, e = sightings.rays[one], sightings.rays[two]
    steep = np.hypot(b[:, 2], e[:, 2])
    steep = np.where(steep > LEVEL, steep, np.inf)
    base = ((d - c)[:, 2] / steep**2)[:, np.newaxis] * np.stack([b[:, 2], -e[:, 2]], axis=1)
    along = np.stack([e[:, 2], b[:, 2]], axis=1) / steep[:, np.newaxis]
    start = (c + base[:, :1] * b - base[:, 1:] * e)[:, :2]
    way = (along[:, :1] * b - along[:, 1:] * e)[:, :2]
    found = []
    for root in _roots(
        (way**2).sum(axis=1), 2 * (start * way).sum(axis=1), (start**2 - d[:, :2] ** 2).sum(axis=1)
    ):
        reach = base + root[:, np.newaxis] * along
        good = ((reach > REACH_M[0]) & (reach < REACH_M[1])).all(axis=1)
        met = (start + root[:, np.newaxis] * way)[good]
        yaw = np.arctan2(_cross(d[good, :2], met), (d[good, :2] * met).sum(axis=1))
        rotation = _about_z(yaw)
        target = sightings.origins[one][good] + reach[good, :1] * b[good]
        shift = target - np.einsum("nij,nj->ni", rotation, sightings.points[one][good])
        found.append(Motions(rotation, shift))
    return _joined(found)


def _pairs(sightings: Sightings, rng: np.random.Generator, trials: int) -> tuple[Int64, Int64]:
    one, two = rng.integers(len(sightings), size=(2, trials))
    apart = np.linalg.norm(sightings.points[one] - sightings.points[two], axis=1) > 0.2
    return one[apart], two[apart]


def _roots(a: Float64, b: Float64, c: Float64) -> list[Float64]:
    """Return both roots of quadratic equations, NaN where there are none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(b**2 - 4 * a * c)
        return [(-b + root) / (2 * a), (-b - root) / (2 * a)]


def _cross(a: Float64, b: Float64) -> Float64:
    return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], np.float64)


def _about_z(yaw: Float64) -> Float64:
    rotation = np.zeros((len(yaw), 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = np.cos(yaw)
    rotation[:, 1, 0], rotation[:, 0, 1] = np.sin(yaw), -np.sin(yaw)
    rotation[:, 2, 2] = 1.0
    return rotation


def _joined(found: list[Motions]) -> Motions:
    return Motions(
        np.concatenate([m.rotations for m in found]), np.concatenate([m.shifts for m in found])
    )


# --- three sightings of one camera -----------------------------------------------------------


def by_three(sightings: Sightings, rng: np.random.Generator, trials: int) -> Motions:
    """Return motions that carry the points of three sightings onto their rays from one origin.

    The origins of the sightings must be the same: they are taken as zero.
    """
    which = rng.integers(len(sightings), size=(trials, 3))
    points, rays = sightings.points[which], sightings.rays[which]
    sides = np.linalg.norm(points[:, (1, 0, 0)] - points[:, (2, 2, 1)], axis=2)
    cosines = (rays[:, (1, 0, 0)] * rays[:, (2, 2, 1)]).sum(axis=2)
    good = (sides > 0.1).all(axis=1) & (cosines < np.cos(0.01)).all(axis=1)
    points, rays, sides, cosines = points[good], rays[good], sides[good], cosines[good]
    ratios = _quartic_roots(_grunert(sides**2, cosines))
    found = []
    for column in ratios.T:
        real = (np.abs(column.imag) < 1e-3 * np.abs(column)) & (column.real > 0)
        found.append(
            _placed(points[real], rays[real], sides[real], cosines[real], column[real].real)
        )
    return _joined(found)


def _grunert(squares: Float64, cosines: Float64) -> Float64:
    """Return the coefficients ``(N, 5)``, highest first, of Grunert's equation."""
    (a, b, c), (ca, cb, cg) = squares.T, cosines.T
    minus, plus = (a - c) / b, (a + c) / b
    return np.stack(
        [
            (minus - 1) ** 2 - 4 * c / b * ca**2,
            4 * (minus * (1 - minus) * cb - (1 - plus) * ca * cg + 2 * c / b * ca**2 * cb),
            2
            * (
                minus**2
                - 1
                + 2 * minus**2 * cb**2
                + 2 * (b - c) / b * ca**2
                - 4 * plus * ca * cb * cg
                + 2 * (b - a) / b * cg**2
            ),
            4 * (-minus * (1 + minus) * cb + 2 * a / b * cg**2 * cb - (1 - plus) * ca * cg),
            (1 + minus) ** 2 - 4 * a / b * cg**2,
        ],
        axis=1,
    )


def _quartic_roots(coefficients: Float64) -> NDArray[np.complex128]:
    """Return the roots ``(N, 4)`` as eigenvalues of companion matrices."""
    lead = coefficients[:, :1]
    lead = np.where(np.abs(lead) > 1e-9, lead, 1e-9)
    companion = np.zeros((len(coefficients), 4, 4))
    companion[:, 0] = -coefficients[:, 1:] / lead
    companion[:, 1, 0] = companion[:, 2, 1] = companion[:, 3, 2] = 1.0
    return np.asarray(np.linalg.eigvals(companion), np.complex128)


def _placed(
    points: Float64, rays: Float64, sides: Float64, cosines: Float64, third: Float64
) -> Motions:
    """Return motions for the ratio of the third distance to the first."""
    (a, b, c), (ca, cb, cg) = (sides**2).T, cosines.T
    minus = (a - c) / b
    below = 2 * (cg - third * ca)
    below = np.where(np.abs(below) > 1e-9, below, 1e-9)
    second = ((minus - 1) * third**2 - 2 * minus * cb * third + 1 + minus) / below
    first = np.sqrt(b / np.maximum(1 + third**2 - 2 * third * cb, 1e-12))
    reach = first[:, np.newaxis] * np.stack([np.ones_like(second), second, third], axis=1)
    good = ((reach > REACH_M[0]) & (reach < REACH_M[1])).all(axis=1)
    there = reach[good, :, np.newaxis] * rays[good]
    here = points[good]
    rotation = _axes(there) @ _axes(here).transpose(0, 2, 1)
    shift = there[:, 0] - np.einsum("nij,nj->ni", rotation, here[:, 0])
    return Motions(rotation, shift)


def _axes(triangles: Float64) -> Float64:
    """Return right-handed axes ``(N, 3, 3)`` (in columns) of triangles."""
    one = triangles[:, 1] - triangles[:, 0]
    up = np.cross(one, triangles[:, 2] - triangles[:, 0])
    one = one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-12)
    up = up / np.maximum(np.linalg.norm(up, axis=1, keepdims=True), 1e-12)
    return np.stack([one, np.cross(up, one), up], axis=2)
