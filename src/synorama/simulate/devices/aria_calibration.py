"""Factory calibration of simulated glasses: plausible values of our own, in the vendor's JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["GEN1", "GEN2", "Body", "calibration_json", "imu_pose"]

MAX_SOLID_ANGLE_RAD = 1.9
BASE_FISHEYE = (-0.026, 0.101, -0.071, 0.012, 0.002, -0.0004)  # radial
BASE_TANGENTIAL = (0.0017, -0.0016)
BASE_PRISM = (-0.0012, 4e-5, 0.0023, -2e-5)
BASE_KANNALA = (0.041, -0.037, 0.11, -0.28)


@dataclass(frozen=True, slots=True)
class CameraBody:
    """A camera as built: model, focal length and size [px], and its pose on the device."""

    label: str
    model: str  # fisheye (FISHEYE624) or kannala (Kannala-Brandt K3)
    focal_px: float
    width: int
    height: int
    translation_m: tuple[float, float, float]
    quat_wxyz: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Body:
    """Glasses of one generation."""

    device_class: str
    build: str
    cameras: tuple[CameraBody, ...]
    imus: tuple[tuple[str, tuple[float, float, float], tuple[float, float, float, float]], ...]
    microphones: int
    magnetometer_gain: float


GEN1 = Body(
    device_class="Aria",
    build="DVT-S",
    cameras=(
        CameraBody("camera-slam-left", "fisheye", 241.0, 640, 480, (0, 0, 0), (1, 0, 0, 0)),
        CameraBody(
            "camera-slam-right", "fisheye", 240.5, 640, 480,
            (0.0050, -0.1090, -0.0840), (0.79, 0.61, 0.0, 0.02),
        ),
        CameraBody(
            "camera-et-left", "kannala", 557.0, 640, 480,
            (0.0220, -0.0120, -0.0090), (0.24, -0.38, -0.84, 0.30),
        ),
        CameraBody(
            "camera-et-right", "kannala", 556.0, 640, 480,
            (0.0250, -0.0960, -0.0750), (-0.74, 0.48, 0.47, 0.06),
        ),
        CameraBody(
            "camera-rgb", "fisheye", 1220.0, 2880, 2880,
            (-0.0040, -0.0120, -0.0050), (0.94, 0.33, 0.04, 0.03),
        ),
    ),
    imus=(
        ("imu-right", (0.005, -0.102, -0.086), (0.61, -0.79, -0.07, 0.06)),
        ("imu-left", (0.001, -0.001, -0.006), (0.03, -0.71, -0.70, 0.04)),
    ),
    microphones=7,
    magnetometer_gain=-1e-6,
)  # fmt: skip

GEN2 = Body(
    device_class="Oatmeal",
    build="EVT_SS",
    cameras=(
        CameraBody("slam-front-left", "fisheye", 245.0, 512, 512, (0, 0, 0), (1, 0, 0, 0)),
        CameraBody(
            "slam-front-right", "fisheye", 244.5, 512, 512,
            (0.127, 0.020, -0.042), (0.94, 0.0, 0.31, 0.14),
        ),
        CameraBody(
            "slam-side-left", "fisheye", 244.8, 512, 512,
            (-0.009, 0.003, -0.006), (0.84, 0.07, -0.50, -0.18),
        ),
        CameraBody(
            "slam-side-right", "fisheye", 244.0, 512, 512,
            (0.128, 0.025, -0.052), (-0.61, -0.05, -0.75, -0.27),
        ),
        CameraBody(
            "camera-et-left", "kannala", 203.0, 400, 400,
            (0.046, 0.031, -0.006), (0.52, 0.38, -0.76, 0.05),
        ),
        CameraBody(
            "camera-et-right", "kannala", 202.0, 400, 400,
            (0.078, 0.036, -0.017), (-0.25, -0.23, -0.94, 0.08),
        ),
        CameraBody(
            "camera-rgb", "fisheye", 1756.0, 4032, 3024,
            (0.011, 0.001, 0.0), (0.97, 0.15, 0.16, 0.05),
        ),
    ),
    imus=(
        ("imu-left", (-0.005, 0.001, -0.003), (0.52, 0.49, -0.23, -0.66)),
        ("imu-right", (0.128, 0.023, -0.048), (0.54, -0.45, 0.64, -0.31)),
    ),
    microphones=9,
    magnetometer_gain=-1.0,
)  # fmt: skip


def calibration_json(body: Body, serial: str, sizes: Mapping[str, tuple[int, int]]) -> str:
    """Return the calibration that stands in the file's ``calib_json`` tag.

    Parameters
    ----------
    body
        The glasses.
    serial
        Their serial number.
    sizes
        Width and height by camera label, for pictures of sizes that the glasses themselves do
        not record; the intrinsics follow. Other cameras keep the size of their sensor.
    """
    return json.dumps(
        {
            "AlgorithmName": "Simulated",
            "AlgorithmVersion": "1",
            "CalibrationSource": "Factory",
            "Serial": serial,
            "DeviceClassInfo": {"BuildVersion": body.build, "DeviceClass": body.device_class},
            "FileFormat": {
                "Tags": [],
                "Timestamp": "2024-01-01T00:00:00Z",
                "UnixTime": 1704067200,
                "Version": 3,
            },
            "OriginSpecification": {"ChildLabel": body.cameras[0].label, "Type": "Custom"},
            "CameraCalibrations": [_camera(c, sizes.get(c.label)) for c in body.cameras],
            "ImuCalibrations": [_imu(*imu) for imu in body.imus],
            "MagCalibrations": [
                {
                    "Label": "mag0",
                    "SerialNumber": "",
                    **_linear((np.eye(3) * body.magnetometer_gain).tolist()),
                }
            ],
            "BaroCalibrations": [
                {
                    "Label": "baro0",
                    "SerialNumber": "",
                    "PressureModel": {"Name": "Linear", "OffsetPa": 0.0, "Slope": 1.0},
                }
            ],
            "MicCalibrations": [
                {"Label": f"mic{k}", "SerialNumber": "", "DSensitivity1KDbv": -32.0}
                for k in range(body.microphones)
            ],
        },
        separators=(",", ":"),
    )


def imu_pose(body: Body, label: str) -> Float64:
    """Return ``T_device_imu`` ``(4, 4)``."""
    translation, quat = next(imu[1:] for imu in body.imus if imu[0] == label)
    unit = np.array(quat) / np.linalg.norm(quat)
    return RigidTransform.from_quat_wxyz("device", label, unit, translation).matrix


def _camera(camera: CameraBody, size: tuple[int, int] | None) -> dict[str, Any]:
    width, height = size or (camera.width, camera.height)
    told: dict[str, Any] = {
        "Calibrated": True,
        "Label": camera.label,
        "SerialNumber": f"SIM-{camera.label}",
        "T_Device_Camera": _pose(camera.translation_m, camera.quat_wxyz),
        "Projection": {
            "Name": "FisheyeRadTanThinPrism" if camera.model == "fisheye" else "KannalaBrandtK3",
            "Description": "",
            "Params": _intrinsics(camera, width, height),
        },
    }
    if size:
        told["ConfigData"] = {
            "ImageWidth": width,
            "ImageHeight": height,
            "MaxSolidAngle": MAX_SOLID_ANGLE_RAD,
        }
    return told


def _intrinsics(camera: CameraBody, width: int, height: int) -> list[float]:
    focal = camera.focal_px * width / camera.width
    centre = [(width - 1) / 2, (height - 1) / 2]
    if camera.model == "fisheye":
        return [focal, *centre, *BASE_FISHEYE, *BASE_TANGENTIAL, *BASE_PRISM]
    return [focal, focal, *centre, *BASE_KANNALA]


def _imu(
    label: str, translation_m: tuple[float, ...], quat_wxyz: tuple[float, ...]
) -> dict[str, Any]:
    model = _linear(np.eye(3).tolist())
    return {
        "Label": label,
        "SerialNumber": "",
        "Calibrated": True,
        "T_Device_Imu": _pose(translation_m, quat_wxyz),
        "Accelerometer": {**model, "TimeOffsetSec_Device_Accel": 0.0},
        "Gyroscope": {**model, "TimeOffsetSec_Device_Gyro": 0.0},
    }


def _linear(matrix: list[list[float]]) -> dict[str, Any]:
    return {
        "Bias": {"Name": "Constant", "Offset": [0.0, 0.0, 0.0]},
        "Model": {"Name": "Linear", "RectificationMatrix": matrix},
    }


def _pose(translation_m: tuple[float, ...], quat_wxyz: tuple[float, ...]) -> dict[str, Any]:
    w, *xyz = (np.array(quat_wxyz) / np.linalg.norm(quat_wxyz)).tolist()
    return {"Translation": list(translation_m), "UnitQuaternion": [w, xyz]}
