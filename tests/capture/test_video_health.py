"""What the times of pictures tell: steady or not, dropped, missing, doubled."""

from __future__ import annotations

import numpy as np
import pytest

from synorama.capture.container.health import steady_rate_hz, video_problems

MS = 1_000_000


def codes(times_ms: np.ndarray) -> list[str]:
    return [p.code for p in video_problems((times_ms * MS).astype(np.int64), "video")]


@pytest.mark.parametrize("rate_hz", [24.0, 30000 / 1001, 60.0, 120.0])
def test_rate_in_spite_of_rounding(rate_hz: float) -> None:
    times_ms = np.rint(np.arange(2000) * 1000 / rate_hz)
    found = steady_rate_hz((times_ms * MS).astype(np.int64))
    assert found == pytest.approx(rate_hz, rel=1e-3)
    assert codes(times_ms) == []


def test_variable_rate_has_no_rate_and_no_gap() -> None:
    times_ms = np.cumsum(np.random.default_rng(0).uniform(5, 900, 300))
    assert steady_rate_hz((times_ms * MS).astype(np.int64)) is None
    assert codes(times_ms) == []


def test_long_silence_of_a_variable_rate_is_a_gap() -> None:
    steps = np.random.default_rng(0).uniform(5, 200, 300)
    steps[100] = 5000
    assert codes(np.cumsum(steps)) == ["gap"]


def test_dropped_frames_are_counted() -> None:
    times_ms = np.delete(np.arange(300) * 33.0, [50, 80, 81])
    (problem,) = video_problems((times_ms * MS).astype(np.int64), "video")
    assert problem.code == "dropped_frames"
    assert problem.text.startswith("3 frames were dropped in 2 places")


def test_gap_is_severe_from_a_second_on() -> None:
    times_ms = np.arange(300) * 40.0
    times_ms[100:] += 500
    (short,) = video_problems((times_ms * MS).astype(np.int64), "video")
    times_ms[100:] += 900
    (long,) = video_problems((times_ms * MS).astype(np.int64), "video")
    assert (short.code, short.severe, long.severe) == ("gap", False, True)
    assert "from 3.96 s on" in long.text


def test_doubled_times() -> None:
    assert codes(np.repeat(np.arange(100) * 40.0, 2)[:150])[0] == "non_monotonic"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_frames(n: int) -> None:
    assert codes(np.arange(n) * 40.0) == []
