"""Whether pictures look as they must from a place, and which of two places fits them better.

Votes of likenesses do not tell: which landmark a feature looks like depends on the side from which
the landmark happens to be known, and that favours one end of a room as a whole. Asked instead is
each landmark where it must be drawn from either place: whether the picture looks like it there,
distinct or not. What stands at both ends looks alike from both places; a floor, a door, a poster
does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.features import described
from synorama.geometry.lenses import Lens, project

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.landmarks import LandmarkView

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = [
    "ASKED_FROM",
    "LEAST_LIKENESS",
    "LEAST_SURE",
    "Placed",
    "Rival",
    "likeness",
    "preference",
]

LEAST_SURE = 3.0  # sigmas; where nothing differs, up to 1.3 were met
ASKED_FROM = 0.5  # of the votes: a place with more is told from the best by what is drawn
LEAST_LIKENESS = 0.2  # right places had 0.35 to 0.6, other rooms and mirrored ones 0.06 at most
MOST_ASKED = 48_000  # landmarks, of all pictures together
FACING = 0.7  # least cosine between the two directions in which a landmark is seen
SIZE_PX = (3.0, 60.0)  # across a landmark, as drawn
MARGIN_PX = 20.0
CELL_PX, FEWEST = 44.0, 3  # parts of a picture that are compared, and landmarks in each
FEWEST_IN_BLOCK, FEWEST_BLOCKS = 3, 5
BLOCK_M = 0.5  # of the room: what differs there is one thing, however often it is seen


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A camera that is said to be somewhere: its lens, and ``(4, 4)`` ``T_camera_landmarks``."""

    lens: Lens
    matrix: Float64


@dataclass(frozen=True, slots=True)
class Rival:
    """Another place: its votes over the best one's, and how surely pictures tell them apart.

    ``sure`` is in sigmas, NaN where nobody asked.
    """

    ratio: float
    sure: float = float("nan")

    def doubtful(self, most: float) -> bool:
        """Tell whether it has more than a share of the votes, and pictures do not decide."""
        return self.ratio > most and not self.sure >= LEAST_SURE


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Landmarks where they must be drawn: pixels, places, and how much it looks like them.

    ``by_chance`` is how much it looks like another of them.
    """

    pixels: Float64
    points_m: Float64
    alike: Float64
    by_chance: Float64


def preference(
    pictures: Sequence[Picture],
    first: Sequence[Placed],
    second: Sequence[Placed],
    landmarks: Sequence[LandmarkView],
) -> float:
    """Return how surely pictures show the landmarks from the first places, not the second.

    Parameters
    ----------
    pictures
        Grey ones ``(H, W)``, as large as the lenses draw.
    first, second
        For each picture two places.
    landmarks
        All in one frame.

    Returns
    -------
    float
        In sigmas, negative for the second; blocks of the room count as one observation each.
    """
    asker = _Asker.about(landmarks, len(pictures))
    told = [
        _compared(asker.asked(picture, one), asker.asked(picture, two), one.lens)
        for picture, one, two in zip(pictures, first, second, strict=True)
    ]
    points, better = (np.concatenate(column) for column in zip(*told, strict=True))
    if not len(better):
        return 0.0
    said, _ = _by_block(points, better)
    return float(said.sum() / max(np.linalg.norm(said), 1e-9))


def likeness(
    pictures: Sequence[Picture], placed: Sequence[Placed], landmarks: Sequence[LandmarkView]
) -> float:
    """Return how much pictures look like the landmarks where these must be drawn.

    The median over blocks of the room: one board that hangs in two rooms makes them not one. It is
    held against chance, for in some rooms everything looks like everything a little.

    Parameters
    ----------
    pictures
        Grey ones ``(H, W)``, as large as the lenses draw.
    placed
        For each picture its place.
    landmarks
        All in one frame.

    Returns
    -------
    float
        1 where all looks the same, 0 where it looks as landmarks dealt anew do, and where too
        little of the room is in sight.
    """
    asker = _Asker.about(landmarks, len(pictures))
    asked = [asker.asked(p, at) for p, at in zip(pictures, placed, strict=True)]
    points = np.concatenate([a.points_m for a in asked])
    means, count = _by_block(points, np.concatenate([a.alike for a in asked]))
    enough = count >= FEWEST_IN_BLOCK
    if enough.sum() < FEWEST_BLOCKS:
        return 0.0
    chance = float(np.concatenate([a.by_chance for a in asked]).mean())
    return (float(np.median(means[enough])) - chance) / (1.0 - chance)


def _by_block(points_m: Float64, values: Float64) -> tuple[Float64, Int64]:
    """Return means of values in blocks of the room, and how many are in each."""
    blocks = np.unique(np.floor(points_m / BLOCK_M), axis=0, return_inverse=True)[1].ravel()
    count = np.bincount(blocks)
    return np.bincount(blocks, values) / count, count


@dataclass(frozen=True, slots=True, eq=False)
class _Asker:
    """The landmarks of all views, and how many of them a picture is asked about."""

    points_m: Float64
    arms_m: Float64
    rays: Float64
    looks: Float32
    most: int
    rng: np.random.Generator

    @classmethod
    def about(cls, landmarks: Sequence[LandmarkView], pictures: int) -> _Asker:
        return cls(
            np.concatenate([v.points_m for v in landmarks]),
            np.concatenate([v.arms_m for v in landmarks]),
            np.concatenate([v.rays for v in landmarks]),
            np.concatenate([v.features.descriptors for v in landmarks]),
            MOST_ASKED // max(pictures, 1),
            np.random.default_rng(0),
        )

    def asked(self, picture: Picture, placed: Placed) -> _Asked:
        spots, rims, drawn = _drawn(placed, self.points_m, self.arms_m, self.rays)
        which = np.flatnonzero(drawn)
        if len(which) > self.most:
            which = self.rng.choice(which, self.most, replace=False)
        there = described(picture, spots[which], rims[which])
        alike, by_chance = (
            (there * self.looks[chosen]).sum(axis=1).astype(np.float64)
            for chosen in (which, self.rng.permutation(which))
        )
        return _Asked(spots[which], self.points_m[which], alike, by_chance)


def _drawn(
    placed: Placed, points: Float64, arms: Float64, rays: Float64
) -> tuple[Float64, Float64, Bool]:
    """Return where landmarks and their rims are drawn, and which of them well."""
    turn, shift = placed.matrix[:3, :3], placed.matrix[:3, 3]
    spots, seen = project(placed.lens, points @ turn.T + shift)
    rims, seen_too = project(placed.lens, (points + arms) @ turn.T + shift)
    ways = points + turn.T @ shift
    facing = (ways * rays).sum(axis=1) > FACING * np.linalg.norm(ways, axis=1)
    across = 2 * np.linalg.norm(rims - spots, axis=1)
    edge = np.array([placed.lens.width, placed.lens.height]) - MARGIN_PX
    inside = ((spots > MARGIN_PX) & (spots < edge)).all(axis=1)
    sized = (across > SIZE_PX[0]) & (across < SIZE_PX[1])
    return spots, rims, seen & seen_too & facing & inside & sized


def _compared(one: _Asked, two: _Asked, lens: Lens) -> tuple[Float64, Float64]:
    """Return where, in the parts of a picture for which both are asked, the first is how better."""
    columns = int(np.ceil(lens.width / CELL_PX))
    count = columns * int(np.ceil(lens.height / CELL_PX))
    cells = [(np.floor(a.pixels / CELL_PX) @ (1, columns)).astype(np.int64) for a in (one, two)]
    many = [np.bincount(c, minlength=count) for c in cells]
    means = [
        np.bincount(c, a.alike, count) / np.maximum(n, 1)
        for c, a, n in zip(cells, (one, two), many, strict=True)
    ]
    told = (many[0] >= FEWEST) & (many[1] >= FEWEST)
    places = np.stack([np.bincount(cells[0], axis, count) for axis in one.points_m.T], axis=1)
    return places[told] / many[0][told, np.newaxis], (means[0] - means[1])[told]
