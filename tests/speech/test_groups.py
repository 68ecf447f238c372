"""Speech is recognised in groups without the silence between; times go back to the whole."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synorama.speech.backend import SpokenWord
from synorama.speech.embedded import without_losses
from synorama.speech.groups import (
    KEPT_PAUSE,
    LONGEST_GROUP,
    _moved,
    cut_up,
    grouped,
    with_pauses,
)
from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

ZERO = 1000  # the token of 0 s


def word(start_s: float, end_s: float) -> SpokenWord:
    return SpokenWord(" a", start_s, end_s, 0.9, "attention")


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int]]:
    at, found = 0, []
    for _ in range(draw(st.integers(1, 12))):
        first = at + draw(st.integers(0, 60 * SPEECH_HZ))
        at = first + draw(st.integers(1600, LONGEST_GROUP))
        found.append((first, at))
    return found


@given(spans())
def test_groups_hold_all_speech_in_order_and_fit_the_model(
    given_spans: list[tuple[int, int]],
) -> None:
    groups = grouped(given_spans)
    assert [span for group in groups for span in group] == given_spans
    assert all(sum(end - first for first, end in group) <= LONGEST_GROUP for group in groups)


@given(spans())
def test_only_short_pauses_stay(given_spans: list[tuple[int, int]]) -> None:
    joined = with_pauses(given_spans)
    ends = {end for _, end in joined}
    for (_, end), (first, _) in pairwise(given_spans):
        assert end in ends or first - end <= KEPT_PAUSE
    starts = {first for first, _ in given_spans}
    assert all(first in starts for first, _ in joined)
    assert with_pauses([(0, 10), (20, 30)]) == [(0, 30)]
    assert with_pauses([(0, 10), (20 + KEPT_PAUSE, 30 + KEPT_PAUSE)])[1][0] == 20 + KEPT_PAUSE


@given(spans(), st.floats(0, 1))
def test_times_in_a_group_go_back_to_where_they_were_said(
    given_spans: list[tuple[int, int]], share: float
) -> None:
    for group in grouped(given_spans):
        before = 0
        for first, end in group:
            at = first + share * (end - first - 2)
            start_s = (before + at - first) / SPEECH_HZ
            moved = _moved(word(start_s, start_s + 1 / SPEECH_HZ), group)
            assert abs(moved.start_s - at / SPEECH_HZ) < 1e-3
            before += end - first


def test_a_word_stays_within_one_span() -> None:
    group = [(0, SPEECH_HZ), (10 * SPEECH_HZ, 12 * SPEECH_HZ)]
    assert _moved(word(0.6, 1.2), group) == word(0.6, 1.0)
    assert _moved(word(0.9, 1.8), group) == word(10.0, 10.8)
    assert grouped([]) == []


@given(st.integers(1, 100), st.integers(0, 999))
def test_long_speech_is_cut_where_it_is_quiet(seconds: int, seed: int) -> None:
    count = seconds * SPEECH_HZ
    sound = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    quiet = 25 * SPEECH_HZ, 26 * SPEECH_HZ
    sound[slice(*quiet)] *= 0.01
    cut = cut_up(sound, [(0, count)])
    assert cut[0][0] == 0
    assert cut[-1][1] == count
    assert all(before == after for (_, before), (after, _) in pairwise(cut))
    assert all(0 < end - first <= LONGEST_GROUP for first, end in cut)
    assert seconds <= 30 or quiet[0] < cut[0][1] < quiet[1]


@dataclass
class Segment:
    """As the library tells it, with the tokens of its first and last moment."""

    words: list[Any]
    tokens: list[int]
    seek: int = 0


def segment(first_s: float, last_s: float, *words: tuple[str, float, float]) -> Segment:
    told = [SimpleNamespace(word=t, start=a, end=b, probability=0.9) for t, a, b in words]
    return Segment(told, [ZERO + round(first_s * 50), 7, ZERO + round(last_s * 50)])


def test_speech_that_the_model_left_out_is_recognised_again() -> None:
    asked: list[float] = []

    def run(sound: NDArray[np.float32]) -> list[Segment]:
        asked.append(len(sound) / SPEECH_HZ)
        if len(asked) > 1:
            return [segment(0, 2, (" internet", 0.1, 0.8))]
        lost = segment(1, 4, (" connected", 1.5, 2), (" to", 2, 9.5), (" the", 9.5, 9.9))
        return [segment(0, 1, (" You're", 0, 0.9)), lost, segment(9, 10, (" Never", 9.9, 10))]

    told = without_losses(run, np.zeros(10 * SPEECH_HZ, np.float32), ZERO)
    words = [(w.text.strip(), w.start_s, w.end_s) for one in told for w in one]
    assert asked == [10, 6]  # from where the model ended its sentence
    assert words[2:] == [("to", 2, 4), ("the", 4, 4), ("internet", 4.1, 4.8)]


def test_what_was_heard_whole_is_recognised_once() -> None:
    heard = segment(0, 4, (" slowly", 0.5, 2.9), (" spoken", 2.9, 5.5))  # a rough stamp

    def run(_: NDArray[np.float32]) -> list[Segment]:
        asked.append(1)
        return [heard, Segment(heard.words, [ZERO, 7])]

    asked: list[int] = []
    told = without_losses(run, np.zeros(8 * SPEECH_HZ, np.float32), ZERO)
    assert asked == [1]
    assert [w.end_s for w in told[0]] == [2.9, 5.5]
    assert without_losses(run, np.zeros(10, np.float32), ZERO) == []
