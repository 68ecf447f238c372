"""Two sounds of one room: how one device's clock runs on the other's, with the evidence.

`align` is a pure function of two sounds and always gives the same answer. It searches without a
limit on the offset, accepts only what many short windows agree on against chance, refuses what
fits at two places, follows jumps and wander, and says how sure it is. What it measures is when
the *same sound reached both microphones*: sound travels one metre in 2.9 ms, so clocks of devices
that stand apart are known no better than that until their positions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.records import PairEvidence
from synorama.sync import certainty
from synorama.sync.certainty import SIGMA_FACTOR, SIGMA_FLOOR_S, Evidence
from synorama.sync.coarse import Coarse, search
from synorama.sync.features import band_features
from synorama.sync.fine import Fine, refine
from synorama.sync.jumps import Segment, find_segments
from synorama.sync.lines import Line
from synorama.sync.short import LEAST_S, SHORT_S, ShortPlace, place_short
from synorama.sync.verify import Verified, common_span, verify
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from synorama.media.audio import MonoSound

__all__ = ["SCORE_NEEDED", "align"]

NOTHING_STANDS_OUT = "windows agree on an offset, but no common peak stands out"
SEVERAL_PLACES = "the same sounds fit at more than one offset (repeated music, hum?)"
ECHO_WORDS = "echoes may put it up to {ms:.0f} ms off"
SCORE_NEEDED = 6.0  # minus log10 of the probability of chance
SCORE_WITH_COARSE = 3.0  # where the whole recordings' envelopes agree besides
COARSE_CLEAR = 9.0
# Notes of two songs may agree as well as one sound does; their loudness does not (z of 3 to 4).
COARSE_LEAST = 5.0
ONLY_NOTES = (
    "the same notes or tones sound in both, but loudness does not rise and fall together "
    "(other music, hum?)"
)
# One song in two rooms, each with its own talk: three of 400 pairs had more (3.5, 3.6, and 3.8 at a
# place where nothing fitted). Of one room's sound, 20 s and more down to 0 dB, 30 of 289 pairs do
# not reach it: they are flagged.
LEAST_LIKENESS = 3.2
PLAYED_WORDS = (
    "what they share may have been played in both (a song, a broadcast), or noise hides it"
)
LONG_LEAP_S = 3.0
LEAPS_WORDS = (
    "the clock leaps by {leap_s:.0f} s: a recorder paused or lost so long, or what they share "
    "repeats (a song)"
)
UNLIKELY = (
    "what they share may as well be repeated, or played in both, as heard at one time "
    "(p_match {p:.2f}, needs {needed:g})"
)
LEAST_AGREEING = 5
# Of 135 pairs of one sound the next place came to 0.32 of the best, of two alarms to 0.72.
RUNNER_UP = 0.5
# Songs that play in both, beside different talk, reach 0.6 to 0.8; of 467 pairs of one sound, four
# that noise drowns do not reach it.
LEAST_P_MATCH = 0.7
REPEATS = 0.9
UNHEARD_S = 60.0
PAUSE_S = 1.0  # a leap is told to half of that, or its pause is named
STACK_Z = 5.0  # reverberant rooms, where only many windows convince, come close to it
BEYOND_DOUBT = 30.0
SAME_PLACE_S = 0.05
# Sounds of a few seconds: unrelated ones reached z = 19, related ones mostly 50 and more.
SHORT_Z_PER_POINT = 5.0
SHORT_RUNNER_UP = 0.6
SHORT_AGREEING = 2
SHORT_RATE_SIGMA_PPM = 50.0
# An overlap of seconds may lock onto an echo, 2 to 5 ms late.
ECHO_OVERLAP_S = 20.0
ECHO_SECOND = 0.7
Z95 = 1.96
ECHO_Z = 9.0
ECHO_SIGMA_S = 2.5e-3
RATE_SIGMA_PPM = 1.0  # how much a crystal's rate may change beyond the range that was seen
LIMIT_NS = 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class _Search:
    """The best place, the others, and the score with what it needs."""

    best: Verified
    others: tuple[Verified, ...]
    score: float
    needed: float
    overlap_s: float

    def evidence(self, runner_up: float = 0.0) -> Evidence:
        """Return what speaks for the best place."""
        like = certainty.likeness(self.best.coarse_z, self.overlap_s)
        return Evidence(self.score, like, runner_up)

    def joined(self, places_s: Sequence[float], at_s: float) -> tuple[_Search, float]:
        """Return the search with all places that the segments of one recording explain as one.

        With it the rank of the best place, over the winner's, that no segment explains.
        """
        places = [*places_s, float(self.best.line(at_s))]
        theirs = [any(abs(v.line(at_s) - p) <= SAME_PLACE_S for p in places) for v in self.others]
        parts = [v for v, own in zip(self.others, theirs, strict=True) if own]
        rest = [v.rank for v, own in zip(self.others, theirs, strict=True) if not own]
        best = replace(self.best, coarse_z=self.best.coarse_z + sum(v.coarse_z for v in parts))
        score = self.score - sum(v.log10_p for v in parts)
        runner_up = max(rest, default=0.0) / max(self.best.rank, 1e-9)
        return replace(self, best=best, score=score), runner_up


def align(reference: MonoSound, other: MonoSound) -> PairEvidence:
    """Place one sound on another's clock.

    Parameters
    ----------
    reference, other
        Both at one rate; names must differ, they name the clocks.

    Returns
    -------
    PairEvidence
        ``maps`` carry the other's device times [ns] to the reference's. If it was not accepted,
        the maps are empty, and ``reason`` and the scores say why.
    """
    if reference.rate_hz != other.rate_hz:
        raise ValueError(f"rates differ: {reference.rate_hz} and {other.rate_hz} Hz")
    unusable = _unusable(reference) or _unusable(other)
    if unusable:
        return PairEvidence(reference.name, other.name, False, unusable, 0.0, SCORE_NEEDED)
    if min(reference.duration_s, other.duration_s) < SHORT_S:
        return _align_short(reference, other)
    coarse = search(band_features(reference), band_features(other))
    found = _judge_all(reference, other, coarse)
    if found is None:
        return _refused(reference, other, "no two windows agree on an offset")
    if found.score < found.needed or found.best.agreeing < LEAST_AGREEING:
        return _refused(reference, other, "no common sound", found)
    if found.best.coarse_z < COARSE_LEAST:
        return _refused(reference, other, ONLY_NOTES, found, ambiguous=True)
    segments, fits = _refine_all(reference, other, coarse, found)
    if not fits:
        return _refused(reference, other, "too little overlap", found)
    return _judge_fits(reference, other, found, fits, _pauses(segments))


def _unusable(sound: MonoSound) -> str:
    if sound.duration_s < LEAST_S:
        return f"'{sound.name}' is only {sound.duration_s:.2f} s long, {LEAST_S:g} s needed"
    silent = np.count_nonzero(sound.samples) < 0.5 * sound.rate_hz
    return f"'{sound.name}' is silent" if silent else ""


def _align_short(reference: MonoSound, other: MonoSound) -> PairEvidence:
    """Place a sound of a few seconds: an offset only, no drift can be seen."""
    place = place_short(reference, other)
    score = place.z / SHORT_Z_PER_POINT
    belongs = certainty.p_match_of_seconds(score, place.runner_up)
    clear = place.runner_up < SHORT_RUNNER_UP
    if score < SCORE_NEEDED or not clear or place.agreeing < SHORT_AGREEING:
        several = score >= SCORE_NEEDED and not clear
        reason = SEVERAL_PLACES if several else "no common sound"
        return PairEvidence(
            reference.name, other.name, False, reason, score, SCORE_NEEDED, place.runner_up,
            ambiguous=several, p_match=belongs,
        )  # fmt: skip
    clock = _short_clock(reference, other, place)
    reason = f"accepted; only seconds of sound, drift unknown, {_echo_words()}"
    return PairEvidence(
        reference.name, other.name, True, reason, score, SCORE_NEEDED, place.runner_up,
        place.agreeing, ambiguous=True, drift_ppm=0.0,
        offset_ns=_offset_at_zero(reference, other, Line(place.lag_s)),
        sigma_ns=clock.sigma_ns, maps=(clock,), p_match=belongs,
    )  # fmt: skip


def _short_clock(reference: MonoSound, other: MonoSound, place: ShortPlace) -> ClockMap:
    first_s, last_s = common_span(reference, other, Line(place.lag_s))
    first = other.time_ns(first_s)
    return ClockMap.affine(
        reference.name,
        other.name,
        offset_ns=reference.time_ns(first_s + place.lag_s) - first,
        anchor_ns=first,
        sigma_ns=ECHO_SIGMA_S * NS_PER_S,
        valid_ns=(first, max(first, other.time_ns(last_s))),
        rate_sigma_ppm=SHORT_RATE_SIGMA_PPM,
        limit_ns=LIMIT_NS,
    )


def _judge_all(reference: MonoSound, other: MonoSound, coarse: Coarse) -> _Search | None:
    """Verify the candidates; stop early at one that leaves no doubt."""
    judged: list[Verified] = []
    for c in coarse.candidates:
        span = common_span(reference, other, c.line)
        verified = verify(reference, other, c.line, span, c.z)
        if verified is not None:
            judged.append(verified)
        if len(judged) > 1 and judged[0].coarse_z > 3 * c.z and judged[0].log10_p < -8:
            break
    if not judged:
        return None
    best, *others = sorted(judged, key=lambda v: -v.rank)
    score = max(0.0, -(best.log10_p + float(np.log10(2 * len(judged)))))
    needed = SCORE_WITH_COARSE if best.coarse_z > COARSE_CLEAR else SCORE_NEEDED
    first, last = common_span(reference, other, best.line)
    return _Search(best, tuple(others), score, needed, last - first)


def _refine_all(
    reference: MonoSound, other: MonoSound, coarse: Coarse, found: _Search
) -> tuple[tuple[Segment, ...], tuple[Fine, ...]]:
    best = found.best
    span = common_span(reference, other, best.line)
    segments = find_segments(reference, other, best, found.others, coarse, span)
    tried = (refine(reference, other, s.line, s.span_s, s.tolerance_s) for s in segments)
    fits = tuple(f for f in tried if f is not None)
    # A stretch in which nothing is heard has no line of its own: the others' run on over it.
    return segments, tuple(f for f in fits if len(f.times_s)) or fits


def _pauses(segments: Sequence[Segment]) -> Iterator[str]:
    """Say in words of which leaps nothing that is heard tells the moment."""
    for first, last in (s.begins_s for s in segments if s.begins_s):
        if last - first > PAUSE_S:
            yield f"the clock leaps somewhere from {first:.1f} to {last:.1f} s, in a pause"


def _judge_fits(
    reference: MonoSound,
    other: MonoSound,
    found: _Search,
    fits: Sequence[Fine],
    pauses: Iterable[str],
) -> PairEvidence:
    """Refuse what fits elsewhere as well, or does not stand out; else give the maps."""
    longest = max(fits, key=lambda f: f.span_s[1] - f.span_s[0])
    middle = other.duration_s / 2
    found, runner_up = found.joined([float(f.line(middle)) for f in fits], middle)
    evidence = found.evidence(runner_up)
    # Hum repeats within what a room echoes, but does not rise and fall: where loudness does, that
    # tells one place, and what rivals its peak are echoes.
    hums = longest.repeats >= REPEATS and evidence.likeness < LEAST_LIKENESS
    if runner_up >= RUNNER_UP or hums:
        return _refused(reference, other, SEVERAL_PLACES, found, runner_up, ambiguous=True)
    flat = longest.stack_z <= STACK_Z and found.score < BEYOND_DOUBT
    if flat or len(longest.times_s) < LEAST_AGREEING:
        return _refused(reference, other, NOTHING_STANDS_OUT, found, runner_up)
    belongs = certainty.p_match(evidence)
    # Leaps too small to be places of their own leave the evidence of a part only.
    if len(fits) == 1 and belongs < LEAST_P_MATCH:
        return _refused(reference, other, _unlikely(belongs), found, runner_up, ambiguous=True)
    maps = tuple(_clock(reference, other, f) for f in fits)
    times = np.concatenate([f.times_s for f in fits])
    played = [PLAYED_WORDS] if len(fits) == 1 and evidence.likeness < LEAST_LIKENESS else []
    played += _long_leaps(fits)
    doubts = [*_doubts(fits), *pauses, *played]
    return PairEvidence(
        reference=reference.name,
        other=other.name,
        accepted=True,
        reason="; ".join(["accepted", *doubts]),
        score=found.score,
        score_needed=found.needed,
        runner_up=runner_up,
        windows=len(times),
        ambiguous=bool(played) or any(_echo(f) for f in fits),
        offset_ns=_offset_at_zero(reference, other, longest.line),
        drift_ppm=longest.line.slope * 1e6,
        sigma_ns=max(m.sigma_ns for m in maps),
        maps=maps,
        window_times_ns=other.start_ns + np.rint(times * NS_PER_S).astype(np.int64),
        residuals_ns=np.concatenate([f.residuals_s for f in fits]) * NS_PER_S,
        coarse_z=found.best.coarse_z,
        likeness=evidence.likeness,
        p_match=belongs,
    )


def _unlikely(p_match: float) -> str:
    return UNLIKELY.format(p=p_match, needed=LEAST_P_MATCH)


def _doubts(fits: Sequence[Fine]) -> list[str]:
    """Say in words what an operator should look at."""
    echoes = [_echo_sigma_s(f) for f in fits if _echo(f)]
    doubts = [_echo_words(max(echoes))] if echoes else []
    for f in fits:
        times = np.concatenate([[f.span_s[0]], f.times_s, [f.span_s[1]]])
        k = int(np.argmax(np.diff(times)))
        if times[k + 1] - times[k] > UNHEARD_S:
            doubts.append(f"nothing in common from {times[k]:.0f} to {times[k + 1]:.0f} s")
    return doubts


def _long_leaps(fits: Sequence[Fine]) -> list[str]:
    """Say in words how far the clock leaps, where that is farther than recorders stumble."""
    ends = ((a, b, np.array([b.span_s[0]])) for a, b in pairwise(fits))
    leaps = [float((b.lag(at) - a.lag(at))[0]) for a, b, at in ends]
    longest = max(leaps, key=abs, default=0.0)
    return [LEAPS_WORDS.format(leap_s=longest)] if abs(longest) > LONG_LEAP_S else []


def _echo(fit: Fine) -> bool:
    short = fit.span_s[1] - fit.span_s[0] < ECHO_OVERLAP_S
    return fit.second >= ECHO_SECOND or (short and fit.stack_z < ECHO_Z)


def _echo_sigma_s(fit: Fine) -> float:
    """Return one sigma where echoes rival direct sound: any of the peaks may be the right one."""
    return max(ECHO_SIGMA_S, fit.rivals_s / Z95)


def _echo_words(sigma_s: float = ECHO_SIGMA_S) -> str:
    return ECHO_WORDS.format(ms=1e3 * Z95 * sigma_s)


def _clock(reference: MonoSound, other: MonoSound, fit: Fine) -> ClockMap:
    """Return ``C_reference_other`` of one segment."""
    bends = np.array([]) if fit.spline is None else fit.spline.at_s
    at = np.unique(np.concatenate([fit.span_s, bends]))
    knots = np.column_stack(
        [
            other.start_ns + np.rint(at * NS_PER_S).astype(np.int64),
            reference.start_ns + np.rint((at + fit.lag(at)) * NS_PER_S).astype(np.int64),
        ]
    )
    rate = 1.0 + fit.line.slope
    half_s = (fit.span_s[1] - fit.span_s[0]) / 2
    sigma = SIGMA_FACTOR * float(np.hypot(fit.sigma_s, fit.slope_sigma * half_s))
    floor = _echo_sigma_s(fit) if _echo(fit) else SIGMA_FLOOR_S
    return ClockMap(
        target=reference.name,
        source=other.name,
        knots=knots,
        rate_before=rate,
        rate_after=rate,
        sigma_ns=max(sigma, floor) * NS_PER_S,
        residual_rms_ns=fit.scatter_s * NS_PER_S,
        rate_sigma_ppm=max(RATE_SIGMA_PPM, SIGMA_FACTOR * fit.slope_sigma * 1e6),
        limit_ns=LIMIT_NS,
    )


def _offset_at_zero(reference: MonoSound, other: MonoSound, line: Line) -> int:
    """Return the reference time at which the other's clock, run on, would have shown zero."""
    lag_s = line(-other.start_ns / NS_PER_S)
    return reference.start_ns - other.start_ns + round(lag_s * NS_PER_S)


def _refused(
    reference: MonoSound,
    other: MonoSound,
    reason: str,
    found: _Search | None = None,
    runner_up: float = 0.0,
    *,
    ambiguous: bool = False,
) -> PairEvidence:
    evidence = found.evidence(runner_up) if found else Evidence(0.0, 0.0, 0.0)
    return PairEvidence(
        reference.name,
        other.name,
        False,
        reason,
        evidence.score,
        found.needed if found else SCORE_NEEDED,
        runner_up,
        ambiguous=ambiguous,
        coarse_z=found.best.coarse_z if found else 0.0,
        likeness=evidence.likeness,
        p_match=certainty.p_match(evidence),
    )
