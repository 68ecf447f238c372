"""Registration of two clouds: search, refine, judge.

The cloud with sigmas, or else the sparser one, is laid as points onto the other as a surface. What
comes out says whether it stands on its own; nothing that a wrong room could reach is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import UsageError
from synorama.geometry.alternatives import check_alternatives
from synorama.geometry.confidence import (
    REACH_M,
    SCALE_M,
    Evidence,
    evidence_of,
    pushed_through,
    score,
    slid,
)
from synorama.geometry.contradiction import contradicted, contrast
from synorama.geometry.fine import TILT_SIGMA_RAD, Step, refine
from synorama.geometry.prepare import (
    Points,
    check_cloud,
    check_units,
    cleaned,
    evened,
    few_enough,
    middle_m,
    resolution,
    thinned,
)
from synorama.geometry.search import SearchOptions, free_space, search
from synorama.geometry.surface import NearGrid, Surface, surface_of
from synorama.geometry.verdict import Candidate, Found, judged
from synorama.records import PointCloud, RegistrationResult
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["RegistrationOptions", "register"]

COARSE_M, FINE_M = 0.05, 0.02
LOOKUP_M, LOOKUP_MARGIN_M = 0.04, 0.7
COARSE_POINTS, SCORE_POINTS, FINE_POINTS, FREE_POINTS = 4_000, 12_000, 80_000, 3_000
COARSE_SIGMA_M = 0.02
EVEN_M, NOISE_M = 0.01, 0.003
FINALISTS = 4
TIE = 0.96
APART_RAD, APART_M = float(np.deg2rad(5.0)), 0.3  # nearer candidates are one
COARSE = (Step(0.25, 0.6, 8, 4), Step(0.10, 0.3, 8, 4))
FINALS = (Step(0.06, 0.2, 8, 6),)
FROM_AFAR = (Step(0.30, 0.8, 15, 4, "huber"), Step(0.12, 0.35, 15, 4, "huber"))
FINE = (
    Step(0.10, 0.30, 10, 4, "huber"),
    Step(0.05, 0.15, 12, 6, "huber"),
    Step(0.02, 0.08, 20, 6, "huber"),
)
LAST = (Step(0.04, 0.08, 30),)  # five times the scatter: lets go of little but what was moved


@dataclass(frozen=True, slots=True, eq=False)
class RegistrationOptions:
    """What is known beforehand.

    Parameters
    ----------
    init
        ``T_target_source`` ``(4, 4)`` from a person, good to about half a metre and 10 degrees.
    yaw_rad
        Turn from source to target about the vertical, and how far it may be off.
    source_trajectory_m, target_trajectory_m
        ``(K, 3)`` where the glasses were whose points source or target is.
    handheld
        Whether the scanner was moved; None where misfits must tell.
    tilt_sigma_rad
        How surely both verticals are known.
    seed
        Of the choice of points: the same seed gives the same result.
    """

    init: Float64 | None = None
    yaw_rad: tuple[float, float] | None = None
    source_trajectory_m: Float64 | None = None
    target_trajectory_m: Float64 | None = None
    handheld: bool | None = None
    tilt_sigma_rad: float = TILT_SIGMA_RAD
    seed: int = 0


def register(
    source: PointCloud, target: PointCloud, options: RegistrationOptions | None = None
) -> RegistrationResult:
    """Return where the source lies in the target's frame, and how sure that is.

    Both clouds stand upright (z up, to a degree or so) and are in metres.

    Raises
    ------
    EmptyCloudError, FlatCloudError, CloudUnitError
        A cloud cannot be registered as it is.
    UpDirectionError, MirroredCloudError
        It fits only when it is laid on its side, turned upside down, or mirrored.
    UsageError
        The start that was given is no rigid transform.
    """
    asked = options or RegistrationOptions()
    given = {cloud.frame: check_cloud(cloud) for cloud in (source, target)}
    if source.frame == target.frame:
        raise UsageError(f"both clouds are in frame '{source.frame}'", hint="name them apart")
    check_units(given[source.frame], given[target.frame], (source.frame, target.frame))
    laid = _is_points(source, target)
    points, surface = (source, target) if laid else (target, source)
    trajectory = asked.source_trajectory_m if laid else asked.target_trajectory_m
    task = _Task.of(points, surface, given[surface.frame], trajectory, asked)
    found = task.found(_start(asked, laid), _yaw(asked, laid))
    _check_standing(task, found, (surface.frame, points.frame))
    return judged(found, (points.frame, surface.frame), target.frame)


def _is_points(source: PointCloud, target: PointCloud) -> bool:
    """Tell whether the source is laid onto the target, or the other way round."""
    if (source.sigma_m is None) != (target.sigma_m is None):
        return source.sigma_m is not None
    return len(source.points_m) <= len(target.points_m)


def _start(asked: RegistrationOptions, laid: bool) -> Float64 | None:
    if asked.init is None:
        return None
    try:
        start = RigidTransform("target", "source", asked.init)
    except ValueError as error:
        raise UsageError(f"the start is no rigid transform: {error}") from error
    return start.matrix if laid else start.inverse().matrix


def _yaw(asked: RegistrationOptions, laid: bool) -> tuple[float, float] | None:
    if asked.yaw_rad is None or laid:
        return asked.yaw_rad
    return -asked.yaw_rad[0], asked.yaw_rad[1]


def _check_standing(task: _Task, found: Found, names: tuple[str, str]) -> None:
    """Where the best is not plain, look whether a cloud stands on its head or is mirrored."""
    if not found.clear and found.start is None:
        check_alternatives(task.coarse.points_m, task.sparse_m, names, task.unit)


# --- the work --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """Points and a surface about a common origin, and what is derived of them once."""

    points: Points
    surface_points_m: Float64
    points_origin_m: Float64
    surface_origin_m: Float64
    unit: float
    asked: RegistrationOptions
    dense: bool  # the surface is a scan: where it has no points, nothing was seen
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    @classmethod
    def of(
        cls,
        points: PointCloud,
        surface: PointCloud,
        surface_m: Float64,
        trajectory_m: Float64 | None,
        asked: RegistrationOptions,
    ) -> _Task:
        used = cleaned(points, trajectory_m)
        if surface.sigma_m is not None:
            surface_m = cleaned(surface).points_m
        check_cloud(PointCloud(points.frame, used.points_m))
        origins = middle_m(used.points_m), middle_m(surface_m)
        seen = None if used.seen_from_m is None else used.seen_from_m - origins[0]
        about = Points(used.points_m - origins[0], used.sigma_m, seen)
        placed = few_enough(surface_m) - origins[1]
        unit = max(resolution(placed), 1.0 if points.sigma_m is not None else 0.0)
        dense, rng = surface.sigma_m is None, np.random.default_rng(asked.seed)
        return cls(about, placed, *origins, unit, asked, dense, rng)

    @cached_property
    def coarse(self) -> Surface:
        return surface_of(self.fine.points_m, COARSE_M * self.unit)

    @cached_property
    def fine(self) -> Surface:
        return surface_of(self._near_points, FINE_M * self.unit)

    @cached_property
    def _near_points(self) -> Float64:
        """The surface without what lies far off its middle: it would blow up every grid."""
        reach = np.linalg.norm(self.surface_points_m, axis=1)
        return np.asarray(self.surface_points_m[reach < 4 * np.quantile(reach, 0.9)], np.float64)

    @cached_property
    def lookup(self) -> NearGrid:
        return NearGrid(self.coarse, LOOKUP_M * self.unit, LOOKUP_MARGIN_M * self.unit)

    @cached_property
    def witnesses(self) -> Points:
        """The points against which the surface may speak: on a sparse one gaps say nothing."""
        return self.points if self.dense else replace(self.points, seen_from_m=None)

    @cached_property
    def sparse_m(self) -> Float64:
        return thinned(self.points.points_m, self.unit)

    @cached_property
    def free_m(self) -> Float64:
        if self.points.seen_from_m is None:
            return np.zeros((0, 3))
        cell = SearchOptions().cell_m * self.unit
        return free_space(self.points.points_m, self.points.seen_from_m, cell, self.rng)

    # --- candidates --------------------------------------------------------------------------

    def found(self, start: Float64 | None, yaw: tuple[float, float] | None) -> Found:
        """Return the best transform of points onto the surface, and what speaks for it."""
        if start is None:
            finals = self._finals(self._candidates(yaw))
        else:
            finals = [self._from_afar(self._inward(start))]
        best = finals[0]
        T = self._refined(best.T)
        evidence = self._evidence(T)
        T = T if evidence is None else evidence.T
        moved = Candidate(T, best.score, best.solid)
        outward = [self._outward(c.T) for c in (moved, *finals[1:])]
        return Found(
            moved,
            tuple(finals[1:]),
            evidence,
            tuple(outward),
            None if start is None else start,
            self.surface_origin_m,
            self.unit,
            contradicted(self.witnesses, self.fine, self.lookup, T, self.unit),
            self._slid(evidence),
        )

    def _candidates(self, yaw: tuple[float, float] | None) -> list[Candidate]:
        options = SearchOptions(cell_m=SearchOptions().cell_m * self.unit, yaw_rad=yaw)
        free = self.free_m if len(self.free_m) else None
        some = self._some(self.sparse_m, COARSE_POINTS)
        steps = _scaled(COARSE, self.unit)
        variance = np.full(len(some), (COARSE_SIGMA_M * self.unit) ** 2)
        found = []
        for one in search(self.coarse.points_m, self.sparse_m, free, options):
            T = refine(some, variance, self.coarse, self.lookup, one.matrix, steps)
            found.append(self._candidate(some, T, 0.05 * self.unit, 0.25 * self.unit))
        return self._distinct(found)

    def _candidate(self, points: Float64, T: Float64, scale: float, reach: float) -> Candidate:
        met = score(points, self.coarse, self.lookup, T, scale, reach)
        free = self._some(self.free_m, FREE_POINTS)
        return Candidate(T, met, pushed_through(free, self.lookup, T, 0.06 * self.unit))

    def _distinct(self, found: Sequence[Candidate]) -> list[Candidate]:
        middle = self.sparse_m.mean(axis=0)
        kept: list[Candidate] = []
        for one in sorted(found, key=lambda c: -c.value):
            if all(one.is_apart(c, middle, APART_RAD, APART_M * self.unit) for c in kept):
                kept.append(one)
        return kept

    def _finals(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the best few, refined on the fine surface so that they compare fairly."""
        some = self._some(self.sparse_m, COARSE_POINTS)
        judges = self._some(self.points.points_m, SCORE_POINTS)
        variance = np.full(len(some), (COARSE_SIGMA_M * self.unit) ** 2)
        steps = _scaled(FINALS, self.unit)
        finals = []
        for one in candidates[:FINALISTS]:
            T = refine(
                some, variance, self.fine, self.fine, one.T, steps, self.asked.tilt_sigma_rad
            )
            met = score(judges, self.fine, self.fine, T, SCALE_M * self.unit, REACH_M * self.unit)
            finals.append(Candidate(T, met, one.solid))
        return self._settled(self._distinct(finals))

    def _settled(self, finals: list[Candidate]) -> list[Candidate]:
        """Where several are nearly as good, refine them to the end and ask all points."""
        near = [c for c in finals if c.value > TIE * finals[0].value]
        if len(near) < 2:
            return finals
        points, scale, reach = self.points.points_m, SCALE_M * self.unit, REACH_M * self.unit
        settled = []
        for one in near:
            T = self._refined(one.T)
            met = score(points, self.fine, self.fine, T, scale, reach)
            settled.append(Candidate(T, met, one.solid))
        settled.sort(key=lambda c: -c.value)
        return self._winner_first(settled) + finals[len(near) :]

    def _winner_first(self, settled: list[Candidate]) -> list[Candidate]:
        """Put first which stands against each of the others where the surface can tell."""
        winner = settled[0]
        for other in settled[1:]:
            places = (winner.T, other.T)
            if contrast(self.witnesses, self.fine, self.lookup, places, self.unit) < 0:
                winner = other
        return [winner, *(one for one in settled if one is not winner)]

    def _from_afar(self, start: Float64) -> Candidate:
        some = self._some(self.sparse_m, COARSE_POINTS)
        variance = np.full(len(some), (COARSE_SIGMA_M * self.unit) ** 2)
        steps = _scaled(FROM_AFAR, self.unit)
        T = refine(some, variance, self.coarse, self.lookup, start, steps)
        return self._candidate(some, T, 0.05 * self.unit, 0.25 * self.unit)

    # --- the end -----------------------------------------------------------------------------

    @cached_property
    def _last(self) -> tuple[Float64, Float64]:
        """Points and variances of the last stage, in no order: every fourth is a fair sample."""
        even = self.rng.permutation(evened(self.points, EVEN_M * self.unit))[:FINE_POINTS]
        return even, np.full(len(even), (NOISE_M * self.unit) ** 2)

    def _refined(self, T: Float64) -> Float64:
        points, variance = self._last
        few, tilt = (points[::4], variance[::4]), self.asked.tilt_sigma_rad
        begun = refine(*few, self.fine, self.fine, T, _scaled(FINE, self.unit), tilt)
        steps = _scaled(LAST, self.unit)
        return refine(points, variance, self.fine, self.fine, begun, steps, tilt)

    def _evidence(self, T: Float64) -> Evidence | None:
        points, variance = self._last
        handheld = self.asked.handheld
        return evidence_of(points, variance, self.fine, T, unit=self.unit, handheld=handheld)

    def _slid(self, evidence: Evidence | None) -> float:
        if evidence is None:
            return 1.0
        some, way = self._last[0][:SCORE_POINTS], evidence.ways[0]
        return slid(some, self.coarse, self.lookup, evidence.T, way, self.unit)

    def _some(self, places: Float64, count: int) -> Float64:
        if len(places) <= count:
            return places
        return places[self.rng.choice(len(places), count, replace=False)]

    def _outward(self, T: Float64) -> Float64:
        """Return ``T`` between the frames as they were given, not about the origins used here."""
        moved = np.array(T, np.float64)
        moved[:3, 3] += self.surface_origin_m - T[:3, :3] @ self.points_origin_m
        return moved

    def _inward(self, T: Float64) -> Float64:
        moved = np.array(T, np.float64)
        moved[:3, 3] += T[:3, :3] @ self.points_origin_m - self.surface_origin_m
        return moved


def _scaled(steps: Sequence[Step], unit: float) -> list[Step]:
    return [Step(s.scale_m * unit, s.reach_m * unit, s.rounds, s.freedom, s.kernel) for s in steps]
