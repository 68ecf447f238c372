"""JPEG pictures by the thousand: the picture is coded once, only its barcode for every frame.

With a restart marker after every row of blocks, the rows of a baseline JPEG decode on their own.
So the rows of a freshly coded barcode strip take the place of the first rows of a picture coded
before. Both must share quality, subsampling and width, and hence all tables.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.formats import barcode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

__all__ = ["StampedJpeg", "jpeg"]

START_OF_SCAN = b"\xff\xda"
END_OF_IMAGE = b"\xff\xd9"
RESTART = re.compile(rb"\xff[\xd0-\xd7]")  # cannot occur within a row: there FF is followed by 00


class StampedJpeg:
    """One picture that can be had as JPEG with any frame number in it.

    Parameters
    ----------
    picture
        ``(H, W)`` grey or ``(H, W, 3)`` BGR, its width a whole number of blocks (8 px grey, 16 px
        colour), taller than its barcode.
    quality
        JPEG quality, 1 to 100.
    """

    def __init__(self, picture: Picture, quality: int) -> None:
        self._block = 8 if picture.ndim == 2 else 16
        if picture.shape[1] % self._block:
            raise ValueError(f"a width of {picture.shape[1]} px is no multiple of {self._block}")
        self._shape = picture.shape
        self._quality = quality
        self._head, scan = _split(self._encode(picture))
        rows = barcode.strip_height(picture.shape[0]) // self._block
        restarts = [match.start() for match in islice(RESTART.finditer(scan), rows)]
        self._tail = scan[restarts[-1] :]

    def encode(self, frame: int, camera: int) -> bytes:
        """Return the JPEG bytes of the picture with this barcode in it."""
        strip = barcode.strip(frame, camera, self._shape[0], self._shape[1])
        if len(self._shape) == 3:
            strip = np.repeat(strip[..., np.newaxis], 3, axis=2)
        _, scan = _split(self._encode(strip))
        return b"".join((self._head, scan, self._tail, END_OF_IMAGE))

    def _encode(self, picture: Picture) -> bytes:
        import cv2

        options = [
            cv2.IMWRITE_JPEG_QUALITY, self._quality,
            cv2.IMWRITE_JPEG_RST_INTERVAL, self._shape[1] // self._block,
            cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
        ]  # fmt: skip
        _, data = cv2.imencode(".jpg", picture, options)
        return data.tobytes()


def jpeg(picture: Picture, quality: int) -> bytes:
    """Return a picture ``(H, W)`` grey or ``(H, W, 3)``, red first, as JPEG."""
    import cv2

    stored = picture if picture.ndim == 2 else np.ascontiguousarray(picture[..., ::-1])
    done, data = cv2.imencode(".jpg", stored, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise ValueError(f"a picture of shape {picture.shape} cannot be compressed")
    return data.tobytes()


def _split(coded: bytes) -> tuple[bytes, bytes]:
    """Part the headers, up to and with the start of scan, from the coded rows."""
    at = coded.index(START_OF_SCAN)
    begin = at + 2 + int.from_bytes(coded[at + 2 : at + 4], "big")
    return coded[:begin], coded[begin : -len(END_OF_IMAGE)]
