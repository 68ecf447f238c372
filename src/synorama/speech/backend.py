"""What recognises speech, behind one small interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["Recognizer", "Spoken", "SpokenWord"]


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A recognised word, in seconds since the beginning of what was recognised.

    ``timed_by`` is ``attention`` (of the recogniser), ``whisperx``, ``pocketsphinx`` (forced
    alignment) or ``spread`` (evenly over its segment).
    """

    text: str
    start_s: float
    end_s: float
    probability: float | None
    timed_by: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A stretch of speech and its words."""

    start_s: float
    end_s: float
    words: tuple[SpokenWord, ...]


class Recognizer(Protocol):
    """A recogniser with its model loaded."""

    @property
    def name(self) -> str:
        """``faster-whisper`` or ``whisperx``."""
        ...

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that decides the result for the same sound, as JSON-able values."""
        ...

    def check_language(self, language: str) -> None:
        """Raise `ModelLanguageError` where the model does not know the language."""
        ...

    def vocabulary_taken(self, vocabulary: tuple[str, ...]) -> int:
        """Return how many words of a vocabulary the model is told; it has no room for more."""
        ...

    def detect_language(self, samples: Float32) -> tuple[str, float | None]:
        """Return the language of speech at 16 kHz and its probability.

        None where the model knows no other language, and so cannot tell.
        """
        ...

    def recognize(
        self, samples: Float32, language: str, vocabulary: tuple[str, ...]
    ) -> tuple[Spoken, ...]:
        """Return what is said in ``(N,)`` samples at 16 kHz; nothing where nobody speaks."""
        ...
