"""GoPro cameras: chaptered MP4 with GPMF telemetry and time code.

Times are the container's own; see `synorama.capture.gopro.tracks` for the clock of several
chapters and for the rule by which their sound is one stream, `synorama.capture.gopro.chapters`
for what makes files one recording, `synorama.capture.gopro.telemetry` for telemetry and wall clock.
The time code is kept in ``extras``: it counts frames of the camera's own clock, which nobody set
by the other devices' clocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from synorama.capture.container.health import video_problems
from synorama.capture.container.mp4 import looks_like_mp4
from synorama.capture.container.scan import edit_problems
from synorama.capture.gopro.chapters import Chapter, read_chapter, siblings, verify
from synorama.capture.gopro.names import ASIDE_SUFFIXES, PREVIEW_SUFFIX, parse_name
from synorama.capture.gopro.telemetry import Telemetry, read_telemetry
from synorama.capture.gopro.tracks import sound_track, video_track
from synorama.capture.reader import Reader, Take
from synorama.errors import InputError, NoMediaError
from synorama.records import FileRef, Problem, Recording, Track

__all__ = ["READER"]

SUFFIXES = (".mp4", PREVIEW_SUFFIX, ".wav")  # sound only where it accompanies a film
# Vendor's file type box, the block that some models write before the media, names of the tracks.
MARK = re.compile(rb"ftypmp41\x20\x13\x10\x18|GPRO[\x00-\xff]{4}H|GoPro (?:AVC|AAC|MET|TCD|H\.265)")
HEAD = 64
INDEX_HEAD = 32 * 1024


# --- recognising -----------------------------------------------------------------------------


def _sniff(path: Path) -> bool:
    """Tell GoPro files by name or by what the camera writes into them. Never raises."""
    named = parse_name(path) is not None
    if _is_aside(path):
        return named and any(_is_movie(p) for p in _relatives(path))
    if not looks_like_mp4(path):
        return False
    return named or any(MARK.search(part) for part in _telling_parts(path))


def _relatives(path: Path) -> Iterator[Path]:
    """Yield the files beside this one that have the same number; this one too."""
    name = parse_name(path)
    try:
        beside = sorted(path.parent.iterdir()) if name else []
    except OSError:
        return
    for other in beside:
        told = parse_name(other)
        if told is not None and name is not None and told.number == name.number:
            yield other


def _is_movie(path: Path) -> bool:
    return path.suffix.lower() in (".mp4", PREVIEW_SUFFIX)


def _telling_parts(path: Path) -> Iterator[bytes]:
    """Yield the beginnings of the outermost boxes, more of the index."""
    try:
        with path.open("rb") as file:
            at, end = 0, file.seek(0, 2)
            for _ in range(16):
                file.seek(at)
                head = file.read(HEAD)
                if len(head) < 16:
                    return
                yield head if head[4:8] != b"moov" else head + file.read(INDEX_HEAD)
                length = int.from_bytes(head[:4], "big")
                at += int.from_bytes(head[8:16], "big") if length == 1 else length or end
    except OSError:
        return


def _takes(paths: Sequence[Path]) -> tuple[Take, ...]:
    """Group files of a session folder to recordings, in the order of their first files."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        name = parse_name(path)
        groups.setdefault((path.parent, name.number) if name else path, []).append(path)
    takes = (take for group in groups.values() for take in _takes_of(group))
    return tuple(sorted(takes, key=lambda t: t.paths))


def _takes_of(group: Sequence[Path]) -> Iterator[Take]:
    """Yield the recordings among files of one number: films, or previews if only they are left.

    Previews and thumbnails go with the first film.
    """
    movies = [p for p in group if not _is_aside(p)]
    films = [p for p in movies if not _is_preview(p)]
    chosen = films or movies
    near = [p for p in _relatives(group[0]) if _is_aside(p) or _is_preview(p)]
    aside = tuple(sorted({p for p in (*group, *near) if p not in chosen}))
    while chosen:
        chapters = tuple(p for p in siblings(chosen[0]) if p in chosen)
        chosen = [p for p in chosen if p not in chapters]
        serial = _serial(chapters[0])
        yield Take(chapters, companions=aside, serial=serial, why=_why(chapters, serial))
        aside = ()


def _is_preview(path: Path) -> bool:
    name = parse_name(path)
    return name is not None and name.preview


def _is_aside(path: Path) -> bool:
    return path.suffix.lower() in ASIDE_SUFFIXES


def _serial(path: Path) -> str:
    try:
        return read_chapter(path).identity.serial
    except InputError:  # opening it will say what is wrong
        return ""


def _why(paths: Sequence[Path], serial: str) -> str:
    camera = f" of GoPro {serial}" if serial else " of a GoPro"
    if len(paths) == 1:
        return f"one file{camera}"
    return f"{len(paths)} files{camera}, in one folder and numbered as chapters of one recording"


# --- opening ---------------------------------------------------------------------------------


def _open(path: Path) -> Recording:
    """Open the whole recording that a file is a chapter of.

    Raises
    ------
    MissingChapterError, ForeignChapterError
        The files of its folder that are numbered as this recording are not all there, or one of
        them was recorded by another camera or at another time.
    NoMediaError
        A thumbnail, or a file without pictures.
    CorruptFileError, NoMovieIndexError, EmptyFileError
        A file is damaged.
    """
    if _is_aside(path):
        raise NoMediaError(
            "this file only accompanies a GoPro film",
            path=path,
            hint="open the MP4 file of the same name",
        )
    chapters = [read_chapter(p) for p in siblings(path)]
    telemetry = read_telemetry(chapters)
    problems = verify(chapters, totals_go_on=telemetry.totals_go_on)
    pictures = video_track(chapters)
    problems += video_problems(pictures.times_ns, pictures.name)
    sound, sound_problems = sound_track(chapters)
    tracks: list[Track] = [pictures, *([sound] if sound else []), *telemetry.tracks]
    first = chapters[0]
    return Recording(
        id="gopro",
        device="gopro",
        files=tuple(_file_ref(c.path) for c in chapters),
        tracks={t.name: t for t in tracks},
        model=first.identity.model or _model(telemetry.device),
        serial=first.identity.serial,
        start_utc=telemetry.start_utc,
        problems=(*_file_problems(chapters), *problems, *sound_problems, *telemetry.problems),
        extras=_extras(chapters, telemetry),
    )


def _model(device: str) -> str:
    """Take the device's own name, which HERO5 did not know."""
    return "" if device == "Camera" else device


def _file_ref(path: Path) -> FileRef:
    stat = path.stat()
    return FileRef(path, stat.st_size, stat.st_mtime_ns)


def _file_problems(chapters: Sequence[Chapter]) -> Iterator[Problem]:
    if chapters[0].name and chapters[0].name.preview:
        yield Problem(
            "preview",
            "this is the camera's low-resolution preview (LRV), not the film: look for the MP4 "
            "file on the camera's card",
            severe=True,
        )
    for chapter in chapters:
        if chapter.movie.truncated:
            lost = chapter.pictures[1].lost
            text = f"{chapter.path.name} is cut off: its last {lost} frames are missing"
            yield Problem("truncated", text, severe=True)
    yield from edit_problems(chapter.pictures[1] for chapter in chapters)


def _extras(chapters: Sequence[Chapter], telemetry: Telemetry) -> dict[str, Any]:
    identity = chapters[0].identity
    extras: dict[str, Any] = {
        "chapters": [
            {"name": c.path.name, "frames": c.frame_count, "duration_s": str(c.duration_s)}
            for c in chapters
        ],
    }
    if identity.firmware:
        extras["firmware"] = identity.firmware
    if identity.media:
        extras["media_ids"] = dict(identity.media)
    code = chapters[0].timecode
    if code is not None:
        extras["timecode"] = {
            "text": code.text,
            "frames": code.frames,
            "fps": [code.fps.numerator, code.fps.denominator],
            "drop_frame": code.drop_frame,
            "time_of_day_ns": int(code.seconds * 10**9),
        }
    return extras


READER = Reader(name="gopro", suffixes=SUFFIXES, sniff=_sniff, open=_open, takes=_takes)
