"""A recording day as it is planned: who records, when, on which clock, and what goes wrong.

A `Lab` is decided by what was asked for, before anything is written. Faults are planted by
changing it: see `synorama.simulate.faults`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from synorama.errors import UsageError
from synorama.simulate.clocks import randomness, steady_clock
from synorama.simulate.devices.aria import FULL, SMALL, AriaCamera
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.gopro import GoPro
from synorama.simulate.devices.webcam import Webcam
from synorama.simulate.scene.room import KINDS, Kind
from synorama.simulate.sound.acoustic_scene import Ears
from synorama.simulate.sound.faults import Drop, wandering
from synorama.simulate.sound.plain import Hearing
from synorama.simulate.truth import RecordingTruth
from synorama.timebase import NS_PER_S, ClockMap

__all__ = [
    "BYSTANDER", "CAMERAS", "DEVICES", "FRONT", "GLASSES", "HELPER", "LEADER", "REAR", "WEBCAM",
    "Asked", "Device", "Edit", "Lab", "Scanned", "Services", "Size", "plan_lab",
]  # fmt: skip

Size = Literal["small", "full"]
Services = Literal["shared", "separate", "leader-only"]
Scanned = Literal["stations", "handheld"]
Device: TypeAlias = Glasses | GoPro | Webcam

LEAST_SECONDS, MOST_SECONDS = 4.0, 7200.0
START_EPOCH_S = 1_735_725_600  # 2025-01-01 10:00 UTC; nothing here happened at any real time
LEADER, HELPER, FRONT, REAR, WEBCAM = "leader", "helper", "gopro-front", "gopro-rear", "webcam"
GLASSES, GOPROS = (LEADER, HELPER), (FRONT, REAR)
CAMERAS = (*GOPROS, WEBCAM)
DEVICES = (*GLASSES, *CAMERAS)
"""What can record in a session, by name."""
BYSTANDER = "bystander"
KNOBS = {
    "contrast": (0.0, 1.0),
    "moved_share": (0.0, 1.0),
    "coverage": (0.2, 1.0),
    "wander_ms": (0.0, 20.0),
}
"""Least and greatest values of the numbers that can be asked for."""

EARLY_OR_LATE_S = 3.0  # most by which a device starts before or after the leader
GLASSES_DRIFT_PPM = 30.0
CAMERA_DRIFT_PPM = 100.0
FIRST_CAMERA_BARCODE = 8  # below are the four cameras of each pair of glasses
GOPRO_CHAPTERS = 2
ROOM_RGB_HZ = 15.0
GOPRO_RECORDING = 123  # both cameras counted to the same number, as happens
VOICES = {LEADER: "anna", HELPER: "carl"}
# How loud everything is for each kind of device, and its own noise, as shares of full scale.
PLAIN_HEARING = ((0.3, 1.0), (0.002, 0.006))
ROOM_HEARING = {"glasses": ((0.3, 0.5), (3e-4, 6e-4)), "camera": ((3.0, 6.0), (5e-4, 1.5e-3))}


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for.

    Parameters
    ----------
    seed
        Decides everything that is random.
    seconds
        Length of the session; 4 s to 2 h.
    size
        ``full``: pictures of the sizes that the devices record; ``small``: tiny ones.
    room
        Kind of the room; None for a plain session without one: pictures that repeat, and one
        sound that is everywhere at once.
    aligned
        Let direct sound take no time to any microphone.
    faults
        Names of `synorama.simulate.faults.FAULTS`.
    mps
        Output of the services for the glasses: in one frame, in a frame for each wearer, for the
        leader only, or none. Only in a room.
    scan
        How the room was scanned, or None. Only in a room.
    contrast
        Of the room's textures: 1 as usual, towards 0 ever plainer.
    moved_share
        Share of the movable things that stand elsewhere in the session than at the scan.
    coverage
        Share of the scan's points that is there: one side of the room was not scanned.
    wander_ms
        How far the clock of every device but the leader comes off a straight line, at most.
    render
        Whether pictures show the room; pictures that repeat otherwise.
    barcode
        Whether each picture carries its number. Pictures that repeat always do.
    devices
        Which of `DEVICES` record. What one of them records does not depend on the others.
    """

    seed: int = 0
    seconds: float = 60.0
    size: Size = "small"
    room: Kind | None = "kitchen"
    aligned: bool = False
    faults: tuple[str, ...] = ()
    mps: Services | None = "shared"
    scan: Scanned | None = "stations"
    render: bool = True
    barcode: bool = True
    devices: tuple[str, ...] = DEVICES
    contrast: float = 1.0
    moved_share: float = 0.15
    coverage: float = 1.0
    wander_ms: float = 0.0

    def __post_init__(self) -> None:
        if not LEAST_SECONDS <= self.seconds <= MOST_SECONDS:
            raise UsageError(
                f"a session cannot be {self.seconds} s long",
                hint=f"give {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds",
            )
        _one_of("size", self.size, ("small", "full"))
        _one_of("room", self.room, (*KINDS, None))
        _one_of("output of the services", self.mps, ("shared", "separate", "leader-only", None))
        _one_of("scan", self.scan, ("stations", "handheld", None))
        for name in self.devices:
            _one_of("device", name, DEVICES)
        for what, limits in KNOBS.items():
            _within(what, getattr(self, what), *limits)

    @property
    def pictures(self) -> tuple[AriaCamera, ...]:
        """Cameras of the glasses; small pictures of a room come less often, as each costs much."""
        if self.size == "full":
            return FULL
        return tuple(
            replace(c, rate_hz=ROOM_RGB_HZ) if c.name == "rgb" and self.rendered else c
            for c in SMALL
        )

    @property
    def rendered(self) -> bool:
        """Whether pictures show a room."""
        return self.room is not None and self.render


def _within(what: str, given: float, least: float, most: float) -> None:
    if not least <= given <= most:
        raise UsageError(f"{what} cannot be {given}", hint=f"give {least:g} to {most:g}")


def _one_of(what: str, given: str | None, known: Sequence[str | None]) -> None:
    if given not in known:
        names = ", ".join(name for name in known if name)
        raise UsageError(f"there is no {what} '{given}'", hint=f"give one of: {names}")


Edit: TypeAlias = Callable[[Path, tuple[RecordingTruth, ...]], tuple[RecordingTruth, ...]]
"""Changes the files of a session that is written, and tells what is true then."""


@dataclass(frozen=True, slots=True)
class Lab:
    """All that is decided before the session is recorded.

    Parameters
    ----------
    asked
        What was asked for.
    start_ns
        Session time at which the session starts.
    shared_session_id
        What all glasses of one synchronized session have in common.
    devices
        What records, by name.
    stand
        Where a device stands whose name is not that of a place.
    session_clock
        Whose device time is the session's: the glasses' that serve the time.
    voices
        Which voice each speaker has.
    radio
        Whether a radio plays in a corner.
    ears
        What is done to the microphones of a device.
    drops
        Which samples of a device's sound are lost.
    elsewhere
        Seed of the session in which a device really was.
    scan_seed
        Seed of the room that was scanned.
    station_off_m
        How far the last station of the scan stands from where its pose says, along x.
    edits
        What happens to the files afterwards.
    planted
        What is true of each fault.
    """

    asked: Asked
    start_ns: int
    shared_session_id: str
    devices: Mapping[str, Device]
    stand: Mapping[str, str] = field(default_factory=dict)
    session_clock: str = LEADER
    voices: Mapping[str, str] = field(default_factory=lambda: VOICES)
    radio: bool = False
    ears: Mapping[str, Callable[[Ears], Ears]] = field(default_factory=dict)
    drops: Mapping[str, tuple[Drop, ...]] = field(default_factory=dict)
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    scan_seed: int = 0
    station_off_m: float = 0.0
    edits: tuple[Edit, ...] = ()
    planted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """Session time at which the session ends."""
        return self.start_ns + round(self.asked.seconds * NS_PER_S)

    def changed(self, name: str, **changes: Any) -> Lab:
        """Return the lab with something else true of one device."""
        return replace(self, devices={**self.devices, name: replace(self.devices[name], **changes)})


def plan_lab(asked: Asked) -> Lab:
    """Return the plan of a session in which nothing goes wrong."""
    rng = randomness(asked.seed, "session")
    start_ns = int(rng.integers(10**11, 10**13))
    shared = str(uuid.UUID(bytes=rng.bytes(16), version=4))
    day = _Day(asked, start_ns, shared)
    devices = {name: day.device(name) for name in asked.devices}
    return Lab(asked, start_ns, shared, devices, scan_seed=asked.seed)


@dataclass(frozen=True, slots=True)
class _Day:
    """What all devices of a session share."""

    asked: Asked
    start_ns: int
    shared_session_id: str

    def device(self, name: str) -> Device:
        """Return what records under a name."""
        if name in GLASSES:
            return self._glasses(name)
        return self._webcam(name) if name == WEBCAM else self._gopro(name)

    def _glasses(self, name: str) -> Glasses:
        rng, number = self._random(name), GLASSES.index(name)
        serves, begin_ns = name == LEADER, self._begin_ns(name)
        device_ns = begin_ns if serves else int(rng.integers(10**11, 10**13))
        drift_ppm = 0.0 if serves else rng.uniform(-GLASSES_DRIFT_PPM, GLASSES_DRIFT_PPM)
        return Glasses(
            name=name,
            serial=f"1WM00000000S{number:02d}",
            clock=self._clock(name, device_ns, drift_ppm),
            start_ns=device_ns,
            seconds=self.asked.seconds,
            sync_role="server" if serves else "client",
            shared_session_id=self.shared_session_id,
            start_epoch_s=START_EPOCH_S + (begin_ns - self.start_ns) // NS_PER_S,
            barcode=self._barcode(number * len(FULL)),
            hearing=self._hearing(rng, "glasses"),
            seed=self.asked.seed,
        )

    def _gopro(self, name: str) -> GoPro:
        rng, number = self._random(name), GOPROS.index(name)
        clock = self._clock(name, 0, rng.uniform(-CAMERA_DRIFT_PPM, CAMERA_DRIFT_PPM))
        width, height = (1920, 1080) if self.asked.size == "full" else (160, 96)
        return GoPro(
            name=name,
            serial=f"C350132500000{number + 1}",
            clock=clock,
            seconds=self.asked.seconds,
            chapters=GOPRO_CHAPTERS,
            number=GOPRO_RECORDING,
            width=width,
            height=height,
            start_epoch_s=START_EPOCH_S + rng.uniform(0, 30),  # set by hand, as such clocks are
            barcode=self._barcode(FIRST_CAMERA_BARCODE + number),
            hearing=self._hearing(rng, "camera"),
            seed=self.asked.seed,
        )

    def _webcam(self, name: str) -> Webcam:
        rng = self._random(name)
        clock = self._clock(name, 0, rng.uniform(-CAMERA_DRIFT_PPM, CAMERA_DRIFT_PPM))
        width, height = (1280, 720) if self.asked.size == "full" else (160, 96)
        return Webcam(
            name=name,
            clock=clock,
            seconds=self.asked.seconds,
            width=width,
            height=height,
            barcode=self._barcode(FIRST_CAMERA_BARCODE + len(GOPROS)),
            hearing=self._hearing(rng, "camera"),
            seed=self.asked.seed,
        )

    def _random(self, *part: str) -> np.random.Generator:
        return randomness(self.asked.seed, *part)

    def _begin_ns(self, name: str) -> int:
        """Return the session time at which a device starts: people do not press at once."""
        spread = EARLY_OR_LATE_S * min(1.0, self.asked.seconds / 60.0)
        late_s = 0.0 if name == LEADER else self._random(name, "start").uniform(-spread, spread)
        return self.start_ns + round(late_s * NS_PER_S)

    def _clock(self, name: str, device_ns: int, drift_ppm: float) -> ClockMap:
        steady = steady_clock(
            name,
            device_ns=device_ns,
            session_ns=self._begin_ns(name),
            length_ns=round(self.asked.seconds * NS_PER_S),
            drift_ppm=drift_ppm,
        )
        if name == LEADER or not self.asked.wander_ms:
            return steady
        wander_ns = self.asked.wander_ms * 1e6
        return wandering(steady, self._random(name, "wander"), wander_ns=wander_ns)

    def _barcode(self, number: int) -> int | None:
        return number if self.asked.barcode or not self.asked.rendered else None

    def _hearing(self, rng: np.random.Generator, kind: str) -> Hearing:
        gain, noise = PLAIN_HEARING if self.asked.room is None else ROOM_HEARING[kind]
        return Hearing(gain=rng.uniform(*gain), noise_rms=rng.uniform(*noise))
