"""Recognition by faster-whisper: no torch, runs anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from synorama.errors import MissingDependencyError, ModelDamagedError, ModelLanguageError
from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.models import FoundModel, Hardware, choose, find_model, words_that_fit
from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["FasterWhisper", "grouped", "with_pauses"]

Group: TypeAlias = "list[tuple[int, int]]"

SEED = 1
LONGEST_GROUP = 28 * SPEECH_HZ  # samples; the model takes 30 s at once
KEPT_PAUSE = SPEECH_HZ  # samples; a second of silence at most stays, as people pause in a sentence
VAD = {"threshold": 0.5, "min_silence_duration_ms": 300, "speech_pad_ms": 200}
LEAST_LOG_PROBABILITY = -1.0  # with this much doubt ...
MOST_SILENCE = 0.6  # ... and this probability that nobody speaks, nobody does


class FasterWhisper:
    """A Whisper model in CTranslate2.

    Parameters
    ----------
    model
        Name or folder, see `find_model`.
    processor, precision
        ``auto``, or what to use.
    offline
        Download nothing.
    threads
        Of the processor; 0 for as many as the library likes.

    Raises
    ------
    MissingDependencyError
        faster-whisper is not installed, the model is missing or damaged, or no such hardware.
    """

    name = "faster-whisper"

    def __init__(
        self,
        model: str | None = None,
        *,
        processor: str = "auto",
        precision: str = "auto",
        offline: bool = False,
        threads: int = 0,
    ) -> None:
        _check_installed()
        self.hardware = choose(processor, precision)
        self.found = find_model(model, self.hardware.processor, offline=offline)
        try:
            self._model = _ready(self.found, self.hardware, threads)
        except (MissingDependencyError, ModelDamagedError) as error:
            if self.hardware.processor == "cpu" or processor != "auto":
                raise
            self.hardware = _instead_of_gpu(error)
            self.found = find_model(model, "cpu", offline=offline)
            self._model = _ready(self.found, self.hardware, threads)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.found.name

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that decides the result for the same sound."""
        from importlib.metadata import version

        return {
            "backend": self.name,
            "version": version("faster-whisper"),
            "model": self.found.name,
            "model_digest": self.found.digest,
            "device": self.hardware.processor,
            "precision": self.hardware.precision,
            "device_reason": self.hardware.reason,
        }

    def check_language(self, language: str) -> None:
        """Raise `ModelLanguageError` where the model does not know the language."""
        known = self._model.supported_languages
        if language not in known:
            hint = "known are: " + ", ".join(sorted(known))
            if not self._model.model.is_multilingual:
                hint = "take a model without '.en' in its name, such as 'small'"
            raise ModelLanguageError(
                f"the model '{self.model}' does not know the language '{language}'", hint=hint
            )

    def vocabulary_taken(self, vocabulary: tuple[str, ...]) -> int:
        """Return how many words of a vocabulary the model is told; it has no room for more."""
        return words_that_fit(self.found.folder, vocabulary)

    def detect_language(self, samples: Float32) -> tuple[str, float | None]:
        """Return the language of speech at 16 kHz and its probability; see `Recognizer`."""
        if not self._model.model.is_multilingual:
            return "en", None
        found, probability, _ = self._model.detect_language(
            samples, vad_filter=True, language_detection_segments=4
        )
        return str(found), float(probability)

    def recognize(
        self, samples: Float32, language: str, vocabulary: tuple[str, ...]
    ) -> tuple[Spoken, ...]:
        """Return what is said in ``(N,)`` samples at 16 kHz."""
        groups = grouped(with_pauses(_speech_spans(samples)))
        return tuple(
            one
            for group in groups
            for one in self._recognized(samples, group, language, vocabulary)
        )

    def _recognized(
        self, samples: Float32, group: Group, language: str, vocabulary: tuple[str, ...]
    ) -> list[Spoken]:
        """Recognise one group by itself: over longer sound the library loses its place."""
        import ctranslate2

        ctranslate2.set_random_seed(SEED)  # where it has to guess it guesses the same again
        segments, _ = self._model.transcribe(
            np.concatenate([samples[first:end] for first, end in group]),
            language=language,
            beam_size=5,
            word_timestamps=True,
            condition_on_previous_text=False,
            hotwords=", ".join(vocabulary) or None,
        )
        words = [s.words for s in segments if _is_speech(s) and s.words]
        return [_spoken(told, group) for told in words]


def _speech_spans(samples: Float32) -> list[tuple[int, int]]:
    """Return ``(first, end)`` samples in which somebody may speak."""
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    options = VadOptions(**VAD, max_speech_duration_s=LONGEST_GROUP / SPEECH_HZ)
    found = get_speech_timestamps(samples, options)
    return [(int(span["start"]), int(span["end"])) for span in found]


def with_pauses(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans over short pauses: words that are pushed together are misheard at the seams."""
    joined: list[tuple[int, int]] = []
    for first, end in spans:
        fits = (
            joined and first - joined[-1][1] <= KEPT_PAUSE and end - joined[-1][0] <= LONGEST_GROUP
        )
        if fits:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined


def grouped(spans: Sequence[tuple[int, int]]) -> list[Group]:
    """Join spans of speech, without long silence between them, to what a model takes at once."""
    groups: list[list[tuple[int, int]]] = []
    held = LONGEST_GROUP
    for first, end in spans:
        if held + end - first > LONGEST_GROUP:
            groups.append([])
            held = 0
        groups[-1].append((first, end))
        held += end - first
    return groups


def _in_whole(start_s: float, end_s: float, group: Group) -> tuple[float, float]:
    """Carry the times of a word in a group to those in the whole, within one span."""
    middle, before = (start_s + end_s) / 2 * SPEECH_HZ, 0
    for first, end in group:
        if middle < before + end - first or (first, end) == group[-1]:
            moved = (first - before) / SPEECH_HZ
            low, high = first / SPEECH_HZ, end / SPEECH_HZ
            return min(max(start_s + moved, low), high), min(max(end_s + moved, low), high)
        before += end - first
    return start_s, end_s


def _check_installed() -> None:
    try:
        import faster_whisper  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"faster-whisper is needed to recognise speech and cannot be loaded: {error}",
            hint="pip install 'synorama[speech]'",
        ) from error


def _ready(found: FoundModel, hardware: Hardware, threads: int) -> Any:
    """Load a model; a GPU must show that it computes: libraries that it lacks are missed late."""
    model = _load(found, hardware, threads)
    if hardware.processor == "cpu":
        return model
    try:
        list(model.transcribe(np.zeros(SPEECH_HZ, np.float32), language="en", max_new_tokens=1)[0])
    except (RuntimeError, ValueError, OSError) as error:
        raise MissingDependencyError(
            f"the GPU was found and does not work: {error}",
            hint="install NVIDIA's cuBLAS and cuDNN, or leave '--device' out to use the processor",
        ) from error
    return model


def _instead_of_gpu(error: Exception) -> Hardware:
    found = choose("cpu")
    return Hardware("cpu", found.precision, f"{error}; so the processor is used")


def _load(found: FoundModel, hardware: Hardware, threads: int) -> Any:
    from faster_whisper import WhisperModel

    try:
        return WhisperModel(
            str(found.folder),
            device=hardware.processor,
            compute_type=hardware.precision,
            cpu_threads=threads,
            local_files_only=True,
        )
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        raise ModelDamagedError(
            f"the model cannot be loaded: {error}",
            path=found.folder,
            hint="copy the whole folder again; it must be a model in CTranslate2's format",
        ) from error
    except Exception as error:  # the tokenizer's library raises bare Exception
        raise ModelDamagedError(
            f"the model's tokenizer cannot be loaded: {error}",
            path=found.folder,
            hint="copy the whole folder again",
        ) from error


def _is_speech(segment: Any) -> bool:
    doubtful = segment.avg_logprob < LEAST_LOG_PROBABILITY
    return not (doubtful and segment.no_speech_prob > MOST_SILENCE)


def _spoken(words: Iterable[Any], group: Group) -> Spoken:
    told = []
    for word in words:
        start_s, end_s = _in_whole(float(word.start), float(word.end), group)
        told.append(SpokenWord(word.word, start_s, end_s, float(word.probability), "attention"))
    return Spoken(told[0].start_s, told[-1].end_s, tuple(told))
