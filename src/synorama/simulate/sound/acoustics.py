"""Sound in a room: from sources that move to microphones that move, each on its device's clock.

The direct sound and its first two generations of mirror images (Allen and Berkley, 1979) are
delayed by exactly the time that they travel, from where the source was when it gave the sound off.
What has been reflected more often is noise that decays: it starts where image sources of higher
order take over (reflections within ``t`` are taken to be Poisson distributed), has the energy that
so many images would have, and reaches every microphone as plane waves from all around.

The sound is made block by block: memory does not grow with the length of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.sound.acoustic_scene import (
    DECAY_60_DB,
    IMAGE_ORDER,
    LONGEST_M,
    SPEED_M_S,
    Ears,
    RoomBox,
    Source,
)
from synorama.simulate.sound.clips import GRID_HZ
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.simulate.sound.acoustic_scene import Place

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Listener", "RoomSound"]

NEAREST_M = 0.03  # no microphone comes closer to a source
SPLINE_DEGREE, SPLINE_REACH = 5, 6
HOP = 256  # samples of the device between which everything moves in a straight line
PIECE_HOPS = 24  # made at once; small enough for the processor's cache
PIECE = PIECE_HOPS * HOP
SILENCE = 1e-7  # of full scale
STEP = 240  # grid samples between which positions are known: 5 ms
CHUNK, AFTER = 4 * GRID_HZ, GRID_HZ // 2  # grid samples of one table, and what it adds behind
BEFORE = ceil(LONGEST_M / SPEED_M_S * 100) * GRID_HZ // 100  # and in front, for late reflections
CHUNKS_KEPT = 20  # enough to make a session of a minute once for all of its devices
EARLY_UP = 2  # grid of the reflections against the session's
HALF_RATE_ABOVE_HZ = 32_000.0  # reflections are sampled at half the rate of faster devices
MIDPOINT_TAPS = 16
WAVES = 8  # plane waves of which late reverberation consists
LATE_HZ = GRID_HZ // 2
DARK_ABOVE_HZ, DARK_SHARE = 3_000.0, 0.6  # high tones die out in this share of the time


# --- tables of a stretch of time -------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Values known every `STEP` of the grid from ``first`` on; straight lines between."""

    first: int
    values: Float64

    @classmethod
    def of(cls, function: Place, start_ns: int, first: int, count: int) -> _Path:
        grid = first + STEP * np.arange(count // STEP + 2)
        return cls(first, function(start_ns + grid * NS_PER_S // GRID_HZ))

    def at(self, grid: Float64) -> Float64:
        """Return values at positions of the grid ``(...)``, one axis or more longer."""
        step = (grid - self.first) / STEP
        low = np.floor(step).astype(np.intp)
        share = (step - low).reshape(*grid.shape, *(1,) * (self.values.ndim - 1))
        before = self.values[low]
        return before + share * (self.values[low + 1] - before)


@dataclass(frozen=True, slots=True, eq=False)
class _Voice:
    """A source during one stretch.

    Parameters
    ----------
    source
        Which.
    sounds
        Whether it sounds at all, every `STEP` of the grid.
    spline, early
        Its sound as a spline on the grid, and as walls reflect it, on a grid `EARLY_UP` as fine.
    path, facing
        Where it is, and where it points.
    """

    source: Source
    sounds: NDArray[np.bool_]
    spline: Float32
    early: Float32
    path: _Path
    facing: _Path | None


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """All that sounds during one stretch; tables begin with sample ``first`` of the grid."""

    first: int
    voices: tuple[_Voice, ...]
    late: Float32 | None


class RoomSound:
    """All the sound of a session.

    Parameters
    ----------
    room
        Where it is.
    sources
        What sounds.
    start_ns
        Session time of sample 0 of the sources' grid.
    aligned
        Let direct sound take no time to any microphone; its reflections keep their delay after
        it. What an algorithm gets wrong then is not physics.
    seed
        Of the late reverberation.
    """

    def __init__(
        self,
        room: RoomBox,
        sources: Sequence[Source],
        start_ns: int,
        *,
        aligned: bool = False,
        seed: int = 0,
    ) -> None:
        self.room, self.sources, self.start_ns = room, tuple(sources), start_ns
        self.aligned = aligned
        rng = randomness(seed, "late reverberation")
        self._late = _late_responses(room, rng)
        self.wave_directions = _all_around(rng)
        self.chunk = lru_cache(CHUNKS_KEPT)(self._make_chunk)

    def at(self, ears: Ears) -> Listener:
        """Return what a device with these ears hears, to be given to its writer."""
        return Listener(self, ears)

    def _make_chunk(self, number: int) -> _Chunk:
        first, count = number * CHUNK - BEFORE, BEFORE + CHUNK + AFTER
        voices = tuple(v for s in self.sources if (v := self._voice(s, first, count)) is not None)
        return _Chunk(first, voices, self._late_waves(first, count))

    def _voice(self, source: Source, first: int, count: int) -> _Voice | None:
        from scipy import ndimage, signal

        dry = source.dry.samples(first, count)
        if dry is None:
            return None
        spline = ndimage.spline_filter1d(dry, SPLINE_DEGREE, output=np.float32)
        early = dry[:0]
        if source.reflects:
            early = signal.resample_poly(dry, EARLY_UP, 1, window=_wall_taps())
        facing = source.facing and _Path.of(source.facing, self.start_ns, first, count)
        path = _Path.of(source.place, self.start_ns, first, count)
        sounds = np.abs(dry.reshape(-1, STEP)).max(axis=1) > SILENCE
        return _Voice(source, sounds, spline, early.astype(np.float32), path, facing or None)

    def _late_waves(self, first: int, count: int) -> Float32 | None:
        """Return late reverberation as `WAVES` plane waves ``(WAVES, count)`` on the grid."""
        from scipy import signal

        lead = self._late.shape[1] * GRID_HZ // LATE_HZ
        dry = [(s, s.dry.samples(first - lead, lead + count)) for s in self.sources]
        given = [np.float32(s.all_around) * d for s, d in dry if d is not None]
        if not given:
            return None
        slow = signal.resample_poly(np.sum(given, axis=0), 1, GRID_HZ // LATE_HZ)
        waves = signal.oaconvolve(slow[np.newaxis], self._late, axes=1)
        kept = waves[:, self._late.shape[1] :][:, : count * LATE_HZ // GRID_HZ]
        late: Float32 = signal.resample_poly(kept, GRID_HZ // LATE_HZ, 1, axis=1)
        return np.ascontiguousarray(late, np.float32)


@lru_cache(1)
def _wall_taps() -> Float64:
    """Return the filter of walls, which take more of the high tones, up to 10 kHz."""
    from scipy import signal

    hz, share = (0, 1_000, 4_000, 8_000, 10_500, GRID_HZ), (1, 1, 0.75, 0.5, 0, 0)
    return np.asarray(signal.firwin2(65, hz, share, fs=EARLY_UP * GRID_HZ), np.float64)


def _late_responses(room: RoomBox, rng: np.random.Generator) -> Float32:
    """Return decaying noise ``(WAVES, T)``: all images of more than `IMAGE_ORDER` reflections."""
    from scipy import signal, stats

    seconds = np.arange(round(1.1 * room.rt60_s * LATE_HZ)) / LATE_HZ
    taken = stats.poisson.sf(IMAGE_ORDER, SPEED_M_S * seconds / room.free_path_m)
    density = 4 * np.pi * SPEED_M_S / room.volume_m3 / LATE_HZ / WAVES * taken
    noise = rng.standard_normal((WAVES, len(seconds)))
    taps = signal.firwin(63, DARK_ABOVE_HZ, fs=LATE_HZ)
    low = signal.oaconvolve(noise, taps[np.newaxis], mode="same", axes=1)
    rates = DECAY_60_DB / 2 / room.rt60_s / np.array([[1.0], [DARK_SHARE]])
    light, dark = np.exp(-rates * seconds)
    response: Float32 = (np.sqrt(density) * (low * light + (noise - low) * dark)).astype(np.float32)
    return response


def _all_around(rng: np.random.Generator) -> Float64:
    """Return unit vectors ``(WAVES, 3)`` that cover all directions: a spiral, turned."""
    from scipy.spatial.transform import Rotation

    k = np.arange(WAVES) + 0.5
    height, angle = 1 - 2 * k / WAVES, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - height**2)
    spiral = np.column_stack([flat * np.cos(angle), flat * np.sin(angle), height])
    return np.asarray(Rotation.random(random_state=int(rng.integers(2**31))).apply(spiral))


# --- hearing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Knots:
    """Where a device's samples lie: every `HOP` of them, on the session's grid.

    Parameters
    ----------
    at
        ``(K,)`` positions on the grid.
    mics, centre
        ``(K, M, 3)`` and ``(K, 3)`` positions [m] there.
    thin
        Every how many samples reflections are made.
    """

    at: Float64
    mics: Float64
    centre: Float64 | None
    thin: int


class Listener:
    """What a device hears: stands where `synorama.simulate.sound.plain.Sound` stands."""

    def __init__(self, sound: RoomSound, ears: Ears) -> None:
        self._sound, self._ears = sound, ears
        self._images = sound.room.images()
        self._paths = lru_cache(2)(self._make_paths)
        self._piece = lru_cache(2)(self._make_piece)  # blocks rarely end where pieces do

    def heard(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> Float32:
        """Sample the sound; as `synorama.simulate.sound.acoustic_scene.Hears`."""
        reach = len(self._ears.tone) // 2
        first, last = start - reach, start + count + reach
        numbers = range(first // PIECE, (last - 1) // PIECE + 1)
        whole = np.concatenate([self._piece(clock, rate_hz, first_ns, k) for k in numbers])
        wanted = whole[first - numbers[0] * PIECE :][: last - first]
        given = self._ears.channels(_filtered(wanted, self._ears.tone))
        return given[:, 0] if given.shape[1] == 1 else given

    def arrival_ns(self, source: str, emitted_ns: Int64) -> Int64:
        """Return when direct sound reaches the microphones, ``(N, M)`` session times [ns].

        Parameters
        ----------
        source
            Name of the source.
        emitted_ns
            Session times ``(N,)`` at which the sound is made.
        """
        emitted = np.asarray(emitted_ns, np.int64)
        microphones = range(len(self._ears.gains))
        if self._sound.aligned:
            return np.repeat(emitted[:, np.newaxis], len(microphones), axis=1)
        thing = next(s for s in self._sound.sources if s.name == source)
        here = thing.place(emitted)
        return np.stack([self._arrival_at(m, here, emitted) for m in microphones], axis=1)

    def _arrival_at(self, microphone: int, here: Float64, emitted: Int64) -> Int64:
        arrived = emitted
        for _ in range(5):  # each step is better by the speed of sound over that of the head
            away = self._ears.places(arrived)[:, microphone] - here
            travel_s = np.linalg.norm(away, axis=1) / SPEED_M_S
            arrived = emitted + np.rint(travel_s * NS_PER_S).astype(np.int64)
        return arrived

    def _make_piece(self, clock: ClockMap, rate_hz: float, first_ns: int, number: int) -> Float32:
        """Return samples ``(PIECE, M)`` from ``number * PIECE`` on, whoever asks for which."""
        knots, chunk = self._knots(clock, rate_hz, first_ns, number * PIECE)
        microphones = len(self._ears.gains)
        direct = np.zeros((microphones, PIECE_HOPS, HOP), np.float32)
        thin = np.zeros((microphones, PIECE_HOPS + 2, HOP // knots.thin), np.float32)
        for voice in self._sounding(chunk, knots):
            delays, gains = self._travels(voice, knots)
            positions = knots.at[:, np.newaxis, np.newaxis] - delays - chunk.first
            direct += _direct(voice.spline, positions[1:-1, :, 0], gains[1:-1, :, 0])
            if voice.source.reflects:
                places = EARLY_UP * positions[..., 1:]
                thin += _gathered(voice.early, places, gains[..., 1:], thin.shape)
        if chunk.late is not None:
            thin += self._late(chunk.late, chunk.first, knots, thin.shape)
        early = _thickened(thin.reshape(microphones, -1), knots.thin)[:, HOP:-HOP]
        return np.ascontiguousarray((direct.reshape(microphones, -1) + early).T)

    def _sounding(self, chunk: _Chunk, knots: _Knots) -> list[_Voice]:
        """Return the sources of which something can arrive between the knots."""
        reach = self._sound.room.longest_m / SPEED_M_S * GRID_HZ
        begin = max(0, int((knots.at[0] - chunk.first - reach) / STEP))
        end = int((knots.at[-1] - chunk.first) / STEP) + 2
        return [voice for voice in chunk.voices if voice.sounds[begin:end].any()]

    def _knots(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int
    ) -> tuple[_Knots, _Chunk]:
        """Return the knots of a piece, with one hop more to both sides for the filters."""
        ticks = (start + HOP * np.arange(-1, PIECE_HOPS + 2)) * (NS_PER_S / rate_hz)
        whole = np.floor(ticks).astype(np.int64)
        session = clock.apply(first_ns + whole) - self._sound.start_ns + (ticks - whole)
        at = session * (GRID_HZ / NS_PER_S)
        number = int(at[0] // CHUNK)
        mics, centre = self._paths(number)
        here = None if centre is None else centre.at(at)
        thin = 2 if rate_hz > HALF_RATE_ABOVE_HZ else 1
        return _Knots(at, mics.at(at), here, thin), self._sound.chunk(number)

    def _make_paths(self, number: int) -> tuple[_Path, _Path | None]:
        first, count, start_ns = number * CHUNK, CHUNK + AFTER, self._sound.start_ns
        centre = self._ears.centre
        return (
            _Path.of(self._ears.places, start_ns, first, count),
            centre and _Path.of(centre, start_ns, first, count),
        )

    def _travels(self, voice: _Voice, knots: _Knots) -> tuple[Float64, Float64]:
        """Return delays [grid samples] and gains ``(K, M, I)`` of all images of a source."""
        heard = None if voice.source.reflects else 1
        sign, offset, reflected = (of_image[:heard] for of_image in self._images)
        mics = knots.mics[:, :, np.newaxis]
        away = mics - (voice.path.at(knots.at)[:, np.newaxis, np.newaxis] * sign + offset)
        delays = np.linalg.norm(away, axis=-1) * (GRID_HZ / SPEED_M_S)
        then = knots.at[:, np.newaxis, np.newaxis] - delays  # where it was when it gave it off
        away = mics - (voice.path.at(then) * sign + offset)
        distance = np.maximum(np.linalg.norm(away, axis=-1), NEAREST_M)
        gains = voice.source.level * reflected / distance
        if voice.facing is not None:
            facing = voice.facing.at(knots.at)[:, np.newaxis] * sign
            gains *= _towards(away, facing[:, np.newaxis], voice.source.behind)
        if knots.centre is not None:
            outward = knots.mics - knots.centre[:, np.newaxis]
            from_head = mics - away - knots.centre[:, np.newaxis, np.newaxis]
            gains *= _towards(from_head, outward[:, :, np.newaxis], self._ears.shadowed)
        delays = distance * (GRID_HZ / SPEED_M_S)
        return delays - delays[..., :1] if self._sound.aligned else delays, gains

    def _late(self, late: Float32, first: int, knots: _Knots, shape: tuple[int, ...]) -> Float32:
        """Return the late reverberation of that shape: plane waves at each microphone."""
        middle = np.add(self._sound.room.low_m, self._sound.room.high_m) / 2
        early_s = (knots.mics - middle) @ self._sound.wave_directions.T / SPEED_M_S
        early_s *= not self._sound.aligned
        positions = knots.at[:, np.newaxis, np.newaxis] - first + early_s * GRID_HZ
        rows = np.arange(WAVES) * late.shape[1]
        return _gathered(late.reshape(-1), positions, np.ones_like(positions), shape, rows)


def _towards(directions: Float64, ahead: Float64, behind: float) -> Float64:
    """Return 1 for directions ``(..., 3)`` straight ahead, falling to ``behind``."""
    dot = (directions * ahead).sum(axis=-1)
    length = np.linalg.norm(directions, axis=-1) * np.linalg.norm(ahead, axis=-1)
    cosine = dot / np.maximum(length, 1e-9)
    return np.asarray(1 - (1 - behind) * (1 - cosine) / 2, np.float64)


def _ramp(count: int) -> Float32:
    return np.asarray(np.arange(count) / count, np.float32)


def _direct(spline: Float32, positions: Float64, gains: Float64) -> Float32:
    """Return direct sound ``(M, hops, HOP)``, by a spline that moves nothing in time.

    Parameters
    ----------
    spline
        Coefficients of the sound.
    positions, gains
        ``(K, M)`` at the knots: where in the sound, and how loud.
    """
    from scipy import ndimage

    knots, gain = positions.T, gains.T.astype(np.float32)
    low = int(knots.min()) - SPLINE_REACH
    piece = spline[low : int(knots.max()) + SPLINE_REACH + 2]
    share = np.arange(HOP) / HOP
    places = knots[:, :-1, np.newaxis] + np.diff(knots)[..., np.newaxis] * share - low
    heard = ndimage.map_coordinates(
        piece, [places.ravel()], order=SPLINE_DEGREE, output=np.float32, prefilter=False
    )
    faded = gain[:, :-1, np.newaxis] + np.diff(gain)[..., np.newaxis] * _ramp(HOP)
    return np.asarray(heard.reshape(places.shape) * faded, np.float32)


def _gathered(
    table: Float32,
    positions: Float64,
    gains: Float64,
    shape: tuple[int, ...],
    rows: NDArray[np.intp] | int = 0,
) -> Float32:
    """Return the sum over paths ``(M, hops, count)``, each read from a table along its way.

    Parameters
    ----------
    table
        Read by straight lines between its values.
    positions, gains
        ``(K, M, I)`` at the knots of I paths.
    shape
        Microphones, hops, samples a hop.
    rows
        Where in the table each path begins.
    """
    low = int(positions.min())
    begin, along = (positions[:-1] - low).astype(np.float32), np.diff(positions, axis=0)
    level, change = gains[:-1].astype(np.float32), np.diff(gains, axis=0).astype(np.float32)
    ramp, offset = _ramp(shape[2]), np.reshape(rows, (-1, 1)) + low
    gathered = np.empty(shape, np.float32)
    for m in range(shape[0]):  # one by one, as all of them together leave the processor's cache
        places = along[:, m, :, np.newaxis].astype(np.float32) * ramp
        places += begin[:, m, :, np.newaxis]
        read = _between(table, places, offset)
        parts = np.stack([level[:, m], change[:, m]], axis=1) @ read
        gathered[m] = parts[:, 0] + parts[:, 1] * ramp
    return gathered


def _between(table: Float32, places: Float32, offset: NDArray[np.intp]) -> Float32:
    """Return a table's values at places behind an offset; spoils the places."""
    whole = places.astype(np.intp)
    np.subtract(places, whole, out=places, casting="unsafe")
    whole += offset
    read = table.take(whole, mode="clip")
    whole += 1
    places *= table.take(whole, mode="clip") - read
    read += places
    return read


def _thickened(thin: Float32, factor: int) -> Float32:
    """Return samples ``(M, N)`` at ``factor`` times the rate, 1 or 2."""
    from scipy import ndimage, signal

    if factor == 1:
        return thin
    taps = signal.firwin(2 * MIDPOINT_TAPS - 1, 0.5, window=("kaiser", 6.0))[::2]
    taps /= taps.sum()
    thick = np.empty((len(thin), 2 * thin.shape[1]), np.float32)
    thick[:, ::2] = thin
    ndimage.correlate1d(thin, taps, axis=1, output=thick[:, 1::2], origin=-1)
    return thick


def _filtered(heard: Float32, taps: tuple[float, ...]) -> Float32:
    from scipy import signal

    if len(taps) == 1:
        return np.asarray(heard * np.float32(taps[0]), np.float32)
    kernel = np.array(taps, np.float32)[:, np.newaxis]
    filtered: Float32 = signal.oaconvolve(heard, kernel, mode="valid", axes=0)
    return filtered
