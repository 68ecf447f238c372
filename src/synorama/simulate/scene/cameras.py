"""Camera models: from directions to pixels and back, and the rays of all pixels of a picture.

Camera frames have z forward, x right and y down in the stored picture. The middle of the first
pixel is (0, 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "Camera",
    "Fisheye624",
    "KannalaBrandt",
    "Lens",
    "Pinhole",
    "Rays",
    "project_moving",
]

STEPS = 30  # of the iterations that undo a distortion; all lenses here settle within ten
SETTLED = 1e-13
ROW_STEPS = 5  # until row and time agree: a head turns by a fraction of a row in a row's time


class Lens(Protocol):
    """How a camera maps directions to pixels."""

    def project(self, points_m: ArrayLike) -> tuple[Float64, Bool]:
        """Return pixels ``(..., 2)`` of points ``(..., 3)`` and which lie in the field of view."""
        ...

    def unproject(self, pixels: ArrayLike) -> tuple[Float64, Bool]:
        """Return unit directions ``(..., 3)`` of pixels ``(..., 2)`` and which can be seen."""
        ...

    def scaled(self, factor: float) -> Lens:
        """Return the lens for a picture that is resized as a whole."""
        ...


@dataclass(frozen=True, slots=True)
class Fisheye624:
    """Fisheye of Project Aria: six radial, two tangential, four thin-prism terms.

    Parameters
    ----------
    focal_px, cx_px, cy_px
        Focal length and principal point.
    radial, tangential, prism
        ``k0..k5``, ``p0, p1``, ``s0..s3`` in the order of the vendor's calibration.
    max_angle_rad
        Half the field of view.
    """

    focal_px: float
    cx_px: float
    cy_px: float
    radial: tuple[float, ...]
    tangential: tuple[float, float]
    prism: tuple[float, float, float, float]
    max_angle_rad: float = 1.3

    @classmethod
    def of(cls, params: ArrayLike, max_angle_rad: float = 1.3) -> Fisheye624:
        """Return the lens of the vendor's 15 numbers ``f, cx, cy, k0..k5, p0, p1, s0..s3``."""
        f, cx, cy, *rest = (float(v) for v in np.asarray(params, np.float64))
        p0, p1, s0, s1, s2, s3 = rest[6:]
        return cls(f, cx, cy, tuple(rest[:6]), (p0, p1), (s0, s1, s2, s3), max_angle_rad)

    def project(self, points_m: ArrayLike) -> tuple[Float64, Bool]:
        """Return pixels ``(..., 2)`` of points ``(..., 3)`` and which lie in the field of view."""
        flat, angle = _bent(np.asarray(points_m, np.float64), self.radial)
        pixels = self.focal_px * (flat + self._aside(flat)) + (self.cx_px, self.cy_px)
        return pixels, angle <= self.max_angle_rad

    def unproject(self, pixels: ArrayLike) -> tuple[Float64, Bool]:
        """Return unit directions ``(..., 3)`` of pixels ``(..., 2)`` and which can be seen."""
        seen = (np.asarray(pixels, np.float64) - (self.cx_px, self.cy_px)) / self.focal_px
        flat = seen
        for _ in range(STEPS):
            before, flat = flat, seen - self._aside(flat)
            if np.abs(flat - before).max(initial=0.0) < SETTLED:
                break
        return _straightened(flat, self.radial, self.max_angle_rad)

    def _aside(self, flat: Float64) -> Float64:
        """Return the shift by tangential and thin-prism terms."""
        square = (flat**2).sum(axis=-1, keepdims=True)
        tangential = np.array(self.tangential)
        s0, s1, s2, s3 = self.prism
        shift: Float64 = (
            2.0 * (flat @ tangential)[..., np.newaxis] * flat
            + square * np.add(tangential, (s0, s2))
            + square**2 * (s1, s3)
        )
        return shift

    def scaled(self, factor: float) -> Fisheye624:
        """Return the lens for a picture that is resized as a whole."""
        cx, cy = ((c + 0.5) * factor - 0.5 for c in (self.cx_px, self.cy_px))
        return replace(self, focal_px=self.focal_px * factor, cx_px=cx, cy_px=cy)


@dataclass(frozen=True, slots=True)
class KannalaBrandt:
    """Fisheye of Kannala and Brandt with four radial terms: GoPro, eye cameras, OpenCV's fisheye.

    Parameters
    ----------
    focal_px
        Focal lengths along x and y.
    centre_px
        Principal point.
    radial
        ``k0..k3``: the angle t is drawn at ``t + k0 t^3 + k1 t^5 + ...`` focal lengths.
    max_angle_rad
        Half the field of view.
    """

    focal_px: tuple[float, float]
    centre_px: tuple[float, float]
    radial: tuple[float, ...]
    max_angle_rad: float = 1.4

    def project(self, points_m: ArrayLike) -> tuple[Float64, Bool]:
        """Return pixels ``(..., 2)`` of points ``(..., 3)`` and which lie in the field of view."""
        flat, angle = _bent(np.asarray(points_m, np.float64), self.radial)
        return flat * self.focal_px + self.centre_px, angle <= self.max_angle_rad

    def unproject(self, pixels: ArrayLike) -> tuple[Float64, Bool]:
        """Return unit directions ``(..., 3)`` of pixels ``(..., 2)`` and which can be seen."""
        flat = (np.asarray(pixels, np.float64) - self.centre_px) / self.focal_px
        return _straightened(flat, self.radial, self.max_angle_rad)

    def scaled(self, factor: float) -> KannalaBrandt:
        """Return the lens for a picture that is resized as a whole."""
        focal, centre = _scaled(self.focal_px, self.centre_px, factor)
        return replace(self, focal_px=focal, centre_px=centre)


@dataclass(frozen=True, slots=True)
class Pinhole:
    """A pinhole with the distortion of Brown, as OpenCV has it: webcams.

    Parameters
    ----------
    focal_px
        Focal lengths along x and y.
    centre_px
        Principal point.
    distortion
        ``k1, k2, p1, p2, k3``.
    """

    focal_px: tuple[float, float]
    centre_px: tuple[float, float]
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    def project(self, points_m: ArrayLike) -> tuple[Float64, Bool]:
        """Return pixels ``(..., 2)`` of points ``(..., 3)`` and which lie in front."""
        points = np.asarray(points_m, np.float64)
        ahead = points[..., 2] > 0
        depth = np.where(ahead, points[..., 2], 1.0)[..., np.newaxis]
        flat = points[..., :2] / depth
        gain, shift = self._distortion(flat)
        return (flat * gain + shift) * self.focal_px + self.centre_px, ahead

    def unproject(self, pixels: ArrayLike) -> tuple[Float64, Bool]:
        """Return unit directions ``(..., 3)`` of pixels ``(..., 2)``; all can be seen."""
        seen = (np.asarray(pixels, np.float64) - self.centre_px) / self.focal_px
        flat = seen
        for _ in range(4 * STEPS):
            gain, shift = self._distortion(flat)
            before, flat = flat, (seen - shift) / gain
            if np.abs(flat - before).max(initial=0.0) < SETTLED:
                break
        rays = np.concatenate([flat, np.ones_like(flat[..., :1])], axis=-1)
        rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
        return rays, np.ones(flat.shape[:-1], bool)

    def _distortion(self, flat: Float64) -> tuple[Float64, Float64]:
        k1, k2, p1, p2, k3 = self.distortion
        square = (flat**2).sum(axis=-1, keepdims=True)
        gain = 1 + square * (k1 + square * (k2 + square * k3))
        across = 2 * (flat @ np.array([p2, p1]))[..., np.newaxis] * flat
        return gain, across + square * (p2, p1)

    def scaled(self, factor: float) -> Pinhole:
        """Return the lens for a picture that is resized as a whole."""
        focal, centre = _scaled(self.focal_px, self.centre_px, factor)
        return replace(self, focal_px=focal, centre_px=centre)


@dataclass(frozen=True, slots=True, eq=False)
class Rays:
    """The rays of all pixels of a camera.

    Parameters
    ----------
    directions
        ``(H, W, 3)`` float32 unit vectors in the camera's frame.
    visible
        ``(H, W)`` whether the lens draws anything there.
    pixel_rad
        Angle between neighbouring rays in the middle of the picture.
    """

    directions: Float32
    visible: Bool
    pixel_rad: float


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera on a device.

    Parameters
    ----------
    name
        Its name.
    lens
        Its model for pictures of this size.
    width, height
        Size of its pictures [px].
    device_camera
        ``(4, 4)`` pose ``T_device_camera``.
    colour
        Whether it sees colours.
    readout_s
        Time from the first to the last row; 0 for a global shutter. The time of a picture is the
        middle of the exposure of its middle row.
    """

    name: str
    lens: Lens
    width: int
    height: int
    device_camera: Float64 = field(default_factory=lambda: np.eye(4))
    colour: bool = True
    readout_s: float = 0.0

    @cached_property
    def rays(self) -> Rays:
        """Rays through the middles of the pixels."""
        return self.rays_at((0.0, 0.0))

    def rays_at(self, shift_px: tuple[float, float]) -> Rays:
        """Return rays beside the middles of the pixels, by a shift along x and y."""
        x, y = np.meshgrid(np.arange(self.width), np.arange(self.height))
        pixels = np.stack([x + shift_px[0], y + shift_px[1]], axis=-1)
        directions, visible = self.lens.unproject(pixels)
        middle = np.array([self.width / 2, self.height / 2])
        pair, _ = self.lens.unproject(np.stack([middle, np.add(middle, (1, 0))]))
        return Rays(
            directions.astype(np.float32), visible, float(np.linalg.norm(pair[1] - pair[0]))
        )

    def row_delay_s(self, rows: ArrayLike) -> Float64:
        """Return when rows are exposed, against the time of the picture [s]."""
        middle = (self.height - 1) / 2
        share = (np.asarray(rows, np.float64) - middle) / max(self.height - 1, 1)
        return np.asarray(share * self.readout_s, np.float64)


def project_moving(
    camera: Camera,
    pose_at: Callable[[Int64], Float64],
    t_ns: int,
    points_m: ArrayLike,
) -> tuple[Float64, Bool]:
    """Return where a moving camera draws points, each at the time at which its row is exposed.

    Parameters
    ----------
    camera
        The camera; its own pose on the device is not used.
    pose_at
        Gives poses ``(N, 4, 4)`` ``T_world_camera`` at session times ``(N,)`` [ns].
    t_ns
        Session time of the picture: the middle of the exposure of its middle row.
    points_m
        ``(N, 3)`` in ``world`` [m].

    Returns
    -------
    Pixels ``(N, 2)`` and which lie in the field of view and on the picture.
    """
    points = np.asarray(points_m, np.float64)
    rows = np.full(len(points), (camera.height - 1) / 2)
    for _ in range(ROW_STEPS):
        times = t_ns + np.rint(camera.row_delay_s(rows) * NS_PER_S).astype(np.int64)
        pose = pose_at(times)
        local = np.einsum("nji,nj->ni", pose[:, :3, :3], points - pose[:, :3, 3])
        pixels, seen = camera.lens.project(local)
        rows = np.clip(pixels[:, 1], -0.5, camera.height - 0.5)
    x, y = pixels.T
    inside = (x > -0.5) & (x < camera.width - 0.5) & (y > -0.5) & (y < camera.height - 0.5)
    return pixels, seen & inside


def _scaled(
    focal_px: tuple[float, float], centre_px: tuple[float, float], factor: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return focal lengths and principal point of a picture that is resized as a whole."""
    (fx, fy), (cx, cy) = focal_px, centre_px
    centre = ((cx + 0.5) * factor - 0.5, (cy + 0.5) * factor - 0.5)
    return (fx * factor, fy * factor), centre


def _bent(points: Float64, radial: tuple[float, ...]) -> tuple[Float64, Float64]:
    """Return points on the unit picture ``(..., 2)`` after radial distortion, and their angles."""
    across = np.hypot(points[..., 0], points[..., 1])
    angle = np.arctan2(across, points[..., 2])
    drawn = _radius(angle, radial)
    ratio = np.where(across > 1e-12, drawn / np.maximum(across, 1e-12), 1.0)
    return points[..., :2] * ratio[..., np.newaxis], angle


def _radius(angle: Float64, radial: tuple[float, ...]) -> Float64:
    square = angle**2
    return angle * (1.0 + square * np.polynomial.polynomial.polyval(square, radial))


def _straightened(
    flat: Float64, radial: tuple[float, ...], max_angle_rad: float
) -> tuple[Float64, Bool]:
    """Undo radial distortion: return unit directions and which lie in the field of view."""
    drawn = np.hypot(flat[..., 0], flat[..., 1])
    angle, found = _angle(drawn, radial, max_angle_rad)
    ratio = np.where(drawn > 1e-12, np.sin(angle) / np.maximum(drawn, 1e-12), 1.0)
    rays = np.concatenate([flat * ratio[..., np.newaxis], np.cos(angle)[..., np.newaxis]], axis=-1)
    return rays, found


def _angle(drawn: Float64, radial: tuple[float, ...], max_angle_rad: float) -> tuple[Float64, Bool]:
    """Solve ``radius(angle) = drawn`` by Newton's method from a table's answer."""
    table = np.linspace(0.0, max_angle_rad, 512)
    radii = _radius(table, radial)
    angle = np.interp(drawn, radii, table)
    slope_terms = [(2 * k + 3) * value for k, value in enumerate(radial)]
    for _ in range(STEPS):
        square = angle**2
        slope = 1.0 + square * np.polynomial.polynomial.polyval(square, slope_terms)
        step = (_radius(angle, radial) - drawn) / slope
        angle = np.clip(angle - step, 0.0, max_angle_rad)
        if np.abs(step).max(initial=0.0) < SETTLED:
            break
    return angle, drawn <= radii[-1]
