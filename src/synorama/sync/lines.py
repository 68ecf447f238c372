"""Robust lines through noisy delays.

A lag is by how much the reference's time exceeds the other's; along a recording it is a line,
because the two clocks run at slightly different rates. Times and lags here are seconds since the
first samples of the two sounds: small numbers, exact in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Bool = NDArray[np.bool_]

__all__ = ["Line", "RobustFit", "Spline", "fit_line", "fit_spline", "mad", "ransac", "smooth"]

MAX_SLOPE = 300e-6
HUBER = 1.5
STIFFNESS = 3.0
SMOOTHER = 8.0 ** np.arange(6, -5, -1)  # stiffnesses to choose from, times what a knot holds
COUNTED = 2.0  # times that a parameter counts: windows overlap, half are independent
PAYS = 0.98  # of the score, or a bend more is not worth it


@dataclass(frozen=True, slots=True)
class Line:
    """``lag(t) = lag_s + slope (t - at_s)``."""

    lag_s: float
    slope: float = 0.0
    at_s: float = 0.0

    @overload
    def __call__(self, t_s: float) -> float: ...
    @overload
    def __call__(self, t_s: Float64) -> Float64: ...
    def __call__(self, t_s: float | Float64) -> float | Float64:
        """Return the lag [s] at times of the other."""
        return self.lag_s + self.slope * (t_s - self.at_s)

    def anchored(self, at_s: float) -> Line:
        """Return the same line, anchored at another time."""
        return Line(self(at_s), self.slope, at_s)


@dataclass(frozen=True, slots=True, eq=False)
class RobustFit:
    """A line, the residuals of all observations and their robust spread.

    ``sigma_s`` and ``slope_sigma`` are formal errors at the anchor.
    """

    line: Line
    residuals_s: Float64
    scatter_s: float
    sigma_s: float
    slope_sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class Spline:
    """A correction that bends at knots and stays constant beyond them.

    ``freedom`` is how many parameters its shape is worth.
    """

    at_s: Float64
    lag_s: Float64
    scatter_s: float
    freedom: float = 0.0

    @property
    def bend(self) -> float:
        """By how much its slopes differ at most."""
        return float(np.ptp(np.diff(self.lag_s) / np.diff(self.at_s)))

    def __call__(self, t_s: Float64) -> Float64:
        """Return the correction [s] at times of the other."""
        out: Float64 = np.interp(t_s, self.at_s, self.lag_s)
        return out


def mad(values: Float64) -> float:
    """Return the median absolute deviation from zero, scaled to one sigma of a Gaussian."""
    return float(1.4826 * np.median(np.abs(values))) if len(values) else 0.0


def ransac(
    t: Float64, lag: Float64, strength: Float64, tolerance_s: float, *, tries: int = 600
) -> Line | None:
    """Return the line that the strongest set of observations agrees on.

    Pairs are drawn by strength, with a fixed seed: the same input gives the same line.
    """
    n = len(t)
    if n < 3:
        return None
    weight = np.clip(strength - 4, 0.1, 20)
    rng = np.random.default_rng(0)
    i, j = rng.choice(n, (2, tries), p=weight / weight.sum())
    dt = t[j] - t[i]
    far = np.abs(dt) > 0.1 * (np.ptp(t) + 1e-9)
    slope = np.where(far, (lag[j] - lag[i]) / np.where(far, dt, 1.0), 0.0)
    start = lag[i] - slope * t[i]
    off = np.abs(lag - start[:, None] - slope[:, None] * t)
    support = (off < tolerance_s) @ weight
    support[np.abs(slope) > MAX_SLOPE] = -1
    best = int(np.argmax(support))
    return Line(float(start[best]), float(slope[best])) if support[best] >= 0 else None


def fit_line(
    t: Float64, lag: Float64, weight: Float64, anchor_s: float, *, floor_s: float = 2e-5
) -> RobustFit:
    """Fit a line by Huber's iteratively reweighted least squares."""
    x = t - anchor_s
    start, slope = float(np.average(lag, weights=weight)), 0.0
    for _ in range(25):
        u = _huber(lag - start - slope * x, weight, floor_s)
        normal = np.array([[u.sum(), (u * x).sum()], [(u * x).sum(), (u * x * x).sum() + 1e-9]])
        start, slope = np.linalg.solve(normal, [(u * lag).sum(), (u * x * lag).sum()])
    residuals = lag - start - slope * x
    scatter = max(mad(residuals), floor_s)
    good = np.abs(residuals) < 4 * scatter
    sigma = scatter / np.sqrt(max(3.0, 0.5 * good.sum()))  # windows overlap: half are independent
    spread = max(float(np.std(t[good])), 1e-3) if good.any() else 1e-3
    line = Line(float(start), float(slope), anchor_s)
    return RobustFit(line, residuals, scatter, float(sigma), float(sigma / spread))


def fit_spline(
    t: Float64, residual: Float64, weight: Float64, knots: Float64, *, floor_s: float = 2e-5
) -> Spline:
    """Fit a bending line through residuals: hat functions, bends penalised, Huber weights."""
    hats = _hats(t, knots)
    return _penalised(hats, residual, weight, knots, STIFFNESS * float(weight.mean()), floor_s)[0]


def smooth(
    t: Float64,
    residual: Float64,
    weight: Float64,
    knots: Float64,
    *,
    max_bend: float,
    floor_s: float = 5e-6,
) -> Spline:
    """Fit a bending line as stiff as residuals want it: generalised cross-validation.

    Parameters
    ----------
    t, residual, weight
        Times [s], what is left over of a line [s], and how much each counts.
    knots
        Where it may bend [s], evenly spaced.
    max_bend
        By how much slopes may differ.
    floor_s
        Less scatter is not believed.

    Notes
    -----
    Craven and Wahba, "Smoothing noisy data with spline functions", Numerische Mathematik 31
    (1979); parameters count more than once as in Kim and Gu, JRSS B 66 (2004).
    """
    hats = _hats(t, knots)
    a_knot = float(weight.sum()) / len(knots)
    best, best_score = None, np.inf
    for stiffness in SMOOTHER:
        spline, score = _penalised(hats, residual, weight, knots, stiffness * a_knot, floor_s)
        if best is not None and spline.bend > max_bend:
            break
        if score < PAYS * best_score:
            best, best_score = spline, score
    assert best is not None  # the stiffest is always taken
    return best


def _hats(t: Float64, knots: Float64) -> Float64:
    """Return how much each knot says at each time, ``(N, K)``."""
    n = len(knots)
    place = (t - knots[0]) / (knots[-1] - knots[0]) * (n - 1)
    left = np.clip(place.astype(np.int64), 0, n - 2)
    hats = np.zeros((len(t), n))
    hats[np.arange(len(t)), left] = 1 - (place - left)
    hats[np.arange(len(t)), left + 1] = place - left
    return hats


def _penalised(
    hats: Float64,
    residual: Float64,
    weight: Float64,
    knots: Float64,
    stiffness: float,
    floor_s: float,
) -> tuple[Spline, float]:
    """Return the spline of a stiffness, and its score of cross-validation."""
    n = len(knots)
    bends = np.diff(np.eye(n), 2, axis=0)
    penalty = stiffness * (bends.T @ bends) + 1e-9 * np.eye(n)
    u, heights, normal = weight, np.zeros(n), penalty
    for _ in range(12):
        normal = (hats * u[:, None]).T @ hats
        heights = np.linalg.solve(normal + penalty, (hats * u[:, None]).T @ residual)
        left_over = residual - hats @ heights
        u = _huber(left_over, weight, floor_s)
    freedom = float(np.trace(np.linalg.solve(normal + penalty, normal)))
    spared = max(1 - COUNTED * freedom / len(residual), 1e-3)
    score = float(np.average(np.square(left_over), weights=u)) / spared**2
    scatter = max(mad(left_over), floor_s)
    return Spline(knots, heights, scatter, freedom), score


def _huber(residual: Float64, weight: Float64, floor: float) -> Float64:
    scale = max(mad(residual), floor)
    out: Float64 = weight * np.minimum(1, HUBER * scale / np.maximum(np.abs(residual), 1e-12))
    return out
