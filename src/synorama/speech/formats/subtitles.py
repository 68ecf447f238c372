"""SubRip and WebVTT.

SubRip has no place for the times of words: one cue a word keeps them, one cue an utterance reads
well. WebVTT has timestamps inside of a cue: one goes before each word, and one after it where the
next does not follow at once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from synorama.records import Transcript, Word
from synorama.speech.formats.document import UNKNOWN, Malformed, text_of
from synorama.speech.formats.spans import Span, spans_of, tiers_of, to_ms, words_in

__all__ = ["read_srt", "read_vtt", "write_srt", "write_srt_utterances", "write_vtt"]

TIMING = re.compile(
    r"^\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})\s*-->\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})"
)
STAMP = re.compile(r"<((?:\d+:)?\d{1,2}:\d{2}[.,]\d{3})>")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
TAG = re.compile(r"</?[^<>]*>")
STYLE = re.compile(r"</?(?:b|i|u|s|font)\b[^<>]*>|\{\\[^}]*\}", re.IGNORECASE)
NAMED = re.compile(r"^([^\s:][^:\n]{0,63}):\s+(?=\S)")
UTTERANCE_MS = 800


def write_srt(transcript: Transcript, zero_ns: int) -> bytes:
    """Return SubRip with one cue a word, so that nothing is lost."""
    return _srt(spans_of(transcript, zero_ns))


def write_srt_utterances(transcript: Transcript, zero_ns: int) -> bytes:
    """Return SubRip with one cue an utterance, as a person reads it."""
    words = transcript.words
    return _srt(
        [
            Span(
                to_ms(s.start_ns, zero_ns),
                max(to_ms(s.end_ns, zero_ns), to_ms(s.start_ns, zero_ns) + 1),
                " ".join(words[k].text for k in s.words),
                s.speaker or UNKNOWN,
            )
            for s in transcript.segments
        ]
    )


def _srt(spans: Sequence[Span]) -> bytes:
    cues = [
        f"{number}\n{_stamp(s.start_ms, ',')} --> {_stamp(s.end_ms, ',')}\n{s.speaker}: {s.text}\n"
        for number, s in enumerate(spans, start=1)
    ]
    return "\n".join(cues).encode()


def write_vtt(transcript: Transcript, zero_ns: int) -> bytes:
    """Return WebVTT: one cue an utterance, ``<v NAME>``, a timestamp for each word."""
    cues = [cue for tier in tiers_of(spans_of(transcript, zero_ns)).values() for cue in _cues(tier)]
    cues.sort(key=lambda cue: (cue[0].start_ms, cue[-1].end_ms))
    return ("WEBVTT\n\n" + "\n".join(_vtt_cue(cue) for cue in cues)).encode()


def _cues(tier: Sequence[Span]) -> Iterator[list[Span]]:
    cue: list[Span] = []
    for span in tier:
        if cue and span.start_ms - cue[-1].end_ms > UTTERANCE_MS:
            yield cue
            cue = []
        cue.append(span)
    if cue:
        yield cue


def _vtt_cue(cue: Sequence[Span]) -> str:
    at, parts = cue[0].start_ms, []
    for k, span in enumerate(cue):
        if k and span.start_ms > at:
            parts.append(f"<{_stamp(at, '.')}> ")
            parts.append(f"<{_stamp(span.start_ms, '.')}>")
        elif k:
            parts.append(f" <{_stamp(at, '.')}>")
        parts.append(html.escape(span.text, quote=False))
        at = span.end_ms
    head = f"{_stamp(cue[0].start_ms, '.')} --> {_stamp(at, '.')}\n"
    return f"{head}<v {_voice(cue[0].speaker)}>{''.join(parts)}</v>\n"


def _voice(name: str) -> str:
    return html.escape(name.replace("\n", " "), quote=False)


def _stamp(ms: int, point: str) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{rest:03d}"


def _milliseconds(stamp: str) -> int:
    whole, rest = re.split("[.,]", stamp)
    total = 0
    for part in whole.split(":"):
        total = 60 * total + int(part)
    return 1000 * total + int(rest.ljust(3, "0"))


# --- reading ----------------------------------------------------------------------------------


def read_srt(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read SubRip; a name before a colon is the speaker where half of all cues have one."""
    cues = [(start, end, STYLE.sub("", text)) for start, end, text in _read_cues(text_of(data))]
    named = [NAMED.match(text) for _, _, text in cues]
    use_names = 2 * sum(m is not None for m in named) >= len(cues)
    words: list[Word] = []
    for (start, end, text), name in zip(cues, named, strict=True):
        told = name if use_names else None
        said = text[told.end() :] if told else text
        words += words_in(Span(start, end, said, told[1] if told else UNKNOWN), zero_ns)
    return words


def read_vtt(data: bytes, zero_ns: int) -> Sequence[Word]:
    """Read WebVTT with voices and timestamps, as far as a cue has them."""
    text = text_of(data)
    if not text.startswith("WEBVTT"):
        raise Malformed("line 1: it does not begin with WEBVTT")
    words: list[Word] = []
    for start, end, cue in _read_cues(text):
        voice = VOICE.search(cue)
        speaker = html.unescape(voice[1]).strip() if voice else UNKNOWN
        for span in _stamped(start, end, cue, speaker):
            words += words_in(span, zero_ns)
    return words


def _read_cues(text: str) -> list[tuple[int, int, str]]:
    """Return ``(start_ms, end_ms, text)`` of each block that has a line of times."""
    cues = []
    line_number = 0
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.split("\n")
        cues += _cue(lines, line_number + 1)
        line_number += len(lines) + 1
    return cues


def _cue(lines: Sequence[str], first_line: int) -> list[tuple[int, int, str]]:
    at = next((k for k, line in enumerate(lines) if "-->" in line), None)
    if at is None or lines[0].startswith(("NOTE", "STYLE", "REGION")):
        return []
    timing = TIMING.match(lines[at])
    if timing is None:
        raise Malformed(f"line {first_line + at}: '{lines[at].strip()}' are no two times")
    start, end = _milliseconds(timing[1]), _milliseconds(timing[2])
    if end < start:
        raise Malformed(f"line {first_line + at}: a cue ends before it begins")
    return [(start, max(end, start + 1), " ".join(lines[at + 1 :]).strip())]


def _stamped(start: int, end: int, cue: str, speaker: str) -> Iterator[Span]:
    pieces = STAMP.split(cue)
    edges = [start, *(_milliseconds(stamp) for stamp in pieces[1::2]), end]
    for k, piece in enumerate(pieces[::2]):
        text = html.unescape(TAG.sub("", piece)).strip()
        if text:
            yield Span(edges[k], max(edges[k + 1], edges[k] + 1), text, speaker)
