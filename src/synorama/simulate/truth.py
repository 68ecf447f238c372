"""What is true of a simulated session, for whoever checks a result against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.timebase import ClockMap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RecordingTruth", "TrackTruth", "write_truth"]

FORMAT = "synorama-truth"
VERSION = 1


@dataclass(frozen=True, slots=True)
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
        pictures.
    """

    count: int
    first_ns: int
    last_ns: int
    source: str
    barcode: int | None = None

    @classmethod
    def of(
        cls, times_ns: NDArray[np.int64], *, source: str, barcode: int | None = None
    ) -> TrackTruth:
        """Return the truth of a track with these times."""
        return cls(len(times_ns), int(times_ns[0]), int(times_ns[-1]), source, barcode)


@dataclass(frozen=True, slots=True)
class RecordingTruth:
    """What is true of one recording.

    Parameters
    ----------
    name
        Its name in the simulated session, also its folder.
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
    """

    name: str
    device: str
    role: str
    serial: str
    files: tuple[str, ...]
    clock: ClockMap
    tracks: Mapping[str, TrackTruth]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values.

        ``clock`` and ``acoustic`` are knots ``[[t_device_ns, t_session_ns], ...]``. ``acoustic``
        gives for the device time at which a sound arrived the session time at which it was made:
        where sound takes no time to travel, both are the same.
        """
        knots = self.clock.knots.tolist()
        return {
            "name": self.name,
            "device": self.device,
            "role": self.role,
            "serial": self.serial,
            "files": list(self.files),
            "clock": knots,
            "acoustic": knots,
            "tracks": {name: asdict(track) for name, track in self.tracks.items()},
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
