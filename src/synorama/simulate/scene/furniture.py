"""Furniture: each function returns one piece, standing on its own floor.

Pieces that stand against a wall have it at y = 0, centred along x, and face +y. Free-standing
pieces are centred at the origin.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.meshes import Look, Mesh, box, decal, lathe, merge, quad, sphere, tube
from synorama.simulate.scene.texture import Palette

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "COUNTER_DEPTH_M",
    "COUNTER_HEIGHT_M",
    "SEAT_HEIGHT_M",
    "TABLE_HEIGHT_M",
    "chair",
    "checkerboard",
    "counter",
    "door",
    "fridge",
    "hood",
    "lamp",
    "plant",
    "poster",
    "radiator",
    "rug",
    "shelf",
    "sofa",
    "stool",
    "table",
    "wall_cabinets",
    "waste_bin",
    "window",
]

COUNTER_DEPTH_M = 0.62
COUNTER_HEIGHT_M = 0.91
TABLE_HEIGHT_M = 0.75
SEAT_HEIGHT_M = 0.46
SHELF_DEPTH_M = 0.3
WALL_CABINET_LOW_M, WALL_CABINET_HIGH_M = 1.45, 2.15
STEEL = (0.95, 0.97, 1.0)
DARK = (0.12, 0.12, 0.13)


def counter(
    palette: Palette, length_m: float, *, cabinet: Look, top: Look, fittings: Sequence[str] = ()
) -> Mesh:
    """Return base cabinets under a worktop.

    Parameters
    ----------
    fittings
        ``sink`` and ``stove``, laid into the worktop from left to right, as its user sees it.
    """
    depth, height = COUNTER_DEPTH_M, COUNTER_HEIGHT_M
    parts = [
        box(
            (length_m, depth - 0.06, 0.1),
            (0, (depth - 0.06) / 2, 0.05),
            palette.look("paint", DARK),
        ),
        box((length_m, depth - 0.04, height - 0.14), (0, (depth - 0.04) / 2, 0.48), cabinet),
        box((length_m + 0.02, depth + 0.02, 0.04), (0, depth / 2, height - 0.02), top),
    ]
    parts += _fronts(palette, length_m, depth - 0.03, (0.12, height - 0.06), cabinet)
    places = np.linspace(length_m / 2, -length_m / 2, len(fittings) + 2)[1:-1]
    for name, x in zip(fittings, places, strict=True):
        parts.append((_sink if name == "sink" else _stove)(palette).at(float(x), depth / 2, height))
    return merge(parts)


def _fronts(
    palette: Palette, length_m: float, y: float, heights: tuple[float, float], look: Look
) -> list[Mesh]:
    """Return doors or drawers side by side, with handles."""
    count = max(round(length_m / 0.5), 1)
    width = length_m / count
    low, high = heights
    parts: list[Mesh] = []
    for k in range(count):
        x = (k + 0.5) * width - length_m / 2
        rows = int(palette.rng.choice([1, 1, 2, 3])) if high - low < 0.9 else 1
        edges = np.linspace(low, high, rows + 1)
        for bottom, top in pairwise(edges.tolist()):
            parts += _front(palette, x, y, width, (bottom, top), look)
    return parts


def _front(
    palette: Palette, x: float, y: float, width: float, heights: tuple[float, float], look: Look
) -> list[Mesh]:
    low, high = heights
    own = Look(look.tile, look.tint, look.span_m, tuple(palette.rng.random(2).tolist()))
    panel = box((width - 0.012, 0.02, high - low - 0.012), (x, y + 0.01, (low + high) / 2), own)
    inner = box(
        (width - 0.14, 0.012, max(high - low - 0.14, 0.03)), (x, y + 0.02, (low + high) / 2), own
    )
    handle = box((0.13, 0.02, 0.012), (x, y + 0.035, high - 0.05), palette.look("metal", STEEL))
    return [panel, inner, handle]


def _sink(palette: Palette) -> Mesh:
    steel = palette.look("metal", (0.75, 0.77, 0.8))
    inner = palette.look("metal", (0.4, 0.42, 0.45))
    parts = [
        box((0.56, 0.44, 0.012), (0, 0, 0.006), steel),
        box((0.46, 0.34, 0.004), (0, 0, 0.013), inner),
        lathe(
            [(0.0, 0.016), (0.03, 0.016), (0.03, 0.018), (0.0, 0.018)], palette.look("paint", DARK)
        ),
        tube((0, -0.24, 0), (0, -0.24, 0.3), (0.014, 0.012), steel),
        tube((0, -0.24, 0.3), (0, -0.08, 0.33), (0.012, 0.012), steel),
        tube((0, -0.08, 0.33), (0, -0.06, 0.24), (0.012, 0.014), steel),
        box((0.03, 0.1, 0.015), (0.05, -0.22, 0.1), steel),
    ]
    return merge(parts)


def _stove(palette: Palette) -> Mesh:
    plate = box((0.58, 0.5, 0.01), (0, 0, 0.005), palette.look("paint", DARK))
    ring = palette.look("paint", (0.35, 0.3, 0.3))
    places = ((-0.14, -0.11, 0.09), (0.14, -0.11, 0.07), (-0.14, 0.12, 0.07), (0.14, 0.12, 0.1))
    rings = [
        lathe([(r, 0.011), (r, 0.013), (r - 0.015, 0.013)], ring).at(x, y) for x, y, r in places
    ]
    front = decal(0.56, 0.56, (0, 0.322, -0.46), palette.look("paint", (0.14, 0.14, 0.15)))
    glass = decal(0.44, 0.28, (0, 0.326, -0.5), palette.look("stone", (0.14, 0.11, 0.1)))
    bar = box((0.46, 0.03, 0.02), (0, 0.35, -0.3), palette.look("metal", STEEL))
    knobs = [
        tube((x, 0.32, -0.23), (x, 0.35, -0.23), (0.02, 0.018), palette.look("metal", STEEL))
        for x in np.linspace(-0.2, 0.2, 5)
    ]
    return merge([plate, *rings, front, glass, bar, *knobs])


def wall_cabinets(palette: Palette, length_m: float, *, cabinet: Look) -> Mesh:
    """Return cabinets that hang above a counter."""
    low, high, depth = WALL_CABINET_LOW_M, WALL_CABINET_HIGH_M, 0.34
    body = box((length_m, depth, high - low), (0, depth / 2, (low + high) / 2), cabinet)
    return merge([body, *_fronts(palette, length_m, depth, (low, high), cabinet)])


def hood(palette: Palette) -> Mesh:
    """Return the hood over a stove."""
    steel = palette.look("metal", (0.8, 0.82, 0.85))
    wide = box((0.6, 0.45, 0.08), (0, 0.225, 1.62), steel)
    shaft = box((0.3, 0.28, 0.8), (0, 0.14, 2.05), steel)
    buttons = decal(0.16, 0.03, (0, 0.452, 1.62), palette.printed())
    return merge([wide, shaft, buttons])


def fridge(palette: Palette) -> Mesh:
    """Return a tall fridge with notes on its doors."""
    tint = palette.colour(0.7, 1.0)
    body = box((0.62, 0.62, 1.85), (0, 0.31, 0.925), palette.look("paint", tint))
    lower = box((0.6, 0.03, 1.12), (0, 0.64, 0.6), palette.look("paint", tint))
    upper = box((0.6, 0.03, 0.64), (0, 0.64, 1.5), palette.look("paint", tint))
    steel = palette.look("metal", STEEL)
    handles = [box((0.025, 0.04, 0.4), (-0.24, 0.675, z), steel) for z in (0.9, 1.4)]
    notes = [
        decal(float(w), float(w) * 1.2, (float(x), 0.657, float(z)), palette.printed())
        for w, x, z in zip(
            palette.rng.uniform(0.07, 0.16, 6),
            palette.rng.uniform(-0.12, 0.22, 6),
            np.linspace(0.85, 1.72, 6),
            strict=True,
        )
    ]
    return merge([body, lower, upper, *handles, *notes])


def table(
    palette: Palette, length_m: float, width_m: float, height_m: float = TABLE_HEIGHT_M
) -> Mesh:
    """Return a table on four legs, with a runner along it."""
    wood = palette.look("wood", palette.colour(0.6, 1.0), span_m=0.9)
    top = box((length_m, width_m, 0.035), (0, 0, height_m - 0.0175), wood)
    frame = box((length_m - 0.14, width_m - 0.14, 0.08), (0, 0, height_m - 0.075), wood)
    legs = [
        box((0.06, 0.06, height_m - 0.035), (x, y, (height_m - 0.035) / 2), wood)
        for x in (length_m / 2 - 0.07, 0.07 - length_m / 2)
        for y in (width_m / 2 - 0.07, 0.07 - width_m / 2)
    ]
    cloth = palette.look("fabric", palette.colour(), span_m=0.5)
    runner = quad(
        (-0.45 * length_m, -0.15, height_m + 0.003), (0.9 * length_m, 0, 0), (0, 0.3, 0), cloth
    )
    return merge([top, frame, *legs, runner])


def chair(palette: Palette) -> Mesh:
    """Return a chair; who sits on it looks along +y."""
    wood = palette.look("wood", palette.colour(0.5, 1.0), span_m=0.7)
    cloth = palette.look("fabric", palette.colour(), span_m=0.4)
    legs = [
        tube((x, y, 0), (0.95 * x, 0.95 * y, 0.43), (0.017, 0.02), wood)
        for x in (-0.19, 0.19)
        for y in (-0.19, 0.19)
    ]
    posts = [tube((x, -0.19, 0.43), (x, -0.24, 0.92), (0.018, 0.014), wood) for x in (-0.18, 0.18)]
    slats = [box((0.38, 0.02, 0.06), (0, -0.2 - 0.03 * k, 0.6 + 0.12 * k), wood) for k in range(3)]
    seat = box((0.42, 0.42, 0.04), (0, 0, SEAT_HEIGHT_M - 0.02), cloth)
    return merge([seat, *legs, *posts, *slats])


def stool(palette: Palette) -> Mesh:
    """Return a high stool."""
    wood = palette.look("wood", palette.colour(0.5, 1.0), span_m=0.6)
    around = np.linspace(0, 2 * np.pi, 5)[:-1] + 0.4
    legs = [
        tube(
            (0.2 * np.cos(a), 0.2 * np.sin(a), 0),
            (0.12 * np.cos(a), 0.12 * np.sin(a), 0.62),
            (0.016, 0.016),
            wood,
        )
        for a in around
    ]
    seat = lathe([(0.0, 0.61), (0.17, 0.61), (0.18, 0.65), (0.0, 0.65)], wood)
    return merge([seat, *legs])


def shelf(palette: Palette, width_m: float, boards: int, height_m: float) -> Mesh:
    """Return an open shelf; its boards are at `shelf_heights`."""
    wood = palette.look("wood", palette.colour(0.6, 1.0), span_m=0.9)
    depth = SHELF_DEPTH_M
    sides = [
        box((0.025, depth, height_m), (x, depth / 2, height_m / 2), wood)
        for x in (-width_m / 2, width_m / 2)
    ]
    levels = [
        box((width_m, depth, 0.022), (0, depth / 2, z - 0.011), wood)
        for z in shelf_heights_m(boards, height_m)
    ]
    back = decal(width_m, height_m, (0, 0.004, height_m / 2), wood)
    return merge([*sides, *levels, back])


def shelf_heights_m(boards: int, height_m: float) -> list[float]:
    """Return the heights of the boards' upper sides."""
    return [float(z) for z in np.linspace(0.12, height_m, boards)]


def sofa(palette: Palette, length_m: float) -> Mesh:
    """Return a sofa."""
    cloth = palette.look("fabric", palette.colour(0.3, 0.8), span_m=0.8)
    parts = [
        box((length_m, 0.85, 0.32), (0, 0.425, 0.22), cloth),
        box((length_m, 0.22, 0.5), (0, 0.11, 0.58), cloth),
    ]
    parts += [
        box((0.18, 0.85, 0.28), (x, 0.425, 0.5), cloth) for x in (-length_m / 2, length_m / 2)
    ]
    for x in np.linspace(-length_m / 3, length_m / 3, 3):
        cushion = palette.look("fabric", palette.colour(), span_m=0.4)
        parts.append(box((0.42, 0.12, 0.36), (float(x), 0.3, 0.58), cushion))
    return merge(parts)


def plant(palette: Palette) -> Mesh:
    """Return a plant in a pot."""
    pot = lathe(
        [(0.0, 0.0), (0.13, 0.0), (0.17, 0.3), (0.15, 0.3), (0.0, 0.27)],
        palette.look("glaze", palette.colour(), span_m=0.4),
    )
    leaf = palette.look("leaves", span_m=0.35)
    stem = tube((0, 0, 0.25), (0, 0, 0.7), (0.015, 0.01), palette.look("wood", (0.5, 0.45, 0.3)))
    blades = []
    for angle in np.linspace(0, 11, 12):
        reach, rise = palette.rng.uniform(0.18, 0.4), palette.rng.uniform(0.6, 1.2)
        tip = (reach * np.cos(angle), reach * np.sin(angle), rise)
        side = np.array([-np.sin(angle), np.cos(angle), 0]) * 0.09
        blades.append(quad((0, 0, 0.4) - side / 2, side, np.subtract(tip, (0, 0, 0.4)), leaf))
    return merge([pot, stem, *blades])


def waste_bin(palette: Palette) -> Mesh:
    """Return a waste bin."""
    look = palette.look("metal", palette.colour(0.4, 1.0))
    return lathe([(0.0, 0.0), (0.14, 0.0), (0.15, 0.55), (0.13, 0.62), (0.0, 0.66)], look)


def rug(palette: Palette, length_m: float, width_m: float) -> Mesh:
    """Return a rug."""
    look = palette.look("fabric", palette.colour(0.4, 0.9), span_m=1.0)
    return box((length_m, width_m, 0.012), (0, 0, 0.006), look)


def door(palette: Palette) -> Mesh:
    """Return a closed door in its frame."""
    tint = palette.colour(0.55, 1.0)
    leaf = box((0.86, 0.03, 2.0), (0, 0.015, 1.0), palette.look("wood", tint, span_m=1.0))
    panels = [
        box((0.6, 0.016, h), (0, 0.034, z), palette.look("wood", tint, span_m=0.8))
        for h, z in ((0.8, 1.45), (0.6, 0.5))
    ]
    frame = palette.look("paint", (0.9, 0.9, 0.88))
    posts = [box((0.08, 0.06, 2.08), (x, 0.03, 1.04), frame) for x in (-0.47, 0.47)]
    lintel = box((1.02, 0.06, 0.08), (0, 0.03, 2.06), frame)
    knob = sphere(0.032, (-0.36, 0.08, 1.02), palette.look("metal", (1.0, 0.85, 0.5)))
    return merge([leaf, *panels, *posts, lintel, knob])


def window(palette: Palette, width_m: float, height_m: float) -> Mesh:
    """Return a window with daylight behind; its middle is at the origin."""
    frame = palette.look("paint", (0.95, 0.95, 0.95))
    view = decal(width_m, height_m, (0, 0.01, 0), palette.exact("sky", glow=1.0))
    uprights = [
        box((0.05, 0.06, height_m + 0.05), (x, 0.03, 0), frame)
        for x in (-width_m / 2, 0, width_m / 2)
    ]
    bars = [
        box((width_m + 0.05, 0.06, 0.05), (0, 0.03, z), frame)
        for z in (-height_m / 2, height_m / 2)
    ]
    sill = box((width_m + 0.16, 0.16, 0.03), (0, 0.08, -height_m / 2 - 0.04), palette.look("stone"))
    return merge([view, *uprights, *bars, sill])


def radiator(palette: Palette, length_m: float) -> Mesh:
    """Return a ribbed radiator that hangs below a window, with its pipe and valve."""
    white = palette.look("paint", (0.93, 0.93, 0.9))
    panel = box((length_m, 0.05, 0.56), (0, 0.065, 0.45), white)
    ribs = [
        box((0.035, 0.02, 0.5), (float(x), 0.1, 0.45), white)
        for x in np.linspace(0.06 - length_m / 2, length_m / 2 - 0.06, 10)
    ]
    steel = palette.look("metal", STEEL)
    pipe = tube(
        (length_m / 2 + 0.04, 0.065, 0), (length_m / 2 + 0.04, 0.065, 0.25), (0.01, 0.01), steel
    )
    valve = tube(
        (length_m / 2, 0.065, 0.25), (length_m / 2 + 0.09, 0.065, 0.25), (0.02, 0.025), steel
    )
    return merge([panel, *ribs, pipe, valve])


def lamp(palette: Palette, drop_m: float) -> Mesh:
    """Return a lamp that hangs from the ceiling at the origin; its bulb is at ``-drop_m``."""
    shade = lathe(
        [(0.17, -drop_m - 0.03), (0.1, -drop_m + 0.1), (0.02, -drop_m + 0.13)],
        palette.look("glaze", palette.colour(0.5, 1.0), span_m=0.5),
    )
    bulb = sphere(0.05, (0, 0, -drop_m), palette.look("paint", (1.0, 0.95, 0.85), glow=1.3))
    return merge(
        [
            shade,
            bulb,
            tube((0, 0, -drop_m + 0.1), (0, 0, 0), (0.006, 0.006), palette.look("paint", DARK)),
        ]
    )


def poster(palette: Palette, width_m: float, height_m: float) -> Mesh:
    """Return a framed poster; its middle is at the origin."""
    back = box(
        (width_m + 0.05, 0.02, height_m + 0.05), (0, 0.01, 0), palette.look("wood", (0.4, 0.4, 0.4))
    )
    return merge([back, decal(width_m, height_m, (0, 0.0215, 0), palette.printed())])


def checkerboard(palette: Palette, side_m: float) -> Mesh:
    """Return a checkerboard, ``CHECKER_CELLS`` squares a side; its middle is at the origin."""
    return decal(side_m, side_m, (0, 0.008, 0), palette.exact("checker"))
