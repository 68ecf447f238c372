"""``synorama doctor``: what is installed."""

from __future__ import annotations

from synorama import console
from synorama.commands.options import Json

__all__ = ["doctor"]


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
