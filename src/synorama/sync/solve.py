"""All recordings of a session on one clock.

The session clock is the device clock of one recording: the glasses whose clock the others noted
(TICSync server, SubGHz broadcaster), else the one with the most sound. Every other recording is
placed by the best that it has: an offset given by hand, hardware time, the sound that it shares
with a recording whose clock is known by hardware, and, when all else fails, the UTC both noted.

Each recording stands on its own here (a star). A robust solve over all pairs, with loop closure,
takes the same evidence and belongs between `_Session.place` and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from synorama.errors import InputError, NoRecordingsError, NoSoundError, UsageError
from synorama.media.audio import MonoSound, read_mono
from synorama.media.source import MediaSource
from synorama.records import AudioTrack, PairEvidence, Recording, RecordingClock, SyncResult
from synorama.sync.correlate import align
from synorama.sync.hardware import HardwareClock, hardware_clock, utc_clock
from synorama.timebase import ClockMap

__all__ = ["SESSION_CLOCK", "synchronize"]

SESSION_CLOCK = "session"
SPEED_OF_SOUND_M_S = 343.0
FARTHEST_M = 8.0  # two devices in one room
TRAVEL_MS = 1000 * FARTHEST_M / SPEED_OF_SOUND_M_S
PICTURE_SKEW_MS = 20.0
DISAGREE_MS = TRAVEL_MS + 15.0  # hardware and sound differ by more: one of them is wrong
MANUAL_RATE_SIGMA_PPM = 50.0
MANUAL_SIGMA_NS = 1e8
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
    session = _Session(reference, dict(sources or {}), warnings)
    # Those with hardware time first: the others are heard against them.
    hardware = {
        r.id: hardware_clock(reference, r)
        for r in recordings
        if r is not reference and r.id not in manual
    }
    todo = [r for r in recordings if r is not reference]
    todo.sort(key=lambda r: isinstance(hardware.get(r.id, ""), str))
    for done, recording in enumerate(todo):
        _tell(progress, done + 1, len(recordings))
        if recording.id in manual:
            session.place_by_hand(recording, manual[recording.id])
        else:
            session.place(recording, hardware[recording.id])
    _tell(progress, len(recordings), len(recordings))
    return session.result(by_id)


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
    givers = [r for r in recordings if r.sync_role in ("server", "broadcaster")]
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
    sources: dict[str, Sequence[Path | MediaSource]]
    warnings: list[str]
    clocks: dict[str, RecordingClock] = field(default_factory=dict)
    pairs: list[PairEvidence] = field(default_factory=list)
    unsynced: dict[str, str] = field(default_factory=dict)
    anchors: dict[str, MonoSound | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.reference.id
        on_itself = ClockMap(SESSION_CLOCK, name, np.zeros((1, 2), np.int64))
        self.clocks[name] = RecordingClock(
            name, (on_itself,), "reference", 0.0, basis="its device time is the session clock"
        )

    def place(self, recording: Recording, hardware: HardwareClock | str) -> None:
        """Place a recording by the best that it has."""
        if isinstance(hardware, HardwareClock):
            self._by_hardware(recording, hardware)
            self._cross_check(recording)
        else:
            self._by_sound(recording, hardware)

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

    def result(self, by_id: Mapping[str, Recording]) -> SyncResult:
        """Return all that was found, in the order of the recordings."""
        return SyncResult(
            self.reference.id,
            {name: self.clocks[name] for name in by_id if name in self.clocks},
            tuple(self.pairs),
            self.unsynced,
            (*self.warnings, *self._limits_of_sound(by_id)),
        )

    def _limits_of_sound(self, by_id: Mapping[str, Recording]) -> Iterator[str]:
        """Say once what is true of every recording that was placed by sound."""
        heard = [name for name, clock in self.clocks.items() if clock.method == "sound"]
        if heard:
            yield (
                f"nobody said where {', '.join(heard)} stood: their intervals hold the "
                f"{TRAVEL_MS:.0f} ms that sound takes over {FARTHEST_M:.0f} m"
            )
        seen = [name for name in heard if by_id[name].videos and by_id[name].device != "aria"]
        if seen:
            yield (
                f"the pictures of {', '.join(seen)} may be off their own sound by up to "
                f"{PICTURE_SKEW_MS:.0f} ms, which is not in the intervals"
            )

    # --- hardware ---

    def _by_hardware(self, recording: Recording, hardware: HardwareClock) -> None:
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
        """Compare hardware time with sound: a wrong clock must not go unnoticed."""
        mine, its = self._sound(self.reference), self._sound(recording)
        if mine is None or its is None:
            return
        evidence = align(mine, its)
        self.pairs.append(evidence)
        if not evidence.accepted:
            return
        middle = np.array([np.mean(evidence.maps[0].range_ns)], np.int64)
        by_sound = evidence.maps[0].apply(middle)
        off_ms = float(self.clocks[recording.id].apply(middle)[0] - by_sound[0]) / 1e6
        if abs(off_ms) > DISAGREE_MS:
            self.warnings.append(
                f"'{recording.id}': hardware time and sound disagree by {off_ms:.0f} ms. Hardware "
                "time was used; check on a clap or a flash which of them is right"
            )

    # --- sound ---

    def _by_sound(self, recording: Recording, why_not_hardware: str) -> None:
        if recording.device == self.reference.device == "aria":
            self.warnings.append(
                f"'{recording.id}' has no hardware time against '{self.reference.id}' "
                f"({why_not_hardware}): placed by sound, which knows clocks no better than the "
                f"travel time of sound, up to {TRAVEL_MS:.0f} ms"
            )
        try:
            sound = self._read(recording)
        except InputError as error:
            self._by_utc(recording, _words(error))
            return
        tried = []
        for anchor in self._anchors():
            evidence = align(anchor, sound)
            tried.append(evidence)
            if evidence.accepted:
                break
        self.pairs += tried
        if tried and tried[-1].accepted:
            self.clocks[recording.id] = self._clock_by_sound(recording, tried[-1])
        else:
            self._by_utc(recording, _best_reason(tried))

    def _clock_by_sound(self, recording: Recording, evidence: PairEvidence) -> RecordingClock:
        to_session = self.clocks[evidence.reference].maps[0]
        maps = tuple(to_session @ m for m in evidence.maps)
        fit_ms = Z95 * max(m.sigma_ns for m in maps) / 1e6
        return RecordingClock(
            recording.id,
            maps,
            "sound",
            interval95_ms=TRAVEL_MS + fit_ms,
            residual_rms_ns=max(m.residual_rms_ns for m in maps),
            basis=_sound_basis(evidence),
        )

    def _by_utc(self, recording: Recording, reason: str) -> None:
        """Fall back to wall-clock time, or give the recording up."""
        clock = utc_clock(self.reference, recording)
        if clock is None:
            self.unsynced[recording.id] = (
                f"{reason}. Check that the file belongs to this session, or give its "
                "offset by hand"
            )
            return
        self._by_hardware(recording, clock)
        self.warnings.append(
            f"'{recording.id}' is placed by UTC only ({reason}): trust it to a tenth of a second"
        )

    def _anchors(self) -> list[MonoSound]:
        """Return the sounds whose clocks are known: the reference's, then by hardware."""
        self._sound(self.reference)
        names = sorted(self.anchors, key=lambda name: name != self.reference.id)
        sounds = [self.anchors[n] for n in names if len(self.clocks[n].maps) == 1]
        return [s for s in sounds if s is not None]

    def _sound(self, recording: Recording) -> MonoSound | None:
        """Return an anchor's sound, read once; None if it has none."""
        if recording.id not in self.anchors:
            try:
                self.anchors[recording.id] = self._read(recording)
            except InputError as error:
                self.anchors[recording.id] = None
                self.warnings.append(f"'{recording.id}' cannot be heard: {_words(error)}")
        return self.anchors[recording.id]

    def _read(self, recording: Recording) -> MonoSound:
        track = _sound_track(recording)
        if track is None:
            raise NoSoundError("the recording has no sound", hint="record with the microphone on")
        files = self.sources.get(recording.id) or [f.path for f in recording.files]
        return read_mono(files, track, name=recording.id)


def _words(error: InputError) -> str:
    return error.message


def _best_reason(tried: Sequence[PairEvidence]) -> str:
    if not tried:
        return "no recording whose clock is known has sound"
    best = max(tried, key=lambda e: e.score)
    return f"{best.reason} (best score {best.score:.1f}, needs {best.score_needed:.1f})"


def _sound_basis(evidence: PairEvidence) -> str:
    segments = f", {len(evidence.maps)} segments" if len(evidence.maps) > 1 else ""
    echo = ", an echo may put it up to 5 ms off" if "echo" in evidence.reason else ""
    return f"sound, {evidence.windows} windows{segments}, positions unknown{echo}"
