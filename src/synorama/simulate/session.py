"""A whole session: planned, spoiled where that is asked for, recorded, and told the truth of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from synorama.simulate.devices.aria import write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.gopro import AUDIO_RATE_HZ, GoPro, write_gopro
from synorama.simulate.devices.webcam import FIRST_SOUND_MS, NS_PER_MS, write_webcam
from synorama.simulate.faults import planted
from synorama.simulate.lab import (
    DEVICES,
    Asked,
    Device,
    Lab,
    Scanned,
    Services,
    Size,
    plan_lab,
)
from synorama.simulate.output import whole_folder
from synorama.simulate.scene.room import Kind
from synorama.simulate.sound.faults import Dropping, clock_after_drops
from synorama.simulate.stage import BareStage, RoomStage, stage_of
from synorama.simulate.surroundings import write_surroundings
from synorama.simulate.told import everywhere, heard_in_room, tables_of
from synorama.simulate.truth import RecordingTruth, TrackTruth, write_tables, write_truth

__all__ = ["TABLES", "TRUTH", "simulate", "simulate_plan"]

Progress = Callable[[int, int], None]

TRUTH, TABLES, RIG = "truth.json", "truth.npz", "rig.toml"


def simulate(
    out: Path,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    size: Size = "small",
    room: Kind | None = "kitchen",
    aligned: bool = False,
    faults: Sequence[str] = (),
    mps: Services | None = "shared",
    scan: Scanned | None = "stations",
    render: bool = True,
    barcode: bool = True,
    progress: Progress | None = None,
    devices: Sequence[str] | None = None,
    contrast: float = 1.0,
    moved_share: float = 0.15,
    coverage: float = 1.0,
    wander_ms: float = 0.0,
) -> Path:
    """Write a session of two glasses, two GoPros and a webcam, and what is true of it.

    The folder appears whole or not at all. The same seed gives the same bytes on the same machine
    with the same versions of the libraries.

    Parameters
    ----------
    out
        The folder to make; it must not exist.
    seed, seconds, size, room, aligned, faults, mps, scan, render, barcode, devices
        As in `synorama.simulate.lab.Asked`; all devices by default.
    contrast, moved_share, coverage, wander_ms
        Knobs, as there.
    progress
        Called with the number of parts that are written, and of all.

    Returns
    -------
    The path of ``truth.json`` in the new folder.

    Raises
    ------
    UsageError
        The session is too short or too long, or there is no such size, room, fault or device.
    OutputExistsError, OutputNotWritableError, DiskFullError
        The folder could not be made.
    """
    lab = simulate_plan(
        seed=seed,
        seconds=seconds,
        size=size,
        room=room,
        aligned=aligned,
        faults=tuple(faults),
        mps=mps,
        scan=scan,
        render=render,
        barcode=barcode,
        devices=DEVICES if devices is None else tuple(devices),
        contrast=contrast,
        moved_share=moved_share,
        coverage=coverage,
        wander_ms=wander_ms,
    )
    with whole_folder(out) as draft:
        _record(draft, lab, progress or _silent)
    return out / TRUTH


def simulate_plan(**asked: Any) -> Lab:
    """Return what `simulate` would record; parameters as in `synorama.simulate.lab.Asked`.

    Raises
    ------
    UsageError
        What was asked for cannot be.
    """
    return planted(plan_lab(Asked(**asked)))


def _silent(done: int, total: int) -> None:
    """Report progress to nobody."""


def _record(folder: Path, lab: Lab, progress: Progress) -> None:
    stage_with = lru_cache(2)(lambda seed: stage_of(lab, seed))
    stage = stage_with(lab.asked.seed)
    total = len(lab.devices) + isinstance(stage, RoomStage)
    recordings: tuple[RecordingTruth, ...] = ()
    for done, (name, device) in enumerate(lab.devices.items()):
        progress(done, total)
        there = stage_with(lab.elsewhere.get(name, lab.asked.seed))
        recordings += (_recorded(folder, lab, there, device),)
    facts = _facts(lab)
    if isinstance(stage, RoomStage):
        progress(total - 1, total)
        facts |= stage.facts() | write_surroundings(folder, lab, stage, recordings)
        write_tables(folder / TABLES, tables_of(lab, stage, recordings))
    progress(total, total)
    for edit in lab.edits:
        recordings = edit(folder, recordings)
    (folder / RIG).write_text(_rig_toml(recordings), encoding="utf-8")
    write_truth(folder / TRUTH, facts, recordings)


def _rig_toml(recordings: Sequence[RecordingTruth]) -> str:
    """Name the devices by their serial numbers, as a lab does once for all its sessions."""
    known: dict[str, str] = {}
    for recording in recordings:
        known.setdefault(recording.serial, recording.name)
    known.pop("", None)
    return "\n".join(f'[[devices]]\nserial = "{s}"\nname = "{n}"\n' for s, n in known.items())


def _facts(lab: Lab) -> dict[str, Any]:
    return {
        "seed": lab.asked.seed,
        "seconds": lab.asked.seconds,
        "size": lab.asked.size,
        "aligned": lab.asked.aligned,
        "session_clock": lab.session_clock,
        "start_ns": lab.start_ns,
        "end_ns": lab.end_ns,
        "shared_session_id": lab.shared_session_id,
        "faults": dict(lab.planted),
    }


# --- one device ------------------------------------------------------------------------------


def _recorded(
    folder: Path, lab: Lab, stage: BareStage | RoomStage, device: Device
) -> RecordingTruth:
    """Write what a device recorded, and return what is true of it."""
    place = lab.stand.get(device.name, device.name)
    (folder / place).mkdir(exist_ok=True)
    truth = _written(folder, lab, stage, device, place)
    if isinstance(stage, BareStage):
        return everywhere(truth)
    return heard_in_room(truth, lab, stage, place)


def _written(
    folder: Path, lab: Lab, stage: BareStage | RoomStage, device: Device, place: str
) -> RecordingTruth:
    drops = lab.drops.get(device.name, ())
    heard = stage.hears(device.name, place)
    sound = Dropping(heard, drops) if drops else heard
    shots = stage.shots(device, place)
    if isinstance(device, Glasses):
        cameras = lab.asked.pictures
        path = folder / place / f"{device.uuid('file')}.vrs"
        moves = stage.moves(device)
        tracks = write_glasses(path, device, sound, cameras, shots=shots, moves=moves)
        return _truth(folder, device, "aria-gen1", (path,), tracks)
    if isinstance(device, GoPro):
        paths, tracks = write_gopro(folder / place, device, sound, shots.get("video"))
        return _truth(folder, device, "gopro", paths, _after_drops(lab, device, 0, tracks))
    path = folder / place / "recording.webm"
    tracks = write_webcam(path, device, sound, shots.get("video"))
    first_ns = FIRST_SOUND_MS * NS_PER_MS
    return _truth(folder, device, "webcam", (path,), _after_drops(lab, device, first_ns, tracks))


def _after_drops(
    lab: Lab, device: Device, first_ns: int, tracks: Mapping[str, TrackTruth]
) -> Mapping[str, TrackTruth]:
    """Return the tracks with the clock that sound in the file has where samples are lost."""
    drops = lab.drops.get(device.name, ())
    if not drops:
        return tracks
    clock = clock_after_drops(device.clock, AUDIO_RATE_HZ, first_ns, drops)
    return {**tracks, "audio": replace(tracks["audio"], clock=clock)}


def _truth(
    folder: Path,
    device: Device,
    kind: str,
    paths: Sequence[Path],
    tracks: Mapping[str, TrackTruth],
) -> RecordingTruth:
    return RecordingTruth(
        name=device.name,
        device=kind,
        role=device.sync_role if isinstance(device, Glasses) else "camera",
        serial=getattr(device, "serial", ""),
        files=tuple(path.relative_to(folder).as_posix() for path in paths),
        clock=device.clock,
        tracks=tracks,
    )
