"""MPS tables: Synorama's readers against pandas, projectaria-tools and pyarrow alone.

    python bench/mps_readers.py [--rows 300000]

Prints the CPU seconds that each needs to give numpy arrays of a closed loop trajectory, of a
semi-dense point cloud and of its observations, as ratios to Synorama's; and the peak memory of
Synorama's. Each runs in a process of its own, since peak memory is that of a process. The tables
are made up, with the number of digits of real ones; 300,000 rows are five minutes of poses.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from synorama.capture.mps import mps_tracks
from synorama.capture.mps.schema import CLOSED_LOOP, GEO, OBSERVATIONS, POINTS, Schema

UID = "ea7288b8-b6a0-012d-8156-257aba6bd796"
SERIAL = "0072510f1b2100050300001812090001"


# --- made-up tables ----------------------------------------------------------------------------


def write_table(path: Path, schema: Schema, rows: int, more: tuple[str, ...] = ()) -> Path:
    """Write a table in pieces; numbers have six decimals as the vendor's."""
    fields = [*schema.required, *(f for g in schema.optional for f in g)]
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as out:
        out.write((",".join([*(f.column for f in fields), *more]) + "\n").encode())
        for start in range(0, rows, 20_000):
            count = min(20_000, rows - start)
            columns = [texts(f.role, f.column, start, count, rng) for f in fields]
            columns += [["0.000000"] * count for _ in more]
            lines = "\n".join(map(",".join, zip(*columns, strict=True)))
            out.write((lines + "\n").encode())
    return path


def texts(role: str, column: str, start: int, count: int, rng: np.random.Generator) -> list[str]:
    """Return one column of made-up text."""
    if role == "time":
        return [str(149_202_610 + 1000 * k) for k in range(start, start + count)]
    if role == "integer":
        return [str(k) for k in range(start, start + count)]
    if role == "text":
        return [SERIAL if column == "camera_serial" else UID] * count
    return [f"{number:.6f}" for number in rng.uniform(-3, 3, count)]


# --- readers -----------------------------------------------------------------------------------


def synorama_open(path: Path) -> None:
    """Index only: what opening a recording costs."""
    mps_tracks(path.parent)


def synorama(path: Path) -> None:
    """Index and read."""
    for track in mps_tracks(path.parent)[0]:
        track.read()  # type: ignore[union-attr]


def pandas(path: Path) -> None:
    """Read to arrays of numbers."""
    import pandas as pd  # type: ignore[import-untyped]

    pd.read_csv(path).select_dtypes("number").to_numpy()


def pyarrow(path: Path) -> None:
    """Read the whole table at once, in as many threads as there are cores."""
    from pyarrow import csv

    table = csv.read_csv(path)
    for column in table.columns:
        column.to_numpy()


def vendor(path: Path) -> None:
    """Read with projectaria-tools and gather its objects' numbers into arrays."""
    from projectaria_tools.core import mps

    name = path.name.split(".")[0]
    if name == "closed_loop_trajectory":
        poses = mps.read_closed_loop_trajectory(str(path))
        np.array([p.tracking_timestamp for p in poses], "m8[us]")
        np.array([p.transform_world_device.to_matrix() for p in poses])
        for what in ("device_linear_velocity_device", "angular_velocity_device", "gravity_world"):
            np.array([getattr(p, what) for p in poses])
    elif name == "semidense_points":
        points = mps.read_global_point_cloud(str(path))
        np.array([p.position_world for p in points])
        np.array([(p.inverse_distance_std, p.distance_std) for p in points])
    else:
        observations = mps.read_point_observations(str(path))
        np.array([o.frame_capture_timestamp for o in observations], "m8[us]")
        np.array([o.uv for o in observations])


def vendor_only(path: Path) -> None:
    """Read with projectaria-tools and leave its objects as they are."""
    from projectaria_tools.core import mps

    readers = {
        "closed_loop_trajectory": mps.read_closed_loop_trajectory,
        "semidense_points": mps.read_global_point_cloud,
        "semidense_observations": mps.read_point_observations,
    }
    readers[path.name.split(".")[0]](str(path))


READERS = (synorama, synorama_open, pyarrow, pandas, vendor_only, vendor)


# --- measuring ---------------------------------------------------------------------------------


def measure(reader: Callable[[Path], None], path: Path, answer: Any) -> None:
    """Run once to load libraries, then measure."""
    small = path.parent.parent / "warm" / path.name
    reader(small)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    reader(path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer.put((seconds, peak / 1024, before / 1024))


def in_own_process(reader: Callable[[Path], None], path: Path) -> tuple[float, float, float]:
    """Return CPU seconds, peak memory and memory before [MiB]."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=measure, args=(reader, path, answer))
    process.start()
    result: tuple[float, float, float] = answer.get()
    process.join()
    return result


def report(path: Path, rows: int) -> None:
    """Measure all readers on one table and print."""
    print(f"\n{path.name}: {rows:,} rows, {path.stat().st_size / 1e6:.1f} MB")
    base = 0.0
    for reader in READERS:
        seconds, peak, before = in_own_process(reader, path)
        base = base or seconds
        print(
            f"  {reader.__name__:14} {seconds:7.3f} s CPU  {seconds / base:6.2f} x   "
            f"peak {peak:6.0f} MiB, before {before:4.0f}"
        )


def main() -> None:
    """Make the tables and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=300_000)
    rows = parser.parse_args().rows
    tables: tuple[tuple[str, Schema, tuple[str, ...]], ...] = (
        ("closed_loop_trajectory.csv", CLOSED_LOOP, GEO),
        ("semidense_points.csv.gz", POINTS, ()),
        ("semidense_observations.csv.gz", OBSERVATIONS, ()),
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, schema, more in tables:
            write_table(Path(folder) / "warm" / name, schema, 100, more)
            path = write_table(Path(folder) / name.split(".")[0] / name, schema, rows, more)
            (Path(folder) / "warm" / name).parent.mkdir(exist_ok=True)
            report(path, rows)


if __name__ == "__main__":
    main()
