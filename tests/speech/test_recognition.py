"""With a real model: what is said, that nothing is said where nobody speaks, and bad input."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from synorama.capture import open_recording
from synorama.errors import (
    DamagedSoundError,
    InputError,
    MissingDependencyError,
    ModelDamagedError,
    ModelLanguageError,
    ModelMissingError,
    NoSoundError,
    UsageError,
)
from synorama.records import Transcript
from synorama.speech import Asked, WindowStore, from_samples, read_device, transcribe
from synorama.speech.backend import Spoken
from synorama.speech.backends import BackendChoice, load_recognizer, unavailable_because
from synorama.speech.language import find_language
from synorama.speech.models import FoundModel, Hardware, choose, find_model
from synorama.speech.sound import SPEECH_HZ
from synorama.transcription import transcribe_files
from tests.speech.talk import matched, talk

if TYPE_CHECKING:
    from synorama.speech.embedded import FasterWhisper

SAID = (
    "and so my fellow americans ask not what your country can do for you "
    "ask what you can do for your country"
)
SECONDS = 12


def text_of(transcript: Transcript) -> str:
    return " ".join(w.text.strip(".,?!").lower() for w in transcript.words)


def test_real_speech_is_transcribed_with_times(shared_data: Path, tiny: FasterWhisper) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "jfk.flac"
    made = transcribe([read_device(open_recording(path))], tiny)
    assert text_of(made) == SAID
    assert made.words[0].start_ns is not None
    assert abs(made.words[0].start_ns / 1e9 - 0.32) < 0.15
    assert {w.speaker for w in made.words} == {None}  # one device alone does not tell
    assert {w.timing_source for w in made.words} <= {"pocketsphinx", "attention"}
    assert made.facts["precision"] == "int8"
    assert len(made.facts["model_digest"]) == 64


@pytest.mark.parametrize("name", ["pocketsphinx_sdist/regression/chan3", "pyannote_sdist/sample"])
def test_better_times_leave_the_words_in_their_order(
    shared_data: Path, tiny: FasterWhisper, name: str
) -> None:
    path = shared_data / "4_audio" / f"{name}.wav"
    sound = read_device(open_recording(path))
    heard = transcribe([sound], tiny, Asked(language="en", align=False))
    made = transcribe([sound], tiny, Asked(language="en"))
    assert [w.text for w in made.words] == [w.text for w in heard.words]
    assert {w.timing_source for w in heard.words} == {"attention"}


def _noise(kind: str) -> Any:
    rng = np.random.default_rng(7)
    t = np.arange(SECONDS * SPEECH_HZ) / SPEECH_HZ
    white = rng.standard_normal(len(t))
    if kind == "silence":
        return np.zeros(len(t))
    if kind == "white noise":
        return 0.05 * white
    if kind == "pink noise":
        spectrum = np.fft.rfft(white) / np.sqrt(np.maximum(np.arange(len(t) // 2 + 1), 1))
        pink = np.fft.irfft(spectrum)
        return 0.1 * pink / pink.std()
    if kind == "hum":
        return sum(0.1 / k * np.sin(2 * np.pi * 50 * k * t) for k in (1, 2, 3, 4))
    if kind == "clicks":
        return np.where(rng.random(len(t)) < 3 / SPEECH_HZ, 0.8, 0.0) + 0.001 * white
    notes = 220 * 2 ** (rng.integers(0, 24, SECONDS * 4) / 12)  # music
    tone = np.sin(2 * np.pi * np.cumsum(np.repeat(notes, SPEECH_HZ // 4)) / SPEECH_HZ)
    return 0.3 * tone * np.tile(np.exp(-3 * np.linspace(0, 1, SPEECH_HZ // 4)), SECONDS * 4)


@pytest.mark.parametrize("kind", ["silence", "white noise", "pink noise", "hum", "clicks", "music"])
def test_nobody_is_heard_where_nobody_speaks(kind: str, tiny: FasterWhisper) -> None:
    sound = from_samples("a", np.asarray(_noise(kind), np.float32))
    made = transcribe([sound], tiny, Asked(language="en"))
    assert made.words == ()
    assert "nobody was heard speaking" in made.warnings
    assert made.language == ""


def test_clatter_and_fan_of_a_kitchen_say_nothing(tiny: FasterWhisper) -> None:
    rng = np.random.default_rng(11)
    fan = np.convolve(rng.standard_normal(SECONDS * SPEECH_HZ), np.ones(40) / 40, "same") * 0.1
    for at in rng.integers(0, len(fan) - 4000, 25):
        ring = np.exp(-np.arange(4000) / 600) * np.sin(np.arange(4000) * rng.uniform(0.5, 2.5))
        fan[at : at + 4000] += rng.uniform(0.1, 0.6) * ring
    for vocabulary in ((), ("colander", "whisk")):
        asked = Asked("en", vocabulary)
        assert transcribe([from_samples("a", fan.astype(np.float32))], tiny, asked).words == ()


def test_two_wearers_are_told_apart_and_each_word_is_given_once(tiny: FasterWhisper) -> None:
    given = talk(21, 45)
    made = transcribe(given.sounds, tiny, Asked(language="en"))
    found = matched(made.words, given.words)
    alone = {k: words for k, words in found.items() if not given.words[k].overlapped}
    right = [words[0].speaker == given.words[k].speaker for k, words in alone.items()]
    assert np.mean(right) >= 0.97
    assert sum(len(words) > 1 for words in found.values()) <= 0.02 * len(given.words)
    assert len(found) >= 0.75 * len(given.words)
    starts = [abs(w[0].start_ns - given.words[k].start_ns) / 1e6 for k, w in found.items()]
    assert np.median(starts) <= 25
    assert all(w.overlapped or w.speaker for w in made.words)
    assert made.calibrations[0].learned


class Counting:
    """Counts the windows that a recogniser is given, and is killed in the middle of one."""

    def __init__(self, inner: FasterWhisper, killed_in: int | None = None) -> None:
        self._inner, self._killed_in, self.calls = inner, killed_in, 0
        self.name, self.model, self.facts = inner.name, inner.model, inner.facts
        self.check_language = inner.check_language
        self.detect_language = inner.detect_language
        self.vocabulary_taken = inner.vocabulary_taken

    def recognize(
        self, samples: Any, language: str, vocabulary: tuple[str, ...]
    ) -> tuple[Spoken, ...]:
        self.calls += 1
        if self.calls == self._killed_in:
            raise KeyboardInterrupt
        return self._inner.recognize(samples, language, vocabulary)


def test_a_killed_run_goes_on_and_says_the_same(
    tiny: FasterWhisper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synorama.speech.windows.cut_windows.__defaults__", (10.0,))
    sounds = talk(22, 30).sounds
    whole = Counting(tiny)
    expected = transcribe(sounds, whole, Asked(language="en"))
    store = WindowStore(tmp_path / "windows")
    with pytest.raises(KeyboardInterrupt):
        transcribe(sounds, Counting(tiny, killed_in=4), Asked(language="en"), store=store)
    again = Counting(tiny)
    assert transcribe(sounds, again, Asked(language="en"), store=store) == expected
    assert again.calls == whole.calls - 3  # all but what was done


def test_progress_reaches_its_end(tiny: FasterWhisper) -> None:
    told: list[tuple[int, int]] = []
    sound = from_samples("a", np.zeros(3 * SPEECH_HZ, np.int16))
    transcribe([sound], tiny, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)


# --- vocabulary -------------------------------------------------------------------------------


def test_a_word_of_the_vocabulary_is_heard(shared_data: Path, tiny: FasterWhisper) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "hotwords.mp3"
    sound = read_device(open_recording(path))
    assert "comfyui" not in text_of(transcribe([sound], tiny))
    made = transcribe([sound], tiny, Asked(vocabulary=("ComfyUI",)))
    assert "comfyui" in text_of(made)
    assert made.facts["vocabulary"] == ["ComfyUI"]
    assert not made.warnings


def test_a_vocabulary_that_is_too_long_says_where_it_was_cut(tiny: FasterWhisper) -> None:
    silence = from_samples("a", np.zeros(SPEECH_HZ, np.int16))
    words = tuple(f"colander {k}" for k in range(200))
    taken = tiny.vocabulary_taken(words)
    assert 10 < taken < 200
    assert tiny.vocabulary_taken(words[:taken]) == taken
    made = transcribe([silence], tiny, Asked("en", words))
    assert any(f"no room for 'colander {taken}'" in text for text in made.warnings)
    assert not any("vocabulary" in text for text in transcribe([silence], tiny).warnings)


# --- languages --------------------------------------------------------------------------------


def test_an_english_model_refuses_other_languages(tiny: FasterWhisper) -> None:
    sound = from_samples("a", np.zeros(SPEECH_HZ, np.int16))
    with pytest.raises(ModelLanguageError, match="does not know the language 'fr'") as caught:
        transcribe([sound], tiny, Asked(language="fr"))
    assert ".en" in caught.value.hint


def test_words_that_are_guesses_are_told(shared_data: Path, tiny: FasterWhisper) -> None:
    """A model that knows English only takes the German half of a file for English."""
    path = shared_data / "4_audio" / "faster-whisper" / "multilingual.mp3"
    whole = read_device(open_recording(path)).samples
    english, german = np.split(whole, [30 * SPEECH_HZ])
    made = transcribe([from_samples("a", german)], tiny)
    assert (made.language, made.language_probability) == ("en", None)  # nobody asked it
    assert any("most words are guesses" in text for text in made.warnings)
    assert not transcribe([from_samples("a", english)], tiny).warnings


def test_a_file_in_two_languages_is_told(shared_data: Path, base_model: Path) -> None:
    backend = load_recognizer(BackendChoice("faster-whisper", str(base_model), threads=1))
    path = shared_data / "4_audio" / "faster-whisper" / "multilingual.mp3"
    found = find_language(None, [read_device(open_recording(path))], backend)
    assert found.code in ("en", "de")  # half of it each
    assert any("more than one language" in text for text in found.warnings)
    with pytest.raises(ModelLanguageError):
        backend.check_language("xx")


# --- models -----------------------------------------------------------------------------------


def test_a_model_that_is_not_here_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faster_whisper")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelMissingError, match="downloads are off") as caught:
        find_model("small", "cpu", offline=True)
    assert "offline machine" in caught.value.hint
    with pytest.raises(ModelMissingError, match="no model is called 'gigantic'"):
        find_model("gigantic", "cpu", offline=True)
    with pytest.raises(ModelMissingError, match="no such folder"):
        find_model(str(tmp_path / "none"), "cpu", offline=True)


@pytest.mark.parametrize("missing", ["model.bin", "config.json", "tokenizer.json", "vocabulary"])
def test_an_incomplete_model_folder_names_what_it_lacks(
    tiny_model: Path, tmp_path: Path, missing: str
) -> None:
    for path in tiny_model.iterdir():
        if not path.name.startswith(missing):
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ModelDamagedError, match=missing):
        find_model(str(tmp_path), "cpu", offline=True)


@pytest.mark.parametrize(
    "damage", [{"model.bin": b"half"}, {"config.json": b"{"}, {"tokenizer.json": b"{}"}]
)
def test_a_damaged_model_is_refused(
    tiny_model: Path, tmp_path: Path, damage: Mapping[str, bytes]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder, ignore=lambda *_: ["model.bin"])
    (folder / "model.bin").symlink_to(tiny_model / "model.bin")
    for name, data in damage.items():
        (folder / name).unlink()
        (folder / name).write_bytes(data)
    with pytest.raises(ModelDamagedError):
        load_recognizer(BackendChoice("faster-whisper", str(folder), offline=True))


def test_hardware_that_is_not_here_is_refused(tiny_model: Path) -> None:
    import ctranslate2

    if ctranslate2.get_cuda_device_count():
        pytest.skip("this machine has a GPU")
    choice = BackendChoice("faster-whisper", str(tiny_model), processor="cuda")
    with pytest.raises(MissingDependencyError, match="finds none"):
        load_recognizer(choice)
    with pytest.raises(MissingDependencyError, match="int4"):
        load_recognizer(BackendChoice("faster-whisper", str(tiny_model), precision="int4"))
    with pytest.raises(UsageError, match="no backend 'vosk'"):
        load_recognizer(BackendChoice("vosk"))


class Gpu:
    """A model on a GPU whose libraries are missing, which only computing shows."""

    def transcribe(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Library libcublas.so.12 is not found")


def test_a_gpu_that_does_not_work_is_told_and_the_processor_taken(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from synorama.speech import embedded

    real = embedded._load

    def chosen(processor: str = "auto", precision: str = "auto") -> Hardware:
        found = Hardware("cuda", "float16", "1 GPU(s) found")
        return choose(processor, precision) if processor == "cpu" else found

    def load(found: FoundModel, hardware: Hardware, threads: int) -> Any:
        return Gpu() if hardware.processor == "cuda" else real(found, hardware, threads)

    monkeypatch.setattr(embedded, "choose", chosen)
    monkeypatch.setattr(embedded, "_load", load)
    taken = embedded.FasterWhisper(str(tiny_model), threads=1)
    assert (taken.facts["device"], taken.facts["precision"]) == ("cpu", "int8")
    assert "libcublas.so.12 is not found; so the processor is used" in taken.facts["device_reason"]
    with pytest.raises(MissingDependencyError, match="does not work") as caught:
        embedded.FasterWhisper(str(tiny_model), processor="cuda")
    assert "cuDNN" in caught.value.hint


def test_why_nothing_can_be_transcribed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = BackendChoice(model=str(tmp_path / "none"))
    assert unavailable_because(missing) is not None


# --- bad sound --------------------------------------------------------------------------------


def test_a_truncated_flac_says_that_words_are_missing(
    shared_data: Path, tiny: FasterWhisper, tmp_path: Path
) -> None:
    whole = (shared_data / "4_audio" / "faster-whisper" / "jfk.flac").read_bytes()
    path = tmp_path / "cut.flac"
    path.write_bytes(whole[: len(whole) // 2])
    made = transcribe_files([path], tiny, Asked(language="en"))
    assert any("not finished, or not copied completely" in text for text in made.warnings)


def test_broken_and_empty_files_are_refused(
    shared_data: Path, tiny: FasterWhisper, tmp_path: Path
) -> None:
    broken = shared_data / "4_audio" / "pocketsphinx_sdist" / "misc"
    (tmp_path / "empty.wav").touch()
    (tmp_path / "random.wav").write_bytes(os.urandom(5000))
    for path in (
        broken / "bad.wav",
        broken / "evil.wav",
        broken / "null.wav",
        tmp_path / "empty.wav",
        tmp_path / "random.wav",
        tmp_path / "none.wav",
    ):
        with pytest.raises(InputError) as caught:
            transcribe_files([path], tiny, Asked())
        assert caught.value.path is not None


def test_files_of_one_name_are_told_apart_and_no_file_counts_twice(
    shared_data: Path, tiny: FasterWhisper, tmp_path: Path
) -> None:
    cards = shared_data / "4_audio" / "pocketsphinx_sdist" / "cards"
    paths = [tmp_path / who / "card.wav" for who in ("anna", "berta")]
    for path, card in zip(paths, ("003.wav", "005.wav"), strict=True):
        path.parent.mkdir()
        shutil.copy(cards / card, path)
    made = transcribe_files([*paths, cards / "004.wav"], tiny, Asked("en"), together=False)
    assert {w.device for w in made.words} == {"anna/card.wav", "berta/card.wav", "004"}
    twice = [paths[0], tmp_path / "berta" / ".." / "anna" / "card.wav"]
    with pytest.raises(UsageError, match="given twice"):
        transcribe_files(twice, tiny, Asked("en"))


def _float_wav(path: Path, samples: Any) -> Path:
    from scipy.io import wavfile

    wavfile.write(path, SPEECH_HZ, np.asarray(samples, np.float32))
    return path


def test_nan_is_refused_or_told(tiny: FasterWhisper, tmp_path: Path) -> None:
    tone = 0.1 * np.sin(np.arange(2 * SPEECH_HZ) / 5)
    tone[100:200] = np.nan
    path = _float_wav(tmp_path / "few.wav", tone)
    made = transcribe_files([path], tiny, Asked(language="en"))
    assert any("100 samples are no numbers" in text for text in made.warnings)
    path = _float_wav(tmp_path / "all.wav", np.full(SPEECH_HZ, np.nan))
    with pytest.raises(DamagedSoundError, match="no numbers"):
        transcribe_files([path], tiny, Asked(language="en"))


def test_nothing_to_transcribe_is_an_error(tiny: FasterWhisper) -> None:
    with pytest.raises(NoSoundError):
        transcribe([], tiny)
