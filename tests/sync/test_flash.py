"""Flashes that several cameras saw: found, matched, refused where they fit in more than one way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.sync.flash import Flashes, find_flashes, match_flashes
from tests.sync.flashes import GAMMA, PARTS, frame_times, lit_share

Float64 = NDArray[np.float64]
AT_S = np.array([3.1, 4.4, 6.9, 7.8, 10.2])


def room(
    times_ns: NDArray[np.int64], at_s: Float64, seed: int, exposure_s: float = 0.01
) -> Float64:
    """Return parts of pictures of a room that a flash lights up, in which somebody walks."""
    rng = np.random.default_rng(seed)
    scene = rng.uniform(20, 140, PARTS)
    lit = rng.uniform(0.05, 0.4, PARTS)
    share = lit_share(times_ns, at_s, 0.01, lasts_s=0.2)
    out = np.empty((len(times_ns), scene.size))
    for k, s in enumerate(share):
        picture = 255 * ((scene / 255) ** GAMMA + s * lit).clip(0, 1) ** (1 / GAMMA)
        left = int(k * 0.3) % (PARTS[1] - 4)
        picture[4:14, left : left + 4] = 35
        out[k] = picture.reshape(-1)
    return out + rng.normal(0, 0.7, out.shape)


def camera(
    fps: float, start_s: float, at_s: Float64, *, ppm: float = 0.0, seed: int = 0
) -> Flashes:
    """Return what a camera sees that began at true time ``start_s``."""
    times = frame_times(fps, 14)
    return find_flashes(times, room(times, at_s - start_s, seed))


@pytest.mark.parametrize("fps", [20, 30, 60])
def test_flashes_are_found_between_the_right_frames(fps: float) -> None:
    seen = camera(fps, 0, AT_S)
    assert len(seen.at_ns) == len(AT_S)
    assert (np.abs(seen.at_ns / 1e9 - AT_S) <= seen.half_ns / 1e9 + 0.005).all()


def test_nothing_but_flashes_is_one() -> None:
    assert len(camera(30, 0, np.zeros(0)).at_ns) == 0


def test_the_same_flashes_join_two_cameras_within_the_interval() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        start = float(rng.uniform(0, 2))
        found = match_flashes(
            camera(30, 0, AT_S, seed=seed), camera(25, start, AT_S, seed=seed + 9)
        )
        assert not isinstance(found, str)
        ((at, theirs, half),) = found
        assert abs((theirs - at) / 1e9 - start) <= half / 1e9 + 0.005
        assert half < 40e6


def test_start_and_end_tell_the_drift() -> None:
    late = np.concatenate([AT_S, AT_S + 1800.3])
    half = np.full(10, 1e7)
    span = np.array([[0, 1_900 * 10**9]])
    mine_at = np.rint((late - 5) / (1 + 40e-6) * 1e9).astype(np.int64)
    theirs = Flashes(np.rint(late * 1e9).astype(np.int64), half, span)
    found = match_flashes(theirs, Flashes(mine_at, half, span))
    assert not isinstance(found, str)
    (a, b, _), (c, d, _) = found
    assert (d - b) / (c - a) - 1 == pytest.approx(40e-6, abs=12e-6)


def test_regular_flashes_are_ambiguous_and_say_so() -> None:
    regular = np.linspace(2.0, 9.0, 8)
    told = match_flashes(camera(30, 0, regular), camera(25, 0.3, regular))
    assert isinstance(told, str)
    assert "more than one way" in told


def test_other_flashes_and_too_few_are_refused() -> None:
    other = np.array([2.2, 5.3, 6.1, 9.4, 11.0])
    assert isinstance(match_flashes(camera(30, 0, AT_S), camera(25, 0, other)), str)
    assert "fewer than three" in str(match_flashes(camera(30, 0, AT_S), camera(25, 0, AT_S[:2])))
