"""All that a session file tells short of media and long tables, read once, held in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import DamagedSessionError
from synorama.media.source import MediaSource
from synorama.records import (
    GeometryResult,
    ObjectRecord,
    Recording,
    RecordingClock,
    Transcript,
    VideoTrack,
    Word,
)
from synorama.session.geometry_io import read_geometry
from synorama.session.guard import open_guarded
from synorama.session.objects_io import read_object_records
from synorama.session.parts import check_header
from synorama.session.records_io import read_recording
from synorama.session.schema import SessionInfo
from synorama.session.storage import attribute, damage_named, in_order, read_json, read_table
from synorama.session.sync_io import clock_digest, read_clock, read_coarse
from synorama.session.words_io import read_transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["Content", "read_content", "read_session_times"]


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What was read of a session file.

    Parameters
    ----------
    recordings, clocks, unsynced
        By recording; every one has a clock or a reason why not.
    view_times
        Session times [ns] by view, in display order, of all views that could be placed.
    outside
        By track (``recording/track``): why it has no session times though its recording has.
    sources
        By recording: where the bytes of its files lie.
    withheld
        By recording: names of tracks that were left out because they tell the location.
    sync_warnings
        What synchronization wants the operator to know.
    coarse
        By recording, of some that could not be placed: a clock good to seconds or minutes.
    transcript
        None where nothing was transcribed.
    geometry
        None where nothing was registered.
    objects
        Scanned objects, short of their surfaces.
    """

    info: SessionInfo
    recordings: Mapping[str, Recording]
    clocks: Mapping[str, RecordingClock]
    unsynced: Mapping[str, str]
    view_times: Mapping[str, Int64]
    outside: Mapping[str, str]
    sources: Mapping[str, tuple[MediaSource, ...]]
    withheld: Mapping[str, tuple[str, ...]]
    sync_warnings: tuple[str, ...]
    coarse: Mapping[str, RecordingClock]
    transcript: Transcript | None
    geometry: GeometryResult | None
    objects: tuple[ObjectRecord, ...] = ()

    @property
    def words(self) -> tuple[Word, ...] | None:
        """In the order of the file; None where nothing was transcribed."""
        return None if self.transcript is None else self.transcript.words

    @property
    def coarse_times(self) -> dict[str, Int64]:
        """Session times [ns], good to seconds or minutes, by view of what could not be placed."""
        return {
            f"{name}/{track.name}": clock.apply(track.moments_ns)
            for name, clock in self.coarse.items()
            for track in self.recordings[name].videos
        }


def read_content(path: Path) -> Content:
    """Open a session file through the guard, read it, close it.

    Raises
    ------
    SessionFileError
        The file is no session, unsafe, incomplete, damaged, or of another schema version.
    """
    with open_guarded(path) as file, damage_named(path):
        check_header(file, path)
        groups = dict(in_order(file["recordings"]))
        recordings = {name: read_recording(group, path) for name, group in groups.items()}
        clocks = _read_clocks(groups)
        return Content(
            info=_read_info(file),
            recordings=recordings,
            clocks=clocks,
            unsynced=_unsynced(groups),
            view_times=_view_times(groups, recordings, clocks, path),
            outside=_outside(groups),
            coarse=read_coarse(file["sync"]) if "sync" in file else {},
            sources={name: _sources(groups[name], recordings[name], path) for name in groups},
            withheld=_withheld(groups),
            sync_warnings=tuple(read_json(file["sync"], "warnings")) if "sync" in file else (),
            transcript=_read_transcript(file),
            geometry=_read_geometry(file),
            objects=_read_objects(file),
        )


def _read_geometry(file: Any) -> GeometryResult | None:
    group = file.get("geometry", {})
    return read_geometry(group) if "about" in group else None


def _read_objects(file: Any) -> tuple[ObjectRecord, ...]:
    group = file.get("geometry", {})
    return read_object_records(group["objects"]) if "objects" in group else ()


def _read_transcript(file: Any) -> Transcript | None:
    group = file.get("transcript", {})
    return read_transcript(group) if "words" in group else None


def _read_info(file: Any) -> SessionInfo:
    participants = [group for _, group in sorted(file["participants"].items(), key=_number)]
    names = [attribute(group, "pseudonym") for group in participants]
    consent = {
        name: attribute(group, "consent")
        for name, group in zip(names, participants, strict=True)
        if attribute(group, "consent") is not None
    }
    return SessionInfo(
        session_id=attribute(file, "session_id"),
        uuid=attribute(file, "uuid"),
        epoch_utc=attribute(file, "epoch_utc"),
        participants=tuple(names),
        consent=consent,
        options=read_json(file, "options"),
        software=read_json(file, "software"),
        provenance={name: read_json(file["provenance"], name) for name in file["provenance"]},
        clock=attribute(file, "clock"),
        verified=bool(attribute(file, "verified")),
        sealed=bool(attribute(file, "sealed")),
    )


def _number(item: tuple[str, Any]) -> int:
    return int(item[0])


def _read_clocks(groups: Mapping[str, Any]) -> dict[str, RecordingClock]:
    return {
        name: read_clock(group["clock"], name)
        for name, group in groups.items()
        if attribute(group, "synced")
    }


def _unsynced(groups: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: attribute(group, "unsynced_because", "")
        for name, group in groups.items()
        if not attribute(group, "synced")
    }


def _withheld(groups: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    texts = {name: attribute(group, "withheld") for name, group in groups.items()}
    return {name: tuple(text.split("\n")) for name, text in texts.items() if text}


def _outside(groups: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{name}/{track_name}": attribute(track, "outside_clock")
        for name, group in groups.items()
        for track_name, track in group["tracks"].items()
        if "outside_clock" in track.attrs
    }


def _view_times(
    groups: Mapping[str, Any],
    recordings: Mapping[str, Recording],
    clocks: Mapping[str, RecordingClock],
    path: Path,
) -> dict[str, Int64]:
    times = {}
    for name, clock in clocks.items():
        digest = clock_digest(clock)
        for track in recordings[name].videos:
            group = groups[name]["tracks"][track.name]
            if "t_ns" in group:
                times[f"{name}/{track.name}"] = _checked_times(group, track, digest, path)
    return times


def _checked_times(group: Any, track: VideoTrack, digest: str, path: Path) -> Int64:
    times = read_session_times(group, digest, path)
    if len(times) != track.count:
        raise DamagedSessionError(
            f"track '{track.name}' has {track.count} frames and {len(times)} times", path=path
        )
    times.setflags(write=False)
    return times


def read_session_times(track: Any, digest: str, path: Path) -> Int64:
    """Read a track's times on the session clock, which must have been made by this clock."""
    if attribute(track["t_ns"], "clock_digest") != digest:
        raise DamagedSessionError(
            f"the session times of {track.name} were made by another clock than the one stored",
            path=path,
            hint="run the stage assemble again",
        )
    times: Int64 = read_table(track, "t_ns").astype(np.int64, copy=False)
    return times


# --- media ------------------------------------------------------------------------------------


def _sources(group: Any, recording: Recording, path: Path) -> tuple[MediaSource, ...]:
    found = group.get("files", {})
    return tuple(
        _embedded(found[str(k)], path)
        if attribute(found[str(k)], "media") == "embed"
        else MediaSource(file.path)
        for k, file in enumerate(recording.files)
    )


def _embedded(group: Any, path: Path) -> MediaSource:
    """Return where the bytes of an embedded file lie; they must be one plain run."""
    data = group["data"]
    size = attribute(group, "bytes")
    if data.chunks is not None or data.dtype != np.uint8 or data.shape != (size,):
        raise DamagedSessionError(f"{group.name} does not hold its file as plain bytes", path=path)
    return MediaSource(path, data.id.get_offset() or 0, size)
