"""Decoded frames of sound of any number of channels and any form become the same numbers."""

from __future__ import annotations

import av
import numpy as np
import pytest

from synorama.media.audio_container import PLANAR, to_float

SAMPLES = 960


@pytest.mark.parametrize("channels", [1, 2, 7, 8, 9, 16, 24])
@pytest.mark.parametrize("form", sorted(PLANAR))
def test_planar_frames(form: str, channels: int) -> None:
    frame = av.AudioFrame(format=form, layout=f"{channels} channels", samples=SAMPLES)
    wanted = _values(channels, form)
    for k in range(channels):
        plane = frame.planes[k]
        padded = np.zeros(plane.buffer_size, np.uint8)
        padded[: wanted[k].nbytes] = np.frombuffer(wanted[k].tobytes(), np.uint8)
        plane.update(padded.tobytes())
    assert np.array_equal(to_float(frame), _scaled(wanted).T)


@pytest.mark.parametrize("channels", [1, 2, 8, 16])
@pytest.mark.parametrize("form", ["s16", "s32", "flt"])
def test_packed_frames(form: str, channels: int) -> None:
    wanted = _values(channels, form + "p")
    packed = np.ascontiguousarray(wanted.T).reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(packed, format=form, layout=f"{channels} channels")
    assert np.array_equal(to_float(frame), _scaled(wanted).T)


def _values(channels: int, form: str) -> np.ndarray:
    kind = np.dtype(PLANAR[form])
    noise = np.random.default_rng(channels).uniform(-1, 1, (channels, SAMPLES))
    if kind.kind == "f":
        return noise.astype(kind)
    middle = 128 if kind.kind == "u" else 0
    return (noise * (2.0 ** (8 * kind.itemsize - 1) - 1024 * (kind.itemsize > 1)) + middle).astype(
        kind
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "u":
        values = (values.astype(np.float32) - 128) / 128
    elif values.dtype.kind == "i":
        values = values / np.float32(2 ** (8 * values.dtype.itemsize - 1))
    return values.astype(np.float32)
