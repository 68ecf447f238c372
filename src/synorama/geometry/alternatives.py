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
BETTER, ENOUGH = 1.15, 0.5  # a room and its mirror image differ by a quarter
POOR = 0.45  # what no upright room of the same kind falls below
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
    surface_m: Float64, points_m: Float64, names: tuple[str, str], unit: float
) -> None:
    """Refuse clouds of which one must be turned over or mirrored to fit.

    Parameters
    ----------
    surface_m, points_m
        ``(N, 3)`` and ``(M, 3)`` [m].
    names
        Of the surface's and the points' frame.
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
    upright = trial.reached(np.eye(3))
    needed = max(BETTER * upright, ENOUGH)
    mirrored, down = trial.reached(MIRRORED), trial.reached(UPSIDE_DOWN)
    if mirrored > max(needed, down):
        raise MirroredCloudError(
            "the clouds fit only when one is mirrored: an axis was swapped when it was written",
            hint="export the scan again with right-handed axes",
        )
    if down > needed:
        raise UpDirectionError(
            "the clouds fit only when one is turned upside down",
            hint="give the direction that is up, such as --source-up -z",
        )
    if upright < POOR:
        _check_sides(surface_m, points_m, names, unit, needed)


def _check_sides(
    surface_m: Float64, points_m: Float64, names: tuple[str, str], unit: float, needed: float
) -> None:
    lying = _Trial(surface_m, points_m, unit)
    for axis, turn in ON_ITS_SIDE:
        turned = _Trial(surface_m @ turn.T, points_m, unit)
        for name, reached in (
            (names[0], turned.reached(np.eye(3))),
            (names[1], lying.reached(turn)),
        ):
            if reached > needed:
                raise UpDirectionError(
                    f"the clouds fit only when '{name}' is laid on its side: its {axis} is up",
                    hint=f"say which axis is up, such as register --source-up {axis}",
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
