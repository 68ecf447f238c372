"""The stages: what each consumes and how it makes its part.

``ingest -> sync -> assemble`` now. A later stage (register, refine-clock, transcribe, report) is
one more entry of `STAGES` with a part of its own; ``seal`` is on demand and needs none of this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from synorama.capture import open_found
from synorama.errors import InputError
from synorama.pipeline.workspace import Workspace, read_journal
from synorama.records import Recording

__all__ = ["STAGES", "Progress", "Stage"]

EPOCH_SIGMA_S = 60.0

Progress: TypeAlias = Callable[[str, int, int], None]
"""``progress(stage, done, total)``."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its version, what it builds on, which options and libraries it depends on.

    Raise ``version`` whenever the result for the same input changes.
    """

    name: str
    version: int
    needs: tuple[str, ...]
    libraries: tuple[str, ...]
    inputs: Callable[[Workspace], Any]
    run: Callable[[Workspace, Progress], None]
    result: Callable[[Workspace], Path]


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


def _sync(work: Workspace, progress: Progress) -> None:
    from synorama.session import read_ingest, write_sync
    from synorama.sync import synchronize

    result = synchronize(
        read_ingest(work.part("ingest")),
        manual_offsets_ns=work.offsets_ns,
        progress=lambda done, total: progress("sync", done, total),
    )
    write_sync(work.part("sync"), result)


def _assemble(work: Workspace, progress: Progress) -> None:
    from synorama.session import SessionInfo, assemble

    parts = {stage: work.part(stage) for stage in ("ingest", "sync")}
    progress("assemble", 0, 1)
    assemble(parts, work.session, _session_info(work, SessionInfo))
    progress("assemble", 1, 1)


def _session_info(work: Workspace, info: Callable[..., Any]) -> Any:
    return info(
        session_id=work.discovery.session_id,
        epoch_utc=_epoch_utc(work),
        options=_options_json(work),
        provenance=_provenance(work),
    )


def _epoch_utc(work: Workspace) -> str | None:
    """Return the UTC of session time zero where the reference's own clock knows it to a minute."""
    from synorama.session import read_ingest, read_sync

    reference = read_sync(work.part("sync")).reference
    utc = {r.id: r.start_utc for r in read_ingest(work.part("ingest"))}[reference]
    if utc is None or utc.sigma_s > EPOCH_SIGMA_S:
        return None
    zero_s = (utc.utc_ns - utc.device_ns) / 1e9  # whole seconds are all that it is good for
    return datetime.fromtimestamp(round(zero_s), timezone.utc).isoformat()


def _provenance(work: Workspace) -> dict[str, Any]:
    """Return the journal's last line of each stage that the session is made of."""
    last = read_journal(work)
    return {name: last[name] for name in ("ingest", "sync") if name in last}


def _raw_inputs(work: Workspace) -> Any:
    """Return names, sizes and times of all raw files, and what the operator said of them."""
    found = [
        [f.id, f.reader.name, f.role, f.participant, [_stamp(work.folder, p) for p in _all(f.take)]]
        for f in work.discovery.found
    ]
    unread = [str(error) for error in work.discovery.unread]
    return {"found": found, "unread": unread, "location": work.options.include_location}


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


def _options_json(work: Workspace) -> dict[str, Any]:
    return {"include_location": work.options.include_location, "offsets_ns": work.offsets_ns}


STAGES: tuple[Stage, ...] = (
    Stage(
        name="ingest",
        version=1,
        needs=(),
        libraries=("projectaria-tools", "av"),
        inputs=_raw_inputs,
        run=_ingest,
        result=lambda work: work.part("ingest"),
    ),
    Stage(
        name="sync",
        version=2,
        needs=("ingest",),
        libraries=("av", "numpy", "scipy", "soxr"),
        inputs=lambda work: work.offsets_ns,
        run=_sync,
        result=lambda work: work.part("sync"),
    ),
    Stage(
        name="assemble",
        version=2,
        needs=("ingest", "sync"),
        libraries=("h5py",),
        inputs=lambda work: work.discovery.session_id,
        run=_assemble,
        result=lambda work: work.session,
    ),
)
"""In order. ``seal`` is on demand and works on the session file alone."""
