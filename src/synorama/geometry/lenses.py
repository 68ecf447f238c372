"""Lenses: from directions to pixels and back.

Camera frames have z forward, x right and y down, except panoramas, whose frame has x forward,
y left and z up. The middle of the first pixel is (0, 0).

Every lens here is drawn in two steps: a direction becomes a point on a flat unit picture (by its
angle for a fisheye, by its slope for a pinhole), and that point is shifted by the distortion. The
way back solves the second step by Newton's method, whatever the distortion.

Models: `Fisheye624` of Project Aria, see its documentation of camera intrinsics; OpenCV's fisheye
(J. Kannala and S. Brandt, PAMI 2006) and its pinhole (D. Brown, 1966).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from synorama.errors import CorruptFileError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]

__all__ = ["PARAMETERS", "Lens", "Model", "lens_of_aria", "panorama", "project", "unproject"]

Model: TypeAlias = Literal["fisheye624", "fisheye", "pinhole", "spherical"]

PARAMETERS: Mapping[Model, tuple[str, ...]] = {
    "fisheye624": (
        "f", "cx", "cy", "k0", "k1", "k2", "k3", "k4", "k5", "p0", "p1", "s0", "s1", "s2", "s3",
    ),
    "fisheye": ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4"),
    "pinhole": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3"),
    "spherical": ("fx", "fy", "cx", "cy"),
}  # fmt: skip
"""Names of each model's numbers; focal lengths and principal points in pixels."""

NEWTON_STEPS = 15
SETTLED = 1e-12
LOST = 1e-6  # what is left of a pixel that no direction is drawn at, on the unit picture
SLOPE_STEP = 1e-6
FOLD_STEPS = 1000
LEAST_SLOPE = 0.05  # a pixel shows twenty times the angle that one in the middle shows
_RADIAL: Mapping[Model, range | tuple[int, ...]] = {
    "fisheye624": range(3, 9), "fisheye": range(4, 8), "pinhole": (4, 5, 8),
}  # fmt: skip
WIDEST_RAD: Mapping[str, float] = {"fisheye624": 1.4, "fisheye": 1.5, "pinhole": 1.4}
SENSORS_PX = ((2880, 2880), (1408, 1408), (4032, 3024), (2016, 1512), (640, 480), (512, 512))
"""For which the glasses' cameras are calibrated, of both generations."""
ARIA_RGB_RAD = 1.0  # half the field of view of the glasses' colour camera


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """How a camera maps directions to pixels.

    Parameters
    ----------
    model
        Which formula.
    width, height
        Size of the picture [px].
    params
        Its numbers, in the order of `PARAMETERS`.
    max_angle_rad
        Half the field of view: nothing is drawn beyond.
    """

    model: Model
    width: int
    height: int
    params: Float64
    max_angle_rad: float = np.pi

    def __post_init__(self) -> None:
        params = np.array(self.params, np.float64)
        if params.shape != (len(PARAMETERS[self.model]),) or not np.isfinite(params).all():
            raise ValueError(f"a {self.model} lens has {len(PARAMETERS[self.model])} numbers")
        params.setflags(write=False)
        object.__setattr__(self, "params", params)
        widest = min(self.max_angle_rad, WIDEST_RAD.get(self.model, np.pi))
        object.__setattr__(self, "max_angle_rad", _before_the_fold(self.model, params, widest))

    @property
    def pixels_per_rad(self) -> float:
        """Pixels that one radian covers in the middle of the picture."""
        return float(self.params[0])

    @property
    def centre_px(self) -> Float64:
        """Principal point ``(2,)``."""
        first = 1 if self.model == "fisheye624" else 2
        return self.params[first : first + 2]

    def resized(self, factor: float) -> Lens:
        """Return the lens for a picture that is resized as a whole."""
        size = (round(self.width * factor), round(self.height * factor))
        params = self.params.copy()
        for k, name in enumerate(PARAMETERS[self.model]):
            if name.startswith("f"):
                params[k] *= factor
            elif name.startswith("c"):
                params[k] = (params[k] + 0.5) * factor - 0.5
        return replace(self, width=size[0], height=size[1], params=params)


def _before_the_fold(model: Model, params: Float64, widest_rad: float) -> float:
    """Return up to which angle [rad] what lies further out is also drawn further out.

    A distortion is a polynomial: beyond the angles that it was fitted on it may turn back, and
    draw a direction where another one lies already.
    """
    if model not in _RADIAL:
        return widest_rad
    bends = params[list(_RADIAL[model])]
    powers = 2 * np.arange(len(bends)) + 2
    angle = np.linspace(0.0, widest_rad, FOLD_STEPS)
    reach = np.tan(angle) if model == "pinhole" else angle
    slope = 1.0 + reach[:, np.newaxis] ** powers @ (bends * (powers + 1))
    turning = slope < LEAST_SLOPE
    return float(angle[max(int(np.argmax(turning)) - 1, 0)]) if turning.any() else widest_rad


def panorama(width: int, height: int, pixel_rad: tuple[float, float] | None = None) -> Lens:
    """Return the lens of a panorama: azimuth along x, elevation along y, x ahead in its middle.

    Parameters
    ----------
    width, height
        Size [px].
    pixel_rad
        Width and height of a pixel; those of a whole panorama by default.
    """
    wide, high = pixel_rad or (2 * np.pi / width, np.pi / height)
    middle = ((width - 1) / 2, (height - 1) / 2)
    return Lens("spherical", width, height, np.array([1 / wide, 1 / high, *middle]))


# --- from points to pixels -------------------------------------------------------------------


def project(lens: Lens, points_m: ArrayLike) -> tuple[Float64, Bool]:
    """Return pixels ``(..., 2)`` of points ``(..., 3)`` [m] and which lie on the picture.

    Parameters
    ----------
    lens
        The lens.
    points_m
        In the camera's frame.
    """
    points = np.asarray(points_m, np.float64)
    if lens.model == "spherical":
        pixels, seen = _project_round(lens, points)
    else:
        flat, seen = _flat(lens, points)
        pixels = _distorted(lens, flat) * _focal(lens) + lens.centre_px
    x, y = pixels[..., 0], pixels[..., 1]
    inside = (x > -0.5) & (x < lens.width - 0.5) & (y > -0.5) & (y < lens.height - 0.5)
    return pixels, seen & inside


def unproject(lens: Lens, pixels: ArrayLike) -> tuple[Float64, Bool]:
    """Return unit directions ``(..., 3)`` of pixels ``(..., 2)`` and which can be seen."""
    places = np.asarray(pixels, np.float64)
    if lens.model == "spherical":
        return _unproject_round(lens, places)
    target = (places - lens.centre_px) / _focal(lens)
    flat, solved = _undistorted(lens, target)
    rays, angle = _lifted(lens, flat)
    return rays, solved & (angle <= lens.max_angle_rad)


def _focal(lens: Lens) -> Float64:
    return lens.params[[0, 0]] if lens.model == "fisheye624" else lens.params[:2]


def _flat(lens: Lens, points: Float64) -> tuple[Float64, Bool]:
    """Return points on the unit picture before distortion, and which are within the view."""
    across = np.hypot(points[..., 0], points[..., 1])
    angle = np.arctan2(across, points[..., 2])
    seen = (angle <= lens.max_angle_rad) & (across + np.abs(points[..., 2]) > 0)
    capped = np.minimum(angle, WIDEST_RAD[lens.model])
    reach = np.tan(capped) if lens.model == "pinhole" else capped
    ratio = np.where(across > 1e-12, reach / np.maximum(across, 1e-12), 0.0)
    return points[..., :2] * ratio[..., np.newaxis], seen


def _lifted(lens: Lens, flat: Float64) -> tuple[Float64, Float64]:
    """Return unit directions and their angles of points on the unit picture."""
    reach = np.hypot(flat[..., 0], flat[..., 1])
    angle = np.arctan(reach) if lens.model == "pinhole" else reach
    ratio = np.where(reach > 1e-12, np.sin(angle) / np.maximum(reach, 1e-12), 1.0)
    rays = np.concatenate([flat * ratio[..., np.newaxis], np.cos(angle)[..., np.newaxis]], axis=-1)
    return rays, angle


# --- distortion ------------------------------------------------------------------------------


def _distorted(lens: Lens, flat: Float64) -> Float64:
    return _DISTORTIONS[lens.model](flat, lens.params)


def _fisheye624(flat: Float64, params: Float64) -> Float64:
    square = (flat**2).sum(axis=-1, keepdims=True)
    bent = flat * (1.0 + square * np.polynomial.polynomial.polyval(square, params[3:9]))
    square = (bent**2).sum(axis=-1, keepdims=True)
    tangential, prism = params[9:11], params[11:15]
    along = (bent @ tangential)[..., np.newaxis]
    return np.asarray(
        bent
        + 2.0 * along * bent
        + square * (tangential + prism[[0, 2]])
        + square**2 * prism[[1, 3]],
        np.float64,
    )


def _fisheye(flat: Float64, params: Float64) -> Float64:
    square = (flat**2).sum(axis=-1, keepdims=True)
    return np.asarray(
        flat * (1.0 + square * np.polynomial.polynomial.polyval(square, params[4:8])), np.float64
    )


def _brown(flat: Float64, params: Float64) -> Float64:
    k1, k2, p1, p2, k3 = params[4:]
    square = (flat**2).sum(axis=-1, keepdims=True)
    gain = 1.0 + square * (k1 + square * (k2 + square * k3))
    along = (flat @ np.array([p2, p1]))[..., np.newaxis]
    return np.asarray(flat * gain + 2.0 * along * flat + square * (p2, p1), np.float64)


_DISTORTIONS: Mapping[str, Callable[[Float64, Float64], Float64]] = {
    "fisheye624": _fisheye624,
    "fisheye": _fisheye,
    "pinhole": _brown,
}


def _undistorted(lens: Lens, target: Float64) -> tuple[Float64, Bool]:
    """Solve ``distorted(flat) = target`` by Newton's method with numerical slopes."""
    widest = lens.max_angle_rad
    limit = float(np.tan(widest)) if lens.model == "pinhole" else widest
    wanted = target.reshape(-1, 2)
    flat = _shortened(wanted, limit)
    left = np.arange(len(flat))
    for _ in range(NEWTON_STEPS):
        off = _distorted(lens, flat[left]) - wanted[left]
        open_still = np.abs(off).max(axis=1) > SETTLED
        left, off = left[open_still], off[open_still]
        if not len(left):
            break
        flat[left] = _shortened(flat[left] - _newton_step(lens, flat[left], off), limit)
    solved = np.ones(len(flat), np.bool_)
    off = _distorted(lens, flat[left]) - wanted[left]
    solved[left] = np.abs(off).max(axis=1, initial=0.0) < LOST
    return flat.reshape(target.shape), solved.reshape(target.shape[:-1])


def _newton_step(lens: Lens, flat: Float64, off: Float64) -> Float64:
    slopes = [
        (_distorted(lens, flat + step) - _distorted(lens, flat - step)) / (2 * SLOPE_STEP)
        for step in SLOPE_STEP * np.eye(2)
    ]
    (a, c), (b, d) = (np.moveaxis(s, -1, 0) for s in slopes)
    size = a * d - b * c
    size = np.where(np.abs(size) > 1e-3, size, np.where(size < 0, -1e-3, 1e-3))
    x, y = off[..., 0], off[..., 1]
    return np.stack([d * x - b * y, a * y - c * x], axis=-1) / size[..., np.newaxis]


def _shortened(flat: Float64, limit: float) -> Float64:
    reach = np.hypot(flat[..., 0], flat[..., 1])[..., np.newaxis]
    return np.asarray(flat * np.minimum(1.0, limit / np.maximum(reach, 1e-12)), np.float64)


# --- panoramas -------------------------------------------------------------------------------


def _project_round(lens: Lens, points: Float64) -> tuple[Float64, Bool]:
    across = np.hypot(points[..., 0], points[..., 1])
    azimuth = np.arctan2(points[..., 1], points[..., 0])
    elevation = np.arctan2(points[..., 2], across)
    pixels = lens.centre_px - np.stack([azimuth, elevation], axis=-1) * _focal(lens)
    return pixels, across + np.abs(points[..., 2]) > 0


def _unproject_round(lens: Lens, places: Float64) -> tuple[Float64, Bool]:
    angles = (lens.centre_px - places) / _focal(lens)
    azimuth, elevation = angles[..., 0], angles[..., 1]
    flat = np.cos(elevation)
    rays = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=-1)
    return rays, (np.abs(azimuth) <= np.pi) & (np.abs(elevation) <= np.pi / 2)


# --- the glasses' calibration ----------------------------------------------------------------


def lens_of_aria(
    camera: Mapping[str, Any], size_px: tuple[int, int], sensor_px: tuple[int, int] | None = None
) -> Lens:
    """Return the lens of one entry of the glasses' ``CameraCalibrations``.

    Parameters
    ----------
    camera
        The entry, as the recording or the services' online calibration has it.
    size_px
        Width and height of the pictures. Where they are smaller than the sensor, its middle is cut
        out and every second (third ...) pixel is kept, as the glasses do.
    sensor_px
        Size for which the camera is calibrated; guessed from the principal point where unknown.

    Raises
    ------
    CorruptFileError
        The entry is of no model that is known, or its numbers are too few.
    """
    label = str(camera.get("Label", "a camera"))
    try:
        name = camera["Projection"]["Name"]
        params = np.array(camera["Projection"]["Params"], np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"the calibration of {label} is not complete") from error
    if name != "FisheyeRadTanThinPrism" or len(params) != len(PARAMETERS["fisheye624"]):
        raise CorruptFileError(
            f"the calibration of {label} is of a model that is not known: {name}",
            hint="export the calibration with the vendor's tools, or update Synorama",
        )
    sensor = sensor_px or _likely_sensor(params, size_px)
    factor = max(1, round(sensor[0] / size_px[0]))
    params[1:3] -= [(s - factor * p) / 2 for s, p in zip(sensor, size_px, strict=True)]
    widest = ARIA_RGB_RAD if label == "camera-rgb" else WIDEST_RAD["fisheye624"]
    whole = (size_px[0] * factor, size_px[1] * factor)
    return Lens("fisheye624", *whole, params, widest).resized(1 / factor)


def _likely_sensor(params: Float64, size_px: tuple[int, int]) -> tuple[int, int]:
    """Return the sensor whose middle is nearest to the principal point."""
    off = {
        size: np.abs(params[1:3] * 2 - size).max() / max(size) for size in (*SENSORS_PX, size_px)
    }
    return min(off, key=off.__getitem__)
