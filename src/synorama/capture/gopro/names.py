"""What GoPro cameras call their files.

==================  =========================================================================
``GX020123.MP4``    chapter 2 of recording 0123 (HEVC; ``GH``: AVC), HERO6 and later
``GOPR0123.MP4``    first chapter of recording 0123, up to HERO5; the next is ``GP010123.MP4``
``GXAA0007.MP4``    piece 7 of the loop AA: old pieces are overwritten, so it may start at any
``GL020123.LRV``    low-resolution preview of ``GX020123`` (``GOPR0123.LRV`` up to HERO5)
``GX020123.THM``    thumbnail; ``.WAV``: raw sound
==================  =========================================================================

Two cameras write the same names. Text before the name, set off by anything but a letter or digit,
is kept apart: ``front-GX010123.MP4`` and ``rear-GX010123.MP4`` are two recordings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ASIDE_SUFFIXES", "PREVIEW_SUFFIX", "GoProName", "parse_name"]

PREVIEW_SUFFIX = ".lrv"
ASIDE_SUFFIXES = (".thm", ".wav")

_NAME = re.compile(
    r"(?P<before>|.*[^A-Za-z0-9])"
    r"(?:(?P<family>G[HXL])(?P<chapter>\d\d)(?P<number>\d{4})"
    r"|(?P<loop_family>G[HXL])(?P<loop>[A-Z]{2})(?P<piece>\d{4})"
    r"|GOPR(?P<old_first>\d{4})"
    r"|GP(?P<old_chapter>\d\d)(?P<old_number>\d{4}))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GoProName:
    """What a file's name says.

    Parameters
    ----------
    series
        Equal for all chapters of one recording in one folder.
    number
        Equal for all that belongs to it, previews and thumbnails included.
    chapter
        Number of the chapter.
    first
        Number that the first chapter has; None for loops, which start anywhere.
    preview
        Whether it is a low-resolution preview.
    """

    series: str
    number: str
    chapter: int
    first: int | None
    preview: bool


def parse_name(path: Path) -> GoProName | None:
    """Return what the name says, None if no GoPro camera writes such names."""
    match = _NAME.fullmatch(path.stem)
    if match is None:
        return None
    part = match.groupdict()
    number, chapter, first = _numbers(part)
    number = part["before"].lower() + number
    family = (part["family"] or part["loop_family"] or "").upper()
    preview = family == "GL" or path.suffix.lower() == PREVIEW_SUFFIX
    series = f"{number} preview" if preview else f"{number} {family}"
    return GoProName(series, number, chapter, first, preview)


def _numbers(part: dict[str, str | None]) -> tuple[str, int, int | None]:
    """Return the recording's number, the chapter, and the number of its first chapter."""
    if part["old_first"]:
        return f"old-{part['old_first']}", 0, 0
    if part["old_number"]:
        return f"old-{part['old_number']}", int(part["old_chapter"] or 0), 0
    if part["loop"]:
        return f"loop-{part['loop'].upper()}", int(part["piece"] or 0), None
    return f"{part['number']}", int(part["chapter"] or 0), 1
