"""A picture fitted to landmarks."""

from __future__ import annotations

import numpy as np
import pytest

from synorama.geometry import resection
from synorama.geometry.lenses import Lens, project
from synorama.geometry.resection import Pose, Seen, resected

LENS = Lens("fisheye", 960, 540, np.array([500.0, 500.0, 479.5, 269.5, 0.0, 0.0, 0.0, 0.0]))


def seen(sigma_px: float) -> Seen:
    rng = np.random.default_rng(1)
    points = rng.uniform([-1.5, -0.7, 2.0], [1.5, 0.7, 4.0], (60, 3))
    pixels = project(LENS, points)[0] + rng.normal(0, sigma_px, (60, 2))
    along = np.tile([0.0, 0.0, -1.0], (60, 1))
    return Seen(pixels, points, np.arange(60), along, np.full(60, 0.006))


def test_a_pose_is_found_again() -> None:
    start = Pose(np.eye(3), np.array([0.02, -0.03, 0.04]))
    fit = resected(seen(0.5), LENS, start, fit_lens=False)
    assert fit.votes > 50
    assert np.abs(fit.pose.shift).max() < 0.01
    assert fit.rms_px < 1.5


def test_a_last_step_that_bends_everything_out_of_the_picture_finds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [np.zeros(13)] * (len(resection.WITHIN_PX) - 1) + [np.r_[np.zeros(6), 9.0, np.zeros(6)]]
    monkeypatch.setattr(resection._Fit, "solved", lambda self: steps.pop(0)[: self._size])
    fit = resected(seen(0.5), LENS, Pose(np.eye(3), np.zeros(3)), fit_lens=True)
    assert fit.votes == 0
    assert not len(fit.pixels)
    assert np.isinf(fit.covariance).all()
