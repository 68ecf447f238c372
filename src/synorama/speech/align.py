"""When each word begins and ends: forced alignment of known text with the sound.

A recogniser's own word times come from its attention and are off by a tenth of a second.
Pocketsphinx, given the text, finds the boundaries of its phones with hidden Markov models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.pronounce import pronunciations
from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int16 = NDArray[np.int16]

__all__ = ["Aligner", "spread"]

BEFORE_S, AFTER_S = 0.4, 0.35
FARTHEST_S = 0.6  # a word that is moved by more was not found
FRAME_S = 0.01
LONGEST_S = 40.0  # of one alignment: its cost grows with text times sound
LANGUAGES = ("en",)


class Aligner:
    """Pocketsphinx with its own English model.

    Its beams are opened wide: with the usual ones it loses the path in two of three real files.
    """

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder: Any = Decoder(
            lm=None,
            samprate=SPEECH_HZ,
            loglevel="FATAL",
            bestpath=False,
            beam=1e-120,
            wbeam=1e-100,
            pbeam=1e-120,
            cmn="batch",
        )
        self._names: dict[tuple[str, ...], str] = {}

    @classmethod
    def for_language(cls, language: str) -> Aligner | None:
        """Return an aligner, or None where there is none for the language on this machine."""
        if language not in LANGUAGES:
            return None
        try:
            return cls()
        except (ImportError, RuntimeError, ValueError):
            return None

    def align(self, samples: Int16, spoken: Spoken) -> Spoken:
        """Return the words with better times; those that were not found keep theirs.

        Parameters
        ----------
        samples
            ``(N,)`` at 16 kHz, in which ``spoken`` has its times.
        """
        first_s = max(0.0, spoken.start_s - BEFORE_S)
        last_s = min(len(samples) / SPEECH_HZ, spoken.end_s + AFTER_S)
        if not 0 < last_s - first_s <= LONGEST_S:
            return spoken
        part = samples[round(first_s * SPEECH_HZ) : round(last_s * SPEECH_HZ)]
        found = self._found(part, spoken.words)
        words = tuple(
            _retimed(word, span, first_s) for word, span in zip(spoken.words, found, strict=True)
        )
        return Spoken(words[0].start_s, words[-1].end_s, words)

    def _found(
        self, samples: Int16, words: Sequence[SpokenWord]
    ) -> Sequence[tuple[float, float] | None]:
        """Return for each word its span [s] in the samples, or None."""
        nothing: list[tuple[float, float] | None] = [None] * len(words)
        names = [self._name(word.text) for word in words]
        sounding = [k for k, name in enumerate(names) if name]
        spans = self._spans(samples, [names[k] for k in sounding]) if sounding else []
        if len(spans) != len(sounding):
            return nothing
        for k, span in zip(sounding, spans, strict=True):
            nothing[k] = span
        return nothing

    def _spans(self, samples: Int16, names: Sequence[str]) -> list[tuple[float, float]]:
        decoder = self._decoder
        try:
            decoder.set_align_text(" ".join(names))
            decoder.start_stream()  # else what it learned of the noise before moves words here
            decoder.start_utt()
            decoder.process_raw(_loud(samples).tobytes(), full_utt=True)
            decoder.end_utt()
        except RuntimeError:  # too short a sound for so much text
            return []
        if decoder.hyp() is None:
            return []
        return [
            (seg.start_frame * FRAME_S, (seg.end_frame + 1) * FRAME_S)
            for seg in decoder.seg()
            if not seg.word.startswith(("<", "["))
        ]

    def _name(self, token: str) -> str:
        """Return the decoder's word for a token, which it is taught first; empty for no sound."""
        bare = re.sub(r"[^a-z']", "", token.lower()).strip("'")
        if bare == token.lower().strip(".,;:!?\"'") and self._decoder.lookup_word(bare):
            return bare
        sounds = pronunciations(token, self._decoder.lookup_word)
        if not sounds:
            return ""
        if sounds not in self._names:
            name = f"synorama{len(self._names)}"
            for k, sound in enumerate(sounds):
                variant = name if k == 0 else f"{name}({k + 1})"
                self._decoder.add_word(variant, sound, k == len(sounds) - 1)
            self._names[sounds] = name
        return self._names[sounds]


def _loud(samples: Int16) -> Int16:
    """Return the samples at full scale: the decoder was trained on close microphones."""
    peak = int(np.abs(samples.astype(np.int32)).max(initial=1))
    return (samples.astype(np.int32) * 28_000 // max(peak, 1)).astype(np.int16)


def _retimed(word: SpokenWord, span: tuple[float, float] | None, first_s: float) -> SpokenWord:
    if span is None:
        return word
    start_s, end_s = first_s + span[0], first_s + span[1]
    if word.timed_by == "attention" and abs(start_s - word.start_s) > FARTHEST_S:
        return word
    return replace(word, start_s=start_s, end_s=end_s, timed_by="pocketsphinx")


def spread(text: str, start_s: float, end_s: float, probability: float | None = None) -> Spoken:
    """Return the words of a stretch whose word times nobody knows, laid out by their length."""
    tokens = text.split()
    lengths = np.array([len(token) + 1 for token in tokens], np.float64)
    shares = np.concatenate([[0.0], np.cumsum(lengths)]) / max(float(lengths.sum()), 1.0)
    edges = start_s + (end_s - start_s) * shares
    words = tuple(
        SpokenWord(token, float(a), float(b), probability, "spread")
        for token, a, b in zip(tokens, edges[:-1], edges[1:], strict=True)
    )
    return Spoken(start_s, end_s, words)
