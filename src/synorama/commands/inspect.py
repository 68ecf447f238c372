"""``synorama inspect``: what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synorama import console
from synorama.commands.options import Json, NoProgress, RigFile
from synorama.commands.shared import EXIT_REFUSED, print_recording, print_summary, wants_progress
from synorama.errors import (
    InputError,
    MissingDependencyError,
    OutputExistsError,
    SessionFileError,
    SynoramaError,
    UsageError,
)

if TYPE_CHECKING:
    from synorama.capture.discover import Discovery
    from synorama.records import Recording

__all__ = ["inspect"]


def inspect(
    context: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(help="Session folders, recordings, sessions.", readable=False)
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Save what was found as FOLDER/session.toml.")
    ] = False,
    field: Annotated[
        bool, typer.Option("--field", help="The check before the participants leave.")
    ] = False,
    digests: Annotated[
        bool, typer.Option("--hash", help="Read every byte and give its blake3 digest.")
    ] = False,
    rig: RigFile = None,
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Tell what is there: devices, streams, times, and what is wrong with them."""
    from synorama.inspection import describe, field_checks

    if write:
        _check_writable(paths)
    sessions = [path for path in paths if path.suffix == ".h5" and path.is_file()]
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        recordings, failed = _open_paths([p for p in paths if p not in sessions], rig, progress)
        recordings = _with_digests(recordings, progress) if digests else recordings
    if write:
        _write_session_tomls(paths, rig)
    document: dict[str, Any] = {"recordings": [describe(r) for r in recordings]}
    document |= {"sessions": _summaries(sessions, failed)} if sessions else {}
    document["failed"] = [console.error_document(error)["error"] for error in failed]
    checks = field_checks(recordings, failed) if field else []
    if field:
        document["field"] = [{"name": c.name, "passed": c.passed, "text": c.text} for c in checks]
    if as_json:
        console.print_json(document)
    else:
        _print_inspection(document, failed)
    if failed:
        raise typer.Exit(failed[0].exit_code)
    if not all(check.passed for check in checks):
        raise typer.Exit(EXIT_REFUSED)


def _open_paths(
    paths: list[Path], rig: Path | None, progress: console.Report
) -> tuple[list[Recording], list[SynoramaError]]:
    """Open all recordings below the paths, and keep the errors of those that do not open."""
    from synorama.capture import open_recording
    from synorama.capture.discover import discover, open_found

    recordings: list[Recording] = []
    failed: list[SynoramaError] = []
    openers: list[Callable[[], Recording]] = []
    for path in paths:
        if path.is_dir():
            discovery = discover(path, rig=rig)
            failed += discovery.unread
            openers += [partial(open_found, found) for found in discovery.found]
        else:
            openers.append(partial(open_recording, path))
    for done, opener in enumerate(openers):
        progress("inspect", done, len(openers))
        try:
            recordings.append(opener())
        except (InputError, MissingDependencyError) as error:
            failed.append(error)
    return recordings, failed


def _with_digests(recordings: list[Recording], progress: console.Report) -> list[Recording]:
    from synorama.inspection import with_digests

    digested: list[Recording] = []
    for recording in recordings:
        progress("hash", len(digested), len(recordings))
        digested.append(with_digests(recording))
    return digested


def _check_writable(paths: list[Path]) -> None:
    for folder in paths:
        target = folder / "session.toml"
        if not folder.is_dir():
            raise UsageError(
                "--write needs a session folder", path=folder, hint="name the folder alone"
            )
        if target.exists():
            raise OutputExistsError(
                "there is one already, and it may hold your corrections",
                path=target,
                hint="edit it, or remove it first",
            )


def _write_session_tomls(folders: list[Path], rig: Path | None) -> None:
    from synorama.capture.discover import discover
    from synorama.session.storage import whole_file

    for folder in folders:
        text = _session_toml(folder, discover(folder, rig=rig))
        with whole_file(folder / "session.toml", overwrite=False) as temporary:
            temporary.write_text(text, "utf-8")


def _session_toml(folder: Path, discovery: Discovery) -> str:
    from synorama.capture.config import RecordingEntry, session_toml

    entries = [
        RecordingEntry(path=_in_toml(f.path, folder), id=f.id, role=f.role) for f in discovery.found
    ]
    return session_toml(discovery.session_id, entries)


def _in_toml(path: Path, folder: Path) -> str:
    """Return the path as a text file can hold it: TOML knows UTF-8 only."""
    name = path.relative_to(folder).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "this name is no valid UTF-8, so that session.toml cannot hold it",
            path=path,
            hint="rename it, or do without session.toml",
        ) from error
    return name


def _summaries(sessions: list[Path], failed: list[SynoramaError]) -> list[dict[str, Any]]:
    from synorama.session import summarize

    summaries = []
    for path in sessions:
        try:
            summaries.append(summarize(path))
        except (InputError, SessionFileError) as error:
            failed.append(error)
    return summaries


def _print_inspection(document: dict[str, Any], failed: Sequence[SynoramaError]) -> None:
    for summary in document.get("sessions", []):
        print_summary(summary)
    for recording in document["recordings"]:
        print_recording(recording)
    for error in failed:
        console.print_error(error)
    for check in document.get("field", []):
        mark = "ok  " if check["passed"] else "FAIL"
        console.print_lines(f"{mark}  {check['name']}: {check['text']}")
