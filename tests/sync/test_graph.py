"""All pairs together: six devices whose clocks are known, wrong pairs, leaps, chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.records import PairEvidence
from synorama.sync import pieces
from synorama.sync.graph import Solution, solve
from synorama.sync.pieces import Pieces
from synorama.timebase import NS_PER_S, ClockMap

NAMES = ("leader", "b", "c", "d", "e", "f")
SPAN = (100 * NS_PER_S, 700 * NS_PER_S)


def true_clock(number: int) -> ClockMap:
    """Device to session: each its own offset, drift and epoch."""
    if number == 0:
        return ClockMap.affine("session", "leader", offset_ns=0)
    anchor = (number % 3) * 10**15
    return ClockMap.affine(
        "session",
        NAMES[number],
        offset_ns=number * 7_123_456_789 - anchor,
        drift_ppm=(-80.0, 35.0, 12.0, -5.0, 99.0)[number - 1],
        anchor_ns=anchor,
    )


def measured(a: int, b: int, rng: np.random.Generator | None = None) -> PairEvidence:
    """The pair as sound sees it: exact, or off by some 15 us in offset and along the way."""
    clock_b = true_clock(b).inverse()
    first, last = clock_b.apply(SPAN[0]), clock_b.apply(SPAN[1])
    at = np.array([first, last], np.int64)
    target = true_clock(a).inverse().apply(true_clock(b).apply(at))
    noise = np.zeros(2) if rng is None else rng.normal(0, 15e3, 2)
    return evidence(NAMES[a], NAMES[b], at, target + np.rint(noise).astype(np.int64))


def evidence(a: str, b: str, at: np.ndarray, target: np.ndarray) -> PairEvidence:
    clock = ClockMap(a, b, np.column_stack([at, target]), sigma_ns=15e3)
    rate = float(target[-1] - target[0]) / float(at[-1] - at[0])
    clock = replace(clock, rate_before=rate, rate_after=rate)
    return PairEvidence(a, b, True, "accepted", 50.0, 6.0, windows=99, maps=(clock,))


def spoiled(pair: PairEvidence, by_ns: int) -> PairEvidence:
    maps = tuple(replace(m, knots=m.knots + np.array([0, by_ns])) for m in pair.maps)
    return replace(pair, maps=maps)


def ring(rng: np.random.Generator | None) -> list[PairEvidence]:
    """Each against the reference, and neighbours against each other."""
    star = [measured(0, k, rng) for k in range(1, 6)]
    return star + [measured(k, k + 1, rng) for k in range(1, 5)] + [measured(1, 5, rng)]


KNOWN: dict[str, Pieces] = {"leader": (true_clock(0),)}


def error_ms(solution: Solution, number: int) -> float:
    name = NAMES[number]
    at = np.linspace(*SPAN, 13).astype(np.int64)
    own = true_clock(number).inverse().apply(at)
    return float(np.abs(pieces.apply(solution.clocks[name], own) - at).max() / 1e6)


def test_six_devices_close_their_loops() -> None:
    solution = solve(KNOWN, ring(np.random.default_rng(1)))
    assert set(solution.clocks) == set(NAMES)
    assert max(error_ms(solution, k) for k in range(6)) < 0.05
    assert len(solution.loops) == 5
    assert max(abs(loop.closure_ns) for loop in solution.loops) < 1e5
    assert not solution.contradictions


def test_more_pairs_make_better_clocks() -> None:
    star, together = [], []
    for seed in range(12):
        pairs = ring(np.random.default_rng(seed))
        star += [error_ms(solve(KNOWN, pairs[:5]), k) for k in range(1, 6)]
        together += [error_ms(solve(KNOWN, pairs), k) for k in range(1, 6)]
    assert np.mean(together) < 0.85 * np.mean(star)


@settings(max_examples=15, deadline=None)
@given(
    which=st.integers(0, 9),
    by_ms=st.sampled_from([-2000.0, -500.0, -60.0, 30.0, 500.0, 86_400_000.0]),
    seed=st.integers(0, 99),
)
def test_one_corrupted_pair_is_found_named_and_harmless(
    which: int, by_ms: float, seed: int
) -> None:
    pairs = ring(np.random.default_rng(seed))
    before = solve(KNOWN, pairs)
    pairs[which] = spoiled(pairs[which], round(by_ms * 1e6))
    after = solve(KNOWN, pairs)
    (found,) = after.contradictions
    assert found.pair is pairs[which]
    assert found.decided
    assert abs(found.off_ns) == pytest.approx(abs(by_ms) * 1e6, rel=2e-4, abs=2e5)
    for k in range(1, 6):
        assert error_ms(after, k) < 0.06
        assert abs(error_ms(after, k) - error_ms(before, k)) <= 0.05


@pytest.mark.parametrize("which", range(10))
@pytest.mark.parametrize("by_ms", [3.0, 12.0])
def test_smaller_faults_than_travel_times_are_named_and_harmless(which: int, by_ms: float) -> None:
    pairs = ring(np.random.default_rng(3))
    before = solve(KNOWN, pairs)
    pairs[which] = spoiled(pairs[which], round(by_ms * 1e6))
    after = solve(KNOWN, pairs)
    assert [c.pair for c in after.contradictions] == [pairs[which]]
    for k in range(1, 6):
        assert abs(error_ms(after, k) - error_ms(before, k)) <= 0.05


def test_a_wrong_rate_is_found_too() -> None:
    pairs = ring(np.random.default_rng(4))
    tilted = pairs[2].maps[0].knots.copy()
    tilted[1, 1] += 145_000_000
    pairs[2] = replace(pairs[2], maps=(replace(pairs[2].maps[0], knots=tilted),))
    solution = solve(KNOWN, pairs)
    assert [c.pair for c in solution.contradictions] == [pairs[2]]
    assert max(error_ms(solution, k) for k in range(6)) < 0.05


def test_three_recordings_cannot_tell_which_pair_is_wrong() -> None:
    pairs = [measured(0, 1), measured(0, 2), spoiled(measured(1, 2), 500_000_000)]
    pairs[2] = replace(pairs[2], score=20.0)
    solution = solve(KNOWN, pairs)
    (found,) = solution.contradictions
    assert not found.decided
    assert found.pair is pairs[2]  # of the least score
    assert min(solution.doubt_ns("b"), solution.doubt_ns("c")) > 4.9e8


def test_known_clocks_stay() -> None:
    known = {**KNOWN, "b": (replace(true_clock(1), sigma_ns=5e5),)}
    pairs = ring(np.random.default_rng(5))
    pairs[0] = spoiled(pairs[0], 800_000)
    solution = solve(known, pairs)
    assert solution.clocks["b"] is known["b"]
    assert max(error_ms(solution, k) for k in range(6)) < 0.05
    assert any(set(loop.recordings) == {"leader", "b"} for loop in solution.loops)


def test_reached_through_another() -> None:
    solution = solve(KNOWN, [measured(0, 1), measured(2, 1), measured(2, 3)])
    assert max(error_ms(solution, k) for k in range(4)) < 1e-4
    assert [len(solution.path[n]) for n in NAMES[:4]] == [0, 1, 2, 3]
    assert "e" not in solution.clocks


def test_leap_of_the_one_in_between_does_not_reach_the_other() -> None:
    """B lost 1.3 s: its clock leaps, and the pair B-C leaps back, seen half a second later."""
    s = NS_PER_S
    b = leaping(
        "leader", "b", [(0, 0), (100 * s, 100 * s)], [(100 * s, 101.3 * s), (200 * s, 201.3 * s)]
    )
    c = leaping(
        "b", "c", [(0, 0), (101.8 * s, 101.8 * s)], [(101.8 * s, 100.5 * s), (201 * s, 199.7 * s)]
    )
    solution = solve(KNOWN, [b, c])
    (clock,) = solution.clocks["c"]
    at = np.arange(0, 201, 10, dtype=np.int64) * s
    np.testing.assert_allclose(clock.apply(at), at, atol=5)
    assert len(solution.clocks["b"]) == 2


def leaping(
    a: str, b: str, first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]
) -> PairEvidence:
    maps = tuple(
        ClockMap(a, b, np.array(knots).astype(np.int64), sigma_ns=15e3) for knots in (first, second)
    )
    return PairEvidence(a, b, True, "accepted", 50.0, 6.0, windows=99, maps=maps)


def test_two_leaping_clocks_agree_around_a_loop() -> None:
    s = NS_PER_S
    leap = [(0, 0), (100 * s, 100 * s)], [(100 * s, 101.3 * s), (200 * s, 201.3 * s)]
    same = [(0, 0), (100 * s, 100 * s)], [(100 * s, 100 * s + 1), (200 * s, 200 * s)]
    pairs = [leaping("leader", "b", *leap), leaping("leader", "c", *leap), leaping("b", "c", *same)]
    solution = solve(KNOWN, pairs)
    assert abs(solution.loops[0].closure_ns) < 10
    assert [len(solution.clocks[n]) for n in "bc"] == [2, 2]


def test_the_rate_of_a_piece_of_seconds_is_not_made_up() -> None:
    """Two pairs tell of B's first seconds at nearly one moment, and contradict each other."""
    s = NS_PER_S
    parts = [(0, 0), (5.6 * s, 5.6 * s)], [(5.6 * s, 5.603 * s), (60 * s, 60.003 * s)]
    at = np.array([0.05 * s, 60 * s]).astype(np.int64)
    pairs = [
        leaping("leader", "b", *parts),
        evidence("c", "b", at, at + 6_000_000),
        evidence("leader", "c", np.array([0, 60 * s]), np.array([0, 60 * s])),
    ]
    clock = solve(KNOWN, pairs).clocks["b"]
    rates = np.array([r for m in clock for r in (m.rate_before, m.rate_after)])
    assert np.abs(rates - 1).max() < 100e-6


def test_all_pairs_give_the_same_as_exact_ones() -> None:
    solution = solve(KNOWN, [measured(a, b) for a, b in combinations(range(6), 2)])
    assert len(solution.loops) == 10
    assert max(abs(loop.closure_ns) for loop in solution.loops) < 20
    assert max(error_ms(solution, k) for k in range(6)) < 1e-4
