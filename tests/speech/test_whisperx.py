"""WhisperX in its own process: the contract with a worker of ours, and the real one where it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import resample_poly

from synorama.capture import open_recording
from synorama.errors import MissingDependencyError, ModelDamagedError, ModelLanguageError
from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.voices import load_voice
from synorama.speech import from_samples, read_device, transcribe, whisperx
from synorama.speech.backend import Recognizer
from synorama.speech.backends import BackendChoice, load_recognizer
from synorama.speech.heard import bare
from synorama.speech.language import full_scale
from synorama.speech.sound import SPEECH_HZ
from synorama.speech.transcribe import Asked

SAID = (
    "and so my fellow americans ask not what your country can do for you "
    "ask what you can do for your country"
)
WORKER = whisperx.WORKER
FAKE = """
import json, sys
print("libraries are chatty", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    verb = request["verb"]
    if verb == "load":
        answer = {"ok": {"version": "0", "multilingual": False}}
        if "damaged" in request["model"]:
            answer = {"error": "RuntimeError: model.bin is incomplete"}
    elif verb == "can_align":
        answer = {"ok": request["language"] == "en"}
    elif verb == "detect":
        answer = {"ok": ["en", 0.9]}
    else:
        if request["vocabulary"] == ["die"]:
            sys.exit(9)
        answer = {"ok": [
            {"start": 1.0, "end": 3.0, "text": " we need 12 eggs", "words": [
                {"word": "we", "start": 1.0, "end": 1.2, "score": 0.9},
                {"word": "need", "start": 1.2, "end": 1.6, "score": 0.8},
                {"word": "12"},
                {"word": "eggs", "start": 2.2, "end": 2.8, "score": 0.7}]},
            {"start": 4.0, "end": 5.0, "text": " thank you", "words": []},
        ]}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> str:
    """A worker that answers as the real one does, without WhisperX."""
    script = tmp_path / "worker.py"
    script.write_text(FAKE)
    monkeypatch.setattr(whisperx, "WORKER", script)
    monkeypatch.setenv(whisperx.PYTHON_ENVIRONMENT, sys.executable)
    return str(tiny_model)


def test_words_without_times_go_between_their_neighbours(fake: str) -> None:
    backend = load_recognizer(BackendChoice("whisperx", fake, offline=True))
    first, second = backend.recognize(np.zeros(16_000, np.float32), "en", ())
    assert [w.text.strip() for w in first.words] == ["we", "need", "12", "eggs"]
    assert (first.words[2].start_s, first.words[2].end_s) == (1.6, 2.2)
    assert [w.timed_by for w in first.words] == ["whisperx", "whisperx", "spread", "whisperx"]
    assert [(w.text, w.timed_by) for w in second.words] == [
        (" thank", "spread"),
        (" you", "spread"),
    ]


def test_whisperx_is_chosen_where_it_can_align(fake: str) -> None:
    assert load_recognizer(BackendChoice("auto", fake, offline=True)).name == "whisperx"
    chosen = load_recognizer(BackendChoice("auto", fake, offline=True, language="fr"))
    assert chosen.name == "faster-whisper"


def test_a_model_without_the_language_is_refused(fake: str) -> None:
    backend = load_recognizer(BackendChoice("whisperx", fake, offline=True))
    with pytest.raises(ModelLanguageError, match="'fr'"):
        backend.check_language("fr")


def test_what_goes_wrong_over_there_is_told_here(fake: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.symlink_to(fake)
    backend = load_recognizer(BackendChoice("whisperx", fake, offline=True))
    with pytest.raises(MissingDependencyError, match="ended before"):
        backend.recognize(np.zeros(9, np.float32), "en", ("die",))


def test_a_model_that_whisperx_cannot_load_is_named(fake: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in Path(fake).iterdir():
        (damaged / path.name).symlink_to(path)
    with pytest.raises(ModelDamagedError, match=r"model.bin is incomplete"):
        load_recognizer(BackendChoice("whisperx", str(damaged), offline=True))


def test_the_worker_takes_whisperx_and_not_the_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    (tmp_path / "whisperx-7.dist-info").mkdir()
    (tmp_path / "whisperx-7.dist-info" / "METADATA").write_text("Name: whisperx\nVersion: 7\n")
    (tmp_path / "whisperx").mkdir()
    (tmp_path / "whisperx" / "__init__.py").write_text(
        "from types import SimpleNamespace as N\n"
        "load_model = lambda *_, **__: N(model=N(model=N(is_multilingual=True)))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(whisperx.PYTHON_ENVIRONMENT, sys.executable)
    backend = whisperx.WhisperX(str(tiny_model))
    assert backend.facts["version"] == "7"
    backend.check_language("de")
    backend.close()


def test_without_whisperx_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(whisperx.PYTHON_ENVIRONMENT, "/nowhere/python")
    with pytest.raises(MissingDependencyError, match="not installed"):
        whisperx.WhisperX("tiny.en", offline=True)


# --- the real one, see .ci/whisperx ---------------------------------------------------------


@pytest.fixture(scope="module")
def real(tiny_model: Path) -> Iterator[Recognizer]:
    if whisperx.PYTHON_ENVIRONMENT not in os.environ:
        pytest.skip(f"{whisperx.PYTHON_ENVIRONMENT} names no Python that has WhisperX")
    stub = Path(__file__).with_name("whisperx_with_stub.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whisperx, "WORKER", stub)
        backend = load_recognizer(
            BackendChoice("whisperx", str(tiny_model), offline=True, threads=1)
        )
        assert backend.name == "whisperx"
        yield backend


def test_the_real_whisperx_transcribes_offline(real: Recognizer, shared_data: Path) -> None:
    sound = read_device(open_recording(shared_data / "4_audio" / "faster-whisper" / "jfk.flac"))
    made = real.recognize(full_scale(sound.samples), "en", ())
    assert {w.timed_by for one in made for w in one.words} <= {"whisperx", "spread"}
    transcript = transcribe([sound], real, Asked(language="en"))
    said = " ".join(w.text.strip(".,").lower() for w in transcript.words)
    assert said == SAID
    assert transcript.backend == "whisperx"


def test_the_real_worker_needs_no_stub_and_downloads_nothing(
    real: Recognizer, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the weights of an aligner, words are laid out, and pocketsphinx times them."""
    assert real.name == "whisperx"
    monkeypatch.setattr(whisperx, "WORKER", WORKER)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    backend = whisperx.WhisperX(str(tiny_model), offline=True, threads=1)
    assert not backend.can_align("en")
    said = resample_poly(load_voice("anna").samples(load_voice("anna").utterances[0]), 1, 3)
    sound = from_samples("anna", np.concatenate([np.zeros(8000), said, np.zeros(8000)]))
    words = transcribe([sound], backend, Asked(language="en")).words
    assert {w.timing_source for w in words} == {"pocketsphinx"}
    assert not any(tmp_path.rglob("*.pt*"))
    backend.close()


def test_the_real_whisperx_understands_the_lab(real: Recognizer) -> None:
    voice = load_voice("anna")
    told = voice.utterances[:8]
    pause = np.zeros(GRID_HZ, np.float32)
    pieces = [part for one in told for part in (voice.samples(one), pause)]
    samples = resample_poly(np.concatenate(pieces), 1, GRID_HZ // SPEECH_HZ)
    sound = from_samples("anna", samples.astype(np.float32))
    transcript = transcribe([sound], real, Asked(language="en"))
    heard = [bare(w.text) for w in transcript.words]
    said = [bare(w.text) for one in told for w in one.words]
    assert SequenceMatcher(None, said, heard, autojunk=False).ratio() >= 0.85
    assert transcript.backend == "whisperx"
