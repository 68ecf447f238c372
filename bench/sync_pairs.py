"""Pairs of recordings with a known truth, as files: the simulator's rooms, heard by made devices.

In the *aligned* setting, which is used here, direct sound takes no time to any microphone, so that
what an algorithm gets wrong is its own fault and not physics. All truth is that of clock maps.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import av
import numpy as np
from numpy.typing import NDArray

from synorama.simulate.clocks import randomness, steady_clock
from synorama.simulate.devices.aria import write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.sound.acoustic_scene import RoomBox, Source, fixed, fixed_ears
from synorama.simulate.sound.acoustics import Listener, RoomSound
from synorama.simulate.sound.dialogue import plan_dialogue
from synorama.simulate.sound.faults import wandering
from synorama.simulate.sound.noises import Fan, clatter
from synorama.simulate.sound.plain import Hearing
from synorama.timebase import NS_PER_S, ClockMap

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

START_NS = 10**12
RATE_HZ = 48_000
BLOCK = 1024 * 45  # whole frames of AAC (1024) and of Opus (960)
MOUTH_LEVEL, LISTENED_S = 0.13, 20
SPARE_S = 30.0  # of the room's sound before and after the reference
LOST_S = (0.04, 0.08, 1.3)
PAIRS = "pairs.pkl"
PEAK_RMS = 0.08  # of full scale, so that loud noise is not clipped


# --- rooms ---------------------------------------------------------------------------------------


class Room:
    """Two people who talk and clatter beside a fan, in a room, for so many seconds."""

    def __init__(self, seed: int, seconds: float) -> None:
        rng = randomness(seed, "bench room")
        self.size_m = (rng.uniform(3.5, 6), rng.uniform(3.5, 6), rng.uniform(2.4, 3))
        self.rng = rng
        voices = [str(v) for v in rng.permutation(["anna", "berta", "carl", "david", "emil"])[:2]]
        talk = plan_dialogue(seed, 0.5, seconds, dict(zip("ab", voices, strict=True)))
        sources = [Source(n, self._somewhere(), talk.dry(n), MOUTH_LEVEL) for n in "ab"]
        sources += [
            Source(f"{n} clatter", self._somewhere(), clatter(seed, n, 0.0, seconds, every_s=3.0))
            for n in "ab"
        ]
        sources.append(Source("fan", self._somewhere(), Fan(seed, "fan"), 0.3, reflects=False))
        box = RoomBox.of_size(self.size_m, float(rng.uniform(0.25, 0.6)))
        self.sound = RoomSound(box, sources, START_NS, aligned=True, seed=seed)

    def _point(self) -> Float64:
        width, depth, height = self.size_m
        low, high = (-0.45 * width, -0.45 * depth, 0.7), (0.45 * width, 0.45 * depth, height - 0.4)
        return self.rng.uniform(low, high)

    def _somewhere(self) -> Any:
        return fixed(self._point())

    def listener(self, microphones: int = 1) -> Listener:
        """Return a device at some place, its microphones within some centimetres."""
        places = self._point() + self.rng.uniform(-0.07, 0.07, (microphones, 3))
        return self.sound.at(fixed_ears(places))


def clock(name: str, first_s: float, seconds: float, drift_ppm: float = 0.0) -> ClockMap:
    """Return ``C_session_device`` of a file whose time 0 is that second of the session."""
    return steady_clock(
        name,
        device_ns=0,
        session_ns=START_NS + round(first_s * NS_PER_S),
        length_ns=round(seconds * NS_PER_S),
        drift_ppm=drift_ppm,
    )


# --- what is written -----------------------------------------------------------------------------


class Takes(Protocol):
    """Whatever takes blocks of sound ``(n, channels)`` and writes them."""

    def take(self, samples: Float32) -> None:
        """Add samples."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


class SoundFile:
    """A file of sound: the name's ending says which kind."""

    CODECS: Mapping[str, str] = {
        ".wav": "pcm_s16le", ".m4a": "aac", ".mp4": "aac", ".mkv": "aac", ".ogg": "libopus",
    }  # fmt: skip
    FRAMES: Mapping[str, int] = {"aac": 1024, "libopus": 960, "pcm_s16le": BLOCK}

    def __init__(self, path: Path, rate_hz: int = RATE_HZ) -> None:
        self._container = av.open(str(path), "w")
        codec = self.CODECS[path.suffix]
        self._stream: Any = self._container.add_stream(codec, rate=rate_hz)
        self._stream.layout = "mono"
        self._stream.bit_rate = 128_000
        self._rate_hz, self._frame, self.at = rate_hz, self.FRAMES[codec], 0
        self._format = self._stream.codec_context.format.name
        self._rest = np.zeros(0, np.float32)

    def take(self, samples: Float32) -> None:
        """Add samples of one channel."""
        held = np.concatenate([self._rest, samples])
        whole = len(held) // self._frame * self._frame
        for first in range(0, whole, self._frame):
            self._encode(held[first : first + self._frame])
        self._rest = held[whole:]

    def leap(self, samples: int) -> None:
        """Let the times leap, as if so many samples had been skipped and the file knew."""
        self.at += samples

    def close(self) -> None:
        """Write what is left and the end."""
        if len(self._rest):
            self._encode(self._rest)
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def _encode(self, samples: Float32) -> None:
        values = np.clip(samples, -1, 1)
        if self._format.startswith("s16"):
            values = np.rint(32767 * values).astype(np.int16)
        shaped = np.ascontiguousarray(values[np.newaxis])
        frame = av.AudioFrame.from_ndarray(shaped, format=self._format, layout="mono")
        frame.sample_rate, frame.time_base = self._rate_hz, Fraction(1, self._rate_hz)
        frame.pts = self.at
        self.at += len(samples)
        self._container.mux(self._stream.encode(frame))


class Noisy:
    """Adds a microphone's own noise, so many dB below the sound, and perhaps turns it over."""

    def __init__(self, into: Takes, level: float, snr_db: float, seed: int, sign: int = 1) -> None:
        self._into, self._rng = into, np.random.default_rng(seed)
        noise = 10 ** (-snr_db / 20)
        self._gain = np.float32(sign * PEAK_RMS / level / np.hypot(1, noise))
        self._noise = np.float32(PEAK_RMS * noise / np.hypot(1, noise))

    def take(self, samples: Float32) -> None:
        """Pass samples on with noise."""
        noise = self._rng.standard_normal(samples.shape, np.float32)
        self._into.take(samples * self._gain + noise * self._noise)

    def close(self) -> None:
        """Finish what is behind."""
        self._into.close()


@dataclass(frozen=True, slots=True)
class Loss:
    """At this second of a device's own time so many samples do not reach the file."""

    at_s: float
    samples: int


class Losing:
    """Loses samples; ``told`` says that the file's times leap with them."""

    def __init__(self, into: Takes, losses: Sequence[Loss], told: SoundFile | None = None) -> None:
        self._into, self._told, self._at = into, told, 0
        self._losses = [(round(loss.at_s * RATE_HZ), loss.samples) for loss in losses]

    def take(self, samples: Float32) -> None:
        """Pass on what is not lost."""
        first, last = self._at, self._at + len(samples)
        kept = np.ones(len(samples), bool)
        for at, count in self._losses:
            kept[max(at - first, 0) : max(at + count - first, 0)] = False
            if self._told is not None and first <= at < last:
                self._told.leap(count)
        self._at = last
        self._into.take(samples[kept])

    def close(self) -> None:
        """Finish what is behind."""
        self._into.close()


@dataclass(frozen=True, slots=True)
class Recorder:
    """A device: what it hears, its clock, how long it records, and the files that it becomes."""

    listener: Listener
    clock: ClockMap
    seconds: float
    files: tuple[Takes, ...]

    def blocks(self) -> Iterator[None]:
        """Write block by block."""
        for start in range(0, int(self.seconds * RATE_HZ) // BLOCK * BLOCK, BLOCK):
            heard = self.listener.heard(self.clock, RATE_HZ, 0, start, BLOCK)
            for file in self.files:
                file.take(heard)
            yield


def record(recorders: Sequence[Recorder]) -> None:
    """Let devices record side by side: they share what the room has computed."""
    with ExitStack() as closing:
        for recorder in recorders:
            for file in recorder.files:
                closing.callback(file.close)
        running = [recorder.blocks() for recorder in recorders]
        while running:
            running = [blocks for blocks in running if next(blocks, blocks) is not blocks]


def level(listener: Listener, at: ClockMap) -> float:
    """Return the root mean square of what a device hears in its first seconds."""
    heard = listener.heard(at, RATE_HZ, 0, 0, LISTENED_S * RATE_HZ)
    return float(np.sqrt(np.mean(np.square(heard))))


# --- pairs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Two files and what is true of them.

    Parameters
    ----------
    case
        What is special about it.
    reference, other
        The files.
    clock
        ``C_reference_other`` of the two devices.
    losses
        What the other lost without its file's times telling so, in order of its own time.
    related
        Whether they have anything in common.
    """

    case: str
    reference: Path
    other: Path
    clock: ClockMap
    losses: tuple[Loss, ...] = ()
    related: bool = True

    def breaks_s(self) -> list[float]:
        """Return when, on the other's media time, samples are missing."""
        lost, at = 0.0, []
        for loss in self.losses:
            at.append(loss.at_s - lost)
            lost += loss.samples / RATE_HZ
        return at

    def common_s(self) -> tuple[float, float]:
        """Return the first and last of the other's times that both files hold."""
        from synorama.capture import open_recording

        first, last = (
            self.clock.inverse().apply(t or 0)
            for r in (open_recording(self.reference),)
            for t in (r.first_ns, r.last_ns)
        )
        own = open_recording(self.other)
        lost_ns = sum(loss.samples for loss in self.losses) * NS_PER_S // RATE_HZ
        return max(first, own.first_ns or 0) / 1e9, min(last - lost_ns, own.last_ns or 0) / 1e9

    def truth_s(self, t_s: Float64) -> Float64:
        """Return the reference's media time [s] at times of the other's."""
        own = t_s.copy()
        for at, loss in zip(self.breaks_s(), self.losses, strict=True):
            own[t_s >= at] += loss.samples / RATE_HZ
        whole = np.floor(own * NS_PER_S)  # int64 times, and what is lost by them
        return np.asarray((self.clock.apply(whole.astype(np.int64)) + own * NS_PER_S - whole) / 1e9)


POINTS = 41
BESIDE_S = (-5.0, -1.05, 1.05, 5.0)  # a jump is placed to a second


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a result is off.

    Parameters
    ----------
    three_ms
        At the start, middle and end of what both files hold.
    worst_ms
        The largest of many points between, and beside each loss.
    jumps_s
        By how much the moments of losses are missed, at most; infinite if one was not found.
    """

    three_ms: tuple[float, float, float]
    worst_ms: float
    jumps_s: float = 0.0


NOT_PLACED = Errors((float("inf"),) * 3, float("inf"), float("inf"))


def errors_of(pair: Pair, knots_s: Float64, jumps_s: Sequence[float] = ()) -> Errors:
    """Compare a clock, ``(K, 2)`` times of the other and of the reference, with the truth."""
    breaks = pair.breaks_s()
    ends = np.linspace(knots_s[0, 0], knots_s[-1, 0], POINTS)
    beside = [b + away for b in breaks for away in BESIDE_S]
    at = np.array([t for t in (*ends, *beside) if all(abs(t - b) > 1 for b in breaks)])
    off = np.abs(np.interp(at, knots_s[:, 0], knots_s[:, 1]) - pair.truth_s(at)) * 1e3
    three = np.array([ends[0], ends[POINTS // 2], ends[-1]])
    there = np.interp(three, knots_s[:, 0], knots_s[:, 1])
    first, middle, last = ((there - pair.truth_s(three)) * 1e3).tolist()
    missed = _missed(breaks, jumps_s)
    return Errors((first, middle, last), float(off.max()), missed)


def _missed(breaks_s: Sequence[float], jumps_s: Sequence[float]) -> float:
    if len(breaks_s) != len(jumps_s):
        return float("inf")
    pairs = zip(sorted(breaks_s), sorted(jumps_s), strict=True)
    return max((abs(a - b) for a, b in pairs), default=0.0)


def between(reference: ClockMap, other: ClockMap) -> ClockMap:
    """Return ``C_reference_other`` of two devices of one session."""
    return reference.inverse() @ other


@dataclass(slots=True)
class _Folder:
    """Where files of one room go; the reference's clock and its file."""

    folder: Path
    seed: int
    room: Room
    reference: Path
    clock: ClockMap
    pairs: list[Pair]
    recorders: list[Recorder]
    noises: int = 0

    @classmethod
    def of(cls, folder: Path, seed: int, seconds: float, kind: str) -> _Folder:
        """Begin with a reference that hears the room for so long, at 20 dB."""
        folder.mkdir(parents=True, exist_ok=True)
        room = Room(seed, seconds + 2 * SPARE_S)
        at = clock("reference", SPARE_S, seconds)
        made = cls(folder, seed, room, folder / f"reference{kind}", at, [], [])
        heard = room.listener()
        file = made.noisy(SoundFile(made.reference), heard, at, 20)
        made.recorders.append(Recorder(heard, at, seconds, (file,)))
        return made

    def noisy(
        self, into: Takes, listener: Listener, at: ClockMap, snr_db: float, sign: int = 1
    ) -> Noisy:
        """Return the way into a file with noise of its own."""
        self.noises += 1
        return Noisy(into, level(listener, at), snr_db, 1000 * self.seed + self.noises, sign)

    def file(self, case: str, kind: str, at: ClockMap, losses: tuple[Loss, ...] = ()) -> Path:
        """Note a pair; return the path of its other file."""
        path = self.folder / f"{len(self.pairs):02d}{kind}"
        self.pairs.append(Pair(case, self.reference, path, between(self.clock, at), losses))
        return path

    def finish(self) -> list[Pair]:
        """Record all of it."""
        record(self.recorders)
        return self.pairs


def five_minutes(folder: Path, seed: int, seconds: float = 300.0) -> list[Pair]:
    """Make pairs of five minutes: noise from 30 dB below to 10 dB above, drifts to 100 ppm."""
    made = _Folder.of(folder, seed, seconds, ".wav")
    rng = randomness(seed, "bench drifts")
    table = ((100.0, (30, -10)), (-100.0, (20, 0)), (rng.uniform(-90, 90), (10, -10)))
    for drift_ppm, levels_db in table:
        at = clock("other", SPARE_S + rng.uniform(-25, 25), seconds, drift_ppm)
        heard = made.room.listener()
        files = []
        for snr_db in levels_db:
            path = made.file(f"5 min, {drift_ppm:+.0f} ppm, SNR {snr_db} dB", ".wav", at)
            files.append(made.noisy(SoundFile(path), heard, at, snr_db))
        made.recorders.append(Recorder(heard, at, seconds, tuple(files)))
    return made.finish()


def formats(folder: Path, seed: int, seconds: float = 150.0) -> list[Pair]:
    """Make one sound in several formats, against glasses with seven microphones of int32."""
    made = _Folder.of(folder, seed, seconds, ".wav")
    rng = randomness(seed, "bench formats")
    at = clock("other", SPARE_S + rng.uniform(-20, 20), seconds, rng.uniform(-60, 60))
    heard = made.room.listener()
    kinds = (("AAC 48 kHz", ".m4a", 1), ("Opus", ".ogg", 1), ("inverted polarity", ".wav", -1))
    files = tuple(
        made.noisy(SoundFile(made.file(name, kind, at)), heard, at, 15, sign)
        for name, kind, sign in kinds
    )
    made.recorders.append(Recorder(heard, at, seconds, files))
    pairs = made.finish()
    inverted = pairs[2]
    slower = folder / "slower.m4a"
    _as_44_1(inverted.other, slower)
    glasses = folder / "glasses.vrs"
    _write_glasses(glasses, made.room, made.clock, seconds, seed)
    return [
        *pairs,
        replace(inverted, case="AAC 44.1 kHz", other=slower),
        replace(inverted, case="mono against 7 channels of int32", reference=glasses),
    ]


def _as_44_1(path: Path, out: Path) -> None:
    from scipy.io import wavfile
    from scipy.signal import resample_poly

    samples = wavfile.read(path)[1] / np.float32(32768)
    file = SoundFile(out, 44_100)
    file.take(resample_poly(samples, 147, 160).astype(np.float32))
    file.close()


def _write_glasses(path: Path, room: Room, at: ClockMap, seconds: float, seed: int) -> None:
    glasses = Glasses(
        name="reference", serial="1WM00000000S00", clock=at, start_ns=0, seconds=seconds,
        sync_role="", shared_session_id="", start_epoch_s=1_764_000_000, barcode=None,
        hearing=Hearing(2.0, 0.002), seed=seed,
    )  # fmt: skip
    write_glasses(path, glasses, room.listener(7), ())


def half_hour(folder: Path, seed: int, seconds: float = 1800.0) -> list[Pair]:
    """Make pairs of half an hour: the steepest drift, a clock that wanders, lost samples, a gap."""
    made = _Folder.of(folder, seed, seconds, ".m4a")
    rng = randomness(seed, "bench half hour")
    steady = clock("other", SPARE_S + rng.uniform(-25, 25), seconds, -100.0)
    wanders = wandering(
        clock("other", SPARE_S + rng.uniform(-25, 25), seconds, 20.0),
        randomness(seed, "bench wander"), wander_ns=1.5e6,
    )  # fmt: skip
    at_s = (np.sort(rng.uniform(0.1, 0.8, 3)) + 0.04 * np.arange(3)) * seconds
    losses = tuple(
        Loss(float(at), round(by * RATE_HZ))
        for at, by in zip(at_s, rng.permutation(LOST_S), strict=True)
    )
    gap = Loss(float(rng.uniform(0.2, 0.8)) * seconds, 1024 * 94)  # about 2 s, whole frames
    heard = made.room.listener()
    plain = SoundFile(made.file("30 min, -100 ppm", ".m4a", steady))
    lossy = SoundFile(made.file("30 min, 40 ms, 80 ms, 1.3 s lost", ".m4a", steady, losses))
    leaps = SoundFile(made.file("30 min, times leap by 2 s", ".mp4", steady))
    noisy = made.noisy(_All((plain, Losing(lossy, losses), Losing(leaps, [gap], leaps))),
                       heard, steady, 10)  # fmt: skip
    made.recorders.append(Recorder(heard, steady, seconds, (noisy,)))
    heard = made.room.listener()
    slow = made.noisy(SoundFile(made.file("30 min, wander of 1.5 ms", ".m4a", wanders)),
                      heard, wanders, 10)  # fmt: skip
    made.recorders.append(Recorder(heard, wanders, seconds, (slow,)))
    return made.finish()


@dataclass(frozen=True, slots=True)
class _All:
    """Gives the same to several."""

    files: tuple[Takes, ...]

    def take(self, samples: Float32) -> None:
        for file in self.files:
            file.take(samples)

    def close(self) -> None:
        for file in self.files:
            file.close()


def six_devices(folder: Path, seed: int, seconds: float = 150.0) -> list[Pair]:
    """Make six devices of one room, each with its own drift."""
    made = _Folder.of(folder, seed, seconds, ".wav")
    rng = randomness(seed, "bench six")
    for k in range(5):
        at = clock(f"device {k}", SPARE_S + rng.uniform(-25, 25), seconds, rng.uniform(-100, 100))
        heard = made.room.listener()
        path = made.file(f"device {k}", ".wav", at)
        file = made.noisy(SoundFile(path), heard, at, rng.uniform(5, 20))
        made.recorders.append(Recorder(heard, at, seconds, (file,)))
    return made.finish()


def kept(
    place: Path, make: Callable[[Path, int, float], list[Pair]], seed: int, seconds: float
) -> list[Pair]:
    """Return a room's pairs, made only where they are not there yet."""
    folder = place / f"{make.__name__}-{seed}-{seconds:.0f}"
    if not (folder / PAIRS).is_file():
        pairs = make(folder, seed, seconds)
        (folder / PAIRS).write_bytes(pickle.dumps(pairs))
    return load(folder)


def load(folder: Path) -> list[Pair]:
    """Return the pairs that were made there."""
    pairs: list[Pair] = pickle.loads((folder / PAIRS).read_bytes())
    return pairs


def strangers(pairs: Sequence[Pair], others: Sequence[Pair]) -> Pair:
    """Return files of two rooms that have nothing in common."""
    one, two = pairs[0], others[0]
    return Pair("no common sound", one.reference, two.other, two.clock, related=False)
