"""Clocks that leap: several maps in order of time, used as one.

A recording that lost samples has one `ClockMap` a segment. Here such a sequence is applied,
turned round and composed, for times beyond its ends and in its gaps as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["SAME_NS", "Pieces", "apply", "compose", "inverse", "joined", "piece_of", "span_ns"]

Pieces: TypeAlias = tuple[ClockMap, ...]
SAME_NS = 2_000_000  # a smaller leap between two pieces is none
BRIEF_NS = 3 * NS_PER_S  # where two breaks are one, seen from two sides, up to this far apart


def apply(pieces: Sequence[ClockMap], t_ns: Int64) -> Int64:
    """Carry source times to the target, each through its own piece, however far outside."""
    out = np.empty_like(t_ns)
    number = piece_of(pieces, t_ns)
    for k, clock in enumerate(pieces):
        mine = number == k
        out[mine] = replace(clock, limit_ns=None).apply(t_ns[mine])
    return out


def piece_of(pieces: Sequence[ClockMap], t_ns: Int64) -> NDArray[np.intp]:
    """Return for each source time the number of the piece that is responsible for it."""
    starts = np.array([p.range_ns[0] for p in pieces[1:]], np.int64)
    return np.searchsorted(starts, t_ns, side="right")


def span_ns(pieces: Sequence[ClockMap]) -> tuple[int, int]:
    """Return the first and last source time that was observed."""
    return pieces[0].range_ns[0], pieces[-1].range_ns[1]


def inverse(pieces: Sequence[ClockMap]) -> Pieces:
    """Return the maps from target to source, in order of target time."""
    return tuple(sorted((p.inverse() for p in pieces), key=lambda p: p.range_ns))


def compose(outer: Sequence[ClockMap], inner: Sequence[ClockMap]) -> Pieces:
    """Return outer after inner: leaps of both, without those that undo each other."""
    found = [piece for m in inner for piece in _through(outer, m)]
    return joined(_without_brief(found))


def _through(outer: Sequence[ClockMap], inner: ClockMap) -> list[ClockMap]:
    """Compose one piece with all that are responsible for what it makes of its times."""
    first, last = inner.range_ns
    back = replace(inner.inverse(), limit_ns=None)
    cuts = [back.apply(p.range_ns[0]) for p in outer[1:]]
    starts = [first, *(min(max(c, first), last) for c in cuts)]
    ends = [*starts[1:], last]
    return [
        replace(o @ inner, valid_ns=(a, b))
        for o, a, b in zip(outer, starts, ends, strict=True)
        if b > a or len(outer) == 1
    ]


def _without_brief(pieces: list[ClockMap]) -> list[ClockMap]:
    """Leave out what lies between two breaks that are one, if anything else is left."""
    long = [p for p in pieces if p.range_ns[1] - p.range_ns[0] >= BRIEF_NS]
    return long or pieces


def joined(pieces: Sequence[ClockMap]) -> Pieces:
    """Return the pieces, those as one between which nothing leaps."""
    out = list(pieces[:1])
    for piece in pieces[1:]:
        at = np.array([piece.range_ns[0]], np.int64)
        leap = int(apply([piece], at)[0] - apply(out[-1:], at)[0])
        out[-1:] = [_one(out[-1], piece)] if abs(leap) < SAME_NS else [out[-1], piece]
    return tuple(out)


def _one(before: ClockMap, after: ClockMap) -> ClockMap:
    """Join two pieces without a leap between them: the line bends there."""
    knots = np.concatenate([_bends(before), _bends(after)])
    keep = np.concatenate([[True], (np.diff(knots, axis=0) > 0).all(axis=1)])
    return replace(
        before,
        knots=knots[keep],
        rate_after=after.rate_after,
        sigma_ns=max(before.sigma_ns, after.sigma_ns),
        residual_rms_ns=max(before.residual_rms_ns, after.residual_rms_ns),
        valid_ns=(before.range_ns[0], after.range_ns[1]),
    )


def _bends(clock: ClockMap) -> Int64:
    """Return the knots within the range, and its ends."""
    first, last = clock.range_ns
    inside = clock.knots[(clock.knots[:, 0] > first) & (clock.knots[:, 0] < last), 0]
    at = np.array([first, *inside, last], np.int64)
    return np.column_stack([at, apply([clock], at)])
