"""Short sessions in rooms as arrays: sound at 16 kHz, trajectories, true clocks; no files.

The room's own acoustics, people and voices, at a tenth of the cost of a session with pictures and
containers: for benches that need hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.simulate.clocks import SLACK_NS, randomness, steady_clock
from synorama.simulate.mps.estimate import CLOSED_SIGMA, Wander
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import MICROPHONES_CPF_M, MOUTH_CPF_M, Wearer, plan_motion
from synorama.simulate.scene.room import KINDS, Kind
from synorama.simulate.sound.acoustic_scene import (
    Ears,
    RoomBox,
    Source,
    fixed,
    fixed_ears,
    heading,
    worn,
    worn_ears,
)
from synorama.simulate.sound.acoustics import RoomSound
from synorama.simulate.sound.dialogue import plan_dialogue
from synorama.simulate.sound.noises import Fan, alarm, clatter
from synorama.simulate.sound.voices import VOICES
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["CAMERA", "WEARERS", "RoomSession", "room_session"]

RATE_HZ = 16_000
WEARERS, CAMERA = ("leader", "helper"), "camera"
START_NS = 10**12
MOUTH_LEVEL, BYSTANDER_SHARE = 0.2, 0.25
RT60_S = (0.3, 0.55)
FROM_WALL_M, CAMERA_HEIGHT_M = (0.18, 0.3, 0.45), (1.2, 1.95)
GLASSES_PPM, CAMERA_PPM, EARLY_OR_LATE_S = 30.0, 100.0, 3.0
GAINS = {"glasses": ((0.3, 0.5), (3e-4, 6e-4)), "camera": ((3.0, 6.0), (5e-4, 1.5e-3))}
LOUDNESS = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class RoomSession:
    """A session.

    Parameters
    ----------
    kind
        Of the room.
    sounds
        By device, on its own clock.
    clocks
        By device, the true ``C_session_device``.
    camera_m
        Where the camera stands.
    wearers
        Who wears the glasses, by device.
    errors
        By device, the slow error of the trajectory that the services would give.
    """

    kind: Kind
    sounds: Mapping[str, MonoSound]
    clocks: Mapping[str, ClockMap]
    camera_m: Float64
    wearers: Mapping[str, Wearer]
    errors: Mapping[str, Wander]

    def mouth_m(self, name: str, t_ns: Int64) -> Float64:
        """Return where the services say that a wearer's mouth is, ``(N, 3)``."""
        true = self.wearers[name].places_m(t_ns, MOUTH_CPF_M)[:, 0]
        return np.asarray(true + self.errors[name]((t_ns - START_NS) / NS_PER_S)[:, :3])


def room_session(seed: int, seconds: float, kind: Kind | None = None) -> RoomSession:
    """Return the session of a seed; all kinds of rooms take turns unless one is asked for."""
    kind = kind or KINDS[seed % len(KINDS)]
    room = build_room(seed, kind)
    size_m = np.array(room.size_m)
    people = plan_motion(room, seed, start_ns=START_NS, seconds=seconds)
    wearers = {w.name: w for w in people}
    sound = RoomSound(
        RoomBox.of_size(room.size_m, float(randomness(seed, "rt60").uniform(*RT60_S))),
        _sources(seed, seconds, wearers, size_m),
        START_NS,
        seed=seed,
    )
    camera_m = _at_a_wall(seed, size_m)
    ears = {n: worn_ears(w.head.pose, MICROPHONES_CPF_M[:1]) for n, w in wearers.items()}
    ears[CAMERA] = fixed_ears([camera_m])
    clocks = {name: _clock(seed, name, seconds) for name in ears}
    sounds = {n: _heard(seed, n, sound, e, clocks[n], seconds) for n, e in ears.items()}
    errors = {n: Wander.draw(randomness(seed, n, "wander"), CLOSED_SIGMA) for n in wearers}
    return RoomSession(kind, sounds, clocks, camera_m, wearers, errors)


def _sources(
    seed: int, seconds: float, wearers: Mapping[str, Wearer], size_m: Float64
) -> list[Source]:
    rng = randomness(seed, "voices")
    names = [*wearers, "bystander"][: 3 if rng.random() < BYSTANDER_SHARE else 2]
    voices = dict(zip(names, rng.permutation(VOICES).tolist(), strict=False))
    talk = plan_dialogue(seed, 0.5, seconds, voices, talkative={"bystander": 0.5})
    aside = fixed([*(0.4 * size_m[:2] * rng.uniform(-1, 1, 2)), 1.5])
    corner = fixed((size_m[0] / 2 - 0.3, size_m[1] / 2 - 0.3, 1.0))
    sources = [Source(n, aside, talk.dry(n), MOUTH_LEVEL) for n in names if n not in wearers]
    for name, wearer in wearers.items():
        pose = wearer.head.pose
        mouth = worn(pose, MOUTH_CPF_M)
        sources.append(Source(name, mouth, talk.dry(name), MOUTH_LEVEL, heading(pose)))
        noise = clatter(seed, name, 0.0, seconds, every_s=4.0)
        sources.append(Source(f"{name} clatter", partial(_palm, wearer), noise))
    rings = [float(rng.uniform(2.0, 37.0))]
    sources.append(Source("fan", corner, Fan(seed, "fan"), reflects=False))
    return [*sources, Source("alarm", corner, alarm(rings), reflects=False)]


def _palm(wearer: Wearer, t_ns: Int64) -> Float64:
    return wearer.hands_m(t_ns)[:, 1, 1]


def _at_a_wall(seed: int, size_m: Float64) -> Float64:
    rng = randomness(seed, "camera place")
    x, y = size_m[:2] / 2 - rng.choice(FROM_WALL_M)
    along, wall = rng.uniform(-1, 1), int(rng.integers(4))
    spots = [(along * x, -y), (along * x, y), (-x, along * y), (x, along * y)]
    return np.array([*spots[wall], rng.uniform(*CAMERA_HEIGHT_M)])


def _clock(seed: int, name: str, seconds: float) -> ClockMap:
    rng = randomness(seed, name, "clock")
    leads, camera = name == WEARERS[0], name == CAMERA
    most_ppm = 0.0 if leads else CAMERA_PPM if camera else GLASSES_PPM
    late_s = 0.0 if leads else rng.uniform(-1, 1) * EARLY_OR_LATE_S * min(1.0, seconds / 60)
    begin_ns = START_NS + round(late_s * NS_PER_S)
    device_ns = begin_ns if leads else 0 if camera else int(rng.integers(10**11, 10**13))
    return steady_clock(
        name,
        device_ns=device_ns,
        session_ns=begin_ns,
        length_ns=round(seconds * NS_PER_S),
        drift_ppm=rng.uniform(-most_ppm, most_ppm),
    )


def _heard(
    seed: int, name: str, sound: RoomSound, ears: Ears, clock: ClockMap, seconds: float
) -> MonoSound:
    rng = randomness(seed, name, "hearing")
    gain, noise = GAINS["camera" if name == CAMERA else "glasses"]
    begin_ns = clock.range_ns[0] + SLACK_NS
    heard = sound.at(ears).heard(clock, float(RATE_HZ), begin_ns, 0, round(seconds * RATE_HZ))
    heard = heard * np.float32(rng.uniform(*gain))
    heard += np.float32(rng.uniform(*noise)) * rng.standard_normal(len(heard), np.float32)
    scaled = heard * (LOUDNESS / float(np.sqrt(np.mean(heard**2))))
    samples = np.clip(np.rint(scaled), -32_768, 32_767).astype(np.int16)
    return MonoSound(name, begin_ns, RATE_HZ, samples)
