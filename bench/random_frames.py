"""CPU of a random and of a sequential frame from sessions, beside PyAV on the plain video.

    python -m bench.random_frames [--write]

Full HD H.264 with few and with many key frames, and JPEG pictures of glasses; linked and sealed.
Also what opening a session costs, and a model's sample: two glasses' views of six frames.
Pictures carry a barcode; a wrong frame fails the run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from tests.session.factory import (
    EPOCH,
    HEIGHT,
    SECOND,
    WIDTH,
    barcode,
    camera,
    glasses,
    read_barcode,
    sync_of,
)

from bench.measuring import Report, write_result
from synorama.session import Session, SessionInfo, assemble, seal, write_ingest, write_sync

FRAMES = 600
RATE_HZ = 30
KINDS = {"gop30": 30, "gop250": 250}
FULL_HD = (1920, 1080)
ANYWHERE, ONWARD = 40, range(100, 200)
SESSIONS, PLAIN = ("session.h5", "release.h5"), "plain, PyAV"
ROUNDS, LIMIT = 5, 1.25


def encode(path: Path, gop: int) -> None:
    """Write full HD pictures: the barcode above, moving texture with noise below."""
    rng = np.random.default_rng(gop)
    texture = cv2.resize(rng.integers(0, 255, (135, 240, 3), np.uint8), FULL_HD)
    with av.open(str(path), "w") as out:
        options = {"preset": "veryfast", "g": str(gop), "keyint_min": str(gop), "sc_threshold": "0"}
        stream = out.add_stream("libx264", rate=RATE_HZ, options=options)
        stream.width, stream.height = FULL_HD
        stream.pix_fmt = "yuv420p"
        for k in range(FRAMES):
            picture = np.roll(texture, 3 * k, axis=1)
            picture[:540] = cv2.resize(barcode(k), (1920, 540), interpolation=cv2.INTER_NEAREST)[
                ..., None
            ]
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = k, Fraction(1, RATE_HZ)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def number_of(image: NDArray[np.uint8]) -> int:
    if image.shape[0] == FULL_HD[1]:
        image = cv2.resize(image[:540], (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    return read_barcode(image)


def check(found: int, asked: int, what: str) -> None:
    if found != asked:
        raise SystemExit(f"{what}: frame {found} for frame {asked}")


def make(folder: Path) -> None:
    both = [glasses(folder, f"aria-{k}", frames=300) for k in (1, 2)]
    cameras = []
    for name, gop in KINDS.items():
        encode(folder / f"{name}.mp4", gop)
        cameras.append(camera([folder / f"{name}.mp4"], name))
    everything = [*both, *cameras]
    parts = {stage: folder / f"{stage}.h5" for stage in ("ingest", "sync")}
    write_ingest(parts["ingest"], everything, include_location=False)
    write_sync(parts["sync"], sync_of(*everything))
    assemble(parts, folder / "session.h5", SessionInfo("bench"))
    seal(folder / "session.h5", folder / "release.h5")


def read(session: Session, view: str, frames: Sequence[int]) -> None:
    times = session.times_ns(view)
    for i in frames:
        frame = session.frame(view, int(times[i]))
        assert frame is not None
        check(number_of(frame.image), i, view)


def read_plain(container: av.container.InputContainer, frames: Sequence[int]) -> None:
    """Read frames as one does with PyAV: go to the key frame before, decode up to the frame."""
    stream = container.streams.video[0]
    assert stream.time_base is not None
    step = round(1 / (RATE_HZ * stream.time_base))
    decoder, last = None, None
    for i in frames:
        if decoder is None or last != i - 1:
            container.seek(i * step, stream=stream)
            decoder = container.decode(stream)
        picture = next(f for f in decoder if (f.pts or 0) >= i * step)
        check(number_of(picture.to_ndarray(format="rgb24")), i, "PyAV")
        last = i


def cpu_ms(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start) / count


def costs(reader: Callable[[Sequence[int]], None], count: int) -> tuple[float, float]:
    """Return CPU milliseconds of a random and of a sequential frame."""
    anywhere = random.Random(1).choices(range(count), k=ANYWHERE)
    reader(anywhere[:2])  # opens what it needs
    return (
        cpu_ms(partial(reader, anywhere), ANYWHERE),
        cpu_ms(partial(reader, list(ONWARD)), len(ONWARD)),
    )


def compare(report: Report, folder: Path) -> None:
    """Let the plain video, the linked and the sealed session take turns; medians are compared."""
    rows = []
    for kind in KINDS:
        spent: dict[str, list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            for name, costs_ms in one_round(folder, kind).items():
                spent.setdefault(name, []).append(costs_ms)
        medians = {name: np.median(np.array(taken), axis=0) for name, taken in spent.items()}
        rows += [[kind, name, *_cells(costs_ms)] for name, costs_ms in medians.items()]
        for name in SESSIONS:
            for k, what in enumerate(("random", "sequential")):
                ratio = float(medians[name][k] / medians[PLAIN][k])
                report.bar(f"{kind} in {name}, {what}: CPU to PyAV's", ratio, LIMIT, "")
    title = f"1080p H.264, medians of {ROUNDS} rounds"
    report.note(title, ["", "from", "random, CPU ms", "sequential"], rows)


def one_round(folder: Path, kind: str) -> dict[str, tuple[float, float]]:
    with av.open(str(folder / f"{kind}.mp4")) as container:
        container.streams.video[0].thread_type = "NONE"  # as in a session: CPU is compared
        taken = {PLAIN: costs(partial(read_plain, container), FRAMES)}
    for name in SESSIONS:
        with Session(folder / name) as session:
            taken[name] = costs(partial(read, session, f"{kind}/video"), FRAMES)
    return taken


def _cells(costs_ms: Iterable[float]) -> list[str]:
    return [f"{cost:.2f}" for cost in costs_ms]


def glasses_and_opening(report: Report, folder: Path) -> None:
    views = ["aria-1/rgb", "aria-2/rgb"]
    rows = []
    for name in SESSIONS:
        opening = cpu_ms(lambda path=folder / name: Session(path).close(), 1)  # type: ignore[misc]
        with Session(folder / name) as session:
            jpeg = costs(partial(read, session, views[0]), 300)
            clip = cpu_ms(lambda s=session: s.clip(EPOCH + 20 * SECOND, views, 6, 2.0), 1)  # type: ignore[misc]
        rows.append([name, f"{opening:.1f}", *_cells(jpeg), f"{clip:.1f}"])
    head = ["", "open", "random small JPEG", "sequential", "two views of six frames"]
    report.note("CPU ms", head, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write bench/results/random_frames.md")
    asked = parser.parse_args()
    report = Report("Random frames")
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
        compare(report, Path(name))
        glasses_and_opening(report, Path(name))
    if asked.write:
        write_result("random_frames", report.text("python -m bench.random_frames --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
