"""Edit lists of MP4 and MOV, applied as FFmpeg applies them.

An edit list says which spans of a track are shown when. FFmpeg turns it into a new list of
packets: what lies before a span and is needed to decode it stays in, marked to be discarded after
decoding; spans that come twice come twice; the first sound to be heard may start inside a packet.
Every decoder of this package is FFmpeg, so its reading of an edit list, and not the letter of the
standard, tells when a frame is seen. The two differ where a span starts between two frames: FFmpeg
then puts the first whole frame at the span's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Bool = NDArray[np.bool_]

__all__ = ["Edit", "Edited", "Timing", "TooManyPacketsError", "apply_edits"]


class TooManyPacketsError(ValueError):
    """An edit list made to exhaust memory: it repeats a track without end."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of an edit list, both numbers in the track's own units.

    ``media_time`` is the first media time shown, -1 for a pause; ``duration`` is how long.
    """

    duration: int
    media_time: int


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """Times of a track's samples as stored, in decode order and media units.

    ``offsets`` are composition minus decode time, ``None`` where the track has no such table;
    ``shift`` is the largest negative offset, by which FFmpeg moves decode times down.
    """

    decode: Int64
    offsets: Int64 | None
    keys: Bool
    timescale: int
    shift: int
    kind: str  # the handler: vide, soun, ...

    @property
    def is_sound(self) -> bool:
        """Whether packets can be cut and need no key frame."""
        return self.kind == "soun"

    @property
    def composition(self) -> Int64:
        """When each sample is due in media time."""
        return self.decode if self.offsets is None else self.decode + self.offsets


@dataclass(frozen=True, slots=True, eq=False)
class Edited:
    """The packets that remain: which sample each is, when it is due, whether it is shown.

    ``skip`` samples of sound fall away at the start of what the packets decode to. ``early``: by
    how much FFmpeg shows pictures before their time, as the first edit starts between two frames.
    """

    samples: Int64
    decode: Int64
    pts: Int64
    discard: Bool
    skip: int = 0
    early: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """What one edit keeps: its packets from the decode time at which it was laid."""

    samples: Int64
    decode: Int64
    discard: Bool
    visible: Int64  # presentation times of the packets that lie wholly inside, in decode order
    skip: int = 0


def apply_edits(timing: Timing, edits: tuple[Edit, ...], limit: int) -> Edited:
    """Return the packets of a track as its edit list arranges them.

    Parameters
    ----------
    timing
        The samples as stored.
    edits
        In order; empty for a track that is shown as it is.
    limit
        The most packets that may come out.

    Raises
    ------
    TooManyPacketsError
        More than ``limit`` packets.
    """
    if not edits or not len(timing.decode):
        return _as_stored(timing)
    spans = _spans(timing, edits, limit)
    if not spans:
        none = np.zeros(0, np.int64)
        return Edited(none, none, none, np.zeros(0, bool))
    samples = np.concatenate([span.samples for span in spans])
    decode = np.concatenate([span.decode for span in spans])
    if timing.kind == "vide":
        decode = decode - max(_late(edits, spans), 0)
    discard = np.concatenate([span.discard for span in spans])
    pts = _presented(timing, samples, decode)
    return Edited(samples, decode, pts, discard, spans[0].skip, _early(timing, edits, spans[0]))


def _early(timing: Timing, edits: tuple[Edit, ...], first: _Span) -> int:
    """Return how much of the first edit passes before a frame that lies in it is due."""
    due = timing.composition[first.samples[~first.discard]]
    if timing.kind != "vide" or not len(due):
        return 0
    return int(due.min()) - edits[_leading_pauses(edits)].media_time


def _as_stored(timing: Timing) -> Edited:
    n = len(timing.decode)
    samples = np.arange(n, dtype=np.int64)
    return Edited(samples, timing.decode - timing.shift, timing.composition, np.zeros(n, bool))


def _presented(timing: Timing, samples: Int64, decode: Int64) -> Int64:
    pts: Int64 = decode + timing.shift
    return pts if timing.offsets is None else pts + timing.offsets[samples]


def _spans(timing: Timing, edits: tuple[Edit, ...], limit: int) -> list[_Span]:
    """Lay the edits one after another, from where the leading pauses end."""
    spans: list[_Span] = []
    pauses = _leading_pauses(edits)
    at, count = sum(edit.duration for edit in edits[:pauses]) - timing.shift, 0
    for edit in edits[pauses:]:
        spans.append(_span(timing, edit, at, first=not spans))
        count += len(spans[-1].samples)
        if count > limit:
            raise TooManyPacketsError(f"its edit list makes more than {limit} packets of one track")
        at += edit.duration
    return spans


def _leading_pauses(edits: tuple[Edit, ...]) -> int:
    """Count the pauses at the beginning.

    A later one is no pause to FFmpeg, which plays the media's beginning instead.
    """
    return next((k for k, edit in enumerate(edits) if edit.media_time != -1), len(edits))


def _late(edits: tuple[Edit, ...], spans: list[_Span]) -> int:
    """Return how much later than the end of the leading pauses the first frame would be seen.

    Decode times were laid there; reordered frames are seen later than they are decoded. FFmpeg
    forgets what it has found so far whenever it meets a negative time: so must we.
    """
    visible = np.concatenate([span.visible for span in spans])
    negative = np.flatnonzero(visible[:-1] < 0)
    visible = visible[negative[-1] + 1 :] if len(negative) else visible
    pauses = sum(edit.duration for edit in edits[: _leading_pauses(edits)])
    return int(visible.min()) - pauses if len(visible) else 0


def _span(timing: Timing, edit: Edit, at: int, *, first: bool) -> _Span:
    """Take the samples of one edit, from the key frame before it to the one that ends it."""
    begin = _begin(timing, edit.media_time)
    due = timing.composition[begin:]
    lasts = np.append(np.diff(timing.decode[begin:]), edit.duration)
    end = edit.media_time + edit.duration
    stop = _stop(timing, (due + lasts >= end) & (timing.keys[begin:] | timing.is_sound))
    due, lasts = due[:stop], lasts[:stop]
    samples = np.arange(begin, begin + len(due), dtype=np.int64)
    inside = (due >= edit.media_time) & (due < end)
    shown, skip = inside, 0
    if first and timing.is_sound:
        shown, skip = _with_cut(due, lasts, inside, edit.media_time)
    decode = _lay(lasts, shown, at - skip)
    visible = _presented(timing, samples[inside], decode[inside])
    if first and timing.is_sound:
        skip += int(lasts[: _lead(shown)].sum())
    return _Span(samples, decode, ~shown, visible, skip)


def _with_cut(due: Int64, lasts: Int64, inside: Bool, start: int) -> tuple[Bool, int]:
    """Show the packet of sound inside which the edit starts; its beginning is to be skipped."""
    across = np.flatnonzero((due < start) & (due + lasts > start))
    if not len(across):
        return inside, 0
    shown = inside.copy()
    shown[across] = True
    return shown, int((start - due[across]).sum())


def _lead(shown: Bool) -> int:
    """Return how many packets come before the first one shown."""
    return int(shown.argmax()) if shown.any() else len(shown)


def _lay(lasts: Int64, shown: Bool, at: int) -> Int64:
    """Return decode times such that the first packet shown is decoded at ``at``."""
    lead = _lead(shown)
    if lead == len(shown):
        return np.full(len(shown), at, np.int64)
    decode = np.cumsum(lasts) - lasts
    laid: Int64 = decode - decode[lead] + at
    return laid


def _stop(timing: Timing, ends: Bool) -> int:
    """Return how many packets belong to an edit, given which of them may end it.

    Where frames are reordered, some that belong to the edit may follow the key frame after it:
    the second one ends it.
    """
    found = np.flatnonzero(ends)
    needed = 1 if timing.is_sound or timing.offsets is None else 2
    return int(found[needed - 1]) + 1 if len(found) >= needed else len(ends)


def _begin(timing: Timing, media_time: int) -> int:
    """Return the sample at which decoding must start for the edit to be complete.

    Sound starts a second earlier, for its decoder to settle.
    """
    decode = timing.decode - timing.shift
    wanted = media_time
    if timing.is_sound:
        wanted = max(media_time - timing.timescale, int(decode[0]))
    wanted -= timing.shift
    last = int(np.searchsorted(decode, wanted, side="right")) - 1
    for usable in (timing.keys, np.ones(len(decode), bool)):
        found = _key_before(timing, decode, last, wanted, usable)
        if found is not None:
            return found
    return 0


def _key_before(timing: Timing, decode: Int64, last: int, wanted: int, usable: Bool) -> int | None:
    """Find the last key frame up to ``last`` that is also presented by the time wanted."""
    ready = usable[: last + 1].copy()
    if timing.offsets is not None:
        on_time = decode[: last + 1] + timing.offsets[: last + 1] <= wanted
        ready &= on_time & timing.keys[: last + 1]
    found = np.flatnonzero(ready)
    if not len(found):
        return None
    same = np.flatnonzero(usable[: last + 1] & (decode[: last + 1] == decode[found[-1]]))
    return int(same[0]) if timing.offsets is None else int(found[-1])
