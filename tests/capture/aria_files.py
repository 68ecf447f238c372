"""Small Aria recordings with chosen times, roles and faults, without anything to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from synorama.simulate.devices import aria_layouts as layouts
from synorama.simulate.formats.vrs_writer import Record, VrsStream, write_vrs

START_NS = 5_000_000_000_000
MIC_RATE_HZ, MIC_BLOCK = 48_000, 4096


@dataclass
class AriaFile:
    """What to write; every list of times may be made faulty before `write`.

    ``blocks`` are sample times per block of sound, ``muted`` its flag; ``mapping`` pairs of
    (device, other) time by mode; ``numbers`` the frame numbers of the colour pictures.
    """

    generation: int = 1
    frames_ns: list[int] = field(default_factory=lambda: steady(30, 30.0))
    numbers: list[int] | None = None
    imu_ns: list[int] = field(default_factory=lambda: steady(1000, 1000.0))
    blocks: list[list[int]] = field(default_factory=lambda: sound_blocks(10))
    muted: list[int] | None = None
    mapping: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    key_index: list[int] | None = None

    def write(self, path: Path, **how: Any) -> Path:
        made = list(self._streams())
        tags = {
            "device_serial": "1WM00000000S09",
            "device_type": "Aria" if self.generation == 1 else "Oatmeal",
            "calib_json": '{"CameraCalibrations": []}',
            "metadata": json.dumps(self.metadata),
            **self.tags,
        }
        streams = [stream for stream, _ in made]
        write_vrs(path, streams, tags, [iter(r) for _, r in made], file_id=1, **how)
        return path

    def _streams(self) -> Iterator[tuple[VrsStream, list[Record]]]:
        yield self._camera()
        yield self._imu()
        if self.blocks:
            yield self._mic()
        for k, (mode, pairs) in enumerate(self.mapping.items(), 1):
            yield self._mapping(k, mode, pairs)

    def _stream(self, kind: layouts.StreamKind, source: str, content: str = "") -> VrsStream:
        flavor = "device/aria" if self.generation == 1 else "device/oatmeal"
        return layouts.make_stream(
            kind, source, serial="00", flavor=flavor, content=content, tags={}
        )

    def _camera(self) -> tuple[VrsStream, list[Record]]:
        hevc = self.generation == 2
        kind = layouts.CAMERA_HEVC if hevc else layouts.CAMERA
        content = "+image/video/codec=H.265" if hevc else "+image/jpg"
        stream = self._stream(kind, "214-1", content)
        numbers = self.numbers or list(range(len(self.frames_ns)))
        keys = self.key_index or [0] * len(self.frames_ns)
        config = {"nominal_rate": 30.0, "image_width": 64, "image_height": 48}
        records = layouts.first_records(stream, config)
        for t, number, key in zip(self.frames_ns, numbers, keys, strict=True):
            more = {"image_key_frame_index": key} if hevc else {}
            told = kind.data.encode(
                frame_number=number,
                capture_timestamp_ns=t,
                exposure_duration_s=0.004,
                gain=2.0,
                **more,
            )
            records.append(layouts.data(stream, t, told, b"picture %d" % number))
        return stream, in_order(records)

    def _imu(self) -> tuple[VrsStream, list[Record]]:
        stream = self._stream(layouts.MOTION, "1202-1")
        records = layouts.first_records(stream, {"nominal_rate": 1000.0})
        columns = {
            "capture_timestamp_ns": self.imu_ns,
            "accelerometer_valid": True,
            "accelerometer": np.arange(3 * len(self.imu_ns)).reshape(-1, 3),
        }
        rows = layouts.MOTION.data.encode_many(len(self.imu_ns), columns)
        records += [layouts.data(stream, t, r) for t, r in zip(self.imu_ns, rows, strict=True)]
        return stream, in_order(records)

    def _mic(self) -> tuple[VrsStream, list[Record]]:
        form = f"+audio/pcm/int32le/channels=2/rate={MIC_RATE_HZ}"
        stream = self._stream(layouts.AUDIO, "231-1", form)
        config = {"audio_channel_count": 2, "audio_sample_rate": MIC_RATE_HZ}
        records = layouts.first_records(stream, config)
        muted = self.muted or [0] * len(self.blocks)
        for k, (times, flag) in enumerate(zip(self.blocks, muted, strict=True)):
            told = layouts.AUDIO.data.encode(audio_muted=flag, capture_timestamps_ns=times)
            pcm = np.full((len(times), 2), k, "<i4").tobytes()
            records.append(layouts.data(stream, times[0], told, pcm))
        return stream, in_order(records)

    def _mapping(
        self, instance: int, mode: str, pairs: Sequence[tuple[int, int]]
    ) -> tuple[VrsStream, list[Record]]:
        stream = self._stream(layouts.TIME_MAPPING, f"285-{instance}")
        records = layouts.first_records(stream, {"sample_rate_hz": 10.0, "mode": mode})
        for own, other in pairs:
            told = layouts.TIME_MAPPING.data.encode(
                monotonic_timestamp_ns=own, real_timestamp_ns=other
            )
            records.append(layouts.data(stream, own, told))
        return stream, in_order(records)


def in_order(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda r: r.time_s)


def steady(count: int, rate_hz: float) -> list[int]:
    """Return device times at a fixed rate."""
    return [START_NS + round(k * 1e9 / rate_hz) for k in range(count)]


def sound_blocks(count: int) -> list[list[int]]:
    """Return the sample times of blocks of steady sound."""
    times = steady(count * MIC_BLOCK, MIC_RATE_HZ)
    return [times[k * MIC_BLOCK : (k + 1) * MIC_BLOCK] for k in range(count)]
