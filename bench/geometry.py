"""Registration beside Open3D, small_gicp and KISS-Matcher, on the same rooms.

    python -m bench.geometry --seeds 5 --first-seed 200 --journal FOLDER

Every pair and method is a line of the journal as soon as it is measured: run the same command again
to go on. The bars of our own are in ``bench/acceptance/registration.py``. KISS-Matcher and
small_gicp are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tests.geometry.rooms import KINDS, Pair, PairKind, cached_pair, errors

from bench.accept import wilson
from bench.acceptance.registration import CACHE, FOUND_M, FOUND_RAD, attempt
from bench.multi_scale import as_open3d, clouds, multi_scale

HERE = Path(__file__).resolve().parent

Float64: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Callable[[Pair], Float64 | None]

FEATURE_VOXEL_M = 0.08
TRIES = 3


def ours(pair: Pair) -> Float64 | None:
    there = attempt(pair).T_target_source
    return None if there is None else there.matrix


def _inverse(T: Any) -> Float64:
    return np.asarray(np.linalg.inv(T), np.float64)


def _ransac(pair: Pair) -> Float64:
    """Return FPFH and RANSAC, best fitness of three, glasses' points onto the scan."""
    import open3d

    reg: Any = open3d.pipelines.registration
    scan, points = (as_open3d(p).voxel_down_sample(FEATURE_VOXEL_M) for p in clouds(pair))
    features = []
    for cloud in (scan, points):
        cloud.estimate_normals(
            open3d.geometry.KDTreeSearchParamHybrid(radius=2 * FEATURE_VOXEL_M, max_nn=30)
        )
        around = open3d.geometry.KDTreeSearchParamHybrid(radius=5 * FEATURE_VOXEL_M, max_nn=100)
        features.append(reg.compute_fpfh_feature(cloud, around))
    reach = 1.5 * FEATURE_VOXEL_M
    found = [
        reg.registration_ransac_based_on_feature_matching(
            points, scan, features[1], features[0], True, reach,
            reg.TransformationEstimationPointToPoint(False), 3,
            [reg.CorrespondenceCheckerBasedOnEdgeLength(0.9),
             reg.CorrespondenceCheckerBasedOnDistance(reach)],
            reg.RANSACConvergenceCriteria(100_000, 0.999),
        )
        for _ in range(TRIES)
    ]  # fmt: skip
    return np.asarray(max(found, key=lambda r: r.fitness).transformation, np.float64)


def open3d_ransac(pair: Pair) -> Float64:
    return _inverse(multi_scale(pair, _ransac(pair)))


def open3d_from_truth(pair: Pair) -> Float64:
    """Give Open3D's fine stage the truth to start from: the best that it can do."""
    return _inverse(multi_scale(pair, _inverse(pair.truth)))


def small_gicp_after_ransac(pair: Pair) -> Float64:
    import small_gicp

    scan, points = clouds(pair)
    aligned = small_gicp.align(
        scan, points, init_T_target_source=_ransac(pair), registration_type="GICP",
        downsampling_resolution=0.05, max_correspondence_distance=0.3, num_threads=1,
    )  # fmt: skip
    return _inverse(aligned.T_target_source)


def kiss_matcher(pair: Pair) -> Float64:
    import kiss_matcher as kiss

    scan, points = clouds(pair)
    matcher = kiss.KISSMatcher(kiss.KISSMatcherConfig(FEATURE_VOXEL_M))
    small = [as_open3d(p).voxel_down_sample(FEATURE_VOXEL_M) for p in (points, scan)]
    source, target = (np.asarray(c.points, np.float32) for c in small)
    found = matcher.estimate(source, target)
    start = np.eye(4)
    start[:3, :3], start[:3, 3] = np.asarray(found.rotation), np.asarray(found.translation).ravel()
    return _inverse(multi_scale(pair, start))


METHODS: Mapping[str, tuple[Method, str]] = {
    "ours": (ours, "scipy"),
    "Open3D FPFH + RANSAC, best of 3, then multi-scale": (open3d_ransac, "open3d"),
    "the same RANSAC, then small_gicp": (small_gicp_after_ransac, "small_gicp"),
    "KISS-Matcher, then Open3D multi-scale": (kiss_matcher, "kiss_matcher"),
    "Open3D multi-scale from the truth": (open3d_from_truth, "open3d"),
}


def measure(kind: PairKind, seed: int, name: str) -> dict[str, Any]:
    """Return one line of the journal."""
    pair = cached_pair(CACHE, kind, seed)
    began = time.process_time()
    found = METHODS[name][0](pair)
    row = {"kind": kind, "seed": seed, "method": name, "cpu_s": time.process_time() - began}
    if found is None:
        return row | {"found": False}
    turn, off = errors(pair, found)
    right = bool(turn < FOUND_RAD and off < FOUND_M)
    return row | {"found": right, "mm": 1e3 * off, "deg": float(np.degrees(turn))}


def _table(rows: Iterable[Mapping[str, Any]]) -> str:
    rows = list(rows)
    lines = ["| method | room | found | mm | degrees | CPU s |", "|---|---|---|---|---|---|"]
    for name in METHODS:
        for kind in KINDS:
            some = [r for r in rows if r["method"] == name and r["kind"] == kind]
            if some:
                lines.append(_line(name, kind, some))
    return "\n".join(lines) + "\n"


def _line(name: str, kind: str, rows: list[Mapping[str, Any]]) -> str:
    right = [r for r in rows if r["found"]]
    low, high = wilson(len(right), len(rows))
    found = f"{len(right)}/{len(rows)} ({100 * low:.0f} to {100 * high:.0f} %)"
    off, turn = (
        f"{np.median([r[k] for r in right]):.{d}f}" if right else "-"
        for k, d in (("mm", 1), ("deg", 2))
    )
    cpu = np.median([r["cpu_s"] for r in rows])
    return f"| {name} | {kind} | {found} | {off} | {turn} | {cpu:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--journal", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--write", action="store_true", help="keep the table in bench/results")
    asked = parser.parse_args()
    path = asked.journal / "geometry.jsonl"
    rows = (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if (path.is_file())
        else []
    )
    done = {(r["kind"], r["seed"], r["method"]) for r in rows}
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        for kind in KINDS:
            for name in asked.methods:
                if (kind, seed, name) in done or not importlib.util.find_spec(METHODS[name][1]):
                    continue
                rows.append(measure(kind, seed, name))
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(rows[-1], file=sys.stderr, flush=True)
    table = _table(rows)
    print(table)
    if asked.write:
        (HERE / "results" / "geometry.md").write_text("# Registration, side by side\n\n" + table)


if __name__ == "__main__":
    main()
