"""Two clouds in files, one in the frame of the other: what ``synorama register`` does.

Files of clouds are read by `synorama.geometry`, points of glasses by `synorama.capture`; this is
where the two meet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.mps import mps_points
from synorama.errors import InputError, UsageError
from synorama.geometry.cloud import check_size, open_cloud, read_cloud, unit_in_m
from synorama.geometry.confidence import displacement_sigma_m
from synorama.geometry.correspond import transform_from_pairs
from synorama.geometry.register import RegistrationOptions, register
from synorama.records import PointCloud, RegistrationResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["Side", "as_document", "read_init", "read_pairs", "read_side", "register_files"]

VOXEL_M = 0.01
MPS_SUFFIXES = (".csv", ".gz")
UPS = {
    "z": np.eye(3),
    "-z": np.diag([1.0, -1.0, -1.0]),
    "y": np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]),
    "-y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "x": np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]]),
    "-x": np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
}
"""Rotations that bring an axis of the file to z."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two clouds, as it is registered.

    Parameters
    ----------
    cloud
        Upright, in metres.
    trajectory_m
        ``(K, 3)`` where the glasses were, or None.
    upright
        ``(4, 4)`` from the file's axes to the cloud's.
    handheld
        Whether the scanner was moved; None where the file does not tell.
    """

    cloud: PointCloud
    trajectory_m: Float64 | None
    upright: Float64
    handheld: bool | None


def read_side(
    path: Path,
    frame: str,
    *,
    unit: str | None = None,
    up: str = "z",
    progress: Progress | None = None,
) -> Side:
    """Read one of the clouds: a file of points, or glasses' semi-dense points.

    Parameters
    ----------
    frame
        Name of its frame.
    unit
        ``m cm mm ft in``; what the file says, else metres, by default.
    up
        Which axis of the file points up.
    """
    if up not in UPS:
        raise UsageError(f"'{up}' is no axis", hint=f"give one of {', '.join(UPS)}")
    upright = np.eye(4)
    upright[:3, :3] = UPS[up]
    if path.suffix.lower() in MPS_SUFFIXES:
        return _glasses(path, frame, upright)
    file = open_cloud(path)
    given = None if unit is None else unit_in_m(unit)
    cloud = read_cloud(file, voxel_m=VOXEL_M, unit_m=given, frame=frame, progress=progress)
    check_size(cloud, path)
    stations = any(scan.T_file_scan is not None for scan in file.scans)
    turned = replace(cloud, points_m=cloud.points_m @ upright[:3, :3].T)
    return Side(turned, None, upright, False if stations and len(file.scans) > 1 else None)


def _glasses(path: Path, frame: str, upright: Float64) -> Side:
    points, poses = mps_points(path)
    cloud = replace(points.read(), frame=frame)
    turned = replace(cloud, points_m=cloud.points_m @ upright[:3, :3].T)
    trajectory: Float64 | None = None
    if poses is not None:
        values = poses.read().values
        names = [column.name for column in poses.columns]
        places = values[:, [names.index(axis) for axis in ("tx", "ty", "tz")]].astype(np.float64)
        trajectory = places[:: max(1, len(places) // 5000)] @ upright[:3, :3].T
    return Side(turned, trajectory, upright, None)


def register_files(
    source: Side,
    target: Side,
    *,
    init: Float64 | None = None,
    yaw_rad: tuple[float, float] | None = None,
    handheld: bool | None = None,
) -> RegistrationResult:
    """Register two clouds that were read, and give the result between their files' frames.

    Parameters
    ----------
    init
        ``T_target_source`` ``(4, 4)`` between the files' frames, from a person.
    yaw_rad
        Turn about the vertical from source to target, and how far it may be off.
    handheld
        Whether the scanner was moved; what the files tell by default.
    """
    moved = source.handheld if handheld is None else handheld
    start = None if init is None else target.upright @ init @ np.linalg.inv(source.upright)
    options = RegistrationOptions(
        init=start,
        yaw_rad=yaw_rad,
        source_trajectory_m=source.trajectory_m,
        target_trajectory_m=target.trajectory_m,
        handheld=target.handheld if moved is None else moved,
    )
    return register(source.cloud, target.cloud, options)


# --- what a person gives ---------------------------------------------------------------------


def read_init(path: Path) -> Float64:
    """Read ``T_target_source`` from JSON (4x4 rows, or a document that has it) or a 4x4 text.

    Raises
    ------
    InputError
        The file holds no such matrix.
    """
    try:
        text = path.read_text("utf-8")
        if text.lstrip()[:1] in ("{", "["):
            told = json.loads(text)
            matrix = np.array(told["T_target_source"] if isinstance(told, dict) else told, float)
        else:
            matrix = np.array(text.split(), float).reshape(4, 4)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"this is no 4x4 transform: {error}", path=path) from error
    if matrix.shape != (4, 4):
        raise InputError(f"a transform is 4x4, this is {matrix.shape}", path=path)
    return matrix


def read_pairs(path: Path) -> Float64:
    """Read points that a person clicked in both clouds, and return ``T_target_source``.

    One pair a line: x y z in the source, x y z in the target [m], parted by blanks or commas.
    """
    try:
        rows = path.read_text("utf-8").replace(",", " ").splitlines()
        pairs = np.array([row.split() for row in rows if row.strip()], float)
    except (OSError, ValueError) as error:
        raise InputError(f"these are no pairs of points: {error}", path=path) from error
    if pairs.ndim != 2 or pairs.shape[1] != 6:
        raise InputError("each line must hold six numbers", path=path, hint="x y z  x y z")
    return transform_from_pairs(pairs[:, :3], pairs[:, 3:])


# --- what is printed -------------------------------------------------------------------------


def as_document(result: RegistrationResult, source: Side, target: Side) -> dict[str, Any]:
    """Return a result as JSON-able values, between the frames of the files."""
    T = result.T_target_source
    matrix = None
    turn = shift = None
    if T is not None:
        matrix = (np.linalg.inv(target.upright) @ T.matrix @ source.upright).tolist()
        if result.covariance is not None:
            turn = float(np.degrees(np.sqrt(np.trace(result.covariance[:3, :3]))))
            shift = displacement_sigma_m(result.covariance, target.cloud.points_m)
    return {
        "status": result.status,
        "reason": result.reason,
        "T_target_source": matrix,
        "overlap": result.overlap,
        "inlier_rmse_m": _finite(result.inlier_rmse_m),
        "sigma_rotation_deg": turn,
        "sigma_translation_m": shift,
        "weak_directions": list(result.weak_directions),
        "runner_up_ratio": result.runner_up_ratio,
        "method": result.method,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
