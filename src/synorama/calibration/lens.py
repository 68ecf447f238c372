"""A camera's lens, from recordings or pictures of a ChArUco board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture import open_recording
from synorama.errors import CalibrationRefusedError, InputNotFoundError, UndecodableError
from synorama.geometry.intrinsics import Board, BoardView, FittedLens, find_board, fit_lens
from synorama.geometry.views import grey
from synorama.media.video import VideoDecoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

__all__ = ["CameraLens", "calibrate_lens"]

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff")
FRAMES = 150  # of a recording that are looked at
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CameraLens:
    """What was measured of one camera.

    Parameters
    ----------
    files
        What it was measured on.
    serial, model
        The camera, as far as its files tell.
    fitted
        The lens and how well it is known.
    looked_at
        How many pictures were looked at.
    """

    files: tuple[str, ...]
    serial: str
    model: str
    fitted: FittedLens
    looked_at: int

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        lens = self.fitted.lens
        return {
            "files": list(self.files),
            "serial": self.serial,
            "model": self.model,
            "lens": {
                "model": lens.model,
                "width": lens.width,
                "height": lens.height,
                "params": lens.params.tolist(),
            },
            "rms_px": self.fitted.rms_px,
            "other_rms_px": self.fitted.other_rms_px,
            "coverage": self.fitted.coverage,
            "views": self.fitted.views,
            "looked_at": self.looked_at,
        }


def calibrate_lens(
    paths: Sequence[Path], board: Board, *, progress: Progress = lambda done, total: None
) -> CameraLens:
    """Measure the lens of the camera that recorded a board.

    Parameters
    ----------
    paths
        Recordings, of which frames from all over are looked at, or pictures; all of one camera.
    board
        What was filmed.
    progress
        Called as ``progress(done, total)``.

    Raises
    ------
    InputError
        A file cannot be read.
    CalibrationRefusedError
        The pictures are of different sizes, or no lens can be told from them.
    """
    views: list[BoardView] = []
    sizes: set[tuple[int, int]] = set()
    serial, model, looked_at = "", "", 0
    for done, path in enumerate(paths):
        progress(done, len(paths))
        serial, model = _camera_of(path) or (serial, model)
        for picture in _pictures(path):
            looked_at += 1
            sizes.add((picture.shape[1], picture.shape[0]))
            found = find_board(grey(picture), board)
            views += [found] if found else []
    width, height = _only_size(sizes)
    fitted = fit_lens(views, width, height)
    return CameraLens(tuple(map(str, paths)), serial, model, fitted, looked_at)


def _only_size(sizes: set[tuple[int, int]]) -> tuple[int, int]:
    if len(sizes) != 1:
        told = ", ".join(f"{w}x{h}" for w, h in sorted(sizes)) or "none at all"
        raise CalibrationRefusedError(
            f"the pictures must be of one size, found {told}",
            hint="give files of one camera in one setting",
        )
    return sizes.pop()


def _camera_of(path: Path) -> tuple[str, str] | None:
    if path.suffix.lower() in PICTURES:
        return None
    recording = open_recording(path)
    return recording.serial, recording.model


def _pictures(path: Path) -> Iterator[Picture]:
    if path.suffix.lower() in PICTURES:
        yield _picture(path)
        return
    recording = open_recording(path)
    track = max(recording.videos, key=lambda t: t.width * t.height, default=None)
    if track is None or not track.count:
        return
    with VideoDecoder([f.path for f in recording.files], track) as decoder:
        for k in np.unique(np.linspace(0, track.count - 1, FRAMES).astype(int)):
            yield decoder.frame(int(k))


def _picture(path: Path) -> Picture:
    import cv2

    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except FileNotFoundError as error:
        raise InputNotFoundError("there is no such file", path=path) from error
    found = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if len(data) else None
    if found is None:
        raise UndecodableError("it is no picture that can be decoded", path=path)
    return np.asarray(found, np.uint8)
