"""A box of a room with painted walls: a simple renderer of its own, exact and cheap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from synorama.geometry.lenses import Lens, panorama, unproject
from synorama.geometry.views import PosedPicture

SIZE_M = np.array([4.4, 5.2, 2.5])
TEXELS_A_METRE = 150
FISHEYE = Lens("fisheye", 480, 480, np.array([210, 210, 239.5, 239.5, 0.02, -0.01, 0, 0]), 1.05)
CAMERA = Lens("fisheye", 640, 360, np.array([350, 350, 319.5, 179.5, 0.03, -0.01, 0.002, -0.001]))
CAMERA_AXES = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])  # looks along x, y down


@dataclass(frozen=True)
class PaintedBox:
    """A room from 0 to `SIZE_M`, whose walls are painted by a seed."""

    seed: int = 0
    contrast: float = 1.0

    @cached_property
    def walls(self) -> list[np.ndarray]:
        """Pictures of the walls across x, y and z, low and high."""
        made = []
        for k in range(6):
            across, up = np.delete(SIZE_M, k // 2)
            shape = int(up * TEXELS_A_METRE), int(across * TEXELS_A_METRE)
            paint = _paint(np.random.default_rng([self.seed, k]), shape, self.contrast)
            made.append(paint + np.float32(1 - self.contrast) * (27 * k - 67))
        return made

    def cloud(self, count: int = 120_000) -> np.ndarray:
        """Return points on the walls, two millimetres off."""
        rng = np.random.default_rng([self.seed, 9])
        points = rng.uniform(0, 1, (count, 3)) * SIZE_M
        wall = rng.integers(6, size=count)
        points[np.arange(count), wall // 2] = np.where(wall % 2, SIZE_M[wall // 2], 0.0)
        return np.asarray(points + rng.normal(0, 0.002, points.shape))

    def picture(self, lens: Lens, pose: np.ndarray, seed: int = 0) -> np.ndarray:
        """Return what a camera at ``T_room_camera`` sees, a little noisy."""
        x, y = np.meshgrid(np.arange(lens.width), np.arange(lens.height))
        rays, seen = unproject(lens, np.stack([x, y], axis=-1))
        rays = rays @ pose[:3, :3].T
        with np.errstate(divide="ignore"):
            reach = np.where(rays > 0, SIZE_M - pose[:3, 3], -pose[:3, 3]) / rays
        axis = reach.argmin(axis=-1)
        places = pose[:3, 3] + rays * reach.min(axis=-1)[..., np.newaxis]
        wall = 2 * axis + (np.take_along_axis(rays, axis[..., np.newaxis], -1)[..., 0] > 0)
        picture = np.zeros(wall.shape, np.float32)
        for k, texture in enumerate(self.walls):
            spots = (np.delete(places, k // 2, axis=-1) * TEXELS_A_METRE - 0.5).astype(np.float32)
            drawn = cv2.remap(texture, spots, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
            picture = np.where((wall == k) & seen, drawn, picture)
        noise = np.random.default_rng([self.seed, seed, 4]).normal(0, 2, picture.shape)
        return np.asarray(np.clip(picture + noise * seen, 0, 255), np.uint8)

    def panoramas(self, room_scan: np.ndarray) -> list[PosedPicture]:
        """Return two panoramas, posed in the scan's frame."""
        lens, scan_room = panorama(1024, 512), np.linalg.inv(room_scan)
        poses = [posed((1.5, 1.6, 1.5), 0.4), posed((2.9, 3.7, 1.6), 2.0)]
        return [
            PosedPicture(f"panorama-{k}", self.picture(lens, pose, k), lens, scan_room @ pose)
            for k, pose in enumerate(poses)
        ]

    def walk(self, count: int = 8) -> list[PosedPicture]:
        """Return frames of somebody who looks around, posed in the room."""
        frames = []
        for k in range(count):
            about = 2 * np.pi * k / count
            eye = SIZE_M / 2 + (0.9 * np.cos(about), 1.1 * np.sin(about), 0.3 + 0.1 * (k % 3))
            pose = facing(tuple(eye), about + 0.7 * (k % 2) + 2.6, -0.15)
            pixels = self.picture(FISHEYE, pose, 10 + k)
            frames.append(PosedPicture(f"frame-{k}", pixels, FISHEYE, pose))
        return frames


def posed(place: tuple[float, ...], yaw: float, lean: float = 0.0) -> np.ndarray:
    """Return a pose ``(4, 4)`` turned about the vertical, then leaning about x."""
    whole = np.eye(4)
    whole[:3, :3] = Rotation.from_euler("xz", [lean, yaw]).as_matrix()
    whole[:3, 3] = place
    return whole


def facing(eye: tuple[float, ...], yaw: float, pitch: float) -> np.ndarray:
    """Return the pose of a camera that looks along a direction, y down."""
    whole = posed(eye, yaw)
    tilt = Rotation.from_euler("y", -pitch).as_matrix()
    whole[:3, :3] = whole[:3, :3] @ tilt @ CAMERA_AXES
    return whole


def apart(found: np.ndarray, true: np.ndarray, at: np.ndarray) -> tuple[float, float]:
    """Return degrees and metres between two motions, at a place."""
    turn = Rotation.from_matrix(found[:3, :3] @ true[:3, :3].T).magnitude()
    gap = (found - true)[:3, :3] @ at + (found - true)[:3, 3]
    return float(np.degrees(turn)), float(np.linalg.norm(gap))


def _paint(rng: np.random.Generator, shape: tuple[int, int], contrast: float) -> np.ndarray:
    wall = np.zeros(shape, np.float32)
    for cell, strength in ((60, 40), (20, 30), (7, 25)):
        small = rng.normal(0, 1, (shape[0] // cell + 2, shape[1] // cell + 2)).astype(np.float32)
        wall += strength * cv2.resize(small, shape[::-1], interpolation=cv2.INTER_CUBIC)
    for _ in range(60):
        x, y = int(rng.integers(shape[1])), int(rng.integers(shape[0]))
        radius, shade = int(rng.integers(4, 22)), float(rng.uniform(-90, 90))
        cv2.circle(wall, (x, y), radius, shade, -1)
    return np.asarray(128 + contrast * np.clip(wall, -110, 110), np.float32)
