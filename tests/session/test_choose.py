"""Choosing frames and samples on clocks that jump, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.records import AudioTrack, RecordingClock
from synorama.session.choose import Timeline, sample_spans
from synorama.timebase import ClockMap
from tests.session.factory import SECOND

RATE = 1000.0
COUNT = 4000


def jumping(leap_ns: int, drift_ppm: float) -> RecordingClock:
    """Return a clock whose recording lost, or repeated, something after two seconds."""
    first = ClockMap.affine(
        "s", "d", offset_ns=500, drift_ppm=drift_ppm, valid_ns=(0, 2 * SECOND - 1), limit_ns=0
    )
    second = ClockMap.affine(
        "s", "d", offset_ns=500 + leap_ns, drift_ppm=drift_ppm,
        valid_ns=(2 * SECOND, 4 * SECOND), limit_ns=0,
    )  # fmt: skip
    return RecordingClock("d", (first, second), "sound", 1.0)


def sound() -> AudioTrack:
    knots = np.array([[0, 0], [COUNT - 1, (COUNT - 1) * 1_000_000]])
    return AudioTrack("mic", "aac", RATE, 1, COUNT, knots, "container", stream_index=0)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(-SECOND, SECOND),
    st.floats(-200, 200),
    st.integers(-SECOND, 6 * SECOND),
    st.integers(0, 3 * SECOND),
)
def test_samples_on_a_clock_that_jumps(leap: int, drift: float, t0: int, length: int) -> None:
    clock, track = jumping(leap, drift), sound()
    times = clock.apply(track.sample_times_ns(np.arange(COUNT)))
    expected = np.flatnonzero((times >= t0) & (times < t0 + length))
    spans = sample_spans(clock, track, t0, t0 + length)
    found = [np.arange(first, first + count) for first, count in spans]
    assert len(spans) <= 2
    np.testing.assert_array_equal(np.concatenate([*found, np.zeros(0, int)]), expected)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 100), max_size=12),
    st.integers(-20, 120),
    st.sampled_from(["previous", "nearest"]),
    st.integers(0, 30),
)
def test_frames_in_any_order_of_time(times: list[int], t: int, select: str, tolerance: int) -> None:
    line = Timeline.of(np.array(times, np.int64), 30.0)
    found = line.pick(t, select, tolerance)  # type: ignore[arg-type]
    allowed = [x for x in times if abs(x - t) <= tolerance and (select == "nearest" or x <= t)]
    if not allowed:
        assert found is None
    else:
        assert found is not None
        assert abs(times[found] - t) == min(abs(x - t) for x in allowed)
        assert times[found] <= t or select == "nearest"


def test_a_single_frame_takes_its_tolerance_from_the_nominal_rate() -> None:
    one = np.array([5], np.int64)
    assert Timeline.of(one, 30.0).tolerance_ns == pytest.approx(50_000_000)
    assert Timeline.of(one, None).tolerance_ns == 0
