"""ELAN's .eaf: one tier a speaker, one annotation a word."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from synorama.errors import MissingDependencyError
from synorama.records import Transcript, Word
from synorama.speech.formats.document import UNKNOWN, Malformed
from synorama.speech.formats.spans import Span, spans_of, tiers_of, words_in

__all__ = ["read", "write"]


def _pympi() -> Any:
    try:
        from pympi import Elan
    except ImportError as error:
        raise MissingDependencyError(
            f"pympi-ling is needed for ELAN's files and cannot be loaded: {error}",
            hint="pip install 'synorama[speech]'",
        ) from error
    return Elan


def write(transcript: Transcript, zero_ns: int) -> bytes:
    """Return an ELAN file without media: link the film in ELAN."""
    library = _pympi()
    file = library.Eaf(author="synorama")
    for speaker, tier in tiers_of(spans_of(transcript, zero_ns)).items():
        file.add_tier(speaker)
        for span in tier:
            file.add_annotation(speaker, span.start_ms, span.end_ms, span.text)
    if len(file.tiers) > 1:
        file.remove_tier("default")  # which the library begins with
    text = f"<?xml version='1.0' encoding='UTF-8'?>\n{library.to_string(file)}"
    return text.encode()


def read(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read all tiers with times of their own; each is a speaker's."""
    file = _parsed(data)
    words: list[Word] = []
    for tier in file.get_tier_names():
        for start_ms, end_ms, text, *_ in _annotations(file, tier):
            words += _words(start_ms, end_ms, text or "", tier, zero_ns)
    return words


def _words(
    start_ms: int | None, end_ms: int | None, text: str, tier: str, zero_ns: int
) -> Iterator[Word]:
    if start_ms is not None and end_ms is not None and end_ms > start_ms:
        yield from words_in(Span(int(start_ms), int(end_ms), text, tier), zero_ns)
        return
    for token in text.split():  # of a chain whose inner borders nobody set
        yield Word(token, None, None, speaker=None if tier == UNKNOWN else tier)


def _annotations(file: Any, tier: str) -> Sequence[Any]:
    """Return a tier's annotations; those that hang on another tier's have no times of their own."""
    aligned = file.tiers[tier][0]
    return file.get_annotation_data_for_tier(tier) if aligned else ()


def _parsed(data: bytes) -> Any:
    library = _pympi()
    with tempfile.TemporaryDirectory() as folder:  # the library reads files only
        path = Path(folder) / "transcript.eaf"
        path.write_bytes(data)
        try:
            return library.Eaf(str(path), suppress_version_warning=True)
        except Exception as error:  # the library raises bare Exception
            raise Malformed(f"it is no ELAN file: {error}") from error
