"""What a camera sees of a clock card on a screen: exposure, perspective, blur, noise.

The screen refreshes at its own rate; a row of a rolling shutter is exposed later than the one
above. The picture of the card is the mean of what the screen showed while each row was exposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.sync import card

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["Camera", "Screen", "paste"]

MODULE_PX = 8
GAMMA = 2.2
SUPER = 2  # sampling per pixel and direction


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen that shows the card.

    Parameters
    ----------
    card
        The card's number.
    epoch_ns
        The card's clock at true time zero.
    refresh_hz
        Of the screen; ``late`` is the share of its pictures that come one refresh late.
    response_ns
        How long a pixel takes to follow (time constant); 0 for at once.
    """

    card: int = 7
    epoch_ns: int = 1_700_000_000_000_000_000
    refresh_hz: float = 60.0
    response_ns: float = 0.0

    @property
    def step_ns(self) -> float:
        """How long the light stays in a cell."""
        interval = 1e9 / self.refresh_hz
        return interval * float(np.ceil(card.LEAST_STEP_MS * 1e6 / interval - 0.05))

    def code(self, number: int) -> str:
        """Return the digits of the code with this number; it appears at ``STEPS step number``."""
        shown = self.epoch_ns + round(number * card.STEPS * self.step_ns)
        step = round(self.step_ns / card.TICK_NS) * card.TICK_NS
        return card.Code(self.card, number % 2, shown, step).text()

    def seen(self, opened_ns: float, closed_ns: float) -> Float64:
        """Return the mean picture between two true times, as a still of linear light."""
        opened, closed = opened_ns - self.response_ns, closed_ns - self.response_ns
        first, last = int(opened // self.step_ns), int(closed // self.step_ns)
        total = np.zeros(_size())
        for k in range(first, last + 1):
            share = min(closed, (k + 1) * self.step_ns) - max(opened, k * self.step_ns)
            total += _still(self.code(k // card.STEPS), k % card.CELLS) * share
        return total / (closed - opened)


@dataclass(frozen=True, slots=True)
class Camera:
    """How a camera takes pictures.

    Parameters
    ----------
    width_px, height_px
        Of its pictures.
    exposure_ns
        Of each row.
    readout_ns
        From the exposure of the first row to that of the last; frames are stamped with the middle
        of the exposure of the middle row.
    blur_px, noise
        Sigma of the lens, and of the noise in stored values of 255.
    white
        What a white screen is in linear light, of full scale.
    bands
        Parts of the card's picture that a rolling shutter exposes one after the other.
    """

    width_px: int = 960
    height_px: int = 720
    exposure_ns: float = 10e6
    readout_ns: float = 0.0
    blur_px: float = 0.7
    noise: float = 3.0
    white: float = 0.85
    bands: int = 6


def paste(
    picture: Picture,
    screen: Screen,
    camera: Camera,
    homography: Float64,
    mid_ns: float,
    rng: np.random.Generator,
) -> Picture:
    """Return the picture ``(H, W)`` with the card in it.

    Parameters
    ----------
    homography
        From modules of the card to pixels.
    mid_ns
        True time of the middle of the exposure of the middle row.
    """
    import cv2

    left, top, width, height = _around(homography, camera)
    out: Picture = picture.copy()
    within = (slice(top, top + height), slice(left, left + width))
    shift = np.array([[1, 0, -left], [0, 1, -top], [0, 0, 1.0]])
    still = partial(_seen_still, homography=shift @ homography, size=(width, height))
    inside = still(np.ones(_size()))
    shown = np.zeros_like(inside)
    for band in np.array_split(np.arange(height), camera.bands if camera.readout_ns else 1):
        mid = mid_ns + ((top + band.mean()) / camera.height_px - 0.5) * camera.readout_ns
        seen = screen.seen(mid - camera.exposure_ns / 2, mid + camera.exposure_ns / 2)
        shown[band] = still(seen)[band]
    light = (picture[within] / 255.0) ** GAMMA * (1 - inside) + shown * camera.white
    stored = 255 * np.clip(cv2.GaussianBlur(light, (0, 0), camera.blur_px), 0, 1) ** (1 / GAMMA)
    noisy = stored + rng.normal(0, camera.noise, stored.shape)
    out[within] = np.clip(np.rint(noisy), 0, 255)
    return out


def _around(homography: Float64, camera: Camera) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the part of the picture that the card may touch."""
    w, h = card.CARD_WIDTH, card.CARD_HEIGHT
    corners = np.array([[0, 0, 1], [w, 0, 1], [w, h, 1], [0, h, 1]]) @ homography.T
    points = corners[:, :2] / corners[:, 2:]
    edge = 4 * camera.blur_px + 2
    low = np.maximum(np.floor(points.min(axis=0) - edge), 0).astype(int)
    high = np.ceil(points.max(axis=0) + edge).astype(int)
    high = np.minimum(high, (camera.width_px, camera.height_px))
    return int(low[0]), int(low[1]), int(high[0] - low[0]), int(high[1] - low[1])


def _seen_still(still: Float64, homography: Float64, size: tuple[int, int]) -> Float64:
    import cv2

    scale = np.diag([SUPER, SUPER, 1.0]) @ homography @ np.diag([1 / MODULE_PX, 1 / MODULE_PX, 1])
    return _shrunk(cv2.warpPerspective(still, scale, (size[0] * SUPER, size[1] * SUPER)))


def _shrunk(picture: Float64) -> Float64:
    import cv2

    height, width = picture.shape
    size = (width // SUPER, height // SUPER)
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))


def _size() -> tuple[int, int]:
    return round(card.CARD_HEIGHT * MODULE_PX), round(card.CARD_WIDTH * MODULE_PX)


@lru_cache(maxsize=64)
def _still(text: str, cell: int) -> Float64:
    """Draw the card with one cell lit."""
    out = np.ones(_size())
    _fill(out, _modules(text), card.CODE_LEFT, card.CODE_TOP)
    band = np.zeros((round(card.BAND_HEIGHT), round(card.BAND_WIDTH)))
    _fill(out, band, card.BAND_LEFT, card.BAND_TOP)
    left = card.CELL_LEFT + card.CELL_WIDTH * cell
    _box(out, 1.0, left, card.CELL_TOP, card.CELL_WIDTH, card.CELL_HEIGHT)
    out.setflags(write=False)
    return out


def _fill(out: Float64, modules: Float64, left: float, top: float) -> None:
    height, width = modules.shape
    x, y = round(left * MODULE_PX), round(top * MODULE_PX)
    out[y : y + height * MODULE_PX, x : x + width * MODULE_PX] = np.kron(
        modules, np.ones((MODULE_PX, MODULE_PX))
    )


def _box(out: Float64, value: float, left: float, top: float, width: float, height: float) -> None:
    x, y = round(left * MODULE_PX), round(top * MODULE_PX)
    out[y : y + round(height * MODULE_PX), x : x + round(width * MODULE_PX)] = value


@lru_cache(maxsize=64)
def _modules(text: str) -> Float64:
    import cv2

    library: Any = cv2  # whose type stubs name these otherwise
    asked = library.QRCodeEncoder_Params()
    asked.version, asked.mode = 1, library.QRCodeEncoder_MODE_NUMERIC
    asked.correction_level = library.QRCodeEncoder_CORRECT_LEVEL_H
    drawn = library.QRCodeEncoder_create(asked).encode(text)
    return np.asarray(drawn[2:-2, 2:-2] > 127, np.float64)  # it comes with a margin of two
