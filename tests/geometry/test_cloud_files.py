"""Clouds in files: what one of them says, all must say; damage is told; nothing is lost."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.errors import (
    CloudTooLargeError,
    CorruptFileError,
    EmptyCloudError,
    EmptyFileError,
    InputNotFoundError,
    TruncatedFileError,
    UnknownFormatError,
)
from synorama.geometry.cloud import open_cloud, read_cloud
from synorama.geometry.voxels import VoxelGrid, voxel_down
from synorama.simulate.scan.files import write_e57, write_laz, write_ply
from synorama.simulate.scan.scanner import Scan, ScanOptions, make_scan
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.surface import room_surface

Float64 = NDArray[np.float64]


def _all_points(path: Path) -> Float64:
    return np.concatenate([block.points_m for block in open_cloud(path).blocks(10_000)])


@pytest.fixture(scope="module")
def scan() -> Scan:
    room = build_room(4, "kitchen")
    options = ScanOptions(points=30_000, utm=True, panorama_px=64)
    return make_scan(room, room_surface(room, "scan", texture_px=32), 4, options)


# --- files that we make ----------------------------------------------------------------------


def test_e57_applies_the_poses_of_its_scans_and_leaves_out_what_did_not_come_back(
    scan: Scan, tmp_path: Path
) -> None:
    write_e57(tmp_path / "room.e57", scan)
    file = open_cloud(tmp_path / "room.e57")
    assert [s.points for s in file.scans] == [len(s.points_m) for s in scan.stations]
    points = _all_points(file.path)
    assert len(points) == len(scan.points_m) < (file.count or 0)
    assert np.abs(points - scan.points_m).max() < 1e-6  # millions of metres from the origin
    assert file.unit_m == 1.0


def test_e57_lists_its_pictures_with_their_poses(scan: Scan, tmp_path: Path) -> None:
    write_e57(tmp_path / "room.e57", scan)
    pictures = open_cloud(tmp_path / "room.e57").pictures
    assert {p.name: p.kind for p in pictures} == {p.name: p.kind for p in scan.pictures}
    for found, made in zip(pictures, scan.pictures, strict=True):
        assert found.T_file_camera is not None
        np.testing.assert_allclose(
            found.T_file_camera.matrix, made.scan_camera.matrix, atol=1e-8, rtol=1e-12
        )
        assert (found.height, found.width) == made.pixels.shape[:2]
        assert found.read().startswith(b"\xff\xd8")
        assert found.scan == made.station
        if made.kind == "pinhole":
            assert found.focal_m is not None
            assert found.pixel_size is not None
            assert found.focal_m / found.pixel_size[0] == pytest.approx(made.focal_px)


def test_laz_and_ply_say_the_same(scan: Scan, tmp_path: Path) -> None:
    write_laz(tmp_path / "room.laz", scan)
    write_ply(tmp_path / "room.ply", scan)
    assert np.abs(_all_points(tmp_path / "room.laz") - scan.points_m).max() < 1.01e-4
    assert np.abs(_all_points(tmp_path / "room.ply") - scan.points_m).max() == 0.0
    for name in ("room.laz", "room.ply"):
        block = next(open_cloud(tmp_path / name).blocks(1000))
        np.testing.assert_array_equal(block.colours, scan.colours[:1000])


def test_spherical_e57(tmp_path: Path) -> None:
    from pye57 import libe57

    path = tmp_path / "s.e57"
    points = np.random.default_rng(0).uniform(-5, 5, (500, 3))
    reach = np.linalg.norm(points, axis=1)
    fields = {
        "sphericalRange": reach,
        "sphericalAzimuth": np.arctan2(points[:, 1], points[:, 0]),
        "sphericalElevation": np.arcsin(points[:, 2] / reach),
    }
    file = libe57.ImageFile(str(path), "w")
    data, node = libe57.VectorNode(file, True), libe57.StructureNode(file)
    file.root().set("data3D", data)
    data.append(node)
    prototype = libe57.StructureNode(file)
    for name in fields:
        prototype.set(name, libe57.FloatNode(file, 0.0, libe57.E57_DOUBLE, -1e9, 1e9))
    vector = libe57.CompressedVectorNode(file, prototype, libe57.VectorNode(file, True))
    node.set("points", vector)
    buffers = libe57.VectorSourceDestBuffer()
    for name, values in fields.items():
        buffers.append(libe57.SourceDestBuffer(file, name, values, len(values), True, True))
    writer = vector.writer(buffers)
    writer.write(500)
    writer.close()
    file.close()
    np.testing.assert_allclose(_all_points(path), points, atol=1e-12)


def test_ptx_applies_the_pose_of_each_grid(tmp_path: Path) -> None:
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    shift = np.array([5.0e5, 5.4e6, 300.0])
    grids = []
    for k in range(2):
        local = np.array([[1.0, 2, 3], [0, 0, 0], [4, 5, 6 + k]])
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = turn, shift + k
        lines = ["3", "1", "0 0 0", "1 0 0", "0 1 0", "0 0 1"]
        lines += [" ".join(map(repr, map(float, column))) for column in matrix.T]
        lines += [f"{x} {y} {z} 0.5 10 20 30" for x, y, z in local]
        grids.append("\n".join(lines))
    (tmp_path / "g.ptx").write_text("\n".join(grids) + "\n")
    points = _all_points(tmp_path / "g.ptx")
    expected = [turn @ [1, 2, 3] + shift, turn @ [4, 5, 6] + shift]
    expected += [turn @ [1, 2, 3] + shift + 1, turn @ [4, 5, 7] + shift + 1]
    np.testing.assert_allclose(points, expected, atol=1e-9)


@pytest.mark.parametrize("coding", ["ascii", "binary"])
def test_pcd(coding: str, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(0, 3, (40, 3)).astype(np.float32)
    points[7] = np.nan
    head = (
        "VERSION 0.7\nFIELDS x y z _ i\nSIZE 4 4 4 1 4\nTYPE F F F U F\nCOUNT 1 1 1 4 1\n"
        f"WIDTH 40\nHEIGHT 1\nPOINTS 40\nDATA {coding}\n"
    )
    if coding == "ascii":
        rows = "".join(f"{x:.9g} {y:.9g} {z:.9g} 0 0 0 0 1\n" for x, y, z in points)
        (tmp_path / "p.pcd").write_text(head + rows)
    else:
        packed = b"".join(struct.pack("<3f4Bf", *p, 0, 0, 0, 0, 1.0) for p in points)
        (tmp_path / "p.pcd").write_bytes(head.encode() + packed)
    np.testing.assert_allclose(_all_points(tmp_path / "p.pcd"), np.delete(points, 7, 0), rtol=1e-6)


def test_big_endian_ply_with_a_face_element(tmp_path: Path) -> None:
    points = np.arange(12.0).reshape(4, 3)
    head = (
        "ply\nformat binary_big_endian 1.0\ncomment a b\nelement vertex 4\nproperty double x\n"
        "property double y\nproperty double z\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    tail = points.astype(">f8").tobytes() + b"\x03" + struct.pack(">3i", 0, 1, 2)
    (tmp_path / "m.ply").write_bytes(head.encode() + tail)
    np.testing.assert_array_equal(_all_points(tmp_path / "m.ply"), points)


@pytest.mark.parametrize(
    "text",
    ["x y z\n1 2 3\n4 5 6\n", "1,2,3,9\n4,5,6,9\n", "1;2;3\n\n4;5;6", "# a\n2\n1 2 3\n4 5 6\n"],
)
def test_rows_of_coordinates(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text(text)
    np.testing.assert_array_equal(_all_points(tmp_path / "a.xyz"), [[1, 2, 3], [4, 5, 6]])


# --- down-sampling ---------------------------------------------------------------------------


def test_means_of_cubes_do_not_depend_on_order_or_blocks() -> None:
    rng = np.random.default_rng(3)
    points = np.array([5.0e5, 5.4e6, 300.0]) + rng.uniform(-3, 3, (20_000, 3))
    cells, place = np.unique(np.floor(points / 0.25), axis=0, return_inverse=True)
    sums = np.zeros((len(cells), 3))
    np.add.at(sums, place.ravel(), points - points[0])
    expected = sums / np.bincount(place.ravel())[:, np.newaxis] + points[0]
    grid = VoxelGrid(0.25, np.floor(points[0]))
    for part in np.array_split(rng.permutation(points), 7):
        grid.add(part)
    found, _ = grid.means()
    assert len(found) == len(expected)
    assert np.abs(np.sort(found, axis=0) - np.sort(expected, axis=0)).max() < 1e-6


def test_what_is_not_finite_or_kilometres_away_is_left_out_and_counted() -> None:
    grid = VoxelGrid(0.001, np.zeros(3))
    grid.add(np.array([[0.0, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0], [2000.0, 0, 0]]))
    assert grid.means()[0].tolist() == [[0.0, 0.0, 0.0]]
    assert grid.left_out == 3


def test_a_cloud_without_points_stays_so() -> None:
    assert voxel_down(np.zeros((0, 3)), 0.1).shape == (0, 3)


def test_too_many_cubes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synorama.geometry.voxels.MOST_VOXELS", 1000)
    grid = VoxelGrid(0.01, np.zeros(3))
    grid.add(np.random.default_rng(0).uniform(0, 100, (5000, 3)))
    with pytest.raises(CloudTooLargeError, match="cubes"):
        grid.means()


# --- damage ----------------------------------------------------------------------------------


def test_every_kind_of_file_says_when_it_was_cut(scan: Scan, tmp_path: Path) -> None:
    write_e57(tmp_path / "room.e57", scan)
    write_laz(tmp_path / "room.laz", scan)
    write_ply(tmp_path / "room.ply", scan)
    for name in ("room.e57", "room.laz", "room.ply"):
        data = (tmp_path / name).read_bytes()
        cut = tmp_path / f"cut-{name}"
        cut.write_bytes(data[: len(data) * 2 // 3])
        with pytest.raises(CorruptFileError):
            _all_points(cut)


def test_a_flipped_bit_in_an_e57_is_told(scan: Scan, tmp_path: Path) -> None:
    write_e57(tmp_path / "room.e57", scan)
    data = bytearray((tmp_path / "room.e57").read_bytes())
    data[20_000] ^= 1
    (tmp_path / "bad.e57").write_bytes(data)
    with pytest.raises(CorruptFileError, match="checksum"):
        _all_points(tmp_path / "bad.e57")


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.e57", b"", EmptyFileError),
        ("a.obj2", b"hello", UnknownFormatError),
        ("a.e57", b"hello", UnknownFormatError),
        ("a.e57", b"ASTM-E57" + bytes(600), CorruptFileError),
        ("a.las", b"LASF" + bytes(600), CorruptFileError),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\n"
         b"property float z\nend_header\n", EmptyCloudError),
        ("a.ply", b"ply\nformat ascii 1.0\n", CorruptFileError),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"
         b"property float z\nend_header\n1 2 3\n", TruncatedFileError),
        ("a.ptx", b"2\n1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n2 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n",
         CorruptFileError),
        ("a.ptx", b"2\n1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n1 2 3 4",
         TruncatedFileError),
        ("a.xyz", b"hello\nworld\n", CorruptFileError),
        ("a.xyz", b"1 2 3\n4 5\n", CorruptFileError),
    ],
)  # fmt: skip
def test_what_is_no_cloud_is_refused(
    name: str, data: bytes, error: type[Exception], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error):
        _all_points(tmp_path / name)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        open_cloud(tmp_path / "none.e57")


def test_a_file_of_nothing_but_nan_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("1 2 3\n".replace("1 2 3", "nan nan nan") * 3)
    with pytest.raises(EmptyCloudError):
        read_cloud(open_cloud(tmp_path / "a.xyz"), voxel_m=0.01)


# --- real files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count", "middle"),
    [
        ("pye57/pumpAVisualReferenceImage.e57", 155_201, (-0.48, -2.64, -0.95)),
        ("pye57/translationWithoutRotation.e57", 4, (4.5, 5.5, 6.0)),
        ("libE57Format-test-data/3rdParty/las2e57/ColourRepresentation.e57", 153, (0, 0, 0)),
        ("libE57Format-test-data/self/ColouredCubeFloat.e57", 7_680, (-0.01, 0.0, 0.0)),
        ("laspy/simple.las", 1_065, (637_296.7, 851_249.5, 434.1)),
        ("laspy/simple.copc.laz", 1_065, (637_296.7, 851_249.5, 434.1)),
        ("pdal/1.2-with-color.ptx", 1_065, (637_296.7, 851_249.5, 434.1)),
        ("trimesh/points_agisoft.xyz", 100, (665_183.8, 5_648_350.4, 242.5)),
        ("trimesh/fuze_ascii.ply", 502, (0.0, 0.0, 0.09)),
        ("small_gicp/source.ply", 69_792, (0.3, -1.2, -0.7)),
    ],
)
def test_real_files(name: str, count: int, middle: tuple[float, ...], shared_data: Path) -> None:
    points = _all_points(shared_data / "5_scans" / name)
    assert len(points) == count
    np.testing.assert_allclose(points.mean(axis=0), middle, atol=0.6)


def test_utm_coordinates_keep_their_millimetres(shared_data: Path) -> None:
    import laspy

    path = shared_data / "5_scans" / "pdal" / "lone-star.laz"
    points = _all_points(path)
    las = laspy.read(path)
    raw = np.stack([las.X, las.Y, las.Z], axis=1).astype(np.float64)
    exact = raw * las.header.scales + las.header.offsets
    assert np.abs(points - exact).max() < 1e-8
    cloud = read_cloud(open_cloud(path), voxel_m=1e-3).points_m
    assert len(cloud) == len(np.unique(raw, axis=0))  # each point alone in its cube
    assert np.abs(np.sort(cloud[:, 1]) - np.sort(exact[:, 1])).max() < 2e-7


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bad-crc.e57", CorruptFileError),
        ("empty.e57", EmptyCloudError),
        ("ZeroPoints.e57", EmptyCloudError),
        ("ZeroPointsInvalid.e57", EmptyCloudError),
        ("InvalidCVHeader.e57", EmptyCloudError),
    ],
)
def test_real_corner_cases_are_refused(
    name: str, error: type[Exception], shared_data: Path
) -> None:
    path = shared_data / "5_scans" / "libE57Format-test-data" / "self" / name
    with pytest.raises(error):
        read_cloud(open_cloud(path), voxel_m=0.01)


def test_real_pictures_are_listed_and_come_out(shared_data: Path) -> None:
    folder = shared_data / "5_scans"
    (picture,) = open_cloud(folder / "pye57" / "pumpAVisualReferenceImage.e57").pictures
    assert (picture.kind, picture.width, picture.height) == ("visual", 3072, 2304)
    assert picture.T_file_camera is None
    assert picture.read().startswith(b"\xff\xd8")
    name = "PinholeImageWithDistortionParameters.e57"
    pinholes = open_cloud(folder / "libE57Format-test-data" / "self" / name).pictures
    assert [p.kind for p in pinholes] == ["pinhole"] * 3
