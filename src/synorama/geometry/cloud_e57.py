"""E57 (ASTM E2807): several scans with poses, Cartesian or spherical, and pictures with theirs.

Read through libE57 node by node, in blocks; every page that is read is held to its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from synorama.errors import CorruptFileError, EmptyCloudError
from synorama.geometry.cloud import CloudFile, ScanPicture, ScanPose
from synorama.records import PointCloud
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Bool = NDArray[np.bool_]

__all__ = ["open_e57"]

FILE = "file"
CARTESIAN = ("cartesianX", "cartesianY", "cartesianZ")
SPHERICAL = ("sphericalRange", "sphericalAzimuth", "sphericalElevation")
COLOURS = ("colorRed", "colorGreen", "colorBlue")
INVALID = ("cartesianInvalidState", "sphericalInvalidState")
KINDS = ("spherical", "pinhole", "cylindrical", "visualReference")


def open_e57(path: Path) -> CloudFile:
    """Open an E57 file.

    Raises
    ------
    CorruptFileError
        A checksum or the file's own description is wrong.
    EmptyCloudError
        It holds no scan, or scans without points.
    """
    with _opened(path) as file:
        root = file.root()
        scans = tuple(_scan(node, k) for k, node in enumerate(_children(root, "data3D")))
        named = zip(_children(root, "data3D"), scans, strict=True)
        guids = {_text(n, "guid"): scan.name for n, scan in named}
        found = [
            _picture(path, node, k, guids) for k, node in enumerate(_children(root, "images2D"))
        ]
    count = sum(scan.points for scan in scans)
    pictures = tuple(picture for picture in found if picture is not None)
    if not count and not pictures:
        raise EmptyCloudError(
            "the E57 file holds no points", path=path, hint="export the scan again"
        )
    return CloudFile(path, "E57", count, partial(_blocks, path), 1.0, scans, pictures)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Yield the file's nodes; what libE57 finds wrong is a `CorruptFileError`."""
    from pye57 import libe57

    file = None
    try:
        file = libe57.ImageFile(str(path), "r")
        yield file
    except (libe57.E57Exception, RuntimeError) as error:
        raise CorruptFileError(
            f"the E57 file is damaged: {_reason(error)}",
            path=path,
            hint="copy it again from the scanner, or export it again",
        ) from error
    finally:
        if file is not None:
            file.close()


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# --- nodes -----------------------------------------------------------------------------------


def _children(root: Any, name: str) -> list[Any]:
    if not root.isDefined(name):
        return []
    vector = root[name]
    return [vector[k] for k in range(vector.childCount())]


def _number(node: Any, name: str, default: float = 0.0) -> float:
    return float(node[name].value()) if node.isDefined(name) else default


def _text(node: Any, name: str) -> str:
    return str(node[name].value()) if node.isDefined(name) else ""


def _pose(node: Any, name: str) -> RigidTransform | None:
    """Return the pose of a scan or picture; either half may be missing, quaternions be unscaled."""
    if not node.isDefined("pose"):
        return None
    pose = node["pose"]
    quat, shift = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
    if pose.isDefined("rotation"):
        quat = np.array([_number(pose["rotation"], axis) for axis in "wxyz"])
    if pose.isDefined("translation"):
        shift = np.array([_number(pose["translation"], axis) for axis in "xyz"])
    length = float(np.linalg.norm(quat))
    if not np.isfinite(length) or length < 1e-6 or not np.isfinite(shift).all():
        return None
    return RigidTransform.from_quat_wxyz(FILE, name, quat / length, shift)


def _scan(node: Any, number: int) -> ScanPose:
    name = _text(node, "name") or f"scan-{number + 1}"
    points = int(node["points"].childCount()) if node.isDefined("points") else 0
    return ScanPose(name, points, _pose(node, name))


# --- points ----------------------------------------------------------------------------------


def _blocks(path: Path, size: int) -> Iterator[PointCloud]:
    with _opened(path) as file:
        for number, node in enumerate(_children(file.root(), "data3D")):
            if node.isDefined("points") and node["points"].childCount():
                yield from _blocks_of(file, node, _scan(node, number), size)


def _blocks_of(file: Any, node: Any, scan: ScanPose, size: int) -> Iterator[PointCloud]:
    from pye57 import libe57

    points = node["points"]
    buffers, columns = libe57.VectorSourceDestBuffer(), _columns(points)
    held: dict[str, NDArray[Any]] = {
        name: np.empty(min(size, scan.points), kind) for name, kind in columns.items()
    }
    for name, array in held.items():
        buffers.append(libe57.SourceDestBuffer(file, name, array, len(array), True, True))
    reader = points.reader(buffers)
    limits = _colour_limits(node)
    while count := reader.read():
        block = {name: array[:count] for name, array in held.items()}
        yield _placed(block, scan, limits)
    reader.close()


def _columns(points: Any) -> dict[str, type]:
    """Return which of a scan's fields are read, and as what."""
    from pye57 import libe57

    prototype = libe57.StructureNode(points.prototype())
    there = {name for name in (*CARTESIAN, *SPHERICAL, *COLOURS, *INVALID)
             if prototype.isDefined(name)}  # fmt: skip
    places = CARTESIAN if there.issuperset(CARTESIAN) else SPHERICAL
    if not there.issuperset(places):
        raise RuntimeError("a scan has neither Cartesian nor spherical coordinates")
    columns: dict[str, type] = dict.fromkeys(places, np.float64)
    if there.issuperset(COLOURS):
        columns |= dict.fromkeys(COLOURS, np.float64)
    state = INVALID[0] if places is CARTESIAN else INVALID[1]
    return columns | ({state: np.int8} if state in there else {})


def _colour_limits(node: Any) -> tuple[float, float]:
    """Return the values of black and white."""
    if not node.isDefined("colorLimits"):
        return 0.0, 255.0
    limits = node["colorLimits"]
    low, high = _number(limits, "colorRedMinimum"), _number(limits, "colorRedMaximum", 255.0)
    return (low, high) if high > low else (0.0, 255.0)


def _placed(
    block: dict[str, NDArray[Any]], scan: ScanPose, limits: tuple[float, float]
) -> PointCloud:
    """Return the valid points of a block in the file's frame."""
    good = _valid(block)
    if CARTESIAN[0] in block:
        points = np.stack([block[name] for name in CARTESIAN], axis=1)
    else:
        points = _from_spherical(*(block[name] for name in SPHERICAL))
    if not good.all():  # where nothing is left out a copy would take a tenth of the time
        points = points[good]
    if scan.T_file_scan is not None:
        points = scan.T_file_scan.apply(points, frame=scan.T_file_scan.source)
    colours = None
    if COLOURS[0] in block:
        low, high = limits
        shades = np.stack([block[name][good] for name in COLOURS], axis=1)
        colours = np.rint((shades - low) * (255.0 / (high - low))).clip(0, 255).astype(np.uint8)
    return PointCloud(FILE, points, colours=colours)


def _valid(block: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which points are finite, and came back."""
    first, second, third = (block[name] for name in (*CARTESIAN, *SPHERICAL) if name in block)
    # Eight times as fast as asking each.
    good: NDArray[np.bool_] = np.isfinite(first + second + third)
    for name in INVALID:
        if name in block:
            good &= block[name] == 0
    return good


def _from_spherical(reach: Float64, azimuth: Float64, elevation: Float64) -> Float64:
    flat = reach * np.cos(elevation)
    x, y = flat * np.cos(azimuth), flat * np.sin(azimuth)
    return np.stack([x, y, reach * np.sin(elevation)], axis=1)


# --- pictures --------------------------------------------------------------------------------


def _picture(path: Path, node: Any, number: int, guids: dict[str, str]) -> ScanPicture | None:
    """Return a picture of which the file holds bytes, else None."""
    kind = next((k for k in KINDS if node.isDefined(f"{k}Representation")), None)
    if kind is None:
        return None
    image = node[f"{kind}Representation"]
    coding = next((c for c in ("jpeg", "png") if image.isDefined(f"{c}Image")), None)
    if coding is None:
        return None
    name = _text(node, "name") or f"picture-{number + 1}"
    seen = "visual" if kind == "visualReference" else kind
    pixel = _number(image, "pixelWidth"), _number(image, "pixelHeight")
    principal = _number(image, "principalPointX"), _number(image, "principalPointY")
    return ScanPicture(
        name=name,
        kind=cast('Literal["spherical", "pinhole", "cylindrical", "visual"]', seen),
        T_file_camera=_pose(node, name),
        width=int(_number(image, "imageWidth")),
        height=int(_number(image, "imageHeight")),
        coding=cast('Literal["jpeg", "png"]', coding),
        read=partial(_picture_bytes, path, number, kind, coding),
        pixel_size=pixel if pixel[0] > 0 else None,
        focal_m=_number(image, "focalLength") or None,
        principal_px=principal if kind == "pinhole" else None,
        scan=guids.get(_text(node, "associatedData3DGuid"), ""),
    )


def _picture_bytes(path: Path, number: int, kind: str, coding: str) -> bytes:
    with _opened(path) as file:
        image = _children(file.root(), "images2D")[number][f"{kind}Representation"]
        blob = image[f"{coding}Image"]
        held = np.empty(blob.byteCount(), np.uint8)
        blob.read(held, 0, len(held))
        return held.tobytes()
