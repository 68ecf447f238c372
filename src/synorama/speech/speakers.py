"""Who said each word: the wearer whose device heard it nearest, or nobody who wears one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.gate import others_talk
from synorama.speech.heard import HeardWord
from synorama.speech.levels import Divide, Levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]

__all__ = ["Attribution"]

NEAR_MIDDLE = 0.7  # of half the separation: as near to it a bystander may be
FAR_BELOW_DB = 8.0  # a bystander is this much lower on every device than its wearer
AROUND_NS = 400_000_000  # around a word, too: a wearer's unstressed word has loud neighbours
UNCLEAR_DB = 2.0  # where nothing was learned, levels as near as this tell nothing
SURE = 0.5  # of half the separation: words whose wearer is beyond doubt
ENOUGH_WORDS = 5
OVERLAPPED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class _Margin:
    """How far [dB] beyond the threshold to another device a device's wearer is heard."""

    db: float
    divide: Divide
    is_first: bool

    @property
    def other_alone(self) -> bool:
        """Whether only the other device's wearer talks."""
        return self.db < -self.divide.other_alone_db(self.is_first)


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """All that tells who said a word.

    Parameters
    ----------
    levels, divides
        How loud each device heard it, and where that divides.
    shifts_ns
        By device: what is added to its session times before levels are compared.
    """

    levels: Levels
    divides: Mapping[tuple[int, int], Divide]
    shifts_ns: Mapping[str, int]

    def attribute(self, words: Sequence[HeardWord]) -> list[HeardWord]:
        """Name the speaker of each word, and leave out what a device heard of other wearers.

        A word that is left out was said into another device, which has heard it better.
        """
        own_db = self._own_levels(words)
        return [told for word in words if (told := self._told(word, own_db)) is not None]

    def _told(self, word: HeardWord, own_db: Mapping[int, float]) -> HeardWord | None:
        margins = self._margins(word)
        if not margins:
            return word  # nobody else recorded then, and one device alone does not tell
        least = min(margins, key=lambda m: m.db)
        if self._by_nobody(word, least, own_db):
            return word
        if least.other_alone:
            return None
        return replace(word, speaker=word.device)

    def nearer(self, one: HeardWord, other: HeardWord) -> bool:
        """Tell whether the first of two devices that heard a word is the nearer one."""
        names = self.levels.devices
        a, b = (names.index(w.device) if w.device in names else -1 for w in (one, other))
        if (min(a, b), max(a, b)) not in self.divides:
            return (one.probability or 0.0) > (other.probability or 0.0)
        frames = self._frames(one if one.timed_by == "pocketsphinx" else other)
        return self._margin(a, b, frames).db > 0

    def _frames(self, word: HeardWord) -> slice:
        shift = self.shifts_ns.get(word.device, 0)
        return self.levels.span(word.start_ns + shift, word.end_ns + shift)

    def _margins(self, word: HeardWord) -> list[_Margin]:
        """Return how far beyond each threshold the device's wearer is heard."""
        if word.device not in self.levels.devices:
            return []
        device, frames = self.levels.devices.index(word.device), self._frames(word)
        others = [b if a == device else a for a, b in self.divides if device in (a, b)]
        margins = [self._margin(device, other, frames) for other in others]
        return [m for m in margins if np.isfinite(m.db)]

    def _margin(self, device: int, other: int, frames: slice) -> _Margin:
        a, b = min(device, other), max(device, other)
        divide = self.divides[a, b]
        beyond = self.levels.ratio_db(a, b, frames) - divide.threshold_db
        return _Margin(beyond if device == a else -beyond, divide, device == a)

    def _by_nobody(self, word: HeardWord, margin: _Margin, own_db: Mapping[int, float]) -> bool:
        if not margin.divide.learned:
            return abs(margin.db) < UNCLEAR_DB
        if abs(margin.db) > NEAR_MIDDLE * margin.divide.separation_db / 2:
            return False
        around = replace(word, start_ns=word.start_ns - AROUND_NS, end_ns=word.end_ns + AROUND_NS)
        frames = self._frames(around)
        return len(own_db) > 1 and all(
            self._level_db(device, frames) < usual - FAR_BELOW_DB
            for device, usual in own_db.items()
        )

    def _own_levels(self, words: Sequence[HeardWord]) -> dict[int, float]:
        """Return by device how loud it usually hears its wearer [dB]."""
        heard: dict[int, list[float]] = {}
        for word in words:
            margins = self._margins(word)
            if margins and all(m.db > SURE * m.divide.separation_db / 2 for m in margins):
                device = self.levels.devices.index(word.device)
                heard.setdefault(device, []).append(self._level_db(device, self._frames(word)))
        return {d: float(np.median(v)) for d, v in heard.items() if len(v) >= ENOUGH_WORDS}

    def _level_db(self, device: int, frames: slice) -> float:
        power = self.levels.power[device, frames]
        known = power[np.isfinite(power)]
        return float(10 * np.log10(known.mean())) if len(known) else float("-inf")

    def flag_overlaps(self, words: Sequence[HeardWord]) -> list[HeardWord]:
        """Mark the words during which somebody else speaks, too."""
        others = {
            name: others_talk(self.levels, self.divides, k)
            for k, name in enumerate(self.levels.devices)
        }
        spoken_into = _spoken_into(words)
        return [
            replace(w, overlapped=into or self._talked_over(w, others))
            for w, into in zip(words, spoken_into, strict=True)
        ]

    def _talked_over(self, word: HeardWord, others: Mapping[str, Bool]) -> bool:
        if word.speaker is None:
            return False
        part = others[word.device][self._frames(word)]
        return bool(len(part)) and bool(part.mean() > OVERLAPPED_SHARE)


def _spoken_into(words: Sequence[HeardWord]) -> list[bool]:
    """Tell for each word whether somebody else says one at the same time."""
    ordered = sorted(words, key=lambda w: w.start_ns)
    starts = [w.start_ns for w in ordered]
    longest = max((w.end_ns - w.start_ns for w in words), default=0)

    def into(word: HeardWord) -> bool:
        first = bisect_left(starts, word.start_ns - longest)
        near = ordered[first : bisect_left(starts, word.end_ns)]
        return any(o.speaker != word.speaker and o.end_ns > word.start_ns for o in near)

    return [into(word) for word in words]
