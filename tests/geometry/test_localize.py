"""A scan's place by pictures: right with its certainty, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synorama.geometry.features import detect
from synorama.geometry.landmarks import LandmarkView, from_motion, moved
from synorama.geometry.lenses import project
from synorama.geometry.localize import Localization, locate_scan
from synorama.geometry.views import PosedPicture, resized, spread_frames, tiles
from synorama.geometry.zbuffer import lifted, zbuffer
from tests.geometry.painted_box import FISHEYE, SIZE_M, PaintedBox, apart, facing, posed

MIRROR = (1, -1, 1)
WORLD_SCAN = posed((7.0, -3.0, 0.4), 2.2, lean=0.006)


@pytest.fixture(scope="module")
def landmarks(landmarks_in_room: tuple[LandmarkView, ...]) -> tuple[LandmarkView, ...]:
    """Of the scan, in its own frame."""
    return moved(landmarks_in_room, np.linalg.inv(WORLD_SCAN))


@pytest.fixture(scope="module")
def frames(box: PaintedBox) -> list[PosedPicture]:
    return box.walk()


@pytest.fixture(scope="module")
def found(frames: list[PosedPicture], landmarks: tuple[LandmarkView, ...]) -> Localization:
    return locate_scan(frames, landmarks)


def _carried(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])


def _on_a_wall(points: np.ndarray) -> np.ndarray:
    """Return how far points are from the nearest wall."""
    return np.asarray(np.minimum(np.abs(points), np.abs(points - SIZE_M)).min(axis=1))


def test_landmarks_of_a_scan_lie_on_its_walls(landmarks: tuple[LandmarkView, ...]) -> None:
    points = np.concatenate([v.points_m for v in moved(landmarks, WORLD_SCAN)])
    assert len(points) > 2000
    assert np.quantile(_on_a_wall(points), 0.98) < 0.01


def test_a_scan_is_found_as_exactly_as_it_says(found: Localization) -> None:
    result = found.result
    assert result.status == "accepted", result.reason
    assert result.T_target_source is not None
    assert result.covariance is not None
    middle = _carried(SIZE_M / 2, np.linalg.inv(WORLD_SCAN))
    deg, metres = apart(result.T_target_source.matrix, WORLD_SCAN, middle)
    assert deg < 0.2
    assert metres < 0.01
    sigma = np.sqrt(np.linalg.eigvalsh(result.covariance[3:, 3:])[-1])
    assert metres < 3 * sigma < 0.05
    assert found.chance_ratio > 5
    assert "times what chance gives" in result.reason


def test_the_frames_of_the_result_are_named(found: Localization) -> None:
    assert found.result.T_target_source is not None
    assert found.result.T_target_source.target == "world"
    assert found.result.T_target_source.source == "scan"


def test_the_same_data_gives_the_same_result(
    found: Localization, frames: list[PosedPicture], landmarks: tuple[LandmarkView, ...]
) -> None:
    again = locate_scan(frames, landmarks)
    assert again.result.T_target_source is not None
    assert found.result.T_target_source is not None
    assert np.array_equal(again.result.T_target_source.matrix, found.result.T_target_source.matrix)


def test_a_mirrored_room_is_refused(
    frames: list[PosedPicture], landmarks: tuple[LandmarkView, ...]
) -> None:
    mirrored = [
        replace(v, points_m=v.points_m * MIRROR, rays=v.rays * MIRROR, arms_m=v.arms_m * MIRROR)
        for v in landmarks
    ]
    told = locate_scan(frames, mirrored)
    assert told.result.status == "refused"
    assert told.result.T_target_source is None


def test_another_room_is_refused(landmarks: tuple[LandmarkView, ...]) -> None:
    told = locate_scan(PaintedBox(4).walk(6), landmarks)
    assert told.result.status == "refused"
    assert told.result.reason


def test_too_few_frames_are_refused(
    frames: list[PosedPicture], landmarks: tuple[LandmarkView, ...]
) -> None:
    assert locate_scan(frames[:3], landmarks).result.status == "refused"


def test_no_landmarks_are_refused(frames: list[PosedPicture]) -> None:
    assert locate_scan(frames[:2], []).result.status == "refused"
    assert locate_scan([], []).result.status == "refused"


# --- landmarks of the glasses ----------------------------------------------------------------


def test_landmarks_of_a_walk_lie_on_the_walls(frames: list[PosedPicture]) -> None:
    points = np.concatenate([v.points_m for v in from_motion(frames)])
    assert len(points) > 150
    assert np.median(_on_a_wall(points)) < 0.015
    assert np.quantile(_on_a_wall(points), 0.9) < 0.06


def test_frames_from_one_place_give_no_landmarks(box: PaintedBox) -> None:
    pose = facing((2.0, 2.0, 1.5), 0.3, 0.0)
    still = [
        PosedPicture(f"frame-{k}", box.picture(FISHEYE, pose, k), FISHEYE, pose) for k in range(3)
    ]
    assert sum(len(v.points_m) for v in from_motion(still)) == 0


# --- what they are made of -------------------------------------------------------------------


@pytest.mark.parametrize("size_px", [1.2, 2.0, 4.0])
def test_features_are_told_where_they_are(size_px: float) -> None:
    """A quarter of a pixel, all to one side, turns a scan by a twentieth of a degree."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:400, :400]
    spots = np.stack(np.meshgrid(*[50.0 + 60 * np.arange(6)] * 2), -1).reshape(-1, 2)
    spots += rng.uniform(-0.5, 0.5, spots.shape)
    away = (x - spots[:, :1, np.newaxis]) ** 2 + (y - spots[:, 1:, np.newaxis]) ** 2
    picture = 60 + 120 * np.exp(-away / (2 * size_px**2)).sum(axis=0)
    found = detect(picture.astype(np.uint8), 500).pixels
    gap = found[:, np.newaxis] - spots
    nearest = np.linalg.norm(gap, axis=2).argmin(axis=1)
    off = gap[np.arange(len(found)), nearest]
    off = off[np.linalg.norm(off, axis=1) < 1]
    assert len(off) > 30
    assert np.abs(off.mean(axis=0)).max() < 0.05


def test_a_zbuffer_gives_walls_without_bias(box: PaintedBox) -> None:
    pose = facing((2.0, 2.0, 1.2), 0.5, -0.5)
    buffer = zbuffer(FISHEYE.resized(0.25), box.cloud(60_000), np.linalg.inv(pose))
    rng = np.random.default_rng(0)
    rays = np.column_stack([rng.uniform(-0.5, 0.5, (300, 2)), np.ones(300)])
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    points, good = lifted(buffer, rays)
    assert good.sum() > 150
    there = _carried(points[good], pose)
    inside = np.clip(there, 0, SIZE_M)
    low, high = inside.min(axis=1), (SIZE_M - inside).min(axis=1)
    signed = (there - SIZE_M / 2) / (SIZE_M / 2)
    off = (np.abs(signed).max(axis=1) - 1) * SIZE_M[np.abs(signed).argmax(axis=1)] / 2
    assert np.minimum(low, high).max() < 0.02
    assert abs(np.median(off)) < 0.002


def test_what_stands_in_front_hides_what_is_behind() -> None:
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 60), np.linspace(-1, 1, 60)), -1).reshape(-1, 2)
    near, far = (
        np.column_stack([grid, np.full(3600, 2.0)]),
        np.column_stack([2 * grid, np.full(3600, 4.0)]),
    )
    buffer = zbuffer(FISHEYE.resized(0.1), np.concatenate([far, near]), np.eye(4))
    points, good = lifted(buffer, np.array([[0.0, 0.0, 1.0]]))
    assert good[0]
    assert points[0, 2] == pytest.approx(2.0)
    assert buffer.distance_m.min() == pytest.approx(2.0, abs=0.01)


def test_tiles_see_what_the_panorama_sees(box: PaintedBox) -> None:
    whole = box.panoramas(np.eye(4))[0]
    for tile in tiles(whole):
        middle = tile.pixels.shape[0] // 2
        ray = tile.pose[:3, :3] @ [0, 0, 1.0]
        x, y = project(whole.lens, whole.pose[:3, :3].T @ ray)[0]
        shown = whole.pixels[round(y) % 512, round(x) % 1024].astype(int)
        assert abs(int(tile.pixels[middle, middle]) - shown) < 40


def test_calm_frames_from_all_over_are_chosen() -> None:
    poses = np.tile(np.eye(4), (100, 1, 1))
    poses[50:, 0, 3] = 3.0
    turning = np.zeros(100)
    turning[:10] = 3.0
    chosen = spread_frames(poses, turning, 2)
    assert len(chosen) == 2
    assert chosen.min() >= 10
    assert {bool(k < 50) for k in chosen} == {True, False}


def test_a_picture_is_only_made_smaller(box: PaintedBox) -> None:
    frame = box.walk(1)[0]
    assert resized(frame, 1000) is frame
    assert resized(frame, 240).pixels.shape == (240, 240)
    with pytest.raises(ValueError, match="different sizes"):
        PosedPicture("x", frame.pixels[:10], frame.lens, frame.pose)
