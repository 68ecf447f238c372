"""From simulated raw files to a sealed session, against the truth of the simulation.

Each seed is a session of 120 s with two glasses, two GoPros and a webcam, processed and sealed
through the same functions as on the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.accept import Bar
from synorama.pipeline import Workspace, process
from synorama.records import Recording, RecordingClock, VideoTrack
from synorama.session import read_ingest, seal, validate
from synorama.simulate import simulate
from synorama.timebase import ClockMap

SECONDS = 120.0
SETTLED_S = 45.0

BARS = (
    Bar("glasses_settled_ms", "glasses' clock after settling", "ms", 0.5),
    Bar("glasses_start_ms", "glasses' clock at the start", "ms", 1.0),
    Bar("glasses_covered", "glasses' error inside 2 sigma or 1 ms, everywhere", "", 1.0, "share"),
    Bar("camera_sound_ms", "cameras by sound, start, middle, end", "ms", 0.1),
    Bar("camera_interval_held", "cameras' stated interval holds the truth", "", 1.0, "share"),
    Bar("frames_lost", "frames missing or too many, all tracks", "frames", 0.0),
    Bar("gopro_time_us", "GoPro frame times on their own clock", "us", 1.0),
    Bar("sealed_sound", "sealed file sound, every byte read", "", 1.0, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    session = folder / "session"
    truth = json.loads(simulate(session, seed=seed, seconds=SECONDS, room=None).read_text())
    work = Workspace(session)
    outcome = process(work)
    assert outcome.sync is not None
    recordings = {_file(session, r): r for r in read_ingest(work.part("ingest"))}
    measured: dict[str, float] = {}
    for told in truth["recordings"]:
        recording = recordings[told["files"][0]]
        clock = outcome.sync.clocks.get(recording.id)
        if clock is None:
            _worst(measured, "camera_sound_ms", 1e9)
            continue
        _measure_clock(measured, told, recording, clock)
        _measure_tracks(measured, told, recording)
    seal(outcome.session, folder / "sealed.h5")
    measured["sealed_sound"] = float(not validate(folder / "sealed.h5", every_byte=True))
    return measured


def _file(folder: Path, recording: Recording) -> str:
    return recording.files[0].path.resolve().relative_to(folder.resolve()).as_posix()


def _worst(measured: dict[str, float], name: str, value: float) -> None:
    measured[name] = max(measured.get(name, 0.0), value)


def _measure_clock(
    measured: dict[str, float], told: Mapping[str, Any], recording: Recording, clock: RecordingClock
) -> None:
    assert recording.first_ns is not None
    assert recording.last_ns is not None
    times = np.linspace(recording.first_ns, recording.last_ns, 101).astype(np.int64)
    truth = ClockMap("session", recording.id, np.array(told["acoustic"]["all"], np.int64))
    error_ms = np.abs(clock.apply(times) - truth.apply(times)) / 1e6
    if recording.device != "aria":
        _worst(measured, "camera_sound_ms", float(error_ms.max()))
        held = clock.interval95_ms is not None and error_ms.max() <= clock.interval95_ms
        measured["camera_interval_held"] = min(measured.get("camera_interval_held", 1.0), held)
        return
    settled = times >= times[0] + round(SETTLED_S * 1e9)
    _worst(measured, "glasses_settled_ms", float(error_ms[settled].max()))
    _worst(measured, "glasses_start_ms", float(error_ms[0]))
    sigma_ms = np.array([clock.maps[0].sigma_at(int(t)) for t in times]) / 1e6
    covered = bool((error_ms <= np.maximum(2 * sigma_ms, 1.0)).all())
    measured["glasses_covered"] = min(measured.get("glasses_covered", 1.0), covered)


def _measure_tracks(
    measured: dict[str, float], told: Mapping[str, Any], recording: Recording
) -> None:
    lost = 0
    for name, track in told["tracks"].items():
        mine = recording.tracks.get(name)
        lost += track["count"] if mine is None else abs(mine.count - track["count"])
        if recording.device == "gopro" and isinstance(mine, VideoTrack):
            ends = np.array([track["first_ns"], track["last_ns"]])
            away = np.abs(ends - np.array([mine.first_ns, mine.last_ns])).max() / 1e3
            _worst(measured, "gopro_time_us", float(away))
    _worst(measured, "frames_lost", float(lost))
