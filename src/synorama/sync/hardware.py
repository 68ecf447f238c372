"""Clocks that devices exchanged by radio or took from a common source.

A TICSync client and a SubGHz receiver note the other's device time beside their own. The notes
jitter, the exchange settles for about 45 s after it starts, and the clocks drift slowly apart;
so a map is fitted through the settled notes, bends with the drift, and is carried back over the
start at the settled rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.lines import RobustFit, Spline, fit_line, fit_spline, mad
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import Recording, SyncMode, TimeMapping

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["HardwareClock", "fit_mapping", "hardware_clock", "mapping_of", "utc_clock"]

SETTLE_S = 45.0  # vendor's documentation
LEAST_SETTLED_S = 10.0
EARLY_S = 120.0  # settled notes by which the start is judged
UNSETTLED_SIGMA_NS = 2.5e6
BLOCKS = 20  # parts in which a misfit is looked for
LEAST_JUMP_S = 2e-3
JUMP_SIDE = 5  # notes on each side of a jump
KNOT_S = 60.0
END_S = 180.0  # what the end rates are taken from
RATE_SIGMA_PPM = 0.5
LIMIT_NS = 3600 * NS_PER_S
UTC_AGREES_S = 2.0
APART_NS = 60 * NS_PER_S  # notes may begin before, and end after, the recording of the clock
# One sigma that no average of notes can undercut: TICSync is stated below 1 ms, SubGHz below
# 10 us; time code names frames of 1/30 s; UTC comes from a phone.
FLOOR_NS: dict[SyncMode, float] = {"tic_sync": 5e5, "subghz": 5e3, "timecode": 1e7, "utc": 5e7}


@dataclass(frozen=True, slots=True)
class HardwareClock:
    """A recording's clock by hardware.

    Parameters
    ----------
    mode
        Which hardware.
    maps
        One a segment, in order.
    basis
        What it rests on, in words.
    warnings
        What the operator should know.
    """

    mode: SyncMode
    maps: tuple[ClockMap, ...]
    basis: str
    warnings: tuple[str, ...] = ()


# --- one mapping -----------------------------------------------------------------------------


def fit_mapping(mapping: TimeMapping, target: str, source: str) -> HardwareClock | None:
    """Fit ``C_target_source`` through the notes of another clock.

    Returns
    -------
    HardwareClock or None
        None where fewer than two notes are usable.
    """
    pairs = _usable(mapping.pairs)
    if len(pairs) < 2:
        return None
    parts = _split_at_jumps(pairs)
    settles = mapping.mode == "tic_sync"
    warnings: list[str] = []
    maps = []
    for number, part in enumerate(parts):
        first = _settled_from(part) if settles and number == 0 else 0
        clock = _fit(part[first:], target, source, FLOOR_NS[mapping.mode])
        if settles and number == 0 and _seconds(part)[-1] < SETTLE_S + LEAST_SETTLED_S:
            clock = _unsettled(clock)
            warnings.append(
                f"{source}: the clocks had no time to settle (45 s after the start); times may be "
                "off by more than a millisecond"
            )
        maps.append(clock)
    warnings += [_jump_words(source, a, b) for a, b in pairwise(maps)]
    basis = f"{len(pairs)} notes of {mapping.mode}, rms {_rms(maps) / 1e3:.0f} us"
    return HardwareClock(mapping.mode, tuple(maps), basis, tuple(warnings))


def _usable(pairs: Int64) -> Int64:
    """Drop notes that say nothing (-1) and notes that repeat or go back, in either clock."""
    pairs = pairs[(pairs >= 0).all(axis=1)]
    keep = np.ones(len(pairs), bool)
    keep[1:] = (np.diff(pairs[:, 0]) > 0) & (np.diff(pairs[:, 1]) != 0)
    return pairs[keep]


def _seconds(pairs: Int64) -> Float64:
    return np.asarray((pairs[:, 0] - pairs[0, 0]) / NS_PER_S, np.float64)


def _lead(pairs: Int64) -> Float64:
    """Return by how much the other clock leads, in seconds, relative to the first note."""
    lead = pairs[:, 1] - pairs[:, 0]
    return np.asarray((lead - lead[0]) / NS_PER_S, np.float64)


def _split_at_jumps(pairs: Int64) -> list[Int64]:
    """Split where the other clock was set anew: notes on both sides agree on a step."""
    t, lead = _seconds(pairs), _lead(pairs)
    if len(pairs) < 2 * JUMP_SIDE:
        return [pairs]
    slope = float(np.median(np.diff(lead) / np.diff(t)))
    flat = lead - slope * t
    sides = np.lib.stride_tricks.sliding_window_view(flat, JUMP_SIDE)
    middle = np.median(sides, axis=1)
    step = np.abs(middle[JUMP_SIDE:] - middle[:-JUMP_SIDE])
    noise = mad(np.diff(flat))
    # Settling is a quick slide, not a step: the note itself must leap as well.
    leap = np.abs(np.diff(flat))[JUMP_SIDE - 1 : JUMP_SIDE - 1 + len(step)]
    least = max(LEAST_JUMP_S, 8 * noise)
    at = np.flatnonzero((step > least) & (leap > 0.5 * least)) + JUMP_SIDE
    cuts = [
        int(k) for k in at if leap[k - JUMP_SIDE] == leap[_around(k - JUMP_SIDE, len(leap))].max()
    ]
    return [part for part in np.split(pairs, cuts) if len(part) >= 2]


def _around(k: int, count: int) -> slice:
    return slice(max(0, k - JUMP_SIDE), min(count, k + JUMP_SIDE + 1))


def _settled_from(pairs: Int64) -> int:
    """Return the first note from which on all follow the settled line."""
    t, lead = _seconds(pairs), _lead(pairs)
    judge = (t >= SETTLE_S) & (t < SETTLE_S + EARLY_S)
    early_s = SETTLE_S
    if t[-1] < SETTLE_S + LEAST_SETTLED_S or judge.sum() < 8:
        early_s = float(t[-1]) / 2
        judge = t >= early_s
        if judge.sum() < 3:
            return 0
    line = fit_line(t[judge], lead[judge], np.ones(int(judge.sum())), float(t[judge].mean())).line
    off = np.abs(lead - line(t))
    smooth = np.array([np.median(off[max(0, k - 2) : k + 3]) for k in range(len(off))])
    allowed = max(4 * mad((lead - line(t))[judge]), 2e-5)
    wild = np.flatnonzero((smooth > allowed) & (t < early_s))
    return int(wild[-1]) + 1 if len(wild) else 0


def _fit(pairs: Int64, target: str, source: str, floor_ns: float) -> ClockMap:
    if len(pairs) < 3:
        return _two_notes(pairs, target, source, floor_ns)
    t, lead = _seconds(pairs), _lead(pairs)
    weight = np.ones(len(t))
    fit = fit_line(t, lead, weight, float(t.mean()), floor_s=1e-7)
    spline = _bends(t, fit)
    at = np.array([0.0, t[-1]]) if spline is None else spline.at_s
    lag = fit.line(at) + (spline(at) if spline else 0.0)
    scatter = spline.scatter_s if spline else fit.scatter_s
    before, rate_sigma = _end_rate(t, lead, t <= END_S, fit)
    after, after_sigma = _end_rate(t, lead, t >= t[-1] - END_S, fit)
    knots = _knots(pairs, at, lag)
    return ClockMap(
        target, source, knots, 1 + before, 1 + after,
        sigma_ns=max(_sigma_s(lead - _line_through(t, at, lag), scatter) * NS_PER_S, floor_ns),
        residual_rms_ns=scatter * NS_PER_S,
        valid_ns=(int(pairs[0, 0]), int(pairs[-1, 0])),
        rate_sigma_ppm=max(RATE_SIGMA_PPM, 3e6 * max(rate_sigma, after_sigma)),
        limit_ns=LIMIT_NS,
    )  # fmt: skip


def _line_through(t: Float64, at_s: Float64, lag_s: Float64) -> Float64:
    return np.interp(t, at_s, lag_s)


def _sigma_s(residuals_s: Float64, scatter_s: float) -> float:
    """Return one sigma of the line, also where it does not follow what the clocks did.

    Independent noise averages out over all notes; a misfit of shape does not, and shows in the
    means of stretches.
    """
    blocks = np.array_split(residuals_s, min(BLOCKS, max(1, len(residuals_s) // 4)))
    misfit = float(np.max(np.abs([np.median(b) for b in blocks])))
    return max(3 * scatter_s / float(np.sqrt(len(residuals_s))), misfit)


def _knots(pairs: Int64, at_s: Float64, lead_s: Float64) -> Int64:
    source = pairs[0, 0] + np.rint(at_s * NS_PER_S).astype(np.int64)
    lead = pairs[0, 1] - pairs[0, 0] + np.rint(lead_s * NS_PER_S).astype(np.int64)
    return np.column_stack([source, source + lead])


def _two_notes(pairs: Int64, target: str, source: str, floor_ns: float) -> ClockMap:
    """Return the line through two notes, as unsure as two notes are."""
    apart, other = (int(d) for d in pairs[1] - pairs[0])
    rate = other / apart
    return ClockMap(
        target, source, pairs, rate, rate, sigma_ns=2 * floor_ns,
        rate_sigma_ppm=max(RATE_SIGMA_PPM, 2e6 * floor_ns / apart), limit_ns=LIMIT_NS,
    )  # fmt: skip


def _bends(t: Float64, fit: RobustFit) -> Spline | None:
    """Return the bends of the drift, where the notes are dense enough to show them."""
    count = int(t[-1] / KNOT_S)
    if count < 2 or len(t) < 10 * count:
        return None
    return fit_spline(
        t, fit.residuals_s, np.ones(len(t)), np.linspace(0, t[-1], count + 1), floor_s=1e-7
    )


def _end_rate(
    t: Float64, lead: Float64, near: NDArray[np.bool_], fit: RobustFit
) -> tuple[float, float]:
    """Return the slope near an end and its sigma."""
    if near.sum() >= 8:
        fit = fit_line(
            t[near], lead[near], np.ones(int(near.sum())), float(t[near].mean()), floor_s=1e-7
        )
    return fit.line.slope, fit.slope_sigma


def _unsettled(clock: ClockMap) -> ClockMap:
    return replace(clock, sigma_ns=max(clock.sigma_ns, UNSETTLED_SIGMA_NS), rate_sigma_ppm=20.0)


def _rms(maps: list[ClockMap]) -> float:
    return max(m.residual_rms_ns for m in maps)


def _jump_words(source: str, before: ClockMap, after: ClockMap) -> str:
    at = after.range_ns[0]
    by = (after.apply(at) - before.apply(at)) / 1e6
    return f"{source}: the other clock leaps by {by:.1f} ms at device time {at / 1e9:.1f} s"


# --- two recordings --------------------------------------------------------------------------


def mapping_of(recording: Recording, mode: SyncMode) -> TimeMapping | None:
    """Return what the device noted of that clock, None if nothing."""
    return next((m for m in recording.time_mappings if m.mode == mode and len(m.pairs)), None)


def hardware_clock(
    reference: Recording, other: Recording, rivals: Sequence[Recording] = ()
) -> HardwareClock | str:
    """Return ``C_reference_other`` by hardware, or in words why there is none.

    Direct notes of the reference's clock come first; then clocks that both took notes of.

    Parameters
    ----------
    reference, other
        Whose clock, and who took notes.
    rivals
        All other recordings that gave the time. Glasses that restart count anew, often over the
        same numbers: notes that may be of either start are worth nothing.
    """
    modes: tuple[tuple[SyncMode, str, str], ...] = (
        ("subghz", "broadcaster", "receiver"),
        ("tic_sync", "server", "client"),
    )
    why = ["it took no notes of another clock"]
    for mode, giver, taker in modes:
        mapping = mapping_of(other, mode)
        if mapping is None:
            why += [f"it is a {taker} without time mapping"] * (other.sync_role == taker)
        elif not _same_session(reference, other):
            why.append("the shared session ids differ: the glasses were not recorded together")
        elif reference.sync_role == giver:
            found = _of_reference(mapping, reference, other, rivals)
            if isinstance(found, HardwareClock):
                return found
            why.append(found)
        else:
            why.append(f"'{reference.id}' is not the {giver} whose clock it noted")
    for common in ("subghz", "tic_sync", "timecode"):
        clock = _through_common(reference, other, common)
        if clock is not None:
            return clock
    return why[-1]


def _of_reference(
    mapping: TimeMapping, reference: Recording, other: Recording, rivals: Sequence[Recording]
) -> HardwareClock | str:
    """Fit the notes that are of the reference's clock, or say why there are none."""
    clock = fit_mapping(mapping, reference.id, other.id)
    if clock is None:
        return "its time mapping holds no usable note"
    ours = _of_this_take(clock, reference)
    if ours is None:
        return f"it noted no time at which '{reference.id}' recorded: those glasses were restarted"
    fitting = [r for r in rivals if r is not other and _may_be_of(ours, r)]
    if not fitting or _told_by_utc(ours, other, reference, fitting):
        return ours
    names = ", ".join(f"'{r.id}'" for r in (reference, *fitting))
    return (
        f"the glasses that gave the time were restarted, and what it noted may be of any of these "
        f"starts: {names}"
    )


def _may_be_of(clock: HardwareClock, giver: Recording) -> bool:
    """Return whether the notes name times at which another recording that gave time ran, too."""
    if not giver.tracks:
        return False
    return any(_shared_ns(m, giver) > 0 for m in clock.maps)


def _told_by_utc(
    clock: HardwareClock, other: Recording, reference: Recording, rivals: Sequence[Recording]
) -> bool:
    """Return whether wall-clock times fit the reference and none of its rivals."""
    if not _utc_fits(clock, other, reference):
        return False
    return all(_utc_fits(clock, other, r) is False for r in rivals)


def _utc_fits(clock: HardwareClock, other: Recording, giver: Recording) -> bool | None:
    """Return whether both recordings' wall-clock times agree, if the notes are of this giver's."""
    mine, its = giver.start_utc, other.start_utc
    if mine is None or its is None:
        return None
    there = replace(clock.maps[0], limit_ns=None).apply(its.device_ns)
    off_s = (its.utc_ns - mine.utc_ns - (there - mine.device_ns)) / NS_PER_S
    return abs(off_s) < UTC_AGREES_S + 3 * float(np.hypot(mine.sigma_s, its.sigma_s))


def _of_this_take(clock: HardwareClock, giver: Recording) -> HardwareClock | None:
    """Keep the notes of the giver's clock as it ran while the giver recorded, if there are any.

    Glasses that restart count anew, while those that note their time go on noting: what was noted
    of another take says nothing of this one's clock.
    """
    within = [_shared_ns(m, giver) for m in clock.maps]
    kept = [m for m, shared in zip(clock.maps, within, strict=True) if shared > 0]
    if any(a.apply(a.range_ns[1]) > b.apply(b.range_ns[0]) for a, b in pairwise(kept)):
        kept = [clock.maps[int(np.argmax(within))]]  # one clock does not go back
    if not kept:
        return None
    if len(kept) == len(clock.maps):
        return clock
    warning = (
        f"{kept[0].source}: some of its notes are of another start of '{giver.id}' and were left "
        "out: those glasses were restarted in the middle"
    )
    return replace(clock, maps=tuple(kept), warnings=(*clock.warnings, warning))


def _shared_ns(clock: ClockMap, giver: Recording) -> int:
    """Return for how long a segment's notes and the giver's recording overlap; all is well at 1."""
    if giver.first_ns is None or giver.last_ns is None:
        return 1
    first, last = (int(clock.apply(t)) for t in clock.range_ns)
    return min(last, giver.last_ns + APART_NS) - max(first, giver.first_ns - APART_NS)


def utc_clock(reference: Recording, other: Recording) -> HardwareClock | None:
    """Return ``C_reference_other`` by the UTC that both noted: coarse, a last resort."""
    return _through_common(reference, other, "utc")


def _same_session(a: Recording, b: Recording) -> bool:
    ids = {a.shared_session_id, b.shared_session_id} - {None, ""}
    return len(ids) < 2


def _through_common(reference: Recording, other: Recording, mode: SyncMode) -> HardwareClock | None:
    """Join two recordings by a third clock that both noted."""
    mine, its = mapping_of(reference, mode), mapping_of(other, mode)
    exchanged = mode in ("tic_sync", "subghz")
    if mine is None or its is None or (exchanged and not _same_session(reference, other)):
        return None
    a = fit_mapping(mine, mode, reference.id)
    b = fit_mapping(its, mode, other.id)
    if a is None or b is None or len(a.maps) > 1 or len(b.maps) > 1:
        return None
    joined = a.maps[0].inverse() @ b.maps[0]
    return HardwareClock(
        mode, (joined,), f"both noted the same {mode} clock; {b.basis}", a.warnings + b.warnings
    )
