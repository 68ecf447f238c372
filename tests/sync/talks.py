"""Two people who walk through a bare room and speak from many places, heard by a camera.

Each says something from one place, walks on, and speaks again: what a microphone hears of that is
the same sound, so and so much later and fainter, directly and from walls. Everything is exact by
construction; nothing of the simulator is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.records import RecordingClock
from synorama.sync.acoustics import Heard, Talker, hear_speech, own_speech
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

RATE_HZ = 16_000
SPEED_M_S = 343.0
START_NS = 5 * 10**12
OWN_WAY_M = 0.066
SIZE_M = np.array([5.0, 4.0, 2.6])
CAMERA_M = np.array([4.6, 0.5, 1.9])
ROUGH_ERROR_S = -0.009  # the clock of sync takes the way of sound for none


@dataclass(frozen=True)
class Talk:
    """What is said from one place: who, from when on [s], where the mouth is, and the sound."""

    who: int
    at_s: float
    mouth_m: Float64
    sound: Float64

    @property
    def end_s(self) -> float:
        """When it ends."""
        return self.at_s + len(self.sound) / RATE_HZ


@dataclass(frozen=True)
class Scene:
    """A session, as it is asked for.

    Parameters
    ----------
    camera_error
        Session seconds to by how much the camera's clock is ahead of a steady one.
    echo
        Amplitude of what walls give back, over the direct sound.
    gains
        Of the two glasses' microphones.
    still
        Nobody walks.
    speakers
        Who speaks.
    """

    seed: int = 0
    seconds: float = 60.0
    drift: float = 40e-6
    camera_error: Callable[[Float64], Float64] = np.zeros_like
    echo: float = 0.5
    gains: tuple[float, float] = (1.0, 1.0)
    still: bool = False
    speakers: tuple[int, ...] = (0, 1)

    def talks(self) -> list[Talk]:
        """Return who says what from where."""
        rng = np.random.default_rng([self.seed, 1])
        out: list[Talk] = []
        at = 1.0
        places = rng.uniform(0.12, 0.88, (2, 2)) * SIZE_M[:2]
        while at < self.seconds - 4:
            who = self.speakers[len(out) % len(self.speakers)]
            if not self.still:
                places[who] = rng.uniform(0.12, 0.88, 2) * SIZE_M[:2]
            mouth = np.array([*places[who], rng.uniform(1.35, 1.6)])
            count = round(rng.uniform(1.0, 2.2) * RATE_HZ)
            out.append(Talk(who, at, mouth, _speech(rng, count)))
            at = out[-1].end_s + rng.uniform(0.3, 0.7)
        return out


def heard(scene: Scene) -> Heard:
    """Return what the camera heard, with a rough clock."""
    talks = scene.talks()
    glasses = [_talker(scene, talks, who) for who in (0, 1)]
    return hear_speech(own_speech(glasses), camera_sound(scene, talks), rough_clock(scene))


def camera_sound(scene: Scene, talks: list[Talk]) -> MonoSound:
    """Return what the camera recorded on its own clock, which begins at 0."""
    rng = np.random.default_rng([scene.seed, 2])
    sound = 0.002 * rng.standard_normal(round(scene.seconds * RATE_HZ))
    for talk in talks:
        for image, share in _images(scene.echo):
            away = float(np.linalg.norm(image(talk.mouth_m) - CAMERA_M))
            _add(sound, talk, true_camera_s(scene, talk.at_s + away / SPEED_M_S), share / away)
    return _mono("camera", 0, sound)


def true_camera_s(scene: Scene, session_s: float) -> float:
    """Return what the camera's clock shows at a session time."""
    error = float(scene.camera_error(np.array([session_s]))[0])
    return session_s * (1 + scene.drift) + error


def true_clock(scene: Scene, t_ns: Int64) -> Int64:
    """Return the session times of the camera's times."""
    grid = np.arange(-5.0, scene.seconds + 5.0, 0.01)
    shown = np.array([true_camera_s(scene, s) for s in grid])
    session_s = np.interp(t_ns / NS_PER_S, shown, grid)
    return np.asarray(START_NS + np.rint(session_s * NS_PER_S), np.int64)


def rough_clock(scene: Scene) -> RecordingClock:
    """Return the camera's clock as sync would have it: a line that is off by the way of sound."""
    ends = np.array([0, round(scene.seconds * NS_PER_S)], np.int64)
    right = true_clock(scene, ends) + round(ROUGH_ERROR_S * NS_PER_S)
    clock = ClockMap("session", "camera", np.column_stack([ends, right + np.array([0, 1_500_000])]))
    return RecordingClock("camera", (clock,), "sound", 25.0)


def places_of(talks: list[Talk], who: int) -> Callable[[Int64], Float64]:
    """Return where somebody's mouth is at session times: at the place of the nearest talk."""
    mine = [t for t in talks if t.who == who]
    middles = np.array([(t.at_s + t.end_s) / 2 for t in mine])
    mouths = np.array([t.mouth_m for t in mine])

    def place(t_ns: Int64) -> Float64:
        away = np.abs(np.subtract.outer((t_ns - START_NS) / NS_PER_S, middles))
        return np.asarray(mouths[away.argmin(axis=1)])

    return place


def _talker(scene: Scene, talks: list[Talk], who: int) -> Talker:
    rng = np.random.default_rng([scene.seed, 3, who])
    sound = 0.002 * rng.standard_normal(round(scene.seconds * RATE_HZ))
    for talk in talks:
        away = OWN_WAY_M if talk.who == who else 2.5
        _add(sound, talk, talk.at_s + away / SPEED_M_S, 1 / away)
    name = ("leader", "helper")[who]
    device_ns = (START_NS, 7 * 10**11)[who]
    clock = ClockMap("session", name, np.array([[device_ns, START_NS]], np.int64))
    mouth = places_of(talks, who) if any(t.who == who for t in talks) else None
    return Talker(_mono(name, device_ns, scene.gains[who] * sound), (clock,), 0.0, mouth)


def without_trajectory(talker: Talker) -> Talker:
    """Return somebody whose glasses nobody followed."""
    return replace(talker, mouth=None)


def talkers(scene: Scene) -> list[Talker]:
    """Return both wearers."""
    talks = scene.talks()
    return [_talker(scene, talks, who) for who in (0, 1)]


def _images(echo: float) -> list[tuple[Callable[[Float64], Float64], float]]:
    """Return the mouth itself and its mirror images in floor, ceiling and two walls."""

    def mirrored(axis: int, at: float) -> Callable[[Float64], Float64]:
        def image(mouth: Float64) -> Float64:
            out: Float64 = mouth.copy()
            out[axis] = 2 * at - out[axis]
            return out

        return image

    walls = [(2, 0.0), (2, SIZE_M[2]), (0, SIZE_M[0]), (1, 0.0)]
    return [(lambda m: m, 1.0), *((mirrored(a, w), echo) for a, w in walls)]


def _speech(rng: np.random.Generator, count: int) -> Float64:
    """Return noise from 200 Hz to 6 kHz whose loudness comes and goes like syllables."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hz = np.fft.rfftfreq(count, 1 / RATE_HZ)
    spectrum *= (hz > 200) * (hz < 6_000) / (1 + hz / 1_000)
    swing = 1 + np.sin(2 * np.pi * 4 * np.arange(count) / RATE_HZ + rng.uniform(0, 6))
    return np.asarray(np.fft.irfft(spectrum, count) * swing)


def _add(sound: Float64, talk: Talk, at_s: float, gain: float) -> None:
    """Add a talk that begins at a time which need not be a whole sample."""
    first = int(np.floor(at_s * RATE_HZ))
    part = at_s * RATE_HZ - first
    count = len(talk.sound) + 64
    spectrum = np.fft.rfft(talk.sound, count)
    late = np.exp(-2j * np.pi * np.fft.rfftfreq(count) * part)
    end = min(first + count, len(sound))
    sound[first:end] += gain * np.fft.irfft(spectrum * late, count)[: end - first]


def _mono(name: str, start_ns: int, sound: Float64) -> MonoSound:
    scaled = sound * (1000 / np.sqrt(np.mean(sound**2)))
    samples = np.clip(np.rint(scaled), -32_768, 32_767).astype(np.int16)
    return MonoSound(name, start_ns, RATE_HZ, samples)
