"""Cameras of the glasses from their factory calibration, and the online calibration of MPS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.mps.estimate import Estimate, Wander
from synorama.simulate.scene.cameras import Camera, Fisheye624
from synorama.timebase import NS_PER_S
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["SLAM_LABELS", "cameras_of", "serials_of", "write_online_calibration"]

SLAM_LABELS = ("camera-slam-left", "camera-slam-right")
ONLINE_LABELS = (*SLAM_LABELS, "camera-rgb")
SENSOR_PX = {"camera-slam-left": (640, 480), "camera-slam-right": (640, 480)}
RGB_SENSOR_PX = (2880, 2880)
READOUT = [[2, 0.005]]  # number of the rolling-shutter camera, time of its read-out [s]
FOCAL_SIGMA_PX, CENTRE_SIGMA_PX = 0.02, 0.05  # at a picture 640 wide
PLACE_SIGMA_M, TURN_SIGMA_RAD = 5e-5, 1e-4
BIAS_SIGMA = {"Gyroscope": 2e-4, "Accelerometer": 5e-3}  # rad/s, m/s^2


def cameras_of(calibration: str, labels: tuple[str, ...] = SLAM_LABELS) -> tuple[Camera, ...]:
    """Return fisheye cameras of the ``calib_json`` of a recording, for pictures of its size."""
    told = {c["Label"]: c for c in json.loads(calibration)["CameraCalibrations"]}
    return tuple(_camera(told[label]) for label in labels)


def serials_of(calibration: str, labels: tuple[str, ...] = SLAM_LABELS) -> tuple[str, ...]:
    """Return the serial numbers of cameras."""
    told = {c["Label"]: c for c in json.loads(calibration)["CameraCalibrations"]}
    return tuple(told[label]["SerialNumber"] for label in labels)


def _camera(told: dict[str, Any]) -> Camera:
    label, place = told["Label"], told["T_Device_Camera"]
    w, xyz = place["UnitQuaternion"]
    pose = RigidTransform.from_quat_wxyz("device", label, (w, *xyz), place["Translation"])
    lens = Fisheye624.of(told["Projection"]["Params"])
    return Camera(label, lens, *_size_px(told), np.array(pose.matrix), label == "camera-rgb")


def _size_px(told: dict[str, Any]) -> tuple[int, int]:
    if "ConfigData" in told:
        return told["ConfigData"]["ImageWidth"], told["ConfigData"]["ImageHeight"]
    return SENSOR_PX.get(told["Label"], RGB_SENSOR_PX)


def write_online_calibration(
    path: Path, estimate: Estimate, calibration: str, times_ns: Int64
) -> None:
    """Write ``online_calibration.jsonl``: the factory's values, which wander a little.

    As version 1.1 of the services has it, with the size for which each camera is calibrated.
    """
    with path.open("x", encoding="utf-8") as file:
        for document in _documents(estimate, json.loads(calibration), times_ns):
            file.write(json.dumps(document, separators=(",", ":")) + "\n")


def _documents(
    estimate: Estimate, factory: dict[str, Any], times_ns: Int64
) -> Iterator[dict[str, Any]]:
    glasses = estimate.glasses
    told = {c["Label"]: c for c in factory["CameraCalibrations"]}
    cameras = [told[label] for label in ONLINE_LABELS]
    seconds = (times_ns - glasses.start_ns) / NS_PER_S
    rng = glasses.random("mps calibration")
    wander = Wander.draw(rng, (1.0,) * 9)(seconds)
    for time_ns, change in zip(times_ns.tolist(), wander, strict=True):
        yield {
            "utc_timestamp_ns": glasses.start_epoch_s * NS_PER_S + time_ns - glasses.start_ns,
            "tracking_timestamp_us": time_ns // 1000,
            "ReadoutTimesSec": READOUT,
            "ImuCalibrations": [_imu(imu, change[6:]) for imu in factory["ImuCalibrations"]],
            "ImageSizes": [list(_size_px(camera)) for camera in cameras],
            "CameraCalibrations": [_changed(camera, change) for camera in cameras],
        }


def _changed(camera: dict[str, Any], change: Float64) -> dict[str, Any]:
    scale = _size_px(camera)[0] / 640
    params = np.array(camera["Projection"]["Params"])
    params[0] += FOCAL_SIGMA_PX * scale * change[0]
    params[1:3] += CENTRE_SIGMA_PX * scale * change[1:3]
    kept = {k: v for k, v in camera.items() if k != "ConfigData"}
    projection = {**camera["Projection"], "Params": params.tolist()}
    return {**kept, "Projection": projection, "T_Device_Camera": _place(camera, change[3:6])}


def _place(camera: dict[str, Any], change: Float64) -> dict[str, Any]:
    """Return the pose of a camera; the first, on which the device frame stands, stays."""
    place: dict[str, Any] = camera["T_Device_Camera"]
    if camera["Label"] == SLAM_LABELS[0]:
        return place
    w, xyz = place["UnitQuaternion"]
    quat = np.array([w, *xyz]) + TURN_SIGMA_RAD / 2 * np.array([0.0, *change])
    quat /= np.linalg.norm(quat)
    moved = np.array(place["Translation"]) + PLACE_SIGMA_M * change
    return {"Translation": moved.tolist(), "UnitQuaternion": [quat[0], quat[1:].tolist()]}


def _imu(imu: dict[str, Any], change: Float64) -> dict[str, Any]:
    biased = {}
    for part, sigma in BIAS_SIGMA.items():
        bias = {"Name": "Constant", "Offset": (sigma * change).tolist()}
        biased[part] = {**imu[part], "Bias": bias}
    return {**imu, **biased}
