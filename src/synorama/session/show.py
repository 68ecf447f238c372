"""What is in a session file, as plain facts that can become JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from synorama.records import Recording, RecordingClock, Track, VideoTrack, picture_doubt_ns
from synorama.session.content import Content
from synorama.session.places import object_facts, place_facts, scanned_places_m
from synorama.session.read import Session
from synorama.session.schema import SCHEMA_VERSION

__all__ = ["summarize"]


def summarize(path: Path) -> dict[str, Any]:
    """Return what a session file holds: JSON-able, without media and without long tables.

    Raises
    ------
    SessionFileError
        The file is no session, unsafe, incomplete, damaged, or of another schema version.
    """
    session = Session(path)
    content = session.content
    info = content.info
    return {
        "session_id": info.session_id,
        "uuid": info.uuid,
        "schema_version": SCHEMA_VERSION,
        "file": session.path.name,
        "bytes": session.path.stat().st_size,
        "sealed": info.sealed,
        "verified": info.verified,
        "clock": info.clock,
        "epoch_utc": info.epoch_utc,
        "participants": list(info.participants),
        "views": list(content.view_times),
        "words": None if content.words is None else len(content.words),
        "warnings": list(session.warnings),
        "recordings": [_recording(content, one) for one in content.recordings.values()],
        "geometry": _places(path, content),
        "objects": [object_facts(one) for one in content.objects],
    }


def _places(path: Path, content: Content) -> dict[str, Any] | None:
    if content.geometry is None:
        return None
    return place_facts(content.geometry, scanned_places_m(path, content.geometry))


def _recording(content: Content, one: Recording) -> dict[str, Any]:
    clock = content.clocks.get(one.id)
    return {
        "id": one.id,
        "device": one.device,
        "role": one.role,
        "participant": one.participant,
        "model": one.model,
        "files": [
            {"name": file.name, "bytes": file.bytes, "digest": file.digest} for file in one.files
        ],
        "clock": None if clock is None else _clock(clock),
        "unsynced_because": content.unsynced.get(one.id),
        "coarse_clock": _clock(content.coarse[one.id]) if one.id in content.coarse else None,
        "tracks": [_track(track, clock) for track in one.tracks.values()],
        "withheld": list(content.withheld.get(one.id, ())),
        "problems": [problem.text for problem in one.problems],
    }


def _clock(clock: RecordingClock) -> dict[str, Any]:
    return {
        "method": clock.method,
        "interval95_ms": clock.interval95_ms,
        "p_match": clock.p_match,
        "segments": len(clock.maps),
        "basis": clock.basis,
    }


def _picture(track: VideoTrack, clock: RecordingClock | None) -> dict[str, Any]:
    within = None if clock is None else clock.interval95_ms
    if clock is not None and within is not None:
        within += picture_doubt_ns(track, clock) / 1e6
    return {"picture_skew_ms": track.skew_ns / 1e6, "picture_interval95_ms": within}


def _track(track: Track, clock: RecordingClock | None) -> dict[str, Any]:
    facts = _picture(track, clock) if isinstance(track, VideoTrack) else {}
    return facts | {
        "name": track.name,
        "kind": track.kind,
        "codec": getattr(track, "codec", None),
        "count": track.count,
        "first_ns": track.first_ns,
        "last_ns": track.last_ns,
        "rate_hz": getattr(track, "rate_hz", None),
        "width": getattr(track, "width", None),
        "height": getattr(track, "height", None),
        "channels": getattr(track, "channels", None),
    }
