"""Files for tests: MP4 indexes written byte by byte, and media muxed with known times."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLAT = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
QUARTER = struct.pack(">9i", 0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30)


def box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind: bytes, *content: bytes, version: int = 0) -> bytes:
    return box(kind, bytes([version, 0, 0, 0]), *content)


def runs(kind: bytes, rows: Sequence[tuple[int, ...]], code: str = "I") -> bytes:
    flat = b"".join(struct.pack(f">{len(row)}{code}", *(v for v in row)) for row in rows)
    return full(kind, struct.pack(">I", len(rows)), flat)


@dataclass
class RawTrack:
    """Tables of one track; one chunk holds `per_chunk` samples."""

    sizes: list[int]
    durations: list[int]
    handler: bytes = b"vide"
    timescale: int = 1000
    offsets: list[int] | None = None  # composition offsets
    keys: list[int] | None = None  # from 0
    edits: list[tuple[int, int]] = field(default_factory=list)  # (movie units, media units)
    per_chunk: int = 3
    tag: bytes = b"SVQ1"
    matrix: bytes = FLAT

    def payloads(self) -> list[bytes]:
        salt = self.handler[0]
        return [bytes([(i + salt) % 256]) * size for i, size in enumerate(self.sizes)]


def raw_mp4(
    tracks: list[RawTrack], *, movie_timescale: int = 600, created: int = 0, fast_start: bool = True
) -> bytes:
    """Lay out an MP4 file around the tracks' tables; the samples are recognisable filler."""
    head = box(b"ftyp", b"isom", bytes(4), b"isom")
    media = [p for track in tracks for p in track.payloads()]
    mdat = box(b"mdat", *media)
    moov_size = len(_moov(tracks, 0, movie_timescale, created))
    start = len(head) + 8 + (moov_size if fast_start else 0)
    moov = _moov(tracks, start, movie_timescale, created)
    return head + (moov + mdat if fast_start else mdat + moov)


def _moov(tracks: list[RawTrack], start: int, timescale: int, created: int) -> bytes:
    parts = [
        full(
            b"mvhd",
            struct.pack(">IIII", created, created, timescale, 10 * timescale),
            struct.pack(">IHxx8x", 65536, 256),
            FLAT,
            bytes(24),
            struct.pack(">I", len(tracks) + 1),
        )
    ]
    for number, track in enumerate(tracks, 1):
        parts.append(_trak(track, number, start))
        start += sum(track.sizes)
    return box(b"moov", *parts)


def _trak(track: RawTrack, number: int, start: int) -> bytes:
    header = full(
        b"tkhd",
        struct.pack(">IIIII", 0, 0, number, 0, 0),
        bytes(8),
        struct.pack(">hhhxx", 0, 0, 0),
        track.matrix,
        struct.pack(">II", 64 << 16, 48 << 16),
    )
    edits = b""
    if track.edits:
        rows = b"".join(struct.pack(">IiI", d, m, 65536) for d, m in track.edits)
        edits = box(b"edts", full(b"elst", struct.pack(">I", len(track.edits)), rows))
    mdhd = full(b"mdhd", struct.pack(">IIIIHH", 0, 0, track.timescale, sum(track.durations), 0, 0))
    handler = full(b"hdlr", bytes(4), track.handler, bytes(12), b"test\0")
    info = full(b"smhd", bytes(4)) if track.handler == b"soun" else full(b"vmhd", bytes(8))
    data = box(b"dinf", full(b"dref", struct.pack(">I", 1), full(b"url ", b"")))
    media = box(b"minf", info, data, _stbl(track, start))
    return box(b"trak", header, edits, box(b"mdia", mdhd, handler, media))


def _stbl(track: RawTrack, start: int) -> bytes:
    n, k = len(track.sizes), track.per_chunk
    whole, rest = divmod(n, k)
    stsc = [(1, k, 1)] if whole else []
    if rest:
        stsc.append((whole + 1, rest, 1))
    starts = [(start + sum(track.sizes[: i * k]),) for i in range(-(-n // k))]
    parts = [
        full(b"stsd", struct.pack(">I", 1), _entry(track)),
        runs(b"stts", [(1, d) for d in track.durations]),
        runs(b"stsc", stsc),
        full(b"stsz", struct.pack(">II", 0, n), struct.pack(f">{n}I", *track.sizes)),
        runs(b"stco", starts),
    ]
    if track.offsets is not None:
        parts.append(runs(b"ctts", [(1, o) for o in track.offsets], "i"))
    if track.keys is not None:
        parts.append(runs(b"stss", [(k + 1,) for k in track.keys]))
    return box(b"stbl", *parts)


def _entry(track: RawTrack) -> bytes:
    if track.handler == b"soun":
        sound = struct.pack(">HHIHHHHI", 0, 0, 0, 2, 16, 0, 0, 8000 << 16)
        return box(track.tag, bytes(6), b"\0\1", sound)
    size = struct.pack(">HHIIIH", 64, 48, 0x480000, 0x480000, 0, 1)
    return box(track.tag, bytes(6), b"\0\1", bytes(16), size, bytes(32), struct.pack(">Hh", 24, -1))


# --- media with a flash and a beep -----------------------------------------------------------

SOUND_HZ = 48000
BEEP_S = 0.1


@dataclass(frozen=True)
class Scene:
    """A film of `seconds` in which a flash and a burst of noise begin together at `event_ms`."""

    seconds: float = 3.0
    event_ms: int = 1600
    times_ms: tuple[int, ...] = ()  # of the pictures; 25 a second if empty
    seed: int = 5

    def picture_times_ms(self) -> tuple[int, ...]:
        return self.times_ms or tuple(range(0, round(1000 * self.seconds), 40))

    def beep(self) -> NDArray[np.float32]:
        rng = np.random.default_rng(self.seed)
        noise = rng.normal(0, 1, round(BEEP_S * SOUND_HZ))
        return (0.2 * np.convolve(noise, np.hanning(16) / 8, "same")).astype(np.float32)

    def sound(self) -> NDArray[np.float32]:
        samples = np.zeros(round(self.seconds * SOUND_HZ), np.float32)
        at = self.event_ms * SOUND_HZ // 1000
        beep = self.beep()
        samples[at : at + len(beep)] = beep
        return samples


@dataclass(frozen=True)
class Codecs:
    """What to mux with; an empty name leaves the stream out."""

    video: str = "libx264"
    audio: str = "aac"
    video_options: dict[str, str] = field(default_factory=dict)
    container: str | None = None
    container_options: dict[str, str] = field(default_factory=dict)


def mux(path: Path, scene: Scene, codecs: Codecs) -> Path:
    """Encode and mux a scene."""
    with av.open(str(path), "w", format=codecs.container, options=codecs.container_options) as out:
        video = _video_stream(out, codecs) if codecs.video else None
        audio = out.add_stream(codecs.audio, rate=SOUND_HZ) if codecs.audio else None
        if audio is not None:
            audio.layout = "mono"
        pictures = _pictures(scene) if video is not None else iter(())
        sounds = _sounds(scene, audio) if audio is not None else iter(())
        for stream, frame in _interleaved((video, pictures), (audio, sounds)):
            out.mux(stream.encode(frame))
        for stream in (video, audio):
            if stream is not None:
                out.mux(stream.encode(None))
    return path


def _video_stream(out: Any, codecs: Codecs) -> Any:
    video = out.add_stream(codecs.video, rate=25, options=codecs.video_options)
    video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
    video.codec_context.time_base = Fraction(1, 1000)
    return video


def _pictures(scene: Scene) -> Iterator[Any]:
    for k, t in enumerate(scene.picture_times_ms()):
        lit = scene.event_ms <= t < scene.event_ms + 1000 * BEEP_S
        pixels = np.full((48, 64, 3), 235 if lit else 16 + k % 7, np.uint8)
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts, frame.time_base = t, Fraction(1, 1000)
        yield frame


def _sounds(scene: Scene, stream: Any) -> Iterator[Any]:
    samples = scene.sound()
    step = stream.codec_context.frame_size or 960
    for at in range(0, len(samples), step):
        block = np.ascontiguousarray(samples[None, at : at + step])
        frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = SOUND_HZ, at, Fraction(1, SOUND_HZ)
        yield frame


def _interleaved(*sources: tuple[Any, Iterator[Any]]) -> Iterator[tuple[Any, Any]]:
    def timed(stream: Any, frames: Iterator[Any]) -> Iterator[tuple[float, Any, Any]]:
        return ((float(f.pts * f.time_base), stream, f) for f in frames)

    merged = heapq.merge(*(timed(*source) for source in sources), key=lambda item: item[0])
    return ((stream, frame) for _, stream, frame in merged)


def flash_index(path: Path) -> int:
    """Decode the pictures: which of those shown is the first lit one."""
    with av.open(str(path)) as container:
        for k, frame in enumerate(container.decode(container.streams.video[0])):
            if frame.to_ndarray(format="gray").mean() > 128:
                return k
    raise AssertionError("no flash in the file")


def beep_sample(path: Path, scene: Scene) -> float:
    """Decode the sound: at which of the samples delivered the beep begins."""
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        blocks = [f.to_ndarray().reshape(-1).astype(np.float64) for f in container.decode(stream)]
    samples, beep = np.concatenate(blocks), scene.beep().astype(np.float64)
    n = len(samples) + len(beep)
    spectrum = np.fft.rfft(samples, n) * np.conj(np.fft.rfft(beep, n))
    return float(np.argmax(np.fft.irfft(spectrum, n)))
