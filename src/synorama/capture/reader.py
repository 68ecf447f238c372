"""What a device adapter offers: one `Reader` a device, found by the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synorama.records import Recording

__all__ = ["Reader", "Take", "one_file_each"]


@dataclass(frozen=True, slots=True)
class Take:
    """The files of one recording, found but not opened.

    Parameters
    ----------
    paths
        The recording's own files in order; the first is what `Reader.open` is given.
    companions
        Files that belong to it and are not part of it: previews, thumbnails, MPS output.
    serial
        The device's serial number where it is cheap to know.
    why
        In words, why these files are one recording: what ``inspect`` prints.
    """

    paths: tuple[Path, ...]
    companions: tuple[Path, ...] = ()
    serial: str = ""
    why: str = ""


def one_file_each(paths: Sequence[Path]) -> tuple[Take, ...]:
    """Return one take a file, for devices that write one file a recording."""
    return tuple(Take((path,), why="one file") for path in paths)


@dataclass(frozen=True, slots=True)
class Reader:
    """A device adapter.

    Parameters
    ----------
    name
        Device name in recordings and neutral ids: ``aria``, ``gopro``, ``webcam``.
    suffixes
        Lower-case file suffixes that it may own, with the dot.
    sniff
        ``sniff(path)`` tells from a few bytes whether the file is this device's. It must not
        raise on garbage, nor read more than some kilobytes.
    open
        ``open(path)`` reads the whole take that the file belongs to: a `Recording` whose id is
        the device name. It raises a typed `synorama.errors.InputError`.
    takes
        ``takes(paths)`` groups the files (all sniffed as this device's) of a session folder.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Path], bool]
    open: Callable[[Path], Recording]
    takes: Callable[[Sequence[Path]], tuple[Take, ...]] = one_file_each
