"""The simulated lab: truth against independent readers.

Every seed: a plain session of 60 s for the clocks of glasses, a room session of 16 s for when sound
arrives, corners in small pictures of all cameras. Every fourth seed also corners in full-size ones,
and the plain session processed and held against its truth. What sessions cost is measured by
``bench/simulate_cost.py``; that a hundred seeds build, and the same bytes come twice, by
``bench/seeds.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from projectaria_tools.core.sensor_data import TimeDomain, TimeSyncMode
from projectaria_tools.core.stream_id import StreamId
from tests.simulate.measures import Written, arrival_off_us

from bench import corners
from bench.accept import Bar
from synorama.pipeline import Workspace, process
from synorama.simulate import simulate
from synorama.simulate.check import check_session
from synorama.simulate.lab import DEVICES, Size
from synorama.simulate.scene.room import KINDS

SETTLED_NS = 50_000_000_000
SIZES: tuple[Size, ...] = ("small", "full")

BARS = (
    Bar("clock_us", "glasses' clocks through projectaria-tools, settled", "us", 2.0),
    Bar("arrival_us", "arrival by geometry against the written sound", "us", 20.0),
    Bar("corner_small_px", "every corner in written small pictures", "px", 0.5),
    Bar("corner_full_px", "every corner in written full-size pictures", "px", 0.5),
    Bar("promises_kept", "the plain session processed: no promise missed", "", 1.0, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Return what is measured of one seed."""
    room = KINDS[seed % len(KINDS)]
    bare: dict[str, Any] = {"seed": seed, "render": False, "mps": None, "scan": None}
    whole = seed % 4 == 1
    devices = DEVICES if whole else ("helper",)
    simulate(folder / "plain", **bare | {"room": None}, seconds=60.0, devices=devices)
    simulate(folder / "heard", **bare | {"room": room}, seconds=16.0)
    measured = {"clock_us": _clock_us(Written(folder / "plain"))}
    measured["arrival_us"] = _arrival_us(Written(folder / "heard"))
    for size in SIZES if whole else SIZES[:1]:
        place = folder / f"corners-{size}"
        place.mkdir()
        offs = corners.run(seed, size, place)
        measured[f"corner_{size}_px"] = max(off for view in offs.values() for off in view)
        measured[f"corners_{size}"] = sum(map(len, offs.values()))
    return measured | (_kept(folder / "plain") if whole else {})


def _kept(folder: Path) -> dict[str, float]:
    process(Workspace(folder))
    return {"promises_kept": float(all(x.held is not False for x in check_session(folder)))}


def _arrival_us(written: Written) -> float:
    """The worst of all devices, each with whoever speaks on it most clearly."""
    found = []
    for name in DEVICES:
        offs = [arrival_off_us(written, name, speaker) for speaker in ("leader", "helper")]
        found.append(abs(max(offs, key=lambda off: off[1])[0]))
    return max(found)


def _clock_us(written: Written) -> float:
    provider, clock = written.provider("helper"), written.clock("helper")
    stream = StreamId("214-1")
    times = np.array(provider.get_timestamps_ns(stream, TimeDomain.DEVICE_TIME), np.int64)
    late = times[times > times[0] + SETTLED_NS]
    told = [
        provider.convert_from_device_time_to_synctime_ns(int(t), TimeSyncMode.TIC_SYNC)
        for t in late
    ]
    assert len(late) > 200
    return float(np.abs(np.array(told) - clock.apply(late)).max() / 1e3)
