"""What a stage is: what it consumes, what its result depends on, when it is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from synorama.pipeline.workspace import Workspace

__all__ = ["Progress", "Stage"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""``progress(stage, done, total)``."""


def _always(work: Workspace) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its version, what it builds on, which options and libraries it depends on.

    Raise ``version`` whenever the result for the same input changes. ``skipped_because`` tells
    in words why a session has no need of the stage or cannot have it (no scan, no model), from
    what lies in the folder and what is installed alone; None where it is to be run.
    """

    name: str
    version: int
    needs: tuple[str, ...]
    libraries: tuple[str, ...]
    inputs: Callable[[Workspace], Any]
    run: Callable[[Workspace, Progress], None]
    result: Callable[[Workspace], Path]
    skipped_because: Callable[[Workspace], str | None] = _always
