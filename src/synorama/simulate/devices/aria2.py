"""Aria Gen 2 glasses, in a small form: video instead of pictures, Opus, and what they compute.

Everything is tiny but complete: each stream that a reader has to understand is there, encoded as
the glasses encode it. Their microphones sample at the odd rate that real recordings show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.clocks import sample_times_ns
from synorama.simulate.devices import aria_layouts as layouts
from synorama.simulate.devices.aria_calibration import GEN2, calibration_json
from synorama.simulate.devices.aria_streams import (
    Glasses,
    Source,
    barometer,
    camera_columns,
    camera_configuration,
    imu,
    magnetometer,
    make_stream,
    packed,
    tags_of,
    time_mapping,
    times_ns,
    write_sources,
)
from synorama.simulate.formats.video import Scene
from synorama.simulate.formats.vrs_writer import Record, VrsStream
from synorama.simulate.sound.plain import Sound
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["write_glasses2"]

GREY8, YUV420 = 1, 5  # pixel formats of VRS
MIC_CHANNELS, MIC_NOMINAL_HZ, MIC_RATE_HZ = 8, 16_000, 16_051.0  # steps of 62.3 us
OPUS_SAMPLES, OPUS_LOOK_AHEAD = 320, 104  # of 16 kHz: 20 ms, and what libopus puts first
OPUS_FORMAT, INT16, ALL_MICROPHONES = 2, 5, 255
DECIMATION, FILTER_TAPS, MIC_BAND_HZ = 3, 127, 7_000
SUBGHZ_ROLES = {"server": "broadcaster", "client": "receiver"}
FRONTEND, ODOMETRY = "frontend", "odometry"
HAND_JOINTS, JOINT_ANGLES, FINGERS = 21, 22, 5


@dataclass(frozen=True, slots=True)
class Camera2:
    """A camera: VRS stream, calibration label, size [px] and rate."""

    name: str
    source: str
    label: str
    width: int
    height: int
    rate_hz: int
    colour: bool = False


CAMERAS = (
    Camera2("rgb", "214-1", "camera-rgb", 256, 192, 10, colour=True),
    Camera2("slam-front-left", "1201-1", "slam-front-left", 96, 96, 30),
    Camera2("slam-front-right", "1201-2", "slam-front-right", 96, 96, 30),
    Camera2("slam-side-left", "1201-3", "slam-side-left", 96, 96, 30),
    Camera2("slam-side-right", "1201-4", "slam-side-right", 96, 96, 30),
    Camera2("et-left", "211-1", "camera-et-left", 96, 96, 5),
    Camera2("et-right", "211-2", "camera-et-right", 96, 96, 5),
)


def write_glasses2(
    path: Path, glasses: Glasses, sound: Sound, *, gop: int = 1
) -> dict[str, TrackTruth]:
    """Write what glasses of the second generation recorded; return what is true of each track.

    Parameters
    ----------
    path
        The VRS file.
    glasses, sound
        Who records what.
    gop
        Frames of a camera from one that decodes on its own to the next; public recordings have 1.
    """
    return write_sources(path, glasses, _tags(glasses), _sources(glasses, sound, gop))


def _sources(glasses: Glasses, sound: Sound, gop: int) -> Iterator[Source]:
    for number, camera in enumerate(CAMERAS):
        yield _camera(glasses, camera, (glasses.barcode or 0) + number, gop)
    yield imu(glasses, "imu-left", "1202-1")
    yield imu(glasses, "imu-right", "1202-2")
    yield magnetometer(glasses)
    yield barometer(glasses)
    yield _microphones(glasses, sound)
    yield _gaze(glasses)
    yield _hands(glasses)
    yield _vio(glasses)
    yield _fast_vio(glasses)
    if glasses.sync_role == "client":
        yield time_mapping(glasses, "SUBGHZ")


def _tags(glasses: Glasses) -> dict[str, str]:
    metadata = {
        "device": {"serial": glasses.serial, "uuid": glasses.uuid("device")},
        "recording": {
            "start_time": glasses.start_epoch_s,
            "end_time": glasses.start_epoch_s + int(glasses.seconds),
            "profile_name": "profile8",
            "shared_session_id": glasses.shared_session_id,
            "subghz_mode": SUBGHZ_ROLES.get(glasses.sync_role, ""),
        },
    }
    sizes = {camera.label: (camera.width, camera.height) for camera in CAMERAS}
    return tags_of(glasses, metadata, calibration_json(GEN2, glasses.serial, sizes))


# --- pictures --------------------------------------------------------------------------------


def _camera(glasses: Glasses, camera: Camera2, barcode: int, gop: int) -> Source:
    kind = layouts.CAMERA_HEVC
    stream = make_stream(glasses, kind, camera.source, "+image/video/codec=H.265")
    times = times_ns(glasses, camera.name, camera.rate_hz, jitter_ns=3_000)
    configuration = camera_configuration(
        glasses,
        camera_id=barcode,
        rate_hz=camera.rate_hz,
        size=(camera.width, camera.height),
        pixel_format=YUV420 if camera.colour else GREY8,
    )
    configuration["image_codec_name"] = "H.265"
    units = _access_units(glasses, camera, len(times), barcode, gop)
    records = _pictures(stream, times, units)
    truth = TrackTruth.of(times, source=camera.source, barcode=barcode)
    return Source(stream, configuration, records, camera.name, truth)


def _pictures(
    stream: VrsStream, times: Int64, units: Iterator[tuple[bytes, bool]]
) -> Iterator[Record]:
    layout = layouts.CAMERA_HEVC.data
    key = 0
    for frame, (data, is_key) in enumerate(units):
        key = frame if is_key else key
        told = layout.encode(
            **camera_columns(frame, times[frame], 28.0),
            image_key_frame_timestamp=times[key] * 1e-9,
            image_key_frame_index=frame - key,
            focus_distance_mm=-1.0,
        )
        yield layouts.data(stream, int(times[frame]), told, data)


def _access_units(
    glasses: Glasses, camera: Camera2, count: int, barcode: int, gop: int
) -> Iterator[tuple[bytes, bool]]:
    """Yield each frame as HEVC, with whether it decodes on its own."""
    import av

    scene = Scene(glasses.random(f"scene {camera.name}"), camera.height, camera.width, barcode)
    time_base = Fraction(1, camera.rate_hz)
    with av.open(BytesIO(), "w", format="hevc") as owner:
        encoder: Any = owner.add_stream("libx265", rate=camera.rate_hz)
        encoder.width, encoder.height = camera.width, camera.height
        encoder.pix_fmt = "yuv420p" if camera.colour else "gray"
        encoder.options = {"preset": "ultrafast", "x265-params": _x265(gop)}
        for frame in range(count + 1):
            picture = scene.frame(frame, time_base, frame) if frame < count else None
            if picture is not None and not camera.colour:
                picture = picture.reformat(format="gray")
            for packet in encoder.encode(picture):
                yield bytes(packet), packet.is_keyframe


def _x265(gop: int) -> str:
    return (
        f"keyint={gop}:min-keyint={gop}:bframes=0:scenecut=0:repeat-headers=1:info=0:"
        "log-level=none:pools=none:frame-threads=1:crf=22"
    )


# --- sound -----------------------------------------------------------------------------------


def _microphones(glasses: Glasses, sound: Sound) -> Source:
    content = f"+audio/opus/int16le/channels={MIC_CHANNELS}/rate={MIC_NOMINAL_HZ}"
    stream = make_stream(glasses, layouts.AUDIO_OPUS, "231-1", content)
    first_ns = glasses.start_ns + int(glasses.random("mic").uniform(0, 20_000_000))
    blocks = int(glasses.seconds * MIC_RATE_HZ) // OPUS_SAMPLES
    configuration = {
        "stream_id": 0,
        "audio_channel_count": MIC_CHANNELS,
        "audio_sample_rate": MIC_NOMINAL_HZ,
        "audio_sample_format": INT16,
        "audio_format": OPUS_FORMAT,
        "audio_stereo_pair_count": 0,
        "enabled_mic_id_mask": ALL_MICROPHONES,
    }
    count = blocks * OPUS_SAMPLES
    last_ns = int(sample_times_ns(first_ns, MIC_RATE_HZ, count - 1, 1)[0])
    truth = TrackTruth(count, first_ns, last_ns, source="231-1")
    records = _blocks(glasses, sound, stream, first_ns, blocks)
    return Source(stream, configuration, records, "mic", truth)


def _blocks(
    glasses: Glasses, sound: Sound, stream: VrsStream, first_ns: int, blocks: int
) -> Iterator[Record]:
    packets = _opus_packets(glasses, sound, first_ns, blocks)
    for block, data in enumerate(packets):
        times = sample_times_ns(first_ns, MIC_RATE_HZ, block * OPUS_SAMPLES, OPUS_SAMPLES)
        told = layouts.AUDIO_OPUS.data.encode(
            audio_muted=0, audio_sample_count=OPUS_SAMPLES, capture_timestamps_ns=times
        )
        yield layouts.data(stream, int(times[0]), told, data)


def _opus_packets(glasses: Glasses, sound: Sound, first_ns: int, blocks: int) -> Iterator[bytes]:
    """Yield packets whose decoded samples belong to their times: the look-ahead is allowed for."""
    import av

    rng = glasses.random("mic noise")
    with av.open(BytesIO(), "w", format="ogg") as owner:
        encoder: Any = owner.add_stream("libopus", rate=MIC_NOMINAL_HZ)
        encoder.layout = f"{MIC_CHANNELS}c"
        encoder.format = "s16"
        encoder.bit_rate = 32_000 * MIC_CHANNELS
        encoder.options = {"mapping_family": "255", "frame_duration": "20"}
        for block in range(blocks):
            samples = _heard(glasses, sound, rng, first_ns, block * OPUS_SAMPLES)
            frame = av.AudioFrame.from_ndarray(samples, format="s16", layout=encoder.layout.name)
            frame.sample_rate, frame.pts = MIC_NOMINAL_HZ, block * OPUS_SAMPLES
            frame.time_base = Fraction(1, MIC_NOMINAL_HZ)
            yield from (bytes(packet) for packet in encoder.encode(frame))


def _heard(
    glasses: Glasses, sound: Sound, rng: np.random.Generator, first_ns: int, start: int
) -> NDArray[np.int16]:
    """Return a block ``(1, samples x channels)``: heard at three times the rate, then thinned."""
    from scipy import signal

    taps = signal.firwin(FILTER_TAPS, MIC_BAND_HZ, fs=MIC_RATE_HZ * DECIMATION)
    fine_start = (start + OPUS_LOOK_AHEAD) * DECIMATION - FILTER_TAPS // 2
    fine_count = OPUS_SAMPLES * DECIMATION + FILTER_TAPS - 1
    fine = sound.heard(glasses.clock, MIC_RATE_HZ * DECIMATION, first_ns, fine_start, fine_count)
    mono = np.convolve(fine, taps, mode="valid")[::DECIMATION]
    noise = rng.standard_normal((OPUS_SAMPLES, MIC_CHANNELS))
    level = glasses.hearing.gain * mono[:, np.newaxis] + glasses.hearing.noise_rms * noise
    return (level.clip(-0.999, 0.999) * 32_767).astype(np.int16).reshape(1, -1)


# --- what the glasses compute ----------------------------------------------------------------


def _gaze(glasses: Glasses) -> Source:
    stream = make_stream(glasses, layouts.GAZE, "373-1")
    times = _whole_microseconds(times_ns(glasses, "gaze", 30.0, jitter_ns=3_000))
    t = (times - glasses.start_ns) / NS_PER_S
    direction = _unit(np.stack([0.2 * np.sin(t), 0.1 * np.cos(0.7 * t), np.ones_like(t)], 1))
    columns: dict[str, Any] = {
        "system_timestamp_ns": times,
        "gaze_origin_combined_in_device_valid": True,
        "gaze_origin_combined_in_device_meter_xyz": (0.05, 0.03, 0.0),
        "gaze_direction_combined_in_device_valid": True,
        "gaze_direction_combined_in_device_normalized_xyz": direction,
        "convergence_distance_valid": True,
        "convergence_distance_meter": 0.8,
        "interocular_distance_valid": True,
        "interocular_distance_meter": 0.063,
        "spatial_gaze_point_valid": True,
        "spatial_gaze_point_in_device_meter_xyz": 0.8 * direction,
    }
    for eye, side_m in (("left_eye", 0.03), ("right_eye", -0.03)):
        columns |= {
            f"{eye}/gaze_origin_valid": True,
            f"{eye}/gaze_origin_in_device_meter_xyz": (side_m, 0.0, 0.0),
            f"{eye}/gaze_direction_valid": True,
            f"{eye}/gaze_direction_in_device_normalized_xyz": direction,
            f"{eye}/entrance_pupil_position_valid": True,
            f"{eye}/entrance_pupil_position_in_device_meter_xyz": (side_m, 0.0, 0.0),
            f"{eye}/pupil_diameter_valid": True,
            f"{eye}/pupil_diameter_meter": 0.004,
            f"{eye}/blink_valid": True,
        }
    configuration = {
        **_computed(1, 30.0), "user_calibrated": True, "user_calibration_error": 0.01,
    }  # fmt: skip
    records = packed(stream, layouts.GAZE, times, columns)
    truth = TrackTruth.of(times, source="373-1")
    return Source(stream, configuration, records, "eyegaze", truth)


def _hands(glasses: Glasses) -> Source:
    stream = make_stream(glasses, layouts.HANDS, "371-1", flavor="device/oatmeal/hand")
    times = times_ns(glasses, "hands", 30.0, jitter_ns=3_000)
    t = (times - glasses.start_ns) / NS_PER_S
    columns: dict[str, Any] = {"capture_timestamp_ns": times}
    for hand, side in (("left_hand", 1.0), ("right_hand", -1.0)):
        wrist = np.stack([0.15 * side + 0.02 * np.sin(t), 0.1 * np.cos(t), 0.3 + 0 * t], 1)
        joints = np.linspace(0, 0.18, HAND_JOINTS)[:, np.newaxis] * (0.0, 0.3, 1.0)
        columns |= {
            f"{hand}/joint_angles_radian": np.zeros(JOINT_ANGLES),
            f"{hand}/wrist_rotation_xyzw": (0.0, 0.0, 0.0, 1.0),
            f"{hand}/wrist_translation_meter_xyz": wrist,
            f"{hand}/hand_confidence": 0.9,
            f"{hand}/finger_confidences": np.full(FINGERS, 0.9),
            f"{hand}/hand_valid": True,
            f"{hand}/hand_landmarks_3d_device_meter_xyz": wrist[:, np.newaxis] + joints,
        }
    records = packed(stream, layouts.HANDS, times, columns)
    truth = TrackTruth.of(times, source="371-1")
    return Source(stream, _computed(1, 30.0), records, "handtracking", truth)


def _vio(glasses: Glasses) -> Source:
    stream = make_stream(glasses, layouts.VIO, "371-2", "+custom", flavor="device/oatmeal/vio")
    times = times_ns(glasses, "vio", 10.0, jitter_ns=3_000)
    truth = TrackTruth.of(times, source="371-2")
    records = _vio_records(glasses, stream, times)
    return Source(stream, _computed(2, 10.0), records, "vio", truth)


def _vio_records(glasses: Glasses, stream: VrsStream, times: Int64) -> Iterator[Record]:
    position, velocity = _path(glasses, times)
    state = _online_calibration()
    for frame, t_ns in enumerate(times.tolist()):
        told = layouts.VIO.data.encode(
            frame_id=frame,
            capture_timestamp_ns=t_ns,
            is_tracker_healthy=True,
            is_map_tracking_healthy=True,
            num_track_measurements=40,
            num_keypoints=60,
            gravity_vec_odometry=(0.0, 0.0, -9.81),
            txyz_odometry_bodyimu=position[frame],
            qxyzw_odometry_bodyimu=(0.0, 0.0, 0.0, 1.0),
            txyz_bodyimu_device=(0.0, 0.0, 0.0),
            qxyzw_bodyimu_device=(0.0, 0.0, 0.0, 1.0),
            linear_velocity_odometry=velocity[frame],
            angular_velocity_bodyimu=(0.0, 0.0, 0.0),
            frontend_session_uuid=glasses.uuid(FRONTEND),
            odometry_uuid=glasses.uuid(ODOMETRY),
            online_calib_state=state,
        )
        yield layouts.data(stream, t_ns, told)


def _fast_vio(glasses: Glasses) -> Source:
    flavor = "device/oatmeal/vio_high_frequency"
    stream = make_stream(glasses, layouts.VIO_FAST, "371-3", flavor=flavor)
    times = _whole_microseconds(times_ns(glasses, "fast vio", 800.0, jitter_ns=1_000))
    truth = TrackTruth.of(times, source="371-3")
    records = _fast_vio_records(glasses, stream, times)
    return Source(stream, _computed(3, 800.0), records, "vio-high-frequency", truth)


def _fast_vio_records(glasses: Glasses, stream: VrsStream, times: Int64) -> Iterator[Record]:
    position, velocity = _path(glasses, times)
    for k, t_ns in enumerate(times.tolist()):
        told = layouts.VIO_FAST.data.encode(
            capture_timestamp_ns=t_ns,
            gravity_vec_odometry=(0.0, 0.0, -9.81),
            txyz_odometry_device=position[k],
            qxyzw_odometry_device=(0.0, 0.0, 0.0, 1.0),
            linear_velocity_odometry=velocity[k],
            angular_velocity_device=(0.0, 0.0, 0.0),
            quality_score=1.0,
            frontend_session_uuid=glasses.uuid(FRONTEND),
        )
        yield layouts.data(stream, t_ns, told)


def _path(glasses: Glasses, times: Int64) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions [m] and velocities [m/s] of a walk in a circle."""
    angle = 0.5 * (times - glasses.start_ns) / NS_PER_S
    position = np.stack([np.cos(angle), np.sin(angle), 1.6 + 0 * angle], 1)
    velocity = 0.5 * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], 1)
    return position, velocity


def _computed(number: int, rate_hz: float) -> dict[str, Any]:
    return {
        "stream_id": number,
        "nominal_rate_hz": rate_hz,
        "algorithm_version": "1",
        "algorithm_name": "simulated",
    }


def _whole_microseconds(times: Int64) -> Int64:
    """Return times as the glasses store those of gaze and fast poses."""
    return times // 1000 * 1000


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _online_calibration() -> str:
    """Return the state of on-device calibration, which a reader wants to be whole."""
    identity = np.eye(3).tolist()
    pose = {"Translation": [0.0, 0.0, 0.0], "UnitQuaternion": [1.0, [0.0, 0.0, 0.0]]}
    slam = [camera for camera in CAMERAS if camera.name.startswith("slam")]
    camera = {
        "type": "FISHEYE_RAD_TAN_THINPRISM",
        "intrinsics": [46.0, 47.5, 47.5, *[0.0] * 12],
        "readoutTimeSec": 0.0,
        "maxRadiusSquared": 1e6,
        "imageSize": {"width": slam[0].width, "height": slam[0].height},
    }
    imu_state = {
        "gyroScaleVec": [1, 1, 1],
        "accelScaleVec": [1, 1, 1],
        "accelBiasMSec2": [0, 0, 0],
        "gyroBiasRadSec": [0, 0, 0],
        "accelNonorth": identity,
        "gyroNonorth": identity,
        "gyroGSensitivityRadSecPerMSec2": [[0, 0, 0]] * 3,
        "dtReferenceAccelSec": 0.0,
        "dtReferenceGyroSec": 0.0,
        "T_Imu_BodyImu": pose,
        "nominalSamplingPeriodSec": 0.00125,
        "accelSaturationThresholdMSec2": 76.9,
        "gyroSaturationThresholdRadSec": 17.0,
    }
    return json.dumps(
        {
            "camParameters": [camera] * len(slam),
            "T_Cam_BodyImu": [pose] * len(slam),
            "dt_Ref_Cam": [0] * len(slam),
            "imuModelParameters": [imu_state] * 2,
        }
    )
