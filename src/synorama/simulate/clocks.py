"""True clocks of simulated devices, and the randomness that belongs to each part.

The session clock is the device time of the glasses that serve the time. Every other device has a
clock of its own: glasses count from their start, files from their first frame. Clocks run
straight here; whoever wants one that wanders gives its map more knots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["SESSION", "randomness", "sample_times_ns", "steady_clock"]

SESSION = "session"
SLACK_NS = 10 * NS_PER_S  # truth reaches this far beyond the recording on both sides


def steady_clock(
    device: str, *, device_ns: int, session_ns: int, length_ns: int, drift_ppm: float
) -> ClockMap:
    """Return ``C_session_device`` of a clock that neither wanders nor jumps.

    Parameters
    ----------
    device
        Name of the device's clock.
    device_ns, session_ns
        The same moment, the start of the recording, on both clocks.
    length_ns
        How long it records, on its own clock.
    drift_ppm
        How much faster the session clock runs than the device's, in parts per million.
    """
    span = np.array([-SLACK_NS, length_ns + SLACK_NS], np.int64)
    gained = np.rint(span * (drift_ppm * 1e-6)).astype(np.int64)
    knots = np.column_stack([device_ns + span, session_ns + span + gained])
    return ClockMap(SESSION, device, knots)


def sample_times_ns(first_ns: int, rate_hz: float, start: int, count: int) -> Int64:
    """Return the times of samples ``start`` to ``start + count`` [ns] on the sampling clock."""
    steps = np.arange(start, start + count, dtype=np.float64) * (NS_PER_S / rate_hz)
    return first_ns + np.rint(steps).astype(np.int64)


def randomness(seed: int, *part: str) -> np.random.Generator:
    """Return the random numbers of one part of the session: apart from those of all others."""
    return np.random.default_rng([seed, *(crc32(name.encode()) for name in part)])
