"""Reading the clock card in a picture: find the code, read it, measure the light of the cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.sync import card
from synorama.sync.card import Code, parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Image = NDArray[np.uint8]
    Float64 = NDArray[np.float64]

__all__ = ["CardReader", "Sighting"]

GAMMA = 2.2  # of pictures, nearly: light adds up in the exposure, not in the stored values
ENLARGE_BELOW_PX = 190.0  # a code this wide or less is read from an enlarged cut-out
MARGIN = 0.5  # of the cut-out around the last sighting, in widths of the code
PATIENCE = 6
LEAST_CODE_PX = 30.0
LEAST_CONTRAST = 0.05  # of linear light between page and band
LEAST_LIGHT, MOST_LIGHT = 0.6, 1.6  # of one cell: all cells together
DARK = 0.08
REFERENCE_TOP = (26.2, 27.4)  # white above the band
REFERENCE_BOTTOM = (34.6, 35.6)


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """The card in one picture.

    Parameters
    ----------
    code
        What its code says.
    light
        ``(CELLS,)`` share of the exposure for which each cell was lit.
    row
        Height of the row of cells in the picture, from 0 at the top to 1 at the bottom.
    width_px
        Width of the code [px].
    """

    code: Code
    light: Float64
    row: float
    width_px: float


class CardReader:
    """Reads the card in pictures of one camera; where it was last is searched first."""

    def __init__(self) -> None:
        import cv2

        self._detector: Any = cv2.QRCodeDetector()
        self._last: Float64 | None = None
        self._missed = 0

    def read(self, picture: Image, *, anywhere: bool = True) -> Sighting | None:
        """Find the card in a picture ``(H, W)`` or ``(H, W, 3)``; None where it is not.

        ``anywhere``: search the whole picture where it is not near its last place. Without, that
        is done for one of a few pictures only: codes that change are unreadable at times.
        """
        grey = _grey(picture)
        found = self._near_last(grey)
        if found is None and (anywhere or self._missed % PATIENCE == 0):
            found = self._anywhere(grey)
        self._missed = 0 if found else self._missed + 1
        if found is None:
            return None
        code, corners = found
        self._last = corners
        return _sighting(grey, code, corners)

    def _near_last(self, grey: Image) -> tuple[Code, Float64] | None:
        """Read an enlarged cut-out around the last place."""
        if self._last is None:
            return None
        low, high = self._last.min(axis=0), self._last.max(axis=0)
        width = float((high - low).max())
        left, top = np.maximum(low - MARGIN * width, 0).astype(int)
        right, bottom = (high + MARGIN * width).astype(int)
        enlarge = int(np.clip(np.ceil(ENLARGE_BELOW_PX / width), 1, 3))
        text, corners = self._detect(_enlarged(grey[top:bottom, left:right], enlarge))
        code = parse(text)
        return None if code is None else (code, corners / enlarge + (left, top))

    def _anywhere(self, grey: Image) -> tuple[Code, Float64] | None:
        """Search a whole picture; a code that is found and too small to read is looked at again."""
        text, corners = self._detect(grey)
        code = parse(text)
        if code is not None:
            return code, corners
        width = float(np.ptp(corners, axis=0).max(initial=0))
        if not LEAST_CODE_PX < width < ENLARGE_BELOW_PX:
            return None
        self._last = corners
        return self._near_last(grey)

    def _detect(self, grey: Image) -> tuple[str, Float64]:
        """Return what a code says, empty where it cannot be read, and where it lies."""
        import cv2

        nowhere = "", np.zeros((4, 2))
        if min(grey.shape) < card.CODE_SIZE:
            return nowhere
        try:
            text, corners, _ = self._detector.detectAndDecode(grey)
        except cv2.error:  # some patterns that are no codes make it fail instead of saying so
            return nowhere
        if corners is None or not np.isfinite(corners).all():
            return nowhere
        return text, corners.reshape(4, 2).astype(np.float64) + 0.5


def _enlarged(grey: Image, times: int) -> Image:
    import cv2

    if times == 1 or min(grey.shape) == 0:
        return grey
    grown = cv2.resize(grey, None, fx=times, fy=times, interpolation=cv2.INTER_CUBIC)
    return np.asarray(grown, np.uint8)


def _grey(picture: Image) -> Image:
    import cv2

    if picture.ndim == 2:
        return picture
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)


def _sighting(grey: Image, code: Code, corners: Float64) -> Sighting | None:
    """Measure the light of the cells; None where band and page cannot be told apart."""
    to_picture = _from_card(corners)
    cells, page = _sampled(grey, to_picture)
    dark = float(np.median(cells))  # most of them are dark
    contrast = page - dark
    if contrast.min() < LEAST_CONTRAST:
        return None
    light = np.clip((cells - dark) / contrast, 0, 1.2)
    light[light < DARK] = 0
    if not LEAST_LIGHT < light.sum() < MOST_LIGHT:
        return None
    middle = _carry(to_picture, np.array([[card.CARD_WIDTH / 2, card.CELL_TOP + 2]]))[0]
    width = float(np.linalg.norm(corners[1] - corners[0]))
    return Sighting(code, light / light.sum(), float(middle[1]) / grey.shape[0], width)


def _from_card(corners: Float64) -> Float64:
    """Return the homography from modules of the card to pixels; corners as OpenCV orders them."""
    import cv2

    left, top = card.CODE_LEFT, card.CODE_TOP
    right, bottom = left + card.CODE_SIZE, top + card.CODE_SIZE
    on_card = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)
    return np.asarray(cv2.getPerspectiveTransform(on_card, corners.astype(np.float32)))


def _carry(homography: Float64, points: Float64) -> Float64:
    lifted = np.column_stack([points, np.ones(len(points))]) @ homography.T
    return np.asarray(lifted[:, :2] / lifted[:, 2:])


def _sampled(grey: Image, to_picture: Float64) -> tuple[Float64, Float64]:
    """Return the linear light of each cell, and of the page above and below it."""
    import cv2

    points = (_carry(to_picture, _PLACES.reshape(-1, 2)) - 0.5).astype(np.float32)
    values = cv2.remap(grey, points[:, :1], points[:, 1:], cv2.INTER_LINEAR)
    light = ((values / 255.0) ** GAMMA).reshape(3, card.CELLS, -1).mean(axis=2)
    return light[0], light[1:].mean(axis=0)


def _places() -> Float64:
    """Return where on the card to look: (cells, above, below), cell, sample, (x, y)."""
    left = card.CELL_LEFT + card.CELL_WIDTH * np.arange(card.CELLS)
    x = left[:, None] + card.CELL_WIDTH * np.linspace(0.3, 0.7, 4)
    middle = card.CELL_TOP + card.CELL_HEIGHT * np.linspace(0.25, 0.75, 4)
    rows = [middle, np.linspace(*REFERENCE_TOP, 4), np.linspace(*REFERENCE_BOTTOM, 4)]
    grids = [np.stack(np.broadcast_arrays(x[:, None, :], y[None, :, None]), axis=-1) for y in rows]
    return np.array(grids).reshape(3, card.CELLS, -1, 2)


_PLACES = _places()
