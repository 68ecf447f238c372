"""PLY, ascii and binary of either byte order, read in blocks of its vertices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from synorama.errors import CorruptFileError, EmptyCloudError, TruncatedFileError
from synorama.geometry.cloud import CloudFile
from synorama.geometry.tables import numbers, row_blocks
from synorama.records import PointCloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["open_ply"]

FILE = "file"
LONGEST_HEADER = 200  # lines
TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip
COLOURS = (("red", "green", "blue"), ("diffuse_red", "diffuse_green", "diffuse_blue"))
NORMALS = ("nx", "ny", "nz")


@dataclass(frozen=True, slots=True)
class _Header:
    """What the header says of the vertices: where they begin, how many, their properties."""

    coding: str
    begin: int
    count: int
    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def row(self) -> np.dtype[Any]:
        order = ">" if self.coding == "binary_big_endian" else "<"
        return np.dtype(list(zip(self.names, (order + t for t in self.types), strict=True)))


def open_ply(path: Path) -> CloudFile:
    """Open a PLY file; of a mesh its vertices count.

    Raises
    ------
    CorruptFileError
        The header breaks the format, or the file ends before its vertices do.
    EmptyCloudError
        It has no vertices.
    """
    with path.open("rb") as file:
        header = _header(file, path)
    if not header.count:
        raise EmptyCloudError("the PLY file has no points", path=path, hint="export it again")
    rows = header.count * header.row.itemsize
    if header.coding != "ascii" and path.stat().st_size < header.begin + rows:
        raise TruncatedFileError(
            f"the PLY file ends before its {header.count} points do",
            path=path,
            hint="copy it again, or export it again",
        )
    return CloudFile(path, "PLY", header.count, partial(_blocks, path, header))


def _header(file: BinaryIO, path: Path) -> _Header:
    coding = element = ""
    counts: dict[str, int] = {}
    properties: dict[str, list[tuple[str, str]]] = {}
    for line in islice(iter(file.readline, b""), LONGEST_HEADER):
        words = line.decode("latin-1").split()
        if words[:1] == ["end_header"]:
            break
        if words[:1] == ["format"] and len(words) > 1:
            coding = words[1]
        elif words[:1] == ["element"] and len(words) == 3 and words[2].isdigit():
            element = words[1]
            counts[element], properties[element] = int(words[2]), []
        elif words[:1] == ["property"] and element and len(words) >= 3:
            properties[element].append((words[-1], words[1]))
    else:
        raise _broken(path, "its header does not end")
    return _checked(path, coding, file.tell(), counts, properties)


def _checked(
    path: Path,
    coding: str,
    begin: int,
    counts: dict[str, int],
    properties: dict[str, list[tuple[str, str]]],
) -> _Header:
    if coding not in ("ascii", "binary_little_endian", "binary_big_endian"):
        raise _broken(path, f"its format '{coding}' is unknown")
    if "vertex" not in counts or next(iter(counts)) != "vertex":
        raise _broken(path, "its first element is not 'vertex'")
    names, types = zip(*properties["vertex"] or [("", "")], strict=True)
    if unknown := [t for t in types if t not in TYPES]:
        raise _broken(path, f"a property of its points has the type '{unknown[0]}'")
    if not {"x", "y", "z"}.issubset(names):
        raise _broken(path, "its points have no x, y, z")
    return _Header(coding, begin, counts["vertex"], names, tuple(TYPES[t] for t in types))


def _broken(path: Path, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"this is no PLY file of points: {what}", path=path, hint="export it again"
    )


def _blocks(path: Path, header: _Header, size: int) -> Iterator[PointCloud]:
    if header.coding == "ascii":
        yield from _text_blocks(path, header, size)
        return
    mapped = np.memmap(path, header.row, "r", header.begin, (header.count,))
    for first in range(0, header.count, size):
        table = mapped[first : first + size]
        yield _cloud({name: np.asarray(table[name]) for name in header.names})


def _text_blocks(path: Path, header: _Header, size: int) -> Iterator[PointCloud]:
    read = 0
    with path.open("rb") as file:
        file.seek(header.begin)
        for lines in row_blocks(file, size, header.count):
            table = numbers(lines, path, len(header.names))
            read += len(table)
            yield _cloud({name: table[:, k] for k, name in enumerate(header.names)})
    if read < header.count:
        raise TruncatedFileError(
            f"the PLY file ends after {read} of {header.count} points",
            path=path,
            hint="copy it again, or export it again",
        )


def _cloud(columns: dict[str, NDArray[Any]]) -> PointCloud:
    points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    good = np.isfinite(points).all(axis=1)
    colours = normals = None
    for names in COLOURS:
        if set(names).issubset(columns):
            shades = np.stack([columns[name][good] for name in names], axis=1)
            whole = 255.0 if shades.dtype.kind == "f" and shades.max(initial=0) <= 1.0 else 1.0
            colours = (shades * whole).clip(0, 255).astype(np.uint8)
    if set(NORMALS).issubset(columns):
        normals = np.stack([columns[name][good] for name in NORMALS], axis=1).astype(np.float32)
    return PointCloud(FILE, points[good], normals=normals, colours=colours)
