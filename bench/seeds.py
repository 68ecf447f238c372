"""A hundred short sessions of as many seeds, written, and read again by the product's readers.

    python -m bench.seeds --write      100 seeds; run it again to go on where it stopped

All kinds of room in turn, all ways of scanning and of the services' output, a fault in every
second one. Two devices record in each, all five in every twentieth. The first six are written
twice to compare bytes. Each outcome is appended to a journal, with digests of the simulator and of
all bytes that it wrote.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.accept import wilson
from bench.measuring import HERE, machine, table, write_result
from synorama.capture.discover import discover, open_found
from synorama.errors import ForeignChapterError, MissingChapterError, SynoramaError
from synorama.geometry.cloud import BLOCK, open_cloud
from synorama.media.audio import read_audio
from synorama.media.video import VideoDecoder
from synorama.records import PointTrack, Recording, SampleTrack
from synorama.simulate import simulate
from synorama.simulate.faults import FAULTS
from synorama.simulate.lab import CAMERAS, DEVICES, GLASSES
from synorama.simulate.scene.room import KINDS

SECONDS = 6.0
MPS = ("shared", None, None, None, "separate", None, None, None, "leader-only", None)
SCANS = ("stations", None, None, None, "handheld", None, None)
TWICE, ALL_EVERY = 6, 20
REFUSED: dict[str, type[SynoramaError]] = {
    "missing-chapter": MissingChapterError,
    "foreign-chapter": ForeignChapterError,
}


def asked_of(number: int, seed: int) -> dict[str, Any]:
    """Return what session of this number is asked for: all variants come round."""
    names = list(FAULTS)
    fault = names[number // 2 % len(names)] if number % 2 else None
    devices = {GLASSES[number % 2], CAMERAS[number % 3]}
    if number % ALL_EVERY == 0:
        devices = set(DEVICES)
    devices |= set(FAULTS[fault].devices) if fault else set()
    scan = SCANS[number % len(SCANS)]
    if fault and "scan" in fault:
        scan = scan or "stations"
    return {
        "seed": seed,
        "seconds": SECONDS,
        "room": KINDS[number % len(KINDS)],
        "mps": MPS[number % len(MPS)],
        "scan": scan,
        "faults": (fault,) if fault else (),
        "devices": tuple(d for d in DEVICES if d in devices),
    }


def outcome(number: int, seed: int, folder: Path) -> dict[str, Any]:
    """Write one session, twice if it is one of the first; return what became of it."""
    asked = asked_of(number, seed)
    simulate(folder / "a", **asked)
    bad = list(_wrong(folder / "a", asked["faults"]))
    said: dict[str, Any] = {"number": number, "seed": seed, "room": asked["room"], "wrong": bad}
    said |= {"simulator": simulator(), "bytes": _digest(folder / "a")}
    if number < TWICE:
        simulate(folder / "b", **asked)
        said["same_bytes"] = said["bytes"] == _digest(folder / "b")
    return said | {"devices": asked["devices"], "fault": asked["faults"]}


def _digest(folder: Path) -> str:
    """Return the digest of all names and bytes below a folder."""
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        whole.update(path.relative_to(folder).as_posix().encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


# --- read again ------------------------------------------------------------------------------


def _wrong(folder: Path, faults: tuple[str, ...]) -> Iterator[str]:
    """Yield what the product's readers find otherwise than the truth tells."""
    told = json.loads((folder / "truth.json").read_text("utf-8"))
    found = discover(folder)
    truths = {r["files"][0]: r for r in told["recordings"]}
    expected = next((REFUSED[f] for f in faults if f in REFUSED), None)
    refused = 0
    for one in found.found:
        truth = truths.pop(one.path.resolve().relative_to(folder.resolve()).as_posix())
        try:
            recording = open_found(one)
        except SynoramaError as error:
            refused += 1
            if expected is None or not isinstance(error, expected):
                yield f"{one.id}: {error}"
            continue
        yield from _recording_wrong(recording, truth)
    if truths or refused != (expected is not None):
        yield f"not found: {sorted(truths)}, refused: {refused}"
    yield from (f"unread: {error}" for error in found.unread)
    yield from _surroundings_wrong(found.scans, told)


def _recording_wrong(recording: Recording, truth: dict[str, Any]) -> Iterator[str]:
    for name, true in truth["tracks"].items():
        track = recording.tracks.get(name)
        if track is None or track.count != true["count"]:
            yield f"{recording.id} {name}: {getattr(track, 'count', None)} of {true['count']}"
        elif name != "audio" and track.first_ns != true["first_ns"]:
            yield f"{recording.id} {name}: begins at {track.first_ns}, not {true['first_ns']}"
    yield from _media_wrong(recording, truth["name"])
    for track in recording.tracks.values():
        if isinstance(track, (SampleTrack, PointTrack)):
            track.read()


def _media_wrong(recording: Recording, name: str) -> Iterator[str]:
    files = [file.path for file in recording.files]
    for video in recording.videos:
        with VideoDecoder(files, video) as decoder:
            for k in (0, video.count // 2, video.count - 1):
                if decoder.frame(k).max() == 0:
                    yield f"{recording.id} {video.name}: frame {k} is black"
    for audio in recording.audios:
        heard = read_audio(files, audio, 0, audio.sample_count)
        silent = name == "gopro-rear" and heard.std() < 1e-4
        if len(heard) != audio.sample_count or (heard.std() == 0 and not silent):
            yield f"{recording.id} {audio.name}: {len(heard)} samples of {audio.sample_count}"


def _surroundings_wrong(scans: tuple[Path, ...], told: dict[str, Any]) -> Iterator[str]:
    if len(scans) != 2 * ("scan" in told):
        yield f"{len(scans)} files of the scan"
    for path in scans:
        cloud = open_cloud(path)
        count = sum(len(block.points_m) for block in cloud.blocks(BLOCK))
        if count != told["scan"]["points"]:
            yield f"{path.name}: {count} points of {told['scan']['points']}"
        kinds = {picture.kind for picture in cloud.pictures}
        if path.suffix == ".e57" and kinds != {"spherical", "pinhole"}:
            yield f"{path.name}: pictures {sorted(kinds)}"


# --- telling ---------------------------------------------------------------------------------


def simulator() -> str:
    """Name the simulator that is measured: the digest of its sources."""
    listed = subprocess.run(
        ["git", "ls-files", "-s", "--", "src/synorama/simulate"],
        cwd=HERE.parent,
        capture_output=True,
        check=True,
    )
    return hashlib.sha256(listed.stdout).hexdigest()[:12]


def report(rows: list[dict[str, Any]], command: str) -> str:
    """Return the page of results."""
    sound = sum(not row["wrong"] for row in rows)
    twice = [row["same_bytes"] for row in rows if "same_bytes" in row]
    faults = Counter(f for row in rows for f in row["fault"])
    met = Counter(d for row in rows for d in row["devices"])
    simulators = Counter(row["simulator"] for row in rows)
    low, high = (100 * share for share in wilson(sound, len(rows)))
    lines = [
        ["written, and read as the truth tells", f"{sound} of {len(rows)}",
         f"95 % between {low:.1f} and {high:.1f} %"],
        ["written twice, the same bytes", f"{sum(twice)} of {len(twice)}", ""],
        ["rooms", _counted(Counter(row["room"] for row in rows)), ""],
        ["devices", _counted(met), ""],
        ["faults", _counted(faults), ""],
        ["simulator, by the digest of its sources", _counted(simulators), ""],
    ]  # fmt: skip
    wrong = [f"- seed {row['seed']}: {text}" for row in rows for text in row["wrong"]]
    made = f"Small sessions of {SECONDS:g} s. Made by `{command}`. {machine()}."
    return "\n".join([f"# {len(rows)} seeds", "", made, "", table(["what", "", ""], lines), *wrong])


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=7000)
    parser.add_argument("--journal", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--write", action="store_true", help="write bench/results/seeds.md")
    asked = parser.parse_args()
    journal = asked.journal / "seeds.jsonl"
    rows = (
        [json.loads(line) for line in journal.read_text().splitlines()] if journal.is_file() else []
    )
    known = {row["seed"] for row in rows}
    for number in range(asked.seeds):
        seed = asked.first_seed + number
        if seed not in known:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(outcome(number, seed, Path(folder)))
            with journal.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(seed, rows[-1]["wrong"] or "as told", f"{os.times().user:.0f} CPU s", flush=True)
    rows = sorted((r for r in rows if r["number"] < asked.seeds), key=lambda r: int(r["seed"]))
    flags = "" if asked.seeds == 100 else f" --seeds {asked.seeds} --first-seed {asked.first_seed}"
    text = report(rows, f"python -m bench.seeds{flags} --write")
    print(text)
    if asked.write:
        write_result("seeds", text)
    return int(any(row["wrong"] or not row.get("same_bytes", True) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
