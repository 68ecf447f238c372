"""Is a session file sound: its structure, its tables, its clocks and, if asked, every byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from synorama.errors import (
    ClockRangeError,
    DamagedSessionError,
    IncompleteSessionError,
    SynoramaError,
    UnsafeSessionError,
)
from synorama.media.source import MediaSource
from synorama.records import FileRef, Problem, Recording, RecordingClock, VideoTrack
from synorama.session.content import Content, read_content, read_session_times
from synorama.session.guard import open_guarded
from synorama.session.links import state_of_link
from synorama.session.objects_io import wrong_files
from synorama.session.records_io import moments_ns
from synorama.session.seal import digest_blocks
from synorama.session.storage import damage_named, in_order
from synorama.session.sync_io import clock_digest

__all__ = ["validate"]


def validate(path: Path, *, every_byte: bool = False) -> tuple[Problem, ...]:
    """Return what is wrong with a session file; nothing if it is sound.

    Parameters
    ----------
    every_byte
        Also read every table, whose chunks carry checksums, and all media, embedded or linked,
        against the digests that were taken.

    Raises
    ------
    InputError
        There is no such file, or it may not be read.
    NotASessionError, SchemaVersionError
        It is something else. All other faults of the file are among the problems.
    """
    try:
        content = read_content(path)
        problems = [*_check_recordings(content), *_check_links(content, path)]
        problems += _check_clocks(content, path)
        if every_byte:
            problems += [*_check_tables(path), *_check_media(content, path)]
            problems += _check_objects(path)
    except (IncompleteSessionError, UnsafeSessionError, DamagedSessionError) as error:
        return (Problem(_code(error), error.message, severe=True),)
    return tuple(problems)


def _code(error: SynoramaError) -> str:
    return type(error).__name__.removesuffix("SessionError").lower()


# --- the tables agree with each other ---------------------------------------------------------


def _check_recordings(content: Content) -> Iterator[Problem]:
    for name, recording in content.recordings.items():
        for track in recording.tracks.values():
            text = _bad_places(recording, track)
            if text:
                yield Problem("index", text, f"{name}/{track.name}", severe=True)


def _bad_places(recording: Recording, track: Any) -> str:
    """Tell of rows of an index that point outside their file."""
    table = track.index if isinstance(track, VideoTrack) else getattr(track, "blocks", None)
    if table is None or not len(table):
        return ""
    sizes = np.array([file.bytes for file in recording.files], np.uint64)
    if int(table["file"].max()) >= len(sizes):
        return f"its index names file {int(table['file'].max())} of {len(sizes)}"
    beyond = table["offset"] + table["size"] > sizes[table["file"]]
    return f"{int(beyond.sum())} rows of its index lie beyond their file" if beyond.any() else ""


def _check_links(content: Content, path: Path) -> Iterator[Problem]:
    for name, recording in content.recordings.items():
        for file, source in zip(recording.files, content.sources[name], strict=True):
            text = "" if source.size is not None else state_of_link(source.path, file, path.parent)
            if text:
                yield Problem("media", text, name, severe=True)


def _check_clocks(content: Content, path: Path) -> Iterator[Problem]:
    """Check that the session times are what the clocks make of the device times."""
    with open_guarded(path) as file, damage_named(path):
        for name, clock in content.clocks.items():
            for track_name, track in in_order(file["recordings"][name]["tracks"]):
                text = _wrong_times(track, clock, path)
                if text:
                    yield Problem("clock", text, f"{name}/{track_name}", severe=True)


def _wrong_times(track: Any, clock: RecordingClock, path: Path) -> str:
    if "t_ns" not in track:
        return ""
    times = read_session_times(track, clock_digest(clock), path)
    try:
        expected = clock.apply(moments_ns(track))
    except ClockRangeError as error:
        return f"its session times lie outside the clock: {error.message}"
    if not np.array_equal(times, expected):
        return "its session times are not what its clock makes of its device times"
    return ""


# --- every byte -------------------------------------------------------------------------------


def _check_tables(path: Path) -> Iterator[Problem]:
    with open_guarded(path) as file:
        for dataset in _tables(file):
            try:
                for _ in _chunks(dataset):
                    pass
            except (OSError, RuntimeError) as error:
                yield Problem("damaged", f"{dataset.name} cannot be read: {error}", severe=True)


def _tables(group: Any) -> Iterator[Any]:
    for child in group.values():
        if hasattr(child, "values"):
            yield from _tables(child)
        elif child.chunks is not None:
            yield child


def _chunks(dataset: Any) -> Iterator[Any]:
    for chunk in dataset.iter_chunks():
        yield dataset[chunk]


def _check_objects(path: Path) -> Iterator[Problem]:
    with open_guarded(path) as file:
        for name, group in file.get("geometry/objects", {}).items():
            try:
                texts = list(wrong_files(group))
            except (OSError, RuntimeError, KeyError) as error:
                texts = [f"it cannot be read: {error}"]
            yield from (Problem("object", f"object '{name}': {t}", severe=True) for t in texts)


def _check_media(content: Content, path: Path) -> Iterator[Problem]:
    for name, recording in content.recordings.items():
        for k, source in enumerate(content.sources[name]):
            stored = _stored_blocks(path, f"recordings/{name}/files/{k}", source)
            text = _wrong_bytes(recording.files[k], source, stored)
            if text:
                yield Problem("bytes", f"file '{recording.files[k].name}': {text}", name, True)


def _stored_blocks(path: Path, group: str, source: MediaSource) -> bytes | None:
    if source.size is None:
        return None
    with open_guarded(path) as file, damage_named(path):
        return bytes(file[group]["blocks"][()].tobytes())


def _wrong_bytes(file: FileRef, source: MediaSource, stored: bytes | None) -> str:
    """Read a media file against its digests; say what differs. A missing one was told before."""
    import blake3

    if stored is None and (file.digest is None or not source.path.is_file()):
        return ""
    whole = blake3.blake3()

    def put(piece: memoryview) -> None:
        whole.update(piece)

    with source.path.open("rb", buffering=0) as opened:
        opened.seek(source.offset)
        blocks = digest_blocks(opened, file.bytes, put)
    if blocks is None:
        return "it ends early"
    if stored is not None and blocks != stored:
        return _differing(blocks, stored)
    return "" if whole.hexdigest() == file.digest else "its bytes are not those that were read"


def _differing(blocks: bytes, stored: bytes) -> str:
    size = 32
    pairs = zip(
        (blocks[k : k + size] for k in range(0, len(blocks), size)),
        (stored[k : k + size] for k in range(0, len(stored), size)),
        strict=False,
    )
    bad = [str(k) for k, (one, other) in enumerate(pairs) if one != other]
    return f"bytes differ from their digests in block {', '.join(bad[:5])} of 16 MiB"
