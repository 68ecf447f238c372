"""What the table of clocks says, and what it must not."""

from __future__ import annotations

import pytest

from synorama.console import sync_rows
from synorama.records import RecordingClock, SyncResult
from synorama.timebase import NS_PER_S, ClockMap


def row(method: str, interval95_ms: float | None, seconds: int, rate_sigma_ppm: float) -> list[str]:
    clock = ClockMap.affine(
        "session", "camera", offset_ns=NS_PER_S, drift_ppm=-17.29,
        valid_ns=(0, seconds * NS_PER_S), rate_sigma_ppm=rate_sigma_ppm,
    )  # fmt: skip
    placed = RecordingClock("camera", (clock,), method, interval95_ms)
    (told,) = sync_rows(SyncResult("leader", {"camera": placed}), {"camera": 0})
    return told


@pytest.mark.parametrize(
    ("method", "interval95_ms", "seconds", "rate_sigma_ppm", "drift"),
    [
        ("sound", 24.0, 60, 0.1, "-"),  # 800 ppm at the ends: nothing is known
        ("sound", 24.0, 1800, 0.1, "-20"),  # 27 ppm
        ("sound", 0.4, 1800, 0.1, "-17.3"),  # 0.6 ppm, one digit as 0.6 s would have
        ("tic_sync", 0.98, 60, 0.5, "-17.3"),
        ("tic_sync", 0.98, 1800, 0.02, "-17.29"),
        ("manual", None, 60, 50.0, "-"),
    ],
)
def test_a_drift_has_no_more_digits_than_are_known(
    method: str, interval95_ms: float | None, seconds: int, rate_sigma_ppm: float, drift: str
) -> None:
    assert row(method, interval95_ms, seconds, rate_sigma_ppm)[2] == drift
