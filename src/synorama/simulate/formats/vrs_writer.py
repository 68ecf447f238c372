"""Write VRS files with nothing but Python, so that simulated glasses are read by real readers.

The container follows the file format of the open-source VRS library (file header, description
record, user records in order of time, index record); `DataLayout` packs the records' metadata.
Records go straight to disk: only the index, 19 bytes a record, stays in memory until the end.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import merge
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synorama.simulate.output import new_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CONFIGURATION_TIME",
    "STATE_TIME",
    "DataLayout",
    "Kind",
    "Record",
    "VrsStream",
    "write_vrs",
]

FILE_HEADER = struct.Struct("<8sQIIqqqQQQ8s")
RECORD_HEADER = struct.Struct("<IIiIdHBBI")
INDEX_ENTRY = struct.Struct("<dIBiH")
STREAM_ID = struct.Struct("<iH")
COUNT = struct.Struct("<I")

DESCRIPTION_TYPE, DESCRIPTION_VERSION = 2, 2
INDEX_TYPE, INDEX_VERSION = 1, 2
LAST_TIME = float(np.finfo(np.float64).max)  # the time of the records of the format itself
PLAIN, ZSTD = 0, 2
LEAST_WORTH_PACKING = 256  # bytes; smaller records stay as they are


class Kind(IntEnum):
    """What a record tells: the state of its stream, its configuration, or data."""

    STATE = 1
    CONFIGURATION = 2
    DATA = 3


CONFIGURATION_TIME, STATE_TIME = 5e-324, 1e-323  # s, as the glasses themselves write

SCALARS = {
    "Bool": "?",
    "int8_t": "i1",
    "uint8_t": "u1",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "float": "<f4",
    "double": "<f8",
}
POINTS = {f"Point{n}D{c}": (t, n) for n in (2, 3, 4) for c, t in (("f", "<f4"), ("d", "<f8"))}


class DataLayout:
    """The fields of a record: those of fixed size first, then strings and vectors.

    Parameters
    ----------
    spec
        ``name:type`` items parted by blanks, in file order. Types are VRS's own: ``int64_t``,
        ``float[3]``, ``Point3Df``, ``Point3Df[21]``, ``string``, ``vector<int64_t>``,
        ``vector<string>``.
    """

    def __init__(self, spec: str) -> None:
        items = [item.rsplit(":", 1) for item in spec.split()]
        self.variable = [(n, t) for n, t in items if t == "string" or t.startswith("vector<")]
        self.fixed = [(n, t) for n, t in items if (n, t) not in self.variable]
        self.dtype = np.dtype([(name, *_numpy_type(kind)) for name, kind in self.fixed])
        self._blank = np.zeros(1, self.dtype)
        for name, _ in self.fixed:
            if self.dtype[name].base.kind == "f":
                self._blank[name] = np.nan

    @property
    def block(self) -> str:
        """How a record format names this layout."""
        return "data_layout" if self.variable else f"data_layout/size={self.dtype.itemsize}"

    def to_json(self) -> str:
        """Describe the layout as the stream's tags hold it."""
        pieces = [self._describe_fixed(name, kind) for name, kind in self.fixed]
        for index, (name, kind) in enumerate(self.variable):
            told = "DataPieceString" if kind == "string" else f"DataPieceVector<{kind[7:-1]}>"
            pieces.append({"name": name, "type": told, "index": index})
        return json.dumps({"data_layout": pieces}, separators=(",", ":"))

    def encode(self, **values: Any) -> bytes:
        """Pack one record; floats that are not given are NaN, all else is zero or empty."""
        names = [name for name, _ in self.variable]
        variable = [_variable_bytes(kind, values.pop(name, None)) for name, kind in self.variable]
        columns = {name: np.asarray(value)[np.newaxis] for name, value in values.items()}
        assert not set(columns) & set(names)
        index = np.cumsum([0, *map(len, variable)])
        table = b"".join(struct.pack("<II", index[k], len(v)) for k, v in enumerate(variable))
        return b"".join((self._rows(1, columns).tobytes(), table, *variable))

    def encode_many(self, count: int, columns: Mapping[str, Any]) -> list[bytes]:
        """Pack ``count`` records of fixed fields at once; a column has their values in order."""
        size = self.dtype.itemsize
        packed = self._rows(count, columns).tobytes()
        return [packed[k * size : (k + 1) * size] for k in range(count)]

    def _rows(self, count: int, columns: Mapping[str, Any]) -> NDArray[np.void]:
        rows = np.repeat(self._blank, count)
        for name, values in columns.items():
            rows[name] = values  # an unknown name is a ValueError
        return rows

    def _describe_fixed(self, name: str, kind: str) -> dict[str, object]:
        scalar, bracket, size = kind.rstrip("]").partition("[")
        fields = self.dtype.fields
        assert fields is not None
        piece: dict[str, object] = {
            "name": name,
            "type": f"DataPiece{'Array' if bracket else 'Value'}<{scalar}>",
            "offset": fields[name][1],
        }
        if bracket:
            piece["size"] = int(size)
        return piece


def _numpy_type(kind: str) -> tuple[Any, ...]:
    scalar, bracket, size = kind.rstrip("]").partition("[")
    count = (int(size),) if bracket else ()
    if scalar in POINTS:
        base, width = POINTS[scalar]
        return base, (*count, width)
    return (SCALARS[scalar], count) if count else (SCALARS[scalar],)


def _variable_bytes(kind: str, value: Any) -> bytes:
    if kind == "string":
        return (value or "").encode()
    if kind == "vector<string>":
        texts = [text.encode() for text in value or ()]
        return COUNT.pack(len(texts)) + b"".join(COUNT.pack(len(t)) + t for t in texts)
    return np.asarray(() if value is None else value, SCALARS[kind[7:-1]]).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class VrsStream:
    """One stream of a file: what its records look like.

    Parameters
    ----------
    type_id, instance
        VRS's numbering, such as 214 and 1 for the colour camera ``214-1``.
    name, flavor
        The kind of recordable that made the stream.
    serial
        The stream's own serial number, hexadecimal.
    versions
        Format version by kind of record.
    layouts
        By kind of record; a kind without layout has empty records.
    content
        What follows the layout in data records: ``+image/jpg``, ``+audio/pcm/...`` or nothing.
    tags
        The stream's user tags.
    """

    type_id: int
    instance: int
    name: str
    flavor: str
    serial: str
    versions: Mapping[Kind, int]
    layouts: Mapping[Kind, DataLayout]
    content: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    def format_tags(self) -> dict[str, str]:
        """Return the tags from which a reader learns the records' layout."""
        tags = {"VRS_Original_Recordable_Name": self.name, "VRS_Serial_Number": self.serial}
        if self.flavor:
            tags["VRS_Recordable_Flavor"] = self.flavor
        for kind, layout in self.layouts.items():
            key = f"{kind.name.title()}:{self.versions[kind]}"
            tags[f"RF:{key}"] = layout.block + (self.content if kind is Kind.DATA else "")
            tags[f"DL:{key}:0"] = layout.to_json()
        return tags


class Record(NamedTuple):
    """One record: ``time_s`` is its place in the file; ``parts`` are its layout and content."""

    time_s: float
    type_id: int
    instance: int
    kind: int
    version: int
    parts: tuple[bytes, ...]


def write_vrs(
    path: Path,
    streams: Iterable[VrsStream],
    tags: Mapping[str, str],
    sources: Iterable[Iterator[Record]],
    *,
    file_id: int,
    chunk_bytes: int | None = None,
    pack: bool = False,
) -> int:
    """Write a VRS file and return how many records it holds.

    Parameters
    ----------
    path
        The file; chunks after the first are ``path`` with ``_1``, ``_2``, ... at its end.
    streams
        What the file declares.
    tags
        The file's own tags.
    sources
        Iterators of records, each in order of time; they are merged as they are written.
    file_id
        The number by which VRS recognises copies of one file.
    chunk_bytes
        Begin another chunk once one has grown to this; None for one file.
    pack
        Compress records with zstd where they are big enough.
    """
    ordered = sorted(streams, key=lambda s: (s.type_id, s.instance))
    with _Writer(path, chunk_bytes, pack) as out:
        first = out.begin(ordered, tags)
        for record in merge(*sources, key=lambda r: r[:4]):
            out.add(record)
        out.finish(ordered, first, file_id)
        return out.count


class _Writer:
    """The growing file. Offsets count through all chunks, as if they were one file."""

    def __init__(self, path: Path, chunk_bytes: int | None, pack: bool) -> None:
        self.path = path
        self.chunk_bytes = chunk_bytes
        self.count = 0
        self._index = bytearray()
        self._offset = 0
        self._previous = 0
        self._last_time = 0.0
        self._compress = _zstd() if pack else None
        self._chunks: list[IO[bytes]] = []
        self._open_chunk()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        for chunk in self._chunks:
            chunk.close()

    def begin(self, streams: list[VrsStream], tags: Mapping[str, str]) -> int:
        """Write the description and return where the first user record begins."""
        self._write(bytes(FILE_HEADER.size))
        body = [COUNT.pack(len(streams))]
        for s in streams:
            body.append(STREAM_ID.pack(s.type_id, s.instance))
            body += [_pack_map(s.tags), _pack_map(s.format_tags())]
        body.append(_pack_map(tags))
        self._put(
            Record(LAST_TIME, DESCRIPTION_TYPE, 0, Kind.DATA, DESCRIPTION_VERSION, tuple(body))
        )
        return self._offset

    def add(self, record: Record) -> None:
        """Append a user record."""
        if record.time_s < self._last_time:
            raise ValueError(f"records go back in time: {record.time_s} after {self._last_time}")
        self._last_time = record.time_s
        if self.chunk_bytes and self._chunks[-1].tell() >= self.chunk_bytes:
            self._open_chunk()
        size = self._put(record, self._compress)
        self._index += INDEX_ENTRY.pack(
            record.time_s, size, record.kind, record.type_id, record.instance
        )
        self.count += 1

    def finish(self, streams: list[VrsStream], first: int, file_id: int) -> None:
        """Write the index, then the header that points to it."""
        index_at = self._offset
        ids = b"".join(STREAM_ID.pack(s.type_id, s.instance) for s in streams)
        body = (COUNT.pack(len(streams)), ids, COUNT.pack(self.count), bytes(self._index))
        self._put(Record(LAST_TIME, INDEX_TYPE, 0, Kind.DATA, INDEX_VERSION, body))
        header = FILE_HEADER.pack(
            b"VisionRe", file_id, FILE_HEADER.size, RECORD_HEADER.size, index_at,
            FILE_HEADER.size, first, 0, 0, 0, b"cordVRS1",
        )  # fmt: skip
        self._chunks[0].seek(0)
        self._chunks[0].write(header)

    def _put(self, record: Record, compress: Any = None) -> int:
        parts, packing, plain_size = record.parts, PLAIN, 0
        if compress and sum(map(len, parts)) >= LEAST_WORTH_PACKING:
            plain = b"".join(parts)
            parts, packing, plain_size = (compress(plain),), ZSTD, len(plain)
        size = RECORD_HEADER.size + sum(map(len, parts))
        header = RECORD_HEADER.pack(
            size, self._previous, record.type_id, record.version, record.time_s,
            record.instance, record.kind, packing, plain_size,
        )  # fmt: skip
        self._write(b"".join((header, *parts)))
        self._previous = size
        return size

    def _write(self, data: bytes) -> None:
        self._chunks[-1].write(data)
        self._offset += len(data)

    def _open_chunk(self) -> None:
        number = len(self._chunks)
        path = self.path.with_name(f"{self.path.name}_{number}") if number else self.path
        self._chunks.append(new_file(path))


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress


def _pack_text(text: str) -> bytes:
    data = text.encode()
    return COUNT.pack(len(data)) + data


def _pack_map(pairs: Mapping[str, str]) -> bytes:
    items = sorted(pairs.items())
    return COUNT.pack(len(items)) + b"".join(_pack_text(k) + _pack_text(v) for k, v in items)
