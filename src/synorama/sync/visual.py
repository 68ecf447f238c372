"""Clocks by what cameras see: a clock card that was shown to them at the start and at the end.

Each camera's frames are compared with the card; the card's clock then joins the cameras. What the
screen is late by is the same for all cameras and cancels. The card gives the time of *pictures*:
a camera's sound may be off them by its skew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import InputError
from synorama.media.video import VideoDecoder
from synorama.sync.card import fit_exposures
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.source import MediaSource
    from synorama.records import VideoTrack
    from synorama.sync.sight import Sighting

    Int64 = NDArray[np.int64]

__all__ = ["CardSeen", "Shown", "SightClock", "card_seen", "cards_seen", "clock_by_card", "join"]

EDGE_NS = 60 * NS_PER_S  # the card is shown within the first and the last minute
GLANCE_NS = NS_PER_S  # and held for seconds
AROUND_NS = 2 * NS_PER_S
STRETCH_NS = 10 * NS_PER_S
MOST_FRAMES = 150
LEAST_FRAMES = 4
LONGEST_READOUT_NS = 33_000_000
ONE_CLOCK_NS = 600 * NS_PER_S  # a card seen once holds its rate for so long
CARD_PPM = 60.0  # 95 %: crystal of a phone
CAMERA_PPM = 60.0
WANDER_PPM = 1.0  # by which a rate changes between two cards
CLOSE_PPM = 300.0  # two cards further off the same rate are not of one clock
Z95 = 1.96
LIMIT_NS = 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class CardSeen:
    """A stretch of frames in which a camera saw the card.

    Parameters
    ----------
    card
        The card's number.
    at_ns, card_ns
        The same moment on the camera's clock and on the card's.
    half_ns
        Half width of the interval that holds their difference with 95 % probability.
    frames
        How many were read.
    """

    card: int
    at_ns: int
    card_ns: int
    half_ns: float
    frames: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The card at a moment of the session clock, as a camera saw it whose clock is known."""

    card: int
    card_ns: int
    session_ns: int
    half_ns: float


@dataclass(frozen=True, slots=True)
class SightClock:
    """A recording's clock by what its camera saw.

    Parameters
    ----------
    map
        To the session clock.
    interval95_ms
        Half width of the interval that holds it with 95 % probability, over the recording.
    at_ns
        When on the recording's own clock the two were joined.
    basis
        What it rests on, in words.
    """

    map: ClockMap
    interval95_ms: float
    at_ns: tuple[int, ...]
    basis: str


# --- looking ---------------------------------------------------------------------------------


def cards_seen(files: Sequence[Path | MediaSource], track: VideoTrack) -> tuple[CardSeen, ...]:
    """Find the clock card in the first and the last minute of a camera's pictures.

    A picture a second is looked at; where a card is seen, all pictures around it are.

    Parameters
    ----------
    files
        All files of the recording, in its order.
    track
        The camera.
    """
    from synorama.sync.sight import CardReader

    with VideoDecoder(files, track) as decoder:
        looker = _Looker(decoder, track, CardReader())
        hits = [(i, s) for i in _glances(track) if (s := looker.look(i, anywhere=True))]
        stretches = list(_stretches(track.times_ns, hits))
        return tuple(seen for s in stretches if (seen := looker.measure(s)))


@dataclass(slots=True)
class _Looker:
    decoder: VideoDecoder
    track: VideoTrack
    reader: object

    def look(self, i: int, *, anywhere: bool) -> Sighting | None:
        """Read the card in a frame; frames that do not decode show none."""
        from synorama.sync.sight import CardReader

        assert isinstance(self.reader, CardReader)
        try:
            return self.reader.read(self.decoder.frame(i), anywhere=anywhere)
        except InputError:
            return None

    def measure(self, frames: Sequence[int]) -> CardSeen | None:
        """Fit the card's clock to the frames of a stretch."""
        found = [(i, s) for i in frames if (s := self.look(i, anywhere=False))]
        times = self.track.times_ns
        if len(found) < LEAST_FRAMES:
            return None
        at = times[np.array([i for i, _ in found])]
        return card_seen(at, [s for _, s in found], round(float(np.median(np.diff(times)))))


def card_seen(times_ns: Int64, sightings: Sequence[Sighting], frame_ns: int) -> CardSeen | None:
    """Join a stretch of frames to the card that most of them show.

    Parameters
    ----------
    times_ns
        ``(N,)`` times of the frames.
    sightings
        What was read in each of them.
    frame_ns
        How far apart the camera's frames are: its rows are exposed one after the other, in a time
        that nobody told and that is no longer.

    Returns
    -------
    CardSeen or None
        None where too few frames agree.
    """
    numbers = [s.code.card for s in sightings]
    card = max(set(numbers), key=numbers.count)
    mine = [k for k, n in enumerate(numbers) if n == card]
    if len(mine) < LEAST_FRAMES:
        return None
    times, seen = times_ns[mine], [sightings[k] for k in mine]
    fit = fit_exposures(times, [s.code for s in seen], np.stack([s.light for s in seen]))
    if fit is None:
        return None
    longest = min(frame_ns, LONGEST_READOUT_NS)
    late = (float(np.mean([s.row for s in seen])) - 0.5) * longest / 2
    at = int(np.median(times))
    card_ns = at + fit.offset_ns - round(late)
    return CardSeen(card, at, card_ns, fit.half_ns + abs(late), fit.frames)


def _glances(track: VideoTrack) -> list[int]:
    """Return frames of the first and the last minute, a second apart, key frames where they are."""
    if track.count < LEAST_FRAMES:
        return []
    times, first, last = track.times_ns, int(track.times_ns[0]), int(track.times_ns[-1])
    near = np.flatnonzero((times - first < EDGE_NS) | (last - times < EDGE_NS))
    slot = (times[near] - first) // GLANCE_NS
    order = np.lexsort((near, -track.index["key"][near].astype(int), slot))
    _, starts = np.unique(slot[order], return_index=True)
    return sorted(int(i) for i in near[order][starts])


def _stretches(times: Int64, hits: Sequence[tuple[int, Sighting]]) -> Iterator[list[int]]:
    """Yield the frames around hits that belong together, at most so many, evenly spread."""
    groups: list[list[int]] = []
    for i, _ in hits:
        if groups and times[i] - times[groups[-1][0]] < STRETCH_NS:
            groups[-1].append(i)
        else:
            groups.append([i])
    for group in groups:
        low = np.searchsorted(times, times[group[0]] - AROUND_NS)
        high = np.searchsorted(times, times[group[-1]] + AROUND_NS)
        step = max(1, -(-int(high - low) // MOST_FRAMES))
        yield list(range(int(low), int(high), step))


# --- joining ---------------------------------------------------------------------------------


def clock_by_card(
    known: Sequence[Shown], seen: Sequence[CardSeen], source: str, span_ns: tuple[int, int]
) -> SightClock | str:
    """Join a camera to the session clock through the card.

    Parameters
    ----------
    known
        The card at moments of the session clock.
    seen
        The card in the camera's own frames.
    source
        Name of the camera's clock.
    span_ns
        First and last time of its recording.

    Returns
    -------
    SightClock or str
        Or in words why there is none.
    """
    if not seen:
        return "no clock card is seen in the first or the last minute"
    joined = [(s, shown) for s in seen if (shown := _session_time(known, s))]
    if not joined:
        return "the clock card that it saw was not seen by a camera whose clock is known"
    knots = np.array([[s.at_ns, t] for s, (t, _) in joined], np.int64)
    halves = [half for _, (_, half) in joined]
    frames = sum(s.frames for s, _ in joined)
    if _contradict(knots, halves):
        return "the clock cards at start and end contradict each other: one clock cannot run so"
    return join(knots, halves, f"clock card, {frames} frames,", source, span_ns)


def _session_time(known: Sequence[Shown], seen: CardSeen) -> tuple[int, float] | None:
    """Return when on the session clock a camera saw the card, and how surely."""
    same = sorted(
        (k for k in known if k.card == seen.card), key=lambda k: abs(k.card_ns - seen.card_ns)
    )
    if not same or abs(same[0].card_ns - seen.card_ns) > ONE_CLOCK_NS:
        return None
    nearest, gap = same[0], seen.card_ns - same[0].card_ns
    rate, ppm = _card_rate(same)
    half = float(np.hypot(nearest.half_ns, seen.half_ns)) + abs(gap) * ppm * 1e-6
    return nearest.session_ns + gap + round(gap * (rate - 1)), half


def _card_rate(same: Sequence[Shown]) -> tuple[float, float]:
    """Return session ns per card ns and what it is unsure by [ppm, 95 %]."""
    first, last = min(same, key=_card_ns), max(same, key=_card_ns)
    apart = last.card_ns - first.card_ns
    if apart <= STRETCH_NS:
        return 1.0, CARD_PPM
    rate = (last.session_ns - first.session_ns) / apart
    unsure = 1e6 * float(np.hypot(first.half_ns, last.half_ns)) / apart
    if abs(rate - 1) * 1e6 > CLOSE_PPM or unsure > CARD_PPM:  # asleep in between, or too close
        return 1.0, CARD_PPM
    return rate, unsure + WANDER_PPM


def _card_ns(shown: Shown) -> int:
    return shown.card_ns


def _contradict(knots: Int64, halves: Sequence[float]) -> bool:
    pairs = zip(pairwise(knots.tolist()), pairwise(halves), strict=True)
    return any(
        (d := b[0] - a[0]) <= 0 or abs((b[1] - a[1]) - d) > CLOSE_PPM * 1e-6 * d + sum(half)
        for (a, b), half in pairs
    )


def join(
    knots: Int64, halves_ns: Sequence[float], what: str, source: str, span_ns: tuple[int, int]
) -> SightClock:
    """Make a clock of moments at which the time is known on both clocks.

    Parameters
    ----------
    knots
        ``(K, 2)`` the same moments on the recording's clock and on the session's, in order.
    halves_ns
        ``(K,)`` half widths of the intervals that hold them.
    what
        What was seen at those moments, in words.
    source
        Name of the recording's clock.
    span_ns
        First and last time of the recording.
    """
    apart = int(knots[-1, 0] - knots[0, 0])
    if apart > 0:
        rate = float(knots[-1, 1] - knots[0, 1]) / apart
        ppm = 1e6 * float(np.hypot(halves_ns[0], halves_ns[-1])) / apart + WANDER_PPM
    if apart <= 0 or ppm > CAMERA_PPM:  # too close to tell the drift: the surest is taken
        best = int(np.argmin(halves_ns))
        knots, halves_ns = knots[[best]], [halves_ns[best]]
        rate, ppm = 1.0, CAMERA_PPM
    first, last = (int(t) for t in knots[[0, -1], 0])
    away = max(first - span_ns[0], span_ns[1] - last, 0)
    half = max(halves_ns) + away * ppm * 1e-6 + (last - first) / 2 * WANDER_PPM * 1e-6
    clock = ClockMap(
        "session", source, knots, rate, rate,
        sigma_ns=max(halves_ns) / Z95, valid_ns=(first, last),
        rate_sigma_ppm=ppm / Z95, limit_ns=LIMIT_NS,
    )  # fmt: skip
    at = [int(t) for t in knots[:, 0]]
    once = ", drift unknown" if len(at) == 1 else ""
    told = f"{what} at {' and '.join(f'{t / 1e9:.0f} s' for t in at)}{once}"
    return SightClock(clock, half / 1e6, tuple(at), told)
