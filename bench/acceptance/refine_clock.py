"""A camera's clock without the travel of sound: positions known to 5 cm, to 10 cm, unknown.

Each seed is a session of 60 s in a room (all kinds take turns, a quarter with a bystander who
talks), placed by the product's own alignment of sounds and then refined. Truth is the devices'
clocks. What is given is wrong as it is in practice: the camera's position by 5 or 10 cm, one sigma
along each axis; trajectories as the services' are; the second glasses' clock by 0.25 ms and the
speed of sound by 0.5 %, one sigma. Where a camera is not refined, the clock of sync counts.

Then the camera loses 10 to 80 ms of its sound at some moment of the middle half. Its clock, by
sync and by refinement, is compared on both sides of that, but for the pause that it may lie in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from bench.accept import Bar
from bench.room_sessions import CAMERA, WEARERS, RoomSession, room_session
from synorama.records import RecordingClock
from synorama.simulate.clocks import randomness
from synorama.sync.acoustics import (
    SPEED_OF_SOUND_M_S,
    Place,
    Talker,
    hear_speech,
    own_speech,
    refine_camera,
)
from synorama.sync.network import Hearing, place
from synorama.sync.solve import FARTHEST_M, travel_ms

SECONDS = 60.0
SIGMA_S, SPEED_SIGMA = 0.25e-3, 0.005
LOST_S = (0.01, 0.08)
AROUND_NS = 3_000_000_000  # speech pauses
Z95 = 1.96
TRAVEL_MS = 1e3 * FARTHEST_M / SPEED_OF_SOUND_M_S

BARS = (
    Bar("placed", "placed by sync; the others are not counted below", "", 0.9, "share"),
    Bar("sync_held", "by sync alone: its interval holds the truth", "", 0.95, "share"),
    Bar("at_5cm_ms", "position to 5 cm: error over the session", "ms", 0.5),
    Bar("at_5cm_half_ms", "sessions with at most 0.5 ms", "", 0.95, "share"),
    Bar("at_5cm_held", "its interval holds the truth", "", 0.95, "share"),
    Bar("at_5cm_interval_ms", "its interval", "ms", 0.5, "median"),
    Bar("at_10cm_ms", "position to 10 cm: error over the session", "ms", 1.0, "median"),
    Bar("at_10cm_one_ms", "sessions with at most 1 ms", "", 0.95, "share"),
    Bar("at_10cm_held", "its interval holds the truth", "", 0.95, "share"),
    Bar("at_10cm_interval_ms", "its interval", "ms", 1.0, "median"),
    Bar("unknown_held", "position unknown: its interval holds the truth", "", 0.95, "share"),
    Bar(
        "unknown_interval_ms",
        f"its interval, against 5 ms more than sound takes over {FARTHEST_M:g} m",
        "ms",
        TRAVEL_MS + 5.0,
    ),
    Bar("unknown_ms", "its error over the session", "ms", 1.0, "median"),
    Bar("unknown_refined", "position unknown: found by sound", "", 0.5, "share"),
    Bar("made_up", "losses told where nothing was lost", "", 0.0),
    Bar("lost_seen", "10 to 80 ms lost: seen by sync", "", -math.inf, "share"),
    Bar("lost_told", "10 to 80 ms lost: seen by sync or by refinement", "", 0.95, "share"),
    Bar("lost_ms", "its error on both sides, position to 10 cm", "ms", 1.0, "median"),
    Bar("lost_held", "its interval holds the truth on both sides", "", 0.95, "share"),
    Bar("refine_cpu_s", "cost of one refinement", "CPU s", 2.0, "median"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Return what one session gives."""
    session = room_session(seed, SECONDS)
    rough = _placed(session)
    if rough is None:
        return {"placed": 0.0}
    rng = randomness(seed, "what is given")
    talkers = [_talker(session, name, rng) for name in WEARERS]
    speed = SPEED_OF_SOUND_M_S * (1 + SPEED_SIGMA * rng.standard_normal())
    began = time.process_time()
    heard = hear_speech(own_speech(talkers), session.sounds[CAMERA], rough)
    measured = {"placed": 1.0} | _judged("sync", session, rough)
    for case, sigma_m in (("at_5cm", 0.05), ("at_10cm", 0.1), ("unknown", None)):
        given = None
        if sigma_m is not None:
            off = sigma_m * rng.standard_normal(3)
            given = Place(session.camera_m + off, sigma_m**2 * np.eye(3))
        result = refine_camera(heard, given, speed_m_s=speed)
        measured |= _judged(case, session, result.clock or rough)
        measured[f"{case}_refined"] = float(result.accepted)
        made_up = max(measured.get("made_up", 0.0), float(len(result.losses_ns)))
        measured["made_up"] = made_up
    measured["refine_cpu_s"] = (time.process_time() - began) / 3
    measured["at_5cm_half_ms"] = float(measured["at_5cm_ms"] <= 0.5)
    measured["at_10cm_one_ms"] = float(measured["at_10cm_ms"] <= 1.0)
    return measured | _with_loss(session, talkers, rng)


def _with_loss(
    session: RoomSession, talkers: Sequence[Talker], rng: np.random.Generator
) -> dict[str, float]:
    """Let the camera lose some of its sound, and return what becomes of its clock."""
    whole = session.sounds[CAMERA]
    count = round(np.exp(rng.uniform(*np.log(LOST_S))) * whole.rate_hz)
    at = int(rng.uniform(0.25, 0.75) * len(whole.samples))
    samples = np.concatenate([whole.samples[:at], whole.samples[at + count :]])
    sound = replace(whole, samples=samples)
    rough = _placed(replace(session, sounds={**session.sounds, CAMERA: sound}))
    if rough is None:
        return {}
    given = Place(session.camera_m + 0.1 * rng.standard_normal(3), 0.01 * np.eye(3))
    result = refine_camera(hear_speech(own_speech(talkers), sound, rough), given)
    clock = result.clock or rough
    interval_ms = (clock.interval95_ms or 0.0) + (
        0.0 if result.clock else float(result.losses_ns[:, 2].sum()) / 1e6
    )
    t = np.linspace(whole.start_ns, sound.time_ns(sound.duration_s), 101).astype(np.int64)
    lost_at = whole.time_ns(at / whole.rate_hz)
    true = session.clocks[CAMERA].apply(
        t + np.where(t >= lost_at, round(1e9 * count / whole.rate_hz), 0)
    )
    off = np.abs(clock.apply(t) - true)[np.abs(t - lost_at) > AROUND_NS]
    error_ms = float(off.max()) / 1e6
    return {
        "lost_seen": float(len(rough.maps) > 1),
        "lost_told": float(len(clock.maps) > 1 or len(result.losses_ns) > 0),
        "lost_ms": error_ms,
        "lost_held": float(error_ms <= interval_ms),
    }


def _placed(session: RoomSession) -> RecordingClock | None:
    """Return the camera's clock as sync has it: by sound, positions unknown."""
    known = {name: (session.clocks[name],) for name in WEARERS}
    solution = place(known, [CAMERA], Hearing(lambda name: session.sounds[name])).solution
    maps = solution.clocks.get(CAMERA)
    if maps is None:
        return None
    fit_ms = Z95 * max(m.sigma_ns for m in maps) / 1e6
    interval = len(solution.path[CAMERA]) * travel_ms() + fit_ms + solution.doubt_ns(CAMERA) / 1e6
    return RecordingClock(CAMERA, maps, "sound", interval)


def _talker(session: RoomSession, name: str, rng: np.random.Generator) -> Talker:
    clock, sigma_s = session.clocks[name], 0.0
    if name != WEARERS[0]:
        sigma_s = SIGMA_S
        off_ns = np.array([0, round(1e9 * SIGMA_S * rng.standard_normal())], np.int64)
        clock = replace(clock, knots=clock.knots + off_ns)
    return Talker(session.sounds[name], (clock,), sigma_s, partial(session.mouth_m, name))


def _judged(case: str, session: RoomSession, clock: RecordingClock) -> dict[str, float]:
    sound = session.sounds[CAMERA]
    end_ns = sound.time_ns(sound.duration_s)
    at = np.linspace(sound.start_ns, end_ns, 51).astype(np.int64)
    error_ms = float(np.abs(clock.apply(at) - session.clocks[CAMERA].apply(at)).max()) / 1e6
    interval_ms = clock.interval95_ms
    assert interval_ms is not None  # sound always says how sure it is
    return {
        f"{case}_ms": error_ms,
        f"{case}_interval_ms": interval_ms,
        f"{case}_held": float(error_ms <= interval_ms),
    }
