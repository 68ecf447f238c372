"""The session file: written in parts, assembled, sealed, read through a guard.

Schema 1 is described in ``docs/reference/session-file.md``.
"""

from __future__ import annotations

from synorama.session.assemble import assemble
from synorama.session.parts import (
    Progress,
    new_part,
    open_part,
    read_ingest,
    read_sync,
    write_ingest,
    write_sync,
    write_transcript,
)
from synorama.session.schema import SessionInfo

__all__ = [
    "Progress",
    "SessionInfo",
    "assemble",
    "new_part",
    "open_part",
    "read_ingest",
    "read_sync",
    "write_ingest",
    "write_sync",
    "write_transcript",
]
