"""A lens from a board: the true lens comes back, and pictures that do not tell it are refused."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from synorama.calibration.lens import calibrate_lens
from synorama.capture.config import load_rig
from synorama.cli import app
from synorama.errors import CalibrationRefusedError, UndecodableError, UsageError
from synorama.geometry.intrinsics import Board, BoardView, find_board, fit_lens, spread_views
from synorama.geometry.lenses import Lens, project, unproject

BOARD = Board()
SIZE_M = np.array([BOARD.columns, BOARD.rows]) * BOARD.square_m
FISHEYE = Lens("fisheye", 640, 480, np.array([330, 331, 322, 237, 0.03, -0.01, 0.002, -0.001]))
PINHOLE = Lens("pinhole", 640, 480, np.array([520, 522, 317, 243, -0.1, 0.02, 1e-3, -1e-3, 0]))


def held(seed: int, lens: Lens, lean_rad: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Return how a board is held: turn and shift into the camera, somewhere in the picture."""
    rng = np.random.default_rng([seed, 3])
    about = rng.uniform(0, 2 * np.pi)
    turn = Rotation.from_rotvec(lean_rad * np.array([np.cos(about), np.sin(about), 0])).as_matrix()
    spot = rng.uniform((0.1, 0.1), (0.9, 0.9)) * (lens.width, lens.height)
    ray, _ = unproject(lens, spot)
    return turn, ray * rng.uniform(0.3, 0.4) - turn @ np.array([*SIZE_M / 2, 0])


def corners(seed: int, lens: Lens, lean_rad: float = 0.6, noise_px: float = 0.1) -> BoardView:
    places = np.asarray(BOARD.opencv().getChessboardCorners(), np.float64)
    turn, shift = held(seed, lens, lean_rad)
    pixels, seen = project(lens, places @ turn.T + shift)
    pixels += np.random.default_rng(seed).normal(0, noise_px, pixels.shape)
    return BoardView(pixels[seen], places[seen])


def photograph(seed: int, lens: Lens) -> np.ndarray:
    """Return a picture of the board."""
    scale = 2000.0
    flat = BOARD.opencv().generateImage(tuple((SIZE_M * scale).astype(int)))
    turn, shift = held(seed, lens)
    x, y = np.meshgrid(np.arange(lens.width), np.arange(lens.height))
    rays, _ = unproject(lens, np.stack([x, y], axis=-1))
    reach = (turn[:, 2] @ shift) / (rays @ turn[:, 2])
    places = (rays * reach[..., np.newaxis] - shift) @ turn * scale - 0.5
    places[reach < 0] = -10
    seen = cv2.remap(
        flat, places[..., :2].astype(np.float32), None, cv2.INTER_AREA, borderValue=128
    )
    return np.asarray(cv2.GaussianBlur(seen, (0, 0), 0.7))


@pytest.mark.parametrize("lens", [FISHEYE, PINHOLE], ids=["fisheye", "pinhole"])
def test_the_true_lens_comes_back(lens: Lens) -> None:
    views = [corners(k, lens) for k in range(40)]
    fitted = fit_lens([v for v in views if len(v.pixels) >= 12], 640, 480)
    x, y = np.meshgrid(np.linspace(60, 580, 9), np.linspace(60, 420, 7))
    spots = np.stack([x, y], axis=-1)
    cosine = (unproject(lens, spots)[0] * unproject(fitted.lens, spots)[0]).sum(axis=-1)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 0.25
    assert fitted.rms_px < 0.3
    assert fitted.coverage > 0.8


def test_one_view_of_another_board_is_left_out() -> None:
    views = [corners(k, FISHEYE) for k in range(30)]
    views = [v for v in views if len(v.pixels) >= 12]
    wrong = corners(99, FISHEYE, noise_px=6.0)
    fitted = fit_lens([*views, wrong], 640, 480)
    assert fitted.views == len(views)
    assert fitted.rms_px < 0.3


def test_too_few_views_are_refused() -> None:
    with pytest.raises(CalibrationRefusedError, match="found in 3 pictures"):
        fit_lens([corners(k, FISHEYE) for k in range(3)], 640, 480)


def test_a_board_in_the_middle_only_is_refused() -> None:
    middle = [
        BoardView(0.3 * (v.pixels - 320) + 320, v.board_m)
        for v in (corners(k, PINHOLE) for k in range(20))
    ]
    with pytest.raises(CalibrationRefusedError, match=r"% of the picture only") as caught:
        fit_lens(middle, 640, 480)
    assert "corners" in caught.value.hint


def test_a_board_always_flat_on_is_refused() -> None:
    views = [corners(k, PINHOLE, lean_rad=0.03) for k in range(60)]
    with pytest.raises(CalibrationRefusedError, match="same slant"):
        fit_lens([v for v in views if len(v.pixels) >= 12], 640, 480)


def test_corners_that_fit_no_lens_are_refused() -> None:
    views = [corners(k, PINHOLE, noise_px=8.0) for k in range(40)]
    with pytest.raises(CalibrationRefusedError):
        fit_lens([v for v in views if len(v.pixels) >= 12], 640, 480)


def test_views_are_spread() -> None:
    views = [corners(k, PINHOLE) for k in range(30)]
    chosen = spread_views([*views[:5] * 10, *views], 20)
    assert len(chosen) == 20
    assert len({id(v) for v in chosen}) == 20


def test_corners_are_found_where_they_are_drawn() -> None:
    found = find_board(photograph(2, FISHEYE), BOARD)
    assert found is not None
    turn, shift = held(2, FISHEYE)
    drawn, _ = project(FISHEYE, found.board_m @ turn.T + shift)
    assert np.linalg.norm(found.pixels - drawn, axis=1).max() < 0.5
    assert find_board(np.full((480, 640), 128, np.uint8), BOARD) is None


@pytest.mark.parametrize("text", ["", "7x5", "7x5:40:50", "axb:1:2", "7x5:40:30:NONE", "2x2:40:30"])
def test_a_board_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Board.parse(text)


def test_a_board_is_written_as_it_is_read() -> None:
    assert Board.parse("7x5:40:30:4x4_50") == Board()


def test_the_command_keeps_the_lens_by_serial(tmp_path: Path) -> None:
    names = []
    for k in range(24):
        names.append(tmp_path / f"{k}.png")
        cv2.imwrite(str(names[-1]), photograph(k, FISHEYE))
    rig = tmp_path / "rig.toml"
    rig.write_text('# ours\n[[devices]]\nserial = "C1"\nname = "front"\n')
    options = [text for name in names for text in ("--intrinsics", str(name))]
    result = CliRunner().invoke(
        app, ["calibrate", *options, "--write", str(rig), "--serial", "C1", "--json"]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    device = load_rig(rig).by_serial("C1")
    assert device is not None
    assert device.intrinsics is not None
    assert told["lens"]["model"] == device.intrinsics.model
    assert device.name == "front"
    assert rig.read_text().startswith("# ours")
    lens = Lens(device.intrinsics.model, 640, 480, np.array(device.intrinsics.params))
    ray, _ = unproject(lens, [100.0, 100.0])
    true, _ = unproject(FISHEYE, [100.0, 100.0])
    assert np.degrees(np.arccos(min(1.0, float(ray @ true)))) < 0.6


def test_pictures_that_are_none_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    with pytest.raises(UndecodableError):
        calibrate_lens([broken], BOARD)
