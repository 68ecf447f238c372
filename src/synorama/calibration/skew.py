"""A camera's skew between picture and sound, from one file of flashes with beeps, or of claps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture import open_recording
from synorama.errors import NoMediaError, NoSoundError, UsageError
from synorama.media.audio import MonoSound, read_mono
from synorama.media.glance import brightness
from synorama.sync.skew import SkewMeasurement, measure_skew

if TYPE_CHECKING:
    from synorama.records import Recording, VideoTrack

__all__ = ["SPEED_OF_SOUND_M_S", "CameraSkew", "calibrate_skew"]

SPEED_OF_SOUND_M_S = 343.0
NEAR_M = 0.5  # what flashes is held before the lens
FARTHEST_M = 100.0
LONGEST_S = 180.0


@dataclass(frozen=True, slots=True)
class CameraSkew:
    """What was measured of one camera.

    Parameters
    ----------
    file
        The file it was measured on.
    serial, model
        The camera, as far as its file tells.
    measured
        The skew, the travel of sound taken out.
    distance_m
        How far away the events were; None where nobody said: the interval then holds half a metre.
    """

    file: str
    serial: str
    model: str
    measured: SkewMeasurement
    distance_m: float | None

    @property
    def skew_ms(self) -> float:
        """``t_sound = t_picture + skew``: positive where sound is stamped later."""
        return self.measured.skew_ns / 1e6

    @property
    def within_ms(self) -> float:
        """Half width of its 95 % interval."""
        return self.measured.half_ns / 1e6

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "file": self.file,
            "serial": self.serial,
            "model": self.model,
            "picture_to_sound_skew_ms": self.skew_ms,
            "picture_to_sound_within_ms": self.within_ms,
            "method": self.measured.method,
            "events": self.measured.events,
            "dropped": self.measured.dropped,
            "distance_m": self.distance_m,
            "note": self.measured.note,
        }


def calibrate_skew(
    path: Path,
    *,
    distance_m: float | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CameraSkew:
    """Measure how far a camera's pictures are off its own sound.

    Parameters
    ----------
    path
        A recording of the camera in which light flashes with beeps, or somebody claps, a few
        times; of a longer one, the first three minutes.
    distance_m
        How far from the camera that was [m]: sound takes 2.9 ms for each metre. By default at the
        lens, and the interval holds half a metre.
    progress
        Called as ``progress(done, total)``.

    Raises
    ------
    InputError
        The file cannot be read, or has no pictures or no sound.
    SkewRefusedError
        There is nothing in it, or too little, or what contradicts itself.
    UsageError
        The distance is no distance.
    """
    if distance_m is not None and not 0 <= distance_m <= FARTHEST_M:
        raise UsageError(f"{distance_m} m is no distance", hint="give metres, such as 0.5")
    recording = open_recording(path)
    camera, sound = _camera(recording, path), _sound(recording, path)
    files = [f.path for f in recording.files]
    count = int(np.searchsorted(camera.times_ns, int(camera.times_ns[0] + LONGEST_S * 1e9)))
    parts = brightness(files, camera, count=count, progress=progress)
    found = measure_skew(camera.times_ns[:count], parts.astype(np.float64), sound, path=str(path))
    travelled = _without_travel(found, distance_m)
    return CameraSkew(str(path), recording.serial, recording.model, travelled, distance_m)


def _camera(recording: Recording, path: Path) -> VideoTrack:
    cameras = [t for t in recording.videos if t.count > 1]
    if not cameras:
        raise NoMediaError(
            "it has no moving pictures", path=path, hint="film flashes with beeps, with sound"
        )
    return max(cameras, key=lambda t: (t.name == "rgb", t.width * t.height))


def _sound(recording: Recording, path: Path) -> MonoSound:
    tracks = [t for t in recording.audios if t.sample_count]
    if not tracks:
        raise NoSoundError("it has no sound", path=path, hint="film again with the microphone on")
    longest = max(tracks, key=lambda t: t.sample_count / t.rate_hz)
    return read_mono([f.path for f in recording.files], longest, name=recording.id)


def _without_travel(found: SkewMeasurement, distance_m: float | None) -> SkewMeasurement:
    """Take out the time that sound took to the camera; where nobody said, none, and doubt it."""
    near_ns = NEAR_M / SPEED_OF_SOUND_M_S * 1e9
    travel_ns = 0 if distance_m is None else round(distance_m / SPEED_OF_SOUND_M_S * 1e9)
    return replace(
        found,
        skew_ns=found.skew_ns - travel_ns,
        half_ns=found.half_ns + (near_ns if distance_m is None else 0),
    )
