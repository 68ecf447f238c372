"""Scanned objects to ``/geometry/objects`` and back: their files byte for byte, their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from synorama.errors import DamagedSessionError
from synorama.geometry.objects import (
    ObjectFile,
    ScannedObject,
    Unit,
    parse_object,
    record_of,
    thumbnail,
)
from synorama.records import ObjectFileRecord, ObjectPlace, ObjectRecord
from synorama.session.parts import new_part, open_part
from synorama.session.storage import (
    attribute,
    in_order,
    read_json,
    read_table,
    set_attributes,
    set_position,
    write_json,
    write_table,
)
from synorama.transform import RigidTransform

__all__ = [
    "read_object_record",
    "read_object_records",
    "read_objects_part",
    "read_scanned_object",
    "read_thumbnail",
    "write_objects_part",
    "wrong_files",
]

PART = "objects"


def write_objects_part(
    path: Path, objects: Sequence[ScannedObject], refused: Mapping[str, str] | None = None
) -> None:
    """Write objects, and by name why others could not be read, as the part of stage ``objects``."""
    with new_part(path, PART) as file:
        root = file.create_group("geometry").create_group("objects")
        for k, thing in enumerate(objects):
            group = root.create_group(thing.name)
            set_position(group, k)
            _write_object(group, thing)
        for k, (name, why) in enumerate((refused or {}).items(), len(objects)):
            group = root.create_group(name)
            set_position(group, k)
            set_attributes(group, {"refused": why})


def read_objects_part(path: Path) -> tuple[ObjectRecord, ...]:
    """Read what a part of stage ``objects`` tells of its objects."""
    with open_part(path, PART) as file:
        return read_object_records(file["geometry/objects"])


def _write_object(group: Any, thing: ScannedObject) -> None:
    told = record_of(thing)
    set_attributes(
        group,
        {
            "unit": told.unit,
            "unit_recognised": told.unit_recognised,
            "triangles": told.triangles,
            "watertight": told.watertight,
            "textured": told.textured,
        },
    )
    write_json(group, "notes", list(told.notes))
    write_table(group, "size_m", told.size_m)
    write_table(group, "thumbnail", np.frombuffer(thumbnail(thing), np.uint8))
    files = group.create_group("files")
    for k, (file, facts) in enumerate(zip(thing.files, told.files, strict=True)):
        inside = files.create_group(str(k))
        set_position(inside, k)
        set_attributes(inside, {"name": facts.name, "bytes": facts.bytes, "digest": facts.digest})
        write_table(inside, "data", np.frombuffer(file.data, np.uint8))
    if told.place is not None:
        _write_place(group.create_group("place"), told.place)


def _write_place(group: Any, place: ObjectPlace) -> None:
    set_attributes(group, {"by": place.by, "how": place.how, "sigma_m": place.sigma_m})
    for name in ("T_world_object", "T_scan_object"):
        there = getattr(place, name)
        if there is not None:
            table = write_table(group, name, there.matrix)
            set_attributes(table, {"target": there.target, "source": there.source})


# --- reading ---------------------------------------------------------------------------------


def read_object_records(group: Any) -> tuple[ObjectRecord, ...]:
    """Read what is known of all objects of the group ``objects``, in their order."""
    return tuple(read_object_record(name, one) for name, one in in_order(group))


def read_object_record(name: str, group: Any) -> ObjectRecord:
    """Read what is known of one object short of its surface and its bytes."""
    refused = attribute(group, "refused")
    if refused is not None:
        return ObjectRecord(name, refused)
    return ObjectRecord(
        name=name,
        unit=attribute(group, "unit"),
        unit_recognised=bool(attribute(group, "unit_recognised")),
        size_m=read_table(group, "size_m"),
        triangles=attribute(group, "triangles"),
        watertight=bool(attribute(group, "watertight")),
        textured=bool(attribute(group, "textured")),
        files=tuple(_file_record(one) for _, one in in_order(group["files"])),
        notes=tuple(read_json(group, "notes")),
        place=_read_place(group["place"]) if "place" in group else None,
    )


def _file_record(group: Any) -> ObjectFileRecord:
    return ObjectFileRecord(*(attribute(group, name) for name in ("name", "bytes", "digest")))


def _read_place(group: Any) -> ObjectPlace:
    return ObjectPlace(
        attribute(group, "by"),
        attribute(group, "how"),
        _read_transform(group, "T_world_object"),
        _read_transform(group, "T_scan_object"),
        attribute(group, "sigma_m"),
    )


def _read_transform(group: Any, name: str) -> RigidTransform | None:
    if name not in group:
        return None
    frames = attribute(group[name], "target"), attribute(group[name], "source")
    return RigidTransform(*frames, read_table(group, name))


def read_scanned_object(name: str, group: Any, path: Path) -> ScannedObject:
    """Read an object whole, from the bytes of its files.

    Raises
    ------
    DamagedSessionError
        A file's bytes are not those that were written.
    """
    told = read_object_record(name, group)
    for text in wrong_files(group):
        raise DamagedSessionError(
            f"object '{name}': {text}", path=path, hint="run the stage objects again"
        )
    files = [
        ObjectFile(facts.name, read_table(one, "data").tobytes())
        for facts, (_, one) in zip(told.files, in_order(group["files"]), strict=True)
    ]
    thing = parse_object(files, name=name, unit=cast("Unit", told.unit))
    return ScannedObject(
        name,
        thing.files,
        thing.unit,
        told.unit_recognised,
        thing.mesh,
        thing.watertight,
        told.notes,
        told.place,
    )


def wrong_files(group: Any) -> Iterator[str]:
    """Yield in words which files of an object's group are not what their digests say."""
    import blake3

    for _, one in in_order(group.get("files", {})):
        facts = _file_record(one)
        data = read_table(one, "data").tobytes()
        if len(data) != facts.bytes or blake3.blake3(data).hexdigest() != facts.digest:
            yield f"file '{facts.name}' is not what its digest says"


def read_thumbnail(group: Any) -> bytes:
    """Read the PNG picture of an object."""
    return read_table(group, "thumbnail").tobytes()
