"""Makes GoPro files whose truth is known: real ``tmcd`` and ``gpmd`` tracks, user data, chapters.

One movie is encoded once (`encode`); `write` stores any span of its frames and sound packets as a
file, so that chapters can be compared with the unsplit original packet by packet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np

FPS = Fraction(30000, 1001)
RATE = 48_000
AAC = 1024
GOP = 10
CAMERA = bytes(range(16))
OTHER_CAMERA = bytes(range(100, 116))


# --- GPMF ------------------------------------------------------------------------------------


def klv(key: str, kind: str, size: int, raw: bytes) -> bytes:
    """One item; the repeat follows from the length."""
    repeat = len(raw) // size
    return (
        struct.pack(">4scBH", key.encode(), kind.encode(), size, repeat)
        + raw
        + bytes(-len(raw) % 4)
    )


def nest(key: str, *items: bytes) -> bytes:
    raw = b"".join(items)
    return struct.pack(">4sBBH", key.encode(), 0, 4, len(raw) // 4) + raw


def stream(*items: bytes) -> bytes:
    """A device with one stream."""
    return nest("DEVC", klv("DVNM", "c", 1, b"Test"), nest("STRM", *items))


def integer(key: str, value: int) -> bytes:
    return klv(key, "L", 4, struct.pack(">I", value))


def text(key: str, value: str) -> bytes:
    raw = value.encode("latin1")
    return klv(key, "c", len(raw), raw)


@dataclass(frozen=True)
class Gps:
    """What the GPS stream says: fix, dilution (x100), time of the first payload; None: garbage."""

    fix: int = 3
    dilution: int = 150
    utc: str = "240501120000.000"
    nine: bool = False


@dataclass(frozen=True)
class Telemetry:
    """What goes into the payloads. ``accl_hz`` samples a second; values count up from 0."""

    accl_hz: int = 200
    gps: Gps | None = None
    orientation: str = "ZXY"


def payload(index: int, frames: range, told: Telemetry) -> bytes:
    """Payload of the second ``index`` of the recording, over the frames shown in it."""
    first, n = index * told.accl_hz, told.accl_hz
    counter = (np.arange(first, first + n) % 30_000).astype(">i2")
    accl = np.column_stack([counter, counter + 1, counter + 2]).astype(">i2").tobytes()
    shutter = np.array([1 / (100 + f) for f in frames], ">f4").tobytes()
    streams = [
        nest("STRM", integer("TSMP", first + n), text("STNM", "Accelerometer"),
             text("ORIN", told.orientation), text("SIUN", "m/s²"),
             klv("SCAL", "s", 2, struct.pack(">h", 100)), klv("ACCL", "s", 6, accl)),
        nest("STRM", integer("TSMP", frames.stop), text("SIUN", "s"), klv("SHUT", "f", 4, shutter)),
    ]  # fmt: skip
    if told.gps is not None:
        streams.append(_gps(index, told.gps))
    return nest("DEVC", integer("DVID", 1), text("DVNM", "HERO Test"), *streams)


def _gps(index: int, gps: Gps) -> bytes:
    if gps.nine:
        rows = b"".join(
            struct.pack(">7i2H", 10, 20, 30, 0, 0, 8887, 43_200_000 + 1000 * index + 100 * i,
                        gps.dilution, gps.fix)
            for i in range(10)
        )  # fmt: skip
        return nest("STRM", integer("TSMP", 10 * (index + 1)), klv("TYPE", "c", 1, b"lllllllSS"),
                    klv("SCAL", "l", 4, struct.pack(">9i", 1, 1, 1, 1, 1, 1, 1000, 100, 1)),
                    klv("GPS9", "?", 32, rows))  # fmt: skip
    at = _later(gps.utc, index)
    row = struct.pack(">5i", 471234567, 81234567, 400_000, 0, 0)
    return nest("STRM", integer("TSMP", 18 * (index + 1)), integer("GPSF", gps.fix),
                klv("GPSU", "U", 16, at.encode()),
                klv("GPSP", "S", 2, struct.pack(">H", gps.dilution)),
                klv("SCAL", "l", 4, struct.pack(">5i", 10**7, 10**7, 1000, 1000, 100)),
                klv("GPS5", "l", 20, row * 18))  # fmt: skip


def _later(utc: str, payloads: int) -> str:
    """What the camera writes some payloads later; garbage stays as it is."""
    try:
        at = datetime.strptime(utc, "%y%m%d%H%M%S.%f") + payloads * timedelta(milliseconds=1001)
    except ValueError:
        return utc
    return at.strftime("%y%m%d%H%M%S.%f")[:16]


# --- one encode ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packet:
    data: bytes
    pts: int
    dts: int
    key: bool


@dataclass(frozen=True)
class Master:
    """Packets of a movie: pictures in frames, sound in samples (the first at -1024: priming)."""

    video: tuple[Packet, ...]
    audio: tuple[Packet, ...]
    container: bytes  # a movie whose streams are the templates of those written


@lru_cache
def encode(frames: int = 120, width: int = 64, *, b_frames: bool = False, seed: int = 1) -> Master:
    """Encode moving pictures and noise once."""
    buffer = BytesIO()
    with av.open(buffer, "w", format="mov") as out:
        video, audio = out.add_stream("libx264", rate=FPS), out.add_stream("aac", rate=RATE)
        video.width, video.height, video.pix_fmt = width, width, "yuv420p"
        gop = f"keyint={GOP}:min-keyint={GOP}:scenecut=0:open-gop=0:bframes={2 * b_frames}"
        video.options = {"preset": "ultrafast", "x264-params": f"{gop}:threads=1"}
        audio.layout, audio.bit_rate = "stereo", 96_000
        audio.options = {"aac_pns": "0"}  # its made-up noise differs after a seek
        for packet in _encode(video, _pictures(frames, width), 1 / FPS):
            out.mux(packet)
        sound = _noise(int(frames / FPS * RATE) // AAC, seed)
        for packet in _encode(audio, sound, Fraction(1, RATE)):
            out.mux(packet)
    return Master(*_packets(buffer), buffer.getvalue())


def _encode(to: Any, frames: Iterator[Any], base: Fraction) -> Iterator[av.Packet]:
    for frame in frames:
        frame.time_base = base
        yield from to.encode(frame)
    yield from to.encode(None)


def _packets(movie: BytesIO) -> tuple[tuple[Packet, ...], tuple[Packet, ...]]:
    """Take the packets out of a movie, in its own packing, with times in frames and samples."""
    kept: dict[str, list[Packet]] = {"video": [], "audio": []}
    movie.seek(0)
    with av.open(movie) as container:
        for p in container.demux():
            if p.size and p.pts is not None and p.dts is not None:
                unit = 1 / FPS if p.stream.type == "video" else Fraction(1, RATE)
                pts, dts = p.pts * p.time_base / unit, p.dts * p.time_base / unit
                assert pts.denominator == dts.denominator == 1
                kept[p.stream.type].append(Packet(bytes(p), int(pts), int(dts), p.is_keyframe))
    return tuple(kept["video"]), tuple(kept["audio"])


def _pictures(frames: int, width: int) -> Iterator[av.VideoFrame]:
    for k in range(frames):
        picture = np.full((width, width, 3), k * 7 % 256, np.uint8)
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        frame.pts = k
        yield frame


def _noise(blocks: int, seed: int) -> Iterator[av.AudioFrame]:
    noise = np.random.default_rng(seed).normal(0, 0.1, (2, blocks * AAC)).astype(np.float32)
    for k in range(blocks):
        block = np.ascontiguousarray(noise[:, k * AAC : (k + 1) * AAC])
        frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="stereo")
        frame.sample_rate, frame.pts = RATE, k * AAC
        yield frame


# --- files -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How a file is written; the defaults are a camera's whole recording."""

    camera: bytes | None = CAMERA
    media: bytes | None = b"media-unique-id!"
    global_id: bytes | None = None
    serial: str = "C3461300000001"
    model: str = "HERO11 Black"
    timecode: str | None = "11:12:47:22"
    telemetry: Telemetry | None = field(default_factory=Telemetry)
    sound: bool = True
    declare_priming: bool = False  # cameras store the encoder's priming as if it were sound
    created: int = 1_714_564_800  # local time of the camera as if it were UTC
    handlers: bool = True


def write(path: Path, master: Master, plan: Plan, frames: range, blocks: range) -> Path:
    """Write a span of the frames and of the sound packets as one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    options = {"fflags": "+bitexact", "brand": "mp41"}
    with (
        av.open(BytesIO(master.container)) as template,
        av.open(str(path), "w", format="mp4", options=options) as out,
    ):
        _fill(out, template, master, plan, frames, blocks)
    _add_user_data(path, _user_data(plan), plan.created)
    return path


def _fill(
    out: Any, template: Any, master: Master, plan: Plan, frames: range, blocks: range
) -> None:
    video = out.add_stream_from_template(template.streams.video[0])
    audio = out.add_stream_from_template(template.streams.audio[0]) if plan.sound else None
    data = out.add_data_stream("bin_data") if plan.telemetry else None
    _name(plan, video, audio, data)
    for packet in master.video:
        if packet.pts in frames:
            _mux(out, video, packet, -frames.start, 1 / FPS, 1)
    if audio is not None:
        shift = -blocks.start * AAC + (0 if plan.declare_priming and not blocks.start else AAC)
        for k in blocks:
            _mux(out, audio, master.audio[k], shift, Fraction(1, RATE), AAC)
    if data is not None and plan.telemetry is not None:
        _mux_payloads(out, data, frames, plan.telemetry)


def _name(plan: Plan, video: Any, audio: Any, data: Any) -> None:
    for one, name in ((video, "GoPro AVC"), (audio, "GoPro AAC"), (data, "GoPro MET")):
        if one is not None and plan.handlers:
            one.metadata["handler_name"] = name
    if plan.timecode:
        video.metadata["timecode"] = plan.timecode
    if data is not None:
        data.codec_tag = "gpmd"
        data.time_base = Fraction(1, 1000)


def _mux_payloads(out: Any, data: Any, frames: range, told: Telemetry) -> None:
    """One payload every 30 frames of the file, which last 1001 ms; the last one is shorter."""
    for k, start in enumerate(range(frames.start, frames.stop, 30)):
        span = range(start, min(start + 30, frames.stop))
        lasts = round(1000 * len(span) / FPS)
        packet = Packet(payload(start // 30, span, told), 1001 * k, 1001 * k, True)
        _mux(out, data, packet, 0, Fraction(1, 1000), lasts)


def _mux(out: Any, to: Any, packet: Packet, shift: int, base: Fraction, duration: int) -> None:
    p = av.Packet(packet.data)
    p.stream, p.time_base, p.duration = to, base, duration
    p.pts, p.dts, p.is_keyframe = packet.pts + shift, packet.dts + shift, packet.key
    out.mux(p)


def _user_data(plan: Plan) -> bytes:
    boxes = []
    if plan.camera is not None:
        boxes += [_box(b"FIRM", b"H22.01.01.10.00"), _box(b"CAME", plan.camera)]
    if plan.media is not None:
        boxes += [_box(b"MUID", (plan.camera or bytes(16)) + plan.media)]
    if plan.global_id is not None:
        boxes += [_box(b"GUMI", plan.global_id)]
    if plan.serial:
        told = nest("DEVC", text("DVNM", "Global Settings"), text("CASN", plan.serial),
                    text("MINF", plan.model), text("FMWR", "H22.01.01.10.00"))  # fmt: skip
        boxes += [_box(b"GPMF", told + bytes(64))]
    return b"".join(boxes)


def _box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body


def _add_user_data(path: Path, boxes: bytes, created: int) -> None:
    """Replace the movie's user data and set its date; ``moov`` is the last box."""
    data = path.read_bytes()
    at = 0
    while data[at + 4 : at + 8] != b"moov":
        at += struct.unpack_from(">I", data, at)[0]
    moov = data[at + 8 :]
    kept = b"".join(box for box in _split(moov) if box[4:8] != b"udta")
    stamp = struct.pack(">II", *(created + 2_082_844_800,) * 2)
    moov = kept[:12] + stamp + kept[20:] + (_box(b"udta", boxes) if boxes else b"")
    path.write_bytes(data[:at] + _box(b"moov", moov))


def _split(boxes: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(boxes):
        length = struct.unpack_from(">I", boxes, at)[0]
        yield boxes[at : at + length]
        at += length


# --- chapters --------------------------------------------------------------------------------


def cuts(frames: int, chapters: int) -> list[range]:
    """Cut into chapters at key frames, at every whole number of payloads of 30 frames."""
    step = frames // chapters // 30 * 30
    starts = [k * step for k in range(chapters)]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], frames], strict=True)]


def sound_cuts(spans: Sequence[range], blocks: int) -> list[range]:
    """Cut the sound at the packet nearest to where the pictures are cut, as cameras do."""
    at = [round(span.start / FPS * RATE / AAC) for span in spans]
    return [range(a, b) for a, b in zip(at, [*at[1:], blocks], strict=True)]


def write_chapters(
    folder: Path,
    master: Master,
    plan: Plan | None = None,
    *,
    chapters: int = 3,
    names: str = "GX{chapter:02d}0123.MP4",
    first: int = 1,
) -> list[Path]:
    """Write a recording as chapters, as a camera would: the time code goes on."""
    plan = plan or Plan()
    spans = cuts(len(master.video), chapters)
    sound = sound_cuts(spans, len(master.audio))
    paths = []
    for k, (frames, blocks) in enumerate(zip(spans, sound, strict=True)):
        path = folder / names.format(chapter=first + k)
        paths.append(write(path, master, continued(plan, frames.start), frames, blocks))
    return paths


def write_whole(path: Path, master: Master, plan: Plan | None = None) -> Path:
    frames, blocks = range(len(master.video)), range(len(master.audio))
    return write(path, master, plan or Plan(), frames, blocks)


def continued(plan: Plan, frames: int) -> Plan:
    """The plan of a chapter that starts ``frames`` later."""
    if plan.timecode is None:
        return plan
    hours, minutes, seconds, rest = map(int, plan.timecode.split(":"))
    total = ((hours * 60 + minutes) * 60 + seconds) * 30 + rest + frames
    whole, rest = divmod(total, 30)
    shown = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}:{rest:02d}"
    return replace(plan, timecode=shown)
