"""What goes wrong on a recording day, by name: each fault is one function that changes the plan.

A function takes the `Lab` as it would be recorded and returns the one that is; `told` notes what
is true then, for ``truth.json``. What only happens to finished files is an `Edit` of the lab.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from synorama.errors import UsageError
from synorama.simulate.clocks import randomness
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.gopro import AUDIO_RATE_HZ, GoPro
from synorama.simulate.lab import BYSTANDER, FRONT, HELPER, LEADER, REAR, WEBCAM, Lab
from synorama.simulate.sound.faults import Drop, swapped
from synorama.simulate.sound.plain import Hearing
from synorama.simulate.truth import RecordingTruth
from synorama.timebase import NS_PER_S, ClockMap

__all__ = ["FAULTS", "Fault", "planted"]

Plant: TypeAlias = Callable[[Lab], Lab]

CHAPTERS = 3
ANOTHER = 1_000_003  # added to a seed: another day, in another room
OFF_M = 0.1
CHANGE_PPM = 60.0
SET_BACK_S = 3600
RESTART_GAP_S = 1.5
LOST_SAMPLES = (2_400, 12_000)  # 50 and 250 ms
SWAPPED_CHANNELS = (4, 3)  # beside the left and the right eye
BYSTANDERS_VOICE = "emil"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: what happens, in a line, the devices and the kind of session that it needs."""

    name: str
    what: str
    plant: Plant
    devices: tuple[str, ...]
    needs_room: bool


FAULTS: dict[str, Fault] = {}
"""All faults by name."""


def fault(
    name: str, what: str, *devices: str, needs_room: bool = False
) -> Callable[[Plant], Plant]:
    """Enter a function into the table of faults."""

    def enter(plant: Plant) -> Plant:
        FAULTS[name] = Fault(name, what, plant, devices, needs_room)
        return plant

    return enter


def planted(lab: Lab) -> Lab:
    """Return the lab with all faults that were asked for.

    Raises
    ------
    UsageError
        There is no such fault, or it needs a device or a room that the session does not have.
    """
    for name in lab.asked.faults:
        if name not in FAULTS:
            raise UsageError(f"there is no fault '{name}'", hint=f"there are {', '.join(FAULTS)}")
        _check_possible(FAULTS[name], lab)
        lab = FAULTS[name].plant(lab)
        facts = {"what": FAULTS[name].what, **lab.planted.get(name, {})}
        lab = replace(lab, planted={**lab.planted, name: facts})
    return lab


def _check_possible(wanted: Fault, lab: Lab) -> None:
    if wanted.needs_room and lab.asked.room is None:
        raise UsageError(f"the fault '{wanted.name}' needs a room", hint="leave out --plain")
    for device in wanted.devices:
        if device not in lab.devices:
            raise UsageError(f"the fault '{wanted.name}' needs '{device}', which does not record")
    if wanted.name.startswith("scan") and lab.asked.scan is None:
        raise UsageError(f"the fault '{wanted.name}' needs a scan")


def _told(lab: Lab, name: str, **facts: Any) -> Lab:
    return replace(lab, planted={**lab.planted, name: facts})


# --- files -----------------------------------------------------------------------------------


@fault("missing-chapter", "the second of three chapters of gopro-front is missing", FRONT)
def missing_chapter(lab: Lab) -> Lab:
    def lose(folder: Path, recordings: tuple[RecordingTruth, ...]) -> tuple[RecordingTruth, ...]:
        lost = _named(recordings, FRONT).files[1]
        (folder / lost).unlink()
        return _with_files(recordings, FRONT, lambda files: tuple(f for f in files if f != lost))

    return replace(lab.changed(FRONT, chapters=CHAPTERS), edits=(*lab.edits, lose))


@fault(
    "foreign-chapter",
    "the second chapter of gopro-front was overwritten by that of gopro-rear, of the same name",
    FRONT,
    REAR,
)
def foreign_chapter(lab: Lab) -> Lab:
    def mix(folder: Path, recordings: tuple[RecordingTruth, ...]) -> tuple[RecordingTruth, ...]:
        foreign = folder / _named(recordings, REAR).files[1]
        (folder / _named(recordings, FRONT).files[1]).write_bytes(foreign.read_bytes())
        return recordings

    return replace(lab, edits=(*lab.edits, mix))


def _named(recordings: tuple[RecordingTruth, ...], name: str) -> RecordingTruth:
    return next(r for r in recordings if r.name == name)


def _with_files(
    recordings: tuple[RecordingTruth, ...],
    name: str,
    change: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> tuple[RecordingTruth, ...]:
    return tuple(replace(r, files=change(r.files)) if r.name == name else r for r in recordings)


# --- glasses and their time ------------------------------------------------------------------


@fault("unsynchronised-glasses", "the helper's glasses were started alone: no common time", HELPER)
def unsynchronised_glasses(lab: Lab) -> Lab:
    return lab.changed(HELPER, sync_role="", shared_session_id="")


@fault("two-servers", "both glasses were started as servers of time, neither as client", HELPER)
def two_servers(lab: Lab) -> Lab:
    return lab.changed(HELPER, sync_role="server")


@fault("swapped-roles", "the helper's glasses serve the time, the leader's follow", LEADER, HELPER)
def swapped_roles(lab: Lab) -> Lab:
    leader, helper = lab.devices[LEADER], lab.devices[HELPER]
    assert isinstance(leader, Glasses)
    assert isinstance(helper, Glasses)
    knots, begin_ns = helper.clock.knots, helper.clock.apply(helper.start_ns)
    later = np.array([0, leader.clock.apply(leader.start_ns) - begin_ns])
    follows = ClockMap(leader.clock.target, LEADER, knots + later)
    serves = ClockMap(helper.clock.target, HELPER, np.column_stack([knots[:, 1], knots[:, 1]]))
    lab = lab.changed(LEADER, clock=follows, start_ns=helper.start_ns, sync_role="client")
    lab = lab.changed(HELPER, clock=serves, start_ns=begin_ns, sync_role="server")
    return replace(lab, session_clock=HELPER)


@fault("clock-set-back", "the helper's wall clock was set back by an hour beforehand", HELPER)
def clock_set_back(lab: Lab) -> Lab:
    helper = lab.devices[HELPER]
    assert isinstance(helper, Glasses)
    lab = lab.changed(HELPER, start_epoch_s=helper.start_epoch_s - SET_BACK_S)
    return _told(lab, "clock-set-back", recording=HELPER, set_back_s=SET_BACK_S)


# --- clocks of cameras -----------------------------------------------------------------------


@fault("drift-change", "the clock of gopro-front runs at another rate from the middle on", FRONT)
def drift_change(lab: Lab) -> Lab:
    clock = lab.devices[FRONT].clock
    (first, there), (last, _) = clock.knots[[0, -1]].tolist()
    middle = (first + last) // 2
    bend = clock.apply(middle)
    end = clock.apply(last) + round((last - middle) * CHANGE_PPM * 1e-6)
    knots = np.array([[first, there], [middle, bend], [last, end]], np.int64)
    lab = lab.changed(FRONT, clock=ClockMap(clock.target, clock.source, knots))
    return _told(lab, "drift-change", at_session_ns=bend, by_ppm=CHANGE_PPM)


@fault("restarted-device", "gopro-rear was stopped and started again: two recordings", REAR)
def restarted_device(lab: Lab) -> Lab:
    before = lab.devices[REAR]
    assert isinstance(before, GoPro)
    half_s, second = before.seconds / 2, f"{REAR}-2"
    starts_ns = round((half_s + RESTART_GAP_S) * NS_PER_S)
    knots = before.clock.knots - np.array([starts_ns, 0])
    clock = ClockMap(before.clock.target, second, knots)
    after = replace(
        before,
        name=second,
        clock=clock,
        seconds=half_s - RESTART_GAP_S,
        number=before.number + 1,
        start_epoch_s=before.start_epoch_s + half_s + RESTART_GAP_S,
    )
    devices = {**lab.devices, REAR: replace(before, seconds=half_s), second: after}
    lab = replace(lab, devices=devices, stand={**lab.stand, second: REAR})
    restarted = before.clock.apply(starts_ns)
    return _told(lab, "restarted-device", recordings=[REAR, second], at_session_ns=restarted)


# --- sound -----------------------------------------------------------------------------------


@fault("muted-microphones", "the microphones of gopro-rear give nothing", REAR)
def muted_microphones(lab: Lab) -> Lab:
    return lab.changed(REAR, hearing=Hearing(gain=0.0, noise_rms=0.0))


@fault(
    "swapped-microphones",
    "two microphones of the leader's glasses, left and right, are swapped",
    LEADER,
    needs_room=True,
)
def swapped_microphones(lab: Lab) -> Lab:
    one, other = SWAPPED_CHANNELS
    ears = {**lab.ears, LEADER: lambda ears: swapped(ears, one, other)}
    return _told(replace(lab, ears=ears), "swapped-microphones", channels=[one, other])


@fault("dropped-samples", "the webcam lost 50 ms and later 250 ms of sound without a word", WEBCAM)
def dropped_samples(lab: Lab) -> Lab:
    samples = lab.asked.seconds * AUDIO_RATE_HZ
    rng = randomness(lab.asked.seed, "dropped samples")
    at = (samples * rng.uniform((0.3, 0.6), (0.4, 0.7))).astype(int).tolist()
    drops = tuple(Drop(k, lost) for k, lost in zip(at, LOST_SAMPLES, strict=True))
    told = [{"at_sample": d.at, "lost_samples": d.lost} for d in drops]
    lab = replace(lab, drops={**lab.drops, WEBCAM: drops})
    return _told(lab, "dropped-samples", recording=WEBCAM, drops=told)


@fault("radio-playing", "a radio plays music in a corner", needs_room=True)
def radio_playing(lab: Lab) -> Lab:
    return replace(lab, radio=True)


@fault("bystander-talking", "somebody without glasses joins the talk", needs_room=True)
def bystander_talking(lab: Lab) -> Lab:
    return replace(lab, voices={**lab.voices, BYSTANDER: BYSTANDERS_VOICE})


# --- what does not belong --------------------------------------------------------------------


@fault("camera-from-another-session", "gopro-rear recorded on another day", REAR)
def camera_from_another_session(lab: Lab) -> Lab:
    other = lab.asked.seed + ANOTHER
    lab = replace(lab, elsewhere={**lab.elsewhere, REAR: other})
    return _told(lab, "camera-from-another-session", recording=REAR, seed=other)


@fault("other-rooms-scan", "the scan is that of another room", needs_room=True)
def other_rooms_scan(lab: Lab) -> Lab:
    return replace(lab, scan_seed=lab.asked.seed + ANOTHER)


@fault(
    "scan-10cm-off",
    "one station of the scan, or a third of one by hand, stands 10 cm beside where it was",
    needs_room=True,
)
def scan_10cm_off(lab: Lab) -> Lab:
    return _told(replace(lab, station_off_m=OFF_M), "scan-10cm-off", off_m=OFF_M)
