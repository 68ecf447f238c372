from __future__ import annotations

from dataclasses import replace

import pytest

from synorama.records import Transcript, Word
from synorama.speech.correct import corrected
from synorama.speech.formats import FORMATS, written
from synorama.speech.merge import segments_of

S = 1_000_000_000


def spoken() -> Transcript:
    texts = ["can", "you", "pass", "me", "the", "hold", "on", "the", "colander", "please"]
    words = [
        Word(t, k * S // 2 + 123, k * S // 2 + S // 3 + 77, 0.5, "P01", "leader", "pocketsphinx")
        for k, t in enumerate(texts)
    ]
    words += [
        Word(t, 6 * S + k * S // 2, 6 * S + k * S // 2 + S // 3, 0.5, "P02", "helper", "attention")
        for k, t in enumerate(["here", "you", "are"])
    ]
    return Transcript(tuple(words), segments_of(words), "en", backend="faster-whisper")


@pytest.mark.parametrize("name", [n for n in FORMATS if n != "elan"])
def test_a_file_that_nobody_touched_changes_nothing(name: str) -> None:
    made = corrected(spoken(), FORMATS[name].read(written(spoken(), name), 0))
    assert made.transcript == spoken()
    assert (made.added, made.changed, made.retimed, made.removed) == (0, 0, 0, 0)


def test_a_corrected_word_keeps_its_time_and_device() -> None:
    edited = written(spoken(), "srt").replace(b"colander", b"strainer")
    made = corrected(spoken(), FORMATS["srt"].read(edited, 0))
    assert (made.added, made.changed, made.retimed, made.removed) == (0, 1, 0, 0)
    old, new = spoken().words[8], made.transcript.words[8]
    assert new == replace(old, text="strainer")


def test_a_corrected_utterance_keeps_the_times_of_its_other_words() -> None:
    edited = written(spoken(), "srt-utterances").replace(b"the hold on", b"that whole one")
    made = corrected(spoken(), FORMATS["srt"].read(edited, 0))
    assert made.changed == 3
    assert [w.start_ns for w in made.transcript.words] == [w.start_ns for w in spoken().words]


def test_words_that_a_person_adds_or_takes_away_are_counted() -> None:
    edited = written(spoken(), "srt-utterances").replace(b"here you are", b"here you are my dear")
    edited = edited.replace(b" please", b"")
    made = corrected(spoken(), FORMATS["srt"].read(edited, 0))
    assert (made.added, made.removed) == (2, 1)
    assert [w.text for w in made.transcript.words][-2:] == ["my", "dear"]
    assert made.transcript.words[-1].speaker == "P02"


def test_a_moved_word_says_that_a_person_timed_it() -> None:
    words = [replace(w, timing_source="file") for w in spoken().words]
    words[0] = replace(words[0], start_ns=60_000_000)
    made = corrected(spoken(), words)
    assert made.retimed == 1
    assert made.transcript.words[0].timing_source == "person"
    assert made.transcript.words[1] == spoken().words[1]


def test_a_word_given_to_somebody_else_changes_its_speaker_alone() -> None:
    edited = written(spoken(), "csv").replace(b"you,P02", b"you,P01")
    made = corrected(spoken(), FORMATS["csv"].read(edited, 0))
    changed = [(a, b) for a, b in zip(spoken().words, made.transcript.words, strict=True) if a != b]
    assert changed == [(spoken().words[11], replace(spoken().words[11], speaker="P01"))]


def test_a_format_without_speakers_takes_none_away() -> None:
    made = corrected(spoken(), FORMATS["aria"].read(written(spoken(), "aria"), 0))
    assert made.transcript == spoken()


def test_a_transcript_made_elsewhere_is_taken_as_it_is() -> None:
    made = corrected(Transcript(()), FORMATS["srt"].read(written(spoken(), "srt"), 0))
    assert made.added == len(spoken().words)
    assert {w.timing_source for w in made.transcript.words} == {"person"}
