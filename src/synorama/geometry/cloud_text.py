"""PTX (grids of a scanner with their poses) and plain rows of coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from synorama.errors import CorruptFileError, EmptyCloudError, TruncatedFileError
from synorama.geometry.cloud import CloudFile, ScanPose
from synorama.geometry.tables import SEPARATORS, numbers, row_blocks
from synorama.records import PointCloud
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["open_ptx", "open_xyz"]

FILE = "file"
BLOCK_LINES = 300_000  # of text, so that its words fit into memory
PTX_LINES = (1, 1, 3, 3, 3, 3, 4, 4, 4, 4)  # numbers in each line of a PTX header
ROTATION_OFF = 1e-3


# --- PTX -------------------------------------------------------------------------------------


def open_ptx(path: Path) -> CloudFile:
    """Open a PTX file: one or several grids, each with its pose.

    Raises
    ------
    CorruptFileError
        A header breaks the format, or a grid ends early.
    """
    with path.open("rb") as file:
        first = _ptx_header(file, path, 1)
    if first is None:
        raise EmptyCloudError("the PTX file holds no scan", path=path, hint="export it again")
    return CloudFile(path, "PTX", None, partial(_ptx_blocks, path), None, (first,))


def _ptx_header(file: BinaryIO, path: Path, number: int) -> ScanPose | None:
    """Read a grid's header: its size, the scanner's place, and its matrix by columns."""
    rows: list[Float64] = []
    for wanted in PTX_LINES:
        line = file.readline()
        if not line.strip() and not rows:
            return None
        rows.append(numbers([line], path, wanted))
        if len(rows[-1]) != 1:
            raise CorruptFileError("the PTX header is incomplete", path=path, hint="export again")
    count = int(rows[0][0, 0]) * int(rows[1][0, 0])
    matrix = np.concatenate(rows[6:]).T
    name = f"scan-{number}"
    return ScanPose(name, count, _near_rigid(matrix, name, path))


def _near_rigid(matrix: Float64, name: str, path: Path) -> RigidTransform:
    """Return a matrix of few digits as the rotation nearest to it."""
    u, scale, v = np.linalg.svd(matrix[:3, :3])
    if np.abs(scale - 1.0).max() > ROTATION_OFF or np.linalg.det(u @ v) < 0:
        raise CorruptFileError(
            "the pose in the PTX header scales or mirrors", path=path, hint="export it again"
        )
    rigid = np.eye(4)
    rigid[:3, :3], rigid[:3, 3] = u @ v, matrix[:3, 3]
    return RigidTransform(FILE, name, rigid)


def _ptx_blocks(path: Path, size: int) -> Iterator[PointCloud]:
    with path.open("rb") as file:
        number = 1
        while (scan := _ptx_header(file, path, number)) is not None:
            yield from _ptx_scan(file, path, scan, min(size, BLOCK_LINES))
            number += 1


def _ptx_scan(file: BinaryIO, path: Path, scan: ScanPose, size: int) -> Iterator[PointCloud]:
    columns = read = 0
    for lines in row_blocks(file, size, scan.points):
        columns = columns or len(lines[0].split())
        table = numbers(lines, path, columns)
        read += len(table)
        there = np.isfinite(table[:, :3]).all(axis=1) & (table[:, :3] != 0).any(axis=1)
        pose = scan.T_file_scan or RigidTransform.identity(FILE)
        points = pose.apply(table[there, :3], frame=pose.source)
        colours = table[there, 4:7].clip(0, 255).astype(np.uint8) if columns >= 7 else None
        yield PointCloud(FILE, points, colours=colours)
    if read < scan.points:
        raise TruncatedFileError(
            f"the PTX file ends after {read} of {scan.points} points of {scan.name}",
            path=path,
            hint="copy it again, or export it again",
        )


# --- rows of coordinates ---------------------------------------------------------------------


def open_xyz(path: Path) -> CloudFile:
    """Open rows of ``x y z`` and more, parted by blanks, commas or semicolons.

    Lines before the first row of three or more numbers are taken for a heading.

    Raises
    ------
    CorruptFileError
        No such row among the first lines.
    """
    with path.open("rb") as file:
        heading, columns = _heading(file, path)
    return CloudFile(path, "XYZ", None, partial(_xyz_blocks, path, heading, columns))


def _heading(file: BinaryIO, path: Path) -> tuple[int, int]:
    """Return how many lines the heading has, and how many numbers a row."""
    for number, line in enumerate(line for line, _ in zip(file, range(20), strict=False)):
        words = line.translate(SEPARATORS).split()
        if len(words) >= 3 and all(map(_is_number, words)):
            return number, len(words)
    raise CorruptFileError(
        "this text holds no rows of coordinates", path=path, hint="give rows of x y z"
    )


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _xyz_blocks(path: Path, heading: int, columns: int, size: int) -> Iterator[PointCloud]:
    with path.open("rb") as file:
        for _ in range(heading):
            file.readline()
        for lines in row_blocks(file, min(size, BLOCK_LINES)):
            points = numbers(lines, path, columns)[:, :3]
            yield PointCloud(FILE, points[np.isfinite(points).all(axis=1)])
