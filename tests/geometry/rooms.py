"""Pairs of a room's scan and the glasses' points with known truth, straight from the simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from synorama.records import PointCloud
from synorama.simulate import simulate_plan
from synorama.simulate.clocks import randomness
from synorama.simulate.devices.aria import calibration
from synorama.simulate.devices.aria_streams import Glasses, times_ns
from synorama.simulate.mps.calibration import cameras_of
from synorama.simulate.mps.estimate import CLOSED_SIGMA, Estimate, Wander
from synorama.simulate.mps.points import track_points
from synorama.simulate.scan.scanner import ScanOptions, make_scan
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.meshes import pose
from synorama.simulate.scene.motion import plan_motion
from synorama.simulate.scene.room import WORLD, Kind, Room
from synorama.simulate.scene.surface import room_surface
from synorama.transform import RigidTransform

Float64 = NDArray[np.float64]
PairKind = Literal["normal", "symmetric", "corridor", "hard", "handheld"]
KINDS: tuple[PairKind, ...] = ("normal", "symmetric", "corridor", "hard")

TEXTURE_PX = 64
ROOMS: dict[PairKind, Kind] = {
    "normal": "kitchen",
    "symmetric": "symmetric",
    "corridor": "corridor",
    "hard": "kitchen",
    "handheld": "kitchen",
}
MOVED = {"hard": 0.4}
SCANS: dict[PairKind, ScanOptions] = {
    "normal": ScanOptions(panorama_px=0),
    "symmetric": ScanOptions(panorama_px=0),
    "corridor": ScanOptions(panorama_px=0),
    "hard": ScanOptions("handheld", warp_m=(0.008, 0.012), panorama_px=0),
    "handheld": ScanOptions("handheld", panorama_px=0),
}
HARD_COVERAGE = (0.5, 0.85)
HARD_OUTLIERS = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A scan, the glasses' points, where they were seen from, and the truth.

    ``places_m`` are of the room, in the glasses' frame: errors are told there.
    """

    scan: PointCloud
    glasses: PointCloud
    trajectory_m: Float64
    truth: Float64  # T_glasses_scan, (4, 4)
    places_m: Float64
    up: Float64  # the scan's z is nearly so


def make_pair(
    kind: PairKind,
    seed: int,
    *,
    points: int = 1_000_000,
    tracked: int = 120_000,
    seconds: float = 60.0,
    other_room: bool = False,
) -> Pair:
    """Return a pair; with ``other_room`` the glasses were in another room of the kind."""
    moved = MOVED.get(kind, 0.15)
    room = build_room(seed, ROOMS[kind], moved_share=moved)
    options = replace(SCANS[kind], points=points)
    if kind == "hard":
        coverage = randomness(seed, "coverage").uniform(*HARD_COVERAGE)
        options = replace(options, coverage=float(coverage))
    scan = make_scan(room, room_surface(room, "scan", texture_px=TEXTURE_PX), seed, options)
    if other_room:
        room = build_room(seed + 500_000, ROOMS[kind], moved_share=moved)
    glasses, trajectory, glasses_world = _worn(room, seed, tracked, seconds)
    if kind == "hard":
        glasses = _with_outliers(glasses, seed)
    truth = glasses_world.matrix @ scan.world_scan.matrix
    return Pair(
        PointCloud("scan", scan.points_m),
        glasses,
        trajectory,
        truth,
        glasses_world.apply(_places(room), frame=WORLD),
        scan.world_scan.matrix[2, :3],
    )


def _worn(
    room: Room, seed: int, count: int, seconds: float
) -> tuple[PointCloud, Float64, RigidTransform]:
    lab = simulate_plan(seed=seed, room=room.kind, seconds=seconds)
    name, glasses = next((n, d) for n, d in lab.devices.items() if isinstance(d, Glasses))
    motion = plan_motion(room, seed, start_ns=lab.start_ns, seconds=seconds)
    wearer = next(w for w in motion if w.name == name)
    rng = randomness(seed, "frame")
    x, y = rng.uniform(-3, 3, 2)
    matrix = pose(float(x), float(y), float(rng.uniform(-1.8, -1.4)), rng.uniform(-np.pi, np.pi))
    there = RigidTransform("glasses", WORLD, matrix)
    error = Wander.draw(glasses.random("mps error"), CLOSED_SIGMA)
    estimate = Estimate(glasses, wearer, there, error)
    cameras = cameras_of(calibration(glasses.serial, lab.asked.pictures))
    frames = times_ns(glasses, "slam-left", 10.0, jitter_ns=3_000)
    surface = room_surface(room, "session", texture_px=TEXTURE_PX)
    points = track_points(surface, estimate, cameras, frames, count)
    cloud = PointCloud(
        "glasses",
        points.points_m,
        sigma_m=points.sigma_m,
        extra={"inv_dist_std": points.inverse_sigma},
    )
    return cloud, estimate.pose(frames)[:, :3, 3], there


def _with_outliers(cloud: PointCloud, seed: int) -> PointCloud:
    """Replace a share of the points by points that lie anywhere in the room."""
    rng = randomness(seed, "outliers")
    points = cloud.points_m.copy()
    wrong = rng.random(len(points)) < HARD_OUTLIERS
    low, high = np.quantile(points, (0.02, 0.98), axis=0)
    points[wrong] = rng.uniform(low - 0.3, high + 0.3, (int(wrong.sum()), 3))
    return replace(cloud, points_m=points)


def _places(room: Room) -> Float64:
    half = np.array(room.size_m) / 2
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    return np.array([0, 0, half[2]]) + np.vstack([corners, np.zeros(3)])


def errors(pair: Pair, found: Float64) -> tuple[float, float]:
    """Return the rotation's error [rad] and the root mean square displacement over the room [m]."""
    off = found @ np.linalg.inv(pair.truth)
    turn = np.arccos(np.clip((np.trace(off[:3, :3]) - 1) / 2, -1, 1))
    moved = pair.places_m @ off[:3, :3].T + off[:3, 3] - pair.places_m
    return float(turn), float(np.sqrt((moved**2).sum(axis=1).mean()))


def cached_pair(folder: Path, kind: PairKind, seed: int, *, other_room: bool = False) -> Pair:
    """Return a pair that was made before, or make it and keep it."""
    path = folder / f"{kind}-{seed}{'-other' if other_room else ''}.npz"
    if not path.is_file():
        _keep(path, make_pair(kind, seed, other_room=other_room))
    with np.load(path) as kept:
        sigmas = {"inv_dist_std": kept["inverse"].astype(np.float64)}
        return Pair(
            PointCloud("scan", kept["scan"].astype(np.float64)),
            PointCloud("glasses", kept["points"], sigma_m=kept["sigma"], extra=sigmas),
            kept["trajectory"],
            kept["truth"],
            kept["places"],
            kept["up"],
        )


def _keep(path: Path, pair: Pair) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert pair.glasses.sigma_m is not None
    np.savez(
        path,
        scan=pair.scan.points_m.astype(np.float32),
        points=pair.glasses.points_m,
        sigma=pair.glasses.sigma_m,
        inverse=pair.glasses.extra["inv_dist_std"],
        trajectory=pair.trajectory_m,
        truth=pair.truth,
        places=pair.places_m,
        up=pair.up,
    )
