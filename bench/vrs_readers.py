"""Aria VRS: Synorama's memory-mapped reader against pyvrs and projectaria-tools.

    python bench/vrs_readers.py [--seconds 60] [--plain]

Writes one pair of full-size first-generation glasses (1408x1408 at 30 fps, three cameras at 10
fps, two inertial sensors at 1800 Hz in all, seven microphones), with packed pictures and sound as
real recordings have unless ``--plain``. Each reader runs in a process of its own, since peak
memory is that of a process. Printed: CPU seconds, ratios to Synorama's, peak memory.

``index``: device time of every record and where every payload lies (pyvrs and the vendor cannot
tell a place, so they read the payloads). ``imu``: all rows of both sensors as arrays. ``bytes``:
the stored bytes of 300 colour pictures. The last two are measured on opened files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np

from synorama.capture.aria import open_aria
from synorama.media.payload import read_payload
from synorama.records import Recording, SampleTrack, VideoTrack
from synorama.simulate.formats.vrs_writer import DataLayout, Kind, Record, VrsStream, write_vrs

PICTURE = DataLayout(
    "group_id:uint64_t group_mask:uint64_t frame_number:uint64_t frame_tag:uint32_t "
    "exposure_duration_s:double gain:double capture_timestamp_ns:int64_t "
    "capture_timestamp_in_processing_clock_domain_ns:int64_t arrival_timestamp_ns:int64_t "
    "processing_start_timestamp_ns:int64_t temperature_deg_c:double"
)
PICTURE_CONFIG = DataLayout(
    "camera_id:uint32_t nominal_rate:double image_width:uint32_t image_height:uint32_t "
    "image_stride:uint32_t image_pixel_format:uint32_t device_type:string"
)
MOTION = DataLayout(
    "accelerometer_valid:Bool gyroscope_valid:Bool magnetometer_valid:Bool "
    "temperature_deg_c:double capture_timestamp_ns:int64_t "
    "capture_timestamp_in_processing_clock_domain_ns:int64_t arrival_timestamp_ns:int64_t "
    "processing_start_timestamp_ns:int64_t accelerometer:float[3] gyroscope:float[3] "
    "magnetometer:float[3]"
)
MOTION_CONFIG = DataLayout("stream_index:uint32_t nominal_rate:double device_type:string")
SOUND = DataLayout("audio_muted:uint8_t capture_timestamps_ns:vector<int64_t>")
SOUND_CONFIG = DataLayout(
    "stream_id:uint32_t audio_channel_count:uint8_t audio_sample_rate:uint32_t "
    "audio_sample_format:uint8_t"
)
Camera: TypeAlias = tuple[str, int, int, float, int, bool]
CAMERAS: tuple[Camera, ...] = (
    ("214-1", 1408, 1408, 30.0, 45, True),
    ("1201-1", 640, 480, 10.0, 60, False),
    ("1201-2", 640, 480, 10.0, 60, False),
    ("211-1", 640, 240, 10.0, 40, False),
)
IMUS = (("1202-1", 1000.0), ("1202-2", 800.0))
RATE, CHANNELS, BLOCK = 48_000, 7, 4096
START_NS = 100_000_000_000
PICTURES = 300


# --- a recording -----------------------------------------------------------------------------


def write(path: Path, seconds: float, *, pack: bool) -> None:
    streams, sources = [], []
    for camera in CAMERAS:
        stream = make_stream(camera[0], PICTURE, PICTURE_CONFIG, "+image/jpg")
        streams.append(stream)
        sources.append(pictures(stream, seconds, camera))
    for source, rate in IMUS:
        stream = make_stream(source, MOTION, MOTION_CONFIG, "")
        streams.append(stream)
        sources.append(motion(stream, seconds, rate))
    form = f"+audio/pcm/int32le/channels={CHANNELS}/rate={RATE}"
    stream = make_stream("231-1", SOUND, SOUND_CONFIG, form)
    streams.append(stream)
    sources.append(sound(stream, seconds))
    write_vrs(path, streams, {"device_type": "Aria"}, sources, file_id=1, pack=pack)


def make_stream(source: str, data: DataLayout, config: DataLayout, content: str) -> VrsStream:
    type_id, instance = map(int, source.split("-"))
    return VrsStream(
        type_id=type_id,
        instance=instance,
        name=source,
        flavor="device/aria",
        serial=f"{type_id:08x}{instance:08x}",
        versions={Kind.CONFIGURATION: 2 if data is not SOUND else 1, Kind.DATA: 2},
        layouts={Kind.CONFIGURATION: config, Kind.DATA: data},
        content=content,
    )


def record(stream: VrsStream, kind: Kind, time_s: float, *parts: bytes) -> Record:
    version = stream.versions[kind]
    return Record(time_s, stream.type_id, stream.instance, kind, version, parts)


def pictures(stream: VrsStream, seconds: float, camera: Camera) -> Iterator[Record]:
    _, width, height, rate, quality, colour = camera
    config = PICTURE_CONFIG.encode(
        nominal_rate=rate, image_width=width, image_height=height, device_type="Aria"
    )
    yield record(stream, Kind.CONFIGURATION, 5e-324, config)
    rng = np.random.default_rng(width)
    shape = (height, width, 3) if colour else (height, width)
    small = rng.integers(0, 255, (shape[0] // 4, shape[1] // 4, *shape[2:]), np.uint8)
    noise = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    _, jpeg = cv2.imencode(".jpg", noise, [cv2.IMWRITE_JPEG_QUALITY, quality])
    times = START_NS + np.rint(np.arange(int(seconds * rate)) * 1e9 / rate).astype(np.int64)
    columns = {"frame_number": np.arange(len(times)), "capture_timestamp_ns": times}
    for t, body in zip(times, PICTURE.encode_many(len(times), columns), strict=True):
        yield record(stream, Kind.DATA, float(t) * 1e-9, body, jpeg.tobytes())


def motion(stream: VrsStream, seconds: float, rate: float) -> Iterator[Record]:
    config = MOTION_CONFIG.encode(nominal_rate=rate, device_type="Aria")
    yield record(stream, Kind.CONFIGURATION, 5e-324, config)
    times = START_NS + np.rint(np.arange(int(seconds * rate)) * 1e9 / rate).astype(np.int64)
    values = np.random.default_rng(1).normal(size=(len(times), 3)).astype(np.float32)
    columns = {
        "accelerometer_valid": True,
        "gyroscope_valid": True,
        "capture_timestamp_ns": times,
        "accelerometer": values,
        "gyroscope": values,
    }
    for t, body in zip(times, MOTION.encode_many(len(times), columns), strict=True):
        yield record(stream, Kind.DATA, float(t) * 1e-9, body)


def sound(stream: VrsStream, seconds: float) -> Iterator[Record]:
    config = SOUND_CONFIG.encode(
        audio_channel_count=CHANNELS, audio_sample_rate=RATE, audio_sample_format=13
    )
    yield record(stream, Kind.CONFIGURATION, 5e-324, config)
    rng = np.random.default_rng(2)
    samples = (rng.normal(size=(BLOCK, CHANNELS)) * 2**24).astype("<i4").tobytes()
    for first in range(0, int(seconds * RATE), BLOCK):
        times = START_NS + np.rint((first + np.arange(BLOCK)) * 1e9 / RATE).astype(np.int64)
        body = SOUND.encode(audio_muted=0, capture_timestamps_ns=times.tolist())
        yield record(stream, Kind.DATA, float(times[0]) * 1e-9, body, samples)


# --- readers ---------------------------------------------------------------------------------


def synorama_index(path: Path) -> int:
    return sum(t.count for t in open_aria(path).tracks.values())


def synorama_imu(recording: Recording) -> int:
    tracks = (recording.tracks[n] for n in ("imu-left", "imu-right"))
    return sum(len(t.read().values) for t in tracks if isinstance(t, SampleTrack))


def synorama_bytes(recording: Recording) -> int:
    rgb = recording.tracks["rgb"]
    assert isinstance(rgb, VideoTrack)
    with recording.files[0].path.open("rb") as file:
        return sum(len(read_payload(file, row)) for row in rgb.index[:PICTURES])


def pyvrs_reader(path: Path) -> Any:
    import vrsbindings
    from pyvrs import SyncVRSReader

    reader = SyncVRSReader(str(path))
    reader.set_image_conversion(vrsbindings.ImageConversion.OFF)
    return reader


def pyvrs_data(reader: Any, *streams: str) -> Any:
    return reader.filtered_by_fields(stream_ids=set(streams) or None, record_types={"data"})


def pyvrs_index(path: Path) -> int:
    count = 0
    for found in pyvrs_data(pyvrs_reader(path)):
        fields = found.metadata_blocks[0]
        times = fields.get("capture_timestamps_ns")
        count += 1 if times is None else len(times)
    return count


def pyvrs_imu(reader: Any) -> int:
    rows = [
        (*r.metadata_blocks[0]["accelerometer"], *r.metadata_blocks[0]["gyroscope"])
        for r in pyvrs_data(reader, "1202-1", "1202-2")
    ]
    return len(np.array(rows))


def pyvrs_bytes(reader: Any) -> int:
    data = pyvrs_data(reader, "214-1")
    return sum(len(np.asarray(data[k].image_blocks[0]).tobytes()) for k in range(PICTURES))


def vendor(path: Path) -> Any:
    from projectaria_tools.core import data_provider

    return data_provider.create_vrs_data_provider(str(path))


def vendor_index(path: Path) -> int:
    from projectaria_tools.core.sensor_data import TimeDomain

    provider = vendor(path)
    count = 0
    for stream in provider.get_all_streams():
        count += len(provider.get_timestamps_ns(stream, TimeDomain.DEVICE_TIME))
        if provider.get_label_from_stream_id(stream) == "mic":
            for k in range(provider.get_num_data(stream)):
                count += len(provider.get_audio_data_by_index(stream, k)[1].capture_timestamps_ns)
    return count


def vendor_imu(provider: Any) -> int:
    from projectaria_tools.core.stream_id import StreamId

    rows = []
    for stream in (StreamId("1202-1"), StreamId("1202-2")):
        for k in range(provider.get_num_data(stream)):
            row = provider.get_imu_data_by_index(stream, k)
            rows.append((*row.accel_msec2, *row.gyro_radsec))
    return len(np.array(rows))


Opener: TypeAlias = Callable[[Path], Any]
READERS: dict[str, dict[str, tuple[Opener, Callable[[Any], int]]]] = {
    "index": {
        "synorama": (Path, synorama_index),
        "pyvrs": (Path, pyvrs_index),
        "vendor": (Path, vendor_index),
    },
    "imu": {
        "synorama": (open_aria, synorama_imu),
        "pyvrs": (pyvrs_reader, pyvrs_imu),
        "vendor": (vendor, vendor_imu),
    },
    "bytes": {
        "synorama": (open_aria, synorama_bytes),
        "pyvrs": (pyvrs_reader, pyvrs_bytes),
    },
}


# --- measuring -------------------------------------------------------------------------------


def measured(opener: Opener, call: Callable[[Any], int], path: Path) -> tuple[int, float, float]:
    """Return what was counted, CPU seconds after opening, and peak memory of the process [MB]."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measure, (opener, call, path))


def _measure(opener: Opener, call: Callable[[Any], int], path: Path) -> tuple[int, float, float]:
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1), os.dup2(silence, 2)
    opened = opener(path)
    start = time.process_time()
    count = call(opened)
    spent = time.process_time() - start
    return count, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plain", action="store_true", help="store records unpacked")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "glasses.vrs"
        write(path, options.seconds, pack=not options.plain)
        print(f"{options.seconds:g} s of one pair of glasses, {path.stat().st_size / 1e6:.0f} MB")
        for task, readers in READERS.items():
            base = None
            for name, (opener, call) in readers.items():
                count, spent, peak = measured(opener, call, path)
                base = base or spent
                print(
                    f"{task:6} {name:9} {spent:8.3f} CPU s {spent / base:7.1f}x "
                    f"{peak:7.0f} MB  {count} counted"
                )


if __name__ == "__main__":
    main()
