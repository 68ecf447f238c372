"""PCD of the Point Cloud Library: ascii and binary in blocks, compressed at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from synorama.errors import (
    CorruptFileError,
    EmptyCloudError,
    MissingDependencyError,
    TruncatedFileError,
)
from synorama.geometry.cloud import CloudFile
from synorama.geometry.tables import numbers, row_blocks
from synorama.records import PointCloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["open_pcd"]

FILE = "file"
LONGEST_HEADER = 40  # lines


@dataclass(frozen=True, slots=True)
class _Header:
    coding: str
    begin: int
    count: int
    names: tuple[str, ...]
    row: np.dtype[Any]


def open_pcd(path: Path) -> CloudFile:
    """Open a PCD file.

    Raises
    ------
    CorruptFileError
        The header breaks the format, or the file ends before its points do.
    EmptyCloudError
        It holds no points.
    """
    with path.open("rb") as file:
        header = _header(file, path)
    if not header.count:
        raise EmptyCloudError("the PCD file holds no points", path=path, hint="export it again")
    size = header.begin + header.count * header.row.itemsize
    if header.coding == "binary" and path.stat().st_size < size:
        raise TruncatedFileError(
            f"the PCD file ends before its {header.count} points do",
            path=path,
            hint="copy it again, or export it again",
        )
    return CloudFile(path, "PCD", header.count, partial(_blocks, path, header))


def _header(file: BinaryIO, path: Path) -> _Header:
    told: dict[str, list[str]] = {}
    for _ in range(LONGEST_HEADER):
        words = file.readline().decode("latin-1").split()
        if words and not words[0].startswith("#"):
            told[words[0].upper()] = words[1:]
        if words[:1] == ["DATA"]:
            break
    try:
        return _parsed(told, file.tell())
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise CorruptFileError(
            f"the header of the PCD file is broken: {error}", path=path, hint="export it again"
        ) from error


def _parsed(told: dict[str, list[str]], begin: int) -> _Header:
    names, sizes, kinds = told["FIELDS"], told["SIZE"], told["TYPE"]
    repeats = [int(n) for n in told.get("COUNT", ["1"] * len(names))]
    coding = told["DATA"][0]
    if coding not in ("ascii", "binary", "binary_compressed"):
        raise ValueError(f"its coding '{coding}' is unknown")
    if not {"x", "y", "z"}.issubset(names):
        raise ValueError("its points have no x, y, z")
    fields = [
        (f"{name}-{k}" if name == "_" else name, f"<{kind.lower()}{size}", (many,))
        for k, (name, kind, size, many) in enumerate(zip(names, kinds, sizes, repeats, strict=True))
    ]
    row = np.dtype(fields)
    columns = [f"{name}-{k}" if k else name for name, _, (n,) in fields for k in range(n)]
    return _Header(coding, begin, int(told["POINTS"][0]), tuple(columns), row)


def _blocks(path: Path, header: _Header, size: int) -> Iterator[PointCloud]:
    if header.coding == "ascii":
        yield from _text_blocks(path, header, size)
    elif header.coding == "binary":
        mapped = np.memmap(path, header.row, "r", header.begin, (header.count,))
        for first in range(0, header.count, size):
            table = mapped[first : first + size]
            yield _cloud([np.asarray(table[axis])[:, 0] for axis in "xyz"])
    else:
        yield _unpacked(path)


def _text_blocks(path: Path, header: _Header, size: int) -> Iterator[PointCloud]:
    places = [header.names.index(axis) for axis in "xyz"]
    read = 0
    with path.open("rb") as file:
        file.seek(header.begin)
        for lines in row_blocks(file, size, header.count):
            table = numbers(lines, path, len(header.names))
            read += len(table)
            yield _cloud([table[:, k] for k in places])
    if read < header.count:
        raise TruncatedFileError(
            f"the PCD file ends after {read} of {header.count} points",
            path=path,
            hint="copy it again, or export it again",
        )


def _unpacked(path: Path) -> PointCloud:
    """Read a compressed file with Open3D, which holds all of it at once."""
    try:
        import open3d
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            "reading compressed PCD needs Open3D, which does not load here",
            path=path,
            hint="install open3d and libEGL, or save the file as binary PCD, PLY or LAS",
        ) from error
    points = np.asarray(open3d.io.read_point_cloud(path).points)
    if not len(points):
        raise CorruptFileError("the PCD file cannot be unpacked", path=path, hint="export it again")
    return _cloud(list(points.T))


def _cloud(columns: list[NDArray[Any]]) -> PointCloud:
    points = np.stack([c.astype(np.float64) for c in columns], axis=1)
    return PointCloud(FILE, points[np.isfinite(points).all(axis=1)])
