"""What lies in a session folder: recordings, scans and objects, and why they were taken as such."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from synorama.capture.config import (
    Position,
    RecordingEntry,
    Rig,
    SessionConfig,
    find_rig,
    load_rig,
    load_session_config,
)
from synorama.capture.reader import Reader, Take
from synorama.capture.registry import check_readable, dependencies_named, reader_for, readers
from synorama.errors import (
    ConfigError,
    InputError,
    InputNotFoundError,
    InputUnreadableError,
    NoRecordingsError,
)
from synorama.records import Recording, Track, VideoTrack

__all__ = ["Discovery", "Found", "discover", "open_found"]

SCAN_SUFFIXES = (".e57", ".las", ".laz", ".ptx", ".ply", ".pcd", ".xyz")
OBJECT_SUFFIXES = (".obj", ".stl", ".ply")


@dataclass(frozen=True, slots=True)
class Found:
    """One recording, found and not opened.

    ``id`` is its neutral name, or what ``session.toml`` or ``rig.toml`` call it.
    """

    id: str
    reader: Reader
    take: Take
    role: str | None = None
    participant: str | None = None
    offset_s: float | None = None
    position: Position | None = None
    rig: Rig = field(default=Rig(), repr=False)

    @property
    def path(self) -> Path:
        """The file by which the recording is opened."""
        return self.take.paths[0]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a session folder holds.

    Parameters
    ----------
    folder
        The session folder.
    session_id
        From ``session.toml``, else the folder's name.
    found
        The recordings, in a stable order.
    scans, objects
        Files under folders named so; registration reads them.
    unread
        Files with a recording's suffix that no reader recognises, with the error that says why.
    ignored
        Files that ``session.toml`` excludes.
    """

    folder: Path
    session_id: str
    found: tuple[Found, ...]
    scans: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    unread: tuple[InputError, ...] = ()
    ignored: tuple[Path, ...] = ()


def discover(folder: Path | str, *, rig: Path | None = None) -> Discovery:
    """Find the recordings, scans and objects of a session folder, without opening them.

    Parameters
    ----------
    folder
        The session folder, searched in depth. Hidden folders are left out, links followed.
    rig
        The lab's ``rig.toml``; by default the one in the folder or beside it.

    Raises
    ------
    InputNotFoundError, InputUnreadableError
        There is no such folder, or one in it may not be read.
    NoRecordingsError
        Nothing in it was recorded by a known device.
    ConfigError
        ``rig.toml`` or ``session.toml`` say something that cannot be.
    """
    folder = Path(folder)
    if folder.is_file():
        raise InputNotFoundError(
            "this is a file, and a session folder was expected",
            path=folder,
            hint="name the folder that holds the recordings",
        )
    if not folder.is_dir():
        raise InputNotFoundError("there is no such folder", path=folder, hint="check the path")
    files = sorted(_files(folder))
    config = load_session_config(folder)
    known = load_rig(rig or find_rig(folder))
    ignored = _ignored(folder, config, files)
    kept = [p for p in files if p not in ignored]
    candidates = [p for p in kept if not _is_aside(folder, p)]
    claimed, unread = _claim(candidates)
    found = _name(_takes(claimed), folder, config, known)
    if not found and not unread:
        raise NoRecordingsError(
            f"none of its {len(files)} files is a recording of a known device",
            path=folder,
            hint="expected: *.vrs of Aria glasses, GoPro *.MP4, other video or sound files",
        )
    return Discovery(
        folder=folder,
        session_id=config.session.id or _plain(folder.resolve().name),
        found=found,
        scans=tuple(p for p in kept if _under(folder, p, "scan", SCAN_SUFFIXES)),
        objects=tuple(p for p in kept if _under(folder, p, "object", OBJECT_SUFFIXES)),
        unread=tuple(unread),
        ignored=tuple(sorted(ignored)),
    )


def open_found(found: Found) -> Recording:
    """Open a found recording under its id, role and participant.

    Raises
    ------
    synorama.errors.InputError
        The recording cannot be used; the error says why.
    synorama.errors.MissingDependencyError
        The library that reads it is not installed.
    """
    check_readable(found.path)
    with dependencies_named(found.path):
        recording = found.reader.open(found.path)
    return replace(
        recording,
        id=found.id,
        role=found.role or recording.role,
        participant=found.participant or recording.participant,
        tracks=_with_skew(recording, found.rig),
    )


def _with_skew(recording: Recording, rig: Rig) -> dict[str, Track]:
    """Return the tracks, pictures with the skew that the rig states."""
    skew = rig.skew_of(recording.serial, recording.model)
    return {
        name: replace(track, skew_ns=skew.skew_ns, skew95_ns=skew.within_ns)
        if skew and isinstance(track, VideoTrack)
        else track
        for name, track in recording.tracks.items()
    }


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder in depth, without hidden ones; linked folders are followed.

    A folder is entered once, and never one that holds the session: links may circle.
    """
    whole = folder.resolve()
    entered = {whole, *whole.parents}
    for where, folders, names in os.walk(folder, onerror=_refuse_unread, followlinks=True):
        real = {Path(where, n).resolve(): n for n in sorted(folders) if not n.startswith(".")}
        folders[:] = [name for path, name in real.items() if path not in entered]
        entered.update(real)
        paths = (Path(where, n) for n in names if not n.startswith("."))
        yield from (p for p in paths if p.is_file() or not p.exists())  # no pipes, sockets, devices


def _refuse_unread(error: OSError) -> None:
    """Stop at a folder that cannot be listed: what it holds would be missing unnoticed."""
    raise InputUnreadableError(
        f"this folder cannot be listed: {os.strerror(error.errno or 0)}",
        path=error.filename,
        hint="give yourself read permission, or move the folder out of the session",
    ) from error


def _ignored(folder: Path, config: SessionConfig, files: Iterable[Path]) -> set[Path]:
    ignored = set()
    for pattern in config.session.ignore:
        matches = {
            p for p in files if PurePath(pattern).parts and p.relative_to(folder).match(pattern)
        }
        if not matches:
            raise ConfigError(
                f"'ignore' names '{pattern}', and no file is called so",
                path=folder / "session.toml",
                hint="correct the name, or remove it",
            )
        ignored |= matches
    return ignored


def _is_aside(folder: Path, path: Path) -> bool:
    """Tell scans and objects, whose folders may hold pictures and films of their own."""
    top = path.relative_to(folder).parts[:-1]
    return any(part.lower().startswith(("scan", "object")) for part in top)


def _under(folder: Path, path: Path, name: str, suffixes: tuple[str, ...]) -> bool:
    top = path.relative_to(folder).parts[:-1]
    return path.suffix.lower() in suffixes and any(p.lower().startswith(name) for p in top)


def _claim(files: Iterable[Path]) -> tuple[dict[str, tuple[Reader, list[Path]]], list[InputError]]:
    """Give every file to the reader that recognises it."""
    claimed: dict[str, tuple[Reader, list[Path]]] = {r.name: (r, []) for r in readers()}
    unread: list[InputError] = []
    suffixes = {s for r in readers() for s in r.suffixes}
    for path in files:
        if not _may_be_recording(path, suffixes):
            continue
        reader = reader_for(path)
        if reader is None:
            unread.append(_why_unread(path))
        else:
            claimed[reader.name][1].append(path)
    return claimed, unread


def _may_be_recording(path: Path, suffixes: set[str]) -> bool:
    suffix = path.suffix.lower()
    return suffix in suffixes or suffix.startswith(".vrs_")


def _why_unread(path: Path) -> InputError:
    from synorama.capture.registry import open_recording

    try:
        open_recording(path)
    except InputError as error:
        return error
    raise AssertionError(f"{path}: no reader sniffs it, and yet it opens")


def _takes(
    claimed: Mapping[str, tuple[Reader, list[Path]]],
) -> list[tuple[Reader, Take]]:
    return [
        (reader, take)
        for reader, paths in claimed.values()
        if paths
        for take in sorted(reader.takes(paths), key=lambda t: t.paths)
    ]


def _name(
    takes: list[tuple[Reader, Take]], folder: Path, config: SessionConfig, rig: Rig
) -> tuple[Found, ...]:
    """Give every take the name from session.toml, else from the rig, else a neutral one."""
    entries = {folder / entry.path: entry for entry in config.recordings}
    used: set[str] = {entry.id for entry in config.recordings if entry.id}
    found = []
    for reader, take in takes:
        entry = next((entries.pop(p) for p in take.paths if p in entries), None)
        device = rig.by_serial(take.serial)
        name = entry.id if entry and entry.id else None
        if name is None:
            name = _free_name(device.name if device else None, reader.name, used)
        used.add(name)
        one = _found(name, reader, take, entry, device.role if device else None)
        found.append(replace(one, rig=rig))
    if entries:
        stray = next(iter(entries.values()))
        raise ConfigError(
            f"'{stray.path}' is no recording, or a second file of one that has an entry already",
            path=folder / "session.toml",
            hint="'synorama inspect' on the folder shows what is a recording; correct the entry",
        )
    return tuple(found)


def _found(
    name: str, reader: Reader, take: Take, entry: RecordingEntry | None, rig_role: str | None
) -> Found:
    if entry is None:
        return Found(name, reader, take, role=rig_role)
    return Found(
        name,
        reader,
        take,
        role=entry.role or rig_role,
        participant=entry.participant,
        offset_s=entry.offset_s,
        position=entry.position,
    )


def _free_name(preferred: str | None, device: str, used: set[str]) -> str:
    """Return the rig's name (``name-2`` for a second take), else ``device-1``, ``device-2``..."""
    if preferred and preferred not in used:
        return preferred
    stem, start = (preferred, 2) if preferred else (device, 1)
    return next(n for n in (f"{stem}-{k}" for k in range(start, 10**6)) if n not in used)


def _plain(name: str) -> str:
    """Return a folder's name as a session id: letters, digits, ``-`` and ``_``."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)
    return plain.strip("-_")[:64] or "session"
