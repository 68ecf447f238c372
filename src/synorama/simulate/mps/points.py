"""Semi-dense points: what the SLAM cameras tracked on texture and edges, and where they saw it.

A point is made in three steps. Pictures of few pixels are cast along the trajectory, and where
their grey changes, a point lies on the surface. Its distance is then told wrongly, as the sigma
that goes with it says, and carried into the services' frame by the pose that they believe. A few
points are grossly wrong and end up far away. Widths and shares follow a real file: see
`bench/realism.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.mps.estimate import Estimate
from synorama.simulate.scene.cameras import Camera
from synorama.simulate.scene.surface import Surface

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["SemiDense", "observation_columns", "point_columns", "track_points"]

KEYFRAMES = 60  # at most; each gives a picture of either camera
LOOK_PX = 176  # width of these pictures
GREY = np.array([0.299, 0.587, 0.114], np.float32)
PIXEL_RAD = 2.65  # angle of a pixel of a picture one pixel wide: how fine texture is taken
LEAST_CONTRAST = 0.012  # change of grey from pixel to pixel that can be tracked
EDGE = 0.05  # change of inverse distance, as a share, that is an edge
APART_M = 0.008  # two points are not closer

DISTANCE_M = np.array([0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0])
INVERSE_SIGMA = 1e-4 * np.array([190, 155, 96, 58, 40, 29, 24, 26, 22, 22])
"""Median of the reported sigma of the inverse distance [1/m] at these distances, in a real file."""
SPREAD = 1.25  # one sigma of its logarithm
LEAST_SIGMA = 4.3e-5
NOISE_PER_SIGMA = 1.5  # points are worse than they say
NOISE_FLOOR_M = 0.004

WRONG_SHARE, WRONG_SPREAD = 0.05, 0.35  # mismatches: one sigma of the distance's logarithm
FAR_SHARE, FAR_M, FAR_POWER = 0.05, 6.0, 1.7  # share beyond FAR_M, falling with this power
FAR_SIGMA, FAR_SIGMA_SPREAD = 0.0115, 0.9

SEEN_FRAMES = 8.0  # mean length of a track
PIXEL_NOISE = 0.35  # at a picture 640 wide
UID_GAPS = 0.14  # share of numbers of points that were given up


@dataclass(frozen=True, slots=True, eq=False)
class SemiDense:
    """The points of one wearer.

    Parameters
    ----------
    uid
        ``(N,)``.
    points_m
        ``(N, 3)`` in the services' frame.
    true_m
        ``(N, 3)`` where they really are, in ``world``.
    inverse_sigma, sigma_m
        ``(N,)`` as reported, of inverse distance [1/m] and of distance.
    far
        ``(N,)`` whether the distance is grossly wrong.
    frame, camera
        ``(N,)`` which picture saw the point first: number of the frame and of the camera.
    """

    uid: Int64
    points_m: Float64
    true_m: Float64
    inverse_sigma: Float64
    sigma_m: Float64
    far: NDArray[np.bool_]
    frame: Int64
    camera: Int64


def track_points(
    surface: Surface,
    estimate: Estimate,
    cameras: tuple[Camera, ...],
    frames_ns: Int64,
    count: int,
) -> SemiDense:
    """Return points that the cameras would have tracked.

    Parameters
    ----------
    surface
        The room in the session, in frame ``world``.
    cameras
        The SLAM cameras, posed on the device.
    frames_ns
        Device times of their pictures.
    count
        How many points; fewer where the room has no more.
    """
    rng = estimate.glasses.random("mps points")
    keys = np.unique(np.linspace(0, len(frames_ns) - 1, KEYFRAMES).astype(int))
    poses = estimate.true_pose(frames_ns[keys])
    looks = [_Look.of(camera, rng) for camera in cameras]
    seen = [
        _texture(surface, look, pose, rng, (int(key), number))
        for key, pose in zip(keys, poses, strict=True)
        for number, look in enumerate(looks)
    ]
    true, frame, number = (np.concatenate(part) for part in zip(*seen, strict=True))
    kept = _thinned(true, count, rng)
    return _estimated(estimate, cameras, frames_ns, (true[kept], frame[kept], number[kept]), rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """Rays of a camera, few, each beside the middle of its pixel."""

    camera: Camera
    directions: Float64
    inside: NDArray[np.bool_]

    @classmethod
    def of(cls, camera: Camera, rng: np.random.Generator) -> _Look:
        height = round(camera.height * LOOK_PX / camera.width)
        x, y = np.meshgrid(np.arange(LOOK_PX), np.arange(height))
        pixels = np.stack([x, y], axis=-1) + rng.uniform(-0.5, 0.5, (height, LOOK_PX, 2))
        return cls(camera, *camera.lens.scaled(LOOK_PX / camera.width).unproject(pixels))


def _texture(
    surface: Surface,
    look: _Look,
    pose: Float64,
    rng: np.random.Generator,
    source: tuple[int, int],
) -> tuple[Float64, Int64, Int64]:
    """Return points on texture and edges seen in one picture, their frame and camera."""
    world = pose @ look.camera.device_camera
    directions = look.directions.reshape(-1, 3) @ world[:3, :3].T
    origins = np.broadcast_to(world[:3, 3], directions.shape)
    fine = PIXEL_RAD / look.camera.width
    hits = surface.cast(origins.astype(np.float32), directions.astype(np.float32), fine)
    shape = look.inside.shape
    distance = hits.distance_m.reshape(shape)
    chance = _chance((hits.colour @ GREY).reshape(shape), distance)
    taken = (rng.random(shape) < chance) & look.inside & np.isfinite(distance)
    points = origins + distance.reshape(-1, 1) * directions
    found = points[taken.ravel()]
    frame, number = source
    return found, np.full(len(found), frame), np.full(len(found), number)


def _chance(grey: Float32, distance: Float32) -> Float32:
    """Return how likely a pixel is tracked: by the contrast about it, always on an edge."""
    level = np.sqrt(np.maximum(grey, 0.0))
    slopes = np.gradient(level)
    contrast = np.hypot(*slopes)
    inverse = 1.0 / np.maximum(distance, 0.05)
    steps = np.gradient(inverse)
    nearer = inverse - np.minimum(np.roll(inverse, 1, axis=1), np.roll(inverse, -1, axis=1))
    edge = (np.hypot(*steps) > EDGE * inverse) & (nearer > 0)
    by_contrast = np.clip((contrast - LEAST_CONTRAST) / (6 * LEAST_CONTRAST), 0.0, 1.0)
    return np.asarray(np.maximum(by_contrast, edge * 0.8), np.float32)


def _thinned(points: Float64, count: int, rng: np.random.Generator) -> Int64:
    """Return which points to keep: none twice in a small cell, and no more than asked for."""
    order = rng.permutation(len(points))
    cells = np.floor(points[order] / APART_M).astype(np.int64)
    cells -= cells.min(axis=0, initial=0)
    spans = cells.max(axis=0, initial=0) + 1
    _, first = np.unique(np.ravel_multi_index(tuple(cells.T), tuple(spans)), return_index=True)
    chosen = order[first]
    return np.sort(rng.permutation(chosen)[:count])


def _estimated(
    estimate: Estimate,
    cameras: tuple[Camera, ...],
    frames_ns: Int64,
    tracks: tuple[Float64, Int64, Int64],
    rng: np.random.Generator,
) -> SemiDense:
    true, frame, number = tracks
    mounts = np.array([camera.device_camera for camera in cameras])[number]
    each, back = np.unique(frame, return_inverse=True)
    lens_true = estimate.true_pose(frames_ns[each])[back] @ mounts
    lens_told = estimate.pose(frames_ns[each])[back] @ mounts
    local = np.einsum("nji,nj->ni", lens_true[:, :3, :3], true - lens_true[:, :3, 3])
    distance = np.linalg.norm(local, axis=1)
    told, sigma, far = _told_distance(distance, rng)
    local *= (told / distance)[:, np.newaxis]
    points = np.einsum("nij,nj->ni", lens_told[:, :3, :3], local) + lens_told[:, :3, 3]
    uid = np.sort(rng.permutation(int(len(true) * (1 + UID_GAPS)))[: len(true)])
    return SemiDense(uid, points, true, sigma, told**2 * sigma, far, frame, number)


def _told_distance(
    distance: Float64, rng: np.random.Generator
) -> tuple[Float64, Float64, NDArray[np.bool_]]:
    """Return told distances, reported sigmas of their inverse, and which are grossly wrong."""
    count = len(distance)
    usual = np.interp(np.log(distance), np.log(DISTANCE_M), np.log(INVERSE_SIGMA))
    sigma = np.exp(usual + SPREAD * rng.standard_normal(count)).clip(LEAST_SIGMA)
    noise = np.hypot(NOISE_PER_SIGMA * sigma, NOISE_FLOOR_M / distance**2)
    inverse = 1.0 / distance + noise * rng.standard_normal(count)
    told = 1.0 / np.maximum(inverse, 0.5 / distance)
    wrong = rng.random(count) < WRONG_SHARE
    told[wrong] *= np.exp(WRONG_SPREAD * rng.standard_normal(wrong.sum()))
    far = rng.random(count) < FAR_SHARE
    told[far] = FAR_M * rng.random(far.sum()) ** (-1.0 / FAR_POWER)
    sigma[far] = FAR_SIGMA * np.exp(FAR_SIGMA_SPREAD * rng.standard_normal(far.sum()))
    return told, sigma, far


# --- tables ----------------------------------------------------------------------------------


def point_columns(points: SemiDense, graph_uid: str) -> dict[str, Any]:
    """Return the columns of ``semidense_points.csv.gz``."""
    x, y, z = np.round(points.points_m, 6).T
    return {
        "uid": points.uid,
        "graph_uid": graph_uid,
        "px_world": x,
        "py_world": y,
        "pz_world": z,
        "inv_dist_std": np.round(points.inverse_sigma, 6),
        "dist_std": np.round(points.sigma_m, 6),
    }


def observation_columns(
    surface: Surface,
    estimate: Estimate,
    cameras: tuple[Camera, ...],
    serials: tuple[str, ...],
    frames_ns: Int64,
    points: SemiDense,
) -> dict[str, Any]:
    """Return the columns of ``semidense_observations.csv.gz``.

    A point is seen by one camera in some frames one after another, as long as it is in view.
    """
    rng = estimate.glasses.random("mps observations")
    which, frame = _tracks(points, len(frames_ns), rng)
    poses = estimate.true_pose(frames_ns)
    found = []
    for number, camera in enumerate(cameras):
        mine = points.camera[which] == number
        found.append(_seen(surface, camera, poses, points.true_m, which[mine], frame[mine], rng))
    point, at, pixels = (np.concatenate(part) for part in zip(*found, strict=True))
    serial = np.array(serials)[points.camera[point]]
    return {
        "uid": points.uid[point],
        "frame_tracking_timestamp_us": (frames_ns // 1000)[at],
        "camera_serial": serial,
        "u": np.round(pixels[:, 0], 3),
        "v": np.round(pixels[:, 1], 3),
    }


def _tracks(points: SemiDense, frames: int, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Return which point may be seen in which frame: both ``(M,)``."""
    lengths = rng.geometric(1.0 / SEEN_FRAMES, len(points.uid))
    lengths = np.minimum(lengths, frames - points.frame)
    which = np.repeat(np.arange(len(lengths)), lengths)
    begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return which, points.frame[which] + np.arange(len(which)) - begin


def _seen(
    surface: Surface,
    camera: Camera,
    poses: Float64,
    true_m: Float64,
    which: Int64,
    frame: Int64,
    rng: np.random.Generator,
) -> tuple[Int64, Int64, Float64]:
    """Return points, frames and pixels where points are in view and nothing hides them."""
    world = (poses @ camera.device_camera)[frame]
    reach = true_m[which] - world[:, :3, 3]
    pixels, inside = camera.lens.project(np.einsum("nji,nj->ni", world[:, :3, :3], reach))
    pixels += PIXEL_NOISE * camera.width / 640 * rng.standard_normal(pixels.shape)
    size = np.array([camera.width, camera.height])
    inside &= ((pixels >= -0.5) & (pixels < size - 0.5)).all(axis=1)
    short = reach * (1.0 - 0.01 / np.linalg.norm(reach, axis=1, keepdims=True))
    inside[inside] = ~surface.blocked(world[inside, :3, 3], short[inside])
    return which[inside], frame[inside], pixels[inside]
