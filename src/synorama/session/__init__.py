"""The session file: written in parts, assembled, sealed, read through a guard.

Schema 1 is described in ``docs/reference/session-file.md``.
"""

from __future__ import annotations

from synorama.session.assemble import assemble
from synorama.session.parts import (
    Progress,
    check_replaceable,
    new_part,
    open_part,
    read_ingest,
    read_sync,
    read_transcript_part,
    write_ingest,
    write_sync,
    write_transcript,
)
from synorama.session.read import (
    Frame,
    Session,
    Sound,
    UnverifiedSessionWarning,
    open_session,
)
from synorama.session.schema import SessionInfo
from synorama.session.seal import SealReport, seal
from synorama.session.show import summarize
from synorama.session.validate import validate

__all__ = [
    "Frame",
    "Progress",
    "SealReport",
    "Session",
    "SessionInfo",
    "Sound",
    "UnverifiedSessionWarning",
    "assemble",
    "check_replaceable",
    "new_part",
    "open_part",
    "open_session",
    "read_ingest",
    "read_sync",
    "read_transcript_part",
    "seal",
    "summarize",
    "validate",
    "write_ingest",
    "write_sync",
    "write_transcript",
]
