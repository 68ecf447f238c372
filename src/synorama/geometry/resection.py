"""Pose and lens of one picture by least squares over the landmarks that it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.lenses import Lens, project

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Pose", "Resection", "Seen", "resected"]

PIXEL_SIGMA_PX = 0.8
BETWEEN_FOCALS = 0.3  # one sigma of the logarithm, about what is tried
CENTRE_SIGMA = 0.0025  # of the principal point, as a share of the width
DISTORTION_SIGMA = {
    "fisheye": (0.08, 0.04, 0.02, 0.01),
    "pinhole": (0.15, 0.08, 0.003, 0.003, 0.03),
}

WITHIN_PX = (24.0, 12.0, 6.0, 5.0, 5.0)  # round by round
LEAST_PX = 2.5
BLOCK_M = 0.4  # landmarks so near to each other err together
LEAST = 6

INFLATION = 1.6  # of the covariance; see bench/localize.py
FLOOR_RAD, FLOOR_M = 3e-4, 0.0015  # what all landmarks share


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Pixels and the landmarks that they are said to show.

    Parameters
    ----------
    pixels
        ``(N, 2)``.
    points
        ``(N, 3)`` in the world [m].
    feature
        ``(N,)`` which feature of the picture.
    along
        ``(N, 3)`` in which direction, in the world, the landmark was seen from where it is known.
    sigma_m
        ``(N,)`` how far each landmark may be off along an axis.
    """

    pixels: Float64
    points: Float64
    feature: Int64
    along: Float64
    sigma_m: Float64

    def chosen(self, which: Bool) -> Seen:
        """Return some of them."""
        pixels, points = self.pixels[which], self.points[which]
        feature, along, sigma = self.feature[which], self.along[which], self.sigma_m[which]
        return Seen(pixels, points, feature, along, sigma)

    def permuted(self, rng: np.random.Generator) -> Seen:
        """Return them with the landmarks dealt anew."""
        dealt = rng.permutation(len(self.points))
        points, along, sigma = self.points[dealt], self.along[dealt], self.sigma_m[dealt]
        return replace(self, points=points, along=along, sigma_m=sigma)


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """``p_camera = R p_world + t``."""

    rotation: Float64
    shift: Float64

    def apply(self, points: Float64) -> Float64:
        """Carry points ``(N, 3)`` of the world into the camera's frame."""
        return np.asarray(points @ self.rotation.T + self.shift, np.float64)

    def matrix(self) -> Float64:
        """Return ``(4, 4)`` ``T_camera_world``."""
        whole = np.eye(4)
        whole[:3, :3], whole[:3, 3] = self.rotation, self.shift
        return whole

    def world_camera(self) -> Float64:
        """Return ``(4, 4)`` ``T_world_camera``."""
        whole = np.eye(4)
        whole[:3, :3], whole[:3, 3] = self.rotation.T, -self.rotation.T @ self.shift
        return whole

    def stepped(self, step: Float64) -> Pose:
        """Return the pose after a small turn about the camera and a shift of it, in the world."""
        from scipy.spatial.transform import Rotation

        centre = -self.rotation.T @ self.shift + step[3:6]
        rotation = self.rotation @ Rotation.from_rotvec(-step[:3]).as_matrix()
        return Pose(rotation, -rotation @ centre)


@dataclass(frozen=True, slots=True, eq=False)
class Resection:
    """A fitted picture.

    Parameters
    ----------
    pose, lens
        The fit.
    covariance
        ``(6, 6)`` of turn [rad] and shift [m] of the camera in the world, rotation first.
    votes
        How many features agree.
    rms_px
        Of those.
    pixels
        ``(M, 2)`` where they are.
    """

    pose: Pose
    lens: Lens
    covariance: Float64
    votes: int
    rms_px: float
    pixels: Float64


def resected(
    seen: Seen, lens: Lens, start: Pose, *, fit_lens: bool, usual: Lens | None = None
) -> Resection:
    """Fit pose, and lens where it is not known, to the landmarks that agree.

    Parameters
    ----------
    seen
        Right and wrong likenesses.
    lens
        A lens near the true one.
    start
        A pose near the true one.
    fit_lens
        Whether focal length, principal point and distortion are fitted too.
    usual
        The lens that such cameras have, about which fitted ones lie; ``lens`` by default.
    """
    pose, fitted = start, lens
    within = 0.0
    for limit in WITHIN_PX:
        off = _off_px(seen, pose, fitted)
        within = limit
        if limit == WITHIN_PX[-1]:
            close = off[off < limit]
            within = float(np.clip(3 * np.median(close), LEAST_PX, limit)) if len(close) else limit
        agree = off < within
        if agree.sum() < LEAST:
            return _nothing_agrees(pose, fitted, seen)
        step = _Fit(seen.chosen(agree), pose, fitted, usual or lens, fit_lens).solved()
        pose, fitted = pose.stepped(step[:6]), _bent(fitted, step[6:])
    off = _off_px(seen, pose, fitted)
    agree = off < within
    if agree.sum() < LEAST:  # the last step bent the lens until it does not see them
        return _nothing_agrees(pose, fitted, seen)
    fit = _Fit(seen.chosen(agree), pose, fitted, usual or lens, fit_lens)
    return Resection(
        pose,
        fitted,
        fit.covariance(),
        len(np.unique(seen.feature[agree])),
        float(np.sqrt((off[agree] ** 2).mean())),
        seen.pixels[agree],
    )


def _nothing_agrees(pose: Pose, lens: Lens, seen: Seen) -> Resection:
    return Resection(pose, lens, np.full((6, 6), np.inf), 0, np.inf, seen.pixels[:0])


def _off_px(seen: Seen, pose: Pose, lens: Lens) -> Float64:
    drawn, on_picture = project(lens, pose.apply(seen.points))
    off = np.linalg.norm(drawn - seen.pixels, axis=1)
    return np.where(on_picture & np.isfinite(off), off, np.inf)


def _bent(lens: Lens, step: Float64) -> Lens:
    """Return the lens after a step of log focal length, principal point and distortion."""
    if not len(step):
        return lens
    params = lens.params.copy()
    params[:2] *= np.exp(step[0])
    params[2:] += step[1:] * np.concatenate([[lens.width] * 2, np.ones(len(params) - 4)])
    return replace(lens, params=params)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A small step of pose and lens, with what is known of lenses beforehand."""

    seen: Seen
    pose: Pose
    lens: Lens
    usual: Lens
    fit_lens: bool

    def solved(self) -> Float64:
        from scipy.optimize import least_squares

        found = least_squares(self.residuals, np.zeros(self._size), loss="soft_l1", max_nfev=12)
        return np.asarray(found.x, np.float64)

    @property
    def _size(self) -> int:
        return 6 + (len(self.lens.params) - 1 if self.fit_lens else 0)

    def residuals(self, step: Float64) -> Float64:
        """Return pixels off, in sigmas, and how unusual the lens is."""
        pose, lens = self.pose.stepped(step[:6]), _bent(self.lens, step[6:])
        local = pose.apply(self.seen.points)
        drawn, _ = project(lens, local)
        sigma = np.hypot(
            PIXEL_SIGMA_PX,
            self.seen.sigma_m * lens.params[0] / np.maximum(np.linalg.norm(local, axis=1), 0.2),
        )
        off = (drawn - self.seen.pixels) / self._shared(sigma)[:, np.newaxis]
        return np.concatenate([off.ravel(), self._unusual(lens)])

    def _shared(self, sigma: Float64) -> Float64:
        """Return the sigmas with which a feature counts once, to whichever landmarks it is likened.

        They share it by what each tells: the better known counts more.
        """
        told = sigma**-2
        feature = np.unique(self.seen.feature, return_inverse=True)[1]
        return np.asarray(sigma * np.sqrt(np.bincount(feature, told)[feature] / told), np.float64)

    def _unusual(self, lens: Lens) -> Float64:
        if not self.fit_lens:
            return np.zeros(0)
        off = lens.params - self.usual.params
        return np.concatenate(
            [
                [np.log(lens.params[0] / self.usual.params[0]) / BETWEEN_FOCALS],
                off[2:4] / (CENTRE_SIGMA * lens.width),
                off[4:] / DISTORTION_SIGMA[lens.model],
            ]
        )

    def covariance(self) -> Float64:
        """Return the covariance of the pose, what is not known of the lens included.

        Landmarks of one block of space err together: their pulls are added before they are
        squared (a sandwich estimate with clusters).
        """
        size = self._size
        step = 1e-6
        slopes = np.stack(
            [
                (self.residuals(step * e) - self.residuals(-step * e)) / (2 * step)
                for e in np.eye(size)
            ],
            axis=1,
        )
        off = self.residuals(np.zeros(size))
        inverse = np.linalg.pinv(slopes.T @ slopes)
        blocks = np.unique(
            np.floor(self.seen.points / BLOCK_M).astype(np.int64), axis=0, return_inverse=True
        )[1].ravel()
        pulls = np.zeros((int(blocks.max()) + 1, size))
        rows = 2 * len(blocks)
        np.add.at(pulls, np.repeat(blocks, 2), slopes[:rows] * off[:rows, np.newaxis])
        sandwich = inverse @ (pulls.T @ pulls) @ inverse
        floor = np.diag([FLOOR_RAD**2] * 3 + [FLOOR_M**2] * 3)
        return np.asarray(INFLATION**2 * (sandwich + inverse)[:6, :6] + floor, np.float64)
