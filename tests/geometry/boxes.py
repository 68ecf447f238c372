"""Rooms of plain boxes, seen by rays: a second simulator that shares nothing with the product's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from synorama.records import PointCloud
from tests.geometry.rooms import Pair

Float64 = NDArray[np.float64]
Box = tuple[tuple[float, float, float], tuple[float, float, float]]  # low and high corner [m]

THICK_M, EYES_M, NEAREST_M = 0.1, 1.6, 0.3
PLACES = 100  # where the wearer stands
WANDER_M = 0.0003  # from place to place


def box_pair(
    seed: int,
    size_m: tuple[float, float, float],
    scanned: Sequence[Box],
    worn: Sequence[Box],
    *,
    points: int = 120_000,
    tracked: int = 60_000,
) -> Pair:
    """Return a scan of a room with one set of boxes, and glasses' points of it with another."""
    rng = np.random.default_rng(seed)
    size = np.array(size_m)
    scan = _scan(_scene(size, scanned), size, points, rng)
    seen, sigma, eyes = _worn(_scene(size, worn), size, tracked, rng)
    truth = np.eye(4)
    truth[:3, :3] = Rotation.from_euler("z", rng.uniform(-180, 180), degrees=True).as_matrix()
    truth[:3, 3] = rng.uniform(-3, 3, 3)
    there = [places @ truth[:3, :3].T + truth[:3, 3] for places in (seen, eyes, _corners(size))]
    glasses = PointCloud("glasses", there[0], sigma_m=sigma)
    return Pair(PointCloud("scan", scan), glasses, there[1], truth, there[2], truth[2, :3])


def _corners(size: Float64) -> Float64:
    return np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * size


def _scene(size: Float64, boxes: Sequence[Box]) -> Any:
    import open3d

    walls: list[tuple[Float64, Float64]] = []
    for axis in range(3):
        for side in (0, 1):
            low, high = np.full(3, -THICK_M), size + THICK_M
            low[axis], high[axis] = (size[axis], high[axis]) if side else (-THICK_M, 0.0)
            walls.append((low, high))
    scene = open3d.t.geometry.RaycastingScene()
    for low, high in (*walls, *((np.array(a), np.array(b)) for a, b in boxes)):
        mesh: Any = open3d.geometry.TriangleMesh.create_box(*(high - low)).translate(low)
        scene.add_triangles(open3d.t.geometry.TriangleMesh.from_legacy(mesh))
    return scene


def _seen(scene: Any, eye: Float64, ways: Float64) -> tuple[Float64, Float64]:
    """Return the rays that end, ``(N, 3)``, and how long each is [m]."""
    import open3d

    ways = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    rays = np.concatenate([np.broadcast_to(eye, ways.shape), ways], axis=1).astype(np.float32)
    far = scene.cast_rays(open3d.core.Tensor.from_numpy(rays))["t_hit"].numpy()
    ends = np.isfinite(far) & (far > NEAREST_M)
    return ways[ends], far[ends].astype(np.float64)


def _scan(scene: Any, size: Float64, count: int, rng: np.random.Generator) -> Float64:
    parts = []
    for _ in range(3):
        eye = np.array([*rng.uniform(0.2, 0.8, 2) * size[:2], 1.5])
        ways, far = _seen(scene, eye, rng.standard_normal((count // 3, 3)))
        parts.append(eye + ways * (far + rng.normal(0, 0.002, len(far)))[:, np.newaxis])
    return np.concatenate(parts)


def _worn(
    scene: Any, size: Float64, count: int, rng: np.random.Generator
) -> tuple[Float64, Float64, Float64]:
    eyes = np.column_stack(
        [rng.uniform(0.15, 0.85, (PLACES, 2)) * size[:2], np.full(PLACES, EYES_M)]
    )
    wander = np.cumsum(rng.normal(0, WANDER_M, (PLACES, 3)), axis=0)
    wander -= wander.mean(axis=0)
    parts, sigmas = [], []
    for eye, off in zip(eyes, wander, strict=True):
        ways, far = _seen(scene, eye, rng.standard_normal((count // PLACES, 3)))
        sigma = 0.002 + 0.0025 * far**2 * rng.uniform(0.5, 1.5, len(far))
        parts.append(eye + off + ways * (far + rng.normal(0, sigma))[:, np.newaxis])
        sigmas.append(sigma)
    return np.concatenate(parts), np.concatenate(sigmas), eyes
