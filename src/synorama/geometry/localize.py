"""Where a scan lies in the world of the glasses, by what they saw of it.

All frames ask together: what each sees of the scan's landmarks becomes a ray in the world (the
services know where the glasses were), and one motion of the scan, turned about the vertical, must
bring the landmarks onto the rays. A frame alone would often be wrong; most wrong likenesses
contradict each other, right ones agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.consensus import (
    Consensus,
    Sightings,
    angles_off,
    by_two_upright,
    consensus,
    from_the_front,
)
from synorama.geometry.features import Features, matches
from synorama.geometry.landmarks import (
    FRAME_FEATURES,
    FRAME_PX,
    LandmarkView,
    Likenesses,
    look,
)
from synorama.geometry.lenses import unproject
from synorama.geometry.tell_apart import (
    ASKED_FROM,
    LEAST_LIKENESS,
    Placed,
    Rival,
    likeness,
    preference,
)
from synorama.geometry.views import PosedPicture, grey, resized
from synorama.records import RegistrationResult, RegistrationStatus
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["Localization", "locate_scan", "sightings_of"]

COARSE_RAD, FINE_RAD = 0.02, 0.012
TRIALS = 30_000
SIGMA_RAD = 0.004  # of a right likeness: pixels, distances, poses of the glasses
TILT_SIGMA_RAD = np.deg2rad(0.5)  # scanners know the vertical
ROUNDS = 4

LEAST_FRAMES = 5
LEAST_VOTES = 15
FRAME_VOTES = 3  # that make a frame count
LEAST_OVER_CHANCE = 3.0
MOST_RUNNER_UP = 0.8
ELSEWHERE_RAD = 0.03  # so far off the best place, a sighting speaks for another

INFLATION = 2.0  # of the covariance; see bench/localize.py
FLOOR_RAD, FLOOR_M = 8e-4, 0.0025  # what poses of the glasses share and no frame reveals


@dataclass(frozen=True, slots=True, eq=False)
class Localization:
    """A scan's place by pictures, with what it stands on.

    Parameters
    ----------
    result
        ``T_world_scan`` and how sure it is.
    likenesses
        How many features of the frames look like one of the scan's landmarks.
    votes, chance_votes
        How many of them agree on one motion, and how many would if landmarks were dealt anew.
    frames
        In how many frames.
    rms_rad
        Root mean square angle between rays and landmarks that agree.
    likeness
        How much the frames look like the landmarks where these must be drawn; 0 is chance, 1 all.
    """

    result: RegistrationResult
    likenesses: int = 0
    votes: int = 0
    chance_votes: int = 0
    frames: int = 0
    rms_rad: float = float("nan")
    likeness: float = 0.0

    @property
    def chance_ratio(self) -> float:
        """How many times more agree than by chance."""
        return self.votes / max(self.chance_votes, 1)


def locate_scan(
    frames: Sequence[PosedPicture],
    landmarks: Sequence[LandmarkView],
    *,
    world: str = "world",
    scan: str = "scan",
    seed: int = 0,
) -> Localization:
    """Return where a scan lies in the world of the glasses.

    Parameters
    ----------
    frames
        Frames of the glasses with their poses ``T_world_camera``; a dozen or more, from different
        places, see `synorama.geometry.views.spread_frames`.
    landmarks
        Of the scan's pictures, in the scan's frame, whose z is about the vertical: see
        `synorama.geometry.landmarks.from_cloud`.
    world, scan
        Names of the two frames.
    seed
        Of the draws.
    """
    sightings = sightings_of(frames, landmarks)
    rng = np.random.default_rng([seed, 5])
    found = _vote(sightings, rng)
    if found is None:
        return Localization(
            _refusal(f"{len(sightings)} features look alike: too few"), len(sightings)
        )
    by_chance = _vote(sightings.permuted(rng), rng)
    fit, rival = _better(sightings, found, frames, landmarks)
    told = Localization(
        RegistrationResult("refused", ""),
        len(np.unique(sightings.feature)),
        len(np.unique(sightings.feature[fit.agree])),
        0 if by_chance is None else by_chance.votes,
        _frames_with(sightings.frame[fit.agree]),
        fit.rms_rad,
    )
    alike = likeness(*_asked(frames, fit), landmarks)
    return _judged(replace(told, likeness=alike), fit, rival, world, scan)


def sightings_of(frames: Sequence[PosedPicture], landmarks: Sequence[LandmarkView]) -> Sightings:
    """Return which landmarks are likely seen in which direction of the frames' world."""
    parts, first = [_none()], 0
    for number, frame in enumerate(frames):
        picture = resized(frame, FRAME_PX)
        features = look(picture, FRAME_FEATURES)
        alike = likenesses(features, landmarks)
        which = alike.feature
        rays, seen = unproject(picture.lens, features.pixels[which])
        origin = np.broadcast_to(picture.pose[:3, 3], rays.shape)
        turned = rays @ picture.pose[:3, :3].T
        numbers = np.full(len(which), number)
        whole = Sightings(origin, turned, alike.points_m, numbers, first + which, alike.along)
        parts.append(whole.chosen(seen))
        first += len(features)
    return Sightings(*(np.concatenate(p) for p in zip(*map(_columns, parts), strict=True)))


def _none() -> Sightings:
    nowhere, nothing = np.zeros((0, 3)), np.zeros(0, np.int64)
    return Sightings(nowhere, nowhere, nowhere, nothing, nothing, nowhere)


def _columns(s: Sightings) -> tuple[Float64 | NDArray[np.int64], ...]:
    return s.origins, s.rays, s.points, s.frame, s.feature, s.seen_along


def likenesses(features: Features, landmarks: Sequence[LandmarkView]) -> Likenesses:
    """Return which features look like which landmarks, of any view."""
    return Likenesses.joined(
        (pairs[:, 0], view, pairs[:, 1])
        for view in landmarks
        for pairs in [matches(features, view.features)]
    )


def _vote(sightings: Sightings, rng: np.random.Generator) -> Consensus | None:
    return consensus(sightings, by_two_upright, within_rad=COARSE_RAD, trials=TRIALS, rng=rng)


def _frames_with(frame: NDArray[np.int64]) -> int:
    return int((np.bincount(frame) >= FRAME_VOTES).sum()) if len(frame) else 0


# --- least squares ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The motion that fits those that agree, and its covariance about their middle."""

    matrix: Float64
    agree: Bool
    rms_rad: float
    covariance: Float64
    middle_m: Float64


def _better(
    sightings: Sightings,
    found: Consensus,
    frames: Sequence[PosedPicture],
    landmarks: Sequence[LandmarkView],
) -> tuple[_Fit, Rival]:
    """Refine the best place and the best one elsewhere; return the better, and what is against it.

    In a room that looks nearly the same from both ends, votes do not tell, but what frames show.
    """
    fits = [
        _refined(sightings, rotation, shift)
        for rotation, shift in ((found.rotation, found.shift), found.elsewhere)
    ]
    fits.sort(key=lambda fit: _votes_of(sightings, fit.agree), reverse=True)
    ratio = _share_elsewhere(sightings, *fits)
    if ratio < ASKED_FROM:
        return fits[0], Rival(ratio)
    sure = _preference(frames, landmarks, *fits)
    if sure < 0:
        fits.reverse()
    return fits[0], Rival(_share_elsewhere(sightings, *fits), abs(sure))


def _share_elsewhere(sightings: Sightings, first: _Fit, second: _Fit) -> float:
    off = angles_off(sightings, first.matrix[:3, :3], first.matrix[:3, 3])
    others = _votes_of(sightings, second.agree & (off > ELSEWHERE_RAD))
    return others / max(_votes_of(sightings, first.agree), 1)


def _preference(
    frames: Sequence[PosedPicture], landmarks: Sequence[LandmarkView], first: _Fit, second: _Fit
) -> float:
    pictures, one = _asked(frames, first)
    return preference(pictures, one, _asked(frames, second)[1], landmarks)


def _asked(frames: Sequence[PosedPicture], fit: _Fit) -> tuple[list[Picture], list[Placed]]:
    """Return the frames' pictures, and where their cameras are among the landmarks."""
    small = [resized(frame, FRAME_PX) for frame in frames]
    placed = [Placed(frame.lens, np.linalg.inv(frame.pose) @ fit.matrix) for frame in small]
    return [grey(frame.pixels) for frame in small], placed


def _votes_of(sightings: Sightings, agree: Bool) -> int:
    return len(np.unique(sightings.feature[agree]))


def _refined(sightings: Sightings, turn: Float64, shift: Float64) -> _Fit:
    from scipy.spatial.transform import Rotation

    within = COARSE_RAD
    for _ in range(ROUNDS):
        agree = angles_off(sightings, turn, shift) < within
        middle = sightings.points[agree].mean(axis=0) if agree.any() else np.zeros(3)
        problem = _Problem(sightings.chosen(agree), turn, turn @ middle + shift, middle)
        step = problem.solved()
        turn = Rotation.from_rotvec(step[:3]).as_matrix() @ turn
        shift = problem.target_m + step[3:] - turn @ middle
        off = angles_off(sightings, turn, shift)
        within = float(np.clip(3 * np.median(off[off < within]), 0.004, FINE_RAD))
    agree = (off < within) & from_the_front(sightings, turn)
    problem = _Problem(sightings.chosen(agree), turn, turn @ middle + shift, middle)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn, shift
    if not agree.any():
        return _Fit(matrix, agree, float("nan"), np.full((6, 6), np.inf), shift)
    rms = float(np.sqrt((off[agree] ** 2).mean())) if agree.any() else float("nan")
    return _Fit(matrix, agree, rms, problem.covariance(), turn @ middle + shift)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Small turn and shift about the middle of the landmarks, by the angles to the rays."""

    sightings: Sightings
    turn: Float64
    target_m: Float64
    middle: Float64

    def solved(self) -> Float64:
        from scipy.optimize import least_squares

        if len(self.sightings) < 3:
            return np.zeros(6)
        return np.asarray(least_squares(self.residuals, np.zeros(6), loss="soft_l1").x, np.float64)

    def residuals(self, step: Float64) -> Float64:
        """Return angles across the rays in sigmas, and the lean of the scan in sigmas."""
        from scipy.spatial.transform import Rotation

        turn = Rotation.from_rotvec(step[:3]).as_matrix() @ self.turn
        ways = (self.sightings.points - self.middle) @ turn.T + self.target_m + step[3:]
        ways = ways - self.sightings.origins
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        across = np.cross(ways, self.sightings.rays) / SIGMA_RAD
        return np.concatenate([across.ravel(), turn[:2, 2] / TILT_SIGMA_RAD])

    def covariance(self) -> Float64:
        """Return the covariance ``(6, 6)``, with frames as what errs together.

        The slopes of each frame's cost add up to nothing over all frames; how much they scatter
        tells how wrong the frames are, whatever the reason: a sandwich estimate.
        """
        if len(self.sightings) < 3:
            return np.full((6, 6), np.inf)
        slopes = _jacobian(self.residuals)
        off = self.residuals(np.zeros(6))
        hessian = slopes.T @ slopes
        rows = len(self.sightings) * 3
        frame = np.repeat(self.sightings.frame, 3)
        pulls = np.zeros((int(frame.max()) + 1, 6))
        np.add.at(pulls, frame, slopes[:rows] * off[:rows, np.newaxis])
        count = max(len(np.unique(frame)), 2)
        inverse = np.linalg.inv(hessian)
        sandwich = inverse @ (pulls.T @ pulls) @ inverse * count / (count - 1)
        floor = np.diag([FLOOR_RAD**2] * 3 + [FLOOR_M**2] * 3)
        return np.asarray(INFLATION**2 * (sandwich + inverse) + floor, np.float64)


def _jacobian(residuals: object, step: float = 1e-6) -> Float64:
    call = residuals
    columns = [
        (call(step * e) - call(-step * e)) / (2 * step)  # type: ignore[operator]
        for e in np.eye(6)
    ]
    return np.stack(columns, axis=1)


# --- judgement -------------------------------------------------------------------------------


def _judged(told: Localization, fit: _Fit, rival: Rival, world: str, scan: str) -> Localization:
    status, reason = _verdict(told, rival)
    result = RegistrationResult(
        status,
        reason,
        None if status == "refused" else RigidTransform(world, scan, fit.matrix),
        covariance=None if status == "refused" else fit.covariance,
        runner_up_ratio=rival.ratio,
        method="scan pictures",
    )
    return replace(told, result=result)


def _verdict(told: Localization, rival: Rival) -> tuple[RegistrationStatus, str]:
    facts = (
        f"{told.votes} of {told.likenesses} likenesses agree in {told.frames} frames, "
        f"{told.chance_ratio:.1f} times what chance gives"
    )
    if told.frames < LEAST_FRAMES or told.votes < LEAST_VOTES:
        return "refused", f"too few pictures tell where the scan lies: {facts}"
    if told.chance_ratio < LEAST_OVER_CHANCE:
        return "refused", f"the pictures agree hardly better than by chance: {facts}"
    if told.likeness < LEAST_LIKENESS:
        return "refused", (
            f"from there the frames look like the scan's pictures by {told.likeness:.2f}, and "
            f"{LEAST_LIKENESS} is the least: is it the scan of this room? {facts}"
        )
    if rival.ratio > MOST_RUNNER_UP:
        facts += (
            f"; another place has {100 * rival.ratio:.0f} % as many, and what the frames show "
            f"there speaks for this one by {rival.sure:.1f} sigmas"
        )
    if rival.doubtful(MOST_RUNNER_UP):
        return "ambiguous", f"it may lie elsewhere: {facts}"
    return "accepted", facts


def _refusal(reason: str) -> RegistrationResult:
    return RegistrationResult("refused", reason, method="scan pictures")
