"""The stage register: a room's scan and both wearers come into one frame, in the session file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from synorama.pipeline import Workspace, process, status
from synorama.pipeline.register import REGISTER
from synorama.session.geometry_io import read_geometry_part
from synorama.simulate import simulate


@pytest.mark.slow
def test_scan_and_wearers_come_into_one_frame(tmp_path: Path) -> None:
    import h5py

    folder = tmp_path / "session"
    simulate(folder, seed=5, seconds=20.0, mps="separate", render=False,
             devices=("leader", "helper"))  # fmt: skip
    truth = json.loads((folder / "truth.json").read_text())
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
    with h5py.File(outcome.session) as file:
        assert file["geometry/about"].attrs["world"] == b"leader"
        assert len(file["geometry/scans/scan-1/cloud/points_m"]) > 1000


def test_without_a_scan_or_points_it_says_why(simulated: Path) -> None:
    reason = REGISTER.skipped_because(Workspace(simulated))
    assert reason is not None
    assert "MPS" in reason
    runs = {run.name: run for run in status(Workspace(simulated))}
    assert runs["register"].state == "skipped"
