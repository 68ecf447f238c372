"""Which pairs are measured, and what comes of wrong ones, on sounds with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.errors import NoSoundError
from synorama.media.audio import MonoSound
from synorama.records import PairEvidence
from synorama.sync import network, pieces
from synorama.sync.correlate import align
from synorama.sync.network import Hearing, Placement, place
from synorama.timebase import ClockMap
from tests.sync.sounds import affine, heard, room, speech

CLOCKS = {
    "leader": (0.0, 0.0),
    "b": (3.25, -80.0),
    "c": (1.5, 35.0),
    "d": (7.125, 60.0),
    "e": (0.25, -15.0),
    "f": (5.0, 99.0),
}
KNOWN = {"leader": (ClockMap.identity("leader"),)}
SECONDS = 60.0


@pytest.fixture(scope="module")
def sounds() -> dict[str, MonoSound]:
    """Six devices in one room, each with its own noise, reverberation, offset and drift."""
    talk = speech(SECONDS + 10, 41)
    return {
        name: heard(room(talk, k), affine(*clock), SECONDS, snr_db=12, seed=k, name=name)
        for k, (name, clock) in enumerate(CLOCKS.items())
    }


@pytest.fixture(scope="module")
def placed(sounds: dict[str, MonoSound]) -> Placement:
    return place(KNOWN, list(CLOCKS)[1:], Hearing(sounds.__getitem__))


def errors_ms(placed: Placement, name: str) -> NDArray[np.float64]:
    at = np.linspace(5, SECONDS - 5, 7)
    got = pieces.apply(placed.solution.clocks[name], np.rint(at * 1e9).astype(np.int64)) / 1e6
    return np.asarray(got - affine(*CLOCKS[name])(at) * 1e3)


def test_six_devices(placed: Placement) -> None:
    """Loop closure at most 0.1 ms, clocks at most 0.05 ms; far fewer than all 15 pairs."""
    assert max(np.abs(errors_ms(placed, n)).max() for n in CLOCKS) < 0.05
    assert placed.solution.loops
    assert max(abs(loop.closure_ns) for loop in placed.solution.loops) < 1e5
    assert len(placed.pairs) == 10
    assert not placed.solution.contradictions


@pytest.mark.parametrize("wrong", [("leader", "d"), ("d", "f")])
@pytest.mark.parametrize("by_ns", [500_000_000, -40_000_000])
def test_one_corrupted_pair(
    sounds: dict[str, MonoSound],
    placed: Placement,
    wrong: tuple[str, str],
    by_ns: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is found and named; no clock moves by more than 0.05 ms."""
    before = {frozenset((p.reference, p.other)): p for p in placed.pairs}

    def lying(reference: MonoSound, other: MonoSound) -> PairEvidence:
        from dataclasses import replace

        pair = before.get(frozenset((reference.name, other.name))) or align(reference, other)
        if set(wrong) == {pair.reference, pair.other}:
            moved = (replace(m, knots=m.knots + np.array([0, by_ns])) for m in pair.maps)
            return replace(pair, maps=tuple(moved))
        return pair

    monkeypatch.setattr(network, "align", lying)
    after = place(KNOWN, list(CLOCKS)[1:], Hearing(sounds.__getitem__))
    (found,) = after.solution.contradictions
    assert {found.pair.reference, found.pair.other} == set(wrong)
    assert found.decided
    words = network.contradiction_words(found)
    assert all(f"'{name}'" in words for name in wrong)
    for name in CLOCKS:
        assert np.abs(errors_ms(after, name) - errors_ms(placed, name)).max() <= 0.05


def test_undecided_after_all_pairs_is_told(
    sounds: dict[str, MonoSound], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three recordings, one wrong pair: the interval grows, and the operator hears of it."""

    def lying(reference: MonoSound, other: MonoSound) -> PairEvidence:
        from dataclasses import replace

        pair = align(reference, other)
        if {pair.reference, pair.other} == {"b", "c"}:
            moved = (replace(m, knots=m.knots + np.array([0, 300_000_000])) for m in pair.maps)
            return replace(pair, maps=tuple(moved))
        return pair

    monkeypatch.setattr(network, "align", lying)
    after = place(KNOWN, ["b", "c"], Hearing(sounds.__getitem__))
    (found,) = after.solution.contradictions
    assert not found.decided
    assert "nothing decides" in network.contradiction_words(found)
    assert min(after.solution.doubt_ns(n) for n in "bc") > 2.9e8


def test_reached_through_another_camera() -> None:
    """Leader and d never hear the same; b overlaps both."""
    talk = speech(130, 42)
    sounds = {
        "leader": heard(room(talk, 1), affine(0), 60, name="leader", seed=1),
        "d": heard(room(talk, 2), affine(80, 20), 45, name="d", seed=2),
        "b": heard(room(talk, 3), affine(20, -40), 100, name="b", seed=3),
    }
    after = place(KNOWN, ["d", "b"], Hearing(sounds.__getitem__))
    got = pieces.apply(after.solution.clocks["d"], np.array([20 * 10**9], np.int64))[0]
    assert abs(got / 1e6 - affine(80, 20)(np.array([20.0]))[0] * 1e3) < 0.05
    assert [(p.reference, p.other) for p in after.solution.path["d"]] == [
        ("b", "d"),
        ("leader", "b"),
    ]


def test_what_cannot_be_heard_is_tried_once(sounds: dict[str, MonoSound]) -> None:
    asked = []

    def read(name: str) -> MonoSound:
        asked.append(name)
        if name == "mute":
            raise NoSoundError("the recording has no sound")
        return sounds[name]

    hear = Hearing(read)
    after = place(KNOWN, ["mute", "b"], hear)
    assert asked.count("mute") == 1
    assert "mute" in hear.errors
    assert "b" in after.solution.clocks


def test_sounds_make_room(sounds: dict[str, MonoSound], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "KEPT_BYTES", 3 * sounds["b"].samples.nbytes)
    asked: list[str] = []

    def read(name: str) -> MonoSound:
        asked.append(name)
        return sounds[name]

    hear = Hearing(read)
    for name in ("leader", "b", "leader", "c", "d", "leader", "b"):
        hear(name)
    assert asked == ["leader", "b", "c", "d", "b"]
