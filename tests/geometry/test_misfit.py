"""Fields of misfits: their size and what they do to a pose, against fields that were drawn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.geometry.fine import Matches
from synorama.geometry.misfit import Field, LocalShifts, field_of, local_shifts, mean_motion

Float64 = NDArray[np.float64]

ROOM_M = np.array([6.0, 4.0, 2.6])
MIDDLE_M = ROOM_M / 2
POINTS = 9_000
NOISE_M = 0.005


def _room(rng: np.random.Generator) -> tuple[Float64, Float64]:
    """Return places ``(N, 3)`` on floor, ceiling and walls of a room, and their normals."""
    areas = np.array([ROOM_M[1] * ROOM_M[2], ROOM_M[0] * ROOM_M[2], ROOM_M[0] * ROOM_M[1]])
    axis = rng.choice(3, POINTS, p=areas / areas.sum())
    places = rng.uniform(0, 1, (POINTS, 3)) * ROOM_M
    places[np.arange(POINTS), axis] = ROOM_M[axis] * rng.integers(0, 2, POINTS)
    return places, np.eye(3)[axis]


def _slow(places: Float64, size_m: float, length_m: float, rng: np.random.Generator) -> Float64:
    """Return shifts ``(N, 3)`` [m] of a random field of waves, of one sigma along each axis."""
    waves = 200
    ways = rng.standard_normal((waves, 3)) / length_m
    ways *= np.sqrt(3.0 / rng.chisquare(3, waves))[:, np.newaxis]
    phase, amplitude = rng.uniform(0, 2 * np.pi, waves), rng.standard_normal((waves, 3))
    field = np.cos(places @ ways.T + phase) @ amplitude
    return np.asarray(size_m * np.sqrt(2.0 / waves) * field, np.float64)


def _fitted(seed: int, size_m: float, length_m: float = 4.0) -> tuple[Field, Float64]:
    """Return the field that is told after a fit, and the fit's error ``(6,)``."""
    rng = np.random.default_rng(seed)
    places, normals = _room(rng)
    shift = _slow(places, size_m, length_m, rng)
    misfit = np.einsum("ni,ni->n", normals, shift) + NOISE_M * rng.standard_normal(POINTS)
    J = np.concatenate([np.cross(places - MIDDLE_M, normals), normals], axis=1)
    error = np.linalg.lstsq(J, misfit, rcond=None)[0]
    field = _told(places, normals, misfit - J @ error)
    return field, error


def _told(places: Float64, normals: Float64, misfit: Float64) -> Field:
    return field_of(_shifts(places, normals, misfit), MIDDLE_M, 1.0)


def _shifts(places: Float64, normals: Float64, misfit: Float64) -> LocalShifts:
    apart = misfit[:, np.newaxis] * normals
    which = np.arange(len(places))
    found = Matches(places + apart, normals, apart, np.abs(misfit), misfit, which, which)
    return local_shifts(found, np.full(len(places), 1 / NOISE_M**2), 1.0)


@pytest.mark.parametrize("size_mm", [1.5, 8.0])
def test_the_size_is_told_although_a_pose_took_part_of_it(size_mm: float) -> None:
    told = [1e3 * _fitted(seed, 1e-3 * size_mm)[0].size_m for seed in range(12)]
    assert 0.7 * size_mm < np.median(told) < 1.4 * size_mm
    assert min(told) > 0.4 * size_mm
    assert max(told) < 2.0 * size_mm


@pytest.mark.parametrize(("size_m", "length_m"), [(0.0015, 4.0), (0.006, 4.0), (0.004, 2.5)])
def test_the_covariance_is_that_of_the_errors(size_m: float, length_m: float) -> None:
    square = []
    for seed in range(16):
        field, error = _fitted(100 + seed, size_m, length_m)
        square.append(error @ np.linalg.solve(field.covariance, error))
    assert 2.0 < np.mean(square) < 9.5  # six degrees of freedom
    assert np.quantile(square, 0.9) < 20


def _bent(seed: int) -> tuple[Float64, Float64, Float64]:
    """Return by how much the best fit to half a bent room and `mean_motion` are off ``(6,)`` each.

    The truth is the motion that all of the room has on average; told with its covariance.
    """
    rng = np.random.default_rng(seed)
    places, normals = _room(rng)
    shift = _slow(places, 0.012, 4.0, rng)
    everywhere = np.concatenate([np.cross(axis, places - MIDDLE_M) for axis in np.eye(3)], axis=1)
    turning = everywhere.reshape(-1, 3, 3).transpose(0, 2, 1)
    design = np.concatenate([turning, np.tile(np.eye(3), (len(places), 1, 1))], axis=2)
    truth = np.linalg.lstsq(design.reshape(-1, 6), shift.ravel(), rcond=None)[0]
    seen = places[:, 0] < 0.7 * ROOM_M[0]
    misfit = np.einsum("ni,ni->n", normals, shift) + NOISE_M * rng.standard_normal(POINTS)
    J = np.concatenate([np.cross(places - MIDDLE_M, normals), normals], axis=1)[seen]
    fit = np.linalg.lstsq(J, misfit[seen], rcond=None)[0]
    shifts = _shifts(places[seen], normals[seen], misfit[seen] - J @ fit)
    field = field_of(shifts, MIDDLE_M, 1.0)
    motion, covariance = mean_motion(shifts, field, MIDDLE_M, places, 1.0)
    return fit - truth, fit + motion - truth, covariance


def test_a_bent_room_is_placed_by_its_average_and_not_by_what_fits_best() -> None:
    rooms = [_bent(seed) for seed in range(12)]
    for part, share in ((slice(3), 0.75), (slice(3, 6), 0.85)):
        fits, means = (np.mean([np.linalg.norm(r[k][part]) for r in rooms]) for k in (0, 1))
        assert means < share * fits
    square = [mean @ np.linalg.solve(covariance, mean) for _, mean, covariance in rooms]
    assert 2.0 < np.mean(square) < 15.0


def test_noise_alone_is_no_field() -> None:
    fields = [_fitted(seed, 0.0)[0] for seed in range(6)]
    assert max(field.size_m for field in fields) < 0.001
    assert max(np.sqrt(np.trace(field.covariance[3:, 3:])) for field in fields) < 0.0015


@pytest.mark.parametrize("size_mm", [1.5, 8.0])
def test_a_cupboard_that_was_moved_is_no_bend(size_mm: float) -> None:
    rng = np.random.default_rng(6)
    places, normals = _room(rng)
    shift = np.einsum("ni,ni->n", normals, _slow(places, size_mm / 1000, 4.0, rng))
    misfit = shift + NOISE_M * rng.standard_normal(len(places))
    before = _told(places, normals, misfit)
    there = (np.abs(places[:, 0] - 3.0) < 0.6) & (normals[:, 1] == 1)
    after = _told(places, normals, misfit + np.where(there, 0.08, 0.0))
    assert there.mean() > 0.02
    assert after.size_m == pytest.approx(before.size_m, rel=0.25)


def test_a_wall_on_the_border_of_cells_is_not_parted_by_its_noise() -> None:
    rng = np.random.default_rng(3)
    places, normals = _room(rng)  # two walls lie at 0 and at 6 m, which are borders
    misfit = NOISE_M * rng.standard_normal(len(places))
    apart = misfit[:, np.newaxis] * normals
    which = np.arange(len(misfit))
    found = Matches(places + apart, normals, apart, np.abs(misfit), misfit, which, which)
    shifts = local_shifts(found, np.ones(len(misfit)), 1.0)
    assert len(shifts.off_m) < 400  # cells, not points
    assert np.sqrt(np.mean(shifts.off_m**2 / shifts.variance)) < 1.3


def test_points_that_meet_exactly_are_no_reason_to_fail() -> None:
    places, normals = _room(np.random.default_rng(4))
    field = _told(places, normals, np.zeros(len(places)))
    assert np.isfinite(field.covariance).all()
    assert field.size_m < 0.0005


def test_few_points_speak_each_for_itself() -> None:
    rng = np.random.default_rng(5)
    places, normals = (part[:90] for part in _room(rng))
    misfit = NOISE_M * rng.standard_normal(len(places))
    J = np.concatenate([np.cross(places - MIDDLE_M, normals), normals], axis=1)
    error = np.linalg.lstsq(J, misfit, rcond=None)[0]
    field = _told(places, normals, misfit - J @ error)
    assert 0.5 < error @ np.linalg.solve(field.covariance, error) < 20
    plain = NOISE_M**2 * np.linalg.inv(J.T @ J)
    assert np.trace(plain[3:, 3:]) < 2 * np.trace(field.covariance[3:, 3:])
    assert np.trace(field.covariance[3:, 3:]) < 9 * np.trace(plain[3:, 3:])
