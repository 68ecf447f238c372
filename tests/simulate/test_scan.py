"""Scans: the truth of their frame, and their files read by independent readers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import laspy
import numpy as np
import pye57
import pytest
from numpy.typing import NDArray

from synorama.simulate.scan.files import write_e57, write_laz, write_ply
from synorama.simulate.scan.scanner import Scan, ScanOptions, make_scan
from synorama.transform import RigidTransform
from tests.simulate.lab import O3D, SEED, distance_m, lab, ray_scene

Float64 = NDArray[np.float64]
NOISE_M = 0.002


@cache
def _scan(kind: str, **options: Any) -> Scan:
    asked = ScanOptions(kind=kind, points=30_000, panorama_px=256, **options)  # type: ignore[arg-type]
    return make_scan(lab().room, lab().scan, SEED, asked)


# --- truth -----------------------------------------------------------------------------------


def test_points_lie_on_the_room_as_it_was_scanned() -> None:
    scan = _scan("stations")
    places = scan.world_scan.apply(scan.points_m, frame="scan")
    off = distance_m(places, "scan")
    assert np.quantile(off, 0.99) < 4 * NOISE_M
    assert 0.3 * NOISE_M < np.sqrt((off**2).mean()) < 1.5 * NOISE_M
    assert (distance_m(places, "session") > 0.05).mean() > 0.001  # furniture has moved since


def test_a_scan_by_hand_is_bent_by_its_warp_and_by_no_rigid_motion() -> None:
    scan = _scan("handheld")
    assert scan.warp is not None
    places = scan.world_scan.apply(scan.points_m, frame="scan")
    bent = distance_m(places, "scan")
    straight = distance_m(places - scan.warp(places), "scan")
    assert np.sqrt((straight**2).mean()) < 2 * NOISE_M < np.sqrt((bent**2).mean())
    warp = scan.warp(places)
    assert 0.009 < np.sqrt((warp**2).sum(axis=1).mean()) < 0.021
    turn, shift = _best_rigid(places, places + warp)
    assert np.linalg.norm(shift + turn @ places.mean(axis=0) - places.mean(axis=0)) < 5e-4
    assert np.degrees(np.arccos((np.trace(turn) - 1) / 2)) < 0.05


def _best_rigid(before: Float64, after: Float64) -> tuple[Float64, Float64]:
    a, b = before.mean(axis=0), after.mean(axis=0)
    u, _, vt = np.linalg.svd((before - a).T @ (after - b))
    turn = vt.T @ np.diag([1, 1, np.linalg.det(vt.T @ u.T)]) @ u.T
    return turn, b - turn @ a


def test_the_frame_is_turned_shifted_and_a_little_tilted() -> None:
    transform = _scan("stations").world_scan
    assert (transform.target, transform.source) == ("world", "scan")
    tilt = np.degrees(np.arccos(transform.rotation[2, 2]))
    assert 0.0 < tilt <= 0.8
    assert np.linalg.norm(transform.translation_m) > 1.0


def test_coordinates_of_a_map_lose_nothing() -> None:
    scan = _scan("stations", utm=True)
    assert np.abs(scan.points_m[:, 1]).min() > 5e6
    off = distance_m(scan.world_scan.apply(scan.points_m, frame="scan"), "scan")
    assert np.sqrt((off**2).mean()) < 1.5 * NOISE_M


def test_half_a_room_is_half_the_points_on_one_side() -> None:
    whole, part = _scan("stations"), _scan("stations", coverage=0.6)
    assert len(part.points_m) == pytest.approx(0.6 * len(whole.points_m), rel=0.01)
    lost = np.array(sorted(set(map(tuple, whole.points_m)) - set(map(tuple, part.points_m))))
    gap = lost.mean(axis=0) - part.points_m.mean(axis=0)
    assert np.linalg.norm(gap[:2]) > 1.0


def test_what_a_scanner_cannot_see_is_missing() -> None:
    one = _scan("stations", stations=1)
    station = one.stations[0]
    there = (one.world_scan @ station.scan_station).translation_m
    places = one.world_scan.apply(one.points_m, frame="scan")
    reach = (places - there) * 0.985
    rays = np.concatenate([np.broadcast_to(there, reach.shape), reach], axis=1)
    hidden = ray_scene("scan").test_occlusions(O3D.core.Tensor(rays.astype(np.float32)), tfar=1.0)
    assert hidden.numpy().mean() < 0.002


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["stations", "handheld"])
def test_e57_read_by_its_reference_library(kind: str, tmp_path: Path) -> None:
    scan = _scan(kind)
    write_e57(tmp_path / "room.e57", scan)
    file = pye57.E57(str(tmp_path / "room.e57"))
    assert file.scan_count == len(scan.stations)
    for k, station in enumerate(scan.stations):
        header = file.get_header(k)
        pose = RigidTransform.from_quat_wxyz(
            "scan", station.name, header.rotation, header.translation
        )
        assert np.allclose(pose.matrix, station.scan_station.matrix, atol=1e-9)
        assert header.point_count == len(station.points_m)
        data: Any = file.read_scan(
            k, colors=True, intensity=True, row_column=kind == "stations",
            ignore_missing_fields=True,
        )  # fmt: skip
        points = np.column_stack([data[f"cartesian{axis}"] for axis in "XYZ"])
        seen = station.points_m[station.valid]
        assert np.allclose(points, station.scan_station.apply(seen, frame=station.name), atol=1e-6)
        colours = np.column_stack([data[f"color{c}"] for c in ("Red", "Green", "Blue")])
        assert np.array_equal(colours, station.colours[station.valid])
        if station.row is not None:
            assert np.array_equal(data["rowIndex"], station.row[station.valid])
            assert (~station.valid).any()


def test_pictures_in_e57_have_their_pose_and_their_pixels(tmp_path: Path) -> None:
    scan = _scan("stations")
    write_e57(tmp_path / "room.e57", scan)
    file = pye57.E57(str(tmp_path / "room.e57"))
    root: Any = file.root
    guids = {root["data3D"][k]["guid"].value() for k in range(len(scan.stations))}
    assert root["images2D"].childCount() == len(scan.pictures) == 9
    for k, picture in enumerate(scan.pictures):
        node = root["images2D"][k]
        assert node["associatedData3DGuid"].value() in guids
        turn = [node["pose"]["rotation"][a].value() for a in "wxyz"]
        shift = [node["pose"]["translation"][a].value() for a in "xyz"]
        pose = RigidTransform.from_quat_wxyz("scan", picture.name, turn, shift)
        assert np.allclose(pose.matrix, picture.scan_camera.matrix, atol=1e-9)
        image = node[f"{picture.kind}Representation"]
        blob = image["jpegImage"]
        data = np.zeros(blob.byteCount(), np.uint8)
        blob.read(data, 0, len(data))
        pixels = np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))[..., ::-1]
        assert pixels.shape == (image["imageHeight"].value(), image["imageWidth"].value(), 3)
        assert np.abs(pixels.astype(int) - picture.pixels).mean() < 6


def test_pictures_show_the_points_of_the_scan_where_they_are() -> None:
    """Points projected as E57 says have the colours of the pixels that they fall on."""
    scan = _scan("stations")
    for picture in scan.pictures:
        (station,) = (s for s in scan.stations if s.name == picture.station)
        points = station.scan_station.apply(station.points_m[station.valid], frame=station.name)
        local = picture.scan_camera.inverse().apply(points, frame="scan")
        x, y, seen = _project(picture.kind, local, picture.pixels.shape, picture.focal_px)
        colours = station.colours[station.valid][seen].astype(int)
        shown = picture.pixels[y[seen], x[seen]].astype(int)
        matched = np.median(np.abs(shown - colours))
        shuffled = np.median(np.abs(shown - np.random.default_rng(0).permutation(colours)))
        assert matched < 8, picture.name
        assert matched < 0.5 * shuffled, picture.name


def _project(
    kind: str, local: Float64, shape: tuple[int, ...], focal_px: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    height, width, _ = shape
    if kind == "spherical":
        azimuth = np.arctan2(local[:, 1], local[:, 0])
        elevation = np.arcsin(local[:, 2] / np.linalg.norm(local, axis=1))
        x = width / 2 - azimuth * width / (2 * np.pi)
        y = height / 2 - elevation * height / np.pi
        seen = np.ones(len(local), bool)
    else:
        seen = local[:, 2] < -0.1
        depth = np.where(seen, -local[:, 2], 1.0)
        x = width / 2 + focal_px * local[:, 0] / depth
        y = height / 2 - focal_px * local[:, 1] / depth
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    seen &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return column, row, seen


@pytest.mark.parametrize("utm", [False, True])
def test_laz_read_by_laspy(utm: bool, tmp_path: Path) -> None:
    scan = _scan("stations", utm=utm)
    write_laz(tmp_path / "room.laz", scan)
    cloud = laspy.read(tmp_path / "room.laz")
    assert np.abs(cloud.xyz - scan.points_m).max() <= 0.51e-4
    colours = np.column_stack([cloud.red, cloud.green, cloud.blue]) // 257
    assert np.array_equal(colours, scan.colours)
    assert np.array_equal(np.asarray(cloud.point_source_id), scan.station_numbers)


def test_ply_read_by_open3d(tmp_path: Path) -> None:
    scan = _scan("handheld")
    write_ply(tmp_path / "room.ply", scan)
    cloud = O3D.io.read_point_cloud(tmp_path / "room.ply")
    assert np.allclose(np.asarray(cloud.points), scan.points_m, atol=1e-9)
    assert np.array_equal(np.rint(np.asarray(cloud.colors) * 255), scan.colours)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        scan = make_scan(lab().room, lab().scan, SEED, ScanOptions(points=3000, panorama_px=64))
        write_e57(tmp_path / folder / "room.e57", scan)
        write_laz(tmp_path / folder / "room.laz", scan)
        write_ply(tmp_path / folder / "room.ply", scan)
        files = sorted((tmp_path / folder).iterdir())
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]
