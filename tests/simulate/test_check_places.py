"""The check tells how far a scan lies from where the truth puts it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from synorama.records import GeometryResult, RegistrationResult
from synorama.simulate.check import _scans
from synorama.transform import RigidTransform

SIZE_M = [4.0, 3.0, 2.5]


def pose(turn_deg: float, *shift_m: float) -> NDArray[np.float64]:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("z", turn_deg, degrees=True).as_matrix()
    matrix[:3, 3] = shift_m
    return matrix


MPS_WORLD, WORLD_SCAN = pose(70, 1, 2, 3), pose(-130, 20, -10, 0.5)


def case(found: NDArray[np.float64] | None, status: Any = "accepted") -> Any:
    T = None if found is None else RigidTransform("world", "scan-1", found)
    geometry = GeometryResult("aria-1", {"scan-1": RegistrationResult(status, "why", T)})
    told = {
        "room": {"size_m": SIZE_M},
        "scan": {"T_world_scan": WORLD_SCAN.tolist()},
        "mps": {"leader": {"T_mps_world": MPS_WORLD.tolist()}},
    }
    pairs = [({"name": "leader"}, "aria-1"), ({"name": "helper"}, "aria-2")]
    return SimpleNamespace(
        told=told, session=SimpleNamespace(geometry=geometry), pairs=lambda: pairs
    )


def test_a_scan_in_its_place_is_not_off() -> None:
    (line,) = _scans(case(MPS_WORLD @ WORLD_SCAN))
    assert line.held
    assert line.values["off_mm"] == pytest.approx(0, abs=1e-6)
    assert line.values["turn_deg"] == pytest.approx(0, abs=1e-4)


def test_the_worst_corner_of_the_room_counts() -> None:
    (line,) = _scans(case(MPS_WORLD @ pose(1, 0, 0, 0) @ WORLD_SCAN))
    reach_m = np.hypot(SIZE_M[0], SIZE_M[1]) / 2
    assert line.values["off_mm"] == pytest.approx(1e3 * reach_m * np.radians(1), rel=1e-3)
    assert line.values["turn_deg"] == pytest.approx(1, rel=1e-3)
    assert line.held is False


def test_only_what_is_accepted_is_promised() -> None:
    wrong = MPS_WORLD @ pose(0, 0.5, 0, 0) @ WORLD_SCAN
    assert [line.held for line in _scans(case(wrong))] == [False]
    assert [line.held for line in _scans(case(wrong, "ambiguous"))] == [None]
    (line,) = _scans(case(None, "refused"))
    assert (line.found, line.held) == ("refused", None)
