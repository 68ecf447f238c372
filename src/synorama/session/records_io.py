"""Recordings to HDF5 groups and back, without loss."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synorama.records import (
    BLOCK_DTYPE,
    FRAME_DTYPE,
    AudioTrack,
    Column,
    FileRef,
    PointCloud,
    PointTrack,
    Problem,
    Recording,
    Samples,
    SampleTrack,
    TimeMapping,
    Track,
    UtcEstimate,
    VideoTrack,
)
from synorama.session.guard import open_guarded
from synorama.session.schema import LEFT_OUT_TRACKS
from synorama.session.storage import (
    attribute,
    damage_named,
    in_order,
    read_json,
    read_table,
    read_text,
    set_attributes,
    set_position,
    write_json,
    write_table,
    write_text,
)

__all__ = [
    "kept_tracks",
    "moments_ns",
    "read_recording",
    "read_video",
    "relative_path",
    "write_recording",
]


# --- a recording ------------------------------------------------------------------------------


def write_recording(
    group: Any,
    recording: Recording,
    *,
    base: Path,
    include_location: bool,
    on_track: Callable[[], None],
) -> None:
    """Write a recording into an empty group.

    Sample tracks are read one at a time: no more than one is in memory.

    Parameters
    ----------
    base
        The folder that the paths of the files are written relative to.
    include_location
        Keep tracks that tell where on Earth people were. Without it their names are kept, in
        the attribute ``withheld``, so that nobody takes the media for free of them.
    on_track
        Called after each track.
    """
    _write_facts(group, recording)
    for k, file in enumerate(recording.files):
        _write_file(group.create_group(f"files/{k}"), file, base)
    for k, mapping in enumerate(recording.time_mappings):
        table = write_table(group.require_group("time_mappings"), str(k), mapping.pairs)
        set_attributes(table, {"mode": mapping.mode})
    tracks = group.create_group("tracks")
    for k, track in enumerate(kept_tracks(recording, include_location=include_location)):
        inside = tracks.create_group(track.name)
        set_position(inside, k)
        _write_track(inside, track)
        on_track()
    if not include_location:
        withheld = [t.name for t in recording.tracks.values() if _is_location(t)]
        set_attributes(group, {"withheld": "\n".join(withheld) or None})


def kept_tracks(recording: Recording, *, include_location: bool) -> list[Track]:
    """Return the tracks that go into the session, in their order."""
    return [
        track
        for track in recording.tracks.values()
        if track.name not in LEFT_OUT_TRACKS and (include_location or not _is_location(track))
    ]


def _is_location(track: Track) -> bool:
    return isinstance(track, SampleTrack) and track.location


def read_recording(group: Any, path: Path) -> Recording:
    """Read a recording; the rows of its sample tracks are read when they are asked for.

    Parameters
    ----------
    group
        The recording's group in the open file.
    path
        The open file's own path.
    """
    name = group.name.rsplit("/", 1)[-1]
    tracks = {
        track_name: _read_track(inside, path) for track_name, inside in in_order(group["tracks"])
    }
    texts = ("model", "serial", "participant", "role", "sync_role", "shared_session_id")
    return Recording(
        id=name,
        device=attribute(group, "device"),
        files=_read_files(group, path.parent),
        tracks=tracks,
        calibration=read_text(group, "calibration") if "calibration" in group else None,
        time_mappings=_read_mappings(group),
        start_utc=_read_start(group),
        take=attribute(group, "take"),
        problems=tuple(Problem(**one) for one in read_json(group, "problems")),
        extras=read_json(group, "extras"),
        **{key: attribute(group, key) for key in texts},
    )


def _write_facts(group: Any, recording: Recording) -> None:
    set_attributes(
        group,
        {
            "device": recording.device,
            "model": recording.model,
            "serial": recording.serial,
            "participant": recording.participant,
            "role": recording.role,
            "sync_role": recording.sync_role,
            "shared_session_id": recording.shared_session_id,
            "take": recording.take,
        },
    )
    if recording.calibration is not None:
        write_text(group, "calibration", recording.calibration)
    if recording.start_utc is not None:
        write_json(group, "start_utc", asdict(recording.start_utc))
    write_json(group, "problems", [asdict(problem) for problem in recording.problems])
    write_json(group, "extras", dict(recording.extras))


def _read_start(group: Any) -> UtcEstimate | None:
    return UtcEstimate(**read_json(group, "start_utc")) if "start_utc" in group else None


def _read_mappings(group: Any) -> tuple[TimeMapping, ...]:
    found = group.get("time_mappings", {})
    return tuple(
        TimeMapping(attribute(found[str(k)], "mode"), read_table(found, str(k)))
        for k in range(len(found))
    )


# --- files ------------------------------------------------------------------------------------


def _write_file(group: Any, file: FileRef, base: Path) -> None:
    set_attributes(
        group,
        {
            "name": file.name,
            "path": relative_path(file.path, base),
            "bytes": file.bytes,
            "mtime_ns": file.mtime_ns,
            "digest": file.digest,
            "media": "link",
        },
    )


def relative_path(path: Path, base: Path) -> str:
    """Write a path as seen from ``base``, with forward slashes; absolute across drives."""
    try:
        return Path(os.path.relpath(path.absolute(), base.absolute())).as_posix()
    except ValueError:  # another drive of Windows
        return path.absolute().as_posix()


def _read_files(group: Any, base: Path) -> tuple[FileRef, ...]:
    found = group.get("files", {})
    return tuple(_read_file(found[str(k)], base) for k in range(len(found)))


def _read_file(group: Any, base: Path) -> FileRef:
    where = attribute(group, "path")
    path = Path(attribute(group, "name")) if where is None else _joined(base, where)
    return FileRef(
        path=path,
        bytes=attribute(group, "bytes"),
        mtime_ns=attribute(group, "mtime_ns"),
        digest=attribute(group, "digest"),
    )


def _joined(base: Path, where: str) -> Path:
    return Path(os.path.normpath(base.absolute() / where))


# --- tracks -----------------------------------------------------------------------------------


def _write_track(group: Any, track: Track) -> None:
    set_attributes(group, {"kind": track.kind, "source": track.source})
    if isinstance(track, VideoTrack):
        _write_video(group, track)
    elif isinstance(track, AudioTrack):
        _write_audio(group, track)
    elif isinstance(track, SampleTrack):
        _write_samples(group, track)
    else:
        _write_points(group, track)


def _read_track(group: Any, path: Path) -> Track:
    kind = attribute(group, "kind")
    if kind == "video":
        return read_video(group)
    if kind == "audio":
        return _read_audio(group)
    if kind == "points":
        return _read_points(group, path)
    return _read_samples(group, path)


def _write_video(group: Any, track: VideoTrack) -> None:
    set_attributes(
        group,
        {
            "codec": track.codec,
            "width": track.width,
            "height": track.height,
            "storage": track.storage,
            "time_base_num": track.time_base[0],
            "time_base_den": track.time_base[1],
            "stream_index": track.stream_index,
            "rotation": track.rotation_deg,
            "time_refers_to": track.time_refers_to,
            "rate_hz": None if track.rate_hz is None else float(track.rate_hz),
            "pixel_format": track.pixel_format,
            "picture_skew_ns": track.skew_ns,
            "picture_skew95_ns": track.skew95_ns,
        },
    )
    write_table(group, "t_device_ns", track.times_ns)
    write_table(group, "index", track.index)


def moments_ns(track: Any) -> NDArray[np.int64]:
    """Return the device times of a track, of pictures with the skew against their sound."""
    times: NDArray[np.int64] = read_table(track, "t_device_ns").astype(np.int64)
    times += np.int64(attribute(track, "picture_skew_ns", 0))
    return times


def read_video(group: Any) -> VideoTrack:
    """Read a video track."""
    keys = ("codec", "width", "height", "storage", "stream_index", "time_refers_to", "rate_hz")
    return VideoTrack(
        name=_name(group),
        times_ns=read_table(group, "t_device_ns"),
        index=read_table(group, "index").astype(FRAME_DTYPE, copy=False),
        time_base=(attribute(group, "time_base_num"), attribute(group, "time_base_den")),
        rotation_deg=attribute(group, "rotation"),
        source=attribute(group, "source"),
        pixel_format=attribute(group, "pixel_format"),
        skew_ns=attribute(group, "picture_skew_ns", 0),
        skew95_ns=attribute(group, "picture_skew95_ns"),
        **{key: attribute(group, key) for key in keys},
    )


def _write_audio(group: Any, track: AudioTrack) -> None:
    set_attributes(
        group,
        {
            "codec": track.codec,
            "rate_hz": float(track.rate_hz),
            "channels": track.channels,
            "stereo_pairs": track.stereo_pairs,
            "sample_count": track.sample_count,
            "storage": track.storage,
            "stream_index": track.stream_index,
        },
    )
    write_table(group, "t_device_ns", track.knots[:, 1])
    write_table(group, "first_sample", track.knots[:, 0])
    if track.file_firsts:
        write_table(group, "file_firsts", np.array(track.file_firsts, np.int64))
    if track.blocks is not None:
        write_table(group, "index", track.blocks)
    if track.muted is not None:
        write_table(group, "muted", track.muted.astype(np.uint8))


def _read_audio(group: Any) -> AudioTrack:
    keys = ("codec", "rate_hz", "channels", "stereo_pairs", "sample_count", "storage")
    knots = [read_table(group, "first_sample"), read_table(group, "t_device_ns")]
    blocks = (
        read_table(group, "index").astype(BLOCK_DTYPE, copy=False) if "index" in group else None
    )
    return AudioTrack(
        name=_name(group),
        knots=np.column_stack(knots),
        blocks=blocks,
        muted=read_table(group, "muted").astype(bool) if "muted" in group else None,
        file_firsts=tuple(read_table(group, "file_firsts").tolist())
        if "file_firsts" in group
        else (),
        stream_index=attribute(group, "stream_index"),
        source=attribute(group, "source"),
        **{key: attribute(group, key) for key in keys},
    )


def _write_samples(group: Any, track: SampleTrack) -> None:
    rows = track.read()
    set_attributes(
        group,
        {
            "frame": track.frame,
            "rate_hz": None if track.rate_hz is None else float(track.rate_hz),
            "location": track.location,
            "count": len(rows.times_ns),
            "first_ns": track.first_ns,
            "last_ns": track.last_ns,
        },
    )
    write_json(group, "columns", [[column.name, column.unit] for column in track.columns])
    write_table(group, "t_device_ns", rows.times_ns)
    write_table(group, "values", rows.values)
    _write_columns(group.create_group("extra"), rows.extra.items())


def _read_samples(group: Any, path: Path) -> SampleTrack:
    return SampleTrack(
        name=_name(group),
        sample_kind=attribute(group, "kind"),
        columns=tuple(Column(name, unit) for name, unit in read_json(group, "columns")),
        count=attribute(group, "count"),
        first_ns=attribute(group, "first_ns"),
        last_ns=attribute(group, "last_ns"),
        read=StoredSamples(path, group.name),
        frame=attribute(group, "frame"),
        rate_hz=attribute(group, "rate_hz"),
        source=attribute(group, "source"),
        location=bool(attribute(group, "location")),
    )


def _write_columns(group: Any, columns: Iterable[tuple[str, NDArray[Any]]]) -> None:
    for k, (name, column) in enumerate(columns):
        set_position(write_table(group, name, column), k)


def _read_columns(group: Any) -> dict[str, NDArray[Any]]:
    return {name: column[()] for name, column in in_order(group)}


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """Reads a sample track's rows from the file that holds them; crosses process boundaries."""

    path: Path
    group: str

    def __call__(self) -> Samples:
        with open_guarded(self.path) as file, damage_named(self.path):
            group = file[self.group]
            return Samples(
                times_ns=read_table(group, "t_device_ns"),
                values=read_table(group, "values"),
                extra=_read_columns(group["extra"]),
            )


OPTIONAL_OF_POINTS = ("normals", "colours", "sigma_m")


def _write_points(group: Any, track: PointTrack) -> None:
    cloud = track.read()
    set_attributes(
        group,
        {"count": len(cloud.points_m), "frame": track.frame, "frame_of_points": cloud.frame},
    )
    write_table(group, "points_m", cloud.points_m)
    for name in OPTIONAL_OF_POINTS:
        column = getattr(cloud, name)
        if column is not None:
            write_table(group, name, column)
    _write_columns(group.create_group("extra"), cloud.extra.items())


def _read_points(group: Any, path: Path) -> PointTrack:
    return PointTrack(
        name=_name(group),
        count=attribute(group, "count"),
        read=StoredPoints(path, group.name),
        frame=attribute(group, "frame"),
        source=attribute(group, "source"),
    )


@dataclass(frozen=True, slots=True)
class StoredPoints:
    """Reads a point track from the file that holds it; crosses process boundaries."""

    path: Path
    group: str

    def __call__(self) -> PointCloud:
        with open_guarded(self.path) as file, damage_named(self.path):
            group = file[self.group]
            return PointCloud(
                frame=attribute(group, "frame_of_points"),
                points_m=read_table(group, "points_m"),
                extra=_read_columns(group["extra"]),
                **{name: read_table(group, name) for name in OPTIONAL_OF_POINTS if name in group},
            )


def _name(group: Any) -> str:
    return str(group.name.rsplit("/", 1)[-1])
