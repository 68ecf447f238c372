"""Aria Gen 1 glasses: what they would have recorded, as VRS."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from synorama.simulate import aria_layouts as layouts
from synorama.simulate.aria_calibration import GEN1, calibration_json
from synorama.simulate.clocks import randomness, sample_times_ns
from synorama.simulate.jpeg import StampedJpeg
from synorama.simulate.pictures import textures
from synorama.simulate.sound import Hearing, Sound
from synorama.simulate.truth import TrackTruth
from synorama.simulate.vrs_writer import Record, VrsStream, write_vrs
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["FULL", "SMALL", "AriaCamera", "Glasses", "write_glasses"]

BATCH = 500  # records made at once
POOL = 4  # different pictures a camera shows in turn
IMAGE_DELAY_NS = 9_000_000  # from exposure to the time of arrival in the record
GREY8, RGB8 = 1, 4  # pixel formats of VRS
PCM_INT32 = 13  # sample format of VRS
MIC_RATE_HZ, MIC_CHANNELS, MIC_BLOCK = 48_000, 7, 4096
INT32_FULL_SCALE = 2**31 - 1
GRAVITY_MSEC2 = 9.81
FIELD_UT = (20.0, 0.5, -40.0)  # microtesla

MAPPING_RATE_HZ = 10.0
MAPPING_JITTER_NS = 200.0  # one sigma of each time that the glasses exchange
SETTLING_START_NS = (400_000.0, 950_000.0)  # error when synchronization starts, least and most
SETTLING_NS = 6 * NS_PER_S  # it falls by e in this time: below 1 us after 45 s


@dataclass(frozen=True, slots=True)
class AriaCamera:
    """A camera of the glasses: VRS stream, calibration labels, size [px], rate, JPEG quality.

    Where it has several labels, the picture shows that many views side by side.
    """

    name: str
    source: str
    labels: tuple[str, ...]
    width: int
    height: int
    rate_hz: float
    quality: int
    colour: bool = False


FULL = (
    AriaCamera("rgb", "214-1", ("camera-rgb",), 1408, 1408, 30.0, 80, colour=True),
    AriaCamera("slam-left", "1201-1", ("camera-slam-left",), 640, 480, 10.0, 90),
    AriaCamera("slam-right", "1201-2", ("camera-slam-right",), 640, 480, 10.0, 90),
    AriaCamera("et", "211-1", ("camera-et-left", "camera-et-right"), 640, 240, 10.0, 60),
)
"""What the glasses really record: no calibration of other sizes is needed for these."""

SMALL = (
    AriaCamera("rgb", "214-1", ("camera-rgb",), 128, 128, 30.0, 80, colour=True),
    AriaCamera("slam-left", "1201-1", ("camera-slam-left",), 128, 96, 10.0, 80),
    AriaCamera("slam-right", "1201-2", ("camera-slam-right",), 128, 96, 10.0, 80),
    AriaCamera("et", "211-1", ("camera-et-left", "camera-et-right"), 128, 48, 10.0, 80),
)


@dataclass(frozen=True, slots=True)
class Glasses:
    """One pair of glasses in a session.

    Parameters
    ----------
    name
        Its name in the session; also what its random numbers hang on.
    serial
        Serial number.
    clock
        ``C_session_device``, true.
    start_ns
        Device time at which it starts to record.
    seconds
        How long it records, on its own clock.
    ticsync
        Its part in time synchronization.
    shared_session_id
        What all glasses of one synchronized session have in common.
    start_epoch_s
        Wall-clock time of the start.
    cameras
        Its cameras.
    barcode
        Camera number in the barcodes of its first camera; the others follow.
    hearing
        How it hears.
    seed
        Of the session.
    """

    name: str
    serial: str
    clock: ClockMap
    start_ns: int
    seconds: float
    ticsync: Literal["server", "client"]
    shared_session_id: str
    start_epoch_s: int
    cameras: tuple[AriaCamera, ...]
    barcode: int
    hearing: Hearing
    seed: int

    def random(self, part: str) -> np.random.Generator:
        """Return the random numbers of one part of these glasses."""
        return randomness(self.seed, self.name, part)

    def uuid(self, part: str) -> str:
        """Return an identifier that the seed decides."""
        return str(uuid.UUID(bytes=self.random(f"uuid {part}").bytes(16), version=4))


class _Source:
    """A stream, its records, and what is true of them."""

    def __init__(
        self, stream: VrsStream, configuration: Mapping[str, Any], records: Iterator[Record],
        name: str, truth: TrackTruth,
    ) -> None:  # fmt: skip
        self.stream = stream
        self.first = layouts.first_records(stream, configuration)
        self.records = records
        self.name = name
        self.truth = truth


def write_glasses(
    path: Path,
    glasses: Glasses,
    sound: Sound,
    *,
    chunk_bytes: int | None = None,
    pack: bool = False,
) -> dict[str, TrackTruth]:
    """Write what the glasses recorded, and return what is true of each track.

    Parameters
    ----------
    path
        The VRS file.
    glasses, sound
        Who records what.
    chunk_bytes, pack
        As for `synorama.simulate.vrs_writer.write_vrs`.
    """
    sources = list(_sources(glasses, sound))
    begin = sorted((r for s in sources for r in s.first), key=lambda r: r[:4])
    file_id = int.from_bytes(glasses.random("file").bytes(8), "little")
    write_vrs(
        path,
        [source.stream for source in sources],
        _tags(path, glasses),
        [iter(begin), *(source.records for source in sources)],
        file_id=file_id,
        chunk_bytes=chunk_bytes,
        pack=pack,
    )
    return {source.name: source.truth for source in sources}


def _sources(glasses: Glasses, sound: Sound) -> Iterator[_Source]:
    for number, camera in enumerate(glasses.cameras):
        yield _camera(glasses, camera, glasses.barcode + number)
    yield _imu(glasses, "imu-right", "1202-1", 1000.0)
    yield _imu(glasses, "imu-left", "1202-2", 800.0)
    yield _magnetometer(glasses)
    yield _barometer(glasses)
    yield _microphones(glasses, sound)
    if glasses.ticsync == "client":
        yield _time_mapping(glasses)


def _tags(path: Path, glasses: Glasses) -> dict[str, str]:
    own = {c.name: c for c in FULL}
    sizes = {
        label: (camera.width // len(camera.labels), camera.height)
        for camera in glasses.cameras
        if camera != own[camera.name]
        for label in camera.labels
    }
    metadata = {
        "device_id": glasses.uuid("device"),
        "filename": path.name,
        "recording_profile": "profile15",
        "shared_session_id": glasses.shared_session_id,
        "start_time": glasses.start_epoch_s,
        "ticsync_mode": glasses.ticsync,
    }
    return {
        "calib_json": calibration_json(GEN1, glasses.serial, sizes),
        "capture_time_epoch": str(glasses.start_epoch_s),
        "device_serial": glasses.serial,
        "device_type": "Aria",
        "device_version": "1",
        "metadata": json.dumps(metadata, separators=(",", ":")),
        "recording_profile": "profile15",
        "session_id": glasses.uuid("recording"),
    }


def _stream(
    glasses: Glasses, kind: layouts.StreamKind, source: str, content: str = ""
) -> VrsStream:
    return layouts.make_stream(
        kind,
        source,
        serial=glasses.random(f"stream {source}").bytes(8).hex(),
        flavor="device/aria",
        content=content,
        tags={"session_id": glasses.uuid("recording")},
    )


def _times_ns(glasses: Glasses, name: str, rate_hz: float, jitter_ns: float) -> Int64:
    """Return when a sensor samples: regular from some moment of the first period on."""
    rng = glasses.random(f"times {name}")
    first = glasses.start_ns + int(rng.uniform(0, NS_PER_S / rate_hz))
    times = sample_times_ns(first, rate_hz, 0, int(glasses.seconds * rate_hz))
    return times + np.rint(rng.uniform(-jitter_ns, jitter_ns, len(times))).astype(np.int64)


def _batches(times: Int64) -> Iterator[tuple[int, Int64]]:
    for first in range(0, len(times), BATCH):
        yield first, times[first : first + BATCH]


def _camera(glasses: Glasses, camera: AriaCamera, barcode: int) -> _Source:
    stream = _stream(glasses, layouts.CAMERA, camera.source, "+image/jpg")
    times = _times_ns(glasses, camera.name, camera.rate_hz, jitter_ns=3_000)
    configuration = {
        "camera_id": barcode,
        "nominal_rate": camera.rate_hz,
        "image_width": camera.width,
        "image_height": camera.height,
        "image_pixel_format": RGB8 if camera.colour else GREY8,
        "gamma_factor": 1.0,
        "device_type": "Aria",
        "device_version": "1",
        "device_serial": glasses.serial,
        "sensor_model": "simulated",
        "sensor_serial": "0",
    }
    records = _pictures(glasses, camera, stream, times, barcode)
    truth = TrackTruth.of(times, source=camera.source, barcode=barcode)
    return _Source(stream, configuration, records, camera.name, truth)


def _pictures(
    glasses: Glasses, camera: AriaCamera, stream: VrsStream, times: Int64, barcode: int
) -> Iterator[Record]:
    rng = glasses.random(f"pictures {camera.name}")
    pool = textures(rng, POOL, camera.height, camera.width, colour=camera.colour)
    jpegs = [StampedJpeg(picture, camera.quality) for picture in pool]
    for first, batch in _batches(times):
        numbers = np.arange(first, first + len(batch))
        columns = {
            "group_id": numbers,
            "group_mask": 1,
            "frame_number": numbers,
            "exposure_duration_s": 0.004,
            "gain": 2.0,
            "capture_timestamp_ns": batch,
            "capture_timestamp_in_processing_clock_domain_ns": -1,
            "arrival_timestamp_ns": batch + IMAGE_DELAY_NS,
            "processing_start_timestamp_ns": batch,
            "temperature_deg_c": 34.0,
        }
        packed = layouts.CAMERA.data.encode_many(len(batch), columns)
        for frame, t_ns, told in zip(numbers.tolist(), batch.tolist(), packed, strict=True):
            yield layouts.data(stream, t_ns, told, jpegs[frame % POOL].encode(frame, barcode))


def _motion_configuration(glasses: Glasses, number: int, rate_hz: float) -> dict[str, Any]:
    magnetic = number == 2
    return {
        "stream_index": number,
        "device_id": number,
        "nominal_rate": rate_hz,
        "has_accelerometer": not magnetic,
        "has_gyroscope": not magnetic,
        "has_magnetometer": magnetic,
        "device_type": "Aria",
        "device_version": "1",
        "device_serial": glasses.serial,
        "sensor_model": "simulated",
    }


def _imu(glasses: Glasses, name: str, source: str, rate_hz: float) -> _Source:
    stream = _stream(glasses, layouts.MOTION, source)
    times = _times_ns(glasses, name, rate_hz, jitter_ns=1_000)
    configuration = _motion_configuration(glasses, stream.instance - 1, rate_hz)
    truth = TrackTruth.of(times, source=source)
    return _Source(stream, configuration, _motion(glasses, name, stream, times), name, truth)


def _motion(glasses: Glasses, name: str, stream: VrsStream, times: Int64) -> Iterator[Record]:
    """Yield the motion of a head that sways and turns, with the sensor's noise."""
    rng = glasses.random(f"motion {name}")
    for _, batch in _batches(times):
        t = (batch - glasses.start_ns) / NS_PER_S
        sway = np.stack([0.4 * np.sin(1.7 * t), np.full_like(t, GRAVITY_MSEC2), np.cos(0.9 * t)], 1)
        turn = np.stack([0.2 * np.sin(1.1 * t), 0.5 * np.sin(0.4 * t), 0.1 * np.cos(2.3 * t)], 1)
        columns = {
            "accelerometer_valid": True,
            "gyroscope_valid": True,
            "temperature_deg_c": 35.0,
            "capture_timestamp_ns": batch,
            "capture_timestamp_in_processing_clock_domain_ns": -1,
            "arrival_timestamp_ns": batch + 1_000_000,
            "processing_start_timestamp_ns": batch,
            "accelerometer": sway + 0.02 * rng.standard_normal(sway.shape),
            "gyroscope": turn + 0.002 * rng.standard_normal(turn.shape),
            "magnetometer": 0.0,
        }
        yield from _packed(stream, layouts.MOTION, batch, columns)


def _magnetometer(glasses: Glasses) -> _Source:
    stream = _stream(glasses, layouts.MOTION, "1203-1")
    times = _times_ns(glasses, "mag", 10.0, jitter_ns=1_000)
    rng = glasses.random("mag")
    columns = {
        "magnetometer_valid": True,
        "capture_timestamp_ns": times,
        "capture_timestamp_in_processing_clock_domain_ns": -1,
        "arrival_timestamp_ns": times + 1_000_000,
        "processing_start_timestamp_ns": times,
        "accelerometer": 0.0,
        "gyroscope": 0.0,
        "magnetometer": np.array(FIELD_UT) + rng.normal(0, 0.3, (len(times), 3)),
    }
    configuration = _motion_configuration(glasses, 2, 10.0)
    records = _packed(stream, layouts.MOTION, times, columns)
    return _Source(stream, configuration, records, "mag", TrackTruth.of(times, source="1203-1"))


def _barometer(glasses: Glasses) -> _Source:
    stream = _stream(glasses, layouts.BAROMETER, "247-1")
    times = _times_ns(glasses, "baro", 50.0, jitter_ns=20_000)
    noise = glasses.random("baro").normal(0, 1.5, len(times))
    columns = {
        "capture_timestamp_ns": times,
        "temperature": 30.0,
        "pressure": 97_300.0 + noise,
        "altitude": 340.0 - noise / 11.7,
    }
    configuration = {"stream_id": 1, "sample_rate": 50.0, "sensor_model_name": "simulated"}
    records = _packed(stream, layouts.BAROMETER, times, columns)
    return _Source(stream, configuration, records, "baro", TrackTruth.of(times, source="247-1"))


def _packed(
    stream: VrsStream, kind: layouts.StreamKind, times: Int64, columns: dict[str, Any]
) -> Iterator[Record]:
    packed = kind.data.encode_many(len(times), columns)
    for t_ns, told in zip(times.tolist(), packed, strict=True):
        yield layouts.data(stream, t_ns, told)


def _microphones(glasses: Glasses, sound: Sound) -> _Source:
    content = f"+audio/pcm/int32le/channels={MIC_CHANNELS}/rate={MIC_RATE_HZ}"
    stream = _stream(glasses, layouts.AUDIO, "231-1", content)
    rng = glasses.random("mic")
    first_ns = glasses.start_ns + int(rng.uniform(0, 20_000_000))
    rate_hz = MIC_RATE_HZ * (1.0 + rng.uniform(-3e-6, 3e-6))  # its crystal is not the clock's
    blocks = int(glasses.seconds * MIC_RATE_HZ) // MIC_BLOCK
    count = blocks * MIC_BLOCK
    configuration = {
        "stream_id": 1,
        "audio_channel_count": MIC_CHANNELS,
        "audio_sample_rate": MIC_RATE_HZ,
        "audio_sample_format": PCM_INT32,
    }
    last_ns = int(sample_times_ns(first_ns, rate_hz, count - 1, 1)[0])
    truth = TrackTruth(count, first_ns, last_ns, source="231-1")
    records = _blocks(glasses, sound, stream, first_ns, rate_hz, blocks)
    return _Source(stream, configuration, records, "mic", truth)


def _blocks(
    glasses: Glasses, sound: Sound, stream: VrsStream, first_ns: int, rate_hz: float, blocks: int
) -> Iterator[Record]:
    rng = glasses.random("mic noise")
    gains = (glasses.hearing.gain * rng.uniform(0.7, 1.0, MIC_CHANNELS)).astype(np.float32)
    for block in range(blocks):
        start = block * MIC_BLOCK
        times = sample_times_ns(first_ns, rate_hz, start, MIC_BLOCK)
        heard = sound.heard(glasses.clock, rate_hz, first_ns, start, MIC_BLOCK)
        noise = rng.standard_normal((MIC_BLOCK, MIC_CHANNELS), np.float32)
        level = heard[:, np.newaxis] * gains + np.float32(glasses.hearing.noise_rms) * noise
        samples = (level.clip(-0.999, 0.999) * np.float64(INT32_FULL_SCALE)).astype("<i4")
        told = layouts.AUDIO.data.encode(audio_muted=0, capture_timestamps_ns=times)
        yield layouts.data(stream, int(times[0]), told, samples.tobytes())


def _time_mapping(glasses: Glasses) -> _Source:
    """Return what the client learns of the server's clock: wrong at first, then ever better."""
    stream = _stream(glasses, layouts.TIME_MAPPING, "285-1")
    rng = glasses.random("ticsync")
    times = sample_times_ns(
        glasses.start_ns, MAPPING_RATE_HZ, 0, int(glasses.seconds * MAPPING_RATE_HZ) + 1
    )
    wrong = rng.uniform(*SETTLING_START_NS) * rng.choice([-1.0, 1.0])
    settling = wrong * np.exp(-(times - glasses.start_ns) / SETTLING_NS)
    error = settling + rng.normal(0, MAPPING_JITTER_NS, len(times))
    columns = {
        "monotonic_timestamp_ns": times,
        "real_timestamp_ns": glasses.clock.apply(times) + np.rint(error).astype(np.int64),
    }
    configuration = {"stream_id": 1, "sample_rate_hz": MAPPING_RATE_HZ, "mode": "TIC_SYNC"}
    records = _packed(stream, layouts.TIME_MAPPING, times, columns)
    truth = TrackTruth.of(times, source="285-1")
    return _Source(stream, configuration, records, "tic-sync", truth)
