"""Who spoke, when a perfect recogniser heard every word on both devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synorama.errors import ClocksDisagreeError
from synorama.speech.heard import HeardWord
from synorama.speech.levels import _two_kinds, calibrate, measure_levels
from synorama.speech.merge import without_duplicates
from synorama.speech.offset import residual_offset
from synorama.speech.speakers import Attribution, _spoken_into
from tests.speech.talk import WEARERS, Talk, as_heard, talk


def attributed(given: Talk) -> Attribution:
    levels = measure_levels(given.sounds, {})
    return Attribution(levels, calibrate(levels), {})


def share_right(given: Talk) -> float:
    attribution = attributed(given)
    alone = given.without_overlap()
    both = [w for device in WEARERS for w in as_heard(alone, device)]
    once = without_duplicates(attribution.attribute(both), attribution.nearer)
    named = {(w.start_ns, w.text): w.speaker for w in once}
    return float(np.mean([named.get((w.start_ns, w.text)) == w.speaker for w in alone]))


@pytest.mark.parametrize("crosstalk_db", [-6.0, -10.0, -15.0])
def test_words_without_overlap_are_given_to_who_said_them(crosstalk_db: float) -> None:
    assert np.mean([share_right(talk(s, 60, crosstalk_db=crosstalk_db)) for s in (1, 2)]) >= 0.97


def test_each_word_is_kept_once() -> None:
    given = talk(3, 40)
    attribution = attributed(given)
    both = [w for device in WEARERS for w in as_heard(given.words, device)]
    once = without_duplicates(attribution.attribute(both), attribution.nearer)
    assert len(once) <= len(given.words)


@pytest.mark.parametrize("only", WEARERS)
def test_one_person_talking_is_named_at_equal_gain_and_the_doubt_is_told(only: str) -> None:
    given = talk(4, 40, gain_db=0, only=only)
    (divide,) = attributed(given).divides.values()
    assert not divide.learned
    assert "equally sensitive" in divide.described(WEARERS, None).reason
    assert share_right(given) >= 0.95


def test_the_learned_threshold_follows_the_gain() -> None:
    thresholds = []
    for gain_db in (0.0, 9.0):
        (divide,) = attributed(talk(5, 40, gain_db=gain_db)).divides.values()
        assert divide.learned
        thresholds.append(divide.threshold_db)
    assert thresholds[0] - thresholds[1] == pytest.approx(9.0, abs=1.0)


@pytest.mark.parametrize("at_once", [0.0, 0.2, 0.35])
@pytest.mark.parametrize("spread_db", [0.8, 3.0])
def test_talk_at_once_moves_no_heap(at_once: float, spread_db: float) -> None:
    rng = np.random.default_rng(round(10 * at_once))
    alone = rng.choice([-18.0, 2.0], 4000, p=[0.6, 0.4]) + rng.normal(0, spread_db, 4000)
    both = rng.uniform(-18, 2, round(4000 * at_once))
    middles, spreads, shares = _two_kinds(np.concatenate([alone, both]))
    assert middles == pytest.approx([-18, 2], abs=0.7)
    assert spreads == pytest.approx(max(spread_db, 1.0), abs=0.7)
    assert shares == pytest.approx([0.6, 0.4], abs=0.05)


@pytest.mark.parametrize("crosstalk_db", [-6.0, -10.0, -15.0])
def test_a_device_keeps_its_wearers_words_where_both_talk(crosstalk_db: float) -> None:
    kept, others = [], []
    for heard in (talk(s, 60, crosstalk_db=crosstalk_db) for s in (11, 12)):
        for device in WEARERS:
            told = attributed(heard).attribute(as_heard(heard.words, device))
            starts = {w.start_ns for w in told}
            mine = [w for w in heard.words if w.speaker == device and w.overlapped]
            kept += [w.start_ns in starts for w in mine]
            alone = [w for w in heard.without_overlap() if w.speaker != device]
            others += [w.start_ns in starts for w in alone]
    assert np.mean(kept) >= 0.93
    assert np.mean(others) <= 0.04


SPANS = st.tuples(st.integers(0, 300), st.integers(1, 90), st.sampled_from(["a", "b", None]))


@given(st.lists(SPANS, max_size=15))
def test_words_into_which_another_one_speaks(spans: list[tuple[int, int, str | None]]) -> None:
    words = [HeardWord("x", a, a + n, 0.9, "attention", "d", who) for a, n, who in spans]
    others = [[o for o in words if o.speaker != w.speaker] for w in words]
    at_once = [
        any(o.start_ns < w.end_ns and o.end_ns > w.start_ns for o in them)
        for w, them in zip(words, others, strict=True)
    ]
    assert _spoken_into(words) == at_once


def test_a_word_heard_alike_by_both_from_afar_is_nobodys() -> None:
    given = talk(6, 40, gain_db=0, overlap=0)
    levels = measure_levels(given.sounds, {})
    divides = calibrate(levels)
    quiet = next(
        k for k in range(100, levels.frames - 200) if not levels.active[:, k - 60 : k + 100].any()
    )
    own = np.nanmedian(levels.power[levels.active])
    levels.power[:, quiet - 50 : quiet + 90] = own / 30
    begin = levels.start_ns + quiet * 10_000_000
    word = as_heard(given.words[:1], "leader")[0]
    word = type(word)("hello", begin, begin + 300_000_000, 0.9, "attention", "leader")
    others = [w for device in WEARERS for w in as_heard(given.without_overlap(), device)]
    told = Attribution(levels, divides, {}).attribute([*others, word])
    assert [w.speaker for w in told if w.text == "hello"] == [None]


@pytest.mark.parametrize("offset_s", [-0.5, -0.1, 0.0, 0.06, 0.5])
def test_what_is_left_of_the_clocks_is_found(offset_s: float) -> None:
    levels = measure_levels(talk(7, 40, offset_s=offset_s).sounds, {})
    found = residual_offset(levels, 0, 1)
    assert found.known
    assert found.offset_ns / 1e9 == pytest.approx(offset_s, abs=0.015)


def test_sounds_with_nothing_in_common_tell_no_offset() -> None:
    one, other = talk(8, 40, crosstalk_db=-90).sounds
    levels = measure_levels([one, other], {})
    unrelated = measure_levels([talk(9, 40, only="leader", crosstalk_db=-90).sounds[0], one], {})
    assert not residual_offset(unrelated, 0, 1).known
    assert (
        abs(residual_offset(levels, 0, 1).offset_ns) <= 50_000_000
        or not residual_offset(levels, 0, 1).known
    )


def test_clocks_that_contradict_the_sound_are_refused_or_told() -> None:
    from synorama.speech.transcribe import Asked, _wearers

    sounds = talk(10, 40, offset_s=0.12).sounds
    with pytest.raises(ClocksDisagreeError, match="helper hears the same"):
        _wearers(sounds, Asked())
    wearers = _wearers(sounds, Asked(correct_offsets=True))
    assert "120" in wearers.warnings[0] or "119" in wearers.warnings[0]
    assert wearers.calibrations[0].offset_ms == pytest.approx(120, abs=10)
