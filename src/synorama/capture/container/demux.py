"""One pass through a file with FFmpeg's demuxer: packets and what the sound decodes to.

For containers without an index of their own (Matroska, WebM, MPEG-TS, AVI, movie fragments...).
Pictures are not decoded, but for the first one, which tells how the camera was turned. Sound is
decoded, because only the decoder knows how many samples a packet makes (priming, padding, Vorbis).

What ``offsets`` mean depends on the container: in MP4, WAV, FLAC and MP3 the packet's bytes begin
there; in Matroska and WebM it is the block that holds them; in MPEG-TS and MPEG-PS the first
transport packet, whose payload is interleaved with others; -1 where FFmpeg does not know. Frames of
containers are decoded by ``pts``, never by offset.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Bool = NDArray[np.bool_]

__all__ = [
    "Demuxed",
    "Packets",
    "SoundFrames",
    "Stream",
    "demux",
    "first_sound_frames",
    "open_media",
    "sound_frames",
    "streams_of",
]

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,wav,w64,flac,mp3,aac,ogg,asf,flv,aiff,"
    "caf,au,amr,amrnb,amrwb,ac3,eac3,mxf,ivf,dv,wv,tta,ape,mpc,mpc8,rm,nut,gxf"
)
"""Containers with times of their own. No playlists: they read other files, or the network."""
OPTIONS = {"protocol_whitelist": "file", "format_whitelist": FORMATS}
FIRST_PACKETS = 60  # looked at in each stream of sound to learn the length of its frames
SETTLED_FRAMES = 3  # priming may have shortened the first
PICTURES_TRIED = 60  # packets until the first picture must have come out


@dataclass(frozen=True, slots=True)
class Stream:
    """What FFmpeg says of one stream of pictures or sound.

    ``kind`` is ``video`` or ``audio``; cover art and everything else is no stream here.
    ``reordered``: pictures are decoded in another order than they are shown in.
    """

    index: int
    kind: str
    codec: str
    time_base: tuple[int, int]
    width: int = 0
    height: int = 0
    rate_hz: float = 0.0
    channels: int = 0
    reordered: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """The packets of one stream in decode order; times in units of its time base.

    ``pts`` is the decode time where the container gives no presentation time. ``discard``: decoded
    only for others' sake, or holding no picture to be shown. ``counted``: ``dts`` is when frames
    are shown, and ``pts`` no more than a mark by which FFmpeg's decoder knows them.
    """

    pts: Int64
    dts: Int64
    offsets: Int64
    sizes: Int64
    keys: Bool
    discard: Bool
    counted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SoundFrames:
    """Decoded sound, frame by frame: how many samples, and the time of the first [ticks].

    ``rate_hz`` and ``channels`` are those of the decoded samples.
    """

    counts: Int64
    pts: Int64
    rate_hz: float
    channels: int


@dataclass(frozen=True, slots=True, eq=False)
class Demuxed:
    """All that one pass found, by index of stream."""

    packets: dict[int, Packets]
    sound: dict[int, SoundFrames]
    rotation_deg: dict[int, int]
    broken: str  # why reading stopped before the end; empty if it did not
    undecodable: dict[int, int] = field(default_factory=dict)  # packets of sound


@contextmanager
def open_media(path: Path) -> Iterator[Any]:
    """Open a file with PyAV; nothing but this file is ever read.

    Raises
    ------
    InputNotFoundError, InputUnreadableError, EmptyFileError, CorruptFileError
    """
    import av

    try:
        if path.stat().st_size == 0:
            raise EmptyFileError("the file is empty", path=path, hint="copy it again")
        container = av.open(str(path.absolute()), options=OPTIONS, metadata_errors="replace")
    except FileNotFoundError:
        raise InputNotFoundError("no such file", path=path) from None
    except (PermissionError, IsADirectoryError) as error:
        raise InputUnreadableError(f"cannot be read: {error.strerror}", path=path) from error
    except (av.FFmpegError, OSError, ValueError) as error:
        raise CorruptFileError(
            f"FFmpeg finds neither video nor sound in it ({_reason(error)})",
            path=path,
            hint="play the file; if no player can, copy it from its original again",
        ) from error
    with container:
        yield container


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", "") or error)


def streams_of(container: Any) -> tuple[Stream, ...]:
    """Return the streams of pictures and sound, without cover art."""
    from av.stream import Disposition

    return tuple(
        _stream(stream)
        for stream in container.streams
        if stream.type in ("video", "audio")
        and stream.codec_context is not None
        and not stream.disposition & Disposition.attached_pic
    )


def _stream(stream: Any) -> Stream:
    context = stream.codec_context
    base = stream.time_base
    shape = (
        {"width": context.width, "height": context.height, "reordered": context.has_b_frames}
        if stream.type == "video"
        else {"rate_hz": float(context.sample_rate), "channels": context.channels}
    )
    codec = context.codec.canonical_name
    return Stream(stream.index, stream.type, codec, (base.numerator, base.denominator), **shape)


# --- the pass --------------------------------------------------------------------------------


def demux(container: Any) -> Demuxed:
    """Read all packets of pictures and sound, decoding the sound."""
    books = _books(container, [stream.index for stream in streams_of(container)])
    broken = ""
    for packet in _all_packets(container, list(books)):
        if isinstance(packet, str):
            broken = packet
            break
        if packet.stream_index in books:  # damaged files bring packets of streams nobody asked for
            books[packet.stream_index].take(packet)
    sound = {i: book.sound() for i, book in books.items() if book.is_sound}
    return Demuxed(
        packets={i: book.packets() for i, book in books.items()},
        sound=sound,
        rotation_deg={i: book.rotation_deg for i, book in books.items() if not book.is_sound},
        broken=broken,
        undecodable={i: book.undecodable for i, book in books.items() if book.undecodable},
    )


def sound_frames(container: Any, index: int) -> SoundFrames:
    """Decode one stream of sound from where the container stands."""
    book = _books(container, [index])[index]
    for packet in _all_packets(container, [index]):
        if isinstance(packet, str):
            break
        book.take(packet)
    return book.sound()


def first_sound_frames(container: Any, indices: list[int]) -> dict[int, SoundFrames]:
    """Decode a few frames of each of these streams of sound."""
    books = _books(container, indices)
    for number, packet in enumerate(_all_packets(container, indices)):
        if isinstance(packet, str) or number >= FIRST_PACKETS * len(books):
            break
        if packet.stream_index in books:
            books[packet.stream_index].take(packet)
        if all(book.settled for book in books.values()):
            break
    return {index: book.sound() for index, book in books.items()}


def _books(container: Any, indices: list[int]) -> dict[int, _Book]:
    return {
        stream.index: _Book(stream) for stream in streams_of(container) if stream.index in indices
    }


def _all_packets(container: Any, indices: list[int]) -> Iterator[Any]:
    """Yield the packets, and the reason as text if reading ends in an error."""
    import av

    if not indices:
        return
    packets = container.demux([container.streams[i] for i in indices])
    while True:
        try:
            yield next(packets)
        except StopIteration:
            return
        except av.FFmpegError as error:
            yield _reason(error)
            return


class _Book:
    """Notes what one stream's packets say, one after the other."""

    def __init__(self, facts: Stream) -> None:
        self.is_sound = facts.kind == "audio"
        self.rotation_deg = 0
        self.undecodable = 0
        self._facts = facts
        self._rows = array("q")  # six numbers a packet; a day of sound is millions of them
        self._frames = array("q")  # two numbers a frame
        self._due = 0  # when the next frame of sound begins if it does not say so
        self._shape = (facts.rate_hz, facts.channels)
        self._waiting = 0 if self.is_sound else PICTURES_TRIED
        self._vp8 = facts.codec == "vp8"

    @property
    def settled(self) -> bool:
        """Whether enough frames came out to tell how long a whole one is."""
        return len(self._frames) >= 2 * SETTLED_FRAMES

    def take(self, packet: Any) -> None:
        """Note one packet; an empty one flushes the decoder."""
        if packet.size:
            self._note(packet)
        if self.is_sound:
            self._decode_sound(packet)
        elif self._waiting and packet.size:
            self._decode_first_picture(packet)

    def _note(self, packet: Any) -> None:
        pts = packet.pts if packet.pts is not None else packet.dts
        if pts is None:
            return
        dts = packet.dts if packet.dts is not None else pts
        offset = -1 if packet.pos is None else packet.pos
        hidden = packet.is_discard or (self._vp8 and not memoryview(packet)[0] & 0x10)
        self._rows.extend((pts, dts, offset, packet.size, packet.is_keyframe, hidden))

    def _decode_sound(self, packet: Any) -> None:
        import av

        try:
            frames = packet.decode()
        except av.FFmpegError:
            self._silence(packet)
            return
        for frame in frames:
            self._shape = (float(frame.sample_rate), frame.layout.nb_channels)
            self._note_frame(frame.samples, frame.pts)

    def _note_frame(self, count: int, pts: int | None) -> None:
        """Note a frame of sound; one without a time follows the one before."""
        start = self._due if pts is None else pts
        numerator, denominator = self._facts.time_base
        self._due = start + round(count * denominator / (numerator * self._shape[0]))
        if count:
            self._frames.extend((count, start))

    def _silence(self, packet: Any) -> None:
        """Count a packet that cannot be decoded as silence of its duration, as decoding does."""
        self.undecodable += 1
        seconds = float((packet.duration or 0) * packet.time_base)
        self._note_frame(round(seconds * self._shape[0]), packet.pts)

    def _decode_first_picture(self, packet: Any) -> None:
        import av

        self._waiting -= 1
        try:
            frames = packet.decode()
        except av.FFmpegError:
            return
        if frames:
            self.rotation_deg = round(-frames[0].rotation / 90) % 4 * 90
            self._waiting = 0

    def packets(self) -> Packets:
        """Return the packets noted."""
        table = np.array(self._rows, np.int64).reshape(-1, 6)
        pts, dts, offsets, sizes, keys, discard = table.T
        return Packets(pts, dts, offsets, sizes, keys.astype(bool), discard.astype(bool))

    def sound(self) -> SoundFrames:
        """Return the frames of sound noted."""
        counts, pts = np.array(self._frames, np.int64).reshape(-1, 2).T
        return SoundFrames(counts, pts, *self._shape)
