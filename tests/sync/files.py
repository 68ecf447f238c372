"""Sounds as files, for tests of what the command line reads."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly

from synorama.alignment import AlignedFile, align_files

Int16 = NDArray[np.int16]


def mp4(path: Path, sound: Int16, *, first_s: float = 0.0, pictures: bool = True) -> None:
    """Write AAC at 48 kHz whose first sample is at ``first_s``, beside pictures from zero on."""
    wide = resample_poly(sound.astype(np.float64) / 32768, 3, 1).astype(np.float32)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=25) if pictures else None
        stream = container.add_stream("aac", rate=48_000)
        stream.layout = "mono"
        if video is not None:
            video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
            for k in range(50):
                grey = np.full((64, 64, 3), 4 * k, np.uint8)
                frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
                frame.pts = k
                container.mux(video.encode(frame))
            container.mux(video.encode(None))
        for k in range(0, len(wide), 1024):
            part = np.ascontiguousarray(wide[None, k : k + 1024])
            block = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
            block.sample_rate, block.pts = 48_000, k + round(first_s * 48_000)
            container.mux(stream.encode(block))
        container.mux(stream.encode(None))


def one(reference: Path, other: Path) -> AlignedFile:
    """Align two files."""
    (result,) = align_files([reference, other]).results
    return result


def knots(result: AlignedFile) -> NDArray[np.float64]:
    """Return ``[t_file_s, t_reference_s]`` of a result."""
    return np.array(result.knots_s())


def check(
    result: AlignedFile, offset_s: float, ppm: float = 0.0, *, within_ms: float = 0.06
) -> None:
    """Hold knots, offset and drift to the truth."""
    assert result.accepted, result.reason
    table = knots(result)
    truth = offset_s + (1 + ppm * 1e-6) * table[:, 0]
    assert np.abs(table[:, 1] - truth).max() * 1e3 < within_ms
    assert result.line is not None
    line = result.line[0] + (1 + result.line[1] * 1e-6) * table[:, 0]
    assert np.abs(line - truth).max() * 1e3 < within_ms
    assert result.interval95_ms is not None
    assert result.interval95_ms > 8 / 0.343
