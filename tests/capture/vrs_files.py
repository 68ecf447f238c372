"""VRS files of every shape that recorders leave behind, byte by byte."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import lz4.frame
import zstandard

FILE_HEADER = struct.Struct("<8sQIIqqqQQQ4s4s")
HEADER = struct.Struct("<IIiIdHBBI")
ENTRY = struct.Struct("<dIBiH")
LAST = 1.7976931348623157e308
STREAM = (1202, 1)
CONFIGURATION, DATA = 2, 3

DATA_LAYOUT = [
    {"name": "count", "type": "DataPieceValue<int64_t>", "offset": 0},
    {"name": "axes", "type": "DataPieceArray<float>", "size": 3, "offset": 8},
    {"name": "label", "type": "DataPieceString", "index": 0},
    {"name": "ticks", "type": "DataPieceVector<int64_t>", "index": 1},
]
CONFIG_LAYOUT = [{"name": "nominal_rate", "type": "DataPieceValue<double>", "offset": 0}]
FIXED = struct.Struct("<q3f")


@dataclass(frozen=True)
class Row:
    """One record's content, and how it is packed (0 plain, 1 lz4, 2 zstd)."""

    time_s: float
    count: int
    axes: tuple[float, float, float] = (1.0, 2.0, 3.0)
    label: str = "label"
    ticks: tuple[int, ...] = ()
    payload: bytes = b""
    packing: int = 0

    def body(self) -> bytes:
        label = self.label.encode()
        ticks = struct.pack(f"<{len(self.ticks)}q", *self.ticks)
        spans = struct.pack("<4I", 0, len(label), len(label), len(ticks))
        return FIXED.pack(self.count, *self.axes) + spans + label + ticks + self.payload


def rows(n: int, *, packing: int = 0, payload: bytes = b"payload") -> list[Row]:
    """Return n plain records a millisecond apart."""
    return [
        Row(1.0 + k / 1000, k, label=f"row {k}", ticks=(k, k + 1), payload=payload, packing=packing)
        for k in range(n)
    ]


def write_vrs(
    path: Path,
    records: Sequence[Row],
    *,
    index: str = "end",
    chunk_at: Sequence[int] = (),
    flavor: str = "device/aria",
    tags: dict[str, str] | None = None,
) -> list[Path]:
    """Write records as a VRS file.

    Parameters
    ----------
    index
        ``end``: the classic index; ``front``: before the records; ``split``: in a chunk of its
        own with the description; ``none``: the recorder never closed the file; ``stale``: at
        the front, and it lists only the first record.
    chunk_at
        Numbers of the records with which a new chunk begins.
    """
    description = _record(0, 2, 0, 2, DATA, LAST, _description(flavor, tags or {}))
    previous, stored, entries = len(description), [], []
    for kind, time_s, body, packing in _all(records):
        record = _record(previous, *STREAM, 1, kind, time_s, body, packing)
        stored.append(record)
        entries.append(ENTRY.pack(time_s, len(record), kind, *STREAM))
        previous = len(record)
    head_size = FILE_HEADER.size + len(description)
    if index == "split":
        return _write_split(path, description, stored, entries, chunk_at)
    front = b""
    if index in ("front", "stale"):
        listed = entries[:1] if index == "stale" else entries
        front = _index(len(description), listed)
        stored[0] = stored[0][:4] + struct.pack("<I", len(front)) + stored[0][8:]
    end = b"" if index != "end" else _index(previous, entries)
    total = sum(map(len, stored))
    where = {"end": head_size + total, "front": head_size, "stale": head_size}.get(index, 0)
    first = head_size + len(front)
    head = _file_header(where, first) + description + front
    return _write_chunks(path, head, stored, end, chunk_at)


def _all(records: Sequence[Row]) -> list[tuple[int, float, bytes, int]]:
    config = (CONFIGURATION, 5e-324, struct.pack("<d", 1000.0), 0)
    return [config, *((DATA, r.time_s, r.body(), r.packing) for r in records)]


def _write_chunks(
    path: Path, head: bytes, stored: list[bytes], end: bytes, chunk_at: Sequence[int]
) -> list[Path]:
    borders = [0, *(k + 1 for k in chunk_at), len(stored)]
    parts = [b"".join(stored[a:b]) for a, b in pairwise(borders)]
    parts[0] = head + parts[0]
    parts[-1] += end
    paths = [path, *(path.with_name(f"{path.name}_{k}") for k in range(1, len(parts)))]
    for where, part in zip(paths, parts, strict=True):
        where.write_bytes(part)
    return paths


def _write_split(
    path: Path,
    description: bytes,
    stored: list[bytes],
    entries: list[bytes],
    chunk_at: Sequence[int],
) -> list[Path]:
    packed = zstandard.ZstdCompressor().compress(b"".join(entries))
    size = sum(map(len, entries))
    index = HEADER.pack(HEADER.size + len(packed), len(description), 1, 3, LAST, 0, DATA, 2, size)
    head_size = FILE_HEADER.size + len(description)
    first = head_size + len(index) + len(packed)
    path.write_bytes(_file_header(head_size, first) + description + index + packed)
    borders = [0, *(k + 1 for k in chunk_at), len(stored)]
    paths = [path]
    for k, (a, b) in enumerate(pairwise(borders), 1):
        further = path.with_name(f"{path.name}_{k}")
        further.write_bytes(b"".join(stored[a:b]))
        paths.append(further)
    return paths


def _file_header(index: int, first: int) -> bytes:
    return FILE_HEADER.pack(
        b"VisionRe", 7, FILE_HEADER.size, HEADER.size, index, FILE_HEADER.size, first,
        0, 0, 0, b"cord", b"VRS2",
    )  # fmt: skip


def _index(previous: int, entries: Sequence[bytes]) -> bytes:
    body = struct.pack("<IiHI", 1, *STREAM, len(entries)) + b"".join(entries)
    return _record(previous, 1, 0, 2, DATA, LAST, body)


def _record(
    previous: int,
    type_id: int,
    instance: int,
    version: int,
    kind: int,
    time_s: float,
    body: bytes,
    packing: int = 0,
) -> bytes:
    packers = (bytes, lz4.frame.compress, zstandard.ZstdCompressor().compress)
    stored = packers[packing](body)
    unpacked = len(body) if packing else 0
    size = HEADER.size + len(stored)
    header = HEADER.pack(
        size, previous, type_id, version, time_s, instance, kind, packing, unpacked
    )
    return header + stored


def _description(flavor: str, tags: dict[str, str]) -> bytes:
    own = {
        "VRS_Original_Recordable_Name": "IMU",
        "VRS_Recordable_Flavor": flavor,
        "RF:Data:1": "data_layout+custom",
        "RF:Configuration:1": "data_layout/size=8",
        "DL:Data:1:0": json.dumps({"data_layout": DATA_LAYOUT}),
        "DL:Configuration:1:0": json.dumps({"data_layout": CONFIG_LAYOUT}),
    }
    stream = struct.pack("<iH", *STREAM) + _map({}) + _map(own)
    return struct.pack("<I", 1) + stream + _map(tags)


def _map(pairs: dict[str, str]) -> bytes:
    return struct.pack("<I", len(pairs)) + b"".join(_text(k) + _text(v) for k, v in pairs.items())


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()
