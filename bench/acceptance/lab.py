"""The simulated lab: truth against independent readers, cost, seeds.

Each seed is a room: the small session of 60 s; glasses alone for their clocks; a full-size moment
for corners of the checkerboard, where a camera has it in view. The first seed also measures the
cost of a full-size pair of glasses, and that the same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from projectaria_tools.core.sensor_data import TimeSyncMode
from projectaria_tools.core.stream_id import StreamId
from tests.simulate.measures import Written, arrival_off_us, corner_off_px

from bench.accept import Bar
from bench.measuring import run_case
from synorama.pipeline import Workspace, process
from synorama.simulate import simulate, simulate_plan
from synorama.simulate.check import check_session
from synorama.simulate.lab import CAMERAS, DEVICES
from synorama.simulate.scene.room import KINDS
from synorama.simulate.stage import RoomStage

MODULE = "bench.acceptance.lab"
SETTLED_NS = 50_000_000_000
ROOMS_A_SEED = 50
CORNER_TRACKS = (
    ("leader", "slam-left", "camera-slam-left"),
    ("leader", "slam-right", "camera-slam-right"),
    ("leader", "rgb", "camera-rgb"),
    ("gopro-front", "video", "gopro-front"),
    ("gopro-rear", "video", "gopro-rear"),
)

BARS = (
    Bar("clock_us", "glasses' clocks through projectaria-tools, settled", "us", 2.0),
    Bar("arrival_us", "arrival by geometry against the written sound", "us", 20.0),
    Bar("corner_px", "corners in written full-size pictures, median of a seed", "px", 0.5),
    Bar("small_cpu_s", "60 s small session with everything", "CPU s", 90.0),
    Bar("small_mb", "its peak memory", "MB", 1500.0),
    Bar("glasses_cpu_s", "5 min of two full-size glasses, pictures repeat", "CPU s", 120.0),
    Bar("glasses_mb", "their peak memory", "MB", 1500.0),
    Bar(
        "rooms_built",
        "50 rooms of fresh seeds, built and walked in",
        "",
        1.0,
        "share",
    ),
    Bar("same_bytes", "the same seed gives the same bytes", "", 1.0, "share"),
    Bar("promises_kept", "processed: no promise missed", "", 1.0, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Measure each part in a process of its own: a child's peak memory begins with its parent's."""
    used = run_case(MODULE, "small", folder / "small", seed)
    measured = {"small_cpu_s": used.cpu_s, "small_mb": used.peak_mb}
    if seed % 10 == 0:
        used = run_case(MODULE, "glasses", folder / "glasses", seed)
        measured |= {"glasses_cpu_s": used.cpu_s, "glasses_mb": used.peak_mb}
    told: dict[str, float] = run_case(MODULE, "truth", folder, seed).said
    return measured | told


def _truth(folder: Path, seed: int) -> dict[str, float]:
    written = Written(folder / "small")
    measured = {"arrival_us": _arrival_us(written), "clock_us": _clock_us(written)}
    process(Workspace(written.folder))
    kept = all(line.held is not False for line in check_session(written.folder))
    measured |= {"promises_kept": float(kept), "same_bytes": _same_bytes(seed, folder)}
    return measured | {"rooms_built": _rooms(seed)} | _corners(seed, folder / "full")


def _rooms(seed: int) -> float:
    """Plan sessions of seeds of which no two runs share any: rooms, people, talk, cameras."""
    for k in range(seed * ROOMS_A_SEED, (seed + 1) * ROOMS_A_SEED):
        lab = simulate_plan(seed=k, room=KINDS[k % len(KINDS)])
        stage = RoomStage(lab, k)
        assert len(stage.stands) == len(CAMERAS)
        assert stage.facts()["words"]
    return 1.0


def _arrival_us(written: Written) -> float:
    """The worst of all devices, each with whoever speaks on it most clearly."""
    found = []
    for name in DEVICES:
        offs = [arrival_off_us(written, name, speaker) for speaker in ("leader", "helper")]
        found.append(abs(max(offs, key=lambda off: off[1])[0]))
    return max(found)


def _clock_us(written: Written) -> float:
    provider, clock = written.provider("helper"), written.clock("helper")
    times = written.tables["frames/helper/rgb/t_device_ns"]
    late = times[times > times[0] + SETTLED_NS]
    told = [
        provider.convert_from_device_time_to_synctime_ns(int(t), TimeSyncMode.TIC_SYNC)
        for t in late
    ]
    assert provider.get_num_data(StreamId("214-1")) == len(times)
    return float(np.abs(np.array(told) - clock.apply(late)).max() / 1e3)


def _same_bytes(seed: int, folder: Path) -> float:
    asked: dict[str, Any] = {"seed": seed, "seconds": 4.0, "devices": ("helper", "webcam")}
    digests = []
    for name in ("a", "b"):
        simulate(folder / name, **asked)
        files = sorted(p for p in (folder / name).rglob("*") if p.is_file())
        digests.append([hashlib.sha256(p.read_bytes()).hexdigest() for p in files])
    return float(digests[0] == digests[1])


def _corners(seed: int, folder: Path) -> dict[str, float]:
    simulate(
        folder, seed=seed, seconds=4.0, size="full", mps=None, scan=None,
        devices=("leader", "gopro-front", "gopro-rear"),
    )  # fmt: skip
    written = Written(folder)
    found = [corner_off_px(written, *track) for track in CORNER_TRACKS]
    offs = np.concatenate(found)
    return {"corner_px": float(np.median(offs))} if len(offs) else {}


def _case(case: str, folder: Path, seed: int) -> None:
    """Make one session whose cost is measured from outside, or measure what was made."""
    if case == "small":
        simulate(folder, seed=seed, seconds=60.0)
    elif case == "truth":
        print(json.dumps(_truth(folder, seed)))
    else:
        both = ("leader", "helper")
        simulate(folder, seed=seed, seconds=300.0, size="full", room=None, devices=both)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One case of the costs; see bench/accept.py.")
    parser.add_argument("--case", nargs=3, required=True)
    case, place, number = parser.parse_args().case
    _case(case, Path(place), int(number))
