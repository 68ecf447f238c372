"""A room that half a turn carries into itself, but for its floor or not even that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from synorama.geometry.features import described, detect
from synorama.geometry.landmarks import LandmarkView, from_cloud
from synorama.geometry.localize import Localization, locate_scan
from synorama.geometry.tell_apart import LEAST_LIKENESS, LEAST_SURE, Placed, likeness, preference
from synorama.geometry.views import PosedPicture, grey
from tests.geometry.painted_box import SIZE_M, PaintedBox, apart, posed

HALF_TURN = posed((SIZE_M[0], SIZE_M[1], 0.0), np.pi)


@dataclass(frozen=True)
class TwofoldBox(PaintedBox):
    """Opposite walls are painted alike; floor and ceiling alike from both ends, unless ``odd``."""

    odd: bool = True

    @cached_property
    def walls(self) -> list[np.ndarray]:
        plain = PaintedBox(self.seed).walls
        for low in (0, 2):
            plain[low + 1] = plain[low][:, ::-1].copy()
        for flat in (4, 5) if not self.odd else (5,):
            half = len(plain[flat]) // 2
            plain[flat][half:] = plain[flat][:half][::-1, ::-1]
        return plain


@dataclass(frozen=True)
class _Told:
    landmarks: tuple[LandmarkView, ...]
    frames: list[PosedPicture]
    found: Localization


def _told(box: TwofoldBox) -> _Told:
    landmarks, frames = from_cloud(box.panoramas(np.eye(4)), box.cloud()), box.walk()
    return _Told(landmarks, frames, locate_scan(frames, landmarks))


@pytest.fixture(scope="module")
def odd() -> _Told:
    return _told(TwofoldBox(5))


@pytest.fixture(scope="module")
def even() -> _Told:
    return _told(TwofoldBox(5, odd=False))


def _preferred(told: _Told, first: np.ndarray, second: np.ndarray) -> float:
    one, two = (
        [Placed(f.lens, np.linalg.inv(f.pose) @ world_scan) for f in told.frames]
        for world_scan in (first, second)
    )
    return preference([grey(f.pixels) for f in told.frames], one, two, told.landmarks)


def test_a_floor_tells_the_ends_of_a_room_apart(odd: _Told) -> None:
    result = odd.found.result
    assert result.status == "accepted", result.reason
    assert result.T_target_source is not None
    deg, metres = apart(result.T_target_source.matrix, np.eye(4), SIZE_M / 2)
    assert deg < 0.2
    assert metres < 0.01


def test_where_nothing_tells_them_apart_nothing_is_accepted(even: _Told) -> None:
    assert even.found.result.status == "ambiguous", even.found.result.reason
    assert even.found.result.runner_up_ratio > 0.8
    assert "sigmas" in even.found.result.reason


def test_a_wall_that_two_rooms_share_does_not_make_them_one(odd: _Told) -> None:
    told = locate_scan(_SharedWall(8).walk(), odd.landmarks)
    assert told.votes > 30
    assert told.result.status == "refused", told.result.reason
    assert told.likeness < LEAST_LIKENESS < odd.found.likeness - 0.1


@dataclass(frozen=True)
class _SharedWall(PaintedBox):
    """Another room, with one wall of that of the tests."""

    @cached_property
    def walls(self) -> list[np.ndarray]:
        return [TwofoldBox(5).walls[0], *PaintedBox(self.seed).walls[1:]]


def test_the_true_place_is_preferred_from_either_side(odd: _Told) -> None:
    assert _preferred(odd, np.eye(4), HALF_TURN) > LEAST_SURE
    assert _preferred(odd, HALF_TURN, np.eye(4)) < -LEAST_SURE


def test_neither_end_of_an_even_room_is_preferred(even: _Told) -> None:
    assert abs(_preferred(even, np.eye(4), HALF_TURN)) < LEAST_SURE


def test_without_pictures_or_landmarks_in_sight_there_is_no_preference(odd: _Told) -> None:
    away = posed((0.0, 0.0, 90.0), 0.0)
    assert _preferred(odd, np.eye(4), away) == 0.0
    nowhere = [Placed(f.lens, np.linalg.inv(f.pose) @ away) for f in odd.frames]
    assert likeness([grey(f.pixels) for f in odd.frames], nowhere, odd.landmarks) == 0.0


def test_a_picture_looks_at_a_feature_as_when_it_was_detected() -> None:
    picture = TwofoldBox(6).walls[0].astype(np.uint8)
    found = detect(picture, 300)
    again = described(picture, found.pixels, found.rims)
    alike = (again * found.descriptors).sum(axis=1)
    assert np.quantile(alike, 0.1) > 0.9


def test_a_feature_is_known_again_in_a_picture_that_is_turned() -> None:
    """Pixel and rim turn with the picture; a direction that is told mirrored does not."""
    picture = TwofoldBox(6).walls[0].astype(np.uint8)
    found = detect(picture, 300)
    width = picture.shape[1]
    spots = [np.stack([p[:, 1], width - 1 - p[:, 0]], axis=1) for p in (found.pixels, found.rims)]
    alike = (described(np.rot90(picture).copy(), *spots) * found.descriptors).sum(axis=1)
    assert np.quantile(alike, 0.2) > 0.9
