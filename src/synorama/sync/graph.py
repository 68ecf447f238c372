"""All pairs together: one clock for each recording that no single wrong pair can spoil.

The pairs are the edges of a graph. A tree of them leads from the recordings whose clocks are
known to all others; every further pair closes a loop, and around a loop the times must come back
to where they began. A pair that breaks loops which close without it is left out. The rest is
adjusted by Huber's iteratively reweighted least squares, a shift and a rate for each segment of
each clock. Plain least squares would smear one wrong pair over the good ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from synorama.records import LoopClosure, PairEvidence
from synorama.sync import pieces
from synorama.sync.pieces import Pieces
from synorama.timebase import ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["GROSS_NS", "Contradiction", "Solution", "solve"]

GROSS_NS = 25e6  # no sound travels longer between two microphones of one room
NOTABLE_NS = 2e6
NOTABLE_FACTOR = 5.0  # over what the other loops leave open
SAMPLES = 9  # a pair
EDGE_NS = 3_000_000_000  # breaks are placed to a second or so
HUBER = 1.345
RATE_FREEDOM = 3.0  # sigmas by which the others may turn what a pair says of a rate
ROUNDS = 60
DOUBTFUL_HOP = 0.5
HARDWARE_HOP = 0.05


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A pair that does not fit.

    Parameters
    ----------
    off_ns
        By how much it departs from the clocks that the other pairs make.
    decided
        Whether the other pairs leave no doubt that this one is wrong.
    concerned
        The recordings whose clocks may be off by as much if another pair is.
    """

    pair: PairEvidence
    off_ns: float
    decided: bool
    concerned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Solution:
    """The clocks that all pairs together make.

    Parameters
    ----------
    clocks
        By recording, for all that were reached, the known ones included: maps to the session.
    path
        By recording, the pairs of sounds that lead to it, its own first; empty for known clocks.
    loops
        What is left when the times are carried around each loop.
    contradictions
        Pairs that do not fit.
    """

    clocks: Mapping[str, Pieces]
    path: Mapping[str, tuple[PairEvidence, ...]]
    loops: tuple[LoopClosure, ...]
    contradictions: tuple[Contradiction, ...]

    def p_match(self, name: str) -> float | None:
        """Return the probability that each pair on the way to a recording belongs together."""
        known = [p.p_match for p in self.path[name] if p.p_match is not None]
        return prod(known) if known else None

    def doubt_ns(self, name: str) -> float:
        """Return by how much a contradiction that nothing decides may concern a recording."""
        return max((abs(c.off_ns) for c in self.contradictions if name in c.concerned), default=0.0)


def solve(known: Mapping[str, Pieces], pairs: Sequence[PairEvidence]) -> Solution:
    """Find the clocks of all recordings that accepted pairs connect with a known one.

    Parameters
    ----------
    known
        Maps to the session clock that stay as they are, the most trusted recording first.
    pairs
        The evidence; what was not accepted counts for nothing.
    """
    good = [p for p in pairs if p.accepted]
    good, rejected = _without_gross(known, good)
    tree = _Tree.grow(known, good)
    clocks = _adjust(known, tree, good)
    settled = _Tree(tree.known, clocks, tree.parents)
    loops = tuple(tree.loops([*good, *(p for p, _ in rejected)]))
    gross = (
        Contradiction(p, settled.off_ns(p), not concerned, concerned) for p, concerned in rejected
    )
    return Solution(clocks, tree.paths(), loops, (*gross, *_notable(settled, good, loops)))


# --- the tree --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tree:
    """Clocks along a tree of pairs; ``parents`` holds each recording's parent and pair."""

    known: tuple[str, ...]
    clocks: Mapping[str, Pieces]
    parents: Mapping[str, tuple[str, PairEvidence]]

    @classmethod
    def grow(cls, known: Mapping[str, Pieces], pairs: Sequence[PairEvidence]) -> _Tree:
        """Reach each recording over as few pairs, and as few doubtful ones, as can be."""
        clocks: dict[str, Pieces] = dict(known)
        parents: dict[str, tuple[str, PairEvidence]] = {}
        number = count()  # what costs the same goes in order, and pairs are never compared
        heap: list[tuple[float, int, str, str, PairEvidence]] = []

        def go_on_from(name: str, cost: float) -> None:
            for further, neighbour, pair in _steps(name, cost, pairs):
                heapq.heappush(heap, (further, next(number), name, neighbour, pair))

        for k, name in enumerate(known):
            go_on_from(name, k * HARDWARE_HOP)
        while heap:
            cost, _, parent, name, pair = heapq.heappop(heap)
            if name not in clocks:
                clocks[name] = pieces.compose(clocks[parent], _towards(parent, pair))
                parents[name] = parent, pair
                go_on_from(name, cost)
        return cls(tuple(known), clocks, parents)

    def paths(self) -> dict[str, tuple[PairEvidence, ...]]:
        """Return for each recording the pairs that lead to it, its own first."""
        return {name: tuple(self._path(name)) for name in self.clocks}

    def _path(self, name: str) -> Iterator[PairEvidence]:
        while name in self.parents:
            name, pair = self.parents[name]
            yield pair

    def _ancestors(self, name: str) -> list[str]:
        names = [name]
        while names[-1] in self.parents:
            names.append(self.parents[names[-1]][0])
        return names

    def loops(self, pairs: Sequence[PairEvidence]) -> Iterator[LoopClosure]:
        """Yield the loop that each pair outside the tree closes."""
        used = {id(pair) for _, pair in self.parents.values()}
        for p in pairs:
            if id(p) not in used and p.reference in self.clocks and p.other in self.clocks:
                yield LoopClosure(self._around(p.reference, p.other), self.off_ns(p, worst=True))

    def _around(self, a: str, b: str) -> tuple[str, ...]:
        up, down = self._ancestors(a), self._ancestors(b)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop(), down.pop()
        return (*up, *(n for n in reversed(down) if n not in up))

    def off_ns(self, pair: PairEvidence, *, worst: bool = False) -> float:
        """Return by how much the pair departs from the clocks, in the middle or at worst."""
        off = [o.off_ns for o in _observe(self.clocks, pair)]
        return float(max(off, key=abs)) if worst else float(np.median(off))


def _steps(
    name: str, cost: float, pairs: Sequence[PairEvidence]
) -> Iterator[tuple[float, str, PairEvidence]]:
    for p in pairs:
        if name in (p.reference, p.other):
            yield cost + 1 + DOUBTFUL_HOP * p.ambiguous, _partner(p, name), p


def _partner(pair: PairEvidence, name: str) -> str:
    return pair.other if name == pair.reference else pair.reference


def _towards(target: str, pair: PairEvidence) -> Pieces:
    return pair.maps if pair.reference == target else pieces.inverse(pair.maps)


# --- what a pair says of two clocks ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Observation:
    """One moment: by how much the reference's clock is ahead, and which pieces are concerned.

    Each side is ``(recording, piece, place)``; the place is -1 to 1 along the piece.
    """

    off_ns: float
    reference: tuple[str, int, float]
    other: tuple[str, int, float]


def _observe(clocks: Mapping[str, Pieces], pair: PairEvidence) -> list[_Observation]:
    a, b = clocks[pair.reference], clocks[pair.other]
    t_b = _moments(pair.maps)
    t_a = pieces.apply(pair.maps, t_b)
    calm = _calm(pair.maps, t_b) & _calm(a, t_a) & _calm(b, t_b)
    if calm.any():
        t_a, t_b = t_a[calm], t_b[calm]
    off = pieces.apply(a, t_a) - pieces.apply(b, t_b)
    sides_a = _sides(pair.reference, a, t_a)
    sides_b = _sides(pair.other, b, t_b)
    return [_Observation(*o) for o in zip(off.tolist(), sides_a, sides_b, strict=True)]


def _moments(maps: Pieces) -> Int64:
    """Return moments spread over all segments, on the other's clock."""
    each = max(3, SAMPLES // len(maps))
    return np.concatenate([np.linspace(*m.range_ns, each).astype(np.int64) for m in maps])


def _calm(maps: Pieces, t_ns: Int64) -> NDArray[np.bool_]:
    """Tell which moments are not close to a break."""
    early, late = pieces.piece_of(maps, t_ns - EDGE_NS), pieces.piece_of(maps, t_ns + EDGE_NS)
    return np.asarray(early == late)


def _sides(name: str, maps: Pieces, t_ns: Int64) -> list[tuple[str, int, float]]:
    number = pieces.piece_of(maps, t_ns)
    return [(name, int(k), _place(maps[k], int(t))) for k, t in zip(number, t_ns, strict=True)]


def _place(clock: ClockMap, t_ns: int) -> float:
    first, last = clock.range_ns
    half = max((last - first) / 2, 1.0)
    return float(np.clip((t_ns - first) / half - 1, -1.5, 1.5))


# --- pairs that do not fit -------------------------------------------------------------------


def _without_gross(
    known: Mapping[str, Pieces], pairs: Sequence[PairEvidence]
) -> tuple[list[PairEvidence], list[tuple[PairEvidence, frozenset[str]]]]:
    """Leave out the pairs that break loops by more than sound can travel.

    With each go the recordings that stay in doubt because another pair may be the wrong one.
    """
    good, rejected = list(pairs), []
    while broken := _broken(known, good):
        judged = [_judge(known, good, p) for p in _suspects(known, good, broken)]
        least = min(judged, key=lambda j: j[:3])
        alike = [p for *rank, _, p in judged if tuple(rank) == least[:2]]
        doubt = {n for p in alike for n in (p.reference, p.other)} - known.keys()
        good = [p for p in good if p is not least[3]]
        rejected.append((least[3], frozenset(doubt if len(alike) > 1 else ())))
    return good, rejected


def _broken(known: Mapping[str, Pieces], pairs: Sequence[PairEvidence]) -> list[LoopClosure]:
    """Return the loops that are broken, but for those of clocks that are known anyway."""
    return [
        loop
        for loop in _Tree.grow(known, pairs).loops(pairs)
        if abs(loop.closure_ns) > GROSS_NS and not known.keys() >= set(loop.recordings)
    ]


def _suspects(
    known: Mapping[str, Pieces], pairs: Sequence[PairEvidence], broken: Sequence[LoopClosure]
) -> list[PairEvidence]:
    concerned = {name for loop in broken for name in loop.recordings}
    ends = [{p.reference, p.other} for p in pairs]
    return [p for p, e in zip(pairs, ends, strict=True) if e <= concerned and not known.keys() >= e]


def _judge(
    known: Mapping[str, Pieces], pairs: Sequence[PairEvidence], suspect: PairEvidence
) -> tuple[int, int, float, PairEvidence]:
    """Return how many recordings are lost and loops broken without the suspect, and its score."""
    rest = [p for p in pairs if p is not suspect]
    lost = -len(_Tree.grow(known, rest).clocks)
    return lost, len(_broken(known, rest)), suspect.score, suspect


def _notable(
    settled: _Tree, pairs: Sequence[PairEvidence], loops: Sequence[LoopClosure]
) -> Iterator[Contradiction]:
    """Yield pairs that stand out from what the other loops leave open."""
    for p in pairs:
        others = [abs(o.closure_ns) for o in loops if not {p.reference, p.other} <= {*o.recordings}]
        reached = p.reference in settled.clocks and p.other in settled.clocks
        if len(others) < 2 or not reached:
            continue
        off = settled.off_ns(p)
        if abs(off) > max(NOTABLE_NS, NOTABLE_FACTOR * median(others)):
            yield Contradiction(p, off, decided=True)


# --- adjustment ------------------------------------------------------------------------------


def _adjust(
    known: Mapping[str, Pieces], tree: _Tree, pairs: Sequence[PairEvidence]
) -> dict[str, Pieces]:
    """Shift and stretch each piece of each clock so that the pairs agree, robustly."""
    free = [
        (name, k) for name, p in tree.clocks.items() if name not in known for k in range(len(p))
    ]
    column = {piece: 2 * k for k, piece in enumerate(free)}
    rows = [
        row
        for p in pairs
        if p.reference in tree.clocks and p.other in tree.clocks
        for row in _rows(tree.clocks, p, _sigma_ns(known, p), column)
    ]
    if not column or not rows:
        return dict(tree.clocks)
    rows += list(_rates_before(tree.clocks, column))
    x = _huber(np.array([r for r, _ in rows]), np.array([off for _, off in rows]))
    return {
        name: own
        if name in known
        else tuple(_moved(c, *x[column[name, k] :][:2]) for k, c in enumerate(own))
        for name, own in tree.clocks.items()
    }


def _sigma_ns(known: Mapping[str, Pieces], pair: PairEvidence) -> float:
    """Return one sigma of a pair, and of what is known of its ends."""
    ends = [known[n] for n in (pair.reference, pair.other) if n in known]
    parts = [pair.maps, *ends]
    return float(np.sqrt(sum(max(m.sigma_ns for m in maps) ** 2 for maps in parts)))


def _rows(
    clocks: Mapping[str, Pieces],
    pair: PairEvidence,
    sigma_ns: float,
    column: Mapping[tuple[str, int], int],
) -> Iterator[tuple[Float64, float]]:
    """Yield equations in units of sigma: coefficients of shift and stretch, and what is off."""
    for o in _observe(clocks, pair):
        row = np.zeros(2 * len(column))
        for sign, (name, piece, place) in ((1, o.reference), (-1, o.other)):
            at = column.get((name, piece))
            if at is not None:
                row[at : at + 2] += sign * np.array([1.0, place])
        yield row / sigma_ns, o.off_ns / sigma_ns


def _rates_before(
    clocks: Mapping[str, Pieces], column: Mapping[tuple[str, int], int]
) -> Iterator[tuple[Float64, float]]:
    """Yield equations that hold each piece's rate: pairs tell little of a piece of seconds."""
    for (name, piece), at in column.items():
        row = np.zeros(2 * len(column))
        row[at + 1] = 1 / (RATE_FREEDOM * max(clocks[name][piece].sigma_ns, 1.0))
        yield row, 0.0


def _huber(rows: Float64, off: Float64) -> Float64:
    """Solve ``rows x + off = 0`` by Huber's iteratively reweighted least squares."""
    weight = np.ones(len(off))
    for _ in range(ROUNDS):
        root = np.sqrt(weight)
        x = np.asarray(np.linalg.lstsq(rows * root[:, None], -off * root, rcond=None)[0])
        left = np.abs(rows @ x + off)
        weight = np.minimum(1.0, HUBER / np.maximum(left, 1e-12))
    return x


def _moved(clock: ClockMap, shift_ns: float, stretch_ns: float) -> ClockMap:
    """Return the clock shifted, and stretched about the middle of its range."""
    first, last = clock.range_ns
    half = max((last - first) / 2, 1.0)
    source = clock.knots[:, 0]
    by = shift_ns + stretch_ns * ((source - first) / half - 1)
    knots = np.column_stack([source, clock.knots[:, 1] + np.rint(by).astype(np.int64)])
    rate = stretch_ns / half
    return replace(
        clock,
        knots=knots,
        rate_before=clock.rate_before + rate,
        rate_after=clock.rate_after + rate,
    )
