"""``synorama register``: one cloud in the frame of another."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synorama import console
from synorama.commands.options import Json, NoProgress
from synorama.commands.shared import EXIT_REFUSED, check_free, wants_progress
from synorama.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["register"]

YAW_WITHIN_DEG = 15.0

Unit = Annotated[str | None, typer.Option(help="m, cm, mm, ft or in; metres by default.")]
Up = Annotated[str, typer.Option(help="Which axis of the file is up: z -z y -y x -x.")]


def register(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(help="A scan (E57 LAS LAZ PTX PLY PCD XYZ) or MPS points.", readable=False),
    ],
    target: Annotated[
        Path, typer.Argument(help="The cloud in whose frame it is placed.", readable=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the result here as JSON.")
    ] = None,
    init: Annotated[
        Path | None, typer.Option("--init", help="Start: T_target_source as JSON or 4x4 text.")
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", help="Start: clicked points, a line each: x y z  x y z."),
    ] = None,
    yaw: Annotated[
        float | None,
        typer.Option("--yaw", help="Degrees of the turn about the vertical, within 15."),
    ] = None,
    handheld: Annotated[
        bool | None,
        typer.Option("--handheld/--tripod", help="Whether the scanner was moved."),
    ] = None,
    source_unit: Unit = None,
    target_unit: Unit = None,
    source_up: Up = "z",
    target_up: Up = "z",
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Place one cloud in the frame of another, and tell how sure that is."""
    from synorama.registration import as_document, read_side, register_files

    start = _start(init, pairs)
    if output is not None:
        check_free(output, "give another name with -o")
    files = ((source, "source", source_unit, source_up), (target, "target", target_unit, target_up))
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        sides = [
            read_side(path, name, unit=unit, up=up, progress=partial(progress, name))
            for path, name, unit, up in files
        ]
        turn = None if yaw is None else (math.radians(yaw), math.radians(YAW_WITHIN_DEG))
        result = register_files(sides[0], sides[1], init=start, yaw_rad=turn, handheld=handheld)
    document = as_document(result, sides[0], sides[1])
    if output is not None and document["T_target_source"] is not None:
        _write(output, document)
    if as_json:
        console.print_json(document)
    else:
        _print(document)
    if result.status != "accepted":
        raise typer.Exit(EXIT_REFUSED)


def _start(init: Path | None, pairs: Path | None) -> NDArray[np.float64] | None:
    from synorama.registration import read_init, read_pairs

    if init is not None and pairs is not None:
        raise UsageError("two starts are given", hint="give --init or --pairs")
    if pairs is not None:
        return read_pairs(pairs)
    return None if init is None else read_init(init)


def _write(output: Path, document: dict[str, Any]) -> None:
    from synorama.session.storage import whole_file

    with whole_file(output, overwrite=False) as path:
        path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _print(document: dict[str, Any]) -> None:
    console.print_lines(f"{document['status']}: {document['reason']}")
    if document["T_target_source"] is None:
        return
    rows = [
        ["overlap", f"{100 * document['overlap']:.0f} %"],
        ["misfit", f"{1e3 * document['inlier_rmse_m']:.1f} mm"],
        ["turn within (one sigma)", f"{document['sigma_rotation_deg']:.2f} degrees"],
        ["places within (one sigma)", f"{1e3 * document['sigma_translation_m']:.0f} mm"],
        ["next best place", f"{100 * document['runner_up_ratio']:.0f} % as good"],
        *(["weak", text] for text in document["weak_directions"]),
    ]
    console.print_table(["", ""], rows)
    for row in document["T_target_source"]:
        console.print_lines("  ".join(f"{value:12.6f}" for value in row))
