"""Clock maps: exact at the epoch, over a day, at +-200 ppm."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from synorama.errors import ClockMismatchError, ClockRangeError
from synorama.timebase import NS_PER_S, ClockMap, format_seconds

DAY_NS = 86_400 * NS_PER_S
EPOCH_NS = 1_796_000_000 * NS_PER_S

ppm = st.floats(-200, 200)
epochs = st.integers(0, 2 * EPOCH_NS)


@st.composite
def maps(draw: st.DrawFn, target: str = "a", source: str = "b") -> ClockMap:
    """A map of one to six knots over up to a day, every piece within 200 ppm of rate one."""
    steps = draw(st.lists(st.integers(10**6, DAY_NS // 5), min_size=0, max_size=5))
    drifts = [draw(ppm) for _ in steps]
    knots = [(draw(epochs), draw(epochs))]
    for step, drift in zip(steps, drifts, strict=True):
        x, y = knots[-1]
        knots.append((x + step, y + step + round(step * drift * 1e-6)))
    before, after = (1 + draw(ppm) * 1e-6 for _ in range(2))
    return ClockMap(target, source, np.array(knots, np.int64), before, after)


def exact(clock: ClockMap, t: int) -> Fraction:
    """The map in exact rational arithmetic, with the stored end rates."""
    knots = [(int(x), int(y)) for x, y in clock.knots]
    if t < knots[0][0]:
        return knots[0][1] + (t - knots[0][0]) * Fraction(clock.rate_before)
    for (x0, y0), (x1, y1) in pairwise(knots):
        if x0 <= t < x1:
            return y0 + Fraction((t - x0) * (y1 - y0), x1 - x0)
    return knots[-1][1] + (t - knots[-1][0]) * Fraction(clock.rate_after)


@given(maps(), st.integers(-DAY_NS, DAY_NS))
def test_apply_is_the_exact_line_rounded(clock: ClockMap, away: int) -> None:
    t = int(clock.knots[0, 0]) + away
    assert abs(clock.apply(t) - exact(clock, t)) <= Fraction(52, 100)


@given(maps(), st.lists(st.integers(-DAY_NS, DAY_NS), min_size=1, max_size=20))
def test_inverse_comes_back_within_one_ns(clock: ClockMap, away: list[int]) -> None:
    t = int(clock.knots[0, 0]) + np.array(away, np.int64)
    assert np.abs(clock.inverse().apply(clock.apply(t)) - t).max() <= 1


@given(maps("a", "b"), maps("b", "c"), st.integers(-DAY_NS, DAY_NS), st.data())
def test_composition_is_one_after_the_other_within_two_ns(
    outer: ClockMap, inner: ClockMap, away: int, data: st.DataObject
) -> None:
    # Bring the two clocks together, as they are in a session: within a day.
    shift = int(inner.knots[0, 1] - outer.knots[0, 0]) + data.draw(st.integers(-DAY_NS, DAY_NS))
    outer = ClockMap(
        "a", "b", outer.knots + np.array([shift, 0]), outer.rate_before, outer.rate_after
    )
    t = int(inner.knots[0, 0]) + away
    assert abs((outer @ inner).apply(t) - outer.apply(inner.apply(t))) <= 2


@given(maps(), st.integers(-DAY_NS, DAY_NS), st.integers(1, DAY_NS))
def test_later_stays_later(clock: ClockMap, away: int, step: int) -> None:
    t = int(clock.knots[0, 0]) + away
    assert clock.apply(t + step) >= clock.apply(t)
    assume(step > 1)
    assert clock.apply(t + step) > clock.apply(t)


@given(epochs, st.integers(-DAY_NS, DAY_NS), ppm, st.integers(0, DAY_NS))
def test_affine_means_what_it_says(anchor: int, offset: int, drift: float, away: int) -> None:
    clock = ClockMap.affine("a", "b", offset_ns=offset, drift_ppm=drift, anchor_ns=anchor)
    assert clock.apply(anchor) == anchor + offset
    expected = anchor + away + offset + Fraction(drift) * away / 1_000_000
    assert abs(clock.apply(anchor + away) - expected) <= 1
    assert clock.drift_ppm(anchor + away) == pytest.approx(drift, abs=1e-6)


def test_scalars_stay_python_ints_and_arrays_stay_int64() -> None:
    clock = ClockMap.affine("a", "b", offset_ns=3)
    assert clock.apply(EPOCH_NS) == EPOCH_NS + 3
    assert type(clock.apply(EPOCH_NS)) is int
    assert clock.apply(np.array([1, 2])).dtype == np.int64
    assert clock.apply(np.zeros(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("times", [1.5, np.array([1.0]), True and np.array(["1"])])
def test_float_times_are_refused(times: object) -> None:
    with pytest.raises(TypeError, match="integer"):
        ClockMap.identity("a").apply(times)  # type: ignore[call-overload]


def test_a_clock_that_stands_still_is_refused() -> None:
    with pytest.raises(ValueError, match="increase"):
        ClockMap("a", "b", np.array([[0, 0], [10, 0]]))
    with pytest.raises(ValueError, match="increase"):
        ClockMap("a", "b", np.array([[10, 0], [0, 5]]))
    with pytest.raises(ValueError, match="rates"):
        ClockMap("a", "b", np.array([[0, 0]]), rate_after=0.0)


def test_outside_its_range_a_clock_grows_unsure_and_then_refuses() -> None:
    clock = ClockMap.affine(
        "session",
        "helper",
        offset_ns=0,
        sigma_ns=300.0,
        valid_ns=(0, NS_PER_S),
        rate_sigma_ppm=10.0,
        limit_ns=60 * NS_PER_S,
    )
    assert clock.sigma_at(NS_PER_S // 2) == 300.0
    assert clock.sigma_at(11 * NS_PER_S) == pytest.approx(np.hypot(300, 100_000))
    assert clock.sigma_at(-10 * NS_PER_S) == pytest.approx(np.hypot(300, 100_000))
    assert clock.apply(61 * NS_PER_S) == 61 * NS_PER_S
    with pytest.raises(ClockRangeError, match=r"helper.*0 to 1 s.*at most 60 s"):
        clock.apply(61 * NS_PER_S + 1)
    with pytest.raises(ClockRangeError):
        clock.inverse().apply(-60 * NS_PER_S - 1)


def test_composition_carries_uncertainty_and_range() -> None:
    first = ClockMap.affine("b", "c", offset_ns=100, sigma_ns=3.0, valid_ns=(0, 1000))
    second = ClockMap.affine("a", "b", offset_ns=0, sigma_ns=4.0, valid_ns=(600, 5000), limit_ns=7)
    both = second @ first
    assert (both.target, both.source) == ("a", "c")
    assert both.sigma_ns == 5.0
    assert both.range_ns == (500, 1000)
    assert both.limit_ns == 7


def test_clocks_that_do_not_meet_are_refused() -> None:
    with pytest.raises(ClockMismatchError, match="'b' is not 'x'"):
        ClockMap.affine("a", "b", offset_ns=0) @ ClockMap.affine("x", "y", offset_ns=0)


@given(st.integers(-(10**19), 10**19))
def test_seconds_are_written_exactly(t_ns: int) -> None:
    assert Fraction(format_seconds(t_ns)) == Fraction(t_ns, NS_PER_S)


@given(maps("b", "c"))
def test_composing_with_an_identity_changes_nothing(clock: ClockMap) -> None:
    assume(len(clock.knots) > 1)
    for both in (clock @ ClockMap.identity("c"), ClockMap.identity("b") @ clock):
        assert np.abs(np.subtract(both.range_ns, clock.range_ns)).max() <= 1
        first, last = (int(t) for t in clock.knots[[0, -1], 0])
        t = np.linspace(first - 1000, last + 1000, 50).astype(np.int64)
        assert np.abs(both.apply(t) - clock.apply(t)).max() <= 2
