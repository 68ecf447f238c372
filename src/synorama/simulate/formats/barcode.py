"""Frame numbers drawn into pictures, so that a frame keeps its identity through any codec.

A strip at the top of the picture holds 32 cells, black or white, in two rows: 20 bits of frame
number, 4 bits that tell cameras apart, 8 bits of check sum. The strip is a whole number of
16-pixel macroblocks high, one in small pictures, so it can be coded apart from the rest.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

__all__ = ["MAX_FRAMES", "Stamp", "draw", "read", "strip", "strip_height"]

ROWS, COLUMNS = 2, 16
FRAME_BITS, CAMERA_BITS, CHECK_BITS = 20, 4, 8
MAX_FRAMES = 1 << FRAME_BITS
BLOCK_PX = 16
SMALL_PX = 160  # pictures less high have one block for both rows
BLACK, WHITE, THRESHOLD = 24, 232, 128
CHECK_POLYNOMIAL = 0x07  # CRC-8 of ITU-T I.432.1; its constant keeps a black strip invalid
CHECK_CONSTANT = 0x55


class Stamp(NamedTuple):
    """What a barcode says."""

    frame: int
    camera: int


def strip_height(height_px: int) -> int:
    """Return how many rows of a picture the barcode takes [px]."""
    return BLOCK_PX if height_px < SMALL_PX else ROWS * BLOCK_PX * max(1, height_px // 480)


def strip(frame: int, camera: int, height_px: int, width_px: int) -> Picture:
    """Return the grey strip ``(strip_height, W)`` for a picture of this size."""
    if not 0 <= frame < MAX_FRAMES or not 0 <= camera < 1 << CAMERA_BITS:
        raise ValueError(f"frame {frame} of camera {camera} does not fit the barcode")
    cells = _bits(_word(frame, camera)).reshape(ROWS, COLUMNS)
    levels = np.where(cells, WHITE, BLACK).astype(np.uint8)
    height = strip_height(height_px)
    rows = np.arange(height) * ROWS // height
    columns = np.arange(width_px) * COLUMNS // width_px
    return levels[np.ix_(rows, columns)]


def draw(picture: Picture, frame: int, camera: int) -> None:
    """Write a barcode into the top of a picture ``(H, W)`` or ``(H, W, 3)``, in place."""
    grey = strip(frame, camera, picture.shape[0], picture.shape[1])
    picture[: len(grey)] = grey if picture.ndim == 2 else grey[..., np.newaxis]


def read(picture: Picture) -> Stamp | None:
    """Read the barcode of a picture ``(H, W)`` or ``(H, W, 3)``; None where there is none."""
    height, width = strip_height(picture.shape[0]), picture.shape[1]
    strip = picture[:height].astype(np.float64)
    grey = strip if strip.ndim == 2 else strip.mean(axis=2)
    cells = [
        _middle(grey, row, column, height, width) > THRESHOLD
        for row in range(ROWS)
        for column in range(COLUMNS)
    ]
    word = int("".join("1" if cell else "0" for cell in cells), 2)
    frame, camera = word >> (CAMERA_BITS + CHECK_BITS), (word >> CHECK_BITS) & 0xF
    return Stamp(frame, camera) if _word(frame, camera) == word else None


def _middle(grey: NDArray[np.float64], row: int, column: int, height: int, width: int) -> float:
    """Return the brightness of the inner half of a cell, away from what codecs smear."""
    return float(grey[_inner(row, height / ROWS), _inner(column, width / COLUMNS)].mean())


def _inner(cell: int, size: float) -> slice:
    first = ceil((cell + 0.25) * size)
    return slice(first, max(ceil((cell + 0.75) * size), first + 1))


def _word(frame: int, camera: int) -> int:
    value = (frame << CAMERA_BITS) | camera
    return (value << CHECK_BITS) | _check(value)


def _check(value: int) -> int:
    check = 0
    for byte in value.to_bytes(3, "big"):
        check ^= byte
        for _ in range(8):
            check = ((check << 1) ^ CHECK_POLYNOMIAL if check & 0x80 else check << 1) & 0xFF
    return check ^ CHECK_CONSTANT


def _bits(word: int) -> NDArray[np.bool_]:
    return np.array([c == "1" for c in f"{word:032b}"])
