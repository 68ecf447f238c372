"""Where two people go in a room: places to be, ways between them, and when, without a collision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from synorama.simulate.scene.room import Floor, Room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]

__all__ = ["Act", "Ground", "Place", "plan_acts"]

Doing = Literal["walk", "work", "sit", "stand"]
BODY_M = 0.24  # least distance of a walking body's middle to things
APART_M = 0.9  # least distance of two bodies' middles
DWELL_S = (4.0, 11.0)
SPEED_M_S = (0.65, 0.95)
SPEED_UP_M_S2 = 0.9
WAIT_S = 1.5
STANDING_PLACES = 5
CHECK_S = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to be: floor position [m], direction of view, and what the hands are at."""

    doing: Doing
    xy_m: tuple[float, float]
    yaw_rad: float
    target_m: tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """What somebody does from one time to another [s].

    Parameters
    ----------
    place
        Where it is done; for a walk, where it leads.
    path_m, path_s
        ``(N, 2)`` positions of a walk and ``(N,)`` when each is reached.
    """

    doing: Doing
    start_s: float
    end_s: float
    place: Place
    path_m: Float64
    path_s: Float64

    def at(self, seconds: Float64) -> Float64:
        """Return floor positions ``(N, 2)``."""
        return np.column_stack([np.interp(seconds, self.path_s, self.path_m[:, k]) for k in (0, 1)])


class Ground:
    """The floor as a graph of cells on which a body has room."""

    def __init__(self, room: Room) -> None:
        from scipy.ndimage import distance_transform_edt, label

        self.floor: Floor = room.floor()
        self.clear_m: Float64 = (
            distance_transform_edt(np.pad(self.floor.free, 1))[1:-1, 1:-1] * self.floor.cell_m
        )
        parts, _ = label(self.clear_m >= BODY_M, np.ones((3, 3)))
        sizes = np.bincount(parts.ravel())
        sizes[0] = 0
        self.open: Bool = parts == int(sizes.argmax())
        self.cells_m: Float64 = self.floor.origin_m + self.floor.cell_m * np.argwhere(self.open)

    def path(self, start: Float64, end: Float64, avoid: Float64) -> Float64 | None:
        """Return positions ``(N, 2)`` from start to end that keep off a person, or None."""
        from scipy.sparse.csgraph import dijkstra

        first, last = self._cell(start), self._cell(end)
        far = np.linalg.norm(self.cells_m - avoid, axis=1) > APART_M
        far[first] = True
        if not far[last]:
            return None
        graph = self._graph(far)
        cost, before = dijkstra(graph, indices=first, return_predecessors=True)
        if not np.isfinite(cost[last]):
            return None
        chain = [last]
        while chain[-1] != first:
            chain.append(int(before[chain[-1]]))
        return _rounded(np.vstack([start, self.cells_m[chain[::-1]], end]))

    def nearest_m(self, xy: Float64) -> float:
        """Return how far a position is from where a body has room."""
        return float(np.linalg.norm(self.cells_m - xy, axis=1).min())

    def _cell(self, xy: Float64) -> int:
        return int(np.linalg.norm(self.cells_m - xy, axis=1).argmin())

    def _graph(self, usable: Bool) -> Any:
        from scipy.sparse import coo_matrix

        number = np.full(self.open.shape, -1)
        number[self.open] = np.arange(self.open.sum())
        price = 1.0 + np.maximum(0.5 - self.clear_m, 0.0) * 4.0  # rather along the middle
        rows, cols, costs = [], [], []
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
            a, b = _neighbours(number, dx, dy)
            cost = _neighbours(price, dx, dy)[0] * np.hypot(dx, dy)
            both = (a >= 0) & (b >= 0)
            both &= usable[a] & usable[b]
            rows.append(a[both])
            cols.append(b[both])
            costs.append(cost[both])
        size = len(self.cells_m)
        row, col, cost = np.concatenate(rows), np.concatenate(cols), np.concatenate(costs)
        half = coo_matrix((cost, (row, col)), shape=(size, size)).tocsr()
        return half + half.T


def _neighbours(grid: Any, dx: int, dy: int) -> tuple[Any, Any]:
    """Return a grid and its copy shifted by a step, cut to where both are known."""
    high = slice(max(dy, 0), grid.shape[1] + min(dy, 0))
    low = slice(max(-dy, 0), grid.shape[1] + min(-dy, 0))
    return grid[: grid.shape[0] - dx, low], grid[dx:, high]


def _rounded(path: Float64) -> Float64:
    """Return a path with its corners cut, evenly spaced, ends kept."""
    from scipy.ndimage import gaussian_filter1d

    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    even = np.linspace(0, length[-1], max(int(length[-1] / 0.05), 2) + 1)
    dense = np.column_stack([np.interp(even, length, path[:, k]) for k in (0, 1)])
    padded = np.concatenate([2 * dense[0] - dense[:0:-1], dense, 2 * dense[-1] - dense[-2::-1]])
    soft: Float64 = gaussian_filter1d(padded, 4.0, axis=0)
    return soft[len(dense) - 1 : 2 * len(dense) - 1]


def places(room: Room, ground: Ground, rng: np.random.Generator) -> list[Place]:
    """Return where people can be in a room."""
    found = [
        Place("work", spot.xy_m, spot.yaw_rad, spot.target_m)
        for spot in room.work_spots
        if ground.nearest_m(np.array(spot.xy_m)) < 0.1
    ]
    for seat in room.seats:
        if ground.nearest_m(np.array(seat.xy_m)) < 0.62:
            ahead = np.array(seat.xy_m) + 0.45 * _towards(seat.yaw_rad)
            target = (float(ahead[0]), float(ahead[1]), seat.height_m + 0.33)
            found.append(Place("sit", seat.xy_m, seat.yaw_rad, target))
    cells = ground.cells_m[rng.choice(len(ground.cells_m), STANDING_PLACES)]
    return found + [_standing(cell, float(rng.uniform(-np.pi, np.pi))) for cell in cells]


def _standing(cell: Float64, yaw: float) -> Place:
    x, y = (float(v) for v in cell)
    ahead = cell + 0.4 * _towards(yaw)
    return Place("stand", (x, y), yaw, (float(ahead[0]), float(ahead[1]), 1.05))


def _towards(yaw: float) -> Float64:
    return np.array([np.cos(yaw), np.sin(yaw)])


# --- who goes where and when -----------------------------------------------------------------


def plan_acts(
    room: Room, first_s: float, last_s: float, rng: np.random.Generator
) -> tuple[list[Act], list[Act]]:
    """Return what two people do in a room, without gaps, from one time to another [s].

    Whoever is free first decides next, knowing all that the other has decided, and takes only a
    way on which the two stay apart; where there is none, waits.
    """
    ground = Ground(room)
    choice = places(room, ground, rng)
    plans = _begin(choice, ground, first_s, rng)
    while min(p[-1].end_s for p in plans) < last_s:
        mine, other = sorted(plans, key=lambda p: p[-1].end_s)
        step = _next_step(mine, other, choice, ground, rng)
        if step:
            mine += step
        else:
            mine[-1] = _dwell(mine[-1].place, mine[-1].start_s, mine[-1].end_s + WAIT_S)
    return plans


def _begin(
    choice: list[Place], ground: Ground, first_s: float, rng: np.random.Generator
) -> tuple[list[Act], list[Act]]:
    order = [choice[k] for k in rng.permutation(len(choice))]
    here = order[0]
    apart = [np.linalg.norm(np.subtract(p.xy_m, here.xy_m)) for p in order]
    there = next((p for p, d in zip(order, apart, strict=True) if d > APART_M), None)
    if there is None:
        far = np.linalg.norm(ground.cells_m - here.xy_m, axis=1).argmax()
        there = _standing(ground.cells_m[far], 0.0)
    ends = first_s + rng.uniform(*DWELL_S, 2)
    return [_dwell(here, first_s, float(ends[0]))], [_dwell(there, first_s, float(ends[1]))]


def _dwell(place: Place, start_s: float, end_s: float) -> Act:
    path = np.array([place.xy_m, place.xy_m])
    return Act(place.doing, start_s, end_s, place, path, np.array([start_s, end_s]))


def _next_step(
    mine: list[Act],
    other: list[Act],
    choice: list[Place],
    ground: Ground,
    rng: np.random.Generator,
) -> list[Act]:
    here, rest = np.array(mine[-1].place.xy_m), np.array(other[-1].place.xy_m)
    for k in rng.permutation(len(choice))[:8]:
        goal = np.array(choice[k].xy_m)
        if np.linalg.norm(goal - here) < 0.5 or np.linalg.norm(goal - rest) < APART_M:
            continue
        path = ground.path(here, goal, rest)
        if path is None:
            continue
        place = _turned_to(rest, choice[k])
        walk = _walk(path, place, mine[-1].end_s, float(rng.uniform(*SPEED_M_S)))
        stay = _dwell(place, walk.end_s, walk.end_s + float(rng.uniform(*DWELL_S)))
        if _apart([walk, stay], other):
            return [walk, stay]
    return []


def _turned_to(person: Float64, place: Place) -> Place:
    """Return a place at which one who only stands looks towards a person."""
    if place.doing != "stand":
        return place
    dx, dy = person - np.array(place.xy_m)
    return _standing(np.array(place.xy_m), float(np.arctan2(dy, dx)))


def _walk(path: Float64, goal: Place, start_s: float, speed_m_s: float) -> Act:
    """Return a walk that speeds up and slows down evenly."""
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    total = length[-1]
    top = min(speed_m_s, np.sqrt(total * SPEED_UP_M_S2))
    ramp_s, ramp_m = top / SPEED_UP_M_S2, top**2 / SPEED_UP_M_S2 / 2
    left = total - length
    whole_s = 2 * ramp_s + (total - 2 * ramp_m) / top
    cruise = ramp_s + (length - ramp_m) / top
    speeding = np.sqrt(2 * np.minimum(length, ramp_m) / SPEED_UP_M_S2)
    slowing = whole_s - np.sqrt(2 * np.minimum(left, ramp_m) / SPEED_UP_M_S2)
    times = np.where(length < ramp_m, speeding, np.where(left < ramp_m, slowing, cruise))
    return Act("walk", start_s, start_s + float(whole_s), goal, path, start_s + times)


def _apart(steps: list[Act], other: list[Act]) -> bool:
    """Return whether two people stay apart while one takes these steps."""
    seconds = np.arange(steps[0].start_s, steps[-1].end_s, CHECK_S)
    gap = np.linalg.norm(positions(steps, seconds) - positions(other, seconds), axis=1)
    return bool((gap > APART_M).all())


def positions(acts: list[Act], seconds: Float64) -> Float64:
    """Return floor positions ``(N, 2)``; after the last act its place."""
    starts = np.array([act.start_s for act in acts])
    which = np.clip(np.searchsorted(starts, seconds, side="right") - 1, 0, len(acts) - 1)
    out = np.empty((len(seconds), 2))
    for k in np.unique(which):
        here = which == k
        out[here] = acts[k].at(seconds[here])
    return out
