"""Objects: read right or refused with the reason, every byte kept, equal after a reload."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from synorama.errors import (
    CloudUnitError,
    CorruptFileError,
    EmptyFileError,
    EmptyMeshError,
    InputNotFoundError,
    MissingTextureError,
    UnknownFormatError,
)
from synorama.geometry.mesh_files import read_triangles, textures_named
from synorama.geometry.objects import (
    ObjectFile,
    parse_object,
    read_object,
    record_of,
    sampled,
    thumbnail,
)

CORNERS = [(x, y, z) for x in (0, 120) for y in (0, 80) for z in (0, 50)]
QUADS = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]


def box_obj(quads: Sequence[tuple[int, ...]] = QUADS, material: str = "") -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1"]
    lines += [f"mtllib {material}", "usemtl paint"] if material else []
    lines += ["f " + " ".join(f"{c}/{k + 1}" for k, c in enumerate(q)) for q in quads]
    return "\n".join(lines).encode()


@pytest.fixture
def textured(tmp_path: Path) -> Path:
    """A box of 12 by 8 by 5 cm in millimetres, whose texture has a space in its name."""
    (tmp_path / "box.obj").write_bytes(box_obj(material="my box.mtl"))
    (tmp_path / "my box.mtl").write_text("newmtl paint\nmap_Kd -s 1 1 1 top side.png\n")
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[:4] = (0, 0, 255)  # red above, blue below, as OpenCV orders colours
    picture[4:] = (255, 0, 0)
    cv2.imwrite(str(tmp_path / "top side.png"), picture)
    return tmp_path / "box.obj"


def test_a_box_is_read_whole(textured: Path) -> None:
    box = read_object(textured)
    assert box.unit == "mm"
    assert box.unit_recognised
    assert box.watertight
    assert box.textured
    np.testing.assert_allclose(box.size_m, (0.12, 0.08, 0.05))
    assert [f.name for f in box.files] == ["box.obj", "my box.mtl", "top side.png"]
    assert all(f.data == (textured.parent / f.name).read_bytes() for f in box.files)
    assert any("recognised" in note for note in box.notes)


def test_a_reload_from_its_bytes_is_equal(textured: Path) -> None:
    box = read_object(textured, unit="mm")
    again = parse_object(box.files, name=box.name, unit=box.unit)
    for one, two in ((box.mesh.corners, again.mesh.corners), (box.mesh.faces, again.mesh.faces)):
        assert np.array_equal(one, two)
    assert np.array_equal(box.mesh.uv, again.mesh.uv, equal_nan=True)
    assert thumbnail(box, 64) == thumbnail(again, 64)


def test_its_texture_is_where_it_was(textured: Path) -> None:
    places, normals, colours = sampled(read_object(textured), 4000)
    front = np.abs(normals[:, 0] + 1) < 1e-6  # its corners 1 2 4 3: z runs right, y runs up
    upper = places[front, 1] > 0.04
    assert (colours[front][upper] == (255, 0, 0)).all()
    assert (colours[front][~upper] == (0, 0, 255)).all()
    assert np.abs(np.linalg.norm(normals, axis=1) - 1).max() < 1e-9


def test_samples_are_even_by_area(textured: Path) -> None:
    _, normals, _ = sampled(read_object(textured), 60_000)
    share = np.abs(normals).mean(axis=0)
    areas = np.array([80 * 50, 120 * 50, 120 * 80])
    np.testing.assert_allclose(share, areas / areas.sum(), atol=0.01)


def test_a_hole_is_told(tmp_path: Path) -> None:
    path = tmp_path / "open.obj"
    path.write_bytes(box_obj(QUADS[:-1]))
    assert not read_object(path).watertight
    path.write_bytes(box_obj([*QUADS[:-1], QUADS[-1][::-1]]))
    assert not read_object(path).watertight  # one side turned inside out


def test_its_picture_shows_it_on_white(textured: Path) -> None:
    data = thumbnail(read_object(textured), 96)
    picture = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    assert picture.shape == (96, 96, 3)
    painted = picture.min(axis=2) < 250
    assert 0.1 < painted.mean() < 0.7
    assert not painted[0].any()
    assert not painted[:, 0].any()


def test_what_is_known_of_it_is_told(textured: Path) -> None:
    told = record_of(read_object(textured))
    assert (told.triangles, told.watertight, told.textured) == (12, True, True)
    sizes = [(textured.parent / file.name).stat().st_size for file in told.files]
    assert [file.bytes for file in told.files] == sizes
    assert told.place is None


@pytest.mark.parametrize(("factor", "unit"), [(1.0, "mm"), (0.001, "m")])
def test_the_unit_is_recognised(tmp_path: Path, factor: float, unit: str) -> None:
    path = tmp_path / "box.obj"
    lines = [f"v {x * factor} {y * factor} {z * factor}" for x, y, z in CORNERS]
    path.write_text("\n".join([*lines, "f 1 2 4 3"]))
    assert read_object(path).unit == unit


@pytest.mark.parametrize("factor", [0.1 / 120, 9.0 / 120, 60.0])
def test_a_size_that_tells_no_unit_is_asked_for(tmp_path: Path, factor: float) -> None:
    path = tmp_path / "box.obj"
    path.write_text(
        "\n".join([*(f"v {x * factor} {y * factor} 0" for x, y, _ in CORNERS), "f 1 3 5"])
    )
    if factor * 120 < 4:
        assert read_object(path).unit == "m"
        return
    if factor * 120 < 4000:
        assert read_object(path).unit == "mm"
        return
    with pytest.raises(CloudUnitError, match="largest side"):
        read_object(path)
    assert read_object(path, unit="mm").unit == "mm"


# --- what is refused -------------------------------------------------------------------------


def test_a_missing_texture_is_named(textured: Path) -> None:
    (textured.parent / "top side.png").unlink()
    with pytest.raises(MissingTextureError, match=r"top side\.png"):
        read_object(textured)
    (textured.parent / "my box.mtl").unlink()
    with pytest.raises(MissingTextureError, match=r"my box\.mtl"):
        read_object(textured)


def test_no_file_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.mtl").write_text("newmtl x")
    inner = tmp_path / "objects"
    inner.mkdir()
    (inner / "box.obj").write_bytes(box_obj(material="../secret.mtl"))
    with pytest.raises(MissingTextureError):
        read_object(inner / "box.obj")


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", CorruptFileError),
        ("a.obj", b"v 0 0 0\nv 1 0\nv 0 1 0\nf 1 2 3\n", CorruptFileError),
        ("a.obj", b"v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n", CorruptFileError),
        ("a.obj", b"v 0 0 0\nf 1 1\n", CorruptFileError),
        ("a.obj", b"# nothing\n", EmptyMeshError),
        ("a.stl", b"solid x\nendsolid x\n", EmptyMeshError),
        ("a.stl", b"\0" * 80 + b"\x05\0\0\0" + b"\0" * 50, CorruptFileError),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\n", CorruptFileError),
        ("a.fbx", b"x", UnknownFormatError),
    ],
)
def test_broken_files_are_refused(name: str, data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_triangles(name, data)


def test_what_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        read_object(tmp_path / "none.obj")
    (tmp_path / "empty.obj").write_bytes(b"")
    with pytest.raises(EmptyFileError):
        read_object(tmp_path / "empty.obj")


def test_binary_and_text_ply_and_stl_hold_the_same_box() -> None:
    box = read_triangles("a.obj", box_obj())
    soup = box.corners[box.faces]
    row = np.zeros(len(soup), [("n", "<f4", 3), ("c", "<f4", (3, 3)), ("t", "<u2")])
    row["c"] = soup
    stl = read_triangles("a.stl", b"\0" * 80 + len(soup).to_bytes(4, "little") + row.tobytes())
    columns = [f"property double {a}" for a in "xyz"]
    faces = ["element face 12", "property list uchar int vertex_indices", "end_header", ""]
    head = "\n".join(["ply", "format {}", "element vertex 8", *columns, *faces])
    text = head.format("ascii 1.0") + "".join(f"{x} {y} {z}\n" for x, y, z in box.corners)
    text += "".join(f"3 {a} {b} {c}\n" for a, b, c in box.faces)
    packed = head.format("binary_big_endian 1.0").encode() + box.corners.astype(">f8").tobytes()
    packed += b"".join(b"\x03" + f.astype(">i4").tobytes() for f in box.faces)
    for found in (stl, read_triangles("a.ply", text.encode()), read_triangles("a.ply", packed)):
        np.testing.assert_allclose(found.corners[found.faces], soup)
    with pytest.raises(CorruptFileError, match="ends"):
        read_triangles("a.ply", packed[:-3])
    with pytest.raises(CorruptFileError, match="ends"):
        read_triangles("a.ply", text[:-12].encode())


def test_texture_names_with_spaces_and_options() -> None:
    data = b"map_Kd -s 1 1 1 -bm 0.5 my long name.jpg\nmap_Ks  plain.png\r\n"
    assert textures_named("a.mtl", data) == ["my long name.jpg", "plain.png"]


# --- real files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "faces", "watertight", "textured"),
    [
        ("fuze.obj", 1000, True, True),
        ("fuze.ply", 1000, True, True),
        ("fuze_ascii.ply", 1000, True, True),
        ("capsule.obj", None, None, True),
        ("rabbit.obj", None, None, False),
        ("negative_indices.obj", 12, None, False),
        ("noimg.obj", None, None, False),
        ("featuretype.STL", 3476, None, False),
        ("BoxTextured.ply", 12, None, False),
        ("suzanne.ply", None, None, False),
        ("busted.STL", 3878, None, False),
    ],
)
def test_real_objects(
    shared_data: Path, name: str, faces: int | None, watertight: bool | None, textured: bool
) -> None:
    thing = read_object(shared_data / "5_scans/trimesh" / name, unit="mm")
    assert faces is None or len(thing.mesh.faces) == faces
    assert watertight is None or thing.watertight == watertight
    assert thing.textured == textured
    assert thing.files[0].data == (shared_data / "5_scans/trimesh" / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("empty.ply", EmptyMeshError),
        ("empty.stl", EmptyMeshError),
        ("points_emptyface.ply", EmptyMeshError),
    ],
)
def test_real_files_that_are_no_objects(
    shared_data: Path, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read_object(shared_data / "5_scans/trimesh" / name, unit="mm")


def test_a_real_text_stl(shared_data: Path) -> None:
    with zipfile.ZipFile(shared_data / "5_scans/trimesh/ascii.stl.zip") as held:
        name = next(n for n in held.namelist() if n.lower().endswith(".stl"))
        thing = parse_object([ObjectFile("a.stl", held.read(name))], name="a", unit="mm")
    assert len(thing.mesh.faces) > 10
