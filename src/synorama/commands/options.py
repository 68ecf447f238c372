"""The options and arguments that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DryRun",
    "Folder",
    "Json",
    "Location",
    "NoProgress",
    "Offsets",
    "Output",
    "RigFile",
    "SessionFile",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")]
# What may not be read is told by the readers, as every other fault of a file is.
Folder = Annotated[Path, typer.Argument(help="The session folder.", readable=False)]
SessionFile = Annotated[
    Path, typer.Argument(help="A session file, or its session folder.", readable=False)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Session file; FOLDER/session.h5 by default.", readable=False
    ),
]
RigFile = Annotated[Path | None, typer.Option("--rig", help="The lab's rig.toml.", readable=False)]
Offsets = Annotated[
    list[str] | None,
    typer.Option("--offset", help="RECORDING=SECONDS, session minus device time, set by hand."),
]
Location = Annotated[
    bool, typer.Option("--include-location", help="Keep GPS, WiFi and Bluetooth data.")
]
