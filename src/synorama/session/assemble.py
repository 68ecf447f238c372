"""From part files to one small session file whose media is linked."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synorama import __version__
from synorama.errors import ClockRangeError, UsageError
from synorama.records import RecordingClock, SyncResult, picture_doubt_ns
from synorama.session.guard import open_guarded
from synorama.session.parts import Progress, check_header, open_part, read_sync
from synorama.session.records_io import moments_ns, read_video, relative_path
from synorama.session.schema import EXTRA_ROOTS, SCHEMA, SCHEMA_VERSION, SessionInfo
from synorama.session.storage import (
    attribute,
    damage_named,
    in_order,
    new_hdf5,
    set_attributes,
    write_json,
    write_table,
)
from synorama.session.sync_io import clock_digest, read_result, write_clock, write_evidence
from synorama.session.travel_io import PART as REFINED

__all__ = ["assemble"]

UUID_SPACE = uuid.UUID("7d4a5d9e-6a0c-5c0f-9a51-0c7f0f2f7a11")


def assemble(
    parts: Mapping[str, Path], out: Path, info: SessionInfo, *, progress: Progress | None = None
) -> None:
    """Merge the stages' parts into a session file; an older one is replaced as a whole.

    Parameters
    ----------
    parts
        By stage. ``ingest`` is required. ``sync`` places the recordings on the session clock;
        without it all are unsynced. The clocks of ``refine-clock`` count instead of its own, if
        both are there. Of any other part the groups under ``/transcript``,
        ``/geometry``, ``/labels`` and ``/verdicts`` are copied.
    out
        The session file. Links to the media are relative to its folder.
    progress
        Called with recordings done and their total.

    Raises
    ------
    UsageError
        No ingest part, two parts bring the same group, or sync speaks of other recordings.
    SessionFileError
        A part is damaged, incomplete or unsafe.
    OutputError
        The session cannot be written.
    """
    if "ingest" not in parts:
        raise UsageError("a session needs the part 'ingest'", path=out)
    with ExitStack() as stack:
        ingest = stack.enter_context(open_part(parts["ingest"], "ingest"))
        file = stack.enter_context(new_hdf5(out))
        sync = _copy_sync(parts, file) if "sync" in parts else None
        _write_info(file, info, ingest, sync)
        _copy_recordings(ingest, file, parts["ingest"].parent, out.parent, sync, progress)
        for stage, path in parts.items():
            if stage not in ("ingest", "sync"):
                _copy_extra(path, file)


def _write_info(file: Any, info: SessionInfo, ingest: Any, sync: SyncResult | None) -> None:
    set_attributes(
        file,
        {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "session_id": info.session_id,
            "uuid": info.uuid or _stable_uuid(info.session_id, ingest),
            "epoch_utc": info.epoch_utc,
            "clock": sync.reference if sync else "",
            "verified": info.verified,
            "sealed": False,
        },
    )
    write_json(file, "options", dict(info.options))
    write_json(file, "software", _software() | dict(info.software))
    provenance = file.create_group("provenance")
    for stage, facts in info.provenance.items():
        write_json(provenance, stage, dict(facts))
    _write_participants(file, info, ingest["recordings"].values())


def _software() -> dict[str, str]:
    return {"synorama": __version__, "h5py": version("h5py"), "numpy": version("numpy")}


def _stable_uuid(session_id: str, ingest: Any) -> str:
    """Make the same uuid of the same recordings, so that a rebuilt session stays the same one."""
    files = [
        f"{name}/{attribute(file, 'name')}/{attribute(file, 'bytes')}"
        for name, recording in in_order(ingest["recordings"])
        for file in recording.get("files", {}).values()
    ]
    text = "\n".join([session_id, *files])  # names need not be valid UTF-8
    return str(uuid.uuid5(UUID_SPACE, text.encode("utf-8", "backslashreplace").decode()))


def _write_participants(file: Any, info: SessionInfo, recordings: Iterable[Any]) -> None:
    wearers = [attribute(recording, "participant") for recording in recordings]
    names = dict.fromkeys([*info.participants, *sorted(name for name in wearers if name)])
    root = file.create_group("participants")
    for k, name in enumerate(names):
        facts = {"pseudonym": name, "consent": info.consent.get(name)}
        set_attributes(root.create_group(str(k)), facts)


# --- recordings on the session clock ----------------------------------------------------------


def _copy_sync(parts: Mapping[str, Path], file: Any) -> SyncResult:
    """Take over the evidence; the clocks themselves go to their recordings."""
    root = file.create_group("sync")
    if REFINED not in parts:
        result = read_sync(parts["sync"])
        write_evidence(root, result)
        return result
    with open_part(parts[REFINED], REFINED) as part:
        result = read_result(part["sync"])
        write_evidence(root, result)
        part.copy(part["sync"]["travel"], root, "travel")
    return result


def _copy_recordings(
    ingest: Any,
    file: Any,
    part_folder: Path,
    out_folder: Path,
    sync: SyncResult | None,
    progress: Progress | None,
) -> None:
    recordings = in_order(ingest["recordings"])
    _check_same(sync, [name for name, _ in recordings])
    root = file.create_group("recordings")
    for k, (name, source) in enumerate(recordings):
        ingest.copy(source, root, name)
        for link in root[name].get("files", {}).values():
            target = part_folder.absolute() / attribute(link, "path")
            set_attributes(link, {"path": relative_path(target, out_folder)})
        _place(root[name], name, sync)
        if progress:
            progress(k + 1, len(recordings))


def _check_same(sync: SyncResult | None, names: list[str]) -> None:
    strange = sorted(set(sync.clocks) - set(names)) if sync else []
    if strange:
        raise UsageError(
            f"the sync part places '{strange[0]}', which is not among the recordings",
            hint="run the stage sync again",
        )


def _place(group: Any, name: str, sync: SyncResult | None) -> None:
    """Write the recording's clock and what it makes of the times of its tracks."""
    clock = sync.clocks.get(name) if sync else None
    set_attributes(group, {"synced": clock is not None})
    if clock is None:
        reason = sync.unsynced.get(name, "") if sync else "the stage sync was not run"
        set_attributes(group, {"unsynced_because": reason})
        return
    write_clock(group.create_group("clock"), clock)
    digest = clock_digest(clock)
    for track in group["tracks"].values():
        if "t_device_ns" in track:
            _write_session_times(track, clock, digest)
        if attribute(track, "kind") == "video":
            set_attributes(track, {"picture_interval95_ms": _picture_interval95_ms(track, clock)})


def _picture_interval95_ms(track: Any, clock: RecordingClock) -> float | None:
    """Return how well a view's times are known: its clock, and its pictures against that clock."""
    if clock.interval95_ms is None:
        return None
    return clock.interval95_ms + picture_doubt_ns(read_video(track), clock) / 1e6


def _write_session_times(track: Any, clock: RecordingClock, digest: str) -> None:
    try:
        times = clock.apply(moments_ns(track))
    except ClockRangeError as error:
        set_attributes(track, {"outside_clock": error.message})
        return
    set_attributes(write_table(track, "t_ns", times), {"clock_digest": digest})


# --- what later stages bring ------------------------------------------------------------------


def _copy_extra(path: Path, file: Any) -> None:
    with open_guarded(path) as part, damage_named(path):
        check_header(part, path)
        for root in (name for name in EXTRA_ROOTS if name in part):
            for name in part[root]:
                _copy_one(part, file.require_group(root), root, name, path)


def _copy_one(part: Any, target: Any, root: str, name: str, path: Path) -> None:
    if name in target:
        raise UsageError(f"two parts bring /{root}/{name}", path=path)
    part.copy(part[root][name], target, name)
