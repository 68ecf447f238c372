"""Words and their times by the model's attention, in faster-whisper.

The library gives them, too. But then it goes on listening where the last word ended that it wrote,
which attention tells roughly, and so begins in the middle of a word; without them it goes on where
the model itself ended its sentence. So it is asked without, and words are timed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

__all__ = ["Attention"]

BEFORE_WORDS, AFTER_WORDS = "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、"


class Attention:
    """Times the words of a model while it recognises.

    Parameters
    ----------
    model
        Of faster-whisper. What it makes of a sound is remembered, so that words are timed without
        listening again.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._encode, self._encoded = model, model.encode, None
        model.encode = self._remembered

    def _remembered(self, features: Any) -> Any:
        self._encoded = self._encode(features)
        return self._encoded

    def timed(self, segments: Iterable[Any], language: str, frames: int) -> Iterator[Any]:
        """Yield segments of the library with their words.

        Parameters
        ----------
        segments
            As it makes them, one after the other.
        frames
            Length of the sound, in 10 ms.
        """
        window: list[Any] = []
        encoded, spoken_s = None, 0.0
        for segment in segments:
            if window and segment.seek != window[0].seek:
                timed, spoken_s = self._window(window, encoded, language, frames, spoken_s)
                yield from timed
                window = []
            if not window:
                encoded = self._encoded  # the next window is listened to when its turn comes
            window.append(segment)
        if window:
            yield from self._window(window, encoded, language, frames, spoken_s)[0]

    def _window(
        self, window: Sequence[Any], encoded: Any, language: str, frames: int, spoken_s: float
    ) -> tuple[list[Any], float]:
        """Time the words of one window, and tell where the last one ends."""
        from faster_whisper.transcribe import Word

        model = self._model
        timed = [
            {"seek": s.seek, "start": s.start, "end": s.end, "tokens": s.tokens} for s in window
        ]
        longest = model.feature_extractor.nb_max_frames
        spoken_s = model.add_word_timestamps(
            [timed],
            self._tokenizer(language),
            encoded,
            min(longest, frames - window[0].seek),
            BEFORE_WORDS,
            AFTER_WORDS,
            spoken_s,
        )
        words = [[Word(**word) for word in one["words"]] for one in timed]
        return [replace(s, words=w) for s, w in zip(window, words, strict=True)], spoken_s

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        model = self._model
        return Tokenizer(
            model.hf_tokenizer, model.model.is_multilingual, task="transcribe", language=language
        )
