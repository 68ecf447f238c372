"""What the fields of Aria's sensor streams mean: columns, units, frames.

Field names and units are those of the layouts that the vendor publishes
(https://github.com/facebookresearch/projectaria_tools, ``core/data_provider/data_layout``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synorama.records import Column, SampleKind

__all__ = ["RECORD_TIME", "Floats", "Table", "table_for"]

RECORD_TIME = ""

XYZ, XYZW = ("x", "y", "z"), ("x", "y", "z", "w")
HAND_JOINTS, HAND_FINGERS, HAND_LANDMARKS = 22, 5, 21


@dataclass(frozen=True, slots=True)
class Floats:
    """A field that becomes columns of numbers.

    Parameters
    ----------
    field
        The VRS field.
    columns
        One name a number of the field.
    unit
        Unit of the columns, after scaling.
    valid
        A field that tells where there is a value; elsewhere the columns are NaN.
    scale
        Unit per stored number.
    """

    field: str
    columns: tuple[str, ...]
    unit: str
    valid: str = ""
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Table:
    """How the records of a stream become the rows of a sample track.

    ``time`` is the field that holds the device time, or `RECORD_TIME` where the only device time
    is the record's own. ``integers`` and ``texts`` map names of extra columns to VRS fields.
    ``regular`` marks sensors that sample at a fixed rate, of which a pause is a fault.
    """

    values: tuple[Floats, ...]
    time: str = "capture_timestamp_ns"
    kind: SampleKind = "samples"
    frame: str = ""
    integers: Mapping[str, str] | None = None
    texts: Mapping[str, str] | None = None
    location: bool = False
    regular: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of numbers, in order."""
        return tuple(Column(name, v.unit) for v in self.values for name in v.columns)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fixed-size fields that the table needs."""
        valid = (v.valid for v in self.values if v.valid)
        integers = (self.integers or {}).values()
        time = (self.time,) if self.time != RECORD_TIME else ()
        return (*time, *(v.field for v in self.values), *valid, *integers)


def _named(prefix: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}_{part}" for part in parts)


def _one(field: str, column: str, unit: str, valid: str = "") -> Floats:
    return Floats(field, (column,), unit, valid)


def _three(field: str, column: str, unit: str, valid: str = "") -> Floats:
    return Floats(field, _named(column, XYZ), unit, valid)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


# --- inertial and environment ----------------------------------------------------------------

IMU = Table(
    (
        _three("accelerometer", "accel", "m/s^2"),
        _three("gyroscope", "gyro", "rad/s"),
        _one("temperature_deg_c", "temperature", "degC"),
    ),
    integers={"accel_valid": "accelerometer_valid", "gyro_valid": "gyroscope_valid"},
    regular=True,
)
MAGNETOMETER = Table(
    (
        _three("magnetometer", "magnetic", "T"),
        _one("temperature_deg_c", "temperature", "degC"),
    ),
    integers={"magnetic_valid": "magnetometer_valid"},
    regular=True,
)
GEN1_MAGNETOMETER = replace(
    MAGNETOMETER,
    values=(replace(MAGNETOMETER.values[0], scale=1e-6), MAGNETOMETER.values[1]),
)
"""First-generation glasses store microtesla, second-generation ones tesla."""

BAROMETER = Table(
    (_one("pressure", "pressure", "Pa"), _one("temperature", "temperature", "degC")),
    regular=True,
)
TEMPERATURE = Table(
    (_one("temperature_celsius", "temperature", "degC"),), texts=_same("sensor_name")
)
PPG = Table(
    (
        _one("value", "value", "count"),
        _one("led_current_ma", "led_current", "mA"),
        _one("integration_time_us", "integration_time", "us"),
    ),
    regular=True,
)
_ALS_LIGHT = ("red", "green", "blue", "uv", "ir", "clear")
ALS = Table(
    (
        *(_one(f"{c}_channel_normalized", f"{c}_normalized", "1") for c in _ALS_LIGHT),
        *(
            _one(f"{c}_flux_watt_per_square_meter", f"{c}_flux", "W/m^2")
            for c in ("uv", "ir", "clear")
        ),
        *(_one(f"gain_{c}", f"gain_{c}", "1") for c in _ALS_LIGHT),
        _one("exposure_time_us", "exposure_time", "us"),
        _one("cct", "colour_temperature", "K"),
        _one("lux", "illuminance", "lx"),
    )
)

# --- location --------------------------------------------------------------------------------

GPS = Table(
    (
        _one("latitude", "latitude", "deg"),
        _one("longitude", "longitude", "deg"),
        _one("altitude", "altitude", "m"),
        _one("accuracy", "accuracy", "m"),
        _one("vertical_accuracy", "vertical_accuracy", "m"),
        _one("speed", "speed", "m/s"),
    ),
    integers=_same("utc_time_ms"),
    texts=_same("provider"),
    location=True,
)
# The vendor's layouts give beacons no device time: the board's clock is one of its own, and
# system time is UNIX time in the first generation. The record's time is the device's.
_BEACON_TIMES = {
    "system_time_ns": "system_timestamp_ns",
    "board_time_ns": "board_timestamp_ns",
    "board_scan_start_ns": "board_request_start_timestamp_ns",
    "board_scan_complete_ns": "board_request_complete_timestamp_ns",
}
WIFI = Table(
    (_one("rssi", "rssi", "dBm"), _one("freq_mhz", "frequency", "MHz")),
    time=RECORD_TIME,
    integers=_BEACON_TIMES,
    texts=_same("ssid", "bssid_mac"),
    location=True,
)
BLUETOOTH = Table(
    (
        _one("tx_power", "tx_power", "dBm"),
        _one("rssi", "rssi", "dBm"),
        _one("freq_mhz", "frequency", "MHz"),
    ),
    time=RECORD_TIME,
    integers=_BEACON_TIMES,
    texts=_same("unique_id", "mac_address"),
    location=True,
)

# --- what second-generation glasses compute themselves ---------------------------------------


def _eye(side: str) -> tuple[Floats, ...]:
    eye = f"{side}_eye"
    return (
        _three(
            f"{eye}/gaze_origin_in_device_meter_xyz",
            f"{side}_origin",
            "m",
            f"{eye}/gaze_origin_valid",
        ),
        _three(
            f"{eye}/gaze_direction_in_device_normalized_xyz",
            f"{side}_direction",
            "1",
            f"{eye}/gaze_direction_valid",
        ),
        _three(
            f"{eye}/entrance_pupil_position_in_device_meter_xyz",
            f"{side}_pupil",
            "m",
            f"{eye}/entrance_pupil_position_valid",
        ),
        _one(
            f"{eye}/pupil_diameter_meter",
            f"{side}_pupil_diameter",
            "m",
            f"{eye}/pupil_diameter_valid",
        ),
        _one(f"{eye}/blink", f"{side}_blink", "1", f"{eye}/blink_valid"),
    )


GAZE = Table(
    (
        _three(
            "gaze_origin_combined_in_device_meter_xyz",
            "origin",
            "m",
            "gaze_origin_combined_in_device_valid",
        ),
        _three(
            "gaze_direction_combined_in_device_normalized_xyz",
            "direction",
            "1",
            "gaze_direction_combined_in_device_valid",
        ),
        _three("spatial_gaze_point_in_device_meter_xyz", "point", "m", "spatial_gaze_point_valid"),
        _one(
            "convergence_distance_meter", "convergence_distance", "m", "convergence_distance_valid"
        ),
        _one(
            "interocular_distance_meter", "interocular_distance", "m", "interocular_distance_valid"
        ),
        *_eye("left"),
        *_eye("right"),
    ),
    time="system_timestamp_ns",
    kind="gaze",
    frame="device",
    integers={
        "foveated": "foveated_gaze_enabled",
        "foveated_state": "foveated_gaze_tracking_state_type",
    },
)


def _hand(side: str) -> tuple[Floats, ...]:
    hand = f"{side}_hand"
    valid = f"{hand}/hand_valid"
    points = tuple(f"{side}_landmark{k}_{c}" for k in range(HAND_LANDMARKS) for c in XYZ)
    joints = tuple(f"{side}_joint{k}" for k in range(HAND_JOINTS))
    fingers = tuple(f"{side}_finger{k}_confidence" for k in range(HAND_FINGERS))
    return (
        _one(f"{hand}/hand_confidence", f"{side}_confidence", "1", valid),
        _three(f"{hand}/wrist_translation_meter_xyz", f"{side}_wrist", "m", valid),
        Floats(f"{hand}/wrist_rotation_xyzw", _named(f"{side}_wrist_quat", XYZW), "1", valid),
        Floats(f"{hand}/hand_landmarks_3d_device_meter_xyz", points, "m", valid),
        Floats(f"{hand}/joint_angles_radian", joints, "rad", valid),
        Floats(f"{hand}/finger_confidences", fingers, "1", valid),
    )


HANDS = Table(
    (*_hand("left"), *_hand("right")),
    kind="hands",
    frame="device",
    integers={"left_valid": "left_hand/hand_valid", "right_valid": "right_hand/hand_valid"},
)
VIO = Table(
    (
        _three("txyz_odometry_bodyimu", "t_odometry_bodyimu", "m"),
        Floats("qxyzw_odometry_bodyimu", _named("quat_odometry_bodyimu", XYZW), "1"),
        _three("txyz_bodyimu_device", "t_bodyimu_device", "m"),
        Floats("qxyzw_bodyimu_device", _named("quat_bodyimu_device", XYZW), "1"),
        _three("gravity_vec_odometry", "gravity_odometry", "m/s^2"),
        _three("linear_velocity_odometry", "velocity_odometry", "m/s"),
        _three("angular_velocity_bodyimu", "angular_velocity_bodyimu", "rad/s"),
    ),
    kind="pose",
    frame="odometry",
    integers=_same(
        "frame_id",
        "status",
        "reset_status",
        "is_tracker_healthy",
        "is_map_tracking_healthy",
        "num_track_measurements",
        "num_keypoints",
    ),
    texts=_same("frontend_session_uuid", "odometry_uuid"),
)
VIO_HIGH_FREQUENCY = Table(
    (
        _three("txyz_odometry_device", "t_odometry_device", "m"),
        Floats("qxyzw_odometry_device", _named("quat_odometry_device", XYZW), "1"),
        _three("gravity_vec_odometry", "gravity_odometry", "m/s^2"),
        _three("linear_velocity_odometry", "velocity_odometry", "m/s"),
        _three("angular_velocity_device", "angular_velocity_device", "rad/s"),
        _one("quality_score", "quality", "1"),
    ),
    kind="pose",
    frame="odometry",
    texts=_same("frontend_session_uuid"),
)

_BY_TYPE = {
    1202: IMU,
    1203: MAGNETOMETER,
    246: TEMPERATURE,
    247: BAROMETER,
    248: PPG,
    281: GPS,
    282: WIFI,
    283: BLUETOOTH,
    373: GAZE,
    500: ALS,
}
_BY_FLAVOR = {
    "device/oatmeal/hand": HANDS,
    "device/oatmeal/vio": VIO,
    "device/oatmeal/vio_high_frequency": VIO_HIGH_FREQUENCY,
}


def table_for(type_id: int, flavor: str, generation: int) -> Table | None:
    """Return how a stream's records are read, None for streams that are no samples."""
    if type_id == 1203 and generation == 1:
        return GEN1_MAGNETOMETER
    return _BY_TYPE.get(type_id) or _BY_FLAVOR.get(flavor)
