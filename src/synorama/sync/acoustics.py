"""Clocks of cameras with the travel of sound taken out.

Sound says when it reached two microphones, and takes 2.9 ms for each metre: two clocks that agree
on a clap may be a room's length apart. Where the wearers' trajectories are known, their own speech
tells the difference: it leaves the mouth at a known place, at a time that their own glasses hear,
and reaches the camera after a way that changes as they walk. All windows of all wearers together
have one answer to where the camera stands and what its clock is.

`synorama.sync.own_voice` finds the windows, `synorama.sync.travel_rows` correlates them,
`synorama.sync.travel_search` finds where to begin, `synorama.sync.travel_fit` solves,
`synorama.sync.travel_leaps` tells where samples were lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.records import RecordingClock, SoundTravel
from synorama.sync import pieces
from synorama.sync.own_voice import Speech, Talker, own_speech
from synorama.sync.pieces import Pieces
from synorama.sync.travel_fit import Before, Fit, Model, fit, promising
from synorama.sync.travel_leaps import Loss, lost, meeting
from synorama.sync.travel_rows import Rows, correlate_speech
from synorama.sync.travel_search import Start, room_grid, starts
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "SPEED_OF_SOUND_M_S",
    "Heard",
    "Place",
    "Speech",
    "Talker",
    "hear_speech",
    "own_speech",
    "refine_camera",
]

SPEED_OF_SOUND_M_S = 343.0
LEAST_WINDOWS, LEAST_STAYS = 24, 4
FEWER_WINDOWS, FEWER_STAYS = 8, 2  # once its place and rate are known from another stretch
RIVAL = 1.0  # standard errors: a clock that the best leads by less cannot be ruled out
WIDEST_S = 5e-3  # by how much rivals may differ; an interval that holds them all is of no use
SAME_CLOCK_S = 5e-4
KNOWN_M = 0.5  # a position that is known so well is known
# A right position moves by more than that, in sigmas squared, once in 350 times, and what else is
# known of is not strained so far. Of 236 right ones none had a better place elsewhere.
MOST_MOVED2, MUCH_BETTER = 14.0, 1.25
EARLIER_S = (5e-4, 1e-3, 1.5e-3, 2e-3, 2.5e-3)
EARLIER_OF = 3  # solutions may be echoes': what is so much earlier is tried too
MICROPHONE_M = 0.03  # from the camera's middle to its microphone, one sigma along each axis
SPREAD_M = (4.0, 4.0, 0.7)  # of a camera that stands somewhere in the room, around the mouths
DRIFT_SIGMA = 100e-6  # of cameras' crystals
SAME_DRIFT_SIGMA = 2e-6  # from one segment of a recording to the next
BENDS_FROM_S, KNOT_S = 150.0, 60.0
Z95 = 1.96
SIGMA_FACTOR = 2.5  # against truth the formal error is too small: see the reliability table
FLOOR_MS = 0.03
FARTHEST_M = 8.0  # two devices in one room
TRAVEL_MS = 1e3 * FARTHEST_M / SPEED_OF_SOUND_M_S
HEARD = 0.25  # clarity of the mean window; scrambled windows of a session reach 0.04 to 0.29
ECHO_LATER_S = 8e-4  # an echo's way is that much longer; nearer clocks are one, seen differently
FARTHEST_HEARD_M = 12.0  # a camera that is found farther away is an echo's
UNKNOWN_MOST_MS = 1.2  # beyond, a wrong solution is as likely as the right one
UNKNOWN_FLOOR_MS = 3.0  # nobody measured where the camera stands: nothing below is claimed
RATE_SIGMA_PPM = 1.0
ELSEWHERE = (
    "by what it heard of the wearers it stood {off_m:.1f} m from the position that is given: check "
    "the position, its frame and its sigma"
)


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
class Place:
    """Where a camera stands that does not move: ``(3,)`` [m] in the world frame, and how surely.

    ``covariance_m2`` is ``(3, 3)``.
    """

    position_m: Float64
    covariance_m2: Float64


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """What a camera heard of the wearers' speech.

    Parameters
    ----------
    clock
        Its clock as sound alone has it.
    rough
        The same without bends, as ``rows`` use it.
    rows
        Its sound against each window of speech.
    talker_sigma_s
        ``(T,)`` one sigma of the clocks of the glasses.
    """

    clock: RecordingClock
    rough: Pieces
    rows: Rows
    talker_sigma_s: Float64


def hear_speech(speech: Speech, camera: MonoSound, clock: RecordingClock) -> Heard:
    """Find the wearers' speech in a camera's sound.

    Parameters
    ----------
    speech
        What the wearers said, from `own_speech`.
    camera
        What the camera heard, on its own clock.
    clock
        Its clock as sound alone has it: off by what sound travels, 80 ms at most.
    """
    rough = _straightened(clock.maps)
    sigmas = np.array([t.clock_sigma_s for t in speech.talkers])
    return Heard(clock, rough, correlate_speech(speech, camera, rough), sigmas)


def refine_camera(
    heard: Heard, place: Place | None, *, speed_m_s: float = SPEED_OF_SOUND_M_S
) -> SoundTravel:
    """Find a camera's clock from the wearers' own speech and the ways that it took.

    Parameters
    ----------
    heard
        From `hear_speech`.
    place
        Where the camera stands, as far as that is known; None if nobody knows.
    speed_m_s
        Of sound: 343 at 20 degrees, 0.6 more for each degree.

    Returns
    -------
    SoundTravel
        Not accepted where speech is too rare, too faint, or fits several clocks: then the old
        clock stands, and its interval, wider by ``losses_ns``.
    """
    found, whole = _followed(heard, place, _before(heard, place, speed_m_s))
    return found if whole is None else _Task(heard, place).judged([whole])


def _followed(
    heard: Heard, place: Place | None, before: Before
) -> tuple[SoundTravel, _Solved | None]:
    """Solve segment by segment, the longest first; where samples were lost a segment ends.

    With the result the solution of the whole is given, where that is the one to believe: nothing is
    sure of what a loss seemed to part.
    """
    task, whole = _Task(heard, place), None
    waiting, solved = sorted(heard.rough, key=_length_ns), list[_Solved]()
    while waiting:
        rough = waiting.pop()
        found = _solve(rough, _rows_of(heard, rough), before, is_first=not solved)
        if isinstance(found, str):
            return task.refused(found, solved), whole
        off_m = 0.0 if place is None or solved else _elsewhere_m(heard, found)
        if off_m:  # then what seems to be lost is not
            reason = ELSEWHERE.format(off_m=off_m)
            return _Task(heard, place).refused(reason, [found]), whole
        loss = lost(found.fit)
        if loss is not None:
            whole = whole or (found if heard.rough == (rough,) and not found.doubt else None)
            loss = _on(rough, loss)
            task = replace(task, losses=(*task.losses, loss))
            waiting = sorted([*waiting, *_parted(rough, loss)], key=_length_ns)
            continue
        solved.append(found)
        if found.doubt:
            return task.doubted(found.doubt, solved, complete=not waiting), whole
        whole = None
        before = _after(before, found.fit)
    return task.judged(solved), None


# --- before ----------------------------------------------------------------------------------


def _straightened(maps: Pieces) -> Pieces:
    """Return the clock without bends: these follow people who walk as well as the crystal."""
    rate = 1 + _slope(max(maps, key=_length_ns))
    return tuple(_straight(m, rate) for m in maps)


def _straight(clock: ClockMap, rate: float) -> ClockMap:
    first, last = clock.range_ns
    ends = pieces.apply([clock], np.array([first, last], np.int64))
    middle = (first + last) // 2
    knot = np.array([[middle, ends[0] + (ends[1] - ends[0]) // 2]], np.int64)
    return replace(clock, knots=knot, rate_before=rate, rate_after=rate, valid_ns=(first, last))


def _length_ns(clock: ClockMap) -> int:
    return clock.range_ns[1] - clock.range_ns[0]


def _slope(clock: ClockMap) -> float:
    """Return the rate of the session clock against the camera's, less one, over all."""
    first, last = clock.range_ns
    ends = pieces.apply([clock], np.array([first, last], np.int64))
    return float(ends[1] - ends[0] - (last - first)) / max(last - first, 1)


def _before(heard: Heard, place: Place | None, speed_m_s: float) -> Before:
    rows = heard.rows
    if place is None:
        middle = rows.mouth_m.mean(axis=0) if rows.count else np.zeros(3)
        covariance = np.diag(np.square(SPREAD_M))
    else:
        middle = np.asarray(place.position_m, np.float64)
        covariance = place.covariance_m2 + MICROPHONE_M**2 * np.eye(3)
    drift = _slope(heard.rough[0])
    return Before(middle, covariance, drift, DRIFT_SIGMA, heard.talker_sigma_s, speed_m_s)


def _after(before: Before, found: Fit) -> Before:
    """Return what is known once one segment is solved: the others have the same place and rate."""
    ends = found.model.knots_s[[0, -1]]
    slope = float(np.diff(found.clock_error_s(ends))[0] / (ends[1] - ends[0]))
    return replace(
        before,
        place_m=found.place_m,
        covariance_m2=found.place_covariance_m2,
        slope=slope,
        slope_sigma=SAME_DRIFT_SIGMA,
    )


def _rows_of(heard: Heard, rough: ClockMap) -> Rows:
    if heard.rough == (rough,):
        return heard.rows
    first, last = (int(t) for t in pieces.apply([rough], np.array(rough.range_ns)))
    return heard.rows.within(first, last)


def _on(rough: ClockMap, loss: Loss) -> Loss:
    """Return a loss whose times are the camera's."""
    back = rough.inverse()
    return replace(loss, after_ns=back.apply(loss.after_ns), before_ns=back.apply(loss.before_ns))


def _parted(rough: ClockMap, loss: Loss) -> tuple[ClockMap, ClockMap]:
    """Return a clock's two sides of a loss."""
    first, last = rough.range_ns
    at = loss.middle_ns
    return replace(rough, valid_ns=(first, at)), replace(rough, valid_ns=(at, last))


# --- solving ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
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


def _solve(rough: ClockMap, rows: Rows, before: Before, *, is_first: bool) -> _Solved | str:
    """Solve for one segment; say in words why there is nothing to solve."""
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
    return _Solved(
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
    return _direct(near) if _search(before) is KNOWN else fits[0]


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
    """Return the best solution from elsewhere that is heard better and strains nothing else."""
    before, heard = chosen.model.before, chosen.clarity.sum()
    for f in fits:
        strained = f.strain2 > MOST_MOVED2
        if f.clarity.sum() > heard and not strained and not _is_at(before, f.place_m):
            return f
    return None


def _elsewhere_m(heard: Heard, solved: _Solved) -> float:
    """Return how far from where it was said to stand speech puts a camera; 0 where it agrees."""
    found, before = solved.elsewhere or solved.fit, solved.fit.model.before
    if not _is_at(before, found.place_m):
        return float(np.linalg.norm(found.place_m - before.place_m))
    anywhere = _before(heard, None, before.speed_m_s)
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


def _late_s(found: Fit) -> float:
    return float(found.clock_error_s(found.model.knots_s).mean())


def _is_at(before: Before, place_m: Float64) -> bool:
    """Tell whether a place is where the camera was said to stand, as closely as that is known."""
    moved = place_m - before.place_m
    return float(moved @ np.linalg.inv(before.covariance_m2) @ moved) <= MOST_MOVED2


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


# --- the result ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """What was heard and given, and what seems to be lost without sync having noticed."""

    heard: Heard
    place: Place | None
    losses: tuple[Loss, ...] = ()

    def refused(self, reason: str, solved: Sequence[_Solved]) -> SoundTravel:
        """Keep the old clock; what seems to be lost counts if any segment is solved for sure."""
        sure = any(not s.doubt for s in solved)
        worst = min(solved, key=lambda s: s.score, default=None)
        return SoundTravel(
            self.heard.clock.recording,
            False,
            reason,
            worst.score if worst else 0.0,
            worst.score_needed if worst else 0.0,
            worst.runner_up if worst else 0.0,
            position_given=self.place is not None,
            losses_ns=_table(self.losses if sure else ()),
        )

    def judged(self, solved: Sequence[_Solved]) -> SoundTravel:
        interval_ms = max(_interval_ms(s) for s in solved)
        if self.place is not None:
            return self._accepted(solved, interval_ms)
        if interval_ms > UNKNOWN_MOST_MS:
            reason = (
                "nobody said where it stood, and from where they spoke the wearers tell its clock "
                f"to {interval_ms:.1f} ms only"
            )
            return self.doubted(reason, solved, complete=True)
        return self._accepted(solved, max(interval_ms, UNKNOWN_FLOOR_MS))

    def doubted(self, reason: str, solved: Sequence[_Solved], *, complete: bool) -> SoundTravel:
        """Give out what holds wherever the camera stood: speech was heard, its way is unknown."""
        heard = min(float(s.fit.clarity.mean()) for s in solved) >= HEARD
        if self.place is not None or not heard or not complete:
            return self.refused(reason, solved)
        found = self._accepted(solved, TRAVEL_MS)
        assert found.clock is not None
        basis = f"sound, {found.windows} windows, positions unknown"
        unknown = np.full(3, np.nan)
        return replace(
            found,
            reason=reason,
            clock=replace(found.clock, basis=basis),
            position_m=unknown,
            position_sigma_m=unknown,
        )

    def _accepted(self, solved: Sequence[_Solved], interval_ms: float) -> SoundTravel:
        solved, losses = _met(self.heard.rows, solved, self.losses)
        windows = sum(s.fit.windows for s in solved)
        maps = pieces.joined([_corrected(s) for s in solved])
        times, left = zip(*(_residuals(s.fit) for s in solved), strict=True)
        known = "known" if self.place is not None else "found by sound"
        last = solved[-1].fit
        refined = RecordingClock(
            self.heard.clock.recording,
            maps,
            "sound",
            interval_ms,
            self.heard.clock.p_match,
            max(m.residual_rms_ns for m in maps),
            f"sound, {windows} windows, positions {known}",
        )
        return SoundTravel(
            self.heard.clock.recording,
            True,
            "accepted",
            min(s.score for s in solved),
            max(s.score_needed for s in solved),
            max(s.runner_up for s in solved),
            windows,
            refined,
            self.place is not None,
            last.place_m,
            np.sqrt(np.diag(last.place_covariance_m2)),
            np.concatenate(times),
            np.concatenate(left),
            _table(losses),
        )


def _met(
    rows: Rows, solved: Sequence[_Solved], losses: Sequence[Loss]
) -> tuple[list[_Solved], list[Loss]]:
    """Let segments end where their own clocks meet, and tell what was lost there.

    A loss is found beside one clock, which need not be that of either side.
    """
    first, *others = sorted(solved, key=lambda s: s.rough.range_ns)
    out, told = [first], list[Loss]()
    for after in others:
        before = out[-1]
        begins_ns = after.rough.range_ns[0]
        if any(loss.middle_ns == begins_ns for loss in losses):
            spans = [pieces.apply([s.rough], np.array(s.rough.range_ns)) for s in (before, after)]
            both = rows.within(int(spans[0][0]), int(spans[1][1]))
            loss = _on(after.rough, Loss(*meeting(both, before.fit, after.fit), 0))
            out[-1], after = _ending(before, loss.middle_ns), _beginning(after, loss.middle_ns)
            at = np.array([loss.middle_ns], np.int64)
            there = [int(pieces.apply([_corrected(s)], at)[0]) for s in (out[-1], after)]
            told.append(replace(loss, lost_ns=there[1] - there[0]))
        out.append(after)
    return out, [loss for loss in told if abs(loss.lost_ns) >= pieces.SAME_NS]


def _ending(solved: _Solved, at_ns: int) -> _Solved:
    span = (solved.rough.range_ns[0], at_ns)
    return replace(solved, rough=replace(solved.rough, valid_ns=span))


def _beginning(solved: _Solved, at_ns: int) -> _Solved:
    span = (at_ns, solved.rough.range_ns[1])
    return replace(solved, rough=replace(solved.rough, valid_ns=span))


def _table(losses: Sequence[Loss]) -> Int64:
    """Return losses as `SoundTravel` has them."""
    rows = sorted((loss.after_ns, loss.before_ns, loss.lost_ns) for loss in losses)
    return np.array(rows, np.int64).reshape(-1, 3)


def _interval_ms(solved: _Solved) -> float:
    ends = _ends_s(solved.rough, solved.fit.model.rows)
    sigma_s = SIGMA_FACTOR * float(solved.fit.clock_sigma_s(ends).max())
    return FLOOR_MS + 1e3 * (Z95 * sigma_s + solved.rivals_s)


def _ends_s(rough: ClockMap, rows: Rows) -> Float64:
    """Return the ends of a segment and its middle in the time of the rows."""
    first, last = rough.range_ns
    at = np.array([first, (first + last) // 2, last], np.int64)
    return np.asarray((pieces.apply([rough], at) - rows.origin_ns) / NS_PER_S)


def _corrected(solved: _Solved) -> ClockMap:
    """Return the clock without its error: a line, or one that bends at the knots."""
    rough, found = solved.rough, solved.fit
    rows = found.model.rows
    first, last = rough.range_ns
    bends_ns = rows.origin_ns + np.rint(found.model.knots_s[1:-1] * NS_PER_S).astype(np.int64)
    bends = rough.inverse().apply(bends_ns)
    at = np.array([first, *bends[(bends > first) & (bends < last)], last], np.int64)
    early = pieces.apply([rough], at)
    error = found.clock_error_s((early - rows.origin_ns) / NS_PER_S)
    right = early - np.rint(error * NS_PER_S).astype(np.int64)
    rates = np.diff(right) / np.diff(at)
    sigma_s = float(found.clock_sigma_s(_ends_s(rough, rows)).max())
    left = found.residuals_s[np.isfinite(found.residuals_s)]
    return replace(
        rough,
        knots=np.column_stack([at, right]),
        rate_before=float(rates[0]),
        rate_after=float(rates[-1]),
        sigma_ns=SIGMA_FACTOR * sigma_s * NS_PER_S,
        residual_rms_ns=float(np.sqrt(np.mean(left**2))) * NS_PER_S if len(left) else 0.0,
        rate_sigma_ppm=RATE_SIGMA_PPM,
    )


def _residuals(found: Fit) -> tuple[Int64, Float64]:
    heard = np.isfinite(found.residuals_s)
    rows = found.model.rows
    times = rows.origin_ns + np.rint(rows.times_s[heard] * NS_PER_S).astype(np.int64)
    return times, found.residuals_s[heard] * NS_PER_S
