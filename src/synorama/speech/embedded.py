"""Recognition by faster-whisper: no torch, runs anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import MissingDependencyError, ModelDamagedError, ModelLanguageError
from synorama.speech.attention import Attention
from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.groups import Group, cut_up, grouped, in_whole
from synorama.speech.models import FoundModel, Hardware, choose, find_model, words_that_fit
from synorama.speech.readings import Reading, Versions, heard_in_either, likeliest, meets
from synorama.speech.sound import SPEECH_HZ
from synorama.speech.unheard import unheard_talk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["FasterWhisper", "without_losses"]

SEED = 1
VAD = {"threshold": 0.5, "min_silence_duration_ms": 300, "speech_pad_ms": 400}
TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # where it is unsure it draws at random, ever more so
LEAST_LOG_PROBABILITY = -1.0  # with this much doubt ...
MOST_SILENCE = 0.6  # ... and this probability that nobody speaks, nobody does
SURE_LOG_PROBABILITY, MOST_REPEATED, SURE_WORDS = -0.9, 2.4, 5
"""What a model must say to be believed where the detector of voices hears nobody.

Of 44 sounds without speech, ten to thirty seconds each, tiny.en and base wrote something in ten
each. Where they guessed at nothing, both thought that nobody speaks with a probability of 0.7 or
more; of talk that is hard to hear tiny.en thought so with 0.3 to 0.6.
"""
LONGEST_WORD_S = 2.0
LEAST_SOUND_S = 0.1
FRAME_S, STAMP_S = 0.01, 0.02  # the model's units of time
FRAME = SPEECH_HZ // 100


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
        self._attention = Attention(self._model)

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
        versions = Versions.of(samples)
        detected = _speech_spans(samples)
        in_quiet = _speech_spans(versions.quiet) if versions.differ else []
        heard = heard_in_either(detected, in_quiet)
        told = []
        for group in grouped(cut_up(samples, heard)):
            if meets(group, detected):
                told += self._recognized(versions, group, language, vocabulary)
            else:
                told += self._surely_said(versions, group, language)
        for piece in cut_up(samples, unheard_talk(samples, heard)):
            told += self._surely_said(versions, [piece], language)
        return tuple(sorted(told, key=lambda one: one.start_s))

    def _recognized(
        self, versions: Versions, group: Group, language: str, vocabulary: tuple[str, ...]
    ) -> list[Spoken]:
        """Recognise one group by itself: over longer sound the library loses its place."""
        sounds = versions.of_group(group)
        readings = [self._reading(s, language, vocabulary, _is_speech) for s in sounds]
        return [in_whole(words, group) for words in likeliest(readings).told]

    def _surely_said(self, versions: Versions, group: Group, language: str) -> list[Spoken]:
        """Recognise where no voice was detected in the sound as it is.

        A vocabulary is not told: it might be heard in noise, too.
        """
        readings = [self._reading(s, language, (), _is_sure) for s in versions.of_group(group)]
        return [in_whole(words, group) for words in likeliest(readings, SURE_WORDS).told]

    def _reading(
        self,
        sound: Float32,
        language: str,
        vocabulary: tuple[str, ...],
        believed: Callable[[Any], bool],
    ) -> Reading:
        import ctranslate2

        ctranslate2.set_random_seed(SEED)  # where it has to guess it guesses the same again
        weighed = []

        def run(part: Float32) -> Iterable[Any]:
            for segment in self._segments(part, language, vocabulary, guess=believed is _is_speech):
                weighed.append((segment.avg_logprob, len(segment.tokens)))
                if believed(segment):
                    yield segment

        return Reading(without_losses(run, sound, self._stamp_zero), weighed)

    def _segments(
        self, sound: Float32, language: str, vocabulary: tuple[str, ...], *, guess: bool
    ) -> Iterable[Any]:
        segments, _ = self._model.transcribe(
            sound,
            language=language,
            beam_size=5,
            condition_on_previous_text=False,
            temperature=TEMPERATURES if guess else TEMPERATURES[:1],
            hotwords=", ".join(vocabulary) or None,
        )
        timed = self._attention.timed(segments, language, len(sound) // FRAME)
        return (s for s in timed if s.words)

    @property
    def _stamp_zero(self) -> int:
        """The token that stands for 0 s; each further one is 20 ms later."""
        return int(self._model.hf_tokenizer.token_to_id("<|notimestamps|>")) + 1


def without_losses(
    run: Callable[[Float32], Iterable[Any]], sound: Float32, stamp_zero: int
) -> list[list[SpokenWord]]:
    """Recognise a group, and again from where the model stopped writing while speech went on.

    Attention then stretches the last word over what was left out, and the library, which goes on
    after that word, never comes back to it.

    Parameters
    ----------
    run
        Recognises ``(N,)`` samples: segments of the library, in order.
    stamp_zero
        The token of 0 s.
    """
    told: list[list[SpokenWord]] = []
    from_s: float | None = 0.0
    while from_s is not None and len(sound) / SPEECH_HZ - from_s > LEAST_SOUND_S:
        segments = run(sound[round(from_s * SPEECH_HZ) :])
        words, lost_s = _until_a_loss(segments, stamp_zero)
        told += [[_later(word, from_s) for word in one] for one in words]
        from_s = None if lost_s is None else from_s + lost_s
    return told


def _until_a_loss(
    segments: Iterable[Any], stamp_zero: int
) -> tuple[list[list[SpokenWord]], float | None]:
    """Return words, and the moment from which the model wrote nothing of what was said."""
    told = []
    for segment in segments:
        ended_s = _stamped_end_s(segment, stamp_zero)
        lost = any(w.end - max(w.start, ended_s) > LONGEST_WORD_S for w in segment.words)
        told.append([_word(w, ended_s if lost else inf) for w in segment.words])
        if lost:
            return told, ended_s
    return told, None


def _stamped_end_s(segment: Any, stamp_zero: int) -> float:
    """Return where the model itself ended a segment, or infinity where it did not say."""
    stamps = [token - stamp_zero for token in segment.tokens if token >= stamp_zero]
    if len(stamps) < 2 or stamps[-1] <= stamps[0]:
        return inf
    return float(segment.seek * FRAME_S + stamps[-1] * STAMP_S)


def _word(word: Any, last_s: float) -> SpokenWord:
    start_s, end_s = min(float(word.start), last_s), min(float(word.end), last_s)
    return SpokenWord(word.word, start_s, end_s, float(word.probability), "attention")


def _later(word: SpokenWord, by_s: float) -> SpokenWord:
    return replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s)


def _speech_spans(samples: Float32) -> list[tuple[int, int]]:
    """Return ``(first, end)`` samples in which somebody may speak."""
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    found = get_speech_timestamps(samples, VadOptions(**VAD))
    return [(int(span["start"]), int(span["end"])) for span in found]


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


def _is_sure(segment: Any) -> bool:
    """Tell whether what the model finds likeliest is likely, no repetition, and no silence."""
    likely = segment.avg_logprob > SURE_LOG_PROBABILITY
    repeats = segment.compression_ratio > MOST_REPEATED
    return bool(likely and not repeats and segment.no_speech_prob < MOST_SILENCE)
