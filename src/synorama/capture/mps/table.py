"""Reading the comma-separated tables of MPS: whole lines only, in blocks, plain or gzipped.

pyarrow parses (`bench/mps_readers.py` tells why); what it is fed are whole lines, so that a file
that was cut off in the middle of a number never yields that number.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from synorama.capture.mps.schema import Layout
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    SynoramaError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Scan", "Table", "damaged_value", "open_input", "read_header", "read_table", "scan"]

BLOCK = 1 << 20
READ = BLOCK - (1 << 16)  # so that it fits into a block together with the line begun before it
GZIP_MAGIC = b"\x1f\x8b"
NS_PER_US = 1000
WORLD = "graph_uid"
CHANGED = "run it again once nothing writes to the MPS folder any more"


@dataclass(slots=True)
class Scan:
    """What one pass over the times of a table tells, without its values.

    Parameters
    ----------
    rows
        Whole rows that the track has.
    first_ns, last_ns
        Earliest and latest device time; None without rows or without times.
    backwards, worst_ns
        How often time goes back from one row to the next, and by how much at most.
    empty
        Rows without a number in a vital column.
    implausible
        Rows with a tracking confidence that is neither -1 (no hand) nor within 0 to 1.
    timeless
        Rows without a time: left out.
    malformed
        Lines with more or fewer columns than the header: left out.
    cut
        The last line is unfinished: left out.
    unended
        The last line has all its columns but no line end: kept without its last value, which may
        be cut short.
    ends_early
        The gzip stream ends before its end mark.
    worlds
        Identifiers of the world frames that the rows refer to.
    """

    rows: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    backwards: int = 0
    worst_ns: int = 0
    empty: int = 0
    implausible: int = 0
    timeless: int = 0
    malformed: int = 0
    cut: bool = False
    unended: bool = False
    ends_early: bool = False
    worlds: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table: times int64 ns (all 0 for points), values, and the rest by name."""

    times_ns: NDArray[np.int64]
    values: NDArray[np.floating[Any]]
    extra: dict[str, NDArray[Any]]


# --- bytes -----------------------------------------------------------------------------------


@contextmanager
def open_input(path: Path) -> Iterator[IO[bytes]]:
    """Open a file read-only, with Synorama's errors."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputNotFoundError("the MPS file is gone", path=path, hint=CHANGED) from error
    except PermissionError as error:
        raise InputUnreadableError(
            "no permission to read the MPS file", path=path, hint="give yourself read permission"
        ) from error


class _Lines(io.RawIOBase):
    """A stream of the whole lines of a file; what it left out stands in `scan` afterwards."""

    def __init__(self, file: IO[bytes], scan: Scan) -> None:
        self._scan = scan
        zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        self._blocks = self._unzipped(file) if zipped else iter(lambda: file.read(READ), b"")
        self._tail = b""  # the begin of a line whose end has not come yet
        self._ready = memoryview(b"")
        self._commas = -1
        self.header = self._read_header()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes (at least one unless at the end)."""
        if not self._ready:
            self._ready = memoryview(self._next_lines())
        given = self._ready if size < 0 else self._ready[:size]
        self._ready = self._ready[len(given) :]
        return bytes(given)

    def at_end(self) -> bool:
        """Whether no line is left."""
        if not self._ready:
            self._ready = memoryview(self._next_lines())
        return not self._ready

    def _read_header(self) -> tuple[str, ...]:
        lines = self._next_lines()
        first, _, rest = lines.partition(b"\n")
        self._commas = first.count(b",")
        self._ready = memoryview(rest)
        text = first.decode("utf-8-sig", "replace").strip()
        return tuple(name.strip().strip('"') for name in text.split(",")) if text else ()

    def _next_lines(self) -> bytes:
        """Return the next block of whole lines, empty at the end."""
        for block in self._blocks:
            end = block.rfind(b"\n") + 1
            if end:
                lines = self._tail + block[:end]
                self._tail = block[end:]
                return lines
            self._tail += block
        return self._last_line()

    def _last_line(self) -> bytes:
        tail, self._tail = self._tail.strip(b"\0"), b""
        if not tail.strip():
            return b""
        if self._commas < 0:
            return tail  # of the header there is no more than this
        if tail.count(b",") < self._commas or self._scan.ends_early:
            self._scan.cut = True
            return b""
        self._scan.unended = True
        sure, comma, _last = tail.rpartition(b",")
        return sure + comma + b"\n"

    def _unzipped(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield what a gzip file holds, of all its members, as far as it can be read."""
        gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            while raw := file.read(READ):
                while raw := raw.lstrip(b"\0") if gzip.eof else raw:
                    if gzip.eof:
                        gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
                    yield gzip.decompress(raw, READ)
                    raw = gzip.unused_data or gzip.unconsumed_tail
            while not gzip.eof and (rest := gzip.decompress(b"", READ)):
                yield rest
        except zlib.error as error:
            raise CorruptFileError(
                "its compressed bytes are damaged, so that any number in it may be wrong",
                path=file.name,
                hint="download the MPS output again",
            ) from error
        self._scan.ends_early = not gzip.eof


def read_header(path: Path) -> tuple[str, ...]:
    """Return the column names in a table's first line.

    Raises
    ------
    EmptyFileError
        The file has no bytes, or not even one line.
    """
    with open_input(path) as file:
        header = _Lines(file, Scan()).header
    if not header:
        raise EmptyFileError(
            "the MPS file is empty", path=path, hint="download the MPS output again"
        )
    return header


# --- rows ------------------------------------------------------------------------------------


def scan(path: Path, layout: Layout) -> Scan:
    """Read the times, world frames and vital columns of a table, and nothing else."""
    found = Scan()
    before: NDArray[np.int64] = np.zeros(0, np.int64)
    time = [f.column for f in layout.of("time")]
    world = [f.column for f in layout.of("text") if f.column == WORLD]
    for batch in _batches(path, layout, (*time, *world, *layout.vital), found):
        found.rows += batch.num_rows
        found.worlds.update(*(batch.column(name).dictionary.to_pylist() for name in world))
        _judge_vital(found, batch, layout.vital)
        if time:
            times = _integers(batch.column(time[0])) * NS_PER_US
            _judge_times(found, np.concatenate([before[-1:], times]), times)
            before = times
    return found


def _judge_times(found: Scan, chained: NDArray[np.int64], times: NDArray[np.int64]) -> None:
    if not len(times):
        return
    first, last = int(times.min()), int(times.max())
    found.first_ns = first if found.first_ns is None else min(found.first_ns, first)
    found.last_ns = last if found.last_ns is None else max(found.last_ns, last)
    steps = np.diff(chained)
    found.backwards += int((steps < 0).sum())
    found.worst_ns = max(found.worst_ns, -int(steps.min(initial=0)))


def _judge_vital(found: Scan, batch: Any, vital: tuple[str, ...]) -> None:
    columns = [(name, _floats(batch.column(name))) for name in vital]
    if columns:
        found.empty += int(np.any([~np.isfinite(c) for _, c in columns], axis=0).sum())
    strange = [
        ~((c == -1) | ((c >= 0) & (c <= 1))) & np.isfinite(c)
        for name, c in columns
        if name.endswith("_tracking_confidence")
    ]
    if strange:
        found.implausible += int(np.any(strange, axis=0).sum())


def read_table(path: Path, layout: Layout, count: int, dtype: str) -> Table:
    """Read all columns of a table of which `scan` has counted the rows.

    Memory is that of the result and of a few blocks.

    Raises
    ------
    CorruptFileError
        A value is no number, or the file changed since it was scanned.
    """
    numbers, texts = layout.of("value"), layout.of("text")
    table = Table(
        np.zeros(count, np.int64),
        np.empty((count, len(numbers)), dtype),
        {f.name: np.empty(count, np.int64) for f in layout.of("integer")},
    )
    parts: dict[str, list[NDArray[np.bytes_]]] = {f.name: [] for f in texts}
    done = 0
    for batch in _batches(path, layout, tuple(f.column for f in layout.fields), Scan()):
        here = slice(done, done := done + batch.num_rows)
        if done > count:
            break
        _fill(table, layout, batch, here)
        for f in texts:
            parts[f.name].append(_texts(batch.column(f.column)))
    if done != count:
        raise CorruptFileError("the MPS file changed while in use", path=path, hint=CHANGED)
    empty = np.zeros(0, "S1")
    table.extra.update({name: np.concatenate([empty, *p]) for name, p in parts.items()})
    return table


def _fill(table: Table, layout: Layout, batch: Any, rows: slice) -> None:
    for f in layout.of("time"):
        table.times_ns[rows] = _integers(batch.column(f.column)) * NS_PER_US
    for f in layout.of("integer"):
        table.extra[f.name][rows] = _integers(batch.column(f.column))
    for k, f in enumerate(layout.of("value")):
        table.values[rows, k] = _floats(batch.column(f.column))


def _batches(path: Path, layout: Layout, columns: tuple[str, ...], found: Scan) -> Iterator[Any]:
    """Yield record batches of the rows that belong to the layout, noting those that do not."""
    import pyarrow as pa

    flags = tuple(f.column for f in layout.of("flag"))
    with open_input(path) as file:
        lines = _Lines(file, found)
        if lines.header != layout.header:
            raise CorruptFileError("the MPS file changed while in use", path=path, hint=CHANGED)
        if lines.at_end():
            return
        try:
            for batch in _reader(lines, layout, tuple({*columns, *flags}), found):
                yield _belonging(batch, layout, flags, found)
        except pa.ArrowInvalid as error:
            raise damaged_value(path, str(error)) from error


def damaged_value(path: Path, what: str) -> SynoramaError:
    """Return the error for a value that cannot be read."""
    return CorruptFileError(
        f"a value cannot be read: {what}", path=path, hint="download the MPS output again"
    )


def _reader(lines: _Lines, layout: Layout, columns: tuple[str, ...], found: Scan) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    def leave_out(_row: Any) -> str:
        found.malformed += 1
        return "skip"

    types = {
        "time": pa.int64(),
        "integer": pa.int64(),
        "value": pa.float64(),
        "flag": pa.float64(),
        "text": pa.dictionary(pa.int32(), pa.string()),
    }
    return csv.open_csv(
        lines,
        read_options=csv.ReadOptions(
            column_names=layout.header, block_size=BLOCK, use_threads=False
        ),
        parse_options=csv.ParseOptions(quote_char=False, invalid_row_handler=leave_out),
        convert_options=csv.ConvertOptions(
            include_columns=list(columns),
            column_types={f.column: types[f.role] for f in layout.fields},
        ),
    )


def _belonging(batch: Any, layout: Layout, flags: tuple[str, ...], found: Scan) -> Any:
    from pyarrow import compute

    for f in layout.of("time"):
        if missing := batch.column(f.column).null_count:
            found.timeless += missing
            batch = batch.filter(compute.is_valid(batch.column(f.column)))
    for flag in flags:
        batch = batch.filter(compute.greater(batch.column(flag), 0))
    return batch


def _integers(column: Any) -> NDArray[np.int64]:
    """Return integers, -1 (the vendor's "not known") where the file has none."""
    numbers: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False)
    return numbers


def _floats(column: Any) -> NDArray[np.float64]:
    """Return numbers, NaN where the file has none."""
    numbers: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _texts(column: Any) -> NDArray[np.bytes_]:
    """Return texts as UTF-8 bytes, empty where the file has none."""
    words = [(word or "").encode() for word in column.dictionary.to_pylist()]
    known = np.array([*words, b""], "S")
    chosen: NDArray[np.bytes_] = known[
        column.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    ]
    return chosen
