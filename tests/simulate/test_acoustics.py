"""Sound reaches every microphone when geometry says, and dies away as the room says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from synorama.simulate.clocks import steady_clock
from synorama.simulate.sound.acoustic_scene import (
    SPEED_M_S,
    Ears,
    RoomBox,
    Source,
    fixed,
    fixed_ears,
    heading,
    tone_taps,
    worn,
    worn_ears,
)
from synorama.simulate.sound.acoustics import RoomSound
from synorama.simulate.sound.clips import GRID_HZ, Clip, Clips
from synorama.simulate.sound.faults import (
    Drop,
    Dropping,
    clock_after_drops,
    inverted,
    muted,
    swapped,
    wandering,
)
from synorama.simulate.sound.noises import Fan
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

START_NS = 4_000_000_000_000
RATE = 48_000
HALF = 48
ROOM = RoomBox.of_size((9.0, 8.0, 4.0), 0.15)
BAR_S = 20e-6
MICROPHONES_M = np.array(
    [[-0.046, -0.028, 0.007], [0.009, 0.010, 0.017], [0.046, -0.028, 0.007], [0.063, 0.012, 0.006],
     [-0.052, 0.013, 0.012], [0.070, 0.008, -0.093], [-0.070, 0.008, -0.093]]
)  # fmt: skip


def ping() -> Float32:
    """A sound of all frequencies up to 9 kHz whose middle is sample `HALF`."""
    taps = signal.firwin(2 * HALF + 1, 9_000, fs=GRID_HZ)
    return np.asarray(taps / taps.max(), np.float32)


def pings(*at_s: float) -> Clips:
    return Clips(Clip(round(t * GRID_HZ) - HALF, 2 * HALF + 1, ping) for t in at_s)


def clock(drift_ppm: float = 0.0, device_ns: int = 77) -> ClockMap:
    return steady_clock(
        "device",
        device_ns=device_ns,
        session_ns=START_NS,
        length_ns=20 * NS_PER_S,
        drift_ppm=drift_ppm,
    )


def found_s(heard: Float32, near_s: float, rate_hz: float = RATE) -> float:
    """Return when a ping arrives, from the start of a channel, within 1 ms of where it should."""
    k = round(near_s * rate_hz)
    reach = round(0.001 * rate_hz)
    piece = heard[k - reach - HALF : k + reach + HALF + 1].astype(float)
    match = np.correlate(piece, ping().astype(float), mode="valid")
    i = int(np.argmax(np.abs(match)))
    a, b, c = np.abs(match[i - 1 : i + 2])
    return float((k - reach + i + 0.5 * (a - c) / (a - 2 * b + c)) / rate_hz)


def line(start_m: tuple[float, ...], speed_m_s: tuple[float, ...]) -> Callable[[Int64], Float64]:
    start, speed = np.array(start_m), np.array(speed_m_s)
    return lambda t: start + (t[:, np.newaxis] - START_NS) / NS_PER_S * speed


# --- when ------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    place=st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.8, 2.5)),
    drift_ppm=st.floats(-100, 100),
)
def test_sound_arrives_when_geometry_says(
    place: tuple[float, float, float], drift_ppm: float
) -> None:
    """On the device's own clock, at seven microphones a few centimetres apart."""
    at = np.array([1.0, -1.0, 1.6]) + MICROPHONES_M
    if np.linalg.norm(at - place, axis=1).min() < 0.5:
        return
    sound = RoomSound(ROOM, [Source("s", fixed(place), pings(1.0, 3.0))], START_NS)
    heard = sound.at(fixed_ears(at.tolist())).heard(clock(drift_ppm), RATE, 77, 0, 4 * RATE)
    travel_s = np.linalg.norm(at - place, axis=1) / SPEED_M_S
    for m in range(7):
        for made_s in (1.0, 3.0):
            expected = (made_s + travel_s[m]) / (1 + drift_ppm * 1e-6)
            assert abs(found_s(heard[:, m], expected) - expected) < BAR_S / 10


@pytest.mark.parametrize("speed_m_s", [(-1.5, 0.4, 0.0), (1.5, -0.4, 0.1)])
def test_of_a_moving_source(speed_m_s: tuple[float, ...]) -> None:
    """It sounds from where it was when it sounded, not from where it is."""
    made = np.arange(0.5, 2.6, 0.3)
    path = line((0.0, 1.0, 1.5), speed_m_s)
    sound = RoomSound(ROOM, [Source("s", path, pings(*made))], START_NS)
    there = np.array([0.5, -2.0, 1.5])
    heard = sound.at(fixed_ears([there.tolist()])).heard(clock(), RATE, 77, 0, 3 * RATE)
    for t in made:
        then = np.array([0.0, 1.0, 1.5]) + t * np.array(speed_m_s)
        expected = t + np.linalg.norm(there - then) / SPEED_M_S
        assert abs(found_s(heard, expected) - expected) < BAR_S / 10


def test_at_a_moving_microphone() -> None:
    """Analytic: ``|m0 + v t - s| = c (t - t0)`` is a quadratic equation in the arrival."""
    made = np.arange(0.5, 2.6, 0.3)
    m0, v, s = np.array([2.0, 1.0, 1.6]), np.array([-1.2, 0.5, 0.0]), np.array([-2.0, -1.0, 1.2])
    ears = Ears(lambda t: line(tuple(m0), tuple(v))(t)[:, np.newaxis], (1.0,))
    sound = RoomSound(ROOM, [Source("s", fixed(s.tolist()), pings(*made))], START_NS)
    listener = sound.at(ears)
    heard = listener.heard(clock(), RATE, 77, 0, 3 * RATE)
    away = m0 - s
    a = v @ v - SPEED_M_S**2
    for t in made:
        b, c = 2 * (away @ v + SPEED_M_S**2 * t), away @ away - (SPEED_M_S * t) ** 2
        expected = (-b - np.sqrt(b * b - 4 * a * c)) / (2 * a)
        assert abs(found_s(heard, expected) - expected) < BAR_S / 10
        told = listener.arrival_ns("s", np.array([START_NS + round(t * 1e9)]))[0, 0] - START_NS
        assert abs(told * 1e-9 - expected) < 2e-9


@pytest.mark.parametrize("speed_m_s", [-2.0, 2.0])
def test_pitch_rises_towards_the_ear(speed_m_s: float) -> None:
    def tone() -> Float32:
        return np.asarray(np.sin(2 * np.pi * 1_000 * np.arange(2 * GRID_HZ) / GRID_HZ), np.float32)

    far = RoomBox.of_size((20.0, 9.0, 4.0), 0.05)
    path = line((-speed_m_s, 0.0, 1.5), (speed_m_s, 0.0, 0.0))
    sound = RoomSound(far, [Source("s", path, Clips([Clip(0, 2 * GRID_HZ, tone)]))], START_NS)
    heard = sound.at(fixed_ears([[8.0, 0.0, 1.5]])).heard(clock(), RATE, 77, RATE // 2, RATE)
    turns = np.unwrap(np.angle(signal.hilbert(heard)))[4800:-4800] / (2 * np.pi)
    hz = np.polyfit(np.arange(len(turns)) / RATE, turns, 1)[0]
    assert hz == pytest.approx(1_000 / (1 - speed_m_s / SPEED_M_S), abs=0.15)  # of 5.8


def test_aligned_takes_travel_away_and_nothing_else() -> None:
    ears = fixed_ears([[-3.0, 0.0, 1.5], [2.0, 1.0, 1.5]])
    source = Source("s", fixed([1.0, 1.0, 1.5]), pings(1.0))
    real, aligned = (RoomSound(ROOM, [source], START_NS, aligned=a) for a in (False, True))
    emitted = np.array([START_NS + NS_PER_S])
    assert (aligned.at(ears).arrival_ns("s", emitted) == emitted[0]).all()
    here = aligned.at(ears).heard(clock(), RATE, 77, 0, 2 * RATE)
    there = real.at(ears).heard(clock(), RATE, 77, 0, 2 * RATE)
    for m in range(2):
        assert abs(found_s(here[:, m], 1.0) - 1.0) < 1e-6
        assert np.abs(here[:, m]).max() == pytest.approx(np.abs(there[:, m]).max(), rel=0.08)
        power = [float(np.sum(np.square(h[:, m].astype(float)))) for h in (here, there)]
        assert power[0] == pytest.approx(power[1], rel=0.2)


@pytest.mark.parametrize("rate_hz", [16_000.0, 44_100.0, 48_000.0])
def test_any_rate(rate_hz: float) -> None:
    sound = RoomSound(ROOM, [Source("s", fixed([1, 1, 1.5]), Fan(1, "fan", 0.1))], START_NS)
    listener = sound.at(fixed_ears([[-1.0, 0.0, 1.5]]))
    slow = listener.heard(clock(), rate_hz, 77, 0, int(rate_hz))
    fast = listener.heard(clock(), 48_000, 77, 0, 48_000)
    spectrum = [signal.welch(x, fs, nperseg=int(fs / 50))[1][10:60] for x, fs in
                ((slow, rate_hz), (fast, 48_000))]  # fmt: skip
    np.testing.assert_allclose(10 * np.log10(spectrum[0] / spectrum[1]), 0, atol=1.5)


# --- how loud, how long ----------------------------------------------------------------------


def test_level_falls_with_distance() -> None:
    sound = RoomSound(ROOM, [Source("s", fixed([0, 0, 1.5]), pings(1.0))], START_NS)
    metres = (0.5, 1.0, 2.0, 3.5)
    ears = fixed_ears([[d, 0.0, 1.5] for d in metres])
    heard = sound.at(ears).heard(clock(), RATE, 77, RATE, RATE // 10)
    for m, d in enumerate(metres):
        k = round(d / SPEED_M_S * RATE)
        level = np.abs(signal.resample(heard[k - 40 : k + 41, m], 81 * 16)).max()
        assert level * d == pytest.approx(1.0, rel=0.05)


def response(room: RoomBox, mic_m: list[float]) -> Float64:
    source = Source("s", fixed([0.9, 0.6, 1.4]), pings(1.0))
    listener = RoomSound(room, [source], START_NS).at(fixed_ears([mic_m]))
    return listener.heard(clock(), RATE, 77, RATE - 100, 2 * RATE).astype(np.float64)


@pytest.mark.parametrize("rt60_s", [0.25, 0.4, 0.8])
def test_sound_dies_away_in_the_time_that_was_asked_for(rt60_s: float) -> None:
    """Schroeder's backward integration between -5 and -35 dB."""
    measured = []
    for mic in ([-1.5, -0.8, 1.6], [0.5, 1.2, 1.1]):
        heard = response(RoomBox.of_size((5.0, 4.0, 2.6), rt60_s), mic)
        left = np.cumsum(np.square(heard[::-1]))[::-1]
        db = 10 * np.log10(left / left[0] + 1e-12)
        a, b = int(np.argmax(db < -5)), int(np.argmax(db < -35))
        slope = np.polyfit(np.arange(a, b) / RATE, db[a:b], 1)[0]
        measured.append(-60 / slope)
    assert np.mean(measured) == pytest.approx(rt60_s, rel=0.15)


def test_reverberation_has_the_energy_of_a_diffuse_field() -> None:
    """Echoes with delays of their own and late noise add up to ``4 pi c T / (13.8 V)``.

    Of that a wall has taken its share once; below 1 kHz it takes no more than elsewhere.
    """
    room = RoomBox.of_size((5.0, 4.0, 2.6), 0.5)
    expected = 4 * np.pi * SPEED_M_S / room.volume_m3 * 0.5 / 13.8 * room.reflected**2
    band = signal.butter(4, (150, 950), "band", fs=RATE, output="sos")
    one = np.sum(np.square(signal.sosfilt(band, np.pad(ping().astype(float), (0, RATE)))))
    energies = []
    for mic in np.random.default_rng(4).uniform((-2.2, -1.7, 0.4), (-0.6, 1.7, 2.2), (12, 3)):
        heard = signal.sosfilt(band, response(room, mic.tolist()))
        direct = 1 / np.sum(np.square(np.subtract([0.9, 0.6, 1.4], mic)))
        energies.append(np.sum(np.square(heard)) / one - direct)
    assert abs(10 * np.log10(np.mean(energies) / expected)) < 1.0


def test_the_first_echo_comes_from_the_floor() -> None:
    room = RoomBox.of_size((9.0, 8.0, 4.0), 0.5)
    source = Source("s", fixed([0, 0, 1.0]), pings(1.0))
    heard = RoomSound(room, [source], START_NS).at(fixed_ears([[2.0, 0.0, 1.0]])).heard(
        clock(), RATE, 77, 0, 2 * RATE
    )  # fmt: skip
    expected = 1.0 + np.hypot(2.0, 2.0) / SPEED_M_S
    assert abs(found_s(heard, expected) - expected) < 50e-6


def head(x_m: float, yaw_rad: float) -> Callable[[Int64], Float64]:
    """Somebody who stands still: the central pupil frame, x left, y up, z ahead."""
    ahead = np.array([np.cos(yaw_rad), np.sin(yaw_rad), 0.0])
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([np.cross([0, 0, 1], ahead), [0, 0, 1], ahead])
    pose[:3, 3] = x_m, 0.0, 1.6
    return lambda t: np.broadcast_to(pose, (len(t), 4, 4))


def test_the_own_voice_is_louder_than_the_other_ones() -> None:
    """Two wearers face each other, as close as people stand who work together."""
    poses = head(-0.5, 0.0), head(0.5, np.pi)
    room = RoomBox.of_size((4.5, 3.5, 2.6), 0.4)
    sources = [
        Source(str(k), worn(pose, (0, -0.075, 0.012)), Clips([]), 1.0, heading(pose))
        for k, pose in enumerate(poses)
    ]
    for k, source in enumerate(sources):
        speaks = Source(source.name, source.place, Fan(k, "x", 0.1), 1.0, source.facing)
        sound = RoomSound(room, [speaks], START_NS)
        heard = [
            sound.at(worn_ears(pose, MICROPHONES_M)).heard(clock(), RATE, 77, RATE, RATE)
            for pose in poses
        ]
        power = [np.mean(np.square(h.astype(float)), axis=0) for h in heard]
        ratio_db = 10 * np.log10(power[k] / power[1 - k])
        assert (ratio_db > 7).all(), ratio_db
        assert (ratio_db < 30).all(), "a voice does reach the other glasses"


def test_late_sound_differs_between_places_and_agrees_at_one() -> None:
    room = RoomBox.of_size((5.0, 4.0, 2.6), 0.6)
    sound = RoomSound(room, [Source("s", fixed([1, 1, 1.4]), pings(1.0))], START_NS)
    places = [[-1.5, 0.0, 1.5], [-1.5, 0.01, 1.5], [0.2, -1.2, 1.0]]
    heard = sound.at(fixed_ears(places)).heard(clock(), RATE, 77, 0, 2 * RATE)
    late = heard[RATE + RATE // 10 : RATE + RATE // 3]
    alike = np.corrcoef(late.T)
    assert alike[0, 1] > 0.8
    assert abs(alike[0, 2]) < 0.3


# --- blocks, seeds, refusals -----------------------------------------------------------------


@pytest.fixture(scope="module")
def kitchen() -> RoomSound:
    sources = [
        Source("a", line((0, 0, 1.5), (0.3, 0.1, 0)), pings(*np.arange(0.2, 9.0, 0.17))),
        Source("fan", fixed([2, 2, 1]), Fan(1, "fan"), reflects=False),
    ]
    return RoomSound(RoomBox.of_size((6, 5, 2.6), 0.4), sources, START_NS, seed=2)


def test_blocks_of_any_size_give_the_same_bits(kitchen: RoomSound) -> None:
    ears = fixed_ears([[-1.0, 0.0, 1.5], [1.0, 1.0, 1.0]])
    whole = kitchen.at(ears).heard(clock(30.0), RATE, 77, 1_000, 250_000)
    listener = kitchen.at(ears)
    for size in (960, 4096, 48_128):
        starts = range(1_000, 251_000 - size, size)
        parts = [listener.heard(clock_of_30(), RATE, 77, k, size) for k in starts]
        assert np.array_equal(np.concatenate(parts), whole[: len(starts) * size])


_CLOCK = clock(30.0)


def clock_of_30() -> ClockMap:
    return _CLOCK


def test_nothing_clicks_where_tables_meet(kitchen: RoomSound) -> None:
    """A stretch of time is 4 s long: what is heard goes on through its end."""
    fan = RoomSound(kitchen.room, [kitchen.sources[1]], START_NS, seed=2)
    heard = fan.at(fixed_ears([[-1.0, 0.0, 1.5]])).heard(clock(), RATE, 77, 3 * RATE, 2 * RATE)
    high = signal.sosfilt(signal.butter(6, 14_000, "high", fs=RATE, output="sos"), heard)[2000:]
    assert np.abs(high).max() < 12 * np.sqrt(np.mean(np.square(high)))


def test_seeds_decide_the_reverberation(kitchen: RoomSound) -> None:
    ears = fixed_ears([[-1.0, 0.0, 1.5]])
    again, other = (
        RoomSound(kitchen.room, kitchen.sources, START_NS, seed=seed) for seed in (2, 3)
    )
    here = kitchen.at(ears).heard(clock(), RATE, 77, 0, RATE)
    assert np.array_equal(here, again.at(ears).heard(clock(), RATE, 77, 0, RATE))
    assert not np.array_equal(here, other.at(ears).heard(clock(), RATE, 77, 0, RATE))


def test_where_nothing_sounds_nothing_is_heard() -> None:
    sound = RoomSound(ROOM, [Source("s", fixed([0, 0, 1]), pings(5.0))], START_NS)
    heard = sound.at(fixed_ears([[1, 1, 1], [2, 1, 1]])).heard(clock(), RATE, 77, -RATE, RATE)
    assert heard.shape == (RATE, 2)
    assert not heard.any()


def test_rooms_and_ears_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="no inside"):
        RoomBox((0, 0, 0), (1, 0, 2), 0.4)
    with pytest.raises(ValueError, match="too large"):
        RoomBox.of_size((40.0, 30.0, 5.0), 0.4)
    with pytest.raises(ValueError, match="reverberation"):
        RoomBox.of_size((4.0, 3.0, 2.5), 9.0)
    with pytest.raises(ValueError, match="symmetric"):
        Ears(fixed([[0, 0, 0]]), (1.0,), tone=(1.0, 0.5))
    with pytest.raises(ValueError, match="only channels 0 to 1"):
        muted(fixed_ears([[0, 0, 1], [0, 1, 1]]), 2)


# --- devices and their faults ----------------------------------------------------------------


def test_the_tone_of_a_device_moves_nothing_in_time() -> None:
    sound = RoomSound(ROOM, [Source("s", fixed([1, 1, 1.5]), pings(1.0))], START_NS)
    plain = fixed_ears([[-1.0, 0.0, 1.5]])
    dull = Ears(plain.places, plain.gains, tone=tone_taps(-9.0))
    times, levels = [], []
    for ears in (plain, dull):
        heard = sound.at(ears).heard(clock(), RATE, 77, 0, 2 * RATE)
        times.append(found_s(heard, 1.0 + np.sqrt(5) / SPEED_M_S))
        levels.append(np.abs(np.fft.rfft(heard[RATE + 200 : RATE + 400], RATE)))
    assert abs(times[0] - times[1]) < 1e-6
    assert 20 * np.log10(levels[1][8_000] / levels[0][8_000]) == pytest.approx(-9, abs=1.0)
    assert 20 * np.log10(levels[1][500] / levels[0][500]) == pytest.approx(0, abs=1.0)


def test_cables_mixed_up(kitchen: RoomSound) -> None:
    ears = fixed_ears([[-1.0, 0.0, 1.5], [1.0, 1.0, 1.0], [2.0, -1.0, 1.0]])
    good, bad = (
        kitchen.at(e).heard(clock(), RATE, 77, 0, RATE)
        for e in (ears, inverted(muted(swapped(ears, 0, 2), 1), 0))
    )
    assert np.array_equal(bad[:, 0], -good[:, 2])
    assert not bad[:, 1].any()
    assert np.array_equal(bad[:, 2], good[:, 0])


def test_lost_samples_are_where_the_clock_says() -> None:
    made = np.arange(0.5, 8.0, 0.5)
    sound = RoomSound(ROOM, [Source("s", fixed([1, 1, 1.5]), pings(*made))], START_NS)
    ears = fixed_ears([[-1.0, 0.0, 1.5]])
    drops = (Drop(2 * RATE + 777, 1_024), Drop(4 * RATE, 62_400))
    dropping = Dropping(sound.at(ears), drops)
    true, told = clock(-60.0), clock_after_drops(clock(-60.0), RATE, 77, drops)
    blocks = [dropping.heard(true, RATE, 77, k, 1_000) for k in range(0, 6 * RATE, 1_000)]
    heard = np.concatenate(blocks)
    arrived = sound.at(ears).arrival_ns("s", START_NS + np.rint(made * 1e9).astype(np.int64))[:, 0]
    found = 0
    for arrival_ns in arrived:
        at_s = (told.inverse().apply(int(arrival_ns)) - 77) / NS_PER_S
        lost = any(abs(at_s - d.at / RATE) < 0.01 for d in drops)
        if at_s < 5.9 and not lost:
            assert abs(found_s(heard, at_s) - at_s) < 2e-6
            found += 1
    assert found > 8


def test_a_clock_that_wanders() -> None:
    straight = clock(50.0)
    bent = wandering(straight, np.random.default_rng(1), wander_ns=1_500_000, every_s=5.0)
    times = np.arange(77 - 9 * NS_PER_S, 77 + 29 * NS_PER_S, NS_PER_S // 10)
    off = bent.apply(times) - straight.apply(times)
    assert 1_000_000 < np.abs(off).max() <= 1_500_001
    assert bent.knots[0].tolist() == straight.knots[0].tolist()
    assert bent.knots[-1].tolist() == straight.knots[-1].tolist()
    sound = RoomSound(ROOM, [Source("s", fixed([1, 1, 1.5]), pings(*range(1, 9)))], START_NS)
    ears = fixed_ears([[-1.0, 0.0, 1.5]])
    heard = sound.at(ears).heard(bent, RATE, 77, 0, 9 * RATE)
    arrived = sound.at(ears).arrival_ns("s", START_NS + np.arange(1, 9) * NS_PER_S)[:, 0]
    for arrival_ns in arrived:
        at_s = (bent.inverse().apply(int(arrival_ns)) - 77) / NS_PER_S
        assert abs(found_s(heard, at_s) - at_s) < 2e-6


# --- in the files ----------------------------------------------------------------------------


def audible(microphones: int) -> tuple[RoomSound, Ears]:
    sources = [Source("s", fixed([1.0, 1.2, 1.4]), pings(*np.arange(0.5, 4.0, 0.5)))]
    offsets = MICROPHONES_M[:microphones] + np.array([-1.2, 0.3, 1.6])
    return RoomSound(ROOM, sources, START_NS), fixed_ears(offsets.tolist())


def expect_arrivals(sound: RoomSound, ears: Ears, clock: ClockMap, heard: Any, rate: float,
                    first_ns: int) -> None:  # fmt: skip
    emitted = START_NS + np.arange(1, 8) * (NS_PER_S // 2)
    arrivals = sound.at(ears).arrival_ns("s", emitted)
    for m in range(heard.shape[1]):
        for arrival_ns in arrivals[:, min(m, arrivals.shape[1] - 1)]:
            at_s = (clock.inverse().apply(int(arrival_ns)) - first_ns) / NS_PER_S
            assert abs(found_s(heard[:, m], at_s, rate) - at_s) < BAR_S


def test_in_the_file_of_the_glasses(tmp_path: Path) -> None:
    from projectaria_tools.core import data_provider

    from synorama.simulate.devices.aria import SMALL, write_glasses
    from synorama.simulate.devices.aria_streams import Glasses
    from synorama.simulate.sound.plain import Hearing, Sound

    sound, ears = audible(7)
    glasses = Glasses("helper", "1", clock(25.0), 77, 5.0, "client", "x", 0, 0,
                      Hearing(0.7, 0.0005), 3)  # fmt: skip
    path = tmp_path / "a.vrs"
    truth = write_glasses(path, glasses, cast(Sound, sound.at(ears)), SMALL)["mic"]
    provider = data_provider.create_vrs_data_provider(str(path))
    stream = provider.get_stream_id_from_label("mic")
    blocks = [provider.get_audio_data_by_index(stream, k) for k in
              range(provider.get_num_data(stream))]  # fmt: skip
    heard = np.concatenate([np.array(b[0].data).reshape(-1, 7) for b in blocks]) / 2**31
    rate = (truth.count - 1) / (truth.last_ns - truth.first_ns) * NS_PER_S
    expect_arrivals(sound, ears, glasses.clock, heard, rate, truth.first_ns)


@pytest.mark.parametrize("kind", ["gopro", "webcam"])
def test_in_the_file_of_a_camera(tmp_path: Path, kind: str) -> None:
    """After AAC and Opus, where the wave is no longer quite the same."""
    from synorama.capture import open_recording
    from synorama.media.audio import read_audio
    from synorama.records import AudioTrack
    from synorama.simulate.devices.gopro import GoPro, write_gopro
    from synorama.simulate.devices.webcam import Webcam, write_webcam
    from synorama.simulate.sound.plain import Hearing, Sound

    sound, ears = audible(1)
    hears, given = Hearing(0.7, 0.0005), cast(Sound, sound.at(ears))
    own = clock(-70.0, device_ns=0)
    if kind == "gopro":
        camera = GoPro("g", "1", own, 5.0, 1, 1, 160, 96, 0.0, 8, hears, 3)
        paths = list(write_gopro(tmp_path, camera, given)[0])
    else:
        paths = [tmp_path / "recording.webm"]
        write_webcam(paths[0], Webcam("w", own, 5.0, 160, 96, 8, hears, 3), given)
    recording = open_recording(paths[0])
    track = next(t for t in recording.tracks.values() if isinstance(t, AudioTrack))
    heard = read_audio(paths, track, 0, track.sample_count)
    expect_arrivals(sound, ears, own, heard, RATE, int(track.knots[0, 1]))
