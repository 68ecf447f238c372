"""The stage refine-clock: the travel of sound is taken out of cameras' clocks."""

from __future__ import annotations

from typing import Any

from synorama.pipeline.ingest import INGEST
from synorama.pipeline.register import REGISTER
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.sync import SYNC
from synorama.pipeline.workspace import Workspace
from synorama.records import SyncResult

__all__ = ["REFINE_CLOCK", "best_clocks"]


def best_clocks(work: Workspace) -> SyncResult:
    """Return the session's clocks as the last stage that made them has them."""
    from synorama.session import read_sync
    from synorama.session.travel_io import read_refined

    if REFINE_CLOCK.skipped_because(work) is None:
        return read_refined(work.part(REFINE_CLOCK.name))[0]
    return read_sync(work.part(SYNC.name))


def _not_refined_because(work: Workspace) -> str | None:
    glasses = [f for f in work.discovery.found if f.reader.name == "aria"]
    if len(glasses) < 2:
        return "it takes two pairs of glasses to tell who speaks"
    if len(glasses) == len(work.discovery.found):
        return "there is no camera"
    if not any(f.take.companions for f in glasses):
        return "no MPS output says where the wearers were"
    return None


def _refine(work: Workspace, progress: Progress) -> None:
    import numpy as np

    from synorama.session import read_ingest, read_sync
    from synorama.session.geometry_io import read_geometry_part
    from synorama.session.travel_io import write_refined
    from synorama.sync.acoustics import Place
    from synorama.sync.refine import refine_clocks

    before = read_sync(work.part(SYNC.name))
    registered = REGISTER.skipped_because(work) is None
    said = {f.id: f.position for f in work.discovery.found if f.position is not None}
    refined = refine_clocks(
        read_ingest(work.part(INGEST.name)),
        before,
        geometry=read_geometry_part(work.part(REGISTER.name)) if registered else None,
        places={
            name: Place(np.array(p.position_m), p.sigma_m**2 * np.eye(3))
            for name, p in said.items()
        },
        progress=lambda done, total: progress("refine-clock", done, total),
    )
    write_refined(
        work.part(REFINE_CLOCK.name),
        refined.sync,
        refined.travels,
        before.clocks,
        why_not=refined.why_not,
    )


def _inputs(work: Workspace) -> Any:
    return {f.id: f.position for f in work.discovery.found if f.position is not None}


REFINE_CLOCK = Stage(
    name="refine-clock",
    version=2,
    needs=(INGEST.name, SYNC.name, REGISTER.name),
    libraries=("av", "numpy", "scipy", "soxr"),
    inputs=_inputs,
    run=_refine,
    result=lambda work: work.part("refine-clock"),
    skipped_because=_not_refined_because,
)
