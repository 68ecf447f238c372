"""The cameras of Gen 1 glasses as the pictures in their files show them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from synorama.simulate.devices.aria import AriaCamera, calibration
from synorama.simulate.scene.cameras import Camera, Fisheye624, KannalaBrandt, Lens
from synorama.transform import RigidTransform

__all__ = ["glasses_cameras"]

SENSOR_PX = {"camera-rgb": (2880, 2880)}
OTHER_SENSOR_PX = (640, 480)
HALF = 0.5  # of full-size pictures that are smaller than their sensor: every second pixel
READOUT_S = {"camera-rgb": 0.005}  # as the services' calibration says
MAX_ANGLE_RAD = {"camera-rgb": 1.0, "camera-slam-left": 1.4, "camera-slam-right": 1.4}
EYE_MAX_ANGLE_RAD = 0.75
FISHEYE = "FisheyeRadTanThinPrism"


def glasses_cameras(serial: str, cameras: tuple[AriaCamera, ...]) -> dict[str, Camera]:
    """Return the camera behind each label, posed on the device.

    Parameters
    ----------
    serial
        Of the glasses.
    cameras
        What they record with. Where a picture is smaller than the sensor for which the camera is
        calibrated, its middle is cut out and every second pixel is kept, as the vendor's tools
        undo it.
    """
    told = {c["Label"]: c for c in json.loads(calibration(serial, cameras))["CameraCalibrations"]}
    return {
        label: _camera(told[label], camera.width // len(camera.labels), camera)
        for camera in cameras
        for label in camera.labels
    }


def _camera(told: dict[str, Any], width: int, camera: AriaCamera) -> Camera:
    label, place = told["Label"], told["T_Device_Camera"]
    w, xyz = place["UnitQuaternion"]
    pose = RigidTransform.from_quat_wxyz("device", label, (w, *xyz), place["Translation"])
    return Camera(
        label,
        _lens(told, (width, camera.height)),
        width,
        camera.height,
        np.array(pose.matrix),
        camera.colour,
        READOUT_S.get(label, 0.0),
    )


def _lens(told: dict[str, Any], size: tuple[int, int]) -> Lens:
    params = np.array(told["Projection"]["Params"])
    fisheye = told["Projection"]["Name"] == FISHEYE
    sensor = SENSOR_PX.get(told["Label"], OTHER_SENSOR_PX)
    halved = "ConfigData" not in told and sensor != size
    if halved:
        centre = slice(1, 3) if fisheye else slice(2, 4)
        params[centre] -= (np.array(sensor) - np.array(size) / HALF) / 2
    lens: Lens
    if fisheye:
        lens = Fisheye624.of(params, MAX_ANGLE_RAD[told["Label"]])
    else:
        fx, fy, cx, cy, *radial = params.tolist()
        lens = KannalaBrandt((fx, fy), (cx, cy), tuple(radial), EYE_MAX_ANGLE_RAD)
    return lens.scaled(HALF) if halved else lens
