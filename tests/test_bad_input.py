"""Bad input through the command line: refused in words, or used as far as it is right.

Every test also holds that standard output is one JSON document, that raw files stay as they were
and that nothing half-written is left.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synorama import cli, open_session
from synorama.session import read_ingest, read_sync, validate
from synorama.timebase import ClockMap
from tests.capture import gopro_files
from tests.capture.aria_files import START_NS as ARIA_START_NS
from tests.capture.aria_files import AriaFile, sound_blocks
from tests.capture.vrs_files import rows
from tests.capture.vrs_files import write_vrs as write_foreign_vrs
from tests.devices import Scene

OURS = (".synorama", "session.h5")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two glasses, a GoPro in two chapters and a webcam; tests copy what they spoil."""
    scene = Scene(tmp_path_factory.mktemp("base") / "session")
    scene.glasses("leader")
    scene.glasses("helper", "client", device_ns=9 * 10**12, late_s=0.7, drift_ppm=15)
    scene.gopro("gopro")
    scene.webcam("webcam")
    return scene.folder


@pytest.fixture
def take(base: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a session folder of the named parts of the base."""

    def make(*names: str) -> Path:
        folder = tmp_path / "kitchen"
        folder.mkdir()
        for name in names:
            part = base / name
            copy = shutil.copytree if part.is_dir() else shutil.copy2
            copy(part, folder / name)
        return folder

    return make


class Told:
    """What a command said: exit code, the one JSON document, the words on stderr."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.err = code, err
        self.document: dict[str, Any] = json.loads(out)

    @property
    def error(self) -> dict[str, str]:
        return dict(self.document["error"])


Run = Callable[..., Told]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in this process."""

    def command(*arguments: str | Path) -> Told:
        capsys.readouterr()
        code = cli._run([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert "internal fault" not in err
        return Told(code, out, err)

    return command


def digests(folder: Path) -> dict[str, bytes]:
    """Return all bytes of all files but those that a session is made of."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] not in OURS
    }


@contextmanager
def raw_untouched(folder: Path) -> Iterator[None]:
    """Hold that no raw file changes, none comes or goes, and nothing half-written stays."""
    before = digests(folder)
    yield
    assert digests(folder) == before
    assert not list(folder.rglob("*.writing"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(run: Run, folder: Path, kind: str, name: str, code: int = 3) -> dict[str, str]:
    """Hold that `process` refuses the folder, names the file, says what to do, and writes none."""
    with raw_untouched(folder):
        told = run("process", folder)
        assert told.code == code, told.err
        assert told.error["type"] == kind
        assert name in told.error["path"] + told.error["message"]
        assert told.error["hint"]
        assert name in told.err
        assert not (folder / "session.h5").exists()
    return told.error


def processed(run: Run, folder: Path, code: int = 0) -> Told:
    """Hold that `process` makes a sound session of the folder."""
    with raw_untouched(folder):
        told = run("process", folder)
        assert told.code == code, told.err
        assert validate(folder / "session.h5") == ()
    return told


def clocks(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return recording and clock (or None) by the first part of the raw file's path."""
    parts = folder / ".synorama" / "parts"
    result = read_sync(parts / "sync.h5")
    return {
        r.files[0].path.resolve().relative_to(folder.resolve()).parts[0].split(".")[0]: (
            r,
            result.clocks.get(r.id),
        )
        for r in read_ingest(parts / "ingest.h5")
    }


def error_ms(placed: tuple[Any, Any], truth: ClockMap, reference: ClockMap) -> float:
    """Return by how much a recording's clock is off its truth, at most, while it recorded."""
    recording, clock = placed
    times = np.linspace(recording.first_ns, recording.last_ns, 21).astype(np.int64)
    true = reference.inverse().apply(truth.apply(times))
    return float(np.abs(clock.maps[0].apply(times) - true).max()) / 1e6


# --- files that are none ---------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".vrs", ".mp4", ".MP4", ".webm", ".wav", ".360"])
@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "EmptyFileError"), (bytes(range(256)) * 64, "UnknownFormatError")],
    ids=["empty", "garbage"],
)
def test_empty_and_garbage_files(
    run: Run, tmp_path: Path, suffix: str, content: bytes, kind: str
) -> None:
    path = tmp_path / f"GX010001{suffix}"
    path.write_bytes(content)
    told = run("inspect", path)
    assert told.code == 3
    assert [(e["type"], e["path"]) for e in told.document["failed"]] == [(kind, str(path))]
    if suffix != ".360":  # a suffix of no reader: such files may lie in a session folder
        refused(run, tmp_path, kind, path.name)


def test_a_folder_without_recordings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing was recorded")
    refused(run, tmp_path, "NoRecordingsError", tmp_path.name)
    assert names(tmp_path) == ["notes.txt"]


def test_a_folder_that_is_not_there_is_not_made(run: Run, tmp_path: Path) -> None:
    refused(run, tmp_path / "kitchen", "InputNotFoundError", "kitchen")
    assert names(tmp_path) == []


def test_a_file_in_place_of_a_folder(run: Run, take: Callable[..., Path]) -> None:
    folder = take("webcam.webm")
    told = run("process", folder / "webcam.webm")
    assert (told.code, told.error["type"]) == (3, "InputNotFoundError")
    assert "folder" in told.error["hint"]


# --- VRS -------------------------------------------------------------------------------------


def test_the_usable_part_of_a_cut_vrs_is_kept_and_said(
    run: Run, take: Callable[..., Path], base: Path
) -> None:
    folder = take("leader", "helper")
    path = folder / "helper" / "recording.vrs"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 6 // 10])
    told = processed(run, folder)
    assert {c["method"] for c in told.document["sync"]["clocks"]} == {"reference", "tic_sync"}
    assert any("cut" in t or "not closed" in t for t in told.document["problems"]["aria-1"])
    assert not told.document["problems"]["aria-2"]
    found = {r["id"]: r for r in run("inspect", folder).document["recordings"]}
    cut, full = found["aria-1"], run("inspect", base).document["recordings"][0]
    assert any("cut" in text or "not closed" in text for text in cut["problems"])
    assert not full["problems"]
    for mine, its in zip(cut["tracks"], full["tracks"], strict=True):
        assert 0.4 * its["count"] < mine["count"] < 0.8 * its["count"], mine["name"]
        assert mine["first_ns"] == its["first_ns"]
    with open_session(folder / "session.h5") as session:
        assert any("cut" in p.text or "closed" in p.text for p in
                   session.content.recordings["aria-1"].problems)  # fmt: skip


@pytest.mark.parametrize("size", [50, 2000])
def test_a_vrs_of_which_nothing_is_usable(run: Run, take: Callable[..., Path], size: int) -> None:
    folder = take("leader", "helper")
    path = folder / "helper" / "recording.vrs"
    path.write_bytes(path.read_bytes()[:size])
    told = run("process", folder)
    assert told.code == 3
    assert told.error["type"] in ("TruncatedFileError", "CorruptFileError", "UnknownFormatError")
    assert "helper/recording.vrs" in told.error["path"]
    assert told.error["hint"]


def test_a_vrs_that_is_not_aria(run: Run, take: Callable[..., Path]) -> None:
    folder = take("leader")
    write_foreign_vrs(folder / "other.vrs", rows(20), flavor="team/other", tags={})
    refused(run, folder, "NotAriaError", "other.vrs")


def test_orphan_and_missing_chunks(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen", seconds=6.0)
    scene.glasses("leader", chunk_bytes=300_000)
    chunks = sorted((scene.folder / "leader").iterdir())
    assert len(chunks) >= 4
    whole = run("inspect", scene.folder).document["recordings"]
    assert len(whole) == 1
    assert len(whole[0]["files"]) == len(chunks)
    aside = chunks[1].rename(tmp_path / "aside")
    refused(run, scene.folder, "MissingChunkError", "recording.vrs_1")
    aside.rename(chunks[1])
    chunks[0].unlink()
    refused(run, scene.folder, "OrphanChunkError", "recording.vrs_1")


# --- GoPro and MP4 ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GX010123.MP4", "phone.mp4"])
def test_an_mp4_without_moov(run: Run, take: Callable[..., Path], name: str) -> None:
    folder = take("gopro")
    source = folder / "gopro" / "GX020123.MP4"
    content = source.read_bytes().replace(b"moov", b"free")
    shutil.rmtree(folder / "gopro")
    (folder / name).write_bytes(content)
    refused(run, folder, "NoMovieIndexError", name)


def test_a_chapter_is_missing(run: Run, take: Callable[..., Path]) -> None:
    folder = take("gopro", "leader")
    (folder / "gopro" / "GX010123.MP4").unlink()
    error = refused(run, folder, "MissingChapterError", "GX020123.MP4")
    assert "chapter 1" in error["message"]


@pytest.mark.parametrize("other", [{"serial": "C35013250000092"}, {"number": 124}])
def test_a_chapter_of_another_recording(
    run: Run, take: Callable[..., Path], tmp_path: Path, other: dict[str, Any]
) -> None:
    folder = take("gopro")
    stranger = Scene(tmp_path / "other", seconds=6.0, seed=77)
    stranger.gopro("gopro", **other)
    (stray,) = (tmp_path / "other" / "gopro").glob("GX02*")
    shutil.copy(stray, folder / "gopro" / "GX020123.MP4")
    refused(run, folder, "ForeignChapterError", "GX020123.MP4")


def test_garbage_gps_time_is_no_wall_clock(run: Run, tmp_path: Path) -> None:
    garbage = gopro_files.Telemetry(gps=gopro_files.Gps(utc="garbagegarbage!!"))
    master = gopro_files.encode()
    gopro_files.write_whole(tmp_path / "GX010001.MP4", master, gopro_files.Plan(telemetry=garbage))
    told = run("inspect", tmp_path)
    assert told.code == 0
    (recording,) = told.document["recordings"]
    assert any("GPS" in text for text in recording["problems"])
    processed(run, tmp_path)
    with open_session(tmp_path / "session.h5") as session:
        utc = session.content.recordings["gopro-1"].start_utc
        assert utc is None or "GPS" not in utc.source.upper()


# --- who gave the time -----------------------------------------------------------------------


def test_two_servers_are_told_and_placed_right_by_sound(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen")
    truth = {
        "leader": scene.glasses("leader"),
        "second": scene.glasses("second", device_ns=9 * 10**12, late_s=0.7, drift_ppm=15),
        "webcam": scene.webcam("webcam", late_s=0.3),
    }
    sync = processed(run, scene.folder).document["sync"]
    assert any("more than one recording" in text for text in sync["warnings"])
    _right_by_sound(scene.folder, truth, sync["reference"])


def test_other_session_ids_are_told_and_placed_right_by_sound(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen")
    truth = {
        "leader": scene.glasses("leader"),
        "helper": scene.glasses(
            "helper", "client", device_ns=9 * 10**12, late_s=0.7, shared_session_id="another"
        ),
    }
    sync = processed(run, scene.folder).document["sync"]
    assert any("shared session ids differ" in text for text in sync["warnings"])
    _right_by_sound(scene.folder, truth, sync["reference"])


def test_no_server_is_told_and_clients_meet_in_its_clock(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen")
    truth = {
        "one": scene.glasses("one", "client", device_ns=8 * 10**12),
        "two": scene.glasses("two", "client", device_ns=9 * 10**12, late_s=0.7, drift_ppm=15),
    }
    sync = processed(run, scene.folder).document["sync"]
    assert any("gave the time are missing" in text for text in sync["warnings"])
    placed = clocks(scene.folder)
    reference = next(n for n, (r, _) in placed.items() if r.id == sync["reference"])
    for name, clock in truth.items():
        held = placed[name][1].interval95_ms
        assert error_ms(placed[name], clock, truth[reference]) <= held


def _right_by_sound(folder: Path, truth: dict[str, ClockMap], reference: str) -> None:
    placed = clocks(folder)
    (first,) = (n for n, (r, _) in placed.items() if r.id == reference)
    for name, clock in truth.items():
        if name != first:
            assert placed[name][1].method == "sound"
            assert placed[name][1].interval95_ms > 10, "sound cannot know clocks better"
        assert error_ms(placed[name], clock, truth[first]) < 0.1


# --- restarted in the middle -----------------------------------------------------------------


def test_every_take_of_a_restarted_device_has_its_own_right_clock(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen", seconds=24.0)
    truth = {
        "leader": scene.glasses("leader"),
        "helper1": scene.glasses("helper1", "client", device_ns=9 * 10**12, seconds=11),
        "helper2": scene.glasses("helper2", "client", device_ns=3 * 10**10, late_s=12.5),
        "cam1": scene.webcam("cam1", seconds=11),
        "cam2": scene.webcam("cam2", late_s=13),
    }
    processed(run, scene.folder)
    placed = clocks(scene.folder)
    assert set(placed) == set(truth)
    for name, clock in truth.items():
        assert error_ms(placed[name], clock, truth["leader"]) < (0.1 if "cam" in name else 1.0)


def test_notes_of_a_restarted_server_are_not_taken_for_those_of_its_other_take(
    run: Run, tmp_path: Path
) -> None:
    """The server's clock begins anew in the middle, and the client goes on noting it."""
    first, second, own = ARIA_START_NS, 3 * 10**10, 9 * 10**12
    notes = [(own + k * 10**8, first + k * 10**8) for k in range(300)]
    notes += [(own + k * 10**8, second + (k - 350) * 10**8) for k in range(350, 600)]
    _glasses(tmp_path / "a.vrs", first, 30, "server")
    _glasses(tmp_path / "b.vrs", second, 25, "server")
    _glasses(tmp_path / "helper.vrs", own, 60, "client", {"TIC_SYNC": notes})
    told = processed(run, tmp_path, code=5)
    assert any("restarted" in text for text in told.document["sync"]["warnings"])
    placed = clocks(tmp_path)
    recording, clock = placed["helper"]
    times = np.linspace(recording.first_ns, recording.last_ns, 50).astype(np.int64)
    for one in clock.maps:
        assert np.abs(one.apply(times) - (times - own + first)).max() < 1e6
    assert placed["b"][1] is None, "without sound nothing tells where the second take belongs"


def test_a_client_of_the_other_take_is_not_placed_by_hardware(run: Run, tmp_path: Path) -> None:
    second, own = 3 * 10**10, 9 * 10**12
    notes = [(own + k * 10**8, second + k * 10**8) for k in range(300)]
    _glasses(tmp_path / "leader.vrs", ARIA_START_NS, 30, "server")
    _glasses(tmp_path / "helper.vrs", own, 30, "client", {"TIC_SYNC": notes})
    told = processed(run, tmp_path, code=5)
    assert "aria-1" in told.document["sync"]["unsynced"]


def _glasses(
    path: Path,
    start_ns: int,
    seconds: int,
    role: str,
    mapping: dict[str, list[tuple[int, int]]] | None = None,
) -> None:
    times = [start_ns + k * 10**7 for k in range(100 * seconds)]
    AriaFile(
        frames_ns=times[::3],
        imu_ns=times,
        blocks=[],
        metadata={"ticsync_mode": role, "shared_session_id": "one"},
        mapping=mapping or {},
    ).write(path)


def test_sound_whose_times_leap_by_years_fills_no_memory(
    run: Run, take: Callable[..., Path]
) -> None:
    folder = take("leader")
    blocks = sound_blocks(10)
    blocks[1:] = [[t + 10**17 for t in block] for block in blocks[1:]]
    AriaFile(blocks=blocks).write(folder / "other.vrs")
    told = processed(run, folder, code=5)
    assert "leap" in told.document["sync"]["unsynced"]["aria-2"]


# --- no sound --------------------------------------------------------------------------------


def test_a_camera_without_sound_is_left_unsynced_and_can_be_placed_by_hand(
    run: Run, take: Callable[..., Path]
) -> None:
    folder = take("leader")
    master = gopro_files.encode()
    gopro_files.write_whole(folder / "GX010001.MP4", master, gopro_files.Plan(sound=False))
    told = processed(run, folder, code=5)
    assert "sound" in told.document["sync"]["unsynced"]["gopro-1"]
    told = run("show", folder)
    shown = {r["id"]: r for r in told.document["recordings"]}
    assert shown["gopro-1"]["clock"] is None
    assert "sound" in shown["gopro-1"]["unsynced_because"]
    assert shown["aria-1"]["clock"]
    told = run("process", folder, "--offset", "gopro-1=402.5")
    assert told.code == 0
    (clock,) = (c for c in told.document["sync"]["clocks"] if c["recording"] == "gopro-1")
    assert (clock["offset_s"], clock["method"], clock["interval95_ms"]) == (402.5, "manual", None)


# --- the place for the output ----------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return a function that mounts, and later resizes, a disk of so many kB."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size_kb: int) -> Path:
        how = ["-o", f"remount,size={size_kb}k"] if place.is_mount() else ["-o", f"size={size_kb}k"]
        command = ["mount", "-t", "tmpfs", *how, "tmpfs", str(place)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("only root can mount a small disk")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("size_kb", [16, 600, 1300])
def test_a_full_disk(
    run: Run, take: Callable[..., Path], disk: Callable[[int], Path], size_kb: int
) -> None:
    folder = take("leader", "helper")
    output = disk(size_kb) / "session.h5"
    with raw_untouched(folder):
        told = run("process", folder, "-o", output)
        assert (told.code, told.error["type"]) == (3, "DiskFullError")
        assert "make room" in told.error["hint"]
    assert not output.exists()
    assert not list(output.parent.rglob("*.writing"))
    disk(20_000)
    assert run("process", folder, "-o", output).code == 0
    assert validate(output) == ()


@pytest.mark.parametrize("short_kb", [20_000, -200], ids=["at once", "in the middle"])
def test_a_full_disk_at_sealing(
    run: Run, take: Callable[..., Path], disk: Callable[[int], Path], short_kb: int
) -> None:
    folder = take("leader", "gopro")
    media_kb = sum(map(len, digests(folder).values())) // 1024
    processed(run, folder)
    release = disk(media_kb - short_kb) / "release.h5"
    told = run("seal", folder, "-o", release)
    assert (told.code, told.error["type"]) == (3, "DiskFullError")
    assert names(release.parent) == []
    disk(2 * media_kb)
    told = run("seal", folder, "-o", release)
    assert told.code == 0, told.err
    assert validate(release, every_byte=True) == ()


def test_nothing_but_a_working_session_is_ever_replaced(
    run: Run, take: Callable[..., Path], tmp_path: Path
) -> None:
    folder = take("webcam.webm", "leader")
    mine = tmp_path / "mine.h5"
    mine.write_text("a year's work")
    with raw_untouched(folder):
        for output in (folder / "webcam.webm", folder / "leader", mine):
            told = run("process", folder, "-o", output)
            assert (told.code, told.error["type"]) == (2, "OutputExistsError")
        release = tmp_path / "release.h5"
        assert run("process", folder, "--seal", release).code == 0
        sealed = release.read_bytes()
        for arguments in (["-o", release], ["--seal", release]):
            told = run("process", folder, *arguments)
            assert (told.code, told.error["type"]) == (2, "OutputExistsError")
        for output in (folder / "webcam.webm", folder / "leader" / "recording.vrs", mine):
            told = run("seal", folder, "-o", output, "--overwrite")
            assert (told.code, told.error["type"]) == (2, "OutputExistsError")
    assert mine.read_text() == "a year's work"
    assert release.read_bytes() == sealed
    assert run("seal", folder, "-o", release, "--overwrite").code == 0
    told = run("seal", folder, "-o", folder / "session.h5", "--overwrite")
    assert (told.code, told.error["type"]) == (2, "UsageError")


def test_a_damaged_session_of_ours_is_made_again(run: Run, take: Callable[..., Path]) -> None:
    folder = take("leader", "helper")
    processed(run, folder)
    for spoilt in ("session.h5", ".synorama/parts/sync.h5", ".synorama/parts/ingest.h5"):
        path = folder / spoilt
        path.write_bytes(path.read_bytes()[:1000])
        processed(run, folder)
        assert validate(folder / "session.h5", every_byte=True) == ()


# --- permissions -----------------------------------------------------------------------------


def unprivileged(*arguments: str | Path) -> Told:
    """Run a command for which the modes of files count, even where root runs the tests."""
    drop = "-dac_override,-dac_read_search"
    prefix = ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may do everything, and there is no setpriv")
    command = [sys.executable, "-m", "synorama", *map(str, arguments), "--json"]
    done = subprocess.run(
        [*(prefix if os.geteuid() == 0 else []), *command], capture_output=True, text=True
    )
    assert "internal fault" not in done.stderr
    return Told(done.returncode, done.stdout, done.stderr)


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    before = path.stat().st_mode & 0o777
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


def test_a_read_only_folder_is_processed_elsewhere(
    take: Callable[..., Path], tmp_path: Path
) -> None:
    folder = take("leader", "webcam.webm")
    before = digests(folder)
    with mode(folder, 0o555):
        told = unprivileged("process", folder)
        assert (told.code, told.error["type"]) == (3, "OutputNotWritableError")
        assert "--output" in told.error["hint"]
        told = unprivileged("inspect", folder, "--write")
        assert (told.code, told.error["type"]) == (3, "OutputNotWritableError")
        output = tmp_path / "elsewhere.h5"
        assert unprivileged("process", folder, "-o", output).code == 0
        told = unprivileged("seal", output, "-o", folder / "release.h5")
        assert (told.code, told.error["type"]) == (3, "OutputNotWritableError")
    assert digests(folder) == before
    assert names(folder) == ["leader", "webcam.webm"]
    assert validate(output) == ()


def test_what_may_not_be_read_stops_the_run(take: Callable[..., Path], tmp_path: Path) -> None:
    folder = take("leader", "webcam.webm")
    assert unprivileged("process", folder).code == 0
    for path in (folder / "webcam.webm", folder / "leader" / "recording.vrs"):
        with mode(path, 0):
            told = unprivileged("process", folder, "--from", "ingest")
            assert (told.code, told.error["type"]) == (3, "InputUnreadableError")
            assert path.name in told.error["path"]
            told = unprivileged("seal", folder, "-o", tmp_path / "release.h5")
            assert (told.code, told.error["type"]) == (3, "InputUnreadableError")
            assert not (tmp_path / "release.h5").exists()
    with mode(folder / "leader", 0):  # else the session would lack the glasses unnoticed
        told = unprivileged("inspect", folder)
        assert (told.code, told.error["type"]) == (3, "InputUnreadableError")
        assert told.error["path"].endswith("leader")
    with mode(folder, 0):
        told = unprivileged("status", folder)
        assert (told.code, told.error["type"]) == (3, "InputUnreadableError")


# --- names and links -------------------------------------------------------------------------


def test_linked_folders_are_searched_and_may_circle(run: Run, base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kitchen"
    folder.mkdir()
    (folder / "far").symlink_to(base / "leader")
    (folder / "loop").symlink_to(folder)
    (folder / "up").symlink_to(tmp_path)
    (folder / "far-again").symlink_to(base / "leader")
    told = run("inspect", folder)
    assert [r["id"] for r in told.document["recordings"]] == ["aria-1"]
    (folder / "gone.mp4").symlink_to(folder / "nothing")
    told = run("inspect", folder)
    assert [e["type"] for e in told.document["failed"]] == ["InputNotFoundError"]


def test_pipes_and_devices_are_never_waited_for(run: Run, take: Callable[..., Path]) -> None:
    folder = take("webcam.webm")
    os.mkfifo(folder / "pipe.mp4")
    told = run("inspect", folder)
    assert [r["id"] for r in told.document["recordings"]] == ["webcam-1"]
    for path in (folder / "pipe.mp4", Path(os.devnull)):
        told = run("inspect", path)
        assert [e["type"] for e in told.document["failed"]] == ["UnknownFormatError"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_names_in_another_encoding(take: Callable[..., Path], tmp_path: Path) -> None:
    folder = take("webcam.webm")
    (folder / "webcam.webm").rename(folder / os.fsdecode(b"k\xfcche.webm"))
    assert unprivileged("process", folder).code == 0
    assert unprivileged("seal", folder, "-o", tmp_path / "release.h5").code == 0
    assert validate(tmp_path / "release.h5", every_byte=True) == ()
    told = unprivileged("inspect", folder, "--write")
    assert (told.code, told.error["type"]) == (3, "InputError")
    assert not (folder / "session.toml").exists()


# --- session.toml ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("[session\n", "TOML"),
        ("a = " + "[" * 5000, "TOML"),
        ("[session]\nidd = 'x'\n", "idd"),
        ("[session]\nid = '../x'\n", "letters, digits"),
        ("[session]\nignore = ['nothing.mp4']\n", "nothing.mp4"),
        ("[session]\nignore = ['']\n", "no file"),
        ("[[recordings]]\npath = 'nothing.mp4'\n", "nothing.mp4"),
        ("[[recordings]]\npath = ''\n", "no recording"),
        ("[[recordings]]\npath = 'webcam.webm'\nid = 'a b'\n", "letters, digits"),
        ("[[recordings]]\npath = 'webcam.webm'\noffset_s = nan\n", "offset_s"),
        ("[[recordings]]\npath = 'webcam.webm'\noffset_s = 1e300\n", "offset_s"),
        ("[[recordings]]\npath = 'webcam.webm'\noffset_s = 'soon'\n", "offset_s"),
        ("[[recordings]]\npath = 'webcam.webm'\n" * 2, "twice"),
        ("[[recordings]]\npath = 'webcam.webm'\n[[recordings]]\npath = './webcam.webm'\n", "twice"),
        ("[[recordings]]\npath = 'session.toml'\n", "no recording"),
    ],
)
def test_faults_of_session_toml(run: Run, take: Callable[..., Path], text: str, about: str) -> None:
    folder = take("webcam.webm")
    (folder / "session.toml").write_text(text)
    error = refused(run, folder, "ConfigError", "session.toml", code=2)
    assert about in error["message"]
