"""``synorama align``: plain sound or video files on one clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synorama import console
from synorama.commands.options import Json, NoProgress
from synorama.commands.shared import wants_progress

if TYPE_CHECKING:
    from synorama.alignment import Alignment

__all__ = ["align"]


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

    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
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
