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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synorama.capture.container.vrs_bytes import COPY_AGAIN, Maps, unpack_start
from synorama.capture.container.vrs_layout import STRINGS, Layout, split_strings
from synorama.capture.container.vrs_records import (
    CONFIGURATION,
    DATA,
    HEADER_BYTES,
    RECORD_DTYPE,
    STATE,
    Stream,
    find_records,
    is_vrs,
    read_description,
    read_file_header,
    record_table,
)
from synorama.errors import (
    CorruptFileError,
    InputNotFoundError,
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
    "Row",
    "Stream",
    "VrsFile",
    "chunk_paths",
    "first_chunk",
    "open_vrs",
    "payload_rows",
    "read_tags",
    "starts_like_vrs",
]

PAYLOAD_DTYPE = np.dtype(
    [("file", "<u2"), ("offset", "<u8"), ("size", "<u4"), ("packing", "u1"), ("skip", "<u4")]
)
"""Where what follows a record's fields lies: unpack(file[offset:offset + size])[skip:]."""

_CHUNK_NAME = re.compile(r"(?P<first>.+?)_(?P<number>\d+)")
_LIKELY_FIELD = 33_000  # bytes: the times of a block of sound, the largest field there is
_BATCH = 256  # records whose variable fields are held at once
_FIXED_BATCH = 1 << 14  # records whose fixed fields are held at once


class Row(NamedTuple):
    """A record: its fixed fields, the body of one variable field, the size of all fields."""

    fields: np.void
    body: bytes | None
    size: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"VrsFile({len(self.records)} records, {len(self.streams)} streams)"

    def select(self, stream: str, kind: int = DATA) -> NDArray[np.void]:
        """Return the records of one stream and kind, in order of time."""
        type_id, instance = (int(part) for part in stream.split("-"))
        r = self.records
        mine = np.flatnonzero(r["type"] == type_id)
        mine = mine[(r["instance"][mine] == instance) & (r["kind"][mine] == kind)]
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
        parts = list(self._by_version(stream, records))
        wanted = self._common_names(parts, names)
        out: dict[str, NDArray[Any]] = {}
        with Maps(self.paths) as maps:
            for some, layout in _batches(parts):
                rows = _bodies(maps, records[some], layout.fixed)
                for name in wanted:
                    column = rows[name]
                    if name not in out:
                        out[name] = np.empty((len(records), *column.shape[1:]), column.dtype)
                    out[name][some] = column
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
        return (row.body for row in self.scan(stream, records, name))

    def scan(self, stream: str, records: NDArray[np.void], name: str) -> Iterator[Row]:
        """Yield record by record, unpacking each once, its fields and one variable-size field."""
        with Maps(self.paths) as maps:
            for start in range(0, len(records), _BATCH):
                yield from self._scan(maps, stream, records[start : start + _BATCH], name)

    def _scan(self, maps: Maps, stream: str, records: NDArray[np.void], name: str) -> Iterator[Row]:
        out: list[Row | None] = [None] * len(records)
        for chosen, layout in self._by_version(stream, records):
            packed = records["packing"][chosen] > 0
            for k in chosen[packed]:
                out[k] = _packed_row(maps, records[k], layout, name)
            plain = chosen[~packed]
            for k, row in zip(plain, _plain_rows(maps, records[plain], layout, name), strict=True):
                out[k] = row
        return (row for row in out if row is not None)

    def payloads(self, stream: str, records: NDArray[np.void]) -> NDArray[np.void]:
        """Return where the pictures or sound of the records lie, as `PAYLOAD_DTYPE`."""
        sizes = np.zeros(len(records), np.int64)
        with Maps(self.paths) as maps:
            for chosen, layout in self._by_version(stream, records):
                sizes[chosen] = layout.fixed.itemsize
                if layout.variable:
                    sizes[chosen] = layout.size(_bodies(maps, records[chosen], layout.fixed))
        return payload_rows(records, sizes)

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
        tags = self.streams[stream]
        if not len(records) and (version := tags.newest_version(DATA)) is not None:
            yield np.zeros(0, np.intp), tags.layout(DATA, version)
        for version in np.unique(records["version"]):
            chosen = np.flatnonzero(records["version"] == version)
            kind = int(records["kind"][chosen[0]])
            yield chosen, tags.layout(kind, int(version))

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
            return is_vrs(file.read(HEADER_BYTES))
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
        if str(int(rest)) == rest and int(rest) > 0 and _is_later_chunk(other)
    )
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    if missing:
        raise MissingChunkError(
            f"chunk {root}{missing[0]} is missing, and {root}{numbers[-1]} is there",
            path=first,
            hint="copy all chunks of the recording into one folder, under their own names",
        )
    return (first, *(first.with_name(f"{root}{n}") for n in numbers))


def _is_later_chunk(path: Path) -> bool:
    """Leave out files of their own, and chunks that were begun and never written to."""
    return path.stat().st_size > 0 and not starts_like_vrs(path)


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
    with Maps((path,)) as maps:
        return read_description(maps, read_file_header(maps)).tags


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
    with Maps(chunk_paths(path)) as maps:
        header = read_file_header(maps)
        description = read_description(maps, header)
        found = find_records(maps, header, description)
        if not len(found.headers):
            raise TruncatedFileError(
                "the file holds no record",
                path=maps.paths[0],
                hint="nothing was recorded, or only the file's beginning was copied: " + COPY_AGAIN,
            )
        used = _used_chunks(maps, max(found.end, min(header.index + 1, maps.total)))
        return VrsFile(
            paths=maps.paths[:used],
            sizes=maps.sizes[:used],
            tags=description.tags,
            streams=description.streams,
            records=record_table(maps, found, header.record_header),
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


def _used_chunks(maps: Maps, end: int) -> int:
    """Return how many chunks are in use: a stray file of a chunk's name is left out."""
    return max(1, int(np.searchsorted(maps.starts, end, side="left")))


# --- bodies ----------------------------------------------------------------------------------


def _batches(
    parts: Iterable[tuple[NDArray[np.intp], Layout]],
) -> Iterator[tuple[NDArray[np.intp], Layout]]:
    """Cut each part into batches; one without records stays, for its types."""
    for chosen, layout in parts:
        for start in range(0, max(1, len(chosen)), _FIXED_BATCH):
            yield chosen[start : start + _FIXED_BATCH], layout


def _bodies(maps: Maps, records: NDArray[np.void], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the structures with which the records' bodies begin."""
    if (records["unpacked"] < kind.itemsize).any():
        raise _too_short(maps, records[0])
    plain = records["packing"] == 0
    files = np.unique(records["file"])
    if plain.all() and len(files) == 1:
        return maps.gather_in(int(files[0]), records["offset"].astype(np.int64), kind)
    out = np.empty(len(records), kind)
    for file in files:
        mine = np.flatnonzero(plain & (records["file"] == file))
        out[mine] = maps.gather_in(int(file), records["offset"][mine].astype(np.int64), kind)
    packed = np.flatnonzero(~plain)
    if len(packed) and kind.itemsize:
        joined = b"".join(_part(maps, records[k], 0, kind.itemsize) for k in packed)
        out[packed] = np.frombuffer(joined, kind)
    return out


def _plain_rows(maps: Maps, records: NDArray[np.void], layout: Layout, name: str) -> Iterator[Row]:
    """Read records that are stored as they are, fields in bulk."""
    rows = _bodies(maps, records, layout.fixed)
    sizes = layout.size(rows)
    bodies: Iterable[bytes | None] = [None] * len(records)
    if name in layout.variable:
        bodies = _parts(maps, records, *layout.span(rows, name))
    return (Row(*row) for row in zip(rows, bodies, sizes.tolist(), strict=True))


def _packed_row(maps: Maps, record: np.void, layout: Layout, name: str) -> Row:
    """Read a packed record; its start is unpacked once, guessed to hold the field."""
    head = layout.fixed.itemsize
    start = _unpacked(maps, record, min(int(record["unpacked"]), head + _LIKELY_FIELD))
    if len(start) < head:
        raise _too_short(maps, record)
    rows = np.frombuffer(start, layout.fixed, 1)
    body = None
    if name in layout.variable:
        (at,), (size,) = layout.span(rows, name)
        body = start[at : at + size]
        if len(body) < size:
            body = _part(maps, record, int(at), int(size))
    return Row(rows[0], body, int(layout.size(rows)[0]))


def _parts(
    maps: Maps, records: NDArray[np.void], start: NDArray[np.int64], size: NDArray[np.int64]
) -> list[bytes]:
    """Return ``body[start:start + size]`` of records stored as they are."""
    if len(np.unique(size)) != 1 or not size[0] or len(np.unique(records["file"])) > 1:
        rows = zip(records, start, size, strict=True)
        return [_part(maps, record, int(at), int(n)) for record, at, n in rows]
    if (start + size > records["size"]).any():
        raise _too_short(maps, records[0])
    kind = np.dtype(("V", int(size[0])))
    at = records["offset"].astype(np.int64) + start
    return [part.tobytes() for part in maps.gather_in(int(records["file"][0]), at, kind)]


def _part(maps: Maps, record: np.void, start: int, size: int) -> bytes:
    """Return ``body[start:start + size]`` of a record, unpacking no more than that needs."""
    if start + size > int(record["unpacked"]):
        raise _too_short(maps, record)
    if record["packing"]:
        part = _unpacked(maps, record, start + size)[start:]
    else:
        part = bytes(maps.read_in(int(record["file"]), int(record["offset"]) + start, size))
    if len(part) != size:
        raise CorruptFileError(
            "a packed record does not unpack", path=_path(maps, record), hint=COPY_AGAIN
        )
    return part


def _unpacked(maps: Maps, record: np.void, size: int) -> bytes:
    """Return the first bytes of a packed body; fewer if it does not unpack."""
    file, offset, stored = int(record["file"]), int(record["offset"]), int(record["size"])
    start = unpack_start(maps.read_in(file, offset, stored), int(record["packing"]), size)
    maps.touched(file, stored)
    return start


def _too_short(maps: Maps, record: np.void) -> CorruptFileError:
    return CorruptFileError(
        "a record is shorter than its fields", path=_path(maps, record), hint=COPY_AGAIN
    )


def _path(maps: Maps, record: np.void) -> Path:
    return maps.paths[int(record["file"])]


def _python_value(body: bytes, element: np.dtype[Any] | str) -> Any:
    if isinstance(element, np.dtype):
        return np.frombuffer(body, element.base)
    return split_strings(body) if element == STRINGS else body.decode("utf-8", "replace")


def payload_rows(records: NDArray[np.void], sizes: NDArray[np.int64]) -> NDArray[np.void]:
    """Return where the payloads lie of records whose fields have these sizes."""
    if (sizes > records["unpacked"]).any():
        raise CorruptFileError("a record is shorter than its fields", hint=COPY_AGAIN)
    out = np.zeros(len(records), PAYLOAD_DTYPE)
    packed = records["packing"] > 0
    before = np.where(packed, 0, sizes)
    out["file"], out["packing"] = records["file"], records["packing"]
    out["offset"] = records["offset"] + before.astype(np.uint64)
    out["size"] = records["size"] - before
    out["skip"] = np.where(packed, sizes, 0)
    return out
