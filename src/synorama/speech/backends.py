"""Which backend recognises speech on this machine, and what is missing where none does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from synorama.errors import MissingDependencyError, SynoramaError, UsageError
from synorama.speech.backend import Recognizer
from synorama.speech.embedded import FasterWhisper
from synorama.speech.models import MODEL_ENVIRONMENT, choose, locate_model
from synorama.speech.whisperx import WhisperX, whisperx_python

__all__ = ["BACKENDS", "BackendChoice", "load_recognizer", "model_folder", "unavailable_because"]

BACKENDS = ("auto", "faster-whisper", "whisperx")


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """What was asked for.

    Parameters
    ----------
    backend
        One of `BACKENDS`. ``auto`` takes WhisperX where it is installed and has a model that
        aligns the language at hand, else faster-whisper.
    model
        Name or folder, see `synorama.speech.models.find_model`.
    processor, precision
        ``auto``, or what to use.
    offline
        Download nothing.
    threads
        Of the processor; 0 for as many as the library likes.
    align_model
        Folder with WhisperX's models for alignment, or None for its own cache.
    language
        Of the session, where it was given: whether WhisperX can align it.
    """

    backend: str = "auto"
    model: str | None = None
    processor: str = "auto"
    precision: str = "auto"
    offline: bool = False
    threads: int = 0
    align_model: Path | None = None
    language: str | None = None


def load_recognizer(choice: BackendChoice = BackendChoice()) -> Recognizer:
    """Load a backend with its model.

    Raises
    ------
    UsageError
        There is no such backend.
    MissingDependencyError
        It is not installed, its model is missing or damaged, or the hardware is not there.
    """
    if choice.backend not in BACKENDS:
        raise UsageError(
            f"there is no backend '{choice.backend}'", hint="backends are: " + ", ".join(BACKENDS)
        )
    if choice.backend == "whisperx":
        return _whisperx(choice)
    if choice.backend == "auto" and whisperx_python() is not None:
        recognizer = _whisperx(choice)
        if recognizer.can_align(choice.language or "en"):
            return recognizer
        recognizer.close()
    return FasterWhisper(
        choice.model,
        processor=choice.processor,
        precision=choice.precision,
        offline=choice.offline,
        threads=choice.threads,
    )


def _whisperx(choice: BackendChoice) -> WhisperX:
    return WhisperX(
        choice.model,
        processor=choice.processor,
        precision=choice.precision,
        offline=choice.offline,
        threads=choice.threads,
        align_model=choice.align_model,
    )


def model_folder(choice: BackendChoice) -> Path:
    """Return the folder of the model that would be used, if it is on this machine.

    Raises
    ------
    MissingDependencyError
        It is not, or the backend is not installed.
    """
    if find_spec("faster_whisper") is None:
        raise MissingDependencyError(
            "faster-whisper is not installed", hint="pip install 'synorama[speech]'"
        )
    processor = choose(choice.processor, choice.precision).processor
    return locate_model(choice.model, processor, offline=True)[1]


def unavailable_because(choice: BackendChoice) -> str | None:
    """Return in words why nothing can be transcribed here without a download, or None."""
    return _reason(choice, os.environ.get(MODEL_ENVIRONMENT, ""))


@lru_cache(8)
def _reason(choice: BackendChoice, environment: str) -> str | None:
    """Look once: who asks which stages are stale asks this several times."""
    try:
        model_folder(choice)
    except (SynoramaError, ImportError) as error:
        hint = getattr(error, "hint", "")
        return f"{error} ({hint})" if hint else str(error)
    return None
