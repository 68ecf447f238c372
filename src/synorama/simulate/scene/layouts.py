"""Rooms from a seed: kitchens, a galley like its own mirror image, corridors, open plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import UsageError
from synorama.simulate.scene import furniture as make
from synorama.simulate.scene.meshes import Look, Mesh, box, decal, merge, pose, quad
from synorama.simulate.scene.plan import Piece, Plan, Surface, Wall, fits, move_things
from synorama.simulate.scene.room import KINDS, Floor, Kind, Room, Seat, WorkSpot
from synorama.simulate.scene.texture import Palette

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["build_room"]

WARM, DAY = (1.0, 0.9, 0.75), (0.85, 0.93, 1.0)
SMALL_THINGS = 62
ODD_ONES = ("fridge", "radiator", "door")  # one of which tells a symmetric room's halves apart
STAND_OFF_M = 0.32  # from the edge of what one works at to the middle of the body
ELBOW_ROOM_M = 0.26  # least distance of a standing body's middle to anything


def build_room(
    seed: int, kind: Kind = "kitchen", *, contrast: float = 1.0, moved_share: float = 0.15
) -> Room:
    """Return a furnished room; the same arguments give the same room.

    Parameters
    ----------
    seed
        Decides everything that is random. What the scan saw does not depend on `moved_share`.
    kind
        ``kitchen``; ``symmetric``, a galley that half a turn carries nearly into itself, but for a
        fridge, a radiator or a door that it has once;
        ``corridor``, long and nearly bare; ``open``, kitchen and living area in one.
    contrast
        Of the textures, 0 to 1.
    moved_share
        Share of the movable things that stand elsewhere in the session than at the scan.

    Raises
    ------
    UsageError
        No such kind, or contrast or share outside 0 to 1.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no room '{kind}'", hint=f"give one of {', '.join(KINDS)}")
    if not (0 <= contrast <= 1 and 0 <= moved_share <= 1):
        raise UsageError("contrast and the share of moved things lie between 0 and 1")
    plan = _furnished(seed, kind)
    move_things(plan, moved_share, np.random.default_rng([seed, 3]))
    objects = tuple(piece.done() for piece in plan.pieces)
    bare = Room(seed, kind, contrast, plan.size_m, objects, tuple(plan.lamps), (), ())
    spots = _work_spots(plan, bare.floor())
    return Room(seed, kind, contrast, plan.size_m, objects, tuple(plan.lamps), _seats(plan), spots)


def _furnished(seed: int, kind: Kind) -> Plan:
    rng = np.random.default_rng([seed, 1, KINDS.index(kind)])
    least, most = SIZES[kind]
    width, depth, height = (float(v) for v in rng.uniform(least, most))
    palette = Palette(np.random.default_rng([seed, 2, KINDS.index(kind)]))
    plan = Plan((width, depth, height), rng, palette, twofold=kind == "symmetric")
    LAYOUTS[kind](plan)
    return plan


# --- the four kinds --------------------------------------------------------------------------


def _kitchen(plan: Plan) -> None:
    width, depth, _ = plan.size_m
    _shell(plan)
    cabinet, top = _cabinet_looks(plan)
    side: Wall = "east" if plan.rng.random() < 0.5 else "west"
    _kitchen_wall(plan, cabinet, top, corner=side)
    _side_counter(plan, cabinet, top, side)
    opposite: Wall = "west" if side == "east" else "east"
    away = -1 if side == "east" else 1
    _dining(plan, pose(away * 0.35, -depth / 2 + 1.2), length_m=1.3, chairs=4)
    _wall_shelf(plan, opposite, depth * 0.1 * away)
    _hang(plan, "south", "door", -away * (width / 2 - 0.7))
    _hang(plan, "south", "poster", away * 0.5)
    _hang(plan, opposite, "checkerboard", -depth * 0.28 * away)
    _hang(plan, side, "poster", -away * (depth / 2 - 0.7))
    _loose(plan)
    _ceiling_lamp(plan, -0.2, 0.4, 0.55)
    _ceiling_lamp(plan, away * 0.35, -depth / 2 + 1.2, 0.7)
    plan.clutter(SMALL_THINGS)


def _symmetric(plan: Plan) -> None:
    _shell(plan)
    cabinet, top = _cabinet_looks(plan)
    odd = str(plan.rng.choice(ODD_ONES))
    piece, length = _galley_side(plan, cabinet, top, free_m=0.95 if odd == "fridge" else 0.5)
    if odd != "door":
        _hang(plan, "north", "window", 0.6)
    _hang(plan, "south", "checkerboard", -0.7)
    _ceiling_lamp(plan, 0.0, 1.2, 0.3)
    plan.clutter(SMALL_THINGS // 2)
    plan.twofold = False  # from here on the two halves differ
    _odd_one(plan, odd)
    _use_counter(plan, plan.twin_of(piece), length)
    plan.clutter(3)


def _galley_side(plan: Plan, cabinet: Look, top: Look, *, free_m: float) -> tuple[Piece, float]:
    """Furnish the east wall and its twin; most of what is left free is at its north end."""
    length = plan.size_m[1] - free_m
    wall = plan.wall("east") @ pose(min(0.0, 0.275 - free_m / 2), 0)
    mesh = make.counter(plan.palette, length, cabinet=cabinet, top=top, fittings=("sink", "stove"))
    piece = plan.add("counter", mesh, wall)
    _use_counter(plan, piece, length)
    above = length - 1.2
    mesh = make.wall_cabinets(plan.palette, above, cabinet=cabinet)
    hung = plan.add("wall_cabinets", mesh, wall @ pose(0.5, 0))
    plan.surfaces.append(Surface(hung, (-above / 2, 0.03, above / 2, 0.31), 2.15, 0.3))
    return piece, length


def _odd_one(plan: Plan, kind: str) -> None:
    """Add what a galley has once: a fridge, the heating, or the door with a window opposite."""
    if kind == "fridge":
        corner = plan.wall("east") @ pose(plan.size_m[1] / 2 - 0.33, 0)
        plan.add(kind, make.fridge(plan.palette), corner)
    elif kind == "radiator":
        plan.add(kind, make.radiator(plan.palette, 0.8), plan.wall("north") @ pose(0.3, 0))
    else:
        _hang(plan, "north", "door", 0.0)
        _hang(plan, "south", "window", 0.6)


def _corridor(plan: Plan) -> None:
    depth = plan.size_m[1]
    _shell(plan)
    for place in np.linspace(-depth / 2 + 1.2, depth / 2 - 1.2, 3):
        _hang(plan, "east", "door", float(place))
    _hang(plan, "west", "door", depth / 4)
    _hang(plan, "south", "door", 0.0)
    _hang(plan, "west", "poster", -0.4)
    _hang(plan, "north", "checkerboard", 0.0)
    board = make.shelf(plan.palette, 0.9, 3, 0.9)
    piece = plan.add("shelf", board, plan.wall("west") @ pose(-depth / 4, 0))
    _use_shelf(plan, piece, 0.9, 3, 0.9)
    for place in np.linspace(-depth / 3, depth / 3, 3):
        _ceiling_lamp(plan, 0.0, float(place), 0.14)
    plan.clutter(8)


def _open(plan: Plan) -> None:
    width, depth, _ = plan.size_m
    _shell(plan)
    cabinet, top = _cabinet_looks(plan)
    _kitchen_wall(plan, cabinet, top, corner="east", length_m=0.62 * width, window="west")
    island = plan.add(
        "counter",
        make.counter(plan.palette, 1.9, cabinet=cabinet, top=top, fittings=("sink",)),
        pose(0.15 * width, depth / 2 - 2.35, 0, np.pi),
    )
    _use_counter(plan, island, 1.9)
    for x in (-0.5, 0.1, 0.7):
        at = pose(0.15 * width + x, depth / 2 - 2.35 + 0.16, 0, 0.0)
        plan.add("stool", make.stool(plan.palette), at @ pose(0, 0.05), movable=True)
    _dining(plan, pose(-width / 4, -depth / 2 + 1.6), length_m=1.7, chairs=6)
    plan.add("sofa", make.sofa(plan.palette, 1.9), plan.wall("east") @ pose(-depth / 4, 0))
    plan.add(
        "rug", make.rug(plan.palette, 1.6, 1.2), pose(width / 2 - 1.9, -depth / 4), movable=True
    )
    _wall_shelf(plan, "west", 0.0)
    _wall_shelf(plan, "south", width / 4)
    _hang(plan, "south", "door", -width / 2 + 0.7)
    _hang(plan, "south", "window", 0.0)
    _hang(plan, "west", "poster", depth / 3)
    _hang(plan, "east", "poster", -depth / 4)
    _hang(plan, "west", "checkerboard", -depth / 3)
    _loose(plan)
    for x, y, drop in ((0.2, 0.3, 0.6), (-0.25, -0.2, 0.8), (0.3, -0.25, 0.5)):
        _ceiling_lamp(plan, x * width, y * depth, drop)
    plan.clutter(SMALL_THINGS + 10)


LAYOUTS: dict[Kind, Callable[[Plan], None]] = {
    "kitchen": _kitchen,
    "symmetric": _symmetric,
    "corridor": _corridor,
    "open": _open,
}
SIZES: dict[Kind, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "kitchen": ((3.9, 4.2, 2.5), (4.9, 5.2, 2.8)),
    "symmetric": ((2.7, 4.4, 2.5), (3.1, 5.4, 2.7)),
    "corridor": ((1.6, 6.5, 2.5), (2.0, 9.0, 2.7)),
    "open": ((6.6, 6.2, 2.6), (8.2, 7.4, 3.0)),
}


# --- parts of rooms --------------------------------------------------------------------------


def _shell(plan: Plan) -> None:
    """Build floor, ceiling and walls."""
    width, depth, height = plan.size_m
    palette = plan.palette
    floor = palette.look(
        str(palette.rng.choice(["planks", "floor_tiles"])), palette.colour(0.6, 0.95), span_m=1.4
    )
    w, d = width / 2, depth / 2
    meshes = [
        quad((-w, -d, 0), (width, 0, 0), (0, depth, 0), floor),
        quad((-w, d, height), (width, 0, 0), (0, -depth, 0), palette.look("ceiling", span_m=2.0)),
    ]
    tint = palette.colour(0.72, 1.0)
    for name in ("north", "east"):
        length = width if name == "north" else depth
        wall = quad(
            (length / 2, 0, 0),
            (-length, 0, 0),
            (0, 0, height),
            palette.look("plaster", tint, span_m=1.9),
        )
        skirting = box(
            (length, 0.015, 0.08), (0, 0.0075, 0.04), palette.look("paint", (0.9, 0.9, 0.88))
        )
        near = plan.wall("north" if name == "north" else "east")
        meshes += [merge([wall, skirting]).moved(at) for at in (near, pose(0, 0, 0, np.pi) @ near)]
    plan.add("shell", merge(meshes), np.eye(4), twin=False)


def _cabinet_looks(plan: Plan) -> tuple[Look, Look]:
    palette = plan.palette
    name = str(palette.rng.choice(["wood", "paint"]))
    tint = palette.colour(0.55, 1.0) if name == "wood" else palette.colour(0.35, 0.95)
    top = palette.look(
        str(palette.rng.choice(["stone", "wood"])), palette.colour(0.5, 1.0), span_m=1.0
    )
    return palette.look(name, tint), top


def _kitchen_wall(
    plan: Plan,
    cabinet: Look,
    top: Look,
    *,
    corner: Wall,
    length_m: float | None = None,
    window: Wall = "north",
) -> None:
    """Furnish the north wall: counter with sink and stove, wall cabinets, hood, fridge, tiles."""
    width = plan.size_m[0]
    wall = plan.wall("north")
    toward = -1.0 if corner == "east" else 1.0  # the wall's x runs towards west
    length = length_m or width - 0.72
    middle = toward * (width - length) / 2
    fittings = ("sink", "stove") if toward < 0 else ("stove", "sink")
    mesh = make.counter(plan.palette, length, cabinet=cabinet, top=top, fittings=fittings)
    piece = plan.add("counter", mesh, wall @ pose(middle, 0))
    _use_counter(plan, piece, length)
    stove = middle + (-length / 6 if toward < 0 else length / 6)
    sink = middle + (length / 6 if toward < 0 else -length / 6)
    end = middle - toward * (length / 2 + 0.35)
    fridge = plan.add("fridge", make.fridge(plan.palette), wall @ pose(end, 0))
    plan.surfaces.append(Surface(fridge, (-0.28, 0.05, 0.28, 0.55), 1.85, 0.4))
    _splash(plan, wall @ pose(middle, 0), length)
    plan.add("hood", make.hood(plan.palette), wall @ pose(stove, 0))
    _hang(
        plan, "north" if window == "north" else window, "window", sink if window == "north" else 1.4
    )
    _hang_cabinets(plan, cabinet, wall, (middle - length / 2, middle + length / 2), (stove, sink))


def _hang_cabinets(
    plan: Plan,
    cabinet: Look,
    wall: Float64,
    between: tuple[float, float],
    holes: tuple[float, float],
) -> None:
    """Hang cabinets wherever neither the hood nor the window is."""
    taken = [(holes[0] - 0.32, holes[0] + 0.32), (holes[1] - 0.62, holes[1] + 0.62)]
    edges = sorted([between[0], *(e for t in taken for e in t), between[1]])
    for low, high in zip(edges[::2], edges[1::2], strict=True):
        if high - low > 0.3:
            mesh = make.wall_cabinets(plan.palette, high - low, cabinet=cabinet)
            piece = plan.add("wall_cabinets", mesh, wall @ pose((low + high) / 2, 0))
            half = (high - low) / 2
            plan.surfaces.append(Surface(piece, (-half, 0.04, half, 0.3), 2.15, 0.3))


def _splash(plan: Plan, at: Float64, length_m: float) -> None:
    """Tile the wall between counter and cabinets."""
    tiles = plan.palette.look("wall_tiles", plan.palette.colour(0.7, 1.0), span_m=1.0)
    mesh = decal(length_m, 0.5, (0, 0.005, 1.18), tiles)
    plan.add("splash", mesh, at)


def _side_counter(plan: Plan, cabinet: Look, top: Look, side: Wall) -> None:
    """Continue the counter around the corner."""
    depth = plan.size_m[1]
    length = depth * 0.42 - make.COUNTER_DEPTH_M
    offset = depth / 2 - make.COUNTER_DEPTH_M - length / 2 - 0.03
    along = offset if side == "east" else -offset
    mesh = make.counter(plan.palette, length, cabinet=cabinet, top=top)
    piece = plan.add("counter", mesh, plan.wall(side) @ pose(along, 0))
    _use_counter(plan, piece, length)
    _splash(plan, plan.wall(side) @ pose(along, 0), length)


def _use_counter(plan: Plan, piece: Piece, length_m: float) -> None:
    """Offer the back of a counter to small things: in front people work."""
    half = length_m / 2 - 0.03
    back = (-half, 0.06, half, 0.3)
    plan.surfaces.append(Surface(piece, back, make.COUNTER_HEIGHT_M, 0.5))


def _use_shelf(plan: Plan, piece: Piece, width_m: float, boards: int, height_m: float) -> None:
    levels = make.shelf_heights_m(boards, height_m)
    room = levels[1] - levels[0] - 0.03
    for k, level in enumerate(levels):
        headroom = room if k + 1 < boards else 0.5
        half = width_m / 2 - 0.04
        plan.surfaces.append(Surface(piece, (-half, 0.04, half, 0.28), level, headroom))


def _wall_shelf(plan: Plan, wall: Wall, along: float) -> None:
    width = float(plan.rng.uniform(0.9, 1.2))
    height = float(plan.rng.uniform(1.6, 1.9))
    piece = plan.add(
        "shelf", make.shelf(plan.palette, width, 5, height), plan.wall(wall) @ pose(along, 0)
    )
    _use_shelf(plan, piece, width, 5, height)


def _dining(plan: Plan, at: Float64, *, length_m: float, chairs: int) -> None:
    """Place a table with chairs around it, on a rug."""
    width = float(plan.rng.uniform(0.78, 0.9))
    plan.add("rug", make.rug(plan.palette, length_m + 0.7, width + 0.9), at, movable=True)
    table = plan.add("table", make.table(plan.palette, length_m, width), at, movable=True)
    rectangle = (-length_m / 2 + 0.05, -width / 2 + 0.05, length_m / 2 - 0.05, width / 2 - 0.05)
    plan.surfaces.append(Surface(table, rectangle, make.TABLE_HEIGHT_M, 0.6))
    per_side = chairs // 2
    places = (np.arange(per_side) + 0.5) * (length_m / per_side) - length_m / 2
    for x in places:
        for turn in (0.0, np.pi):
            out = width / 2 + plan.rng.uniform(0.1, 0.2)
            local = pose(0, 0, 0, turn) @ pose(float(x), -out, 0, plan.rng.uniform(-0.15, 0.15))
            plan.add("chair", make.chair(plan.palette), at @ local, movable=True)


def _hang(plan: Plan, wall: Wall, kind: str, along: float) -> None:
    """Put a door, window, poster or the checkerboard onto a wall."""
    palette, at = plan.palette, plan.wall(wall)
    if kind == "door":
        plan.add(kind, make.door(palette), at @ pose(along, 0))
    elif kind == "window":
        plan.add(kind, make.window(palette, 1.0, 0.95), at @ pose(along, 0, 1.6))
        outside = at @ pose(along, 0.25, 1.65)
        plan.light(outside[:3, 3], DAY, 1.1)
    elif kind == "poster":
        mesh = make.poster(
            palette, float(palette.rng.uniform(0.5, 0.8)), float(palette.rng.uniform(0.5, 0.9))
        )
        plan.add(kind, mesh, at @ pose(along, 0, 1.55))
    else:
        plan.add(kind, make.checkerboard(palette, 0.64), at @ pose(along, 0, 1.5), twin=False)


def _loose(plan: Plan) -> None:
    """Stand a plant and a bin where there is room."""
    width, depth, _ = plan.size_m
    for kind, mesh in (
        ("plant", make.plant(plan.palette)),
        ("waste_bin", make.waste_bin(plan.palette)),
    ):
        for _ in range(80):
            x, y = plan.rng.uniform((-width / 2, -depth / 2), (width / 2, depth / 2))
            at = pose(float(x), float(y))
            by_wall = min(width / 2 - abs(x), depth / 2 - abs(y)) < 0.5
            if by_wall and _stands_free(plan, mesh, at, kind):
                plan.add(kind, mesh, at, movable=True)
                break


def _stands_free(plan: Plan, mesh: Mesh, at: Float64, kind: str) -> bool:
    piece = Piece(kind, kind, mesh, at, movable=True)
    return fits(piece, at, plan)


def _ceiling_lamp(plan: Plan, x: float, y: float, drop_m: float) -> None:
    height = plan.size_m[2]
    plan.add("lamp", make.lamp(plan.palette, drop_m), pose(x, y, height))
    plan.light(np.array([x, y, height - drop_m - 0.06]), WARM, 1.3)


# --- where people are ------------------------------------------------------------------------


def _seats(plan: Plan) -> tuple[Seat, ...]:
    return tuple(
        Seat(
            p.name,
            (float(p.session[0, 3]), float(p.session[1, 3])),
            _heading(p.session),
            make.SEAT_HEIGHT_M,
        )
        for p in plan.pieces
        if p.kind == "chair"
    )


def _heading(at: Float64) -> float:
    """Return the direction of a piece's +y axis."""
    return float(np.arctan2(at[1, 1], at[0, 1]))


def _work_spots(plan: Plan, floor: Floor) -> tuple[WorkSpot, ...]:
    """Return places along counters, shelves and tables at which a body has room."""
    from scipy.ndimage import distance_transform_edt

    clear_m = distance_transform_edt(np.pad(floor.free, 1))[1:-1, 1:-1] * floor.cell_m
    spots = []
    for piece in plan.pieces:
        for number, (stand, target) in enumerate(_work_places(piece)):
            cell = np.rint((stand[:2] - floor.origin_m) / floor.cell_m).astype(int)
            inside = (cell >= 0).all() and (cell < floor.free.shape).all()
            if inside and clear_m[tuple(cell)] >= ELBOW_ROOM_M:
                x, y, z = (float(v) for v in target)
                yaw = float(np.arctan2(y - stand[1], x - stand[0]))
                spots.append(
                    WorkSpot(
                        f"{piece.name}-{number + 1}",
                        (float(stand[0]), float(stand[1])),
                        yaw,
                        (x, y, z),
                    )
                )
    return tuple(spots)


def _work_places(piece: Piece) -> list[tuple[Float64, Float64]]:
    """Return where one would stand at a piece and where the hands would be, ``(3,)`` each."""
    if piece.kind not in ("counter", "shelf", "table"):
        return []
    low, high = piece.mesh.bounds_m
    height = {"counter": make.COUNTER_HEIGHT_M, "table": make.TABLE_HEIGHT_M}.get(piece.kind, 0.9)
    count = max(int((high[0] - low[0]) / 0.7), 1)
    xs = (np.arange(count) + 0.5) * (high[0] - low[0]) / count + low[0]
    edges = [(high[1], 1.0)] if piece.kind != "table" else [(high[1], 1.0), (low[1], -1.0)]
    places = []
    for x in xs:
        for edge, out in edges:
            stand = np.array([x, edge + out * STAND_OFF_M, 0.0, 1.0])
            target = np.array([x, edge - out * 0.18, height + 0.04, 1.0])
            places.append(((piece.session @ stand)[:3], (piece.session @ target)[:3]))
    return places
