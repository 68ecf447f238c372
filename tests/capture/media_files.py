"""Files for tests: MP4 indexes written byte by byte, and media muxed with known times."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

FLAT = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
QUARTER = struct.pack(">9i", 0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30)


def box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind: bytes, *content: bytes, version: int = 0) -> bytes:
    return box(kind, bytes([version, 0, 0, 0]), *content)


def runs(kind: bytes, rows: list[tuple[int, ...]], code: str = "I") -> bytes:
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
