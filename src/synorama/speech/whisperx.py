"""Recognition by WhisperX, in a process and, where it must be, an environment of its own.

WhisperX pins versions of torch and of the hub's client that others cannot live with. So it runs
as a child process: in this environment where it is installed here, else in the one whose Python
the environment variable `PYTHON_ENVIRONMENT` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.errors import MissingDependencyError, ModelDamagedError, ModelLanguageError
from synorama.speech.align import spread
from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.models import choose, find_model, words_that_fit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["PYTHON_ENVIRONMENT", "WhisperX", "whisperx_python"]

PYTHON_ENVIRONMENT = "SYNORAMA_WHISPERX_PYTHON"
"""Environment variable: the Python of an environment in which WhisperX is installed."""

WORKER = Path(__file__).with_name("whisperx_worker.py")


def whisperx_python() -> str | None:
    """Return the Python that has WhisperX, or None."""
    named = os.environ.get(PYTHON_ENVIRONMENT)
    if named:
        return named
    return sys.executable if find_spec("whisperx") is not None else None


class WhisperX:
    """WhisperX with its bundled voice detector; see `synorama.speech.embedded.FasterWhisper`.

    Parameters
    ----------
    align_model
        Folder with its models for alignment, or None for its own cache.
    """

    name = "whisperx"

    def __init__(
        self,
        model: str | None = None,
        *,
        processor: str = "auto",
        precision: str = "auto",
        offline: bool = False,
        threads: int = 0,
        align_model: Path | None = None,
    ) -> None:
        self._process = _start()
        self.hardware = choose(processor, precision)
        self.found = find_model(model, self.hardware.processor, offline=offline)
        try:
            self._about = self._ask(
                verb="load",
                model=str(self.found.folder),
                device=self.hardware.processor,
                precision=self.hardware.precision,
                threads=threads,
                align_model=None if align_model is None else str(align_model),
                offline=offline,
            )
        except _WorkerError as error:
            self.close()
            raise ModelDamagedError(
                f"WhisperX cannot load the model: {error}",
                path=self.found.folder,
                hint="try it with '--backend faster-whisper', which says what is wrong with it",
            ) from error

    def close(self) -> None:
        """End the child process."""
        assert self._process.stdin is not None  # it was opened with pipes
        self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.found.name

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that decides the result for the same sound."""
        return {
            "backend": self.name,
            "version": self._about["version"],
            "model": self.found.name,
            "model_digest": self.found.digest,
            "device": self.hardware.processor,
            "precision": self.hardware.precision,
            "device_reason": self.hardware.reason,
        }

    def can_align(self, language: str) -> bool:
        """Tell whether word times of this language can come from WhisperX's own alignment."""
        return bool(self._ask(verb="can_align", language=language))

    def check_language(self, language: str) -> None:
        """Raise `ModelLanguageError` where the model does not know the language."""
        if language != "en" and not self._about["multilingual"]:
            raise ModelLanguageError(
                f"the model '{self.model}' does not know the language '{language}'",
                hint="take a model without '.en' in its name, such as 'small'",
            )

    def vocabulary_taken(self, vocabulary: tuple[str, ...]) -> int:
        """Return how many words of a vocabulary the model is told; it has no room for more."""
        return words_that_fit(self.found.folder, vocabulary)

    def detect_language(self, samples: Float32) -> tuple[str, float | None]:
        """Return the language of speech at 16 kHz and its probability; see `Recognizer`."""
        with _as_file(samples) as path:
            code, probability = self._ask(verb="detect", sound=path)
        return str(code), None if probability is None else float(probability)

    def recognize(
        self, samples: Float32, language: str, vocabulary: tuple[str, ...]
    ) -> tuple[Spoken, ...]:
        """Return what is said in ``(N,)`` samples at 16 kHz."""
        with _as_file(samples) as path:
            told = self._ask(
                verb="recognize", sound=path, language=language, vocabulary=list(vocabulary)
            )
        return tuple(_spoken(segment) for segment in told if segment["text"].strip())

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise _ended() from error
        line = self._process.stdout.readline()
        if not line:
            raise _ended()
        answer = json.loads(line)
        if "error" in answer:
            raise _WorkerError(answer["error"])
        return answer["ok"]


class _WorkerError(MissingDependencyError):
    """WhisperX failed in its own process."""


def _ended() -> MissingDependencyError:
    return MissingDependencyError(
        "WhisperX's process ended before it answered",
        hint="see what it printed above; '--backend faster-whisper' does without it",
    )


def _start() -> subprocess.Popen[str]:
    python = whisperx_python()
    if python is None or not Path(python).is_file():
        raise MissingDependencyError(
            "WhisperX is not installed here",
            hint=f"install it in an environment of its own, and set {PYTHON_ENVIRONMENT}",
        )
    return subprocess.Popen(  # noqa: S603  # the operator's own Python, our own script
        [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


class _as_file:  # noqa: N801  # reads as the verb that it is
    """Sound as a file that no one else may read and that is gone at the end."""

    def __init__(self, samples: Float32) -> None:
        self._samples = samples

    def __enter__(self) -> str:
        descriptor, self._path = tempfile.mkstemp(suffix=".f32")
        with os.fdopen(descriptor, "wb") as file:
            self._samples.tofile(file)
        return self._path

    def __exit__(self, *_: object) -> None:
        Path(self._path).unlink()


def _spoken(segment: Mapping[str, Any]) -> Spoken:
    """Return a segment's words; those that could not be aligned share what is left by length."""
    start, end = float(segment["start"]), float(segment["end"])
    words: Sequence[Mapping[str, Any]] = segment.get("words") or ()
    if not words:
        laid_out = spread(segment["text"], start, end).words
        return Spoken(start, end, tuple(_with_blank(w) for w in laid_out))
    edges = _edges(words, start, end)
    told = tuple(
        SpokenWord(f" {w['word']}", a, b, w.get("score"), "whisperx" if "start" in w else "spread")
        for w, (a, b) in zip(words, edges, strict=True)
    )
    return Spoken(start, end, told)


def _with_blank(word: SpokenWord) -> SpokenWord:
    return SpokenWord(f" {word.text}", word.start_s, word.end_s, word.probability, word.timed_by)


def _edges(
    words: Sequence[Mapping[str, Any]], start_s: float, end_s: float
) -> list[tuple[float, float]]:
    """Fill in the times of words without, such as digits, between those of their neighbours."""
    edges: list[tuple[float, float]] = []
    for k, word in enumerate(words):
        if "start" in word and "end" in word:
            edges.append((float(word["start"]), float(word["end"])))
            continue
        begin = edges[-1][1] if edges else start_s
        after = [j for j in range(k, len(words)) if "start" in words[j]]
        until = float(words[after[0]]["start"]) if after else end_s
        share = (max(until, begin) - begin) / ((after[0] if after else len(words)) - k)
        edges.append((begin, begin + share))
    return edges
