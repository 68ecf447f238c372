"""Checks that every device reader must pass, for ours and for third parties'.

>>> from synorama.testing import check_reader          # doctest: +SKIP
>>> check_reader(READER, "recordings/example.xyz")     # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synorama.capture.reader import Reader
from synorama.errors import InputError
from synorama.records import AudioTrack, PointTrack, Recording, SampleTrack, VideoTrack

__all__ = ["check_reader"]

GARBAGE = (b"", b"\0" * 4096, bytes(range(256)) * 64, b"RIFF\xff\xff\xff\xffWAVE")


def check_reader(reader: Reader, path: str | PathLike[str]) -> Recording:
    """Check a reader on one real file of its device, and return the recording.

    Parameters
    ----------
    reader
        The device's `Reader`.
    path
        Any file of a recording that the reader should open.

    Raises
    ------
    AssertionError
        With all that the reader does wrong, one line each.
    """
    path = Path(path)
    before = _stamps(path)
    recording = reader.open(path)
    faults = [
        *_sniffing_faults(reader, path),
        *_grouping_faults(reader, path),
        *_recording_faults(reader, recording),
        *_track_faults(recording),
    ]
    if _stamps(path) != before:
        faults.append("the raw files were touched: they must only be read")
    assert not faults, f"reader '{reader.name}' on {path.name}:\n- " + "\n- ".join(faults)
    return recording


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time of the file and its neighbours."""
    near = (p for p in path.parent.iterdir() if p.is_file())
    return {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in near}


def _sniffing_faults(reader: Reader, path: Path) -> Iterator[str]:
    if not reader.sniff(path):
        yield "sniff() does not recognise the file"
    if not all(s.startswith(".") and s == s.lower() for s in reader.suffixes):
        yield f"suffixes must be lower case and start with a dot: {reader.suffixes}"
    with tempfile.TemporaryDirectory() as made:
        for k, content in enumerate(GARBAGE):
            bad = Path(made) / f"garbage-{k}{path.suffix}"
            bad.write_bytes(content)
            yield from _garbage_faults(reader, bad)


def _garbage_faults(reader: Reader, bad: Path) -> Iterator[str]:
    what = f"{bad.stat().st_size} bytes of garbage"
    try:
        reader.sniff(bad)
    except Exception as error:
        yield f"sniff() raised {type(error).__name__} on {what}; it must return False"
    try:
        reader.open(bad)
    except InputError as error:
        if not error.path:
            yield f"open() refused {what} without naming the file"
    except Exception as error:
        yield f"open() raised {type(error).__name__} on {what}; expected an InputError"
    else:
        yield f"open() accepted {what}"


def _grouping_faults(reader: Reader, path: Path) -> Iterator[str]:
    mine = sorted(p for p in path.parent.iterdir() if p.is_file() and reader.sniff(p))
    takes = reader.takes(mine)
    placed = sorted(p for take in takes for p in (*take.paths, *take.companions))
    missing = sorted(set(mine) - set(placed))
    if missing:
        yield f"takes() loses {missing[0].name}"
    if any(not take.paths for take in takes):
        yield "takes() made a take without a file"
    owned = [p for take in takes for p in take.paths]
    if len(owned) != len(set(owned)):
        yield "takes() gives one file to two recordings"


def _recording_faults(reader: Reader, recording: Recording) -> Iterator[str]:
    if recording.device != reader.name:
        yield f"the recording's device is '{recording.device}', expected '{reader.name}'"
    if not recording.files:
        yield "the recording names no file"
    for file in recording.files:
        if not file.path.is_file() or file.path.stat().st_size != file.bytes:
            yield f"file {file.name}: its size is not {file.bytes}"
    if not recording.tracks:
        yield "the recording has no track"
    for problem in recording.problems:
        if not problem.text or problem.text.strip() != problem.text:
            yield f"problem '{problem.code}' has no plain words"


def _track_faults(recording: Recording) -> Iterator[str]:
    for track in recording.tracks.values():
        faults: Iterator[str] = iter(())
        if isinstance(track, VideoTrack):
            faults = _video_faults(recording, track)
        elif isinstance(track, AudioTrack):
            faults = _audio_faults(recording, track)
        elif isinstance(track, SampleTrack):
            faults = _sample_faults(track)
        elif isinstance(track, PointTrack):
            faults = _point_faults(track)
        yield from (f"track {track.name}: {fault}" for fault in faults)


def _video_faults(recording: Recording, track: VideoTrack) -> Iterator[str]:
    if track.width <= 0 or track.height <= 0:
        yield f"its size is {track.width}x{track.height}"
    if track.count and not track.index["key"].any():
        yield "no frame is a key frame: nothing can be decoded"
    yield from _byte_faults(recording, track.index)
    if track.storage == "container" and len(np.unique(track.index[["file", "pts"]])) < track.count:
        yield "two frames share one pts: they cannot be told apart"


def _audio_faults(recording: Recording, track: AudioTrack) -> Iterator[str]:
    if track.channels < 1 or not track.rate_hz > 0:
        yield f"{track.channels} channels at {track.rate_hz} Hz"
    if track.blocks is not None:
        yield from _byte_faults(recording, track.blocks)
        if int(track.blocks["count"].sum()) != track.sample_count:
            yield f"its blocks hold {track.blocks['count'].sum()} samples of {track.sample_count}"
    if track.count > 1:
        assert track.first_ns is not None  # it has samples
        assert track.last_ns is not None
        rate = (track.count - 1) / ((track.last_ns - track.first_ns) / 1e9)
        if not 0.5 < rate / track.rate_hz < 1.02:
            yield f"its times give {rate:.0f} Hz, its rate is {track.rate_hz:.0f} Hz"


def _byte_faults(recording: Recording, table: NDArray[np.void]) -> Iterator[str]:
    if not len(table):
        return
    if int(table["file"].max()) >= len(recording.files):
        yield "it refers to a file that the recording does not name"
        return
    sizes = np.array([f.bytes for f in recording.files], np.uint64)
    if (table["offset"] + table["size"] > sizes[table["file"]]).any():
        yield "some of its bytes lie behind the end of the file"


def _sample_faults(track: SampleTrack) -> Iterator[str]:
    rows = track.read()
    if len(rows.times_ns) != track.count:
        yield f"it announces {track.count} rows and has {len(rows.times_ns)}"
    if rows.values.shape[1] != len(track.columns):
        yield f"it names {len(track.columns)} columns and has {rows.values.shape[1]}"
    if track.count and (rows.times_ns[0], rows.times_ns[-1]) != (track.first_ns, track.last_ns):
        yield "its first or last time is not the announced one"


def _point_faults(track: PointTrack) -> Iterator[str]:
    cloud = track.read()
    if len(cloud.points_m) != track.count:
        yield f"it announces {track.count} points and has {len(cloud.points_m)}"
