"""Praat's TextGrid: one interval tier a speaker, one interval a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from synorama.records import Transcript, Word
from synorama.speech.formats.document import Malformed, text_of
from synorama.speech.formats.spans import Span, spans_of, tiers_of, words_in

__all__ = ["read", "write"]

TOKEN = re.compile(
    r'"((?:[^"]|"")*)"|\[\d*\]:?|<exists>|(?<![\w.])([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?![\w.])'
)
HEAD = ("ooTextFile", "TextGrid")


def write(transcript: Transcript, zero_ns: int) -> bytes:
    """Return a TextGrid in the long text form; silence is an empty interval."""
    tiers = tiers_of(spans_of(transcript, zero_ns))
    last = max((tier[-1].end_ms for tier in tiers.values()), default=1)
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    lines += ["xmin = 0", f"xmax = {_seconds(last)}", "tiers? <exists>", f"size = {len(tiers)}"]
    lines.append("item []:")
    for number, (speaker, tier) in enumerate(tiers.items(), start=1):
        lines += _tier(number, speaker, tier, last)
    return ("\n".join(lines) + "\n").encode()


def _tier(number: int, speaker: str, tier: Sequence[Span], last: int) -> Iterator[str]:
    intervals = list(_without_gaps(tier, last))
    yield f"    item [{number}]:"
    yield '        class = "IntervalTier"'
    yield f"        name = {_quoted(speaker)}"
    yield "        xmin = 0"
    yield f"        xmax = {_seconds(last)}"
    yield f"        intervals: size = {len(intervals)}"
    for k, span in enumerate(intervals, start=1):
        yield f"        intervals [{k}]:"
        yield f"            xmin = {_seconds(span.start_ms)}"
        yield f"            xmax = {_seconds(span.end_ms)}"
        yield f"            text = {_quoted(span.text)}"


def _without_gaps(tier: Sequence[Span], last: int) -> Iterator[Span]:
    at = 0
    for span in tier:
        if span.start_ms > at:
            yield Span(at, span.start_ms, "", span.speaker)
        yield span
        at = span.end_ms
    if at < last:
        yield Span(at, last, "", tier[-1].speaker)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def read(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read the interval tiers of a TextGrid in the long or the short text form."""
    tokens = list(_tokens(text_of(data)))
    if tuple(tokens[:2]) != HEAD:
        raise Malformed("it does not begin as a TextGrid does")
    try:
        return list(_words(iter(tokens[2:]), zero_ns))
    except (StopIteration, RuntimeError, ValueError, TypeError) as error:
        raise Malformed("it ends, or goes astray, in the middle of a tier") from error


def _tokens(text: str) -> Iterator[str | float]:
    for found in TOKEN.finditer(text):
        if found[2] is not None:
            yield float(found[2])
        elif found[0].startswith('"'):
            yield found[1].replace('""', '"')


def _words(tokens: Iterator[str | float], zero_ns: int) -> Iterator[Word]:
    _, _, tiers = (float(next(tokens)) for _ in range(3))
    for _ in range(int(tiers)):
        kind, name = str(next(tokens)), str(next(tokens))
        _, _, count = (float(next(tokens)) for _ in range(3))
        for _ in range(int(count)):
            if kind == "IntervalTier":
                yield from _interval(tokens, name, zero_ns)
            else:  # a point: its time and its mark
                next(tokens)
                next(tokens)


def _interval(tokens: Iterator[str | float], name: str, zero_ns: int) -> Iterator[Word]:
    start, end, text = float(next(tokens)), float(next(tokens)), next(tokens)
    if not isinstance(text, str):
        raise TypeError(text)
    if text.strip() and end > start:
        yield from words_in(Span(round(1000 * start), round(1000 * end), text, name), zero_ns)
