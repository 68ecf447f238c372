"""Which language is spoken: one a session, found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.sound import SPEECH_HZ, DeviceSound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.speech.backend import Recognizer

    Float32 = NDArray[np.float32]

__all__ = ["Language", "find_language", "full_scale"]

STRETCH = 30 * SPEECH_HZ
STRETCHES = 5
SURE = 0.5
NOTICED_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Language:
    """A language, how sure that is, and what the operator should know.

    The probability is None where the language was given, and where the model knows no other.
    """

    code: str
    probability: float | None
    warnings: tuple[str, ...] = ()


def find_language(
    given: str | None, sounds: Sequence[DeviceSound], recognizer: Recognizer
) -> Language:
    """Return the session's language.

    Raises
    ------
    ModelLanguageError
        The model does not know the language.
    """
    if given is not None:
        recognizer.check_language(given)
        return Language(given, None)
    votes: dict[str, float] = {}
    for stretch in _loudest(sounds):
        code, probability = recognizer.detect_language(stretch)
        if probability is None:
            return Language(code, None)
        votes[code] = votes.get(code, 0.0) + probability
    if not votes:
        return Language("en", 0.0)
    total = sum(votes.values())
    code = max(votes, key=lambda c: votes[c])
    recognizer.check_language(code)
    return Language(code, votes[code] / total, tuple(_doubts(code, votes, total)))


def _doubts(code: str, votes: dict[str, float], total: float) -> list[str]:
    others = [c for c, v in votes.items() if c != code and v / total >= NOTICED_SHARE]
    if not others:
        return []
    return [
        f"more than one language was heard ({code}, {', '.join(others)}); all of it was taken for "
        f"{code}, and what was said in another language is not to be trusted: give --language"
    ]


def _loudest(sounds: Sequence[DeviceSound]) -> list[Float32]:
    """Return the loudest stretches, at most `STRETCHES`, spread over the session."""
    found: list[tuple[float, int, Float32]] = []
    for sound in sounds:
        for first in range(0, max(len(sound.samples), 1), STRETCH):
            part = sound.samples[first : first + STRETCH]
            if part.any():
                power = float(np.mean(np.square(part.astype(np.float32)))) / sound.gain**2
                found.append((power, first, full_scale(part)))
    found.sort(key=lambda f: -f[0])
    return [samples for _, _, samples in found[:STRETCHES]]


def full_scale(samples: NDArray[np.int16]) -> Float32:
    """Return samples as recognisers take them: float32 with a peak of 0.7."""
    peak = float(np.abs(samples.astype(np.int32)).max(initial=0))
    return np.asarray(samples * np.float32(0.7 / max(peak, 1.0)), np.float32)
