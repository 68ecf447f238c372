"""All cameras of a session against the clock card that they saw.

Whoever has a clock that does not rest on sound (the session's reference, glasses with hardware
time) says when the card was shown; a camera that saw the same card is placed by it, or, if it has
a clock, held against it. The pictures of other cameras are looked at only where the reference
saw a card, or where a recording has no other clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from synorama.errors import InputError
from synorama.media.source import MediaSource
from synorama.records import Recording, RecordingClock, VideoTrack, picture_doubt_ns
from synorama.sync.visual import CardSeen, Shown, SightClock, cards_seen, clock_by_card

__all__ = ["Cards", "best_camera"]

UNTRUSTED = ("sound", "manual", "utc", "creation_time")
NOT_SCENES = ("et", "eye")  # cameras that look at the wearer's eyes


@dataclass(slots=True)
class Cards:
    """The clock cards that the cameras of a session saw; each camera is looked at once.

    Parameters
    ----------
    recordings
        By id.
    sources
        By recording, where its files lie now, in its order; else its own paths.
    """

    recordings: Mapping[str, Recording]
    sources: Mapping[str, Sequence[Path | MediaSource]]
    _seen: dict[str, tuple[CardSeen, ...]] = field(default_factory=dict)

    def seen(self, name: str) -> tuple[CardSeen, ...]:
        """Return the cards that a recording's best camera saw, timed as its sound is."""
        if name not in self._seen:
            self._seen[name] = self._look(self.recordings[name])
        return self._seen[name]

    def _look(self, recording: Recording) -> tuple[CardSeen, ...]:
        camera = best_camera(recording)
        if camera is None:
            return ()
        files = self.sources.get(recording.id) or [f.path for f in recording.files]
        try:
            found = cards_seen(files, camera)
        except InputError:  # what does not decode is told by those who need it
            return ()
        return tuple(replace(s, at_ns=s.at_ns + camera.skew_ns) for s in found)

    def clock(self, name: str, clocks: Mapping[str, RecordingClock]) -> SightClock | str:
        """Return a recording's clock by the card, or in words why there is none."""
        recording = self.recordings[name]
        first, last = recording.first_ns, recording.last_ns
        if first is None or last is None or best_camera(recording) is None:
            return "it has no pictures in which a clock card could be seen"
        mine = self.seen(name)
        shown = self._shown(name, clocks) if mine else []
        return clock_by_card(shown, mine, name, (first, last))

    def _shown(self, name: str, clocks: Mapping[str, RecordingClock]) -> list[Shown]:
        """Return when the card was shown, by trusted clocks if any of those saw one."""
        others = {n: c for n, c in clocks.items() if n != name and c.interval95_ms is not None}
        trusted = {n: c for n, c in others.items() if c.method not in UNTRUSTED}
        found = [s for n, c in trusted.items() for s in self._shown_by(n, c)]
        return found or [s for n, c in others.items() for s in self._shown_by(n, c)]

    def _shown_by(self, name: str, clock: RecordingClock) -> list[Shown]:
        camera = best_camera(self.recordings[name])
        if camera is None:
            return []
        doubt_ns = (clock.interval95_ms or 0.0) * 1e6 + picture_doubt_ns(camera, clock)
        return [
            Shown(s.card, s.card_ns, _at(clock, s.at_ns), s.half_ns + doubt_ns)
            for s in self.seen(name)
        ]


def best_camera(recording: Recording) -> VideoTrack | None:
    """Return the camera with the largest pictures of the scene, None without one."""
    scenes = [t for t in recording.videos if t.count and not t.name.startswith(NOT_SCENES)]
    return max(scenes, key=lambda t: (t.name == "rgb", t.width * t.height), default=None)


def _at(clock: RecordingClock, t_ns: int) -> int:
    return int(clock.apply(np.array([t_ns], np.int64))[0])
