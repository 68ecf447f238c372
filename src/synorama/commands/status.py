"""``synorama status``: where a session stands."""

from __future__ import annotations

from synorama import console
from synorama.commands.options import Folder, Json, Location, Offsets, Output, RigFile
from synorama.commands.shared import stage_facts, stage_text, workspace

__all__ = ["status"]


def status(
    folder: Folder,
    output: Output = None,
    offset: Offsets = None,
    rig: RigFile = None,
    include_location: Location = False,
    as_json: Json = False,
) -> None:
    """Tell which stages of a session are up to date with these options."""
    from synorama.pipeline import status

    runs = status(workspace(folder, output, offset, rig, include_location))
    if as_json:
        console.print_json({"stages": [stage_facts(run) for run in runs]})
    else:
        console.print_table(["stage", "state"], [[run.name, stage_text(run)] for run in runs])
