"""Places of cameras: static and moving, lens known or fitted, refused where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synorama.geometry.cameras import (
    CameraPictures,
    LocatedCamera,
    locate_camera,
    locate_cameras,
    usual_lens,
)
from synorama.geometry.landmarks import LandmarkView
from synorama.geometry.lenses import unproject
from tests.geometry.painted_box import CAMERA, PaintedBox, apart, facing

MIRROR = (-1, 1, 1)
POSE = facing((0.4, 0.5, 1.9), 0.9, -0.25)
TIMES = np.arange(5, dtype=np.int64) * 10**9


@pytest.fixture(scope="module")
def landmarks(landmarks_in_room: tuple[LandmarkView, ...]) -> tuple[LandmarkView, ...]:
    return landmarks_in_room


@pytest.fixture(scope="module")
def still(box: PaintedBox) -> CameraPictures:
    pictures = [box.picture(CAMERA, POSE, k) for k in range(5)]
    for k, picture in enumerate(pictures):
        picture[100:300, 60 * k : 60 * k + 120] = 30  # somebody walks by
    usual = usual_lens("gopro", CAMERA.width, CAMERA.height)
    return CameraPictures("gopro-1", TIMES, pictures, usual, device="gopro")


@pytest.fixture(scope="module")
def fitted(still: CameraPictures, landmarks: tuple[LandmarkView, ...]) -> LocatedCamera:
    return locate_camera(still, landmarks)


def test_a_camera_whose_lens_is_not_known_is_found(fitted: LocatedCamera) -> None:
    pose = fitted.pose
    assert pose.status == "accepted", pose.reason
    assert pose.T_world_camera.shape == (1, 4, 4)
    assert pose.frames == 5
    deg, metres = apart(pose.T_world_camera[0], POSE, np.zeros(3))
    assert deg < 0.5
    assert np.linalg.norm(pose.T_world_camera[0, :3, 3] - POSE[:3, 3]) < 0.02
    assert pose.covariance is not None
    assert metres < 3 * np.sqrt(np.linalg.eigvalsh(pose.covariance[3:, 3:])[-1])


def test_its_lens_is_found_with_it(fitted: LocatedCamera) -> None:
    assert fitted.lens.width == CAMERA.width
    spots = np.array([[320.0, 180.0], [100.0, 60.0], [500.0, 300.0]])
    found, true = unproject(fitted.lens, spots)[0], unproject(CAMERA, spots)[0]
    between = np.arccos(np.clip(found @ found.T, -1, 1)) - np.arccos(np.clip(true @ true.T, -1, 1))
    assert np.degrees(np.abs(between)).max() < 0.6


def test_a_known_lens_makes_it_surer(
    still: CameraPictures, landmarks: tuple[LandmarkView, ...], fitted: LocatedCamera
) -> None:
    known = locate_camera(replace(still, lens=CAMERA, lens_known=True), landmarks)
    assert known.pose.status == "accepted", known.pose.reason
    deg, metres = apart(known.pose.T_world_camera[0], POSE, np.zeros(3))
    assert deg < 0.15
    assert metres < 0.01
    assert known.pose.covariance is not None
    assert fitted.pose.covariance is not None
    assert np.trace(known.pose.covariance) < np.trace(fitted.pose.covariance)


def test_a_lens_unlike_others_is_not_believed_unless_it_was_measured(
    box: PaintedBox, landmarks: tuple[LandmarkView, ...]
) -> None:
    """A lens bent to fit a wrong pose looks like one whose centre lies aside."""
    params = CAMERA.params.copy()
    params[2:4] += (28.0, -16.0)
    aside = replace(CAMERA, params=params)
    pictures = [box.picture(aside, POSE, k) for k in range(2)]
    usual = usual_lens("gopro", CAMERA.width, CAMERA.height)
    camera = CameraPictures("gopro-1", TIMES[:2], pictures, usual, device="gopro")
    guessed = locate_camera(camera, landmarks).pose
    assert guessed.status == "ambiguous", guessed.reason
    assert "calibrate" in guessed.reason
    measured = locate_camera(replace(camera, lens=aside, lens_known=True), landmarks).pose
    assert measured.status == "accepted", measured.reason


def test_a_camera_that_is_carried_has_a_pose_at_each_time(
    box: PaintedBox, landmarks: tuple[LandmarkView, ...]
) -> None:
    poses = [facing((0.4 + 0.25 * k, 0.5, 1.9), 0.9, -0.25) for k in range(3)]
    pictures = [box.picture(CAMERA, pose, k) for k, pose in enumerate(poses)]
    camera = CameraPictures("gopro-1", TIMES[:3], pictures, CAMERA, lens_known=True)
    found = locate_camera(camera, landmarks).pose
    assert found.status == "accepted", found.reason
    assert found.t_device_ns.tolist() == TIMES[:3].tolist()
    for one, true in zip(found.T_world_camera, poses, strict=True):
        assert np.linalg.norm(one[:3, 3] - true[:3, 3]) < 0.02


def test_a_camera_of_another_room_is_refused(
    still: CameraPictures, landmarks: tuple[LandmarkView, ...]
) -> None:
    other = PaintedBox(8)
    pictures = [other.picture(CAMERA, POSE, k) for k in range(2)]
    elsewhere = replace(
        still, pictures=pictures, t_device_ns=TIMES[:2], lens=CAMERA, lens_known=True
    )
    found = locate_camera(elsewhere, landmarks)
    assert found.pose.status == "refused"
    assert not len(found.pose.T_world_camera)
    assert found.pose.covariance is None
    assert found.pose.reason


def test_mirrored_landmarks_are_refused(
    still: CameraPictures, landmarks: tuple[LandmarkView, ...]
) -> None:
    mirrored = [
        replace(v, points_m=v.points_m * MIRROR, rays=v.rays * MIRROR, arms_m=v.arms_m * MIRROR)
        for v in landmarks
    ]
    known = replace(still, lens=CAMERA, lens_known=True)
    assert locate_camera(known, mirrored).pose.status != "accepted"


def test_a_blank_wall_is_refused(
    still: CameraPictures, landmarks: tuple[LandmarkView, ...]
) -> None:
    blank = replace(still, pictures=[np.full((360, 640), 90, np.uint8)] * 2, t_device_ns=TIMES[:2])
    assert locate_camera(blank, landmarks).pose.status == "refused"


def test_without_pictures_or_landmarks_it_is_refused_in_words(still: CameraPictures) -> None:
    none = replace(still, pictures=[], t_device_ns=TIMES[:0])
    told = locate_cameras([none, replace(still, recording="gopro-2")], [])
    assert set(told) == {"gopro-1", "gopro-2"}
    assert "no picture" in told["gopro-1"].pose.reason
    assert "no landmark" in told["gopro-2"].pose.reason


@pytest.mark.parametrize(
    ("device", "model"), [("gopro", "fisheye"), ("webcam", "pinhole"), ("x", "pinhole")]
)
def test_every_kind_of_camera_has_a_usual_lens(device: str, model: str) -> None:
    lens = usual_lens(device, 1280, 720)
    assert lens.model == model
    assert lens.centre_px.tolist() == [639.5, 359.5]
