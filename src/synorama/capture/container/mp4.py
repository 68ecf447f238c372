"""The index of MP4, MOV and their relatives: where every frame lies and when it is seen.

Reads the ``moov`` box only, never the media. The result is what FFmpeg's demuxer would hand out
packet by packet (composition offsets and edit lists applied, see `edits`), without touching the
packets. Sources: ISO/IEC 14496-12 and Apple's QuickTime File Format; the behaviour was compared
with ffprobe. Samples in movie fragments are not indexed; `Movie.fragmented` tells of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from synorama.capture.container.edits import Edit, Edited, Timing, TooManyPacketsError, apply_edits
from synorama.capture.container.ticks import ticks_to_ns
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    HostileFileError,
    InputNotFoundError,
    InputUnreadableError,
    NoMovieIndexError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Bool = NDArray[np.bool_]

__all__ = ["Movie", "Mp4Track", "looks_like_mp4", "read_movie"]

MAX_SAMPLES = 1 << 25  # of one track: 38 hours at 240 frames a second
MAX_TOP_BOXES = 1 << 20
MOST_REPEATS, EDITS_ROOM = 10, 100_000  # packets that an edit list may make of a track
EPOCH_1904_S = 2_082_844_800
PCM_PIECE = 1024  # samples of plain sound that FFmpeg hands out at once
CHECK = "check where the file comes from"
FIRST_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"uuid"}


@dataclass(frozen=True, slots=True, eq=False)
class Mp4Track:
    """One track: its packets in decode order, as FFmpeg's demuxer hands them out.

    Parameters
    ----------
    handler
        What it holds: ``vide``, ``soun``, ``tmcd``, ``meta``, ``text``, ``sbtl``...
    name
        The handler's name, such as ``GoPro MET``.
    codec_tag
        FourCC of its sample description: ``avc1``, ``hvc1``, ``mp4a``, ``gpmd``...
    timescale
        Units of time a second.
    pts, dts
        ``(N,)`` presentation and decode time, edit list applied.
    durations
        ``(N,)`` as stored.
    offsets, sizes
        ``(N,)`` where the packet lies in the file [bytes].
    keys, discard
        ``(N,)`` bool: decodes on its own; is decoded only for others' sake and not shown.
    skip_samples
        Samples (in units of the timescale) that fall away at the start of decoded sound.
    edits
        The edit list, in units of the timescale.
    lost
        How many further packets the index names that lie beyond the end of the file.
    width, height
        Stored size [px], 0 unless pictures.
    rotation_deg
        Clockwise turn that makes the picture upright.
    channels, sample_rate_hz
        Of sound, as the container says, else 0.
    description
        The sample description's bytes, from its size on: for those who need more.
    early
        By how much the pictures' ``pts`` lie before their time by the letter of the edit list.
    """

    track_id: int
    handler: str
    name: str
    codec_tag: str
    timescale: int
    pts: Int64
    dts: Int64
    durations: Int64
    offsets: Int64
    sizes: Int64
    keys: Bool
    discard: Bool
    skip_samples: int = 0
    edits: tuple[Edit, ...] = ()
    lost: int = 0
    width: int = 0
    height: int = 0
    rotation_deg: int = 0
    channels: int = 0
    sample_rate_hz: float = 0.0
    description: bytes = b""
    early: int = 0

    @property
    def count(self) -> int:
        """Number of packets."""
        return len(self.pts)

    def presentation_ns(self) -> Int64:
        """Return ``(N,)`` presentation times [ns], in decode order: ffprobe's ``pts_time``."""
        return ticks_to_ns(self.pts, (1, self.timescale))


@dataclass(frozen=True, slots=True, eq=False)
class Movie:
    """What the ``moov`` box says.

    Parameters
    ----------
    timescale
        Units of time a second of the movie as a whole.
    creation_utc_s
        Creation time in seconds since 1970 as stored, None where unset. Cameras are known to
        store local time here.
    tracks
        In the file's order, which is FFmpeg's order of streams.
    user_data
        ``(offset, size)`` in the file of each entry of ``moov/udta``, by its FourCC.
    fragmented
        Whether samples also lie in movie fragments, which the tracks here do not list.
    truncated
        Whether the file ends before the last of its boxes does.
    """

    timescale: int
    creation_utc_s: int | None
    tracks: tuple[Mp4Track, ...]
    user_data: Mapping[str, tuple[int, int]]
    fragmented: bool = False
    truncated: bool = False


def looks_like_mp4(path: Path) -> bool:
    """Tell from the first bytes whether the file is of the MP4 family. Never raises."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
            size = file.seek(0, 2)
    except OSError:
        return False
    if len(head) < 8 or head[4:] not in FIRST_BOXES:
        return False
    # A text that begins "The free" is no film; only unfinished media may be announced too long.
    return head[4:] == b"mdat" or int.from_bytes(head[:4], "big") <= size


def read_movie(path: Path) -> Movie:
    """Read the index of an MP4 or MOV file.

    Raises
    ------
    EmptyFileError
        No bytes.
    NoMovieIndexError
        The ``moov`` box is missing: the camera did not finish writing the file.
    CorruptFileError
        It is no MP4, or its index contradicts itself.
    HostileFileError
        Its edit list would exhaust memory.
    InputNotFoundError, InputUnreadableError
        The file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except FileNotFoundError:
        raise InputNotFoundError("no such file", path=path) from None
    except OSError as error:
        raise InputUnreadableError(f"cannot be read: {error.strerror}", path=path) from error
    except TooManyPacketsError as error:
        raise HostileFileError(f"{error}: no camera writes that", path=path, hint=CHECK) from error
    except (ValueError, IndexError, KeyError, OverflowError, struct.error) as error:
        raise CorruptFileError(
            f"the index of this MP4 file is damaged: {error}",
            path=path,
            hint="copy the file from the camera's card again",
        ) from error


def _read(file: IO[bytes], path: Path) -> Movie:
    size = file.seek(0, 2)
    if size == 0:
        raise EmptyFileError("the file is empty", path=path, hint="copy it from the camera again")
    top = _top_boxes(file, size, path)
    if "moov" not in top.first:
        raise _no_index(top, path)
    offset, length = top.first["moov"]
    if offset + length > size:
        raise ValueError("the file ends inside its index")
    file.seek(offset)
    return _movie(file.read(length), offset, size, top)


# --- boxes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Top:
    """The outermost boxes: payload (offset, size) of the first of each kind."""

    first: dict[str, tuple[int, int]]
    truncated: bool


def _top_boxes(file: IO[bytes], size: int, path: Path) -> _Top:
    first: dict[str, tuple[int, int]] = {}
    at = 0
    for _ in range(MAX_TOP_BOXES):
        if at + 8 > size:
            return _Top(first, truncated=at != size)
        file.seek(at)
        kind, header, length = _box_header(file.read(16), size - at)
        if at == 0 and kind not in FIRST_BOXES:
            raise CorruptFileError(
                f"this is no MP4 or MOV file: it begins with {kind!r}",
                path=path,
                hint="check that the file's name has the right suffix",
            )
        if length < header:
            return _Top(first, truncated=True)
        first.setdefault(kind.decode("latin1"), (at + header, length - header))
        at += length
    raise ValueError(f"more than {MAX_TOP_BOXES} boxes")


def _box_header(head: bytes, room: int) -> tuple[bytes, int, int]:
    """Return kind, size of the header and size of the box, which may be larger than the room."""
    length, kind = struct.unpack_from(">I4s", head)
    if length == 1 and len(head) >= 16:
        return kind, 16, struct.unpack_from(">Q", head, 8)[0]
    return kind, 8, room if length == 0 else length


def _no_index(top: _Top, path: Path) -> NoMovieIndexError:
    found = ", ".join(sorted(top.first))
    return NoMovieIndexError(
        f"this MP4 file has no index ('moov' box; found: {found}): "
        "the camera did not finish writing it",
        path=path,
        hint="put the card back into the camera, which may repair it when switched on; or rebuild "
        "the index with a repair tool (such as untrunc) and an intact file of the same camera "
        "and settings",
    )


def _boxes(data: bytes, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield kind and payload range of the boxes in a range."""
    at = start
    while at + 8 <= end:
        kind, header, length = _box_header(data[at : min(at + 16, end)], end - at)
        if length < header or at + length > end:
            if kind == b"\0\0\0\0":  # QuickTime ends some lists with a zero word
                return
            raise ValueError(f"box {kind!r} does not fit into the box around it")
        yield kind.decode("latin1"), at + header, at + length
        at += length


def _children(data: bytes, start: int, end: int) -> dict[str, tuple[int, int]]:
    """Return the first box of each kind."""
    found: dict[str, tuple[int, int]] = {}
    for kind, a, b in _boxes(data, start, end):
        found.setdefault(kind, (a, b))
    return found


# --- movie -----------------------------------------------------------------------------------


def _movie(data: bytes, base: int, file_size: int, top: _Top) -> Movie:
    boxes = _children(data, 0, len(data))
    creation, timescale = _movie_header(data, *boxes["mvhd"])
    tracks = [
        _track(_TrackBoxes(data, a, b, file_size), timescale)
        for kind, a, b in _boxes(data, 0, len(data))
        if kind == "trak"
    ]
    return Movie(
        timescale=timescale,
        creation_utc_s=creation,
        tracks=tuple(track for track in tracks if track is not None),
        user_data=_user_data(data, boxes, base),
        fragmented="mvex" in boxes or "moof" in top.first,
        truncated=top.truncated,
    )


def _movie_header(data: bytes, start: int, end: int) -> tuple[int | None, int]:
    layout = ">xxxxQQI" if data[start] == 1 else ">xxxxIII"
    created, _, timescale = struct.unpack_from(layout, data[:end], start)
    if timescale == 0:
        raise ValueError("the movie's time scale is zero")
    if created == 0:
        return None, timescale
    # Some writers count from 1970 although the format counts from 1904; nothing was filmed then.
    return created - EPOCH_1904_S if created >= EPOCH_1904_S else created, timescale


def _user_data(
    data: bytes, boxes: Mapping[str, tuple[int, int]], base: int
) -> Mapping[str, tuple[int, int]]:
    if "udta" not in boxes:
        return MappingProxyType({})
    try:
        entries = _children(data, *boxes["udta"])
    except ValueError:  # writers put anything there, and no time depends on it
        return MappingProxyType({})
    return MappingProxyType({kind: (base + a, b - a) for kind, (a, b) in entries.items()})


# --- tracks ----------------------------------------------------------------------------------


class _TrackBoxes:
    """The boxes of one track, found when asked for."""

    __slots__ = ("data", "edits", "file_size", "header", "media", "table")

    def __init__(self, data: bytes, start: int, end: int, file_size: int) -> None:
        self.data = data
        self.file_size = file_size
        track = _children(data, start, end)
        self.header = track["tkhd"]
        self.edits = _children(data, *track["edts"]).get("elst") if "edts" in track else None
        self.media = _children(data, *track["mdia"])
        self.table = _children(data, *_children(data, *self.media["minf"])["stbl"])

    def payload(self, name: str) -> bytes:
        """Return a sample table's box without version and flags; empty where it is missing."""
        start, end = self.table.get(name, (0, 0))
        return self.data[start + 4 : end]

    def counted(self, name: str, dtype: str, width: int) -> Int64:
        """Return the ``(n, width)`` rows of a table that begins with their number."""
        payload = self.payload(name)
        if not payload:
            return np.zeros((0, width), np.int64)
        (count,) = struct.unpack_from(">I", payload)
        if 4 + count * width * int(dtype[-1]) > len(payload):
            raise ValueError(f"table '{name}' claims {count} entries, more than it has bytes for")
        table = np.frombuffer(payload, dtype, count * width, 4)
        return table.astype(np.int64).reshape(-1, width)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Samples as stored, in decode order."""

    decode: Int64
    durations: Int64
    composition_offsets: Int64 | None
    shift: int
    offsets: Int64
    sizes: Int64
    keys: Bool


def _track(boxes: _TrackBoxes, movie_timescale: int) -> Mp4Track | None:
    timescale = _media_timescale(boxes)
    handler, name = _handler(boxes)
    entry = _description(boxes)
    if not timescale or not entry:
        return None
    sound = handler == "soun"
    table = _pieces(boxes, entry) if _is_plain(boxes, sound) else _samples(boxes)
    table, lost = _within(table, boxes.file_size)
    edits = _edit_list(boxes, timescale, movie_timescale)
    packets = _arrange(table, edits, timescale, handler)
    return Mp4Track(
        track_id=_track_id(boxes),
        handler=handler,
        name=name,
        codec_tag=_codec_tag(entry),
        timescale=timescale,
        pts=packets.pts,
        dts=packets.decode,
        durations=table.durations[packets.samples],
        offsets=table.offsets[packets.samples],
        sizes=table.sizes[packets.samples],
        keys=table.keys[packets.samples],
        discard=packets.discard,
        skip_samples=packets.skip,
        edits=edits,
        lost=lost,
        rotation_deg=_rotation(boxes) if handler == "vide" else 0,
        description=entry,
        early=packets.early,
        **_appearance(entry, handler)._asdict(),
    )


def _arrange(table: _Table, edits: tuple[Edit, ...], timescale: int, kind: str) -> Edited:
    timing = Timing(
        decode=table.decode,
        offsets=table.composition_offsets,
        keys=table.keys,
        timescale=timescale,
        shift=table.shift,
        kind=kind,
    )
    return apply_edits(timing, edits, MOST_REPEATS * len(table.decode) + EDITS_ROOM)


def _track_id(boxes: _TrackBoxes) -> int:
    start, _ = boxes.header
    track_id: int = struct.unpack_from(">I", boxes.data, start + (20 if _v1(boxes) else 12))[0]
    return track_id


def _v1(boxes: _TrackBoxes) -> bool:
    return boxes.data[boxes.header[0]] == 1


def _media_timescale(boxes: _TrackBoxes) -> int:
    start, _ = boxes.media["mdhd"]
    at = start + (20 if boxes.data[start] == 1 else 12)
    timescale: int = struct.unpack_from(">I", boxes.data, at)[0]
    return timescale


def _handler(boxes: _TrackBoxes) -> tuple[str, str]:
    start, end = boxes.media["hdlr"]
    kind = boxes.data[start + 8 : start + 12].decode("latin1")
    name = boxes.data[start + 24 : end]
    if name and name[0] == len(name.rstrip(b"\0")) - 1:  # QuickTime: length first
        name = name[1:]
    return kind, name.split(b"\0")[0].decode("utf-8", "replace").strip()


def _description(boxes: _TrackBoxes) -> bytes:
    """Return the first sample description, from its size on."""
    payload = boxes.payload("stsd")
    if len(payload) < 12:
        return b""
    (length,) = struct.unpack_from(">I", payload, 4)
    return payload[4 : 4 + length]


def _codec_tag(entry: bytes) -> str:
    return entry[4:8].decode("latin1")


class _Appearance(NamedTuple):
    width: int = 0
    height: int = 0
    channels: int = 0
    sample_rate_hz: float = 0.0


def _appearance(entry: bytes, handler: str) -> _Appearance:
    """Return size or channels and rate as the sample description has them."""
    if handler == "vide" and len(entry) >= 36:
        width, height = struct.unpack_from(">HH", entry, 32)
        return _Appearance(width=width, height=height)
    if handler == "soun" and len(entry) >= 36:
        channels, rate = struct.unpack_from(">HxxxxxxI", entry, 24)
        return _Appearance(channels=channels, sample_rate_hz=rate / 65536)
    return _Appearance()


def _rotation(boxes: _TrackBoxes) -> int:
    """Return the quarter turn of the track's display matrix, clockwise."""
    start, _ = boxes.header
    a, b = struct.unpack_from(">ii", boxes.data, start + (52 if _v1(boxes) else 40))
    return round(math.degrees(math.atan2(b, a)) / 90) % 4 * 90


# --- sample tables ---------------------------------------------------------------------------


def _is_plain(boxes: _TrackBoxes, sound: bool) -> bool:
    """Tell whether every sample is one unit of time: sound without compression."""
    stts = boxes.counted("stts", ">u4", 2) if sound else np.zeros((0, 2), np.int64)
    return len(stts) == 1 and int(stts[0, 1]) == 1


def _samples(boxes: _TrackBoxes) -> _Table:
    sizes = _sizes(boxes)
    offsets = _offsets(boxes, sizes)
    sizes = sizes[: len(offsets)]
    n = len(sizes)
    durations = _durations(boxes, n)
    composition_offsets, shift = _composition_offsets(boxes, n)
    return _Table(
        decode=np.cumsum(durations) - durations,
        durations=durations,
        composition_offsets=composition_offsets,
        shift=shift,
        offsets=offsets,
        sizes=sizes,
        keys=_keys(boxes, n),
    )


def _sizes(boxes: _TrackBoxes) -> Int64:
    payload = boxes.payload("stsz")
    if not payload:
        return np.zeros(0, np.int64)
    size, count = struct.unpack_from(">II", payload)
    if count > MAX_SAMPLES:
        raise ValueError(f"it claims {count} samples in one track")
    if size:
        return np.full(min(count, boxes.file_size // size + 1), size, np.int64)
    if 8 + 4 * count > len(payload):
        raise ValueError(f"table 'stsz' claims {count} entries, more than it has bytes for")
    return np.frombuffer(payload, ">u4", count, 8).astype(np.int64)


def _chunks(boxes: _TrackBoxes) -> tuple[Int64, Int64]:
    """Return offset and number of samples of each chunk."""
    wide = "co64" in boxes.table
    starts = boxes.counted("co64", ">u8", 1) if wide else boxes.counted("stco", ">u4", 1)
    runs = boxes.counted("stsc", ">u4", 3)
    if not len(runs) or not len(starts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = runs[:, 0] - 1
    if first[0] != 0 or (np.diff(first) <= 0).any():
        raise ValueError("table 'stsc' is out of order")
    run = np.searchsorted(first, np.arange(len(starts)), side="right") - 1
    return starts[:, 0], runs[run, 1]


def _offsets(boxes: _TrackBoxes, sizes: Int64) -> Int64:
    """Return where each sample lies: samples of a chunk lie one behind the other."""
    starts, counts = _chunks(boxes)
    ends = np.minimum(np.cumsum(counts), len(sizes))
    counts = np.diff(ends, prepend=0)
    chunk = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(sizes) - sizes
    before = before[: len(chunk)]
    first = (ends - counts)[chunk]
    offsets: Int64 = starts[chunk] + before - before[first]
    return offsets


def _durations(boxes: _TrackBoxes, n: int) -> Int64:
    stts = boxes.counted("stts", ">u4", 2)
    if n and not len(stts):
        raise ValueError("table 'stts' is empty: no sample has a time")
    runs = _clip_runs(stts[:, 0], n)
    durations = np.repeat(stts[:, 1], runs)
    missing = n - len(durations)  # FFmpeg goes on with the last entry, and so do we
    return np.concatenate([durations, np.full(missing, stts[-1, 1] if n else 0, np.int64)])


def _clip_runs(counts: Int64, n: int) -> Int64:
    """Shorten run lengths so that they make no more than n values."""
    clipped: Int64 = np.diff(np.minimum(np.cumsum(counts), n), prepend=0)
    return clipped


def _composition_offsets(boxes: _TrackBoxes, n: int) -> tuple[Int64 | None, int]:
    """Return presentation minus decode time, and FFmpeg's shift for negative ones."""
    ctts = boxes.counted("ctts", ">i4", 2)
    if not len(ctts):
        return None, 0
    runs = _clip_runs(ctts[:, 0] & 0xFFFFFFFF, n)
    values = np.repeat(ctts[:, 1], runs)
    # The last two entries do not count: some encoders end with nonsense there.
    shift = max(-int(ctts[:-2, 1].min()), 0) if len(ctts) > 2 else 0
    return np.concatenate([values, np.zeros(n - len(values), np.int64)]), shift


def _keys(boxes: _TrackBoxes, n: int) -> Bool:
    if "stss" not in boxes.table:
        return np.ones(n, bool)
    keys = np.zeros(n, bool)
    numbers = boxes.counted("stss", ">u4", 1)[:, 0] - 1
    keys[numbers[(numbers >= 0) & (numbers < n)]] = True
    return keys


def _pieces(boxes: _TrackBoxes, entry: bytes) -> _Table:
    """Cut uncompressed sound into the pieces that FFmpeg hands out: one row a piece."""
    starts, counts = _chunks(boxes)
    frame = _frame_bytes(boxes, entry)
    counts = np.minimum(counts, boxes.file_size // frame + 1)
    per_chunk = -(-counts // PCM_PIECE)
    if int(per_chunk.sum()) > MAX_SAMPLES:
        raise ValueError("its sound is longer than the file can hold")
    chunk = np.repeat(np.arange(len(starts)), per_chunk)
    piece = np.arange(len(chunk)) - (np.cumsum(per_chunk) - per_chunk)[chunk]
    durations = np.minimum(counts[chunk] - piece * PCM_PIECE, PCM_PIECE)
    return _Table(
        decode=np.cumsum(durations) - durations,
        durations=durations,
        composition_offsets=None,
        shift=0,
        offsets=starts[chunk] + piece * PCM_PIECE * frame,
        sizes=durations * frame,
        keys=np.ones(len(chunk), bool),
    )


def _frame_bytes(boxes: _TrackBoxes, entry: bytes) -> int:
    """Return the bytes of one sample of all channels."""
    (size,) = struct.unpack_from(">I", boxes.payload("stsz"))
    channels, bits = struct.unpack_from(">HH", entry, 24)
    frame: int = max(size, channels * (bits // 8), 1)
    return frame


def _within(table: _Table, file_size: int) -> tuple[_Table, int]:
    """Leave out the samples that a truncated file no longer has."""
    there = (table.offsets >= 0) & (table.offsets + table.sizes <= file_size)
    if there.all():
        return table, 0
    end = int(np.flatnonzero(~there)[0])  # later ones may lie before the end, but cannot decode
    offsets = table.composition_offsets
    kept = _Table(
        decode=table.decode[:end],
        durations=table.durations[:end],
        composition_offsets=None if offsets is None else offsets[:end],
        shift=table.shift,
        offsets=table.offsets[:end],
        sizes=table.sizes[:end],
        keys=table.keys[:end],
    )
    return kept, len(table.decode) - end


def _edit_list(boxes: _TrackBoxes, timescale: int, movie_timescale: int) -> tuple[Edit, ...]:
    if boxes.edits is None:
        return ()
    start, end = boxes.edits
    layout = struct.Struct(">QqI" if boxes.data[start] == 1 else ">IiI")
    (count,) = struct.unpack_from(">I", boxes.data, start + 4)
    if start + 8 + count * layout.size > end:
        raise ValueError(f"the edit list claims {count} entries, more than it has bytes for")
    rows = layout.iter_unpack(boxes.data[start + 8 : start + 8 + count * layout.size])
    return tuple(Edit(_rescale(row[0], timescale, movie_timescale), row[1]) for row in rows)


def _rescale(duration: int, timescale: int, movie_timescale: int) -> int:
    """Carry a duration to the track's units, to nearest, halves away from zero as FFmpeg does."""
    return (2 * duration * timescale + movie_timescale) // (2 * movie_timescale)
