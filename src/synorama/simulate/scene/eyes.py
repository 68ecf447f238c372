"""Pictures of eye cameras: a ball with iris and pupil that turns with the gaze, behind lids.

The ball is met by the camera's rays in closed form, once; a picture then only asks how far each
point of the ball lies from the gaze. Where the pupil is drawn is therefore true geometry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from synorama.simulate.scene.cameras import Camera

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["EYE_CENTRES_CPF_M", "EyeView"]

EYE_CENTRES_CPF_M = {
    "left": np.array([0.0315, 0.0, -0.0115]),
    "right": np.array([-0.0315, 0.0, -0.0115]),
}
"""Centres of the eyeballs in the central pupil frame."""

BALL_M = 0.0118
PUPIL_RAD, IRIS_RAD = 0.17, 0.5  # from the axis of the eye
LID_UP_RAD, LID_DOWN_RAD, CORNER_RAD = 0.75, 0.6, 1.2  # of the open lids, about the ball
LEVEL = {"pupil": 12, "iris": 92, "white": 178, "skin": 128}
EDGE_RAD = 0.03  # over which one gives way to the other
NOISE = 3.0


class EyeView:
    """What an eye camera sees of one eye.

    Parameters
    ----------
    camera
        The eye camera; its pose is that in the central pupil frame.
    side
        Which eye.
    seed
        Of skin and iris.
    """

    def __init__(self, camera: Camera, side: Literal["left", "right"], seed: int = 0) -> None:
        self.camera = camera
        self._rng = np.random.default_rng([seed, 9, side == "left"])
        self._on_ball, self._skin = self._look(EYE_CENTRES_CPF_M[side])
        self._grain = _grain(self._rng, self._skin.shape)

    def _look(self, centre: Float64) -> tuple[Float32, Float32]:
        """Return directions from the eye's centre ``(H, W, 3)``, and how far pixels are skin."""
        pose = self.camera.device_camera
        rays = self.camera.rays.directions @ pose[:3, :3].T.astype(np.float32)
        away = (centre - pose[:3, 3]).astype(np.float32)
        along = rays @ away
        square = BALL_M**2 - (float(away @ away) - along**2)
        depth = along - np.sqrt(np.maximum(square, 0.0))
        points = (depth[..., np.newaxis] * rays - away) / BALL_M
        up = np.arcsin(np.clip(points[..., 1], -1, 1))
        aside = np.arctan2(points[..., 0], points[..., 2])
        arch = np.sqrt(np.clip(1 - (aside / CORNER_RAD) ** 2, 0.0, 1.0))
        lid = np.where(up > 0, up / LID_UP_RAD, -up / LID_DOWN_RAD) - arch
        skin = np.clip(0.5 + lid / (2 * EDGE_RAD), 0, 1)
        open_eye = (square > 0) & (np.abs(aside) < CORNER_RAD)
        return points.astype(np.float32), np.where(open_eye, skin, 1.0).astype(np.float32)

    def picture(
        self, gaze_cpf: Float64, rng: np.random.Generator, *, closed: float = 0.0
    ) -> Picture:
        """Return the picture ``(H, W)`` uint8.

        Parameters
        ----------
        gaze_cpf
            ``(3,)`` unit vector in the central pupil frame.
        closed
            How far the lid is down, 0 to 1.
        """
        angle = np.arccos(np.clip(self._on_ball @ gaze_cpf.astype(np.float32), -1, 1))
        eye = _step(angle, PUPIL_RAD, LEVEL["pupil"], LEVEL["iris"] + 16 * self._grain)
        eye = _step(angle, IRIS_RAD, eye, LEVEL["white"] + 8 * self._grain)
        lid = np.clip((self._on_ball[..., 1] - 0.6 + 1.1 * closed) / EDGE_RAD, 0, 1)
        skin = np.maximum(self._skin, lid)
        light = eye + skin * (LEVEL["skin"] + 9 * self._grain - eye)
        light = light + NOISE * rng.standard_normal(light.shape, np.float32)
        shown = np.where(self.camera.rays.visible, light, 0)
        return np.asarray(np.clip(np.rint(shown), 0, 255), np.uint8)


def _step(angle: Float32, at_rad: float, inside: Float32 | int, outside: Float32) -> Float32:
    share = np.clip(0.5 + (angle - at_rad) / (2 * EDGE_RAD), 0, 1)
    return np.asarray(inside + share * (outside - inside), np.float32)


def _grain(rng: np.random.Generator, shape: tuple[int, ...]) -> Float32:
    """Return smooth noise of about unit size."""
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(rng.standard_normal(shape), max(shape[0] / 25, 0.6))
    return np.asarray(noise / noise.std(), np.float32)
