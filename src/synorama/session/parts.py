"""Part files: what one stage made, whole and marked complete, or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from synorama.errors import (
    IncompleteSessionError,
    InputError,
    NotASessionError,
    OutputExistsError,
    SchemaVersionError,
    SessionFileError,
)
from synorama.records import Recording, SyncResult, Transcript, Word
from synorama.session.guard import open_guarded
from synorama.session.records_io import kept_tracks, read_recording, write_recording
from synorama.session.schema import SCHEMA, SCHEMA_VERSION
from synorama.session.storage import (
    attribute,
    damage_named,
    in_order,
    new_hdf5,
    set_attributes,
    set_position,
)
from synorama.session.sync_io import read_result, write_result
from synorama.session.words_io import read_transcript, write_transcript_group

__all__ = [
    "Progress",
    "check_header",
    "check_replaceable",
    "new_part",
    "open_part",
    "read_ingest",
    "read_sync",
    "read_transcript_part",
    "write_ingest",
    "write_sync",
    "write_transcript",
]

Progress: TypeAlias = Callable[[int, int], None]
"""``progress(done, total)``."""


@contextmanager
def new_part(path: Path, stage: str) -> Iterator[Any]:
    """Yield a new `h5py.File` for a stage's result; it appears at ``path`` when all went well.

    Groups that the stage writes under ``/transcript``, ``/geometry``, ``/labels`` or
    ``/verdicts`` are taken over by assembly.
    """
    with new_hdf5(path) as file:
        set_attributes(file, {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "part": stage})
        yield file


@contextmanager
def open_part(path: Path, stage: str) -> Iterator[Any]:
    """Yield a stage's part, open for reading.

    Raises
    ------
    NotASessionError
        The file is not this stage's part.
    SessionFileError
        It is unsafe, damaged, incomplete, or of another schema version.
    """
    with open_guarded(path) as file, damage_named(path):
        check_header(file, path)
        found = attribute(file, "part")
        if found != stage:
            raise NotASessionError(
                f"this is the part of stage '{found}', expected '{stage}'", path=path
            )
        yield file


def check_header(file: Any, path: Path) -> None:
    """Check that an open file is Synorama's, of a schema that can be read, and complete."""
    if attribute(file, "schema") != SCHEMA:
        raise NotASessionError(
            "this HDF5 file is not a Synorama session",
            path=path,
            hint="give a session.h5 or a sealed release",
        )
    version = attribute(file, "schema_version")
    if version != SCHEMA_VERSION:
        raise SchemaVersionError(
            f"schema version {version}; this Synorama reads version {SCHEMA_VERSION}",
            path=path,
            hint="use the Synorama version that wrote it, or make it again",
        )
    if not attribute(file, "complete"):
        raise IncompleteSessionError(
            "the file was not finished", path=path, hint="run the same command again"
        )


def check_replaceable(path: Path, *, release: bool = False) -> None:
    """Refuse to write over a file that could be somebody's only recording.

    Parameters
    ----------
    path
        Where something is to be written. Where nothing is, all is well.
    release
        A sealed file may be replaced too.

    Raises
    ------
    OutputExistsError
        What is there is no session file, or is a sealed one.
    """
    if not path.exists():
        return
    try:
        with open_guarded(path) as file, damage_named(path):
            ours, sealed = attribute(file, "schema") == SCHEMA, attribute(file, "sealed")
    except (InputError, SessionFileError):
        ours, sealed = False, False
    if not ours or (sealed and not release):
        what = "a sealed session" if ours else "a file that is no session"
        raise OutputExistsError(
            f"{what} is there, and would be lost",
            path=path,
            hint="give another name, or remove that file first",
        )


def write_ingest(
    path: Path,
    recordings: Sequence[Recording],
    *,
    include_location: bool,
    progress: Progress | None = None,
) -> None:
    """Write the recordings as the part of stage ``ingest``.

    Parameters
    ----------
    include_location
        Keep tracks that tell where on Earth people were.
    progress
        Called with tracks written and their total.
    """
    kept = [kept_tracks(r, include_location=include_location) for r in recordings]
    done, total = 0, sum(map(len, kept))

    def on_track() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)

    with new_part(path, "ingest") as file:
        root = file.create_group("recordings")
        for k, recording in enumerate(recordings):
            group = root.create_group(recording.id)
            set_position(group, k)
            write_recording(
                group,
                recording,
                base=path.parent,
                include_location=include_location,
                on_track=on_track,
            )


def read_ingest(path: Path) -> tuple[Recording, ...]:
    """Read the recordings of an ingest part; sample rows are read when they are asked for."""
    with open_part(path, "ingest") as file:
        return tuple(read_recording(group, path) for _, group in in_order(file["recordings"]))


def write_sync(path: Path, result: SyncResult) -> None:
    """Write clocks and evidence as the part of stage ``sync``."""
    with new_part(path, "sync") as file:
        write_result(file.create_group("sync"), result)


def read_sync(path: Path) -> SyncResult:
    """Read the clocks and the evidence of a sync part."""
    with open_part(path, "sync") as file:
        return read_result(file["sync"])


def write_transcript(
    path: Path, transcript: Transcript | Sequence[Word], *, stage: str = "transcribe"
) -> None:
    """Write a transcript, or bare words, on the session clock as the part of a stage."""
    whole = transcript if isinstance(transcript, Transcript) else Transcript(tuple(transcript))
    with new_part(path, stage) as file:
        write_transcript_group(file.create_group("transcript"), whole)


def read_transcript_part(path: Path) -> Transcript:
    """Read the transcript of a part ``transcribe``."""
    with open_part(path, "transcribe") as file:
        return read_transcript(file["transcript"])
