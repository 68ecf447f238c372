"""A room while it is being furnished: what stands where, and what is moved afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from synorama.simulate.scene.meshes import Mesh, pose
from synorama.simulate.scene.room import WORLD, Lamp, RoomObject
from synorama.simulate.scene.texture import Palette
from synorama.simulate.scene.things import THINGS
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["TWIN", "Piece", "Plan", "Surface", "Wall", "fits", "move_things"]

Wall = Literal["north", "east", "south", "west"]
TWIN = pose(0, 0, 0, np.pi)  # half a turn about the middle of the room
TRIES = 60
GAP_M = 0.02  # between things on a surface
SHIFT_M = {"chair": 0.3, "stool": 0.4, "table": 0.3, "plant": 0.8, "waste_bin": 0.8, "rug": 0.3}
TURN_RAD = {"chair": 0.7, "stool": 3.0, "table": 0.12, "plant": 3.0, "waste_bin": 3.0, "rug": 0.1}
TUCKED = {("chair", "table"), ("stool", "counter"), ("stool", "table")}  # may overlap a little


@dataclass(slots=True, eq=False)
class Piece:
    """A thing whose place is still open to change."""

    name: str
    kind: str
    mesh: Mesh
    scan: Float64
    movable: bool
    support: str = ""
    session: Float64 = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        self.session = self.scan

    def done(self) -> RoomObject:
        """Return the thing as it is."""
        scan, session = (RigidTransform(WORLD, self.name, m) for m in (self.scan, self.session))
        return RoomObject(
            self.name, self.kind, self.mesh, scan, session, self.movable, self.support
        )


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """A place for small things: on which piece, rectangle ``(x0, y0, x1, y1)`` at a height [m]."""

    piece: Piece
    rectangle: tuple[float, float, float, float]
    height_m: float
    headroom_m: float = 0.5


@dataclass(slots=True, eq=False)
class Plan:
    """A room being furnished.

    Parameters
    ----------
    size_m
        Width, depth, height.
    rng, palette
        Randomness of the layout, and looks.
    twofold
        Whether each piece gets a twin, half a turn about the room's middle.
    """

    size_m: tuple[float, float, float]
    rng: np.random.Generator
    palette: Palette
    twofold: bool = False
    pieces: list[Piece] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    lamps: list[Lamp] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def wall(self, name: Wall) -> Float64:
        """Return the ``(4, 4)`` pose of a wall: y points into the room, x = 0 is its middle."""
        width, depth, _ = self.size_m
        return {
            "north": pose(0, depth / 2, 0, np.pi),
            "east": pose(width / 2, 0, 0, np.pi / 2),
            "south": pose(0, -depth / 2, 0, 0),
            "west": pose(-width / 2, 0, 0, -np.pi / 2),
        }[name]

    def add(
        self, kind: str, mesh: Mesh, at: Float64, *, movable: bool = False, twin: bool = True
    ) -> Piece:
        """Put a piece into the room; in a twofold room its twin as well."""
        piece = self._add(kind, mesh, at, movable=movable)
        if self.twofold and twin:
            self._add(kind, mesh, TWIN @ at, movable=movable)
        return piece

    def _add(
        self, kind: str, mesh: Mesh, at: Float64, *, movable: bool, support: str = ""
    ) -> Piece:
        self.counts[kind] += 1
        piece = Piece(f"{kind}-{self.counts[kind]}", kind, mesh, at, movable, support)
        self.pieces.append(piece)
        return piece

    def twin_of(self, piece: Piece) -> Piece:
        """Return the piece that was added as a piece's twin."""
        return self.pieces[self.pieces.index(piece) + 1]

    def light(self, position: Float64, colour: tuple[float, float, float], strength: float) -> None:
        """Add a light, and its twin in a twofold room."""
        places = [position, (TWIN @ [*position, 1.0])[:3]] if self.twofold else [position]
        for place in places:
            x, y, z = (float(v) for v in place)
            self.lamps.append(Lamp((x, y, z), colour, strength))

    def clutter(self, count: int) -> None:
        """Spread small things over the surfaces, as far as there is room, twins with them."""
        kinds = list(THINGS)
        for k in range(count):
            kind = kinds[k] if k < len(kinds) else str(self.rng.choice(kinds))
            mesh = THINGS[kind](self.palette)
            place = find_place(mesh, self.surfaces, self.pieces, self.rng)
            if place is not None:
                self._stand(kind, mesh, *place)

    def _stand(self, kind: str, mesh: Mesh, surface: Surface, at: Float64) -> None:
        self._add(kind, mesh, at, movable=True, support=surface.piece.name)
        if self.twofold:
            twin = self.twin_of(surface.piece)
            self._add(kind, mesh, TWIN @ at, movable=True, support=twin.name)


def find_place(
    mesh: Mesh, surfaces: list[Surface], pieces: list[Piece], rng: np.random.Generator
) -> tuple[Surface, Float64] | None:
    """Return a surface and a world pose on it where a thing stands clear of all others."""
    radius, height = _radius(mesh), float(mesh.bounds_m[1][2])
    area = np.array([(s.rectangle[2] - s.rectangle[0]) * 1.0 for s in surfaces])
    for _ in range(TRIES):
        surface = surfaces[int(rng.choice(len(surfaces), p=area / area.sum()))]
        x0, y0, x1, y1 = surface.rectangle
        reach = min(radius, 0.45 * (y1 - y0))
        if x1 - x0 < 2 * radius or height > surface.headroom_m or radius > 0.75 * (y1 - y0):
            continue
        x, y = rng.uniform((x0 + radius, y0 + reach), (x1 - radius, y1 - reach + 1e-9))
        turn = rng.uniform(-0.5, 0.5) if y1 - y0 < 0.4 else rng.uniform(-np.pi, np.pi)
        at = surface.piece.session @ pose(x, y, surface.height_m, turn)
        if _clear(surface.piece.name, at, radius, pieces):
            return surface, at
    return None


def _clear(support: str, at: Float64, radius: float, pieces: list[Piece]) -> bool:
    beside = (p for p in pieces if p.support == support)
    return all(
        abs(p.session[2, 3] - at[2, 3]) > 0.05
        or np.hypot(*(p.session[:2, 3] - at[:2, 3])) > radius + _radius(p.mesh) + GAP_M
        for p in beside
    )


def _radius(mesh: Mesh) -> float:
    return float(np.hypot(mesh.vertices[:, 0], mesh.vertices[:, 1]).max())


# --- from the scan to the session ------------------------------------------------------------


def move_things(plan: Plan, share: float, rng: np.random.Generator) -> None:
    """Move a share of all movable things, furniture together with what stands on it."""
    movable = [p for p in plan.pieces if p.movable]
    left = round(share * len(movable))
    for k in rng.permutation(len(movable)):
        if left == 0:
            return
        move = _move_thing if movable[k].support else _move_furniture
        left -= move(movable[k], plan, rng)


def _move_thing(piece: Piece, plan: Plan, rng: np.random.Generator) -> bool:
    others = [p for p in plan.pieces if p is not piece]
    place = find_place(piece.mesh, plan.surfaces, others, rng)
    if place is not None:
        piece.support, piece.session = place[0].piece.name, place[1]
    return place is not None


def _move_furniture(piece: Piece, plan: Plan, rng: np.random.Generator) -> bool:
    before = piece.session
    for _ in range(TRIES):
        reach, turn = SHIFT_M[piece.kind], TURN_RAD[piece.kind]
        dx, dy, yaw = rng.uniform((-reach, -reach, -turn), (reach, reach, turn))
        after = pose(dx, dy) @ before @ pose(0, 0, 0, yaw)
        if np.hypot(dx, dy) > 0.08 and fits(piece, after, plan):
            piece.session = after
            carry = after @ np.linalg.inv(before)
            for child in plan.pieces:
                if child.support == piece.name:
                    child.session = _orthonormal(carry @ child.session)
            return True
    return False


def _orthonormal(matrix: Float64) -> Float64:
    """Return an upright pose freed from rounding."""
    x, y, z = (float(v) for v in matrix[:3, 3])
    return pose(x, y, z, float(np.arctan2(matrix[1, 0], matrix[0, 0])))


def fits(piece: Piece, at: Float64, plan: Plan) -> bool:
    """Return whether a piece can stand there: inside the room and clear of other furniture."""
    outline = _outline(piece, at, 0.0)
    inside = np.abs(outline) < np.array(plan.size_m[:2]) / 2 - 0.03
    if not inside.all():
        return False
    flat = ("rug", "shell", "door", "window", "lamp", "poster", "checkerboard")
    others = (p for p in plan.pieces if not p.support and p is not piece and p.kind not in flat)
    if piece.kind == "rug":
        return True
    return not any(_collide(piece, at, other) for other in others)


def _collide(piece: Piece, at: Float64, other: Piece) -> bool:
    pair = (piece.kind, other.kind)
    shrink = 0.24 if pair in TUCKED or pair[::-1] in TUCKED else 0.0
    first, second = _outline(piece, at, shrink), _outline(other, other.session, shrink)
    return not (_separated(first, second) or _separated(second, first))


def _outline(piece: Piece, at: Float64, shrink_m: float) -> Float64:
    """Return the corners ``(4, 2)`` of a piece's rectangle on the floor."""
    low, high = piece.mesh.bounds_m
    middle, half = (low + high)[:2] / 2, (high - low)[:2] / 2
    half = np.maximum(half - shrink_m / 2, 0.01)
    corners = middle + half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    carried: Float64 = corners @ at[:2, :2].T + at[:2, 3]
    return carried


def _separated(first: Float64, second: Float64) -> bool:
    """Return whether a line along an edge of the first rectangle parts it from the second."""
    for k in range(2):
        axis = first[k + 1] - first[k]
        a, b = first @ axis, second @ axis
        if a.max() < b.min() or b.max() < a.min():
            return True
    return False
