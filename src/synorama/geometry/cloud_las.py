"""LAS and LAZ of all versions, and COPC, which is LAZ: read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import CorruptFileError, EmptyCloudError, MissingDependencyError
from synorama.geometry.cloud import CloudFile
from synorama.records import PointCloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["open_las"]

FILE = "file"
COLOURS = ("red", "green", "blue")


def open_las(path: Path) -> CloudFile:
    """Open a LAS or LAZ file.

    Raises
    ------
    CorruptFileError
        Its header or its points break the format.
    EmptyCloudError
        It holds no points.
    """
    with _opened(path) as reader:
        count = int(reader.header.point_count)
    if not count:
        raise EmptyCloudError(
            "the LAS file holds no points", path=path, hint="export the scan again"
        )
    kind = "LAZ" if path.suffix.lower() == ".laz" else "LAS"
    return CloudFile(path, kind, count, partial(_blocks, path))


def _opened(path: Path) -> Any:
    import laspy

    try:
        return laspy.open(path)
    except (laspy.LaspyException, ValueError, OverflowError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> Exception:
    if "backend" in str(error).lower():
        return MissingDependencyError(
            "reading LAZ needs a library that is missing", path=path, hint="pip install lazrs"
        )
    return CorruptFileError(
        f"the LAS file is damaged: {error}", path=path, hint="copy it again, or export it again"
    )


def _blocks(path: Path, size: int) -> Iterator[PointCloud]:
    with _opened(path) as reader:
        parts = reader.chunk_iterator(size)
        read = 0
        while (block := _next(parts, path)) is not None:
            read += len(block)
            yield _cloud(block)
        if read < reader.header.point_count:
            raise CorruptFileError(
                f"the LAS file ends after {read} of {reader.header.point_count} points",
                path=path,
                hint="copy it again, or export it again",
            )


def _next(parts: Iterator[Any], path: Path) -> Any | None:
    import laspy
    from lazrs import LazrsError

    try:
        return next(parts, None)
    except (laspy.LaspyException, LazrsError, ValueError, OSError) as error:
        raise _damaged(path, error) from error


def _cloud(block: Any) -> PointCloud:
    points = np.stack([np.asarray(getattr(block, axis), np.float64) for axis in "xyz"], axis=1)
    good = np.asarray(np.isfinite(points).all(axis=1), np.bool_)
    if "withheld" in block.point_format.dimension_names:
        good &= ~np.asarray(block.withheld, np.bool_)
    return PointCloud(FILE, points[good], colours=_colours(block, good))


def _colours(block: Any, good: NDArray[np.bool_]) -> NDArray[np.uint8] | None:
    if not set(COLOURS).issubset(block.point_format.dimension_names):
        return None
    shades = np.stack([np.asarray(block[name])[good] for name in COLOURS], axis=1)
    # 16 bits are meant, and many programs write 8.
    deep = shades.size and int(shades.max()) > 255
    return (shades >> 8 if deep else shades).astype(np.uint8)
