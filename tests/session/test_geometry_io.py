"""What the stage register found goes to the session file and back without loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synorama.records import CameraPose, GeometryResult, PointCloud, RegistrationResult
from synorama.session.geometry_io import (
    read_cloud,
    read_geometry_part,
    write_geometry_part,
)
from synorama.session.parts import open_part
from synorama.transform import RigidTransform


def _result() -> GeometryResult:
    there = RigidTransform.from_quat_wxyz("world", "scan-1", [0.6, 0, 0, 0.8], [1e5, -2.5, 0.1])
    covariance = np.diag([1e-6, 2e-6, 3e-6, 1e-5, 2e-5, 3e-5])
    placed = RegistrationResult(
        "degenerate", "a corridor", there, 0.8, 0.004, covariance, ("along x",), 0.97, "geometry"
    )
    refused = RegistrationResult("refused", "nothing in common")
    camera = CameraPose(
        "gopro-1", "accepted", "", np.array([5], np.int64), np.eye(4)[None], covariance, 7, "given"
    )
    return GeometryResult(
        "leader",
        scans={"b": placed, "a": refused},
        wearers={"helper": placed},
        cameras={"gopro-1": camera},
        warnings=("näher prüfen",),
    )


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    result = _result()
    write_geometry_part(tmp_path / "register.h5", result)
    again = read_geometry_part(tmp_path / "register.h5")
    assert again.world == "leader"
    assert again.warnings == result.warnings
    assert list(again.scans) == ["b", "a"]
    assert list(again.wearers) == ["helper"]
    for name in ("status", "reason", "overlap", "weak_directions", "runner_up_ratio", "method"):
        assert getattr(again.scans["b"], name) == getattr(result.scans["b"], name)
    there = again.scans["b"].T_target_source
    assert there is not None
    assert (there.target, there.source) == ("world", "scan-1")
    np.testing.assert_array_equal(there.matrix, result.scans["b"].T_target_source.matrix)  # type: ignore[union-attr]
    np.testing.assert_array_equal(again.scans["b"].covariance, result.scans["b"].covariance)
    assert again.scans["a"].T_target_source is None
    assert np.isnan(again.scans["a"].inlier_rmse_m)
    camera = again.cameras["gopro-1"]
    assert camera.t_device_ns.tolist() == [5]
    assert (camera.status, camera.frames, camera.method) == ("accepted", 7, "given")
    np.testing.assert_array_equal(camera.T_world_camera, np.eye(4)[None])


def test_a_cloud_far_from_its_origin_keeps_its_millimetres(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    points = np.array([5.0e5, 5.4e6, 300.0]) + rng.uniform(0, 10, (500, 3))
    cloud = PointCloud("b", points, colours=rng.integers(0, 255, (500, 3)).astype(np.uint8))
    write_geometry_part(tmp_path / "register.h5", _result(), {"b": cloud})
    with open_part(tmp_path / "register.h5", "register") as file:
        again = read_cloud(file["geometry/scans/b/cloud"])
    assert again.frame == "b"
    assert np.abs(again.points_m - points).max() < 2e-6
    np.testing.assert_array_equal(again.colours, cloud.colours)
    assert again.normals is None
