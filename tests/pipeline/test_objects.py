"""Scanned things of a session folder: every byte in the session file, in their places, or told."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest

from synorama.errors import ConfigError, DamagedSessionError, NotInSessionError
from synorama.geometry.objects import ScannedObject, read_object
from synorama.pipeline import Workspace, process, status
from synorama.session import Session, seal, validate
from tests.capture.test_discover import tone
from tests.geometry.test_objects import box_obj

POSE = [[0.0, -1.0, 0.0, 1.25], [1.0, 0.0, 0.0, -2.0], [0.0, 0.0, 1.0, 0.9], [0.0, 0.0, 0.0, 1.0]]


def toml(**entry: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    return "\n".join(["[[objects]]", *lines, ""])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound, a textured box in two formats, and a thing of a size that tells no unit."""
    tone(tmp_path / "a.wav", 2.0)
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "box.obj").write_bytes(box_obj(material="my box.mtl"))
    (objects / "my box.mtl").write_text("newmtl paint\nmap_Kd top side.png\n")
    picture = np.random.default_rng(1).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    cv2.imwrite(str(objects / "top side.png"), picture)
    (objects / "box.ply").write_text("ply\n")  # worse than the other, and not looked at
    (objects / "ship.stl").write_text("solid x\n" + 3 * "vertex 0 0 9000\n" + "endsolid x\n")
    (tmp_path / "session.toml").write_text(toml(path="objects/box.obj", T_world_object=POSE))
    return tmp_path


def test_every_byte_comes_back_and_the_surface_is_equal(folder: Path) -> None:
    outcome = process(Workspace(folder))
    assert [(o.name, bool(o.refused)) for o in outcome.objects] == [("box", False), ("ship", True)]
    with Session(outcome.session) as session:
        _check_box(session, read_object(folder / "objects/box.obj"))
        assert any("ship was not read" in text for text in session.warnings)
        with pytest.raises(NotInSessionError, match="ship"):
            session.scanned_object("ship")
    assert validate(outcome.session, every_byte=True) == ()
    release = folder / "release.h5"
    seal(outcome.session, release)
    with Session(release) as sealed:
        _check_box(sealed, read_object(folder / "objects/box.obj"))


def _check_box(session: Session, given: ScannedObject) -> None:
    again, told = session.scanned_object("box"), session.objects[0]
    assert again.files == given.files
    assert np.array_equal(again.mesh.corners, given.mesh.corners)
    assert np.array_equal(again.mesh.faces, given.mesh.faces)
    assert np.array_equal(again.mesh.uv, given.mesh.uv, equal_nan=True)
    assert (told.unit, told.unit_recognised, told.triangles) == ("mm", True, 12)
    assert told.watertight
    assert told.textured
    np.testing.assert_allclose(told.size_m, (0.12, 0.08, 0.05))
    assert told.place is not None
    assert told.place.by == "person"
    assert told.place.T_world_object is not None
    np.testing.assert_array_equal(told.place.T_world_object.matrix, POSE)
    picture = cv2.imdecode(np.frombuffer(session.thumbnail("box"), np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert picture.std() > 5


def test_a_changed_texture_is_read_again_and_nothing_else_is(folder: Path) -> None:
    process(Workspace(folder))
    assert {run.state for run in status(Workspace(folder))} == {"up-to-date", "skipped"}
    (folder / "objects/top side.png").write_bytes(b"other")
    stale = [run.name for run in status(Workspace(folder)) if run.state == "stale"]
    assert stale == ["objects", "assemble"]


def test_a_byte_that_changed_is_noticed(folder: Path) -> None:
    path = process(Workspace(folder)).session
    with h5py.File(path, "r+") as file:
        data = file["geometry/objects/box/files/2/data"]
        data[100] ^= 1
    (problem,) = validate(path, every_byte=True)
    assert "top side.png" in problem.text
    with pytest.raises(DamagedSessionError, match="top side"):
        Session(path).scanned_object("box")


def test_a_pose_in_a_scan_without_a_world_is_kept_and_told(folder: Path) -> None:
    (folder / "scan").mkdir()
    (folder / "scan/room.ply").write_text("ply\n")
    text = toml(path="objects/box.obj", id="crate", unit="cm", T_scan_object=POSE)
    (folder / "session.toml").write_text(text)
    (crate, _) = process(Workspace(folder)).objects
    assert (crate.name, crate.unit, crate.unit_recognised) == ("crate", "cm", False)
    assert crate.place is not None
    assert crate.place.T_world_object is None
    assert crate.place.T_scan_object is not None
    assert crate.place.T_scan_object.target == "scan-1"
    assert "no place in the world" in crate.place.how


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"path": "objects/gone.obj"}, "gone.obj"),
        ({"path": "objects/box.obj", "T_scan_object": POSE}, "no such scan"),
        ({"path": "objects/box.obj", "T_scan_object": POSE, "T_world_object": POSE}, "one place"),
        ({"path": "objects/box.obj", "refine": True}, "T_scan_object"),
        ({"path": "objects/box.obj", "T_world_object": POSE[:3]}, "T_world_object"),
        ({"path": "objects/box.obj", "T_world_object": [*POSE[:3], [0, 0, 1, 1]]}, "last row"),
        ({"path": "objects/box.obj", "T_world_object": [POSE[1], *POSE[1:]]}, "orthonormal"),
        ({"path": "objects/box.obj", "unit": "ft"}, "unit"),
    ],
)
def test_what_cannot_be_said_of_an_object_is_refused(
    folder: Path, entry: dict[str, object], why: str
) -> None:
    (folder / "session.toml").write_text(toml(**entry))
    with pytest.raises(ConfigError, match=why):
        process(Workspace(folder))


def test_a_rotation_that_was_rounded_by_hand_is_taken(folder: Path) -> None:
    rounded: list[list[float]] = [
        [0.866, -0.5, 0, 1],
        [0.5, 0.866, 0, 2],
        [0, 0, 1, 3],
        [0, 0, 0, 1],
    ]
    (folder / "session.toml").write_text(toml(path="objects/box.obj", T_world_object=rounded))
    place = process(Workspace(folder)).objects[0].place
    assert place is not None
    assert place.T_world_object is not None
    np.testing.assert_allclose(place.T_world_object.matrix, np.array(rounded), atol=1e-3)


def test_names_are_plain_and_each_its_own(folder: Path) -> None:
    for where in ("objects/left side", "objects/right side"):
        (folder / where).mkdir()
        (folder / where / "Anna's cup!.obj").write_bytes(box_obj())
    names = [o.name for o in process(Workspace(folder)).objects]
    assert names == ["box", "Anna-s-cup", "Anna-s-cup-2", "ship"]
