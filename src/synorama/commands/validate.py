"""``synorama validate``: whether a session file is sound."""

from __future__ import annotations

from typing import Annotated

import typer

from synorama import console
from synorama.commands.options import Json, SessionFile
from synorama.commands.shared import session_file

__all__ = ["validate"]


def validate(
    file: SessionFile,
    every_byte: Annotated[
        bool, typer.Option("--bytes", help="Read every byte against its digest.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell whether a session file is sound. Exit code 6 if it is not."""
    from synorama.session import validate

    problems = validate(session_file(file), every_byte=every_byte)
    texts = [f"{p.track}: {p.text}" if p.track else p.text for p in problems]
    if as_json:
        console.print_json({"sound": not problems, "problems": texts})
    else:
        console.print_lines(*(f"! {text}" for text in texts))
        console.print_lines("sound" if not problems else f"{len(problems)} problems")
    if problems:
        raise typer.Exit(6)
