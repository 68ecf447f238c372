"""From a start to the clock: peaks near what is expected, ever nearer, by least squares.

What is unknown is solved for at once: the error of the camera's rough clock (a line, or a line
that bends slowly), the camera's place, the clocks of the glasses, the speed of sound. What is known
of each beforehand holds it as far as it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.travel_rows import Rows
from synorama.sync.travel_search import Start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["Before", "Fit", "Model", "fit", "promising"]

SPEED_SIGMA = 0.006  # of the speed of sound: indoors it is known to 3.5 degrees
LEVEL_SIGMA_S = 0.1  # of the whole error: that it is no more than a room is long
BEND_SIGMA_S = 20e-6  # of a clock's line from one knot to the next but one
NARROWING_S = (1e-3, 7e-4, 5e-4, 2.5e-4, 1.5e-4)
ROUNDS = 4
LARGEST_STEP_M = 0.5
HUBER = 1.5
STANDS_OUT, CLEAR = 3.0, 9.0  # heights of peaks: from where they count, and count fully
BEFORE_S = (-3e-3, -3e-4)
STANDS_OUT_BEFORE, EARLY_SHARE = 4.0, 0.7
EXACT_S = 1.25e-4  # how near a peak must be to count as heard
STAY_FLOOR_S = 2e-5  # what one stay is worth at best


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What is known beforehand.

    Parameters
    ----------
    place_m, covariance_m2
        Of the camera's microphone, ``(3,)`` and ``(3, 3)``.
    slope, slope_sigma
        Of the error of the rough clock.
    talker_sigma_s
        ``(T,)`` of the clocks of the glasses.
    speed_m_s
        Of sound.
    """

    place_m: Float64
    covariance_m2: Float64
    slope: float
    slope_sigma: float
    talker_sigma_s: Float64
    speed_m_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What is expected of each window, and what is known beforehand, as linear algebra.

    The unknowns in their order: error of the rough clock at each knot [s]; place [m]; error of each
    talker's clock [s]; by how much sound is slower than thought, as a share.
    """

    rows: Rows
    knots_s: Float64
    before: Before
    mean: Float64
    information: Float64
    weights: Float64

    @classmethod
    def of(cls, rows: Rows, knots_s: Float64, before: Before) -> Model:
        """Put together what is known."""
        knots, talkers = len(knots_s), len(before.talker_sigma_s)
        size = knots + 3 + talkers + 1
        information = np.zeros((size, size))
        information[:knots, :knots] = _clock_information(knots_s, before.slope_sigma)
        place = slice(knots, knots + 3)
        information[place, place] = np.linalg.inv(before.covariance_m2)
        rest = np.concatenate([np.maximum(before.talker_sigma_s, 1e-7), [SPEED_SIGMA]])
        information[knots + 3 :, knots + 3 :] = np.diag(rest**-2)
        mean = np.zeros(size)
        mean[:knots] = before.slope * (knots_s - knots_s.mean())
        mean[place] = before.place_m
        return cls(rows, knots_s, before, mean, information, _hats(knots_s, rows.times_s))

    def begin(self, start: Start) -> Float64:
        """Return the unknowns at a start."""
        x: Float64 = self.mean.copy()
        knots = len(self.knots_s)
        x[:knots] = start.offset_s + start.slope * (self.knots_s - self.rows.times_s.mean())
        x[knots : knots + 3] = start.place_m
        return x

    def start_of(self, x: Float64) -> Start:
        """Return the start that lies at a solution."""
        knots = len(self.knots_s)
        middle = self.clock_at(np.array([self.rows.times_s.mean()]))[0]
        slope = (x[knots - 1] - x[0]) / (self.knots_s[-1] - self.knots_s[0])
        return Start(float(middle @ x[:knots]), float(slope), x[knots : knots + 3].copy())

    def expected_s(self, x: Float64) -> Float64:
        """Return the lag of each window."""
        knots = len(self.knots_s)
        travel = self.rows.travel_s(x[knots : knots + 3], self.before.speed_m_s)
        late = x[knots + 3 : -1][self.rows.talker]
        expected: Float64 = self.weights @ x[:knots] + travel * (1 + x[-1]) + late
        return expected

    def slopes(self, x: Float64) -> Float64:
        """Return how the lags change with the unknowns, ``(R, N)``."""
        knots = len(self.knots_s)
        away = x[knots : knots + 3] - self.rows.mouth_m
        way = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 0.05)
        talkers = np.eye(len(self.before.talker_sigma_s))[self.rows.talker]
        travel = self.rows.travel_s(x[knots : knots + 3], self.before.speed_m_s)
        return np.column_stack([self.weights, away / way / self.before.speed_m_s, talkers, travel])

    def clock_at(self, t_s: Float64) -> Float64:
        """Return the weights of the knots at given times, ``(N, K)``; beyond the ends a line."""
        return _hats(self.knots_s, t_s)


def _hats(knots_s: Float64, t_s: Float64) -> Float64:
    k = np.clip(np.searchsorted(knots_s, t_s, side="right") - 1, 0, len(knots_s) - 2)
    share = (t_s - knots_s[k]) / (knots_s[k + 1] - knots_s[k])
    weights = np.zeros((len(t_s), len(knots_s)))
    row = np.arange(len(t_s))
    weights[row, k], weights[row, k + 1] = 1 - share, share
    return weights


def _clock_information(knots_s: Float64, slope_sigma: float) -> Float64:
    """Return what is known of a clock's error: its slope, roughly, and that it hardly bends."""
    count, span = len(knots_s), float(knots_s[-1] - knots_s[0])
    slope = (np.eye(count)[-1] - np.eye(count)[0]) / span / slope_sigma
    bends = np.diff(np.eye(count), 2, axis=0) / BEND_SIGMA_S
    level = np.full(count, 1 / count / LEVEL_SIGMA_S)
    rows = np.vstack([level, slope, bends])
    return np.asarray(rows.T @ rows)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A solution.

    Parameters
    ----------
    model
        What it solves.
    x
        The unknowns.
    score
        How clearly the windows are heard when they are expected, each, from 0 to 6; less what it
        takes to believe it.
    covariance
        Of the unknowns.
    clarity
        ``(R,)`` the same of each window.
    residuals_s
        ``(R,)`` what is left, of windows that are heard when they are expected; NaN of others.
    """

    model: Model
    x: Float64
    score: float
    covariance: Float64
    clarity: Float64
    residuals_s: Float64

    @property
    def place_m(self) -> Float64:
        """Where the camera is."""
        knots = len(self.model.knots_s)
        return np.asarray(self.x[knots : knots + 3])

    @property
    def place_covariance_m2(self) -> Float64:
        """How surely."""
        knots = len(self.model.knots_s)
        return np.asarray(self.covariance[knots : knots + 3, knots : knots + 3])

    @property
    def strain2(self) -> float:
        """How far it takes the glasses' clocks and the speed of sound, in sigmas squared."""
        rest = slice(len(self.model.knots_s) + 3, None)
        off = self.x[rest] - self.model.mean[rest]
        return float(off @ self.model.information[rest, rest] @ off)

    @property
    def clock_strain2(self) -> float:
        """How far it takes the worst of the glasses' clocks, in sigmas squared."""
        clocks = slice(len(self.model.knots_s) + 3, -1)
        known = np.diag(self.model.information)[clocks]
        return float((known * np.square(self.x[clocks])).max())

    @property
    def faintest(self) -> float:
        """How far above nothing the wearer is heard who is heard least, in standard errors.

        Each stay is one witness.
        """
        rows = self.model.rows
        stays = np.bincount(rows.stay, self.clarity) / np.maximum(np.bincount(rows.stay), 1)
        of_each = [stays[np.unique(rows.stay[rows.talker == t])] for t in np.unique(rows.talker)]
        return min(float(s.sum() / max(np.linalg.norm(s), 1e-9)) for s in of_each)

    @property
    def windows(self) -> int:
        """How many windows are heard when they are expected."""
        return int(np.isfinite(self.residuals_s).sum())

    def clarity_of(self, rows: Rows) -> Float64:
        """Return how clearly other windows are heard when this solution expects them."""
        model = Model.of(rows, self.model.knots_s, self.model.before)
        height = rows.highest(model.expected_s(self.x), -EXACT_S, EXACT_S)
        return _clarity(model, self.x, height)

    def lead(self, other: Fit) -> float:
        """Return by how many standard errors it is the better one; each stay is one witness."""
        return (self.score - other.score) * self.model.rows.count / self._error_of_clarity(other)

    def clearer(self, other: Fit) -> float:
        """Return by how many standard errors speech is heard better, whatever it takes."""
        return float((self.clarity - other.clarity).sum()) / self._error_of_clarity(other)

    def _error_of_clarity(self, other: Fit) -> float:
        better = np.bincount(self.model.rows.stay, self.clarity - other.clarity)
        return max(float(np.linalg.norm(better)), 1e-9)

    def clock_error_s(self, t_s: Float64) -> Float64:
        """Return the error of the rough clock at times of the rows."""
        return np.asarray(self.model.clock_at(t_s) @ self.x[: len(self.model.knots_s)])

    def clock_sigma_s(self, t_s: Float64) -> Float64:
        """Return one sigma of that."""
        knots = len(self.model.knots_s)
        weights = self.model.clock_at(t_s)
        variance = np.einsum("ij,jk,ik->i", weights, self.covariance[:knots, :knots], weights)
        return np.asarray(np.sqrt(variance))


def promising(model: Model, begin: Sequence[Start], within_s: float, most: int) -> list[Start]:
    """Return the starts that are worth following: a few steps tell."""
    if len(begin) <= most:
        return list(begin)
    judged = []
    for start in begin:
        x = model.begin(start)
        for _ in range(ROUNDS):
            x = _step(model, x, within_s)
        height = model.rows.highest(model.expected_s(x), -within_s / 2, within_s / 2)
        judged.append((_score(model, x, _clarity(model, x, height)), model.start_of(x)))
    judged.sort(key=lambda row: -row[0])
    return [start for _, start in judged[:most]]


def fit(model: Model, start: Start, *, within_s: float, stays_alike: bool = False) -> Fit:
    """Solve from a start on that is right to within some time.

    Parameters
    ----------
    stays_alike
        Let each stay count once, however many windows it has. Windows are finer, but those of one
        stay err alike, and together they outvote what is known beforehand.
    """
    x = model.begin(start)
    for near in (n for n in NARROWING_S if n <= within_s):
        for _ in range(ROUNDS):
            x = _step(model, x, near, stays_alike=stays_alike)
    expected = model.expected_s(x)
    lag, height = model.rows.peaks(expected, EXACT_S)
    residuals = np.where(height > STANDS_OUT, lag - expected, np.nan)
    clarity, covariance = _clarity(model, x, height), _covariance(model, x, residuals)
    return Fit(model, x, _score(model, x, clarity), covariance, clarity, residuals)


def _clarity(model: Model, x: Float64, height: Float64) -> Float64:
    """Tell how clearly each window is heard when expected, less what is heard just before.

    An echo is as consistent as direct sound: it is direct sound of the camera's image in a wall.
    But before direct sound there is nothing.
    """
    before = model.rows.highest(model.expected_s(x), *BEFORE_S)
    heard = np.clip(height - STANDS_OUT, 0, CLEAR - STANDS_OUT)
    heard_before = np.clip(before - STANDS_OUT_BEFORE, 0, CLEAR - STANDS_OUT)
    return np.asarray(heard - EARLY_SHARE * heard_before)


def _score(model: Model, x: Float64, clarity: Float64) -> float:
    """Tell how good a solution is for each window, less what it takes to believe it.

    Each stay is one witness against what is known beforehand; but how a clock bends is known only
    by experience, and each window speaks against that.
    """
    off = x - model.mean
    bends = np.diff(x[: len(model.knots_s)], 2) / BEND_SIGMA_S
    bent, all_told = 0.5 * float(bends @ bends), 0.5 * float(off @ model.information @ off)
    return float(clarity.mean()) - (all_told - bent) / model.rows.stays - bent / len(clarity)


def _step(model: Model, x: Float64, near_s: float, *, stays_alike: bool = False) -> Float64:
    """Return the unknowns after one step of robust least squares."""
    lag, height = model.rows.peaks(model.expected_s(x), near_s)
    off, sigma = lag - model.expected_s(x), near_s / 2
    heard = np.clip((height - STANDS_OUT) / (CLEAR - STANDS_OUT), 0, 1)
    if stays_alike:
        heard /= np.maximum(np.bincount(model.rows.stay, heard), 1)[model.rows.stay]
    weight = heard / sigma**2
    weight *= np.minimum(1, HUBER * sigma / np.maximum(np.abs(off), 1e-9))
    slopes = model.slopes(x)
    normal = (slopes * weight[:, np.newaxis]).T @ slopes + model.information
    pull = slopes.T @ (weight * off) + model.information @ (model.mean - x)
    step = np.linalg.solve(normal, pull)
    knots = len(model.knots_s)
    moved = float(np.linalg.norm(step[knots : knots + 3]))
    return np.asarray(x + step * min(1.0, LARGEST_STEP_M / max(moved, 1e-9)))


def _covariance(model: Model, x: Float64, residuals: Float64) -> Float64:
    """Return the covariance of the unknowns, each stay at one place counting once."""
    heard = np.isfinite(residuals)
    stays = [heard & (model.rows.stay == k) for k in np.unique(model.rows.stay[heard])]
    slopes = model.slopes(x)
    rows = np.array([slopes[m].mean(axis=0) for m in stays]).reshape(-1, len(x))
    left = np.array([residuals[m].mean() for m in stays])
    sigma = max(float(1.4826 * np.median(np.abs(left))) if len(left) else 0.0, STAY_FLOOR_S)
    information = rows.T @ rows / sigma**2 + model.information
    return np.asarray(np.linalg.inv(information))
