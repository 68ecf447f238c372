"""Landmarks: features of posed pictures whose place in space is known.

A scanner's picture gets its distances from the cloud. Pictures of the glasses have no cloud that
is dense enough: their landmarks are seen from several places and triangulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.features import Features, detect, matches
from synorama.geometry.lenses import Lens, unproject
from synorama.geometry.views import PosedPicture, grey, resized, tiles
from synorama.geometry.zbuffer import ZBuffer, lifted, zbuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["LandmarkView", "Likenesses", "from_cloud", "from_motion", "look", "moved"]

VIEW_FEATURES = 900  # of one tile or photograph
FRAME_FEATURES = 1400
VIEW_PX = 1024
FRAME_PX = 704
MASK_PX = 8  # steps of the mask of what a lens draws
CELL_RAD = 0.006  # of a z-buffer: scans of rooms have points closer than that
PANORAMA_CELLS = 1024
CLOUD_SIGMA_M = 0.006  # of a landmark whose distance a scan gives, along each axis
FILLED, COARSER = 0.6, 3  # share of the cells that must meet a point; how often they are doubled

NEIGHBOURS = 6  # frames with which each is compared
SEEN_APART_RAD = np.deg2rad(2.5)  # least angle at a landmark between two rays to it
RAY_OFF_RAD = 0.006  # of each ray from the landmark
MATCHED_OFF_RAD = 0.01  # of two rays from a common plane
RAY_SIGMA_RAD = 0.002  # of a ray to a landmark: pixels, and how poses of the glasses are turned
FACING = 0.3  # least cosine between the axes of two frames that may see the same


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkView:
    """The landmarks of one picture.

    Parameters
    ----------
    name
        Of the picture.
    features
        How they look.
    points_m
        ``(N, 3)`` where they are, in the frame of the picture's pose.
    rays
        ``(N, 3)`` unit directions in which the picture saw them: nobody sees them from behind.
    arms_m
        ``(N, 3)`` from each to its rim, see `Features`, as if it faced the picture.
    sigma_m
        ``(N,)`` how far each may be off along an axis.
    """

    name: str
    features: Features
    points_m: Float64
    rays: Float64
    arms_m: Float64
    sigma_m: Float64

    def chosen(self, which: Bool) -> LandmarkView:
        """Return some of them."""
        points, rays, arms = self.points_m[which], self.rays[which], self.arms_m[which]
        features, sigma = self.features.chosen(which), self.sigma_m[which]
        return LandmarkView(self.name, features, points, rays, arms, sigma)


@dataclass(frozen=True, slots=True, eq=False)
class Likenesses:
    """Features of a picture, and the landmarks that they look like.

    Parameters
    ----------
    feature
        ``(M,)`` which feature; one may look like several landmarks.
    points_m, along, sigma_m
        Of the landmarks ``(M, 3)``, ``(M, 3)`` and ``(M,)``: places, the directions in which they
        are known, how far they may be off.
    """

    feature: Int64
    points_m: Float64
    along: Float64
    sigma_m: Float64

    @classmethod
    def joined(cls, parts: Iterable[tuple[Int64, LandmarkView, Int64]]) -> Likenesses:
        """Join what was found for each view: features, the view, numbers of its landmarks."""
        feature, points, along, sigma = (
            [np.zeros(0, np.int64)], [np.zeros((0, 3))], [np.zeros((0, 3))], [np.zeros(0)],
        )  # fmt: skip
        for which, view, mark in parts:
            feature.append(which)
            points.append(view.points_m[mark])
            along.append(view.rays[mark])
            sigma.append(view.sigma_m[mark])
        return cls(
            np.concatenate(feature),
            np.concatenate(points),
            np.concatenate(along),
            np.concatenate(sigma),
        )


def moved(views: Iterable[LandmarkView], matrix: Float64) -> tuple[LandmarkView, ...]:
    """Return landmarks in another frame: ``(4, 4)`` ``T_other_frame``."""
    turn, shift = matrix[:3, :3], matrix[:3, 3]
    return tuple(
        replace(
            v,
            points_m=v.points_m @ turn.T + shift,
            rays=v.rays @ turn.T,
            arms_m=v.arms_m @ turn.T,
        )
        for v in views
    )


def look(picture: PosedPicture, count: int) -> Features:
    """Return the features of a picture, where its lens draws anything."""
    if picture.lens.model not in ("fisheye624", "fisheye"):
        return detect(grey(picture.pixels), count)
    lens = picture.lens
    x, y = np.meshgrid(np.arange(0, lens.width, MASK_PX), np.arange(0, lens.height, MASK_PX))
    seen = unproject(lens, np.stack([x, y], axis=-1))[1]
    whole = np.repeat(np.repeat(seen, MASK_PX, axis=0), MASK_PX, axis=1)
    return detect(grey(picture.pixels), count, whole[: lens.height, : lens.width])


# --- pictures of a scanner -------------------------------------------------------------------


def from_cloud(pictures: Sequence[PosedPicture], cloud_m: Float64) -> tuple[LandmarkView, ...]:
    """Return the landmarks of pictures in the frame of a cloud, which gives the distances.

    Parameters
    ----------
    pictures
        Panoramas and photographs, posed in the frame of the cloud.
    cloud_m
        ``(N, 3)``.
    """
    views: list[LandmarkView] = []
    for picture in pictures:
        buffer = _filled(picture, cloud_m)
        parts = tiles(resized(picture, VIEW_PX) if _is_flat(picture) else picture)
        views.extend(_lifted_view(tile, picture.pose, buffer) for tile in parts)
    return tuple(view for view in views if len(view.features) > 1)


def _filled(picture: PosedPicture, cloud_m: Float64) -> ZBuffer:
    """Return a z-buffer as fine as the cloud fills it."""
    lens, local = _coarse(picture.lens), np.asarray(np.linalg.inv(picture.pose))
    buffer = zbuffer(lens, cloud_m, local)
    for _ in range(COARSER):
        if (buffer.nearest >= 0).mean() >= FILLED:
            break
        lens = lens.resized(0.5)
        buffer = zbuffer(lens, cloud_m, local)
    return buffer


def _is_flat(picture: PosedPicture) -> bool:
    return picture.lens.model != "spherical"


def _coarse(lens: Lens) -> Lens:
    if lens.model == "spherical":
        return lens.resized(min(1.0, PANORAMA_CELLS / lens.width))
    return lens.resized(min(1.0, 1.0 / (CELL_RAD * lens.pixels_per_rad)))


def _lifted_view(tile: PosedPicture, whole_pose: Float64, buffer: ZBuffer) -> LandmarkView:
    features = look(tile, VIEW_FEATURES)
    rays, seen = unproject(tile.lens, features.pixels)
    turned = rays @ (tile.pose[:3, :3].T @ whole_pose[:3, :3])
    points, good = lifted(buffer, turned)
    there = points @ whole_pose[:3, :3].T + whole_pose[:3, 3]
    along = rays @ tile.pose[:3, :3].T
    reach = np.linalg.norm(points, axis=1)
    arms = reach[:, np.newaxis] * (_rim_rays(tile, features) - along)
    sigma = np.full(len(features), CLOUD_SIGMA_M)
    return LandmarkView(tile.name, features, there, along, arms, sigma).chosen(good & seen)


def _rim_rays(picture: PosedPicture, features: Features) -> Float64:
    rays, _ = unproject(picture.lens, features.rims)
    return np.asarray(rays @ picture.pose[:3, :3].T, np.float64)


# --- pictures of the glasses -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    picture: PosedPicture
    features: Features
    rays: Float64
    numbers: Int64  # of its features, among those of all frames


def from_motion(frames: Sequence[PosedPicture]) -> tuple[LandmarkView, ...]:
    """Return landmarks of a moving camera's frames whose poses are known, by triangulation.

    Parameters
    ----------
    frames
        Frames from different places; those that see the same from 2.5 degrees apart, and agree,
        give landmarks.
    """
    looked = _looked(frames)
    pairs = [_same(looked[i], looked[j]) for i, j in _neighbours(looked)]
    total = sum(len(f.features) for f in looked)
    origins = np.concatenate([np.tile(f.picture.pose[:3, 3], (len(f.rays), 1)) for f in looked])
    rays = np.concatenate([f.rays for f in looked])
    track = _tracks(np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64), total)
    points, sigma, good = _triangulated(track, origins, rays)
    views = [
        _seen_by(f, points[f.numbers], sigma[f.numbers]).chosen(good[f.numbers]) for f in looked
    ]
    return tuple(view for view in views if len(view.features) > 1)


def _seen_by(frame: _Frame, points_m: Float64, sigma_m: Float64) -> LandmarkView:
    reach = np.linalg.norm(points_m - frame.picture.pose[:3, 3], axis=1)
    arms = reach[:, np.newaxis] * (_rim_rays(frame.picture, frame.features) - frame.rays)
    return LandmarkView(frame.picture.name, frame.features, points_m, frame.rays, arms, sigma_m)


def _looked(frames: Sequence[PosedPicture]) -> list[_Frame]:
    looked, first = [], 0
    for frame in frames:
        picture = resized(frame, FRAME_PX)
        features = look(picture, FRAME_FEATURES)
        rays, seen = unproject(picture.lens, features.pixels)
        features, rays = features.chosen(seen), rays[seen] @ picture.pose[:3, :3].T
        numbers = first + np.arange(len(rays))
        looked.append(_Frame(picture, features, rays, numbers))
        first += len(rays)
    return looked


def _neighbours(looked: Sequence[_Frame]) -> list[tuple[int, int]]:
    """Return which frames may see the same: near each other and facing the same way."""
    poses = np.array([f.picture.pose for f in looked]).reshape(-1, 4, 4)
    facing = poses[:, :3, 2] @ poses[:, :3, 2].T
    gap = np.linalg.norm(poses[:, np.newaxis, :3, 3] - poses[:, :3, 3], axis=2)
    worth = np.where((facing > FACING) & (gap > 0.05), facing - 0.2 * gap, -np.inf)
    np.fill_diagonal(worth, -np.inf)
    found = set()
    for i, row in enumerate(worth):
        for j in np.argsort(-row)[:NEIGHBOURS]:
            if np.isfinite(row[j]):
                found.add((min(i, int(j)), max(i, int(j))))
    return sorted(found)


def _same(one: _Frame, two: _Frame) -> Int64:
    """Return features ``(M, 2)`` of two frames that look alike and whose rays may meet."""
    pairs = matches(one.features, two.features)
    base = two.picture.pose[:3, 3] - one.picture.pose[:3, 3]
    b, e = one.rays[pairs[:, 0]], two.rays[pairs[:, 1]]
    normal = np.cross(b, base)
    size = np.linalg.norm(normal, axis=1)
    off = np.abs((normal * e).sum(axis=1)) / np.maximum(size, 1e-9)
    kept = pairs[off < MATCHED_OFF_RAD]
    return np.stack([one.numbers[kept[:, 0]], two.numbers[kept[:, 1]]], axis=1)


def _tracks(pairs: Int64, count: int) -> Int64:
    """Return the track ``(count,)`` of each feature: those that are the same share a number."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def _triangulated(track: Int64, origins: Float64, rays: Float64) -> tuple[Float64, Float64, Bool]:
    """Return for each feature where the rays of its track meet, how surely, and whether they do.

    The point has the least sum of squared distances to the rays.
    """
    count = int(track.max(initial=-1)) + 1
    across = np.eye(3) - rays[:, :, np.newaxis] * rays[:, np.newaxis]
    matrix, right = np.zeros((count, 3, 3)), np.zeros((count, 3))
    np.add.at(matrix, track, across)
    np.add.at(right, track, np.einsum("nij,nj->ni", across, origins))
    solved = np.linalg.solve(matrix + 1e-9 * np.eye(3), right[..., np.newaxis])
    points = np.asarray(solved[..., 0], np.float64)
    ways = points[track] - origins
    along = (ways * rays).sum(axis=1)
    miss = np.linalg.norm(ways - along[:, np.newaxis] * rays, axis=1)
    off = np.where(along > 0.1, np.arctan2(miss, along), np.pi)
    worst = np.zeros(count)
    np.maximum.at(worst, track, off)
    good = (worst < RAY_OFF_RAD) & (_spread(track, rays, count) > SEEN_APART_RAD)
    sigma = _sigma_m(track, across / np.maximum(along, 0.1)[:, np.newaxis, np.newaxis] ** 2)
    return points[track], sigma, good[track]


def _sigma_m(track: Int64, known: Float64) -> Float64:
    """Return how far the point of each feature's track may be off, in the mean of all directions.

    ``known`` is what each ray tells of it ``(N, 3, 3)``, for rays that are good to a radian: rays
    that meet at a small angle leave the distance open. None is known better than by a scan.
    """
    whole = np.zeros((int(track.max(initial=-1)) + 1, 3, 3))
    np.add.at(whole, track, known)
    spread = np.trace(np.linalg.inv(whole + 1e-6 * np.eye(3)), axis1=1, axis2=2)
    sigma = np.hypot(CLOUD_SIGMA_M, RAY_SIGMA_RAD * np.sqrt(spread / 3))
    return np.asarray(sigma[track], np.float64)


def _spread(track: Int64, rays: Float64, count: int) -> Float64:
    """Return twice the widest angle between a ray of a track and the middle of its rays."""
    middle = np.zeros((count, 3))
    np.add.at(middle, track, rays)
    middle /= np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-12)
    angle = np.arccos(np.clip((rays * middle[track]).sum(axis=1), -1, 1))
    widest = np.zeros(count)
    np.maximum.at(widest, track, angle)
    return 2 * widest
