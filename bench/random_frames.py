"""CPU milliseconds of a random and of a sequential frame, from linked and sealed sessions.

Also the cost of opening a session, of walking it by the guard, and of a model's sample: two
glasses' views of six frames. Pictures carry a barcode; a wrong frame fails the run.

    python bench/random_frames.py
"""

from __future__ import annotations

import random
import resource
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from tests.session.factory import EPOCH, SECOND, camera, encode, glasses, read_barcode, sync_of

from synorama.session import Session, SessionInfo, assemble, seal, write_ingest, write_sync

FRAMES = 600
KINDS = {"gop30": "30", "gop250": "250"}


def cpu_ms(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def make(folder: Path) -> None:
    both = [glasses(folder, f"aria-{k}", frames=300) for k in (1, 2)]
    cameras = []
    for name, gop in KINDS.items():
        path = folder / f"{name}.mp4"
        pts = [512 * k for k in range(FRAMES)]
        encode(path, "libx264", pts, Fraction(1, 15360), g=gop, preset="veryfast")
        cameras.append(camera([path], name))
    everything = [*both, *cameras]
    parts = {stage: folder / f"{stage}.h5" for stage in ("ingest", "sync")}
    write_ingest(parts["ingest"], everything, include_location=False)
    write_sync(parts["sync"], sync_of(*everything))
    assemble(parts, folder / "session.h5", SessionInfo("bench"))
    seal(folder / "session.h5", folder / "release.h5")


def read(session: Session, view: str, frames: list[int]) -> None:
    times = session.times_ns(view)
    for i in frames:
        frame = session.frame(view, int(times[i]))
        if frame is None or read_barcode(frame.image) != i:
            raise SystemExit(f"{view}: frame {i} is wrong")


def report(path: Path) -> None:
    rng = random.Random(1)
    opening = cpu_ms(lambda: Session(path))
    session = Session(path)
    print(f"{path.name}: open {opening:.1f} ms")
    for view in ("aria-1/rgb", "gop30/video", "gop250/video"):
        count = len(session.times_ns(view))
        anywhere = rng.choices(range(count), k=40)
        scattered = cpu_ms(lambda v=view, f=anywhere: read(session, v, f)) / 40  # type: ignore[misc]
        onward = list(range(100, 200))
        steady = cpu_ms(lambda v=view, f=onward: read(session, v, f)) / 100  # type: ignore[misc]
        print(f"  {view}: random {scattered:.2f} ms, sequential {steady:.2f} ms")
    views = ["aria-1/rgb", "aria-2/rgb"]
    clip = cpu_ms(lambda: session.clip(EPOCH + 20 * SECOND, views, 6, 2.0))
    print(f"  two views of six frames: {clip:.1f} ms")
    session.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
        for file in ("session.h5", "release.h5"):
            report(Path(name) / file)
