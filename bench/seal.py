"""Sealing against a plain copy of the same bytes, and the size of the tables.

Makes a session of two full-size glasses (SECONDS long; 13.5 MB/s of incompressible media each),
writes its parts, assembles it, and seals it in a process of its own. The plain copy reads and
writes through a buffer of 1 MiB and ends with fsync; `shutil.copyfile` with fsync stands beside it.

    python bench/seal.py [SECONDS]
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synorama.records import (
    BLOCK_DTYPE,
    FRAME_DTYPE,
    AudioTrack,
    Column,
    FileRef,
    Recording,
    RecordingClock,
    Samples,
    SampleTrack,
    SyncResult,
    Track,
    VideoTrack,
)
from synorama.session import SessionInfo, assemble, seal, write_ingest, write_sync
from synorama.timebase import ClockMap

SECOND = 1_000_000_000
MEDIA_BYTES_PER_S = 13_500_000
CAMERAS = {"rgb": 30, "slam-left": 10, "slam-right": 10, "eye": 10}
INERTIAL = {"imu-right": 1000, "imu-left": 800}


def times(rate: float, seconds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return times with the jitter of a real device."""
    count = int(rate * seconds)
    steady = np.arange(count) * SECOND / rate
    return np.sort((steady + rng.normal(0, 2000, count)).astype(np.int64) + 3 * SECOND)


def camera(name: str, rate: int, seconds: int, rng: np.random.Generator) -> VideoTrack:
    at = times(rate, seconds, rng)
    index = np.zeros(len(at), FRAME_DTYPE)
    index["pts"], index["key"] = at, 1
    index["size"] = rng.integers(200_000, 360_000, len(at))
    index["offset"] = np.cumsum(index["size"]) % (seconds * MEDIA_BYTES_PER_S - 400_000)
    return VideoTrack(name, "mjpeg", 1408, 1408, at, index, "packets", rate_hz=rate)


def inertial(name: str, rate: int, seconds: int, rng: np.random.Generator) -> SampleTrack:
    at = times(rate, seconds, rng)
    columns = tuple(Column(f"{kind}{axis}") for kind in "ag" for axis in "xyz")

    def read() -> Samples:
        return Samples(at, rng.normal(0, 1, (len(at), 6)).astype(np.float32))

    return SampleTrack(name, "samples", columns, len(at), int(at[0]), int(at[-1]), read)


def microphones(seconds: int, rng: np.random.Generator) -> AudioTrack:
    count = seconds * 48_000 // 4096
    blocks = np.zeros(count, BLOCK_DTYPE)
    blocks["first"], blocks["count"] = np.arange(count) * 4096, 4096
    blocks["offset"] = np.sort(rng.integers(0, seconds * 10_000_000, count))
    at = np.arange(count) * 4096 * SECOND // 48_000 + rng.integers(0, 2000, count) + 3 * SECOND
    knots = np.column_stack([blocks["first"], at])
    return AudioTrack("mic", "pcm_s32le", 48_000.0, 7, count * 4096, knots, "packets", blocks)


def glasses(folder: Path, name: str, seconds: int, seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    path = folder / f"{name}.vrs"
    with path.open("wb") as file:
        for _ in range(seconds):
            file.write(rng.bytes(MEDIA_BYTES_PER_S))
    stat = path.stat()
    tracks: list[Track] = [camera(n, rate, seconds, rng) for n, rate in CAMERAS.items()]
    tracks += [inertial(n, rate, seconds, rng) for n, rate in INERTIAL.items()]
    tracks.append(microphones(seconds, rng))
    file_ref = FileRef(path, stat.st_size, stat.st_mtime_ns)
    return Recording(name, "aria", (file_ref,), {t.name: t for t in tracks})


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], object]) -> float:
    began = cpu_s()
    work()
    return cpu_s() - began


def plain_copy(folder: Path) -> None:
    """Copy all media into one file through a buffer of 1 MiB, as sealing does without digests."""
    buffer = memoryview(bytearray(1 << 20))
    with (folder / "out").open("wb", buffering=0) as target:
        for path in sorted(folder.glob("*.vrs")):
            with path.open("rb", buffering=0) as source:
                while got := source.readinto(buffer):
                    target.write(buffer[:got])
        os.fsync(target.fileno())


def copyfile(folder: Path) -> None:
    for path in sorted(folder.glob("*.vrs")):
        out = folder / f"{path.name}.out"
        shutil.copyfile(path, out)
        with out.open("rb+") as file:
            os.fsync(file.fileno())


def seal_it(folder: Path) -> None:
    seal(folder / "session.h5", folder / "out")


WAYS = {"seal": seal_it, "plain copy": plain_copy, "shutil.copyfile": copyfile}


def elsewhere(way: str, folder: Path) -> tuple[float, float]:
    """Run one way in a process of its own; return CPU seconds and peak memory [MB]."""
    words = [sys.executable, __file__, "--way", way, str(folder)]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    for out in folder.glob("*out"):
        out.unlink()
    os.sync()
    return float(text[0]), float(text[1])


def here(way: str, folder: Path) -> None:
    spent = measured(lambda: WAYS[way](folder))
    print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(seconds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        both = [glasses(folder, f"aria-{k}", seconds, k) for k in (1, 2)]
        clocks = {
            r.id: RecordingClock(r.id, (ClockMap.affine("aria-1", r.id, offset_ns=k * 12_345,
                                 drift_ppm=11.0 * k),), "tic_sync", 1.0)
            for k, r in enumerate(both)
        }  # fmt: skip
        parts = {n: folder / f"{n}.h5" for n in ("ingest", "sync")}
        spent = measured(lambda: write_ingest(parts["ingest"], both, include_location=False))
        print(f"write_ingest {spent:.2f} CPU s")
        write_sync(parts["sync"], SyncResult("aria-1", clocks))
        session = folder / "session.h5"
        print(f"assemble {measured(lambda: assemble(parts, session, SessionInfo('b'))):.2f} CPU s")
        media = sum(r.files[0].bytes for r in both)
        tables = session.stat().st_size
        share = 100 * tables / media
        print(f"tables {tables / 1e6:.1f} MB, media {media / 1e6:.0f} MB: {share:.2f} %")
        compare(folder)


def compare(folder: Path) -> None:
    """Take turns, each from the same state of the disk, so that all share the machine's moods."""
    rows = [{way: elsewhere(way, folder) for way in WAYS} for _ in range(5)]
    middle = {way: float(np.median([row[way][0] for row in rows])) for way in WAYS}
    for way, spent in middle.items():
        peak = max(row[way][1] for row in rows)
        every = " ".join(f"{row[way][0]:.2f}" for row in rows)
        print(f"{way}: median {spent:.2f} CPU s ({every}), peak {peak:.0f} MB, "
              f"seal / it = {middle['seal'] / spent:.2f}")  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        here(sys.argv[2], Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
