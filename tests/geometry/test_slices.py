"""Pictures for review show what is wrong, and the scan's edges agree best where it is right."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from synorama.geometry.overlay import bent_points, drawn_into, edge_agreement
from synorama.geometry.slices import (
    horizontal_slice,
    residual_map,
    residuals_m,
    vertical_slices,
)
from synorama.geometry.views import PosedPicture
from tests.geometry.painted_box import SIZE_M, PaintedBox


@pytest.fixture(scope="module")
def plain() -> PaintedBox:
    """A room of plain walls of different greys."""
    return PaintedBox(5, contrast=0.1)


@pytest.fixture(scope="module")
def cloud(plain: PaintedBox) -> np.ndarray:
    return plain.cloud(60_000)


@pytest.fixture(scope="module")
def points(plain: PaintedBox) -> np.ndarray:
    """What the glasses saw of it."""
    return PaintedBox(6).cloud(8000)


def opened(data: bytes) -> np.ndarray:
    """Return a PNG, blue first."""
    assert data.startswith(b"\x89PNG")
    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return np.asarray(found).astype(int)


def reds_and_blacks(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels ``(N, 2)`` of the glasses' points and of the scan."""
    blue, _, red = np.moveaxis(opened(data)[30:], -1, 0)
    return np.argwhere((red > 200) & (blue < 60)), np.argwhere((red < 60) & (blue < 60))


def gap_px(data: bytes) -> float:
    reds, blacks = reds_and_blacks(data)
    gaps = [np.abs(blacks - red).max(axis=1).min() for red in reds[:: max(1, len(reds) // 200)]]
    return float(np.quantile(gaps, 0.9))


def test_in_a_level_slice_a_shift_is_seen(cloud: np.ndarray, points: np.ndarray) -> None:
    right = horizontal_slice(cloud, points)
    wrong = horizontal_slice(cloud, points + np.array([0.08, 0.08, 0.0]))
    assert right.at_m == pytest.approx(1.0, abs=0.05)
    assert gap_px(right.png) <= 3
    assert gap_px(wrong.png) >= 6
    assert horizontal_slice(cloud, points, height_m=0.4).at_m == 0.4


def test_upright_slices_show_floor_and_ceiling(cloud: np.ndarray, points: np.ndarray) -> None:
    for made in vertical_slices(cloud, points):
        assert made.name.startswith("upright slice")
        _, blacks = reds_and_blacks(made.png)
        rows = np.bincount(blacks[:, 0])
        assert (rows > 100).sum() >= 2  # floor and ceiling are level lines


def test_residuals_are_distances(cloud: np.ndarray) -> None:
    off = residuals_m(cloud, np.array([cloud[0], cloud[0] * 0 + 50.0]))
    assert off[0] == 0
    assert off[1] == np.inf


def test_a_residual_map_is_green_where_it_fits_and_red_where_not(
    cloud: np.ndarray, points: np.ndarray
) -> None:
    def share_of_red(some: np.ndarray) -> float:
        picture = opened(residual_map(cloud, some, residuals_m(cloud, some)))[30:]
        blue, green, red = np.moveaxis(picture, -1, 0)
        coloured = blue < 60
        return float((coloured & (red > 150) & (green < 120)).sum() / coloured.sum())

    assert share_of_red(points) < 0.12
    assert share_of_red(points * (1, 1, 0) + (0, 0, 0.08)) > 0.5


def test_a_large_site_fits_on_the_sheet(cloud: np.ndarray, points: np.ndarray) -> None:
    made = horizontal_slice(cloud * 40, points * 40, height_m=40.0)
    assert max(opened(made.png).shape) < 1600


# --- the scan drawn into frames --------------------------------------------------------------


def test_bent_points_lie_where_walls_meet(cloud: np.ndarray) -> None:
    bent = bent_points(cloud)
    assert len(bent) > 200
    to_walls = np.sort(np.minimum(np.abs(bent), np.abs(bent - SIZE_M)), axis=1)
    assert np.quantile(to_walls[:, 1], 0.9) < 0.06  # near to two walls
    assert len(bent_points(cloud[:5])) == 0


def test_edges_agree_best_at_the_true_pose(plain: PaintedBox, cloud: np.ndarray) -> None:
    frames, bent = plain.walk(3), bent_points(cloud)
    right = edge_agreement(frames, cloud, bent)
    shift = np.array([0.06, 0.06, 0.03])
    wrong = edge_agreement(frames, cloud + shift, bent + shift)
    assert right.points > 100
    assert right.margin > 0.03
    assert wrong.margin < right.margin
    assert right.share > wrong.share + 0.1


def test_the_drawing_has_edges_and_colours(plain: PaintedBox, cloud: np.ndarray) -> None:
    frame = plain.walk(1)[0]
    colours = np.tile(np.array([0, 200, 0], np.uint8), (len(cloud), 1))
    picture = opened(drawn_into(frame, cloud, bent_points(cloud), colours))
    assert picture.shape == (480, 960, 3)
    orange = (picture[..., 2] > 250) & (picture[..., 0] < 10)
    assert orange[:, :480].sum() > 100
    assert not orange[:, 480:].any()
    assert (picture[:, 480:, 1] == 200).mean() > 0.1
    alone = opened(drawn_into(frame, cloud, bent_points(cloud)))
    assert alone.shape == (480, 480, 3)


def test_without_frames_or_edges_nothing_agrees(cloud: np.ndarray, plain: PaintedBox) -> None:
    none = edge_agreement([], cloud, cloud[:0])
    assert (none.share, none.points) == (0.0, 0)
    dark = PosedPicture("dark", np.zeros((480, 480), np.uint8), plain.walk(1)[0].lens, np.eye(4))
    assert edge_agreement([dark], cloud, bent_points(cloud)).share == 0.0
