"""The scan drawn into the glasses' frames: a check of a registration by another sense.

Edges of the scan's surface, where it bends, must lie on edges of the picture. The share that does
is greatest at the true pose; borders between near and far, which a point cloud frays, are no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.lenses import project, unproject
from synorama.geometry.raster import png
from synorama.geometry.views import PosedPicture, grey
from synorama.geometry.zbuffer import ZBuffer, zbuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["EdgeAgreement", "bent_points", "drawn_into", "edge_agreement"]

NEIGHBOURS = 24
RIDGE = 0.95
BENT = 0.035  # least share of the spread of a point's neighbours off their plane
FAR_M = 5.0
WEAK_SLOPE, STRONG_SLOPE = 0.86, 0.95  # quantiles of the slopes of a picture
LEAST_SLOPE = 14.0  # less is noise
NEAR_PX = 1.5
COARSE_PX = 5  # pixels of the frame in a cell of the z-buffer
HIDDEN_SHARE, HIDDEN_M = 0.02, 0.02
RIM_PX = 12  # of what the lens draws: its own edge is none of the room
SHIFT_M = 0.05  # to each side, for what the score is held against
ORANGE = (255, 110, 0)


@dataclass(frozen=True, slots=True)
class EdgeAgreement:
    """How well the scan's edges lie on those of the frames.

    Parameters
    ----------
    share
        Of the scan's edge points in view that lie within 1.5 pixels of an edge of the picture.
    shifted
        The greatest such share where the scan is shifted by five centimetres: a right pose is
        ahead of it.
    points
        How many edge points were in view.
    """

    share: float
    shifted: float
    points: int

    @property
    def margin(self) -> float:
        """By how much the share is ahead of that of shifted scans."""
        return self.share - self.shifted


def bent_points(cloud_m: Float64) -> Float64:
    """Return those points ``(M, 3)`` of a cloud at which its surface bends.

    Parameters
    ----------
    cloud_m
        ``(N, 3)``, down-sampled to one or two centimetres.
    """
    from scipy.spatial import cKDTree

    if len(cloud_m) < NEIGHBOURS:
        return cloud_m[:0]
    _, near = cKDTree(cloud_m).query(cloud_m, NEIGHBOURS)
    bent = np.zeros(len(cloud_m))
    for begin in range(0, len(cloud_m), 50_000):
        some = slice(begin, begin + 50_000)
        arms = cloud_m[near[some]]
        arms = arms - arms.mean(axis=1, keepdims=True)
        spread = np.linalg.eigvalsh(np.einsum("nki,nkj->nij", arms, arms))
        bent[some] = spread[:, 0] / np.maximum(spread.sum(axis=1), 1e-12)
    ridge = bent >= RIDGE * bent[near].max(axis=1)  # a bend is seen some way off: keep its line
    return np.asarray(cloud_m[ridge & (bent > BENT)], np.float64)


def edge_agreement(
    frames: Sequence[PosedPicture], cloud_m: Float64, edges_m: Float64
) -> EdgeAgreement:
    """Return how well a scan's edges lie on those of the glasses' frames.

    Parameters
    ----------
    frames
        Posed in the world.
    cloud_m, edges_m
        The scan and its `bent_points`, carried into the world.
    """
    looks = [_Look.of(frame, cloud_m) for frame in frames]
    shifts = [np.zeros(3), *(sign * SHIFT_M * axis for axis in np.eye(3) for sign in (1, -1))]
    shares, points = [], 0
    for shift in shifts:
        near = [look.near(edges_m + shift) for look in looks]
        counted = np.concatenate(near) if near else np.zeros(0, bool)
        shares.append(float(counted.mean()) if len(counted) else 0.0)
        points = points or len(counted)
    return EdgeAgreement(shares[0], max(shares[1:]), points)


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """A frame with the distances to its edges and to the scan."""

    frame: PosedPicture
    to_edge_px: Float32
    inside: Bool
    buffer: ZBuffer

    @classmethod
    def of(cls, frame: PosedPicture, cloud_m: Float64) -> _Look:
        import cv2

        smooth = cv2.GaussianBlur(grey(frame.pixels), (0, 0), 1.5)
        inside = _drawn_area(frame)
        edges = _strong_edges(smooth, inside)
        edges[~inside] = 0
        distance = cv2.distanceTransform(np.where(edges > 0, 0, 1).astype(np.uint8), cv2.DIST_L2, 5)
        coarse = frame.lens.resized(1 / COARSE_PX)
        local = np.asarray(np.linalg.inv(frame.pose))
        return cls(frame, np.asarray(distance, np.float32), inside, zbuffer(coarse, cloud_m, local))

    def near(self, edges_m: Float64) -> Bool:
        """Return for each edge point in view whether it lies on an edge of the picture."""
        x, y = self.seen(edges_m)[0].T
        kept = self.inside[y, x]
        return np.asarray(self.to_edge_px[y[kept], x[kept]] <= NEAR_PX, np.bool_)

    def seen(self, points_m: Float64) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pixels ``(M, 2)`` and numbers of the points that nothing hides."""
        turn, eye = self.frame.pose[:3, :3], self.frame.pose[:3, 3]
        local = (points_m - eye) @ turn
        reach = np.linalg.norm(local, axis=1)
        pixels, on_picture = project(self.frame.lens, local)
        number = np.flatnonzero(on_picture & (reach < FAR_M))
        places = np.rint(pixels[number]).astype(np.int64)
        size = (self.frame.lens.width - 1, self.frame.lens.height - 1)
        places = np.clip(places, 0, size)
        depth = self.buffer.distance_m
        cell = np.clip(places // COARSE_PX, 0, np.array(depth.shape[::-1]) - 1)
        free = reach[number] < depth[cell[:, 1], cell[:, 0]] * (1 + HIDDEN_SHARE) + HIDDEN_M
        return places[free], number[free]


def _strong_edges(smooth: Picture, inside: Bool) -> Picture:
    """Return the edges of a picture whose slope is among its greatest: so many in any light."""
    import cv2

    x, y = (cv2.Sobel(smooth, cv2.CV_32F, *way, ksize=3) for way in ((1, 0), (0, 1)))
    slope = (np.abs(x) + np.abs(y))[inside]
    low, high = np.quantile(slope, (WEAK_SLOPE, STRONG_SLOPE)) if slope.size else (1.0, 2.0)
    return np.asarray(
        cv2.Canny(smooth, max(float(low), LEAST_SLOPE), max(float(high), 2 * LEAST_SLOPE)), np.uint8
    )


def _drawn_area(frame: PosedPicture) -> Bool:
    """Return which pixels the lens draws, without their rim."""
    import cv2

    lens = frame.lens
    small = lens.resized(0.25)
    x, y = np.meshgrid(np.arange(small.width), np.arange(small.height))
    seen = unproject(small, np.stack([x, y], axis=-1))[1].astype(np.uint8)
    whole = cv2.resize(seen, (lens.width, lens.height), interpolation=cv2.INTER_NEAREST)
    whole = cv2.copyMakeBorder(whole, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    rim = cv2.erode(whole, np.ones((2 * RIM_PX + 1,) * 2, np.uint8))[1:-1, 1:-1]
    return np.asarray(rim > 0, np.bool_)


def drawn_into(
    frame: PosedPicture, cloud_m: Float64, edges_m: Float64, colours: Picture | None = None
) -> bytes:
    """Return a PNG of a frame with the scan's edges, and beside it the scan in its colours.

    Parameters
    ----------
    frame
        Posed in the world.
    cloud_m, edges_m
        The scan and its `bent_points`, in the world.
    colours
        ``(N, 3)`` of the scan; by default only the edges are drawn.
    """
    look = _Look.of(frame, cloud_m)
    base = np.repeat(grey(frame.pixels)[..., np.newaxis], 3, axis=2)
    lines = base.copy()
    _dotted(lines, look.seen(edges_m)[0], ORANGE)
    if colours is None:
        return png(lines)
    places, number = look.seen(cloud_m)
    painted = base // 2
    _dotted(painted, places, colours[number])
    return png(np.concatenate([lines, painted], axis=1))


def _dotted(
    picture: Picture, places: NDArray[np.int64], colours: Picture | tuple[int, int, int]
) -> None:
    """Draw dots of two by two pixels in place."""
    height, width = picture.shape[:2]
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x = np.minimum(places[:, 0] + dx, width - 1)
        y = np.minimum(places[:, 1] + dy, height - 1)
        picture[y, x] = colours
