"""Records: what they promise about times and bytes, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synorama.records import (
    FRAME_DTYPE,
    AudioTrack,
    PairEvidence,
    Recording,
    RecordingClock,
    VideoTrack,
)
from synorama.timebase import ClockMap


def video(times: list[int], name: str = "rgb") -> VideoTrack:
    index = np.zeros(len(times), FRAME_DTYPE)
    return VideoTrack(name, "mjpeg", 4, 4, np.array(times, np.int64), index, "packets")


def test_frames_are_in_display_order_and_read_only() -> None:
    track = video([1, 2, 2, 9])
    assert (track.count, track.first_ns, track.last_ns) == (4, 1, 9)
    with pytest.raises(ValueError, match="read-only"):
        track.times_ns[0] = 5
    with pytest.raises(ValueError, match="go back"):
        video([2, 1])
    assert video([]).first_ns is None


def test_a_recording_files_tracks_under_their_names() -> None:
    with pytest.raises(ValueError, match="filed under"):
        Recording("a", "aria", (), {"x": video([1])})
    with pytest.raises(ValueError, match="no track name"):
        Recording("a", "aria", (), {"x/y": video([1], "x/y")})
    recording = Recording("a", "aria", (), {"rgb": video([5, 7])})
    assert (recording.first_ns, recording.last_ns) == (5, 7)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 10**9)), min_size=1, max_size=8))
def test_sound_times_pass_through_their_knots(steps: list[tuple[int, int]]) -> None:
    knots = np.cumsum(np.array([(0, 10**15), *steps], np.int64), axis=0)
    track = AudioTrack("mic", "pcm", 48000.0, 1, int(knots[-1, 0]) + 1, knots, "packets")
    assert (track.sample_times_ns(knots[:, 0]) == knots[:, 1]).all()
    assert track.last_ns == knots[-1, 1]
    every = track.sample_times_ns(np.arange(track.sample_count))
    assert (np.diff(every) >= 0).all()


def test_sound_with_one_knot_runs_at_its_nominal_rate() -> None:
    track = AudioTrack("mic", "pcm", 16000.0, 1, 3, np.array([[0, 7]]), "packets")
    assert track.sample_times_ns(np.array([0, 1, 2])).tolist() == [7, 62507, 125007]


def test_a_clock_in_segments_carries_each_time_by_its_own() -> None:
    before = ClockMap.affine("s", "r", offset_ns=100, valid_ns=(0, 999))
    after = ClockMap.affine("s", "r", offset_ns=600, valid_ns=(1000, 2000))
    clock = RecordingClock("r", (before, after), "sound", 1.0)
    assert clock.apply(np.array([0, 999, 1000, 2000])).tolist() == [100, 1099, 1600, 2600]
    evidence = PairEvidence("s", "r", True, "", 9.0, 6.0, maps=(before, after))
    assert evidence.jumps == ((1000, 500),)
