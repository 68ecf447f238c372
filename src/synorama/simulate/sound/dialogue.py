"""Who says what when: people who talk with each other take turns, and now and then interrupt.

Everything is decided by a seed; the times of the words are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.sound.clips import GRID_HZ, Clip, Clips
from synorama.simulate.sound.voices import Utterance, load_voice
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["Dialogue", "Turn", "WordTruth", "plan_dialogue"]

LEAST_PAUSE_S = 0.15
STAYS_SHARE = 0.25  # of turns: the same person goes on talking
INTERRUPTED = (0.35, 0.7)  # share of an utterance that another one talks into


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody says something: the voice, the utterance, and its first sample on the grid."""

    speaker: str
    voice: str
    utterance: Utterance
    start: int

    @property
    def begin(self) -> int:
        """First sample of the first word on the grid."""
        return self.start + self.utterance.words[0].start

    @property
    def end(self) -> int:
        """One after the last sample of the last word on the grid."""
        return self.start + self.utterance.words[-1].end


@dataclass(frozen=True, slots=True)
class WordTruth:
    """A word as it left the mouth of a speaker.

    Parameters
    ----------
    text, speaker
        What, and by whom.
    start_ns, end_ns
        Session times.
    overlapped
        Whether somebody else spoke at the same time.
    """

    text: str
    speaker: str
    start_ns: int
    end_ns: int
    overlapped: bool


@dataclass(frozen=True, slots=True)
class Dialogue:
    """All that is said in a session, in the order in which it begins."""

    turns: tuple[Turn, ...]

    def dry(self, speaker: str) -> Clips:
        """Return what the mouth of one speaker gives off."""
        return Clips(_clip(turn) for turn in self.turns if turn.speaker == speaker)

    def words(self, start_ns: int) -> tuple[WordTruth, ...]:
        """Return all words in order of their start, for a session that starts then."""
        told = [w for turn in self.turns for w in self._words_of(turn, start_ns)]
        return tuple(sorted(told, key=lambda word: (word.start_ns, word.speaker)))

    def _words_of(self, turn: Turn, start_ns: int) -> Iterator[WordTruth]:
        others = [t for t in self.turns if t is not turn and t.begin < turn.end]
        others = [t for t in others if t.end > turn.begin]
        for word in turn.utterance.words:
            begin, end = turn.start + word.start, turn.start + word.end
            overlapped = any(t.begin < end and t.end > begin for t in others)
            first, last = (start_ns + round(k * NS_PER_S / GRID_HZ) for k in (begin, end))
            yield WordTruth(word.text, turn.speaker, first, last, overlapped)

    @property
    def overlap(self) -> float:
        """Share of the time in which somebody speaks that more than one speaks."""
        edges = sorted([(t.begin, 1) for t in self.turns] + [(t.end, -1) for t in self.turns])
        talking, since, alone, together = 0, 0, 0, 0
        for at, change in edges:
            alone += (at - since) * (talking == 1)
            together += (at - since) * (talking > 1)
            talking, since = talking + change, at
        return together / max(alone + together, 1)


def _clip(turn: Turn) -> Clip:
    return Clip(turn.start, turn.utterance.count, partial(_said, turn.voice, turn.utterance))


def _said(voice: str, utterance: Utterance) -> Float32:
    return load_voice(voice).samples(utterance)


def plan_dialogue(
    seed: int,
    first_s: float,
    last_s: float,
    voices: Mapping[str, str],
    *,
    overlap: float = 0.12,
    pause_s: float = 0.8,
    talkative: Mapping[str, float] | None = None,
) -> Dialogue:
    """Return a conversation that lies within two times of the session.

    Parameters
    ----------
    seed
        Decides who says what.
    first_s, last_s
        Seconds of the session between which is spoken.
    voices
        The voice, of `synorama.simulate.sound.voices.VOICES`, of each speaker.
    overlap
        Share of the time of speech in which two are to speak at once; 0 to 0.3.
    pause_s
        Mean pause between turns.
    talkative
        How readily each speaker takes a turn; 1 where nothing is said. A bystander takes few.
    """
    if not 0 <= overlap <= 0.3:
        raise ValueError(f"two can speak at once for 0 to 0.3 of the time, not {overlap}")
    planner = _Planner(randomness(seed, "dialogue"), dict(voices), dict(talkative or {}))
    end = round(last_s * GRID_HZ)
    at = round(first_s * GRID_HZ)
    while (turn := planner.next(at, overlap, pause_s)).start + turn.utterance.count <= end:
        planner.turns.append(turn)
    return Dialogue(tuple(planner.turns))


class _Planner:
    """Takes turns one after the other, and lets so many of them begin too early."""

    def __init__(
        self, rng: np.random.Generator, voices: dict[str, str], talkative: dict[str, float]
    ) -> None:
        self._rng, self._voices, self._talkative = rng, voices, talkative
        self._unsaid: dict[str, list[Utterance]] = {name: [] for name in voices}
        self.turns: list[Turn] = []

    def next(self, first: int, overlap: float, pause_s: float) -> Turn:
        """Return the next turn."""
        speaker = self._speaker()
        utterance = self._utterance(speaker)
        pause = round((LEAST_PAUSE_S + self._rng.exponential(pause_s)) * GRID_HZ)
        share = self._rng.uniform(*INTERRUPTED)
        begin = first + pause if not self.turns else self.turns[-1].end + pause
        if self.turns and speaker != self.turns[-1].speaker and self._owing(overlap):
            begin = self._into_the_last(utterance, share, pause)
        return Turn(speaker, self._voices[speaker], utterance, begin - utterance.words[0].start)

    def _speaker(self) -> str:
        names = list(self._voices)
        weights = np.array([self._talkative.get(name, 1.0) for name in names])
        if self.turns:
            last = np.array([name == self.turns[-1].speaker for name in names])
            stays = STAYS_SHARE if len(names) > 1 else 1.0
            others = weights * ~last
            weights = np.where(last, stays, (1 - stays) * others / max(others.sum(), 1e-9))
        return names[int(self._rng.choice(len(names), p=weights / weights.sum()))]

    def _utterance(self, speaker: str) -> Utterance:
        """Return something that the speaker has not said since all else was said."""
        if not self._unsaid[speaker]:
            said: Sequence[Utterance] = load_voice(self._voices[speaker]).utterances
            order = self._rng.permutation(len(said))
            self._unsaid[speaker] = [said[k] for k in order]
        return self._unsaid[speaker].pop()

    def _owing(self, overlap: float) -> bool:
        """Return whether there has been too little speech at once so far."""
        return Dialogue(tuple(self.turns[-30:])).overlap < overlap

    def _into_the_last(self, utterance: Utterance, share: float, pause: int) -> int:
        """Return where to begin within the last turn, with nobody else speaking any more."""
        last = self.turns[-1]
        spoken = utterance.words[-1].end - utterance.words[0].start
        begin = last.end - round(share * min(spoken, last.end - last.begin))
        earlier = max((turn.end for turn in self.turns[:-1]), default=begin)
        return begin if begin >= earlier else max(earlier, last.end) + pause
