"""The voices say what is written, and their words are where they are said to be."""

from __future__ import annotations

from importlib import resources
from itertools import pairwise

import numpy as np
import pytest

from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.voices import VOICES, Voice, load_voice

MOST_BYTES = 3_000_000


@pytest.fixture(scope="module", params=VOICES)
def voice(request: pytest.FixtureRequest) -> Voice:
    return load_voice(request.param)


def test_two_women_two_men_and_enough_to_say() -> None:
    voices = [load_voice(name) for name in VOICES]
    genders = [voice.gender for voice in voices]
    assert genders.count("female") >= 2
    assert genders.count("male") >= 2
    assert all(len(voice.utterances) >= 60 for voice in voices)
    texts = {tuple(u.text for u in voice.utterances) for voice in voices}
    assert len(texts) == 1


def test_the_files_are_small() -> None:
    folder = resources.files("synorama.simulate.sound") / "data" / "voices"
    assert sum(len(f.read_bytes()) for f in folder.iterdir() if f.is_file()) < MOST_BYTES


def test_words_are_those_of_the_text_and_in_order(voice: Voice) -> None:
    for utterance in voice.utterances:
        spelled = [w.strip(".,?").lower() for w in utterance.text.split()]
        assert [word.text.lower() for word in utterance.words] == spelled
        edges = [edge for w in utterance.words for edge in (w.start, w.end)]
        assert edges == sorted(edges)
        assert edges[0] >= 0
        assert edges[-1] <= utterance.count
        assert all(w.end - w.start > 0.02 * GRID_HZ for w in utterance.words)


def test_utterances_do_not_run_into_each_other(voice: Voice) -> None:
    ends = [0] + [u.first + u.count for u in voice.utterances]
    assert all(u.first > end for u, end in zip(voice.utterances, ends, strict=False))
    assert ends[-1] <= len(voice.sound)


def test_speech_begins_and_ends_with_its_words(voice: Voice) -> None:
    """Stops and aspirates begin in silence, and lips close slowly: hence tens of milliseconds."""
    begins, ends = [], []
    for utterance in voice.utterances:
        loud = envelope(voice.samples(utterance))
        above = np.flatnonzero(loud > 10 ** (-30 / 20) * loud.max())
        begins.append((above[0] - utterance.words[0].start) / GRID_HZ)
        ends.append((above[-1] - utterance.words[-1].end) / GRID_HZ)
    assert 0 <= np.median(begins) < 0.03
    assert -0.03 < np.median(ends) < 0.01
    assert min(begins) > -0.015
    assert max(ends) < 0.04


def test_pauses_between_words_are_quiet(voice: Voice) -> None:
    quiet, spoken = [], []
    for utterance in voice.utterances:
        sound = voice.samples(utterance).astype(float)
        for here, after in pairwise(utterance.words):
            if after.start - here.end > 0.08 * GRID_HZ:
                middle = (here.end + after.start) // 2
                quiet.append(np.mean(np.square(sound[middle - 480 : middle + 480])))
        spoken.append(np.mean(np.square(sound)))
    assert len(quiet) >= 5
    assert 10 * np.log10(np.median(quiet) / np.median(spoken)) < -20


def test_no_voice_shouts(voice: Voice) -> None:
    levels = [np.sqrt(np.mean(np.square(voice.samples(u)))) for u in voice.utterances]
    assert min(levels) > 0.08
    assert max(levels) < 0.12
    assert np.abs(voice.sound).max() < 1.0


def test_voices_are_told_apart_by_their_pitch() -> None:
    pitches = {name: pitch_hz(load_voice(name)) for name in VOICES}
    women = [p for name, p in pitches.items() if load_voice(name).gender == "female"]
    men = [p for name, p in pitches.items() if load_voice(name).gender == "male"]
    assert min(women) > max(men)
    assert min(np.diff(sorted(women))) > 10


def envelope(sound: np.ndarray) -> np.ndarray:
    window = np.ones(240) / 240
    return np.asarray(np.sqrt(np.convolve(np.square(sound.astype(float)), window, "same")))


def pitch_hz(voice: Voice) -> float:
    """Median of the strongest repetition between 70 and 300 Hz, where there is one."""
    found = []
    sound = voice.sound[: 20 * GRID_HZ].astype(float)
    for start in range(0, len(sound) - 4096, 4096):
        piece = sound[start : start + 4096] * np.hanning(4096)
        again = np.fft.irfft(np.abs(np.fft.rfft(piece, 8192)) ** 2)
        k = 160 + int(np.argmax(again[160:686]))
        if again[k] > 0.5 * again[0] > 1e-3:
            found.append(GRID_HZ / k)
    return float(np.median(found))
