"""A webcam recorded by a browser: WebM with VP8 and Opus, no duration, times of whole milliseconds.

Frames come when they come: about 30 a second, fewer while the light is low, some lost. Like a
browser's, the file declares no Opus pre-skip: its sound starts with what the encoder's look-ahead
puts before the first sample. Every packet of sound begins at a whole millisecond, so that rounding
takes nothing from its times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synorama.simulate.clocks import randomness, sample_times_ns
from synorama.simulate.formats.pictures import Shots
from synorama.simulate.formats.video import Film, Filmed, Scene
from synorama.simulate.sound.acoustic_scene import Hears
from synorama.simulate.sound.plain import Hearing, columns
from synorama.simulate.truth import TrackTruth
from synorama.timebase import ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["Webcam", "write_webcam"]

MILLISECOND = Fraction(1, 1000)
NS_PER_MS = 1_000_000
AUDIO_RATE_HZ = 48_000
OPUS_SAMPLES = 960
LOOK_AHEAD = 312  # samples that libopus puts before the first one of its input
FIRST_SOUND_MS = 7  # the least whole time that holds the look-ahead which the muxer accounts for
GOP = 60
BRIGHT_S, DIM_S = 1 / 30, 1 / 15  # between frames
DIM_SHARE, LOST_SHARE, JITTER_S = 0.15, 0.02, 0.003
LIGHT_LASTS = 45  # frames until the light may change
OPUS_HEAD = b"OpusHead"
PRE_SKIP = slice(10, 12)
CODEC_DELAY = b"\x56\xaa\x83"  # EBML id and size of a value of three bytes


@dataclass(frozen=True, slots=True)
class Webcam:
    """One webcam of a session.

    Parameters
    ----------
    name
        Its name in the session; also what its random numbers hang on.
    clock
        ``C_session_device``; device time 0 is the container's.
    seconds
        How long it records, on its own clock.
    width, height
        Size of the pictures [px].
    barcode
        Camera number in its barcodes; None: no barcodes.
    hearing
        How it hears.
    seed
        Of the session.
    """

    name: str
    clock: ClockMap
    seconds: float
    width: int
    height: int
    barcode: int | None
    hearing: Hearing
    seed: int

    def random(self, part: str) -> np.random.Generator:
        """Return the random numbers of one part of this webcam."""
        return randomness(self.seed, self.name, part)


class _Packet(NamedTuple):
    """A packet in the order of the file: ``pts`` counts milliseconds, or samples of sound."""

    time_ms: float
    kind: str
    pts: int
    data: bytes
    key: bool


def write_webcam(
    path: Path, camera: Webcam, sound: Hears, shots: Shots | None = None
) -> dict[str, TrackTruth]:
    """Write a webcam's recording; return what is true of its tracks.

    Parameters
    ----------
    path
        The file.
    camera, sound
        Who records what.
    shots
        What it sees; something that moves across a texture by default.
    """
    import av

    times = _frame_times_ms(camera)
    blocks = int(camera.seconds * AUDIO_RATE_HZ) // OPUS_SAMPLES
    owner = av.open(BytesIO(), "w", format="webm")  # encoders need one; nothing is muxed into it
    options = {"fflags": "+bitexact", "live": "1"}
    with owner, av.open(str(path), "w", format="webm", options=options) as out:
        encoders = {"video": _video_encoder(owner, camera), "audio": _audio_encoder(owner)}
        owner.start_encoding()
        streams = {kind: out.add_stream_from_template(e) for kind, e in encoders.items()}
        _forget_pre_skip(streams["audio"])
        pictures = _video_packets(_film(camera, shots), times, encoders["video"])
        heard = _audio_packets(camera, sound, blocks, encoders["audio"])
        for packet in merge(pictures, heard):
            _mux(out, streams[packet.kind], packet)
    _forget_codec_delay(path)
    return _truth(camera, times, blocks)


def _truth(camera: Webcam, times_ms: Int64, blocks: int) -> dict[str, TrackTruth]:
    samples = (blocks + 1) * OPUS_SAMPLES  # the look-ahead fills part of one block more
    first_ns = FIRST_SOUND_MS * NS_PER_MS
    last_ns = int(sample_times_ns(first_ns, AUDIO_RATE_HZ, samples - 1, 1)[0])
    return {
        "video": TrackTruth.of(times_ms * NS_PER_MS, source="VP8", barcode=camera.barcode),
        "audio": TrackTruth(samples, first_ns, last_ns, source="Opus"),
    }


def _frame_times_ms(camera: Webcam) -> Int64:
    """Return when frames are shown: bright or dim, never quite on time, a few lost."""
    rng = camera.random("frames")
    most = int(camera.seconds / BRIGHT_S) + 1
    dim = np.repeat(rng.random(most // LIGHT_LASTS + 1) < DIM_SHARE, LIGHT_LASTS)[:most]
    ideal = np.concatenate([[0.0], np.cumsum(np.where(dim, DIM_S, BRIGHT_S))[:-1]])
    late = np.concatenate([[0.0], rng.uniform(0, JITTER_S, most - 1)])
    kept = (rng.random(most) >= LOST_SHARE) & (ideal < camera.seconds)
    kept[0] = True
    times: Int64 = np.rint((ideal + late)[kept] * 1000).astype(np.int64)
    return times


# --- encoding --------------------------------------------------------------------------------


def _video_encoder(owner: Any, camera: Webcam) -> Any:
    stream = owner.add_stream("libvpx", rate=30)
    stream.width, stream.height, stream.pix_fmt = camera.width, camera.height, "yuv420p"
    stream.bit_rate = 250_000 + camera.width * camera.height * 2
    stream.codec_context.time_base = MILLISECOND
    stream.options = {
        "deadline": "realtime",
        "cpu-used": "-8",  # negative: as fast as that, whatever the machine has time for
        "threads": "1",
        "g": str(GOP),
        "auto-alt-ref": "0",
        "lag-in-frames": "0",
    }
    return stream


def _audio_encoder(owner: Any) -> Any:
    stream = owner.add_stream("libopus", rate=AUDIO_RATE_HZ)
    stream.layout = "mono"
    stream.bit_rate = 96_000
    return stream


def _film(camera: Webcam, shots: Shots | None) -> Film:
    if shots is not None:
        return Filmed(shots, camera.barcode)
    return Scene(camera.random("scene"), camera.height, camera.width, camera.barcode or 0)


def _video_packets(film: Film, times_ms: Int64, encoder: Any) -> Iterator[_Packet]:
    for number, t_ms in enumerate(times_ms.tolist()):
        for packet in encoder.encode(film.frame(number, MILLISECOND, t_ms)):
            yield _Packet(packet.pts, "video", packet.pts, bytes(packet), packet.is_keyframe)
    for packet in encoder.encode(None):
        yield _Packet(packet.pts, "video", packet.pts, bytes(packet), packet.is_keyframe)


def _audio_packets(camera: Webcam, sound: Hears, blocks: int, encoder: Any) -> Iterator[_Packet]:
    import av

    rng = camera.random("microphone")
    index = 0
    for block in range(blocks + 1):
        frame = None
        if block < blocks:
            samples = _heard(camera, sound, rng, block * OPUS_SAMPLES)
            frame = av.AudioFrame.from_ndarray(samples, format="flt", layout="mono")
            frame.sample_rate, frame.time_base = AUDIO_RATE_HZ, Fraction(1, AUDIO_RATE_HZ)
            frame.pts = block * OPUS_SAMPLES
        for packet in encoder.encode(frame):
            pts = index * OPUS_SAMPLES
            yield _Packet(pts * 1000 / AUDIO_RATE_HZ, "audio", pts, bytes(packet), True)
            index += 1


def _heard(
    camera: Webcam, sound: Hears, rng: np.random.Generator, start: int
) -> NDArray[np.float32]:
    """Return a block of sound such that it decodes at its true time."""
    heard = sound.heard(
        camera.clock, AUDIO_RATE_HZ, FIRST_SOUND_MS * NS_PER_MS, start + LOOK_AHEAD, OPUS_SAMPLES
    )
    noise = rng.standard_normal(OPUS_SAMPLES, np.float32)
    level = (
        np.float32(camera.hearing.gain) * columns(heard)[:, 0]
        + np.float32(camera.hearing.noise_rms) * noise
    )
    return np.ascontiguousarray(level.clip(-1.0, 1.0)[np.newaxis], np.float32)


# --- the file --------------------------------------------------------------------------------


def _mux(out: Any, stream: Any, packet: _Packet) -> None:
    import av

    stored = av.Packet(packet.data)
    stored.stream, stored.is_keyframe = stream, packet.key
    stored.time_base = MILLISECOND if packet.kind == "video" else Fraction(1, AUDIO_RATE_HZ)
    stored.pts = stored.dts = packet.pts
    if packet.kind == "audio":
        stored.duration = OPUS_SAMPLES
    out.mux(stored)


def _forget_pre_skip(stream: Any) -> None:
    head = bytearray(stream.codec_context.extradata)
    if not head.startswith(OPUS_HEAD):
        raise ValueError("the Opus encoder gave no header")
    head[PRE_SKIP] = bytes(2)
    stream.codec_context.extradata = bytes(head)


def _forget_codec_delay(path: Path) -> None:
    """Set the delay to zero that the muxer declares; it stands in the first few hundred bytes."""
    with path.open("r+b") as file:
        at = file.read(4096).index(CODEC_DELAY) + len(CODEC_DELAY)
        file.seek(at)
        file.write(bytes(3))
