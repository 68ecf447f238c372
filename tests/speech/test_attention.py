"""Words are timed in the window in which they were heard, although the library goes on lazily."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synorama.speech.attention import Attention


@dataclass
class Segment:
    """As the library's."""

    seek: int
    start: float
    end: float
    tokens: list[int]
    words: list[Any] | None = None


class Model:
    """Listens to a window, and says which window it was asked to time words in."""

    feature_extractor = SimpleNamespace(nb_max_frames=3000)

    def __init__(self) -> None:
        self.asked: list[tuple[Any, int, float]] = []

    def encode(self, features: Any) -> Any:
        return f"heard {features}"

    def add_word_timestamps(self, segments: Any, *facts: Any) -> float:
        _, encoded, frames, _, _, spoken_s = facts
        self.asked.append((encoded, frames, spoken_s))
        for segment in segments[0]:
            told = {"word": " so", "start": segment["start"], "end": segment["end"]}
            segment["words"] = [{**told, "probability": 0.9}]
        return float(segments[0][-1]["end"])


def test_each_window_is_timed_by_what_was_heard_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faster_whisper")
    model = Model()
    attention = Attention(model)
    monkeypatch.setattr(attention, "_tokenizer", lambda _: None)

    def segments() -> Iterator[Segment]:
        for seek, starts in ((0, (0.0, 4.0)), (1000, ()), (2500, (26.0,))):
            model.encode(seek)
            for start in starts:
                yield Segment(seek, start, start + 2, [1])

    timed = list(attention.timed(segments(), "en", 4200))
    assert [s.words[0].start for s in timed] == [0, 4, 26]
    assert model.asked == [("heard 0", 3000, 0.0), ("heard 2500", 1700, 6.0)]
    assert list(attention.timed(iter(()), "en", 10)) == []


def test_times_of_words_are_those_of_the_library(shared_data: Path, tiny_model: Path) -> None:
    from faster_whisper import WhisperModel

    path = str(shared_data / "4_audio" / "faster-whisper" / "jfk.flac")
    model = WhisperModel(str(tiny_model), device="cpu", compute_type="int8", cpu_threads=1)
    theirs = list(model.transcribe(path, language="en", word_timestamps=True)[0])
    attention = Attention(model)
    ours = list(attention.timed(model.transcribe(path, language="en")[0], "en", 1100))
    assert {s.seek for s in theirs} == {0}  # one window: what follows they hear from elsewhere
    assert [s.words for s in ours] == [s.words for s in theirs]
