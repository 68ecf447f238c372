"""Places by pictures: a scan in the world of the glasses, and GoPros in the room.

Each seed is a room. Its textures are once as they are, and once at a fifth of their contrast with
dark, noisy, blurred frames. The scan's landmarks are also mirrored, and those of the seed before
are tried: both are rooms in which the frames were not taken, and must be refused. GoPros are found
as the stage ``register`` does it: among landmarks of the glasses' frames, and of the scan where its
pictures put it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from bench.accept import Bar
from bench.localize_rooms import Lab
from synorama.geometry.cameras import CameraPictures, LocatedCamera, locate_camera, usual_lens
from synorama.geometry.landmarks import LandmarkView, from_cloud, from_motion, moved
from synorama.geometry.localize import Localization, locate_scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.geometry.views import PosedPicture

    Float64 = NDArray[np.float64]

GOPROS = 2
MIRROR = (-1.0, 1.0, 1.0)
FULL_DEG, FULL_M = 0.25, 0.015
WEAK_DEG, WEAK_M = 1.5, 0.05
CAMERA_DEG, CAMERA_M = 0.3, 0.02
WRONG_DEG, WRONG_M = 1.0, 0.06  # a camera that is accepted and as far off is wrong

BARS = (
    Bar("full_deg", "scan by pictures, full texture: rotation", "deg", FULL_DEG),
    Bar("full_m", "the same: translation, in the middle of the room", "m", FULL_M),
    Bar("full_accepted", "the same: accepted", "", 1.0, "share"),
    Bar(
        "weak_right",
        "contrast a fifth, dark, blurred: accepted, 1.5 deg and 5 cm",
        "",
        0.85,
        "share",
    ),
    Bar("wrong_scans", "wrong scans accepted: other rooms, mirrored rooms, wrong places", "", 0.0),
    Bar("scan_2_sigma", "scans: true error within 2 sigma", "", 0.9, "share"),
    Bar("camera_right", "GoPros: accepted, within 0.3 deg and 2 cm", "", 0.9, "share"),
    Bar("camera_deg", "GoPros that are accepted: rotation, median", "deg", CAMERA_DEG, "median"),
    Bar("camera_m", "the same: translation, median", "m", CAMERA_M, "median"),
    Bar(
        "wrong_cameras",
        "wrong cameras accepted: other rooms, mirrored rooms, wrong places",
        "",
        0.0,
    ),
    Bar("camera_2_sigma", "GoPros: true error within 2 sigma", "", 0.9, "share"),
)

Views: TypeAlias = tuple[LandmarkView, ...]

_before: list[tuple[Views, Views]] = []  # of the seed before: of its scan, and what a GoPro gets


@dataclass(frozen=True, slots=True)
class Off:
    """How far a pose is from the truth, and whether its covariance admits that."""

    deg: float
    metres: float
    within_2_sigma: bool


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Measure one room."""
    cv2.setNumThreads(1)
    lab = Lab(seed)
    landmarks = from_cloud(lab.scan_pictures(), lab.scan.points_m)
    frames = lab.glasses_frames()
    found = locate_scan(frames, landmarks, seed=seed)
    told, wrong = placed(lab, found, (FULL_DEG, FULL_M), "full")
    others = [_mirrored(landmarks), *(scan for scan, _ in _before)]
    refused = [locate_scan(frames, other, seed=seed) for other in others]
    wrong += sum(other.result.status == "accepted" for other in refused)
    world = _world(frames, landmarks, found)
    cameras = _cameras(lab, world, [_mirrored(world), *(both for _, both in _before)])
    _before[:] = [(landmarks, world)]
    weak, weak_wrong = _weak(Lab(seed, 0.2, dark=True))
    both = {
        "wrong_scans": float(wrong + weak_wrong),
        "wrong_likeness": max(other.likeness for other in refused),
    }
    sigma = [m["scan_2_sigma"] for m in (told, weak) if "scan_2_sigma" in m]
    sigmas = {"scan_2_sigma": float(np.mean(sigma))} if sigma else {}
    return told | weak | cameras | both | sigmas


def _world(frames: list[PosedPicture], landmarks: Views, found: Localization) -> Views:
    """Return what the stage has in the world of the glasses: as in `place_cameras`."""
    placed = found.result.T_target_source
    if found.result.status != "accepted" or placed is None:
        return from_motion(frames)
    return (*from_motion(frames), *moved(landmarks, placed.matrix))


def _weak(lab: Lab) -> tuple[dict[str, float], int]:
    landmarks = from_cloud(lab.scan_pictures(), lab.scan.points_m)
    found = locate_scan(lab.glasses_frames(), landmarks, seed=lab.seed)
    told, wrong = placed(lab, found, (WEAK_DEG, WEAK_M), "weak")
    right = told["weak_accepted"] and not wrong
    return told | {"weak_right": float(right)}, wrong


def placed(
    lab: Lab, found: Localization, limits: tuple[float, float], name: str
) -> tuple[dict[str, float], int]:
    """Return what is told of a scan's place, and 1 if it was accepted and is wrong."""
    accepted = found.result.status == "accepted"
    told = {f"{name}_accepted": float(accepted), f"{name}_chance_ratio": found.chance_ratio}
    told[f"{name}_likeness"] = found.likeness
    if found.result.T_target_source is None or found.result.covariance is None:
        return told, 0
    middle = lab.scan.points_m[::50].mean(axis=0)
    off = _off(found.result.T_target_source.matrix, lab.world_scan, found.result.covariance, middle)
    told |= {f"{name}_deg": off.deg, f"{name}_m": off.metres}
    if accepted:
        told["scan_2_sigma"] = float(off.within_2_sigma)
    return told, int(accepted and (off.deg > limits[0] or off.metres > limits[1]))


def _off(found: Float64, true: Float64, covariance: Float64, at: Float64) -> Off:
    turn = Rotation.from_matrix(found[:3, :3] @ true[:3, :3].T).magnitude()
    gap = (found[:3, :3] - true[:3, :3]) @ at + found[:3, 3] - true[:3, 3]
    spread = [np.sqrt(np.linalg.eigvalsh(c)[-1]) for c in (covariance[:3, :3], covariance[3:, 3:])]
    size = float(np.linalg.norm(gap))
    return Off(float(np.degrees(turn)), size, turn <= 2 * spread[0] and size <= 2 * spread[1])


def _mirrored(views: Views) -> Views:
    return tuple(
        replace(v, points_m=v.points_m * MIRROR, rays=v.rays * MIRROR, arms_m=v.arms_m * MIRROR)
        for v in views
    )


def _cameras(lab: Lab, world: Views, others: Sequence[Views]) -> dict[str, float]:
    right: list[bool] = []
    sigma: list[bool] = []
    degs: list[float] = []
    metres: list[float] = []
    alike: list[float] = []
    wrong = 0
    for number in range(GOPROS):
        lens, pictures, true = lab.gopro(number)
        camera = CameraPictures(
            f"gopro-{number}", np.arange(len(pictures)), pictures,
            usual_lens("gopro", lens.width, lens.height), device="gopro",
        )  # fmt: skip
        found = locate_camera(camera, world, seed=lab.seed)
        off = _camera_off(found, true)
        alike.append(found.likeness)
        right.append(off is not None and off.deg <= CAMERA_DEG and off.metres <= CAMERA_M)
        if off is not None:
            degs, metres = [*degs, off.deg], [*metres, off.metres]
            sigma.append(off.within_2_sigma)
            wrong += off.deg > WRONG_DEG or off.metres > WRONG_M
        if number == 0:
            wrong += sum(locate_camera(camera, o).pose.status == "accepted" for o in others)
    told = {"camera_right": float(np.mean(right)), "wrong_cameras": float(wrong)}
    told["camera_likeness"] = float(min(alike))
    if degs:
        told |= {"camera_deg": float(np.mean(degs)), "camera_m": float(np.mean(metres))}
        told["camera_2_sigma"] = float(np.mean(sigma))
    return told


def _camera_off(found: LocatedCamera, true: Float64) -> Off | None:
    if found.pose.status != "accepted" or found.pose.covariance is None:
        return None
    return _off(found.pose.T_world_camera[0], true, found.pose.covariance, np.zeros(3))
