"""VRS: where the records are, by the index or, where there is none, by walking the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synorama.capture.container.vrs_bytes import COPY_AGAIN, Maps, unzstd
from synorama.capture.container.vrs_layout import Layout, parse_layout
from synorama.errors import (
    CorruptFileError,
    MissingChunkError,
    TruncatedFileError,
    UnknownFormatError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CONFIGURATION",
    "DATA",
    "HEADER_BYTES",
    "RECORD_DTYPE",
    "STATE",
    "Description",
    "Found",
    "Stream",
    "find_records",
    "is_vrs",
    "read_description",
    "read_file_header",
    "record_table",
]

STATE, CONFIGURATION, DATA = 1, 2, 3
KIND_NAMES = {STATE: "State", CONFIGURATION: "Configuration", DATA: "Data"}
TAGS_KIND = 4

RECORD_DTYPE = np.dtype(
    [
        ("time_s", "<f8"),  # the index's time stamp; meaning is the stream's affair
        ("type", "<i4"),  # stream id: type...
        ("instance", "<u2"),  # ... and instance
        ("kind", "u1"),  # STATE, CONFIGURATION or DATA
        ("packing", "u1"),  # 0 as it is, 1 lz4 frame, 2 zstd
        ("version", "<u4"),  # of the record's format
        ("file", "<u2"),  # index into VrsFile.paths
        ("offset", "<u8"),  # of the record's body in that file
        ("size", "<u4"),  # of the stored body
        ("unpacked", "<u4"),  # size of the body once unpacked
    ]
)

_FILE_HEADER = struct.Struct("<8sQIIqqqQQQ4s4s")
_RECORD_HEADER = struct.Struct("<IIiIdHBBI")
_HEADER = np.dtype(
    [
        ("size", "<u4"),
        ("previous", "<u4"),
        ("type", "<i4"),
        ("version", "<u4"),
        ("time_s", "<f8"),
        ("instance", "<u2"),
        ("kind", "u1"),
        ("packing", "u1"),
        ("unpacked", "<u4"),
    ]
)


class _Header(NamedTuple):
    """One record's header: the fields of `_HEADER`."""

    size: int
    previous: int
    type: int
    version: int
    time_s: float
    instance: int
    kind: int
    packing: int
    unpacked: int


_INDEX_ENTRY = np.dtype(
    [("time_s", "<f8"), ("size", "<u4"), ("kind", "u1"), ("type", "<i4"), ("instance", "<u2")]
)
_MAGIC, _MAGIC_END = b"VisionRe", b"cord"
_INDEX_TYPE, _DESCRIPTION_TYPE = 1, 2
_CLASSIC_INDEX, _SPLIT_INDEX = 2, 3
_DESCRIPTION_VERSION = 2
_MOST_PACKED = 1000  # times that an index shrinks at most
HEADER_BYTES = _FILE_HEADER.size


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's tags: the user's, and VRS's own (name, formats, layouts)."""

    id: str
    tags: Mapping[str, str]
    vrs_tags: Mapping[str, str]

    @property
    def flavor(self) -> str:
        """What kind of producer the stream has, such as ``device/aria``."""
        return self.vrs_tags.get("VRS_Recordable_Flavor", "")

    def format(self, kind: int, version: int) -> str:
        """Return the record format, such as ``data_layout/size=84+image/jpg``."""
        return self.vrs_tags.get(f"RF:{KIND_NAMES[kind]}:{version}", "")

    def newest_version(self, kind: int) -> int | None:
        """Return the newest version of a kind of records that the stream describes."""
        prefix = f"RF:{KIND_NAMES[kind]}:"
        found = (tag[len(prefix) :] for tag in self.vrs_tags if tag.startswith(prefix))
        return max((int(version) for version in found if version.isdigit()), default=None)

    def layout(self, kind: int, version: int) -> Layout:
        """Return the layout of the fields with which records of this format begin.

        Raises
        ------
        CorruptFileError
            The stream does not describe it.
        """
        text = self.vrs_tags.get(f"DL:{KIND_NAMES[kind]}:{version}:0")
        form = self.format(kind, version)
        if form and not form.startswith("data_layout"):
            return parse_layout('{"data_layout":[]}')
        if text is None:
            raise CorruptFileError(
                f"stream {self.id} does not describe its {KIND_NAMES[kind].lower()} records "
                f"of version {version}",
                hint=COPY_AGAIN,
            )
        return parse_layout(text)


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Sizes of headers, and where index, description and first record are said to be."""

    size: int
    record_header: int
    index: int
    description: int
    first_record: int


@dataclass(frozen=True, slots=True)
class Description:
    """The tags of the file and its streams, and the size of the record that holds them."""

    tags: Mapping[str, str]
    streams: Mapping[str, Stream]
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Record headers and where they begin in the whole of all chunks."""

    headers: NDArray[np.void]
    starts: NDArray[np.int64]
    end: int
    rebuilt: bool = False
    lost: int = 0
    cut: int = 0


def is_vrs(start: bytes) -> bool:
    """Tell by a file's first bytes whether it is a VRS file."""
    return start[:8] == _MAGIC and (len(start) < _FILE_HEADER.size or start[72:76] == _MAGIC_END)


def read_file_header(maps: Maps) -> FileHeader:
    """Read and check the header of the first chunk."""
    start = maps.read(0, min(_FILE_HEADER.size, maps.total))
    path = maps.paths[0]
    if not is_vrs(start):
        raise UnknownFormatError(
            f"this is no VRS file: it begins with {start[:8]!r}, expected {_MAGIC!r}",
            path=path,
            hint=COPY_AGAIN,
        )
    if len(start) < _FILE_HEADER.size:
        raise TruncatedFileError(
            f"the file ends within its header, after {len(start)} bytes",
            path=path,
            hint=COPY_AGAIN,
        )
    _, _, size, record_header, index, description, first, *_ = _FILE_HEADER.unpack(start)
    sane = size >= _FILE_HEADER.size and record_header >= _RECORD_HEADER.size
    if not sane or min(index, description, first) < 0 or description == 0:
        raise CorruptFileError("the file's header is damaged", path=path, hint=COPY_AGAIN)
    return FileHeader(size, record_header, index, description, first)


# --- description -----------------------------------------------------------------------------


def read_description(maps: Maps, header: FileHeader) -> Description:
    """Read the record that describes the file and its streams."""
    path = maps.paths[0]
    at = header.description
    record = _record_header(maps, at, header.record_header)
    if record is None or at + record.size > maps.total:
        raise TruncatedFileError(
            "the file ends before the description of its streams is complete",
            path=path,
            hint=COPY_AGAIN,
        )
    if record.type != _DESCRIPTION_TYPE or record.version != _DESCRIPTION_VERSION:
        raise CorruptFileError(
            "the description of the streams is not where the header says, "
            "or of a version that is not known",
            path=path,
            hint=COPY_AGAIN,
        )
    size = record.size
    body = maps.read(at + header.record_header, size - header.record_header)
    try:
        tags, streams = _parse_description(body)
    except (struct.error, IndexError) as error:
        raise CorruptFileError(
            "the description of the streams is damaged", path=path, hint=COPY_AGAIN
        ) from error
    return Description(tags, streams, size)


def _parse_description(body: bytes) -> tuple[Mapping[str, str], Mapping[str, Stream]]:
    (count,), at = struct.unpack_from("<I", body), 4
    streams = {}
    for _ in range(count):
        type_id, instance = struct.unpack_from("<iH", body, at)
        user, at = _parse_map(body, at + 6)
        own, at = _parse_map(body, at)
        name = f"{type_id}-{instance}"
        streams[name] = Stream(name, user, own)
    tags, _ = _parse_map(body, at)
    return tags, streams


def _parse_map(body: bytes, at: int) -> tuple[Mapping[str, str], int]:
    (count,), at = struct.unpack_from("<I", body, at), at + 4
    out = {}
    for _ in range(count):
        key, at = _parse_text(body, at)
        out[key], at = _parse_text(body, at)
    return out, at


def _parse_text(body: bytes, at: int) -> tuple[str, int]:
    (length,), at = struct.unpack_from("<I", body, at), at + 4
    if at + length > len(body):
        raise IndexError("a text is longer than the record that holds it")
    return body[at : at + length].decode("utf-8", "replace"), at + length


# --- finding the records ---------------------------------------------------------------------


def find_records(maps: Maps, header: FileHeader, description: Description) -> Found:
    """Follow the index where there is a right one; else walk from record to record."""
    first = header.first_record or header.size
    if header.description == first:
        first += description.size
    entries = _read_index(maps, header)
    found = _follow_index(maps, header, entries, first) if entries is not None else None
    if found is None:
        found = _walk(maps, header)
    at_border = found.end == maps.total and (found.lost or header.index > maps.total)
    if at_border:
        raise MissingChunkError(
            "the recording goes on after the last record in "
            f"{maps.paths[-1].name}, and that record is whole: a further chunk is missing",
            path=maps.paths[0],
            hint=f"copy the further chunks ({maps.paths[0].name}_{len(maps.paths)}...) "
            "beside this file",
        )
    return found


def _read_index(maps: Maps, header: FileHeader) -> NDArray[np.void] | None:
    """Return the entries of the index, None where there is none or it makes no sense."""
    record = _record_header(maps, header.index, header.record_header) if header.index else None
    if record is None or record.type != _INDEX_TYPE:
        return None
    size = record.size - header.record_header
    start = header.index + header.record_header
    if size <= 0 or start + size > maps.total:
        return None
    body = maps.read(start, size)
    try:
        if record.version == _CLASSIC_INDEX:
            return _classic_entries(body, record.unpacked)
        if record.version == _SPLIT_INDEX:
            return _split_entries(body, record.unpacked)
    except (struct.error, ValueError):
        return None
    return None


def _classic_entries(body: bytes, unpacked: int) -> NDArray[np.void]:
    (streams,) = struct.unpack_from("<I", body)
    at = 4 + 6 * streams
    (count,) = struct.unpack_from("<I", body, at)
    rest = body[at + 4 :]
    if unpacked and count:
        rest = _unpack_index(rest, count * _INDEX_ENTRY.itemsize)
    return np.frombuffer(rest, _INDEX_ENTRY, count)


def _split_entries(body: bytes, unpacked: int) -> NDArray[np.void]:
    entries = _unpack_index(body, unpacked) if unpacked else body
    return np.frombuffer(entries, _INDEX_ENTRY, len(entries) // _INDEX_ENTRY.itemsize)


def _unpack_index(body: bytes, size: int) -> bytes:
    """Unpack an index; a damaged size is not taken as an order to fill the memory."""
    if size > _MOST_PACKED * len(body):
        raise ValueError(f"{len(body)} bytes cannot hold an index of {size}")
    return unzstd(body, size)


def _follow_index(
    maps: Maps, header: FileHeader, entries: NDArray[np.void], first: int
) -> Found | None:
    """Return the records that the index lists; None if the records themselves say otherwise."""
    sizes = entries["size"].astype(np.int64)
    ends = first + np.cumsum(sizes)
    held = int(np.searchsorted(ends, maps.total, side="right"))
    starts = ends[:held] - sizes[:held]
    if not held or (sizes < header.record_header).any():
        return None
    headers = maps.gather(starts, _HEADER)
    listed = entries[:held]
    if any((headers[name] != listed[name]).any() for name in ("size", "type", "instance", "kind")):
        return None
    end, lost = int(ends[held - 1]), len(entries) - held
    if not lost and _goes_on(maps, header, end, int(sizes[-1])):
        return None
    cut = maps.total - end if lost else 0
    if header.index < end:  # the index stands before the records: nothing may follow them
        cut = maps.end_of_chunk(end) - end
    return Found(headers, starts, end, lost=lost, cut=cut)


def _goes_on(maps: Maps, header: FileHeader, end: int, last_size: int) -> bool:
    """Tell whether a stream's record follows where the index ends: it was written too early."""
    after = _record_header(maps, end, header.record_header)
    return after is not None and bool(
        after.type not in (_INDEX_TYPE, _DESCRIPTION_TYPE)
        and after.previous == last_size
        and header.record_header <= after.size
        and STATE <= after.kind <= TAGS_KIND
    )


def _walk(maps: Maps, header: FileHeader) -> Found:
    """Walk from record to record until the bytes make no more sense.

    As the vendor's reader does, the last record before a break in the chain of sizes is not
    trusted.
    """
    starts: list[int] = []
    at, previous = header.size, 0
    for at, size, trusted, is_user in _chain(maps, header):
        if not trusted:
            if starts and starts[-1] + previous == at:
                at = starts.pop()
            break
        if is_user:
            starts.append(at)
        at, previous = at + size, size
    offsets = np.array(starts, np.int64)
    headers = maps.gather(offsets, _HEADER)
    return Found(headers, offsets, at, rebuilt=True, cut=maps.total - at)


def _chain(maps: Maps, header: FileHeader) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield (start, size, trusted, is a stream's record) of one record after the other."""
    at, previous = header.size, 0
    while (record := _record_header(maps, at, header.record_header)) is not None:
        size, kind, type_id = record.size, record.kind, record.type
        own = type_id in (_INDEX_TYPE, _DESCRIPTION_TYPE)
        if type_id == _INDEX_TYPE and record.version == _SPLIT_INDEX:
            size = (header.first_record or maps.sizes[0]) - at
        broken = previous not in (0, record.previous) or size < header.record_header
        if broken or not (own or STATE <= kind <= TAGS_KIND):
            yield at, size, False, False
            return
        if at + size > maps.total:
            return
        yield at, size, True, not own
        previous = 0 if type_id == _INDEX_TYPE else size
        at += size


def record_table(maps: Maps, found: Found, record_header: int) -> NDArray[np.void]:
    """Turn headers into `RECORD_DTYPE`, in the order of the vendor's reader."""
    h = found.headers
    file, offset = maps.locate(found.starts)
    if (offset + h["size"] > np.array(maps.sizes, np.int64)[file]).any():
        raise CorruptFileError(
            "a record begins in one chunk and ends in the next: these are not VRS's own chunks",
            path=maps.paths[0],
            hint="join the parts into one file again",
        )
    out = np.zeros(len(h), RECORD_DTYPE)
    for name in ("time_s", "type", "instance", "kind", "version", "packing"):
        out[name] = h[name]
    out["file"], out["offset"] = file, offset + record_header
    out["size"] = h["size"] - record_header
    out["unpacked"] = np.where(h["packing"] > 0, h["unpacked"], out["size"])
    if (h["kind"] == TAGS_KIND).any():
        out = out[h["kind"] != TAGS_KIND]
    if _is_ordered(out):  # as recorders write: no second copy of a long table
        return out
    order = np.lexsort((out["instance"], out["type"], out["time_s"]))
    ordered: NDArray[np.void] = out[order]
    return ordered


def _is_ordered(records: NDArray[np.void]) -> bool:
    """Tell whether records follow each other by time, then type, then instance."""
    steps = np.diff(records["time_s"])
    same = np.flatnonzero(steps == 0)
    stream = records["type"].astype(np.int64) << 16 | records["instance"]
    return bool((steps >= 0).all() and (stream[same] <= stream[same + 1]).all())


def _record_header(maps: Maps, at: int, size: int) -> _Header | None:
    """Return the record header at a place in the whole, None where the bytes end."""
    body = maps.read(at, size) if at >= 0 else b""
    return _Header(*_RECORD_HEADER.unpack_from(body)) if len(body) == size else None
