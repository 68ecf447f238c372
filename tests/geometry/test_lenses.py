"""Lenses against the vendor's library and OpenCV, and there and back for any numbers."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synorama.errors import CorruptFileError
from synorama.geometry.lenses import Lens, lens_of_aria, panorama, project, unproject
from synorama.simulate.devices.aria import FULL, calibration

RGB = np.array([
    1220.0, 1461.1, 1447.1, 0.411, -0.4565, 0.0383, 1.2983, -1.7705, 0.655, -7.9e-5, 4.4e-5,
    -5.9e-4, 5.6e-4, 5.2e-4, 2.4e-4,
])  # fmt: skip
FISHEYE = Lens("fisheye", 1920, 1080, np.array([950, 945, 961, 538, 0.03, -0.01, 0.002, -0.001]))
PINHOLE = Lens(
    "pinhole", 1280, 720, np.array([900, 905, 640, 362, -0.12, 0.03, 1e-3, -8e-4, 0.002])
)
ARIA = Lens("fisheye624", 2880, 2880, RGB, 1.0)
ROUND = panorama(2048, 1024)


def points(count: int, widest_rad: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle, about = rng.uniform(0, widest_rad, count), rng.uniform(0, 2 * np.pi, count)
    rays = np.stack(
        [np.sin(angle) * np.cos(about), np.sin(angle) * np.sin(about), np.cos(angle)], axis=1
    )
    return rays * rng.uniform(0.3, 9.0, (count, 1))


def test_fisheye_and_pinhole_draw_as_opencv_does() -> None:
    some = points(200, 0.6)
    zero = np.zeros(3)
    for lens, draw in ((FISHEYE, cv2.fisheye.projectPoints), (PINHOLE, None)):
        fx, fy, cx, cy, *bends = lens.params
        matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])
        if draw is not None:
            theirs = draw(some[:, np.newaxis], zero, zero, matrix, np.array(bends))[0]
        else:
            theirs = cv2.projectPoints(some[:, np.newaxis], zero, zero, matrix, np.array(bends))[0]
        np.testing.assert_allclose(project(lens, some)[0], theirs[:, 0], atol=1e-6)


def test_the_glasses_lens_draws_as_the_vendors_library_does() -> None:
    calib = pytest.importorskip("projectaria_tools.core.calibration")
    sophus = pytest.importorskip("projectaria_tools.core.sophus")
    theirs = calib.CameraCalibration(
        "camera-rgb", calib.CameraModelType.FISHEYE624, RGB, sophus.SE3(), 2880, 2880, None,
        1.3, "",
    )  # fmt: skip
    some = points(100, 0.9)
    for point, pixel in zip(some, project(ARIA, some)[0], strict=True):
        np.testing.assert_allclose(pixel, theirs.project_no_checks(point), atol=1e-6)


def test_the_glasses_calibration_is_cut_and_halved_as_the_vendors_library_does() -> None:
    calib = pytest.importorskip("projectaria_tools.core.calibration")
    text = calibration("1WM00000000S00", FULL)
    whole = calib.device_calibration_from_json_string(text)
    some = points(60, 0.8, seed=3)
    for camera in json.loads(text)["CameraCalibrations"]:
        label = camera["Label"]
        if not label.startswith(("camera-rgb", "camera-slam")):
            continue
        size = (1408, 1408) if label == "camera-rgb" else (640, 480)
        theirs = whole.get_camera_calib(label)
        if label == "camera-rgb":
            theirs = theirs.rescale(np.array(size), 0.5, np.array([32, 32]))
        lens = lens_of_aria(camera, size)
        for point, pixel in zip(some, project(lens, some)[0], strict=True):
            np.testing.assert_allclose(pixel, theirs.project_no_checks(point), atol=1e-4)


def test_a_real_online_calibration_gives_lenses(shared_data: Path) -> None:
    folder = shared_data / "2_mps/projectaria_tools/gen1/mps_sample/trajectory"
    line = (folder / "online_calibration.jsonl").read_text().splitlines()[0]
    for camera in json.loads(line)["CameraCalibrations"]:
        size = (1408, 1408) if camera["Label"] == "camera-rgb" else (640, 480)
        lens = lens_of_aria(camera, size)
        middle, seen = project(lens, [0.0, 0.0, 1.0])
        assert seen
        assert np.abs(middle - np.array(size) / 2).max() < 30


def test_an_unknown_model_is_refused_by_name() -> None:
    camera = {"Label": "camera-rgb", "Projection": {"Name": "Other", "Params": [1.0]}}
    with pytest.raises(CorruptFileError, match="Other"):
        lens_of_aria(camera, (1408, 1408))
    with pytest.raises(CorruptFileError, match="not complete"):
        lens_of_aria({"Label": "camera-rgb"}, (1408, 1408))


@pytest.mark.parametrize("lens", [ARIA, FISHEYE, PINHOLE], ids=lambda lens: str(lens.model))
def test_there_and_back(lens: Lens) -> None:
    some = points(500, 0.95 if lens is ARIA else 0.65, seed=1)
    pixels, seen = project(lens, some)
    rays, known = unproject(lens, pixels)
    assert known[seen].all()
    whole = some / np.linalg.norm(some, axis=1, keepdims=True)
    np.testing.assert_allclose(rays[seen], whole[seen], atol=1e-9)


@example(0.375, (0.0, -0.015625, -0.015625, -0.015625), 0)  # turns back at 1.17 rad
@settings(max_examples=40, deadline=None)
@given(st.floats(0.35, 1.2), st.tuples(*[st.floats(-0.02, 0.02)] * 4), st.integers(0, 2**16))
def test_any_fisheye_there_and_back(focal: float, bends: tuple[float, ...], seed: int) -> None:
    params = np.array([focal * 1920, focal * 1920, 959.5, 539.5, *bends])
    lens = Lens("fisheye", 1920, 1080, params)
    some = points(50, 1.2, seed)
    pixels, seen = project(lens, some)
    rays, _ = unproject(lens, pixels[seen])
    cosine = (rays * some[seen]).sum(axis=1) / np.linalg.norm(some[seen], axis=1)
    assert np.all(cosine > 1 - 1e-9)


def test_a_panorama_looks_ahead_in_its_middle_and_left_to_the_left() -> None:
    ahead, left, up = project(ROUND, np.eye(3))[0]
    np.testing.assert_allclose(ahead, [1023.5, 511.5])
    np.testing.assert_allclose(left, [511.5, 511.5])
    assert up[1] == pytest.approx(-0.5)
    rays, seen = unproject(ROUND, [[1023.5, 511.5], [5000.0, 0.0]])
    np.testing.assert_allclose(rays[0], [1, 0, 0], atol=1e-12)
    assert seen.tolist() == [True, False]


@pytest.mark.parametrize("lens", [ARIA, FISHEYE, PINHOLE, ROUND], ids=lambda x: str(x.model))
def test_a_resized_picture_shows_the_same_places(lens: Lens) -> None:
    some = points(50, 0.5)
    large, small = project(lens, some)[0], project(lens.resized(0.25), some)[0]
    np.testing.assert_allclose((large + 0.5) * 0.25 - 0.5, small, atol=1e-9)


def test_what_lies_behind_is_not_on_the_picture() -> None:
    assert not project(PINHOLE, [0.1, 0.1, -2.0])[1]
    assert not project(FISHEYE, [0.1, 0.1, -2.0])[1]
    assert not project(PINHOLE, [0.0, 0.0, 0.0])[1]


def test_a_lens_of_too_few_numbers_is_no_lens() -> None:
    with pytest.raises(ValueError, match="numbers"):
        Lens("pinhole", 10, 10, np.zeros(4))
