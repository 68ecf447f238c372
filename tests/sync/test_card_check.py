"""The card held against other clocks, without pictures: which is taken, and what is said."""

from __future__ import annotations

import numpy as np
import pytest

from synorama.records import FRAME_DTYPE, Recording, RecordingClock, VideoTrack
from synorama.sync.solve import _Session
from synorama.sync.visual import CardSeen
from synorama.timebase import ClockMap

S = 1_000_000_000
CARD_S = 50_000
OFFSET_MS = 4_000.0  # reference minus camera, by the card


def recording(name: str, **facts: str) -> Recording:
    times = np.arange(0, 600 * S, S, dtype=np.int64)
    track = VideoTrack(
        "video", "h264", 640, 480, times, np.zeros(len(times), FRAME_DTYPE), "container",
        stream_index=0,
    )  # fmt: skip
    return Recording(name, "webcam", (), {"video": track}, **facts)  # type: ignore[arg-type]


def seen(at_s: float, true_s: float) -> CardSeen:
    return CardSeen(3, round(at_s * 1e9), round((CARD_S + true_s) * 1e9), 3e6, 40)


def checked(method: str, off_ms: float, interval_ms: float, *, pieces: int = 1) -> _Session:
    """Return a session whose camera has a clock that is off the card's by this much."""
    reference, camera = recording("reference"), recording("camera")
    session = _Session(reference, {"reference": reference, "camera": camera}, {}, [])
    session.cards._seen = {
        "reference": (seen(10, 10), seen(590, 590)),
        "camera": (seen(6, 10), seen(586, 590)),
    }
    offset = round((OFFSET_MS + off_ms) * 1e6)
    maps = [
        ClockMap.affine(
            "session", "camera", offset_ns=offset,
            valid_ns=(k * 600 * S // pieces, (k + 1) * 600 * S // pieces - 1),
        )
        for k in range(pieces)
    ]  # fmt: skip
    session.clocks["camera"] = RecordingClock("camera", tuple(maps), method, interval_ms, 0.97)
    session._check_cards()
    return session


def test_the_card_is_taken_where_it_is_surer_than_sound() -> None:
    session = checked("sound", 9.0, 80.0)
    clock = session.clocks["camera"]
    assert clock.method == "card"
    assert "9 ms from its sound" in clock.basis
    assert clock.p_match == 0.97  # what is known of its belonging stays known
    got = int(clock.apply(np.array([300 * S], np.int64))[0])
    assert abs(got - 304 * S) <= (clock.interval95_ms or 0) * 1e6
    assert session.warnings == []


@pytest.mark.parametrize(
    ("method", "interval_ms", "pieces"),
    [("sound", 5.0, 1), ("sound", 80.0, 2), ("tic_sync", 1.0, 1)],
)
def test_a_surer_clock_one_that_leaps_and_hardware_stay(
    method: str, interval_ms: float, pieces: int
) -> None:
    session = checked(method, 2.0, interval_ms, pieces=pieces)
    assert session.clocks["camera"].method == method
    assert session.warnings == []


@pytest.mark.parametrize("method", ["sound", "tic_sync"])
def test_a_contradiction_is_told_and_moves_nothing(method: str) -> None:
    session = checked(method, 400.0, 24.0)
    assert session.clocks["camera"].method == method
    (warning,) = session.warnings
    assert "disagree by 400 ms" in warning
    assert "clap or a flash" in warning.replace("\n", " ")


def test_what_was_set_by_hand_is_not_judged() -> None:
    assert checked("manual", 400.0, 24.0).warnings == []
