"""``synorama show``: what is in a session file."""

from __future__ import annotations

from synorama import console
from synorama.commands.options import Json, SessionFile
from synorama.commands.shared import print_summary, session_file

__all__ = ["show"]


def show(file: SessionFile, as_json: Json = False) -> None:
    """Tell what is in a session file."""
    from synorama.session import summarize

    summary = summarize(session_file(file))
    if as_json:
        console.print_json(summary)
    else:
        print_summary(summary)
