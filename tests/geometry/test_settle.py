"""An object settles on the scan's points near where it was put, or is refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from synorama.errors import RegistrationRefusedError
from synorama.geometry.objects import ObjectFile, ScannedObject, parse_object, sampled
from synorama.geometry.settle import Settled, settled
from synorama.transform import RigidTransform
from tests.geometry.test_objects import QUADS

Float64 = NDArray[np.float64]


def box(size_mm: tuple[float, float, float]) -> ScannedObject:
    """Return a box that stands on the floor of its frame, faces outward."""
    x, y, z = size_mm
    corners = [f"v {a} {b} {c}" for a in (0, x) for b in (0, y) for c in (0, z)]
    faces = ["f " + " ".join(map(str, quad)) for quad in QUADS]
    data = "\n".join([*corners, *faces]).encode()
    return parse_object([ObjectFile("box.obj", data)], name="box", unit="mm")


def scanned(thing: ScannedObject, there: RigidTransform, rng: np.random.Generator) -> Float64:
    """Return a table, and of what stands on it the top and two sides, with 2 mm of noise."""
    places, normals, _ = sampled(thing, 6_000)
    placed, facing = there.apply(places, frame="box"), normals @ there.rotation.T
    low = placed[:, 2].min()
    shown = placed[(facing[:, 2] > 0.3) | (facing[:, 0] > 0.3)]
    reach = np.array([0.6, 0.6, 0.0])
    middle = np.array([*there.translation_m[:2], low])
    table = rng.uniform(middle - reach, middle + reach, (40_000, 3))
    inside = there.inverse().apply(table, frame="scan-1")
    under = ((inside > -0.002) & (inside < thing.mesh.corners.max(axis=0) + 0.002)).all(axis=1)
    everything = np.vstack([shown, table[~under]])
    return np.asarray(everything + rng.normal(0, 0.002, everything.shape), np.float64)


def pose(turn: Rotation, shift_m: tuple[float, float, float]) -> RigidTransform:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn.as_matrix(), shift_m
    return RigidTransform("scan-1", "box", matrix)


def off(found: RigidTransform, true: RigidTransform, thing: ScannedObject) -> float:
    corners = thing.mesh.corners
    apart = found.apply(corners, frame="box") - true.apply(corners, frame="box")
    return float(np.sqrt((apart**2).sum(axis=1).mean()))


def put_near(true: RigidTransform, rng: np.random.Generator) -> RigidTransform:
    nudge = np.eye(4)
    nudge[:3, :3] = Rotation.from_euler("z", rng.uniform(-8, 8), degrees=True).as_matrix()
    nudge[:3, 3] = rng.uniform(-0.02, 0.02, 3)
    return true @ RigidTransform("box", "box", nudge)


def attempt(
    seed: int, size_mm: tuple[float, float, float], turn: Rotation
) -> tuple[Settled, float]:
    rng = np.random.default_rng(seed)
    thing = box(size_mm)
    x, y, z = rng.uniform(-3, 3, 3)
    true = pose(turn, (x, y, z))
    found = settled(thing, scanned(thing, true, rng), put_near(true, rng))
    return found, off(found.T_scan_object, true, thing)


@pytest.mark.parametrize("seed", range(6))
def test_a_box_is_found_to_millimetres_and_its_sigma_holds(seed: int) -> None:
    turn = Rotation.from_euler("z", 90.0 * seed + 5 * seed + 30, degrees=True)
    found, off_m = attempt(seed, (180, 120, 90), turn)
    assert off_m < 0.003
    assert off_m < 3 * found.sigma_m < 0.03
    assert found.seen > 0.4


def test_what_lies_on_its_side_is_found_too() -> None:
    _, off_m = attempt(1, (180, 120, 90), Rotation.from_euler("yz", [90, 50], degrees=True))
    assert off_m < 0.003


def test_what_was_elsewhere_at_the_scan_is_refused() -> None:
    rng = np.random.default_rng(2)
    thing = box((180, 120, 90))
    true = pose(Rotation.identity(), (0, 0, 0))
    scan = scanned(thing, true, rng)
    beside = pose(Rotation.identity(), (0.4, 0, 0))
    with pytest.raises(RegistrationRefusedError, match="elsewhere at the scan"):
        settled(thing, scan, beside)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_shows_one_side_only_could_slide_and_is_refused(seed: int) -> None:
    with pytest.raises(RegistrationRefusedError, match="slide"):
        attempt(seed, (255, 280, 206), Rotation.from_euler("z", 0.5, degrees=True))


def test_what_is_too_flat_is_refused() -> None:
    with pytest.raises(RegistrationRefusedError, match="too flat"):
        attempt(3, (200, 150, 8), Rotation.identity())


def test_an_empty_place_is_refused() -> None:
    scan = np.random.default_rng(0).uniform(5, 6, (1000, 3))
    with pytest.raises(RegistrationRefusedError, match="0 %"):
        settled(box((180, 120, 90)), scan, pose(Rotation.identity(), (0, 0, 0)))
