"""What a model reads in two versions of one sound, and which of its readings counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.backend import SpokenWord
from synorama.speech.groups import Group, with_pauses
from synorama.speech.quieter import quieter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["Reading", "Versions", "heard_in_either", "likeliest", "meets"]


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """A sound as it is, and with its noise turned down where there is much."""

    whole: Float32
    quiet: Float32

    @classmethod
    def of(cls, samples: Float32) -> Versions:
        """Return both versions of ``(N,)`` samples at 16 kHz."""
        return cls(samples, quieter(samples))

    @property
    def differ(self) -> bool:
        """Whether noise was turned down anywhere."""
        return not np.array_equal(self.whole, self.quiet)

    def of_group(self, group: Group) -> list[Float32]:
        """Return what a group holds: of both versions, or of one where they do not differ."""
        sound, quiet = (
            np.concatenate([samples[first:end] for first, end in group])
            for samples in (self.whole, self.quiet)
        )
        return [sound] if np.array_equal(sound, quiet) else [sound, quiet]


@dataclass(frozen=True, slots=True)
class Reading:
    """The words of each sentence, and how likely all of it is to the model.

    Parameters
    ----------
    told
        Sentences that are believed.
    weighed
        Mean log probability and number of tokens of each sentence, believed or not.
    """

    told: list[list[SpokenWord]]
    weighed: Sequence[tuple[float, int]]

    @property
    def log_probability(self) -> float:
        """The mean of all tokens, as Whisper's authors judge a reading."""
        count = sum(tokens for _, tokens in self.weighed)
        return sum(mean * tokens for mean, tokens in self.weighed) / max(count, 1)

    @property
    def count(self) -> int:
        """Number of words that are believed."""
        return sum(len(words) for words in self.told)


def likeliest(readings: Sequence[Reading], least: int = 1) -> Reading:
    """Return the reading the model finds likeliest of those with so many words or more.

    Whisper's beams, and what it draws where they fail, are chosen from by the same measure [1]_.
    An empty reading is returned where none has enough words.

    References
    ----------
    .. [1] Radford et al., Robust speech recognition via large-scale weak supervision, ICML 2023,
       section 4.5.
    """
    enough = [reading for reading in readings if reading.count >= least]
    return max(enough, key=lambda reading: reading.log_probability, default=Reading([], ()))


def heard_in_either(
    one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return ``(first, end)`` samples, joined over short pauses, of two lists of such spans."""
    return with_pauses(sorted([*one, *other]))


def meets(group: Group, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a group and spans have a sample in common."""
    return any(a < end and first < b for first, end in group for a, b in spans)
