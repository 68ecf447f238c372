"""Speech is recognised in groups without the silence between; times go back to the whole."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from synorama.speech.embedded import KEPT_PAUSE, LONGEST_GROUP, _in_whole, grouped, with_pauses
from synorama.speech.sound import SPEECH_HZ


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
    assert all(end - first <= LONGEST_GROUP for first, end in joined)
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
            moved, _ = _in_whole(start_s, start_s + 1 / SPEECH_HZ, group)
            assert abs(moved - at / SPEECH_HZ) < 1e-3
            before += end - first


def test_a_word_stays_within_one_span() -> None:
    group = [(0, SPEECH_HZ), (10 * SPEECH_HZ, 12 * SPEECH_HZ)]
    assert _in_whole(0.6, 1.2, group) == (0.6, 1.0)
    assert _in_whole(0.9, 1.8, group) == (10.0, 10.8)
    assert grouped([]) == []
