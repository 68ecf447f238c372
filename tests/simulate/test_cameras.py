"""Camera models against those of the vendor and of OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.simulate.scene.cameras import Camera, Fisheye624, KannalaBrandt, Lens, Pinhole

ARIA = [
    1220.0, 1439.5, 1439.5, -0.026, 0.101, -0.071, 0.012, 0.002, -0.0004,
    0.0017, -0.0016, -0.0012, 4e-5, 0.0023, -2e-5,
]  # fmt: skip
GOPRO = KannalaBrandt((550.0, 560.0), (320.0, 240.0), (0.041, -0.037, 0.011, -0.002), 1.2)
WEBCAM = Pinhole((550.0, 560.0), (320.0, 240.0), (-0.2, 0.05, 0.001, -0.002, 0.01))
LENSES: list[Lens] = [Fisheye624.of(ARIA).scaled(640 / 2880), GOPRO, WEBCAM]


def _directions(count: int, most_rad: float) -> np.ndarray:
    rng = np.random.default_rng(4)
    angle, around = rng.uniform(0, most_rad, count), rng.uniform(0, 2 * np.pi, count)
    flat = np.sin(angle) * np.array([np.cos(around), np.sin(around)])
    return np.column_stack([*flat, np.cos(angle)]) * rng.uniform(0.3, 9.0, (count, 1))


def test_fisheye624_agrees_with_vendor() -> None:
    calibration = pytest.importorskip("projectaria_tools.core.calibration")
    sophus = pytest.importorskip("projectaria_tools.core.sophus")
    vendor = calibration.CameraCalibration(
        "camera-rgb", calibration.CameraModelType.FISHEYE624, np.array(ARIA), sophus.SE3(),
        2880, 2880, None, 1.3, "",
    )  # fmt: skip
    lens = Fisheye624.of(ARIA)
    points = _directions(500, 1.25)
    mine, seen = lens.project(points)
    theirs = np.array([vendor.project_no_checks(p) for p in points])
    assert seen.all()
    assert np.abs(mine - theirs).max() < 1e-6
    rays, _ = lens.unproject(theirs)
    back = np.array([vendor.unproject_no_checks(p) for p in theirs])
    assert np.abs(rays - back / np.linalg.norm(back, axis=1, keepdims=True)).max() < 1e-9


def test_kannala_brandt_agrees_with_opencv() -> None:
    points = _directions(300, 1.15)
    matrix = np.array([[550.0, 0, 320], [0, 560, 240], [0, 0, 1]])
    theirs, _ = cv2.fisheye.projectPoints(
        points[:, np.newaxis], np.zeros(3), np.zeros(3), matrix, np.array(GOPRO.radial)
    )
    assert np.abs(GOPRO.project(points)[0] - theirs[:, 0]).max() < 1e-9


def test_pinhole_agrees_with_opencv() -> None:
    points = _directions(300, 0.6)
    matrix = np.array([[550.0, 0, 320], [0, 560, 240], [0, 0, 1]])
    theirs, _ = cv2.projectPoints(
        points, np.zeros(3), np.zeros(3), matrix, np.array(WEBCAM.distortion)
    )
    assert np.abs(WEBCAM.project(points)[0] - theirs[:, 0]).max() < 1e-9


@settings(max_examples=60, deadline=None)
@given(
    which=st.integers(0, 2),
    x=st.floats(0.2, 0.8, allow_nan=False),
    y=st.floats(0.2, 0.8, allow_nan=False),
)
def test_there_and_back(which: int, x: float, y: float) -> None:
    lens, pixel = LENSES[which], np.array([640 * x, 480 * y])
    rays, seen = lens.unproject(pixel)
    assert seen.all()
    assert np.linalg.norm(rays) == pytest.approx(1.0, abs=1e-12)
    assert np.abs(lens.project(3.7 * rays)[0] - pixel).max() < 1e-8


@pytest.mark.parametrize("which", [0, 1, 2])
def test_scaled_picture_keeps_the_edges(which: int) -> None:
    """The corner of the first pixel lies at -0.5 in pictures of every size."""
    lens = LENSES[which]
    points = _directions(50, 0.6)
    whole, _ = lens.project(points)
    half, _ = lens.scaled(0.25).project(points)
    assert np.abs((half + 0.5) - (whole + 0.5) * 0.25).max() < 1e-9


def test_outside_the_field_of_view() -> None:
    lens = Fisheye624.of(ARIA, 1.0)
    _, seen = lens.project([[0.0, 0.0, 1.0], [1.0, 0.0, 0.1], [0.0, 0.0, -1.0]])
    assert seen.tolist() == [True, False, False]
    assert not lens.unproject(np.array([0.0, 0.0]))[1]
    assert not WEBCAM.project([0.0, 0.0, -1.0])[1]


def test_rays_and_rows() -> None:
    camera = Camera("x", WEBCAM, 640, 480, readout_s=0.016)
    rays = camera.rays
    assert rays.directions.shape == (480, 640, 3)
    assert np.abs(rays.directions[240, 320] - (0, 0, 1)).max() < 1e-6
    assert rays.pixel_rad == pytest.approx(1 / 550, rel=0.01)
    delay = camera.row_delay_s(np.array([0, 479]))
    assert delay.tolist() == [-0.008, 0.008]
