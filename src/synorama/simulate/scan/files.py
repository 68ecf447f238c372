"""Scans as files: E57 with poses and pictures, LAZ, and PLY."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.scan.scanner import Scan, ScanPicture, Station
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["write_e57", "write_laz", "write_ply"]

JPEG_QUALITY = 90
PIXEL_M = 4e-6  # of the sensor behind a pinhole; only its ratio to the focal length matters
INVALID = 2  # E57: the point has no meaning
LAZ_STEP_M = 1e-4
LAZ_POINT_FORMAT = 7  # with colour
COLOURS = ("Red", "Green", "Blue")


def write_e57(path: Path, scan: Scan) -> None:
    """Write stations with their poses, and pictures with theirs.

    A station's points stand in its own frame and its pose carries them to frame ``scan``. Points
    that did not come back are there, marked as invalid, where the scanner has a grid.
    """
    writer = _E57(path)
    for station in scan.stations:
        writer.add_station(station)
    for picture in scan.pictures:
        writer.add_picture(picture)
    writer.close()


class _E57:
    """An E57 file in the making, through the library's nodes: its identifiers are our own."""

    def __init__(self, path: Path) -> None:
        from pye57 import libe57

        self._lib = libe57
        self._file = libe57.ImageFile(str(path), "w")
        self._rng = randomness(0, "e57", path.stem)
        self._guids: dict[str, str] = {}
        root = self._file.root()
        self._file.extensionsAdd("", libe57.E57_V1_0_URI)
        self._fill(
            root,
            formatName="ASTM E57 3D Imaging Data File",
            guid=self._guid("file"),
            versionMajor=libe57.E57_FORMAT_MAJOR,
            versionMinor=libe57.E57_FORMAT_MINOR,
            e57LibraryVersion=libe57.E57_LIBRARY_ID,
            coordinateMetadata="",
        )
        self._stations = libe57.VectorNode(self._file, True)
        self._pictures = libe57.VectorNode(self._file, True)
        root.set("data3D", self._stations)
        root.set("images2D", self._pictures)

    def close(self) -> None:
        self._file.close()

    # --- stations ----------------------------------------------------------------------------

    def add_station(self, station: Station) -> None:
        node = self._lib.StructureNode(self._file)
        self._fill(node, guid=self._guid(station.name), name=station.name)
        node.set("pose", self._pose(station.scan_station))
        columns = _columns(station)
        self._bounds(node, station)
        points = self._lib.CompressedVectorNode(
            self._file, self._prototype(columns), self._lib.VectorNode(self._file, True)
        )
        node.set("points", points)
        self._stations.append(node)
        buffers = self._lib.VectorSourceDestBuffer()
        for name, values in columns.items():
            buffers.append(
                self._lib.SourceDestBuffer(self._file, name, values, len(values), True, True)
            )
        writer = points.writer(buffers)
        writer.write(len(station.points_m))
        writer.close()

    def _prototype(self, columns: dict[str, NDArray[Any]]) -> Any:
        lib = self._lib
        prototype = lib.StructureNode(self._file)
        for name, values in columns.items():
            low, high = values.min(initial=0).item(), values.max(initial=0).item()
            if name.startswith("color"):
                low, high = 0, 255
            if values.dtype.kind == "f":
                kind = lib.FloatNode(self._file, 0.0, lib.E57_SINGLE, low, high)
            else:
                kind = lib.IntegerNode(self._file, low, low, high)
            prototype.set(name, kind)
        return prototype

    def _bounds(self, node: Any, station: Station) -> None:
        seen = station.points_m[station.valid]
        places = station.scan_station.apply(seen, frame=station.name)
        box, colours, light = (self._lib.StructureNode(self._file) for _ in range(3))
        for k, axis in enumerate("xyz"):
            least, most = (float(f(places[:, k])) for f in (np.min, np.max))
            self._fill(box, **{f"{axis}Minimum": least, f"{axis}Maximum": most})
        for name in COLOURS:
            self._fill(colours, **{f"color{name}Minimum": 0, f"color{name}Maximum": 255})
        self._fill(light, intensityMinimum=0.0, intensityMaximum=1.0)
        node.set("cartesianBounds", box)
        node.set("colorLimits", colours)
        node.set("intensityLimits", light)

    # --- pictures ----------------------------------------------------------------------------

    def add_picture(self, picture: ScanPicture) -> None:
        lib = self._lib
        node, image = lib.StructureNode(self._file), lib.StructureNode(self._file)
        self._fill(
            node,
            guid=self._guid(picture.name),
            name=picture.name,
            associatedData3DGuid=self._guid(picture.station),
        )
        node.set("pose", self._pose(picture.scan_camera))
        data = _jpeg(picture)
        blob = lib.BlobNode(self._file, len(data))
        image.set("jpegImage", blob)
        self._fill(image, **_optics(picture))
        node.set(f"{picture.kind}Representation", image)
        self._pictures.append(node)
        blob.write(data, 0, len(data))

    # --- nodes -------------------------------------------------------------------------------

    def _pose(self, transform: RigidTransform) -> Any:
        pose, rotation, translation = (self._lib.StructureNode(self._file) for _ in range(3))
        w, x, y, z = transform.quat_wxyz.tolist()
        self._fill(rotation, w=w, x=x, y=y, z=z)
        x, y, z = transform.translation_m.tolist()
        self._fill(translation, x=x, y=y, z=z)
        pose.set("rotation", rotation)
        pose.set("translation", translation)
        return pose

    def _fill(self, node: Any, **values: str | int | float) -> None:
        kinds = {
            str: self._lib.StringNode, int: self._lib.IntegerNode, float: self._lib.FloatNode
        }  # fmt: skip
        for name, value in values.items():
            node.set(name, kinds[type(value)](self._file, value))

    def _guid(self, name: str) -> str:
        if name not in self._guids:
            self._guids[name] = f"{{{uuid.UUID(bytes=self._rng.bytes(16), version=4)}}}"
        return self._guids[name]


def _columns(station: Station) -> dict[str, NDArray[Any]]:
    """Return the fields of a station's points, each contiguous."""
    columns: dict[str, NDArray[Any]] = {
        f"cartesian{axis}": np.ascontiguousarray(station.points_m[:, k])
        for k, axis in enumerate("XYZ")
    }
    columns["intensity"] = station.intensity
    for k, name in enumerate(COLOURS):
        columns[f"color{name}"] = np.ascontiguousarray(station.colours[:, k])
    if station.row is not None and station.column is not None:
        columns["rowIndex"] = station.row.astype(np.uint16)  # no wider one is safe
        columns["columnIndex"] = station.column.astype(np.uint16)
        columns["cartesianInvalidState"] = np.where(station.valid, 0, INVALID).astype(np.int8)
    return columns


def _optics(picture: ScanPicture) -> dict[str, int | float]:
    height, width, _ = picture.pixels.shape
    size: dict[str, int | float] = {"imageWidth": width, "imageHeight": height}
    if picture.kind == "spherical":
        return {**size, "pixelWidth": 2 * np.pi / width, "pixelHeight": np.pi / height}
    return {
        **size,
        "focalLength": picture.focal_px * PIXEL_M,
        "pixelWidth": PIXEL_M,
        "pixelHeight": PIXEL_M,
        "principalPointX": (width - 1) / 2,
        "principalPointY": (height - 1) / 2,
    }


def _jpeg(picture: ScanPicture) -> bytes:
    import cv2

    quality = [int(cv2.IMWRITE_JPEG_QUALITY), JPEG_QUALITY]
    done, data = cv2.imencode(".jpg", np.ascontiguousarray(picture.pixels[..., ::-1]), quality)
    if not done:
        raise ValueError(f"the picture {picture.name} cannot be compressed")
    return data.tobytes()


def write_laz(path: Path, scan: Scan) -> None:
    """Write all points that came back, in frame ``scan``, to a tenth of a millimetre."""
    import laspy

    points = scan.points_m
    header = laspy.LasHeader(point_format=LAZ_POINT_FORMAT, version="1.4")
    header.scales = np.full(3, LAZ_STEP_M)
    header.offsets = np.floor(points.min(axis=0))
    header.creation_date = None
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = points.T
    cloud.red, cloud.green, cloud.blue = scan.colours.T.astype(np.uint16) * 257
    cloud.intensity = np.rint(scan.intensity * 65535).astype(np.uint16)
    cloud.point_source_id = scan.station_numbers
    cloud.write(str(path), do_compress=True)


def write_ply(path: Path, scan: Scan) -> None:
    """Write all points that came back, in frame ``scan``, as binary PLY with doubles."""
    points, colours = scan.points_m, scan.colours
    row = np.dtype([("xyz", "<f8", 3), ("rgb", "u1", 3)])
    table = np.empty(len(points), row)
    table["xyz"], table["rgb"] = points, colours
    kinds = [("double", axis) for axis in "xyz"] + [("uchar", c.lower()) for c in COLOURS]
    lines = [
        "ply", "format binary_little_endian 1.0", f"element vertex {len(points)}",
        *(f"property {kind} {name}" for kind, name in kinds), "end_header", "",
    ]  # fmt: skip
    with path.open("xb") as file:
        file.write("\n".join(lines).encode())
        file.write(table.tobytes())
