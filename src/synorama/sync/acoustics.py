"""Clocks of cameras with the travel of sound taken out.

Sound says when it reached two microphones, and takes 2.9 ms for each metre: two clocks that agree
on a clap may be a room's length apart. Where the wearers' trajectories are known, their own speech
tells the difference: it leaves the mouth at a known place, at a time that their own glasses hear,
and reaches the camera after a way that changes as they walk. All windows of all wearers together
have one answer to where the camera stands and what its clock is.

`synorama.sync.own_voice` finds the windows, `synorama.sync.travel_rows` correlates them,
`synorama.sync.travel_search` finds where to begin, `synorama.sync.travel_fit` follows each start,
`synorama.sync.travel_solve` tells which solution to believe, `synorama.sync.travel_leaps` where
samples were lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.records import RecordingClock, SoundTravel
from synorama.sync import pieces
from synorama.sync.own_voice import Speech, Talker, own_speech
from synorama.sync.pieces import Pieces
from synorama.sync.travel_fit import Before, Fit
from synorama.sync.travel_leaps import Loss, lost, meeting
from synorama.sync.travel_rows import Rows, correlate_speech
from synorama.sync.travel_solve import Solved, elsewhere_m, solve
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
MICROPHONE_M = 0.03  # from the camera's middle to its microphone, one sigma along each axis
SPREAD_M = (4.0, 4.0, 0.7)  # of a camera that stands somewhere in the room, around the mouths
DRIFT_SIGMA = 100e-6  # of cameras' crystals
SAME_DRIFT_SIGMA = 2e-6  # from one segment of a recording to the next
Z95 = 1.96
SIGMA_FACTOR = 2.5  # against truth the formal error is too small: see the reliability table
FLOOR_MS = 0.03
FARTHEST_M = 8.0  # two devices in one room
TRAVEL_MS = 1e3 * FARTHEST_M / SPEED_OF_SOUND_M_S
HEARD = 0.25  # clarity of the mean window; scrambled windows of a session reach 0.04 to 0.29
UNKNOWN_MOST_MS = 1.2  # beyond, a wrong solution is as likely as the right one
UNKNOWN_FLOOR_MS = 3.0  # nobody measured where the camera stands: nothing below is claimed
RATE_SIGMA_PPM = 1.0
ELSEWHERE = (
    "by what it heard of the wearers it stood {off_m:.1f} m from the position that is given: check "
    "the position, its frame and its sigma"
)


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
) -> tuple[SoundTravel, Solved | None]:
    """Solve segment by segment, the longest first; where samples were lost a segment ends.

    With the result the solution of the whole is given, where that is the one to believe: nothing is
    sure of what a loss seemed to part.
    """
    task, whole = _Task(heard, place), None
    waiting, solved = sorted(heard.rough, key=_length_ns), list[Solved]()
    while waiting:
        rough = waiting.pop()
        found = solve(rough, _rows_of(heard, rough), before, is_first=not solved)
        if isinstance(found, str):
            return task.refused(found, solved), whole
        anywhere = _before(heard, None, before.speed_m_s)
        off_m = 0.0 if place is None or solved else elsewhere_m(found, anywhere)
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


# --- the result ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """What was heard and given, and what seems to be lost without sync having noticed."""

    heard: Heard
    place: Place | None
    losses: tuple[Loss, ...] = ()

    def refused(self, reason: str, solved: Sequence[Solved]) -> SoundTravel:
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

    def judged(self, solved: Sequence[Solved]) -> SoundTravel:
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

    def doubted(self, reason: str, solved: Sequence[Solved], *, complete: bool) -> SoundTravel:
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

    def _accepted(self, solved: Sequence[Solved], interval_ms: float) -> SoundTravel:
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
    rows: Rows, solved: Sequence[Solved], losses: Sequence[Loss]
) -> tuple[list[Solved], list[Loss]]:
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


def _ending(solved: Solved, at_ns: int) -> Solved:
    span = (solved.rough.range_ns[0], at_ns)
    return replace(solved, rough=replace(solved.rough, valid_ns=span))


def _beginning(solved: Solved, at_ns: int) -> Solved:
    span = (at_ns, solved.rough.range_ns[1])
    return replace(solved, rough=replace(solved.rough, valid_ns=span))


def _table(losses: Sequence[Loss]) -> Int64:
    """Return losses as `SoundTravel` has them."""
    rows = sorted((loss.after_ns, loss.before_ns, loss.lost_ns) for loss in losses)
    return np.array(rows, np.int64).reshape(-1, 3)


def _interval_ms(solved: Solved) -> float:
    ends = _ends_s(solved.rough, solved.fit.model.rows)
    sigma_s = SIGMA_FACTOR * float(solved.fit.clock_sigma_s(ends).max())
    return FLOOR_MS + 1e3 * (Z95 * sigma_s + solved.rivals_s)


def _ends_s(rough: ClockMap, rows: Rows) -> Float64:
    """Return the ends of a segment and its middle in the time of the rows."""
    first, last = rough.range_ns
    at = np.array([first, (first + last) // 2, last], np.int64)
    return np.asarray((pieces.apply([rough], at) - rows.origin_ns) / NS_PER_S)


def _corrected(solved: Solved) -> ClockMap:
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
