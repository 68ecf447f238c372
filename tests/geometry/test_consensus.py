"""Minimal solvers and votes: right motions among wrong sightings, and none from chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synorama.geometry.consensus import (
    Sightings,
    angles_off,
    by_three,
    by_two_upright,
    consensus,
    from_the_front,
)


def seen_by_many(
    seed: int, count: int, wrong: int, yaw: float, shift: np.ndarray
) -> tuple[Sightings, np.ndarray]:
    """Return sightings of cameras all over a room, and the true turn."""
    rng = np.random.default_rng(seed)
    turn = Rotation.from_euler("z", yaw).as_matrix()
    points = rng.uniform(-3, 3, (count, 3)) * (1, 1, 0.5)
    origins = rng.uniform(-2, 2, (count, 3)) * (1, 1, 0.2)
    rays = points @ turn.T + shift - origins
    rays += rng.normal(0, 0.003, rays.shape)
    rays[:wrong] = rng.normal(size=(wrong, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    number = np.arange(count)
    return Sightings(origins, rays, points, number % 12, number, rays @ turn), turn


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**20), st.floats(-3.1, 3.1), st.floats(-3, 3), st.floats(-3, 3))
def test_upright_motion_is_found_among_nine_wrong_of_ten(
    seed: int, yaw: float, x: float, y: float
) -> None:
    shift = np.array([x, y, 0.4])
    sightings, turn = seen_by_many(seed, 600, 540, yaw, shift)
    found = consensus(
        sightings, by_two_upright, within_rad=0.02, trials=6000, rng=np.random.default_rng(1)
    )
    assert found is not None
    assert found.votes >= 50
    assert Rotation.from_matrix(found.rotation @ turn.T).magnitude() < 0.05
    assert np.linalg.norm(found.shift - shift) < 0.2


def test_three_sightings_give_the_pose_of_a_camera_of_any_lean() -> None:
    rng = np.random.default_rng(4)
    turn, shift = Rotation.random(rng=4).as_matrix(), np.array([0.2, -0.3, 0.4])
    points = rng.uniform(-3, 3, (80, 3))
    rays = points @ turn.T + shift
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    number = np.arange(80)
    sightings = Sightings(np.zeros((80, 3)), rays, points, number * 0, number, rays @ turn)
    motions = by_three(sightings, rng, 300)
    off = np.abs(motions.rotations - turn).max(axis=(1, 2))
    assert (off < 1e-5).sum() > 150  # most draws hold the true motion among their solutions
    assert np.abs(motions.rotations @ motions.rotations.transpose(0, 2, 1) - np.eye(3)).max() < 1e-9


def test_dealt_anew_no_motion_wins() -> None:
    sightings, _ = seen_by_many(3, 600, 300, 1.0, np.zeros(3))
    rng = np.random.default_rng(0)
    right = consensus(sightings, by_two_upright, within_rad=0.02, trials=6000, rng=rng)
    chance = consensus(
        sightings.permuted(rng), by_two_upright, within_rad=0.02, trials=6000, rng=rng
    )
    assert right is not None
    assert chance is not None
    assert right.votes > 10 * chance.votes


def test_a_room_that_is_the_same_from_both_ends_has_a_runner_up() -> None:
    sightings, _ = seen_by_many(5, 400, 0, 0.0, np.zeros(3))
    half_turn = sightings.points * (-1, -1, 1)
    twice = sightings.chosen(np.tile(np.arange(400), 2))
    both = replace(twice, points=np.concatenate([sightings.points, half_turn]))
    rng = np.random.default_rng(0)
    found = consensus(both, by_two_upright, within_rad=0.02, trials=6000, rng=rng)
    alone = consensus(sightings, by_two_upright, within_rad=0.02, trials=6000, rng=rng)
    assert found is not None
    assert alone is not None
    assert found.runner_up > 0.6 * found.votes
    assert alone.runner_up < 0.2 * alone.votes


def test_too_few_sightings_give_none() -> None:
    sightings, _ = seen_by_many(0, 3, 0, 0.0, np.zeros(3))
    rng = np.random.default_rng(0)
    assert consensus(sightings, by_two_upright, within_rad=0.02, trials=100, rng=rng) is None


def test_angle_off_is_that_between_ray_and_point() -> None:
    one = np.array([[0.0, 0.0, 1.0]])
    sightings = Sightings(
        np.zeros((1, 3)), one, np.array([[1.0, 0.0, 1.0]]), np.zeros(1, int), np.zeros(1, int), one
    )
    assert angles_off(sightings, np.eye(3), np.zeros(3))[0] == pytest.approx(np.pi / 4)


def test_what_is_seen_from_behind_is_told() -> None:
    sightings, turn = seen_by_many(0, 40, 0, 0.7, np.zeros(3))
    assert from_the_front(sightings, turn).all()
    behind = replace(sightings, seen_along=-sightings.seen_along)
    assert not from_the_front(behind, turn).any()
