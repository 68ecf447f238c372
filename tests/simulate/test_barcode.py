"""A frame keeps its number through every codec that a session may meet."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO
from typing import Any

import av
import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.simulate.formats import barcode
from synorama.simulate.formats.barcode import MAX_FRAMES, Stamp
from synorama.simulate.formats.jpeg import StampedJpeg
from synorama.simulate.formats.pictures import textures
from synorama.simulate.formats.video import Scene

frames = st.integers(0, MAX_FRAMES - 1)
cameras = st.integers(0, 15)


@given(frames, cameras, st.integers(34, 1500), st.integers(32, 1500), st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_drawn_is_read(frame: int, camera: int, h: int, w: int, colour: bool) -> None:
    picture = np.full((h, w, 3) if colour else (h, w), 99, np.uint8)
    barcode.draw(picture, frame, camera)
    assert barcode.read(picture) == Stamp(frame, camera)


@given(frames, cameras, st.integers(0, 31))
def test_one_wrong_cell_is_noticed(frame: int, camera: int, cell: int) -> None:
    picture = np.zeros((64, 64), np.uint8)
    barcode.draw(picture, frame, camera)
    row, column = divmod(cell, 16)
    spot = picture[row * 8 : row * 8 + 8, column * 4 : column * 4 + 4]
    spot[:] = 255 - spot
    assert barcode.read(picture) is None


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_flat_picture_has_no_barcode(level: int) -> None:
    assert barcode.read(np.full((128, 128), level, np.uint8)) is None


@pytest.mark.parametrize(("frame", "camera"), [(-1, 0), (MAX_FRAMES, 0), (0, 16)])
def test_numbers_that_do_not_fit_are_refused(frame: int, camera: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        barcode.strip(frame, camera, 64, 64)


@pytest.mark.parametrize("quality", [30, 80, 95])
@pytest.mark.parametrize("shape", [(128, 128, 3), (96, 128), (48, 128), (1408, 1408, 3)])
def test_a_stamped_jpeg_is_the_jpeg_of_the_stamped_picture(
    shape: tuple[int, ...], quality: int
) -> None:
    (picture,) = textures(np.random.default_rng(1), 1, shape[0], shape[1], colour=len(shape) == 3)
    stamped = StampedJpeg(picture, quality)
    for frame in (0, 7, 77_777):
        decoded = _decode_jpeg(stamped.encode(frame, 5))
        drawn = picture.copy()
        barcode.draw(drawn, frame, 5)
        coded = cv2.imencode(
            ".jpg",
            drawn,
            [
                cv2.IMWRITE_JPEG_QUALITY,
                quality,
                cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
                cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
            ],
        )[1]
        assert barcode.read(decoded) == Stamp(frame, 5)
        assert np.array_equal(decoded, _decode_jpeg(coded.tobytes()))


def test_a_picture_narrower_than_its_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="no multiple of 16"):
        StampedJpeg(np.zeros((64, 120, 3), np.uint8), 80)


@pytest.mark.parametrize(
    ("codec", "container", "options"),
    [
        ("libx264", "mp4", {"crf": "35", "preset": "ultrafast", "threads": "1"}),
        ("libvpx", "webm", {"deadline": "realtime", "cpu-used": "8", "threads": "1"}),
        ("libx265", "mp4", {"x265-params": "log-level=none:pools=1", "preset": "ultrafast"}),
    ],
)
def test_every_frame_is_known_after_video_codecs(
    codec: str, container: str, options: dict[str, str]
) -> None:
    scene = Scene(np.random.default_rng(2), 96, 160, camera=9)
    buffer = BytesIO()
    with av.open(buffer, "w", format=container) as out:
        stream: Any = out.add_stream(codec, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 160, 96, "yuv420p", 60_000
        for k in range(40):
            out.mux(stream.encode(scene.frame(1000 + k, Fraction(1, 30), k)))
        out.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer) as container_in:
        decoded = [f.to_ndarray(format="rgb24") for f in container_in.decode(video=0)]
    assert [barcode.read(p) for p in decoded] == [Stamp(1000 + k, 9) for k in range(40)]


def _decode_jpeg(data: bytes) -> Any:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
