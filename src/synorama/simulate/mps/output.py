"""The services' output folders, as they are downloaded.

Several wearers in one frame: trajectories and points lie in numbered folders of a multi-SLAM
folder, which ``vrs_to_multi_slam.json`` maps to the recordings; gaze and hands lie beside each
recording. Wearers each in a frame of their own: all lies beside each recording.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.devices.aria_streams import Glasses, times_ns
from synorama.simulate.mps.calibration import cameras_of, serials_of, write_online_calibration
from synorama.simulate.mps.estimate import CLOSED_SIGMA, Estimate, Wander
from synorama.simulate.mps.gaze import eye_gaze
from synorama.simulate.mps.hands import hand_results, wrist_and_palm
from synorama.simulate.mps.points import (
    SemiDense,
    observation_columns,
    point_columns,
    track_points,
)
from synorama.simulate.mps.tables import write_json, write_table
from synorama.simulate.mps.trajectory import closed_loop, open_loop, trajectory_times_us
from synorama.simulate.scene.meshes import pose
from synorama.simulate.scene.motion import Wearer
from synorama.simulate.scene.room import WORLD
from synorama.simulate.scene.surface import Surface
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["MpsOptions", "MpsTruth", "Worn", "write_mps"]

MULTI_SLAM = "multi_slam"
MAPPING = "vrs_to_multi_slam.json"
UPLOADED_FROM = "/recordings"  # paths in the mapping are those of who asked for the services
PICTURES_HZ = 10.0  # of the SLAM and eye cameras
SERVICE_VERSION = "1.2.3"
AWAY_M = 3.0  # most between the origins of room and services, along each axis


@dataclass(frozen=True, slots=True, eq=False)
class Worn:
    """Glasses whose recording the services got.

    Parameters
    ----------
    glasses, wearer
        Which glasses, on whose head.
    vrs
        The recording, relative to the session's folder.
    calibration
        The factory calibration in the recording, as `calibration_json` gives it.
    """

    glasses: Glasses
    wearer: Wearer
    vrs: Path
    calibration: str


@dataclass(frozen=True, slots=True)
class MpsOptions:
    """What the services were asked for.

    Parameters
    ----------
    frames
        ``shared``: all wearers in one frame; ``own``: each in a frame that nothing relates to
        the others'.
    missing
        Names of glasses for which the services gave no trajectory and no points.
    points
        Semi-dense points of each wearer, at most.
    """

    frames: Literal["shared", "own"] = "shared"
    missing: tuple[str, ...] = ()
    points: int = 60_000


@dataclass(frozen=True, slots=True, eq=False)
class MpsTruth:
    """What is true of the output for one wearer.

    Parameters
    ----------
    folders
        Its folders, relative to the session's folder.
    graph_uid
        Of the frame; empty where there is no trajectory.
    mps_world
        ``T_FRAME_world``: from the room to the services' ``world``.
    estimate
        Truth and belief at any time, None where there is no trajectory.
    points
        The points with the truth of each, None where there are none.
    """

    folders: tuple[Path, ...]
    graph_uid: str
    mps_world: RigidTransform
    estimate: Estimate
    points: SemiDense | None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "folders": [folder.as_posix() for folder in self.folders],
            "graph_uid": self.graph_uid,
            "T_mps_world": self.mps_world.matrix.tolist(),
            "pose_error_sigma": list(CLOSED_SIGMA),
        }


def write_mps(
    folder: Path, worn: Sequence[Worn], surface: Surface, options: MpsOptions | None = None
) -> dict[str, MpsTruth]:
    """Write the services' output for all glasses of a session, and return what is true of it.

    Parameters
    ----------
    folder
        The session's folder.
    worn
        Its glasses.
    surface
        The room as it stood in the session, in frame ``world``.
    options
        What the services were asked for; one frame for all by default.
    """
    asked = options or MpsOptions()
    truths = {}
    mapping = {}
    for number, item in enumerate(worn):
        name = item.glasses.name
        beside = item.vrs.parent / f"mps_{item.vrs.stem}_vrs"
        multi = Path(MULTI_SLAM) / str(number)
        slam = (multi if asked.frames == "shared" else beside) / "slam"
        estimate = _estimate(item, asked)
        (folder / beside).mkdir()
        _write_gaze(folder / beside / "eye_gaze", estimate)
        _write_hands(folder / beside / "hand_tracking", estimate)
        uid, points = "", None
        folders: tuple[Path, ...] = (beside,)
        if name not in asked.missing:
            uid = _graph_uid(item, asked)
            points = _write_slam(folder / slam, item, estimate, surface, (uid, asked.points))
            folders = (multi, beside) if asked.frames == "shared" else folders
            mapping[f"{UPLOADED_FROM}/{item.vrs.as_posix()}"] = str(number)
        truths[name] = MpsTruth(folders, uid, estimate.mps_world, estimate, points)
    if asked.frames == "shared" and mapping:
        write_json(folder / MULTI_SLAM / MAPPING, mapping)
    return truths


# --- frames ----------------------------------------------------------------------------------


def _estimate(item: Worn, asked: MpsOptions) -> Estimate:
    frame = "mps" if asked.frames == "shared" else f"mps/{item.glasses.name}"
    rng = randomness(item.glasses.seed, frame, "frame")
    x, y = rng.uniform(-AWAY_M, AWAY_M, 2)
    matrix = pose(float(x), float(y), float(rng.uniform(-1.8, -1.4)), rng.uniform(-np.pi, np.pi))
    error = Wander.draw(item.glasses.random("mps error"), CLOSED_SIGMA)
    return Estimate(item.glasses, item.wearer, RigidTransform(frame, WORLD, matrix), error)


def _graph_uid(item: Worn, asked: MpsOptions) -> str:
    who = "all" if asked.frames == "shared" else item.glasses.name
    drawn = randomness(item.glasses.seed, "graph", who).bytes(16)
    return str(uuid.UUID(bytes=drawn, version=4))


# --- services --------------------------------------------------------------------------------


def _write_slam(
    folder: Path, item: Worn, estimate: Estimate, surface: Surface, asked: tuple[str, int]
) -> SemiDense:
    graph_uid, count = asked
    folder.mkdir(parents=True)
    frames = times_ns(item.glasses, "slam-left", PICTURES_HZ, jitter_ns=0.0)
    times_us = trajectory_times_us(estimate, frames)
    closed = closed_loop(estimate, times_us, graph_uid)
    write_table(folder / "closed_loop_trajectory.csv", closed)
    write_table(folder / "open_loop_trajectory.csv", open_loop(estimate, times_us))
    frames = frames[(frames >= times_us[0] * 1000) & (frames <= times_us[-1] * 1000)]
    cameras, serials = cameras_of(item.calibration), serials_of(item.calibration)
    points = track_points(surface, estimate, cameras, frames, count)
    write_table(folder / "semidense_points.csv.gz", point_columns(points, graph_uid))
    seen = observation_columns(surface, estimate, cameras, serials, frames, points)
    write_table(folder / "semidense_observations.csv.gz", seen)
    write_online_calibration(
        folder / "online_calibration.jsonl", estimate, item.calibration, frames
    )
    write_json(folder / "summary.json", _slam_summary(closed))
    return points


def _slam_summary(closed: Mapping[str, Any]) -> dict[str, Any]:
    path = np.column_stack([closed[f"t{axis}_world_device"] for axis in "xyz"])
    length_m = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    seconds = float(np.ptp(closed["tracking_timestamp_us"])) / 1e6
    told = f"Recording total time: {seconds:.6f} s; Trajectory total length: {length_m:.2f}m"
    steps = ("VRS Health Check", "SLAM", "SemiDense Tracker", "Compute Global Pointcloud")
    done: dict[str, Any] = {
        step: {
            "status": "SUCCESS",
            "info": [told] if step == "SLAM" else [],
            "warnings": [],
            "errors": [],
        }
        for step in steps
    }
    return {**done, "version": SERVICE_VERSION}


def _write_gaze(folder: Path, estimate: Estimate) -> None:
    folder.mkdir()
    times = times_ns(estimate.glasses, "et", PICTURES_HZ, jitter_ns=0.0)
    write_table(folder / "general_eye_gaze.csv", eye_gaze(estimate, times))
    done = {"status": "SUCCESS", "message": ""}
    write_json(folder / "summary.json", {"GazeInference": done, "version": SERVICE_VERSION})


def _write_hands(folder: Path, estimate: Estimate) -> None:
    folder.mkdir()
    times = times_ns(estimate.glasses, "slam-left", PICTURES_HZ, jitter_ns=0.0)
    results = hand_results(estimate, times)
    write_table(folder / "wrist_and_palm_poses.csv", wrist_and_palm(estimate, times))
    write_table(folder / "hand_tracking_results.csv", results)
    sure = np.stack([results[f"{side}_tracking_confidence"] for side in ("left", "right")])
    write_json(
        folder / "summary.json",
        {
            "mean_confidence": float(sure[sure > 0].mean()) if (sure > 0).any() else 0.0,
            "total_frames": len(times),
            "valid_frame_fraction": float((sure > 0).any(axis=0).mean()),
            "version": SERVICE_VERSION,
        },
    )
