"""Word times against voices whose times are exact; the text is given."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.voices import VOICES, Utterance, load_voice
from synorama.speech.align import FARTHEST_S, Aligner, _in_order, _retimed, spread
from synorama.speech.backend import Spoken, SpokenWord
from synorama.speech.sound import SPEECH_HZ

UTTERANCES = 8  # of each voice


@cache
def aligner() -> Aligner:
    pytest.importorskip("pocketsphinx", reason="the extra 'speech' is not installed")
    found = Aligner.for_language("en")
    assert found is not None
    return found


def said(voice: str, utterance: Utterance, seed: int) -> tuple[Any, Spoken, list[float]]:
    """One utterance between silence; word times as wrong as a recogniser's, and the true ones."""
    rng = np.random.default_rng(seed)
    dry = signal.resample_poly(load_voice(voice).samples(utterance), 1, GRID_HZ // SPEECH_HZ)
    before = round(0.7 * SPEECH_HZ)
    sound = np.concatenate([np.zeros(before), dry, np.zeros(before)])
    sound += rng.standard_normal(len(sound)) * 1e-4
    starts = [0.7 + w.start / GRID_HZ for w in utterance.words]
    words = tuple(
        SpokenWord(
            w.text,
            start + rng.normal(0.08, 0.06),
            0.7 + w.end / GRID_HZ + rng.normal(0.08, 0.06),
            0.9,
            "attention",
        )
        for w, start in zip(utterance.words, starts, strict=True)
    )
    spoken = Spoken(words[0].start_s, words[-1].end_s, words)
    return np.rint(sound * 32_767).astype(np.int16), spoken, starts


def test_word_starts_are_found_to_a_frame_or_two() -> None:
    errors = []
    for k, voice in enumerate(VOICES):
        for utterance in load_voice(voice).utterances[:UTTERANCES]:
            sound, spoken, starts = said(voice, utterance, k)
            found = aligner().align(sound, spoken)
            errors += [abs(w.start_s - s) for w, s in zip(found.words, starts, strict=True)]
    assert np.median(errors) <= 0.025
    assert np.mean(np.array(errors) <= 0.1) >= 0.93
    assert len(errors) > 150


def test_words_keep_their_order_and_text() -> None:
    sound, spoken, _ = said("anna", load_voice("anna").utterances[0], 0)
    found = aligner().align(sound, spoken)
    assert [w.text for w in found.words] == [w.text for w in spoken.words]
    starts = [w.start_s for w in found.words]
    assert starts == sorted(starts)
    assert {w.timed_by for w in found.words} == {"pocketsphinx"}


@st.composite
def utterances(draw: st.DrawFn) -> tuple[list[SpokenWord], list[tuple[float, float] | None]]:
    """Words where attention puts them, and where alignment does, or that it does not."""
    lasts = st.floats(0.02, 2.0)
    words: list[SpokenWord] = []
    spans: list[tuple[float, float] | None] = []
    heard, found = draw(st.floats(0, 3)), draw(st.floats(0, 3))
    for k in range(draw(st.integers(1, 12))):
        words.append(SpokenWord(str(k), heard, heard + draw(st.floats(0, 3)), 0.9, "attention"))
        spans.append((found, found + draw(lasts)) if draw(st.booleans()) else None)
        heard, found = heard + draw(lasts), found + draw(lasts)
    return words, spans


@given(utterances(), st.floats(0, 4))
def test_what_was_said_first_stays_first_wherever_words_are_found(
    drawn: tuple[list[SpokenWord], list[tuple[float, float] | None]], earliest_s: float
) -> None:
    words, spans = drawn
    timed = _in_order(_retimed(words, spans, 0.0), earliest_s)
    assert [w.text for w in timed] == [w.text for w in words]
    assert all(a.start_s < b.start_s for a, b in pairwise(timed))
    assert all(earliest_s < w.start_s <= w.end_s + 1e-9 for w in timed)
    for word, span, new in zip(words, spans, timed, strict=True):
        near = span is not None and abs(span[0] - word.start_s) <= FARTHEST_S
        assert (new.timed_by == "pocketsphinx") == near


def test_what_whisperx_aligned_is_left_as_it_is() -> None:
    sound, spoken, _ = said("anna", load_voice("anna").utterances[0], 0)
    words = tuple(
        SpokenWord(w.text, 0.7 + 0.2 * k, 0.8 + 0.2 * k, 0.9, "whisperx")
        for k, w in enumerate(spoken.words)
    )
    assert aligner().align(sound, Spoken(spoken.start_s, spoken.end_s, words)).words == words


def test_a_token_without_sound_keeps_its_times_and_says_so() -> None:
    sound, spoken, _ = said("berta", load_voice("berta").utterances[0], 0)
    dash = SpokenWord("-", spoken.words[0].start_s - 0.3, spoken.words[0].start_s, 0.5, "attention")
    found = aligner().align(sound, Spoken(spoken.start_s, spoken.end_s, (dash, *spoken.words)))
    assert found.words[0] == dash
    assert found.words[1].timed_by == "pocketsphinx"


def test_words_that_no_dictionary_has_are_found_by_their_letters() -> None:
    voice = load_voice("carl")
    utterance = voice.utterances[1]
    sound, spoken, starts = said("carl", utterance, 1)
    name = spoken.words[-1].text
    odd = SpokenWord(f"{name}q", *_times(spoken.words[-1]), 0.9, "attention")
    found = aligner().align(sound, Spoken(spoken.start_s, spoken.end_s, (*spoken.words[:-1], odd)))
    assert found.words[-1].timed_by == "pocketsphinx"
    assert abs(found.words[-1].start_s - starts[-1]) < 0.1


def _times(word: SpokenWord) -> tuple[float, float]:
    return word.start_s, word.end_s


def test_text_that_was_not_said_does_not_move_words_far() -> None:
    rng = np.random.default_rng(0)
    noise = (rng.standard_normal(3 * SPEECH_HZ) * 300).astype(np.int16)
    spoken = spread("this was never said by anybody", 0.5, 2.5)
    found = aligner().align(noise, spoken)
    assert all(0 <= w.start_s <= 3 for w in found.words)


def test_too_little_sound_leaves_the_words_as_they_are() -> None:
    spoken = spread("a great many words for so little sound", 0.0, 0.05)
    assert aligner().align(np.zeros(800, np.int16), spoken).words == spoken.words


def test_no_aligner_for_other_languages() -> None:
    assert Aligner.for_language("fr") is None


def test_spread_words_fill_their_stretch_by_length() -> None:
    words = spread("a longer word", 1.0, 2.5).words
    assert [w.text for w in words] == ["a", "longer", "word"]
    assert words[0].start_s == 1.0
    assert words[-1].end_s == pytest.approx(2.5)
    assert words[1].end_s - words[1].start_s > words[0].end_s - words[0].start_s
    assert {w.timed_by for w in words} == {"spread"}
