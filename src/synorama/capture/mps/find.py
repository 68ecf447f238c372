"""Where the MPS output of a recording lies: beside it, one folder up, or in multi-SLAM output.

A wrong match would give one wearer's poses to the other, unnoticed. So a folder is taken only
when its name or its mapping names this VRS file and no other; where that is in doubt it is left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from synorama.errors import CorruptFileError

__all__ = ["SERVICES", "find_mps", "mappings_left"]

MAPPING = "vrs_to_multi_slam.json"
SERVICES = ("slam", "trajectory", "eye_gaze", "hand_tracking")
FOLDER_NAME = re.compile(r"[A-Za-z0-9_-]+")


def find_mps(vrs_path: Path) -> tuple[Path, ...]:
    """Return the folders with MPS output of a VRS file; empty where there is none (yet).

    Multi-SLAM folders come first: their ``world`` is shared by all wearers. Where two folders
    hold a track of the same name, use the first.

    Parameters
    ----------
    vrs_path
        ``NAME.vrs``. Looked for are ``mps_NAME_vrs/`` and ``mps_NAME/`` (beside it, inside
        ``mps/``, or one folder up), ``mps/`` and the service folders themselves where it is the
        only VRS file of its folder, and numbered multi-SLAM folders whose
        ``vrs_to_multi_slam.json`` (beside it or up to two folders below, or one folder up and
        one below that) names it.

    Raises
    ------
    CorruptFileError
        A ``vrs_to_multi_slam.json`` of this folder is no mapping.
    """
    folders = (*_multi_slam(vrs_path), *_own(vrs_path), *_of_only_recording(vrs_path))
    return tuple(dict.fromkeys(folders))


# --- of one recording ------------------------------------------------------------------------


def _own(vrs: Path) -> Iterator[Path]:
    here, above = vrs.parent, vrs.absolute().parent.parent
    places = [here, here / "mps"]
    if not _namesakes(vrs):
        places.append(above)
    for place in places:
        for name in (f"mps_{vrs.stem}_vrs", f"mps_{vrs.stem}"):
            if (place / name).is_dir():
                yield place / name


def _of_only_recording(vrs: Path) -> Iterator[Path]:
    """Folders that name no recording belong to the only one beside them."""
    here = vrs.parent
    if any(other.name != vrs.name for other in here.glob("*.vrs")):
        return
    for place in (here / "mps", here):
        if any((place / service).is_dir() for service in SERVICES):
            yield place


def _namesakes(vrs: Path) -> bool:
    """Whether a folder beside this one has a VRS file of the same name."""
    here = vrs.absolute().parent
    return any(other.parent != here for other in here.parent.glob(f"*/{vrs.name}"))


# --- of several recordings -------------------------------------------------------------------


def _multi_slam(vrs: Path) -> Iterator[Path]:
    here = vrs.absolute().parent
    for pattern in ("", "*/", "*/*/"):
        for mapping in sorted(vrs.parent.glob(pattern + MAPPING)):
            yield from _mapped(mapping, vrs, least=1)
    for pattern in ("", "*/"):
        for mapping in sorted(here.parent.glob(pattern + MAPPING)):
            if mapping.parent != here and not _is_of_other_session(mapping, vrs):
                yield from _mapped(mapping, vrs, least=2)


def mappings_left(vrs_path: Path) -> tuple[Path, ...]:
    """Return the mappings near a VRS file that have its name, but not surely mean it.

    Raises
    ------
    CorruptFileError
        One of them is no mapping.
    """
    here = vrs_path.absolute().parent
    near = [m for pattern in ("", "*/") for m in sorted(here.parent.glob(pattern + MAPPING))]
    return tuple(
        mapping
        for mapping in near
        if mapping.parent != here
        and not _is_of_other_session(mapping, vrs_path)
        and max((_shared(vrs_path.absolute().parts, key) for key in _load(mapping)), default=0) == 1
        and not any(_mapped(mapping, vrs_path, least=2))
    )


def _is_of_other_session(mapping: Path, vrs: Path) -> bool:
    """Whether a folder beside the recording's holds recordings of its own with the mapping."""
    return mapping.parent != vrs.absolute().parent.parent and any(mapping.parent.glob("*.vrs"))


def _mapped(mapping: Path, vrs: Path, *, least: int) -> Iterator[Path]:
    """Yield the folder that a mapping gives to this VRS file and to no other.

    Paths in the mapping are those of the machine that asked for MPS, so they are compared from
    their end: the entry that shares most parts with the recording's path is its own, if it
    shares at least ``least`` (or all that the entry has) and no other shares as many.
    """
    path = vrs.absolute().parts
    shared = {key: _shared(path, key) for key in _load(mapping)}
    best = max(shared.values(), default=0)
    winners = [key for key, count in shared.items() if count == best > 0]
    enough = best >= least or (
        len(winners) == 1 and best == len(_parts(winners[0])) and not _namesakes(vrs)
    )
    if len(winners) == 1 and enough:
        folder = mapping.parent / _load(mapping)[winners[0]]
        if folder.is_dir():
            yield folder


def _parts(key: str) -> tuple[str, ...]:
    return PurePosixPath(key.replace("\\", "/")).parts


def _shared(path: tuple[str, ...], key: str) -> int:
    count = 0
    for mine, its in zip(reversed(path), reversed(_parts(key)), strict=False):
        if mine != its:
            break
        count += 1
    return count


def _load(mapping: Path) -> dict[str, str]:
    try:
        entries = json.loads(mapping.read_text("utf-8-sig"))
        folders = {str(key): str(value) for key, value in entries.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise _no_mapping(mapping, str(error)) from error
    for name in folders.values():
        if not FOLDER_NAME.fullmatch(name):
            raise _no_mapping(mapping, f"'{name}' is no folder number")
    return folders


def _no_mapping(mapping: Path, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"this multi-SLAM mapping cannot be used: {why}",
        path=mapping,
        hint="download the multi-SLAM output again, or move its folder away to go on without it",
    )
