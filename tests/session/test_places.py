"""What is told of places: the numbers of the result, JSON-able, and nothing made up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from synorama import console
from synorama.records import ObjectPlace, ObjectRecord, PointCloud
from synorama.session import SessionInfo, assemble, summarize, write_ingest
from synorama.session.geometry_io import write_geometry_part
from synorama.session.places import object_facts, place_facts
from synorama.transform import RigidTransform
from tests.session.test_geometry_io import _result


def test_places_are_told_with_what_is_known_of_each() -> None:
    told = place_facts(_result(), {"b": np.random.default_rng(0).uniform(-3, 3, (500, 3))})
    json.dumps(told, allow_nan=False)
    placed, refused, wearer, camera = told["places"]
    assert (placed["of"], placed["name"], placed["status"]) == ("scan", "b", "degenerate")
    assert placed["overlap"] == 0.8
    assert placed["sigma_rotation_deg"] == pytest.approx(np.degrees(np.sqrt(6e-6)))
    assert 7.7e-3 < placed["sigma_translation_m"] < 20e-3  # the shift, and the turn at an arm
    assert refused["T_world_source"] is None
    assert refused["inlier_rmse_m"] is None
    assert wearer["sigma_translation_m"] is None  # its room is not in the file
    assert camera["sigma_translation_m"] == pytest.approx(np.sqrt(6e-5))
    assert camera["frames"] == 7
    rows = console.place_rows(told["places"])
    assert [row[0] for row in rows] == ["b", "a", "helper", "gopro-1"]
    assert rows[1][3] == "-"
    assert rows[3][4] == "7 pictures, given"


def test_a_session_tells_them(tmp_path: Path) -> None:
    write_ingest(tmp_path / "ingest.h5", [], include_location=False)
    cloud = PointCloud("scan-1", np.random.default_rng(0).uniform(-3, 3, (500, 3)))
    write_geometry_part(tmp_path / "register.h5", _result(), {"b": cloud})
    parts = {name: tmp_path / f"{name}.h5" for name in ("ingest", "register")}
    assemble(parts, tmp_path / "session.h5", SessionInfo("kitchen"))
    told = summarize(tmp_path / "session.h5")
    assert told["geometry"]["world"] == "leader"
    assert told["geometry"]["places"][0]["sigma_translation_m"] > 7.7e-3
    assert told["objects"] == []


def test_objects_are_told_with_who_placed_them() -> None:
    there = RigidTransform("world", "mug", np.eye(4))
    mug = ObjectRecord(
        "mug",
        unit="mm",
        size_m=np.array([0.1, 0.08, 0.09]),
        watertight=True,
        place=ObjectPlace("registration", "seen", there, None, 0.0019),
    )
    told = [object_facts(mug), object_facts(ObjectRecord("ship", "too large"))]
    json.dumps(told, allow_nan=False)
    rows = console.object_rows(told)
    assert rows[0][1] == "10.0 x 8.0 x 9.0 cm"
    assert rows[0][3] == "by registration to the scan, 1.9 mm at 1 sigma"
    assert rows[1][3] == "not read: too large"
