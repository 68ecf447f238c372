"""Rooms for the bench of localization: only the pictures it needs, and what is true of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import cv2
import numpy as np

from synorama.geometry.lenses import Lens, panorama
from synorama.geometry.views import PosedPicture
from synorama.simulate.clocks import randomness
from synorama.simulate.devices.aria import FULL
from synorama.simulate.devices.aria_cameras import glasses_cameras
from synorama.simulate.mps.estimate import CLOSED_SIGMA, Wander, turn
from synorama.simulate.scan.scanner import ScanOptions, ScanPicture, make_scan
from synorama.simulate.scene.cameras import Camera, Fisheye624, KannalaBrandt, Pinhole
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import plan_motion
from synorama.simulate.scene.render import Film, Studio
from synorama.simulate.scene.room import KINDS
from synorama.simulate.scene.stands import choose_stands
from synorama.simulate.scene.surface import room_surface
from synorama.simulate.stage import CAMERA_HEIGHTS_M, GOPRO_FOCAL, GOPRO_RADIAL, LENS_SPREAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

SECONDS = 60.0
FRAMES = 16
RGB_PX = 704  # of the 1408 that the glasses record
GOPRO_PX = (960, 540)
UP_DOWN = np.diag([1.0, -1.0, -1.0, 1.0])
MILD = Film()
DARK = Film(gain=0.3, read_noise=0.008, shot_noise=0.03)
BLUR_PX = 1.4
HARD_MOVED, HARD_COVERAGE, HARD_WARP_M = 0.4, (0.5, 0.85), (0.008, 0.012)


@dataclass(frozen=True)
class Lab:
    """A room, who walks in it, and its scan.

    Parameters
    ----------
    seed
        Of everything.
    contrast
        Of its textures.
    dark
        Whether the glasses' pictures are dark, noisy and blurred.
    hard
        Whether it is a kitchen in which two things in five were moved since it was scanned by
        hand, in part, with a drift of about a centimetre.
    """

    seed: int
    contrast: float = 1.0
    dark: bool = False
    hard: bool = False

    @cached_property
    def room(self):  # type: ignore[no-untyped-def]
        if self.hard:
            return build_room(self.seed, "kitchen", moved_share=HARD_MOVED, contrast=self.contrast)
        return build_room(self.seed, KINDS[self.seed % len(KINDS)], contrast=self.contrast)

    @cached_property
    def wearers(self):  # type: ignore[no-untyped-def]
        return plan_motion(self.room, self.seed, start_ns=0, seconds=SECONDS)

    @cached_property
    def studio(self) -> Studio:
        return Studio(self.room, self.wearers, texture_px=512)

    @cached_property
    def scan(self):  # type: ignore[no-untyped-def]
        surface = room_surface(self.room, "scan", texture_px=512)
        return make_scan(self.room, surface, self.seed, self._scanned)

    @property
    def _scanned(self) -> ScanOptions:
        options = ScanOptions(points=700_000)
        if not self.hard:
            return options
        coverage = float(randomness(self.seed, "coverage").uniform(*HARD_COVERAGE))
        return replace(options, kind="handheld", warp_m=HARD_WARP_M, coverage=coverage)

    @property
    def world_scan(self) -> Float64:
        return np.asarray(self.scan.world_scan.matrix)

    def scan_pictures(self) -> list[PosedPicture]:
        return [_posed(p) for p in self.scan.pictures]

    def glasses_frames(self, count: int = FRAMES, label: str = "camera-rgb") -> list[PosedPicture]:
        """Return frames of the leader with the poses that the services believe."""
        camera = _small(glasses_cameras("1WM00000000S00", FULL)[label], RGB_PX)
        wearer, rng = self.wearers[0], randomness(self.seed, "bench")
        error = Wander.draw(rng, CLOSED_SIGMA)
        lens = _lens(camera)
        frames = []
        for k, second in enumerate(self._calm(count)):
            t_ns = int(second * 1e9)
            film = DARK if self.dark else MILD
            pixels = self.studio.worn(camera, wearer.name, t_ns, film, rng)
            pixels = cv2.GaussianBlur(pixels, (0, 0), BLUR_PX) if self.dark else pixels
            true = wearer.device.pose(np.array([t_ns]))[0]
            off = error(np.array([second]))[0]
            told = true.copy()
            told[:3, :3] = turn(off[np.newaxis, 3:])[0] @ true[:3, :3]
            told[:3, 3] += off[:3]
            frames.append(PosedPicture(f"frame-{k}", pixels, lens, told @ camera.device_camera))
        return frames

    def _calm(self, count: int) -> Float64:
        """Return times at which the head turns least within each part of the session."""
        grid = np.arange(1.0, SECONDS - 1.0, 0.1)
        motion = self.wearers[0].device((grid * 1e9).astype(np.int64))
        speed = np.linalg.norm(motion.angular_velocity_rad_s, axis=1)
        parts = np.array_split(np.arange(len(grid)), count)
        return np.array([grid[p[speed[p].argmin()]] for p in parts])

    @cached_property
    def stands(self) -> list[Float64]:
        t_ns = np.linspace(0, SECONDS * 1e9, 40).astype(np.int64)
        return choose_stands(
            self.room, self.studio.surface, list(self.wearers), t_ns, CAMERA_HEIGHTS_M
        )

    def gopro(self, number: int, frames: int = 5) -> tuple[Lens, list[Picture], Float64]:
        """Return the true lens, some pictures, and the true pose of a GoPro."""
        rng = randomness(self.seed, "gopro", str(number))
        width, height = GOPRO_PX
        focal = GOPRO_FOCAL * width * (1 + LENS_SPREAD * rng.standard_normal())
        centre = ((width - 1) / 2, (height - 1) / 2)
        lens = KannalaBrandt((focal, focal), centre, GOPRO_RADIAL)
        camera = Camera("gopro", lens, width, height)
        pose = self.stands[number]
        film = DARK if self.dark else MILD
        pictures = [
            self.studio.fixed(camera, pose, int(s * 1e9), film, rng)
            for s in np.linspace(3, SECONDS - 3, frames)
        ]
        return _lens(camera), pictures, pose


def _small(camera: Camera, width: int) -> Camera:
    factor = width / camera.width
    if factor >= 1:
        return camera
    height = round(camera.height * factor)
    return Camera(
        camera.name, camera.lens.scaled(factor), width, height, camera.device_camera, True,
        camera.readout_s,
    )  # fmt: skip


def _lens(camera: Camera) -> Lens:
    lens, size = camera.lens, (camera.width, camera.height)
    if isinstance(lens, Fisheye624):
        params = [
            lens.focal_px,
            lens.cx_px,
            lens.cy_px,
            *lens.radial,
            *lens.tangential,
            *lens.prism,
        ]
        return Lens("fisheye624", *size, np.array(params), lens.max_angle_rad)
    if isinstance(lens, KannalaBrandt):
        params = [*lens.focal_px, *lens.centre_px, *lens.radial]
        return Lens("fisheye", *size, np.array(params), lens.max_angle_rad)
    assert isinstance(lens, Pinhole)
    params = [*lens.focal_px, *lens.centre_px, *lens.distortion]
    return Lens("pinhole", *size, np.array(params))


def _posed(picture: ScanPicture) -> PosedPicture:
    height, width, _ = picture.pixels.shape
    pose = np.array(picture.scan_camera.matrix)
    if picture.kind == "spherical":
        return PosedPicture(picture.name, picture.pixels, panorama(width, height), pose)
    f, centre = picture.focal_px, [(width - 1) / 2, (height - 1) / 2]
    lens = Lens("pinhole", width, height, np.array([f, f, *centre, 0, 0, 0, 0, 0]))
    return PosedPicture(picture.name, picture.pixels, lens, pose @ UP_DOWN)
