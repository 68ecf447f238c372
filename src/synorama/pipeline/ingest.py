"""The stage ingest: every recording of the folder is opened, and all of its tables kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synorama.capture.config import Rig
from synorama.capture.discover import Found, open_found
from synorama.errors import InputError
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.workspace import Workspace
from synorama.records import Recording

__all__ = ["INGEST"]


def _ingest(work: Workspace, progress: Progress) -> None:
    from synorama.session import write_ingest

    recordings = _open_all(work, progress)
    write_ingest(
        work.part("ingest"),
        recordings,
        include_location=work.options.include_location,
        progress=lambda done, total: progress("ingest", done, total),
    )


def _open_all(work: Workspace, progress: Progress) -> list[Recording]:
    """Open every recording; what cannot be opened is told all at once, not one by one."""
    found = work.discovery.found
    recordings, failed = [], list(work.discovery.unread)
    for k, one in enumerate(found):
        progress("ingest", k, len(found))
        try:
            recordings.append(open_found(one))
        except InputError as error:
            failed.append(error)
    if failed:
        raise _all_in_one(failed)
    return recordings


def _all_in_one(failed: Sequence[InputError]) -> InputError:
    """Tell of every unusable file at once, as the kind of the first."""
    first = failed[0]
    way_out = "to go on without a file, name it under 'ignore' in session.toml"
    hint = f"{first.hint}; {way_out}" if first.hint else way_out
    also = "".join(f"; also {error}" for error in failed[1:])
    return type(first)(f"{first.message}{also}", path=first.path, hint=hint)


def _raw_inputs(work: Workspace) -> Any:
    """Return names, sizes and times of all raw files, and what the operator said of them."""
    found = [
        [*_said(f), [_stamp(work.folder, p) for p in _all(f.take)]] for f in work.discovery.found
    ]
    unread = [str(error) for error in work.discovery.unread]
    return {"found": found, "unread": unread, "location": work.options.include_location}


def _said(found: Found) -> list[Any]:
    """Return what the operator said of a recording, in the folder or in the rig."""
    skews = _skews(found.rig, found.take.serial)
    return [found.id, found.reader.name, found.role, found.participant, *skews]


def _skews(rig: Rig, serial: str) -> list[Any]:
    device = rig.by_serial(serial)
    own = [list(device.skew)] if device and device.skew else []
    return own + [[m.model, list(m.skew)] for m in rig.models if m.skew]


def _all(take: Any) -> list[Path]:
    """Return the files of a take and all files below its companion folders, MPS output first."""
    files: list[Path] = list(take.paths)
    for companion in take.companions:
        below = companion.rglob("*") if companion.is_dir() else [companion]
        files += sorted(p for p in below if p.is_file())
    return files


def _stamp(folder: Path, path: Path) -> list[Any]:
    stat = path.stat()
    return [os.path.relpath(path, folder), stat.st_size, stat.st_mtime_ns]


INGEST = Stage(
    name="ingest",
    version=2,
    needs=(),
    libraries=("projectaria-tools", "av"),
    inputs=_raw_inputs,
    run=_ingest,
    result=lambda work: work.part("ingest"),
)
