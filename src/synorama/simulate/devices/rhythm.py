"""When the sensors of glasses sample: each on a crystal of its own, with habits of its own.

Rates and habits are those of real recordings of both generations. The right inertial unit of the
first is regular to 0.1 us, but every fifth of its samples is late by 46 us, and one in 25 strays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import sample_times_ns
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.simulate.devices.aria_streams import Glasses

    Int64 = NDArray[np.int64]

__all__ = ["Rhythm", "rhythm_of", "sensor_times_ns"]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How regular a sensor is.

    Parameters
    ----------
    nominal_hz
        What its configuration says.
    least_hz, most_hz
        Between which the rate of one device lies.
    jitter_ns
        One sigma of every time.
    late_every, late_ns
        Every how many samples one is late, and by how much; 0 for none.
    stray_share, stray_ns
        How many samples are off by anything between two limits.
    """

    nominal_hz: float
    least_hz: float
    most_hz: float
    jitter_ns: float
    late_every: int = 0
    late_ns: int = 0
    stray_share: float = 0.0
    stray_ns: tuple[float, float] = (0.0, 0.0)


GEN1: Mapping[str, Rhythm] = {
    "imu-right": Rhythm(1000.0, 999.5, 1001.5, 110.0, 5, 45_700, 0.04, (-9_000.0, 60_000.0)),
    "imu-left": Rhythm(800.0, 797.0, 808.0, 15.0),
    "mag": Rhythm(10.0, 9.76, 9.80, 2_000.0),
    "baro": Rhythm(50.0, 49.7, 49.9, 4_000.0),
}
GEN2: Mapping[str, Rhythm] = {
    "imu-left": Rhythm(800.0, 797.0, 801.0, 90.0),
    "imu-right": Rhythm(800.0, 790.0, 795.0, 15.0),
    "mag": Rhythm(100.0, 100.2, 100.6, 350.0),
    "baro": Rhythm(50.0, 49.6, 49.8, 1_000.0),
}


def rhythm_of(glasses: Glasses, name: str) -> Rhythm:
    """Return the habits of a sensor of these glasses."""
    return (GEN1 if glasses.generation == 1 else GEN2)[name]


def sensor_times_ns(glasses: Glasses, name: str) -> Int64:
    """Return the device times [ns] at which a sensor of these glasses samples."""
    rhythm = rhythm_of(glasses, name)
    rng = glasses.random(f"times {name}")
    rate_hz = float(rng.uniform(rhythm.least_hz, rhythm.most_hz))
    first_ns = glasses.start_ns + int(rng.uniform(0, NS_PER_S / rate_hz))
    count = int(glasses.seconds * rate_hz)
    off_ns = rhythm.jitter_ns * rng.standard_normal(count).clip(-4, 4)
    if rhythm.late_every:
        off_ns[int(rng.integers(rhythm.late_every)) :: rhythm.late_every] += rhythm.late_ns
    strays = rng.random(count) < rhythm.stray_share
    off_ns[strays] = rng.uniform(*rhythm.stray_ns, int(strays.sum()))
    return sample_times_ns(first_ns, rate_hz, 0, count) + np.rint(off_ns).astype(np.int64)
