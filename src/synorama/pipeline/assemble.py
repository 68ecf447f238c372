"""The stage assemble: the parts of all stages become one session file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from synorama.pipeline.ingest import INGEST
from synorama.pipeline.objects import OBJECTS
from synorama.pipeline.refine_clock import REFINE_CLOCK
from synorama.pipeline.register import REGISTER
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.sync import SYNC
from synorama.pipeline.transcribe import WORDS
from synorama.pipeline.workspace import Workspace, read_journal

__all__ = ["ASSEMBLE", "PARTS"]

EPOCH_SIGMA_S = 60.0

PARTS = (INGEST, SYNC, REGISTER, OBJECTS, REFINE_CLOCK, WORDS)
"""The stages whose parts a session is made of; one that is skipped brings none."""


def _made_of(work: Workspace) -> list[str]:
    return [stage.name for stage in PARTS if stage.skipped_because(work) is None]


def _assemble(work: Workspace, progress: Progress) -> None:
    from synorama.session import SessionInfo, assemble

    parts = {stage: work.part(stage) for stage in _made_of(work)}
    progress("assemble", 0, 1)
    assemble(parts, work.session, _session_info(work, SessionInfo))
    progress("assemble", 1, 1)


def _session_info(work: Workspace, info: Callable[..., Any]) -> Any:
    return info(
        session_id=work.discovery.session_id,
        epoch_utc=_epoch_utc(work),
        options=_options_json(work),
        provenance=_provenance(work),
    )


def _epoch_utc(work: Workspace) -> str | None:
    """Return the UTC of session time zero where the reference's own clock knows it to a minute."""
    from synorama.session import read_ingest, read_sync

    reference = read_sync(work.part("sync")).reference
    utc = {r.id: r.start_utc for r in read_ingest(work.part("ingest"))}[reference]
    if utc is None or utc.sigma_s > EPOCH_SIGMA_S:
        return None
    zero_s = (utc.utc_ns - utc.device_ns) / 1e9  # whole seconds are all that it is good for
    return datetime.fromtimestamp(round(zero_s), timezone.utc).isoformat()


def _provenance(work: Workspace) -> dict[str, Any]:
    """Return the journal's last line of each stage that the session is made of."""
    last = read_journal(work)
    return {name: last[name] for name in _made_of(work) if name in last}


def _options_json(work: Workspace) -> dict[str, Any]:
    return {"include_location": work.options.include_location, "offsets_ns": work.offsets_ns}


ASSEMBLE = Stage(
    name="assemble",
    version=2,
    needs=tuple(stage.name for stage in PARTS),
    libraries=("h5py",),
    inputs=lambda work: work.discovery.session_id,
    run=_assemble,
    result=lambda work: work.session,
)
