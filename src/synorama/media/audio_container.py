"""Sound inside containers (mp4, webm, wav...): decoded frames in order, through one decoder.

The rule that adapters and decoder share: **sample index counts the samples that FFmpeg delivers**,
after it removed priming and padding (skip-samples side data, edit lists, Opus pre-skip). The
files of one recording, such as chapters, go through one decoder, so that the seams are exact. A
packet that cannot be decoded counts as silence of its duration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synorama.errors import NoSoundError, UndecodableError
from synorama.media.source import MediaSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import AudioTrack

    Int64 = NDArray[np.int64]
    Float32 = NDArray[np.float32]

__all__ = ["SoundFrame", "decode_frames", "decode_joined", "decode_span", "to_float"]

PREROLL_S = 0.3  # Opus wants 80 ms, AAC two frames, MP3 its bit reservoir
NS_PER_S = 1_000_000_000
SEEKABLE = ("aac", "alac", "mp2", "mp3", "ac3", "eac3", "flac", "opus")
"""Codecs, beside PCM, of which a frame's time after a seek tells its index. Vorbis changes the
length of its frames with the sound, and of ADPCM and others FFmpeg guesses the time from bytes."""
PLANAR = {"u8p": "u1", "s16p": "i2", "s32p": "i4", "s64p": "i8", "fltp": "f4", "dblp": "f8"}


class SoundFrame(NamedTuple):
    """One decoded frame; a tuple, as there are ten thousand in four minutes.

    Parameters
    ----------
    samples
        ``(n, channels)`` float32, full scale 1.
    pts_ns
        The container's own presentation time of the first sample; None where it has none.
    file
        Which of the files it came from.
    exact
        Whether the time base resolves single samples.
    """

    samples: Float32
    pts_ns: int | None
    file: int = 0
    exact: bool = True


def decode_frames(
    sources: Sequence[MediaSource], stream_index: int, start: tuple[int, int] | None = None
) -> Iterator[SoundFrame]:
    """Decode the sound of all files in order through one decoder.

    Parameters
    ----------
    stream_index
        The container's stream.
    start
        ``(file, pts_ns)``: begin at the last packet before this time; None: at the beginning.

    Raises
    ------
    NoSoundError
        The stream is not there or is no sound.
    UndecodableError
        Not one packet can be decoded.
    """
    for packet, frames, base, file in _each_packet(sources, stream_index, start):
        if frames is None:
            yield SoundFrame(_silence(packet, base), base.ns(packet.pts), file, base.exact)
            continue
        for frame in frames:
            yield SoundFrame(to_float(frame), base.ns(frame.pts), file, base.exact)


def decode_joined(
    sources: Sequence[MediaSource], stream_index: int, count: int
) -> Iterator[Float32]:
    """Decode all sound in order; yield ``(n, channels)`` float32, ``count`` samples and more.

    Half an hour has ten thousands of frames: FFmpeg joins them for a fraction of what it costs to
    hand each around. Errors are those of `decode_frames`.
    """
    import av

    queue = av.AudioFifo()
    for packet, frames, base, _ in _each_packet(sources, stream_index):
        for frame in frames or ():
            frame.pts = None  # the queue refuses times that leap; here only the order counts
            try:
                queue.write(frame)
            except ValueError:  # of another format, layout, rate or time base: not to be joined
                yield from _waiting(queue)
                queue = av.AudioFifo()
                queue.write(frame)
        if frames is None or queue.samples >= count:
            yield from _waiting(queue)
        if frames is None:
            yield _silence(packet, base)
    yield from _waiting(queue)


def _waiting(queue: Any) -> Iterator[Float32]:
    """Yield what waits in a queue, if anything does."""
    if queue.samples:
        yield to_float(queue.read())


def decode_span(
    sources: Sequence[MediaSource], track: AudioTrack, first: int, count: int
) -> Float32:
    """Decode the samples ``first .. first + count`` of a track; ``(n, channels)`` float32.

    Less than ``count`` come back where the sound ends early. Where a frame's time tells its index,
    decoding begins shortly before the span; else (Vorbis, ADPCM) at the beginning.
    """
    assert track.stream_index is not None  # the record checks it
    out = np.zeros((count, track.channels), np.float32)
    filled = 0
    for index, samples in _indexed(sources, track, first):
        if index >= first + count:
            break
        lo, hi = max(index, first), min(index + len(samples), first + count)
        if hi > lo:
            if samples.shape[1] == track.channels:  # else damage: it stays silent
                out[lo - first : hi - first] = samples[lo - index : hi - index]
            filled = hi - first
    return out[:filled]


def _indexed(
    sources: Sequence[MediaSource], track: AudioTrack, first: int
) -> Iterator[tuple[int, Float32]]:
    """Yield ``(sample index, samples)`` from before ``first`` on."""
    assert track.stream_index is not None
    bases = _file_bases_ns(sources, track)
    start = _start_for(track, bases, first)
    grid = None if start is None else _frame_grid(sources, track.stream_index)
    if grid is None:
        start = None
    index = 0
    for frame in decode_frames(sources, track.stream_index, start):
        # After a seek every frame is placed anew: FFmpeg trims the first one once more.
        if grid is not None and frame.pts_ns is not None:
            index = _snap(index_at(track, frame.pts_ns + bases[frame.file]), grid)
        yield index, frame.samples
        index += len(frame.samples)


def _start_for(track: AudioTrack, bases: Sequence[int], first: int) -> tuple[int, int] | None:
    """Return the file and its own time at which decoding should begin; None: the beginning."""
    preroll = round(PREROLL_S * track.rate_hz)
    sample = first - preroll
    seekable = track.codec in SEEKABLE or track.codec.startswith("pcm_")
    if sample <= preroll or not seekable:
        return None
    k = 0 if len(bases) == 1 else int(np.searchsorted(track.file_firsts, sample, "right")) - 1
    return k, int(track.sample_times_ns(np.array([sample], np.int64))[0]) - bases[k]


def _file_bases_ns(sources: Sequence[MediaSource], track: AudioTrack) -> list[int]:
    """Return what to add to each file's own sound times to reach the device clock.

    Over a seam sound goes on at once, whatever the later file's times say.
    """
    firsts = np.array(track.file_firsts[1:], np.int64)
    assert track.stream_index is not None
    own = [_first_pts_ns(source, track.stream_index) for source in sources[1 : len(firsts) + 1]]
    due = track.sample_times_ns(firsts).tolist() if len(firsts) else []
    return [0, *(d - o for d, o in zip(due, own, strict=True))]


def _first_pts_ns(source: MediaSource, stream_index: int) -> int:
    with source.open() as container:
        stream = _sound_stream(container, stream_index, source)
        for packet in _packets(container, stream, last=False):
            pts = _Base.of(stream).ns(packet.pts)
            if pts is not None:
                return pts
    return 0


def _frame_grid(sources: Sequence[MediaSource], stream_index: int) -> tuple[int, int] | None:
    """Return ``(frame length, first frame's length)``; ``(1, 0)`` where times are exact.

    None where neither exact times nor a constant frame length tell a frame's index.
    """
    lengths: list[int] = []
    for frame in decode_frames(sources, stream_index):
        if frame.exact:
            return 1, 0
        lengths.append(len(frame.samples))
        if len(lengths) == 12:
            break
    if len(lengths) < 3 or len(set(lengths[1:])) != 1:
        return None
    return lengths[1], lengths[0]


def _snap(index: float, grid: tuple[int, int]) -> int:
    step, phase = grid
    return round((index - phase) / step) * step + phase


def index_at(track: AudioTrack, t_ns: int) -> float:
    """Return the (fractional) index of the sample taken at device time ``t_ns``."""
    knots = track.knots
    k = int(
        np.clip(np.searchsorted(knots[:, 1], t_ns, side="right") - 1, 0, max(len(knots) - 2, 0))
    )
    rate = track.rate_hz / NS_PER_S
    if len(knots) > 1:
        step = knots[k + 1] - knots[k]
        rate = float(step[0]) / float(step[1])
    return float(knots[k, 0]) + float(t_ns - int(knots[k, 1])) * rate


def _each_packet(
    sources: Sequence[MediaSource], stream_index: int, start: tuple[int, int] | None = None
) -> Iterator[tuple[Any, Sequence[Any] | None, _Base, int]]:
    """Yield each packet, its frames (None: it cannot be decoded), the time base and the file."""
    import av

    first_file, first_ns = start or (0, None)
    decoder: Any = None
    good = bad = 0
    with ExitStack() as opened:  # the decoder lives as long as the container it came from
        for k in range(first_file, len(sources)):
            container = opened.enter_context(sources[k].open())
            stream = _sound_stream(container, stream_index, sources[k])
            base = _Base.of(stream)
            if decoder is None:
                decoder = stream.codec_context
                if first_ns is not None:
                    _seek(container, stream, first_ns)
            for packet in _packets(container, stream, last=k == len(sources) - 1):
                try:
                    frames = decoder.decode(packet if packet.size else None)
                except av.FFmpegError:
                    frames = None
                good, bad = good + bool(frames), bad + (frames is None)
                yield packet, frames, base, k
    if bad and not good:
        raise UndecodableError(
            f"none of the {bad} packets of sound can be decoded",
            path=sources[0].path,
            hint="play the file; if no player can, restore it from its original",
        )


def _sound_stream(container: Any, stream_index: int, source: MediaSource) -> Any:
    streams = container.streams
    if stream_index >= len(streams) or streams[stream_index].type != "audio":
        raise NoSoundError(
            f"stream {stream_index} is not there or is no sound",
            path=source.path,
            hint="inspect the file again: it is not the file that was read before",
        )
    return streams[stream_index]


def _seek(container: Any, stream: Any, t_ns: int) -> None:
    num, den = stream.time_base.numerator, stream.time_base.denominator
    container.seek(max(t_ns, 0) * den // (NS_PER_S * num), stream=stream, backward=True)


def _packets(container: Any, stream: Any, *, last: bool) -> Iterator[Any]:
    """Yield a file's packets; the empty one that flushes the decoder only after the last file."""
    import av

    try:
        for packet in container.demux(stream):
            if packet.size or last:
                yield packet
    except av.FFmpegError:  # the file breaks off: what came before is good
        return


@dataclass(frozen=True, slots=True)
class _Base:
    """A stream's time base, looked up once: frames come by the ten thousand.

    ``exact``: it resolves single samples.
    """

    num: int
    den: int
    rate: int
    channels: int
    exact: bool

    @classmethod
    def of(cls, stream: Any) -> _Base:
        num, den = stream.time_base.numerator, stream.time_base.denominator
        exact = (den // num) % stream.rate == 0
        return cls(num, den, stream.rate, stream.channels, exact)

    def ns(self, ticks: int | None) -> int | None:
        """Return ticks as ns, rounded once."""
        return None if ticks is None else _to_ns(ticks, self.num, self.den)


def _silence(packet: Any, base: _Base) -> Float32:
    seconds = (packet.duration or 0) * base.num / base.den
    return np.zeros((round(seconds * base.rate), base.channels), np.float32)


def _to_ns(ticks: int, num: int, den: int) -> int:
    return (2 * ticks * num * NS_PER_S + den) // (2 * den)


def _rows(frame: Any) -> NDArray[Any]:
    """Return a frame's samples as they are, ``(channels, n)``.

    PyAV's own ``to_ndarray`` counts planes until it meets a null pointer, which ends no list of
    eight or more: it then reads memory that is not the frame's.
    """
    channels = frame.layout.nb_channels
    if not frame.format.is_planar:
        packed: NDArray[Any] = frame.to_ndarray().reshape(-1, channels).T
        return packed
    kind, count = PLANAR[frame.format.name], frame.samples
    return np.stack([np.frombuffer(p, kind, count) for p in _planes(frame)])


def _planes(frame: Any) -> Any:
    return frame.planes[: frame.layout.nb_channels]


def to_float(frame: Any) -> Float32:
    """Return a decoded frame as ``(n, channels)`` float32, full scale 1."""
    if frame.format.name == "fltp":  # AAC, Opus, Vorbis: as it is, and without a copy if mono
        planes = [np.frombuffer(p, np.float32, frame.samples) for p in _planes(frame)]
        return planes[0][:, np.newaxis] if len(planes) == 1 else np.stack(planes, axis=1)
    rows = _rows(frame)
    if rows.dtype.kind == "u":
        rows = (rows.astype(np.float32) - 128.0) / 128.0
    elif rows.dtype.kind == "i":
        rows = rows / np.float32(2 ** (8 * rows.dtype.itemsize - 1))
    return np.ascontiguousarray(rows.T, np.float32)
