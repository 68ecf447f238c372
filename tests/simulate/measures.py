"""A written lab session against its truth: what independent readers find in its files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from projectaria_tools.core import data_provider
from projectaria_tools.core.stream_id import StreamId
from scipy.interpolate import CubicSpline, make_interp_spline

from synorama.simulate.lab import Asked, plan_lab
from synorama.simulate.scene import cameras as lenses
from synorama.simulate.scene.cameras import Camera
from synorama.simulate.stage import RoomStage
from synorama.timebase import NS_PER_S, ClockMap

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Picture = NDArray[np.uint8]
RATE_HZ = 48_000
FINE = 32  # a cross-correlation is looked at on a grid so much finer
BAND_HZ = (400.0, 7_000.0)
NEAR_MS = 0.4  # where a peak is looked for: the first reflections come later


@dataclass(frozen=True)
class Written:
    """A simulated room session on disk."""

    folder: Path

    @cached_property
    def truth(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / "truth.json").read_text())
        return told

    @cached_property
    def tables(self) -> dict[str, NDArray[Any]]:
        with np.load(self.folder / "truth.npz") as tables:
            return dict(tables)

    @cached_property
    def stage(self) -> RoomStage:
        """The room again, to be looked at and listened to on other ways than the writers'."""
        told = self.truth
        asked = Asked(told["seed"], told["seconds"], told["size"], told["room"]["kind"])
        return RoomStage(plan_lab(asked), told["seed"])

    def recording(self, name: str) -> dict[str, Any]:
        return next(r for r in self.truth["recordings"] if r["name"] == name)

    def clock(self, name: str) -> ClockMap:
        return ClockMap("session", name, np.array(self.recording(name)["clock"], np.int64))

    def provider(self, name: str) -> Any:
        return data_provider.create_vrs_data_provider(
            str(self.folder / self.recording(name)["files"][0])
        )


# --- sound -----------------------------------------------------------------------------------


def heard(written: Written, name: str) -> tuple[Int64, NDArray[np.float32]]:
    """Device times and samples ``(N, M)`` of what a recording heard."""
    told = written.recording(name)
    if told["device"] == "aria-gen1":
        provider, mic = written.provider(name), StreamId("231-1")
        blocks = [
            provider.get_audio_data_by_index(mic, k) for k in range(provider.get_num_data(mic))
        ]
        times = np.concatenate([b[1].capture_timestamps_ns for b in blocks]).astype(np.int64)
        samples = np.concatenate([np.array(b[0].data).reshape(-1, 7) for b in blocks])
        return times, (samples / 2**31).astype(np.float32)
    decoded = _decoded_sound([written.folder / f for f in told["files"]])
    first_ns = told["tracks"]["audio"]["first_ns"]
    return first_ns + np.arange(len(decoded)) * NS_PER_S // RATE_HZ, decoded


def _decoded_sound(paths: list[Path]) -> NDArray[np.float32]:
    """Decode files through the one decoder of the first, as chapters are made to be."""
    containers = [av.open(str(path)) for path in paths]
    decoder: Any = containers[0].streams.audio[0].codec_context
    frames = [
        frame.to_ndarray()
        for container in containers
        for packet in container.demux(container.streams.audio[0])
        if packet.size
        for frame in decoder.decode(packet)
    ]
    frames += [frame.to_ndarray() for frame in decoder.decode(None)]
    return np.asarray(np.concatenate(frames, axis=1).T, np.float32)


def arrival_off_us(written: Written, name: str, speaker: str) -> tuple[float, float]:
    """How far the written sound of a speaker is from where geometry puts it, and the peak's height.

    What the first microphone heard is compared with what left the mouth, carried there by the
    true geometry alone, so that all that is left at lag 0 is the direct sound.
    """
    times, samples = heard(written, name)
    made = _made(written, name, speaker, times)
    return _lag_us(samples[:, 0].astype(np.float64), made)


def _made(written: Written, name: str, speaker: str, device_ns: Int64) -> Float64:
    """What left the mouth, at the device times at which it arrived."""
    told = written.truth
    emitted, arrived = geometric_arrivals(written, name, speaker)
    to_device = written.clock(name).inverse()
    back = CubicSpline(to_device(arrived) - device_ns[0], emitted - told["start_ns"])
    inside = (device_ns >= to_device(arrived[0])) & (device_ns <= to_device(arrived[-1]))
    grid = back(device_ns[inside] - device_ns[0]) * (RATE_HZ / NS_PER_S)
    first, count = int(grid[0]) - 20, int(np.ptp(grid)) + 60
    dry = written.stage.dialogue.dry(speaker).samples(first, count)
    assert dry is not None
    out = np.zeros(len(device_ns))
    out[inside] = make_interp_spline(np.arange(count), dry, k=5)(grid - first)
    return out


def geometric_arrivals(written: Written, name: str, speaker: str) -> tuple[Int64, Int64]:
    """Session times at which sound left a mouth and reached a first microphone.

    From the truth's own poses: mouth and microphone are points fixed to heads and cameras.
    """
    told, tables = written.truth, written.tables
    mouth = _on_head(tables, speaker, (0.0, -0.075, 0.012))
    emitted = np.arange(told["start_ns"], told["end_ns"], NS_PER_S // 100)
    start = mouth(emitted)
    if written.recording(name)["device"] == "aria-gen1":
        ear = _on_head(tables, name, (-0.0459, -0.0279, 0.0067))
    else:
        ((_, camera),) = written.recording(name)["cameras"]["video"].items()
        pose = np.array(camera["T_world_camera"])
        aside = 0.0 if written.recording(name)["device"] == "webcam" else -0.03
        place = pose[:3, 3] + aside * pose[:3, 0]
        ear = lambda t_ns: np.tile(place, (len(t_ns), 1))  # noqa: E731
    arrived = emitted
    for _ in range(6):
        travel_s = np.linalg.norm(ear(arrived) - start, axis=1) / 343.0
        arrived = emitted + np.rint(travel_s * NS_PER_S).astype(np.int64)
    return emitted, arrived


def _on_head(tables: dict[str, NDArray[Any]], name: str, point: tuple[float, float, float]) -> Any:
    t_ns, pose = tables[f"wearers/{name}/t_session_ns"], tables[f"wearers/{name}/T_world_cpf"]
    spline = CubicSpline((t_ns - t_ns[0]) / NS_PER_S, pose[:, :3, :3] @ point + pose[:, :3, 3])
    return lambda at_ns: spline((at_ns - t_ns[0]) / NS_PER_S)


def _lag_us(there: Float64, made: Float64) -> tuple[float, float]:
    """By how much sound comes later than it was made [us], from the phase alone, and the peak."""
    n = 1 << (2 * len(made) - 1).bit_length()
    cross = np.fft.rfft(there, n) * np.fft.rfft(made, n).conj()
    hz = np.fft.rfftfreq(n, 1 / RATE_HZ)
    power = np.abs(np.fft.rfft(made, n)) ** 2
    voiced = power > 1e-3 * np.percentile(power[(hz > BAND_HZ[0]) & (hz < BAND_HZ[1])], 90)
    keep = (hz > BAND_HZ[0]) & (hz < BAND_HZ[1]) & voiced
    phase = np.where(keep, cross / np.maximum(np.abs(cross), 1e-12), 0.0)
    reach = round(NEAR_MS * FINE * RATE_HZ / 1000)
    lags = np.arange(-reach, reach + 1) / (FINE * RATE_HZ)
    used = np.flatnonzero(keep)
    curve = np.zeros(len(lags))
    for part in np.array_split(used, max(1, len(used) // 4000)):
        curve += np.cos(2 * np.pi * np.outer(lags, hz[part]) + np.angle(phase[part])).sum(axis=1)
    best = int(np.argmax(curve))
    return 1e6 * float(lags[best]), float(curve[best] / len(used))


# --- pictures --------------------------------------------------------------------------------


def camera_of(written: Written, name: str, track: str, label: str) -> Camera:
    """A camera from what truth.json says alone."""
    told = written.recording(name)["cameras"][track][label]
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in told["parameters"].items()}
    lens = getattr(lenses, told["model"])(**values)
    return Camera(label, lens, told["width"], told["height"], readout_s=told["readout_s"])


def pose_at(written: Written, name: str, track: str, label: str) -> Any:
    """Session times to ``T_world_camera``, by the truth's poses."""
    told = written.recording(name)["cameras"][track][label]
    if "T_world_camera" in told:
        still = np.array(told["T_world_camera"])
        return lambda t_ns: np.broadcast_to(still, (len(t_ns), 4, 4))
    device = written.stage.wearers[name].device
    mount = device.attached(np.array(told["T_device_camera"]))
    return mount.pose


def picture(written: Written, name: str, track: str, index: int) -> Picture:
    """A picture as its file holds it, decoded by the vendor's reader or by FFmpeg."""
    told = written.recording(name)
    if told["device"] == "aria-gen1":
        source = StreamId(told["tracks"][track]["source"])
        image, _ = written.provider(name).get_image_data_by_index(source, index)
        return np.asarray(image.to_numpy_array(), np.uint8)
    before = 0
    for file in told["files"]:
        with av.open(str(written.folder / file)) as container:
            for frame in container.decode(video=0):
                if before == index:
                    return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
                before += 1
    raise IndexError(index)
