"""Spoken words to a table and back; texts lie as bytes beside it, found by offset and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from synorama.records import Segment, SpeakerCalibration, Transcript, Word
from synorama.session.schema import UNKNOWN_NS, UTTERANCE_DTYPE, WORD_DTYPE
from synorama.session.storage import read_json, read_table, write_json, write_table

__all__ = ["read_transcript", "read_words", "write_transcript_group", "write_words"]

TEXTS = ("text", "speaker", "device", "timing_source")


def write_transcript_group(group: Any, transcript: Transcript) -> None:
    """Write a transcript into the group ``transcript``."""
    write_words(group, transcript.words)
    _write_segments(group, transcript.segments)
    about = {
        "language": transcript.language,
        "language_probability": transcript.language_probability,
        "backend": transcript.backend,
        "model": transcript.model,
        "facts": dict(transcript.facts),
        "calibrations": [asdict(c) for c in transcript.calibrations],
        "warnings": list(transcript.warnings),
    }
    write_json(group, "about", about)


def read_transcript(group: Any) -> Transcript:
    """Read what `write_transcript_group` wrote."""
    words = read_words(group)
    if "about" not in group:
        return Transcript(words)
    about = read_json(group, "about")
    calibrations = about.pop("calibrations")
    about["warnings"] = tuple(about["warnings"])
    return Transcript(
        words=words,
        segments=_read_segments(group, words),
        calibrations=tuple(_calibration(told) for told in calibrations),
        **about,
    )


def _calibration(told: dict[str, Any]) -> SpeakerCalibration:
    one, other = told.pop("devices")
    return SpeakerCalibration(devices=(one, other), **told)


def _write_segments(group: Any, segments: Sequence[Segment]) -> None:
    counts = [len(s.words) for s in segments]
    rows = np.zeros(len(segments), UTTERANCE_DTYPE)
    rows["start_ns"] = [s.start_ns for s in segments]
    rows["end_ns"] = [s.end_ns for s in segments]
    rows["first"] = np.cumsum([0, *counts])[:-1]
    rows["count"] = counts
    write_table(group, "segments", rows)
    write_table(group, "segment_words", np.array([k for s in segments for k in s.words], "<i4"))


def _read_segments(group: Any, words: Sequence[Word]) -> tuple[Segment, ...]:
    positions = read_table(group, "segment_words").tolist()
    return tuple(
        _segment(row, positions[int(row["first"]) : int(row["first"] + row["count"])], words)
        for row in read_table(group, "segments")
    )


def _segment(row: Any, positions: Sequence[int], words: Sequence[Word]) -> Segment:
    first = words[positions[0]]
    return Segment(
        int(row["start_ns"]), int(row["end_ns"]), first.speaker, first.device, tuple(positions)
    )


def write_words(group: Any, words: Sequence[Word]) -> None:
    """Write the words, in the order given, into the group ``transcript``."""
    rows = np.zeros(len(words), WORD_DTYPE)
    data = bytearray()
    for row, word in zip(rows, words, strict=True):
        row["start_ns"] = UNKNOWN_NS if word.start_ns is None else word.start_ns
        row["end_ns"] = UNKNOWN_NS if word.end_ns is None else word.end_ns
        row["probability"] = np.nan if word.probability is None else word.probability
        row["overlapped"] = word.overlapped
        for name in TEXTS:
            text = (getattr(word, name) or "").encode()
            row[name] = (len(data), len(text))
            data += text
    write_table(group, "words", rows)
    write_table(group, "bytes", np.frombuffer(bytes(data), np.uint8))


def read_words(group: Any) -> tuple[Word, ...]:
    """Read what `write_words` wrote."""
    data = read_table(group, "bytes").tobytes()
    return tuple(_word(row, data) for row in read_table(group, "words"))


def _word(row: Any, data: bytes) -> Word:
    text = {name: _text(data, row[name]) for name in TEXTS}
    return Word(
        text=text["text"],
        start_ns=_time(row["start_ns"]),
        end_ns=_time(row["end_ns"]),
        probability=None if np.isnan(row["probability"]) else float(row["probability"]),
        speaker=text["speaker"] or None,
        device=text["device"],
        timing_source=text["timing_source"],
        overlapped=bool(row["overlapped"]),
    )


def _text(data: bytes, place: Any) -> str:
    first, length = int(place[0]), int(place[1])
    return data[first : first + length].decode()


def _time(t_ns: Any) -> int | None:
    return None if t_ns == UNKNOWN_NS else int(t_ns)
