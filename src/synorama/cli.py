"""The command line: parse, call, print. Known errors are rendered here and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from synorama import __version__, console
from synorama.errors import (
    InputError,
    MissingDependencyError,
    OutputExistsError,
    OutputNotWritableError,
    SessionFileError,
    SynoramaError,
    UsageError,
)

if TYPE_CHECKING:
    from synorama.alignment import Alignment
    from synorama.capture import Discovery
    from synorama.pipeline import Outcome, Workspace
    from synorama.records import Recording, SyncResult

__all__ = ["app", "main"]

EXIT_REFUSED = 5
INTERRUPTED = 130

app = typer.Typer(
    help="Many devices, one session, one clock, one trustworthy file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")]
# What may not be read is told by the readers, as every other fault of a file is.
Folder = Annotated[Path, typer.Argument(help="The session folder.", readable=False)]
SessionFile = Annotated[
    Path, typer.Argument(help="A session file, or its session folder.", readable=False)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Session file; FOLDER/session.h5 by default.", readable=False
    ),
]
RigFile = Annotated[Path | None, typer.Option("--rig", help="The lab's rig.toml.", readable=False)]
Offsets = Annotated[
    list[str] | None,
    typer.Option("--offset", help="RECORDING=SECONDS, session minus device time, set by hand."),
]
Location = Annotated[
    bool, typer.Option("--include-location", help="Keep GPS, WiFi and Bluetooth data.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print_lines(f"synorama {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print version."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show where an unexpected fault happened.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no warnings.")] = False,
) -> None:
    context.obj = {"verbose": verbose, "quiet": quiet}


# --- looking ---------------------------------------------------------------------------------


@app.command()
def inspect(
    context: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(help="Session folders, recordings, sessions.", readable=False)
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Save what was found as FOLDER/session.toml.")
    ] = False,
    field: Annotated[
        bool, typer.Option("--field", help="The check before the participants leave.")
    ] = False,
    digests: Annotated[
        bool, typer.Option("--hash", help="Read every byte and give its blake3 digest.")
    ] = False,
    rig: RigFile = None,
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Tell what is there: devices, streams, times, and what is wrong with them."""
    from synorama.inspection import describe, field_checks

    if write:
        _check_writable(paths)
    sessions = [path for path in paths if path.suffix == ".h5" and path.is_file()]
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        recordings, failed = _open_paths([p for p in paths if p not in sessions], rig, progress)
        recordings = _with_digests(recordings, progress) if digests else recordings
    if write:
        _write_session_tomls(paths, rig)
    document: dict[str, Any] = {"recordings": [describe(r) for r in recordings]}
    document |= {"sessions": _summaries(sessions, failed)} if sessions else {}
    document["failed"] = [console.error_document(error)["error"] for error in failed]
    checks = field_checks(recordings, failed) if field else []
    if field:
        document["field"] = [{"name": c.name, "passed": c.passed, "text": c.text} for c in checks]
    if as_json:
        console.print_json(document)
    else:
        _print_inspection(document, failed)
    if failed:
        raise typer.Exit(failed[0].exit_code)
    if not all(check.passed for check in checks):
        raise typer.Exit(EXIT_REFUSED)


def _open_paths(
    paths: list[Path], rig: Path | None, progress: console.Report
) -> tuple[list[Recording], list[SynoramaError]]:
    """Open all recordings below the paths, and keep the errors of those that do not open."""
    from synorama.capture import discover, open_found, open_recording

    recordings: list[Recording] = []
    failed: list[SynoramaError] = []
    openers: list[Callable[[], Recording]] = []
    for path in paths:
        if path.is_dir():
            discovery = discover(path, rig=rig)
            failed += discovery.unread
            openers += [partial(open_found, found) for found in discovery.found]
        else:
            openers.append(partial(open_recording, path))
    for done, opener in enumerate(openers):
        progress("inspect", done, len(openers))
        try:
            recordings.append(opener())
        except (InputError, MissingDependencyError) as error:
            failed.append(error)
    return recordings, failed


def _with_digests(recordings: list[Recording], progress: console.Report) -> list[Recording]:
    from synorama.inspection import with_digests

    digested: list[Recording] = []
    for recording in recordings:
        progress("hash", len(digested), len(recordings))
        digested.append(with_digests(recording))
    return digested


def _check_writable(paths: list[Path]) -> None:
    for folder in paths:
        target = folder / "session.toml"
        if not folder.is_dir():
            raise UsageError(
                "--write needs a session folder", path=folder, hint="name the folder alone"
            )
        if target.exists():
            raise OutputExistsError(
                "there is one already, and it may hold your corrections",
                path=target,
                hint="edit it, or remove it first",
            )


def _write_session_tomls(folders: list[Path], rig: Path | None) -> None:
    from synorama.capture import discover
    from synorama.session.storage import whole_file

    for folder in folders:
        text = _session_toml(folder, discover(folder, rig=rig))
        with whole_file(folder / "session.toml", overwrite=False) as temporary:
            temporary.write_text(text, "utf-8")


def _session_toml(folder: Path, discovery: Discovery) -> str:
    from synorama.capture.config import RecordingEntry, session_toml

    entries = [
        RecordingEntry(path=_in_toml(f.path, folder), id=f.id, role=f.role) for f in discovery.found
    ]
    return session_toml(discovery.session_id, entries)


def _in_toml(path: Path, folder: Path) -> str:
    """Return the path as a text file can hold it: TOML knows UTF-8 only."""
    name = path.relative_to(folder).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "this name is no valid UTF-8, so that session.toml cannot hold it",
            path=path,
            hint="rename it, or do without session.toml",
        ) from error
    return name


def _summaries(sessions: list[Path], failed: list[SynoramaError]) -> list[dict[str, Any]]:
    from synorama.session import summarize

    summaries = []
    for path in sessions:
        try:
            summaries.append(summarize(path))
        except (InputError, SessionFileError) as error:
            failed.append(error)
    return summaries


def _print_inspection(document: dict[str, Any], failed: Sequence[SynoramaError]) -> None:
    for summary in document.get("sessions", []):
        _print_summary(summary)
    for recording in document["recordings"]:
        _print_recording(recording)
    for error in failed:
        console.print_error(error)
    for check in document.get("field", []):
        mark = "ok  " if check["passed"] else "FAIL"
        console.print_lines(f"{mark}  {check['name']}: {check['text']}")


def _print_recording(facts: dict[str, Any]) -> None:
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


@app.command()
def status(
    folder: Folder,
    output: Output = None,
    offset: Offsets = None,
    rig: RigFile = None,
    include_location: Location = False,
    as_json: Json = False,
) -> None:
    """Tell which stages of a session are up to date with these options."""
    from synorama.pipeline import status

    runs = status(_workspace(folder, output, offset, rig, include_location))
    if as_json:
        console.print_json({"stages": [_stage_facts(run) for run in runs]})
    else:
        console.print_table(["stage", "state"], [[run.name, run.state] for run in runs])


@app.command()
def show(file: SessionFile, as_json: Json = False) -> None:
    """Tell what is in a session file."""
    from synorama.session import summarize

    summary = summarize(_session_file(file))
    if as_json:
        console.print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: dict[str, Any]) -> None:
    state = "sealed" if summary["sealed"] else "working file, media linked"
    verdict = "verified" if summary["verified"] else "not verified by a person"
    size = console.size_text(summary["bytes"])
    console.print_lines(
        f"session {summary['session_id']} ({state}, {size}, {verdict})",
        f"clock: that of {summary['clock']}",
        "",
    )
    for recording in summary["recordings"]:
        _print_recording(recording | {"clock": _clock_text(recording)})
    console.print_lines(*(f"! {text}" for text in summary["warnings"]))


def _clock_text(recording: dict[str, Any]) -> str:
    clock = recording["clock"]
    if clock is None:
        return f"not placed: {recording['unsynced_because']}"
    return f"by {clock['method']}, within {console.interval_text(clock['interval95_ms'])}"


@app.command()
def validate(
    file: SessionFile,
    every_byte: Annotated[
        bool, typer.Option("--bytes", help="Read every byte against its digest.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell whether a session file is sound. Exit code 6 if it is not."""
    from synorama.session import validate

    problems = validate(_session_file(file), every_byte=every_byte)
    texts = [f"{p.track}: {p.text}" if p.track else p.text for p in problems]
    if as_json:
        console.print_json({"sound": not problems, "problems": texts})
    else:
        console.print_lines(*(f"! {text}" for text in texts))
        console.print_lines("sound" if not problems else f"{len(problems)} problems")
    if problems:
        raise typer.Exit(6)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Tell what is installed, what is missing, and how to get it."""
    from synorama.doctor import examine

    findings = examine()
    if as_json:
        console.print_json({"parts": [f.as_dict() for f in findings]})
        return
    rows = [
        ["ok" if f.present else "MISSING", f.name, f.version or "-", f.purpose] for f in findings
    ]
    console.print_table(["", "part", "version", "needed for"], rows)
    console.print_lines(*(f"to get {f.name}: {f.remedy}" for f in findings if not f.present))


# --- making ----------------------------------------------------------------------------------


@app.command()
def process(
    context: typer.Context,
    folder: Folder,
    output: Output = None,
    only: Annotated[str | None, typer.Option("--only", help="Run this stage alone.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Redo from this stage on.")] = None,
    seal_to: Annotated[
        Path | None,
        typer.Option("--seal", help="Also write the release file here.", readable=False),
    ] = None,
    offset: Offsets = None,
    rig: RigFile = None,
    include_location: Location = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Make the session file of a folder of recordings; what is up to date is not done again."""
    from synorama.pipeline import process

    work = _workspace(folder, output, offset, rig, include_location)
    if seal_to:
        _check_free(seal_to, "give another name, or remove that file first")
    if dry_run:
        _print_plan(work, as_json)
        return
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        outcome = process(work, only=only, start=start, progress=progress)
        release = _seal(outcome.session, seal_to, False, progress) if seal_to else None
    _report_outcome(context, outcome, release, as_json)


@app.command()
def sync(
    context: typer.Context,
    folder: Folder,
    output: Output = None,
    offset: Offsets = None,
    rig: RigFile = None,
    include_location: Location = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Put all clocks of a session on one, and print them."""
    from synorama.pipeline import process

    work = _workspace(folder, output, offset, rig, include_location)
    if dry_run:
        _print_plan(work, as_json)
        return
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        if _is_stale(work, "ingest"):
            process(work, only="ingest", progress=progress)
        outcome = process(work, only="sync", progress=progress)
    _report_outcome(context, outcome, None, as_json)


@app.command()
def align(
    context: typer.Context,
    reference: Annotated[
        Path, typer.Argument(help="The file whose time is the clock.", readable=False)
    ],
    others: Annotated[list[Path], typer.Argument(help="The files to place.", readable=False)],
    apart: Annotated[
        float | None,
        typer.Option(
            "--apart", help="Metres that two microphones stood apart at most; 8 by default."
        ),
    ] = None,
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Put plain sound or video files on one clock by the sound that they share."""
    from synorama.alignment import FARTHEST_M, align_files

    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        found = align_files(
            [reference, *others],
            farthest_m=FARTHEST_M if apart is None else apart,
            progress=lambda done, total: progress("align", done, total),
        )
    if as_json:
        console.print_json(found.as_dict())
    else:
        _print_alignment(context, found)
    if found.failure:
        raise typer.Exit(found.failure.exit_code)


def _print_alignment(context: typer.Context, found: Alignment) -> None:
    head = ["file", "offset_s", "drift_ppm", "95 % within", ""]
    console.print_table(head, console.alignment_rows(found))
    for result in found.results:
        if result.error:
            console.print_error(result.error)
    if not context.obj["quiet"]:
        for text in found.warnings:
            console.warn(text)


@app.command()
def seal(
    context: typer.Context,
    session: SessionFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The release file.", readable=False)
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output.")] = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Write the one self-contained release file, with all media inside and a digest of all."""
    source = _session_file(session)
    if not overwrite:
        _check_free(output, "give --overwrite, or another name")
    if dry_run:
        _print_seal_plan(source, output, as_json)
        return
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        facts = _seal(source, output, overwrite, progress)
    if as_json:
        console.print_json(facts)
    else:
        _print_release(facts)


@app.command()
def simulate(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The folder to make; with --check the session.")],
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same session.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", help="Length of the session.")] = 60.0,
    size: Annotated[str, typer.Option("--size", help="small or full pictures.")] = "small",
    room: Annotated[
        str, typer.Option("--room", help="kitchen, symmetric, corridor or open.")
    ] = "kitchen",
    plain: Annotated[
        bool, typer.Option("--plain", help="No room: one sound for all, pictures that repeat.")
    ] = False,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Sound takes the same time to all devices.")
    ] = False,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="What goes wrong, by name; repeatable.")
    ] = None,
    mps: Annotated[
        str, typer.Option("--mps", help="shared, separate, leader-only or none.")
    ] = "shared",
    scan: Annotated[str, typer.Option("--scan", help="stations, handheld or none.")] = "stations",
    barcode: Annotated[
        bool, typer.Option("--barcode/--no-barcode", help="Number every picture.")
    ] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Compare a processed session with its truth.")
    ] = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Make a session with known truth: a kitchen, two people, five devices; or check one."""
    from synorama.simulate import simulate, simulate_plan

    if check:
        _check_truth(out, as_json)
        return
    asked: dict[str, Any] = {
        "seed": seed,
        "seconds": seconds,
        "size": size,
        "room": None if plain else room,
        "aligned": aligned,
        "faults": tuple(fault or ()),
        "mps": None if mps == "none" else mps,
        "scan": None if scan == "none" else scan,
        "barcode": barcode,
    }
    simulate_plan(**asked)
    _check_free(out, "name another folder, or remove this one")
    if dry_run:
        _print_either(
            {"folder": str(out), **asked}, f"would simulate {seconds:g} s into {out}", as_json
        )
        return
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        truth = simulate(out, progress=lambda k, total: progress("simulate", k, total), **asked)
    if as_json:
        console.print_json({"folder": str(out), "truth": str(truth)})
    else:
        console.print_lines(f"simulated session: {out}", f"its truth: {truth}")


def _check_truth(session: Path, as_json: bool) -> None:
    from synorama.simulate.check import check_session

    lines = check_session(session)
    missed = sum(line.held is False for line in lines)
    if as_json:
        rows = [line.as_json() for line in lines]
        console.print_json({"session": str(session), "missed": missed, "lines": rows})
    else:
        marks = {True: "ok", False: "MISSED", None: ""}
        cells = [[line.what, line.of, line.found, line.bound, marks[line.held]] for line in lines]
        console.print_table(["what", "of", "against the truth", "promised", ""], cells)
    if missed:
        raise typer.Exit(EXIT_REFUSED)


# --- shared by the verbs ---------------------------------------------------------------------


def _workspace(
    folder: Path, output: Path | None, offset: list[str] | None, rig: Path | None, location: bool
) -> Workspace:
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


def _is_stale(work: Workspace, stage: str) -> bool:
    from synorama.pipeline import status

    return any(run.name == stage and run.state == "stale" for run in status(work))


def _wants_progress(context: typer.Context, no_progress: bool) -> bool:
    return not (no_progress or context.obj["quiet"])


def _stage_facts(run: Any) -> dict[str, Any]:
    return {"name": run.name, "state": run.state, "seconds": run.seconds}


def _session_file(path: Path) -> Path:
    return path / "session.h5" if path.is_dir() else path


def _print_either(facts: dict[str, Any], line: str, as_json: bool) -> None:
    if as_json:
        console.print_json(facts)
    else:
        console.print_lines(line)


def _print_seal_plan(source: Path, output: Path, as_json: bool) -> None:
    from synorama.session import summarize

    media = sum(file["bytes"] for one in summarize(source)["recordings"] for file in one["files"])
    line = f"would seal {source} and {console.size_text(media)} of media into {output}"
    _print_either(
        {"session": str(source), "output": str(output), "media_bytes": media}, line, as_json
    )


def _print_plan(work: Workspace, as_json: bool) -> None:
    from synorama.pipeline import check_request, status

    check_request(work)
    stages = [_stage_facts(run) for run in status(work)]
    names = [found.id for found in work.discovery.found]
    if as_json:
        console.print_json({"recordings": names, "stages": stages})
        return
    console.print_lines("recordings: " + ", ".join(names))
    console.print_table(["stage", "state"], [[s["name"], s["state"]] for s in stages])


def _check_free(output: Path, hint: str) -> None:
    """Refuse an output before the work that leads to it."""
    if os.path.lexists(output):
        raise OutputExistsError("the output exists already", path=output, hint=hint)
    if not output.absolute().parent.is_dir():
        raise OutputNotWritableError(
            "there is no such folder", path=output.parent, hint="make it first, or name another"
        )


def _seal(session: Path, output: Path, overwrite: bool, progress: console.Report) -> dict[str, Any]:
    from synorama.session import seal

    report = seal(
        session,
        output,
        overwrite=overwrite,
        progress=lambda done, total: progress("seal", done, total),
    )
    return {"sealed": str(output), "bytes": report.bytes, "warnings": list(report.warnings)}


def _report_outcome(
    context: typer.Context, outcome: Outcome, release: dict[str, Any] | None, as_json: bool
) -> None:
    from synorama.inspection import problem_texts

    sync_facts = _sync_facts(outcome) if outcome.sync else None
    if as_json:
        stages = [_stage_facts(run) for run in outcome.stages]
        document = {
            "session": str(outcome.session),
            "stages": stages,
            "sync": sync_facts,
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
        "warnings": list(result.warnings),
    }


def _print_outcome(
    context: typer.Context, outcome: Outcome, release: dict[str, Any] | None
) -> None:
    from synorama.inspection import problem_texts

    if outcome.sync:
        _print_clocks(context, outcome.sync, outcome)
    for name, found in outcome.problems.items():
        for text in problem_texts(p for p in found if p.severe):
            console.warn(f"{name}: {text}")
    for run in outcome.stages:
        console.print_lines(
            f"{run.name}: {run.state}" + (f" ({run.seconds:.1f} s)" if run.state == "done" else "")
        )
    console.print_lines(f"session: {outcome.session}")
    if release:
        _print_release(release)


def _print_release(release: dict[str, Any]) -> None:
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


def main() -> None:
    """Run the command line; the only place where known errors end and exit codes are chosen."""
    for stream in (sys.stdout, sys.stderr):  # names of files need not be valid in any encoding
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="synorama", standalone_mode=False)
        sys.stdout.flush()
    except SynoramaError as error:
        return _refuse(error, arguments)
    except TyperException as error:
        return _misused(error, arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more
        return 0
    except ImportError as error:
        return _refuse(_missing(error), arguments)
    except Exception as error:
        return _fault(error, arguments)
    if code == INTERRUPTED:  # which typer returns and says nothing
        return _interrupted(arguments)
    return code if isinstance(code, int) else 0


def _print_refusal(arguments: list[str], document: dict[str, Any]) -> None:
    if "--json" in arguments:
        console.print_json(document)


def _refuse(error: SynoramaError, arguments: list[str]) -> int:
    _print_refusal(arguments, console.error_document(error))
    console.print_error(error)
    return error.exit_code


def _misused(error: TyperException, arguments: list[str]) -> int:
    error.show()  # type: ignore[attr-defined]  # all that typer raises itself can
    _print_refusal(arguments, console.error_document(UsageError(error.format_message())))
    return UsageError.exit_code


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"the library '{error.name}' is needed for this and cannot be loaded: {error}",
        hint="'synorama doctor' says how to get it",
    )


def _interrupted(arguments: list[str]) -> int:
    text = "interrupted; what is done stays done, run the same command to go on"
    _print_refusal(arguments, _document("Interrupted", text))
    sys.stderr.write(text + "\n")
    return INTERRUPTED


def _fault(error: Exception, arguments: list[str]) -> int:
    """Own up to a fault of ours: short by default, with the way there under ``-v``."""
    import traceback

    if "-v" in arguments or "--verbose" in arguments:
        traceback.print_exception(error)
    text, hint = f"{type(error).__name__}: {error}", "run again with 'synorama -v ...' and report"
    sys.stderr.write(f"internal fault: {text}\n  hint: {hint} what it prints\n")
    with suppress(OSError):  # which may be the very fault
        _print_refusal(arguments, _document("InternalFault", text, hint + " what it prints"))
    return 1


def _document(kind: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, "path": None, "hint": hint}}
