"""Pictures whose pose is known: a scanner's panoramas and photographs, the glasses' frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.lenses import Lens, project, unproject

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["PosedPicture", "grey", "resized", "spread_frames", "tiles"]

TILE_RAD = np.deg2rad(80.0)
TILES_RAD = ((0.0, 6), (np.deg2rad(-42.0), 4))
"""Elevation of the tiles of a panorama, and how many look that way; ceilings tell little."""
LARGEST_TILE_PX = 900
STILL_RAD_S = 0.6  # turning faster than this smears a picture
VIEW_APART_M = 1.5  # a step this long is worth as much as looking elsewhere by a radian


@dataclass(frozen=True, slots=True, eq=False)
class PosedPicture:
    """A picture that was taken from a known place.

    Parameters
    ----------
    name
        Unique among the pictures it stands with.
    pixels
        ``(H, W)`` or ``(H, W, 3)`` uint8.
    lens
        Of a picture of this size.
    pose
        ``(4, 4)`` ``T_frame_camera`` [m]; for a panorama z of the camera is up, see `lenses`.
    """

    name: str
    pixels: Picture
    lens: Lens
    pose: Float64

    def __post_init__(self) -> None:
        if self.pixels.shape[:2] != (self.lens.height, self.lens.width):
            raise ValueError(f"{self.name}: picture and lens are of different sizes")


def grey(pixels: Picture) -> Picture:
    """Return a picture without colours."""
    import cv2

    if pixels.ndim == 2:
        return np.ascontiguousarray(pixels)
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY))


def resized(picture: PosedPicture, longest_px: int) -> PosedPicture:
    """Return a picture whose longer side is at most that many pixels."""
    import cv2

    longest = max(picture.lens.width, picture.lens.height)
    if longest <= longest_px:
        return picture
    lens = picture.lens.resized(longest_px / longest)
    small = cv2.resize(
        np.ascontiguousarray(picture.pixels),
        (lens.width, lens.height),
        interpolation=cv2.INTER_AREA,
    )
    return PosedPicture(picture.name, np.asarray(small, np.uint8), lens, picture.pose)


def tiles(picture: PosedPicture) -> Iterator[PosedPicture]:
    """Yield flat pictures that cover a panorama, overlapping; any other picture as it is.

    Features of a panorama are bent near its poles and cut at its seam; flat tiles of 80 degrees
    look as a camera would see the place.
    """
    if picture.lens.model != "spherical":
        yield picture
        return
    focal = min(picture.lens.pixels_per_rad, LARGEST_TILE_PX / (2 * np.tan(TILE_RAD / 2)))
    side = int(2 * focal * np.tan(TILE_RAD / 2))
    middle = (side - 1) / 2
    lens = Lens("pinhole", side, side, np.array([focal, focal, middle, middle, 0, 0, 0, 0, 0]))
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    rays, _ = unproject(lens, np.stack([x, y], axis=-1))
    for level, (pitch, count) in enumerate(TILES_RAD):
        for k in range(count):
            turn = _looking(2 * np.pi * k / count, pitch)
            pose = picture.pose.copy()
            pose[:3, :3] = picture.pose[:3, :3] @ turn
            pixels = _resampled(picture, rays @ turn.T)
            yield PosedPicture(f"{picture.name}/{level}.{k}", pixels, lens, pose)


def _looking(yaw: float, pitch: float) -> Float64:
    """Return axes of a camera (z forward, y down) that looks along a direction of a panorama."""
    ahead = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    return np.column_stack([right, np.cross(ahead, right), ahead])


def _resampled(picture: PosedPicture, rays: Float64) -> Picture:
    import cv2

    places = project(picture.lens, rays)[0].astype(np.float32)
    return np.asarray(
        cv2.remap(grey(picture.pixels), places, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    )


def spread_frames(poses: Float64, turning_rad_s: Float64, count: int) -> NDArray[np.int64]:
    """Choose frames that were taken at rest and see different parts of a room.

    Parameters
    ----------
    poses
        ``(N, 4, 4)`` poses of the camera.
    turning_rad_s
        ``(N,)`` how fast it turned.
    count
        How many to choose.

    Returns
    -------
    Their numbers, sorted; fewer where there are fewer.
    """
    calm = np.flatnonzero(turning_rad_s <= max(STILL_RAD_S, float(np.quantile(turning_rad_s, 0.3))))
    places = np.concatenate([poses[calm, :3, 3] / VIEW_APART_M, poses[calm, :3, 2]], axis=1)
    chosen = [0]
    gap = np.linalg.norm(places - places[0], axis=1)
    while len(chosen) < min(count, len(calm)):
        chosen.append(int(gap.argmax()))
        gap = np.minimum(gap, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return np.sort(calm[np.unique(chosen)])
