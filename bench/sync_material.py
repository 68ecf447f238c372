"""Pairs of sounds with a known truth, by number, on which certainty is measured.

A scene is a simulated room in which two people walk, talk and drop things. It is heard once by
glasses and a camera, each on its own clock, and many pairs of stretches are cut out of it, with
noise added. In an *aligned* scene direct sound reaches all microphones at once (echoes keep their
delays): what is off then is an error. Unrelated pairs are of other times, of other sessions, and
of things that repeat. The same number always gives the same pair.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly
from tests.sync.sounds import room

from synorama.capture import open_recording
from synorama.media.audio import MonoSound
from synorama.simulate import simulate_plan
from synorama.simulate.clocks import randomness, steady_clock
from synorama.simulate.lab import CAMERAS, LEADER
from synorama.simulate.scene.motion import MICROPHONES_CPF_M
from synorama.simulate.scene.room import KINDS
from synorama.simulate.sound.acoustic_scene import Ears, fixed_ears, worn_ears
from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.noises import Fan, alarm, music
from synorama.simulate.stage import RoomStage
from synorama.sync.solve import read_sound
from synorama.timebase import NS_PER_S

Float64 = NDArray[np.float64]
Float32 = NDArray[np.float32]

RATE_HZ = 16_000
MADE_HZ = 24_000  # holds all that the simulator makes
SCENES_S = (60.0, 100.0, 100.0, 240.0, 610.0)  # by number
TRIALS_A_SCENE = 50
ROOM_EVERY = 6  # of so many scenes, sound travels in one
DRIFT_PPM = 100.0
LEAST_OVERLAP_S = 2.0
VOICE_PAIRS = (("anna", "carl"), ("berta", "david"))
SONGS, SONG_S = 6, 125.0
FAN_S = 400
APART_S = (30.0, 75.0)
SECONDS_SHARE = 0.15  # of unrelated pairs, one is only seconds long
TRIALS_A_LONG_SCENE = 1000
CONTAINERS = {"aac": "sound.m4a", "libopus": "sound.ogg"}  # these tell times exactly
KINDS_APART = (
    "other time", "other session", "looped music", "alarms", "silence", "hum", "noise", "music",
)  # fmt: skip
REPLAYED = "replayed song"


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """What a device hears of a whole scene; ``rate`` is seconds of the scene a second of it."""

    samples: Float32
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Tracks by device."""

    tracks: Mapping[str, Track]
    aligned: bool


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two sounds, and what is true of them.

    Parameters
    ----------
    kind
        ``aligned``, ``room``, or why they have nothing in common.
    clock
        From the other's seconds to the reference's; None where there is none.
    span_s
        What both hold, on the other's time.
    snr_db
        Of the worse of the two.
    """

    kind: str
    reference: MonoSound
    other: MonoSound
    clock: Callable[[Float64], Float64] | None = None
    span_s: tuple[float, float] = (0.0, 0.0)
    snr_db: float = 0.0

    @property
    def overlap_s(self) -> float:
        """How long both hear the same."""
        return self.span_s[1] - self.span_s[0]


# --- scenes ----------------------------------------------------------------------------------


@lru_cache(3)
def scene(number: int) -> Scene:
    """Return a scene, from where it was kept if it was made before."""
    path = _kept() / f"{number}.npz"
    if not path.is_file():
        made = _make(number)
        heard: dict[str, Any] = {name: t.samples for name, t in made.tracks.items()}
        rates = np.array([t.rate for t in made.tracks.values()])
        np.savez(path.with_suffix(".part.npz"), rates=rates, **heard)
        path.with_suffix(".part.npz").replace(path)
    with np.load(path) as kept:
        names = [n for n in kept.files if n != "rates"]
        tracks = {n: Track(kept[n], float(r)) for n, r in zip(names, kept["rates"], strict=True)}
    return Scene(tracks, _aligned(number))


@lru_cache(1)
def _kept() -> Path:
    """Return the folder of the scenes that this simulator made."""
    listed = subprocess.run(
        ["git", "ls-files", "-s", "--", "src/synorama/simulate/sound", "bench/sync_material.py"],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        check=True,
    )
    made_by = hashlib.sha256(listed.stdout).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"synorama-scenes-{made_by}"
    folder.mkdir(exist_ok=True)
    return folder


def _aligned(number: int) -> bool:
    return number % ROOM_EVERY != ROOM_EVERY - 1


def _make(number: int) -> Scene:
    """Return a scene: its room, who says what, its clocks and its length are its own."""
    seconds, aligned = SCENES_S[number % len(SCENES_S)], _aligned(number)
    kind = KINDS[number % len(KINDS)]
    lab = simulate_plan(seed=number, seconds=seconds + 1, room=kind, aligned=aligned)
    lab = replace(lab, voices=dict(zip(lab.voices, _voices(number), strict=True)))
    stage = RoomStage(lab, number)
    rng = randomness(number, "clocks")
    rates = 1 + 1e-6 * rng.uniform(-DRIFT_PPM / 2, DRIFT_PPM / 2, 2)
    ears = _ears(stage, CAMERAS[number % len(CAMERAS)])
    heard = _heard(stage, ears, rates, lab.start_ns, seconds)
    tracks = {name: Track(h, rate) for name, h, rate in zip(ears, heard, rates, strict=True)}
    return Scene(tracks, aligned)


def _voices(number: int) -> tuple[str, str]:
    """Return who speaks: others than in the session that a scene is held against.

    A simulated voice says a sentence twice as a loudspeaker would: that is a replay.
    """
    return VOICE_PAIRS[number // len(SCENES_S) % len(VOICE_PAIRS)]


def _ears(stage: RoomStage, camera: str) -> dict[str, Ears]:
    head = worn_ears(stage.wearers[LEADER].head.pose, MICROPHONES_CPF_M[:1])
    return {LEADER: head, camera: fixed_ears([stage.stands[camera][:3, 3].tolist()])}


def _heard(
    stage: RoomStage, ears: Mapping[str, Ears], rates: Float64, start_ns: int, seconds: float
) -> list[Float32]:
    """Return what each device hears; all of them together, as the room is made piece by piece."""
    length_ns = round(seconds * NS_PER_S)
    clocks = [
        steady_clock(
            name, device_ns=0, session_ns=start_ns, length_ns=length_ns, drift_ppm=1e6 * (rate - 1)
        )
        for name, rate in zip(ears, rates, strict=True)
    ]
    listeners = [stage.sound.at(e) for e in ears.values()]
    made: list[list[Float32]] = [[] for _ in ears]
    for first in range(0, int(seconds * MADE_HZ), MADE_HZ):
        for pieces, listener, clock in zip(made, listeners, clocks, strict=True):
            pieces.append(listener.heard(clock, float(MADE_HZ), 0, first, MADE_HZ))
    return [_loud(resample_poly(np.concatenate(pieces), 2, 3)) for pieces in made]


def _loud(sound: NDArray[np.floating]) -> Float32:
    """Return the sound with a root mean square of 1."""
    power = float(np.mean(np.square(sound, dtype=np.float64)))
    return np.asarray(sound / np.sqrt(max(power, 1e-20)), np.float32)


# --- related ---------------------------------------------------------------------------------


def related(number: int) -> Pair:
    """Return a pair with common sound: any overlap from 2 s on, -10 to 30 dB, some compressed."""
    here = scene(number // TRIALS_A_SCENE)
    rng = randomness(number, "related")
    one, other = rng.choice(list(here.tracks), 2, replace=False)
    (a, first_a, last_a), (b, first_b, last_b) = (
        (here.tracks[name], *span)
        for name, span in zip((one, other), _spans(rng, here), strict=True)
    )
    snr_db = float(rng.uniform(-10, 30))
    best_db = float(rng.uniform(max(snr_db, 5), 30))
    levels = rng.permutation([snr_db, best_db])
    coded = rng.choice(["", "", "", "aac", "libopus"])
    sounds = [
        _mono(name, _noisy(t.samples[i:j], db, rng))
        for name, t, i, j, db in (
            ("reference", a, first_a, last_a, levels[0]),
            ("other", b, first_b, last_b, levels[1]),
        )
    ]
    if coded:
        sounds[1] = _compressed(sounds[1], str(coded))

    def clock(t_s: Float64) -> Float64:
        return np.asarray((t_s + first_b / RATE_HZ) * b.rate / a.rate - first_a / RATE_HZ)

    first = max(0.0, (first_a - first_b) / RATE_HZ)
    last = min(last_b - first_b, last_a - first_b) / RATE_HZ
    kind = "aligned" if here.aligned else "room"
    return Pair(kind, sounds[0], sounds[1], clock, (first, last), snr_db)


def _spans(rng: np.random.Generator, here: Scene) -> list[tuple[int, int]]:
    """Return two stretches of a scene that overlap: from the whole of it to two seconds."""
    whole = min(len(t.samples) for t in here.tracks.values())
    least = LEAST_OVERLAP_S * RATE_HZ
    overlap = int(np.exp(rng.uniform(np.log(least), np.log(0.95 * whole))))
    first = int(rng.integers(0, whole - overlap))
    last = first + overlap
    # Beyond what they share, one goes on before it, one after it, or one on both sides.
    more = [int(rng.uniform(0, room) * rng.choice([0, 0.5, 1])) for room in (first, whole - last)]
    spans = {
        "inside": [(first - more[0], last + more[1]), (first, last)],
        "across": [(first - more[0], last), (first, last + more[1])],
    }[str(rng.choice(["inside", "across"]))]
    return spans if rng.random() < 0.5 else spans[::-1]


def _noisy(sound: Float32, snr_db: float, rng: np.random.Generator) -> Float32:
    """Add noise of any colour from white to pink."""
    noise = rng.standard_normal(len(sound)).astype(np.float32)
    if rng.random() < 0.5:
        noise = _pink(noise)
    return np.asarray(_loud(sound) + np.float32(10 ** (-snr_db / 20)) * noise, np.float32)


def _pink(noise: Float32) -> Float32:
    spectrum = np.fft.rfft(noise)
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    return _loud(np.fft.irfft(spectrum, len(noise)))


def _mono(name: str, sound: Float32) -> MonoSound:
    samples = np.clip(np.rint(1000 * _loud(sound)), -32_767, 32_767).astype(np.int16)
    return MonoSound(name, 0, RATE_HZ, samples)


def _compressed(sound: MonoSound, codec: str) -> MonoSound:
    """Return the sound as it comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CONTAINERS[codec]
        _write(path, sound, codec)
        return replace(read_sound(open_recording(path), name=sound.name), name=sound.name)


def _write(path: Path, sound: MonoSound, codec: str) -> None:
    rate = 48_000
    wide = resample_poly(sound.samples / np.float32(32_768), rate // RATE_HZ, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout, stream.bit_rate = "mono", 64_000
        for k in range(0, len(wide), 960):
            part = np.ascontiguousarray(wide[np.newaxis, k : k + 960], np.float32)
            block = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
            block.sample_rate, block.pts = rate, k
            container.mux(stream.encode(block))
        container.mux(stream.encode(None))


# --- unrelated -------------------------------------------------------------------------------


def unrelated(number: int) -> Pair:
    """Return a pair of 30 to 120 s each without common sound, of one kind after the other."""
    kind = KINDS_APART[number % len(KINDS_APART)]
    return _apart(kind, number, MAKERS[kind])


def replayed(number: int) -> Pair:
    """Return a pair of two sessions in which the same song plays, beside their own sounds."""
    return _apart(REPLAYED, number, _replayed)


Maker = Callable[[int, np.random.Generator, tuple[int, int]], tuple[Float32, Float32]]


def _apart(kind: str, number: int, make: Maker) -> Pair:
    rng = randomness(number, kind)
    one_s, other_s = rng.uniform(*APART_S, 2)
    counts = int(one_s * RATE_HZ), int(other_s * RATE_HZ)
    one, other = make(number, rng, counts)
    if rng.random() < SECONDS_SHARE:
        other = other[: int(rng.uniform(1.5, 6) * RATE_HZ)]
    levels = rng.uniform(0, 30, 2)
    sounds = [
        _mono(name, _noisy(s, db, rng) if kind != "silence" else s)
        for name, s, db in zip(("reference", "other"), (one, other), levels, strict=True)
    ]
    return Pair(kind, sounds[0], sounds[1], snr_db=float(levels.min()))


def _talk(number: int, rng: np.random.Generator, count: int) -> Float32:
    """Return a stretch that some device heard of a scene."""
    tracks = scene(number).tracks
    track = tracks[str(rng.choice(list(tracks)))].samples
    first = int(rng.integers(0, len(track) - count))
    return track[first : first + count]


def _long_scene(number: int) -> int:
    """Return the number of a scene of four minutes."""
    return len(SCENES_S) * (number // TRIALS_A_LONG_SCENE) + 3


def _other_time(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    tracks = scene(_long_scene(number)).tracks
    one, other = (tracks[str(n)].samples for n in rng.choice(list(tracks), 2))
    apart = int(rng.uniform(0.5, 20) * RATE_HZ)
    first = int(rng.integers(0, len(one) - sum(counts) - apart))
    then = first + counts[0] + apart
    return one[first : first + counts[0]], other[then : then + counts[1]]


def _other_session(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    here = _long_scene(number)
    there = here + len(SCENES_S)
    return _talk(here, rng, counts[0]), _talk(there, rng, counts[1])


def _mixed(talk: Float32, rest: Float32, db: float) -> Float32:
    return np.asarray(_loud(talk) + np.float32(10 ** (db / 20)) * _loud(rest), np.float32)


def _in_room(sound: Float32, rng: np.random.Generator) -> Float32:
    return np.asarray(room(sound.astype(np.float64), int(rng.integers(2**31))), np.float32)


def _looped(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """A loop of music that plays all the time in both, beside talk of other times."""
    bars, seed = int(rng.choice([1, 2, 4])), number % SONGS
    period = _song(seed, bars)
    heard = []
    for count in counts:
        first = int(rng.integers(0, len(period)))
        whole = np.tile(period, (first + count) // len(period) + 1)[first : first + count]
        heard.append(_in_room(whole, rng))
    talks = _other_time(number, rng, counts)
    one, other = (_mixed(t, h, rng.uniform(-10, 10)) for t, h in zip(talks, heard, strict=True))
    return one, other


@lru_cache(4 * SONGS)
def _song(seed: int, bars: int = 0) -> Float32:
    """Return a song, or exactly so many bars that can be repeated."""
    path = _kept() / f"song-{seed}-{bars}.npy"
    if not path.is_file():
        np.save(path, _sung(seed, bars))
    return np.asarray(np.load(path), np.float32)


def _sung(seed: int, bars: int) -> Float32:
    beats = 104.0
    seconds = SONG_S if not bars else bars * 4 * 60 / beats
    dry = music(seed, 0.0, seconds + 0.01, repeat_bars=bars, beats_per_minute=beats)
    count = round(seconds * GRID_HZ)
    sound = dry.samples(0, 2 * count if bars else count)
    assert sound is not None
    if bars:  # with the notes that still sound from the last time
        tail = sound[count:]
        sound = sound[:count].copy()
        sound[: len(tail)] += tail
    return np.asarray(resample_poly(sound, 1, 3), np.float32)


def _music(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """Two songs of one tempo and scale."""
    one, other = rng.choice(SONGS, 2, replace=False)
    return _in_room(_song(int(one))[: counts[0]], rng), _in_room(
        _song(int(other))[: counts[1]], rng
    )


def _replayed(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """One song in two sessions; talk beside it."""
    song = _song(int(rng.integers(SONGS)))
    talks = _other_time(number, rng, counts)
    heard = []
    for talk in talks:
        first = int(rng.integers(0, len(song) - len(talk)))
        there = _in_room(song[first : first + len(talk)], rng)
        heard.append(_mixed(talk, there, rng.uniform(-10, 10)))
    return heard[0], heard[1]


def _alarms(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """The same alarm in both, now and then, and a fan."""
    hz = float(rng.uniform(900, 3000))
    heard = []
    for k, count in enumerate(counts):
        at = np.arange(rng.uniform(0, 20), count / RATE_HZ, rng.uniform(4, 25))
        beeps = alarm(at.tolist(), hz=hz, beeps=int(rng.integers(2, 12)))
        sound = beeps.samples(0, 3 * count)
        rings = np.zeros(count) if sound is None else resample_poly(sound, 1, 3)
        ring = _in_room(np.asarray(rings, np.float32), rng)
        heard.append(_mixed(ring, _fan(rng, count, k), rng.uniform(-20, 0)))
    return heard[0], heard[1]


def _fan(rng: np.random.Generator, count: int, half: int) -> Float32:
    """Return a stretch of one or the other half of a fan's noise: two have nothing in common."""
    whole = _fans()
    first = half * (len(whole) // 2) + int(rng.integers(0, len(whole) // 2 - count))
    return whole[first : first + count]


@lru_cache(1)
def _fans() -> Float32:
    noise = Fan(0, "fan").samples(0, FAN_S * GRID_HZ)
    return np.asarray(resample_poly(noise, 1, 3), np.float32)


def _silence(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """The noise of a microphone, a few steps of int16 or none, and now and then a click."""
    heard = []
    for count in counts:
        quiet = np.rint(rng.choice([0.0, 0.3, 1.0, 3.0]) * rng.standard_normal(count))
        clicks = rng.integers(0, count, int(rng.integers(0, 4)))
        quiet[clicks] += rng.choice([-20, 20])
        heard.append(quiet.astype(np.float32))
    return heard[0], heard[1]


def _hum(number: int, rng: np.random.Generator, counts: tuple[int, int]) -> tuple[Float32, Float32]:
    """One mains, two microphones."""
    mains_hz = float(rng.choice([50.0, 60.0])) * (1 + 1e-4 * rng.standard_normal())
    heard = []
    for k, count in enumerate(counts):
        turns = mains_hz * (rng.uniform(0, 600) + np.arange(count) / RATE_HZ)
        tone = sum(np.sin(2 * np.pi * h * turns) / h for h in (1, 2, 3, 4, 6))
        loud = np.asarray(np.tanh(rng.uniform(0.5, 3) * tone), np.float32)  # with harmonics
        heard.append(_mixed(loud, _fan(rng, count, k), rng.uniform(-30, 0)))
    return heard[0], heard[1]


def _noise(
    number: int, rng: np.random.Generator, counts: tuple[int, int]
) -> tuple[Float32, Float32]:
    """Two fans."""
    return _fan(rng, counts[0], 0), _fan(rng, counts[1], 1)


MAKERS: dict[str, Maker] = dict(
    zip(
        KINDS_APART,
        (_other_time, _other_session, _looped, _alarms, _silence, _hum, _noise, _music),
        strict=True,
    )
)
