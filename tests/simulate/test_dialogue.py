"""People take turns, interrupt as much as was asked for, and every word has its exact time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.simulate.sound.clips import GRID_HZ, Clip, Clips
from synorama.simulate.sound.dialogue import Dialogue, plan_dialogue
from synorama.simulate.sound.noises import Fan, Hum, alarm, clatter, music
from synorama.simulate.sound.voices import load_voice
from synorama.timebase import NS_PER_S

VOICES = {"leader": "anna", "helper": "carl"}
START_NS = 7_000_000_000_001


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), overlap=st.sampled_from([0.0, 0.08, 0.12, 0.16]))
def test_turns(seed: int, overlap: float) -> None:
    dialogue = plan_dialogue(seed, 1.0, 91.0, VOICES, overlap=overlap)
    assert abs(dialogue.overlap - overlap) < 0.06  # of 90 s: one sentence more is four hundredths
    assert (dialogue.overlap == 0) == (overlap == 0)
    assert min(t.start for t in dialogue.turns) >= GRID_HZ * 0.9
    assert max(t.start + t.utterance.count for t in dialogue.turns) <= 91 * GRID_HZ
    for name in VOICES:
        own = [t for t in dialogue.turns if t.speaker == name]
        assert len(own) > 5
        assert all(a.end <= b.begin for a, b in pairwise(own))
        said = [t.utterance.text for t in own]
        assert len(set(said)) == len(said), "nobody repeats anything within a minute and a half"


def test_never_three_at_once_and_a_bystander_says_little() -> None:
    voices = {**VOICES, "bystander": "david"}
    dialogue = plan_dialogue(3, 0.0, 300.0, voices, talkative={"bystander": 0.15})
    turns = dialogue.turns
    for turn in turns:
        for other in turns:
            both = max(turn.begin, other.begin), min(turn.end, other.end)
            if other is turn or both[0] >= both[1]:
                continue
            third = [t for t in turns if t not in (turn, other)]
            assert not any(t.begin < both[1] and t.end > both[0] for t in third)
    counts = [sum(t.speaker == name for t in turns) for name in voices]
    assert 3 < counts[2] < 0.5 * min(counts[:2])


def test_words_have_the_times_of_their_sound() -> None:
    dialogue = plan_dialogue(5, 0.5, 40.0, VOICES)
    words = dialogue.words(START_NS)
    assert [w.start_ns for w in words] == sorted(w.start_ns for w in words)
    assert len(words) == sum(len(t.utterance.words) for t in dialogue.turns)
    for name in VOICES:
        sound = dialogue.dry(name).samples(0, 40 * GRID_HZ)
        assert sound is not None
        spoken = np.zeros(len(sound), bool)
        for word in (w for w in words if w.speaker == name):
            a, b = ((t - START_NS) * GRID_HZ / NS_PER_S for t in (word.start_ns, word.end_ns))
            assert abs(a - round(a)) < 1e-4
            spoken[round(a) : round(b)] = True
        power = np.square(sound.astype(float))
        assert power[spoken].sum() > 0.98 * power.sum()


def test_overlapped_words_are_those_with_two_speakers() -> None:
    dialogue = plan_dialogue(6, 0.0, 60.0, VOICES, overlap=0.16)
    words = dialogue.words(0)
    others = {
        name: [(t.begin, t.end) for t in dialogue.turns if t.speaker != name] for name in VOICES
    }
    for word in words:
        a, b = (t * GRID_HZ / NS_PER_S for t in (word.start_ns, word.end_ns))
        during = any(begin < b - 0.5 and end > a + 0.5 for begin, end in others[word.speaker])
        assert word.overlapped == during
    assert 0.05 < np.mean([w.overlapped for w in words]) < 0.6


def test_the_sound_is_that_of_the_voice() -> None:
    dialogue = plan_dialogue(7, 0.0, 20.0, VOICES, overlap=0.0)
    turn = dialogue.turns[2]
    sound = dialogue.dry(turn.speaker).samples(turn.start, turn.utterance.count)
    assert sound is not None
    assert np.array_equal(sound, load_voice(turn.voice).samples(turn.utterance))


def test_seeds_decide() -> None:
    one, again, other = (plan_dialogue(seed, 0, 30, VOICES) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_too_much_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="at once"):
        plan_dialogue(1, 0, 30, VOICES, overlap=0.9)
    assert Dialogue(()).overlap == 0


# --- clips and noises ------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    starts=st.lists(st.tuples(st.integers(-300, 900), st.integers(1, 200)), max_size=8),
    first=st.integers(-400, 900),
    count=st.integers(1, 400),
)
def test_clips_are_the_sum_of_what_sounds(
    starts: list[tuple[int, int]], first: int, count: int
) -> None:
    whole = np.zeros(3_000)
    for start, length in starts:
        whole[1_000 + start : 1_000 + start + length] += 1
    clips = Clips(Clip(a, n, lambda n=n: np.ones(n, np.float32)) for a, n in starts)  # type: ignore[misc]
    heard = clips.samples(first, count)
    expected = whole[1_000 + first : 1_000 + first + count]
    if heard is None:
        assert not expected.any()
    else:
        np.testing.assert_array_equal(heard, expected)


def test_steady_noises_are_the_same_however_they_are_asked_for() -> None:
    for noise, rms in ((Fan(3, "fan", 0.01), 0.01), (Hum(50.0, 0.01), 0.01)):
        whole = noise.samples(-70_000, 200_000)
        parts = [noise.samples(-70_000 + k, 10_000) for k in range(0, 200_000, 10_000)]
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-7)
        assert np.sqrt(np.mean(np.square(whole))) == pytest.approx(rms, rel=0.05)


def test_a_fan_never_repeats() -> None:
    sound = Fan(3, "fan").samples(0, 20 * GRID_HZ).astype(float)
    spectrum = np.fft.rfft(sound, 2 * len(sound))
    again = np.fft.irfft(np.abs(spectrum) ** 2)
    assert np.abs(again[GRID_HZ // 4 : len(sound)]).max() < 0.1 * again[0]


def test_music_repeats_only_when_asked() -> None:
    bar = round(60 / 120.0 * 4 * GRID_HZ)
    same = music(2, 0.0, 20.0, beats_per_minute=120.0, repeat_bars=2)
    new = music(2, 0.0, 20.0, beats_per_minute=120.0)
    for tune, repeats in ((same, True), (new, False)):
        here, there = (tune.samples((2 + k) * bar, 2 * bar) for k in (0, 2))
        assert here is not None
        assert there is not None
        assert np.allclose(here, there, atol=1e-5) == repeats


def test_clatter_and_alarms_are_where_they_belong() -> None:
    knocks = clatter(1, "hands", 10.0, 70.0, every_s=1.5)
    assert 25 < len(knocks.clips) < 60
    assert all(10 * GRID_HZ <= clip.start < 70 * GRID_HZ for clip in knocks.clips)
    assert max(float(np.abs(clip.make()).max()) for clip in knocks.clips) < 0.4
    beeps = alarm([5.0], beeps=3)
    assert [clip.start for clip in beeps.clips] == [5 * GRID_HZ, 264_000, 6 * GRID_HZ]
    assert beeps.samples(0, 5 * GRID_HZ) is None
    tone = beeps.samples(5 * GRID_HZ, 12_000)
    assert tone is not None
    peak = np.argmax(np.abs(np.fft.rfft(tone))) * GRID_HZ / 12_000
    assert peak == pytest.approx(2_050, abs=8)
