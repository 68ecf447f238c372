"""Spans of text in whole milliseconds, as subtitles and annotation tools have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from synorama.records import Transcript, Word
from synorama.speech.align import spread
from synorama.speech.formats.document import FROM_FILE, UNKNOWN

__all__ = ["Span", "spans_of", "tiers_of", "to_ms", "words_in"]

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """Text between two times [ms], and its speaker; at least a millisecond long."""

    start_ms: int
    end_ms: int
    text: str
    speaker: str


def to_ms(t_ns: int, zero_ns: int) -> int:
    """Return whole milliseconds since zero, at least zero."""
    return max(0, (t_ns - zero_ns + NS_PER_MS // 2) // NS_PER_MS)


def spans_of(transcript: Transcript, zero_ns: int) -> list[Span]:
    """Return each word with known times as a span, in order of its start."""
    spans = [_span(w, zero_ns) for w in transcript.words if w.start_ns is not None]
    return sorted((s for s in spans if s is not None), key=lambda s: (s.start_ms, s.end_ms))


def _span(word: Word, zero_ns: int) -> Span | None:
    if word.start_ns is None or word.end_ns is None:
        return None
    start = to_ms(word.start_ns, zero_ns)
    end = max(to_ms(word.end_ns, zero_ns), start + 1)
    return Span(start, end, word.text, word.speaker or UNKNOWN)


def tiers_of(spans: Iterable[Span]) -> Mapping[str, Sequence[Span]]:
    """Return the spans by speaker, none beginning before the one before it ends."""
    tiers: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda s: (s.speaker, s.start_ms, s.end_ms)):
        tier = tiers.setdefault(span.speaker, [])
        begin = max(span.start_ms, tier[-1].end_ms if tier else 0)
        tier.append(Span(begin, max(span.end_ms, begin + 1), span.text, span.speaker))
    return tiers


def words_in(span: Span, zero_ns: int) -> Iterator[Word]:
    """Yield the words of a span; several words share its time by their length."""
    speaker = None if span.speaker in ("", UNKNOWN) else span.speaker
    told = spread(span.text, float(span.start_ms), float(span.end_ms)).words
    source = FROM_FILE if len(told) == 1 else "spread"
    for word in told:
        start, end = (zero_ns + round(t * NS_PER_MS) for t in (word.start_s, word.end_s))
        yield Word(word.text, start, end, speaker=speaker, timing_source=source)
