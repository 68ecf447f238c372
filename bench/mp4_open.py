"""What opening a 30-minute MP4 costs, against PyAV's open with its demux-free index.

Run ``python bench/mp4_open.py``. Prints CPU seconds (best of several) and the ratio, which is to
stay at or below 2.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from synorama.capture.container.mp4 import read_movie
from synorama.capture.webcam import READER

FPS, RATE = 30, 48000


def make(path: Path, minutes: float) -> None:
    """Write 64x64 H.264 with B-frames and AAC."""
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=FPS, options={"preset": "veryfast", "g": "60"})
        video.width = video.height = 64
        video.pix_fmt = "yuv420p"
        audio = out.add_stream("aac", rate=RATE, layout="stereo")
        rng = np.random.default_rng(0)
        pictures = rng.integers(0, 255, (16, 64, 64, 3), np.uint8)
        sound = rng.normal(0, 3000, (2, RATE // FPS)).astype(np.int16).astype(np.float32) / 32768
        for k in range(round(minutes * 60 * FPS)):
            picture = av.VideoFrame.from_ndarray(pictures[k % 16], format="rgb24")
            picture.pts, picture.time_base = k, Fraction(1, FPS)
            out.mux(video.encode(picture))
            block = av.AudioFrame.from_ndarray(sound, format="fltp", layout="stereo")
            block.sample_rate, block.pts = RATE, k * (RATE // FPS)
            block.time_base = Fraction(1, RATE)
            out.mux(audio.encode(block))
        out.mux(video.encode(None))
        out.mux(audio.encode(None))


def peer(path: Path) -> int:
    """Open with PyAV and read every entry of every stream's index: decode times only."""
    with av.open(str(path)) as container:
        return sum(len([e.timestamp for e in s.index_entries]) for s in container.streams)


def cpu_s(call: Callable[[], object], times: int = 5) -> float:
    spent = []
    for _ in range(times):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--file", type=Path, help="an MP4 to use instead of making one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.file or Path(folder) / "long.mp4"
        if given.file is None:
            make(path, given.minutes)
        theirs = cpu_s(lambda: peer(path))
        index = cpu_s(lambda: read_movie(path))
        ours = cpu_s(lambda: READER.open(path))
        recording = READER.open(path)
    counts = {track.name: track.count for track in recording.tracks.values()}
    print(f"{path.name}: {counts}")
    print(f"PyAV open + index_entries   {theirs:.3f} s CPU")
    print(f"read_movie                  {index:.3f} s CPU, ratio {index / theirs:.2f}")
    print(f"open (all times, sound)     {ours:.3f} s CPU, ratio {ours / theirs:.2f} (limit 2)")


if __name__ == "__main__":
    main()
