"""Rooms: furnished, deterministic, and honest about what was moved."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from synorama.errors import UsageError
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.meshes import Mesh
from synorama.simulate.scene.plan import TWIN
from synorama.simulate.scene.room import KINDS, Kind, Room
from synorama.simulate.scene.texture import TILE_NAMES, make_atlas

FURNISHED: tuple[Kind, ...] = ("kitchen", "symmetric", "open")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 7])
def test_builds(kind: Kind, seed: int) -> None:
    room = build_room(seed, kind, moved_share=0.4)
    names = [thing.name for thing in room.objects]
    assert len(set(names)) == len(names)
    assert room.floor().area_m2 > 5.0
    mesh = room.mesh()
    half, height = np.array(room.size_m[:2]) / 2, room.size_m[2]
    assert np.isfinite(mesh.vertices).all()
    assert (np.abs(mesh.vertices[:, :2]) < half + 0.05).all()
    assert mesh.vertices[:, 2].min() > -2e-3
    assert mesh.vertices[:, 2].max() < height + 1e-9
    assert mesh.tile.max() < len(TILE_NAMES)


@pytest.mark.parametrize("kind", FURNISHED)
def test_is_furnished(kind: Kind) -> None:
    room = build_room(3, kind)
    small = [thing for thing in room.objects if thing.support]
    assert len(small) >= 40
    assert len({thing.kind for thing in small}) >= 10
    assert len(room.work_spots) >= 4


def test_things_stand_on_what_supports_them() -> None:
    room = build_room(5, "kitchen", moved_share=0.4)
    for thing in room.objects:
        if thing.support:
            support = room[thing.support]
            low, high = support.mesh.bounds_m
            foot = support.session.inverse().apply(thing.session.translation_m, frame="world")
            assert (foot > low - 0.01).all()
            assert (foot < high + 0.01).all()
            assert foot[2] > 0.05


def test_same_seed_same_room() -> None:
    first, second = (build_room(11, "kitchen", moved_share=0.3) for _ in range(2))
    assert np.array_equal(first.mesh().vertices, second.mesh().vertices)
    assert np.array_equal(first.mesh().uv, second.mesh().uv)
    other = build_room(12, "kitchen", moved_share=0.3)
    assert other.size_m != first.size_m


def test_scan_does_not_depend_on_what_is_moved() -> None:
    still, moved = (build_room(4, "kitchen", moved_share=share) for share in (0.0, 0.4))
    assert np.array_equal(still.mesh("scan").vertices, moved.mesh("scan").vertices)
    assert np.array_equal(still.mesh("session").vertices, still.mesh("scan").vertices)
    assert not np.array_equal(moved.mesh("session").vertices, moved.mesh("scan").vertices)


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.0, 0.0, 0.0), (0.15, 0.1, 0.4), (0.4, 0.3, 0.7)]
)
def test_share_of_moved_things(share: float, least: float, most: float) -> None:
    """What stands on a table that is moved moves with it, so more may move than were chosen."""
    room = build_room(6, "kitchen", moved_share=share)
    movable = [thing for thing in room.objects if thing.movable]
    moved = [thing for thing in room.objects if thing.moved]
    assert all(thing.movable for thing in moved)
    assert least <= len(moved) / len(movable) <= most


def test_symmetric_room_is_nearly_so() -> None:
    """Half a turn carries nearly every thing onto another of the same shape."""
    room = build_room(8, "symmetric", moved_share=0.0)
    standing = [t for t in room.objects if t.kind != "shell"]
    matched = sum(_has_twin(room, thing.kind, thing.scan.matrix) for thing in standing)
    assert 0.85 * len(standing) < matched < len(standing)


def _has_twin(room: Room, kind: str, pose: np.ndarray) -> bool:
    turned = TWIN @ pose
    return any(
        t.kind == kind and np.allclose(t.scan.matrix, turned, atol=1e-9) for t in room.objects
    )


@pytest.mark.parametrize("seed", range(40, 52))
def test_symmetric_room_has_a_fixed_thing_that_tells_its_halves_apart(seed: int) -> None:
    """Half a turn carries most of its surface into itself, and some of what never moves far off."""
    room = build_room(seed, "symmetric", moved_share=0.4)
    points, owners = _sampled(room.mesh("session"), room.owners, 12_000)
    turned = points @ TWIN[:3, :3].T
    gap_m, _ = cKDTree(_sampled(room.mesh("scan"), room.owners, 120_000)[0]).query(turned)
    fixed = np.array([not thing.movable for thing in room.objects])[owners]
    assert (gap_m[fixed] < 0.05).mean() > 0.95
    area_m2 = _areas_m2(room.mesh()).sum()
    assert area_m2 * (fixed & (gap_m > 0.06)).mean() > 0.2


def _sampled(
    mesh: Mesh, owners: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return points spread evenly over a mesh, and what each is on."""
    rng = np.random.default_rng(0)
    areas = _areas_m2(mesh)
    which = rng.choice(len(areas), count, p=areas / areas.sum())
    weights = rng.dirichlet(np.ones(3), count)
    return (weights[:, :, None] * mesh.vertices[mesh.triangles[which]]).sum(axis=1), owners[which]


def _areas_m2(mesh: Mesh) -> NDArray[np.float64]:
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    return np.asarray(np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2)


def test_every_triangle_has_an_owner() -> None:
    room = build_room(2, "corridor")
    mesh, owners = room.mesh(), room.owners
    assert len(owners) == len(mesh.triangles)
    number = [thing.name for thing in room.objects].index("checkerboard-1")
    points = mesh.vertices[mesh.triangles[owners == number]]
    assert np.abs(points.mean(axis=(0, 1)) - room.checker_corners_m.mean(axis=0)).max() < 1e-9


def test_floor_knows_the_furniture() -> None:
    room = build_room(2, "kitchen")
    floor = room.floor()
    x, y = room["table-1"].session.translation_m[:2]
    cell = np.rint((np.array([x, y]) - floor.origin_m) / floor.cell_m).astype(int)
    assert not floor.free[tuple(cell)]
    for spot in room.work_spots:
        cell = np.rint((np.array(spot.xy_m) - floor.origin_m) / floor.cell_m).astype(int)
        assert floor.free[tuple(cell)]


def test_contrast_fades_the_textures_but_not_the_checkerboard() -> None:
    plain, rich = (make_atlas(1, contrast, 64).picture.astype(float) for contrast in (0.2, 1.0))
    cell = 64 + 2
    spread = {}
    for name in ("wood", "stone", "checker"):
        row, column = divmod(TILE_NAMES.index(name), 8)
        here = np.s_[row * cell : (row + 1) * cell, column * cell : (column + 1) * cell]
        spread[name] = plain[here].std(axis=(0, 1)).mean() / rich[here].std(axis=(0, 1)).mean()
    assert spread["wood"] < 0.4
    assert spread["stone"] < 0.4
    assert spread["checker"] == pytest.approx(1.0)


def test_texture_has_no_seam() -> None:
    """Both sides of the seam of a repeating texture look alike."""
    atlas = make_atlas(1, 1.0, 128)
    across = np.linspace(0, 1, 50)
    step = 0.5 / 128
    uv = np.concatenate([np.column_stack([np.full(50, x), across]) for x in (-step, step)])
    tile = np.full(100, TILE_NAMES.index("plaster"), np.float32)
    colours = atlas.sample(tile, uv.astype(np.float32), np.ones(100)).astype(int)
    assert np.abs(colours[:50] - colours[50:]).max() < 25


def test_checker_corners_lie_on_the_board() -> None:
    room = build_room(1, "kitchen")
    corners = room.checker_corners_m
    assert corners.shape == (49, 3)
    half = np.array(room.size_m[:2]) / 2
    assert np.isclose(half - np.abs(corners[:, :2]), 0.008, atol=1e-9).any(axis=1).all()
    assert np.ptp(corners[:, 2]) == pytest.approx(6 * 0.08)


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="no room 'castle'"):
        build_room(1, "castle")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="between 0 and 1"):
        build_room(1, contrast=2.0)
