"""The stage register: a room's scan and both wearers come into one frame, in the session file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.pipeline import Workspace, process, status
from synorama.pipeline.register import REGISTER
from synorama.session import Session
from synorama.session.geometry_io import read_geometry_part
from synorama.simulate import simulate

Float64 = NDArray[np.float64]


@pytest.mark.slow
def test_scan_and_wearers_come_into_one_frame(tmp_path: Path) -> None:
    import h5py

    folder = tmp_path / "session"
    simulate(folder, seed=5, seconds=20.0, mps="separate", render=False,
             devices=("leader", "helper"))  # fmt: skip
    truth = json.loads((folder / "truth.json").read_text())
    _put_objects(folder, truth)
    outcome = process(Workspace(folder))
    found = read_geometry_part(Workspace(folder).part("register"))
    assert found.world == "leader"
    assert list(found.scans) == ["scan-1"]  # one scan, in two formats
    world = np.array(truth["mps"]["leader"]["T_mps_world"])
    scan = found.scans["scan-1"]
    assert scan.T_target_source is not None, scan.reason
    expected = world @ np.array(truth["scan"]["T_world_scan"])
    middle = np.linalg.inv(expected) @ np.append(world[:3, 3], 1.0)
    off = (scan.T_target_source.matrix - expected) @ middle
    assert np.linalg.norm(off[:3]) < 0.03
    helper = found.wearers["helper"]
    assert helper.status != "accepted" or helper.T_target_source is not None
    _check_objects(folder, truth, outcome.session, expected)
    with h5py.File(outcome.session) as file:
        assert file["geometry/about"].attrs["world"] == b"leader"
        assert len(file["geometry/scans/scan-1/cloud/points_m"]) > 1000


def _put_objects(folder: Path, truth: dict[str, Any]) -> None:
    """Put each object where it stood at the scan, two centimetres off, as a person would."""
    scan = np.linalg.inv(np.array(truth["scan"]["T_world_scan"]))
    entries = []
    for k, thing in enumerate(truth["objects"]):
        there = scan @ np.array(thing["T_world_object_at_scan"])
        there[:3, 3] += np.random.default_rng(k).uniform(-0.02, 0.02, 3)
        lines = (f'path = "objects/{thing["files"][0]}"', f"T_scan_object = {there.tolist()}")
        entries += ["[[objects]]", *lines, "refine = true"]
    (folder / "session.toml").write_text("\n".join(entries))


def _check_objects(folder: Path, truth: dict[str, Any], path: Path, world_scan: Float64) -> None:
    """Every file of the lab's objects is in the session; what was settled lies where it stood."""
    told = {thing["name"]: thing for thing in truth["objects"]}
    scan = np.linalg.inv(np.array(truth["scan"]["T_world_scan"]))
    settled = 0
    with Session(path) as session:
        assert sorted(one.name for one in session.objects) == sorted(told)
        for record in session.objects:
            thing = session.scanned_object(record.name)
            for file in thing.files:
                assert file.data == (folder / "objects" / file.name).read_bytes()
            assert record.place is not None
            assert record.place.T_world_object is not None
            there = scan @ np.array(told[record.name]["T_world_object_at_scan"])
            off = record.place.T_world_object.matrix - world_scan @ there
            corners = thing.mesh.corners @ off[:3, :3].T + off[:3, 3]
            apart_m = float(np.sqrt((corners**2).sum(axis=1).mean()))
            assert apart_m < (0.02 if record.place.by == "registration" else 0.06)
            settled += record.place.by == "registration"
    assert settled


def test_without_a_scan_or_points_it_says_why(simulated: Path) -> None:
    reason = REGISTER.skipped_because(Workspace(simulated))
    assert reason is not None
    assert "MPS" in reason
    runs = {run.name: run for run in status(Workspace(simulated))}
    assert runs["register"].state == "skipped"
