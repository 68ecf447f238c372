"""What belongs to a session beside its recordings: the services' output, the scan, the objects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from synorama.simulate.devices.aria import calibration
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.lab import HELPER, Lab
from synorama.simulate.mps import MpsOptions, Worn, write_mps
from synorama.simulate.scan.files import write_e57, write_laz, write_ply
from synorama.simulate.scan.objects import choose_objects, write_objects
from synorama.simulate.scan.scanner import SCAN, Scan, ScanOptions, make_scan
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.surface import room_surface
from synorama.simulate.stage import RoomStage
from synorama.simulate.truth import RecordingTruth
from synorama.transform import RigidTransform

__all__ = ["write_surroundings"]

MPS_POINTS = {"small": 20_000, "full": 60_000}
SCAN_POINTS = {"small": 150_000, "full": 2_000_000}
PANORAMA_PX = {"small": 512, "full": 2048}
OBJECTS = 5


def write_surroundings(
    folder: Path, lab: Lab, stage: RoomStage, recordings: tuple[RecordingTruth, ...]
) -> dict[str, Any]:
    """Write all of it into the session's folder; return what is true of it, as JSON-able values."""
    facts: dict[str, Any] = {}
    if lab.asked.mps is not None:
        facts["mps"] = _write_mps(folder, lab, stage, recordings)
    if lab.asked.scan is not None:
        facts["scan"] = _write_scan(folder / "scan", lab, stage)
        facts["objects"] = _write_objects(folder / "objects", lab, stage)
    return facts


def _write_mps(
    folder: Path, lab: Lab, stage: RoomStage, recordings: tuple[RecordingTruth, ...]
) -> dict[str, Any]:
    worn = [
        Worn(
            device,
            stage.wearers[recording.name],
            Path(recording.files[0]),
            calibration(device.serial, lab.asked.pictures),
        )
        for recording in recordings
        if isinstance(device := lab.devices[recording.name], Glasses)
    ]
    options = MpsOptions(
        frames="own" if lab.asked.mps == "separate" else "shared",
        missing=(HELPER,) if lab.asked.mps == "leader-only" else (),
        points=MPS_POINTS[lab.asked.size],
    )
    truths = write_mps(folder, worn, stage.surface, options)
    return {name: truth.as_json() for name, truth in truths.items()}


def _write_scan(folder: Path, lab: Lab, stage: RoomStage) -> dict[str, Any]:
    folder.mkdir()
    scan = _scan(lab, stage)
    if lab.asked.scan == "stations":
        write_e57(folder / "room.e57", scan)
    else:
        write_ply(folder / "room.ply", scan)
    write_laz(folder / "room.laz", scan)
    told = scan.as_json()
    if lab.scan_seed != lab.asked.seed:
        told["T_world_scan"] = None  # no pose carries one room into another
    return told


def _scan(lab: Lab, stage: RoomStage) -> Scan:
    asked = lab.asked
    options = ScanOptions(
        kind=asked.scan or "stations",
        points=SCAN_POINTS[asked.size],
        panorama_px=PANORAMA_PX[asked.size],
        coverage=asked.coverage,
    )
    if lab.scan_seed == asked.seed:
        scan = make_scan(stage.room, stage.scanned_surface(), asked.seed, options)
    else:
        room = build_room(lab.scan_seed, stage.room.kind, contrast=asked.contrast)
        surface = room_surface(room, "scan", texture_px=stage.surface.atlas.side_px)
        scan = make_scan(room, surface, asked.seed, options)
    return _with_part_off(scan, lab.station_off_m) if lab.station_off_m else scan


def _with_part_off(scan: Scan, off_m: float) -> Scan:
    """Return the scan with one station told to stand beside where it stood.

    A scan by hand has none: there, the scanner lost its place for the last third of its way.
    """
    last = scan.stations[-1]
    if len(scan.stations) == 1:
        points = last.points_m.copy()
        points[len(points) * 2 // 3 :, 0] += off_m
        return replace(scan, stations=(replace(last, points_m=points),))
    matrix = np.array(last.scan_station.matrix)
    matrix[0, 3] += off_m
    moved = replace(last, scan_station=RigidTransform(SCAN, last.name, matrix))
    return replace(scan, stations=(*scan.stations[:-1], moved))


def _write_objects(folder: Path, lab: Lab, stage: RoomStage) -> list[dict[str, Any]]:
    folder.mkdir()
    things = choose_objects(stage.room, lab.asked.seed, OBJECTS)
    return [truth.as_json() for truth in write_objects(folder, things, stage.surface.atlas)]
