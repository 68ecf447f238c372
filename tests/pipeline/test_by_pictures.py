"""Scans and cameras of a whole session by pictures; two ways of registration that must agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from synorama.capture.discover import discover, open_found
from synorama.geometry.cloud import open_cloud
from synorama.geometry.localize import Localization
from synorama.pipeline.by_pictures import agreed, camera_pictures, glasses_frames, improved
from synorama.records import PointCloud, Recording, RegistrationResult, RegistrationStatus
from synorama.simulate import simulate
from synorama.transform import RigidTransform


def lies(status: RegistrationStatus, yaw_deg: float = 0.0, x_m: float = 0.0) -> RegistrationResult:
    if status == "refused":
        return RegistrationResult("refused", "nothing fits")
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("z", yaw_deg, degrees=True).as_matrix()
    matrix[0, 3] = x_m
    return RegistrationResult(status, f"{status} there", RigidTransform("world", "scan", matrix))


def seen(result: RegistrationResult) -> Localization:
    return Localization(result)


def test_two_doubtful_ways_that_agree_are_accepted() -> None:
    found = agreed(lies("ambiguous"), seen(lies("ambiguous", 0.3, 0.01)))
    assert found.status == "accepted"
    assert "agree" in found.reason


def test_two_sure_ways_that_disagree_are_refused_and_both_shown() -> None:
    found = agreed(lies("accepted"), seen(lies("accepted", 180.0, 2.0)))
    assert found.status == "refused"
    assert found.T_target_source is None
    assert "shape: accepted there; pictures: accepted there" in found.reason


@pytest.mark.parametrize("shape", ["ambiguous", "degenerate", "refused"])
def test_sure_pictures_stand_for_a_doubtful_shape(shape: RegistrationStatus) -> None:
    pictures = lies("accepted", 90.0, 1.0)
    assert agreed(lies(shape), seen(pictures)) is pictures


def test_doubtful_pictures_leave_the_shape_as_it_is() -> None:
    shape = lies("accepted")
    assert agreed(shape, seen(lies("refused"))) is shape
    assert agreed(shape, seen(lies("ambiguous", 90.0))) is shape
    assert agreed(lies("refused"), seen(lies("refused"))).status == "refused"


# --- a whole session -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures") / "session"
    simulate(folder, seed=5, seconds=6.0, devices=("leader", "gopro-front"))
    return folder


@pytest.fixture(scope="module")
def recordings(session: Path) -> list[Recording]:
    return [open_found(found) for found in discover(session).found]


@pytest.fixture(scope="module")
def truth(session: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((session / "truth.json").read_text())
    return told


def test_frames_are_posed_as_the_services_say(
    recordings: list[Recording], truth: dict[str, Any]
) -> None:
    frames = glasses_frames(next(r for r in recordings if r.id == "leader"), 6)
    assert len(frames) == 6
    assert len({f.name for f in frames}) == 6
    world = np.linalg.inv(np.array(truth["mps"]["leader"]["T_mps_world"]))
    size = np.array(truth["room"]["size_m"])
    for frame in frames:
        eye = (world @ frame.pose)[:3, 3]
        assert (np.abs(eye[:2]) < size[:2] / 2).all()
        assert 0.8 < eye[2] < 2.1


def test_a_scan_without_a_place_gets_one_by_its_pictures(
    session: Path, recordings: list[Recording], truth: dict[str, Any]
) -> None:
    path = session / "scan" / "room.e57"
    points = np.concatenate([b.points_m for b in open_cloud(path).blocks(1_000_000)])
    placed, cameras, _ = improved(
        recordings,
        "leader",
        {"scan-1": (path, PointCloud("scan-1", points))},
        {"scan-1": lies("refused")},
    )
    true = np.array(truth["mps"]["leader"]["T_mps_world"]) @ truth["scan"]["T_world_scan"]
    found = placed["scan-1"].T_target_source
    assert placed["scan-1"].status == "accepted", placed["scan-1"].reason
    assert found is not None
    turn = Rotation.from_matrix(found.rotation @ true[:3, :3].T).magnitude()
    assert np.degrees(turn) < 2.0  # of pictures 128 px wide
    assert cameras["gopro-front"].reason
    assert cameras["gopro-front"].status != "accepted" or len(cameras["gopro-front"].T_world_camera)


def test_recordings_without_what_is_needed_give_no_pictures(recordings: list[Recording]) -> None:
    camera = next(r for r in recordings if r.id == "gopro-front")
    assert glasses_frames(camera) == []
    found = camera_pictures(camera)
    assert found is not None
    assert len(found.pictures) == 5
    assert not found.lens_known
    assert np.all(np.diff(found.t_device_ns) > 0)
    known = camera_pictures(camera, found.lens.resized(2.0))
    assert known is not None
    assert known.lens_known
    assert known.lens.width == found.lens.width
