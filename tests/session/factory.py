"""Small recordings with known content: every picture carries its number as a barcode."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from synorama.records import (
    BLOCK_DTYPE,
    FRAME_DTYPE,
    AudioTrack,
    Column,
    FileRef,
    PointCloud,
    PointTrack,
    Problem,
    Recording,
    RecordingClock,
    Samples,
    SampleTrack,
    SyncResult,
    TimeMapping,
    Track,
    UtcEstimate,
    VideoTrack,
)
from synorama.timebase import ClockMap

BITS, CELL = 12, 16
WIDTH, HEIGHT = BITS * CELL, 48
SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND
GLASSES_HZ = 10
SOUND_HZ = 48_000
BLOCK = 4096


def barcode(number: int) -> NDArray[np.uint8]:
    """Return a grey picture whose columns are the bits of a number."""
    bits = [(number >> k) & 1 for k in range(BITS)]
    row = np.repeat(np.array([40 + 180 * b for b in bits], np.uint8), CELL)
    return np.tile(row, (HEIGHT, 1))


def read_barcode(image: NDArray[np.uint8]) -> int:
    grey = image.mean(axis=2) if image.ndim == 3 else image
    means = grey.reshape(grey.shape[0], BITS, CELL).mean(axis=(0, 2))
    return sum(1 << k for k in range(BITS) if means[k] > 130)


def file_ref(path: Path, digest: str | None = None) -> FileRef:
    stat = path.stat()
    return FileRef(path, stat.st_size, stat.st_mtime_ns, digest)


# --- glasses: packets in one binary file ------------------------------------------------------


def jpeg(number: int) -> bytes:
    context = av.CodecContext.create("mjpeg", "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = WIDTH, HEIGHT, "yuvj420p"
    context.time_base = Fraction(1, 30)
    frame = av.VideoFrame.from_ndarray(np.dstack([barcode(number)] * 3), "rgb24")
    frame = frame.reformat(format="yuvj420p")
    frame.pts = 0
    return b"".join(bytes(p) for p in [*context.encode(frame), *context.encode(None)])


def sound_values(count: int, channels: int) -> NDArray[np.int32]:
    """Return samples that tell their own index and channel."""
    index = np.arange(count, dtype=np.int32)[:, None]
    values: NDArray[np.int32] = (index * 64 + np.arange(channels, dtype=np.int32)) * np.int32(16)
    return values


def glasses(
    folder: Path, name: str = "aria-1", frames: int = 40, first_ns: int = EPOCH, **facts: Any
) -> Recording:
    """Write a file of JPEG, raw and PCM packets; return the recording with samples and poses."""
    path = folder / f"{name}.bin"
    step = SECOND // GLASSES_HZ
    times = first_ns + np.arange(frames) * step
    samples = frames * SOUND_HZ // GLASSES_HZ // BLOCK * BLOCK
    rgb, eye = np.zeros(frames, FRAME_DTYPE), np.zeros(frames, FRAME_DTYPE)
    blocks = np.zeros(samples // BLOCK, BLOCK_DTYPE)
    with path.open("wb") as file:
        file.write(b"header")
        for k in range(frames):
            for table, data in ((rgb, jpeg(k)), (eye, barcode(k + 1).tobytes())):
                table[k] = (times[k], 0, file.tell(), len(data), 1, 0, 0)
                file.write(data)
        sound = sound_values(samples, 2)
        for k in range(len(blocks)):
            data = sound[k * BLOCK : (k + 1) * BLOCK].astype("<i4").tobytes()
            blocks[k] = (k * BLOCK, BLOCK, 0, file.tell(), len(data), 0, 0)
            file.write(data)
    last = np.array([samples - 1]) * SECOND // SOUND_HZ
    knots = [(0, first_ns), (samples - 1, first_ns + int(last[0]))]
    tracks: list[Track] = [
        video("rgb", times, rgb, codec="mjpeg", rotation_deg=90, time_refers_to="exposure_centre"),
        video("eye", times, eye, codec="rawvideo", pixel_format="gray"),
        AudioTrack(
            name="mic",
            codec="pcm_s32le",
            rate_hz=float(SOUND_HZ),
            channels=2,
            sample_count=samples,
            knots=np.array(knots),
            storage="packets",
            blocks=blocks,
            muted=np.zeros(len(blocks), bool),
        ),
        inertial(times),
        trajectory(times),
        location(times),
        PointTrack("semidense_points", 3, points, frame="world"),
    ]
    return Recording(
        id=name,
        device="aria",
        files=(file_ref(path),),
        tracks={t.name: t for t in tracks},
        model="Aria Gen 1",
        serial="1WM",
        calibration='{"é": 1}',
        sync_role="client",
        time_mappings=(TimeMapping("tic_sync", np.array([[1, 2], [3, 4]])),),
        start_utc=UtcEstimate(first_ns, EPOCH, 0.25, "gps"),
        problems=(Problem("gap", "a gap of 2 s", "rgb", severe=True),),
        extras={"profile": "p9", "n": 3},
        **facts,
    )


def video(name: str, times: NDArray[np.int64], index: NDArray[np.void], **facts: Any) -> VideoTrack:
    return VideoTrack(
        name=name,
        width=WIDTH,
        height=HEIGHT,
        times_ns=times,
        index=index,
        rate_hz=float(GLASSES_HZ),
        **{"storage": "packets", **facts},
    )


def inertial(times: NDArray[np.int64]) -> SampleTrack:
    def read() -> Samples:
        values = np.arange(len(times) * 3, dtype=np.float32).reshape(-1, 3)
        return Samples(times, values, {"flag": np.ones(len(times), np.uint8)})

    columns = tuple(Column(f"a{axis}", "m/s^2") for axis in "xyz")
    return _samples("imu", "samples", columns, times, read)


def trajectory(times: NDArray[np.int64]) -> SampleTrack:
    """Return poses that move 1 m a second along x and turn about z."""
    seconds = (times - times[0]) / SECOND

    def read() -> Samples:
        angle = seconds / 2
        zero = np.zeros(len(times))
        poses = [seconds, zero, zero, np.cos(angle / 2), zero, zero, np.sin(angle / 2)]
        return Samples(times, np.column_stack(poses))

    columns = tuple(Column(c) for c in ("tx", "ty", "tz", "qw", "qx", "qy", "qz"))
    return _samples("closed_loop_trajectory", "pose", columns, times, read, frame="world")


def location(times: NDArray[np.int64]) -> SampleTrack:
    columns = (Column("latitude", "deg"),)
    read = lambda: Samples(times, np.zeros((len(times), 1)))  # noqa: E731
    return _samples("gps", "samples", columns, times, read, location=True)


def _samples(
    name: str, kind: Any, columns: Any, times: NDArray[np.int64], read: Any, **facts: Any
) -> SampleTrack:
    ends = int(times[0]), int(times[-1])
    return SampleTrack(name, kind, columns, len(times), *ends, read, **facts)


def points() -> PointCloud:
    return PointCloud("world", np.eye(3), sigma_m=np.ones(3), extra={"uid": np.arange(3)})


# --- cameras: containers ----------------------------------------------------------------------


def encode(path: Path, codec: str, pts: list[int], time_base: Fraction, **options: str) -> None:
    """Write a video whose frame k carries barcode k and the time stamp pts[k]."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=30)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = stream.time_base = time_base
        stream.codec_context.options = options
        for k, at in enumerate(pts):
            frame = av.VideoFrame.from_ndarray(np.dstack([barcode(k)] * 3), "rgb24")
            frame = frame.reformat(format="yuv420p")
            frame.pts, frame.time_base = at, time_base
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def camera(paths: list[Path], name: str = "gopro-1", **facts: Any) -> Recording:
    """Index video files by demuxing; chapters follow each other on one clock."""
    rows, times = [], []
    start = Fraction(0)
    for number, path in enumerate(paths):
        with av.open(str(path)) as opened:
            stream = opened.streams.video[0]
            base = stream.time_base
            assert base is not None
            packets = sorted((p for p in opened.demux(stream) if p.size), key=lambda p: p.pts or 0)
            size, codec = (stream.width, stream.height), stream.codec_context.name
        for p in packets:
            assert p.pts is not None
            rows.append((p.pts, number, max(p.pos or 0, 0), p.size, p.is_keyframe, 0, 0))
            times.append(round((start + p.pts * base) * SECOND))
        last = packets[-1]
        start += ((last.pts or 0) + (last.duration or 0)) * base
    track = VideoTrack(
        name="video",
        codec=codec,
        width=size[0],
        height=size[1],
        times_ns=np.array(times),
        index=np.array(rows, FRAME_DTYPE),
        storage="container",
        time_base=(base.numerator, base.denominator),
        stream_index=0,
    )
    files = tuple(file_ref(p) for p in paths)
    return Recording(name, "gopro", files, {"video": track}, **facts)


def sync_of(*recordings: Recording, **drifts: float) -> SyncResult:
    """Place recordings: the first is the reference, the others start a second later each."""
    first = recordings[0]
    clocks = {}
    for k, one in enumerate(recordings):
        anchor = one.first_ns or 0
        target = (first.first_ns or 0) + k * SECOND
        clock = ClockMap.affine(
            first.id,
            one.id,
            offset_ns=target - anchor,
            drift_ppm=drifts.get(one.id.replace("-", "_"), 0.0),
            anchor_ns=anchor,
            valid_ns=(anchor, one.last_ns or anchor),
            sigma_ns=1000.0,
        )
        method = "reference" if k == 0 else "sound"
        clocks[one.id] = RecordingClock(one.id, (clock,), method, 0.5, 0.99, basis="test")
    return SyncResult(first.id, clocks)
