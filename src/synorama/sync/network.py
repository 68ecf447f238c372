"""Which pairs of recordings to compare: enough to notice a wrong one, not all of them.

Each recording is compared with those whose clocks are known, until one fits. What fits none of
them is compared with the recordings that have been placed since: a camera that only another one
heard is reached through it. Then neighbours are compared with each other, to close loops; more
pairs are measured only where loops do not close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from synorama.errors import InputError
from synorama.media.audio import MonoSound
from synorama.records import PairEvidence
from synorama.sync.correlate import align
from synorama.sync.graph import Contradiction, Solution, solve
from synorama.sync.pieces import Pieces

__all__ = ["Hearing", "Placement", "contradiction_words", "place"]

KEPT_BYTES = 1 << 30
RING = 3  # from this many on, neighbours in a ring are two other pairs for each
FURTHER_PAIRS = 6


@dataclass(slots=True)
class Hearing:
    """The sounds of recordings, read when they are needed and kept as long as there is room.

    Parameters
    ----------
    read
        Returns a recording's sound, or raises an `InputError`.
    """

    read: Callable[[str], MonoSound]
    errors: dict[str, InputError] = field(default_factory=dict)
    _kept: dict[str, MonoSound] = field(default_factory=dict)

    def __call__(self, name: str) -> MonoSound | None:
        """Return a recording's sound; None if it has none, and then ``errors`` says why."""
        if name in self.errors:
            return None
        sound = self._kept.pop(name, None)
        try:
            sound = self.read(name) if sound is None else sound
        except InputError as error:
            self.errors[name] = error
            return None
        self._kept[name] = sound  # now the last to go
        self._make_room()
        return sound

    def _make_room(self) -> None:
        while (
            len(self._kept) > 2 and sum(s.samples.nbytes for s in self._kept.values()) > KEPT_BYTES
        ):
            del self._kept[next(iter(self._kept))]


@dataclass(frozen=True, slots=True)
class Placement:
    """The clocks, and all pairs that were measured for them."""

    solution: Solution
    pairs: tuple[PairEvidence, ...]

    def best_reason(self, name: str) -> str:
        """Say why a recording was not placed: the pair that came closest, and what it lacked."""
        mine = [p for p in self.pairs if p.other == name]
        if not mine:
            return "no recording whose clock is known has sound"
        best = max(mine, key=lambda p: (p.score, p.score_needed))
        return f"{best.reason} (best score {best.score:.1f}, needs {best.score_needed:.1f})"


def place(
    known: Mapping[str, Pieces],
    others: Sequence[str],
    hear: Hearing,
    *,
    measured: Sequence[PairEvidence] = (),
    tell: Callable[[int], None] = lambda done: None,
) -> Placement:
    """Find the clocks of recordings by the sound that they share.

    Parameters
    ----------
    known
        Maps to the session clock that are known, the most trusted recording first.
    others
        The recordings to place.
    hear
        Their sounds, and those of the known ones.
    measured
        Pairs that were compared before.
    tell
        Called with the number of recordings that have been tried.
    """
    network = _Network(known, hear, list(measured))
    network.reach(others, tell)
    network.close_loops()
    solution = network.settle()
    return Placement(solution, tuple(network.pairs))


@dataclass(slots=True)
class _Network:
    known: Mapping[str, Pieces]
    hear: Hearing
    pairs: list[PairEvidence]
    placed: list[str] = field(default_factory=list)

    def reach(self, others: Sequence[str], tell: Callable[[int], None]) -> None:
        """Find one pair for each recording that leads to a known clock."""
        waiting = []
        for done, name in enumerate(others):
            tell(done)
            waiting += [] if self._fits_any(self.known, name) else [name]
        while any(self._fits_any(list(self.placed), name) for name in waiting):
            waiting = [name for name in waiting if name not in self.placed]

    def _fits_any(self, partners: Sequence[str] | Mapping[str, Pieces], name: str) -> bool:
        if name in self.placed or not any(self._compare(p, name) for p in partners):
            return False
        self.placed.append(name)
        return True

    def _compare(self, one: str, other: str) -> bool:
        """Compare two recordings, once; tell whether they fit."""
        for p in self.pairs:
            if {p.reference, p.other} == {one, other}:
                return p.accepted
        if one == other:
            return False
        mine, its = self.hear(one), self.hear(other)
        if mine is None or its is None:
            return False
        self.pairs.append(align(mine, its))
        return self.pairs[-1].accepted

    def close_loops(self) -> None:
        """Compare each placed recording with one or two others than the one it was placed by."""
        clocks = solve(self.known, self.pairs).clocks
        order = sorted(self.placed, key=lambda n: (_start_ns(clocks[n]), n))
        for one, other in pairwise(order):
            self._compare(one, other)
        if len(order) >= RING:
            self._compare(order[0], order[-1])
        else:
            self._compare_with_known(order)

    def _compare_with_known(self, names: Sequence[str]) -> None:
        for name in names:
            for partner in list(self.known)[:2]:
                self._compare(partner, name)

    def settle(self) -> Solution:
        """Solve; where loops do not close and nothing decides, measure more pairs first."""
        solution = solve(self.known, self.pairs)
        if any(not c.decided for c in solution.contradictions):
            for one, other in self._further(solution):
                self._compare(one, other)
            solution = solve(self.known, self.pairs)
        return solution

    def _further(self, solution: Solution) -> Iterator[tuple[str, str]]:
        """Yield pairs not compared yet that concern what is undecided."""
        open_ = [c.pair for c in solution.contradictions if not c.decided]
        concerned = {n for p in open_ for n in (p.reference, p.other)}
        compared = [{p.reference, p.other} for p in self.pairs]
        names = [*self.known, *self.placed]
        new = [(a, b) for a, b in combinations(names, 2) if {a, b} not in compared]
        yield from [(a, b) for a, b in new if a in concerned or b in concerned][:FURTHER_PAIRS]


def _start_ns(maps: Pieces) -> int:
    first = maps[0]
    return first.apply(first.range_ns[0])


def contradiction_words(contradiction: Contradiction) -> str:
    """Tell the operator of a pair that does not fit."""
    pair, off_ms = contradiction.pair, abs(contradiction.off_ns) / 1e6
    names = f"'{pair.reference}' and '{pair.other}'"
    if contradiction.decided:
        return (
            f"the sounds of {names} say something else than all other pairs, by {off_ms:.1f} ms: "
            "this pair was outvoted and moves nothing"
        )
    return (
        f"the pairs of recordings around {names} contradict each other by {off_ms:.1f} ms and "
        "nothing decides which of them is wrong: check these recordings on a clap or a flash"
    )
