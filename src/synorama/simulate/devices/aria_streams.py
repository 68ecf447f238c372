"""What Aria glasses of both generations record alike: motion, air, and each other's time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from synorama.simulate.clocks import randomness, sample_times_ns
from synorama.simulate.devices import aria_layouts as layouts
from synorama.simulate.devices.rhythm import rhythm_of, sensor_times_ns
from synorama.simulate.formats.vrs_writer import Record, VrsStream, write_vrs
from synorama.simulate.scene.trajectory import Motion
from synorama.simulate.sound.plain import Hearing
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "Glasses", "Moves", "Source", "barometer", "batches", "camera_columns",
    "camera_configuration", "imu", "magnetometer", "make_stream", "packed", "tags_of",
    "time_mapping", "times_ns", "write_sources",
]  # fmt: skip

EXPOSURE_S = 0.004
IMAGE_DELAY_NS = 9_000_000  # from exposure to the time of arrival in the record
BATCH = 500  # records made at once
GRAVITY_MSEC2 = 9.81
FIELD_UT = (20.0, 0.5, -40.0)  # microtesla; x east, y north, z up
PRESSURE_PA, PA_A_METRE, ALTITUDE_M = 97_300.0, 11.7, 340.0  # where the floor is

Moves: TypeAlias = Callable[["Int64"], Motion]
"""Device times ``(N,)`` [ns] to the motion of the device frame in a room with z up."""

MAPPING_RATE_HZ = 10.0
MAPPING_JITTER_NS = 200.0  # one sigma of each time that the glasses exchange
SETTLING_START_NS = (400_000.0, 950_000.0)  # error when synchronization starts, least and most
SETTLING_NS = 6 * NS_PER_S  # it falls by e in this time: below 1 us after 45 s


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
    sync_role
        Its part in time synchronization; the server's clock is the session's. For the second
        generation, whose words differ, the server broadcasts and the client receives. Empty:
        nobody asked these glasses to take part.
    shared_session_id
        What all glasses of one synchronized session have in common.
    start_epoch_s
        Wall-clock time of the start.
    barcode
        Camera number in the barcodes of its first camera; the others follow. None: no barcodes.
    hearing
        How it hears.
    seed
        Of the session.
    generation
        Of the glasses.
    """

    name: str
    serial: str
    clock: ClockMap
    start_ns: int
    seconds: float
    sync_role: Literal["server", "client", ""]
    shared_session_id: str
    start_epoch_s: int
    barcode: int | None
    hearing: Hearing
    seed: int
    generation: Literal[1, 2] = 1

    def random(self, part: str) -> np.random.Generator:
        """Return the random numbers of one part of these glasses."""
        return randomness(self.seed, self.name, part)

    def uuid(self, part: str) -> str:
        """Return an identifier that the seed decides."""
        return str(uuid.UUID(bytes=self.random(f"uuid {part}").bytes(16), version=4))

    @property
    def device_type(self) -> str:
        """What the glasses call themselves."""
        return "Aria" if self.generation == 1 else "Oatmeal"

    @property
    def flavor(self) -> str:
        """What kind of recordable their streams are."""
        return f"device/{self.device_type.lower()}"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A stream, its configuration, its records, and what is true of them, if it is a track."""

    stream: VrsStream
    configuration: Mapping[str, Any]
    records: Iterator[Record]
    name: str
    truth: TrackTruth | None


def write_sources(
    path: Path,
    glasses: Glasses,
    tags: Mapping[str, str],
    sources: Iterable[Source],
    *,
    chunk_bytes: int | None = None,
    pack: bool = False,
) -> dict[str, TrackTruth]:
    """Write the streams to a VRS file, and return what is true of each track."""
    sources = list(sources)
    begin = [r for s in sources for r in layouts.first_records(s.stream, s.configuration)]
    write_vrs(
        path,
        [source.stream for source in sources],
        tags,
        [iter(sorted(begin, key=lambda r: r[:4])), *(source.records for source in sources)],
        file_id=int.from_bytes(glasses.random("file").bytes(8), "little"),
        chunk_bytes=chunk_bytes,
        pack=pack,
    )
    return {source.name: source.truth for source in sources if source.truth}


def make_stream(
    glasses: Glasses, kind: layouts.StreamKind, source: str, content: str = "", flavor: str = ""
) -> VrsStream:
    """Return a stream of these glasses."""
    return layouts.make_stream(
        kind,
        source,
        serial=glasses.random(f"stream {source}").bytes(8).hex(),
        flavor=flavor or glasses.flavor,
        content=content,
        tags={"session_id": glasses.uuid("recording")},
    )


def times_ns(glasses: Glasses, name: str, rate_hz: float, jitter_ns: float) -> Int64:
    """Return when a camera takes pictures: regular from some moment of the first period on."""
    rng = glasses.random(f"times {name}")
    first = glasses.start_ns + int(rng.uniform(0, NS_PER_S / rate_hz))
    times = sample_times_ns(first, rate_hz, 0, int(glasses.seconds * rate_hz))
    return times + np.rint(rng.uniform(-jitter_ns, jitter_ns, len(times))).astype(np.int64)


def batches(times: Int64) -> Iterator[tuple[int, Int64]]:
    """Yield the times in batches, with the number of each one's first."""
    for first in range(0, len(times), BATCH):
        yield first, times[first : first + BATCH]


def camera_configuration(
    glasses: Glasses, *, camera_id: int, rate_hz: float, size: tuple[int, int], pixel_format: int
) -> dict[str, Any]:
    """Return what cameras of both generations say of themselves."""
    return {
        "camera_id": camera_id,
        "nominal_rate": rate_hz,
        "image_width": size[0],
        "image_height": size[1],
        "image_pixel_format": pixel_format,
        "gamma_factor": 1.0,
        "device_type": glasses.device_type,
        "device_version": "1",
        "device_serial": glasses.serial,
        "sensor_model": "simulated",
        "sensor_serial": "0",
    }


def camera_columns(numbers: Any, times: Any, temperature_deg_c: float) -> dict[str, Any]:
    """Return what cameras of both generations note beside each picture, by its number and time."""
    return {
        "group_id": numbers,
        "group_mask": 1,
        "frame_number": numbers,
        "exposure_duration_s": EXPOSURE_S,
        "gain": 2.0,
        "capture_timestamp_ns": times,
        "capture_timestamp_in_processing_clock_domain_ns": -1,
        "arrival_timestamp_ns": times + IMAGE_DELAY_NS,
        "processing_start_timestamp_ns": times,
        "temperature_deg_c": temperature_deg_c,
    }


def tags_of(glasses: Glasses, metadata: Mapping[str, Any], calibration: str) -> dict[str, str]:
    """Return the tags that files of both generations begin with."""
    return {
        "calib_json": calibration,
        "capture_time_epoch": str(glasses.start_epoch_s),
        "device_serial": glasses.serial,
        "device_type": glasses.device_type,
        "device_version": "1",
        "metadata": json.dumps(metadata, separators=(",", ":")),
        "session_id": glasses.uuid("recording"),
    }


def _motion_configuration(glasses: Glasses, name: str, number: int) -> dict[str, Any]:
    magnetic = name == "mag"
    return {
        "stream_index": number,
        "device_id": number,
        "nominal_rate": rhythm_of(glasses, name).nominal_hz,
        "has_accelerometer": not magnetic,
        "has_gyroscope": not magnetic,
        "has_magnetometer": magnetic,
        "device_type": glasses.device_type,
        "device_version": "1",
        "device_serial": glasses.serial,
        "sensor_model": "simulated",
    }


def imu(glasses: Glasses, name: str, source: str, moves: Moves | None = None) -> Source:
    """Return one inertial unit; ``moves`` gives the motion of its own frame, if it is known."""
    stream = make_stream(glasses, layouts.MOTION, source)
    times = sensor_times_ns(glasses, name)
    configuration = _motion_configuration(glasses, name, stream.instance - 1)
    truth = TrackTruth.of(times, source=source)
    records = _motion(glasses, name, stream, times, moves)
    return Source(stream, configuration, records, name, truth)


def _motion(
    glasses: Glasses, name: str, stream: VrsStream, times: Int64, moves: Moves | None
) -> Iterator[Record]:
    """Yield specific force and rate of turn, with the sensor's noise."""
    rng = glasses.random(f"motion {name}")
    for _, batch in batches(times):
        if moves is None:
            force, turn = _sways((batch - glasses.start_ns) / NS_PER_S)
        else:
            motion = moves(batch)
            force, turn = motion.specific_force_m_s2, motion.angular_velocity_rad_s
        columns = {
            "accelerometer_valid": True,
            "gyroscope_valid": True,
            "temperature_deg_c": 35.0,
            "capture_timestamp_ns": batch,
            "capture_timestamp_in_processing_clock_domain_ns": -1,
            "arrival_timestamp_ns": batch + 1_000_000,
            "processing_start_timestamp_ns": batch,
            "accelerometer": force + 0.02 * rng.standard_normal(force.shape),
            "gyroscope": turn + 0.002 * rng.standard_normal(turn.shape),
            "magnetometer": 0.0,
        }
        yield from packed(stream, layouts.MOTION, batch, columns)


def _sways(t: Float64) -> tuple[Float64, Float64]:
    """Return the motion of a head that sways and turns, for glasses in no room."""
    force = np.stack([0.4 * np.sin(1.7 * t), np.full_like(t, GRAVITY_MSEC2), np.cos(0.9 * t)], 1)
    turn = np.stack([0.2 * np.sin(1.1 * t), 0.5 * np.sin(0.4 * t), 0.1 * np.cos(2.3 * t)], 1)
    return force, turn


def magnetometer(glasses: Glasses, moves: Moves | None = None) -> Source:
    """Return the magnetometer."""
    stream = make_stream(glasses, layouts.MOTION, "1203-1")
    times = sensor_times_ns(glasses, "mag")
    rng = glasses.random("mag")
    field = np.array(FIELD_UT) if moves is None else FIELD_UT @ moves(times).rotation
    columns = {
        "magnetometer_valid": True,
        "capture_timestamp_ns": times,
        "capture_timestamp_in_processing_clock_domain_ns": -1,
        "arrival_timestamp_ns": times + 1_000_000,
        "processing_start_timestamp_ns": times,
        "accelerometer": 0.0,
        "gyroscope": 0.0,
        "magnetometer": field + rng.normal(0, 0.3, (len(times), 3)),
    }
    configuration = _motion_configuration(glasses, "mag", 2)
    records = packed(stream, layouts.MOTION, times, columns)
    return Source(stream, configuration, records, "mag", TrackTruth.of(times, source="1203-1"))


def barometer(glasses: Glasses, moves: Moves | None = None) -> Source:
    """Return the barometer."""
    stream = make_stream(glasses, layouts.BAROMETER, "247-1")
    times = sensor_times_ns(glasses, "baro")
    noise = glasses.random("baro").normal(0, 1.5, len(times))
    noise -= 0.0 if moves is None else PA_A_METRE * moves(times).position_m[:, 2]
    columns = {
        "capture_timestamp_ns": times,
        "temperature": 30.0,
        "pressure": PRESSURE_PA + noise,
        "altitude": ALTITUDE_M - noise / PA_A_METRE,
    }
    configuration = {
        "stream_id": 1,
        "sample_rate": rhythm_of(glasses, "baro").nominal_hz,
        "sensor_model_name": "simulated",
    }
    records = packed(stream, layouts.BAROMETER, times, columns)
    return Source(stream, configuration, records, "baro", TrackTruth.of(times, source="247-1"))


def packed(
    stream: VrsStream, kind: layouts.StreamKind, times: Int64, columns: dict[str, Any]
) -> Iterator[Record]:
    """Yield a record of fixed fields for every time."""
    rows = kind.data.encode_many(len(times), columns)
    for t_ns, told in zip(times.tolist(), rows, strict=True):
        yield layouts.data(stream, t_ns, told)


def time_mapping(glasses: Glasses, mode: str) -> Source:
    """Return what the client learns of the server's clock.

    TICSync is wrong at first, then ever better; SubGHz is right from the start.
    """
    stream = make_stream(glasses, layouts.TIME_MAPPING, "285-1")
    rng = glasses.random("ticsync")
    times = sample_times_ns(
        glasses.start_ns, MAPPING_RATE_HZ, 0, int(glasses.seconds * MAPPING_RATE_HZ) + 1
    )
    wrong = rng.uniform(*SETTLING_START_NS) * rng.choice([-1.0, 1.0]) * (mode == "TIC_SYNC")
    settling = wrong * np.exp(-(times - glasses.start_ns) / SETTLING_NS)
    error = settling + rng.normal(0, MAPPING_JITTER_NS, len(times))
    columns = {
        "monotonic_timestamp_ns": times,
        "real_timestamp_ns": glasses.clock.apply(times) + np.rint(error).astype(np.int64),
    }
    configuration = {"stream_id": 1, "sample_rate_hz": MAPPING_RATE_HZ, "mode": mode}
    records = packed(stream, layouts.TIME_MAPPING, times, columns)
    return Source(stream, configuration, records, mode, None)
