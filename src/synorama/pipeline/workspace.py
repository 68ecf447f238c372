"""One session folder at work: what was found in it, its part files, its journal and its lock."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from synorama.capture.config import LONGEST_OFFSET_S
from synorama.capture.discover import Discovery, discover
from synorama.errors import (
    DiskFullError,
    InputUnreadableError,
    OutputExistsError,
    OutputNotWritableError,
    SynoramaError,
    UsageError,
)

__all__ = [
    "Options",
    "Workspace",
    "append_journal",
    "check_request",
    "locked",
    "read_journal",
    "writing",
]

OWN_FOLDER = ".synorama"
SESSION_NAME = "session.h5"
PLACE_IS_TAKEN = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG)


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator chose.

    Parameters
    ----------
    include_location
        Keep GPS, WiFi and Bluetooth data in the session.
    offsets_s
        Manual clock offsets by recording id: session time minus device time [s].
    rig
        The lab's ``rig.toml``, when not in the session folder or beside it.
    """

    include_location: bool = False
    offsets_s: Mapping[str, float] = field(default_factory=dict)
    rig: Path | None = None


@dataclass
class Workspace:
    """One session folder at work: what was found in it, its parts, its journal.

    Parameters
    ----------
    folder
        The session folder with the raw recordings, which are only ever read.
    options
        What the operator chose.
    output
        Where the session file goes; ``session.h5`` in the folder by default. Parts and journal
        live beside it in a hidden folder, apart for each session file.
    """

    folder: Path
    options: Options = Options()
    output: Path | None = None

    @property
    def session(self) -> Path:
        """Path of the session file."""
        return self.output or self.folder / SESSION_NAME

    @property
    def own(self) -> Path:
        """The hidden folder of parts and journal."""
        own = self.session.parent / OWN_FOLDER
        return own if self.session.name == SESSION_NAME else own / f"of-{self.session.name}"

    def part(self, stage: str) -> Path:
        """Path of a stage's part file."""
        return self.own / "parts" / f"{stage}.h5"

    @cached_property
    def discovery(self) -> Discovery:
        """What the folder holds."""
        return discover(self.folder, rig=self.options.rig)

    @cached_property
    def offsets_ns(self) -> dict[str, int]:
        """Manual offsets by recording, from ``session.toml`` and the command line."""
        given = {f.id: f.offset_s for f in self.discovery.found if f.offset_s is not None}
        given |= self.options.offsets_s
        known = {f.id for f in self.discovery.found}
        stray = sorted(set(given) - known)
        if stray:
            raise UsageError(
                f"an offset is given for '{stray[0]}', and there is no such recording",
                path=self.folder,
                hint="known are: " + ", ".join(sorted(known)),
            )
        return {name: _offset_ns(name, seconds) for name, seconds in given.items()}


def _offset_ns(name: str, seconds: float) -> int:
    if not abs(seconds) <= LONGEST_OFFSET_S:
        raise UsageError(
            f"the offset {seconds} s of '{name}' cannot be",
            hint=f"give a number of seconds between -{LONGEST_OFFSET_S:g} and {LONGEST_OFFSET_S:g}",
        )
    return round(seconds * 1e9)


def check_request(work: Workspace) -> None:
    """Refuse what cannot be done before anything is written.

    Raises
    ------
    InputError, ConfigError, UsageError
        There is nothing to process, or what the operator said of it cannot be.
    OutputExistsError
        The session would take the place of what may be somebody's only recording.
    """
    from synorama.session import check_replaceable

    _ = work.discovery, work.offsets_ns
    path = work.session
    if path.is_dir():
        raise OutputExistsError(
            "this is a folder, and the session is a file", path=path, hint="name a file in it"
        )
    if path != work.folder / SESSION_NAME:  # which is ours, be it damaged
        check_replaceable(path)


def read_journal(work: Workspace) -> dict[str, Any]:
    """Return the last journal line of each stage; a line torn by a crash is as if not written."""
    path = work.own / "journal.jsonl"
    last: dict[str, Any] = {}
    if not path.is_file():
        return last
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            last[entry["stage"]] = {"key": "", "bytes": -1, "seconds": 0.0} | entry
        except (ValueError, KeyError, TypeError):
            continue
    return last


def append_journal(work: Workspace, line: Mapping[str, Any]) -> None:
    """Add a journal line so that a power cut leaves it whole or absent."""
    with (work.own / "journal.jsonl").open("a", encoding="utf-8") as file:
        # A line torn by an earlier crash must not swallow this one.
        file.write("\n" + json.dumps(line, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked(work: Workspace) -> Iterator[None]:
    """Let one process at a time work on a session; the lock goes with the process."""
    with writing(work):
        (work.own / "parts").mkdir(parents=True, exist_ok=True)
        file = (work.own / "lock").open("w")
    with file:
        _take_lock(file, work.folder)
        yield


def _take_lock(file: IO[str], folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system: two runs at once are then the operator's care
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(
            "another process is working on this session",
            path=folder,
            hint="wait until it has finished, or stop it",
        ) from error


@contextmanager
def writing(work: Workspace) -> Iterator[None]:
    """Say in plain words why the place for the results cannot be written."""
    try:
        yield
    except SynoramaError:
        raise
    except OSError as error:
        raise _in_words(work, error) from error


def _in_words(work: Workspace, error: OSError) -> Exception:
    where = work.session.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            "the disk is full",
            path=where,
            hint="make room and run the same command again: what is done stays done",
        )
    if error.filename is not None and not _is_output(work, Path(os.fsdecode(error.filename))):
        return InputUnreadableError(
            f"it cannot be read: {os.strerror(error.errno or 0)}",
            path=error.filename,
            hint="give yourself read permission, or copy it from the device again",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputNotWritableError(
            "no permission to write here",
            path=where,
            hint="give --output FILE in a folder of yours",
        )
    if error.errno in PLACE_IS_TAKEN:
        return OutputNotWritableError(
            f"the place for the results is taken: {error}",
            path=where,
            hint="remove what is in the way, or give --output FILE in another folder",
        )
    return error


def _is_output(work: Workspace, path: Path) -> bool:
    """Tell paths that we write, or the folders above them, from raw files."""
    place, name = work.session.parent, work.session.name
    session = path.parent == place and path.name in (name, f".{name}.writing")
    return session or OWN_FOLDER in path.parts or path in (place, *place.parents)
