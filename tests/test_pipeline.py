"""The pipeline: what is stale is done, what is done is kept, a kill at any moment is survived."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synorama import open_session
from synorama.capture import open_recording
from synorama.capture.discover import discover
from synorama.errors import (
    CorruptFileError,
    DiskFullError,
    InputError,
    NoRecordingsError,
    OutputNotWritableError,
    UsageError,
)
from synorama.pipeline import Options, Workspace, assemble, process, run, status
from synorama.pipeline.assemble import ASSEMBLE
from synorama.pipeline.ingest import INGEST
from synorama.pipeline.sync import SYNC
from synorama.session import Session, summarize, validate


@pytest.fixture
def folder(simulated: Path, tmp_path: Path) -> Path:
    """A copy of a simulated session that a test may spoil."""
    return Path(shutil.copytree(simulated, tmp_path / "kitchen"))


def states(work: Workspace) -> dict[str, str]:
    """What happened to the stages that this session has a need of."""
    return {run.name: run.state for run in process(work).stages if run.state != "skipped"}


def needed(work: Workspace) -> set[str]:
    return {run.state for run in status(work) if run.state != "skipped"}


def digests(folder: Path) -> dict[str, bytes]:
    import blake3

    raw = (p for p in folder.rglob("*") if p.is_file() and ".synorama" not in p.parts)
    return {
        p.relative_to(folder).as_posix(): blake3.blake3(p.read_bytes()).digest()
        for p in raw
        if p.name != "session.h5"
    }


def test_a_session_is_made_once_and_raw_files_are_only_read(folder: Path) -> None:
    before = digests(folder)
    work = Workspace(folder)
    assert needed(work) == {"stale"}
    assert set(states(work).values()) == {"done"}
    assert set(states(Workspace(folder)).values()) == {"up-to-date"}
    assert needed(Workspace(folder)) == {"up-to-date"}
    assert digests(folder) == before
    assert validate(folder / "session.h5", every_byte=True) == ()


def test_only_what_is_stale_is_redone(folder: Path) -> None:
    process(Workspace(folder))
    webcam = next(f.id for f in Workspace(folder).discovery.found if f.reader.name == "webcam")
    by_hand = Options(offsets_s={webcam: 12.5})
    assert states(Workspace(folder, by_hand)) == {
        "ingest": "up-to-date",
        "sync": "done",
        "assemble": "done",
    }
    outcome = process(Workspace(folder, by_hand))
    assert outcome.sync is not None
    assert outcome.sync.clocks[webcam].method == "manual"
    raw = next(folder.rglob("*.vrs"))
    os.utime(raw, ns=(1, 1))
    assert states(Workspace(folder, by_hand))["ingest"] == "done"


@pytest.mark.parametrize("place", ["mps/slam", "slam"])
def test_mps_that_arrives_later_is_taken_in(folder: Path, place: str) -> None:
    process(Workspace(folder))
    vrs = next(folder.rglob("*.vrs"))
    later = vrs.parent / place.format(stem=vrs.stem) / "closed_loop_trajectory.csv"
    later.parent.mkdir(parents=True)
    numbers = [f"{a}_world_device" for a in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]
    numbers += [f"device_linear_velocity_{a}_device" for a in "xyz"]
    numbers += [f"angular_velocity_{a}_device" for a in "xyz"]
    numbers += [f"gravity_{a}_world" for a in "xyz"]
    header = ["graph_uid", "tracking_timestamp_us", "utc_timestamp_ns", *numbers, "quality_score"]
    header += ["geo_available", *(f"{a}_ecef_device" for a in ("tx", "ty", "tz"))]
    header += [f"{a}_ecef_device" for a in ("qx", "qy", "qz", "qw")]
    one = discover(folder).found
    device_ns = next(open_recording(f.path).first_ns for f in one if vrs in f.take.paths) or 0
    values = ["1", "2", "3", "0", "0", "0", "1", *["0"] * 9, "1", "0", *["0"] * 7]
    rows = [["u", str(device_ns // 1000 + k * 1000), "-1", *values] for k in range(100)]
    later.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    assert set(states(Workspace(folder)).values()) == {"done"}
    assert set(states(Workspace(folder)).values()) == {"up-to-date"}
    with Session(folder / "session.h5") as session:
        name = next(n for n in session.recordings if "closed_loop_trajectory" in
                    session.recording(n).tracks)  # fmt: skip
        middle = session.clock(name).apply(np.array([device_ns + 50_000_000]))
        pose = session.pose(name, int(middle[0]))
    assert pose is not None
    assert pose.translation_m == pytest.approx([1, 2, 3])


def test_a_stage_can_be_run_alone_or_from_there_on(folder: Path) -> None:
    with pytest.raises(UsageError, match="'sync' needs 'ingest'"):
        process(Workspace(folder), only="sync")
    with pytest.raises(UsageError, match="no stage 'cook'"):
        process(Workspace(folder), only="cook")
    process(Workspace(folder))
    again = {r.name: r.state for r in process(Workspace(folder), only="sync").stages}
    assert again["sync"] == "done"
    assert {again["ingest"], again["assemble"]} == {"up-to-date"}
    again = {r.name: r.state for r in process(Workspace(folder), start="sync").stages}
    assert again["ingest"] == "up-to-date"
    assert {again["sync"], again["assemble"]} == {"done"}


def test_a_stage_that_cannot_be_had_is_left_out_and_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(Workspace(folder))
    without = replace(SYNC, skipped_because=lambda work: "nothing to hear")
    whole = replace(ASSEMBLE, needs=("ingest", "sync"))
    monkeypatch.setattr(run, "STAGES", (INGEST, without, whole))
    monkeypatch.setattr(assemble, "PARTS", (INGEST, without))
    stages = {r.name: r for r in run.process(Workspace(folder)).stages}
    assert (stages["sync"].state, stages["sync"].reason) == ("skipped", "nothing to hear")
    assert stages["assemble"].state == "done"  # without the part of before
    facts = summarize(folder / "session.h5")["recordings"]
    assert [one["clock"] for one in facts] == [None] * len(facts)
    with pytest.raises(UsageError, match="'sync' cannot be run: nothing to hear"):
        run.process(Workspace(folder), only="sync")


def test_an_offset_for_nobody_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"'nobody'.*no such recording"):
        process(Workspace(folder, Options(offsets_s={"nobody": 1.0})))


def test_unusable_files_are_told_all_at_once_and_can_be_ignored(folder: Path) -> None:
    (folder / "cut.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0\0\1\0mdat" * 9)
    (folder / "empty.wav").touch()
    with pytest.raises(InputError) as caught:
        process(Workspace(folder))
    assert "cut.mp4" in str(caught.value)
    assert "empty.wav" in str(caught.value)
    assert "ignore" in caught.value.hint
    assert not (folder / "session.h5").exists()
    (folder / "session.toml").write_text('[session]\nignore = ["cut.mp4", "empty.wav"]\n')
    assert process(Workspace(folder)).session.is_file()


def test_nothing_to_do_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NoRecordingsError):
        process(Workspace(tmp_path))


def test_a_stale_part_of_an_older_version_is_not_read(folder: Path) -> None:
    process(Workspace(folder))
    (folder / ".synorama" / "parts" / "sync.h5").write_bytes(b"of another age")
    outcome = process(Workspace(folder), only="ingest")
    assert outcome.sync is None
    assert process(Workspace(folder)).sync is not None


def test_one_process_at_a_time(folder: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    (folder / ".synorama").mkdir()
    with (folder / ".synorama" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process"):
            process(Workspace(folder))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    folder: Path, small_disk: Path
) -> None:
    output = small_disk / "session.h5"
    with pytest.raises(DiskFullError, match="full"):
        process(Workspace(folder, output=output))
    assert not output.exists()
    assert not [p for p in small_disk.rglob("*") if p.suffix == ".h5" and p.stat().st_size]


def test_a_place_without_permission_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)  # root may write everywhere, whatever the mode
    with pytest.raises(OutputNotWritableError, match="permission"):
        process(Workspace(folder, output=tmp_path / "there" / "session.h5"))


def test_a_damaged_part_is_no_part(folder: Path) -> None:
    process(Workspace(folder))
    part = folder / ".synorama" / "parts" / "ingest.h5"
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    with pytest.raises(Exception, match="ingest") as caught:
        process(Workspace(folder), only="sync")
    assert not isinstance(caught.value, CorruptFileError)
    assert process(Workspace(folder), start="ingest").session.is_file()


def journal(folder: Path) -> list[str]:
    path = folder / ".synorama" / "journal.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line)["stage"] for line in path.read_text().splitlines() if line]


@pytest.mark.slow
def test_a_kill_at_any_moment_is_survived(simulated: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    began = time.perf_counter()
    whole = Path(shutil.copytree(simulated, tmp_path / "whole"))
    command = [sys.executable, "-m", "synorama", "process"]
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    for k in range(5):  # bench/kills.py does more
        folder = Path(shutil.copytree(simulated, tmp_path / f"killed-{k}"))
        before = digests(folder)
        run = subprocess.Popen([*command, str(folder)], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.1, 1.05) * seconds)
        run.send_signal(signal.SIGKILL)
        run.wait()
        finished = journal(folder)
        subprocess.run([*command, str(folder)], check=True, capture_output=True)
        assert journal(folder)[: len(finished)] == finished
        assert len(journal(folder)) == 3, "a finished stage was done again"
        assert validate(folder / "session.h5") == ()
        assert digests(folder) == before
        with open_session(folder / "session.h5") as session:
            assert len(session.recordings) == 5
        shutil.rmtree(folder)
