"""Words as rows: our own CSV with all that is known, and Aria's ``speech.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from synorama.records import Transcript, Word
from synorama.speech.formats.document import FROM_FILE, Malformed, text_of

__all__ = ["read_aria", "read_csv", "write_aria", "write_csv"]

COLUMNS = (
    "start_ns",
    "end_ns",
    "text",
    "speaker",
    "device",
    "probability",
    "timing_source",
    "overlapped",
)
ARIA_COLUMNS = ("startTime_ns", "endTime_ns", "written", "confidence")


def write_csv(transcript: Transcript, zero_ns: int) -> bytes:
    """Return all words with all that is known; an empty cell is unknown."""
    rows = (
        (
            _since(w.start_ns, zero_ns),
            _since(w.end_ns, zero_ns),
            w.text,
            w.speaker or "",
            w.device,
            _number(w.probability),
            w.timing_source,
            int(w.overlapped),
        )
        for w in transcript.words
    )
    return _table(COLUMNS, rows)


def write_aria(transcript: Transcript, zero_ns: int) -> bytes:
    """Return the words with known times as Aria's ``speech.csv`` has them."""
    rows = (
        (_since(w.start_ns, zero_ns), _since(w.end_ns, zero_ns), w.text, _number(w.probability))
        for w in transcript.words
        if w.start_ns is not None and w.end_ns is not None
    )
    return _table(ARIA_COLUMNS, rows)


def _since(t_ns: int | None, zero_ns: int) -> str:
    return "" if t_ns is None else str(t_ns - zero_ns)


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _table(head: Sequence[str], rows: object) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)  # type: ignore[arg-type]
    return out.getvalue().encode()


def read_csv(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read our own CSV; of its columns the times and the text must be there."""
    return [_word(row, line, zero_ns) for line, row in _rows(data, COLUMNS[:3])]


def _word(row: Mapping[str, str], line: int, zero_ns: int) -> Word:
    return Word(
        text=row["text"],
        start_ns=_time(row["start_ns"], line, zero_ns),
        end_ns=_time(row["end_ns"], line, zero_ns),
        probability=_share(row.get("probability") or "", line),
        speaker=row.get("speaker") or None,
        device=row.get("device") or "",
        timing_source=row.get("timing_source") or FROM_FILE,
        overlapped=(row.get("overlapped") or "0") not in ("0", "False", "false"),
    )


def read_aria(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read Aria's ``speech.csv``."""
    return [
        Word(
            text=row["written"],
            start_ns=_time(row["startTime_ns"], line, zero_ns),
            end_ns=_time(row["endTime_ns"], line, zero_ns),
            probability=_share(row.get("confidence") or "", line),
            timing_source=FROM_FILE,
        )
        for line, row in _rows(data, ARIA_COLUMNS[:3])
    ]


def _rows(data: bytes, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(text_of(data), newline=""), restval="")
    try:
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise Malformed(f"it has no column '{missing[0]}'")
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise Malformed(f"line {reader.line_num}: {error}") from error


def _time(text: str, line: int, zero_ns: int) -> int | None:
    try:
        return zero_ns + int(text) if text else None
    except ValueError as error:
        raise Malformed(f"line {line}: '{text}' is no whole number of nanoseconds") from error


def _share(text: str, line: int) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise Malformed(f"line {line}: '{text}' is no probability") from error
