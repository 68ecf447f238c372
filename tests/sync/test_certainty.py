"""How sure a match is, on evidence and on sounds of which the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.media.audio import MonoSound
from synorama.sync import align
from synorama.sync.certainty import Evidence, likeness, p_match, p_match_of_seconds
from tests.sync.sounds import RATE, affine, heard, room, speech

finite = st.floats(0, 200)


@given(score=finite, like=finite, runner=st.floats(0, 2))
def test_never_certain(score: float, like: float, runner: float) -> None:
    """It is a probability, and some hundreds of pairs cannot tell 1 or 0."""
    for p in (p_match(Evidence(score, like, runner)), p_match_of_seconds(score, runner)):
        assert 0 < p < 1


@given(score=finite, more=finite, like=finite, runner=st.floats(0, 1))
def test_more_evidence_is_never_less_sure(
    score: float, more: float, like: float, runner: float
) -> None:
    least = p_match(Evidence(score, like, runner))
    assert p_match(Evidence(score, like + more, runner)) >= least
    assert p_match(Evidence(score, like, runner + more)) <= least


@given(score=finite, more=finite, like=finite)
def test_windows_that_agree_speak_for_a_place_and_against_two(
    score: float, more: float, like: float
) -> None:
    alone, rivalled = (p_match(Evidence(score, like, runner)) for runner in (0.3, 0.9))
    assert p_match(Evidence(score + more, like, 0.3)) >= alone
    assert p_match(Evidence(score + more, like, 0.9)) <= rivalled


def test_likeness_does_not_grow_with_length() -> None:
    """A robust z grows with the root of what is shared."""
    assert likeness(10, 25) == pytest.approx(likeness(20, 100))


def song(seconds: float, seed: int) -> NDArray[np.float64]:
    """Return notes that nobody plays twice, wide enough in frequency to be placed."""
    rng = np.random.default_rng(seed)
    out = np.zeros(int(seconds * RATE))
    t = np.arange(RATE // 2) / RATE
    for k in range(0, len(out) - len(t), RATE // 8):
        hz = 220 * 2 ** (rng.integers(0, 24) / 12)
        tone = sum(np.sin(2 * np.pi * n * hz * t) / n for n in range(1, 12) if n * hz < 7000)
        out[k : k + len(t)] += rng.uniform(0.3, 1) * tone * np.exp(-6 * t)
    return np.asarray(out / np.sqrt(np.mean(out**2)))


def two_sessions(share: float) -> tuple[MonoSound, MonoSound]:
    """Return one song that plays in two rooms, beside different talk."""
    played = song(60, 3)
    return (
        heard(room(speech(60, 1) + share * played, 2), affine(0), 55, name="a", seed=1),
        heard(room(speech(60, 5) + share * played, 3), affine(4.5, 0), 50, name="b", seed=2),
    )


@pytest.mark.parametrize("share", [1.0, 2.0])
def test_a_song_replayed_is_flagged(share: float) -> None:
    """Its fine structure is the same; whether it is one room, only the rest can tell."""
    evidence = align(*two_sessions(share))
    assert not evidence.accepted or evidence.ambiguous
    if evidence.accepted:
        assert "played in both" in evidence.reason


@pytest.mark.parametrize("snr_db", [20.0, 0.0])
def test_one_room_is_not(snr_db: float) -> None:
    talk = speech(65, 7)
    evidence = align(
        heard(room(talk, 2), affine(0), 60, name="a", seed=1),
        heard(room(talk, 3), affine(2.0, 40), 55, name="b", seed=2, snr_db=snr_db),
    )
    assert evidence.accepted
    assert not evidence.ambiguous
    assert evidence.p_match is not None
    assert evidence.p_match > 0.95


def test_a_stranger_does_not_belong() -> None:
    """Also what was refused says how likely it is, and what speaks for it."""
    evidence = align(
        heard(room(speech(60, 7), 2), affine(0), 60, name="a", seed=1),
        heard(room(speech(60, 8), 3), affine(0), 55, name="b", seed=2),
    )
    assert not evidence.accepted
    assert evidence.p_match is not None
    assert evidence.p_match < 0.1
    assert evidence.coarse_z is not None


@pytest.mark.parametrize("stay_s", [4, 15])
def test_a_walk_is_no_clock(stay_s: float) -> None:
    """Lags that run by 350 ppm in steps are of somebody who walks: no device is so far off."""
    talk = speech(70, 9)

    def walked(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(3.0 + t + 350e-6 * np.round(t / stay_s) * stay_s)

    evidence = align(
        heard(room(talk, 2), affine(0), 65, name="a", seed=1),
        heard(room(talk, 3), walked, 60, name="b", seed=2),
    )
    assert not evidence.accepted or abs(evidence.drift_ppm or 0.0) < 100.1
