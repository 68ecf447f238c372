"""Pictures for simulated cameras: those of a room, or texture that costs a codec about as much."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from synorama.simulate.formats import barcode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

__all__ = ["Shots", "stamped", "textures"]

Shots: TypeAlias = Callable[[int], "Picture"]
"""What one camera sees at a device time [ns]: ``(H, W, 3)`` red first, or ``(H, W)`` if grey."""


def stamped(picture: Picture, frame: int, camera: int | None) -> Picture:
    """Return a picture with a barcode drawn into it, unless there is no camera number."""
    if camera is not None:
        barcode.draw(picture, frame, camera)
    return picture


def textures(
    rng: np.random.Generator, count: int, height_px: int, width_px: int, *, colour: bool
) -> list[Picture]:
    """Return pictures ``(H, W, 3)``, or ``(H, W)`` if grey: large shapes with fine grain."""
    return [_texture(rng, height_px, width_px, colour) for _ in range(count)]


def _texture(rng: np.random.Generator, height: int, width: int, colour: bool) -> Picture:
    import cv2

    channels = 3 if colour else 1
    coarse = rng.uniform(40, 215, (max(height // 64, 3), max(width // 64, 3), channels))
    shapes = cv2.resize(coarse.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    grain = cv2.GaussianBlur(rng.standard_normal((height, width), np.float32), (0, 0), 1.0)
    picture = shapes.reshape(height, width, channels) + 25.0 * grain[..., np.newaxis]
    whole: Picture = np.clip(picture, 0, 255).astype(np.uint8)
    return whole if colour else whole[..., 0]
