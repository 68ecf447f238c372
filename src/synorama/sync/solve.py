"""All recordings of a session on one clock.

The session clock is the device clock of one recording: the glasses whose clock the others noted
(TICSync server, SubGHz broadcaster), else the one with the most sound. Every other recording is
placed by the best that it has: an offset given by hand, hardware time, a clock card that it saw,
the sound that it shares with a recording whose clock is known by hardware, flashes that others saw
too, and, when all else fails, the UTC both noted. What then has no clock gets a coarse one from
when its files say that they began, for those who ask for it.

Those that are placed by sound are placed together (`synorama.sync.network`): pairs of them close
loops, and a pair that the others contradict moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from synorama.errors import NoRecordingsError, NoSoundError, UsageError
from synorama.media.audio import MonoSound, read_mono
from synorama.media.source import MediaSource
from synorama.records import (
    UNKNOWN_SKEW95_NS,
    AudioTrack,
    LoopClosure,
    PairEvidence,
    Recording,
    RecordingClock,
    SyncResult,
    leaps_ns,
    picture_doubt_ns,
)
from synorama.sync import pieces
from synorama.sync.by_card import Cards, best_camera
from synorama.sync.by_flash import CommonFlashes
from synorama.sync.correlate import align
from synorama.sync.graph import Solution
from synorama.sync.hardware import HardwareClock, hardware_clock, utc_clock
from synorama.sync.network import Hearing, Placement, contradiction_words, place
from synorama.sync.visual import SightClock
from synorama.timebase import NS_PER_S, ClockMap

__all__ = [
    "FARTHEST_M",
    "SESSION_CLOCK",
    "SPEED_OF_SOUND_M_S",
    "read_sound",
    "synchronize",
    "travel_ms",
    "unknown_positions_words",
]

SESSION_CLOCK = "session"
GIVERS = ("server", "broadcaster")
SPEED_OF_SOUND_M_S = 343.0
FARTHEST_M = 8.0  # two devices in one room
ROUNDABOUT = 1.2  # where an echo is louder than direct sound it tells the time, by a longer way
DISAGREE_MS = 38.0  # hardware and sound differ by more: one of them is wrong
UNHEARD_S = 30.0  # recorded side by side without a common sound: worth a word
MANUAL_RATE_SIGMA_PPM = 50.0
MANUAL_SIGMA_NS = 1e8
COARSEST_S = 600.0  # one sigma: a wall clock in an unknown time zone places nothing
Z95 = 1.96
Sources = Mapping[str, Sequence[Path | MediaSource]]
Progress = Callable[[int, int], None]


def synchronize(
    recordings: Sequence[Recording],
    *,
    sources: Sources | None = None,
    progress: Progress | None = None,
    manual_offsets_ns: Mapping[str, int] | None = None,
) -> SyncResult:
    """Place all recordings on one clock.

    Parameters
    ----------
    recordings
        The session's recordings, with unique ids.
    sources
        By recording, where its files lie now, in its order; else its own paths.
    progress
        Called as ``progress(done, total)`` after each recording.
    manual_offsets_ns
        By recording, session minus device time [ns], where the operator knows better.

    Returns
    -------
    SyncResult
        Recordings that cannot be placed are in ``unsynced``, with the reason; the others go on.

    Raises
    ------
    NoRecordingsError
        There is none.
    UsageError
        Ids are not unique, or an offset names no recording, or the reference.
    """
    by_id = _by_id(recordings)
    reference, warnings = _choose_reference(recordings)
    manual = dict(manual_offsets_ns or {})
    _check_manual(manual, by_id, reference.id)
    session = _Session(reference, by_id, dict(sources or {}), warnings)
    # Those with hardware time first: the others are heard against them.
    givers = [r for r in recordings if r is not reference and r.sync_role in GIVERS]
    hardware = {
        r.id: hardware_clock(reference, r, givers)
        for r in recordings
        if r is not reference and r.id not in manual
    }
    for name, offset_ns in manual.items():
        session.place_by_hand(by_id[name], offset_ns)
    by_sound: dict[str, str] = {}
    for name, clock in hardware.items():
        if isinstance(clock, str):
            by_sound[name] = clock
            continue
        _tell(progress, len(session.clocks), len(recordings))
        session.place_by_hardware(by_id[name], clock)
    done = len(recordings) - len(by_sound)
    session.place_by_sound(by_sound, lambda k: _tell(progress, done + k, len(recordings)))
    _tell(progress, len(recordings), len(recordings))
    return session.result()


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _by_id(recordings: Sequence[Recording]) -> dict[str, Recording]:
    if not recordings:
        raise NoRecordingsError("there is no recording to synchronize", hint="check the folder")
    by_id = {r.id: r for r in recordings}
    if len(by_id) < len(recordings):
        raise UsageError("two recordings have the same id", hint="give each its own name")
    return by_id


def _check_manual(
    manual: Mapping[str, int], by_id: Mapping[str, Recording], reference: str
) -> None:
    for name in manual:
        if name not in by_id:
            known = ", ".join(sorted(by_id))
            raise UsageError(
                f"an offset is given for '{name}', which is no recording", hint=f"there are {known}"
            )
        if name == reference:
            raise UsageError(
                f"an offset is given for '{name}', whose clock is the session clock",
                hint="give the other recordings' offsets",
            )


# --- the reference ---------------------------------------------------------------------------


def _choose_reference(recordings: Sequence[Recording]) -> tuple[Recording, list[str]]:
    """Return the recording whose clock is the session's, and what is unusual about it."""
    givers = [r for r in recordings if r.sync_role in GIVERS]
    takers = [r for r in recordings if r.sync_role in ("client", "receiver")]
    if len(givers) == 1:
        return givers[0], []
    if givers:
        best = max(givers, key=lambda r: (_noted_by(r, takers), _sound_length(r)))
        names = ", ".join(f"'{r.id}'" for r in givers)
        return best, [
            f"more than one recording says that it gave the time ({names}): '{best.id}' is taken, "
            "the others are placed by sound. Set up the glasses as one server and its clients"
        ]
    best = max(recordings, key=lambda r: (r.device == "aria", _sound_length(r)))
    if takers:
        return best, [
            "the glasses that gave the time are missing (no TICSync server or SubGHz broadcaster): "
            f"'{best.id}' gives the session clock"
        ]
    return best, []


def _noted_by(giver: Recording, takers: Sequence[Recording]) -> int:
    """Return how many took notes of this one's clock, as far as session ids tell."""
    mine = giver.shared_session_id
    return sum(bool(mine) and r.shared_session_id == mine for r in takers)


def _sound_length(recording: Recording) -> float:
    track = _sound_track(recording)
    return track.sample_count / track.rate_hz if track else 0.0


def _sound_track(recording: Recording) -> AudioTrack | None:
    tracks = [t for t in recording.audios if t.sample_count]
    return max(tracks, key=lambda t: t.sample_count / t.rate_hz, default=None)


# --- placing ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Session:
    """What is placed so far."""

    reference: Recording
    by_id: Mapping[str, Recording]
    sources: dict[str, Sequence[Path | MediaSource]]
    warnings: list[str]
    clocks: dict[str, RecordingClock] = field(default_factory=dict)
    pairs: tuple[PairEvidence, ...] = ()
    loops: tuple[LoopClosure, ...] = ()
    unsynced: dict[str, str] = field(default_factory=dict)
    distrusted: list[str] = field(default_factory=list)
    coarse: dict[str, RecordingClock] = field(default_factory=dict)
    cards: Cards = field(init=False)
    flashes: CommonFlashes = field(init=False)
    hear: Hearing = field(init=False)

    def __post_init__(self) -> None:
        name = self.reference.id
        on_itself = ClockMap(SESSION_CLOCK, name, np.zeros((1, 2), np.int64))
        self.clocks[name] = RecordingClock(
            name, (on_itself,), "reference", 0.0, basis="its device time is the session clock"
        )
        self.hear = Hearing(self._read)
        self.cards = Cards(self.by_id, self.sources)
        self.flashes = CommonFlashes(self.by_id, self.sources)

    def place_by_hand(self, recording: Recording, offset_ns: int) -> None:
        """Take the operator's word."""
        clock = ClockMap.affine(
            SESSION_CLOCK,
            recording.id,
            offset_ns=offset_ns,
            anchor_ns=recording.first_ns or 0,
            sigma_ns=MANUAL_SIGMA_NS,
            rate_sigma_ppm=MANUAL_RATE_SIGMA_PPM,
        )
        self.clocks[recording.id] = RecordingClock(
            recording.id, (clock,), "manual", None, basis="offset given by hand, drift unknown"
        )

    def result(self) -> SyncResult:
        """Return all that was found, in the order of the recordings."""
        return SyncResult(
            self.reference.id,
            {name: self.clocks[name] for name in self.by_id if name in self.clocks},
            self.pairs,
            {name: self.unsynced[name] for name in self.by_id if name in self.unsynced},
            (*self.warnings, *self._limits_of_sound()),
            self.loops,
            {name: self.coarse[name] for name in self.by_id if name in self.coarse},
        )

    def _limits_of_sound(self) -> Iterator[str]:
        """Say once what is true of every recording that was placed by sound."""
        by_id = self.by_id
        heard = [name for name, clock in self.clocks.items() if clock.method == "sound"]
        if heard:
            yield unknown_positions_words(heard)
        unknown = [n for n, c in self.clocks.items() if n in heard and _unmeasured(by_id[n], c)]
        if unknown:
            yield (
                f"the pictures of {', '.join(unknown)} may be off their own sound by up to "
                f"{UNKNOWN_SKEW95_NS / 1e6:.0f} ms, which is in the intervals of their views and "
                "not of their clocks: 'synorama calibrate --skew' measures it"
            )
        for name in heard:
            leaps = [abs(leap) for leap in leaps_ns(self.clocks[name])]
            if leaps and by_id[name].videos:
                yield lost_sound_words(name, leaps)

    # --- hardware ---

    def place_by_hardware(self, recording: Recording, hardware: HardwareClock) -> None:
        """Take hardware time, and compare it with sound: a wrong clock must not go unnoticed."""
        self._take(recording, hardware)
        self._cross_check(recording)

    def _take(self, recording: Recording, hardware: HardwareClock) -> None:
        maps = tuple(replace(m, target=SESSION_CLOCK) for m in hardware.maps)
        self.warnings += hardware.warnings
        self.clocks[recording.id] = RecordingClock(
            recording.id,
            maps,
            hardware.mode,
            Z95 * max(m.sigma_ns for m in maps) / 1e6,
            residual_rms_ns=max(m.residual_rms_ns for m in maps),
            basis=hardware.basis,
        )

    def _cross_check(self, recording: Recording) -> None:
        mine, its = self.hear(self.reference.id), self.hear(recording.id)
        if mine is None or its is None:
            return
        evidence = align(mine, its)
        self.pairs += (evidence,)
        if not evidence.accepted:
            self._warn_unheard(recording, evidence)
            return
        middle = np.array([np.mean(evidence.maps[0].range_ns)], np.int64)
        by_sound = evidence.maps[0].apply(middle)
        off_ms = float(self.clocks[recording.id].apply(middle)[0] - by_sound[0]) / 1e6
        if abs(off_ms) > DISAGREE_MS:
            self.distrusted.append(recording.id)
            self.warnings.append(
                f"'{recording.id}': hardware time and sound disagree by {off_ms:.0f} ms. Hardware "
                "time was used; check on a clap or a flash which of them is right"
            )

    def _warn_unheard(self, recording: Recording, evidence: PairEvidence) -> None:
        """Say that hardware time puts two recordings side by side that heard nothing in common."""
        mine, its = _span_ns(self.reference), _span_ns(recording)
        if mine is None or its is None:
            return
        begin, end = pieces.apply(self.clocks[recording.id].maps, np.array(its, np.int64))
        together_s = float(min(end, mine[1]) - max(begin, mine[0])) / NS_PER_S
        if together_s >= UNHEARD_S:
            self.warnings.append(
                f"'{recording.id}': hardware time says that it recorded beside "
                f"'{self.reference.id}' for {together_s:.0f} s, but the two have no common sound "
                f"(best score {evidence.score:.1f}, needs {evidence.score_needed:.1f}). If they "
                "were in one room, these are not takes of one recording: check on a clap or a flash"
            )

    # --- sound ---

    def place_by_sound(self, why: Mapping[str, str], tell: Callable[[int], None]) -> None:
        """Place the recordings named, which for the reason given have no hardware time."""
        self.warnings += [
            t for name, reason in why.items() for t in self._no_hardware(name, reason)
        ]
        known = {
            name: clock.maps
            for name, clock in self.clocks.items()
            if clock.method != "manual" and name not in self.distrusted
        }
        # Where hardware and sound disagree, others are placed as the sound says.
        others = [*self.distrusted, *why]
        placed = place(known, others, self.hear, measured=self.pairs, tell=tell)
        self.pairs, self.loops = placed.pairs, placed.solution.loops
        self.warnings += [contradiction_words(c) for c in placed.solution.contradictions]
        for name in why:
            if name in placed.solution.clocks:
                self.clocks[name] = _clock_by_sound(name, placed.solution)
        self._check_cards()
        for name in why:
            if name not in self.clocks:
                self._by_card(name, self._why_not(name, placed))
        self.warnings += [
            f"'{name}' cannot be heard: {error.message}"
            for name, error in self.hear.errors.items()
            if name in known
        ]

    def _no_hardware(self, name: str, reason: str) -> Iterator[str]:
        if self.by_id[name].device == self.reference.device == "aria":
            yield (
                f"'{name}' has no hardware time against '{self.reference.id}' "
                f"({reason}): placed by sound, which knows clocks no better than the "
                f"travel time of sound, up to {travel_ms():.0f} ms"
            )

    def _why_not(self, name: str, placed: Placement) -> str:
        error = self.hear.errors.get(name)
        return error.message if error else placed.best_reason(name)

    # --- pictures ---

    def _check_cards(self) -> None:
        """Hold clocks against the card, where the reference saw one; the surer of two is taken."""
        if not self.cards.seen(self.reference.id):
            return
        for name, clock in list(self.clocks.items()):
            if name == self.reference.id or clock.method == "manual":
                continue
            card = self.cards.clock(name, {n: c for n, c in self.clocks.items() if n != name})
            if isinstance(card, SightClock):
                self._compare_card(name, clock, card)

    def _compare_card(self, name: str, clock: RecordingClock, card: SightClock) -> None:
        at = np.array(card.at_ns, np.int64)
        off_ms = float(np.abs(clock.apply(at) - card.map.apply(at)).max()) / 1e6
        doubt_ms = (clock.interval95_ms or 0.0) + card.interval95_ms
        camera = best_camera(self.by_id[name])
        doubt_ms += picture_doubt_ns(camera, clock) / 1e6 if camera else 0.0
        if off_ms > doubt_ms:
            self.warnings.append(
                f"'{name}': {clock.method} and the clock card disagree by {off_ms:.0f} ms, "
                f"{doubt_ms:.0f} ms can be explained. {clock.method} was used; check on a clap "
                "or a flash which of them is right"
            )
        elif clock.method == "sound" and _is_better(card, clock):
            taken = _clock_by_card(name, card, f", {off_ms:.0f} ms from its sound")
            self.clocks[name] = replace(taken, p_match=clock.p_match)

    def _by_card(self, name: str, reason: str) -> None:
        """Take the card's word, or that of flashes, where there is nothing better."""
        card = self.cards.clock(name, self.clocks)
        if isinstance(card, SightClock):
            self.clocks[name] = _clock_by_card(name, card, "")
            return
        flash = self.flashes.clock(name, self.clocks)
        if isinstance(flash, SightClock):
            self.clocks[name] = RecordingClock(
                name, (flash.map,), "flash", flash.interval95_ms, basis=flash.basis
            )
        else:
            self._by_utc(self.by_id[name], f"{reason}; {card}; {flash}")

    # --- wall clocks ---

    def _by_utc(self, recording: Recording, reason: str) -> None:
        """Fall back to wall-clock time, or give the recording up."""
        clock = utc_clock(self.reference, recording)
        if clock is None:
            told = self._coarsely(recording)
            self.unsynced[recording.id] = (
                f"{reason}.{told} Check that the file belongs to this session, show a clock card "
                "next time, or give its offset by hand"
            )
            return
        self._take(recording, clock)
        self.warnings.append(
            f"'{recording.id}' is placed by UTC only ({reason}): trust it to a tenth of a second"
        )

    def _coarsely(self, recording: Recording) -> str:
        """Keep a clock by when the files say that they began; return what to say of it."""
        clock = coarse_clock(self.reference, recording)
        if clock is None:
            return ""
        self.coarse[recording.id] = clock
        start_s = int(clock.maps[0].apply(recording.first_ns or 0)) / NS_PER_S
        within_s = (clock.interval95_ms or 0.0) / 1000
        return (
            f" Wall clocks say that it began at {start_s:.0f} s of the session, give or take "
            f"{within_s:.0f} s: enough to find the place, not to label."
        )

    def _read(self, name: str) -> MonoSound:
        return read_sound(self.by_id[name], self.sources.get(name), name=name)


def _span_ns(recording: Recording) -> tuple[int, int] | None:
    first, last = recording.first_ns, recording.last_ns
    return None if first is None or last is None else (first, last)


def travel_ms(farthest_m: float = FARTHEST_M) -> float:
    """Return what sound may take from one microphone to another at most, by an echo too [ms]."""
    return 1000 * ROUNDABOUT * farthest_m / SPEED_OF_SOUND_M_S


def unknown_positions_words(names: Sequence[str]) -> str:
    """Tell the operator which clocks hold the time that sound travels."""
    return (
        f"nobody said where {', '.join(names)} stood: their intervals hold the "
        f"{travel_ms():.0f} ms that sound and its echoes take over {FARTHEST_M:.0f} m"
    )


def lost_sound_words(name: str, leaps_ns: Sequence[int]) -> str:
    """Tell the operator that pictures may not have lost what the sound has."""
    lost_ms = sum(leaps_ns) / 1e6
    return (
        f"the sound of '{name}' leaps in {len(leaps_ns)} places, by {lost_ms:.0f} ms in all, as "
        "where samples were lost, and its clock follows it. Pictures that went on meanwhile are "
        "told late by what was lost before them, which is in the interval of its views: compare "
        "picture and sound at a clap near the end"
    )


def read_sound(
    recording: Recording, sources: Sequence[Path | MediaSource] | None = None, *, name: str
) -> MonoSound:
    """Decode the longest sound of a recording; ``name`` is that of its clock.

    Raises
    ------
    NoSoundError
        It has none.
    """
    track = _sound_track(recording)
    files = sources or [f.path for f in recording.files]
    if track is None:
        raise NoSoundError(
            "the recording has no sound",
            path=recording.files[0].path if recording.files else None,
            hint="record with the microphone on",
        )
    return read_mono(files, track, name=name)


def _unmeasured(recording: Recording, clock: RecordingClock) -> bool:
    """Tell whether a recording has pictures whose skew against the sound nobody knows."""
    return any(t.skew95_ns is None and picture_doubt_ns(t, clock) > 0 for t in recording.videos)


def coarse_clock(reference: Recording, other: Recording) -> RecordingClock | None:
    """Return a clock from when both say that they began; None where one does not, or hours off."""
    mine, its = reference.start_utc, other.start_utc
    if mine is None or its is None:
        return None
    sigma_s = float(np.hypot(mine.sigma_s, its.sigma_s))
    if sigma_s > COARSEST_S:
        return None
    clock = ClockMap.affine(
        SESSION_CLOCK,
        other.id,
        offset_ns=(its.utc_ns - its.device_ns) - (mine.utc_ns - mine.device_ns),
        anchor_ns=other.first_ns or 0,
        sigma_ns=sigma_s * NS_PER_S,
        rate_sigma_ppm=MANUAL_RATE_SIGMA_PPM,
    )
    basis = f"{its.source} against {mine.source} of '{reference.id}', drift unknown"
    return RecordingClock(other.id, (clock,), "creation_time", Z95 * sigma_s * 1000, basis=basis)


def _is_better(card: SightClock, clock: RecordingClock) -> bool:
    """Tell whether the card is surer; two cards cannot follow a clock that leaps."""
    return len(clock.maps) == 1 and card.interval95_ms < (clock.interval95_ms or 0.0)


def _clock_by_card(name: str, card: SightClock, beside: str) -> RecordingClock:
    return RecordingClock(
        name, (card.map,), "card", card.interval95_ms, basis=f"{card.basis}{beside}"
    )


def _clock_by_sound(name: str, solution: Solution) -> RecordingClock:
    maps, path = solution.clocks[name], solution.path[name]
    fit_ms = Z95 * max(m.sigma_ns for m in maps) / 1e6
    return RecordingClock(
        name,
        maps,
        "sound",
        interval95_ms=len(path) * travel_ms() + fit_ms + solution.doubt_ns(name) / 1e6,
        p_match=solution.p_match(name),
        residual_rms_ns=max(m.residual_rms_ns for m in maps),
        basis=_sound_basis(name, path),
    )


def _sound_basis(name: str, path: Sequence[PairEvidence]) -> str:
    own, *further = path
    segments = f", {len(own.maps)} segments" if len(own.maps) > 1 else ""
    doubts = dict.fromkeys(words for p in path for words in p.doubts)
    partner = own.reference if own.other == name else own.other
    through = f" shared with '{partner}'" if further else ""
    told = "".join(f", {words}" for words in doubts)
    return f"sound, {own.windows} windows{through}{segments}, positions unknown{told}"
