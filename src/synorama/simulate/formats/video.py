"""Moving pictures for cameras whose files hold encoded video."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from synorama.simulate.formats import barcode
from synorama.simulate.formats.pictures import Shots, stamped, textures
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

__all__ = ["Film", "Filmed", "Scene"]

GREY = 128
STEP_PX = 2  # how far the thing moves from frame to frame


class Film(Protocol):
    """Frames to be encoded."""

    def frame(self, number: int, time_base: Fraction, pts: int) -> Any:
        """Return a frame for PyAV."""
        ...


class Filmed:
    """What a camera sees of a room.

    Parameters
    ----------
    shots
        Its pictures; device time is ``pts`` times the time base.
    camera
        Camera number in the barcodes; None for pictures without.
    """

    def __init__(self, shots: Shots, camera: int | None) -> None:
        self._shots, self._camera = shots, camera

    def frame(self, number: int, time_base: Fraction, pts: int) -> Any:
        """Return a frame for PyAV."""
        import av
        import cv2

        picture = stamped(self._shots(round(pts * time_base * NS_PER_S)), number, self._camera)
        planes = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts, frame.time_base = pts, time_base
        return frame


class Scene:
    """A still texture, something that moves across it, and the barcode of each frame.

    Parameters
    ----------
    rng
        Decides the texture.
    height_px, width_px
        Size of the pictures; both even.
    camera
        Camera number in the barcodes.
    """

    def __init__(
        self, rng: np.random.Generator, height_px: int, width_px: int, camera: int
    ) -> None:
        import cv2

        (picture,) = textures(rng, 1, height_px, width_px, colour=True)
        self._camera = camera
        self._height, self._width = height_px, width_px
        self._strip = barcode.strip_height(height_px)
        self._planes = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
        self._blank_strip_colour()

    def frame(self, number: int, time_base: Fraction, pts: int) -> Any:
        """Return a frame for PyAV with the barcode of ``number``."""
        import av

        planes = self._planes.copy()
        self._draw_mover(planes, number)
        strip = barcode.strip(number, self._camera, self._height, self._width)
        planes[: self._strip] = strip
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts, frame.time_base = pts, time_base
        return frame

    def _draw_mover(self, planes: NDArray[np.uint8], number: int) -> None:
        size = (self._height - self._strip) // 4
        left = number * STEP_PX % (self._width - size)
        top = self._strip + size
        planes[top : top + size, left : left + size] ^= np.uint8(0x30)

    def _blank_strip_colour(self) -> None:
        """Take the colour from under the barcode; the planes of colour lie below the grey one."""
        chroma = self._planes[self._height :].reshape(2, self._height // 2, self._width // 2)
        chroma[:, : self._strip // 2] = GREY
