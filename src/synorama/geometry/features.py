"""Points of a picture that can be found again in another: SIFT, and who looks like whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = ["Features", "described", "detect", "matches"]

LEAST_CONTRAST = 0.004  # far below OpenCV's: plain walls are all there is; the best are kept
EDGE = 12.0
SMALLEST_PX = 3.2  # across a feature of the first octave
RATIO = 0.85  # of the distances to the best and the second-best that looks alike


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What was found in one picture.

    Parameters
    ----------
    pixels
        ``(N, 2)`` where.
    descriptors
        ``(N, 128)`` float32 of unit length (root SIFT).
    rims
        ``(N, 2)`` where the rim of each lies, in the direction of its gradient: pixel and rim tell
        size and turn, too.
    """

    pixels: Float64
    descriptors: Float32
    rims: Float64

    def __len__(self) -> int:
        return len(self.pixels)

    def chosen(self, which: Bool | Int64) -> Features:
        """Return some of them."""
        return Features(self.pixels[which], self.descriptors[which], self.rims[which])


def detect(picture: Picture, count: int, seen: Bool | None = None) -> Features:
    """Return the most distinct points of a grey picture.

    SIFT (D. Lowe, IJCV 2004) as root SIFT (R. Arandjelovic and A. Zisserman, CVPR 2012).

    Parameters
    ----------
    picture
        ``(H, W)`` uint8.
    count
        How many at most.
    seen
        ``(H, W)`` where to look.
    """
    mask = None if seen is None else seen.astype(np.uint8) * 255
    found, rows = _sift(count).detectAndCompute(picture, mask)
    if rows is None or not len(found):
        return Features(np.zeros((0, 2)), np.zeros((0, 128), np.float32), np.zeros((0, 2)))
    pixels = np.array([point.pt for point in found], np.float64)
    angle = np.radians([point.angle for point in found])
    radius = np.array([point.size for point in found])[:, np.newaxis] / 2
    rims = pixels + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Features(pixels, _rooted(rows), rims)


def _sift(count: int) -> Any:
    """Return the detector. By default OpenCV's tells all places a quarter of a pixel too far."""
    import cv2

    return cv2.SIFT_create(  # type: ignore[attr-defined]
        count, 3, LEAST_CONTRAST, EDGE, enable_precise_upscale=True
    )


def _rooted(rows: Float32) -> Float32:
    return np.asarray(np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-6)), np.float32)


def described(picture: Picture, pixels: Float64, rims: Float64) -> Float32:
    """Return how a grey picture looks at given places, whether or not it is distinct there.

    Parameters
    ----------
    picture
        ``(H, W)`` uint8.
    pixels, rims
        ``(N, 2)`` as of `Features`.
    """
    import cv2

    if not len(pixels):
        return np.zeros((0, 128), np.float32)
    away = rims - pixels
    size = 2 * np.linalg.norm(away, axis=1)
    angle = np.degrees(np.arctan2(away[:, 1], away[:, 0])) % 360
    asked = [
        cv2.KeyPoint(float(x), float(y), float(d), float(a), 1.0, level, k)
        for k, ((x, y), d, a, level) in enumerate(
            zip(pixels, size, angle, _levels(size), strict=True)
        )
    ]
    told, rows = _sift(0).compute(picture, asked)
    assert len(told) == len(asked)
    return _rooted(rows)


def _levels(size: Float64) -> list[int]:
    """Return octave and layer, packed as OpenCV does, of the blur that suits each size."""
    octaves = np.log2(np.maximum(size, SMALLEST_PX) / SMALLEST_PX)
    whole = np.floor(octaves).astype(int)
    layer = np.clip(np.rint(3 * (octaves - whole)).astype(int), 1, 3)
    return [int(o) | int(n) << 8 for o, n in zip(whole, layer, strict=True)]


def matches(ours: Features, theirs: Features, ratio: float = RATIO) -> Int64:
    """Return pairs ``(M, 2)`` of features that look alike and like no other.

    Each of ours has at most one partner, whose distance is below that of the next best by the
    ratio; each of theirs goes to the one of ours that is nearest.
    """
    if not len(ours) or len(theirs) < 2:
        return np.zeros((0, 2), np.int64)
    alike = ours.descriptors @ theirs.descriptors.T
    rows = np.arange(len(ours))
    best = alike.argmax(axis=1)
    first = alike[rows, best].copy()
    mine = alike.argmax(axis=0)
    alike[rows, best] = -1.0
    second = alike.max(axis=1)
    near, next_near = (np.sqrt(np.maximum(2.0 - 2.0 * s, 0.0)) for s in (first, second))
    kept = np.flatnonzero((near < ratio * next_near) & (mine[best] == rows))
    return np.stack([kept, best[kept]], axis=1)
