"""``synorama doctor``: what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synorama import console
from synorama.commands.options import Json

if TYPE_CHECKING:
    from synorama.doctor import Finding

__all__ = ["doctor"]


def doctor(as_json: Json = False) -> None:
    """Tell what is installed, what is missing, and how to get it."""
    from synorama.doctor import examine

    findings = examine()
    if as_json:
        console.print_json({"parts": [f.as_dict() for f in findings]})
        return
    rows = [[_mark(f), f.name, f.version or "-", f.purpose] for f in findings]
    console.print_table(["", "part", "version", "needed for"], rows)
    console.print_lines(*(f"to get {f.name}: {f.remedy}" for f in findings if not f.present))


def _mark(finding: Finding) -> str:
    if finding.present:
        return "ok"
    return "absent" if finding.optional else "MISSING"
