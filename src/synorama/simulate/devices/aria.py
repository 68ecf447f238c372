"""Aria Gen 1 glasses: what they would have recorded, as VRS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import sample_times_ns
from synorama.simulate.devices import aria_layouts as layouts
from synorama.simulate.devices.aria_calibration import GEN1, calibration_json, imu_pose
from synorama.simulate.devices.aria_streams import (
    Glasses,
    Moves,
    Source,
    barometer,
    batches,
    camera_columns,
    camera_configuration,
    imu,
    magnetometer,
    make_stream,
    tags_of,
    time_mapping,
    times_ns,
    write_sources,
)
from synorama.simulate.formats.jpeg import StampedJpeg, jpeg
from synorama.simulate.formats.pictures import Shots, stamped, textures
from synorama.simulate.formats.vrs_writer import Record, VrsStream
from synorama.simulate.sound.acoustic_scene import Hears
from synorama.simulate.truth import TrackTruth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["FULL", "SMALL", "AriaCamera", "calibration", "write_glasses"]

POOL = 4  # different pictures a camera shows in turn
RGB_JITTER_NS = 3_000  # the other cameras have a common trigger, which has none
GREY8, RGB8 = 1, 4  # pixel formats of VRS
PCM_INT32 = 13  # sample format of VRS
MIC_RATE_HZ, MIC_CHANNELS, MIC_BLOCK = 48_000, 7, 4096
INT32_FULL_SCALE = 2**31 - 1


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


def write_glasses(
    path: Path,
    glasses: Glasses,
    sound: Hears,
    cameras: tuple[AriaCamera, ...] = FULL,
    *,
    shots: Mapping[str, Shots] | None = None,
    moves: Moves | None = None,
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
    cameras
        `FULL` or `SMALL`.
    shots
        What each camera sees; pictures that repeat for cameras that are not in it.
    moves
        Motion of the device frame; a head that sways by default.
    chunk_bytes, pack
        As for `synorama.simulate.formats.vrs_writer.write_vrs`.
    """
    sources = _sources(glasses, sound, cameras, shots or {}, moves)
    tags = _tags(path, glasses, cameras)
    return write_sources(path, glasses, tags, sources, chunk_bytes=chunk_bytes, pack=pack)


def _sources(
    glasses: Glasses,
    sound: Hears,
    cameras: tuple[AriaCamera, ...],
    shots: Mapping[str, Shots],
    moves: Moves | None,
) -> Iterator[Source]:
    for number, camera in enumerate(cameras):
        yield _camera(glasses, camera, number, shots.get(camera.name))
    yield imu(glasses, "imu-right", "1202-1", _on_imu(moves, "imu-right"))
    yield imu(glasses, "imu-left", "1202-2", _on_imu(moves, "imu-left"))
    yield magnetometer(glasses, moves)
    yield barometer(glasses, moves)
    yield _microphones(glasses, sound)
    if glasses.sync_role == "client":
        yield time_mapping(glasses, "TIC_SYNC")


def _on_imu(moves: Moves | None, label: str) -> Moves | None:
    """Return the motion of an inertial unit on the glasses."""
    return moves and (lambda device_ns: moves(device_ns).attached(imu_pose(GEN1, label)))


def calibration(serial: str, cameras: tuple[AriaCamera, ...]) -> str:
    """Return the factory calibration of glasses with these cameras, as their files hold it."""
    own = {c.name: c for c in FULL}
    sizes = {
        label: (camera.width // len(camera.labels), camera.height)
        for camera in cameras
        if camera != own[camera.name]
        for label in camera.labels
    }
    return calibration_json(GEN1, serial, sizes)


def _tags(path: Path, glasses: Glasses, cameras: tuple[AriaCamera, ...]) -> dict[str, str]:
    metadata = {
        "device_id": glasses.uuid("device"),
        "filename": path.name,
        "recording_profile": "profile15",
        "shared_session_id": glasses.shared_session_id,
        "start_time": glasses.start_epoch_s,
        "ticsync_mode": glasses.sync_role,
    }
    tags = tags_of(glasses, metadata, calibration(glasses.serial, cameras))
    return tags | {"recording_profile": "profile15"}


def _camera(glasses: Glasses, camera: AriaCamera, number: int, shots: Shots | None) -> Source:
    stream = make_stream(glasses, layouts.CAMERA, camera.source, "+image/jpg")
    times = times_ns(glasses, camera.name, camera.rate_hz, jitter_ns=RGB_JITTER_NS * camera.colour)
    configuration = camera_configuration(
        glasses,
        camera_id=number,
        rate_hz=camera.rate_hz,
        size=(camera.width, camera.height),
        pixel_format=RGB8 if camera.colour else GREY8,
    )
    barcode = None if glasses.barcode is None else glasses.barcode + number
    if shots is None:
        pictures = _repeated(glasses, camera, barcode or 0)
    else:
        pictures = _shot(camera, shots, times, barcode)
    records = _pictures(stream, times, pictures)
    truth = TrackTruth.of(times, source=camera.source, barcode=barcode)
    return Source(stream, configuration, records, camera.name, truth)


def _pictures(stream: VrsStream, times: Int64, pictures: Iterator[bytes]) -> Iterator[Record]:
    for first, batch in batches(times):
        numbers = np.arange(first, first + len(batch))
        columns = camera_columns(numbers, batch, 34.0)
        rows = layouts.CAMERA.data.encode_many(len(batch), columns)
        for t_ns, told, picture in zip(batch.tolist(), rows, pictures, strict=False):
            yield layouts.data(stream, t_ns, told, picture)


def _repeated(glasses: Glasses, camera: AriaCamera, barcode: int) -> Iterator[bytes]:
    """Yield a few pictures again and again, each with the number of its frame."""
    rng = glasses.random(f"pictures {camera.name}")
    pool = textures(rng, POOL, camera.height, camera.width, colour=camera.colour)
    jpegs = [StampedJpeg(picture, camera.quality) for picture in pool]
    for frame in count():
        yield jpegs[frame % POOL].encode(frame, barcode)


def _shot(camera: AriaCamera, shots: Shots, times: Int64, barcode: int | None) -> Iterator[bytes]:
    """Yield what the camera saw."""
    for frame, t_ns in enumerate(times.tolist()):
        yield jpeg(stamped(shots(t_ns), frame, barcode), camera.quality)


def _microphones(glasses: Glasses, sound: Hears) -> Source:
    content = f"+audio/pcm/int32le/channels={MIC_CHANNELS}/rate={MIC_RATE_HZ}"
    stream = make_stream(glasses, layouts.AUDIO, "231-1", content)
    rng = glasses.random("mic")
    first_ns = glasses.start_ns + int(rng.uniform(0, 20_000_000))
    rate_hz = MIC_RATE_HZ * (1.0 + rng.uniform(-3e-6, 3e-6))  # its crystal is not the clock's
    blocks = int(glasses.seconds * MIC_RATE_HZ) // MIC_BLOCK
    samples = blocks * MIC_BLOCK
    configuration = {
        "stream_id": 1,
        "audio_channel_count": MIC_CHANNELS,
        "audio_sample_rate": MIC_RATE_HZ,
        "audio_sample_format": PCM_INT32,
    }
    last_ns = int(sample_times_ns(first_ns, rate_hz, samples - 1, 1)[0])
    truth = TrackTruth(samples, first_ns, last_ns, source="231-1")
    records = _blocks(glasses, sound, stream, first_ns, rate_hz, blocks)
    return Source(stream, configuration, records, "mic", truth)


def _blocks(
    glasses: Glasses, sound: Hears, stream: VrsStream, first_ns: int, rate_hz: float, blocks: int
) -> Iterator[Record]:
    rng = glasses.random("mic noise")
    gains = (glasses.hearing.gain * rng.uniform(0.7, 1.0, MIC_CHANNELS)).astype(np.float32)
    for block in range(blocks):
        start = block * MIC_BLOCK
        times = sample_times_ns(first_ns, rate_hz, start, MIC_BLOCK)
        heard = sound.heard(glasses.clock, rate_hz, first_ns, start, MIC_BLOCK)
        noise = rng.standard_normal((MIC_BLOCK, MIC_CHANNELS), np.float32)
        level = heard.reshape(MIC_BLOCK, -1) * gains + np.float32(glasses.hearing.noise_rms) * noise
        samples = (level.clip(-0.999, 0.999) * np.float64(INT32_FULL_SCALE)).astype("<i4")
        told = layouts.AUDIO.data.encode(audio_muted=0, capture_timestamps_ns=times)
        yield layouts.data(stream, int(times[0]), told, samples.tobytes())
