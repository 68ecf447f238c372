"""People who talk, and what the glasses of two of them hear: a room of noise that decays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.dialogue import WordTruth, plan_dialogue
from synorama.simulate.sound.voices import VOICES
from synorama.speech.heard import HeardWord, bare
from synorama.speech.sound import SPEECH_HZ, DeviceSound, from_samples

WEARERS = ("leader", "helper")
RT60_S = 0.35
OWN_DRR_DB, OTHERS_DRR_DB = 12.0, 4.0  # direct sound over reverberation
NEAR_NS = 500_000_000


@dataclass(frozen=True)
class Talk:
    sounds: tuple[DeviceSound, ...]
    words: tuple[WordTruth, ...]
    overlap: float

    def without_overlap(self) -> list[WordTruth]:
        return [w for w in self.words if not w.overlapped]


def talk(
    seed: int,
    seconds: float,
    *,
    crosstalk_db: float = -10.0,
    gain_db: float = 9.0,
    overlap: float = 0.12,
    offset_s: float = 0.0,
    only: str | None = None,
    snr_db: float = 25.0,
) -> Talk:
    """Two wearers talk; the second one's glasses are louder by a gain and their clock is off."""
    rng = np.random.default_rng(seed)
    chosen = [str(v) for v in rng.permutation(VOICES)]
    voices = {w: v for w, v in zip(WEARERS, chosen, strict=False) if only in (None, w)}
    dialogue = plan_dialogue(seed, 1.0, seconds - 1, voices, overlap=0 if only else overlap)
    count = round(seconds * GRID_HZ)
    dry = {w: _at_16_khz(dialogue.dry(w).samples(0, count), count) for w in voices}
    heard = [_heard(own, dry, crosstalk_db, snr_db, rng) for own in WEARERS]
    heard[1] = np.roll(heard[1] * 10 ** (gain_db / 20), round(offset_s * SPEECH_HZ))
    peak = max(np.abs(h).max() for h in heard)
    sounds = [
        from_samples(w, (h / peak * 0.8).astype(np.float32), speaker=w, worn=True)
        for w, h in zip(WEARERS, heard, strict=True)
    ]
    return Talk(tuple(sounds), dialogue.words(0), dialogue.overlap)


def _at_16_khz(samples: Any, count: int) -> NDArray[np.float64]:
    given = np.zeros(count) if samples is None else samples
    return np.asarray(signal.resample_poly(given, 1, GRID_HZ // SPEECH_HZ), np.float64)


def _heard(
    own: str,
    dry: Mapping[str, NDArray[np.float64]],
    crosstalk_db: float,
    snr_db: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    out = np.zeros(len(next(iter(dry.values()))))
    for who, said in dry.items():
        gain = 1.0 if who == own else 10 ** (crosstalk_db / 20)
        response = _response(rng, OWN_DRR_DB if who == own else OTHERS_DRR_DB)
        out += gain * signal.fftconvolve(said, response)[: len(out)]
    level = np.sqrt(np.mean([np.mean(d[np.abs(d) > 1e-3] ** 2) for d in dry.values()]))
    noise = rng.standard_normal(len(out)) * level * 10 ** (-snr_db / 20)
    return np.asarray(out + noise, np.float64)


def _response(rng: np.random.Generator, drr_db: float) -> NDArray[np.float64]:
    t = np.arange(round(RT60_S * SPEECH_HZ)) / SPEECH_HZ
    tail = rng.standard_normal(len(t)) * np.exp(-6.9 * t / RT60_S)
    tail *= 10 ** (-drr_db / 20) / np.sqrt(np.sum(np.square(tail)))
    tail[0] += 1
    return np.asarray(tail / np.sqrt(np.sum(np.square(tail))))


def as_heard(words: Sequence[WordTruth], device: str) -> list[HeardWord]:
    """What a perfect recogniser makes of one device."""
    return [HeardWord(w.text, w.start_ns, w.end_ns, 0.9, "attention", device) for w in words]


def matched(words: Sequence[Any], truth: Sequence[WordTruth]) -> dict[int, list[Any]]:
    """Return by true word those that were found of it: same text, nearly the same time."""
    found: dict[int, list[Any]] = {}
    for word in words:
        middle = (word.start_ns + word.end_ns) / 2
        near = [
            (abs(middle - (t.start_ns + t.end_ns) / 2), k)
            for k, t in enumerate(truth)
            if bare(t.text) == bare(word.text)
        ]
        if near and min(near)[0] < NEAR_NS:
            found.setdefault(min(near)[1], []).append(word)
    return found
