"""Notes of another clock become a clock map that is right where it says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.records import (
    AudioTrack,
    Recording,
    SyncMode,
    SyncRole,
    TimeMapping,
    UtcEstimate,
)
from synorama.sync.hardware import HardwareClock, fit_mapping, hardware_clock, utc_clock

START = 7_385_795_505_395
OFFSET = 1_764_000_000_123_456_789


def truth(t: NDArray[np.int64], ppm: float) -> NDArray[np.int64]:
    away = t - START
    return np.asarray(t + OFFSET + np.rint(away * ppm * 1e-6).astype(np.int64))


def notes(
    seconds: float,
    ppm: float,
    *,
    jitter_ns: float = 200.0,
    settling_ns: float = 0.0,
    seed: int = 0,
    mode: SyncMode = "tic_sync",
) -> TimeMapping:
    rng = np.random.default_rng(seed)
    t = START + np.arange(int(seconds)) * 1_000_000_000
    away = (t - START) / 1e9
    error = settling_ns * np.exp(-away / 6) + rng.normal(0, jitter_ns, len(t))
    return TimeMapping(mode, np.column_stack([t, truth(t, ppm) + np.rint(error).astype(np.int64)]))


def fitted(mapping: TimeMapping) -> HardwareClock:
    clock = fit_mapping(mapping, "server", "client")
    assert clock is not None
    return clock


@settings(max_examples=40, deadline=None)
@given(
    st.floats(-200, 200),
    st.integers(90, 900),
    st.floats(100, 50_000),
    st.sampled_from([0.0, 9e5, -9e5, 5e6]),
    st.integers(0, 1000),
)
def test_start_is_reached_backwards(
    ppm: float, seconds: int, jitter_ns: float, settling_ns: float, seed: int
) -> None:
    """The settling start is not believed: the error there stays below 1 ms and inside sigma."""
    mapping = notes(seconds, ppm, jitter_ns=jitter_ns, settling_ns=settling_ns, seed=seed)
    (clock,) = fitted(mapping).maps
    t = START + np.linspace(-5, seconds + 30, 200).astype(np.int64) * 1_000_000_000
    errors = np.abs(clock.apply(t) - truth(t, ppm))
    assert errors.max() < 1_000_000
    assert (errors < 3 * clock.sigma_at(t)).all()
    inside = (t > START + 45_000_000_000) & (t < START + seconds * 1_000_000_000)
    assert errors[inside].max() < 500_000


def test_settled_notes_are_exact() -> None:
    (clock,) = fitted(notes(300, -11.2, settling_ns=9e5)).maps
    t = START + np.arange(0, 300) * 1_000_000_000
    assert np.abs(clock.apply(t) - truth(t, -11.2)).max() < 30_000
    assert clock.range_ns[0] > START
    assert clock.drift_ppm(int(t[150])) == pytest.approx(-11.2, abs=0.3)


def test_drift_that_bends() -> None:
    t = START + np.arange(1800) * 1_000_000_000
    away = (t - START) / 1e9
    bend = np.rint(1e9 * (20e-6 * away + 1e-3 * np.sin(np.pi * away / 1800))).astype(np.int64)
    (clock,) = fitted(TimeMapping("tic_sync", np.column_stack([t, t + OFFSET + bend]))).maps
    assert np.abs(clock.apply(t) - (t + OFFSET + bend)).max() < 20_000


def test_outliers_do_not_move_it() -> None:
    pairs = notes(300, 5.0).pairs.copy()
    pairs[[70, 120, 200], 1] += 40_000_000
    (clock,) = fitted(TimeMapping("tic_sync", pairs)).maps
    t = pairs[60:, 0]
    assert np.abs(clock.apply(t) - truth(t, 5.0)).max() < 20_000


def test_jump_makes_two_maps_and_a_warning() -> None:
    pairs = notes(300, 5.0).pairs.copy()
    pairs[150:, 1] += 80_000_000
    clock = fitted(TimeMapping("tic_sync", pairs))
    before, after = clock.maps
    assert before.range_ns[1] < after.range_ns[0] == pairs[150, 0]
    assert after.apply(int(pairs[200, 0])) - int(pairs[200, 1]) < 20_000
    assert any("leaps by 80" in w for w in clock.warnings)


def test_no_time_to_settle_is_said() -> None:
    clock = fitted(notes(25, 5.0, settling_ns=9e5))
    assert clock.maps[0].sigma_ns >= 1e6
    assert "settle" in clock.warnings[0]


@pytest.mark.parametrize("pairs", [np.zeros((0, 2)), [[1, -1], [2, -1]], [[5, 9], [5, 9]]])
def test_notes_that_say_nothing(pairs: Any) -> None:
    assert fit_mapping(TimeMapping("tic_sync", np.asarray(pairs, np.int64)), "a", "b") is None


# --- two recordings ----------------------------------------------------------------------------


def glasses(name: str, **facts: Any) -> Recording:
    return Recording(name, "aria", (), {}, **facts)


SERVER = glasses("server", sync_role="server", shared_session_id="s1")
CLIENT = glasses(
    "client", sync_role="client", shared_session_id="s1", time_mappings=(notes(200, 3.0),)
)


def test_client_on_the_servers_clock() -> None:
    clock = hardware_clock(SERVER, CLIENT)
    assert isinstance(clock, HardwareClock)
    assert clock.mode == "tic_sync"
    t = START + 100_000_000_000
    assert abs(clock.maps[0].apply(t) - int(truth(np.array([t]), 3.0)[0])) < 10_000


def test_receiver_on_the_broadcasters_clock() -> None:
    broadcaster = glasses("b", sync_role="broadcaster")
    receiver = glasses("r", sync_role="receiver", time_mappings=(notes(200, 3.0, mode="subghz"),))
    clock = hardware_clock(broadcaster, receiver)
    assert isinstance(clock, HardwareClock)
    assert clock.mode == "subghz"
    assert clock.maps[0].sigma_ns < 10_000


@pytest.mark.parametrize(
    ("reference", "other", "why"),
    [
        (SERVER, replace(CLIENT, shared_session_id="s2"), "session ids differ"),
        (SERVER, replace(CLIENT, time_mappings=()), "without time mapping"),
        (SERVER, replace(SERVER, id="server-2"), "no notes"),
        (SERVER, replace(CLIENT, time_mappings=(TimeMapping("tic_sync", np.array([[1, -1]])),)),
         "no usable note"),
        (replace(SERVER, sync_role=None), CLIENT, "not the server"),
    ],
)  # fmt: skip
def test_why_there_is_no_hardware_time(reference: Recording, other: Recording, why: str) -> None:
    found = hardware_clock(reference, other)
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize("mode", ["timecode", "tic_sync"])
def test_a_clock_that_both_noted(mode: SyncMode) -> None:
    """Two clients whose server is missing, or two glasses with one time code."""
    a = replace(CLIENT, id="a", time_mappings=(notes(200, 3.0, mode=mode, seed=1),))
    b = replace(CLIENT, id="b", time_mappings=(notes(200, -8.0, mode=mode, seed=2),))
    clock = hardware_clock(a, b)
    assert isinstance(clock, HardwareClock)
    t = START + 100_000_000_000
    there = clock.maps[0].apply(t)
    assert abs(int(truth(np.array([there]), 3.0)[0] - truth(np.array([t]), -8.0)[0])) < 20_000


def take(name: str, first_ns: int, seconds: float, role: SyncRole, **facts: Any) -> Recording:
    """Return a recording of the session that ran on its own clock from then on."""
    count = round(48_000 * seconds)
    knots = np.array([[0, first_ns], [count - 1, first_ns + round((count - 1) * 1e9 / 48_000)]])
    track = AudioTrack("audio", "pcm", 48_000.0, 1, count, knots, "container", stream_index=0)
    return Recording(
        name, "aria", (), {"audio": track}, sync_role=role, shared_session_id="s", **facts
    )


def utc(first_ns: int, seconds: float, sigma_s: float = 0.5) -> UtcEstimate:
    return UtcEstimate(first_ns, OFFSET + round(seconds * 1e9), sigma_s, "start_time")


def two_takes(**facts: Any) -> tuple[Recording, Recording, Recording]:
    """Return a server's two takes, whose clock began anew, and the client's second take.

    The second take's client noted the second take's clock, over the same numbers as the first.
    """
    first = take("first", START, 300, "server", **facts.get("first", {}))
    second = take("second", START + 40 * 10**9, 250, "server", **facts.get("second", {}))
    own = START - 10**12 + np.arange(240) * 10**9
    notes = np.column_stack([own, own - own[0] + START + 45 * 10**9])
    client = take(
        "client", int(own[0]), 239, "client",
        time_mappings=(TimeMapping("tic_sync", notes),), **facts.get("client", {}),
    )  # fmt: skip
    return first, second, client


def test_notes_that_may_be_of_either_start_are_worth_nothing() -> None:
    first, second, client = two_takes()
    assert isinstance(hardware_clock(first, client), HardwareClock)  # nobody knows of the other
    for reference, rival in ((first, second), (second, first)):
        found = hardware_clock(reference, client, [rival])
        assert isinstance(found, str)
        assert "restarted" in found
        assert "'first'" in found
        assert "'second'" in found


def test_wall_clocks_tell_of_which_start_notes_are() -> None:
    first, second, client = two_takes(
        first={"start_utc": utc(START, 0)},
        second={"start_utc": utc(START + 40 * 10**9, 900)},
        client={"start_utc": utc(START - 10**12, 905)},
    )
    assert isinstance(hardware_clock(second, client, [first]), HardwareClock)
    assert isinstance(hardware_clock(first, client, [second]), str)


@pytest.mark.parametrize("sigma_s", [60.0, 4000.0])
def test_wall_clocks_that_do_not_decide(sigma_s: float) -> None:
    """The starts lie 100 s apart, which such clocks do not tell."""
    first, second, client = two_takes(
        first={"start_utc": utc(START, 0, sigma_s)},
        second={"start_utc": utc(START + 40 * 10**9, 100, sigma_s)},
        client={"start_utc": utc(START - 10**12, 105, sigma_s)},
    )
    assert isinstance(hardware_clock(second, client, [first]), str)


def test_another_start_at_other_numbers_takes_nothing_away() -> None:
    first, _, client = two_takes()
    later = take("later", START + 10**13, 300, "server")
    assert isinstance(hardware_clock(first, client, [later]), HardwareClock)


def test_utc_is_a_last_resort() -> None:
    a = glasses("a", time_mappings=(notes(200, 3.0, mode="utc"),))
    b = glasses("b", time_mappings=(notes(200, 3.0, mode="utc"),))
    assert isinstance(hardware_clock(a, b), str)
    clock = utc_clock(a, b)
    assert clock is not None
    assert clock.maps[0].sigma_ns >= 5e7


# --- the stated sigma holds the error --------------------------------------------------------


def worst_in_sigmas(mapping: TimeMapping, lead_ns: NDArray[np.float64]) -> float:
    """Return the largest error over sigma at the notes, for a clock that truly leads by this."""
    clock = fitted(mapping)
    device = mapping.pairs[:, 0]
    true = device + OFFSET + np.rint(lead_ns).astype(np.int64)
    (the_map,) = clock.maps
    return float(np.max(np.abs(the_map.apply(device) - true) / the_map.sigma_at(device)))


@settings(max_examples=25, deadline=None)
@given(st.floats(1e4, 1e6), st.integers(60, 900), st.integers(0, 1000))
def test_wandering_clocks_are_not_surer_than_their_misfit(
    wander_ns: float, seconds: int, seed: int
) -> None:
    """Averaging many notes does not make a straight line true of a clock that bends."""
    device = START + np.arange(seconds * 2) * 500_000_000
    away = (device - START) / 1e9
    lead = wander_ns * np.sin(2 * np.pi * away / seconds) - 37e3 * away
    noise = np.random.default_rng(seed).normal(0, 2_000, len(device))
    other = device + OFFSET + np.rint(lead + noise).astype(np.int64)
    mapping = TimeMapping("subghz", np.column_stack([device, other]))
    assert worst_in_sigmas(mapping, lead) < 3.5


@pytest.mark.parametrize("seconds", [10, 20, 40, 54])
def test_clocks_that_had_no_time_to_settle_say_so(seconds: int) -> None:
    device = START + np.arange(seconds * 10) * 100_000_000
    away = (device - START) / 1e9
    other = device + OFFSET + np.rint(5e6 * np.exp(-away / 12)).astype(np.int64)
    mapping = TimeMapping("tic_sync", np.column_stack([device, other]))
    assert any("no time to settle" in w for w in fitted(mapping).warnings)
    assert worst_in_sigmas(mapping, np.zeros(len(device))) < 2


def test_two_notes_give_a_rate_as_well() -> None:
    device = np.array([START, START + 60_000_000_000])
    lead = np.array([0.0, 60e3 * 50])
    mapping = TimeMapping("subghz", np.column_stack([device, device + OFFSET + lead.astype(int)]))
    assert worst_in_sigmas(mapping, lead) < 0.01
    (the_map,) = fitted(mapping).maps
    assert the_map.drift_ppm(int(device.mean())) == pytest.approx(50, abs=0.01)
    assert the_map.rate_sigma_ppm < 1
