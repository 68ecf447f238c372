"""Five voices, each saying the same short kitchen sentences, with the times of their words.

``data/voices/README.md`` tells how they were made and on what terms they may be used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Literal

import numpy as np

from synorama.simulate.sound.clips import GRID_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["VOICES", "SpokenWord", "Utterance", "Voice", "load_voice"]

VOICES = ("anna", "berta", "carl", "david", "emil")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word, without punctuation, and its samples ``start`` to ``end`` in its utterance."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence: where it lies in the sound of its voice, and its words.

    Parameters
    ----------
    text
        As it is written.
    first, count
        Its samples at `GRID_HZ` in the sound of the voice.
    words
        In their order.
    """

    text: str
    first: int
    count: int
    words: tuple[SpokenWord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """Somebody's speech.

    Parameters
    ----------
    name, gender
        Of the speaker, who does not exist.
    utterances
        What was said.
    sound
        ``(N,)`` all of it, near 0.1 of full scale.
    """

    name: str
    gender: Literal["female", "male"]
    utterances: tuple[Utterance, ...]
    sound: Float32

    def samples(self, utterance: Utterance) -> Float32:
        """Return the sound of one utterance of this voice at `GRID_HZ`."""
        return self.sound[utterance.first : utterance.first + utterance.count]


@lru_cache(len(VOICES))
def load_voice(name: str) -> Voice:
    """Return one of `VOICES`."""
    folder = resources.files("synorama.simulate.sound") / "data" / "voices"
    told = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    sound = _decoded((folder / f"{name}.opus").read_bytes())
    sound.setflags(write=False)
    utterances = tuple(
        Utterance(u["text"], u["start"], u["count"], tuple(SpokenWord(*w) for w in u["words"]))
        for u in told["utterances"]
    )
    return Voice(told["name"], told["gender"], utterances, sound)


def _decoded(data: bytes) -> Float32:
    import av

    with av.open(BytesIO(data)) as container:
        stream = container.streams.audio[0]
        if stream.rate != GRID_HZ:
            raise ValueError(f"voices must come at {GRID_HZ} Hz, got {stream.rate}")
        frames = [frame.to_ndarray()[0] for frame in container.decode(stream)]
    sound: Float32 = np.concatenate(frames).astype(np.float32)
    return sound
