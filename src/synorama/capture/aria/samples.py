"""Sample tracks of Aria recordings: read lazily, in bulk, as their `Table` says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.aria.tables import RECORD_TIME, Floats, Table
from synorama.capture.container.vrs import VrsFile
from synorama.records import Problem, Samples, SampleTrack
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["count_words", "find_gap", "goes_back", "sample_track"]

GAP_STEPS = 5  # a pause of so many usual steps is called a gap ...
GAP_LEAST_NS = 50_000_000  # ... if it is also longer than this
_BATCH = 1 << 14  # rows that are held as float64 at once


def sample_track(
    vrs: VrsFile, stream: str, name: str, table: Table, nominal_hz: float | None
) -> tuple[SampleTrack, tuple[Problem, ...]]:
    """Return the track of a stream of samples, and what is wrong with its times.

    Parameters
    ----------
    vrs
        The recording.
    stream
        Its id in the recording, ``1202-1``.
    name
        The track's name.
    table
        What the stream's fields mean.
    nominal_hz
        The rate that the stream was configured to have, None if it says none.
    """
    times = _times(vrs, stream, table)
    track = SampleTrack(
        name=name,
        sample_kind=table.kind,
        columns=table.columns,
        count=len(times),
        first_ns=int(times.min()) if len(times) else None,
        last_ns=int(times.max()) if len(times) else None,
        read=partial(_read, vrs, stream, table),
        frame=table.frame or name,
        rate_hz=nominal_hz,
        source=stream,
        location=table.location,
    )
    found = (goes_back(times, name), find_gap(times, name) if table.regular else None)
    return track, tuple(problem for problem in found if problem)


def _times(vrs: VrsFile, stream: str, table: Table) -> Int64:
    records = vrs.select(stream)
    if table.time == RECORD_TIME:
        return _record_times(records)
    return vrs.columns(stream, records, [table.time])[table.time]


def _record_times(records: NDArray[np.void]) -> Int64:
    times: Int64 = np.rint(records["time_s"] * NS_PER_S).astype(np.int64)
    return times


def _read(vrs: VrsFile, stream: str, table: Table) -> Samples:
    records = vrs.select(stream)
    fields = vrs.columns(stream, records, table.fields)
    times = fields[table.time] if table.time != RECORD_TIME else _record_times(records)
    extra: dict[str, NDArray[Any]] = {
        name: _integers(fields[field])
        for name, field in (table.integers or {}).items()
        if field in fields
    }
    for name, field in (table.texts or {}).items():
        extra[name] = vrs.texts(stream, records, field)
    return Samples(times, _values(table, fields, len(records)), extra)


def _values(table: Table, fields: dict[str, NDArray[Any]], n: int) -> NDArray[np.floating[Any]]:
    """Return all columns of numbers, as float32 where that loses nothing."""
    narrow = np.empty((n, len(table.columns)), np.float32)
    for start in range(0, n, _BATCH):
        stop = min(start + _BATCH, n)
        wide = _wide(table, fields, start, stop)
        narrow[start:stop] = wide
        if not np.array_equal(narrow[start:stop].astype(np.float64), wide, equal_nan=True):
            return _wide(table, fields, 0, n)
    return narrow


def _wide(table: Table, fields: dict[str, NDArray[Any]], start: int, stop: int) -> Float64:
    """Return some rows of all columns of numbers."""
    fields = {name: column[start:stop] for name, column in fields.items()}
    n = stop - start
    out = np.full((n, len(table.columns)), np.nan)
    at = 0
    for floats in table.values:
        width = len(floats.columns)
        if floats.field in fields and fields[floats.field][:1].size in (0, width):
            out[:, at : at + width] = _floats(floats, fields, n)
        at += width
    return out


def _floats(floats: Floats, fields: dict[str, NDArray[Any]], n: int) -> NDArray[Any]:
    stored = fields[floats.field].reshape(n, len(floats.columns))
    values = stored.astype(np.float64)
    if floats.scale != 1.0:  # the vendor scales in the stored precision
        values = (stored * stored.dtype.type(floats.scale)).astype(np.float64)
    if floats.valid in fields:
        values[~fields[floats.valid].astype(bool)] = np.nan
    return values


def _integers(stored: NDArray[Any]) -> NDArray[Any]:
    return stored.astype(np.uint8 if stored.dtype.itemsize == 1 else np.int64)


# --- what is wrong with times ----------------------------------------------------------------


def goes_back(times: Int64, track: str) -> Problem | None:
    """Tell whether times go back, and where first."""
    back = np.flatnonzero(np.diff(times) < 0)
    if not len(back):
        return None
    return Problem(
        "time_goes_back",
        f"{track}: the time goes back {count_words(len(back), 'time')}, first by "
        f"{_milliseconds(times[back[0]] - times[back[0] + 1])} after row {int(back[0])}",
        track,
    )


def find_gap(times: Int64, track: str) -> Problem | None:
    """Tell whether there are pauses in what should be regular, and the longest."""
    steps = np.diff(times)
    if len(steps) < 3:
        return None
    gaps = np.flatnonzero(steps > max(GAP_STEPS * float(np.median(steps)), GAP_LEAST_NS))
    if not len(gaps):
        return None
    worst = gaps[int(steps[gaps].argmax())]
    return Problem(
        "gap",
        f"{track}: {count_words(len(gaps), 'gap')}, the longest {_milliseconds(steps[worst])} at "
        f"{(times[worst] - times[0]) / NS_PER_S:.3f} s after the start",
        track,
        severe=True,
    )


def count_words(n: int, thing: str) -> str:
    """Write ``1 gap`` or ``3 gaps``."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def _milliseconds(ns: Any) -> str:
    return f"{int(ns) / 1e6:.3f} ms"
