"""``synorama export`` and ``synorama import``: a session's transcript goes out and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synorama import console
from synorama.commands.options import DryRun, Folder, Json, SessionFile
from synorama.commands.shared import check_free, print_either, session_file, workspace

__all__ = ["export_words", "import_words"]

Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="json, csv, aria, srt, srt-utterances, vtt, elan or textgrid; by the name by default.",
    ),
]
Zero = Annotated[
    str | None,
    typer.Option(
        "--zero", help="The recording whose begin is zero; the session's begin by default."
    ),
]


def export_words(
    session: SessionFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file; its name tells the format.")
    ],
    form: Form = None,
    zero: Zero = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Write a session's transcript for a subtitle editor, ELAN, Praat or a table."""
    from synorama.correction import export_transcript
    from synorama.speech.formats import format_of

    name = format_of(output, form)
    check_free(output, "give another name, or remove that file first")
    if dry_run:
        print_either({"would_write": str(output), "format": name}, f"{output}: {name}", as_json)
        return
    count = export_transcript(session_file(session), output, name, recording=zero)
    facts = {"written": str(output), "format": name, "words": count}
    print_either(facts, f"{output}: {count} words", as_json)


def import_words(
    folder: Folder,
    file: Annotated[Path, typer.Argument(help="The corrected transcript.", readable=False)],
    form: Form = None,
    zero: Zero = None,
    by: Annotated[str | None, typer.Option("--by", help="Pseudonym of who corrected it.")] = None,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Bring a corrected transcript back into its session."""
    from synorama.correction import compare_transcript, import_transcript

    work = workspace(folder, None, None, None, False)
    bring = compare_transcript if dry_run else import_transcript
    found = bring(work, file, form, recording=zero, by=by)
    if as_json:
        console.print_json(found.as_dict())
        return
    console.print_lines(
        f"{found.words} words: {found.added} new, {found.changed} changed, "
        f"{found.retimed} moved, {found.removed} gone"
    )
