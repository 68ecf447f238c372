"""Webcams, phones, sound recorders: any video or sound file that FFmpeg reads.

The device clock is the container's own presentation time, as ffprobe prints it, in ns: edit lists
and composition offsets honoured, rounded once. It does not begin at zero where the container's
does not (MPEG-TS, files cut from longer ones).

MP4 and MOV are read from their index alone, which is checked against FFmpeg's own; where the two
differ, and for all other containers, one demuxing pass finds the times. Frames that exist only for
others to be decoded (before an edit's start) are left out, as ffprobe leaves them out.

Sound: sample indices count **what FFmpeg's decoder delivers**, frame by frame, after it removed
priming and padding (AAC edit lists, Opus pre-skip, MP3 encoder delay), and each frame's own time
says where it belongs. Nothing is placed by concatenation: a hole in the times, as after the first
AAC packet of many fragmented files, is a hole in the knots. See `container.knots` for the rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.capture.container.demux import Packets, Stream
from synorama.capture.container.health import steady_rate_hz, video_problems
from synorama.capture.container.knots import GAP_NS, Placed, place_frames
from synorama.capture.container.mp4 import looks_like_mp4
from synorama.capture.container.scan import Scan, scan
from synorama.capture.container.ticks import ticks_to_ns
from synorama.capture.reader import Reader
from synorama.errors import NoMediaError
from synorama.records import (
    FRAME_DTYPE,
    AudioTrack,
    FileRef,
    Problem,
    Recording,
    Track,
    UtcEstimate,
    VideoTrack,
)
from synorama.timebase import format_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["READER", "container_tracks", "open_media_file", "sniff"]

NS_PER_S = 1_000_000_000
LATE_START_NS = 1_000_000_000
UNKNOWN_CLOCK_S = 43_200.0
"""Sigma of a creation time of unknown origin. Many cameras store local time stamped as UTC, and
their clocks are off by minutes; converters store the time of conversion. Half a day covers the time
zones."""
PHONE_CLOCK_S = 60.0
"""Sigma of Apple's creation date: written with its time zone by clocks set by the network, but
to whole seconds and at an unstated moment of the recording."""

CLOCK_TAGS = (
    ("com.apple.quicktime.creationdate", PHONE_CLOCK_S),
    ("creation_time", UNKNOWN_CLOCK_S),
)
MODEL_TAGS = (
    ("com.apple.quicktime.make", "com.apple.quicktime.model"),
    ("com.android.manufacturer", "com.android.model"),
    ("make", "model"),
)
PRIMING_HOLE_NS = 100_000_000  # the hole after the first packet of AAC is shorter
# fmt: off
SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".qt", ".3gp", ".3g2", ".mkv", ".mka", ".webm", ".ts", ".mts", ".m2ts",
    ".avi", ".mpg", ".mpeg", ".vob", ".flv", ".wmv", ".wma", ".asf", ".ogv", ".ogg", ".oga",
    ".opus", ".wav", ".w64", ".flac", ".m4a", ".mp3", ".mp2", ".aac", ".aif", ".aiff", ".caf",
    ".au", ".amr", ".ac3", ".eac3", ".mxf", ".wv", ".tta", ".ape", ".nut", ".ivf",
)
# fmt: on


# --- recognising -----------------------------------------------------------------------------

MAGIC: tuple[tuple[int, bytes], ...] = (
    (0, b"\x1a\x45\xdf\xa3"),  # Matroska, WebM
    (0, b"fLaC"),
    (0, b"OggS"),
    (0, b"ID3"),
    (0, b"FLV\x01"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),  # ASF
    (0, b"\x00\x00\x01\xba"),  # MPEG program stream
    (0, b"caff"),
    (0, b".snd"),
    (0, b"#!AMR"),
    (0, b"riff\x2e\x91\xcf\x11"),  # Wave64
    (0, b"\x0b\x77"),  # AC-3
    (0, b"\x06\x0e\x2b\x34\x02\x05\x01\x01"),  # MXF
    (0, b"wvpk"),
    (0, b"TTA"),
    (0, b"MAC "),
    (0, b"DKIF"),
    (0, b"nut/multimedia container"),
    (8, b"WAVE"),
    (8, b"AVI "),
    (8, b"AIFF"),
    (8, b"AIFC"),
)


def sniff(path: Path) -> bool:
    """Tell from the first bytes whether this is a video or sound file. Never raises."""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError:
        return False
    return (
        any(head[at : at + len(magic)] == magic for at, magic in MAGIC)
        or looks_like_mp4(path)
        or _is_transport_stream(head)
        or _is_bare_mpeg_sound(head, path.suffix.lower())
    )


def _is_transport_stream(head: bytes) -> bool:
    return any(
        len(head) > start + 2 * step and all(head[start + k * step] == 0x47 for k in range(3))
        for start, step in ((0, 188), (4, 192))
    )


def _is_bare_mpeg_sound(head: bytes, suffix: str) -> bool:
    """MP3 and AAC without a header begin with twelve set bits, which too much else does as well."""
    return (
        suffix in (".mp3", ".mp2", ".aac")
        and len(head) > 2
        and head[0] == 0xFF
        and head[1] & 0xE0 == 0xE0
    )


# --- opening ---------------------------------------------------------------------------------


def open_media_file(path: Path) -> Recording:
    """Open any video or sound file.

    Returns
    -------
    Recording
        Tracks ``video``, ``video-2``... and ``audio``, ``audio-2``... in the order of streams.

    Raises
    ------
    EmptyFileError, NoMovieIndexError, CorruptFileError, NoMediaError, InputNotFoundError,
    InputUnreadableError
    """
    path = Path(path)
    found = scan(path)
    tracks, problems = container_tracks(found)
    if not tracks:
        raise NoMediaError(
            "the file opens but holds neither pictures nor sound",
            path=path,
            hint="check that the recording was not stopped as soon as it began",
        )
    status = path.stat()
    return Recording(
        id="webcam",
        device="webcam",
        files=(FileRef(path, status.st_size, status.st_mtime_ns),),
        tracks=tracks,
        model=_model(found.metadata),
        start_utc=_start_utc(found),
        problems=(*found.problems, *problems, *_whole_problems(tracks)),
        extras={"container": found.container},
    )


def container_tracks(found: Scan) -> tuple[dict[str, Track], tuple[Problem, ...]]:
    """Return the tracks of a scanned file by name, without empty ones, and what is wrong."""
    tracks: dict[str, Track] = {}
    problems: list[Problem] = []
    numbers = {"video": 0, "audio": 0}
    for stream in found.streams:
        numbers[stream.kind] += 1
        name = stream.kind if numbers[stream.kind] == 1 else f"{stream.kind}-{numbers[stream.kind]}"
        make = _video if stream.kind == "video" else _audio
        track, said = make(found, stream, name)
        problems += said
        if track.count:
            tracks[name] = track
    return tracks, tuple(problems)


# --- pictures --------------------------------------------------------------------------------


def _video(found: Scan, stream: Stream, name: str) -> tuple[Track, tuple[Problem, ...]]:
    packets = found.packets[stream.index]
    shown, problems = _shown(packets, name)
    ticks = packets.dts if packets.counted else packets.pts
    times_ns = ticks_to_ns(ticks[shown], stream.time_base)
    track = VideoTrack(
        name=name,
        codec=stream.codec,
        width=stream.width,
        height=stream.height,
        times_ns=times_ns,
        index=_frame_table(packets, shown),
        storage="container",
        time_base=stream.time_base,
        stream_index=stream.index,
        rotation_deg=found.rotation_deg[stream.index],
        rate_hz=steady_rate_hz(times_ns),
        source=str(stream.index),
    )
    if not track.count:
        return track, (Problem("no_pictures", "the stream of pictures is empty", name),)
    return track, (*problems, *video_problems(times_ns, name))


def _shown(packets: Packets, name: str) -> tuple[Int64, tuple[Problem, ...]]:
    """Return the packets that become pictures, in display order.

    Before the first key frame nothing can be decoded.
    """
    keys = np.flatnonzero(packets.keys)
    start = int(keys[0]) if len(keys) else 0
    visible = np.flatnonzero(~packets.discard)
    early = int((visible < start).sum())
    visible = visible[visible >= start]
    order = visible[np.argsort(packets.pts[visible], kind="stable")]
    if not early:
        return order, ()
    text = f"the first {early} frames cannot be decoded: the file begins between two key frames"
    return order, (Problem("no_key_frame", text, name),)


def _frame_table(packets: Packets, shown: Int64) -> NDArray[np.void]:
    """Lay out the index; the place is informative, and 0 where the container does not tell."""
    table = np.zeros(len(shown), FRAME_DTYPE)
    table["pts"] = packets.pts[shown]
    table["offset"] = np.maximum(packets.offsets[shown], 0)
    table["size"] = packets.sizes[shown]
    table["key"] = packets.keys[shown]
    return table


# --- sound -----------------------------------------------------------------------------------


def _audio(found: Scan, stream: Stream, name: str) -> tuple[Track, tuple[Problem, ...]]:
    frames = found.sound[stream.index]
    times_ns = ticks_to_ns(frames.pts, stream.time_base)
    numerator, denominator = stream.time_base
    placed = place_frames(
        frames.counts, times_ns, frames.rate_hz, numerator * NS_PER_S // denominator
    )
    track = AudioTrack(
        name=name,
        codec=stream.codec,
        rate_hz=frames.rate_hz,
        channels=frames.channels,
        sample_count=int(frames.counts.sum()),
        knots=placed.knots,
        storage="container",
        stream_index=stream.index,
        source=str(stream.index),
    )
    if not track.count:
        return track, (Problem("no_sound", "the stream of sound is empty", name, severe=True),)
    return track, _sound_problems(placed, name)


def _sound_problems(placed: Placed, name: str) -> tuple[Problem, ...]:
    problems = []
    if placed.gaps:
        at_ns, longest_ns = max(placed.gaps, key=lambda gap: gap[1])
        text = (
            f"{len(placed.gaps)} gaps in the sound above {GAP_NS // 1_000_000} ms; the longest "
            f"lasts {_ms(longest_ns)} ms from {format_seconds(at_ns)} s on"
        )
        severe = longest_ns > PRIMING_HOLE_NS
        problems.append(Problem("gap", text, name, severe=severe))
    if placed.overlaps:
        at_ns, longest_ns = max(placed.overlaps, key=lambda overlap: overlap[1])
        text = (
            f"the times of the sound go back in {len(placed.overlaps)} places, at most by "
            f"{_ms(longest_ns)} ms at {format_seconds(at_ns)} s; what comes twice was moved to the "
            "end of what came before, so that later times of this sound are not to be trusted"
        )
        problems.append(Problem("non_monotonic", text, name, severe=True))
    return tuple(problems)


def _ms(t_ns: int) -> str:
    return f"{t_ns / 1e6:.0f}"


# --- the whole -------------------------------------------------------------------------------


def _whole_problems(tracks: Mapping[str, Track]) -> tuple[Problem, ...]:
    """Say what is missing, and whether pictures and sound begin together."""
    video, audio = tracks.get("video"), tracks.get("audio")
    if audio is None:
        text = "there is no sound, so it cannot be placed by sound"
        return (Problem("no_sound", text, severe=True),)
    if video is None or video.first_ns is None or audio.first_ns is None:
        return ()
    late_ns = video.first_ns - audio.first_ns
    if abs(late_ns) < LATE_START_NS:
        return ()
    later, earlier = ("picture", "sound") if late_ns > 0 else ("sound", "picture")
    text = f"the first {later} comes {_ms(abs(late_ns))} ms after the first {earlier}"
    return (Problem("late_start", text),)


def _model(metadata: Mapping[str, str]) -> str:
    """Return maker and model of the device, where it wrote them; no other tag is taken over."""
    for make, model in MODEL_TAGS:
        if model in metadata:
            return f"{metadata.get(make, '')} {metadata[model]}".strip()
    return ""


def _start_utc(found: Scan) -> UtcEstimate | None:
    """Return when the recording began, with the sigma that its writer deserves."""
    for tag, sigma_s in CLOCK_TAGS:
        utc_ns = _parse_utc_ns(found.metadata.get(tag, ""))
        if utc_ns is not None:
            return UtcEstimate(device_ns=0, utc_ns=utc_ns, sigma_s=sigma_s, source=tag)
    return None


def _parse_utc_ns(text: str) -> int | None:
    """Read an ISO 8601 time with a zone; times before 1990 are clocks that were never set."""
    try:
        moment = datetime.fromisoformat(_with_colon(text.strip().replace("Z", "+00:00")))
    except ValueError:
        return None
    if moment.tzinfo is None or moment.year < 1990:
        return None
    return int(moment.timestamp()) * NS_PER_S


def _with_colon(text: str) -> str:
    """Write the zone as Python 3.10 wants it: ``+0200`` as ``+02:00``."""
    bare = len(text) > 5 and text[-5] in "+-" and text[-4:].isdigit()
    return f"{text[:-2]}:{text[-2:]}" if bare else text


READER = Reader(name="webcam", suffixes=SUFFIXES, sniff=sniff, open=open_media_file)
