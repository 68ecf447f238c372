"""What several verbs do alike: check, seal, and print sessions and their clocks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from synorama import console
from synorama.errors import OutputExistsError, OutputNotWritableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synorama.pipeline import Outcome, Workspace
    from synorama.records import SyncResult

__all__ = ["EXIT_REFUSED", "workspace"]


EXIT_REFUSED = 5


def workspace(
    folder: Path, output: Path | None, offset: list[str] | None, rig: Path | None, location: bool
) -> Workspace:
    """Return the session folder at work, with what the operator asked for."""
    from synorama.pipeline import Options, Workspace

    options = Options(include_location=location, offsets_s=_offsets(offset or []), rig=rig)
    return Workspace(folder, options, output)


def _offsets(given: list[str]) -> dict[str, float]:
    offsets = {}
    for text in given:
        name, _, seconds = text.partition("=")
        try:
            offsets[name] = float(seconds)
        except ValueError as error:
            raise UsageError(
                f"'--offset {text}' is not RECORDING=SECONDS", hint="like --offset webcam-1=12.5"
            ) from error
    return offsets


def wants_progress(context: typer.Context, no_progress: bool) -> bool:
    return not (no_progress or context.obj["quiet"])


def session_file(path: Path) -> Path:
    return path / "session.h5" if path.is_dir() else path


def check_free(output: Path, hint: str) -> None:
    """Refuse an output before the work that leads to it."""
    if os.path.lexists(output):
        raise OutputExistsError("the output exists already", path=output, hint=hint)
    if not output.absolute().parent.is_dir():
        raise OutputNotWritableError(
            "there is no such folder", path=output.parent, hint="make it first, or name another"
        )


def print_either(facts: dict[str, Any], line: str, as_json: bool) -> None:
    if as_json:
        console.print_json(facts)
    else:
        console.print_lines(line)


def stage_facts(run: Any) -> dict[str, Any]:
    facts = {"name": run.name, "state": run.state, "seconds": run.seconds}
    return facts | ({"reason": run.reason} if run.reason else {})


def stage_text(run: Any) -> str:
    """Return what happened to a stage as a person reads it."""
    if run.state == "done":
        return f"done ({run.seconds:.1f} s)"
    return f"{run.state}: {run.reason}" if run.reason else str(run.state)


def print_plan(work: Workspace, as_json: bool) -> None:
    from synorama.pipeline import check_request, status

    check_request(work)
    runs = status(work)
    names = [found.id for found in work.discovery.found]
    if as_json:
        console.print_json({"recordings": names, "stages": [stage_facts(run) for run in runs]})
        return
    console.print_lines("recordings: " + ", ".join(names))
    console.print_table(["stage", "state"], [[run.name, stage_text(run)] for run in runs])


def seal_into(
    session: Path, output: Path, overwrite: bool, progress: console.Report
) -> dict[str, Any]:
    from synorama.session import seal

    report = seal(
        session,
        output,
        overwrite=overwrite,
        progress=lambda done, total: progress("seal", done, total),
    )
    return {"sealed": str(output), "bytes": report.bytes, "warnings": list(report.warnings)}


def report_outcome(
    context: typer.Context, outcome: Outcome, release: dict[str, Any] | None, as_json: bool
) -> None:
    from synorama.inspection import problem_texts
    from synorama.session.places import object_facts, place_facts

    sync_facts = _sync_facts(outcome) if outcome.sync else None
    if as_json:
        stages = [stage_facts(run) for run in outcome.stages]
        document = {
            "session": str(outcome.session),
            "stages": stages,
            "sync": sync_facts,
            "geometry": place_facts(outcome.geometry) if outcome.geometry else None,
            "objects": [object_facts(one) for one in outcome.objects],
            "problems": {name: problem_texts(found) for name, found in outcome.problems.items()},
        }
        console.print_json(document | (release or {}))
    else:
        _print_outcome(context, outcome, release)
    if outcome.sync and outcome.sync.unsynced:
        raise typer.Exit(EXIT_REFUSED)


def _sync_facts(outcome: Outcome) -> dict[str, Any]:
    result = outcome.sync
    assert result is not None  # asked by the caller
    return {
        "reference": result.reference,
        "clocks": [
            console.clock_facts(c, outcome.starts_ns.get(n)) for n, c in result.clocks.items()
        ],
        "unsynced": dict(result.unsynced),
        "coarse": [
            console.clock_facts(c, outcome.starts_ns.get(n)) for n, c in result.coarse.items()
        ],
        "warnings": list(result.warnings),
    }


def _print_outcome(
    context: typer.Context, outcome: Outcome, release: dict[str, Any] | None
) -> None:
    from synorama.inspection import problem_texts

    if outcome.sync:
        _print_clocks(context, outcome.sync, outcome)
    _print_places(outcome)
    for name, found in outcome.problems.items():
        for text in problem_texts(p for p in found if p.severe):
            console.warn(f"{name}: {text}")
    for run in outcome.stages:
        console.print_lines(f"{run.name}: {stage_text(run)}")
    console.print_lines(f"session: {outcome.session}")
    if release:
        print_release(release)


def _print_places(outcome: Outcome) -> None:
    from synorama.session.places import object_facts, place_facts

    if outcome.geometry:
        print_places(place_facts(outcome.geometry)["places"])
    print_objects([object_facts(one) for one in outcome.objects])


def print_places(places: Sequence[dict[str, Any]]) -> None:
    if places:
        head = ["place of", "kind", "status", "1 sigma", ""]
        console.print_table(head, console.place_rows(places))


def print_objects(objects: Sequence[dict[str, Any]]) -> None:
    if objects:
        console.print_table(["object", "size", "surface", "place"], console.object_rows(objects))


def print_release(release: dict[str, Any]) -> None:
    for text in release["warnings"]:
        console.warn(text)
    console.print_lines(f"sealed: {release['sealed']} ({console.size_text(release['bytes'])})")


def _print_clocks(context: typer.Context, result: SyncResult, outcome: Outcome) -> None:
    head = ["recording", "offset_s", "drift_ppm", "95 % within", "belongs", "by"]
    console.print_table(head, console.sync_rows(result, outcome.starts_ns))
    for name, why in result.unsynced.items():
        console.print_lines(f"{name}: not placed: {why}")
    if not context.obj["quiet"]:
        for text in result.warnings:
            console.warn(text)


def print_summary(summary: dict[str, Any]) -> None:
    state = "sealed" if summary["sealed"] else "working file, media linked"
    verdict = "verified" if summary["verified"] else "not verified by a person"
    size = console.size_text(summary["bytes"])
    console.print_lines(
        f"session {summary['session_id']} ({state}, {size}, {verdict})",
        f"clock: that of {summary['clock']}",
        "",
    )
    for recording in summary["recordings"]:
        print_recording(recording | {"clock": _clock_text(recording)})
    if summary["geometry"] and summary["geometry"]["places"]:
        console.print_lines(f"places in the world of {summary['geometry']['world']}")
        print_places(summary["geometry"]["places"])
    print_objects(summary["objects"])
    console.print_lines(*(f"! {text}" for text in summary["warnings"]))


def _clock_text(recording: dict[str, Any]) -> str:
    clock = recording["clock"]
    if clock is None:
        return f"not placed: {recording['unsynced_because']}"
    views = [t.get("picture_interval95_ms") for t in recording["tracks"]]
    widest = max((v for v in views if v is not None), default=None)
    pictures = f", its pictures within {console.interval_text(widest)}" if widest else ""
    within = console.interval_text(clock["interval95_ms"])
    return f"by {clock['method']}, within {within}{pictures}"


def print_recording(facts: dict[str, Any]) -> None:
    size = console.size_text(sum(f["bytes"] for f in facts["files"]))
    names = ", ".join(f["name"] for f in facts["files"])
    title = f"{facts['id']}: {facts['model'] or facts['device']}, clock {facts['clock']}"
    console.print_lines(title, f"  {names} ({size})")
    rows = [_track_row(track) for track in facts["tracks"]]
    if rows:
        head = ["  track", "kind", "codec", "count", "from s", "to s", "rate Hz", "form"]
        console.print_table(head, rows)
    console.print_lines(*(f"  ! {text}" for text in facts["problems"]), "")


def _track_row(track: dict[str, Any]) -> list[str]:
    form = f"{track['width']}x{track['height']}" if track["width"] else ""
    form = form or (f"{track['channels']} ch" if track["channels"] else "")
    times = ["-" if t is None else f"{t / 1e9:.3f}" for t in (track["first_ns"], track["last_ns"])]
    rate = "-" if track["rate_hz"] is None else f"{track['rate_hz']:g}"
    head = [f"  {track['name']}", track["kind"], track["codec"] or "-", str(track["count"])]
    return [*head, *times, rate, form]
