"""Reading and down-sampling big scans: points a CPU second, peak memory, beside Open3D.

    python -m bench.geometry_streaming --points 20000000

The scan is one of the product's own rooms, repeated with fresh noise of 2 mm, in random order
within blocks, written as E57 (single precision), LAS and, for Open3D, PLY.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.geometry.rooms import make_pair

from bench.measuring import run_case
from synorama.geometry.cloud import open_cloud, read_cloud

MODULE = "bench.geometry_streaming"
HERE = Path(__file__).resolve().parent
HEAD = """| what | points | cubes of 1 cm | M points a CPU s | peak MB |
|---|---|---|---|---|
"""
CASES = (("ours", "scan.e57"), ("ours", "scan.las"), ("open3d", "scan.ply"))
VOXEL_M = 0.01
BLOCK = 1_000_000


def _blocks(points: int) -> Any:
    room = make_pair("normal", 5, points=BLOCK, tracked=1000, seconds=5.0).scan.points_m
    rng = np.random.default_rng(0)
    for first in range(0, points, BLOCK):
        some = room[rng.permutation(len(room))[: min(BLOCK, points - first)]]
        yield some + rng.normal(0, 0.002, some.shape)


def make(folder: Path, points: int) -> None:
    """Write the scan in all formats."""
    import laspy

    header = laspy.LasHeader(point_format=0, version="1.2")
    header.scales = np.full(3, 1e-4)
    everything = np.concatenate(list(_blocks(points)))
    header.offsets = np.floor(everything.min(axis=0))
    cloud = laspy.LasData(header)
    cloud.x, cloud.y, cloud.z = everything.T
    cloud.write(str(folder / "scan.las"))
    _write_e57(folder / "scan.e57", everything.astype(np.float32))
    head = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(everything)}\n"
        "property float x\nproperty float y\nproperty float z\nend_header\n"
    )
    (folder / "scan.ply").write_bytes(head.encode() + everything.astype("<f4").tobytes())


def _write_e57(path: Path, points: Any) -> None:
    from pye57 import libe57

    file = libe57.ImageFile(str(path), "w")
    data, node = libe57.VectorNode(file, True), libe57.StructureNode(file)
    file.root().set("data3D", data)
    data.append(node)
    prototype = libe57.StructureNode(file)
    for axis in "XYZ":
        kind = libe57.FloatNode(file, 0.0, libe57.E57_SINGLE, -1e6, 1e6)
        prototype.set(f"cartesian{axis}", kind)
    vector = libe57.CompressedVectorNode(file, prototype, libe57.VectorNode(file, True))
    node.set("points", vector)
    buffers = libe57.VectorSourceDestBuffer()
    columns = [np.ascontiguousarray(column) for column in points.T]  # the buffers do not keep them
    for axis, column in zip("XYZ", columns, strict=True):
        buffers.append(
            libe57.SourceDestBuffer(file, f"cartesian{axis}", column, len(column), True, True)
        )
    writer = vector.writer(buffers)
    writer.write(len(points))
    writer.close()
    file.close()


def _case(case: str, path: Path) -> None:
    began = time.process_time()
    if case == "open3d":
        import open3d

        began = time.process_time()
        cloud = open3d.io.read_point_cloud(path)
        count, left = len(cloud.points), len(cloud.voxel_down_sample(VOXEL_M).points)
    else:
        file = open_cloud(path)
        count, left = file.count or 0, len(read_cloud(file, voxel_m=VOXEL_M).points_m)
    print(json.dumps({"points": count, "left": left, "cpu_s": time.process_time() - began}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=20_000_000)
    parser.add_argument("--case", nargs=2)
    parser.add_argument("--write", action="store_true", help="keep the table in bench/results")
    asked = parser.parse_args()
    if asked.case:
        _run(asked.case[0], Path(asked.case[1]), asked.points)
        return
    with tempfile.TemporaryDirectory() as made:
        run_case(MODULE, "make", made, "--points", asked.points)  # this process stays small
        table = HEAD + "".join(_line(case, Path(made) / name) for case, name in CASES)
    print(table)
    if asked.write:
        made_by = f"Made by `python -m bench.geometry_streaming --points {asked.points} --write`."
        page = f"# Big scans, read and averaged in cubes of a centimetre\n\n{made_by}\n\n{table}"
        (HERE / "results" / "geometry_streaming.md").write_text(page, "utf-8")


def _run(case: str, path: Path, points: int) -> None:
    if case == "make":
        make(path, points)
    else:
        _case(case, path)


def _line(case: str, path: Path) -> str:
    used = run_case(MODULE, case, path)
    told = used.said
    speed = told["points"] / told["cpu_s"] / 1e6
    size = f"{told['points'] / 1e6:.0f} M | {told['left']}"
    return f"| {case} {path.name} | {size} | {speed:.2f} | {used.peak_mb:.0f} |\n"


if __name__ == "__main__":
    main()
