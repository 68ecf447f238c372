"""Pictures of a video track, one frame at a time, always exactly the frame that was asked for.

A picture is found by the time stamp that its packet carries, never by counting or by distance. A
decoder that stands in the same group of pictures goes on from there; otherwise it starts at the
key frame before. Pictures come as they are stored: not turned upright, and in FFmpeg's colours.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from synorama.errors import InputNotFoundError, UndecodableError
from synorama.media.payload import read_payload
from synorama.media.source import MediaSource, as_sources

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import VideoTrack

    Image = NDArray[np.uint8]

__all__ = ["VideoDecoder", "read_frames"]

RAW_CHANNELS = {"gray": 1, "gray8": 1, "grey8": 1, "rgb24": 3, "rgb8": 3}
UNSEEKABLE = ("mpeg",)  # program streams time few frames; after a seek FFmpeg guesses the others
GREY = ("gray", "grayj", "gray10le", "gray12le", "gray16le")


class VideoDecoder:
    """Decodes frames of one track by index; holds files open between calls.

    Sequential calls are cheap: decoding goes on within a group of pictures. It belongs to the
    process and thread that made it.

    Parameters
    ----------
    files
        All files of the recording, in its order.
    track
        One of the recording's video tracks.
    """

    def __init__(self, files: Sequence[Path | MediaSource], track: VideoTrack) -> None:
        self._track = track
        self._resources = ExitStack()
        self._frames: _Frames = _make_frames(as_sources(files), track, self._resources)
        self._last: tuple[int, Image] | None = None

    def frame(self, i: int) -> Image:
        """Decode frame ``i``.

        Returns
        -------
        ndarray
            ``(height, width, 3)`` RGB or, for cameras without colour, ``(height, width)``, uint8,
            read-only, in stored orientation.

        Raises
        ------
        IndexError
            The track has no such frame.
        UndecodableError
            Its bytes do not decode, or the container has no picture with its time stamp.
        """
        if not 0 <= i < self._track.count:
            raise IndexError(f"{self._track.name} has frames 0 to {self._track.count - 1}, not {i}")
        if self._last is None or self._last[0] != i:
            image = self._frames.frame(i)
            image.setflags(write=False)
            self._last = (i, image)
        return self._last[1]

    def close(self) -> None:
        """Close the files."""
        self._frames.drop()
        self._resources.close()

    def __enter__(self) -> VideoDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_frames(
    files: Sequence[Path | MediaSource], track: VideoTrack, first: int = 0, count: int | None = None
) -> Iterator[Image]:
    """Yield the frames ``first .. first + count`` in display order; all from ``first`` if None."""
    end = track.count if count is None else min(first + count, track.count)
    with VideoDecoder(files, track) as decoder:
        for i in range(first, end):
            yield decoder.frame(i)


class _Frames(Protocol):
    """A way to the pictures of a track."""

    def frame(self, i: int) -> Image: ...

    def drop(self) -> None:
        """Let go of decoders; the files are closed by whoever opened them."""


def _make_frames(
    sources: tuple[MediaSource, ...], track: VideoTrack, resources: ExitStack
) -> _Frames:
    if track.storage == "container":
        return _ContainerFrames(sources, track, resources)
    payloads = _Payloads(sources, track, resources)
    if track.codec == "rawvideo":
        return _RawFrames(payloads, track)
    if bool(track.index["key"].all()):
        return _SinglePictures(payloads, track)
    return _PacketFrames(payloads, track)


# --- packets ----------------------------------------------------------------------------------


class _Payloads:
    """Maps files into memory and hands out the payload of a frame."""

    def __init__(
        self, sources: tuple[MediaSource, ...], track: VideoTrack, resources: ExitStack
    ) -> None:
        self._sources = sources
        self._index = track.index
        self._resources = resources
        self._views: dict[int, memoryview] = {}

    def __getitem__(self, i: int) -> bytes:
        row = self._index[i]
        k = int(row["file"])
        if k not in self._views:
            self._views[k] = self._resources.enter_context(_mapped(self._sources[k]))
        return read_payload(self._views[k], row)

    def path(self, i: int) -> Path:
        return self._sources[int(self._index[i]["file"])].path


def _mapped(source: MediaSource) -> memoryview:
    try:
        with source.path.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError as error:
        raise InputNotFoundError(
            "the media file is gone", path=source.path, hint="put it back where it was"
        ) from error
    end = len(whole) if source.size is None else source.offset + source.size
    return whole[source.offset : end]


class _RawFrames:
    """Uncompressed pictures."""

    def __init__(self, payloads: _Payloads, track: VideoTrack) -> None:
        channels = RAW_CHANNELS.get(track.pixel_format)
        if channels is None:
            raise UndecodableError(
                f"track '{track.name}' holds raw pictures of format '{track.pixel_format}'",
                hint=f"known are {', '.join(RAW_CHANNELS)}",
            )
        size = (track.height, track.width)
        self._shape = size if channels == 1 else (*size, channels)
        self._payloads = payloads

    def frame(self, i: int) -> Image:
        payload = self._payloads[i]
        expected = int(np.prod(self._shape))
        if len(payload) != expected:
            raise UndecodableError(
                f"frame {i} has {len(payload)} bytes, expected {expected}",
                path=self._payloads.path(i),
            )
        return np.frombuffer(payload, np.uint8).reshape(self._shape)

    def drop(self) -> None:
        """Nothing is held."""


class _SinglePictures:
    """Every picture stands for itself (JPEG): one decoder, no memory of other frames."""

    def __init__(self, payloads: _Payloads, track: VideoTrack) -> None:
        self._payloads = payloads
        self._context: Any = _codec_context(track.codec)

    def frame(self, i: int) -> Image:
        frames = _decode(self._context, _packet(self._payloads[i], i), self._payloads.path(i))
        if not frames:  # decoders of other codecs may hold a picture back until they are drained
            frames = _decode(self._context, None, self._payloads.path(i))
            self._context.flush_buffers()
        if len(frames) != 1:
            raise _no_picture(i, self._payloads.path(i))
        return _image(frames[0])

    def drop(self) -> None:
        self._context = None


class _PacketFrames:
    """Pictures that build on earlier ones, from packets in display order."""

    def __init__(self, payloads: _Payloads, track: VideoTrack) -> None:
        self._payloads = payloads
        self._track = track
        self._keys = np.flatnonzero(track.index["key"])
        self._pictures: Iterator[tuple[int, Any]] | None = None
        self._last = -1

    def frame(self, i: int) -> Image:
        key = _key_before(self._keys, i, self._payloads.path(i))
        if self._pictures is None or not key - 1 <= self._last < i:
            self._pictures = self._decode_from(key)
        for at, picture in self._pictures:
            self._last = at
            if at == i:
                return _image(picture)
            if at > i:
                break
        self._pictures = None
        raise _no_picture(i, self._payloads.path(i))

    def _decode_from(self, first: int) -> Iterator[tuple[int, Any]]:
        context = _codec_context(self._track.codec)
        for k in range(first, self._track.count):
            packet = _packet(self._payloads[k], k)
            for frame in _decode(context, packet, self._payloads.path(k)):
                yield frame.pts, frame
        for frame in _decode(context, None, self._payloads.path(first)):
            yield frame.pts, frame

    def drop(self) -> None:
        self._pictures = None


def _codec_context(name: str) -> Any:
    import av

    try:
        context = av.CodecContext.create(name, "r")
    except (ValueError, av.FFmpegError) as error:
        raise UndecodableError(f"FFmpeg has no decoder for '{name}'") from error
    context.thread_type = "NONE"  # threads delay frames, and hang at exit while a context lives
    context.options = {"err_detect": "explode"}
    return context


def _packet(payload: bytes, i: int) -> Any:
    import av

    packet = av.Packet(payload)
    packet.pts = packet.dts = i
    return packet


def _decode(context: Any, packet: Any, path: Path) -> list[Any]:
    import av

    try:
        return list(context.decode(packet))
    except av.FFmpegError as error:
        at = "the end" if packet is None else f"frame {packet.pts}"
        raise UndecodableError(
            f"{at} does not decode: {error}",
            path=path,
            hint="restore the file from its original",
        ) from error


# --- containers -------------------------------------------------------------------------------


class _ContainerFrames:
    """Pictures of mp4, webm and the like, through FFmpeg's demuxer, by presentation time."""

    def __init__(
        self, sources: tuple[MediaSource, ...], track: VideoTrack, resources: ExitStack
    ) -> None:
        assert track.stream_index is not None  # the record checks it
        self._sources = sources
        self._track = track
        self._resources = resources
        self._keys = _starts(track)
        self._open: dict[int, Any] = {}
        self._file = -1
        self._pictures: Iterator[Any] | None = None
        self._last = -1

    def frame(self, i: int) -> Image:
        row = self._track.index[i]
        k, pts = int(row["file"]), int(row["pts"])
        path = self._sources[k].path
        key = _key_before(self._keys, i, path)
        if not self._goes_on(k, key, i):
            self._pictures = None
        picture = self._find(pts, path) if self._pictures is not None else None
        if picture is None:
            picture = self._find_from_key(k, key, pts, path)
        if picture is None:
            self._pictures = None
            raise _no_picture(i, path)
        self._file, self._last = k, i
        return _image(picture)

    def _goes_on(self, k: int, key: int, i: int) -> bool:
        """Tell whether decoding on from the last picture is the shortest way to this one."""
        return self._pictures is not None and k == self._file and key - 1 <= self._last < i

    def _find_from_key(self, k: int, key: int, pts: int, path: Path) -> Any:
        """Start at the key frame before; where the demuxer lands behind it, start earlier."""
        starts = self._track.index["pts"][self._keys[self._keys <= key]][::-1]
        same_file = self._track.index["file"][self._keys[self._keys <= key]][::-1] == k
        seekable = self._container(k).format.name not in UNSEEKABLE
        for start in (*(int(p) for p in starts[same_file][:3] if seekable), None):
            self._seek(k, start)
            picture = self._find(pts, path, start)
            if picture is not None:
                return picture
        return None

    def _find(self, pts: int, path: Path, start: int | None = None) -> Any:
        """Decode on to the picture with this time stamp; None if it does not come.

        Where the first picture is later than ``start``, what it needs was missed: None as well.
        """
        import av

        assert self._pictures is not None
        try:
            for picture in self._pictures:
                missed = None not in (start, picture.pts) and picture.pts > start
                start = None
                if picture.pts == pts and not missed:
                    return picture
                if missed or (picture.pts is not None and picture.pts > pts):
                    return None
        except av.FFmpegError as error:
            self._pictures = None
            raise UndecodableError(
                f"the picture at time stamp {pts} does not decode: {error}",
                path=path,
                hint="restore the file from its original",
            ) from error
        return None

    def _seek(self, k: int, pts: int | None) -> None:
        """Place the demuxer at the key frame at or before ``pts``; at the beginning if None."""
        import av

        if pts is None:  # a seek to zero would miss pictures before it
            self._open.pop(k, None)
        container = self._container(k)
        stream = container.streams[self._track.stream_index]
        if pts is not None:
            try:
                container.seek(pts, stream=stream, backward=True)
            except av.FFmpegError:  # a format that cannot seek: read it from the beginning
                self._open.pop(k, None)
                container = self._container(k)
                stream = container.streams[self._track.stream_index]
        self._pictures = container.decode(stream)

    def _container(self, k: int) -> Any:
        if k not in self._open:
            container = self._resources.enter_context(self._sources[k].open())
            stream = container.streams[self._track.stream_index]
            stream.thread_type = "NONE"  # with threads a live decoder hangs at exit
            self._open[k] = container
        return self._open[k]

    def drop(self) -> None:
        self._pictures = None
        self._open.clear()


def _starts(track: VideoTrack) -> NDArray[np.intp]:
    """Return the frames at which decoding can begin: key frames, and the first of each file.

    What a file's first frame builds on may be there and not shown, before the edit's start.
    """
    new_file = np.diff(track.index["file"].astype(np.int64), prepend=-1) != 0
    return np.flatnonzero((track.index["key"] != 0) | new_file)


# --- shared -----------------------------------------------------------------------------------


def _key_before(keys: NDArray[np.intp], i: int, path: Path) -> int:
    """Return the last frame at or before ``i`` that decodes without an earlier one."""
    at = int(np.searchsorted(keys, i, side="right")) - 1
    if at < 0:
        raise UndecodableError(
            f"frame {i} has no key frame before it",
            path=path,
            hint="the recording's first frames are missing; take a later one",
        )
    return int(keys[at])


def _no_picture(i: int, path: Path) -> UndecodableError:
    return UndecodableError(
        f"no picture comes out for frame {i}", path=path, hint="restore the file from its original"
    )


def _image(picture: Any) -> Image:
    form = "gray" if picture.format.name in GREY else "rgb24"
    # One thread: a converter's idle threads do not survive a fork, and freeing it then never ends.
    try:
        image: Image = picture.to_ndarray(format=form, threads=1)
    except TypeError:  # an older PyAV, whose converter has no threads
        image = picture.to_ndarray(format=form)
    return image
