"""Scanned objects: files read by independent readers, poses against the room."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.simulate.scan.objects import ObjectTruth, choose_objects, write_objects
from tests.simulate.lab import O3D, SEED, distance_m, lab

Float64 = NDArray[np.float64]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[ObjectTruth, ...]:
    folder = tmp_path_factory.mktemp("objects")
    return write_objects(folder, choose_objects(lab().room, SEED), lab().session.atlas)


def _file(truth: ObjectTruth, suffix: str) -> Path:
    return next(path for path in truth.files if path.suffix == suffix)


def _corners(path: Path) -> Float64:
    mesh = O3D.io.read_triangle_mesh(path)
    corners: Float64 = np.asarray(mesh.vertices)[np.asarray(mesh.triangles)]
    return corners


def test_things_that_moved_come_first_and_are_of_different_kinds() -> None:
    things = choose_objects(lab().room, SEED)
    assert len({thing.kind for thing in things}) == len(things) == 5
    moved = [thing.moved for thing in things]
    assert moved[0]
    assert moved == sorted(moved, reverse=True)


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".stl"])
def test_meshes_placed_by_the_truth_lie_in_the_room(
    written: tuple[ObjectTruth, ...], suffix: str
) -> None:
    for truth in written:
        corners = _corners(_file(truth, suffix))
        thing = lab().room[truth.name].mesh
        expected = thing.vertices[thing.triangles]
        if suffix != ".stl":  # open3d joins corners of STL, in an order of its own
            assert len(corners) == len(expected)
        low, high = corners.reshape(-1, 3).min(axis=0), corners.reshape(-1, 3).max(axis=0)
        assert np.allclose([low, high], thing.bounds_m, atol=2e-6)
        places = truth.world_session.apply(corners.mean(axis=1), frame=truth.name)
        assert distance_m(places, "session").max() < 1e-4


def test_obj_shows_the_textures_of_the_room_the_right_way_up(
    written: tuple[ObjectTruth, ...],
) -> None:
    """Colours looked up through OBJ, MTL and PNG are those of the room's own textures."""
    atlas = lab().session.atlas
    for truth in written:
        mesh = O3D.io.read_triangle_mesh(_file(truth, ".obj"))
        uv = np.asarray(mesh.triangle_uvs).reshape(-1, 3, 2)
        textures = _textures(_file(truth, ".mtl"))
        unused = len(mesh.textures) - len(textures)  # open3d may put a look of its own first
        material = np.asarray(mesh.triangle_material_ids) - unused
        thing = lab().room[truth.name].mesh
        corners = np.asarray(mesh.vertices)[np.asarray(mesh.triangles)]
        order = _matching(corners, thing.vertices[thing.triangles])
        middle = thing.uv[order].mean(axis=1)
        expected = atlas.sample(thing.tile[order], middle, np.ones(len(order)))
        for k, texture in enumerate(textures):
            mine = material == k
            if not mine.any():
                continue
            side = len(texture)
            place = uv[mine].mean(axis=1)
            x = np.clip((place[:, 0] % 1.0) * side, 0, side - 1).astype(int)
            y = np.clip(((1.0 - place[:, 1]) % 1.0) * side, 0, side - 1).astype(int)
            shown = (texture[y, x] / 255.0) ** 2.2 * 255.0
            assert np.median(np.abs(shown - expected[mine])) < 12, truth.name


def _matching(corners: Float64, expected: Float64) -> NDArray[np.int64]:
    """Return for each triangle which of the expected it is."""
    gaps = np.linalg.norm(corners.mean(axis=1)[:, None] - expected.mean(axis=1)[None], axis=2)
    return np.asarray(gaps.argmin(axis=1))


def _textures(mtl: Path) -> list[NDArray[np.uint8]]:
    names = [line.split()[1] for line in mtl.read_text().splitlines() if "map_Kd" in line]
    return [np.asarray(cv2.imread(str(mtl.parent / name)))[..., ::-1] for name in names]


def test_ply_has_colours(written: tuple[ObjectTruth, ...]) -> None:
    for truth in written:
        mesh = O3D.io.read_triangle_mesh(_file(truth, ".ply"))
        assert mesh.has_vertex_colors()
        assert np.asarray(mesh.vertex_colors).std() > 0.01


def test_the_truth_says_where_it_stood_at_the_scan_too(written: tuple[ObjectTruth, ...]) -> None:
    first = written[0]
    assert not np.allclose(first.world_scan.matrix, first.world_session.matrix)
    assert first.as_json()["files"][0] == f"{first.name}.obj"
