"""The command line: parse, call, print. Known errors are rendered here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from synorama import __version__, console
from synorama.errors import OutputExistsError, SynoramaError, UsageError

if TYPE_CHECKING:
    from synorama.errors import InputError
    from synorama.pipeline import Outcome, Workspace
    from synorama.records import Recording, SyncResult

__all__ = ["app", "main"]

EXIT_REFUSED = 5

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
Folder = Annotated[Path, typer.Argument(help="The session folder.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Session file; FOLDER/session.h5 by default.")
]
RigFile = Annotated[Path | None, typer.Option("--rig", help="The lab's rig.toml.")]
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
    paths: Annotated[list[Path], typer.Argument(help="Session folders, recordings, sessions.")],
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
) -> None:
    """Tell what is there: devices, streams, times, and what is wrong with them."""
    from synorama.inspection import describe, field_checks, with_digests

    sessions = [path for path in paths if path.suffix == ".h5" and path.is_file()]
    recordings, failed = _open_paths([p for p in paths if p not in sessions], rig)
    if digests:
        recordings = [with_digests(recording) for recording in recordings]
    if write:
        _write_session_toml(paths, rig)
    document: dict[str, Any] = {"recordings": [describe(r) for r in recordings]}
    document["failed"] = [console.error_document(error)["error"] for error in failed]
    document |= {"sessions": _summaries(sessions)} if sessions else {}
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


def _open_paths(paths: list[Path], rig: Path | None) -> tuple[list[Recording], list[InputError]]:
    """Open all recordings below the paths, and keep the errors of those that do not open."""
    from synorama.capture import discover, open_found, open_recording
    from synorama.errors import InputError

    recordings: list[Recording] = []
    failed: list[InputError] = []
    openers: list[Callable[[], Recording]] = []
    for path in paths:
        if path.is_dir():
            discovery = discover(path, rig=rig)
            failed += discovery.unread
            openers += [partial(open_found, found) for found in discovery.found]
        else:
            openers.append(partial(open_recording, path))
    for opener in openers:
        try:
            recordings.append(opener())
        except InputError as error:
            failed.append(error)
    return recordings, failed


def _write_session_toml(paths: list[Path], rig: Path | None) -> None:
    from synorama.capture import discover
    from synorama.capture.config import RecordingEntry, session_toml

    for folder in paths:
        target = folder / "session.toml"
        if not folder.is_dir():
            raise UsageError("--write needs a session folder", path=folder)
        if target.exists():
            raise OutputExistsError(
                "there is one already, and it may hold your corrections",
                path=target,
                hint="edit it, or remove it first",
            )
        discovery = discover(folder, rig=rig)
        entries = [
            RecordingEntry(
                path=f.path.relative_to(folder).as_posix(),
                id=f.id,
                role=f.role,
                participant=f.participant,
            )
            for f in discovery.found
        ]
        target.write_text(session_toml(discovery.session_id, entries), "utf-8")


def _summaries(sessions: list[Path]) -> list[dict[str, Any]]:
    from synorama.session import summarize

    return [summarize(path) for path in sessions]


def _print_inspection(document: dict[str, Any], failed: list[InputError]) -> None:
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
def status(folder: Folder, output: Output = None, as_json: Json = False) -> None:
    """Tell which stages of a session are up to date."""
    from synorama.pipeline import Workspace, status

    runs = status(Workspace(folder, output=output))
    if as_json:
        console.print_json({"stages": [_stage_facts(run) for run in runs]})
    else:
        console.print_table(["stage", "state"], [[run.name, run.state] for run in runs])


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A session file.")], as_json: Json = False
) -> None:
    """Tell what is in a session file."""
    from synorama.session import summarize

    summary = summarize(file)
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
    file: Annotated[Path, typer.Argument(help="A session file.")],
    every_byte: Annotated[
        bool, typer.Option("--bytes", help="Read every byte against its digest.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell whether a session file is sound. Exit code 6 if it is not."""
    from synorama.session import validate

    problems = validate(file, every_byte=every_byte)
    if as_json:
        texts = [f"{p.track}: {p.text}" if p.track else p.text for p in problems]
        console.print_json({"sound": not problems, "problems": texts})
    else:
        console.print_lines(*(f"! {p.text}" for p in problems))
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
        Path | None, typer.Option("--seal", help="Also write the release file here.")
    ] = None,
    offset: Offsets = None,
    rig: RigFile = None,
    include_location: Location = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Make the session file of a folder of recordings; what is up to date is not done again."""
    from synorama.pipeline import process, status

    work = _workspace(folder, output, offset, rig, include_location)
    if dry_run:
        _print_plan(work, [_stage_facts(run) for run in status(work)], as_json)
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
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Put all clocks of a session on one, and print them."""
    from synorama.pipeline import process

    work = _workspace(folder, output, offset, rig, False)
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        process(work, only="ingest" if _is_stale(work, "ingest") else None, progress=progress)
        outcome = process(work, only="sync", progress=progress)
    _report_outcome(context, outcome, None, as_json)


@app.command()
def seal(
    context: typer.Context,
    session: Annotated[Path, typer.Argument(help="A session file, or its session folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output.")] = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Write the one self-contained release file, with all media inside and a digest of all."""
    source = session / "session.h5" if session.is_dir() else session
    if dry_run:
        _check_free(output, overwrite)
        console.print_lines(f"would seal {source} into {output}")
        return
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        facts = _seal(source, output, overwrite, progress)
    if as_json:
        console.print_json(facts)
    else:
        console.print_lines(f"sealed: {facts['sealed']} ({console.size_text(facts['bytes'])})")


@app.command()
def simulate(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The folder to make.")],
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same session.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", help="Length of the session.")] = 60.0,
    size: Annotated[str, typer.Option("--size", help="small or full pictures.")] = "small",
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Make a session folder with known truth: two glasses, two GoPros, a webcam."""
    from synorama.simulate import simulate

    if size not in ("small", "full"):
        raise UsageError(f"there is no size '{size}'", hint="sizes are: small, full")
    with console.progress_bar(shown=_wants_progress(context, no_progress)) as progress:
        truth = simulate(
            out,
            seed=seed,
            seconds=seconds,
            size="full" if size == "full" else "small",
            progress=lambda done, total: progress("simulate", done, total),
        )
    if as_json:
        console.print_json({"folder": str(out), "truth": str(truth)})
    else:
        console.print_lines(f"simulated session: {out}", f"its truth: {truth}")


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


def _print_plan(work: Workspace, stages: list[dict[str, Any]], as_json: bool) -> None:
    names = [found.id for found in work.discovery.found]
    if as_json:
        console.print_json({"recordings": names, "stages": stages})
        return
    console.print_lines("recordings: " + ", ".join(names))
    console.print_table(["stage", "state"], [[s["name"], s["state"]] for s in stages])


def _check_free(output: Path, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise OutputExistsError(
            "the output exists already", path=output, hint="give --overwrite, or another name"
        )


def _seal(session: Path, output: Path, overwrite: bool, progress: console.Report) -> dict[str, Any]:
    from synorama.session import seal

    report = seal(
        session,
        output,
        overwrite=overwrite,
        progress=lambda done, total: progress("seal", done, total),
    )
    return {"sealed": str(output), "bytes": report.bytes}


def _report_outcome(
    context: typer.Context, outcome: Outcome, release: dict[str, Any] | None, as_json: bool
) -> None:
    sync_facts = _sync_facts(outcome) if outcome.sync else None
    if as_json:
        stages = [_stage_facts(run) for run in outcome.stages]
        document = {"session": str(outcome.session), "stages": stages, "sync": sync_facts}
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
    if outcome.sync:
        _print_clocks(context, outcome.sync, outcome)
    for run in outcome.stages:
        console.print_lines(
            f"{run.name}: {run.state}" + (f" ({run.seconds:.1f} s)" if run.state == "done" else "")
        )
    console.print_lines(f"session: {outcome.session}")
    if release:
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
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="synorama", standalone_mode=False)
    except SynoramaError as error:
        if "--json" in arguments:
            console.print_json(console.error_document(error))
        console.print_error(error)
        return error.exit_code
    except TyperException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted; what is done stays done, run the same command to go on\n")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        return _fault(error, arguments)
    return code if isinstance(code, int) else 0


def _fault(error: Exception, arguments: list[str]) -> int:
    """Own up to a fault of ours: short by default, with the way there under ``-v``."""
    import traceback

    if "-v" in arguments or "--verbose" in arguments:
        traceback.print_exception(error)
    sys.stderr.write(
        f"internal fault: {type(error).__name__}: {error}\n"
        "  hint: run again with 'synorama -v ...' and report what it prints\n"
    )
    return 1
