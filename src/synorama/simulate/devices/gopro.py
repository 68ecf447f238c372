"""GoPro cameras: chapters cut from one recording, as the camera itself cuts them.

Pictures and sound are encoded once. Where a chapter ends, the next file takes the next packet:
no frame and no sample is lost, and the sound of a later chapter decodes whole only after what
came before. The clock of the recording is the time of its pictures, counted through all chapters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.formats import gpmf
from synorama.simulate.formats.mp4_boxes import add_user_data, box
from synorama.simulate.formats.pictures import Shots
from synorama.simulate.formats.video import Film, Filmed, Scene
from synorama.simulate.sound.acoustic_scene import Hears
from synorama.simulate.sound.plain import Hearing, columns
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GoPro", "write_gopro"]

FRAME_RATE = Fraction(30_000, 1001)
AUDIO_RATE_HZ = 48_000
AUDIO_CHANNELS = 2
AAC_SAMPLES = 1024
GOP = 15
FRAMES_A_PAYLOAD = 30  # their 1001 ms are a whole number of milliseconds and of sound samples
SAMPLES_A_PAYLOAD = 48_048
MOTION_RATE_HZ = 200
BATCH_BLOCKS = 47  # AAC blocks that are sampled at once, about a second
MOVIE_UNITS_A_SECOND = 240_000  # frames and samples are whole numbers of these: exact edit lists
VIDEO_UNITS_A_SECOND = 90_000
MODEL = "HERO12 Black"
FIRMWARE = "H23.01.02.32.00"
ACCELERATION_SCALE, ROTATION_SCALE = 418, 1878
GRAVITY_MSEC2 = (9.81, 0.0, 0.0)  # as the camera stands


@dataclass(frozen=True, slots=True)
class GoPro:
    """One camera of a session.

    Parameters
    ----------
    name
        Its name in the session; also what its random numbers hang on.
    serial
        Serial number.
    clock
        ``C_session_device``; device time 0 is its first frame and first sample of sound.
    seconds
        How long it records, on its own clock.
    chapters
        How many files it makes of this.
    number
        The recording's number in the file names.
    width, height
        Size of the pictures [px].
    start_epoch_s
        What its own wall clock shows at the start.
    barcode
        Camera number in its barcodes; None: no barcodes.
    hearing
        How it hears.
    seed
        Of the session.
    """

    name: str
    serial: str
    clock: ClockMap
    seconds: float
    chapters: int
    number: int
    width: int
    height: int
    start_epoch_s: float
    barcode: int | None
    hearing: Hearing
    seed: int

    @property
    def frames(self) -> int:
        """How many frames it records."""
        return int(self.seconds * FRAME_RATE)

    @property
    def cuts(self) -> list[int]:
        """The frames with which chapters begin; a short recording has fewer than asked for."""
        payloads = self.frames // FRAMES_A_PAYLOAD
        chapters = max(1, min(self.chapters, payloads))
        return [k * payloads // chapters * FRAMES_A_PAYLOAD for k in range(chapters)]

    def random(self, part: str) -> np.random.Generator:
        """Return the random numbers of one part of this camera."""
        return randomness(self.seed, self.name, part)

    def file_name(self, chapter: int) -> str:
        """Return the name that the camera gives to a chapter, counted from 0."""
        return f"GX{chapter + 1:02d}{self.number:04d}.MP4"


class _Packet(NamedTuple):
    """A packet to be stored: ``pts`` counts frames, samples or milliseconds of the recording."""

    kind: str
    data: bytes
    pts: int
    duration: int
    key: bool


def write_gopro(
    folder: Path, camera: GoPro, sound: Hears, shots: Shots | None = None
) -> tuple[tuple[Path, ...], dict[str, TrackTruth]]:
    """Write the chapters of a recording; return their paths and what is true of the tracks.

    Parameters
    ----------
    folder
        Where to.
    camera, sound
        Who records what.
    shots
        What it sees; something that moves across a texture by default.
    """
    with _Encoders(camera) as encoders:
        paths = tuple(folder / camera.file_name(k) for k in range(len(camera.cuts)))
        chapters = [_Chapter(p, k, camera, encoders) for k, p in enumerate(paths)]
        starts = np.array(camera.cuts)
        for packet in _interleaved(camera, sound, _film(camera, shots), encoders):
            at = _frame_of(packet)
            chapters[max(int(np.searchsorted(starts, at, side="right")) - 1, 0)].add(packet)
        for chapter in chapters:
            chapter.close()
    return paths, _truth(camera)


def _frame_of(packet: _Packet) -> int:
    """Return the frame that is shown when a packet begins."""
    if packet.kind == "video":
        return packet.pts
    if packet.kind == "audio":
        return packet.pts * FRAMES_A_PAYLOAD // SAMPLES_A_PAYLOAD
    return packet.pts * FRAMES_A_PAYLOAD // 1001


def _truth(camera: GoPro) -> dict[str, TrackTruth]:
    frames = np.array([round(k / FRAME_RATE * NS_PER_S) for k in range(camera.frames)], np.int64)
    samples = _audio_blocks(camera) * AAC_SAMPLES
    last_sample = round(Fraction(samples - 1, AUDIO_RATE_HZ) * NS_PER_S)
    motion = _motion_samples(camera.frames)
    last_motion = (motion - 1) * NS_PER_S // MOTION_RATE_HZ
    return {
        "video": TrackTruth.of(frames, source="GoPro AVC", barcode=camera.barcode),
        "audio": TrackTruth(samples, 0, last_sample, "GoPro AAC"),
        "accl": TrackTruth(motion, 0, last_motion, "ACCL"),
        "gyro": TrackTruth(motion, 0, last_motion, "GYRO"),
    }


def _audio_blocks(camera: GoPro) -> int:
    return int(camera.frames / FRAME_RATE * AUDIO_RATE_HZ) // AAC_SAMPLES


# --- encoding --------------------------------------------------------------------------------


class _Encoders:
    """One encoder for the pictures and one for the sound of the whole recording."""

    def __init__(self, camera: GoPro) -> None:
        import av

        self._owner = av.open(BytesIO(), "w", format="mp4")  # streams need one; nothing is muxed
        self.video = self._owner.add_stream("libx264", rate=FRAME_RATE)
        self.video.width, self.video.height = camera.width, camera.height
        self.video.pix_fmt = "yuv420p"
        self.video.codec_context.time_base = 1 / FRAME_RATE
        self.video.options = {
            "preset": "ultrafast",
            "tune": "zerolatency",
            "threads": "1",
            "x264-params": f"keyint={GOP}:min-keyint={GOP}:scenecut=0:bframes=0:sliced-threads=0",
        }
        self.audio = self._owner.add_stream("aac", rate=AUDIO_RATE_HZ)
        self.audio.layout = "stereo"
        self.audio.bit_rate = 189_000
        self._owner.start_encoding()

    def __enter__(self) -> _Encoders:
        return self

    def __exit__(self, *_: object) -> None:
        self._owner.close()


def _interleaved(camera: GoPro, sound: Hears, film: Film, encoders: _Encoders) -> Iterator[_Packet]:
    """Yield all packets, second by second: telemetry, pictures, sound."""
    pictures = _video_packets(camera, film, encoders.video)
    heard = _audio_packets(camera, sound, encoders.audio)
    for payload in _payloads(camera):
        yield payload
        last = _frame_of(payload) + FRAMES_A_PAYLOAD - 1
        yield from _until(pictures, last)
        yield from _until(heard, last)
    yield from pictures
    yield from heard


def _until(packets: Iterator[_Packet], frame: int) -> Iterator[_Packet]:
    """Yield packets to the first that begins with this frame or later."""
    for packet in packets:
        yield packet
        if _frame_of(packet) >= frame:
            return


def _film(camera: GoPro, shots: Shots | None) -> Film:
    if shots is not None:
        return Filmed(shots, camera.barcode)
    return Scene(camera.random("scene"), camera.height, camera.width, camera.barcode or 0)


def _video_packets(camera: GoPro, film: Film, encoder: Any) -> Iterator[_Packet]:
    for frame in range(camera.frames):
        yield from _stored("video", encoder.encode(film.frame(frame, 1 / FRAME_RATE, frame)), 1)
    yield from _stored("video", encoder.encode(None), 1)


def _audio_packets(camera: GoPro, sound: Hears, encoder: Any) -> Iterator[_Packet]:
    import av

    blocks = _audio_blocks(camera)
    rng = camera.random("microphones")
    for first in range(0, blocks, BATCH_BLOCKS):
        count = min(BATCH_BLOCKS, blocks - first) * AAC_SAMPLES
        samples = _heard(camera, sound, rng, first * AAC_SAMPLES, count)
        frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="stereo")
        frame.sample_rate, frame.time_base = AUDIO_RATE_HZ, Fraction(1, AUDIO_RATE_HZ)
        frame.pts = first * AAC_SAMPLES
        yield from _stored("audio", encoder.encode(frame), AAC_SAMPLES)
    yield from _stored("audio", encoder.encode(None), AAC_SAMPLES)


def _heard(
    camera: GoPro, sound: Hears, rng: np.random.Generator, start: int, count: int
) -> NDArray[np.float32]:
    heard = columns(sound.heard(camera.clock, AUDIO_RATE_HZ, 0, start, count)).T
    noise = rng.standard_normal((AUDIO_CHANNELS, count), np.float32)
    level = np.float32(camera.hearing.gain) * heard + np.float32(camera.hearing.noise_rms) * noise
    return np.ascontiguousarray(level.clip(-1.0, 1.0), np.float32)


def _stored(kind: str, packets: Any, duration: int) -> Iterator[_Packet]:
    for packet in packets:
        yield _Packet(kind, bytes(packet), packet.pts, duration, packet.is_keyframe)


# --- telemetry -------------------------------------------------------------------------------


def _payloads(camera: GoPro) -> Iterator[_Packet]:
    """Yield what the camera measured while 30 frames were taken, again and again."""
    rng = camera.random("motion")
    for first in range(0, camera.frames, FRAMES_A_PAYLOAD):
        stop = min(first + FRAMES_A_PAYLOAD, camera.frames)
        begin_ms = first * 1001 // FRAMES_A_PAYLOAD
        lasts_ms = round((stop - first) * 1000 / FRAME_RATE)
        streams = [*_motion_streams(rng, first, stop), _shutter_stream(first, stop)]
        data = gpmf.device(1, MODEL, *streams)
        yield _Packet("data", data, begin_ms, lasts_ms, True)


def _motion_samples(frames: int) -> int:
    """Return how many samples are taken before the moment at which this many frames are over."""
    return ceil(frames / FRAME_RATE * MOTION_RATE_HZ)


def _motion_streams(rng: np.random.Generator, first: int, stop: int) -> Iterator[bytes]:
    """Yield acceleration and rotation of a camera on its stand that now and then is touched."""
    begin, end = _motion_samples(first), _motion_samples(stop)
    t = np.arange(begin, end)[:, np.newaxis] / MOTION_RATE_HZ
    acceleration = np.array(GRAVITY_MSEC2) + rng.normal(0, 0.03, (end - begin, 3))
    rotation = 0.01 * np.sin(t * [0.7, 0.4, 1.1]) + rng.normal(0, 0.002, (end - begin, 3))
    for key, name, unit, scale, values in (
        ("ACCL", "Accelerometer", "m/s²", ACCELERATION_SCALE, acceleration),
        ("GYRO", "Gyroscope", "rad/s", ROTATION_SCALE, rotation),
    ):
        yield gpmf.stream(
            gpmf.numbers("STMP", "J", [begin * 1_000_000 // MOTION_RATE_HZ]),
            gpmf.integer("TSMP", end),
            gpmf.text("STNM", name),
            gpmf.text("ORIN", "ZXY"),
            gpmf.text("SIUN", unit),
            gpmf.integer("SCAL", scale, "s"),
            gpmf.numbers(key, "s", np.rint(values * scale)),
        )


def _shutter_stream(first: int, stop: int) -> bytes:
    return gpmf.stream(
        gpmf.integer("TSMP", stop),
        gpmf.text("STNM", "Exposure time (shutter speed)"),
        gpmf.text("SIUN", "s"),
        gpmf.numbers("SHUT", "f", np.full(stop - first, 1 / 240)),
    )


# --- files -----------------------------------------------------------------------------------


class _Chapter:
    """One file of the recording, open for packets."""

    def __init__(self, path: Path, chapter: int, camera: GoPro, encoders: _Encoders) -> None:
        import av

        self._path, self._chapter, self._camera = path, chapter, camera
        self._first_frame = camera.cuts[chapter]
        options = {
            "fflags": "+bitexact",
            "brand": "mp41",
            "movie_timescale": str(MOVIE_UNITS_A_SECOND),
            "video_track_timescale": str(VIDEO_UNITS_A_SECOND),
        }
        self._out = av.open(str(path), "w", format="mp4", options=options)
        self._streams: dict[str, Any] = {
            "video": self._out.add_stream_from_template(encoders.video),
            "audio": self._out.add_stream_from_template(encoders.audio),
            "data": self._out.add_data_stream("bin_data"),
        }
        self._describe()

    def _describe(self) -> None:
        created = np.datetime64(int(self._camera.start_epoch_s), "s")
        self._out.metadata["creation_time"] = f"{created}Z"
        names = {"video": "GoPro AVC", "audio": "GoPro AAC", "data": "GoPro MET"}
        for kind, name in names.items():
            self._streams[kind].metadata["handler_name"] = name
        self._streams["video"].metadata["timecode"] = self._timecode()
        self._streams["data"].codec_tag = "gpmd"
        self._streams["data"].time_base = Fraction(1, 1000)

    def _timecode(self) -> str:
        """Return the time of day, counted in frames of which 30 are called a second."""
        of_day = Fraction(self._camera.start_epoch_s) % 86_400
        frames = int(of_day * FRAME_RATE) + self._first_frame
        seconds, rest = divmod(frames, 30)
        minutes, second = divmod(seconds, 60)
        return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}:{second:02d}:{rest:02d}"

    def add(self, packet: _Packet) -> None:
        """Store a packet of the recording."""
        import av

        before, unit = {
            "video": (self._first_frame, 1 / FRAME_RATE),
            "audio": (
                self._first_frame * SAMPLES_A_PAYLOAD // FRAMES_A_PAYLOAD,
                Fraction(1, AUDIO_RATE_HZ),
            ),
            "data": (self._first_frame * 1001 // FRAMES_A_PAYLOAD, Fraction(1, 1000)),
        }[packet.kind]
        stored = av.Packet(packet.data)
        stored.stream, stored.time_base = self._streams[packet.kind], unit
        stored.pts = stored.dts = packet.pts - before
        stored.duration, stored.is_keyframe = packet.duration, packet.key
        self._out.mux(stored)

    def close(self) -> None:
        """Finish the file as the camera does."""
        self._out.close()
        add_user_data(self._path, _user_data(self._camera), b"GoPro TCD")


def _user_data(camera: GoPro) -> bytes:
    """Return what the camera says of itself and of the recording; the same in all chapters."""
    came = camera.random("camera id").bytes(16)
    media = camera.random("media id").bytes(16)
    settings = gpmf.device(
        1,
        "Video Global Settings",
        gpmf.text("CASN", camera.serial),
        gpmf.text("MINF", MODEL),
        gpmf.numbers("MUID", "L", np.frombuffer(media + bytes(16), ">u4")),
        gpmf.text("FMWR", FIRMWARE),
        gpmf.text("OREN", "U"),
    )
    return b"".join(
        (
            box(b"FIRM", FIRMWARE.encode()),
            box(b"CAME", came),
            box(b"MUID", media + bytes(16)),
            box(b"GUMI", media),
            box(b"GPMF", settings),
        )
    )
