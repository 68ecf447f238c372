"""What was left unscanned says nothing against points; what the scanner looked past does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from synorama.geometry.contradiction import contradicted, contrast
from synorama.geometry.prepare import Points
from synorama.geometry.surface import surface_of

Float64 = NDArray[np.float64]


def wall(rng: np.random.Generator, y: tuple[float, float], count: int) -> Float64:
    places = rng.uniform((0, y[0], 0), (0, y[1], 2.5), (count, 3))
    places[:, 0] = rng.normal(0, 0.002, count)
    return places


def mug(rng: np.random.Generator) -> Float64:
    turn = rng.uniform(0, 2 * np.pi, 400)
    rim = np.stack([0.05 * np.cos(turn), 0.05 * np.sin(turn), rng.uniform(0, 0.1, 400)], axis=1)
    return np.asarray(rim + np.array([0.3, 1.0, 1.0]), np.float64)


def test_a_mug_outweighs_what_was_not_scanned() -> None:
    rng = np.random.default_rng(3)
    scan = surface_of(
        np.vstack([wall(rng, (-1.2, 2.6), 40_000), wall(rng, (-3.4, -2.0), 20_000), mug(rng)]), 0.02
    )  # of the wall, 0.8 m lie in a shadow
    seen = np.vstack([wall(rng, (-2.0, 2.0), 20_000), mug(rng)[::4]])
    points = Points(seen, np.zeros(len(seen)), np.tile((3.0, 0.0, 1.5), (len(seen), 1)))
    right, wrong = np.eye(4), np.eye(4)
    wrong[1, 3] = 0.6  # less of the wall in the shadow, and the mug where none was
    assert contrast(points, scan, scan, (right, wrong), 1.0) > 1.0
    blind = replace(points, seen_from_m=None)
    assert contrast(blind, scan, scan, (right, wrong), 1.0) < 0  # the shadow decides


def test_it_says_the_opposite_of_the_opposite() -> None:
    rng = np.random.default_rng(4)
    scan = surface_of(np.vstack([wall(rng, (-2.0, 2.0), 30_000), mug(rng)]), 0.02)
    seen = np.vstack([wall(rng, (-1.0, 1.5), 10_000), mug(rng)[::4]])
    points = Points(seen, np.zeros(len(seen)), np.tile((3.0, 0.0, 1.5), (len(seen), 1)))
    there, beside = np.eye(4), np.eye(4)
    beside[1, 3] = -0.3
    for_it = contrast(points, scan, scan, (there, beside), 1.0)
    assert for_it > 0
    assert contrast(points, scan, scan, (beside, there), 1.0) == -for_it
    assert contrast(points, scan, scan, (there, there), 1.0) == 0


def test_half_a_scan_says_nothing_against_and_another_place_much() -> None:
    rng = np.random.default_rng(5)
    half = surface_of(np.vstack([wall(rng, (-2.0, 0.0), 30_000), wall(rng, (6.0, 6.1), 100)]), 0.02)
    seen = wall(rng, (-2.0, 2.0), 4_000)
    points = Points(seen, np.zeros(len(seen)), np.tile((3.0, 0.0, 1.5), (len(seen), 1)))
    assert contradicted(points, half, half, np.eye(4), 1.0) == 0.0
    nearer = np.eye(4)
    nearer[0, 3] = 0.3  # all points hang in the air before the wall
    assert (contradicted(points, half, half, nearer, 1.0) or 0.0) > 0.95
    assert contradicted(replace(points, seen_from_m=None), half, half, nearer, 1.0) is None
