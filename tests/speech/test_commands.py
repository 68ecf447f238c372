"""The stage and the verbs: transcribe, export, import."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synorama.pipeline import Workspace, process, status
from synorama.session import open_session
from synorama.speech.models import MODEL_ENVIRONMENT


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "synorama", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def answer(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A simulated session of 20 s in a room, transcribed."""
    from synorama.simulate import simulate

    folder = tmp_path_factory.mktemp("speech") / "kitchen"
    simulate(folder, seed=4, seconds=20.0, render=False, scan=None, devices=("leader", "helper"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MODEL_ENVIRONMENT, str(tiny_model))
        process(Workspace(folder))
    return folder


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> None:
    monkeypatch.setenv(MODEL_ENVIRONMENT, str(tiny_model))


def test_a_session_is_transcribed_on_its_clock_with_its_wearers(session: Path) -> None:
    truth = json.loads((session / "truth.json").read_text())
    said = {w["text"].lower() for w in truth["words"]}
    with open_session(session / "session.h5", warn=False) as opened:
        transcript = opened.transcript
        assert transcript is not None
        assert {w.speaker for w in transcript.words} == {"leader", "helper"}
        heard = [w for w in transcript.words if w.text.strip(".,?!").lower() in said]
        assert len(heard) >= 0.7 * len(truth["words"])
        first, last = truth["words"][0]["start_ns"], truth["words"][-1]["end_ns"]
        assert opened.words(first, last + 10**9)
        assert transcript.segments
        assert not (session / ".synorama" / "windows").exists()


def test_what_is_transcribed_is_not_transcribed_again(session: Path) -> None:
    states = {run.name: run.state for run in status(Workspace(session))}
    assert states["transcribe"] == states["words"] == "up-to-date"


def test_without_a_model_the_stage_is_skipped_with_its_reason(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODEL_ENVIRONMENT, str(tmp_path / "none"))
    runs = {run.name: run for run in status(Workspace(session))}
    assert runs["transcribe"].state == "skipped"
    assert "no such folder" in runs["transcribe"].reason


def test_session_toml_may_say_no(session: Path, tmp_path: Path) -> None:
    folder = tmp_path / "quiet"
    shutil.copytree(session, folder, ignore=lambda *_: [".synorama", "session.h5"])
    (folder / "session.toml").write_text("[speech]\ntranscribe = false\n")
    runs = {run.name: run for run in status(Workspace(folder))}
    assert runs["transcribe"].reason == "session.toml says so"


@pytest.mark.parametrize(
    "name", ["t.json", "t.srt", "t.vtt", "t.csv", "speech.csv", "t.TextGrid", "t.eaf"]
)
def test_what_goes_out_comes_back_unchanged(session: Path, tmp_path: Path, name: str) -> None:
    told = answer("export", session, "-o", tmp_path / name)
    assert told["words"] > 10
    found = answer("import", session, tmp_path / name, "--dry-run")
    assert [found[k] for k in ("added", "changed", "retimed", "removed")] == [0, 0, 0, 0]
    assert found["words"] == told["words"]


def test_a_correction_comes_back_with_its_provenance_and_stays(
    session: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kitchen"
    shutil.copytree(session, folder)
    path = tmp_path / "t.srt"
    answer("export", folder, "-o", path)
    lines = path.read_text("utf-8").split("\n")
    lines[2] = lines[2].split(": ")[0] + ": Colander!"
    path.write_text("\n".join(lines), "utf-8")
    found = answer("import", folder, path, "--by", "P09")
    assert (found["changed"], found["added"], found["removed"]) == (1, 0, 0)
    with open_session(folder / "session.h5", warn=False) as opened:
        transcript = opened.transcript
    assert transcript is not None
    assert "Colander!" in [w.text for w in transcript.words]
    (told,) = transcript.facts["corrections"]
    assert (told["by"], told["file"], told["changed"]) == ("P09", "t.srt", 1)
    process(Workspace(folder), start="transcribe")  # transcribed anew, and corrected again
    with open_session(folder / "session.h5", warn=False) as opened:
        assert opened.transcript is not None
        assert opened.transcript.words == transcript.words


def test_plain_files_print_the_promised_document(shared_data: Path) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "jfk.flac"
    told = answer("transcribe", path, "--offline", "--no-progress")
    assert {"words", "segments", "model", "backend"} <= set(told)
    assert set(told["words"][0]) == {
        "text",
        "start_s",
        "end_s",
        "probability",
        "speaker",
        "device",
        "timing_source",
        "overlapped",
    }
    assert told["words"][0]["device"] == "jfk"


def test_plain_files_go_into_a_file(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "jfk.flac"
    done = run("transcribe", path, "-o", tmp_path / "jfk.vtt", "--offline")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "jfk.vtt").read_text().startswith("WEBVTT")
    assert [p.name for p in tmp_path.iterdir()] == ["jfk.vtt"]
    again = run("transcribe", path, "-o", tmp_path / "jfk.vtt", "--offline")
    assert again.returncode == 2


def test_refusals_have_their_exit_codes(session: Path, tmp_path: Path, shared_data: Path) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "jfk.flac"
    assert run("transcribe", path, "--model", tmp_path / "none").returncode == 4
    assert run("transcribe", path, "--language", "fr").returncode == 2
    assert run("transcribe", tmp_path / "none.wav").returncode == 3
    assert run("export", session, "-o", tmp_path / "a.docx").returncode == 2
    broken = tmp_path / "t.vtt"
    broken.write_text("no")
    assert run("import", session, broken).returncode == 3
    assert run("import", tmp_path, broken).returncode == 2
