"""Sessions and plain files to transcripts: what joins capture, sync and speech."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.capture import open_recording
from synorama.errors import NoSoundError, UsageError
from synorama.records import Recording, RecordingClock, Transcript
from synorama.speech import Asked, DeviceSound, WindowStore, read_device, transcribe
from synorama.speech.backend import Recognizer
from synorama.speech.merge import segments_of
from synorama.speech.transcribe import heard_the_same

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int16 = NDArray[np.int16]

__all__ = ["session_sounds", "transcribe_files", "transcribe_session"]

WORN_DEVICES = ("aria",)
GAP_NS = 1_000_000_000  # a camera stands in where no glasses recorded for as long
STEP = 1600  # samples that are taken or left together
Progress = Callable[[int, int], None]


def transcribe_session(
    recordings: Sequence[Recording],
    clocks: Mapping[str, RecordingClock],
    recognizer: Recognizer,
    asked: Asked,
    *,
    store: WindowStore,
    progress: Progress | None = None,
) -> Transcript:
    """Transcribe a session on its clock; see `synorama.speech.transcribe`.

    Raises
    ------
    NoSoundError
        Nothing on the session clock has sound.
    ClocksDisagreeError
        Two devices heard the same more than 50 ms apart.
    """
    sounds = session_sounds(recordings, clocks)
    return transcribe(sounds, recognizer, asked, store=store, progress=progress)


def session_sounds(
    recordings: Sequence[Recording], clocks: Mapping[str, RecordingClock]
) -> list[DeviceSound]:
    """Return what the glasses heard, and one camera where no glasses recorded.

    Recordings without sound, or without a place on the session clock, are left out.
    """
    placed = [r for r in recordings if r.id in clocks and any(t.sample_count for t in r.audios)]
    worn = [r for r in placed if r.device in WORN_DEVICES]
    sounds = [
        read_device(r, speaker=r.participant or r.role or r.id, worn=True, clock=clocks[r.id])
        for r in worn
    ]
    others = [r for r in placed if r.device not in WORN_DEVICES]
    if others:
        camera = max(others, key=_seconds)
        if not worn or _reaches_beyond(camera, worn, clocks):
            sounds.append(_where_no_other(read_device(camera, clock=clocks[camera.id]), sounds))
    return [s for s in sounds if s.samples.any()]


def _seconds(recording: Recording) -> float:
    return max(t.sample_count / t.rate_hz for t in recording.audios)


def _reaches_beyond(
    camera: Recording, worn: Sequence[Recording], clocks: Mapping[str, RecordingClock]
) -> bool:
    """Tell cheaply whether a camera recorded sound when no glasses did."""
    first, last = _span(camera, clocks[camera.id])
    covered = sorted(_span(r, clocks[r.id]) for r in worn)
    at = first
    for begin, end in covered:
        if begin - at > GAP_NS:
            return True
        at = max(at, end)
    return last - at > GAP_NS


def _span(recording: Recording, clock: RecordingClock) -> tuple[int, int]:
    firsts = [t.first_ns for t in recording.audios if t.first_ns is not None]
    lasts = [t.last_ns for t in recording.audios if t.last_ns is not None]
    free = replace(clock, maps=tuple(replace(m, limit_ns=None) for m in clock.maps))
    first, last = free.apply(np.array([min(firsts), max(lasts)], np.int64))
    return int(first), int(last)


def _where_no_other(camera: DeviceSound, others: Sequence[DeviceSound]) -> DeviceSound:
    """Return the camera's sound with silence where somebody's glasses recorded."""
    samples: Int16 = camera.samples.copy()
    for other in others:
        begin, end = other.session_ns(np.array([0, len(other.samples)], np.int64))
        for first in range(0, len(samples), STEP):
            at = int(camera.session_ns(np.array([first + STEP // 2], np.int64))[0])
            if begin - GAP_NS // 4 <= at < end + GAP_NS // 4:
                samples[first : first + STEP] = 0
    return replace(camera, samples=samples)


# --- plain files ------------------------------------------------------------------------------


def transcribe_files(
    paths: Sequence[Path],
    recognizer: Recognizer,
    asked: Asked,
    *,
    together: bool | None = None,
    store: WindowStore = WindowStore(),  # noqa: B008
    progress: Progress | None = None,
) -> Transcript:
    """Transcribe plain sound or video files; times are those of each file's own timeline.

    Parameters
    ----------
    together
        The files began at the same moment and each was recorded by what one person wore: their
        levels tell who speaks, and what several heard is given once. False: every file is
        transcribed by itself. None: together where all have heard what the first has.

    Raises
    ------
    InputError
        A file cannot be used.
    """
    names = _names(paths)
    recordings = [replace(open_recording(p), id=n) for p, n in zip(paths, names, strict=True)]
    for path, recording in zip(paths, recordings, strict=True):
        if not any(t.sample_count for t in recording.audios):
            raise NoSoundError("the file has no sound", path=path, hint="give a file with sound")
    if len(paths) > 1 and together is not False:
        sounds = [read_device(r, speaker=r.id, worn=True) for r in recordings]
        if together or heard_the_same(sounds):
            made = transcribe(sounds, recognizer, asked, store=store, progress=progress)
            return made if together else _with_note(made, names)
    return _one_by_one(recordings, recognizer, asked, store, progress or (lambda *_: None))


def _with_note(made: Transcript, names: Sequence[str]) -> Transcript:
    note = (
        f"{', '.join(names)} have heard the same: they are taken for worn devices that began at "
        "the same moment; '--apart' takes each by itself"
    )
    return replace(made, warnings=(*made.warnings, note))


def _names(paths: Sequence[Path]) -> list[str]:
    """Name each file by as little of its path as tells it from the others."""
    real = [p.resolve() for p in paths]
    twice = [p for p, r in zip(paths, real, strict=True) if real.count(r) > 1]
    if twice:
        raise UsageError("the file is given twice", path=twice[0], hint="give each file once")
    whole = [p.absolute() for p in paths]
    stems = [p.stem for p in whole]
    return [w.stem if stems.count(w.stem) == 1 else _tail(w, whole) for w in whole]


def _tail(path: Path, others: Sequence[Path]) -> str:
    ends = (path.parts[-k:] for k in range(1, len(path.parts) + 1))
    own = next(e for e in ends if sum(o.parts[-len(e) :] == e for o in others) == 1)
    return "/".join(own)


def _one_by_one(
    recordings: Sequence[Recording],
    recognizer: Recognizer,
    asked: Asked,
    store: WindowStore,
    progress: Progress,
) -> Transcript:
    total = [round(_seconds(r)) for r in recordings]
    made = []
    for k, recording in enumerate(recordings):
        report = partial(_report, progress, sum(total[:k]), sum(total))
        sounds = [read_device(recording)]
        made.append(transcribe(sounds, recognizer, asked, store=store, progress=report))
    return _joined(made)


def _report(progress: Progress, before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def _joined(made: Sequence[Transcript]) -> Transcript:
    if len(made) == 1:
        return made[0]
    words = tuple(word for one in made for word in one.words)
    languages = [one.language for one in made if one.language]
    return replace(
        made[0],
        words=words,
        segments=segments_of(words),
        language=max(languages, key=languages.count) if languages else "",
        language_probability=None,
        warnings=tuple(dict.fromkeys(text for one in made for text in one.warnings)),
    )
