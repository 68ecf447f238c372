"""Speed and size with full-size glasses: indexing, the stages, sealing, the share of the tables.

    python -m bench.full_size                     two glasses of 60, 120 and 300 s (40 GB of disk)
    python -m bench.full_size --cameras           also 300 s with two GoPros and a webcam
    python -m bench.full_size --place FOLDER      keep the sessions there, and use those that are
    python -m bench.full_size --write             write bench/results/full_size.md

Pictures have the sizes and rates that the glasses record, as JPEG of realistic size that repeat.
Each case runs in a process of its own; its CPU seconds (user and system) hold the start of Python
and every import, its peak memory holds the pages of mapped files. The plain copy reads all media
of the session once and writes it to one file, through a buffer of 1 MiB, and ends with fsync;
`cp` and fsync are printed beside it. Copies and seals take turns, so that they share the
machine's moods, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measuring import Report, Usage, run_case, write_result

MODULE = "bench.full_size"
GLASSES, CAMERAS = ("leader", "helper"), ("gopro-front", "gopro-rear", "webcam")
SHORT_S, MIDDLE_S, LONG_S = 60, 120, 300
LEAST_S = 4  # as good as nothing: what opening it takes is the start of Python and the imports
INDEX_ROUNDS = 3
STAGES = ("ingest", "sync", "assemble")
GB = 1e9
INDEX_CPU_S, PEAK_MB, GROWTH = 10.0, 1000.0, 1.25
SEAL_RATIO, TABLES_PERCENT = 2.2, 1.0
MAKE_CPU_S, MAKE_PEAK_MB = 120.0, 1500.0


# --- cases, each in a process of its own -----------------------------------------------------


def make(folder: Path, seconds: float, *devices: str) -> None:
    from synorama.simulate import simulate

    simulate(folder, seconds=seconds, size="full", room=None, devices=devices)


def make_packed(folder: Path, seconds: float) -> None:
    """Write two glasses whose pictures and sound are packed, as those of real recordings are."""
    from bench.vrs_readers import write

    for name in GLASSES:
        (folder / name).mkdir(parents=True)
        write(folder / name / "recording.vrs", seconds, pack=True)


def index(folder: Path) -> dict[str, int]:
    """Open both glasses and read every table there is; the counts prove it."""
    from synorama.capture import open_recording
    from synorama.records import SampleTrack

    recordings = [open_recording(path) for path in _glasses(folder)]
    tracks = [track for recording in recordings for track in recording.tracks.values()]
    rows = sum(len(t.read().values) for t in tracks if isinstance(t, SampleTrack))
    return {"tracks": len(tracks), "entries": sum(t.count for t in tracks), "rows": rows}


def stage(folder: Path, name: str) -> None:
    from synorama.pipeline import Workspace, process

    process(Workspace(folder), only=name)


def seal(folder: Path) -> dict[str, Any]:
    from synorama.session import seal as seal_session

    report = seal_session(folder / "session.h5", folder / "release.h5", overwrite=True)
    return {"bytes": report.bytes, "media": report.media_bytes, "digests": report.digests}


def copy(folder: Path) -> None:
    buffer = memoryview(bytearray(1 << 20))
    with (folder / "copy").open("wb", buffering=0) as target:
        for path in media(folder):
            with path.open("rb", buffering=0) as source:
                while got := source.readinto(buffer):
                    target.write(buffer[:got])
        os.fsync(target.fileno())


def cp(folder: Path) -> None:
    (folder / "copies").mkdir()
    for number, path in enumerate(media(folder)):
        target = folder / "copies" / str(number)
        subprocess.run(["cp", path, target], check=True)
        with target.open("rb+") as file:
            os.fsync(file.fileno())


def compare(folder: Path) -> dict[str, int]:
    """Compare every embedded byte with the raw file's; tell how many differ or have no digest."""
    import h5py

    from synorama.session import open_session

    release = folder / "release.h5"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody has verified it, which is no matter here
        open_session(release).close()  # the guard has seen it
    same = []
    with h5py.File(folder / "session.h5", "r") as linked, h5py.File(release, "r") as file:
        for name, recording in linked["recordings"].items():
            for number, group in recording["files"].items():
                raw = folder / _text(group.attrs["path"])
                same.append(_same(raw, release, file[f"recordings/{name}/files/{number}"]))
    return {"files": len(same), "different": same.count(False)}


def _same(raw: Path, release: Path, group: Any) -> bool:
    """Tell whether a raw file, its bytes in the release and the digest in it are one thing."""
    data = group["data"]
    digests = {
        _digest(raw, 0, raw.stat().st_size),
        _digest(release, data.id.get_offset(), data.shape[0]),
        _text(group.attrs["digest"]),
    }
    return len(digests) == 1


def _digest(path: Path, offset: int, size: int) -> str:
    import blake3

    hasher = blake3.blake3()
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while size:
            piece = file.read(min(size, 1 << 22))
            hasher.update(piece)
            size -= len(piece)
    return str(hasher.hexdigest())


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _glasses(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.vrs"))


def media(folder: Path) -> list[Path]:
    """Return the raw files of a session: all below its devices' folders."""
    places = (folder / name for name in (*GLASSES, *CAMERAS))
    return [path for place in places if place.is_dir() for path in sorted(place.rglob("*.*"))]


CASES: dict[str, Callable[..., Any]] = {
    case.__name__: case for case in (make, make_packed, index, stage, seal, copy, cp, compare)
}


def run_here(case: str, folder: str, *rest: str) -> None:
    arguments: Sequence[Any] = (float(rest[0]), *rest[1:]) if case.startswith("make") else rest
    print(json.dumps(CASES[case](Path(folder), *arguments)))


# --- what is measured ------------------------------------------------------------------------


def session(place: Path, seconds: int, devices: Sequence[str]) -> tuple[Path, Usage | None]:
    """Return a simulated session, made now unless it is there, and what making it took."""
    kind = "glasses" if tuple(devices) == GLASSES else "cameras"
    folder = place / f"{kind}-{seconds}"
    if folder.is_dir():
        return folder, None
    return folder, run_case(MODULE, "make", folder, seconds, *devices)


def measure_index(report: Report, folders: dict[int, Path]) -> None:
    """Index pairs of glasses of several lengths, in turns.

    The shortest costs the start of Python and the imports: what the others cost beyond it is to
    grow no faster than their length. The best of the rounds counts there, since the machine only
    ever adds: reading a file whose pages have left the cache costs more.
    """
    lengths = [s for _ in range(INDEX_ROUNDS) for s in folders]
    runs: dict[int, list[Usage]] = {seconds: [] for seconds in folders}
    for seconds in lengths:
        runs[seconds].append(run_case(MODULE, "index", folders[seconds]))
    cpu = statistics.median(run.cpu_s for run in runs[LONG_S])
    report.bar("index both, 300 s: CPU", cpu, INDEX_CPU_S, "s")
    peak = max(run.peak_mb for run in runs[LONG_S])
    report.bar("index both, 300 s: peak memory", peak, PEAK_MB, "MB", ".0f")
    best = {seconds: min(run.cpu_s for run in done) for seconds, done in runs.items()}
    rate = {s: (best[s] - best[LEAST_S]) / (s - LEAST_S) for s in (SHORT_S, LONG_S)}
    growth = rate[LONG_S] / rate[SHORT_S]
    report.bar("index: CPU a second of recording, 300 s to 60 s", growth, GROWTH, "")
    head = ["seconds", "GB", "CPU s, best", "median", "peak MB", "own MB", "entries", "rows read"]
    rows = [index_row(s, folders[s], done) for s, done in runs.items()]
    report.note(f"Index: open both, read all tables, {INDEX_ROUNDS} rounds", head, rows)


def measure_packed(report: Report, place: Path) -> None:
    """Index a pair of glasses whose records are packed: of each, the start must be unpacked."""
    folder = place / f"packed-{LONG_S}"
    if not folder.is_dir():
        run_case(MODULE, "make_packed", folder, LONG_S)
    runs = [run_case(MODULE, "index", folder) for _ in range(INDEX_ROUNDS)]
    cpu, peak = statistics.median(run.cpu_s for run in runs), max(run.peak_mb for run in runs)
    report.bar("index both, 300 s, packed: CPU", cpu, INDEX_CPU_S, "s")
    report.bar("index both, 300 s, packed: peak memory", peak, PEAK_MB, "MB", ".0f")


def index_row(seconds: int, folder: Path, runs: list[Usage]) -> list[str]:
    spent, said = [run.cpu_s for run in runs], runs[0].said
    size = sum(path.stat().st_size for path in media(folder)) / GB
    peak, own = max(r.peak_mb for r in runs), max(r.own_mb or 0 for r in runs)
    return [f"{seconds}", f"{size:.2f}", f"{min(spent):.2f}", f"{statistics.median(spent):.2f}",
            f"{peak:.0f}", f"{own:.0f}", f"{said['entries']}", f"{said['rows']}"]  # fmt: skip


def make_glasses(report: Report, place: Path) -> dict[int, Path]:
    """Return pairs of glasses by length; making the longest is a bar of its own."""
    folders = {}
    for seconds in (LEAST_S, SHORT_S, MIDDLE_S, LONG_S):
        folders[seconds], made = session(place, seconds, GLASSES)
        if made and seconds == LONG_S:
            report.bar("simulate both, 300 s: CPU", made.cpu_s, MAKE_CPU_S, "s", ".1f")
            report.bar("simulate both, 300 s: peak memory", made.peak_mb, MAKE_PEAK_MB, "MB", ".0f")
    return folders


def start_afresh(folder: Path) -> None:
    """Leave only the raw files."""
    shutil.rmtree(folder / ".synorama", ignore_errors=True)
    (folder / "session.h5").unlink(missing_ok=True)


def measure_stages(report: Report, folder: Path, title: str) -> None:
    rows, total, peak = [], 0.0, 0.0
    start_afresh(folder)
    for name in STAGES:
        run = run_case(MODULE, "stage", folder, name)
        total, peak = total + run.cpu_s, max(peak, run.peak_mb)
        rows.append([name, f"{run.cpu_s:.2f}", f"{run.peak_mb:.0f}", f"{run.own_mb or 0:.0f}"])
    rows.append(["all", f"{total:.2f}", f"{peak:.0f}", ""])
    report.note(f"Stages, {title}", ["stage", "CPU s", "peak MB", "own MB"], rows)
    report.bar(f"stages, {title}: peak memory", peak, PEAK_MB, "MB", ".0f")


def measure_seal(report: Report, folder: Path, rounds: int) -> None:
    """Seal and copy in turns.

    A short session stays in the system's cache, where a copy costs least; a long one does not.
    """
    title = f"{sum(path.stat().st_size for path in media(folder)) / GB:.1f} GB"
    runs: dict[str, list[Usage]] = {"seal": [], "copy": [], "cp": []}
    for _ in range(rounds):
        for case, done in runs.items():
            os.sync()  # nobody pays for the writing of the one before
            done.append(run_case(MODULE, case, folder))
            (folder / "copy").unlink(missing_ok=True)
            shutil.rmtree(folder / "copies", ignore_errors=True)
    said = runs["seal"][0].said
    spent = {case: statistics.median(run.cpu_s for run in done) for case, done in runs.items()}
    report.bar(f"seal {title}: CPU to a plain copy", spent["seal"] / spent["copy"], SEAL_RATIO, "")
    peak = max(run.peak_mb for run in runs["seal"])
    report.bar(f"seal {title}: peak memory", peak, PEAK_MB, "MB", ".0f")
    share = 100 * (said["bytes"] - said["media"]) / said["media"]
    report.bar(f"seal {title}: tables, of the media", share, TABLES_PERCENT, "%")
    different = run_case(MODULE, "compare", folder).said
    (folder / "release.h5").unlink()
    report.bar(f"seal {title}: files that differ, of {different['files']}", different["different"],
               0, "files", ".0f")  # fmt: skip
    rows = [
        [case, f"{spent[case]:.2f}", " ".join(f"{run.cpu_s:.2f}" for run in done),
         f"{spent[case] / spent['copy']:.2f}", f"{max(r.peak_mb for r in done):.0f}"]
        for case, done in runs.items()
    ]  # fmt: skip
    head = ["", "CPU s, median", "all rounds", "to the plain copy", "peak MB"]
    report.note(f"Sealing {title}", head, rows)


def with_cameras(place: Path) -> Path:
    """Return the long session with cameras beside the glasses; no byte is copied."""
    folder, _ = session(place, LONG_S, CAMERAS)
    glasses, _ = session(place, LONG_S, GLASSES)
    for name in GLASSES:
        if not (folder / name).is_dir():
            shutil.copytree(glasses / name, folder / name, copy_function=os.link)
    return folder


@contextmanager
def workplace(given: Path | None) -> Iterator[Path]:
    if given:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--place", type=Path, help="folder for the sessions, which stay there")
    parser.add_argument("--rounds", type=int, default=5, help="of sealing and copying")
    parser.add_argument("--cameras", action="store_true", help="also the stages with cameras")
    parser.add_argument("--write", action="store_true", help="write bench/results/full_size.md")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        run_here(*asked.case)
        return 0
    report = Report("Full-size sessions")
    with workplace(asked.place) as place:
        folders = make_glasses(report, place)
        measure_index(report, folders)
        measure_packed(report, place)
        folder = folders[LONG_S]
        measure_stages(report, folder, "two glasses, 300 s")
        start_afresh(folders[SHORT_S])
        for name in STAGES:
            run_case(MODULE, "stage", folders[SHORT_S], name)
        measure_seal(report, folders[SHORT_S], asked.rounds)
        measure_seal(report, folder, asked.rounds)
        if asked.cameras:
            measure_stages(report, with_cameras(place), "all five devices, 300 s")
    if asked.write:
        flags = " --cameras" if asked.cameras else ""
        write_result("full_size", report.text(f"python -m {MODULE}{flags} --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
