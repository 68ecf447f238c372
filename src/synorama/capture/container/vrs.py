"""VRS files without meaning: tags, streams, where every record lies, and its fields in bulk.

VRS (https://facebookresearch.github.io/vrs/) is a sequence of records, each with a header that
names its stream, kind, time, size and packing. An index lists them; a file that was never closed
has none, and its records are then found by walking from header to header. A recording may be
split into chunks ``x.vrs``, ``x.vrs_1``, ``x.vrs_2``..., which read as one file whose records
never straddle two chunks.

Files are mapped for as long as a call takes, read-only, and pages are given back on the way: what
is resident stays small however large the file is.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.container.vrs_layout import STRINGS, Layout, parse_layout, split_strings
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    MissingChunkError,
    OrphanChunkError,
    TruncatedFileError,
    UnknownFormatError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CONFIGURATION",
    "DATA",
    "PAYLOAD_DTYPE",
    "RECORD_DTYPE",
    "STATE",
    "Stream",
    "VrsFile",
    "chunk_paths",
    "first_chunk",
    "open_vrs",
    "read_tags",
    "starts_like_vrs",
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

PAYLOAD_DTYPE = np.dtype(
    [("file", "<u2"), ("offset", "<u8"), ("size", "<u4"), ("packing", "u1"), ("skip", "<u4")]
)
"""Where what follows a record's fields lies: unpack(file[offset:offset + size])[skip:]."""

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
_INDEX_ENTRY = np.dtype(
    [("time_s", "<f8"), ("size", "<u4"), ("kind", "u1"), ("type", "<i4"), ("instance", "<u2")]
)
_MAGIC, _MAGIC_END = b"VisionRe", b"cord"
_INDEX_TYPE, _DESCRIPTION_TYPE = 1, 2
_CLASSIC_INDEX, _SPLIT_INDEX = 2, 3
_DESCRIPTION_VERSION = 2
_CHUNK_NAME = re.compile(r"(?P<first>.+?)_(?P<number>\d+)")
_BATCH = 256  # records whose variable fields are held at once
_WINDOW_BITS = 26  # gathers give back their pages every 64 MiB of file
_COPY_AGAIN = "copy the file from the device again; if it is like this there, it is lost"


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

    def layout(self, kind: int, version: int) -> Layout:
        """Return the layout of the fields with which records of this format begin.

        Raises
        ------
        CorruptFileError
            The stream does not describe it.
        """
        text = self.vrs_tags.get(f"DL:{KIND_NAMES[kind]}:{version}:0")
        if text is None:
            raise CorruptFileError(
                f"stream {self.id} does not describe its {KIND_NAMES[kind].lower()} records "
                f"of version {version}",
                hint=_COPY_AGAIN,
            )
        return parse_layout(text)


@dataclass(frozen=True, slots=True, eq=False)
class VrsFile:
    """What a VRS recording holds and where; its bytes stay in the files.

    Parameters
    ----------
    paths, sizes
        The chunks in order, and their bytes when they were read.
    tags
        The file's own tags.
    streams
        By id ``type-instance``, such as ``214-1``.
    records
        ``(N,)`` of `RECORD_DTYPE`, sorted by time, then stream, then place.
    rebuilt
        The index was missing or wrong, and the records were found by walking the file.
    closed
        The recorder finished the file: its header knows an index.
    lost_records
        Records that the index lists and the files no longer hold.
    cut_bytes
        Bytes at the end that are no whole record.
    """

    paths: tuple[Path, ...]
    sizes: tuple[int, ...]
    tags: Mapping[str, str]
    streams: Mapping[str, Stream]
    records: NDArray[np.void]
    rebuilt: bool = False
    closed: bool = True
    lost_records: int = 0
    cut_bytes: int = 0

    def select(self, stream: str, kind: int = DATA) -> NDArray[np.void]:
        """Return the records of one stream and kind, in order of time."""
        type_id, instance = (int(part) for part in stream.split("-"))
        r = self.records
        mine = (r["type"] == type_id) & (r["instance"] == instance) & (r["kind"] == kind)
        chosen: NDArray[np.void] = r[mine]
        return chosen

    def columns(
        self, stream: str, records: NDArray[np.void], names: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Read fixed-size fields of records of one stream and kind, in bulk.

        Parameters
        ----------
        names
            Which fields; all if None. Those that not every record has are left out.

        Returns
        -------
        dict
            By name, ``(N, ...)`` arrays in the order of the records.
        """
        out: dict[str, NDArray[Any]] = {}
        parts = list(self._by_version(stream, records))
        for name in self._common_names(parts, names):
            first = parts[0][1].fixed[name]
            out[name] = np.empty((len(records), *first.shape), first.base)
        with _Maps(self.paths) as maps:
            for chosen, layout in parts:
                rows = _bodies(maps, records[chosen], layout.fixed)
                for name, column in out.items():
                    column[chosen] = rows[name]
        return out

    def texts(self, stream: str, records: NDArray[np.void], name: str) -> NDArray[np.bytes_]:
        """Read a string field as ``(N,)`` fixed-length UTF-8 bytes; empty where it is absent."""
        found = [body or b"" for body in self.variable(stream, records, name)]
        return np.array(found, np.bytes_)

    def vectors(self, stream: str, records: NDArray[np.void], name: str) -> Iterator[NDArray[Any]]:
        """Read a vector field record by record, as arrays of its element type."""
        types = [layout.variable.get(name) for _, layout in self._by_version(stream, records)]
        kind = next((t for t in types if isinstance(t, np.dtype)), np.dtype("u1"))
        for body in self.variable(stream, records, name):
            yield np.frombuffer(body or b"", kind.base).reshape(-1, *kind.shape)

    def variable(self, stream: str, records: NDArray[np.void], name: str) -> Iterator[bytes | None]:
        """Yield the raw bytes of a variable-size field; None where a record has no such field."""
        with _Maps(self.paths) as maps:
            for start in range(0, len(records), _BATCH):
                yield from self._variable(maps, stream, records[start : start + _BATCH], name)

    def _variable(
        self, maps: _Maps, stream: str, records: NDArray[np.void], name: str
    ) -> list[bytes | None]:
        out: list[bytes | None] = [None] * len(records)
        for chosen, layout in self._by_version(stream, records):
            if name not in layout.variable:
                continue
            mine = records[chosen]
            start, length = layout.span(_bodies(maps, mine, layout.fixed), name)
            for k, body in zip(chosen, _parts(maps, mine, start, length), strict=True):
                out[k] = body
        return out

    def payloads(self, stream: str, records: NDArray[np.void]) -> NDArray[np.void]:
        """Return where the pictures or sound of the records lie, as `PAYLOAD_DTYPE`."""
        out = np.zeros(len(records), PAYLOAD_DTYPE)
        with _Maps(self.paths) as maps:
            for chosen, layout in self._by_version(stream, records):
                mine = records[chosen]
                fields = layout.size(_bodies(maps, mine, layout.fixed))
                out[chosen] = _payload_rows(mine, fields)
        return out

    def first(self, stream: str, kind: int = CONFIGURATION) -> dict[str, Any]:
        """Return all fields of a stream's first record of a kind; empty if it has none."""
        records = self.select(stream, kind)[:1]
        if not len(records):
            return {}
        out = {name: column[0] for name, column in self.columns(stream, records).items()}
        layout = self.streams[stream].layout(kind, int(records["version"][0]))
        for name, element in layout.variable.items():
            body = next(self.variable(stream, records, name)) or b""
            out[name] = _python_value(body, element)
        return out

    def _by_version(
        self, stream: str, records: NDArray[np.void]
    ) -> Iterator[tuple[NDArray[np.intp], Layout]]:
        for version in np.unique(records["version"]):
            chosen = np.flatnonzero(records["version"] == version)
            kind = int(records["kind"][chosen[0]])
            yield chosen, self.streams[stream].layout(kind, int(version))

    @staticmethod
    def _common_names(
        parts: list[tuple[NDArray[np.intp], Layout]], names: Sequence[str] | None
    ) -> list[str]:
        if not parts:
            return []
        wanted = parts[0][1].names if names is None else names
        return [n for n in wanted if all(n in layout.names for _, layout in parts)]


# --- opening ---------------------------------------------------------------------------------


def starts_like_vrs(path: Path) -> bool:
    """Tell by the first bytes whether this is (the first chunk of) a VRS file; never raise."""
    try:
        with path.open("rb") as file:
            return _is_vrs(file.read(_FILE_HEADER.size))
    except OSError:
        return False


def first_chunk(path: Path) -> Path:
    """Return the first chunk of the recording that a file may be a chunk of, by its name.

    ``x.vrs_2`` is a chunk of ``x.vrs`` or of ``x.vrs_0``; a file that starts as VRS files do is a
    first chunk whatever its name.
    """
    match = _CHUNK_NAME.fullmatch(path.name)
    if not match or starts_like_vrs(path):
        return path
    named = (path.with_name(match["first"]), path.with_name(f"{match['first']}_0"))
    return next((p for p in named if p.is_file()), path)


def chunk_paths(path: Path) -> tuple[Path, ...]:
    """Return all chunks of the recording that the file belongs to, in order.

    Raises
    ------
    MissingChunkError
        A chunk between two others is not there.
    OrphanChunkError
        The file is a later chunk and its first chunk is not there.
    """
    first = first_chunk(path)
    if first == path and _CHUNK_NAME.fullmatch(path.name) and not starts_like_vrs(path):
        _refuse_orphan(path)
    root = first.name[:-1] if first.name.endswith("_0") else f"{first.name}_"
    numbers = sorted(
        int(rest)
        for other in first.parent.iterdir()
        if other.name.startswith(root) and (rest := other.name[len(root) :]).isdigit()
        if str(int(rest)) == rest and int(rest) > 0 and not starts_like_vrs(other)
    )
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    if missing:
        raise MissingChunkError(
            f"chunk {root}{missing[0]} is missing, and {root}{numbers[-1]} is there",
            path=first,
            hint="copy all chunks of the recording into one folder, under their own names",
        )
    return (first, *(first.with_name(f"{root}{n}") for n in numbers))


def _refuse_orphan(path: Path) -> None:
    if path.is_file() and path.stat().st_size == 0:
        return
    match = _CHUNK_NAME.fullmatch(path.name)
    first = match["first"] if match else path.name
    raise OrphanChunkError(
        f"this is a later chunk of a recording whose first chunk {first} is not beside it",
        path=path,
        hint=f"copy {first} and all its chunks into one folder",
    )


def read_tags(path: Path) -> Mapping[str, str]:
    """Return only the file's tags, from the few kilobytes that hold them."""
    with _Maps((path,)) as maps:
        return _read_description(maps, _read_file_header(maps)).tags


def open_vrs(path: Path) -> VrsFile:
    """Find all records of the recording that a file belongs to.

    Parameters
    ----------
    path
        The file, or any chunk of it.

    Raises
    ------
    EmptyFileError, UnknownFormatError, CorruptFileError, TruncatedFileError
        The file has no bytes; is no VRS file; breaks the format; ends before its first record.
    OrphanChunkError, MissingChunkError
        The first chunk, or a later one, is not there.
    """
    _check_is_file(path)
    with _Maps(chunk_paths(path)) as maps:
        header = _read_file_header(maps)
        description = _read_description(maps, header)
        found = _find_records(maps, header, description)
        if not len(found.headers):
            raise TruncatedFileError(
                "the file holds no record",
                path=maps.paths[0],
                hint="nothing was recorded, or only the file's beginning was copied: "
                + _COPY_AGAIN,
            )
        used = _used_chunks(maps, found.end)
        return VrsFile(
            paths=maps.paths[:used],
            sizes=maps.sizes[:used],
            tags=description.tags,
            streams=description.streams,
            records=_record_table(maps, found, header.record_header),
            rebuilt=found.rebuilt,
            closed=header.index > 0,
            lost_records=found.lost,
            cut_bytes=found.cut,
        )


def _check_is_file(path: Path) -> None:
    if not path.exists():
        raise InputNotFoundError("there is no such file", path=path, hint="check the path")
    if not path.is_file():
        raise UnknownFormatError("this is no file", path=path, hint="name a VRS file")


@dataclass(frozen=True, slots=True)
class _FileHeader:
    size: int
    record_header: int
    index: int
    description: int
    first_record: int


@dataclass(frozen=True, slots=True)
class _Description:
    tags: Mapping[str, str]
    streams: Mapping[str, Stream]
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Record headers and where they begin in the whole of all chunks."""

    headers: NDArray[np.void]
    starts: NDArray[np.int64]
    end: int
    rebuilt: bool = False
    lost: int = 0
    cut: int = 0


def _is_vrs(start: bytes) -> bool:
    return start[:8] == _MAGIC and (len(start) < _FILE_HEADER.size or start[72:76] == _MAGIC_END)


def _read_file_header(maps: _Maps) -> _FileHeader:
    start = maps.read(0, min(_FILE_HEADER.size, maps.total))
    path = maps.paths[0]
    if not _is_vrs(start):
        raise UnknownFormatError(
            f"this is no VRS file: it begins with {start[:8]!r}, expected {_MAGIC!r}",
            path=path,
            hint=_COPY_AGAIN,
        )
    if len(start) < _FILE_HEADER.size:
        raise TruncatedFileError(
            f"the file ends within its header, after {len(start)} bytes",
            path=path,
            hint=_COPY_AGAIN,
        )
    _, _, size, record_header, index, description, first, *_ = _FILE_HEADER.unpack(start)
    sane = size >= _FILE_HEADER.size and record_header >= _RECORD_HEADER.size
    if not sane or min(index, description, first) < 0 or description == 0:
        raise CorruptFileError("the file's header is damaged", path=path, hint=_COPY_AGAIN)
    return _FileHeader(size, record_header, index, description, first)


# --- description -----------------------------------------------------------------------------


def _read_description(maps: _Maps, header: _FileHeader) -> _Description:
    path = maps.paths[0]
    at = header.description
    record = maps.record_header(at, header.record_header)
    if record is None or at + record["size"] > maps.total:
        raise TruncatedFileError(
            "the file ends before the description of its streams is complete",
            path=path,
            hint=_COPY_AGAIN,
        )
    if record["type"] != _DESCRIPTION_TYPE or record["version"] != _DESCRIPTION_VERSION:
        raise CorruptFileError(
            "the description of the streams is not where the header says, "
            "or of a version that is not known",
            path=path,
            hint=_COPY_AGAIN,
        )
    size = int(record["size"])
    body = maps.read(at + header.record_header, size - header.record_header)
    try:
        tags, streams = _parse_description(body)
    except (struct.error, IndexError) as error:
        raise CorruptFileError(
            "the description of the streams is damaged", path=path, hint=_COPY_AGAIN
        ) from error
    return _Description(tags, streams, size)


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
    return tags, MappingProxyType(streams)


def _parse_map(body: bytes, at: int) -> tuple[Mapping[str, str], int]:
    (count,), at = struct.unpack_from("<I", body, at), at + 4
    out = {}
    for _ in range(count):
        key, at = _parse_text(body, at)
        out[key], at = _parse_text(body, at)
    return MappingProxyType(out), at


def _parse_text(body: bytes, at: int) -> tuple[str, int]:
    (length,), at = struct.unpack_from("<I", body, at), at + 4
    if at + length > len(body):
        raise IndexError("a text is longer than the record that holds it")
    return body[at : at + length].decode("utf-8", "replace"), at + length


# --- finding the records ---------------------------------------------------------------------


def _find_records(maps: _Maps, header: _FileHeader, description: _Description) -> _Found:
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


def _read_index(maps: _Maps, header: _FileHeader) -> NDArray[np.void] | None:
    """Return the entries of the index, None where there is none or it makes no sense."""
    record = maps.record_header(header.index, header.record_header) if header.index else None
    if record is None or record["type"] != _INDEX_TYPE:
        return None
    size = int(record["size"]) - header.record_header
    start = header.index + header.record_header
    if size <= 0 or start + size > maps.total:
        return None
    body = maps.read(start, size)
    try:
        if record["version"] == _CLASSIC_INDEX:
            return _classic_entries(body, packed=int(record["unpacked"]) > 0)
        if record["version"] == _SPLIT_INDEX:
            return _split_entries(body, int(record["unpacked"]))
    except (struct.error, ValueError):
        return None
    return None


def _classic_entries(body: bytes, *, packed: bool) -> NDArray[np.void]:
    (streams,) = struct.unpack_from("<I", body)
    at = 4 + 6 * streams
    (count,) = struct.unpack_from("<I", body, at)
    rest = body[at + 4 :]
    if packed and count:
        rest = _unzstd(rest, count * _INDEX_ENTRY.itemsize)
    return np.frombuffer(rest, _INDEX_ENTRY, count)


def _split_entries(body: bytes, unpacked: int) -> NDArray[np.void]:
    entries = _unzstd(body, unpacked) if unpacked else body
    return np.frombuffer(entries, _INDEX_ENTRY, len(entries) // _INDEX_ENTRY.itemsize)


def _follow_index(
    maps: _Maps, header: _FileHeader, entries: NDArray[np.void], first: int
) -> _Found | None:
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
    return _Found(headers, starts, end, lost=lost, cut=cut)


def _goes_on(maps: _Maps, header: _FileHeader, end: int, last_size: int) -> bool:
    """Tell whether a stream's record follows where the index ends: it was written too early."""
    after = maps.record_header(end, header.record_header)
    return after is not None and bool(
        after["type"] not in (_INDEX_TYPE, _DESCRIPTION_TYPE)
        and after["previous"] == last_size
        and header.record_header <= after["size"] <= maps.total - end
        and STATE <= after["kind"] <= TAGS_KIND
    )


def _walk(maps: _Maps, header: _FileHeader) -> _Found:
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
    return _Found(headers, offsets, at, rebuilt=True, cut=maps.total - at)


def _chain(maps: _Maps, header: _FileHeader) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield (start, size, trusted, is a stream's record) of one record after the other."""
    at, previous = header.size, 0
    while (record := maps.record_header(at, header.record_header)) is not None:
        size, kind, type_id = int(record["size"]), int(record["kind"]), int(record["type"])
        own = type_id in (_INDEX_TYPE, _DESCRIPTION_TYPE)
        if type_id == _INDEX_TYPE and record["version"] == _SPLIT_INDEX:
            size = (header.first_record or maps.sizes[0]) - at
        broken = previous not in (0, int(record["previous"])) or size < header.record_header
        if broken or not (own or STATE <= kind <= TAGS_KIND):
            yield at, size, False, False
            return
        if at + size > maps.total:
            return
        yield at, size, True, not own
        previous = 0 if type_id == _INDEX_TYPE else size
        at += size


def _used_chunks(maps: _Maps, end: int) -> int:
    """Return how many chunks hold records: a stray file of a chunk's name is left out."""
    return max(1, int(np.searchsorted(maps.starts, end, side="left")))


def _record_table(maps: _Maps, found: _Found, record_header: int) -> NDArray[np.void]:
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
    out = out[h["kind"] != TAGS_KIND]
    order = np.lexsort((out["instance"], out["type"], out["time_s"]))
    ordered: NDArray[np.void] = out[order]
    return ordered


# --- bytes -----------------------------------------------------------------------------------


class _Maps:
    """All chunks as one read-only range of bytes, mapped while the context lasts."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._maps: list[mmap.mmap] = []

    def __enter__(self) -> _Maps:
        self._maps = [_map(path) for path in self.paths]
        self.sizes = tuple(len(m) for m in self._maps)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        self.total = sum(self.sizes)
        return self

    def __exit__(self, *_: object) -> None:
        self._maps = []  # unmapped when the last view of them goes

    def locate(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the chunk, and the place in it, of places in the whole."""
        file = np.searchsorted(self.starts, starts, side="right") - 1
        return file, starts - self.starts[file]

    def read(self, start: int, size: int) -> bytes:
        """Return bytes of the whole, which may straddle chunks; fewer at its end."""
        parts = []
        while size > 0 and start < self.total:
            (file,), (at,) = self.locate(np.array([start], np.int64))
            part = self._maps[file][at : at + size]
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return b"".join(parts)

    def read_in(self, file: int, start: int, size: int) -> memoryview:
        """Return a view of the bytes of one chunk."""
        return memoryview(self._maps[file])[start : start + size]

    def record_header(self, at: int, size: int) -> np.void | None:
        """Return the record header at a place in the whole, None where the bytes end."""
        body = self.read(at, size) if at >= 0 else b""
        return np.frombuffer(body, _HEADER, 1)[0] if len(body) == size else None

    def gather(self, starts: NDArray[np.int64], kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the structures of a packed type that begin at places in the whole."""
        file, at = self.locate(starts)
        out = np.empty(len(starts), kind)
        for k in range(len(self._maps)):
            mine = slice(*np.searchsorted(file, [k, k + 1]))  # starts increase, so does file
            out[mine] = self.gather_in(k, at[mine], kind)
        return out

    def gather_in(self, file: int, at: NDArray[np.int64], kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the structures of a packed type that begin at places in one chunk.

        One strided view has such a structure begin at every byte; picking from it copies whole
        structures. Pages are given back window by window.
        """
        out = np.empty(len(at), kind)
        if not len(at) or not kind.itemsize:
            return out
        mapped = self._maps[file]
        if int(at.max()) + kind.itemsize > len(mapped):
            raise CorruptFileError(
                "a record is shorter than its fields", path=self.paths[file], hint=_COPY_AGAIN
            )
        shape = (len(mapped) - kind.itemsize + 1,)
        everywhere = np.ndarray(shape, np.dtype(("V", kind.itemsize)), mapped, strides=(1,))
        raw = out.view(everywhere.dtype)
        borders = np.flatnonzero(np.diff(at >> _WINDOW_BITS)) + 1
        for lo, hi in zip([0, *borders], [*borders, len(at)], strict=True):
            raw[lo:hi] = everywhere[at[lo:hi]]
            _give_back(mapped, int(at[lo:hi].min()), int(at[lo:hi].max()) + kind.itemsize)
        return out


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise EmptyFileError(
            "the file is empty (0 bytes)",
            path=path,
            hint="the device did not write it, or a copy failed: copy it again from the device",
        ) from error
    except PermissionError as error:
        raise InputUnreadableError(
            "no permission to read this file", path=path, hint="give yourself read permission"
        ) from error
    except FileNotFoundError as error:
        raise InputNotFoundError(
            "the file was here and is gone", path=path, hint="put it back where it was"
        ) from error


def _give_back(mapped: mmap.mmap, start: int, stop: int) -> None:
    """Tell the system that these pages are not needed now: they stay cached, not resident."""
    if hasattr(mmap, "MADV_DONTNEED"):
        page = start - start % mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, page, stop - page)


def _bodies(maps: _Maps, records: NDArray[np.void], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the structures with which the records' bodies begin."""
    if (records["unpacked"] < kind.itemsize).any():
        raise CorruptFileError(
            "a record is shorter than its fields", path=maps.paths[0], hint=_COPY_AGAIN
        )
    out = np.empty(len(records), kind)
    plain = records["packing"] == 0
    for file in np.unique(records["file"]):
        mine = np.flatnonzero(plain & (records["file"] == file))
        out[mine] = maps.gather_in(int(file), records["offset"][mine].astype(np.int64), kind)
    packed = np.flatnonzero(~plain)
    if len(packed):
        joined = b"".join(_part(maps, records[k], 0, kind.itemsize) for k in packed)
        out[packed] = np.frombuffer(joined, kind)
    return out


def _parts(
    maps: _Maps, records: NDArray[np.void], start: NDArray[np.int64], size: NDArray[np.int64]
) -> list[bytes]:
    """Return ``body[start:start + size]`` of each record."""
    same = len(np.unique(size)) == 1 and int(size[0]) and not records["packing"].any()
    if not same or len(np.unique(records["file"])) > 1:
        rows = zip(records, start, size, strict=True)
        return [_part(maps, record, int(at), int(n)) for record, at, n in rows]
    if (start + size > records["size"]).any():
        raise CorruptFileError(
            "a record is shorter than its fields", path=maps.paths[0], hint=_COPY_AGAIN
        )
    kind = np.dtype(("V", int(size[0])))
    at = records["offset"].astype(np.int64) + start
    return [part.tobytes() for part in maps.gather_in(int(records["file"][0]), at, kind)]


def _part(maps: _Maps, record: np.void, start: int, size: int) -> bytes:
    """Return ``body[start:start + size]`` of a record, unpacking no more than that needs."""
    file, offset, stored = int(record["file"]), int(record["offset"]), int(record["size"])
    if start + size > int(record["unpacked"]):
        raise CorruptFileError(
            "a record is shorter than its fields", path=maps.paths[file], hint=_COPY_AGAIN
        )
    if not record["packing"]:
        return bytes(maps.read_in(file, offset + start, size))
    body = maps.read_in(file, offset, stored)
    part = _unpack_start(body, int(record["packing"]), start + size)[start:]
    _give_back(maps._maps[file], offset, offset + stored)
    if len(part) != size:
        raise CorruptFileError(
            "a packed record does not unpack", path=maps.paths[file], hint=_COPY_AGAIN
        )
    return part


def _unpack_start(stored: memoryview, packing: int, size: int) -> bytes:
    """Return the first bytes of a packed body; fewer if it does not unpack."""
    try:
        return _unzstd(stored, size) if packing == 2 else _unlz4(stored, size)
    except (ValueError, RuntimeError, EOFError):
        return b""


def _unzstd(stored: bytes | memoryview, size: int) -> bytes:
    import zstandard

    try:
        reader = zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True)
        return reader.read(size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _unlz4(stored: bytes | memoryview, size: int) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.LZ4FrameDecompressor().decompress(bytes(stored), size))


def _python_value(body: bytes, element: np.dtype[Any] | str) -> Any:
    if isinstance(element, np.dtype):
        return np.frombuffer(body, element.base)
    return split_strings(body) if element == STRINGS else body.decode("utf-8", "replace")


def _payload_rows(records: NDArray[np.void], fields: NDArray[np.int64]) -> NDArray[np.void]:
    out = np.zeros(len(records), PAYLOAD_DTYPE)
    packed = records["packing"] > 0
    if (fields > records["unpacked"]).any():
        raise CorruptFileError("a record is shorter than its fields", hint=_COPY_AGAIN)
    out["file"], out["packing"] = records["file"], records["packing"]
    out["offset"] = records["offset"] + np.where(packed, 0, fields).astype(np.uint64)
    out["size"] = records["size"] - np.where(packed, 0, fields)
    out["skip"] = np.where(packed, fields, 0)
    return out
