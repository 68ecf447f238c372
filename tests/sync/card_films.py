"""Films of the clock card, as cameras with known clocks take them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from synorama.simulate.clock_card import Camera, Screen, paste

Picture = NDArray[np.uint8]
Float64 = NDArray[np.float64]


VGA = Camera(640, 480)


@dataclass(frozen=True)
class Filming:
    """A camera whose frame at media time t is taken at true time ``start_s + (1 + ppm) t``."""

    start_s: float
    ppm: float = 0.0
    fps: float = 24.0
    seconds: float = 14.0
    card_px: float = 5.0  # of a module
    shown_s: tuple[tuple[float, float], ...] = ((1.0, 3.5), (10.5, 13.0))  # true times
    camera: Camera = VGA

    def true_ns(self, media_ns: float) -> float:
        return self.start_s * 1e9 + media_ns * (1 + self.ppm * 1e-6)


def background(seed: int, camera: Camera) -> Picture:
    rng = np.random.default_rng(seed)
    rough = cv2.GaussianBlur(rng.random((camera.height_px, camera.width_px)), (0, 0), 4)
    return np.asarray(60 + 120 * (rough - rough.min()) / np.ptp(rough), np.uint8)


def pose(seed: int, camera: Camera, module_px: float, *, row: float = 0.5) -> Float64:
    """Return a homography that puts the row of cells at this height, turned and tilted a bit."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-0.3, 0.3)
    c, s = module_px * np.cos(turn), module_px * np.sin(turn)
    tilt = rng.uniform(-1, 1, 2) * 1e-3
    turned = np.array([[c, -s, 0], [s, c, 0], [tilt[0], tilt[1], 1]])
    cells = turned @ np.array([16.5, 31.0, 1])
    middle = cells[:2] / cells[2]
    to = np.array([camera.width_px / 2, camera.height_px * row])
    shift = np.eye(3)
    shift[:2, 2] = to - middle
    return np.asarray(shift @ turned)


def film(path: Path, filming: Filming, screen: Screen, *, seed: int = 0) -> Path:
    """Write an MP4 in which the card is held before the camera at the stated true times."""
    rng = np.random.default_rng(seed)
    empty = background(seed, filming.camera)
    place = pose(seed, filming.camera, filming.card_px)
    with av.open(str(path), "w") as out:
        base = Fraction(1, 90_000)
        stream = out.add_stream("libx264", rate=Fraction(filming.fps).limit_denominator(1001))
        stream.width, stream.height = filming.camera.width_px, filming.camera.height_px
        stream.pix_fmt, stream.time_base = "yuv420p", base
        stream.options = {"crf": "20", "preset": "ultrafast", "g": "24"}
        for k in range(int(filming.seconds * filming.fps)):
            pts = round(k * 90_000 / filming.fps)
            true_ns = filming.true_ns(pts / 90_000 * 1e9)
            shown = any(a <= true_ns / 1e9 <= b for a, b in filming.shown_s)
            picture = paste(empty, screen, filming.camera, place, true_ns, rng) if shown else empty
            frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = pts, base
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path
