"""Linked media: is it still where it was, and still what it was."""

from __future__ import annotations

from pathlib import Path

from synorama.errors import MediaMovedError
from synorama.records import FileRef
from synorama.session.records_io import relative_path

__all__ = ["check_linked", "state_of_link"]


def check_linked(path: Path, file: FileRef, session: Path) -> None:
    """Refuse media that is gone or has another size than when it was ingested.

    Raises
    ------
    MediaMovedError
        It names the path that was looked for, relative to the session file.
    """
    shown = relative_path(path, session.parent)
    hint = "keep the session file and its media together, as they were when it was made"
    try:
        now = path.stat().st_size
    except OSError as error:
        raise MediaMovedError(
            f"linked media is not at '{shown}', relative to the session file",
            path=session,
            hint=hint,
        ) from error
    if now != file.bytes:
        raise MediaMovedError(
            f"linked media '{shown}' has {now} bytes, the file that was ingested had {file.bytes}",
            path=session,
            hint=hint,
        )


def state_of_link(path: Path, file: FileRef, base: Path) -> str:
    """Say what is wrong with a link at first sight; nothing if it looks as it did at ingest."""
    shown = relative_path(path, base)
    try:
        now = path.stat()
    except OSError:
        return f"linked media '{shown}' is not there"
    if now.st_size != file.bytes:
        return f"linked media '{shown}' has another size than when it was ingested"
    if now.st_mtime_ns != file.mtime_ns:
        return f"linked media '{shown}' was modified after it was ingested, or copied"
    return ""
