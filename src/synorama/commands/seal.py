"""``synorama seal``: the release file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synorama import console
from synorama.commands.options import DryRun, Json, NoProgress, SessionFile
from synorama.commands.shared import (
    check_free,
    print_either,
    print_release,
    seal_into,
    session_file,
    wants_progress,
)

__all__ = ["seal"]


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
    source = session_file(session)
    if not overwrite:
        check_free(output, "give --overwrite, or another name")
    if dry_run:
        _print_seal_plan(source, output, as_json)
        return
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        facts = seal_into(source, output, overwrite, progress)
    if as_json:
        console.print_json(facts)
    else:
        print_release(facts)


def _print_seal_plan(source: Path, output: Path, as_json: bool) -> None:
    from synorama.session import summarize

    media = sum(file["bytes"] for one in summarize(source)["recordings"] for file in one["files"])
    line = f"would seal {source} and {console.size_text(media)} of media into {output}"
    print_either(
        {"session": str(source), "output": str(output), "media_bytes": media}, line, as_json
    )
