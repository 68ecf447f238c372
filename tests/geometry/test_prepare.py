"""What of a cloud is used: points laid evenly over surfaces."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synorama.geometry.prepare import SUREST_M, Points, evened

SIDE_M = 0.01


@given(st.integers(0, 2**32 - 1), st.integers(1, 400))
def test_each_cube_counts_once_by_a_mean_that_lies_in_it(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.05, 0.05, (count, 3))
    even = evened(Points(points, rng.uniform(0, 0.05, count)), SIDE_M)
    cubes = {tuple(cube) for cube in np.floor(points / SIDE_M).astype(int)}
    assert {tuple(cube) for cube in np.floor(even / SIDE_M).astype(int)} == cubes
    assert len(even) == len(cubes)


def test_within_a_cube_what_is_surer_counts_more() -> None:
    points = np.array([[0.001, 0.005, 0.005], [0.009, 0.005, 0.005]])
    even = evened(Points(points, np.array([0.0, 0.02])), SIDE_M)
    weights = 1 / (SUREST_M**2 + np.array([0.0, 0.02]) ** 2)
    assert np.allclose(even, weights @ points / weights.sum())
    assert even[0, 0] < 0.002


def test_points_that_lie_beyond_all_cubes_stay_apart_from_the_room() -> None:
    points = np.array([[0.001, 0.001, 0.001], [3e5, 0.001, 0.001], [0.001, -4e5, 0.001]])
    even = evened(Points(points, np.zeros(3)), SIDE_M)
    assert np.allclose(np.sort(np.abs(even).max(axis=1)), [0.001, 3e5, 4e5])
