"""Where no voice was detected: what is worth a second look, and what is believed of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.capture import open_recording
from synorama.speech import Asked, from_samples, read_device, transcribe
from synorama.speech.embedded import _is_sure
from synorama.speech.sound import SPEECH_HZ
from synorama.speech.unheard import SHORTEST, unheard_talk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.speech.embedded import FasterWhisper

    Float32 = NDArray[np.float32]

SECONDS = 12


def steady(seconds: float = SECONDS, seed: int = 5) -> Float32:
    noise = np.random.default_rng(seed).standard_normal(round(seconds * SPEECH_HZ))
    return np.asarray(0.05 * noise, np.float32)


def syllables(seconds: float = SECONDS, swing_db: float = 10) -> Float32:
    """Noise whose level rises and falls four times a second, as that of talk does."""
    t = np.arange(round(seconds * SPEECH_HZ)) / SPEECH_HZ
    gain = 10 ** (swing_db / 40 * np.sin(2 * np.pi * 4 * t))
    return np.asarray(steady(seconds) * gain, np.float32)


@pytest.mark.parametrize("sound", [steady(), np.zeros(SECONDS * SPEECH_HZ, np.float32)])
def test_even_noise_and_silence_are_not_worth_a_second_look(sound: Float32) -> None:
    assert unheard_talk(sound, []) == []


def test_what_swings_as_talk_does_is() -> None:
    sound = syllables()
    assert unheard_talk(sound, []) == [(0, len(sound))]
    span = (4 * SPEECH_HZ, 6 * SPEECH_HZ)
    assert unheard_talk(sound, [span]) == [(0, span[0]), (span[1], len(sound))]
    assert unheard_talk(sound, [(0, len(sound))]) == []


def test_what_is_far_below_the_speech_that_was_heard_is_not() -> None:
    sound = syllables()
    sound[6 * SPEECH_HZ :] *= 0.05  # 26 dB
    assert unheard_talk(sound, [(0, 6 * SPEECH_HZ)]) == []
    assert unheard_talk(sound, []) != []


@given(st.lists(st.integers(0, 40 * SPEECH_HZ), max_size=8), st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_it_lies_between_what_was_heard(edges: list[int], seconds: int) -> None:
    sound = syllables(seconds)
    edges = sorted({min(e, len(sound)) for e in edges})
    heard = list(zip(edges[::2], edges[1::2], strict=False))
    found = unheard_talk(sound, heard)
    assert all(end - first >= SHORTEST for first, end in found)
    assert all(b <= first or end <= a for first, end in found for a, b in heard)


@pytest.mark.parametrize(
    ("repeated", "log_probability", "silence", "sure"),
    [
        (1.6, -0.4, 0.1, True),
        (2.5, -0.4, 0.1, False),
        (1.6, -0.95, 0.1, False),
        (1.6, -0.4, 0.7, False),
    ],
)
def test_a_model_that_guesses_is_not_believed(
    repeated: float, log_probability: float, silence: float, sure: bool
) -> None:
    segment = SimpleNamespace(
        compression_ratio=repeated, avg_logprob=log_probability, no_speech_prob=silence
    )
    assert _is_sure(segment) == sure


# --- with a model whose detector of voices is deaf ---------------------------------------------


@pytest.fixture
def deaf(tiny: FasterWhisper, monkeypatch: pytest.MonkeyPatch) -> FasterWhisper:
    monkeypatch.setattr("synorama.speech.embedded._speech_spans", lambda _: [])
    return tiny


def _words(model: FasterWhisper, samples: Any, *vocabulary: str) -> str:
    made = transcribe([from_samples("a", samples)], model, Asked("en", vocabulary, align=False))
    return " ".join(w.text.strip(".,").lower() for w in made.words)


def test_speech_that_no_detector_heard_is_recognised(
    shared_data: Path, deaf: FasterWhisper
) -> None:
    path = shared_data / "4_audio" / "faster-whisper" / "jfk.flac"
    text = _words(deaf, read_device(open_recording(path)).samples)
    assert text.startswith("and so my fellow americans")
    assert text.endswith("what you can do for your country")


def test_nothing_is_made_up_of_what_only_swings(deaf: FasterWhisper) -> None:
    rng = np.random.default_rng(8)
    knocks = steady(SECONDS) / 10
    for at in rng.integers(0, len(knocks) - 4000, 30):
        ring = np.exp(-np.arange(4000) / 400) * np.sin(np.arange(4000) * rng.uniform(0.05, 2))
        knocks[at : at + 4000] += 0.4 * ring
    for sound in (knocks, syllables(), syllables(swing_db=25)):
        assert _words(deaf, sound) == ""
        assert _words(deaf, sound, "colander", "whisk") == ""


def test_nothing_is_made_up_of_what_is_a_voice_only_to_a_filter(
    tiny: FasterWhisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def only_when_filtered(samples: Float32) -> list[tuple[int, int]]:
        asked.append(len(samples))
        return [(0, len(samples))] if len(asked) % 2 == 0 else []

    monkeypatch.setattr("synorama.speech.embedded._speech_spans", only_when_filtered)
    for seed in range(3):
        assert _words(tiny, steady(seed=seed), "colander") == ""
    assert len(asked) == 6
