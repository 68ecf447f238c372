"""Where cameras of the room stand: by landmarks of the scan's pictures and of the glasses' frames.

The lens of such a camera is seldom known well. A table gives its kind; its focal length is tried
over a range, and focal length, principal point and distortion are fitted together with the pose,
held by how much lenses of a kind differ. What is not known of the lens makes the pose less sure,
and the covariance says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.consensus import (
    SEEN_FROM,
    Consensus,
    Sightings,
    angles_off,
    by_three,
    consensus,
    from_the_front,
)
from synorama.geometry.features import Features, matches
from synorama.geometry.landmarks import LandmarkView, Likenesses, look
from synorama.geometry.lenses import PARAMETERS, Lens, Model, project, unproject
from synorama.geometry.localize import likenesses
from synorama.geometry.resection import Pose, Resection, Seen, resected
from synorama.geometry.tell_apart import (
    ASKED_FROM,
    LEAST_LIKENESS,
    Placed,
    Rival,
    likeness,
    preference,
)
from synorama.geometry.views import PosedPicture, grey, resized
from synorama.records import CameraPose, RegistrationStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = ["CameraPictures", "LocatedCamera", "locate_camera", "locate_cameras", "usual_lens"]

METHOD = "landmarks of the scan's and the glasses' pictures"
PICTURE_PX = 960
FEATURES = 2200
MORE_FEATURES = 7000  # that are asked once the pose is known nearly: weak ones serve, too
GUIDED_PX = (12.0, 4.0)  # a landmark is looked for so near, round by round: a lens not known bends
ALIKE = 0.85  # and looks so much alike (cosine)
STILL_PX = 1.5  # features of a camera that stands still move less, at `PICTURE_PX`
STILL_SHARE = 0.5  # of the features that must stay

COARSE_RAD = 0.025
TRIALS_A_FOCAL = 6_000
TRIALS = 12_000
FOCALS_TRIED = 3  # that are fitted in full, of all

LEAST_VOTES = 25
LEAST_OVER_CHANCE = 3.0
MOST_RUNNER_UP = 0.75
APART_M, APART_RAD = 0.5, np.deg2rad(12.0)
LEAST_AT_FIRST = 10  # votes of a pose about which it is worth to look again
CELLS = (4, 3)  # of the picture
LEAST_CELLS = 4  # in which landmarks agree
MOST_CENTRE_OFF = 0.015  # of the width, six sigmas: a lens bent to fit a wrong pose had 0.03
MOST_SIGMA_RAD, MOST_SIGMA_M = np.deg2rad(0.4), 0.04


@dataclass(frozen=True, slots=True, eq=False)
class CameraPictures:
    """Pictures of one camera, from which its pose is found.

    Parameters
    ----------
    recording
        Whose camera it is.
    t_device_ns
        ``(K,)`` when each was taken, on the recording's own clock.
    pictures
        ``K`` pictures ``(H, W)`` or ``(H, W, 3)`` uint8, as stored; five from all over the
        recording do.
    lens
        Of pictures of this size: from a calibration, or `usual_lens`.
    lens_known
        Whether the lens was calibrated; it is fitted otherwise.
    device
        Kind of the camera, as of `usual_lens`: how far its focal length may be off.
    """

    recording: str
    t_device_ns: Int64
    pictures: Sequence[Picture]
    lens: Lens
    lens_known: bool = False
    device: str = "webcam"


@dataclass(frozen=True, slots=True, eq=False)
class LocatedCamera:
    """A camera's pose and lens, with what they stand on.

    Parameters
    ----------
    pose
        Its place in the world.
    lens
        As it was given, or fitted, for pictures of the recorded size.
    votes, chance_votes
        How many features agree on the pose, and how many would by chance.
    rms_px
        Of those that agree, at a picture 960 px wide.
    likeness
        How much its pictures look like the landmarks where these must be drawn: 0 is chance.
    """

    pose: CameraPose
    lens: Lens
    votes: int = 0
    chance_votes: int = 0
    rms_px: float = float("nan")
    likeness: float = float("nan")


# Focal lengths as shares of the picture's width: a camera's usual one, and how far to look.
_USUAL: Mapping[str, tuple[Model, float, tuple[float, float]]] = {
    "gopro": ("fisheye", 0.52, (0.40, 0.85)),
    "webcam": ("pinhole", 0.80, (0.55, 1.20)),
}
FOCAL_STEP = 1.08


def usual_lens(device: str, width: int, height: int) -> Lens:
    """Return the lens that cameras of a kind have: ``gopro`` in its wide view, or ``webcam``.

    Parameters
    ----------
    device
        The recording's device; an unknown one is taken for a webcam.
    width, height
        Of its pictures [px].
    """
    model, share, _ = _USUAL.get(device, _USUAL["webcam"])
    params = np.zeros(len(PARAMETERS[model]))
    params[:4] = share * width, share * width, (width - 1) / 2, (height - 1) / 2
    return Lens(model, width, height, params)


def locate_cameras(
    cameras: Sequence[CameraPictures], landmarks: Sequence[LandmarkView], *, seed: int = 0
) -> dict[str, LocatedCamera]:
    """Return the pose of each camera by recording; parameters as of `locate_camera`."""
    return {c.recording: locate_camera(c, landmarks, seed=seed) for c in cameras}


def locate_camera(
    camera: CameraPictures, landmarks: Sequence[LandmarkView], *, seed: int = 0
) -> LocatedCamera:
    """Return where a camera stood, once if it did not move, else at each of its pictures.

    Parameters
    ----------
    camera
        Its pictures.
    landmarks
        In the world frame: of the scan's pictures (`landmarks.moved`), of the glasses' frames
        (`landmarks.from_motion`), or of both.
    seed
        Of the draws.
    """
    if not camera.pictures or not landmarks:
        why = "there is no picture of it" if not camera.pictures else "no landmark is known"
        return LocatedCamera(CameraPose(camera.recording, "refused", why), camera.lens)
    small = [_small(camera, k) for k in range(len(camera.pictures))]
    if _stands_still([look(p, FEATURES) for p in small[:: max(1, len(small) // 4)]]):
        still = replace(small[0], pixels=_median(small))
        found = _Finder(camera.device, landmarks, seed).found(still, known=camera.lens_known)
        middle = camera.t_device_ns[len(small) // 2 :][:1]
        return _told(camera, [found], middle, len(small))
    return _moving(camera, small, landmarks, seed)


def _small(camera: CameraPictures, k: int) -> PosedPicture:
    whole = PosedPicture(camera.recording, camera.pictures[k], camera.lens, np.eye(4))
    return resized(whole, PICTURE_PX)


def _stands_still(looked: Sequence[Features]) -> bool:
    """Return whether most features stay where they are from picture to picture."""
    for one, two in pairwise(looked):
        pairs = matches(one, two)
        gap = np.linalg.norm(one.pixels[pairs[:, 0]] - two.pixels[pairs[:, 1]], axis=1)
        if not len(gap) or (gap < STILL_PX).mean() < STILL_SHARE:
            return False
    return True


def _median(pictures: Sequence[PosedPicture]) -> Picture:
    """Return a picture without those who walk through it, and with less noise."""
    stack = np.stack([p.pixels for p in pictures])
    return np.asarray(np.median(stack, axis=0), np.uint8)


def _moving(
    camera: CameraPictures,
    small: Sequence[PosedPicture],
    landmarks: Sequence[LandmarkView],
    seed: int,
) -> LocatedCamera:
    """Find the pose of each picture; the lens that fits the best of them serves all."""
    finder = _Finder(camera.device, landmarks, seed)
    if camera.lens_known:
        return _each(camera, [finder.found(p, known=True) for p in small])
    first = [finder.found(p, known=False) for p in small[:: max(1, len(small) // 3)]]
    best = max(first, key=lambda f: f.votes)
    if best.fit is None:
        return _told(camera, [best], camera.t_device_ns[:1], 1)
    lens = best.fit.lens
    return _each(camera, [finder.found(replace(p, lens=lens), known=True) for p in small])


def _each(camera: CameraPictures, found: Sequence[_Found]) -> LocatedCamera:
    """Tell the poses of those pictures whose pose was accepted; the best one's reason if none."""
    kept = [k for k, f in enumerate(found) if f.status == "accepted"]
    if not kept:
        best = max(range(len(found)), key=lambda k: found[k].votes)
        return _told(camera, [found[best]], camera.t_device_ns[best : best + 1], 1)
    return _told(camera, [found[k] for k in kept], camera.t_device_ns[kept], len(kept))


# --- one picture -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    status: RegistrationStatus
    reason: str
    fit: Resection | None = None
    votes: int = 0
    chance_votes: int = 0
    likeness: float = float("nan")


@dataclass(frozen=True, slots=True)
class _Stands:
    """What speaks against a pose beside its votes.

    A rival, what is drawn where it must be, and how far aside the centre of a fitted lens lies.
    """

    rival: Rival
    likeness: float
    centre_off: float


@dataclass(frozen=True, slots=True, eq=False)
class _Finder:
    device: str
    landmarks: Sequence[LandmarkView]
    seed: int

    def found(self, picture: PosedPicture, *, known: bool) -> _Found:
        """Return the pose of one picture, judged."""
        features = look(picture, FEATURES)
        seen = _seen(features, likenesses(features, self.landmarks))
        count = len(np.unique(seen.feature))
        if count < LEAST_VOTES:
            return _Found("refused", f"only {count} of its features look like a landmark")
        rng = np.random.default_rng([self.seed, 7])
        lenses = [picture.lens] if known else self._lenses(picture.lens)
        trials = TRIALS if known else TRIALS_A_FOCAL
        starts = [(lens, _voted(seen, lens, trials, rng)) for lens in lenses]
        starts.sort(key=lambda start: -1 if start[1] is None else start[1].votes, reverse=True)
        places = [
            (lens, Pose(rotation, shift))
            for lens, won in starts[:FOCALS_TRIED]
            if won is not None
            for rotation, shift in ((won.rotation, won.shift), won.elsewhere)
        ]
        if not places:
            return _Found("refused", "no pose fits any three of its features")
        fits = [resected(seen, lens, pose, fit_lens=not known) for lens, pose in places]
        more = look(picture, MORE_FEATURES)
        again = self._again(more, fits, picture.lens, known=known)
        fit, rival = self._better(picture, again)
        chance = _voted(seen.permuted(rng), fit.lens, trials, rng)
        there = [Placed(fit.lens, fit.pose.matrix())]
        alike = likeness([grey(picture.pixels)], there, self.landmarks)
        stands = _Stands(rival, alike, 0.0 if known else _centre_off(fit.lens))
        return _judged(fit, stands, seen, 0 if chance is None else chance.votes)

    def _again(
        self, features: Features, fits: Sequence[Resection], usual: Lens, *, known: bool
    ) -> list[Resection]:
        """Look again about the best pose and the best one elsewhere; most votes first."""
        first = max(fits, key=lambda fit: fit.votes)
        elsewhere = [fit for fit in fits if _apart(fit.pose, first.pose)]
        second = max(elsewhere, key=lambda fit: fit.votes, default=None)
        again = []
        for fit in (first, second):
            if fit is None or fit.votes < LEAST_AT_FIRST:
                continue
            for within_px in GUIDED_PX:
                seen = _guided(features, self.landmarks, fit, within_px)
                fit = resected(seen, fit.lens, fit.pose, fit_lens=not known, usual=usual)
            again.append(fit)
        return sorted(again, key=lambda fit: fit.votes, reverse=True) or [first]

    def _better(self, picture: PosedPicture, fits: Sequence[Resection]) -> tuple[Resection, Rival]:
        """Return the better pose, and what is against it.

        In a room that looks nearly the same from both ends votes do not tell, but what is drawn.
        """
        first = fits[0]
        second = next((fit for fit in fits[1:] if _apart(fit.pose, first.pose)), None)
        if second is None or second.votes < ASKED_FROM * first.votes:
            return first, Rival(0.0 if second is None else second.votes / max(first.votes, 1))
        one, two = ([Placed(f.lens, f.pose.matrix())] for f in (first, second))
        sure = preference([grey(picture.pixels)], one, two, self.landmarks)
        if sure < 0:
            first, second = second, first
        return first, Rival(second.votes / max(first.votes, 1), abs(sure))

    def _lenses(self, lens: Lens) -> list[Lens]:
        """Return the lens with each focal length that is tried."""
        _, usual, (least, most) = _USUAL.get(self.device, _USUAL["webcam"])
        steps = np.arange(np.log(least / usual), np.log(most / usual) + 1e-9, np.log(FOCAL_STEP))
        return [_zoomed(lens, float(np.exp(step))) for step in steps]


def _apart(one: Pose, two: Pose) -> bool:
    """Return whether two poses are different places, not one that is told twice."""
    a, b = one.world_camera(), two.world_camera()
    cosine = (np.trace(a[:3, :3].T @ b[:3, :3]) - 1) / 2
    gap = float(np.linalg.norm(a[:3, 3] - b[:3, 3]))
    return bool(np.arccos(np.clip(cosine, -1, 1)) > APART_RAD or gap > APART_M)


def _guided(
    features: Features, landmarks: Sequence[LandmarkView], fit: Resection, within_px: float
) -> Seen:
    """Return which features lie where a landmark must be drawn, and look like it.

    With the pose known nearly, a feature need not be the only one that looks so: far more are
    found, all over the picture.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(features.pixels)
    found = []
    for view in landmarks:
        drawn, on_picture = project(fit.lens, fit.pose.apply(view.points_m))
        ways = view.points_m + fit.pose.rotation.T @ fit.pose.shift
        aside = (ways * view.rays).sum(axis=1) > SEEN_FROM * np.linalg.norm(ways, axis=1)
        number = np.flatnonzero(on_picture & aside)
        near = tree.query_ball_point(drawn[number], within_px)
        count = np.array([len(n) for n in near], np.int64)
        mark = np.repeat(number, count)
        seen = np.array([i for n in near for i in n], np.int64)
        alike = (features.descriptors[seen] * view.features.descriptors[mark]).sum(axis=1)
        kept = _best_of_each(seen, mark, alike)
        found.append((seen[kept], view, mark[kept]))
    return _seen(features, Likenesses.joined(found))


def _seen(features: Features, alike: Likenesses) -> Seen:
    pixels = features.pixels[alike.feature]
    return Seen(pixels, alike.points_m, alike.feature, alike.along, alike.sigma_m)


def _best_of_each(seen: Int64, mark: Int64, alike: Float64) -> Int64:
    """Return pairs that are each other's best, and alike enough."""
    order = np.argsort(-alike, kind="stable")
    order = order[alike[order] > ALIKE]
    first_seen = np.unique(seen[order], return_index=True)[1]
    first_mark = np.unique(mark[order], return_index=True)[1]
    return order[np.intersect1d(first_seen, first_mark)]


def _zoomed(lens: Lens, factor: float) -> Lens:
    params = lens.params.copy()
    params[:2] *= factor
    return replace(lens, params=params)


def _voted(seen: Seen, lens: Lens, trials: int, rng: np.random.Generator) -> Consensus | None:
    sightings = _sightings(seen, lens)
    return consensus(sightings, by_three, within_rad=COARSE_RAD, trials=trials, rng=rng)


def _sightings(seen: Seen, lens: Lens) -> Sightings:
    rays, good = unproject(lens, seen.pixels)
    number, origin = np.zeros(len(rays), np.int64), np.zeros_like(rays)
    whole = Sightings(origin, rays, seen.points, number, seen.feature, seen.along)
    return whole.chosen(good)


# --- judgement -------------------------------------------------------------------------------


def _judged(fit: Resection, stands: _Stands, seen: Seen, chance: int) -> _Found:
    sightings = _sightings(seen, fit.lens)
    agree = angles_off(sightings, fit.pose.rotation, fit.pose.shift) < COARSE_RAD
    agree &= from_the_front(sightings, fit.pose.rotation)
    votes = len(np.unique(sightings.feature[agree]))
    status, reason = _verdict(fit, votes, chance, stands)
    return _Found(status, reason, fit, votes, chance, stands.likeness)


def _verdict(
    fit: Resection, votes: int, chance: int, stands: _Stands
) -> tuple[RegistrationStatus, str]:
    over = votes / max(chance, 1)
    facts = f"{fit.votes} features agree to {fit.rms_px:.1f} px, {over:.1f} times what chance gives"
    if fit.votes < LEAST_VOTES or over < LEAST_OVER_CHANCE:
        return "refused", f"too little in its pictures is recognised: {facts}"
    if stands.likeness < LEAST_LIKENESS:
        return "refused", (
            f"from there its pictures look like the landmarks by {stands.likeness:.2f}, and "
            f"{LEAST_LIKENESS} is the least: {facts}"
        )
    rival = stands.rival
    if rival.ratio > MOST_RUNNER_UP:
        facts += (
            f"; another place has {100 * rival.ratio:.0f} % as many, and what its pictures show "
            f"there speaks for this one by {rival.sure:.1f} sigmas"
        )
    if rival.doubtful(MOST_RUNNER_UP):
        return "ambiguous", f"it may stand elsewhere: {facts}"
    return _held(fit, stands.centre_off, facts)


def _held(fit: Resection, centre_off: float, facts: str) -> tuple[RegistrationStatus, str]:
    """Return whether what agrees holds pose and lens."""
    if centre_off > MOST_CENTRE_OFF:
        return "ambiguous", (
            f"the lens that would fit has its centre {100 * centre_off:.1f} % of the width aside, "
            f"as no lens has: calibrate it; {facts}"
        )
    if _cells(fit) < LEAST_CELLS:
        return "degenerate", f"what is recognised lies in one corner of its pictures: {facts}"
    sigma = np.sqrt(np.diag(fit.covariance))
    if sigma[:3].max() > MOST_SIGMA_RAD or sigma[3:].max() > MOST_SIGMA_M:
        return "degenerate", (
            f"its place is known to {100 * sigma[3:].max():.0f} cm and its direction to "
            f"{np.degrees(sigma[:3].max()):.1f} deg only: {facts}"
        )
    return "accepted", facts


def _centre_off(lens: Lens) -> float:
    """Return how far the principal point is from the middle, as a share of the width."""
    middle = np.array([lens.width - 1, lens.height - 1]) / 2
    return float(np.linalg.norm(lens.params[2:4] - middle) / lens.width)


def _cells(fit: Resection) -> int:
    """Return in how many parts of the picture features agree."""
    size = np.array([fit.lens.width, fit.lens.height]) / CELLS
    return len(np.unique(np.floor(fit.pixels / size).astype(int), axis=0))


def _told(
    camera: CameraPictures, found: Sequence[_Found], t_device_ns: Int64, frames: int
) -> LocatedCamera:
    worst = max(found, key=lambda f: 0.0 if f.fit is None else np.trace(f.fit.covariance[3:, 3:]))
    if worst.fit is None or worst.status == "refused":
        pose = CameraPose(camera.recording, "refused", worst.reason, method=METHOD)
        return LocatedCamera(
            pose, camera.lens, worst.votes, worst.chance_votes, likeness=worst.likeness
        )
    poses = np.array([f.fit.pose.world_camera() for f in found if f.fit is not None])
    pose = CameraPose(
        camera.recording,
        worst.status,
        worst.reason,
        np.asarray(t_device_ns, np.int64),
        poses,
        worst.fit.covariance,
        frames,
        METHOD,
    )
    factor = camera.lens.width / worst.fit.lens.width
    lens = replace(worst.fit.lens.resized(factor), height=camera.lens.height)
    return LocatedCamera(
        pose, lens, worst.votes, worst.chance_votes, worst.fit.rms_px, worst.likeness
    )
