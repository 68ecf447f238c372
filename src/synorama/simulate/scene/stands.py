"""Where cameras on tripods and shelves stand: at the walls, clear of things, people in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.motion import Wearer
from synorama.simulate.scene.room import Room
from synorama.simulate.scene.surface import Surface

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["choose_stands", "looking"]

FROM_WALL_M = (0.18, 0.3, 0.45)
APART_ON_WALL_M = 0.35  # of the places that are tried
CLEAR_M = 0.15  # least distance to anything
WORTH_APART_M = 4.0  # distance to the next camera that is worth as much as seeing all people
FAR_ENOUGH_M = 2.5  # from one camera to the next: more is worth nothing
AIM_M = 1.15  # height at which cameras look
LEAST_M = 1.0  # from a camera to somebody whom it shows well
NARROWEST_RAD = np.deg2rad(52.0)  # half the field of view that is asked to hold people


def choose_stands(
    room: Room,
    surface: Surface,
    wearers: Sequence[Wearer],
    t_ns: Int64,
    heights_m: Sequence[float],
) -> list[Float64]:
    """Return ``T_world_camera`` of one camera for each height.

    Parameters
    ----------
    room, surface
        As they are in the session.
    wearers, t_ns
        Whom to have in view, at which session times.
    heights_m
        How high each camera stands.
    """
    heads = np.concatenate([w.head(t_ns).position_m for w in wearers])
    chosen: list[Float64] = []
    for height in heights_m:
        spots = _Spots.tried(room, surface, height, heads)
        worth = spots.share + _apart(spots.eyes_m, chosen) / WORTH_APART_M
        best = int(np.argmax(worth))
        chosen.append(looking(spots.eyes_m[best], spots.aim_m))
    return chosen


def looking(eye_m: Float64, at_m: Float64) -> Float64:
    """Return ``T_world_camera`` of an upright camera at a place that looks at another."""
    ahead = (at_m - eye_m) / np.linalg.norm(at_m - eye_m)
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    whole = np.eye(4)
    whole[:3, :3] = np.column_stack([right, np.cross(ahead, right), ahead])
    whole[:3, 3] = eye_m
    return whole


@dataclass(frozen=True, slots=True, eq=False)
class _Spots:
    """Places for one camera: ``(N, 3)``, where all look, and what share of the heads each sees."""

    eyes_m: Float64
    aim_m: Float64
    share: Float64

    @classmethod
    def tried(cls, room: Room, surface: Surface, height_m: float, heads: Float64) -> _Spots:
        eyes = _along_walls(room, height_m)
        clear = eyes[_clearance_m(surface, eyes) > CLEAR_M]
        eyes = clear if len(clear) else eyes
        aim = np.array([*heads[:, :2].mean(axis=0), AIM_M])
        return cls(eyes, aim, np.array([_seen(surface, eye, aim, heads) for eye in eyes]))


def _along_walls(room: Room, height_m: float) -> Float64:
    """Return places ``(N, 3)`` along all four walls, at some distances from them."""
    width, depth, ceiling = room.size_m
    height = min(height_m, ceiling - 0.2)
    found = []
    for gap in FROM_WALL_M:
        x, y = width / 2 - gap, depth / 2 - gap
        for along in np.arange(-x, x + 1e-9, APART_ON_WALL_M):
            found += [(along, -y, height), (along, y, height)]
        for along in np.arange(-y, y + 1e-9, APART_ON_WALL_M):
            found += [(-x, along, height), (x, along, height)]
    return np.array(found)


def _clearance_m(surface: Surface, eyes: Float64) -> Float64:
    """Return how far each place is from the next thing, in 26 directions."""
    steps = np.stack(np.meshgrid(*3 * [(-1, 0, 1)]), axis=-1).reshape(-1, 3)
    ways = steps[np.abs(steps).sum(axis=1) > 0].astype(np.float64)
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    origins = np.repeat(eyes, len(ways), axis=0).astype(np.float32)
    directions = np.tile(ways, (len(eyes), 1)).astype(np.float32)
    distance = surface.cast(origins, directions).distance_m.reshape(len(eyes), -1)
    return np.asarray(distance.min(axis=1), np.float64)


def _seen(surface: Surface, eye: Float64, aim: Float64, heads: Float64) -> float:
    """Return which share of the heads a camera there has in view, with nothing between."""
    away = heads - eye
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    distance = np.linalg.norm(away, axis=1)
    well = (away @ ahead > np.cos(NARROWEST_RAD) * distance) & (distance > LEAST_M)
    free = ~surface.blocked(np.broadcast_to(eye, away.shape), away)
    return float((free & well).mean())


def _apart(eyes: Float64, chosen: list[Float64]) -> Float64:
    """Return how far each place is from the cameras that stand already, as far as that counts."""
    if not chosen:
        return np.zeros(len(eyes))
    gaps = [np.linalg.norm(eyes - pose[:3, 3], axis=1) for pose in chosen]
    return np.asarray(np.minimum(np.min(gaps, axis=0), FAR_ENOUGH_M), np.float64)
