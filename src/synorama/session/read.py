"""What consumers open: a session by its clock, the same whether media is linked or embedded."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import NotInSessionError
from synorama.media.audio import read_audio
from synorama.media.source import MediaSource
from synorama.media.video import VideoDecoder
from synorama.records import (
    AudioTrack,
    GeometryResult,
    ObjectRecord,
    Problem,
    Recording,
    RecordingClock,
    Samples,
    SampleTrack,
    Track,
    Transcript,
    VideoTrack,
    Word,
    picture_doubt_ns,
)
from synorama.session.choose import Select, Timeline, sample_spans
from synorama.session.content import Content, read_content
from synorama.session.guard import open_guarded
from synorama.session.links import check_linked, state_of_link
from synorama.session.objects_io import read_scanned_object, read_thumbnail
from synorama.session.poses import MAX_GAP_S, TRAJECTORY, Trajectory
from synorama.session.schema import SessionInfo
from synorama.session.storage import damage_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from synorama.geometry.objects import ScannedObject
    from synorama.transform import RigidTransform

    Int64 = NDArray[np.int64]

__all__ = ["Frame", "Session", "Sound", "UnverifiedSessionWarning", "open_session"]

NS_PER_S = 1_000_000_000


class UnverifiedSessionWarning(UserWarning):
    """No person has confirmed yet that the session's clocks and positions are right."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One picture of a view.

    Parameters
    ----------
    view
        ``recording/track``.
    index
        Which frame of the track, in display order.
    t_ns
        When it was taken, on the session clock.
    image
        ``(height, width, 3)`` RGB or ``(height, width)``, uint8, read-only, stored orientation.
    """

    view: str
    index: int
    t_ns: int
    image: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    """A stretch of sound.

    Parameters
    ----------
    t_ns
        ``(n,)`` int64: when each sample was taken, on the session clock.
    samples
        ``(n, channels)`` float32, full scale 1.
    """

    t_ns: Int64
    samples: NDArray[np.float32]


def open_session(path: str | PathLike[str], *, warn: bool = True) -> Session:
    """Open a session file for reading, whether its media is linked or embedded.

    The file is read through the guard and closed again at once; media is opened when it is asked
    for.

    Parameters
    ----------
    path
        A ``session.h5``, or a sealed release file.
    warn
        Raise the Python warning `UnverifiedSessionWarning` where no person has verified the
        session. `Session.warnings` says so in any case.

    Raises
    ------
    SessionFileError
        The file is no session, unsafe, incomplete, damaged, or of another schema version.
    """
    session = Session(path)
    if warn and not session.verified:
        warnings.warn(f"{Path(path).name}: {UNVERIFIED}", UnverifiedSessionWarning, stacklevel=2)
    return session


UNVERIFIED = (
    "no person has verified this session: check its clocks and pictures before you rely on it"
)


class Session:
    """A session on one clock. Use `open_session`; a context manager.

    It can be pickled and survives a fork: decoders belong to one process, the content is read
    again where it was not carried along. Recordings are named by their id or, where only one
    synchronized recording has it, by their role; views and tracks are ``recording/track``.

    Times are int64 ns of the session clock throughout.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._content: Content | None = read_content(self.path)
        self._process = _Process()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all media. The session can be used again; it then opens what it needs."""
        self._here().close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._content = None
        self._process = _Process()

    @property
    def content(self) -> Content:
        """All that the file tells short of media and long tables."""
        return self._read()

    def _read(self) -> Content:
        if self._content is None:
            self._content = read_content(self.path)
        return self._content

    def _here(self) -> _Process:
        """Return this process's decoders; those of a parent are left alone, not closed."""
        if self._process.pid != os.getpid():
            _OF_PARENTS.append(self._process)
            self._process = _Process()
        return self._process

    # --- what is in it ------------------------------------------------------------------------

    @property
    def info(self) -> SessionInfo:
        """What the session says of itself."""
        return self._read().info

    @property
    def verified(self) -> bool:
        """Whether a person has confirmed synchronization and registration."""
        return self.info.verified

    @property
    def participants(self) -> tuple[str, ...]:
        """Pseudonyms."""
        return self.info.participants

    @property
    def recordings(self) -> tuple[str, ...]:
        """Ids of all recordings, also of those that could not be placed."""
        return tuple(self._read().recordings)

    @property
    def views(self) -> tuple[str, ...]:
        """Video tracks on the session clock, as ``recording/track``."""
        return tuple(self._read().view_times)

    @property
    def coarse_views(self) -> tuple[str, ...]:
        """Video tracks whose session times are good to seconds or minutes, from wall clocks.

        They are in `views` of nobody and come only to those who say ``coarse=True``.
        """
        return tuple(self._read().coarse_times)

    @property
    def problems(self) -> Mapping[str, tuple[Problem, ...]]:
        """By recording, what an operator should know of it."""
        return {name: one.problems for name, one in self._read().recordings.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user of this session should know, in words."""
        content = self._read()
        unsynced = [f"{name}: not placed: {why}" for name, why in content.unsynced.items()]
        outside = [f"{name}: no session times: {why}" for name, why in content.outside.items()]
        unverified = [] if self.verified else [UNVERIFIED]
        spoken = content.transcript.warnings if content.transcript else ()
        things = [f"object {o.name} was not read: {o.refused}" for o in self.objects if o.refused]
        told = (*content.sync_warnings, *unsynced, *outside, *spoken, *things)
        return (*unverified, *told, *self._media_warnings())

    def recording(self, name: str) -> Recording:
        """Return a recording as its device gave it: times are the device's."""
        return self._read().recordings[self._recording_id(name)]

    def clock(self, name: str) -> RecordingClock:
        """Return a recording's clock: how device times become session times.

        Raises
        ------
        NotInSessionError
            No such recording, or it could not be placed on the session clock.
        """
        found = self._recording_id(name)
        clock = self._read().clocks.get(found)
        if clock is None:
            why = self._read().unsynced.get(found, "")
            raise NotInSessionError(
                f"recording '{found}' is not on the session clock: {why}", path=self.path
            )
        return clock

    # --- pictures -----------------------------------------------------------------------------

    def times_ns(self, view: str, *, coarse: bool = False) -> Int64:
        """Return the session times of all frames of a view, in display order.

        ``coarse``: also of those of `coarse_views`.
        """
        return self._times(self._view(view, coarse))

    def interval95_ms(self, view: str) -> float | None:
        """Return the half width of the 95 % interval of a view's times, coarse ones too.

        It holds what its recording's clock and its pictures against that clock are unsure by;
        None where nobody measured it.
        """
        name, track = self._view(view, coarse=True).split("/")
        content = self._read()
        clock = content.clocks.get(name) or content.coarse[name]
        video = content.recordings[name].tracks[track]
        if clock.interval95_ms is None or not isinstance(video, VideoTrack):
            return None
        return clock.interval95_ms + picture_doubt_ns(video, clock) / 1e6

    def _times(self, view: str) -> Int64:
        content = self._read()
        placed = content.view_times.get(view)
        return content.coarse_times[view] if placed is None else placed

    def frame(
        self,
        view: str,
        t_ns: int,
        *,
        select: Select = "previous",
        tolerance_s: float | None = None,
        coarse: bool = False,
    ) -> Frame | None:
        """Return the frame of a view at an instant; see `clip`."""
        name = self._view(view, coarse)
        tolerance_ns = None if tolerance_s is None else round(tolerance_s * NS_PER_S)
        i = self._timeline(name).pick(t_ns, select, tolerance_ns)
        return None if i is None else self._decode(name, i)

    def clip(
        self,
        t_ns: int,
        views: Sequence[str],
        frames: int = 1,
        step_s: float = 1.0,
        *,
        select: Select = "previous",
        tolerance_s: float | None = None,
        coarse: bool = False,
    ) -> dict[str, list[Frame | None]]:
        """Return frames of several views that end at an instant.

        Parameters
        ----------
        t_ns
            The last instant.
        views
            Any of `views`, also with a role for the recording.
        frames, step_s
            How many instants, and how far apart: ``t - (frames - 1) step ... t - step, t``.
        select
            ``previous``: the last frame at or before each instant, never a later one.
            ``nearest``: the nearest, before or after; the earlier of two as near.
        tolerance_s
            How far the frame may be from its instant. By default one and a half times the
            median distance of the view's frames: what jitter explains, and no gap.
        coarse
            Also allow views of `coarse_views`, whose times may be minutes off.

        Returns
        -------
        dict
            By view as it was asked for, in order of time; None where no frame is near enough.
        """
        step_ns = round(step_s * NS_PER_S)
        instants = [t_ns - k * step_ns for k in range(frames - 1, -1, -1)]
        return {
            view: [
                self.frame(view, t, select=select, tolerance_s=tolerance_s, coarse=coarse)
                for t in instants
            ]
            for view in views
        }

    def _timeline(self, view: str) -> Timeline:
        here = self._here()
        if view not in here.timelines:
            name, track = view.split("/")
            rate = getattr(self.recording(name).tracks[track], "rate_hz", None)
            here.timelines[view] = Timeline.of(self._times(view), rate)
        return here.timelines[view]

    def _decode(self, view: str, i: int) -> Frame:
        here = self._here()
        if view not in here.decoders:
            name, track = view.split("/")
            found = self.recording(name).tracks[track]
            here.decoders[view] = VideoDecoder(self._sources(name), found)  # type: ignore[arg-type]
        image = here.decoders[view].frame(i)
        return Frame(view, i, int(self._times(view)[i]), image)

    # --- sound, samples, words, poses ---------------------------------------------------------

    def audio(self, track: str, t0_ns: int, t1_ns: int) -> Sound:
        """Return the sound with session times in ``[t0, t1)``.

        Where the recording's clock jumps, the stretch may have a hole; the times tell.
        """
        name, sound = self._track(track)
        if not isinstance(sound, AudioTrack):
            raise NotInSessionError(f"'{track}' is no sound track", path=self.path)
        spans = sample_spans(self.clock(name), sound, t0_ns, t1_ns)
        pieces = [self._sound(name, sound, first, count) for first, count in spans]
        if not pieces:
            return Sound(np.zeros(0, np.int64), np.zeros((0, sound.channels), np.float32))
        return Sound(
            np.concatenate([p.t_ns for p in pieces]), np.concatenate([p.samples for p in pieces])
        )

    def _sound(self, name: str, track: AudioTrack, first: int, count: int) -> Sound:
        samples = read_audio(self._sources(name), track, first, count)
        indices = np.arange(first, first + len(samples), dtype=np.int64)
        return Sound(self.clock(name).apply(track.sample_times_ns(indices)), samples)

    def samples(self, track: str, t0_ns: int, t1_ns: int) -> Samples:
        """Return the rows of a sample track with session times in ``[t0, t1)``.

        Returns
        -------
        Samples
            Its ``times_ns`` are on the session clock.
        """
        rows = self._rows(track)
        kept = (rows.times_ns >= t0_ns) & (rows.times_ns < t1_ns)
        extra = {name: column[kept] for name, column in rows.extra.items()}
        return Samples(rows.times_ns[kept], rows.values[kept], extra)

    @property
    def transcript(self) -> Transcript | None:
        """All that was said and how it was found out; None where nobody transcribed it."""
        return self._read().transcript

    @property
    def geometry(self) -> GeometryResult | None:
        """Where scans, other glasses and cameras are; None where nothing was registered."""
        return self._read().geometry

    @property
    def objects(self) -> tuple[ObjectRecord, ...]:
        """What is known of the scanned objects, also of those that could not be read."""
        return self._read().objects

    def scanned_object(self, name: str) -> ScannedObject:
        """Return an object of `objects` whole: its surface [m], and its files byte for byte.

        Raises
        ------
        NotInSessionError
            There is no such object, or it could not be read.
        DamagedSessionError
            Its bytes are not those that were written.
        """
        with self._object_group(name) as group:
            return read_scanned_object(name, group, self.path)

    def thumbnail(self, name: str) -> bytes:
        """Return a PNG picture of an object of `objects`; errors as `scanned_object`."""
        with self._object_group(name) as group:
            return read_thumbnail(group)

    @contextmanager
    def _object_group(self, name: str) -> Iterator[Any]:
        found = next((one for one in self.objects if one.name == name), None)
        if found is None or found.refused:
            why = f": {found.refused}" if found else ""
            raise NotInSessionError(
                f"there is no object '{name}'{why}",
                path=self.path,
                hint="objects are: " + ", ".join(o.name for o in self.objects if not o.refused),
            )
        with open_guarded(self.path) as file, damage_named(self.path):
            yield file["geometry/objects"][name]

    def words(self, t0_ns: int, t1_ns: int) -> tuple[Word, ...]:
        """Return the words that ended after ``t0`` and by ``t1``, in order of their end.

        Words whose end nobody knows are left out: they may lie in the future.

        Raises
        ------
        NotInSessionError
            The session was not transcribed.
        """
        words = self._read().words
        if words is None:
            raise NotInSessionError("the session has no transcript", path=self.path)
        ended = [w for w in words if w.end_ns is not None and t0_ns < w.end_ns <= t1_ns]
        return tuple(sorted(ended, key=lambda word: word.end_ns or 0))

    def pose(self, name: str, t_ns: int, *, max_gap_s: float = MAX_GAP_S) -> RigidTransform | None:
        """Return ``T_world_device`` of a recording at an instant, interpolated.

        Parameters
        ----------
        max_gap_s
            The two poses around the instant may be this far apart. Nothing is extrapolated.

        Returns
        -------
        RigidTransform or None
            From frame ``recording/device``; None outside the trajectory, in a gap of it, or
            where it changes to another world.

        Raises
        ------
        NotInSessionError
            The recording has no ``closed_loop_trajectory``, or is not on the session clock.
        """
        here, found = self._here(), self._recording_id(name)
        if found not in here.trajectories:
            rows = self._rows(f"{found}/{TRAJECTORY}")
            track = self._sample_track(f"{found}/{TRAJECTORY}")[1]
            device = f"{found}/device"
            here.trajectories[found] = Trajectory.of(rows, track.columns, track.frame, device)
        return here.trajectories[found].at(t_ns, round(max_gap_s * NS_PER_S))

    def _rows(self, track: str) -> Samples:
        """Return all rows of a sample track on the session clock; read once a process."""
        here = self._here()
        name, found = self._sample_track(track)
        key = f"{name}/{found.name}"
        if key in self._read().outside:
            why = self._read().outside[key]
            raise NotInSessionError(f"'{key}' has no session times: {why}", path=self.path)
        if key not in here.rows:
            rows = found.read()
            times = self.clock(name).apply(rows.times_ns)
            here.rows[key] = replace(rows, times_ns=times)
        return here.rows[key]

    # --- names --------------------------------------------------------------------------------

    def _recording_id(self, name: str) -> str:
        content = self._read()
        if name in content.recordings:
            return name
        roles = [key for key in content.clocks if content.recordings[key].role == name]
        if len(roles) == 1:
            return roles[0]
        known = ", ".join(roles or content.recordings)
        what = f"several recordings have the role '{name}'" if roles else f"no recording '{name}'"
        raise NotInSessionError(what, path=self.path, hint=f"known are: {known}")

    def _view(self, view: str, coarse: bool = False) -> str:
        known = {*self.views, *(self.coarse_views if coarse else ())}
        if view in known:
            return view
        name, track = self._split(view)
        key = f"{self._recording_id(name)}/{track}"
        if key in known:
            return key
        only = " but coarsely; say coarse=True to have it" * (key in self.coarse_views)
        raise NotInSessionError(
            f"no view '{view}' on the session clock{only}",
            path=self.path,
            hint="views are: " + ", ".join(self.views),
        )

    def _track(self, track: str) -> tuple[str, Track]:
        name, rest = self._split(track)
        recording = self.recording(name)
        if rest not in recording.tracks:
            raise NotInSessionError(
                f"recording '{recording.id}' has no track '{rest}'",
                path=self.path,
                hint="its tracks are: " + ", ".join(recording.tracks),
            )
        return recording.id, recording.tracks[rest]

    def _sample_track(self, track: str) -> tuple[str, SampleTrack]:
        name, found = self._track(track)
        if not isinstance(found, SampleTrack):
            raise NotInSessionError(f"'{track}' holds no samples", path=self.path)
        return name, found

    def _split(self, track: str) -> tuple[str, str]:
        name, slash, rest = track.partition("/")
        if not (name and slash and rest):
            raise NotInSessionError(f"'{track}' is not of the form recording/track", path=self.path)
        return name, rest

    # --- media --------------------------------------------------------------------------------

    def _sources(self, name: str) -> tuple[MediaSource, ...]:
        """Return where the bytes of a recording's files lie, once they are known to be there."""
        here = self._here()
        if name not in here.sources:
            recording, sources = self._read().recordings[name], self._read().sources[name]
            for file, source in zip(recording.files, sources, strict=True):
                if source.size is None:
                    check_linked(source.path, file, self.path)
            here.sources[name] = sources
        return here.sources[name]

    def _media_warnings(self) -> list[str]:
        content = self._read()
        texts = [
            state_of_link(source.path, file, self.path.parent)
            for name, one in content.recordings.items()
            for file, source in zip(one.files, content.sources[name], strict=True)
            if source.size is None
        ]
        return [text for text in texts if text]


_OF_PARENTS: list[_Process] = []
"""Decoders that a fork copied: kept, because freeing them here may wait for threads for ever."""


@dataclass
class _Process:
    """What belongs to one process: open decoders, and tables that were read on demand."""

    pid: int = field(default_factory=os.getpid)
    decoders: dict[str, VideoDecoder] = field(default_factory=dict)
    sources: dict[str, tuple[MediaSource, ...]] = field(default_factory=dict)
    rows: dict[str, Samples] = field(default_factory=dict)
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    timelines: dict[str, Timeline] = field(default_factory=dict)

    def close(self) -> None:
        for decoder in self.decoders.values():
            decoder.close()
        self.decoders.clear()
        self.sources.clear()
