"""Spoken words to a table and back; texts lie as bytes beside it, found by offset and length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synorama.records import Word
from synorama.session.schema import UNKNOWN_NS, WORD_DTYPE
from synorama.session.storage import read_table, write_table

__all__ = ["read_words", "write_words"]

TEXTS = ("text", "speaker", "device", "timing_source")


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
