"""The stage objects: scanned things go into the session, whole, and where somebody put them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.config import ObjectEntry, load_session_config
from synorama.errors import ConfigError, InputError, RegistrationRefusedError
from synorama.pipeline.register import REGISTER, in_words, scans_of
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.workspace import Workspace
from synorama.records import ObjectPlace, RegistrationResult
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.objects import ScannedObject

    Float64 = NDArray[np.float64]

__all__ = ["OBJECTS"]

WORLD = "world"
PREFERRED = (".obj", ".ply", ".stl")
ROUNDED = 0.005  # of a rotation that was written by hand
NOT_IN_WORLD = "the scan has no place in the world"


def objects_of(work: Workspace) -> dict[str, Path]:
    """Return the objects by name; of one object in several formats the one that tells most.

    What ``session.toml`` names goes before.
    """
    named = {work.folder / entry.path: entry.id for entry in _entries(work).values()}
    best: dict[Path, Path] = {}
    for path in sorted(work.discovery.objects, key=lambda p: _rank(p, p in named)):
        best.setdefault(path.with_suffix(""), path)
    names: dict[str, Path] = {}
    for path in sorted(best.values(), key=lambda p: (not named.get(p), p)):
        names[_free(named.get(path) or _plain(path.stem), names)] = path
    return names


def _rank(path: Path, named: bool) -> tuple[bool, int, Path]:
    return not named, PREFERRED.index(path.suffix.lower()), path


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "object"


def _free(name: str, taken: Mapping[str, Path]) -> str:
    """Return the name, with a number where it is taken."""
    trial = (f"{name}-{k}" if k > 1 else name for k in range(1, len(taken) + 2))
    return next(one for one in trial if one not in taken)


def _entries(work: Workspace) -> dict[Path, ObjectEntry]:
    config = load_session_config(work.folder)
    return {work.folder / entry.path: entry for entry in config.objects}


def _skipped_because(work: Workspace) -> str | None:
    return None if work.discovery.objects else "there are no scanned objects"


def _objects(work: Workspace, progress: Progress) -> None:
    from synorama.geometry.objects import read_object
    from synorama.session.objects_io import write_objects_part

    entries, task = _entries(work), _Task(work)
    things, refused = [], {}
    found = objects_of(work)
    for k, (name, path) in enumerate(found.items()):
        progress(OBJECTS.name, k, len(found))
        entry = entries.get(path, ObjectEntry(path=path.name))
        try:
            things.append(task.placed(read_object(path, name=name, unit=entry.unit), entry))
        except ConfigError:
            raise
        except InputError as error:
            refused[name] = in_words(error)
    progress(OBJECTS.name, len(found), len(found))
    write_objects_part(work.part(OBJECTS.name), things, refused)


# --- places ----------------------------------------------------------------------------------


@dataclass
class _Task:
    """The scans of a session, and what is known of their places."""

    work: Workspace

    def placed(self, thing: ScannedObject, entry: ObjectEntry) -> ScannedObject:
        """Return the object where the operator, or the scan, says that it stands."""
        if entry.T_world_object is not None:
            there = _rigid(self.work, entry, WORLD, thing.name, entry.T_world_object)
            return replace(thing, place=ObjectPlace("person", "in the world", there))
        if entry.T_scan_object is None:
            return thing
        self._check_scan(entry)
        start = _rigid(self.work, entry, entry.scan, thing.name, entry.T_scan_object)
        if not entry.refine:
            place = self._in_world(ObjectPlace("person", "in the scan", None, start))
            return replace(thing, place=place)
        return self._settled(thing, entry.scan, start)

    def _check_scan(self, entry: ObjectEntry) -> None:
        scans = scans_of(self.work)
        if entry.scan not in scans:
            raise ConfigError(
                f"the object '{entry.path}' is put into '{entry.scan}', and there is no such scan",
                path=self.work.folder / "session.toml",
                hint="scans are: " + (", ".join(scans) or "none"),
            )

    def _settled(self, thing: ScannedObject, scan: str, start: RigidTransform) -> ScannedObject:
        """Settle the object on the scan's points; where that fails a person's word stands."""
        from synorama.geometry.settle import settled

        try:
            found = settled(thing, self._points(scan), start)
        except RegistrationRefusedError as error:
            place = self._in_world(ObjectPlace("person", "in the scan", None, start))
            return replace(thing, place=place, notes=(*thing.notes, in_words(error)))
        how = (
            f"the scan shows {100 * found.seen:.0f} % of what stands out of it, "
            f"{1e3 * found.moved_m:.0f} mm and {np.degrees(found.turned_rad):.1f} degrees from "
            "where it was put"
        )
        place = ObjectPlace("registration", how, None, found.T_scan_object, found.sigma_m)
        return replace(thing, place=self._in_world(place))

    def _in_world(self, place: ObjectPlace) -> ObjectPlace:
        """Carry the place from the scan into the world, if the scan's is known."""
        assert place.T_scan_object is not None  # what is called for has one
        scan = self._places.get(place.T_scan_object.target)
        if scan is None or scan.T_target_source is None:
            return replace(place, how=f"{place.how}; {NOT_IN_WORLD}")
        how = f"{place.how}, whose place is {scan.status}"
        there = scan.T_target_source @ place.T_scan_object
        return replace(place, how=how, T_world_object=there)

    @cached_property
    def _places(self) -> Mapping[str, RegistrationResult]:
        from synorama.session.geometry_io import read_geometry_part

        if REGISTER.skipped_because(self.work) is not None:
            return {}
        return read_geometry_part(self.work.part(REGISTER.name)).scans

    def _points(self, scan: str) -> Float64:
        from synorama.registration import read_side

        if scan not in self._scans:
            self._scans[scan] = read_side(scans_of(self.work)[scan], scan).cloud.points_m
        return self._scans[scan]

    @cached_property
    def _scans(self) -> dict[str, Float64]:
        return {}


def _rigid(
    work: Workspace, entry: ObjectEntry, target: str, source: str, rows: Any
) -> RigidTransform:
    """Return a pose that was written by hand: its rotation may be rounded, and nothing else."""
    matrix = np.array(rows, np.float64)
    u, _, v = np.linalg.svd(matrix[:3, :3])
    turn = u @ v
    if np.abs(turn - matrix[:3, :3]).max() < ROUNDED:
        matrix[:3, :3] = turn
    try:
        return RigidTransform(target, source, matrix)
    except ValueError as error:
        raise ConfigError(
            f"the pose of the object '{entry.path}' is none: {error}",
            path=work.folder / "session.toml",
            hint="give four rows of four numbers: a rotation, a place in metres, and 0 0 0 1",
        ) from error


def _inputs(work: Workspace) -> dict[str, Any]:
    """Return what the result depends on; files beside the objects, such as textures, too."""
    folders = {path.parent for path in work.discovery.objects}
    files = sorted(p for folder in folders for p in folder.rglob("*") if p.is_file())
    config = load_session_config(work.folder).objects
    return {
        "files": [_stamp(work, path) for path in files],
        "told": [entry.model_dump(mode="json") for entry in config],
    }


def _stamp(work: Workspace, path: Path) -> list[Any]:
    stat = path.stat()
    return [path.relative_to(work.folder).as_posix(), stat.st_size, stat.st_mtime_ns]


OBJECTS = Stage(
    name="objects",
    version=1,
    needs=(REGISTER.name,),
    libraries=("numpy", "scipy", "opencv-python-headless"),
    inputs=_inputs,
    run=_objects,
    result=lambda work: work.part("objects"),
    skipped_because=_skipped_because,
)
