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
FARTHEST_S = 1.0  # a word that is moved by more was not found; attention errs by 0.8 at pauses
FRAME_S = 0.01
STEP_S = 0.001  # from one word's begin to the next's at least
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

    def align_all(self, samples: Int16, spoken: Sequence[Spoken]) -> tuple[Spoken, ...]:
        """Return what was recognised, in its order, with better times; see `align`."""
        out: list[Spoken] = []
        for one in spoken:
            earliest_s = out[-1].words[-1].start_s if out else -STEP_S
            out.append(self.align(samples, one, earliest_s))
        return tuple(out)

    def align(self, samples: Int16, spoken: Spoken, earliest_s: float = -STEP_S) -> Spoken:
        """Return the words, in their order, with better times; those not found keep theirs.

        Parameters
        ----------
        samples
            ``(N,)`` at 16 kHz, in which ``spoken`` has its times.
        earliest_s
            Every word begins after this.
        """
        words = _in_order(self._better(samples, spoken, earliest_s), earliest_s)
        return Spoken(words[0].start_s, words[-1].end_s, words)

    def _better(self, samples: Int16, spoken: Spoken, earliest_s: float) -> Sequence[SpokenWord]:
        if all(word.timed_by == "whisperx" for word in spoken.words):
            return spoken.words  # they are aligned
        first_s = max(0.0, earliest_s, spoken.start_s - BEFORE_S)
        last_s = min(len(samples) / SPEECH_HZ, spoken.end_s + AFTER_S)
        if not 0 < last_s - first_s <= LONGEST_S:
            return spoken.words
        part = samples[round(first_s * SPEECH_HZ) : round(last_s * SPEECH_HZ)]
        return _retimed(spoken.words, self._found(part, spoken.words), first_s)

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


def _retimed(
    words: Sequence[SpokenWord], spans: Sequence[tuple[float, float] | None], first_s: float
) -> list[SpokenWord]:
    """Move words to their spans; one that would move far was not found, and keeps its time."""
    moved = [_moved(word, span, first_s) for word, span in zip(words, spans, strict=True)]
    out = [w if _far(w, m) else m for w, m in zip(words, moved, strict=True)]
    for k in reversed(range(len(out) - 1)):
        if out[k].start_s >= out[k + 1].start_s:  # and it still is said before the next one
            out[k] = _shifted(out[k], out[k + 1].start_s - out[k].end_s)
    return out


def _moved(word: SpokenWord, span: tuple[float, float] | None, first_s: float) -> SpokenWord:
    if span is None or word.timed_by == "whisperx":
        return word
    start_s, end_s = first_s + span[0], first_s + span[1]
    return replace(word, start_s=start_s, end_s=end_s, timed_by="pocketsphinx")


def _far(word: SpokenWord, moved: SpokenWord) -> bool:
    return word.timed_by == "attention" and abs(moved.start_s - word.start_s) > FARTHEST_S


def _shifted(word: SpokenWord, by_s: float) -> SpokenWord:
    return replace(word, start_s=word.start_s + by_s, end_s=word.end_s + by_s)


def _in_order(words: Sequence[SpokenWord], earliest_s: float) -> tuple[SpokenWord, ...]:
    """Let each word begin after the one before it: what was said first stays first."""
    out: list[SpokenWord] = []
    at, end = earliest_s, earliest_s
    for word in words:
        late = max(at + STEP_S, end)
        out.append(word if word.start_s > at else _shifted(word, late - word.start_s))
        at, end = out[-1].start_s, out[-1].end_s
    return tuple(out)


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
