"""Pictures and sound of Aria recordings: when they were taken and where their bytes lie.

The capture time of a picture is the middle of its exposure on the device clock (the vendor's
``ImageSensorMetadata.h``: "mid-exposure timestamp in the hardware clock domain"); where the
shutter rolls, that is the middle of the exposure of the middle row, which the vendor's
``get_rgb_corrected_timestamp_ns`` corrects further with the calibrated readout time.

The record time of a block of sound is its first sample's; every sample's own time is in the
record, and these times, not the nominal rate, are what the track's knots reproduce.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.aria.samples import count_words, find_gap, goes_back
from synorama.capture.container.vrs import CONFIGURATION, DATA, VrsFile, payload_rows
from synorama.records import (
    BLOCK_DTYPE,
    FRAME_DTYPE,
    AudioTrack,
    Column,
    Problem,
    Samples,
    SampleTrack,
    VideoTrack,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["audio_track", "knots_of_blocks", "video_tracks"]

EXPOSURE_COLUMNS = {
    "exposure_duration_s": Column("exposure", "s"),
    "gain": Column("gain", "1"),
    "temperature_deg_c": Column("temperature", "degC"),
}
_PICTURE_CODECS = {"jpg": "mjpeg", "png": "png", "jxl": "jpegxl"}
_VIDEO_CODECS = {"H.264": "h264", "H.265": "hevc", "VP9": "vp9", "AV1": "av1"}
_RAW_FORMATS = {  # VRS's PixelFormat: FFmpeg's name, bytes a pixel of the first plane
    1: ("gray", 1),
    2: ("bgr24", 3),
    4: ("rgb24", 3),
    5: ("yuv420p", 1),
    6: ("rgba", 4),
    9: ("gray10le", 2),
    10: ("gray12le", 2),
    11: ("gray16le", 2),
    14: ("yuyv422", 2),
    17: ("bayer_rggb8", 1),
    21: ("nv21", 1),
    22: ("nv12", 1),
    24: ("bayer_bggr8", 1),
}
_SOUND_FORMATS = {"int16le": "pcm_s16le", "int24le": "pcm_s24le", "int32le": "pcm_s32le"}
_KNOT_TOLERANCE_NS = 1


# --- pictures --------------------------------------------------------------------------------


def video_tracks(
    vrs: VrsFile, stream: str, name: str, rotation_deg: int
) -> tuple[VideoTrack, SampleTrack, tuple[Problem, ...]]:
    """Return a camera's pictures, the exposure of each, and what is wrong with them."""
    config = vrs.first(stream, CONFIGURATION)
    records = vrs.select(stream)
    fields = _picture_fields(vrs, stream, records)
    taken = fields["capture_timestamp_ns"].astype(np.int64)
    order = np.argsort(taken, kind="stable")
    times = taken[order]
    fields = {key: column[order] for key, column in fields.items()}
    codec, pixel_format = _picture_codec(vrs, stream, config)
    track = VideoTrack(
        name=name,
        codec=codec,
        width=int(config.get("image_width", 0)),
        height=int(config.get("image_height", 0)),
        times_ns=times,
        index=_frame_index(vrs, stream, records[order], fields),
        storage="packets",
        rotation_deg=rotation_deg,
        time_refers_to="exposure_centre",
        rate_hz=_rate(config.get("nominal_rate")),
        source=stream,
        pixel_format=pixel_format,
    )
    nothing = Problem("no_pictures", f"{name}: no picture was recorded", name)
    found = (goes_back(taken, name), _dropped(fields, times, name), find_gap(times, name),
             None if len(times) else nothing)  # fmt: skip
    problems = (*(p for p in found if p), *_unknown_codec(track))
    return track, _exposure_track(track, fields), problems


def _picture_fields(
    vrs: VrsFile, stream: str, records: NDArray[np.void]
) -> dict[str, NDArray[Any]]:
    wanted = ("capture_timestamp_ns", "frame_number", "image_key_frame_index", *EXPOSURE_COLUMNS)
    return vrs.columns(stream, records, wanted)


def _picture_codec(vrs: VrsFile, stream: str, config: dict[str, Any]) -> tuple[str, str]:
    """Return FFmpeg's names of the codec and, for raw pictures, of the pixel format."""
    records = vrs.select(stream)
    tags = vrs.streams[stream]
    version = int(records["version"][0]) if len(records) else tags.newest_version(DATA)
    block = tags.format(DATA, version or 0).rpartition("+")[2]
    if match := re.search(r"image/video.*codec=([\w.]+)", block):
        return _VIDEO_CODECS.get(match[1], "unknown"), ""
    if block.startswith("image/raw"):
        pixels = _raw_format(config)
        return ("rawvideo" if pixels else "unknown"), pixels
    return _PICTURE_CODECS.get(block.removeprefix("image/"), "unknown"), ""


def _raw_format(config: dict[str, Any]) -> str:
    """Return FFmpeg's name of raw pixels without padding, empty for any other."""
    name, size = _RAW_FORMATS.get(int(config.get("image_pixel_format", 0)), ("", 0))
    stride = int(config.get("image_stride", 0))
    return name if stride in (0, size * int(config.get("image_width", 0))) else ""


def _frame_index(
    vrs: VrsFile, stream: str, records: NDArray[np.void], fields: dict[str, NDArray[Any]]
) -> NDArray[np.void]:
    out = np.zeros(len(records), FRAME_DTYPE)
    if not len(records):
        return out
    where = vrs.payloads(stream, records)
    for key in ("file", "offset", "size", "packing", "skip"):
        out[key] = where[key]
    out["pts"] = fields["capture_timestamp_ns"]
    since_key = fields.get("image_key_frame_index")  # only video codecs have one
    out["key"] = 1 if since_key is None else since_key == 0
    return out


def _exposure_track(track: VideoTrack, fields: dict[str, NDArray[Any]]) -> SampleTrack:
    n = track.count
    values = np.column_stack([fields.get(f, np.full(n, np.nan)) for f in EXPOSURE_COLUMNS])
    numbers = fields.get("frame_number", np.full(n, -1)).astype(np.int64)
    samples = Samples(track.times_ns, values.astype(np.float64), {"frame_number": numbers})
    return SampleTrack(
        name=f"{track.name}-exposure",
        sample_kind="samples",
        columns=tuple(EXPOSURE_COLUMNS.values()),
        count=n,
        first_ns=track.first_ns,
        last_ns=track.last_ns,
        read=partial(_held, samples),
        rate_hz=track.rate_hz,
        source=track.source,
    )


def _held(samples: Samples) -> Samples:
    return samples


def _dropped(fields: dict[str, NDArray[Any]], times: Int64, name: str) -> Problem | None:
    """Tell how many frames are missing by the jumps of the frame number.

    The number may fall back to zero when the sensor restarts: that is no dropped frame.
    """
    numbers = fields.get("frame_number")
    if numbers is None or len(numbers) < 2:
        return None
    steps = np.diff(numbers.astype(np.int64))
    usual = max(1, int(np.median(steps[steps > 0]))) if (steps > 0).any() else 1
    missing = np.where(steps > usual, steps // usual - 1, 0)
    if not missing.sum():
        return None
    at = int(missing.argmax())
    return Problem(
        "dropped_frames",
        f"{name}: {count_words(int(missing.sum()), 'frame')} dropped at "
        f"{count_words(int((missing > 0).sum()), 'place')}, most ({int(missing[at])}) "
        f"{(times[at] - times[0]) / 1e9:.3f} s after the start",
        name,
    )


def _unknown_codec(track: VideoTrack) -> tuple[Problem, ...]:
    if track.codec != "unknown" or not track.count:
        return ()
    text = f"{track.name}: its pictures are stored in a way that is not known and stay undecoded"
    return (Problem("unknown_codec", text, track.name, severe=True),)


def _rate(value: Any) -> float | None:
    rate = float(value) if value is not None else float("nan")
    return rate if np.isfinite(rate) and rate > 0 else None


# --- sound -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Kept blocks: which records, samples a block, knots, and how many were dropped."""

    kept: NDArray[np.intp]
    counts: Int64
    knots: Int64
    repeated: int
    backward: int


def audio_track(vrs: VrsFile, stream: str, name: str) -> tuple[AudioTrack, tuple[Problem, ...]]:
    """Return the microphones' sound, and what is wrong with it."""
    config = vrs.first(stream, CONFIGURATION)
    records = vrs.select(stream)
    sizes, muted = np.zeros(len(records), np.int64), np.zeros(len(records), bool)
    blocks = knots_of_blocks(_times_of_blocks(vrs, stream, sizes, muted))
    where = payload_rows(records, sizes)[blocks.kept]
    track = AudioTrack(
        name=name,
        codec=_sound_codec(vrs, stream, records),
        rate_hz=float(config.get("audio_sample_rate", 0)) or 48000.0,
        channels=int(config.get("audio_channel_count", 0)),
        sample_count=int(blocks.counts.sum()),
        knots=blocks.knots,
        storage="packets",
        blocks=_block_index(where, blocks.counts),
        muted=muted[blocks.kept] if len(records) else None,
        source=stream,
        stereo_pairs=int(config.get("audio_stereo_pair_count", 0)),
    )
    return track, _sound_problems(track, blocks)


def _times_of_blocks(
    vrs: VrsFile, stream: str, sizes: Int64, muted: NDArray[np.bool_]
) -> Iterator[Int64]:
    """Yield the sample times of each block; note on the way what else its record says."""
    rows = vrs.scan(stream, vrs.select(stream), "capture_timestamps_ns")
    for k, row in enumerate(rows):
        sizes[k], muted[k] = row.size, bool(row.fields["audio_muted"])
        yield np.frombuffer(row.body or b"", "<i8")


def knots_of_blocks(times_of_blocks: Iterable[Int64]) -> _Blocks:
    """Place knots so that every sample's own time is reproduced to 1 ns.

    A straight block takes two knots, its first and last sample; one that is not straight takes
    more. A block that repeats the one before, or lies before its end, is dropped.
    """
    kept, counts, knots, repeated, backward = [], [], [], 0, 0
    total, last = 0, None
    for k, times in enumerate(times_of_blocks):
        if not len(times):
            continue
        if last is not None and times[0] <= last[0]:
            repeated += bool(np.array_equal(times, last))
            backward += not np.array_equal(times, last)
            continue
        at = _straight_pieces(times)
        knots.append(np.column_stack([at + total, times[at]]))
        kept.append(k)
        counts.append(len(times))
        total, last = total + len(times), times
    return _Blocks(
        np.array(kept, np.intp),
        np.array(counts, np.int64),
        _increasing(knots),
        repeated,
        backward,
    )


def _straight_pieces(times: Int64) -> NDArray[np.intp]:
    """Return the indices between which straight lines reproduce the times to 1 ns."""
    at = [0, len(times) - 1]
    todo = [(0, len(times) - 1)]
    while todo:
        lo, hi = todo.pop()
        if hi - lo < 2:
            continue
        line = (times[hi] - times[lo]) / (hi - lo) * np.arange(hi - lo + 1)
        off = np.abs(times[lo : hi + 1] - times[lo] - np.rint(line).astype(np.int64))
        if off.max() > _KNOT_TOLERANCE_NS:
            middle = lo + int(off.argmax())
            at.append(middle)
            todo += [(lo, middle), (middle, hi)]
    return np.unique(np.array(at, np.intp))


def _increasing(knots: list[Int64]) -> Int64:
    """Join the knots of all blocks; where a block ends after the next begins, drop its end."""
    if not knots:
        return np.zeros((0, 2), np.int64)
    joined = np.concatenate(knots)
    later = np.minimum.accumulate(joined[::-1, 1])[::-1]  # earliest time from here on
    keep = np.append(joined[:-1, 1] < later[1:], True)
    kept: Int64 = joined[keep]
    return kept


def _sound_codec(vrs: VrsFile, stream: str, records: NDArray[np.void]) -> str:
    tags = vrs.streams[stream]
    version = int(records["version"][0]) if len(records) else tags.newest_version(DATA)
    block = tags.format(DATA, version or 0).rpartition("+")[2]
    if block.startswith("audio/opus"):
        return "opus"
    match = re.search(r"audio/pcm/(\w+)", block)
    return _SOUND_FORMATS.get(match[1], "unknown") if match else "unknown"


def _block_index(where: NDArray[np.void], counts: Int64) -> NDArray[np.void]:
    out = np.zeros(len(where), BLOCK_DTYPE)
    for key in ("file", "offset", "size", "packing", "skip"):
        out[key] = where[key]
    out["count"] = counts
    out["first"] = np.cumsum(counts) - counts
    return out


def _sound_problems(track: AudioTrack, blocks: _Blocks) -> tuple[Problem, ...]:
    out = []
    if not track.count:
        out.append(Problem("no_sound", f"{track.name}: no sound was recorded", track.name))
    if blocks.repeated:
        text = f"{count_words(blocks.repeated, 'block')} of sound repeated; each is used once"
        out.append(Problem("repeated_audio", f"{track.name}: {text}", track.name))
    if blocks.backward:
        text = f"{count_words(blocks.backward, 'block')} of sound out of order and left out"
        out.append(Problem("time_goes_back", f"{track.name}: {text}", track.name, severe=True))
    if track.muted is not None and track.muted.any():
        share = 100 * float(track.muted.mean())
        text = f"{track.name}: the microphones were muted during {share:.3g} % of the recording"
        out.append(Problem("muted", text, track.name, severe=True))
    return (*out, *_sound_gaps(track))


def _sound_gaps(track: AudioTrack) -> tuple[Problem, ...]:
    """Tell of steps between neighbouring samples that are longer than two nominal ones."""
    steps = np.diff(track.knots, axis=0)
    late = steps[:, 1] - steps[:, 0] * (1e9 / track.rate_hz)
    gaps = np.flatnonzero(late > 2e9 / track.rate_hz)
    if not len(gaps):
        return ()
    worst = gaps[int(late[gaps].argmax())]
    text = (
        f"{track.name}: {count_words(len(gaps), 'gap')} in the sound, "
        f"{late[gaps].sum() / 1e6:.3f} ms in all, the longest {late[worst] / 1e6:.3f} ms "
        f"{(track.knots[worst, 1] - track.knots[0, 1]) / 1e9:.3f} s after the start"
    )
    return (Problem("gap", text, track.name, severe=True),)
