"""Which readers there are, and which of them reads a given file."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from synorama.capture.reader import Reader
from synorama.errors import (
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    MissingDependencyError,
    UnknownFormatError,
)
from synorama.records import Recording

__all__ = ["BrokenPlugin", "broken_plugins", "open_recording", "reader_for", "readers"]

ENTRY_POINT_GROUP = "synorama.devices"
SPECIFIC = ("synorama.capture.aria", "synorama.capture.gopro")
GENERIC = ("synorama.capture.webcam",)


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A third party's device that could not be loaded, and why."""

    name: str
    why: str


def readers() -> tuple[Reader, ...]:
    """Return all readers, specific devices before the generic one for any video or sound."""
    return _load()[0]


def broken_plugins() -> tuple[BrokenPlugin, ...]:
    """Return the third-party devices that failed to load; they never stop the others."""
    return _load()[1]


def reader_for(path: Path) -> Reader | None:
    """Return the reader that recognises the file by suffix and content, None if none does."""
    suffix = path.suffix.lower()
    for reader in readers():
        if suffix in reader.suffixes and reader.sniff(path):
            return reader
    return next((r for r in readers() if r.sniff(path)), None)


def open_recording(path: Path | str) -> Recording:
    """Open the recording that a file belongs to, without decoding pictures.

    Parameters
    ----------
    path
        Any file of the recording: a VRS file, any chapter of a GoPro video, any other video or
        sound file that FFmpeg reads.

    Returns
    -------
    Recording
        Its tracks know the device time of every frame and sample.

    Raises
    ------
    synorama.errors.InputError
        One type per cause: not there, empty, not recognised, damaged, chapter missing...
    synorama.errors.MissingDependencyError
        The library that reads such files is not installed.
    """
    path = Path(path)
    check_readable(path)
    reader = reader_for(path)
    if reader is None:
        raise UnknownFormatError(
            "no reader recognises this file",
            path=path,
            hint="known are "
            + ", ".join(sorted({s for r in readers() for s in r.suffixes}))
            + "; if it is one of these, the file is damaged: copy it again from the device",
        )
    with dependencies_named(path):
        return reader.open(path)


@contextmanager
def dependencies_named(path: Path) -> Iterator[None]:
    """Say which library a file needs, so that the files that do not need it can go on."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"this file needs the library '{error.name}', which cannot be loaded: {error}",
            path=path,
            hint="'synorama doctor' says how to get it",
        ) from error


def check_readable(path: Path) -> None:
    """Refuse what is not there, is no file, may not be read or is empty."""
    if not path.exists():
        raise InputNotFoundError("there is no such file", path=path, hint="check the path")
    if path.is_dir():
        raise UnknownFormatError(
            "this is a folder, and one recording was expected",
            path=path,
            hint="name a file in it, or use 'synorama inspect' on the folder",
        )
    if not path.is_file():
        raise UnknownFormatError(
            "this is a pipe or a device, and a file was expected",
            path=path,
            hint="save the recording as a file first: it is read in any order, and more than once",
        )
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except PermissionError as error:
        raise InputUnreadableError(
            "no permission to read this file", path=path, hint="give yourself read permission"
        ) from error
    if not first:
        raise EmptyFileError(
            "the file is empty (0 bytes)",
            path=path,
            hint="the device did not write it, or a copy failed: copy it again from the device",
        )


@functools.lru_cache(maxsize=1)
def _load() -> tuple[tuple[Reader, ...], tuple[BrokenPlugin, ...]]:
    loaded = [_load_plugin(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)]
    third = (x for x in loaded if isinstance(x, Reader))
    broken = tuple(x for x in loaded if isinstance(x, BrokenPlugin))
    return (*_own(SPECIFIC), *third, *_own(GENERIC)), broken


def _load_plugin(entry: EntryPoint) -> Reader | BrokenPlugin:
    try:
        reader = entry.load()
    except Exception as error:  # whatever a third party's import does, the others go on
        return BrokenPlugin(entry.name, f"{type(error).__name__}: {error}")
    if isinstance(reader, Reader):
        return reader
    return BrokenPlugin(entry.name, f"it exports {type(reader).__name__}, expected a Reader")


def _own(modules: tuple[str, ...]) -> Iterator[Reader]:
    return (importlib.import_module(name).READER for name in modules)
