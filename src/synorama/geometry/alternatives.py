"""Whether a cloud that fits badly fits when it is turned over, laid on its side, or mirrored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import MirroredCloudError, UpDirectionError
from synorama.geometry.confidence import score
from synorama.geometry.fine import Step, refine
from synorama.geometry.search import SearchOptions, search
from synorama.geometry.surface import NearGrid, surface_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["check_alternatives"]

CELL_M, STEP_RAD, KEEP = 0.2, float(np.deg2rad(7.5)), 3
SIDE_M = 0.08
POINTS = 2_000
BETTER, ENOUGH = 1.25, 0.55
STEPS = (Step(0.25, 0.6, 8, 4), Step(0.10, 0.3, 10, 4))
UPSIDE_DOWN = np.diag([1.0, -1.0, -1.0])
MIRRORED = np.diag([-1.0, 1.0, 1.0])
ON_ITS_SIDE = (
    ("y", np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])),
    ("-y", np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])),
    ("x", np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])),
    ("-x", np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])),
)


def check_alternatives(
    surface_m: Float64, points_m: Float64, score_upright: float, unit: float
) -> None:
    """Refuse clouds of which one must be turned over or mirrored to fit.

    Parameters
    ----------
    surface_m, points_m
        ``(N, 3)`` and ``(M, 3)`` [m].
    score_upright
        What was reached as they stand.
    unit
        Of `resolution`.

    Raises
    ------
    UpDirectionError
        One stands on its head or lies on its side.
    MirroredCloudError
        One is the other's mirror image.
    """
    trial = _Trial(surface_m, points_m, unit)
    needed = max(BETTER * max(score_upright, trial.reached(np.eye(3))), ENOUGH)
    if trial.reached(MIRRORED) > needed:
        raise MirroredCloudError(
            "the clouds fit only when one is mirrored: an axis was swapped when it was written",
            hint="export the scan again with right-handed axes",
        )
    if trial.reached(UPSIDE_DOWN) > needed:
        raise UpDirectionError(
            "the clouds fit only when one is turned upside down",
            hint="give the direction that is up, such as --source-up -z",
        )
    for axis, turn in ON_ITS_SIDE:
        if trial.reached(turn) > needed:
            raise UpDirectionError(
                "the clouds fit only when one is laid on its side",
                hint=f"give the direction that is up, such as --source-up y (seen: {axis})",
            )


class _Trial:
    """A quick search, for clouds that are carried by another matrix first."""

    def __init__(self, surface_m: Float64, points_m: Float64, unit: float) -> None:
        self.unit = unit
        self.surface = surface_of(surface_m, SIDE_M * unit)
        self.near = NearGrid(self.surface, SIDE_M * unit, 0.7 * unit)
        rng = np.random.default_rng(0)
        count = min(POINTS, len(points_m))
        self.points_m = points_m[rng.choice(len(points_m), count, replace=False)]
        self.options = SearchOptions(CELL_M * unit, STEP_RAD, KEEP)

    def reached(self, change: Float64) -> float:
        """Return the best score of the points once they are changed."""
        points = self.points_m @ change.T
        variance = np.full(len(points), (0.02 * self.unit) ** 2)
        steps = [Step(s.scale_m * self.unit, s.reach_m * self.unit, s.rounds, 4) for s in STEPS]
        scores = []
        for one in search(self.surface.points_m, points, None, self.options):
            T = refine(points, variance, self.surface, self.near, one.matrix, steps)
            scale, reach = 0.05 * self.unit, 0.25 * self.unit
            scores.append(score(points, self.surface, self.near, T, scale, reach))
        return max(scores, default=0.0)
