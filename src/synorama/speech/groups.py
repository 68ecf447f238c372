"""Speech without the long silence between, in groups that a model takes at once; and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.sound import SPEECH_HZ
from synorama.speech.windows import cut_windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["Group", "cut_up", "grouped", "in_whole", "with_pauses"]

Group: TypeAlias = "list[tuple[int, int]]"

LONGEST_GROUP = 30 * SPEECH_HZ  # samples; what the model takes at once
KEPT_PAUSE = SPEECH_HZ  # samples; a second of silence at most stays, as people pause in a sentence


def with_pauses(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans over short pauses: words that are pushed together are misheard at the seams."""
    joined: list[tuple[int, int]] = []
    for first, end in spans:
        if joined and first - joined[-1][1] <= KEPT_PAUSE:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((first, end))
    return joined


def cut_up(samples: Float32, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut spans that are longer than a model takes at once where it is quiet."""
    return [
        (start + first, start + end)
        for start, stop in spans
        for first, end in cut_windows(samples[start:stop], LONGEST_GROUP / SPEECH_HZ)
    ]


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


def in_whole(words: Sequence[SpokenWord], group: Group) -> Spoken:
    """Carry words of a group, in seconds of its sound, to those of the whole."""
    moved = tuple(_moved(word, group) for word in words)
    return Spoken(moved[0].start_s, moved[-1].end_s, moved)


def _moved(word: SpokenWord, group: Group) -> SpokenWord:
    """Carry the times of a word in a group to those in the whole, within one span."""
    middle, before = (word.start_s + word.end_s) / 2 * SPEECH_HZ, 0
    for first, end in group:
        if middle < before + end - first or (first, end) == group[-1]:
            by_s = (first - before) / SPEECH_HZ
            low, high = first / SPEECH_HZ, end / SPEECH_HZ
            start_s, end_s = (
                min(max(at_s + by_s, low), high) for at_s in (word.start_s, word.end_s)
            )
            return replace(word, start_s=start_s, end_s=end_s)
        before += end - first
    return word
