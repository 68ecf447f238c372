"""Triangles of OBJ, PLY and STL files, from their bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import CorruptFileError, EmptyMeshError, UnknownFormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Triangles", "materials_named", "read_triangles", "textures_named"]

STL_HEAD, STL_ROW = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")])
PLY_KINDS = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip

PLY_PLACES = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """A surface in the units of its file.

    Parameters
    ----------
    corners
        ``(V, 3)`` places.
    faces
        ``(T, 3)`` int64 corners of each triangle, counter-clockwise from outside.
    uv
        ``(T, 3, 2)`` place of each face's corners in the texture, from its lower left; NaN where
        there is none.
    material
        ``(T,)`` name of each face's material, empty where there is none.
    """

    corners: Float64
    faces: Int64
    uv: Float64
    material: NDArray[np.str_]


def read_triangles(name: str, data: bytes) -> Triangles:
    """Read the triangles of a file.

    Parameters
    ----------
    name
        Of the file; its suffix tells the format.
    data
        Its bytes.

    Raises
    ------
    UnknownFormatError
        The suffix is none of ``.obj``, ``.ply``, ``.stl``.
    CorruptFileError
        The file breaks its format.
    EmptyMeshError
        It holds no triangle.
    """
    readers = {".obj": _obj, ".ply": _ply, ".stl": _stl}
    reader = readers.get(PurePosixPath(name).suffix.lower())
    if reader is None:
        raise UnknownFormatError(
            "objects are read from OBJ, PLY and STL files", path=name, hint="export it as OBJ"
        )
    try:
        found = reader(data)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise CorruptFileError(
            f"it breaks its format: {error}", path=name, hint="export the object again"
        ) from error
    if not len(found.faces):
        raise EmptyMeshError(
            "it holds no triangle: points alone are no object",
            path=name,
            hint="export the mesh, not the cloud",
        )
    _check(found, name)
    return found


def _check(found: Triangles, name: str) -> None:
    if found.faces.min() < 0 or found.faces.max() >= len(found.corners):
        raise CorruptFileError("a face names a corner that is not there", path=name)
    if not np.isfinite(found.corners).all():
        raise CorruptFileError("a corner has no finite place", path=name)


def _plain(corners: Float64, faces: Int64, uv: Float64 | None = None) -> Triangles:
    none = np.full((len(faces), 3, 2), np.nan) if uv is None else uv
    return Triangles(corners, faces, none, np.full(len(faces), ""))


# --- OBJ -------------------------------------------------------------------------------------


def materials_named(data: bytes) -> list[str]:
    """Return the material files that an OBJ file names."""
    found = re.findall(rb"^[ \t]*mtllib[ \t]+(.+?)[ \t\r]*$", data, re.MULTILINE)
    return [name.decode("utf-8", "replace") for name in found]


def textures_named(name: str, data: bytes) -> list[str]:
    """Return the textures that a material file, or a PLY file, names."""
    if name.lower().endswith(".ply"):
        head = data[: data.find(b"end_header")]
        found = re.findall(rb"^comment[ \t]+TextureFile[ \t]+(.+?)[ \t\r]*$", head, re.MULTILINE)
    else:
        found = re.findall(rb"^[ \t]*map_\w+[ \t]+(.+?)[ \t\r]*$", data, re.MULTILINE)
    return [_without_options(name.decode("utf-8", "replace")) for name in found]


def _without_options(text: str) -> str:
    """Return the name of a texture behind options such as ``-s 1 1 1``; names may hold spaces."""
    return re.sub(r"^(?:-\w+(?:[ \t]+(?:-?[\d.]+|on|off))*[ \t]+)+", "", text)


class _Obj:
    """An OBJ file as it is read line by line."""

    def __init__(self) -> None:
        self.corners: list[list[float]] = []
        self.places: list[list[float]] = []
        self.faces: list[tuple[int, int, int]] = []
        self.uv: list[tuple[int, int, int]] = []
        self.material: list[str] = []
        self.current = ""

    def read(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == "v":
            self.corners.append([float(v) for v in rest.split()[:3]])
        elif word == "vt":
            self.places.append([float(v) for v in [*rest.split(), "0"][:2]])
        elif word == "usemtl":
            self.current = rest.strip()
        elif word == "f":
            self._add_face(rest.split())

    def _add_face(self, names: list[str]) -> None:
        if len(names) < 3:
            raise ValueError("a face with fewer than three corners")
        pairs = [self._pair(name) for name in names]
        for k in range(1, len(pairs) - 1):
            fan = (pairs[0], pairs[k], pairs[k + 1])
            self.faces.append((fan[0][0], fan[1][0], fan[2][0]))
            self.uv.append((fan[0][1], fan[1][1], fan[2][1]))
            self.material.append(self.current)

    def _pair(self, name: str) -> tuple[int, int]:
        corner, *rest = name.split("/")
        place = rest[0] if rest else ""
        return _counted(corner, len(self.corners)), _counted(place, len(self.places))


def _counted(text: str, count: int) -> int:
    """Return an index from 0, of one that counts from 1 or, negative, from the end; -1: none."""
    number = int(text or 0)
    return number - 1 if number >= 0 else count + number


def _obj(data: bytes) -> Triangles:
    held = _Obj()
    for line in data.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
        held.read(line)
    places = np.array([*held.places, [np.nan, np.nan]]).reshape(-1, 2)
    index = np.array(held.uv, np.int64).reshape(-1, 3)
    if len(index) and index.max() >= len(held.places):
        raise ValueError("a face names a texture place that is not there")
    return Triangles(
        np.array(held.corners, np.float64).reshape(-1, 3),
        np.array(held.faces, np.int64).reshape(-1, 3),
        places[index],
        np.array(held.material, np.str_),
    )


# --- STL -------------------------------------------------------------------------------------


def _stl(data: bytes) -> Triangles:
    """Read an STL file; equal corners become one."""
    if data[:5].lower() == b"solid" and b"facet" in data[:2000]:
        soup = _stl_text(data)
    else:
        soup = _stl_binary(data)
    corners, back = np.unique(soup.reshape(-1, 3), axis=0, return_inverse=True)
    return _plain(corners, back.reshape(-1, 3).astype(np.int64))


def _stl_text(data: bytes) -> Float64:
    rows = re.findall(rb"^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)", data, re.MULTILINE)
    if len(rows) % 3 or b"endsolid" not in data[-400:]:
        raise ValueError("it ends within a facet")
    return np.array(rows, np.float64).reshape(-1, 3, 3)


def _stl_binary(data: bytes) -> Float64:
    if len(data) < STL_HEAD:
        if not data or data[:5].lower() == b"solid":
            return np.zeros((0, 3, 3))
        raise ValueError("it is shorter than its header")
    told = int(np.frombuffer(data[80:84], "<u4")[0])
    there = (len(data) - STL_HEAD) // STL_ROW.itemsize
    if told != there:
        raise ValueError(f"its header tells of {told} triangles, its bytes hold {there}")
    return np.frombuffer(data, STL_ROW, told, STL_HEAD)["corners"].astype(np.float64)


# --- PLY -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Element:
    name: str
    count: int
    columns: tuple[tuple[str, str, str], ...]  # name, kind, kind of a list's length or empty


def _ply(data: bytes) -> Triangles:
    form, elements, begin = _ply_head(data)
    take = _text_rows(data[begin:]) if form == "ascii" else _binary_rows(data, begin, form)
    found = {element.name: take(element) for element in elements}
    if "vertex" not in found:
        raise ValueError("it has no vertices")
    vertex = found["vertex"]
    corners = np.stack([np.array(vertex[a], np.float64) for a in "xyz"], axis=1).reshape(-1, 3)
    return _ply_triangles(corners, vertex, found.get("face", {}))


def _ply_triangles(
    corners: Float64, vertex: Mapping[str, list[object]], face: Mapping[str, list[object]]
) -> Triangles:
    rings = next((face[k] for k in ("vertex_indices", "vertex_index") if k in face), [])
    each = face.get("texcoord")
    at_corners = next((p for p in PLY_PLACES if p[0] in vertex), None)
    shared = None if at_corners is None else np.array([vertex[k] for k in at_corners], np.float64).T
    faces: list[NDArray[np.int64]] = []
    uv: list[Float64] = []
    for k, row in enumerate(rings):
        ring = np.asarray(row, np.int64)
        if len(ring) < 3:
            continue
        fan = np.stack([np.zeros(len(ring) - 2, int), *_steps(len(ring))], axis=1)
        faces.append(ring[fan])
        uv.append(_ply_uv(ring, fan, None if each is None else each[k], shared))
    if not faces:
        return _plain(corners, np.zeros((0, 3), np.int64))
    return _plain(corners, np.concatenate(faces), np.concatenate(uv))


def _steps(count: int) -> tuple[Int64, Int64]:
    return np.arange(1, count - 1), np.arange(2, count)


def _ply_uv(ring: Int64, fan: Int64, row: object, shared: Float64 | None) -> Float64:
    if row is not None:
        places = np.asarray(row, np.float64)
        if len(places) == 2 * len(ring):
            return np.asarray(places.reshape(-1, 2)[fan], np.float64)
    if shared is not None and ring.max() < len(shared) and ring.min() >= 0:
        return np.asarray(shared[ring[fan]], np.float64)
    return np.full((len(fan), 3, 2), np.nan)


def _ply_head(data: bytes) -> tuple[str, list[_Element], int]:
    end = data.find(b"end_header")
    if not data.startswith(b"ply") or end < 0:
        raise ValueError("it has no PLY header")
    begin = data.index(b"\n", end) + 1
    form, elements = "", list[_Element]()
    for line in data[:end].decode("latin-1").splitlines():
        words = line.split()
        if words[:1] == ["format"]:
            form = words[1]
        elif words[:1] == ["element"]:
            elements.append(_Element(words[1], int(words[2]), ()))
        elif words[:1] == ["property"]:
            column = (words[-1], words[-2], words[2] if words[1] == "list" else "")
            last = elements.pop()
            elements.append(_Element(last.name, last.count, (*last.columns, column)))
    if form not in ("ascii", "binary_little_endian", "binary_big_endian"):
        raise ValueError(f"its format '{form}' is none of PLY's")
    return form, elements, begin


Rows = Mapping[str, list[object]]


def _text_rows(data: bytes) -> Callable[[_Element], Rows]:
    """Read a row a line; what stands behind the last column is passed over, as others do."""
    lines = iter([line for line in data.split(b"\n") if line.strip()])

    def take(element: _Element) -> Rows:
        found: dict[str, list[object]] = {name: [] for name, _, _ in element.columns}
        for _ in range(element.count):
            words = next(lines, b"").split()
            at = 0
            for name, _, length in element.columns:
                count = int(words[at]) if length and at < len(words) else 1
                at += bool(length)
                if at + count > len(words):
                    raise ValueError(f"it ends among its {element.name} rows")
                values = [float(word) for word in words[at : at + count]]
                found[name].append(values if length else values[0])
                at += count
        return found

    return take


def _binary_rows(data: bytes, begin: int, form: str) -> Callable[[_Element], Rows]:
    order = "<" if form.endswith("little_endian") else ">"
    at = begin

    def take(element: _Element) -> Rows:
        nonlocal at
        if not any(length for _, _, length in element.columns):
            row = np.dtype([(n, order + PLY_KINDS[k]) for n, k, _ in element.columns])
            if at + element.count * row.itemsize > len(data):
                raise ValueError(f"it ends among its {element.name} rows")
            table = np.frombuffer(data, row, element.count, at)
            at += element.count * row.itemsize
            return {name: list(table[name]) for name, _, _ in element.columns}
        found: dict[str, list[object]] = {name: [] for name, _, _ in element.columns}
        for _ in range(element.count):
            for name, kind, length in element.columns:
                count = 1
                if length:
                    count = int(values(length, 1)[0])
                read = values(kind, count)
                found[name].append(read if length else read[0])
        return found

    def values(kind: str, count: int) -> NDArray[np.generic]:
        nonlocal at
        dtype = np.dtype(order + PLY_KINDS[kind])
        if at + count * dtype.itemsize > len(data):
            raise ValueError("it ends within a row")
        read = np.frombuffer(data, dtype, count, at)
        at += count * dtype.itemsize
        return read

    return take
