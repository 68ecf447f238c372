"""Places of scans, wearers and cameras to the group ``/geometry`` and back, without loss."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from synorama.records import (
    CameraPose,
    GeometryResult,
    PointCloud,
    RegistrationResult,
    RegistrationStatus,
)
from synorama.session.parts import new_part, open_part
from synorama.session.storage import (
    attribute,
    in_order,
    read_json,
    read_table,
    set_attributes,
    set_position,
    write_json,
    write_table,
)
from synorama.transform import RigidTransform

__all__ = [
    "read_cloud",
    "read_geometry",
    "read_geometry_part",
    "write_cloud",
    "write_geometry",
    "write_geometry_part",
]

PART = "register"


def write_geometry_part(
    path: Path, result: GeometryResult, clouds: Mapping[str, PointCloud] | None = None
) -> None:
    """Write a result, and down-sampled scans by id, as the part of stage ``register``."""
    with new_part(path, PART) as file:
        root = file.create_group("geometry")
        write_geometry(root, result)
        for name, cloud in (clouds or {}).items():
            write_cloud(root["scans"][name].create_group("cloud"), cloud)


def read_geometry_part(path: Path) -> GeometryResult:
    """Read the result of a part of stage ``register``."""
    with open_part(path, PART) as file:
        return read_geometry(file["geometry"])


def write_geometry(group: Any, result: GeometryResult) -> None:
    """Write a result into the group ``geometry``: a group each for scans, wearers, cameras.

    Assembly copies the children of ``/geometry``, not its attributes: what holds for the whole
    lies in the child ``about``.
    """
    about = group.create_group("about")
    set_attributes(about, {"world": result.world})
    write_json(about, "warnings", list(result.warnings))
    for kind in ("scans", "wearers"):
        root = group.create_group(kind)
        for k, (name, one) in enumerate(getattr(result, kind).items()):
            inside = root.create_group(name)
            set_position(inside, k)
            _write_registration(inside, one)
    cameras = group.create_group("cameras")
    for k, (name, pose) in enumerate(result.cameras.items()):
        inside = cameras.create_group(name)
        set_position(inside, k)
        _write_camera(inside, pose)


def read_geometry(group: Any) -> GeometryResult:
    """Read what `write_geometry` wrote."""
    return GeometryResult(
        world=attribute(group["about"], "world"),
        scans={name: _read_registration(g) for name, g in in_order(group["scans"])},
        wearers={name: _read_registration(g) for name, g in in_order(group["wearers"])},
        cameras={name: _read_camera(name, g) for name, g in in_order(group["cameras"])},
        warnings=tuple(read_json(group["about"], "warnings")),
    )


# --- one registration ------------------------------------------------------------------------


def _write_registration(group: Any, result: RegistrationResult) -> None:
    set_attributes(
        group,
        {
            "status": result.status,
            "reason": result.reason,
            "method": result.method,
            "overlap": float(result.overlap),
            "inlier_rmse_m": float(result.inlier_rmse_m),
            "runner_up_ratio": float(result.runner_up_ratio),
        },
    )
    write_json(group, "weak_directions", list(result.weak_directions))
    if (there := result.T_target_source) is not None:
        set_attributes(group, {"target": there.target, "source": there.source})
        write_table(group, "T_target_source", there.matrix)
    if result.covariance is not None:
        write_table(group, "covariance", result.covariance)


def _read_registration(group: Any) -> RegistrationResult:
    there = None
    if "T_target_source" in group:
        frames = attribute(group, "target"), attribute(group, "source")
        there = RigidTransform(*frames, read_table(group, "T_target_source"))
    plain = ("reason", "method", "overlap", "inlier_rmse_m", "runner_up_ratio")
    return RegistrationResult(
        status=cast("RegistrationStatus", attribute(group, "status")),
        T_target_source=there,
        covariance=_optional(group, "covariance"),
        weak_directions=tuple(read_json(group, "weak_directions")),
        **{name: attribute(group, name) for name in plain},
    )


# --- one camera ------------------------------------------------------------------------------


def _write_camera(group: Any, pose: CameraPose) -> None:
    set_attributes(
        group,
        {
            "status": pose.status,
            "reason": pose.reason,
            "method": pose.method,
            "frames": pose.frames,
        },
    )
    write_table(group, "t_device_ns", pose.t_device_ns)
    write_table(group, "T_world_camera", pose.T_world_camera)
    if pose.covariance is not None:
        write_table(group, "covariance", pose.covariance)


def _read_camera(name: str, group: Any) -> CameraPose:
    return CameraPose(
        recording=name,
        status=cast("RegistrationStatus", attribute(group, "status")),
        reason=attribute(group, "reason"),
        t_device_ns=read_table(group, "t_device_ns"),
        T_world_camera=read_table(group, "T_world_camera"),
        covariance=_optional(group, "covariance"),
        frames=attribute(group, "frames"),
        method=attribute(group, "method"),
    )


def _optional(group: Any, name: str) -> Any:
    return read_table(group, name) if name in group else None


# --- down-sampled scans ----------------------------------------------------------------------


def write_cloud(group: Any, cloud: PointCloud) -> None:
    """Write points as float32 about an origin that is kept in double precision."""
    origin = np.floor(cloud.points_m.min(axis=0)) if len(cloud.points_m) else np.zeros(3)
    set_attributes(group, {"frame": cloud.frame})
    write_table(group, "origin_m", origin)
    write_table(group, "points_m", (cloud.points_m - origin).astype(np.float32))
    for name in ("normals", "colours", "sigma_m"):
        column = getattr(cloud, name)
        if column is not None:
            write_table(group, name, column)


def read_cloud(group: Any) -> PointCloud:
    """Read what `write_cloud` wrote."""
    points = read_table(group, "points_m").astype(np.float64) + read_table(group, "origin_m")
    columns = {name: _optional(group, name) for name in ("normals", "colours", "sigma_m")}
    return PointCloud(attribute(group, "frame"), points, **columns)
