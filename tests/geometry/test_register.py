"""Registration: truth from simulated rooms, faults that must be told, and real pairs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from typer.testing import CliRunner

from synorama.cli import app
from synorama.errors import (
    CloudUnitError,
    EmptyCloudError,
    FlatCloudError,
    InputError,
    MirroredCloudError,
    SynoramaError,
    UpDirectionError,
    UsageError,
)
from synorama.geometry import prepare
from synorama.geometry.confidence import displacement_sigma_m
from synorama.geometry.correspond import transform_from_pairs
from synorama.geometry.fine import rotation_of
from synorama.geometry.register import RegistrationOptions, register
from synorama.records import PointCloud
from tests.geometry.boxes import box_pair
from tests.geometry.rooms import Pair, PairKind, errors, make_pair

Float64 = NDArray[np.float64]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair("normal", 31, points=150_000, tracked=40_000, seconds=30.0)


def _yaw(pair: Pair) -> tuple[float, float]:
    """The turn, roughly: most of the time goes into trying all of them."""
    return float(np.arctan2(pair.truth[1, 0], pair.truth[0, 0])) + 0.1, 0.2


def _options(pair: Pair) -> RegistrationOptions:
    return RegistrationOptions(target_trajectory_m=pair.trajectory_m, yaw_rad=_yaw(pair))


def _scan(pair: Pair, points_m: Float64) -> PointCloud:
    return replace(pair.scan, points_m=points_m)


# --- the truth -------------------------------------------------------------------------------


def test_a_room_is_found_from_nowhere_and_accepted(pair: Pair) -> None:
    options = RegistrationOptions(target_trajectory_m=pair.trajectory_m)
    result = register(pair.scan, pair.glasses, options)
    assert result.status == "accepted", result.reason
    assert result.T_target_source is not None
    assert (result.T_target_source.target, result.T_target_source.source) == ("glasses", "scan")
    turn, off = errors(pair, result.T_target_source.matrix)
    assert np.degrees(turn) < 0.15
    assert off < 0.006
    assert result.covariance is not None
    assert off < 3 * displacement_sigma_m(result.covariance, pair.glasses.points_m) < 0.05
    assert result.overlap > 0.8
    assert result.runner_up_ratio < 0.9


def test_the_other_way_round_gives_the_inverse(pair: Pair) -> None:
    middle, half = _yaw(pair)
    options = RegistrationOptions(source_trajectory_m=pair.trajectory_m, yaw_rad=(-middle, half))
    there = register(pair.scan, pair.glasses, _options(pair)).T_target_source
    back = register(pair.glasses, pair.scan, options).T_target_source
    assert there is not None
    assert back is not None
    np.testing.assert_allclose(back.matrix, there.inverse().matrix, atol=1e-6)


def test_the_same_data_give_the_same_result_wherever_the_scan_lies(pair: Pair) -> None:
    shift = np.array([5.0e5, 5.4e6, 300.0])
    once = register(pair.scan, pair.glasses, _options(pair)).T_target_source
    again = register(pair.scan, pair.glasses, _options(pair)).T_target_source
    far = register(
        _scan(pair, pair.scan.points_m + shift), pair.glasses, _options(pair)
    ).T_target_source
    assert once is not None
    assert again is not None
    assert far is not None
    np.testing.assert_array_equal(once.matrix, again.matrix)
    moved = far.matrix[:3, 3] + far.matrix[:3, :3] @ shift
    assert np.linalg.norm(moved - once.matrix[:3, 3]) < 0.003


def test_a_good_start_is_not_made_worse_and_a_rough_one_is_enough(pair: Pair) -> None:
    for turn_deg, shift in ((0.0, 0.0), (10.0, 0.4)):
        start = pair.truth.copy()
        start[:3, :3] = rotation_of(np.array([0, 0, np.radians(turn_deg)])) @ start[:3, :3]
        middle = pair.places_m.mean(axis=0)
        inverse = np.linalg.inv(pair.truth)
        start[:3, 3] = middle - start[:3, :3] @ (inverse[:3, :3] @ middle + inverse[:3, 3])
        start[0, 3] += shift
        options = replace(_options(pair), init=start)
        result = register(pair.scan, pair.glasses, options)
        assert result.status == "accepted", result.reason
        assert result.T_target_source is not None
        assert errors(pair, result.T_target_source.matrix)[1] < 0.006


def _small(kind: PairKind, seed: int) -> Pair:
    return make_pair(kind, seed, points=150_000, tracked=40_000, seconds=30.0)


@pytest.mark.parametrize("seed", [708, 803])
def test_a_corridor_is_flagged_along_its_length_though_its_ends_hold_it(seed: int) -> None:
    pair = _small("corridor", seed)
    result = register(pair.scan, pair.glasses, _options(pair))
    assert result.status == "degenerate", result.reason
    assert result.T_target_source is not None
    assert errors(pair, result.T_target_source.matrix)[1] < 0.01
    corners = pair.places_m[:8] - pair.places_m[:8].mean(axis=0)
    told = re.search(r"\((.+?), (.+?), (.+?)\)", result.weak_directions[0])
    assert told is not None
    along = abs(float(np.linalg.svd(corners)[2][0] @ [float(v) for v in told.groups()]))
    assert along > np.cos(np.radians(15))


@pytest.mark.parametrize("seed", [611, 724])
def test_a_scan_that_bends_is_placed_where_it_is_off_by_nothing_on_average(seed: int) -> None:
    pair = _small("handheld", seed)
    result = register(pair.scan, pair.glasses, _options(pair))
    assert result.status == "accepted", result.reason
    assert result.T_target_source is not None
    assert result.covariance is not None
    off = errors(pair, result.T_target_source.matrix)[1]
    assert off < 0.013  # the closest fit is 19 and 25 mm off
    sigma = displacement_sigma_m(result.covariance, pair.glasses.points_m)
    assert max(0.010, off / 2) <= sigma < 0.025


CUPBOARD = ((0.0, 1.0, 0.0), (0.5, 2.6, 1.9))
BENCH = ((2.2, 3.4, 0.0), (4.4, 4.0, 0.9))
BLOCK = ((3.9, 0.0, 0.0), (4.9, 0.7, 1.4))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_almost_empty_room_is_no_corridor(seed: int) -> None:
    boxes = (CUPBOARD, BENCH, BLOCK)
    pair = box_pair(seed, (6.2, 4.0, 2.6), boxes, boxes)
    result = register(pair.scan, pair.glasses, _options(pair))
    assert result.status == "accepted", result.reason
    assert result.weak_directions == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_room_much_longer_than_wide_is_a_corridor(seed: int) -> None:
    boxes = (((3.0, 0.0, 0.0), (3.6, 0.4, 1.9)),)
    pair = box_pair(seed, (10.0, 2.2, 2.6), boxes, boxes)
    result = register(pair.scan, pair.glasses, _options(pair))
    assert result.status == "degenerate", result.reason


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_moved_by_centimetres_neither_pulls_nor_passes_for_a_bend(seed: int) -> None:
    moved = ((0.04, 1.0, 0.0), (0.54, 2.6, 1.9))
    pair = box_pair(seed, (5.0, 4.0, 2.6), (CUPBOARD, BENCH), (moved, BENCH))
    result = register(pair.scan, pair.glasses, _options(pair))
    assert result.T_target_source is not None
    assert result.covariance is not None
    assert errors(pair, result.T_target_source.matrix)[1] < 0.003
    assert displacement_sigma_m(result.covariance, pair.glasses.points_m) < 0.005


def test_another_room_is_not_accepted() -> None:
    pair = make_pair("normal", 32, points=150_000, tracked=40_000, seconds=20.0, other_room=True)
    try:
        options = RegistrationOptions(target_trajectory_m=pair.trajectory_m)
        result = register(pair.scan, pair.glasses, options)
    except SynoramaError:
        return
    assert result.status != "accepted"
    assert result.overlap < 0.75


# --- what must be refused --------------------------------------------------------------------


def test_a_scan_in_millimetres_is_caught(pair: Pair) -> None:
    with pytest.raises(CloudUnitError, match="millimetres"):
        register(_scan(pair, pair.scan.points_m * 1000), pair.glasses)


def test_a_mirrored_scan_is_caught(pair: Pair) -> None:
    with pytest.raises(MirroredCloudError):
        register(_scan(pair, pair.scan.points_m * [-1, 1, 1]), pair.glasses, _options(pair))


def test_a_scan_on_its_head_is_caught(pair: Pair) -> None:
    with pytest.raises(UpDirectionError, match="upside down"):
        register(_scan(pair, pair.scan.points_m * [1, -1, -1]), pair.glasses, _options(pair))


def test_a_scan_on_its_side_is_caught(pair: Pair) -> None:
    with pytest.raises(UpDirectionError, match="side"):
        register(_scan(pair, pair.scan.points_m[:, [1, 2, 0]]), pair.glasses, _options(pair))


@pytest.mark.parametrize(
    ("points", "error"),
    [
        (np.zeros((0, 3)), EmptyCloudError),
        (np.full((5000, 3), np.nan), EmptyCloudError),
        (np.full((5000, 3), np.inf), EmptyCloudError),
        (np.ones((5000, 3)), FlatCloudError),
        (np.linspace(0, 5, 5000)[:, np.newaxis] * [1.0, 2.0, 0.5], FlatCloudError),
        (np.random.default_rng(0).uniform(-3, 3, (5000, 3)) * [1, 1, 0], FlatCloudError),
    ],
)
def test_clouds_that_fix_nothing_are_refused(
    pair: Pair, points: Float64, error: type[Exception]
) -> None:
    with pytest.raises(error):
        register(_scan(pair, points), pair.glasses)
    with pytest.raises(error):
        register(pair.glasses, _scan(pair, points))


def test_outliers_two_kilometres_away_change_nothing(pair: Pair) -> None:
    rng = np.random.default_rng(0)
    far = rng.uniform(-2000, 2000, (len(pair.scan.points_m) // 50, 3))
    scan = _scan(pair, np.concatenate([pair.scan.points_m, far]))
    result = register(scan, pair.glasses, _options(pair))
    assert result.status == "accepted"
    assert result.T_target_source is not None
    assert errors(pair, result.T_target_source.matrix)[1] < 0.006


def test_of_more_points_than_are_of_use_some_are_drawn(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    some = np.tile(pair.scan.points_m, (4, 1))
    scan = _scan(pair, some + 0.001 * rng.standard_normal(some.shape))
    monkeypatch.setattr(prepare, "MANY", len(some) // 2)
    drawn = prepare.few_enough(some)
    assert len(drawn) == len(some) // 2
    assert cKDTree(drawn).query(some)[0].max() < 0.5  # none of the room is left out
    np.testing.assert_array_equal(drawn, prepare.few_enough(some))
    result = register(scan, pair.glasses, _options(pair))
    assert result.status == "accepted"
    assert result.T_target_source is not None
    assert errors(pair, result.T_target_source.matrix)[1] < 0.006


def test_what_is_drawn_of_a_grid_is_not_one_column_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.stack(np.meshgrid(np.arange(400.0), np.arange(10.0), [0.0], indexing="ij"), axis=-1)
    monkeypatch.setattr(prepare, "MANY", 400)
    drawn = prepare.few_enough(grid.reshape(-1, 3))
    assert len(drawn) == 400
    assert len(np.unique(drawn[:, 1])) == 10


def test_a_start_that_is_no_rotation_is_refused(pair: Pair) -> None:
    with pytest.raises(UsageError):
        register(pair.scan, pair.glasses, RegistrationOptions(init=np.diag([2.0, 2, 2, 1])))


# --- pairs of points from a person -----------------------------------------------------------


def test_clicked_pairs() -> None:
    rng = np.random.default_rng(1)
    source = rng.uniform(-3, 3, (5, 3))
    turn = rotation_of(rng.normal(size=3))
    target = source @ turn.T + [1e5, 2, 3]
    T = transform_from_pairs(source, target)
    np.testing.assert_allclose(source @ T[:3, :3].T + T[:3, 3], target, atol=1e-6)
    with pytest.raises(MirroredCloudError):
        transform_from_pairs(source * [-1, 1, 1], target)
    with pytest.raises(CloudUnitError):
        transform_from_pairs(source * 1000, target)
    with pytest.raises(FlatCloudError):
        transform_from_pairs(np.arange(5.0)[:, None] * [1, 2, 3], target)
    with pytest.raises(InputError, match="pair 2"):
        transform_from_pairs(np.add(source, [[0], [2], [0], [0], [0]]), target)
    with pytest.raises(InputError):
        transform_from_pairs(source[:2], target[:2])


# --- the command -----------------------------------------------------------------------------


def _ply(path: Path, points: Float64) -> Path:
    head = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n"
        "property double x\nproperty double y\nproperty double z\nend_header\n"
    )
    path.write_bytes(head.encode() + points.astype("<f8").tobytes())
    return path


def test_the_command_writes_what_it_prints(pair: Pair, tmp_path: Path) -> None:
    scan = _ply(tmp_path / "scan.ply", pair.scan.points_m[:, [0, 2, 1]] * [1000, 1000, -1000])
    assert pair.glasses.sigma_m is not None
    rows = np.column_stack(
        [pair.glasses.points_m, pair.glasses.extra["inv_dist_std"], pair.glasses.sigma_m]
    )
    head = "uid,graph_uid,px_world,py_world,pz_world,inv_dist_std,dist_std\n"
    body = "".join(
        f"{k},g," + ",".join(f"{v:.6f}" for v in row) + "\n" for k, row in enumerate(rows)
    )
    (tmp_path / "semidense_points.csv").write_text(head + body)
    out = tmp_path / "T.json"
    ran = CliRunner().invoke(
        app,
        ["register", str(scan), str(tmp_path / "semidense_points.csv"), "--json", "-o", str(out),
         "--source-unit", "mm", "--source-up", "y", "--no-progress",
         "--yaw", str(np.degrees(_yaw(pair)[0]))],
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told == json.loads(out.read_text())
    assert told["status"] == "accepted"
    as_written = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    found = np.array(told["T_target_source"]) @ as_written
    assert errors(pair, found)[1] < 0.006
    assert 0 < told["sigma_translation_m"] < 0.05
    assert 0 < told["sigma_rotation_deg"] < 0.5


def test_the_command_refuses_in_words(tmp_path: Path) -> None:
    flat = np.random.default_rng(0).uniform(-3, 3, (5000, 3)) * [1, 1, 0]
    a, b = _ply(tmp_path / "a.ply", flat), _ply(tmp_path / "b.ply", flat)
    ran = CliRunner().invoke(app, ["register", str(a), str(b), "--json", "--no-progress"])
    assert ran.exit_code != 0


# --- real pairs ------------------------------------------------------------------------------


def test_an_outdoor_lidar_pair(shared_data: Path) -> None:
    from synorama.geometry.cloud import open_cloud, read_cloud

    folder = shared_data / "5_scans" / "small_gicp"
    truth = np.loadtxt(folder / "T_target_source.txt")
    source, target = (
        read_cloud(open_cloud(folder / f"{name}.ply"), voxel_m=0.01, frame=name)
        for name in ("source", "target")
    )
    result = register(source, target)
    assert result.T_target_source is not None, result.reason
    off = result.T_target_source.matrix @ np.linalg.inv(truth)
    turn = np.degrees(np.arccos(np.clip((np.trace(off[:3, :3]) - 1) / 2, -1, 1)))
    assert turn < 0.5
    assert np.linalg.norm(off[:3, 3]) < 0.10
