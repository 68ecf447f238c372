"""Outputs that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from synorama.errors import DiskFullError, OutputError, OutputExistsError, OutputNotWritableError

__all__ = ["new_file", "whole_folder"]

BUFFER_BYTES = 1 << 20


def new_file(path: Path) -> IO[bytes]:
    """Create a file that must not exist yet, for many small writes."""
    return path.open("xb", buffering=BUFFER_BYTES)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Give a folder to fill, which takes the name ``out`` only when all went well.

    Raises
    ------
    OutputExistsError
        Something of that name is there.
    OutputNotWritableError
        The place does not exist or may not be written.
    DiskFullError
        No space is left; nothing stays behind.
    """
    if os.path.lexists(out):
        raise OutputExistsError(
            "the folder is there already", path=out, hint="name another folder, or remove this one"
        )
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=".simulate-", dir=out.parent))
        yield draft
        _settle(draft)
        draft.rename(out)
    except OSError as error:
        raise _told(error, out) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Let the disk have every byte before the folder gets its name; open it to its readers."""
    folder.chmod(0o777 & ~_umask())
    for path in (*folder.rglob("*"), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _told(error: OSError, out: Path) -> OutputError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            "the disk is full; nothing was left behind",
            path=out,
            hint="free some space, or simulate fewer seconds or the small size",
        )
    return OutputNotWritableError(
        f"cannot be written: {error.strerror or error}",
        path=out,
        hint="name a folder in a place that exists and that you may write to",
    )
