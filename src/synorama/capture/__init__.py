"""From files to recordings: open one here; `synorama.capture.discover` takes a session folder.

Folders have rules in `rig.toml` and `session.toml`, and what checks these takes longer to import
than most files to open.
"""

from __future__ import annotations

from synorama.capture.reader import Reader, Take
from synorama.capture.registry import open_recording, readers

__all__ = ["Reader", "Take", "open_recording", "readers"]
