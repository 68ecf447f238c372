"""All stages in order; ``seal`` is on demand and works on the session file alone.

A new stage is a module of its own beside this one, an entry of `STAGES`, and, where it brings a
part to the session, one of `synorama.pipeline.assemble.PARTS`.
"""

from __future__ import annotations

from synorama.pipeline.assemble import ASSEMBLE
from synorama.pipeline.ingest import INGEST
from synorama.pipeline.objects import OBJECTS
from synorama.pipeline.refine_clock import REFINE_CLOCK
from synorama.pipeline.register import REGISTER
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.sync import SYNC
from synorama.pipeline.transcribe import TRANSCRIBE, WORDS

__all__ = ["STAGES", "Progress", "Stage"]

STAGES: tuple[Stage, ...] = (
    INGEST,
    SYNC,
    REGISTER,
    OBJECTS,
    REFINE_CLOCK,
    TRANSCRIBE,
    WORDS,
    ASSEMBLE,
)
