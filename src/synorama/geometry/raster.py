"""Pictures for review, drawn without a display: dots to a scale, with a frame and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

    Colour = tuple[int, int, int]

__all__ = ["Plan", "png"]

MARGIN_PX, HEAD_PX = 14, 26
LARGEST_PX = 1400
GREY = (120, 120, 120)


def png(picture: Picture) -> bytes:
    """Return a picture ``(H, W, 3)`` uint8, red first, as PNG."""
    import cv2

    done, data = cv2.imencode(".png", np.ascontiguousarray(picture[..., ::-1]))
    if not done:
        raise ValueError("the picture cannot be written as PNG")
    return data.tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A white sheet on which metres are drawn to scale; the second axis points up.

    Parameters
    ----------
    low_m
        ``(2,)`` place of its lower left corner.
    pixels_a_metre
        Its scale.
    sheet
        ``(H, W, 3)`` uint8; drawn on in place.
    """

    low_m: Float64
    pixels_a_metre: float
    sheet: Picture

    @classmethod
    def over(cls, low_m: Float64, high_m: Float64, pixels_a_metre: float, title: str) -> Plan:
        """Return an empty sheet that covers an area, smaller in scale where it is large."""
        import cv2

        size = np.maximum(np.asarray(high_m) - low_m, 0.1)
        scale = min(pixels_a_metre, LARGEST_PX / float(size.max()))
        width, height = np.ceil(size * scale).astype(int) + 2 * MARGIN_PX
        sheet = np.full((height + HEAD_PX, width, 3), 255, np.uint8)
        cv2.putText(sheet, title, (MARGIN_PX, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (0, 0, 0), 1, 16)
        plan = cls(np.asarray(low_m, np.float64), scale, sheet)
        plan._scale_bar()
        return plan

    def _scale_bar(self) -> None:
        import cv2

        bottom = len(self.sheet) - 6
        right = MARGIN_PX + round(self.pixels_a_metre)
        cv2.line(self.sheet, (MARGIN_PX, bottom), (right, bottom), GREY, 2)
        cv2.putText(
            self.sheet, "1 m", (right + 4, bottom + 3), cv2.FONT_HERSHEY_SIMPLEX, 0.35, GREY, 1, 16
        )

    def pixels(self, places_m: Float64) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return pixels ``(N, 2)`` of places ``(N, 2)`` and which lie on the sheet."""
        height, width = self.sheet.shape[:2]
        right, up = ((places_m - self.low_m) * self.pixels_a_metre).T
        found = np.stack([right + MARGIN_PX, height - MARGIN_PX - up], axis=1)
        found = np.rint(np.clip(found, -10, 10 * LARGEST_PX)).astype(np.int64)
        inside = (found >= (0, HEAD_PX)).all(axis=1) & (found < (width, height)).all(axis=1)
        return found, inside

    def dots(self, places_m: Float64, colours: Colour | Picture, size_px: int = 1) -> None:
        """Draw places ``(N, 2)`` in one colour, or each in its own ``(N, 3)``."""
        found, inside = self.pixels(places_m)
        each = np.broadcast_to(np.asarray(colours, np.uint8), (len(found), 3))[inside]
        reach = range(size_px)
        height, width = self.sheet.shape[:2]
        for dx in reach:
            for dy in reach:
                x = np.minimum(found[inside, 0] + dx, width - 1)
                y = np.minimum(found[inside, 1] + dy, height - 1)
                self.sheet[y, x] = each

    def png(self) -> bytes:
        """Return the sheet as PNG."""
        return png(self.sheet)
