"""From what was found to what is said: accepted, ambiguous, degenerate or refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.confidence import Evidence
from synorama.records import RegistrationResult, RegistrationStatus
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["Candidate", "Found", "judged"]

ACCEPT_OVERLAP, ACCEPT_RATIO = 0.75, 0.90
BLIND_OVERLAP = 0.80  # where nobody knows from where the points were seen: other rooms reach 0.77
MOST_AGAINST = 0.12  # right pairs have 0.05 to 0.10, other rooms 0.18 and more
CLEAR_OVERLAP = 0.85
REFUSE_OVERLAP = 0.25
MOST_SOLID = 0.05  # of the air that was looked through
VOUCHED_OVERLAP = 0.30  # where a person gave the start
VOUCHED_M, VOUCHED_RAD = 1.0, float(np.deg2rad(15.0))
LONG_SHARE = 0.20  # of what is known of shifts: corridors have 0.14 to 0.19, kitchens 0.25
HELD_SHARE = 0.21  # above which walls at both ends hold a room, though it looks alike along it
MOST_SLID = 0.69  # along the weakest direction: corridors have 0.72 to 0.87, kitchens 0.41 to 0.66
UPRIGHT = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A transform of points onto the surface, how well they lie on it, how much air is solid."""

    T: Float64
    score: float
    solid: float = 0.0

    @property
    def value(self) -> float:
        """By what candidates are compared."""
        return self.score - self.solid

    def is_apart(self, other: Candidate, middle: Float64, turn_rad: float, shift_m: float) -> bool:
        """Tell whether two candidates differ by more than a turn or a shift of the middle."""
        shift = self.T[:3, :3] @ middle + self.T[:3, 3] - other.T[:3, :3] @ middle - other.T[:3, 3]
        return turn_between(self.T, other.T) > turn_rad or float(np.linalg.norm(shift)) > shift_m


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What search and refinement left.

    Parameters
    ----------
    best, others
        Candidates about the origins used inside.
    evidence
        For the best, None where hardly anything meets.
    outward
        ``T_surface_points`` of the best and the others between the frames as given.
    start
        What a person gave, or None.
    origin_m
        ``(3,)`` of the surface's frame, from which the evidence is told.
    unit
        Of `resolution`.
    against
        Share of the points that the surface speaks against; None where that cannot be asked.
    slid
        How well points fit when shifted along the direction that is held least, of how they fit.
    """

    best: Candidate
    others: tuple[Candidate, ...]
    evidence: Evidence | None
    outward: tuple[Float64, ...]
    start: Float64 | None
    origin_m: Float64
    unit: float
    against: float | None
    slid: float

    @property
    def ratio(self) -> float:
        """Runner-up over best; 0 where a person gave the start and nothing else was tried."""
        if not self.others:
            return 0.0
        return min(1.0, max(self.others[0].value, 0.0) / max(self.best.value, 1e-9))

    @property
    def slides(self) -> bool:
        """Whether little of the room holds a direction, or it fits as well further along it."""
        share = 0.0 if self.evidence is None else self.evidence.shares[0]
        return bool(share < LONG_SHARE or (share < HELD_SHARE and self.slid > MOST_SLID))

    @property
    def clear(self) -> bool:
        """Whether it fits so well that no other way of standing need be tried."""
        seen = self.evidence
        return seen is not None and seen.overlap > CLEAR_OVERLAP


def turn_between(a: Float64, b: Float64) -> float:
    """Return the angle between two transforms' rotations [rad]."""
    trace = float(np.trace(a[:3, :3].T @ b[:3, :3]))
    return float(np.arccos(np.clip((trace - 1) / 2, -1.0, 1.0)))


def judged(found: Found, frames: tuple[str, str], target: str) -> RegistrationResult:
    """Return the result that is given out.

    Parameters
    ----------
    frames
        Of points and surface.
    target
        Which of the two is the target.
    """
    seen = found.evidence
    if seen is None or seen.overlap < REFUSE_OVERLAP:
        overlap = seen.overlap if seen else 0.0
        return RegistrationResult(
            "refused",
            f"the best place found has {100 * overlap:.0f} % of the points on the surface, which "
            "any two rooms reach: check that both show the same room, their units and which way "
            "is up, or give a start",
            overlap=overlap,
            method=_method(found),
        )
    status, reason = _status(found, seen)
    laid = RigidTransform(frames[1], frames[0], found.outward[0])
    turned = target != frames[1]
    T = laid.inverse() if turned else laid
    covariance = _turned(seen.covariance, T.rotation) if turned else seen.covariance
    return RegistrationResult(
        status=status,
        reason=reason,
        T_target_source=T,
        overlap=seen.overlap,
        inlier_rmse_m=seen.inlier_rmse_m,
        covariance=covariance,
        weak_directions=_weak_texts(found, seen, T.rotation if turned else np.eye(3)),
        runner_up_ratio=found.ratio,
        method=_method(found),
    )


def _method(found: Found) -> str:
    return "geometry" if found.start is None else "geometry from a given start"


def _turned(covariance: Float64, rotation: Float64) -> Float64:
    """Return the covariance in the other frame: the middle stays, the axes turn with it."""
    both = np.kron(np.eye(2), rotation)
    return np.asarray(both @ covariance @ both.T, np.float64)


def _status(found: Found, seen: Evidence) -> tuple[RegistrationStatus, str]:
    if seen.weak:
        share = 100 * min(w.share for w in seen.weak)
        return "degenerate", (
            f"the geometry hardly holds a shift in one direction ({share:.0f} % of what it knows "
            "of shifts): confirm it by pictures or by hand"
        )
    if found.start is not None:
        return _vouched(found, seen)
    if found.slides:
        return "degenerate", (
            f"along one direction little of the room holds it ({100 * seen.shares[0]:.0f} % of "
            f"what is known of shifts), and shifted it fits {100 * found.slid:.0f} % as well, as "
            "in a corridor: confirm it by pictures or by hand"
        )
    if found.ratio >= ACCEPT_RATIO:
        return "ambiguous", (
            f"another place fits {100 * found.ratio:.0f} % as well: "
            "give --yaw or --init, or confirm it by pictures"
        )
    if found.best.solid > MOST_SOLID:
        return "ambiguous", (
            f"the surface stands in {100 * found.best.solid:.0f} % of the air that the glasses "
            "looked through: check that the scan shows this room"
        )
    return _by_overlap(found, seen)


def _by_overlap(found: Found, seen: Evidence) -> tuple[RegistrationStatus, str]:
    if found.against is not None and found.against > MOST_AGAINST:
        return "ambiguous", (
            f"the surface speaks against {100 * found.against:.0f} % of the points: the scanner "
            "looked past where they would be; check that the scan shows this room"
        )
    needed = BLIND_OVERLAP if found.against is None else ACCEPT_OVERLAP
    if seen.overlap <= needed:
        return "ambiguous", (
            f"{100 * seen.overlap:.0f} % of the points meet the surface, and other rooms of the "
            f"kind reach nearly {100 * needed:.0f} %: confirm it by pictures or by hand"
        )
    return "accepted", f"{100 * seen.overlap:.0f} % of the points meet the surface, nowhere else"


def _vouched(found: Found, seen: Evidence) -> tuple[RegistrationStatus, str]:
    assert found.start is not None
    went = float(np.linalg.norm(found.outward[0][:3, 3] - found.start[:3, 3]))
    turn = turn_between(found.outward[0], found.start)
    if turn > VOUCHED_RAD or seen.overlap < VOUCHED_OVERLAP or went > VOUCHED_M * found.unit * 3:
        return "ambiguous", (
            f"from the start given it went {went:.2f} m and {np.degrees(turn):.1f} degrees away, "
            f"to where {100 * seen.overlap:.0f} % of the points meet: look at it"
        )
    return "accepted", (
        f"{100 * seen.overlap:.0f} % of the points meet the surface, from the start that was given"
    )


# --- what is left open, in words -------------------------------------------------------------


def _weak_texts(found: Found, seen: Evidence, rotation: Float64) -> tuple[str, ...]:
    """Name the directions that are held badly, in the target's frame."""
    named = [(w.direction, "hardly held by the geometry") for w in seen.weak]
    if found.slides:
        named.append((seen.ways[0], f"shifted it fits {100 * found.slid:.0f} % as well"))
    return tuple(f"{_direction(rotation @ way)}: {why}" for way, why in named)


def _direction(way: Float64) -> str:
    way = way if way[int(np.argmax(np.abs(way)))] > 0 else -way
    x, y, z = np.round(way, 2) + 0.0  # no minus before a zero
    told = f"({x:.2f}, {y:.2f}, {z:.2f})"
    if abs(way[2]) > UPRIGHT:
        return f"up and down {told}"
    azimuth = np.degrees(np.arctan2(way[1], way[0])) % 180
    return f"along the floor {told}, {azimuth:.0f} degrees from the target's x"
