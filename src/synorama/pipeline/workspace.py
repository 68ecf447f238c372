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

from synorama.capture import Discovery, discover
from synorama.errors import DiskFullError, OutputNotWritableError, SynoramaError, UsageError

__all__ = ["Options", "Workspace", "append_journal", "locked", "read_journal", "writing"]

OWN_FOLDER = ".synorama"


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
        live beside it in a hidden folder.
    """

    folder: Path
    options: Options = Options()
    output: Path | None = None

    @property
    def session(self) -> Path:
        """Path of the session file."""
        return self.output or self.folder / "session.h5"

    @property
    def own(self) -> Path:
        """The hidden folder of parts and journal."""
        return self.session.parent / OWN_FOLDER

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
        return {name: round(seconds * 1e9) for name, seconds in given.items()}


def read_journal(work: Workspace) -> dict[str, Any]:
    """Return the last journal line of each stage; a line torn by a crash is as if not written."""
    path = work.own / "journal.jsonl"
    last: dict[str, Any] = {}
    if not path.is_file():
        return last
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            last[entry["stage"]] = entry
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
        where = work.session.parent
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                "the disk is full",
                path=where,
                hint="make room and run the same command again: what is done stays done",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise OutputNotWritableError(
                "no permission to write here",
                path=where,
                hint="give --output FILE in a folder of yours",
            ) from error
        raise
