"""One transcript of what several devices heard: every utterance once, words in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from synorama.records import Segment, Word
from synorama.speech.heard import HeardWord, bare

__all__ = ["segments_of", "to_words", "without_duplicates", "without_own_overlaps"]

NEAR_NS = 150_000_000  # the same word within this is the same utterance
LEAST_NS = 1_000_000  # that a word lasts
PAUSE_NS = 800_000_000  # after which a person begins anew
SENTENCE_PAUSE_NS = 250_000_000
SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")

Louder = Callable[[HeardWord, HeardWord], bool]
"""Whether the first of two hearings of one word is the nearer one."""


def without_duplicates(words: Sequence[HeardWord], louder: Louder) -> list[HeardWord]:
    """Keep one of each word that two devices heard: the louder one."""
    kept: list[HeardWord] = []
    for word in sorted(words, key=lambda w: (w.start_ns, w.device)):
        twin = _twin(word, kept)
        if twin is None:
            kept.append(word)
        elif louder(word, kept[twin]):
            kept[twin] = word
    return _one_device_for_bystanders(kept)


def _twin(word: HeardWord, kept: Sequence[HeardWord]) -> int | None:
    """Return the position of the same word on another device; words come in order of start."""
    for k in range(len(kept) - 1, max(len(kept) - 40, -1), -1):
        other = kept[k]
        near = min(other.end_ns, word.end_ns) - max(other.start_ns, word.start_ns) > -NEAR_NS
        if near and other.device != word.device and bare(other.text) == bare(word.text):
            return k
    return None


def _one_device_for_bystanders(words: Sequence[HeardWord]) -> list[HeardWord]:
    """Where several devices understood a bystander differently, keep the surest of them."""
    sureness: dict[str, list[float]] = {}
    for word in words:
        if word.speaker is None:
            sureness.setdefault(word.device, []).append(word.probability or 0.0)
    order = sorted(sureness, key=lambda d: -sum(sureness[d]) / len(sureness[d]))
    kept: list[HeardWord] = [w for w in words if w.speaker is not None]
    for device in order:
        mine = [w for w in words if w.speaker is None and w.device == device]
        others = [w for w in kept if w.device != device]
        kept += [w for w in mine if not _covered(w, others)]
    return sorted(kept, key=lambda w: (w.start_ns, w.end_ns))


def _covered(word: HeardWord, others: Sequence[HeardWord]) -> bool:
    return any(
        min(o.end_ns, word.end_ns) - max(o.start_ns, word.start_ns)
        > (word.end_ns - word.start_ns) // 2
        for o in others
        if o.speaker is None
    )


def without_own_overlaps(words: Sequence[HeardWord]) -> list[HeardWord]:
    """End each word before the same person's next one: nobody says two at once."""
    out: list[HeardWord] = []
    for device, speaker in dict.fromkeys((w.device, w.speaker) for w in words):
        mine = sorted(
            (w for w in words if (w.device, w.speaker) == (device, speaker)),
            key=lambda w: (w.start_ns, w.end_ns),
        )
        starts = [w.start_ns for w in mine]
        for k in range(1, len(starts)):
            starts[k] = max(starts[k], starts[k - 1] + LEAST_NS)
        ends = [*starts[1:], max(mine[-1].end_ns, starts[-1] + LEAST_NS)]
        out += [
            replace(w, start_ns=a, end_ns=min(max(w.end_ns, a + LEAST_NS), b))
            for w, a, b in zip(mine, starts, ends, strict=True)
        ]
    return sorted(out, key=lambda w: (w.start_ns, w.end_ns, w.device))


def to_words(heard: Sequence[HeardWord], speakers: Mapping[str, str]) -> tuple[Word, ...]:
    """Return records; ``speakers`` names the wearer of each device."""
    return tuple(
        Word(
            text=w.text,
            start_ns=w.start_ns,
            end_ns=w.end_ns,
            probability=w.probability,
            speaker=None if w.speaker is None else speakers.get(w.speaker, w.speaker),
            device=w.device,
            timing_source=w.timed_by,
            overlapped=w.overlapped,
        )
        for w in heard
    )


def segments_of(words: Sequence[Word]) -> tuple[Segment, ...]:
    """Group words to what one person says in one breath; words without times are left out."""
    groups: list[list[int]] = []
    for k in _by_voice(words):
        if groups and _goes_on(words[groups[-1][-1]], words[k]):
            groups[-1].append(k)
        else:
            groups.append([k])
    segments = [_segment([words[k] for k in group], group) for group in groups]
    return tuple(sorted(segments, key=lambda s: (s.start_ns, s.end_ns)))


def _by_voice(words: Sequence[Word]) -> list[int]:
    timed = [k for k, w in enumerate(words) if w.start_ns is not None and w.end_ns is not None]
    return sorted(timed, key=lambda k: (words[k].speaker or "", words[k].device, _start(words[k])))


def _start(word: Word) -> int:
    assert word.start_ns is not None  # only timed words get here
    return word.start_ns


def _end(word: Word) -> int:
    assert word.end_ns is not None
    return word.end_ns


def _goes_on(last: Word, word: Word) -> bool:
    if (last.speaker, last.device) != (word.speaker, word.device):
        return False
    pause = SENTENCE_PAUSE_NS if last.text.endswith(SENTENCE_ENDS) else PAUSE_NS
    return _start(word) - _end(last) <= pause


def _segment(words: Sequence[Word], positions: Sequence[int]) -> Segment:
    return Segment(
        _start(words[0]), _end(words[-1]), words[0].speaker, words[0].device, tuple(positions)
    )
