"""Recognised words on the session clock, each with the device that heard it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.sound import SPEECH_HZ, DeviceSound

__all__ = ["HeardWord", "bare", "on_session_clock", "tidied"]

WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "my", "yue", "km", "bo")
"""Languages that put no blank between words: a token without one is a word of its own."""


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word that a device heard, times on the session clock.

    ``speaker`` names the device whose wearer said it, or is None.
    """

    text: str
    start_ns: int
    end_ns: int
    probability: float | None
    timed_by: str
    device: str
    speaker: str | None = None
    overlapped: bool = False

    @property
    def middle_ns(self) -> int:
        """The moment in its middle."""
        return (self.start_ns + self.end_ns) // 2


def bare(text: str) -> str:
    """Return a word as it is compared with others: without case, accents and punctuation."""
    split = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[^\w']", "", "".join(c for c in split if not unicodedata.combining(c)))


def tidied(spoken: Sequence[Spoken], language: str) -> tuple[Spoken, ...]:
    """Join tokens that are no words of their own, such as a dash or ``'s``, to the word before.

    Recognisers mark a new word by a blank before it.
    """
    blanks = language not in WITHOUT_BLANKS
    joined = (_joined(one.words, blanks) for one in spoken)
    return tuple(Spoken(w[0].start_s, w[-1].end_s, w) for w in joined if w)


def _joined(words: Sequence[SpokenWord], blanks: bool) -> tuple[SpokenWord, ...]:
    out: list[SpokenWord] = []
    for word in words:
        continues = not bare(word.text) or (blanks and not word.text[:1].isspace())
        if out and continues:
            out[-1] = _one(out[-1], word)
        elif bare(word.text):
            out.append(word)
    return tuple(_stripped(word) for word in out)


def _one(first: SpokenWord, second: SpokenWord) -> SpokenWord:
    known = [p for p in (first.probability, second.probability) if p is not None]
    return SpokenWord(
        first.text + second.text.strip(),
        first.start_s,
        max(first.end_s, second.end_s) if bare(second.text) else first.end_s,
        min(known, default=None),
        first.timed_by,
    )


def _stripped(word: SpokenWord) -> SpokenWord:
    return SpokenWord(word.text.strip(), word.start_s, word.end_s, word.probability, word.timed_by)


def on_session_clock(sound: DeviceSound, spoken: Sequence[Spoken], first: int) -> list[HeardWord]:
    """Return the words of a window that begins with sample ``first`` of a device's sound."""
    words = [word for one in spoken for word in one.words]
    if not words:
        return []
    times = np.array([[w.start_s, w.end_s] for w in words]) * SPEECH_HZ + first
    session = sound.session_ns(np.clip(times, 0, len(sound.samples)).reshape(-1)).reshape(-1, 2)
    return [
        HeardWord(w.text, int(a), max(int(b), int(a) + 1), w.probability, w.timed_by, sound.device)
        for w, (a, b) in zip(words, session, strict=True)
    ]
