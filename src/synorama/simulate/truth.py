"""What is true of a simulated session, for whoever checks a result against it.

``truth.json`` holds what a person can read; long tables lie beside it in ``truth.npz``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.timebase import ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["RecordingTruth", "TrackTruth", "write_tables", "write_truth"]

FORMAT = "synorama-truth"
VERSION = 2


@dataclass(frozen=True, slots=True, eq=False)
class TrackTruth:
    """What is true of one track.

    Parameters
    ----------
    count
        Frames, rows, or samples per channel.
    first_ns, last_ns
        True device times of the first and the last of them.
    source
        The stream in its file.
    barcode
        Camera number in the barcodes of its pictures; frame numbers count from 0. None: no
        pictures, or pictures without.
    times_ns
        Device times of all of them, where they are few.
    clock
        ``C_session_file`` where the track's times in the file are not those of the device, as
        after samples were lost.
    """

    count: int
    first_ns: int
    last_ns: int
    source: str
    barcode: int | None = None
    times_ns: Int64 | None = None
    clock: ClockMap | None = None

    @classmethod
    def of(cls, times_ns: Int64, *, source: str, barcode: int | None = None) -> TrackTruth:
        """Return the truth of a track with these times."""
        ends = int(times_ns[0]), int(times_ns[-1])
        return cls(len(times_ns), *ends, source, barcode, times_ns)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        told: dict[str, Any] = {
            "count": self.count,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "source": self.source,
            "barcode": self.barcode,
        }
        return told if self.clock is None else told | {"clock": self.clock.knots.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class RecordingTruth:
    """What is true of one recording.

    Parameters
    ----------
    name
        Its name in the simulated session.
    device
        ``aria-gen1``, ``gopro``, ``webcam``.
    role
        ``server`` or ``client`` for glasses, the place for cameras.
    serial
        Serial number, empty for a device without.
    files
        Its files in order, relative to the session's folder.
    clock
        ``C_session_device``: exact between its knots.
    tracks
        Truth of its tracks by name.
    acoustic
        By source of sound: ``(K, 2)`` device times at which sound arrived and session times at
        which it was made.
    cameras
        By track: its camera's model and pose.
    """

    name: str
    device: str
    role: str
    serial: str
    files: tuple[str, ...]
    clock: ClockMap
    tracks: Mapping[str, TrackTruth]
    acoustic: Mapping[str, Int64] = field(default_factory=dict)
    cameras: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values.

        ``clock`` is a list of knots ``[t_device_ns, t_session_ns]``. ``acoustic`` gives such
        knots for each source of sound: the device time at which it arrived, and the session time
        at which it was made.
        """
        return {
            "name": self.name,
            "device": self.device,
            "role": self.role,
            "serial": self.serial,
            "files": list(self.files),
            "clock": self.clock.knots.tolist(),
            "acoustic": {source: knots.tolist() for source, knots in self.acoustic.items()},
            "cameras": dict(self.cameras),
            "tracks": {name: track.as_json() for name, track in self.tracks.items()},
        }


def write_truth(
    path: Path, session: Mapping[str, Any], recordings: tuple[RecordingTruth, ...]
) -> None:
    """Write ``truth.json``: the session's own facts, then its recordings."""
    told = {
        "format": FORMAT,
        "version": VERSION,
        **session,
        "recordings": [recording.as_json() for recording in recordings],
    }
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def write_tables(path: Path, tables: Mapping[str, NDArray[Any]]) -> None:
    """Write ``truth.npz``: what is true of every frame, and of all times between."""
    with path.open("xb") as file:
        np.savez_compressed(file, **tables)  # type: ignore[arg-type]
