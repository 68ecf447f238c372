"""From a session folder to its session file, in stages that are done once and survive a kill.

A stage is a function of what it consumes, its options, its version and the versions of the
libraries behind it: together they are its *key*. It writes one part file (temporary, fsync,
rename) and then one line in the journal. A stage whose last journal line carries its present key,
and whose part is there, is up to date and not done again.
"""

from __future__ import annotations

from synorama.pipeline.run import Outcome, StageRun, process, status
from synorama.pipeline.stages import STAGES, Progress
from synorama.pipeline.workspace import Options, Workspace, check_request

__all__ = [
    "STAGES",
    "Options",
    "Outcome",
    "Progress",
    "StageRun",
    "Workspace",
    "check_request",
    "process",
    "status",
]
