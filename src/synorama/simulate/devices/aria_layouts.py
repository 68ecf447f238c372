"""The records of Aria glasses, as their firmware lays them out in VRS.

Names, order and types of the fields are those that the public description of Aria's streams and
the tags of public recordings give; a reader finds every field by the layout in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synorama.simulate.formats.vrs_writer import (
    CONFIGURATION_TIME,
    STATE_TIME,
    DataLayout,
    Kind,
    Record,
    VrsStream,
)

__all__ = [
    "AUDIO", "AUDIO_OPUS", "BAROMETER", "CAMERA", "CAMERA_HEVC", "GAZE", "HANDS", "MOTION",
    "TIME_MAPPING", "VIO", "VIO_FAST", "StreamKind", "data", "first_records", "make_stream",
]  # fmt: skip

_CLOCKS = (
    "capture_timestamp_ns:int64_t capture_timestamp_in_processing_clock_domain_ns:int64_t "
    "arrival_timestamp_ns:int64_t processing_start_timestamp_ns:int64_t "
)
_DEVICE = (
    "device_type:string device_version:string device_serial:string sensor_model:string "
    "sensor_serial:string factory_calibration:string online_calibration:string "
    "description:string "
)
_EXPOSURE = (
    "exposure_duration.min:double exposure_duration.max:double gain.min:double gain.max:double "
    "gamma_factor:double "
)
_EYE = (
    "{0}/gaze_origin_valid:Bool {0}/gaze_origin_in_device_meter_xyz:Point3Df "
    "{0}/gaze_direction_valid:Bool {0}/gaze_direction_in_device_normalized_xyz:Point3Df "
    "{0}/entrance_pupil_position_valid:Bool "
    "{0}/entrance_pupil_position_in_device_meter_xyz:Point3Df "
    "{0}/pupil_diameter_valid:Bool {0}/pupil_diameter_meter:float "
    "{0}/blink_valid:Bool {0}/blink:Bool "
)
_HAND = (
    "{0}/joint_angles_radian:float[22] {0}/wrist_rotation_xyzw:Point4Df "
    "{0}/wrist_translation_meter_xyz:Point3Df {0}/hand_confidence:float "
    "{0}/finger_confidences:float[5] {0}/hand_valid:Bool "
    "{0}/hand_landmarks_3d_device_meter_xyz:Point3Df[21] "
)


class StreamKind:
    """What all streams of one kind share: name, layouts and their versions."""

    def __init__(
        self,
        name: str,
        configuration: str,
        data: str,
        *,
        versions: tuple[int, int, int] = (1, 1, 1),
        state: str = "",
    ) -> None:
        self.name = name
        self.configuration = DataLayout(configuration)
        self.data = DataLayout(data)
        self.state = DataLayout(state)
        self.versions = dict(zip(Kind, versions, strict=True))

    @property
    def layouts(self) -> dict[Kind, DataLayout]:
        """Layouts by kind of record, without those that have no fields."""
        state = {Kind.STATE: self.state} if self.state.fixed else {}
        return {**state, Kind.CONFIGURATION: self.configuration, Kind.DATA: self.data}


CAMERA = StreamKind(
    "Camera Data (SLAM)",
    "camera_id:uint32_t nominal_rate:double image_width:uint32_t image_height:uint32_t "
    "image_stride:uint32_t image_pixel_format:uint32_t " + _EXPOSURE + _DEVICE,
    "group_id:uint64_t group_mask:uint64_t frame_number:uint64_t frame_tag:uint32_t "
    "exposure_duration_s:double gain:double " + _CLOCKS + "temperature_deg_c:double",
    versions=(1, 2, 2),
)
CAMERA_HEVC = StreamKind(
    "Camera Data (SLAM)",
    "camera_id:uint32_t stream_type:uint32_t stream_index:uint32_t nominal_rate:double "
    "image_width:uint32_t image_height:uint32_t image_stride:uint32_t image_stride_2:uint32_t "
    "image_pixel_format:uint32_t image_plane_2_offset_rows:uint32_t "
    "image_plane_3_offset_rows:uint32_t image_orientation:uint32_t shutter_direction:uint32_t "
    + _EXPOSURE + _DEVICE + "camera_mux_mode_name:string image_codec_name:string",
    "group_id:uint64_t group_mask:uint64_t stream_index_mask:uint64_t frame_number:uint64_t "
    "frame_tag:uint32_t exposure_duration_s:double gain:double readout_duration_s:double "
    + _CLOCKS + "temperature_deg_c:double image_key_frame_timestamp:double "
    "image_key_frame_index:uint32_t focus_distance_mm:double image_metadata:vector<uint8_t>",
    versions=(2, 2, 2),
    state="decimation:uint32_t",
)  # fmt: skip
MOTION = StreamKind(
    "IMU Data (SLAM)",
    "stream_index:uint32_t device_id:uint64_t nominal_rate:double has_accelerometer:Bool "
    "has_gyroscope:Bool has_magnetometer:Bool device_type:string device_version:string "
    "device_serial:string sensor_model:string factory_calibration:string "
    "online_calibration:string description:string",
    "accelerometer_valid:Bool gyroscope_valid:Bool magnetometer_valid:Bool "
    "temperature_deg_c:double " + _CLOCKS + "accelerometer:float[3] gyroscope:float[3] "
    "magnetometer:float[3]",
    versions=(1, 2, 2),
)
AUDIO = StreamKind(
    "Stereo Audio Class",
    "stream_id:uint32_t audio_channel_count:uint8_t audio_sample_rate:uint32_t "
    "audio_sample_format:uint8_t",
    "audio_muted:uint8_t capture_timestamps_ns:vector<int64_t>",
    versions=(1, 1, 2),
)
AUDIO_OPUS = StreamKind(
    "Stereo Audio Class",
    "stream_id:uint32_t audio_channel_count:uint8_t audio_sample_rate:uint32_t "
    "audio_sample_format:uint8_t audio_format:uint8_t audio_stereo_pair_count:uint8_t "
    "enabled_mic_id_mask:uint8_t",
    "audio_muted:uint8_t audio_sample_count:uint32_t capture_timestamps_ns:vector<int64_t>",
    versions=(1, 1, 2),
)
BAROMETER = StreamKind(
    "Barometer Data Class",
    "stream_id:uint32_t sample_rate:double sensor_model_name:string",
    "capture_timestamp_ns:int64_t temperature:double pressure:double altitude:double",
)
TIME_MAPPING = StreamKind(
    "Time Domain Mapping Class",
    "stream_id:uint32_t sample_rate_hz:double mode:string",
    "monotonic_timestamp_ns:int64_t real_timestamp_ns:int64_t",
)
GAZE = StreamKind(
    "Gaze Data Class",
    "stream_id:uint32_t nominal_rate_hz:double user_calibrated:Bool user_calibration_error:float "
    "algorithm_version:string algorithm_name:string",
    "tracker_timestamp_ns:int64_t system_timestamp_ns:int64_t "
    + _EYE.format("left_eye") + _EYE.format("right_eye") +
    "gaze_origin_combined_in_device_valid:Bool "
    "gaze_origin_combined_in_device_meter_xyz:Point3Df "
    "gaze_direction_combined_in_device_valid:Bool "
    "gaze_direction_combined_in_device_normalized_xyz:Point3Df "
    "convergence_distance_valid:Bool convergence_distance_meter:float "
    "interocular_distance_valid:Bool interocular_distance_meter:float "
    "foveated_gaze_enabled:Bool foveated_gaze_tracking_state_type:uint8_t "
    "foveated_gaze_direction_combined_in_device_normalized_xyz:Point3Df "
    "spatial_gaze_point_valid:Bool spatial_gaze_point_in_device_meter_xyz:Point3Df",
)  # fmt: skip
HANDS = StreamKind(
    "Pose Data Class",
    "stream_id:uint32_t nominal_rate_hz:double is_wrist_palm_only:Bool algorithm_version:string "
    "algorithm_name:string user_profile:string",
    "capture_timestamp_ns:int64_t " + _HAND.format("left_hand") + _HAND.format("right_hand"),
)
_VIO_CONFIGURATION = (
    "stream_id:uint32_t nominal_rate_hz:double algorithm_version:string algorithm_name:string "
    "message_version:string"
)
VIO = StreamKind(
    "Pose Data Class",
    _VIO_CONFIGURATION,
    "frame_id:int32_t capture_timestamp_ns:int64_t status:int8_t reset_status:int8_t "
    "is_tracker_healthy:Bool is_map_tracking_healthy:Bool num_track_measurements:int64_t "
    "num_keypoints:int64_t gravity_vec_odometry:Point3Dd txyz_odometry_bodyimu:Point3Dd "
    "qxyzw_odometry_bodyimu:Point4Dd txyz_bodyimu_device:Point3Dd qxyzw_bodyimu_device:Point4Dd "
    "linear_velocity_odometry:Point3Dd angular_velocity_bodyimu:Point3Dd "
    "frontend_session_uuid:string odometry_uuid:string online_calib_state:string",
)
VIO_FAST = StreamKind(
    "Pose Data Class",
    _VIO_CONFIGURATION,
    "capture_timestamp_ns:int64_t gravity_vec_odometry:Point3Dd txyz_odometry_device:Point3Dd "
    "qxyzw_odometry_device:Point4Dd linear_velocity_odometry:Point3Dd "
    "angular_velocity_device:Point3Dd quality_score:float frontend_session_uuid:string",
)

NAMES = {
    211: "Eye Camera Class",
    214: "RGB Camera Class",
    1203: "Magnetometer Data (SLAM)",
}


def make_stream(
    kind: StreamKind, source: str, *, serial: str, flavor: str, content: str, tags: dict[str, str]
) -> VrsStream:
    """Return the stream ``source`` (``214-1``) of a kind."""
    type_id, instance = map(int, source.split("-"))
    return VrsStream(
        type_id=type_id,
        instance=instance,
        name=NAMES.get(type_id, kind.name),
        flavor=flavor,
        serial=serial,
        versions=kind.versions,
        layouts=kind.layouts,
        content=content,
        tags=tags,
    )


def first_records(stream: VrsStream, configuration: Mapping[str, Any]) -> list[Record]:
    """Return the configuration and the state with which a stream begins."""
    layout = stream.layouts[Kind.CONFIGURATION]
    state = stream.layouts.get(Kind.STATE)
    told = (state.encode(decimation=1),) if state else ()
    return [
        _record(stream, Kind.CONFIGURATION, CONFIGURATION_TIME, (layout.encode(**configuration),)),
        _record(stream, Kind.STATE, STATE_TIME, told),
    ]


def data(stream: VrsStream, t_ns: int, *parts: bytes) -> Record:
    """Return a data record: the packed fields, then the content, if any."""
    return _record(stream, Kind.DATA, t_ns * 1e-9, parts)


def _record(stream: VrsStream, kind: Kind, time_s: float, parts: tuple[bytes, ...]) -> Record:
    return Record(time_s, stream.type_id, stream.instance, int(kind), stream.versions[kind], parts)
