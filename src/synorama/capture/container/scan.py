"""What a media file holds, by the cheapest way that is exact: its own index, or one demuxing pass.

An MP4 or MOV index is used if FFmpeg's own index of the file agrees with it (number of packets,
and time, place, size and visibility of 64 of them spread over each stream): then no media is read
but the first packets of sound. Fragments, other containers and any disagreement go through
`demux`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.container.demux import (
    Demuxed,
    Packets,
    SoundFrames,
    Stream,
    demux,
    first_sound_frames,
    open_media,
    sound_frames,
    streams_of,
)
from synorama.capture.container.ending import is_cut_short
from synorama.capture.container.mp4 import Movie, Mp4Track, looks_like_mp4, read_movie
from synorama.errors import CorruptFileError, HostileFileError, NoMovieIndexError
from synorama.records import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["Scan", "edit_problems", "indexed_sound", "scan"]

CHECKED = 64
EARLY_MS = 1.0
CONSTANT_FRAMES = ("aac", "mp3", "ac3", "eac3")  # every packet decodes to equally many samples


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The streams of pictures and sound of a file, with every packet's time and place.

    Parameters
    ----------
    packets
        By index of stream.
    sound
        Decoded frames of the streams of sound, by index.
    rotation_deg
        Clockwise turn that makes pictures upright, by index.
    metadata
        The container's tags, with lower-case keys.
    container
        FFmpeg's name of the format.
    movie
        The MP4 index, where there is one.
    """

    streams: tuple[Stream, ...]
    packets: Mapping[int, Packets]
    sound: Mapping[int, SoundFrames]
    rotation_deg: Mapping[int, int]
    metadata: Mapping[str, str]
    container: str
    movie: Movie | None
    problems: tuple[Problem, ...] = ()


def scan(path: Path) -> Scan:
    """Find all packets of a file's pictures and sound.

    Raises
    ------
    EmptyFileError, NoMovieIndexError, CorruptFileError, HostileFileError, InputNotFoundError,
    InputUnreadableError
    """
    movie, refused = _movie(path)
    try:
        with open_media(path) as container:
            return _scan(path, container, movie)
    except CorruptFileError as error:
        raise refused or error from None


def _movie(path: Path) -> tuple[Movie | None, CorruptFileError | None]:
    """Read the MP4 index; where it is damaged FFmpeg may know better."""
    if not looks_like_mp4(path):
        return None, None
    try:
        return read_movie(path), None
    except (NoMovieIndexError, HostileFileError):
        raise
    except CorruptFileError as error:
        return None, error


def _scan(path: Path, container: Any, movie: Movie | None) -> Scan:
    streams = streams_of(container)
    tracks = _indexed(container, streams, movie)
    if tracks is None:
        return _by_demuxing(path, container, streams, movie)
    return Scan(
        streams=streams,
        packets={i: _packets(track) for i, track in tracks.items()},
        sound=_sound(path, container, streams, tracks),
        rotation_deg={i: track.rotation_deg for i, track in tracks.items()},
        metadata=_metadata(container),
        container=container.format.name,
        movie=movie,
        problems=(*_index_problems(movie, tracks), *edit_problems(tracks.values())),
    )


def _metadata(container: Any) -> dict[str, str]:
    return {str(key).lower(): str(value) for key, value in container.metadata.items()}


# --- by the file's own index -----------------------------------------------------------------


def _indexed(
    container: Any, streams: tuple[Stream, ...], movie: Movie | None
) -> dict[int, Mp4Track] | None:
    """Return the MP4 track of each stream, None unless FFmpeg's index agrees with all of them."""
    if movie is None or movie.fragmented:
        return None
    by_id = {track.track_id: track for track in movie.tracks}
    found = {s.index: by_id.get(container.streams[s.index].id) for s in streams}
    tracks = {i: track for i, track in found.items() if track is not None}
    if len(tracks) < len(streams):
        return None
    agree = all(_agrees(container.streams[i].index_entries, track) for i, track in tracks.items())
    return tracks if agree else None


def _agrees(entries: Any, track: Mp4Track) -> bool:
    if len(entries) != track.count + track.lost:
        return False
    for k in np.unique(np.linspace(0, max(track.count - 1, 0), CHECKED).astype(int)):
        entry = entries[int(k)] if track.count else None
        if entry is not None and (entry.timestamp, entry.pos, entry.size, entry.is_discard) != (
            track.dts[k],
            track.offsets[k],
            track.sizes[k],
            track.discard[k],
        ):
            return False
    return True


def _packets(track: Mp4Track) -> Packets:
    return Packets(track.pts, track.dts, track.offsets, track.sizes, track.keys, track.discard)


def _sound(
    path: Path, container: Any, streams: tuple[Stream, ...], tracks: Mapping[int, Mp4Track]
) -> dict[int, SoundFrames]:
    """Tell what each stream of sound decodes to, decoding as little of it as that takes."""
    wanted = [stream for stream in streams if stream.kind == "audio"]
    constant = [stream.index for stream in wanted if stream.codec in CONSTANT_FRAMES]
    samples = first_sound_frames(container, constant)
    sound: dict[int, SoundFrames] = {}
    for stream in wanted:
        track, first = tracks[stream.index], samples.get(stream.index)
        if first is not None and len(first.counts):
            full = np.full(track.count, first.counts.max(), np.int64)
            sound[stream.index] = indexed_sound(track, full, first.rate_hz, first.channels)
        elif stream.codec.startswith("pcm_") and track.timescale == stream.rate_hz:
            sound[stream.index] = indexed_sound(
                track, track.durations, stream.rate_hz, stream.channels
            )
        else:
            with open_media(path) as fresh:
                sound[stream.index] = sound_frames(fresh, stream.index)
    return sound


def indexed_sound(track: Mp4Track, counts: Int64, rate_hz: float, channels: int) -> SoundFrames:
    """Return the frames of sound that a track decodes to, given the samples of each packet.

    The decoder takes the samples to be skipped from the first packets on, packets that are not
    shown included, and a packet of which something remains begins so much later.

    Parameters
    ----------
    counts
        ``(N,)`` samples that each packet decodes to before anything is skipped.
    """
    before = np.cumsum(counts) - counts
    skip = round(track.skip_samples * rate_hz / track.timescale)
    cut = np.clip(skip - before, 0, counts)
    kept = np.where(track.discard, 0, counts - cut)
    pts = track.pts + np.rint(cut * track.timescale / rate_hz).astype(np.int64)
    used = kept > 0
    return SoundFrames(kept[used], pts[used], rate_hz, channels)


def _index_problems(movie: Movie | None, tracks: Mapping[int, Mp4Track]) -> tuple[Problem, ...]:
    lost = sum(track.lost for track in tracks.values())
    if not lost:
        return _unfinished(movie is not None and movie.truncated)
    text = (
        f"the file ends before its content does: {lost} packets that its index names are missing; "
        "what is there was kept. Copy the file again"
    )
    return (Problem("truncated", text, severe=True),)


def edit_problems(tracks: Iterable[Mp4Track]) -> Iterator[Problem]:
    """Say where pictures come early: as a rule the file was cut without encoding it anew."""
    for track in tracks:
        early_ms = 1000 * track.early / track.timescale
        if early_ms > EARLY_MS:
            text = (
                f"the file was cut between two frames: its pictures are {early_ms:.1f} ms early "
                "against its sound, as in any player built on FFmpeg. Use the file as the camera "
                "wrote it"
            )
            yield Problem("cut_between_frames", text, severe=True)


# --- by demuxing -----------------------------------------------------------------------------


def _by_demuxing(
    path: Path, container: Any, streams: tuple[Stream, ...], movie: Movie | None
) -> Scan:
    found = demux(container)
    name = container.format.name
    samples = next((int(frames.counts.sum()) for frames in found.sound.values()), 0)
    cut = movie.truncated if movie is not None else is_cut_short(path, name, samples)
    return Scan(
        streams=streams,
        packets={s.index: _in_time(name, s, found.packets[s.index]) for s in streams},
        sound=found.sound,
        rotation_deg=found.rotation_deg,
        metadata=_metadata(container),
        container=name,
        movie=movie,
        problems=(
            *_unfinished(cut),
            *_demux_problems(found),
            *_order_problems(name, streams),
        ),
    )


def _unfinished(cut: bool) -> tuple[Problem, ...]:
    text = (
        "the file was not finished, or not copied completely: its last part is cut off; "
        "what is there was kept"
    )
    return (Problem("truncated", text, severe=True),) if cut else ()


def _demux_problems(found: Demuxed) -> tuple[Problem, ...]:
    problems = []
    if found.broken:
        text = f"reading stopped before the end ({found.broken}); what came before was kept"
        problems.append(Problem("truncated", text, severe=True))
    bad = sum(found.undecodable.values())
    if bad:
        text = f"{bad} packets of sound cannot be decoded and count as silence"
        problems.append(Problem("undecodable_sound", text, severe=True))
    return tuple(problems)


def _order_problems(name: str, streams: tuple[Stream, ...]) -> Iterator[Problem]:
    """Say where a container without presentation times holds frames in an order FFmpeg ignores."""
    for stream in streams:
        if _only_counted(name, stream) and stream.reordered:
            text = (
                "its frames are stored in another order than they are shown in, and AVI does not "
                "say in which: their times are off by some frames. Record without B-frames, or "
                "into MP4 or Matroska"
            )
            yield Problem("order_unknown", text, severe=True)


def _only_counted(name: str, stream: Stream) -> bool:
    """Tell where FFmpeg just counts packets: AVI has no presentation times, nor do these codecs."""
    return name == "avi" and stream.codec in ("h264", "hevc")


def _in_time(name: str, stream: Stream, packets: Packets) -> Packets:
    """Note where FFmpeg's presentation times are late: it allows for a reordering that is not.

    Versions before 6 give the decode times, with which picture and sound agree.
    """
    return replace(packets, counted=_only_counted(name, stream) and not stream.reordered)
