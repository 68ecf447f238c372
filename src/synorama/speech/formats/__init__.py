"""Transcripts as files that other software reads, and that a person corrects and brings back.

Every format gives back the words that it was given, with their times within a millisecond. Times
in files count from a zero that the caller names: the session's begin, or that of a film.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synorama.errors import InputNotFoundError, InputUnreadableError, UsageError
from synorama.records import Transcript, Word
from synorama.speech.formats import document, elan, subtitles, tables, textgrid

__all__ = ["FORMATS", "Format", "format_of", "read_words", "written"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how it is written and read, with times since ``zero_ns``."""

    suffix: str
    write: Callable[[Transcript, int], bytes]
    read: Callable[[bytes, int], Sequence[Word]]


FORMATS: Mapping[str, Format] = {
    "json": Format(".json", document.write, document.read),
    "csv": Format(".csv", tables.write_csv, tables.read_csv),
    "aria": Format("speech.csv", tables.write_aria, tables.read_aria),
    "srt": Format(".srt", subtitles.write_srt, subtitles.read_srt),
    "srt-utterances": Format(".srt", subtitles.write_srt_utterances, subtitles.read_srt),
    "vtt": Format(".vtt", subtitles.write_vtt, subtitles.read_vtt),
    "elan": Format(".eaf", elan.write, elan.read),
    "textgrid": Format(".TextGrid", textgrid.write, textgrid.read),
}


def format_of(path: Path, name: str | None = None) -> str:
    """Return the name of the format, as asked for or by the file's name.

    Raises
    ------
    UsageError
        There is no such format, or the file's name does not tell it.
    """
    if name is not None:
        if name in FORMATS:
            return name
        raise UsageError(f"there is no format '{name}'", hint="formats are: " + ", ".join(FORMATS))
    lower = path.name.lower()
    if lower.endswith("speech.csv"):
        return "aria"
    found = next((n for n, f in FORMATS.items() if lower.endswith(f.suffix.lower())), None)
    if found is None:
        raise UsageError(
            "its name does not tell the format of the transcript",
            path=path,
            hint="give '--format', one of: " + ", ".join(FORMATS),
        )
    return found


def written(transcript: Transcript, name: str, *, zero_ns: int = 0) -> bytes:
    """Return the transcript as the bytes of a file.

    Parameters
    ----------
    name
        One of `FORMATS`.
    zero_ns
        The time of the transcript's clock that is zero in the file.
    """
    return FORMATS[name].write(transcript, zero_ns)


def read_words(path: Path, name: str | None = None, *, zero_ns: int = 0) -> tuple[Word, ...]:
    """Read the words of a transcript file.

    A word whose own times the file does not tell, as in a subtitle of several words, has the
    ``timing_source`` ``spread``.

    Raises
    ------
    InputError
        The file is not there, or does not hold what its format promises.
    UsageError
        Its name does not tell its format.
    """
    chosen = FORMATS[format_of(path, name)]
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputNotFoundError("there is no such file", path=path) from error
    except OSError as error:
        raise InputUnreadableError(
            f"it cannot be read: {error.strerror}", path=path, hint="allow reading the file"
        ) from error
    try:
        words = chosen.read(data, zero_ns)
    except document.Malformed as error:
        raise error.about(path) from error
    return tuple(sorted(words, key=lambda w: (w.start_ns is None, w.start_ns or 0)))
