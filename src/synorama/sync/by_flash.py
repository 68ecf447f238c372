"""All cameras of a session against the flashes that they saw, where nothing else places them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from synorama.errors import InputError
from synorama.media.glance import brightness
from synorama.media.source import MediaSource
from synorama.records import Recording, RecordingClock, VideoTrack, picture_doubt_ns
from synorama.sync.by_card import best_camera
from synorama.sync.flash import Flashes, find_flashes, match_flashes
from synorama.sync.visual import EDGE_NS, SightClock, join

__all__ = ["CommonFlashes"]

LEAST_FRAMES = 10


@dataclass(slots=True)
class CommonFlashes:
    """The flashes that the cameras of a session saw at start and end; each is looked at once.

    Parameters
    ----------
    recordings
        By id.
    sources
        By recording, where its files lie now, in its order; else its own paths.
    """

    recordings: Mapping[str, Recording]
    sources: Mapping[str, Sequence[Path | MediaSource]]
    _seen: dict[str, Flashes] = field(default_factory=dict)

    def clock(self, name: str, clocks: Mapping[str, RecordingClock]) -> SightClock | str:
        """Return a recording's clock by flashes, or in words why there is none."""
        recording = self.recordings[name]
        first, last = recording.first_ns, recording.last_ns
        if first is None or last is None or best_camera(recording) is None:
            return "nor a flash"
        mine = self._flashes(name)
        if not len(mine.at_ns):
            return "no flash is seen either"
        why = "no camera whose clock is known saw a flash"
        for other, clock in clocks.items():
            if other == name or clock.interval95_ms is None or not len(self._flashes(other).at_ns):
                continue
            found = match_flashes(self._on_session(other, clock), mine)
            if not isinstance(found, str):
                knots = np.array([[at, t] for at, t, _ in found], np.int64)
                what = f"flashes that '{other}' saw too,"
                return join(knots, [half for *_, half in found], what, name, (first, last))
            why = found
        return why

    def _on_session(self, name: str, clock: RecordingClock) -> Flashes:
        seen, camera = self._flashes(name), best_camera(self.recordings[name])
        doubt_ns = (clock.interval95_ms or 0.0) * 1e6
        doubt_ns += picture_doubt_ns(camera, clock) if camera else 0
        span = clock.apply(seen.span_ns.reshape(-1)).reshape(-1, 2)
        return Flashes(clock.apply(seen.at_ns), seen.half_ns + doubt_ns, span)

    def _flashes(self, name: str) -> Flashes:
        if name not in self._seen:
            self._seen[name] = self._look(self.recordings[name])
        return self._seen[name]

    def _look(self, recording: Recording) -> Flashes:
        """Look at the first and the last minute of a recording's best camera."""
        camera = best_camera(recording)
        none = Flashes(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2), np.int64))
        if camera is None:
            return none
        files = self.sources.get(recording.id) or [f.path for f in recording.files]
        moments = camera.moments_ns
        try:
            parts = [
                find_flashes(
                    moments[first : first + count],
                    brightness(files, camera, first=first, count=count).astype(np.float64),
                )
                for first, count in _edges(camera)
            ]
        except InputError:  # what does not decode is told by those who need it
            return none
        return Flashes(
            np.concatenate([none.at_ns, *(p.at_ns for p in parts)]),
            np.concatenate([none.half_ns, *(p.half_ns for p in parts)]),
            np.concatenate([none.span_ns, *(p.span_ns for p in parts)]),
        )


def _edges(camera: VideoTrack) -> Iterator[tuple[int, int]]:
    """Yield first frame and count of the first and the last minute, of all where they meet."""
    times = camera.times_ns
    if camera.count < LEAST_FRAMES:
        return
    early = int(np.searchsorted(times, times[0] + EDGE_NS))
    late = int(np.searchsorted(times, times[-1] - EDGE_NS))
    if late <= early:
        yield 0, camera.count
        return
    yield from ((k, n) for k, n in ((0, early), (late, camera.count - late)) if n >= LEAST_FRAMES)
