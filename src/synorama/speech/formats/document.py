"""The transcript as one JSON document: what ``synorama transcribe --json`` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from synorama.errors import TranscriptFormatError
from synorama.records import Transcript, Word
from synorama.timebase import NS_PER_S

__all__ = ["FROM_FILE", "UNKNOWN", "Malformed", "as_document", "read", "text_of", "write"]

UNKNOWN = "unknown"
"""How a speaker without a name is called in files that need one."""

FROM_FILE = "file"
"""`Word.timing_source` of times that a file tells and nobody else."""


class Malformed(Exception):  # noqa: N818  # inside these formats only
    """A file breaks its format: where, and what was found."""

    def about(self, path: Path) -> TranscriptFormatError:
        """Return it as the error that the operator sees."""
        return TranscriptFormatError(
            str(self), path=path, hint="correct that place, or export the transcript again"
        )


def text_of(data: bytes) -> str:
    """Return the text of a file in UTF-8, or UTF-16 with its mark, without the mark."""
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Malformed(f"it is no text in UTF-8: byte {error.start}") from error


def as_document(transcript: Transcript, zero_ns: int = 0) -> dict[str, Any]:
    """Return the transcript as JSON-able values, times in seconds since ``zero_ns``."""
    return {
        "words": [_word(word, zero_ns) for word in transcript.words],
        "segments": [
            {
                "start_s": _seconds(s.start_ns, zero_ns),
                "end_s": _seconds(s.end_ns, zero_ns),
                "speaker": s.speaker,
                "device": s.device,
                "text": " ".join(transcript.words[k].text for k in s.words),
                "words": list(s.words),
            }
            for s in transcript.segments
        ],
        "language": transcript.language,
        "language_probability": transcript.language_probability,
        "backend": transcript.backend,
        "model": transcript.model,
        "facts": dict(transcript.facts),
        "calibrations": [asdict(c) for c in transcript.calibrations],
        "warnings": list(transcript.warnings),
        "zero_ns": zero_ns,
    }


def _word(word: Word, zero_ns: int) -> dict[str, Any]:
    return {
        "text": word.text,
        "start_s": _seconds(word.start_ns, zero_ns),
        "end_s": _seconds(word.end_ns, zero_ns),
        "probability": None if word.probability is None else round(word.probability, 4),
        "speaker": word.speaker,
        "device": word.device,
        "timing_source": word.timing_source,
        "overlapped": word.overlapped,
    }


def _seconds(t_ns: int | None, zero_ns: int) -> float | None:
    return None if t_ns is None else (t_ns - zero_ns) / NS_PER_S


def write(transcript: Transcript, zero_ns: int) -> bytes:
    """Return the document as a file."""
    text = json.dumps(as_document(transcript, zero_ns), indent=1, ensure_ascii=False)
    return (text + "\n").encode()


def read(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read the words of a document."""
    try:
        told = json.loads(text_of(data))
        return [_read(word, zero_ns) for word in told["words"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Malformed(f"it is no transcript in JSON: {type(error).__name__} {error}") from error


def _read(told: dict[str, Any], zero_ns: int) -> Word:
    probability = told.get("probability")
    return Word(
        text=str(told["text"]),
        start_ns=_nanoseconds(told["start_s"], zero_ns),
        end_ns=_nanoseconds(told["end_s"], zero_ns),
        probability=None if probability is None else float(probability),
        speaker=told.get("speaker"),
        device=told.get("device", ""),
        timing_source=told.get("timing_source", FROM_FILE),
        overlapped=bool(told.get("overlapped", False)),
    )


def _nanoseconds(seconds: float | None, zero_ns: int) -> int | None:
    return None if seconds is None else zero_ns + round(float(seconds) * NS_PER_S)
