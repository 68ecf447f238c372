"""Which of many solutions is the camera's clock.

In a room echoes fit as well as direct sound, and from another place each clock may be another.
All starts are followed; what comes of them is weighed by how clearly speech is heard when it is
expected, by what it takes to believe it, and by that nothing comes before direct sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.travel_fit import Before, Fit, Model, fit, promising
from synorama.sync.travel_leaps import lost
from synorama.sync.travel_rows import Rows
from synorama.sync.travel_search import Start, room_grid, starts
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["Solved", "elsewhere_m", "solve"]

LEAST_WINDOWS, LEAST_STAYS = 24, 4
FEWER_WINDOWS, FEWER_STAYS = 8, 2  # once its place and rate are known from another stretch
RIVAL = 1.0  # standard errors: a clock that the best leads by less cannot be ruled out
WIDEST_S = 5e-3  # by how much rivals may differ; an interval that holds them all is of no use
SAME_CLOCK_S = 5e-4
KNOWN_M = 0.5  # a position that is known so well is known
# A right position moves by more than that, in sigmas squared, once in 350 times, and what else is
# known of is not strained so far. Half of them move by less than the second.
MOST_MOVED2, HARDLY_MOVED2 = 14.0, 2.4
MUCH_BETTER = 1.25  # of 236 right positions none had one elsewhere whose score was so much better
EARLIER_S = (5e-4, 1e-3, 1.5e-3, 2e-3, 2.5e-3)
EARLIER_OF = 3  # solutions may be echoes': what is so much earlier is tried too
BENDS_FROM_S, KNOT_S = 150.0, 60.0
ECHO_LATER_S = 8e-4  # an echo's way is that much longer; nearer clocks are one, seen differently
# Sigmas squared of a glasses' clock, from which a solution is doubted and to which one is not, and
# standard errors above nothing. Of 107 sessions whose clock truly was 0.9 ms off with one sigma of
# 0.25, three had an earlier solution by which all are heard so well; an echo's had it at 2.4.
STRAINED2, EASY2, HEARD_FAINTLY = 9.0, 4.0, 2.2
FARTHEST_HEARD_M = 12.0  # a camera that is found farther away is an echo's


@dataclass(frozen=True, slots=True)
class _Search:
    """How to look, and what to ask of what is found.

    Steps of lags, number of tilts, of starts, and of those that are followed to the end, how
    good the best of them will be, and the score that is needed. Sound of another session reaches
    0.06.
    """

    step_s: float
    slopes: int
    starts: int
    followed: int
    within_s: float
    score_needed: float


KNOWN = _Search(2.5e-4, 21, 12, 12, 5e-4, 0.3)
UNKNOWN = _Search(5e-4, 11, 60, 20, 1e-3, 1.8)


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The best solution for a piece of a rough clock.

    With how good the best other clock is over it, how far rivals are off, and the solution that
    is heard better from elsewhere than the camera was said to stand, if any.
    """

    rough: ClockMap
    fit: Fit
    runner_up: float
    rivals_s: float
    elsewhere: Fit | None
    score_needed: float

    @property
    def score(self) -> float:
        """Of the solution."""
        return self.fit.score

    @property
    def doubt(self) -> str:
        """Why it cannot be trusted; empty if it can."""
        if self.score < self.score_needed:
            return (
                "wearers' speech is not heard clearly enough when it is expected "
                f"(score {self.score:.2f}, needs {self.score_needed:.2f})"
            )
        if self.rivals_s > WIDEST_S:
            return f"wearers' speech fits clocks that are {1e3 * self.rivals_s:.1f} ms apart"
        return ""


def solve(rough: ClockMap, rows: Rows, before: Before, *, is_first: bool) -> Solved | str:
    """Solve for one segment; say in words why there is nothing to solve.

    Parameters
    ----------
    rough
        Its clock as sound alone has it.
    rows
        The camera's sound against the windows of speech of that segment.
    before
        What is known beforehand.
    is_first
        Whether no other segment of the recording is solved: less will do for the others.
    """
    windows, stays = (LEAST_WINDOWS, LEAST_STAYS) if is_first else (FEWER_WINDOWS, FEWER_STAYS)
    if rows.count < windows or rows.stays < stays:
        return (
            f"it heard only {rows.count} windows of wearers' own speech, from {rows.stays} places; "
            f"{windows} and {stays} are needed"
        )
    model = Model.of(rows, _knots(rows.times_s), before)
    fits = _fits(model)
    at_ns = _parting_ns(fits)
    if at_ns is not None:
        fits = sorted([*fits, *_from_sides(model, at_ns)], key=lambda f: -f.score)
    chosen = _chosen(fits)
    others = [f.score for f in fits if _apart_s(f, chosen) > SAME_CLOCK_S]
    return Solved(
        rough,
        chosen,
        max([0.0, *others]) / max(fits[0].score, 1e-9),
        max(_apart_s(f, chosen) for f in _rivals(fits)),
        _heard_elsewhere(fits, chosen),
        _search(before).score_needed,
    )


def _rivals(fits: Sequence[Fit]) -> list[Fit]:
    return [f for f in fits if fits[0].lead(f) < RIVAL]


def _chosen(fits: Sequence[Fit]) -> Fit:
    """Return the best solution; from a known place the one of direct sound among rivals."""
    before, rivals = fits[0].model.before, _rivals(fits)
    near = [f for f in rivals if _is_at(before, f.place_m)] or rivals
    return _of_all(fits, _direct(near)) if _search(before) is KNOWN else fits[0]


def _parting_ns(fits: Sequence[Fit]) -> int | None:
    """Return where to try either side by itself; None where the whole is solved well.

    What seems to be a loss, or a fit that is poor though the place is known, may be a wrong rate:
    a side, over which it matters less, tells.
    """
    chosen = _chosen(fits)
    loss = lost(chosen)
    if loss is not None:
        return loss.middle_ns
    search, rows = _search(chosen.model.before), chosen.model.rows
    if search is KNOWN and chosen.score < search.score_needed:
        return rows.origin_ns + round(float(np.median(rows.times_s)) * NS_PER_S)
    return None


def _from_sides(model: Model, at_ns: int) -> Iterator[Fit]:
    """Yield solutions that begin as either side of a moment is solved by itself."""
    rows = model.rows
    ends = (float(rows.times_s.min()), float(rows.times_s.max()))
    first, last = (rows.origin_ns + round(t * NS_PER_S) for t in ends)
    middle = np.array([rows.times_s.mean()])
    for side in (rows.within(first, at_ns), rows.within(at_ns, last)):
        if side.count >= LEAST_WINDOWS:
            best = _fits(Model.of(side, _knots(side.times_s), model.before))[0]
            slope = float(np.diff(best.clock_error_s(middle + np.array([0.0, 1.0])))[0])
            start = Start(float(best.clock_error_s(middle)[0]), slope, best.place_m)
            yield fit(model, start, within_s=UNKNOWN.within_s)


def _heard_elsewhere(fits: Sequence[Fit], chosen: Fit) -> Fit | None:
    """Return the best solution from elsewhere that is heard better and strains nothing else.

    Of one that hardly moves the camera, clearly better: an echo may be as loud as direct sound.
    """
    before = chosen.model.before
    needed = RIVAL if _moved2(before, chosen.place_m) <= HARDLY_MOVED2 else 0.0
    for f in fits:
        strained = f.strain2 > MOST_MOVED2
        if f.clearer(chosen) > needed and not strained and not _is_at(before, f.place_m):
            return f
    return None


def elsewhere_m(solved: Solved, anywhere: Before) -> float:
    """Return how far from where it was said to stand speech puts a camera; 0 where it agrees.

    Parameters
    ----------
    solved
        What was found with the place that was given.
    anywhere
        What is known beforehand without it.
    """
    found, before = solved.elsewhere or solved.fit, solved.fit.model.before
    if not _is_at(before, found.place_m):
        return float(np.linalg.norm(found.place_m - before.place_m))
    free = _fits(Model.of(found.model.rows, found.model.knots_s, anywhere))[0]
    better = free.score >= max(UNKNOWN.score_needed, MUCH_BETTER * found.score)
    if not better or _is_at(before, free.place_m):
        return 0.0
    return float(np.linalg.norm(free.place_m - before.place_m))


def _apart_s(one: Fit, other: Fit) -> float:
    """Return by how much two clocks differ at most."""
    knots = one.model.knots_s
    return float(np.abs(one.clock_error_s(knots) - other.clock_error_s(knots)).max())


def _direct(rivals: Sequence[Fit]) -> Fit:
    """Return the best of some solutions, or of those by which speech came clearly earlier.

    From a known place such a later one is an echo's, which may be the louder of the two: but
    nothing comes before direct sound.
    """
    best = rivals[0]
    for f in rivals[1:]:
        if _late_s(best) - _late_s(f) > ECHO_LATER_S:
            best = f
    return best


def _of_all(fits: Sequence[Fit], best: Fit) -> Fit:
    """Return the solution by which direct sound of all wearers is heard, be it faint.

    Where one is heard by a loud echo, that agrees with direct sound of the others once the glasses'
    clocks are strained. Such a solution gives way to an earlier one that needs no strain and hears
    all: before direct sound nobody is heard.
    """
    if best.clock_strain2 <= STRAINED2:
        return best
    for f in fits:
        easy = f.clock_strain2 < EASY2 and _is_at(best.model.before, f.place_m)
        if easy and _is_earlier(f, best) and f.faintest > HEARD_FAINTLY:
            return f
    return best


def _is_earlier(one: Fit, other: Fit) -> bool:
    """Tell whether by one solution speech came earlier all the time."""
    knots = one.model.knots_s
    return bool(np.all(one.clock_error_s(knots) < other.clock_error_s(knots)))


def _late_s(found: Fit) -> float:
    return float(found.clock_error_s(found.model.knots_s).mean())


def _is_at(before: Before, place_m: Float64) -> bool:
    """Tell whether a place is where the camera was said to stand, as closely as that is known."""
    return _moved2(before, place_m) <= MOST_MOVED2


def _moved2(before: Before, place_m: Float64) -> float:
    """Return how far a place is from where the camera was said to stand, in sigmas squared."""
    moved = place_m - before.place_m
    return float(moved @ np.linalg.inv(before.covariance_m2) @ moved)


def _search(before: Before) -> _Search:
    known = float(np.trace(before.covariance_m2)) < KNOWN_M**2
    return KNOWN if known else UNKNOWN


def _fits(model: Model) -> list[Fit]:
    """Return solutions from all starts, best first."""
    rows, before = model.rows, model.before
    search = _search(before)
    known = search is KNOWN
    places = before.place_m[np.newaxis] if known else room_grid(rows)
    begin = starts(
        rows, places, before.speed_m_s,
        step_s=search.step_s, slopes=search.slopes, most=search.starts,
    )  # fmt: skip
    begin = promising(model, begin, search.within_s, search.followed)
    # Only from a known place is there much beforehand that windows might outvote.
    ways = (False, True) if known else (False,)
    first = [
        fit(model, s, within_s=search.within_s, stays_alike=a) for s, a in product(begin, ways)
    ]
    first.sort(key=lambda f: -f.score)
    earlier = [
        fit(model, s, within_s=EARLIER_S[0], stays_alike=a)
        for f in first[:EARLIER_OF]
        for s, a in product(_earlier(f, before.place_m if known else f.place_m), ways)
    ]
    found = sorted([*first, *earlier], key=lambda f: -f.score)
    return found if known else [f for f in found if _in_room(f)] or found


def _in_room(found: Fit) -> bool:
    """Tell whether the camera is as near to all that was said as in a room."""
    ways = np.linalg.norm(found.model.rows.mouth_m - found.place_m, axis=1)
    return float(ways.max()) <= FARTHEST_HEARD_M


def _earlier(found: Fit, place_m: Float64) -> Iterator[Start]:
    """Yield starts before a solution, which may be an echo's."""
    ends = found.model.knots_s[[0, -1]]
    error = found.clock_error_s(ends)
    slope = float((error[1] - error[0]) / (ends[1] - ends[0]))
    for earlier in EARLIER_S:
        middle = found.clock_error_s(np.array([found.model.rows.times_s.mean()]))
        yield Start(float(middle[0]) - earlier, slope, place_m)


def _knots(times_s: Float64) -> Float64:
    first, last = float(times_s.min()), float(times_s.max())
    bends = last - first > BENDS_FROM_S
    return np.linspace(first, last, round((last - first) / KNOT_S) + 1 if bends else 2)
