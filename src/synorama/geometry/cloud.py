"""Clouds in files: opened by content, read in blocks, down-sampled as they are read.

Points are float64 throughout and stand where the file says, with every pose that the file holds
applied: coordinates of a map (millions of metres) lose nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from synorama.errors import (
    CloudUnitError,
    EmptyCloudError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    UnknownFormatError,
    UsageError,
)
from synorama.geometry.voxels import VoxelGrid
from synorama.records import PointCloud
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = [
    "BLOCK",
    "SUFFIXES",
    "UNITS_M",
    "Blocks",
    "CloudFile",
    "ScanPicture",
    "ScanPose",
    "check_size",
    "open_cloud",
    "read_cloud",
    "unit_in_m",
]

BLOCK = 1_000_000
"""Points that are read at once."""

SUFFIXES = (".e57", ".las", ".laz", ".ptx", ".ply", ".pcd", ".xyz", ".pts", ".asc", ".txt")
UNITS_M = {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": 0.3048, "in": 0.0254}
LARGEST_M = 20_000.0

Blocks: TypeAlias = Callable[[int], Iterator[PointCloud]]
"""``blocks(size)`` reads a file from its beginning, at most so many points at once."""


@dataclass(frozen=True, slots=True)
class ScanPose:
    """One of the scans of a file: its name, its points, where it was made.

    ``T_file_scan`` is None where the file holds no pose: then the points stand as they are.
    """

    name: str
    points: int
    T_file_scan: RigidTransform | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScanPicture:
    """A picture of a file: what kind, from where, and how to get its bytes.

    Parameters
    ----------
    name
        As the file names it.
    kind
        ``spherical``: x looks into the middle of the picture, z is up. ``pinhole``: looks along
        -z, y is up, x to the right. ``cylindrical``: as spherical. ``visual``: to look at only.
    T_file_camera
        From the picture's camera to the file's frame, or None where the file holds no pose.
    width, height
        Size [px].
    pixel_size
        Width and height of a pixel: [rad] spherical, [m] on the sensor for a pinhole.
    focal_m, principal_px
        Of a pinhole: focal length [m] on the sensor, principal point from the upper left [px].
    coding
        ``jpeg`` or ``png``.
    read
        Returns the coded bytes.
    scan
        Name of the scan that it belongs to, or empty.
    """

    name: str
    kind: Literal["spherical", "pinhole", "cylindrical", "visual"]
    T_file_camera: RigidTransform | None
    width: int
    height: int
    coding: Literal["jpeg", "png"]
    read: Callable[[], bytes]
    pixel_size: tuple[float, float] | None = None
    focal_m: float | None = None
    principal_px: tuple[float, float] | None = None
    scan: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CloudFile:
    """A file of points, opened but not read.

    Parameters
    ----------
    count
        Points, invalid ones among them; None where only reading tells.
    unit_m
        Metres of its unit where format or file says so, else None.
    blocks
        Yields its points in the file's frame and unit: finite, valid, poses applied.
    """

    path: Path
    format: str
    count: int | None
    blocks: Blocks
    unit_m: float | None = None
    scans: tuple[ScanPose, ...] = ()
    pictures: tuple[ScanPicture, ...] = ()


def open_cloud(path: Path) -> CloudFile:
    """Open a file of points; what it is follows from its first bytes, then from its name.

    Raises
    ------
    InputNotFoundError, InputUnreadableError, EmptyFileError
        There is nothing to read.
    UnknownFormatError
        No reader recognises it.
    CorruptFileError
        It claims a format and breaks it.
    """
    head = _head(path)
    if not head:
        raise EmptyFileError("the file is empty", path=path, hint="export the scan again")
    return _opener(path, head)(path)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(512)
    except FileNotFoundError as error:
        raise InputNotFoundError("there is no such file", path=path) from error
    except OSError as error:
        raise InputUnreadableError(f"cannot be read: {error.strerror}", path=path) from error


def _opener(path: Path, head: bytes) -> Callable[[Path], CloudFile]:
    from synorama.geometry import cloud_e57, cloud_las, cloud_pcd, cloud_ply, cloud_text

    if head.startswith(b"ASTM-E57"):
        return cloud_e57.open_e57
    if head.startswith(b"LASF"):
        return cloud_las.open_las
    if head.startswith(b"ply"):
        return cloud_ply.open_ply
    if b"VERSION" in head and b"FIELDS" in head:
        return cloud_pcd.open_pcd
    suffix = path.suffix.lower()
    if suffix == ".ptx":
        return cloud_text.open_ptx
    if suffix in (".xyz", ".pts", ".asc", ".txt"):
        return cloud_text.open_xyz
    raise UnknownFormatError(
        "this is no cloud that can be read, or its beginning is damaged",
        path=path,
        hint="give an E57, LAS, LAZ, PTX, PLY, PCD or XYZ file",
    )


def unit_in_m(name: str) -> float:
    """Return the metres of a unit: m, cm, mm, ft, in."""
    if name not in UNITS_M:
        raise UsageError(f"there is no unit '{name}'", hint=f"give one of {', '.join(UNITS_M)}")
    return UNITS_M[name]


def read_cloud(
    file: CloudFile,
    *,
    voxel_m: float,
    unit_m: float | None = None,
    frame: str = "scan",
    progress: Callable[[int, int], None] | None = None,
) -> PointCloud:
    """Read a whole cloud, down-sampled as it comes; memory is that of the result.

    Parameters
    ----------
    voxel_m
        Side of the cubes in which points are averaged [m].
    unit_m
        Metres of the file's unit; what the file says, else metres, by default.
    frame
        Name of the result's frame.
    progress
        Called with points read and their total.

    Raises
    ------
    EmptyCloudError
        No usable point.
    CloudUnitError
        The cloud is so large that it cannot be in that unit.
    CloudTooLargeError
        The result does not fit into memory.
    """
    scale = unit_m or file.unit_m or 1.0
    grid: VoxelGrid | None = None
    done = 0
    for block in filter(_any, file.blocks(BLOCK)):
        points = block.points_m * scale if scale != 1.0 else block.points_m
        if grid is None:
            grid = _grid(points, voxel_m, block.colours is not None)
        grid.add(points, block.colours)
        done += len(points)
        if progress:
            progress(done, max(done, file.count or 0))
    if grid is None or (means := grid.means())[0].size == 0:
        raise EmptyCloudError(
            "the file holds no usable point", path=file.path, hint="export the scan again"
        )
    return PointCloud(frame, means[0], colours=means[1])


def _any(block: PointCloud) -> bool:
    return len(block.points_m) > 0


def _grid(points: Float64, voxel_m: float, colours: bool) -> VoxelGrid:
    return VoxelGrid(voxel_m, np.floor(np.median(points, axis=0)), colours=colours)


def check_size(cloud: PointCloud, path: Path | None = None) -> None:
    """Refuse a cloud whose points span more than any place in which people are recorded.

    Raises
    ------
    CloudUnitError
        Half of the points span more than `LARGEST_M`.
    """
    low, high = np.quantile(cloud.points_m, (0.25, 0.75), axis=0)
    span = float((high - low).max())
    if span > LARGEST_M:
        raise CloudUnitError(
            f"half of the points span {span:.0f} m: this is not in metres",
            path=path,
            hint="give its unit, such as --source-unit mm",
        )
