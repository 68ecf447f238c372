"""From frame times to knots: rounding is smoothed, gaps are kept, time never goes back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.capture.container.knots import Placed, place_frames
from synorama.records import AudioTrack

MS = 1_000_000


def placed(times_ns: np.ndarray, count: int = 960, tick_ns: int = MS) -> Placed:
    counts = np.full(len(times_ns), count, np.int64)
    return place_frames(counts, times_ns.astype(np.int64), 48000.0, tick_ns)


def at(knots: np.ndarray, samples: np.ndarray) -> np.ndarray:
    total = int(max(samples.max() + 1, knots[-1, 0] + 1))
    track = AudioTrack("audio", "opus", 48000.0, 1, total, knots, "container", stream_index=0)
    return track.sample_times_ns(samples)


def rounded(times_ns: np.ndarray, tick_ns: int = MS) -> np.ndarray:
    return (np.rint(times_ns / tick_ns) * tick_ns).astype(np.int64)


@settings(max_examples=60, deadline=None)
@given(
    frames=st.integers(2, 4000),
    count=st.sampled_from([960, 1024, 1152, 441]),
    drift_ppm=st.floats(-200, 200),
    start_ns=st.integers(0, 10**10),
)
def test_rounding_is_smoothed(frames: int, count: int, drift_ppm: float, start_ns: int) -> None:
    samples = np.arange(frames, dtype=np.int64) * count
    truth = start_ns + samples / 48000 * 1e9 * (1 + drift_ppm * 1e-6)
    found = placed(rounded(truth), count)
    error = at(found.knots, samples) - truth
    # Half a tick nobody can know where steps are whole ticks; the rest is the rate of short sound.
    assert np.abs(error).max() <= 0.75 * MS
    assert len(found.knots) <= 4
    assert not found.gaps


def test_long_rounded_sound_keeps_its_drift() -> None:
    samples = np.arange(90_000, dtype=np.int64) * 960
    truth = samples / 48000 * 1e9 * (1 + 80e-6)
    error = at(placed(rounded(truth)).knots, samples) - truth
    assert np.abs(error).max() < 0.05 * MS


def test_exact_times_need_two_knots() -> None:
    found = placed(np.arange(500) * 20 * MS, tick_ns=20_833)
    assert found.knots.tolist() == [[0, 0], [479_999, 9_999_979_167]]


def test_gap_is_two_knots_a_sample_apart() -> None:
    times = np.arange(100) * 20 * MS
    times[40:] += 45 * MS
    found = placed(times)
    assert found.knots[1:3].tolist() == [[38_399, 799_979_167], [38_400, 845 * MS]]
    assert found.gaps == ((800 * MS, 45 * MS),)


def test_leap_below_a_gap_is_kept_too() -> None:
    times = np.arange(100) * 20 * MS
    times[40:] += 12 * MS
    found = placed(times)
    np.testing.assert_allclose(at(found.knots, np.arange(100) * 960), times, atol=MS)
    assert not found.gaps


def test_a_single_frame_with_an_odd_time_moves_no_other() -> None:
    """FFmpeg gives one in Ogg Vorbis where the length of the frames changes."""
    for off in (10, -10, 17):
        times = np.arange(400) * 20 * MS
        times[100] += off * MS
        error = at(placed(times, tick_ns=20_833).knots, np.arange(400) * 960) - np.arange(400) * (
            20 * MS
        )
        others = np.delete(error, [98, 99, 100, 101])
        assert np.abs(others).max() < 0.1 * MS, off


def test_a_step_back_stays_where_it_is() -> None:
    times = np.arange(400) * 20 * MS
    times[200:] -= 9 * MS
    error = at(placed(times).knots, np.arange(400) * 960) - times
    assert np.abs(np.delete(error, [199, 200])).max() < 0.1 * MS


def test_times_that_go_back_are_moved_and_said() -> None:
    times = np.arange(100) * 20 * MS
    times[50:] -= 200 * MS
    found = placed(times)
    assert found.overlaps == ((800 * MS, 200 * MS),)
    assert at(found.knots, np.array([48_000]))[0] == 1000 * MS


def test_jitter_is_not_followed_frame_by_frame() -> None:
    rng = np.random.default_rng(3)
    truth = np.arange(5000) * 20 * MS
    found = placed(rounded(truth + rng.normal(0, 2 * MS, 5000)))
    assert len(found.knots) <= 2 * (8 + 100)
    error = at(found.knots, np.arange(5000) * 960) - truth
    assert np.sqrt(np.mean(error**2.0)) < 2 * MS


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.integers(1, 3000), min_size=1, max_size=60),
    steps_ms=st.lists(st.integers(-300, 300), min_size=60, max_size=60),
    tick_ns=st.sampled_from([MS, 20_833, 11_111]),
)
def test_any_times_make_increasing_knots(
    counts: list[int], steps_ms: list[int], tick_ns: int
) -> None:
    times = np.cumsum(np.array(steps_ms[: len(counts)], np.int64) * MS)
    found = place_frames(np.array(counts, np.int64), times, 48000.0, tick_ns)
    AudioTrack("a", "x", 48000.0, 1, sum(counts), found.knots, "container", stream_index=0)


def test_no_frames() -> None:
    assert placed(np.zeros(0, np.int64)).knots.shape == (0, 2)
