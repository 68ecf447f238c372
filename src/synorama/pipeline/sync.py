"""The stage sync: all clocks of the session on one."""

from __future__ import annotations

from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.workspace import Workspace

__all__ = ["SYNC"]


def _sync(work: Workspace, progress: Progress) -> None:
    from synorama.session import read_ingest, write_sync
    from synorama.sync import synchronize

    result = synchronize(
        read_ingest(work.part("ingest")),
        manual_offsets_ns=work.offsets_ns,
        progress=lambda done, total: progress("sync", done, total),
    )
    write_sync(work.part("sync"), result)


SYNC = Stage(
    name="sync",
    version=3,
    needs=("ingest",),
    libraries=("av", "numpy", "opencv-python-headless", "scipy", "soxr"),
    inputs=lambda work: work.offsets_ns,
    run=_sync,
    result=lambda work: work.part("sync"),
)
