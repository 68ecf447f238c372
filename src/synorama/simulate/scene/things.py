"""Small things that stand on counters, tables and shelves: each stands on z = 0 at the origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synorama.simulate.scene.meshes import Look, Mesh, box, decal, lathe, merge, sphere, tube
from synorama.simulate.scene.texture import Palette

__all__ = ["THINGS", "Thing"]

Thing = Callable[[Palette], Mesh]


def _wrapped(palette: Palette, span_m: float = 0.3) -> Look:
    """Return a look that something round can wear: a print or a glaze."""
    if palette.rng.random() < 0.5:
        return palette.printed()
    return palette.look("glaze", palette.colour(), span_m=span_m)


def _mug(palette: Palette) -> Mesh:
    r, h = palette.rng.uniform(0.035, 0.045), palette.rng.uniform(0.08, 0.11)
    cup = [(0.0, 0.0), (r, 0.0), (r, h), (0.9 * r, h), (0.8 * r, 0.01)]
    look = _wrapped(palette)
    ear = [
        tube((r, 0, z0), (r + x, 0, z1), (0.006, 0.006), look)
        for z0, x, z1 in ((0.02, 0.025, 0.04), (h - 0.02, 0.025, h - 0.04))
    ]
    grip = tube((r + 0.025, 0, 0.04), (r + 0.025, 0, h - 0.04), (0.006, 0.006), look)
    return merge([lathe(cup, look), *ear, grip])


def _bowl(palette: Palette) -> Mesh:
    r = palette.rng.uniform(0.07, 0.13)
    profile = [
        (0.0, 0.0),
        (0.4 * r, 0.0),
        (0.8 * r, 0.03),
        (r, 0.07),
        (0.95 * r, 0.07),
        (0.5 * r, 0.02),
        (0.0, 0.015),
    ]
    return lathe(profile, palette.look("glaze", palette.colour(), span_m=0.3))


def _fruit_bowl(palette: Palette) -> Mesh:
    fruit = [
        sphere(
            0.037,
            (0.05 * np.cos(a), 0.05 * np.sin(a), 0.06),
            palette.look("paint", tint, span_m=0.2),
        )
        for a, tint in zip(
            (0, 1.6, 3.1, 4.7),
            ((0.9, 0.2, 0.15), (0.95, 0.6, 0.1), (0.5, 0.8, 0.2), (0.9, 0.8, 0.2)),
            strict=True,
        )
    ]
    return merge([_bowl(palette), *fruit])


def _plates(palette: Palette) -> Mesh:
    count = int(palette.rng.integers(2, 7))
    look = palette.look("glaze", palette.colour(0.6, 1.0), span_m=0.3)
    plate = lathe([(0.0, 0.0), (0.07, 0.0), (0.12, 0.015), (0.115, 0.02), (0.0, 0.008)], look, 18)
    return merge([plate.at(0, 0, 0.014 * k, k) for k in range(count)])


def _bottle(palette: Palette) -> Mesh:
    r, h = palette.rng.uniform(0.03, 0.042), palette.rng.uniform(0.2, 0.32)
    glass = palette.look("paint", palette.colour(0.15, 0.8), span_m=0.3)
    outline = [(0.0, 0.0), (r, 0.0), (r, 0.6 * h), (0.35 * r, 0.8 * h), (0.35 * r, h), (0.0, h)]
    label = lathe([(1.02 * r, 0.15 * h), (1.02 * r, 0.5 * h)], palette.printed())
    return merge([lathe(outline, glass), label])


def _jar(palette: Palette) -> Mesh:
    r, h = palette.rng.uniform(0.03, 0.06), palette.rng.uniform(0.08, 0.18)
    body = lathe([(0.0, 0.0), (r, 0.0), (r, h), (0.0, h)], _wrapped(palette))
    lid = lathe(
        [(0.95 * r, h), (0.95 * r, h + 0.02), (0.0, h + 0.02)],
        palette.look("metal", palette.colour(0.4, 1.0)),
    )
    return merge([body, lid])


def _can(palette: Palette) -> Mesh:
    r, h = palette.rng.uniform(0.033, 0.05), palette.rng.uniform(0.09, 0.13)
    side = lathe([(r, 0.004), (r, h - 0.004)], palette.printed())
    ends = lathe([(0.0, 0.0), (0.97 * r, 0.0), (0.97 * r, h), (0.0, h)], palette.look("metal"))
    return merge([ends, side])


def _packet(palette: Palette) -> Mesh:
    w, d, h = palette.rng.uniform((0.09, 0.04, 0.14), (0.2, 0.09, 0.3))
    return box((w, d, h), (0, 0, h / 2), palette.printed())


def _books(palette: Palette) -> Mesh:
    parts, x = [], -0.1
    for _ in range(int(palette.rng.integers(3, 7))):
        thick, depth, high = palette.rng.uniform((0.018, 0.13, 0.18), (0.045, 0.19, 0.27))
        look = (
            palette.printed()
            if palette.rng.random() < 0.6
            else palette.look("fabric", palette.colour(), span_m=0.2)
        )
        parts.append(box((thick, depth, high), (x + thick / 2, 0, high / 2), look))
        x += thick + 0.002
    return merge(parts)


def _kettle(palette: Palette) -> Mesh:
    look = palette.look("metal", palette.colour(0.4, 1.0), span_m=0.4)
    body = lathe(
        [(0.0, 0.0), (0.09, 0.0), (0.1, 0.06), (0.07, 0.17), (0.02, 0.19), (0.0, 0.21)], look
    )
    spout = tube((0.08, 0, 0.08), (0.16, 0, 0.16), (0.022, 0.012), look)
    dark = palette.look("paint", (0.15, 0.15, 0.15))
    posts = [tube((x, 0, 0.16), (x, 0, 0.26), (0.008, 0.008), dark) for x in (-0.06, 0.06)]
    return merge([body, spout, *posts, tube((-0.06, 0, 0.26), (0.06, 0, 0.26), (0.01, 0.01), dark)])


def _pan(palette: Palette) -> Mesh:
    look = palette.look("metal", (0.25, 0.25, 0.27), span_m=0.3)
    body = lathe(
        [(0.0, 0.0), (0.11, 0.0), (0.13, 0.05), (0.125, 0.05), (0.105, 0.008), (0.0, 0.008)], look
    )
    return merge(
        [
            body,
            tube(
                (0.12, 0, 0.04),
                (0.3, 0, 0.06),
                (0.01, 0.013),
                palette.look("wood", (0.4, 0.3, 0.25)),
            ),
        ]
    )


def _pot(palette: Palette) -> Mesh:
    r, h = palette.rng.uniform(0.08, 0.12), palette.rng.uniform(0.1, 0.17)
    look = palette.look("metal", palette.colour(0.5, 1.0), span_m=0.4)
    body = lathe([(0.0, 0.0), (r, 0.0), (r, h), (1.02 * r, h), (0.0, h + 0.03)], look, 18)
    ears = [box((0.05, 0.03, 0.015), (x, 0, h - 0.02), look) for x in (-r - 0.02, r + 0.02)]
    return merge(
        [body, *ears, sphere(0.015, (0, 0, h + 0.04), palette.look("paint", (0.1, 0.1, 0.1)))]
    )


def _knives(palette: Palette) -> Mesh:
    block = box((0.1, 0.14, 0.2), (0, 0, 0.1), palette.look("wood", (0.8, 0.6, 0.4), span_m=0.4))
    dark = palette.look("paint", (0.1, 0.1, 0.1))
    handles = [
        box((0.016, 0.022, 0.09), (x, y, 0.245), dark)
        for x in (-0.03, 0, 0.03)
        for y in (-0.04, 0.03)
    ]
    return merge([block, *handles])


def _board(palette: Palette) -> Mesh:
    size = (palette.rng.uniform(0.28, 0.42), palette.rng.uniform(0.2, 0.28), 0.02)
    wood = box(size, (0, 0, 0.01), palette.look("wood", palette.colour(0.6, 1.0), span_m=0.4))
    bread = box(
        (0.16, 0.08, 0.07), (0.03, 0.02, 0.055), palette.look("stone", (1.0, 0.7, 0.4), span_m=0.5)
    )
    return merge([wood, bread])


def _spices(palette: Palette) -> Mesh:
    jars = []
    for k in range(int(palette.rng.integers(3, 6))):
        body = lathe([(0.0, 0.0), (0.02, 0.0), (0.02, 0.08), (0.0, 0.08)], palette.printed(), 10)
        jars += [
            body.at(0.05 * k - 0.1, 0),
            lathe(
                [(0.02, 0.08), (0.02, 0.1), (0.0, 0.1)], palette.look("paint", (0.1, 0.1, 0.1)), 10
            ).at(0.05 * k - 0.1, 0),
        ]
    return merge(jars)


def _toaster(palette: Palette) -> Mesh:
    body = box((0.28, 0.16, 0.17), (0, 0, 0.1), palette.look("metal", palette.colour(0.4, 1.0)))
    dark = palette.look("paint", (0.07, 0.07, 0.07))
    slots = [box((0.2, 0.025, 0.004), (0, y, 0.187), dark) for y in (-0.035, 0.035)]
    return merge(
        [
            body,
            *slots,
            box((0.02, 0.03, 0.02), (0.15, 0, 0.12), dark),
            box((0.26, 0.14, 0.02), (0, 0, 0.01), dark),
        ]
    )


def _paper_roll(palette: Palette) -> Mesh:
    roll = lathe(
        [(0.02, 0.02), (0.06, 0.02), (0.06, 0.24), (0.02, 0.24)],
        palette.look("fabric", (1, 1, 1), span_m=0.25),
    )
    foot = lathe(
        [(0.0, 0.0), (0.08, 0.0), (0.08, 0.015), (0.0, 0.015)], palette.look("wood", span_m=0.3)
    )
    return merge(
        [roll, foot, tube((0, 0, 0), (0, 0, 0.3), (0.01, 0.008), palette.look("wood", span_m=0.3))]
    )


def _basket(palette: Palette) -> Mesh:
    look = palette.look("fabric", (0.8, 0.6, 0.4), span_m=0.2)
    body = lathe(
        [(0.0, 0.0), (0.11, 0.0), (0.14, 0.12), (0.13, 0.12), (0.1, 0.02), (0.0, 0.02)], look
    )
    rolls = [
        sphere(
            0.05,
            (0.05 * np.cos(a), 0.05 * np.sin(a), 0.08),
            palette.look("stone", (0.95, 0.65, 0.35), span_m=0.4),
        )
        for a in (0.3, 2.4, 4.5)
    ]
    return merge([body, *rolls])


def _teapot(palette: Palette) -> Mesh:
    look = palette.look("glaze", palette.colour(), span_m=0.25)
    body = lathe(
        [(0.0, 0.0), (0.06, 0.0), (0.085, 0.06), (0.06, 0.12), (0.02, 0.14), (0.0, 0.15)], look
    )
    return merge(
        [
            body,
            tube((0.07, 0, 0.05), (0.14, 0, 0.12), (0.018, 0.01), look),
            tube((-0.08, 0, 0.04), (-0.12, 0, 0.1), (0.01, 0.01), look),
            tube((-0.12, 0, 0.1), (-0.06, 0, 0.12), (0.01, 0.01), look),
        ]
    )


def _flowers(palette: Palette) -> Mesh:
    vase = lathe(
        [(0.0, 0.0), (0.04, 0.0), (0.055, 0.08), (0.025, 0.18), (0.03, 0.2)], _wrapped(palette, 0.2)
    )
    parts = [vase]
    for a in np.linspace(0, 6, 6):
        tip = (0.08 * np.cos(a), 0.08 * np.sin(a), 0.28 + 0.06 * np.sin(3 * a))
        parts.append(tube((0, 0, 0.15), tip, (0.004, 0.003), palette.look("leaves"), 5))
        parts.append(
            sphere(0.028, tip, palette.look("paint", palette.colour(0.3, 1.0), span_m=0.1), 8)
        )
    return merge(parts)


def _herbs(palette: Palette) -> Mesh:
    pot = lathe(
        [(0.0, 0.0), (0.045, 0.0), (0.06, 0.1), (0.0, 0.095)],
        palette.look("stone", (0.9, 0.5, 0.35), span_m=0.6),
    )
    leaf = palette.look("leaves", span_m=0.2)
    tufts = [
        sphere(0.045, (*palette.rng.uniform(-0.035, 0.035, 2), z), leaf, 7)
        for z in (0.12, 0.15, 0.17, 0.2)
    ]
    return merge([pot, *tufts])


def _radio(palette: Palette) -> Mesh:
    body = box(
        (0.26, 0.09, 0.16), (0, 0, 0.08), palette.look("wood", palette.colour(0.4, 1.0), span_m=0.4)
    )
    dial = decal(0.1, 0.1, (0.06, 0.046, 0.09), palette.printed())
    cloth = decal(0.11, 0.11, (-0.06, 0.046, 0.08), palette.look("fabric", span_m=0.15))
    return merge([body, dial, cloth])


def _clock(palette: Palette) -> Mesh:
    face = decal(0.12, 0.12, (0, 0.026, 0.075), palette.printed())
    return merge(
        [box((0.15, 0.05, 0.15), (0, 0, 0.075), palette.look("paint", palette.colour())), face]
    )


def _scale(palette: Palette) -> Mesh:
    base = box((0.18, 0.22, 0.035), (0, 0, 0.0175), palette.look("paint", palette.colour()))
    dish = lathe([(0.0, 0.045), (0.09, 0.045), (0.1, 0.06), (0.0, 0.05)], palette.look("metal"))
    return merge([base, dish])


def _utensils(palette: Palette) -> Mesh:
    jar = lathe(
        [(0.0, 0.0), (0.05, 0.0), (0.055, 0.15), (0.05, 0.15), (0.045, 0.02)], _wrapped(palette)
    )
    parts = [jar]
    for a in np.linspace(0, 5.5, 5):
        tip = np.array([0.06 * np.cos(a), 0.06 * np.sin(a), palette.rng.uniform(0.25, 0.33)])
        wood = palette.look("wood", palette.colour(0.4, 1.0), span_m=0.3)
        parts += [tube((0, 0, 0.03), tip, (0.006, 0.005), wood, 6), sphere(0.022, tip, wood, 7)]
    return merge(parts)


def _tin(palette: Palette) -> Mesh:
    w = palette.rng.uniform(0.12, 0.22)
    return merge(
        [
            box((w, 0.7 * w, 0.1), (0, 0, 0.05), palette.printed()),
            box(
                (1.02 * w, 0.72 * w, 0.02),
                (0, 0, 0.1),
                palette.look("metal", palette.colour(0.4, 1.0)),
            ),
        ]
    )


THINGS: dict[str, Thing] = {
    "mug": _mug,
    "bowl": _bowl,
    "fruit_bowl": _fruit_bowl,
    "plates": _plates,
    "bottle": _bottle,
    "jar": _jar,
    "can": _can,
    "packet": _packet,
    "books": _books,
    "kettle": _kettle,
    "pan": _pan,
    "pot": _pot,
    "knives": _knives,
    "board": _board,
    "spices": _spices,
    "toaster": _toaster,
    "paper_roll": _paper_roll,
    "basket": _basket,
    "teapot": _teapot,
    "flowers": _flowers,
    "herbs": _herbs,
    "radio": _radio,
    "clock": _clock,
    "scale": _scale,
    "utensils": _utensils,
    "tin": _tin,
}
"""Makers of small things by kind."""
