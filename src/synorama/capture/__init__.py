"""From files to recordings: open one, or discover all that lies in a session folder."""

from __future__ import annotations

from synorama.capture.discover import Discovery, Found, discover, open_found
from synorama.capture.reader import Reader, Take
from synorama.capture.registry import open_recording, readers

__all__ = [
    "Discovery",
    "Found",
    "Reader",
    "Take",
    "discover",
    "open_found",
    "open_recording",
    "readers",
]
