"""A whole session: who records, when, on which clock, and where the files go."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from synorama.errors import UsageError
from synorama.simulate.clocks import randomness, steady_clock
from synorama.simulate.devices.aria import FULL, SMALL, write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.gopro import GoPro, write_gopro
from synorama.simulate.devices.webcam import Webcam, write_webcam
from synorama.simulate.output import whole_folder
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.simulate.truth import RecordingTruth, write_truth
from synorama.timebase import NS_PER_S, ClockMap

__all__ = ["DEVICES", "LEAST_SECONDS", "MOST_SECONDS", "Size", "simulate"]

Size = Literal["small", "full"]
Progress = Callable[[int, int], None]

LEAST_SECONDS, MOST_SECONDS = 4.0, 7200.0
START_EPOCH_S = 1_735_725_600  # 2025-01-01 10:00 UTC; nothing here happened at any real time
TRUTH = "truth.json"
RIG = "rig.toml"
LEADER, HELPER, FRONT, REAR, WEBCAM = "leader", "helper", "gopro-front", "gopro-rear", "webcam"
EARLY_OR_LATE_S = 3.0  # most by which a device starts before or after the leader
GLASSES_DRIFT_PPM = 30.0
CAMERA_DRIFT_PPM = 100.0
FIRST_CAMERA_BARCODE = 8  # below are the four cameras of each pair of glasses
GOPRO_CHAPTERS = 2
GOPRO_RECORDING = 123  # both cameras counted to the same number, as happens


def simulate(
    out: Path,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    size: Size = "small",
    progress: Progress | None = None,
    devices: Sequence[str] | None = None,
) -> Path:
    """Write a session of two glasses, two GoPros and a webcam, and what is true of it.

    The folder appears whole or not at all. The same seed gives the same bytes on the same machine
    with the same versions of the libraries.

    Parameters
    ----------
    out
        The folder to make; it must not exist.
    seed
        Decides everything that is random.
    seconds
        Length of the session; 4 s to 2 h.
    size
        ``full``: pictures of the sizes that the devices record; ``small``: tiny ones.
    progress
        Called with the number of devices that are written, and of all.
    devices
        Which of `DEVICES` record; all of them by default. What one of them records does not
        depend on the others.

    Returns
    -------
    The path of ``truth.json`` in the new folder.

    Raises
    ------
    UsageError
        The session is too short or too long, or there is no such size or device.
    OutputExistsError, OutputNotWritableError, DiskFullError
        The folder could not be made.
    """
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(
            f"a session cannot be {seconds} s long",
            hint=f"give {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds",
        )
    if size not in ("small", "full"):
        raise UsageError(f"there is no size '{size}'", hint="give 'small' or 'full'")
    chosen = tuple(DEVICES) if devices is None else tuple(devices)
    for name in chosen:
        if name not in DEVICES:
            raise UsageError(f"there is no device '{name}'", hint=f"give {', '.join(DEVICES)}")
    with whole_folder(out) as draft:
        _write(draft, _plan(seed, seconds, size), chosen, progress or _silent)
    return out / TRUTH


@dataclass(frozen=True, slots=True)
class _Plan:
    """What all devices of the session share."""

    seed: int
    seconds: float
    size: Size
    start_ns: int
    shared_session_id: str

    def random(self, *part: str) -> np.random.Generator:
        return randomness(self.seed, *part)

    def begin_ns(self, name: str) -> int:
        """Return the session time at which a device starts: people do not press at once."""
        spread = EARLY_OR_LATE_S * min(1.0, self.seconds / 60.0)
        late_s = 0.0 if name == LEADER else self.random(name, "start").uniform(-spread, spread)
        return self.start_ns + round(late_s * NS_PER_S)


def _plan(seed: int, seconds: float, size: Size) -> _Plan:
    rng = randomness(seed, "session")
    return _Plan(
        seed,
        seconds,
        size,
        start_ns=int(rng.integers(10**11, 10**13)),
        shared_session_id=str(uuid.UUID(bytes=rng.bytes(16), version=4)),
    )


def _write(folder: Path, plan: _Plan, devices: Sequence[str], progress: Progress) -> None:
    sound = Sound(plan.start_ns, plan.seconds, plan.seed)
    recordings = []
    for done, name in enumerate(devices):
        progress(done, len(devices))
        (folder / name).mkdir()
        recordings.append(DEVICES[name](folder, plan, sound, name))
    progress(len(devices), len(devices))
    (folder / RIG).write_text(_rig_toml(recordings), encoding="utf-8")
    write_truth(folder / TRUTH, _session_facts(plan), tuple(recordings))


def _rig_toml(recordings: Sequence[RecordingTruth]) -> str:
    """Name the devices by their serial numbers, as a lab does once for all its sessions."""
    known = (r for r in recordings if r.serial)
    return "\n".join(f'[[devices]]\nserial = "{r.serial}"\nname = "{r.name}"\n' for r in known)


def _session_facts(plan: _Plan) -> dict[str, object]:
    return {
        "seed": plan.seed,
        "seconds": plan.seconds,
        "size": plan.size,
        "session_clock": LEADER,
        "start_ns": plan.start_ns,
        "end_ns": plan.start_ns + round(plan.seconds * NS_PER_S),
        "shared_session_id": plan.shared_session_id,
    }


def _record_glasses(folder: Path, plan: _Plan, sound: Sound, name: str) -> RecordingTruth:
    glasses = _glasses(plan, name, number=(LEADER, HELPER).index(name))
    path = folder / name / f"{glasses.uuid('file')}.vrs"
    tracks = write_glasses(path, glasses, sound, FULL if plan.size == "full" else SMALL)
    return RecordingTruth(
        name=name,
        device="aria-gen1",
        role=glasses.sync_role,
        serial=glasses.serial,
        files=(path.relative_to(folder).as_posix(),),
        clock=glasses.clock,
        tracks=tracks,
    )


def _glasses(plan: _Plan, name: str, number: int) -> Glasses:
    rng = plan.random(name)
    begin_ns = plan.begin_ns(name)
    serves = name == LEADER
    device_ns = begin_ns if serves else int(rng.integers(10**11, 10**13))
    clock = steady_clock(
        name,
        device_ns=device_ns,
        session_ns=begin_ns,
        length_ns=round(plan.seconds * NS_PER_S),
        drift_ppm=0.0 if serves else rng.uniform(-GLASSES_DRIFT_PPM, GLASSES_DRIFT_PPM),
    )
    return Glasses(
        name=name,
        serial=f"1WM00000000S{number:02d}",
        clock=clock,
        start_ns=device_ns,
        seconds=plan.seconds,
        sync_role="server" if serves else "client",
        shared_session_id=plan.shared_session_id,
        start_epoch_s=START_EPOCH_S + (begin_ns - plan.start_ns) // NS_PER_S,
        barcode=number * len(FULL),
        hearing=_hearing(rng),
        seed=plan.seed,
    )


def _record_gopro(folder: Path, plan: _Plan, sound: Sound, name: str) -> RecordingTruth:
    number = (FRONT, REAR).index(name)
    rng = plan.random(name)
    clock = _file_clock(plan, name, rng)
    width, height = (1920, 1080) if plan.size == "full" else (160, 96)
    camera = GoPro(
        name=name,
        serial=f"C350132500000{number + 1}",
        clock=clock,
        seconds=plan.seconds,
        chapters=GOPRO_CHAPTERS,
        number=GOPRO_RECORDING,
        width=width,
        height=height,
        start_epoch_s=START_EPOCH_S + rng.uniform(0, 30),  # set by hand, as such clocks are
        barcode=FIRST_CAMERA_BARCODE + number,
        hearing=_hearing(rng),
        seed=plan.seed,
    )
    paths, tracks = write_gopro(folder / name, camera, sound)
    files = tuple(path.relative_to(folder).as_posix() for path in paths)
    return RecordingTruth(name, "gopro", "camera", camera.serial, files, clock, tracks)


def _record_webcam(folder: Path, plan: _Plan, sound: Sound, name: str) -> RecordingTruth:
    rng = plan.random(name)
    clock = _file_clock(plan, name, rng)
    width, height = (1280, 720) if plan.size == "full" else (160, 96)
    barcode = FIRST_CAMERA_BARCODE + 2
    camera = Webcam(name, clock, plan.seconds, width, height, barcode, _hearing(rng), plan.seed)
    path = folder / name / "recording.webm"
    tracks = write_webcam(path, camera, sound)
    files = (path.relative_to(folder).as_posix(),)
    return RecordingTruth(name, "webcam", "camera", "", files, clock, tracks)


def _file_clock(plan: _Plan, name: str, rng: np.random.Generator) -> ClockMap:
    """Return the clock of a device whose time is its file's, and starts with it."""
    return steady_clock(
        name,
        device_ns=0,
        session_ns=plan.begin_ns(name),
        length_ns=round(plan.seconds * NS_PER_S),
        drift_ppm=rng.uniform(-CAMERA_DRIFT_PPM, CAMERA_DRIFT_PPM),
    )


def _hearing(rng: np.random.Generator) -> Hearing:
    return Hearing(gain=rng.uniform(0.3, 1.0), noise_rms=rng.uniform(0.002, 0.006))


def _silent(done: int, total: int) -> None:
    """Report progress to nobody."""


_Recorder = Callable[[Path, _Plan, Sound, str], RecordingTruth]

DEVICES: Mapping[str, _Recorder] = {
    LEADER: _record_glasses,
    HELPER: _record_glasses,
    FRONT: _record_gopro,
    REAR: _record_gopro,
    WEBCAM: _record_webcam,
}
"""What can record in a session, by name."""
