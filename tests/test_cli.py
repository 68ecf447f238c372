"""The command line: what its verbs print, write and return, and what they must never do."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import blake3
import pytest
import typer

from synorama import cli, open_session
from synorama.session import validate
from tests.capture.aria_files import AriaFile, sound_blocks
from tests.devices import Scene

VERBS = (
    "align",
    "calibrate",
    "doctor",
    "export",
    "import",
    "inspect",
    "process",
    "register",
    "seal",
    "show",
    "simulate",
    "status",
    "sync",
    "sync-card",
    "transcribe",
    "validate",
)
VENDOR = (
    "av", "blake3", "cv2", "h5py", "lz4", "projectaria_tools", "pyarrow", "pyvrs", "scipy",
    "soxr", "vrsbindings", "zstandard",
)  # fmt: skip
RECORDING = {"id", "device", "role", "clock", "files", "tracks", "problems"}
TRACK = {
    "name", "kind", "codec", "count", "first_ns", "last_ns", "rate_hz", "width", "height",
    "channels",
}  # fmt: skip
CLOCK = {"recording", "offset_s", "drift_ppm", "interval95_ms", "p_match", "method"}
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns exit code and its one JSON document."""

    def command(*arguments: str | Path) -> tuple[int, Any]:
        capsys.readouterr()
        code = cli._run([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert "internal fault" not in err
        return code, json.loads(out)

    return command


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two glasses and a webcam; only read."""
    scene = Scene(tmp_path_factory.mktemp("raw") / "kitchen")
    scene.glasses("leader")
    scene.glasses("helper", "client", device_ns=9 * 10**12, late_s=0.7, drift_ppm=15)
    scene.webcam("webcam")
    return scene.folder


@pytest.fixture(scope="module")
def done(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, processed; only read."""
    folder = tmp_path_factory.mktemp("done") / "kitchen"
    shutil.copytree(raw, folder)
    assert cli._run(["process", str(folder), "-o", str(folder / "session.h5")]) == 0
    return folder


@pytest.fixture
def folder(raw: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(raw, tmp_path / "kitchen"))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def stages(document: dict[str, Any]) -> dict[str, str]:
    """Return the states of the stages that the session has a need of."""
    for stage in document["stages"]:
        assert {"name", "state", "seconds"} <= set(stage)
    needed = (stage for stage in document["stages"] if stage["state"] != "skipped")
    return {stage["name"]: stage["state"] for stage in needed}


# --- help ------------------------------------------------------------------------------------


def test_every_verb_is_tested_here() -> None:
    group: Any = typer.main.get_command(cli.app)
    assert tuple(sorted(group.commands)) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._run([verb, "--help"]) == 0
    out, err = capsys.readouterr()
    assert "--json" in out
    assert not err


@pytest.mark.parametrize("arguments", [["--help"], ["process", "--help"], ["--version"]])
def test_help_loads_no_vendor_library(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom synorama import cli\n"
        f"assert cli._run({arguments!r}) == 0\n"
        f"sys.exit(' '.join(sorted(set({VENDOR!r}) & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._run(["--version"]) == 0
    assert re.fullmatch(r"synorama \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


# --- exit codes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["nothing"], 2, "UsageError"),
        (["process"], 2, "UsageError"),
        (["process", "{raw}", "--nothing"], 2, "UsageError"),
        (["process", "{raw}", "--only", "nothing"], 2, "UsageError"),
        (["process", "{raw}", "--from", "nothing"], 2, "UsageError"),
        (["process", "{raw}", "--only", "sync", "--from", "sync"], 2, "UsageError"),
        (["process", "{raw}", "--offset", "webcam-1"], 2, "UsageError"),
        (["process", "{raw}", "--offset", "webcam-1=soon"], 2, "UsageError"),
        (["process", "{raw}", "--offset", "webcam-1=nan"], 2, "UsageError"),
        (["process", "{raw}", "--offset", "webcam-1=1e30"], 2, "UsageError"),
        (["process", "{raw}", "--offset", "nobody=1"], 2, "UsageError"),
        (["process", "{raw}", "--rig", "{raw}/nothing.toml"], 2, "ConfigError"),
        (["process", "{raw}", "--seal", "{raw}/no/folder.h5"], 3, "OutputNotWritableError"),
        (["simulate", "{raw}"], 2, "OutputExistsError"),
        (["simulate", "{tmp}/x", "--seconds", "1"], 2, "UsageError"),
        (["simulate", "{tmp}/x", "--seconds", "nan"], 2, "UsageError"),
        (["simulate", "{tmp}/x", "--size", "huge"], 2, "UsageError"),
        (["inspect", "{raw}/webcam.webm", "--write"], 2, "UsageError"),
        (["status", "{tmp}/nowhere"], 3, "InputNotFoundError"),
        (["show", "{tmp}/nowhere.h5"], 3, "InputNotFoundError"),
        (["show", "{raw}/webcam.webm"], 6, "NotASessionError"),
        (["validate", "{raw}/webcam.webm"], 6, "NotASessionError"),
        (["seal", "{raw}/webcam.webm", "-o", "{tmp}/x.h5"], 6, "NotASessionError"),
        (["seal", "{raw}", "-o", "{tmp}/x.h5", "--dry-run"], 3, "InputNotFoundError"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, raw: Path, tmp_path: Path, arguments: list[str], code: int, kind: str
) -> None:
    before = everything(raw)
    given = [a.format(raw=raw, tmp=tmp_path) for a in arguments]
    found, document = run(*given)
    assert (found, document["error"]["type"]) == (code, kind)
    assert document["error"]["message"]
    assert everything(raw) == before
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_named(
    run: Run, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [m for m in sys.modules if m.split(".")[0] == "soxr"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "soxr", None)
    code, document = run("process", raw, "-o", tmp_path / "x.h5")
    assert (code, document["error"]["type"]) == (4, "MissingDependencyError")
    assert "soxr" in document["error"]["message"]
    assert "doctor" in document["error"]["hint"]


def test_what_needs_no_missing_library_goes_on(
    run: Run, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    code, document = run("inspect", raw)
    assert code == 4
    assert [r["id"] for r in document["recordings"]] == ["aria-1", "aria-2"]
    assert [e["type"] for e in document["failed"]] == ["MissingDependencyError"]


def test_a_fault_of_ours_is_owned(
    raw: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("synorama.pipeline.status", fail)
    assert cli._run(["-v", "status", str(raw), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["type"] == "InternalFault"
    assert "Traceback" in err
    assert "internal fault: ZeroDivisionError: oops" in err


def test_an_interrupt_leaves_a_state_to_go_on_from(run: Run, folder: Path) -> None:
    command = [sys.executable, "-m", "synorama", "process", str(folder), "--json"]
    journal = folder / ".synorama" / "journal.jsonl"
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell has its background jobs ignore interrupts, and they pass that on.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, **pipes, preexec_fn=heard) as process:
        give_up = time.monotonic() + 60
        while "ingest" not in (journal.read_text() if journal.is_file() else ""):
            assert time.monotonic() < give_up
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert b"run the same command to go on" in err
    assert json.loads(out)["error"]["type"] == "Interrupted"
    assert b"Traceback" not in err
    assert not list(folder.rglob("*.writing"))
    code, document = run("process", folder)
    assert code == 0
    assert stages(document)["ingest"] == "up-to-date"
    assert validate(folder / "session.h5") == ()


def test_nobody_reads_to_the_end(raw: Path) -> None:
    command = f"{sys.executable} -m synorama inspect '{raw}' --json | head -c 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{", b"")


# --- inspect ---------------------------------------------------------------------------------


def test_inspect_tells_all_that_was_promised(run: Run, raw: Path) -> None:
    code, document = run("inspect", raw)
    assert code == 0
    assert [r["device"] for r in document["recordings"]] == ["aria", "aria", "webcam"]
    for recording in document["recordings"]:
        assert set(recording) >= RECORDING
        assert all(set(f) == {"name", "bytes", "digest"} for f in recording["files"])
        assert all(f["digest"] is None for f in recording["files"])
        assert all(set(track) == TRACK for track in recording["tracks"])
    clocks = [r["clock"] for r in document["recordings"]]
    assert clocks == ["TICSync client", "TICSync server", "own"]


def test_hash_reads_every_byte(run: Run, raw: Path) -> None:
    path = raw / "webcam.webm"
    _, document = run("inspect", path, "--hash")
    (file,) = document["recordings"][0]["files"]
    assert file["digest"] == blake3.blake3(path.read_bytes()).hexdigest()
    assert file["bytes"] == path.stat().st_size


@pytest.mark.parametrize("name", ["kitchen", "_kitchen", "küche 7", "-", "a" * 200])
def test_what_write_saves_is_what_is_read_again(
    run: Run, raw: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(raw / "webcam.webm", folder)
    before = run("inspect", folder)
    assert run("inspect", folder, "--write")[0] == 0
    assert run("inspect", folder) == before
    saved = (folder / "session.toml").read_bytes()
    code, document = run("inspect", folder, "--write")
    assert (code, document["error"]["type"]) == (2, "OutputExistsError")
    assert (folder / "session.toml").read_bytes() == saved


def failing(document: dict[str, Any]) -> dict[str, str]:
    return {c["name"]: c["text"] for c in document["field"] if not c["passed"]}


def test_a_good_session_passes_the_check_in_the_field(run: Run, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen", seconds=57.0)
    scene.glasses("leader")
    scene.glasses("helper", "client", device_ns=9 * 10**12)
    code, document = run("inspect", scene.folder, "--field")
    assert failing(document) == {}
    assert code == 0


def test_faults_of_a_session_are_seen_in_the_field(run: Run, folder: Path) -> None:
    AriaFile(blocks=sound_blocks(10)).write(folder / "muted.vrs")
    AriaFile(blocks=[], metadata={"ticsync_mode": "client"}).write(folder / "never.vrs")
    code, document = run("inspect", folder, "--field")
    assert code == 5
    failed = failing(document)
    ids = {r["files"][0]["name"]: r["id"] for r in document["recordings"]}
    helper = next(r["id"] for r in document["recordings"] if r["clock"] == "TICSync client")
    assert "55 s to settle" in failed[f"{helper}: hardware clock"]
    assert "never synchronised" in failed[f"{ids['never.vrs']}: hardware clock"]
    assert "no sound" in failed[f"{ids['never.vrs']}: microphone"]
    assert "muted" in failed[f"{ids['muted.vrs']}: microphone"]
    assert "different shared sessions" in failed["shared session"]
    (folder / "cut.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(5000))
    code, document = run("inspect", folder, "--field")
    assert code == 3, "a file that cannot be opened"
    assert "cut.mp4" in failing(document)["files"]


def real_files(root: Path) -> list[Path]:
    folders = ("1_vrs", "3_gopro", "7_webcam")
    files = [p for name in folders for p in sorted((root / name).rglob("*")) if p.is_file()]
    return [*files, *(p for p in sorted((root / "2_mps").rglob("*")) if p.is_dir())]


def test_no_real_file_makes_inspect_stumble(run: Run, shared_data: Path) -> None:
    opened = 0
    for path in real_files(shared_data):
        code, document = run("inspect", path)
        assert code in (0, 3), path
        opened += bool(document.get("recordings"))
        for error in document.get("failed", []):
            assert error["message"]
            assert error["path"]
    assert opened >= 15


# --- process, sync, status -------------------------------------------------------------------


def test_a_session_step_by_step(run: Run, folder: Path, tmp_path: Path) -> None:
    fresh = {"ingest": "stale", "sync": "stale", "assemble": "stale"}
    assert stages(run("status", folder)[1]) == fresh
    assert run("process", folder, "--only", "assemble")[1]["error"]["type"] == "UsageError"
    code, document = run("process", folder, "--only", "ingest")
    assert code == 0
    assert document["sync"] is None
    assert stages(document) == fresh | {"ingest": "done"}
    code, document = run("sync", folder)
    assert stages(document) == {"ingest": "up-to-date", "sync": "done", "assemble": "stale"}
    assert not (folder / "session.h5").exists()
    code, document = run("process", folder, "--seal", tmp_path / "release.h5")
    assert code == 0
    told = {"session", "stages", "sync", "geometry", "objects", "problems"}
    assert set(document) == told | {"sealed", "bytes", "warnings"}
    assert stages(document) == {"ingest": "up-to-date", "sync": "up-to-date", "assemble": "done"}
    assert document["bytes"] == (tmp_path / "release.h5").stat().st_size
    assert {"reference", "clocks", "unsynced", "coarse", "warnings"} == set(document["sync"])
    assert all(set(clock) >= CLOCK for clock in document["sync"]["clocks"])
    again = stages(run("process", folder, "--from", "sync")[1])
    assert again == {"ingest": "up-to-date", "sync": "done", "assemble": "done"}
    assert set(stages(run("status", folder)[1]).values()) == {"up-to-date"}


def test_an_offset_by_hand(run: Run, folder: Path) -> None:
    assert run("process", folder)[0] == 0
    by_hand = ("--offset", "webcam-1=402.25")
    code, document = run("process", folder, *by_hand)
    assert code == 0
    assert stages(document) == {"ingest": "up-to-date", "sync": "done", "assemble": "done"}
    (clock,) = (c for c in document["sync"]["clocks"] if c["recording"] == "webcam-1")
    assert (clock["method"], clock["offset_s"], clock["interval95_ms"]) == ("manual", 402.25, None)
    assert set(stages(run("status", folder, *by_hand)[1]).values()) == {"up-to-date"}
    assert stages(run("status", folder)[1])["sync"] == "stale"
    code, document = run("process", folder, "--offset", "aria-2=1")
    assert code == 2, "the reference's own clock"


def test_sessions_with_outputs_in_one_folder_keep_apart(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    out = tmp_path / "out"
    for source in (folder, other):
        code, _ = run("process", source, "-o", out / f"{source.name}.h5")
        assert code == 0
    for source in (folder, other):
        code, document = run("process", source, "-o", out / f"{source.name}.h5")
        assert set(stages(document).values()) == {"up-to-date"}
        with open_session(out / f"{source.name}.h5") as session:
            paths = [f.path for r in session.content.recordings.values() for f in r.files]
        assert all(source.resolve() in path.resolve().parents for path in paths)
    assert not (folder / ".synorama").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["process", "{folder}", "--dry-run"],
        ["process", "{folder}", "--dry-run", "--seal", "{folder}/x.h5"],
        ["sync", "{folder}", "--dry-run"],
        ["simulate", "{folder}/new", "--dry-run"],
        ["seal", "{done}", "-o", "{folder}/x.h5", "--dry-run"],
    ],
)
def test_a_dry_run_writes_nothing(run: Run, folder: Path, done: Path, arguments: list[str]) -> None:
    before = everything(folder), everything(done)
    code, document = run(*(a.format(folder=folder, done=done) for a in arguments))
    assert code == 0
    assert document
    assert (everything(folder), everything(done)) == before
    assert not (folder / ".synorama").exists()


# --- show, validate, seal, doctor ------------------------------------------------------------


def test_show_and_validate_take_file_or_folder(run: Run, done: Path) -> None:
    shown = run("show", done)
    assert shown == run("show", done / "session.h5")
    assert shown[0] == 0
    assert {r["id"] for r in shown[1]["recordings"]} == {"aria-1", "aria-2", "webcam-1"}
    assert run("validate", done, "--bytes") == (0, {"sound": True, "problems": []})


def test_one_wrong_bit_is_found(run: Run, done: Path, tmp_path: Path) -> None:
    release = tmp_path / "release.h5"
    code, document = run("seal", done, "-o", release)
    assert (code, document["sealed"]) == (0, str(release))
    assert run("validate", release, "--bytes")[0] == 0
    release.chmod(0o644)
    content = bytearray(release.read_bytes())
    content[len(content) // 2] ^= 1
    release.write_bytes(content)
    code, document = run("validate", release, "--bytes")
    assert (code, document["sound"]) == (6, False)
    assert document["problems"]


def test_seal_replaces_only_when_asked(run: Run, done: Path, tmp_path: Path) -> None:
    release = tmp_path / "release.h5"
    assert run("seal", done, "-o", release)[0] == 0
    code, document = run("seal", done, "-o", release)
    assert (code, document["error"]["type"]) == (2, "OutputExistsError")
    assert run("seal", done, "-o", release, "--overwrite")[0] == 0


def test_doctor_names_every_part(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, document = run("doctor")
    assert code == 0
    assert all(part["present"] or part["optional"] for part in document["parts"])
    monkeypatch.setitem(sys.modules, "soxr", None)
    _, document = run("doctor")
    (part,) = (p for p in document["parts"] if not p["present"] and not p["optional"])
    assert part["name"] == "soxr"
    assert "pip install soxr" in part["remedy"]


@pytest.mark.parametrize("verb", ["inspect", "process", "status", "show", "validate", "doctor"])
def test_words_for_people(verb: str, done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._run(["-q", verb, *([] if verb == "doctor" else [str(done)])]) == 0
    out, err = capsys.readouterr()
    assert out.strip()
    assert not err
    assert "None" not in out


# --- damage of any kind ----------------------------------------------------------------------


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one kind of damage that copying, cards and attackers do."""
    data, at = bytearray(content), rng.randrange(len(content))
    near = rng.choice([at, rng.randrange(min(4096, len(data))), -1 - rng.randrange(8192)])
    kind = rng.randrange(5)
    if kind == 0:
        data[near] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    elif kind == 3:
        del data[at : at + rng.choice([1, 16, 4096])]
    else:
        near %= len(data) - 4
        data[near : near + 4] = rng.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\x80"])
    return bytes(data)


@pytest.mark.parametrize("name", ["helper/recording.vrs", "webcam.webm", "GX010001.MP4"])
def test_damaged_files_are_read_or_refused_in_words(
    run: Run, raw: Path, tmp_path: Path, name: str
) -> None:
    source = raw / name
    if name.endswith("MP4"):
        scene = Scene(tmp_path / "made", seconds=6.0)
        scene.gopro("gopro", chapters=1)
        (source,) = (scene.folder / "gopro").iterdir()
    content, rng = source.read_bytes(), random.Random(name)
    path = tmp_path / source.name
    for _ in range(10):
        path.write_bytes(damaged(content, rng))
        began = time.monotonic()
        code, _ = run("inspect", path)
        assert code in (0, 3)
        assert time.monotonic() - began < 10
