"""What a person sees in a terminal: tables, progress, errors; and the one JSON document."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from synorama.errors import SynoramaError

if TYPE_CHECKING:
    from synorama.alignment import Alignment
    from synorama.records import RecordingClock, SyncResult

__all__ = [
    "alignment_rows",
    "clock_facts",
    "error_document",
    "interval_text",
    "object_rows",
    "place_rows",
    "ppm_text",
    "print_error",
    "print_json",
    "print_lines",
    "print_table",
    "progress_bar",
    "seconds_text",
    "size_text",
    "sync_rows",
    "warn",
]

Report = Callable[[str, int, int], None]
UNKNOWN_DRIFT_PPM = 60.0  # known no better than this, a drift says nothing: devices stay within it


def print_json(document: Mapping[str, Any]) -> None:
    """Print the one JSON document of a command on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines on stdout as they are."""
    sys.stdout.write("".join(line + "\n" for line in lines))


def warn(text: str) -> None:
    """Print a warning on stderr."""
    sys.stderr.write(f"warning: {text}\n")


def print_error(error: SynoramaError) -> None:
    """Print a known error on stderr: what is wrong, then what to do."""
    sys.stderr.write(f"error: {error}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {error.hint}\n")


def error_document(error: SynoramaError) -> dict[str, Any]:
    """Return a known error as the JSON document that a machine reads in place of the result."""
    return {
        "error": {
            "type": type(error).__name__,
            "message": error.message,
            "path": error.path,
            "hint": error.hint,
        }
    }


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table: columns as wide as their content, so that it pastes anywhere."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    for row in (head, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_lines(line.rstrip())


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Report]:
    """Show on stderr how far each stage is; nothing where nobody looks."""
    if not (shown and sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield report


# --- numbers in words ------------------------------------------------------------------------


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def seconds_text(seconds: float, within_ms: float | None) -> str:
    """Return signed seconds with no more digits than the interval supports."""
    if within_ms is None:
        return f"{seconds:+.0f}"
    digits = 9 if within_ms <= 0 else math.ceil(-math.log10(within_ms / 1000) - 1e-9)
    digits = min(max(digits, 0), 9)
    return f"{round(seconds, digits) + 0.0:+.{digits}f}"


def ppm_text(ppm: float, within_ms: float | None, span_s: float) -> str:
    """Return a rate with no more digits than an interval, at both ends of the span, supports."""
    return _rate_text(ppm, 1e3 * (within_ms or 0.0) / max(span_s / 2, 1.0))


def _rate_text(ppm: float, within_ppm: float) -> str:
    digits = min(math.ceil(-math.log10(max(within_ppm, 0.01)) - 1e-9), 2)
    return f"{round(ppm, digits) + 0.0:+.{max(digits, 0)}f}"


def interval_text(within_ms: float | None) -> str:
    """Return the half width of a 95 % interval, two digits; a dash where nobody measured it."""
    return "-" if within_ms is None else f"{float(f'{within_ms:.2g}'):g} ms"


def _probability_text(p: float | None) -> str:
    if p is None:
        return "-"
    return ">0.99" if p > 0.99 else f"{p:.2f}"


def clock_facts(clock: RecordingClock, start_ns: int | None) -> dict[str, Any]:
    """Return a recording's clock as JSON-able values; the offset holds at its first time.

    ``offset_s`` is session time minus device time.
    """
    first = clock.maps[0]
    at = first.range_ns[0] if start_ns is None else start_ns
    offset_ns = int(first.apply(max(at, first.range_ns[0]))) - max(at, first.range_ns[0])
    longest = max(clock.maps, key=lambda m: m.range_ns[1] - m.range_ns[0])
    middle = sum(longest.range_ns) // 2
    return {
        "recording": clock.recording,
        "offset_s": offset_ns / 1e9,
        "drift_ppm": round(longest.drift_ppm(middle), 3),
        "interval95_ms": clock.interval95_ms,
        "p_match": clock.p_match,
        "method": clock.method,
        "basis": clock.basis,
        "segments": len(clock.maps),
    }


def sync_rows(result: SyncResult, starts_ns: Mapping[str, int | None]) -> list[list[str]]:
    """Return the rows of the table of clocks, the reference first."""
    names = sorted(result.clocks, key=lambda name: (name != result.reference, name))
    rows = []
    for name in names:
        facts = clock_facts(result.clocks[name], starts_ns.get(name))
        is_reference = name == result.reference
        rows.append(
            [
                name,
                "0" if is_reference else seconds_text(facts["offset_s"], facts["interval95_ms"]),
                "0" if is_reference else _drift_text(result.clocks[name]),
                "-" if is_reference else interval_text(facts["interval95_ms"]),
                _probability_text(facts["p_match"]),
                facts["basis"] or facts["method"],
            ]
        )
    return rows


def _drift_text(clock: RecordingClock) -> str:
    """Return a clock's drift as far as it is known; a dash where any device's would do.

    A fit to sound is sharp about the sound: who walked while talking bent the line, by up to the
    interval at either end.
    """
    longest = max(clock.maps, key=lambda m: m.range_ns[1] - m.range_ns[0])
    first, last = longest.range_ns
    within_ppm = 1.96 * longest.rate_sigma_ppm
    if clock.method == "sound":
        within_ppm += 1e3 * (clock.interval95_ms or 0.0) / max((last - first) / 2e9, 1.0)
    if within_ppm > UNKNOWN_DRIFT_PPM:
        return "-"
    return _rate_text(longest.drift_ppm((first + last) // 2), within_ppm)


def alignment_rows(alignment: Alignment) -> list[list[str]]:
    """Return the rows of the table of aligned files, the reference first."""
    rows = [[alignment.reference, "0", "0", "-", "reference"]]
    for result in alignment.results:
        if result.line is None:
            rows.append([result.file, "-", "-", "-", f"not placed: {result.reason}"])
            continue
        offset_s, drift_ppm = result.line
        within = result.interval95_ms
        drift = ppm_text(drift_ppm, within, result.span_s) if result.knows_drift else "-"
        jumps = "".join(f"; {j['by_s']:+.3f} s at {j['at_s']:.0f} s" for j in result.jumps())
        text = result.reason + jumps
        rows.append(
            [result.file, seconds_text(offset_s, within), drift, interval_text(within), text]
        )
    return rows


def place_rows(places: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of the table of places: scans, other glasses, cameras."""
    return [
        [p["name"], p["of"], p["status"], _place_sigma(p), _place_basis(p) or p["reason"]]
        for p in places
    ]


def _millimetres(length_m: float) -> str:
    """Return a length by two figures, never as a power of ten."""
    return f"{float(f'{1e3 * length_m:.2g}'):g} mm"


def _place_sigma(place: Mapping[str, Any]) -> str:
    turn, shift = place["sigma_rotation_deg"], place["sigma_translation_m"]
    if place["T_world_source"] is None or turn is None:
        return "-"
    return f"{turn:.2g} deg" if shift is None else f"{_millimetres(shift)}, {turn:.2g} deg"


def _place_basis(place: Mapping[str, Any]) -> str:
    """Return on what an accepted place stands; where it is not accepted its reason says more."""
    if place["status"] != "accepted":
        return ""
    if place["of"] == "camera":
        return f"{place['frames']} pictures, {place['method']}"
    return f"{100 * place['overlap']:.0f} % meet, {place['method']}"


def object_rows(objects: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of the table of scanned objects."""
    return [_object_row(one) for one in objects]


def _object_row(one: Mapping[str, Any]) -> list[str]:
    if "refused" in one:
        return [one["name"], "-", "-", f"not read: {one['refused']}"]
    size = " x ".join(f"{100 * side:.1f}" for side in one["size_m"])
    looks = [
        "textured" if one["textured"] else "plain",
        "closed" if one["watertight"] else "not closed",
    ]
    return [one["name"], f"{size} cm", ", ".join(looks), _object_place(one)]


def _object_place(one: Mapping[str, Any]) -> str:
    if one["placed_by"] is None:
        return "not placed"
    if one["sigma_m"] is None:
        return f"by a {one['placed_by']}, {one['placed_how']}"
    return f"by {one['placed_by']} to the scan, {_millimetres(one['sigma_m'])} at 1 sigma"
