"""``synorama process`` and its single stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synorama import console
from synorama.commands.options import (
    DryRun,
    Folder,
    Json,
    Location,
    NoProgress,
    Offsets,
    Output,
    RigFile,
)
from synorama.commands.shared import (
    check_free,
    print_plan,
    report_outcome,
    seal_into,
    wants_progress,
    workspace,
)

if TYPE_CHECKING:
    from synorama.pipeline import Workspace

__all__ = ["process", "sync"]


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

    work = workspace(folder, output, offset, rig, include_location)
    if seal_to:
        check_free(seal_to, "give another name, or remove that file first")
    if dry_run:
        print_plan(work, as_json)
        return
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        outcome = process(work, only=only, start=start, progress=progress)
        release = seal_into(outcome.session, seal_to, False, progress) if seal_to else None
    report_outcome(context, outcome, release, as_json)


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

    work = workspace(folder, output, offset, rig, include_location)
    if dry_run:
        print_plan(work, as_json)
        return
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        if _is_stale(work, "ingest"):
            process(work, only="ingest", progress=progress)
        outcome = process(work, only="sync", progress=progress)
    report_outcome(context, outcome, None, as_json)


def _is_stale(work: Workspace, stage: str) -> bool:
    from synorama.pipeline import status

    return any(run.name == stage and run.state == "stale" for run in status(work))
