"""What a person corrected in a file, brought together with the transcript that it was made of.

A file of subtitles does not know how sure a word was or which device heard it, and a subtitle of
several words does not know when each was said. What the person left as it was keeps all that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from synorama.records import Transcript, Word
from synorama.speech.heard import bare
from synorama.speech.merge import segments_of

__all__ = ["BY_PERSON", "Correction", "corrected"]

BY_PERSON = "person"
FROM_FILE = "file"
SPREAD = "spread"
SAME_NS = 1_000_000  # what files in milliseconds cannot tell apart
NEAR_NS = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected transcript, and how many words are new, changed, moved, and gone."""

    transcript: Transcript
    added: int
    changed: int
    retimed: int
    removed: int


def corrected(transcript: Transcript, edited: Sequence[Word]) -> Correction:
    """Return the transcript with the words of an edited file.

    Parameters
    ----------
    edited
        On the transcript's clock. Words with the ``timing_source`` ``spread`` do not know their
        own times. Where none has a speaker, the file knows no speakers, and old ones stay.
    """
    olds = _old_of_each(transcript.words, edited)
    if not any(word.speaker for word in edited):
        edited = [
            replace(w, speaker=old.speaker if old else None)
            for w, old in zip(edited, olds, strict=True)
        ]
    news = [_joined(old, word) for old, word in zip(olds, edited, strict=True)]
    news = _between_neighbours(news, [old is None for old in olds], edited)
    words = tuple(sorted(news, key=_by_time))
    kept = [(old, new) for old, new in zip(olds, news, strict=True) if old is not None]
    return Correction(
        replace(transcript, words=words, segments=segments_of(words)),
        added=len(edited) - len(kept),
        changed=sum((old.text, old.speaker) != (new.text, new.speaker) for old, new in kept),
        retimed=sum((old.start_ns, old.end_ns) != (new.start_ns, new.end_ns) for old, new in kept),
        removed=len(transcript.words) - len(kept),
    )


def _by_time(word: Word) -> tuple[bool, int, int, str]:
    return (word.start_ns is None, word.start_ns or 0, word.end_ns or 0, word.device)


def _old_of_each(words: Sequence[Word], edited: Sequence[Word]) -> list[Word | None]:
    """Find for each edited word the word that it was."""
    found: dict[int, int] = {}
    free_old, free_new = set(range(len(words))), set(range(len(edited)))

    def take(pairs: Sequence[tuple[int, int]]) -> None:
        for new, old in pairs:
            if new in free_new and old in free_old:
                found[new] = old
                free_new.discard(new)
                free_old.discard(old)

    take(_at_the_same_time(words, edited))
    for speaker in {w.speaker for w in edited}:
        mine = [k for k in sorted(free_new) if edited[k].speaker == speaker]
        theirs = [k for k in sorted(free_old) if words[k].speaker == speaker]
        take(_in_the_same_order(words, theirs, edited, mine))
    take(_in_the_same_order(words, sorted(free_old), edited, sorted(free_new)))
    return [words[found[k]] if k in found else None for k in range(len(edited))]


def _at_the_same_time(words: Sequence[Word], edited: Sequence[Word]) -> list[tuple[int, int]]:
    """Pair words that begin in the same millisecond and have the same text."""
    places: dict[tuple[str, int], list[int]] = {}
    for k, word in enumerate(words):
        if word.start_ns is not None:
            places.setdefault((word.text, word.start_ns // SAME_NS), []).append(k)
    pairs = []
    for new, word in enumerate(edited):
        if word.start_ns is None or word.timing_source == SPREAD:
            continue
        at = word.start_ns // SAME_NS
        near = [k for ms in (at, at - 1, at + 1) for k in places.get((word.text, ms), ())]
        pairs += [(new, k) for k in near]
    return pairs


def _in_the_same_order(
    words: Sequence[Word], olds: Sequence[int], edited: Sequence[Word], news: Sequence[int]
) -> list[tuple[int, int]]:
    """Pair equal words in order of time, then what stands between them, place by place."""
    olds = sorted(olds, key=lambda k: words[k].start_ns or 0)
    news = sorted(news, key=lambda k: edited[k].start_ns or 0)
    before, after = [bare(words[k].text) for k in olds], [bare(edited[k].text) for k in news]
    pairs = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for what, i0, i1, j0, j1 in matcher.get_opcodes():
        if what == "equal" or (what == "replace" and i1 - i0 == j1 - j0):
            pairs += list(zip(news[j0:j1], olds[i0:i1], strict=True))
    return [(new, old) for new, old in pairs if _near(words[old], edited[new])]


def _near(old: Word, new: Word) -> bool:
    if old.start_ns is None or new.start_ns is None:
        return True
    return abs(old.start_ns - new.start_ns) < NEAR_NS


def _joined(old: Word | None, new: Word) -> Word:
    if old is None:
        own = new.timing_source in ("", FROM_FILE)
        return replace(new, timing_source=BY_PERSON) if own else new
    start, end = _time(old.start_ns, new.start_ns, new), _time(old.end_ns, new.end_ns, new)
    moved = (start, end) != (old.start_ns, old.end_ns)
    return replace(
        old,
        text=new.text,
        speaker=new.speaker,
        start_ns=start,
        end_ns=end,
        timing_source=BY_PERSON if moved else old.timing_source,
    )


def _between_neighbours(
    news: Sequence[Word], added: Sequence[bool], edited: Sequence[Word]
) -> list[Word]:
    """Put added words that know no times of their own between those around them."""
    out = list(news)
    for speaker in {w.speaker for w in news}:
        mine = [k for k in range(len(news)) if news[k].speaker == speaker]
        mine.sort(key=lambda k: edited[k].start_ns or 0)
        loose = [added[k] and news[k].timing_source == SPREAD for k in mine]
        for first, last in _runs(loose):
            before = out[mine[first - 1]].end_ns if first else None
            after = out[mine[last]].start_ns if last < len(mine) else None
            _lay_out(out, mine[first:last], before, after)
    return out


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return ``(first, end)`` of each run of true flags."""
    framed = [False, *flags, False]
    edges = [k for k in range(len(framed) - 1) if framed[k] != framed[k + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _lay_out(
    words: list[Word], places: Sequence[int], before: int | None, after: int | None
) -> None:
    """Share the time between two neighbours, where their own falls outside of it."""
    first, last = words[places[0]].start_ns or 0, words[places[-1]].end_ns or 0
    begin = first if before is None else max(first, before)
    end = last if after is None else min(last, after)
    step = max((end - begin) // len(places), SAME_NS)
    for k, place in enumerate(places):
        start = begin + k * step
        words[place] = replace(words[place], start_ns=start, end_ns=start + step)


def _time(old: int | None, new: int | None, word: Word) -> int | None:
    if word.timing_source == SPREAD:
        return old
    if old is not None and new is not None and abs(old - new) <= SAME_NS:
        return old
    return new
