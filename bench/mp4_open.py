"""What opening a 30-minute MP4 costs, against PyAV's open with its demux-free index.

    python -m bench.mp4_open [--minutes 30] [--file FILE] [--write]

Both take turns in one process, with everything imported and the file in the cache; the CPU
seconds' medians are compared. `open_recording` finds the reader, reads the time of every frame
and of the sound, and looks for problems; the peer reads every entry of every stream's index,
which holds decode times only.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np

from bench.measuring import Report, write_result
from synorama.capture import open_recording
from synorama.capture.container.mp4 import read_movie

FPS, RATE = 30, 48000
ROUNDS, LIMIT = 15, 2.0


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


def cpu_s(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--file", type=Path, help="an MP4 to use instead of making one")
    parser.add_argument("--write", action="store_true", help="write bench/results/mp4_open.md")
    asked = parser.parse_args()
    report = Report("Opening a long MP4")
    with tempfile.TemporaryDirectory() as folder:
        path = asked.file or Path(folder) / "long.mp4"
        if asked.file is None:
            make(path, asked.minutes)
        compare(report, path)
    if asked.write:
        write_result("mp4_open", report.text("python -m bench.mp4_open --write"))
    return report.exit_code


def compare(report: Report, path: Path) -> None:
    calls: dict[str, Callable[[Path], object]] = {
        "PyAV open and index entries": peer,
        "the index alone": read_movie,
        "open_recording": open_recording,
    }
    recording = open_recording(path)  # imports what it needs
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            spent[name].append(cpu_s(partial(call, path)))
    medians = {name: statistics.median(taken) for name, taken in spent.items()}
    base = medians["PyAV open and index entries"]
    report.bar("open_recording: CPU to PyAV's", medians["open_recording"] / base, LIMIT, "")
    counts = ", ".join(f"{t.name} {t.count}" for t in recording.tracks.values())
    rows = [
        [name, f"{1000 * median:.1f}", f"{1000 * min(spent[name]):.1f}", f"{median / base:.2f}"]
        for name, median in medians.items()
    ]
    head = ["", "CPU ms, median", "best", "to PyAV's"]
    report.note(f"{ROUNDS} rounds; {counts}", head, rows)


if __name__ == "__main__":
    raise SystemExit(main())
