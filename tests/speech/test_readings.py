"""Of several readings the one counts that the model finds likeliest."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synorama.speech.backend import SpokenWord
from synorama.speech.readings import Reading, Versions, heard_in_either, likeliest, meets

Spans = list[tuple[int, int]]


def reading(words: int, *weighed: tuple[float, int]) -> Reading:
    word = SpokenWord(" a", 0, 1, 0.9, "attention")
    return Reading([[word] * words], weighed)


@st.composite
def spans(draw: st.DrawFn) -> Spans:
    edges = sorted(draw(st.sets(st.integers(0, 500_000), max_size=12)))
    return list(zip(edges[::2], edges[1::2], strict=False))


def test_the_likeliest_reading_counts() -> None:
    doubtful, likely = reading(9, (-0.8, 20)), reading(7, (-0.3, 15))
    assert likeliest([doubtful, likely]) is likely
    assert likeliest([likely, doubtful]) is likely
    assert likeliest([doubtful]) is doubtful


def test_each_token_counts_alike() -> None:
    assert reading(3, (-0.2, 30), (-1.0, 10)).log_probability == -0.4
    long, short = reading(5, (-0.2, 30), (-1.0, 10)), reading(5, (-0.2, 10), (-1.0, 30))
    assert likeliest([short, long]) is long


def test_one_with_too_few_words_does_not() -> None:
    few, many = reading(4, (-0.1, 5)), reading(5, (-0.7, 6))
    assert likeliest([few, many], 5) is many
    assert likeliest([few], 5).told == []
    assert likeliest([reading(0), many]) is many
    assert likeliest([]).count == 0


@given(spans(), spans())
def test_what_is_heard_in_one_or_the_other_is_heard(one: Spans, other: Spans) -> None:
    both = heard_in_either(one, other)
    assert all(any(a <= first and end <= b for a, b in both) for first, end in [*one, *other])
    assert all(end < first for (_, end), (first, _) in pairwise(both))
    assert both == heard_in_either(other, one)


@given(spans(), spans())
def test_groups_meet_what_they_share_sound_with(one: Spans, other: Spans) -> None:
    assert meets(one, other) == meets(other, one)
    assert meets(one, one) == bool(one)
    assert not meets(one, [])
    edges = [0, *(k for span in one for k in span), 600_000]
    assert not meets(one, list(zip(edges[::2], edges[1::2], strict=True)))  # all but it


def test_a_sound_without_noise_is_recognised_once() -> None:
    t = np.arange(64_000) / 16_000
    glide = np.sin(2 * np.pi * 1000 * np.square(t % 1))
    clean = np.asarray(glide * (t % 1 < 0.5), np.float32)
    hiss = np.asarray(np.random.default_rng(1).standard_normal(64_000) * 0.3, np.float32)
    group = [(0, 20_000), (40_000, 64_000)]
    assert [len(s) for s in Versions.of(clean).of_group(group)] == [44_000]
    assert [len(s) for s in Versions.of(clean + hiss).of_group(group)] == [44_000, 44_000]
