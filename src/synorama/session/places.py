"""Where scans, other glasses, cameras and objects are, as plain facts that can become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.geometry.confidence import displacement_sigma_m
from synorama.records import CameraPose, GeometryResult, ObjectRecord, RegistrationResult
from synorama.session.geometry_io import read_cloud
from synorama.session.guard import open_guarded
from synorama.session.storage import damage_named
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["object_facts", "place_facts", "scanned_places_m"]


def place_facts(
    geometry: GeometryResult, rooms_m: Mapping[str, Float64] | None = None
) -> dict[str, Any]:
    """Return where everything is in the world frame.

    Parameters
    ----------
    geometry
        What was registered.
    rooms_m
        By scan, places of it in the world frame, over which its sigma is told.
    """
    rooms = rooms_m or {}
    scans = [_laid("scan", n, r, rooms.get(n)) for n, r in geometry.scans.items()]
    wearers = [_laid("wearer", n, r, None) for n, r in geometry.wearers.items()]
    cameras = [_stood(name, pose) for name, pose in geometry.cameras.items()]
    return {
        "world": geometry.world,
        "places": [*scans, *wearers, *cameras],
        "warnings": list(geometry.warnings),
    }


def _common(of: str, name: str, one: RegistrationResult | CameraPose) -> dict[str, Any]:
    return {
        "of": of,
        "name": name,
        "status": one.status,
        "reason": one.reason,
        "method": one.method,
        "sigma_rotation_deg": _turn_deg(one.covariance),
    }


def _laid(of: str, name: str, one: RegistrationResult, room_m: Float64 | None) -> dict[str, Any]:
    sigma_m = None
    if one.covariance is not None and room_m is not None and len(room_m):
        sigma_m = displacement_sigma_m(one.covariance, room_m)
    return _common(of, name, one) | {
        "sigma_translation_m": sigma_m,
        "overlap": one.overlap,
        "inlier_rmse_m": one.inlier_rmse_m if np.isfinite(one.inlier_rmse_m) else None,
        "runner_up_ratio": one.runner_up_ratio,
        "weak_directions": list(one.weak_directions),
        "T_world_source": _rows(one.T_target_source),
    }


def _stood(name: str, pose: CameraPose) -> dict[str, Any]:
    """Return the facts of a camera; of one that moved, the first pose."""
    shift = None if pose.covariance is None else float(np.sqrt(np.trace(pose.covariance[3:, 3:])))
    return _common("camera", name, pose) | {
        "sigma_translation_m": shift,
        "frames": pose.frames,
        "T_world_source": pose.T_world_camera[0].tolist() if len(pose.T_world_camera) else None,
    }


def _turn_deg(covariance: Float64 | None) -> float | None:
    if covariance is None:
        return None
    return float(np.degrees(np.sqrt(np.trace(covariance[:3, :3]))))


def _rows(there: RigidTransform | None) -> list[list[float]] | None:
    return None if there is None else there.matrix.tolist()


def object_facts(one: ObjectRecord) -> dict[str, Any]:
    """Return what is known of a scanned object."""
    if one.refused:
        return {"name": one.name, "refused": one.refused}
    place = one.place
    return {
        "name": one.name,
        "unit": one.unit,
        "unit_recognised": one.unit_recognised,
        "size_m": one.size_m.tolist(),
        "triangles": one.triangles,
        "watertight": one.watertight,
        "textured": one.textured,
        "files": [{"name": f.name, "bytes": f.bytes, "digest": f.digest} for f in one.files],
        "notes": list(one.notes),
        "placed_by": place.by if place else None,
        "placed_how": place.how if place else None,
        "sigma_m": place.sigma_m if place else None,
        "T_world_object": _rows(place.T_world_object) if place else None,
        "T_scan_object": _rows(place.T_scan_object) if place else None,
    }


def scanned_places_m(path: Path, geometry: GeometryResult) -> dict[str, Float64]:
    """Read by scan the places that it shows, in the world frame, from a session file."""
    found = {}
    with open_guarded(path) as file, damage_named(path):
        for name, one in geometry.scans.items():
            group = file["geometry/scans"][name]
            if one.T_target_source is not None and "cloud" in group:
                cloud = read_cloud(group["cloud"])
                found[name] = one.T_target_source.apply(cloud.points_m, frame=cloud.frame)
    return found
