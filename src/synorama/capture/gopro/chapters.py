"""GoPro chapters: what each file says about itself, and whether files continue each other.

A camera cuts a long recording into files. They belong together when they lie in one folder, are
numbered as one recording, come from one camera in one format, and nothing that identifies a
recording speaks against it: media ids (``MUID`` is shared by the chapters of HERO11, ``GUMI`` by
those of HERO7, ``CPID`` by those of HERO13; the other two then differ from chapter to chapter),
the time code, the running totals of the telemetry. A name alone is never enough: two cameras
write the same names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.capture.container import gpmf
from synorama.capture.container.mp4 import Movie, Mp4Track, read_movie
from synorama.capture.gopro.names import GoProName, parse_name
from synorama.errors import (
    CorruptFileError,
    ForeignChapterError,
    InputError,
    MissingChapterError,
    NoMediaError,
)
from synorama.records import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Chapter", "Identity", "TimeCode", "read_chapter", "siblings", "verify"]

MAX_BOX = 1 << 20
MAX_FPS = 1000
DAY_S = 24 * 3600
CONTINUES_S = 2  # a time code further off than this is that of another recording
MOVIE_SUFFIXES = (".mp4", ".mov")
MAX_FOLDERS = 200  # beside the folder, searched for a chapter that is missing


@dataclass(frozen=True, slots=True)
class Identity:
    """Who recorded what: texts, empty where the file does not say.

    ``media`` holds the ids of the recording by name (``MUID``, ``GUMI``, ``CPID``), as hex.
    """

    camera: str
    serial: str
    model: str
    firmware: str
    media: Mapping[str, str]
    utc_offset_min: int | None = None

    def same_recording(self, other: Identity) -> bool | None:
        """Tell whether a media id is shared; None where there is none to compare."""
        common = self.media.keys() & other.media.keys()
        return any(self.media[k] == other.media[k] for k in common) if common else None


@dataclass(frozen=True, slots=True)
class TimeCode:
    """A time code track: a counter of frames since midnight of the camera's own clock.

    The time of day is ``frames / fps`` with the exact rate; reading its hours, minutes, seconds
    and frames as a clock is wrong by up to 86 s at 29.97 frames a second without drop-frame.
    """

    frames: int
    fps: Fraction
    drop_frame: bool

    @property
    def seconds(self) -> Fraction:
        """Time since midnight [s], exact."""
        return self.frames / self.fps

    @property
    def text(self) -> str:
        """``HH:MM:SS:FF`` as players show it, ``;FF`` for drop-frame."""
        nominal = round(self.fps)
        frames = self.frames
        if self.drop_frame:
            frames += _dropped_labels(frames, nominal)
        seconds, rest = divmod(frames, nominal)
        mark = ";" if self.drop_frame else ":"
        hours, minutes = seconds // 3600 % 24, seconds // 60 % 60
        return f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}{mark}{rest:02d}"


@dataclass(frozen=True, slots=True, eq=False)
class Chapter:
    """One file of a recording, read but for its media.

    Parameters
    ----------
    name
        What its name says, None for a name that no camera gives.
    pictures, sound, telemetry
        ``(stream index, track)`` of the main pictures, the sound and the GPMF, or None.
    """

    path: Path
    name: GoProName | None
    movie: Movie
    identity: Identity
    timecode: TimeCode | None
    pictures: tuple[int, Mp4Track]
    sound: tuple[int, Mp4Track] | None
    telemetry: tuple[int, Mp4Track] | None

    @property
    def frame_count(self) -> int:
        """Frames that are shown."""
        return int(np.count_nonzero(~self.pictures[1].discard))

    @property
    def duration_s(self) -> Fraction:
        """Sum of the durations of the frames shown, exact."""
        track = self.pictures[1]
        return Fraction(int(track.durations[~track.discard].sum()), track.timescale)

    @property
    def first_s(self) -> Fraction:
        """When the file's first frame is shown, in its own time [s]."""
        track = self.pictures[1]
        return Fraction(int(track.pts[~track.discard].min()), track.timescale)

    @property
    def last_s(self) -> Fraction:
        """When the file's last frame is shown, in its own time [s]."""
        track = self.pictures[1]
        return Fraction(int(track.pts[~track.discard].max()), track.timescale)

    @property
    def format(self) -> Mapping[str, object]:
        """What all chapters of a recording have in common."""
        index, video = self.pictures
        sound = self.sound[1] if self.sound else None
        lasts, often = np.unique(video.durations, return_counts=True)
        return {
            "codec": video.codec_tag,
            "picture size": (video.width, video.height),
            "frame rate": Fraction(video.timescale, max(int(lasts[often.argmax()]), 1)),
            "time scale": video.timescale,
            "stream": index,
            "sound": sound and (self.sound and self.sound[0], sound.codec_tag, sound.channels),
            "sound rate": sound and sound.timescale,
        }


# --- reading ---------------------------------------------------------------------------------


def read_chapter(path: Path) -> Chapter:
    """Read one file's index and what it says about itself.

    Raises
    ------
    NoMediaError
        It holds no pictures.
    CorruptFileError, NoMovieIndexError, EmptyFileError
        It is no whole MP4 file.
    """
    movie = read_movie(path)
    pictures = _find(movie, lambda t: t.handler == "vide" and not t.discard.all())
    if pictures is None:
        raise NoMediaError(
            "this GoPro file holds no pictures",
            path=path,
            hint="copy it from the camera's card again",
        )
    with path.open("rb") as file:
        boxes = {k: _box(file, movie, k) for k in ("CAME", "FIRM", "MUID", "GUMI", "GPMF")}
        code = _find(movie, lambda t: t.codec_tag == "tmcd" and bool(t.count))
        timecode = _timecode(file, code[1]) if code else None
    return Chapter(
        path=path,
        name=parse_name(path),
        movie=movie,
        identity=_identity(boxes),
        timecode=timecode,
        pictures=pictures,
        sound=_find(movie, lambda t: t.handler == "soun" and bool(t.count)),
        telemetry=_find(movie, lambda t: t.codec_tag == "gpmd" and bool(t.count)),
    )


def _find(movie: Movie, wanted: Callable[[Mp4Track], bool]) -> tuple[int, Mp4Track] | None:
    return next(((i, t) for i, t in enumerate(movie.tracks) if wanted(t)), None)


def _box(file: object, movie: Movie, kind: str) -> bytes:
    offset, size = movie.user_data.get(kind, (0, 0))
    file.seek(offset)  # type: ignore[attr-defined]
    data: bytes = file.read(min(size, MAX_BOX))  # type: ignore[attr-defined]
    return data


def _identity(boxes: Mapping[str, bytes]) -> Identity:
    told = gpmf.settings(boxes["GPMF"])
    camera = _hex(boxes["CAME"])
    media = {
        "MUID": _hex(boxes["MUID"]) if boxes["MUID"][16:].strip(b"\0") else "",  # else a camera's
        "GUMI": _hex(boxes["GUMI"]),
        "CPID": str(told.get("CPID", "")).strip("0"),
    }
    return Identity(
        camera=camera,
        serial=_text(told, "CASN") or camera,
        model=_text(told, "MINF"),
        firmware=_text(told, "FMWR") or boxes["FIRM"].decode("latin1").strip("\0 "),
        media={k: v for k, v in media.items() if v},
        utc_offset_min=_utc_offset(told.get("TZON")),
    )


def _text(told: Mapping[str, object], key: str) -> str:
    value = told.get(key, "")
    return value.strip() if isinstance(value, str) else ""


def _hex(raw: bytes) -> str:
    return raw.hex() if raw.strip(b"\0") else ""


def _utc_offset(zone: object) -> int | None:
    """Return minutes by which the camera's local time is ahead of UTC; 0x7fff is unknown."""
    return zone if isinstance(zone, int) and abs(zone) <= 14 * 60 else None


def _timecode(file: object, track: Mp4Track) -> TimeCode | None:
    """Read the counter and how it counts (QuickTime File Format, timecode media)."""
    if len(track.description) < 33 or track.sizes[0] < 4:
        return None
    flags, timescale, lasts = struct.unpack_from(">III", track.description, 20)
    file.seek(int(track.offsets[0]))  # type: ignore[attr-defined]
    raw: bytes = file.read(4)  # type: ignore[attr-defined]
    if len(raw) < 4 or not lasts or not 1 <= timescale / lasts <= MAX_FPS:
        return None
    return TimeCode(struct.unpack(">I", raw)[0], Fraction(timescale, lasts), bool(flags & 1))


def _dropped_labels(frames: int, nominal: int) -> int:
    """Return how many labels drop-frame counting skips before this frame (SMPTE 12M)."""
    drop = nominal // 15
    ten_minutes = nominal * 600 - 9 * drop
    tens, rest = divmod(frames, ten_minutes)
    minutes = max(rest - drop, 0) // (nominal * 60 - drop)
    return drop * (9 * tens + minutes)


# --- which files are one recording -----------------------------------------------------------


def siblings(path: Path) -> tuple[Path, ...]:
    """Return the files of the folder that are numbered as the same recording, in order."""
    name = parse_name(path)
    if name is None:
        return (path,)
    found = {path: name.chapter}
    for other in _movies(path.parent, path.suffix):
        told = parse_name(other)
        if told is not None and told.series == name.series:
            found.setdefault(other, told.chapter)
    ordered = sorted(found, key=lambda p: (found[p], p.name))
    if name.first is None:  # a loop: old pieces are gone, and letters are used again
        runs = np.cumsum(np.diff([found[p] for p in ordered], prepend=found[ordered[0]]) > 1)
        ordered = [p for p, r in zip(ordered, runs, strict=True) if r == runs[ordered.index(path)]]
    return tuple(ordered)


def _movies(folder: Path, suffix: str) -> Iterator[Path]:
    suffixes = MOVIE_SUFFIXES if suffix.lower() in MOVIE_SUFFIXES else (suffix.lower(),)
    try:
        there = sorted(folder.iterdir())
    except OSError:  # a folder that may not be read
        return
    yield from (p for p in there if p.suffix.lower() in suffixes and p.is_file())


def verify(chapters: Sequence[Chapter], *, totals_go_on: Sequence[bool | None]) -> list[Problem]:
    """Check that chapters, in order, are one whole recording.

    Parameters
    ----------
    totals_go_on
        For each seam, whether the telemetry's running totals go on over it; None: unknown.

    Raises
    ------
    MissingChapterError
        A number is missing.
    ForeignChapterError
        A chapter belongs to another camera or recording.
    CorruptFileError
        A chapter that others follow is cut off: where they begin is unknown.
    """
    _check_numbers(chapters)
    _check_whole(chapters[:-1])
    problems: list[Problem] = []
    for a, b, goes_on in zip(chapters, chapters[1:], totals_go_on, strict=False):
        _check_camera(a, b)
        _check_recording(a, b, goes_on)
        problems += _seam_problems(a, b)
    return problems


def _check_numbers(chapters: Sequence[Chapter]) -> None:
    names = [c.name for c in chapters if c.name is not None]
    if not names:
        return
    there = [n.chapter for n in names]
    twice = next((c for c, n in zip(chapters, there, strict=True) if there.count(n) > 1), None)
    if twice is not None:
        raise ForeignChapterError(
            "two files of this folder have the same chapter number of the same recording",
            path=twice.path,
            hint="keep each camera's files in a folder of their own",
        )
    start = there[0] if names[0].first is None else names[0].first
    missing = sorted(set(range(start, max(there) + 1)) - set(there))
    if missing:
        raise _missing(chapters, missing)


def _check_whole(chapters: Sequence[Chapter]) -> None:
    for chapter in chapters:
        if chapter.movie.truncated:
            raise CorruptFileError(
                f"this chapter is cut off ({chapter.pictures[1].lost} frames are missing), so the "
                "chapters after it cannot be timed",
                path=chapter.path,
                hint="copy it from the camera's card again",
            )


def _missing(chapters: Sequence[Chapter], missing: list[int]) -> MissingChapterError:
    have = ", ".join(c.path.name for c in chapters)
    old = chapters[0].name is not None and chapters[0].name.first == 0
    wanted = ", ".join(_old_label(n) if old else str(n) for n in missing)
    elsewhere = _elsewhere(chapters[0], missing)
    hint = "copy the missing file from the camera's card into this folder"
    if elsewhere is not None:
        where = f"{elsewhere.parent.name}/{elsewhere.name}"
        hint = f"{where} is from the same camera and recording: move it into this folder"
    return MissingChapterError(
        f"chapter {wanted} of this GoPro recording is missing (found: {have})",
        path=chapters[0].path,
        hint=hint,
    )


def _old_label(chapter: int) -> str:
    return f"GP{chapter:02d}..." if chapter else "GOPR..."


def _elsewhere(known: Chapter, missing: list[int]) -> Path | None:
    """Look for a missing chapter in the folders beside this one."""
    home = known.path.resolve().parent
    folders = [p for p in sorted(home.parent.iterdir()) if p.is_dir() and p != home]
    for folder in folders[:MAX_FOLDERS]:
        for path in _movies(folder, known.path.suffix):
            name = parse_name(path)
            numbered = name and known.name and name.series == known.name.series
            if not (name and numbered and name.chapter in missing):
                continue
            if _same(known.identity, path):
                return path
    return None


def _same(known: Identity, path: Path) -> bool:
    """Tell whether something says that a file is of this recording, and nothing denies it."""
    try:
        found = read_chapter(path).identity
    except InputError:
        return False
    shared = known.same_recording(found)
    return bool(shared or (shared is None and known.camera and known.camera == found.camera))


def _check_camera(a: Chapter, b: Chapter) -> None:
    for what in ("camera", "serial"):
        mine, other = getattr(a.identity, what), getattr(b.identity, what)
        if mine and other and mine != other:
            raise _foreign(a, b, f"it was written by another camera ({other}, not {mine})")
    for what, value in a.format.items():
        if b.format[what] != value:
            raise _foreign(a, b, f"its {what} is {b.format[what]}, not {value}")
    if b.first_s + a.duration_s < a.last_s:
        raise _foreign(a, b, "its first frame is to be shown before the last one of that file")


def _check_recording(a: Chapter, b: Chapter, totals_go_on: bool | None) -> None:
    """Refuse a chapter that something speaks against and nothing speaks for."""
    shared = a.identity.same_recording(b.identity)
    gap = _gap_s(a, b)
    continues = None if gap is None else abs(gap) <= CONTINUES_S
    if shared or totals_go_on or continues:
        return
    if shared is False:
        raise _foreign(a, b, "its media id is that of another recording")
    if gap is not None and not _restarts(a, b):
        raise _foreign(
            a, b, f"its time code is {float(gap):+.1f} s away from where it should go on"
        )


def _foreign(a: Chapter, b: Chapter, why: str) -> ForeignChapterError:
    return ForeignChapterError(
        f"this file is numbered as a continuation of {a.path.name} and is none: {why}",
        path=b.path,
        hint="keep each camera's files in a folder of their own, and look for the right file on "
        "the camera's card",
    )


def _gap_s(a: Chapter, b: Chapter) -> Fraction | None:
    """Return by how much b's time code starts later than a's ends [s], over midnight or not."""
    if a.timecode is None or b.timecode is None:
        return None
    gap = b.timecode.seconds - a.timecode.seconds - a.duration_s
    by_labels = DAY_S * round(a.timecode.fps) / a.timecode.fps  # a day of non-drop labels
    return min((gap, gap + DAY_S, gap + by_labels, gap - DAY_S, gap - by_labels), key=abs)


def _restarts(a: Chapter, b: Chapter) -> bool:
    """Tell cameras that write the recording's start into every chapter."""
    return a.timecode == b.timecode


def _seam_problems(a: Chapter, b: Chapter) -> Iterator[Problem]:
    gap = _gap_s(a, b)
    if gap is None or a.timecode is None or _restarts(a, b):
        return
    frames = round(gap * a.timecode.fps)
    where = f"between {a.path.name} and {b.path.name}"
    if abs(gap) > CONTINUES_S:
        yield Problem("timecode_jump", f"the time code jumps by {float(gap):+.1f} s {where}")
    elif frames > 0:
        text = f"by the time code {frames} frames were lost {where}"
        yield Problem("frames_lost", text, "video", severe=True)
    elif frames < 0:
        yield Problem("timecode_jump", f"the time code goes back by {-frames} frames {where}")
