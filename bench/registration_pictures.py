"""Pictures of registrations for the documentation: a right one, a weak one, a refused one.

``python -m bench.registration_pictures docs/explanation/pictures`` draws them on simulated rooms;
it needs matplotlib.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from tests.geometry.rooms import Pair, cached_pair, errors

from bench.acceptance.registration import CACHE, attempt
from synorama.geometry.prepare import cleaned, thinned
from synorama.geometry.search import SearchOptions, search
from synorama.geometry.voxels import voxel_down
from synorama.records import RegistrationResult

mpl.use("Agg")
Float64 = NDArray[np.float64]
SEED = 201
HALF_M, ABOVE_FLOOR_M = 0.04, 1.0
COARSE_M = 0.05


def main() -> None:
    """Draw all three beside each other."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 5.2))
    right, corridor = cached_pair(CACHE, "normal", SEED), cached_pair(CACHE, "corridor", SEED)
    mixed = replace(right, scan=corridor.scan)  # glasses in the kitchen, a scan of the corridor
    for axis, name, pair in zip(
        axes,
        ("right: its own room", "weak: a corridor", "refused: a scan of elsewhere"),
        (right, corridor, mixed),
        strict=True,
    ):
        _draw(axis, name, pair)
    figure.tight_layout()
    figure.savefig(folder / "registration-cases.png", dpi=95)


def _draw(axis: Any, name: str, pair: Pair) -> None:
    result = attempt(pair)
    there = result.T_target_source
    T = _best_place(pair) if there is None else there.matrix
    scan = pair.scan.points_m @ T[:3, :3].T + T[:3, 3]
    level = float(np.quantile(scan[:, 2], 0.01)) + ABOVE_FLOOR_M
    glasses = cleaned(pair.glasses).points_m
    for cloud, colour, size in ((scan, "black", 2.5), (glasses, "red", 0.9)):
        near = cloud[np.abs(cloud[:, 2] - level) < HALF_M]
        axis.plot(near[:, 0], near[:, 1], ".", color=colour, markersize=size, rasterized=True)
    both = np.vstack([scan[:: len(scan) // 20_000], glasses[:: len(glasses) // 20_000 + 1]])
    low, high = np.quantile(both[:, :2], (0.005, 0.995), axis=0)
    axis.set(xlim=(low[0] - 0.5, high[0] + 0.5), ylim=(low[1] - 0.5, high[1] + 0.5), aspect="equal")
    axis.set_title(f"{name}\n{_told(pair, result)}", fontsize=9)
    axis.tick_params(labelsize=7)
    axis.set_xlabel("m", fontsize=8)


def _told(pair: Pair, result: RegistrationResult) -> str:
    text = f"{result.status}, {100 * result.overlap:.0f} % meet"
    if result.T_target_source is None:
        return f"{text}; no place is given"
    _, off_m = errors(pair, result.T_target_source.matrix)
    weak = "".join(f"\nopen {way.split(')')[0]})" for way in result.weak_directions[:1])
    return f"{text}, {1e3 * off_m:.1f} mm off the truth{weak}"


def _best_place(pair: Pair) -> Float64:
    """Return where a search alone would put a scan that is refused."""
    points = thinned(cleaned(pair.glasses).points_m, 1.0)
    found = search(voxel_down(pair.scan.points_m, COARSE_M), points, None, SearchOptions())
    return np.asarray(np.linalg.inv(found[0].matrix), np.float64)


if __name__ == "__main__":
    main()
