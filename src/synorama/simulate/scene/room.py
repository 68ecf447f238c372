"""What a simulated room is: its things and where they stood, at the scan and in the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from synorama.simulate.scene.meshes import Mesh, merge
from synorama.simulate.scene.texture import CHECKER_CELLS
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]

__all__ = [
    "KINDS",
    "WORLD",
    "Floor",
    "Kind",
    "Lamp",
    "Moment",
    "Room",
    "RoomObject",
    "Seat",
    "WorkSpot",
]

Kind = Literal["kitchen", "symmetric", "corridor", "open"]
Moment = Literal["scan", "session"]
KINDS: tuple[Kind, ...] = ("kitchen", "symmetric", "corridor", "open")
WORLD = "world"
STEP_OVER_M = 0.03  # lower things, such as rugs, are walked on
OVERHEAD_M = 1.9  # things above do not stand in the way


@dataclass(frozen=True, slots=True, eq=False)
class RoomObject:
    """One thing in a room.

    Parameters
    ----------
    name, kind
        ``mug-3`` and ``mug``.
    mesh
        In the frame of the thing, which is named as the thing is.
    scan, session
        ``T_world_NAME`` when the room was scanned and while the session was recorded.
    movable
        Whether people move such things.
    support
        The thing on which it stands in the session; empty for the floor and the walls.
    """

    name: str
    kind: str
    mesh: Mesh
    scan: RigidTransform
    session: RigidTransform
    movable: bool = False
    support: str = ""

    @property
    def moved(self) -> bool:
        """Whether it stood elsewhere when the room was scanned."""
        return not np.array_equal(self.scan.matrix, self.session.matrix)

    def at(self, when: Moment) -> RigidTransform:
        """Return its pose at the scan or in the session."""
        return self.scan if when == "scan" else self.session


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a person sits: name of the chair, floor position [m], direction of view, height [m]."""

    name: str
    xy_m: tuple[float, float]
    yaw_rad: float
    height_m: float


@dataclass(frozen=True, slots=True)
class WorkSpot:
    """Where a person stands and works: position [m], direction of view, what the hands work on."""

    name: str
    xy_m: tuple[float, float]
    yaw_rad: float
    target_m: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Lamp:
    """A light: where it is [m], its colour, and its strength at 1 m as a share of white."""

    position_m: tuple[float, float, float]
    colour: tuple[float, float, float]
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """Where one can stand: a grid of square cells.

    Parameters
    ----------
    origin_m
        ``(2,)`` centre of cell (0, 0).
    cell_m
        Side of a cell.
    free
        ``(nx, ny)`` whether nothing stands there.
    """

    origin_m: Float64
    cell_m: float
    free: Bool

    @property
    def area_m2(self) -> float:
        """Area that is free."""
        return float(self.free.sum()) * self.cell_m**2


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """A furnished room; z is up, the middle of its floor is the origin of frame ``world``.

    Parameters
    ----------
    seed, kind, contrast
        What it was made from; contrast 1 is a normal room, towards 0 its textures fade.
    size_m
        Width (x), depth (y) and height (z).
    objects
        Everything in it, walls included, each in a frame of its own.
    lamps
        Lights, windows among them.
    seats, work_spots
        Where people sit and work in the session.
    """

    seed: int
    kind: Kind
    contrast: float
    size_m: tuple[float, float, float]
    objects: tuple[RoomObject, ...]
    lamps: tuple[Lamp, ...]
    seats: tuple[Seat, ...]
    work_spots: tuple[WorkSpot, ...]

    def __getitem__(self, name: str) -> RoomObject:
        """Return the thing of that name."""
        return next(thing for thing in self.objects if thing.name == name)

    def mesh(self, when: Moment = "session") -> Mesh:
        """Return the whole room as one mesh in frame ``world``, things in their order."""
        return merge([thing.mesh.moved(thing.at(when).matrix) for thing in self.objects])

    @property
    def owners(self) -> NDArray[np.int64]:
        """``(T,)`` to which thing each triangle of `mesh` belongs: its place in `objects`."""
        return np.repeat(
            np.arange(len(self.objects)), [len(t.mesh.triangles) for t in self.objects]
        )

    def floor(self, cell_m: float = 0.05, when: Moment = "session") -> Floor:
        """Return where nothing stands, walls and overhanging things above 1.9 m left aside."""
        width, depth, _ = self.size_m
        counts = np.ceil(np.array([width, depth]) / cell_m).astype(int)
        origin = -np.array([width, depth]) / 2 + cell_m / 2
        free = np.ones(counts, bool)
        centres = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), axis=-1)
        centres_m = origin + cell_m * centres
        for thing in self.objects:
            if thing.kind not in ("shell", "lamp"):
                free &= ~_covers(thing, when, centres_m)
        return Floor(origin, cell_m, free)

    @property
    def checker_corners_m(self) -> Float64:
        """``(N, 3)`` inner corners of the checkerboard on the wall, in frame ``world``."""
        board = self["checkerboard-1"]
        half = board.mesh.bounds_m[1][0]
        line = np.linspace(-half, half, CHECKER_CELLS + 1)[1:-1]
        x, z = np.meshgrid(line, line)
        points = np.column_stack([x.ravel(), np.full(x.size, 0.008), z.ravel()])
        return board.session.apply(points, frame=board.name)


def _covers(thing: RoomObject, when: Moment, points_m: Float64) -> Bool:
    """Return which floor points ``(..., 2)`` lie under a thing that one cannot step over."""
    pose = thing.at(when)
    heights = pose.apply(thing.mesh.vertices, frame=thing.name)[:, 2]
    solid = thing.mesh.vertices[(heights > STEP_OVER_M) & (heights < OVERHEAD_M), :2]
    if not len(solid):
        return np.zeros(points_m.shape[:-1], bool)
    low, high = solid.min(axis=0), solid.max(axis=0)
    local = (points_m - pose.translation_m[:2]) @ pose.rotation[:2, :2]
    return np.asarray(((local > low) & (local < high)).all(axis=-1), np.bool_)
