"""Windows, their store, the sound of a device, the joining of tokens, duplicates."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.errors import DamagedSoundError, DiskFullError, NoSoundError
from synorama.records import RecordingClock
from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.heard import HeardWord, bare, on_session_clock, tidied
from synorama.speech.merge import segments_of, to_words, without_duplicates, without_own_overlaps
from synorama.speech.sound import SPEECH_HZ, from_samples
from synorama.speech.store import WindowStore, window_key
from synorama.speech.windows import cut_windows
from synorama.timebase import ClockMap

MS = 1_000_000


def word(
    text: str, start_ms: int, end_ms: int, device: str, speaker: str | None = None
) -> HeardWord:
    return HeardWord(text, start_ms * MS, end_ms * MS, 0.9, "attention", device, speaker)


def test_float_and_integer_samples_are_the_same_sound() -> None:
    tone = np.sin(np.arange(1000) / 9).astype(np.float32) * 0.5
    as_int = np.rint(tone * 32_767).astype(np.int16)
    assert np.array_equal(from_samples("a", tone).samples, from_samples("a", as_int).samples)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.array([0.1, np.nan, 0.2]), "1 of 3 samples are no numbers"),
        (np.array([0.1, np.inf]), "no numbers"),
        (np.zeros(5, np.int32), "type int32"),
        (np.array([0.0, 12_000.0]), "full scale"),
        (np.zeros((5, 2), np.float32), "shape"),
    ],
)
def test_samples_that_would_lose_words_are_refused(samples: object, said: str) -> None:
    with pytest.raises(DamagedSoundError, match=said):
        from_samples("a", samples)  # type: ignore[arg-type]


def test_no_samples_are_no_sound() -> None:
    with pytest.raises(NoSoundError):
        from_samples("a", np.zeros(0, np.float32))


@given(st.floats(1, 100), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_windows_tile_the_sound_and_none_is_longer_than_allowed(seconds: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = (rng.standard_normal(round(seconds * SPEECH_HZ)) * 1000).astype(np.int16)
    windows = cut_windows(samples, 10.0)
    assert windows[0][0] == 0
    assert windows[-1][1] == len(samples)
    assert all(a[1] == b[0] for a, b in pairwise(windows))
    assert all(end - first <= 10 * SPEECH_HZ for first, end in windows)


def test_a_window_ends_in_the_silence() -> None:
    samples = np.full(15 * SPEECH_HZ, 5000, np.int16)
    samples[8 * SPEECH_HZ : 8 * SPEECH_HZ + SPEECH_HZ // 2] = 0
    (_, end), _ = cut_windows(samples, 10.0)
    assert 8 * SPEECH_HZ < end < 8.5 * SPEECH_HZ


def test_a_window_that_was_done_is_remembered_and_forgotten(tmp_path: Path) -> None:
    store = WindowStore(tmp_path / "windows")
    spoken = (Spoken(0.1, 0.9, (SpokenWord(" so", 0.1, 0.9, None, "attention"),)),)
    key = window_key(np.arange(9, dtype=np.int16), {"model": "tiny"})
    assert store.get(key) is None
    store.put(key, spoken)
    assert store.get(key) == spoken
    (store.folder / f"{key}.json").write_text("[{")  # type: ignore[operator]
    assert store.get(key) is None
    store.clear()
    assert not (tmp_path / "windows").exists()


def test_another_sound_or_model_is_another_window() -> None:
    sound = np.arange(9, dtype=np.int16)
    keys = {
        window_key(sound, {"model": "tiny"}),
        window_key(sound, {"model": "base"}),
        window_key(sound + 1, {"model": "tiny"}),
    }
    assert len(keys) == 3


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match="disk is full"):
        WindowStore(tmp_path).put("key", ())
    assert WindowStore(tmp_path).get("key") is None


def test_tokens_that_are_no_words_join_the_word_before() -> None:
    tokens = [" cold", "-hearted", " it", "'s", " -", " so", "."]
    words = tuple(
        SpokenWord(t, k / 10, k / 10 + 0.1, 0.5 + k / 100, "attention")
        for k, t in enumerate(tokens)
    )
    (spoken,) = tidied([Spoken(0, 1, words)], "en")
    assert [w.text for w in spoken.words] == ["cold-hearted", "it's-", "so."]
    assert spoken.words[0].end_s == pytest.approx(0.2)
    assert spoken.words[2].end_s == pytest.approx(0.6)


def test_languages_without_blanks_keep_their_tokens() -> None:
    words = tuple(SpokenWord(t, 0, 1, 1, "attention") for t in ("你", "好", "。"))
    (spoken,) = tidied([Spoken(0, 1, words)], "zh")
    assert [w.text for w in spoken.words] == ["你", "好。"]


def test_words_compare_without_case_accents_and_punctuation() -> None:
    assert bare("Été,") == bare("ete")
    assert bare("don't") != bare("dont")


def test_times_go_to_the_session_through_the_devices_clock() -> None:
    clock = ClockMap.affine("s", "d", offset_ns=5_000 * MS, drift_ppm=100.0, anchor_ns=0)
    sound = from_samples(
        "d",
        np.zeros(20 * SPEECH_HZ, np.int16),
        start_ns=1_000 * MS,
        clock=RecordingClock("d", (clock,), "sound", 1.0),
    )
    spoken = [Spoken(1, 2, (SpokenWord("so", 1.0, 2.0, 1.0, "attention"),))]
    (found,) = on_session_clock(sound, spoken, 10 * SPEECH_HZ)
    assert found.start_ns == pytest.approx(1e9 + 11e9 + 5e9 + 12e9 * 1e-4, abs=2)
    assert found.end_ns - found.start_ns == pytest.approx(1e9 * (1 + 1e-4), abs=2)


def test_the_louder_device_keeps_a_word_that_both_heard() -> None:
    heard = [
        word("pass", 0, 300, "a", "a"),
        word("Pass,", 40, 320, "b", "b"),
        word("it", 350, 500, "a", "a"),
        word("it", 800, 900, "b", "b"),  # somebody repeats it
    ]
    kept = without_duplicates(heard, lambda one, other: one.device == "b")
    assert [(w.text, w.device) for w in kept] == [("Pass,", "b"), ("it", "a"), ("it", "b")]


def test_what_two_devices_understood_of_a_bystander_is_kept_once() -> None:
    heard = [word("hello", 0, 300, "a"), word("yellow", 10, 310, "b"), word("hi", 0, 300, "b", "b")]
    kept = without_duplicates(heard, lambda one, other: False)
    assert sorted(w.text for w in kept) == ["hello", "hi"]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 300)), min_size=1, max_size=20))
def test_nobody_says_two_words_at_once(spans: list[tuple[int, int]]) -> None:
    heard = [word("so", a, a + d, "a", "a") for a, d in spans]
    kept = without_own_overlaps(heard)
    assert len(kept) == len(heard)
    assert all(w.end_ns >= w.start_ns + MS for w in kept)
    assert all(a.end_ns <= b.start_ns for a, b in pairwise(kept))


def test_segments_end_at_pauses_and_with_the_speaker() -> None:
    heard = [
        word("one", 0, 300, "a", "a"),
        word("two.", 320, 600, "a", "a"),
        word("and", 500, 700, "b", "b"),
        word("three", 1000, 1200, "a", "a"),
        word("four", 4000, 4200, "a", "a"),
    ]
    words = to_words(heard, {"a": "P01"})
    told = [[words[k].text for k in s.words] for s in segments_of(words)]
    assert told == [["one", "two."], ["and"], ["three"], ["four"]]
    assert {w.speaker for w in words} == {"P01", "b"}
