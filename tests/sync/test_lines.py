"""Bends of a clock: followed where they are real, as stiff as what was measured wants them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.simulate.clocks import randomness, steady_clock
from synorama.simulate.sound.faults import wandering
from synorama.sync.lines import Spline, smooth
from synorama.timebase import NS_PER_S

Float64 = NDArray[np.float64]

SECONDS, WINDOWS = 1800.0, 420
TIMES = np.linspace(5.0, SECONDS - 5.0, WINDOWS)
KNOTS = np.linspace(0.0, SECONDS, 141)


def _smoothed(residual_s: Float64, max_bend: float = 60e-6) -> Spline:
    return smooth(TIMES, residual_s, np.full(WINDOWS, 5.0), KNOTS, max_bend=max_bend)


def _noise(seed: int, sigma_s: float) -> Float64:
    """Return what windows scatter by; one in ten is off by an echo."""
    rng = np.random.default_rng(seed)
    noise = sigma_s * rng.standard_normal(WINDOWS)
    noise[rng.random(WINDOWS) < 0.1] += rng.uniform(0, 6e-4)
    return np.asarray(noise)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), sigma_us=st.sampled_from([5, 20, 40]))
def test_a_crystal_that_wanders_is_followed(seed: int, sigma_us: int) -> None:
    straight = steady_clock(
        "other", device_ns=0, session_ns=0, length_ns=round(SECONDS * NS_PER_S), drift_ppm=0.0
    )
    clock = wandering(straight, randomness(seed, "wander"), wander_ns=1.5e6)
    ns = np.rint(TIMES * NS_PER_S).astype(np.int64)
    truth_s = (clock.apply(ns) - ns) / NS_PER_S
    off_s = _smoothed(truth_s + _noise(seed, 1e-6 * sigma_us))(TIMES) - truth_s
    # At random walks of the rate a knot of 13 s tells no more than some windows do.
    assert np.abs(off_s).max() < 2.5e-5 + 3e-6 * sigma_us
    assert np.sqrt(np.mean(off_s**2)) < 8e-6 + 0.8e-6 * sigma_us


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), sigma_us=st.sampled_from([5, 40, 100]))
def test_noise_makes_no_bends(seed: int, sigma_us: int) -> None:
    spline = _smoothed(_noise(seed, 1e-6 * sigma_us))
    assert np.abs(spline.lag_s).max() < 0.9e-6 * sigma_us + 5e-6
    assert spline.freedom < 10


def test_what_no_crystal_does_is_not_followed() -> None:
    # Someone walks to and fro: 5 ms within half a minute is no clock's.
    walk_s = 2.5e-3 * np.sin(2 * np.pi * TIMES / 60)
    spline = _smoothed(walk_s)
    assert spline.bend <= 60e-6
    assert np.abs(spline(TIMES)).max() < 1e-3
    # It could be: straight lines between knots miss the tops by 0.6 ms.
    assert _smoothed(walk_s, max_bend=1.0)(TIMES) == pytest.approx(walk_s, abs=7e-4)


def test_a_silence_is_bridged_without_a_swing() -> None:
    truth_s = 1e-3 * np.sin(2 * np.pi * TIMES / 1200)
    heard = (TIMES < 700) | (TIMES > 880)
    noisy = truth_s + _noise(3, 1e-5)
    spline = smooth(TIMES[heard], noisy[heard], np.full(heard.sum(), 5.0), KNOTS, max_bend=60e-6)
    assert np.abs(spline(TIMES) - truth_s).max() < 1e-4
