"""Clocks and the evidence behind them, to HDF5 groups and back, without loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from synorama.records import LoopClosure, PairEvidence, RecordingClock, SyncResult
from synorama.session.schema import SEGMENT_DTYPE
from synorama.session.storage import (
    attribute,
    in_order,
    read_json,
    read_table,
    set_attributes,
    set_position,
    write_json,
    write_table,
)
from synorama.timebase import ClockMap

__all__ = [
    "clock_digest",
    "read_clock",
    "read_coarse",
    "read_pairs",
    "read_result",
    "write_clock",
    "write_evidence",
    "write_result",
]


# --- clock maps -------------------------------------------------------------------------------


def _write_maps(group: Any, maps: Sequence[ClockMap]) -> None:
    """Write all knots as one table and, beside it, one row a map."""
    knots = [clock.knots for clock in maps] or [np.zeros((0, 2), np.int64)]
    write_table(group, "knots", np.concatenate(knots))
    write_table(group, "segments", _segments(maps))
    set_attributes(group, {"segments": len(maps)})
    if maps:
        set_attributes(group, {"target": maps[0].target, "source": maps[0].source})


def _segments(maps: Sequence[ClockMap]) -> np.ndarray[Any, np.dtype[np.void]]:
    rows = np.zeros(len(maps), SEGMENT_DTYPE)
    first = 0
    for k, clock in enumerate(maps):
        limit = -1 if clock.limit_ns is None else clock.limit_ns
        quality = (clock.rate_before, clock.rate_after, clock.sigma_ns, clock.residual_rms_ns)
        rows[k] = (first, len(clock.knots), *quality, *clock.range_ns, clock.rate_sigma_ppm, limit)
        first += len(clock.knots)
    return rows


def _read_maps(group: Any) -> tuple[ClockMap, ...]:
    knots = read_table(group, "knots")
    target, source = attribute(group, "target"), attribute(group, "source")
    return tuple(_map(target, source, knots, row) for row in read_table(group, "segments"))


def _map(target: str, source: str, knots: Any, row: Any) -> ClockMap:
    first = int(row["first_knot"])
    return ClockMap(
        target=target,
        source=source,
        knots=knots[first : first + int(row["knots"])],
        rate_before=float(row["rate_before"]),
        rate_after=float(row["rate_after"]),
        sigma_ns=float(row["sigma_ns"]),
        residual_rms_ns=float(row["residual_rms_ns"]),
        valid_ns=(int(row["valid_first_ns"]), int(row["valid_last_ns"])),
        rate_sigma_ppm=float(row["rate_sigma_ppm"]),
        limit_ns=None if row["limit_ns"] < 0 else int(row["limit_ns"]),
    )


# --- a recording's clock ----------------------------------------------------------------------


def write_clock(group: Any, clock: RecordingClock) -> None:
    """Write a recording's clock into an empty group."""
    _write_maps(group, clock.maps)
    set_attributes(
        group,
        {
            "method": clock.method,
            "interval95_ms": clock.interval95_ms,
            "p_match": clock.p_match,
            "residual_rms_ns": float(clock.residual_rms_ns),
            "basis": clock.basis,
            "digest": clock_digest(clock),
        },
    )


def read_clock(group: Any, recording: str) -> RecordingClock:
    """Read what `write_clock` wrote for this recording."""
    return RecordingClock(
        recording=recording,
        maps=_read_maps(group),
        method=attribute(group, "method"),
        interval95_ms=attribute(group, "interval95_ms"),
        p_match=attribute(group, "p_match"),
        residual_rms_ns=attribute(group, "residual_rms_ns"),
        basis=attribute(group, "basis"),
    )


def clock_digest(clock: RecordingClock) -> str:
    """Return the hex blake3 of all that decides what the clock makes of a time."""
    import blake3

    digest = blake3.blake3(_segments(clock.maps).tobytes())
    for one in clock.maps:
        digest.update(np.ascontiguousarray(one.knots, "<i8").tobytes())
    return str(digest.hexdigest())


# --- the evidence -----------------------------------------------------------------------------

_OPTIONAL = ("drift_ppm", "sigma_ns", "coarse_z", "likeness", "p_match")


def _write_pairs(group: Any, pairs: Iterable[PairEvidence]) -> None:
    """Write the pairs' evidence as numbered groups."""
    for k, pair in enumerate(pairs):
        inside = group.create_group(str(k))
        set_position(inside, k)
        _write_pair(inside, pair)


def _write_pair(group: Any, pair: PairEvidence) -> None:
    optional = {name: getattr(pair, name) for name in _OPTIONAL}
    set_attributes(
        group,
        {
            "reference": pair.reference,
            "other": pair.other,
            "accepted": pair.accepted,
            "reason": pair.reason,
            "score": float(pair.score),
            "score_needed": float(pair.score_needed),
            "runner_up": float(pair.runner_up),
            "windows": pair.windows,
            "ambiguous": pair.ambiguous,
            "offset_ns": pair.offset_ns,
            **{name: None if value is None else float(value) for name, value in optional.items()},
        },
    )
    _write_maps(group.create_group("maps"), pair.maps)
    write_table(group, "window_times_ns", pair.window_times_ns)
    write_table(group, "residuals_ns", pair.residuals_ns)


def read_pairs(group: Any) -> tuple[PairEvidence, ...]:
    """Read the pairs' evidence."""
    return tuple(_read_pair(inside) for _, inside in in_order(group))


def _read_pair(group: Any) -> PairEvidence:
    plain = ("reference", "other", "reason", "score", "score_needed", "runner_up", "windows")
    return PairEvidence(
        accepted=bool(attribute(group, "accepted")),
        ambiguous=bool(attribute(group, "ambiguous")),
        maps=_read_maps(group["maps"]),
        window_times_ns=read_table(group, "window_times_ns"),
        residuals_ns=read_table(group, "residuals_ns"),
        **{name: attribute(group, name) for name in (*plain, "offset_ns", *_OPTIONAL)},
    )


def write_result(group: Any, result: SyncResult) -> None:
    """Write a sync result into an empty group: the evidence, and the clocks."""
    write_evidence(group, result)
    clocks = group.create_group("clocks")
    for k, (name, clock) in enumerate(result.clocks.items()):
        inside = clocks.create_group(name)
        set_position(inside, k)
        write_clock(inside, clock)


def _write_coarse(group: Any, coarse: Mapping[str, RecordingClock]) -> None:
    """Write clocks that are good to seconds, by recording, where there are any."""
    for name, clock in coarse.items():
        write_clock(group.require_group("coarse").create_group(name), clock)


def read_coarse(group: Any) -> dict[str, RecordingClock]:
    """Read the clocks that are good to seconds."""
    found = group.get("coarse", {})
    return {name: read_clock(found[name], name) for name in found}


def write_evidence(group: Any, result: SyncResult) -> None:
    """Write all of a sync result but the clocks: pairs, what could not be placed and why."""
    set_attributes(group, {"reference": result.reference})
    write_json(group, "unsynced", dict(result.unsynced))
    write_json(group, "warnings", list(result.warnings))
    write_json(group, "loops", [[list(loop.recordings), loop.closure_ns] for loop in result.loops])
    _write_pairs(group.create_group("pairs"), result.pairs)
    _write_coarse(group, result.coarse)


def read_result(group: Any) -> SyncResult:
    """Read what `write_result` wrote."""
    return SyncResult(
        reference=attribute(group, "reference"),
        clocks={name: read_clock(inside, name) for name, inside in in_order(group["clocks"])},
        pairs=read_pairs(group["pairs"]),
        unsynced=read_json(group, "unsynced"),
        warnings=tuple(read_json(group, "warnings")),
        loops=tuple(LoopClosure(tuple(names), off) for names, off in read_json(group, "loops")),
        coarse=read_coarse(group),
    )
