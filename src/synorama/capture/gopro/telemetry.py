"""GoPro telemetry (GPMF) as sample tracks, and the wall-clock time that it tells.

A payload holds about a second of all sensors. Its samples are spread evenly over its span in the
movie's table: sample i of n is at ``start + i / n * duration``. Against the camera's own stamps
(``STMP``) on a HERO11 that is good to 0.7 of a sample: 3.5 ms for the accelerometer, 43 ms for GPS.
The stamps themselves, microseconds of a clock that is not the movie's, are not used.
Running totals (``TSMP``) give the number of samples from the first and last payload of a file, so
that payloads are read only when a track is read.

Axes of accelerometer, gyroscope and gravity are turned to GoPro's X, Y, Z (frame ``gopro-imu``):
by ``ORIN`` where it is stored, else by model (GoPro's gpmf-parser documentation); gravity is stored
as X, -Z, -Y. All other streams keep their stored order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.capture.container import gpmf
from synorama.capture.container.mp4 import Mp4Track
from synorama.capture.gopro.chapters import Chapter
from synorama.capture.gopro.tracks import chapter_starts, device_ns
from synorama.records import Column, Problem, Samples, SampleTrack, UtcEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["Telemetry", "read_telemetry"]

FRAME = "gopro-imu"
MAX_PAYLOAD = 1 << 24
NAMES = {
    "SHUT": "shutter",
    "ISOE": "iso",
    "ISOG": "gain",
    "WBAL": "white_balance",
    "GPS5": "gps",
    "GPS9": "gps",
}
UNITS = {"m/s²": "m/s^2", "µT": "uT", "": "1"}
QUATERNION = ("q0", "q1", "q2", "q3")
PLACE = (
    Column("latitude", "deg"),
    Column("longitude", "deg"),
    Column("altitude", "m"),
    Column("speed_2d", "m/s"),
    Column("speed_3d", "m/s"),
    Column("fix"),
    Column("dilution"),
)
FIX, DILUTION = 5, 6  # columns of PLACE
LOCKED, PRECISE = 2, 5.0  # a fix in two dimensions; below 5 the vendor calls it good
STORED_AXES = {"Hero6": "YxZ", "HERO6": "YxZ", "MAX": "YxZ", "Max": "YxZ", "Fusion": "yXZ"}
HERO5_AXES = "ZXY"
GRAVITY_AXES = "Xzy"

GPS9_SIGMA_S = 0.2  # a payload of ten samples is placed to about a sample
GPSU_SIGMA_S = 1.5  # measured: up to 1.4 s stale, and 1.4 s from GPS9 in one file
CLOCK_SIGMA_S = 120.0  # a camera set by hand was 99 s off
ZONE_SIGMA_S = 27_000.0  # time zones span 26 h: 26 h / sqrt(12)
SAME_CLOCK_S = 5.0  # GPS times that disagree by more are not of one clock
PLAUSIBLE_NS = (1_388_534_400 * 10**9, 2_524_608_000 * 10**9)  # 2014 to 2050
UTC_PAYLOADS = 24  # enough for a median
DAY_NS = 86_400 * 10**9
EPOCH_2000_NS = 946_684_800 * 10**9


@dataclass(frozen=True, slots=True, eq=False)
class _Payloads:
    """Where the payloads of one file lie and when they were recorded."""

    path: Path
    offsets: Int64
    sizes: Int64
    starts_ns: Int64
    ends_ns: Int64

    def read(self, which: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield ``(index, bytes)`` of the payloads asked for, of all by default."""
        with self.path.open("rb") as file:
            for i in range(len(self.offsets)) if which is None else which:
                file.seek(int(self.offsets[i]))
                yield i, file.read(min(int(self.sizes[i]), MAX_PAYLOAD))


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Streams of the first and last payload of one file, by (device id, key)."""

    first: Mapping[tuple[str, str], gpmf.Stream]
    last: Mapping[tuple[str, str], gpmf.Stream]


@dataclass(frozen=True, slots=True, eq=False)
class Telemetry:
    """The telemetry of a recording.

    Parameters
    ----------
    tracks
        One sample track a stream of numbers; lists per frame (faces, scenes) are left out.
    start_utc
        Coarse wall-clock time, or None.
    totals_go_on
        For each seam between chapters: True where the running totals go on, False where samples
        are missing, None where they start anew or there are none.
    device
        What the camera calls itself.
    problems
        What an operator should know.
    """

    tracks: tuple[SampleTrack, ...]
    start_utc: UtcEstimate | None
    totals_go_on: tuple[bool | None, ...]
    device: str
    problems: tuple[Problem, ...]


def read_telemetry(chapters: Sequence[Chapter]) -> Telemetry:
    """Read what the first and last payload of each chapter announce, and some GPS times."""
    starts = chapter_starts(chapters)
    pairs = [
        (_payloads(c.path, c.telemetry[1], start), c)
        for c, start in zip(chapters, starts, strict=True)
        if c.telemetry is not None
    ]
    files = [files for files, _ in pairs]
    ends = [_ends(f) for f in files]
    tracks = tuple(_tracks(files, ends))
    from_gps, problems = _gps_utc(files)
    device = next((s.device for e in ends for s in e.first.values()), "")
    complete = len(pairs) == len(chapters)
    seams = tuple(map(_goes_on, ends, ends[1:])) if complete else (None,) * (len(chapters) - 1)
    return Telemetry(
        tracks=tracks,
        start_utc=from_gps or _creation_utc(chapters[0]),
        totals_go_on=seams,
        device=device,
        problems=(*_missing(chapters, tracks), *_lost(seams, chapters), *problems),
    )


def _payloads(path: Path, track: Mp4Track, start: Fraction) -> _Payloads:
    return _Payloads(
        path=path,
        offsets=track.offsets,
        sizes=track.sizes,
        starts_ns=device_ns(track.pts, track.timescale, start),
        ends_ns=device_ns(track.pts + track.durations, track.timescale, start),
    )


def _ends(payloads: _Payloads) -> _Ends:
    last = len(payloads.offsets) - 1
    found = [_streams(data) for _, data in payloads.read((0, last))]
    return _Ends(found[0], found[1])


def _streams(data: bytes) -> dict[tuple[str, str], gpmf.Stream]:
    found: dict[tuple[str, str], gpmf.Stream] = {}
    for device in gpmf.parse(data):
        for stream in device.streams:
            found.setdefault((stream.device_id, stream.key), stream)
    return found


def _missing(chapters: Sequence[Chapter], tracks: Sequence[SampleTrack]) -> Iterator[Problem]:
    lacking = [c.path.name for c in chapters if c.telemetry is None]
    if lacking:
        text = f"{', '.join(lacking)}: no GoPro telemetry (GPMF), so motion, exposure and GPS are "
        text += "lost; a program dropped it when it copied or cut the file: take the camera's own"
        yield Problem("no_telemetry", text)
    elif not tracks:
        yield Problem("no_telemetry", "nothing in the GoPro telemetry (GPMF) can be read")


def _goes_on(a: _Ends, b: _Ends) -> bool | None:
    """Tell whether totals go on from file a to file b."""
    steps = [
        (b.first[k].total or 0) - b.first[k].count - (a.last[k].total or 0)
        for k in a.last.keys() & b.first.keys()
        if a.last[k].total and (b.first[k].total or 0) > b.first[k].count
    ]
    return any(step == 0 for step in steps) if steps else None


def _lost(seams: Sequence[bool | None], chapters: Sequence[Chapter]) -> Iterator[Problem]:
    for go_on, chapter in zip(seams, chapters[1:], strict=False):
        if go_on is False:
            text = f"telemetry samples are missing before {chapter.path.name}"
            yield Problem("telemetry_gap", text)


# --- tracks ----------------------------------------------------------------------------------


def _tracks(files: Sequence[_Payloads], ends: Sequence[_Ends]) -> Iterator[SampleTrack]:
    """Yield the tracks, the camera's own under plain names, other devices' under numbered ones."""
    samples: dict[tuple[str, str], gpmf.Stream] = {}
    for part in ends:
        for streams in (part.first, part.last):
            for key, stream in streams.items():
                if key not in samples or not samples[key].count:
                    samples[key] = stream
    used: set[str] = set()
    for key in sorted(samples, key=lambda k: k[1] != "GPS9"):  # GPS9 is the better GPS
        stream = samples[key]
        if stream.lists or not stream.values().shape[1]:
            continue
        name = _free(NAMES.get(stream.key, stream.key.lower()), used)
        used.add(name)
        yield _track(name, stream, files, ends)


def _free(name: str, used: set[str]) -> str:
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
    return next(n for n in (plain, *(f"{plain}-{k}" for k in range(2, 1000))) if n not in used)


def _track(
    name: str, stream: gpmf.Stream, files: Sequence[_Payloads], ends: Sequence[_Ends]
) -> SampleTrack:
    key = (stream.device_id, stream.key)
    columns = _columns(stream)
    read = _reader(key, files, len(columns))
    counts = [_count(key, f, e) for f, e in zip(files, ends, strict=True)]
    if None in counts:  # the ends do not tell
        times = read().times_ns
        count, first, last = len(times), *_span(times)
    else:
        count = sum(c or 0 for c in counts)
        first = int(files[0].starts_ns[0])
        n = ends[-1].last[key].count
        last = int(_spread(files[-1], len(files[-1].offsets) - 1, n)[-1])
    return SampleTrack(
        name=name,
        sample_kind="samples",
        columns=columns,
        count=count,
        first_ns=first,
        last_ns=last,
        read=read,
        frame=FRAME if _axes(stream) else "",
        rate_hz=_rate(count, first, last),
        source=stream.key,
        location=_tells_where(stream.key, columns),
    )


def _span(times: Int64) -> tuple[int | None, int | None]:
    return (int(times[0]), int(times[-1])) if len(times) else (None, None)


def _rate(count: int, first: int | None, last: int | None) -> float | None:
    if count < 2 or first is None or last is None or last <= first:
        return None
    return (count - 1) * 1e9 / (last - first)


def _count(key: tuple[str, str], file: _Payloads, ends: _Ends) -> int | None:
    """Count a file's samples by the running totals of its ends; None where they do not tell."""
    first, last = ends.first.get(key), ends.last.get(key)
    if first is None or last is None or not (first.count and last.count):
        return None
    if first.total is None or last.total is None:
        return None
    count = last.total - first.total + first.count
    return count if count >= len(file.offsets) else None


def _tells_where(key: str, columns: Sequence[Column]) -> bool:
    """Tell streams with a place on Earth, those of drones and other devices too."""
    units = ",".join(c.unit for c in columns)
    return key.startswith("GPS") or "deg,deg,m" in units


def _reader(key: tuple[str, str], files: Sequence[_Payloads], width: int) -> Callable[[], Samples]:
    def read() -> Samples:
        times, rows, utc = [], [], []
        for file in files:
            for i, stream in _of_key(file, key):
                values = _values(stream)
                times.append(_spread(file, i, len(values)))
                rows.append(values)
                if stream.key == "GPS9":
                    utc.append(_gps9_utc(stream.values()))
        if not rows:
            return Samples(np.zeros(0, np.int64), np.zeros((0, width)))
        extra = {"utc_ns": np.concatenate(utc)} if utc else {}
        return Samples(np.concatenate(times), np.concatenate(rows), extra)

    return read


def _of_key(
    file: _Payloads, key: tuple[str, str], which: Sequence[int] | None = None
) -> Iterator[tuple[int, gpmf.Stream]]:
    for i, data in file.read(which):
        for stream in gpmf.find_streams(data, key[1]):
            if stream.device_id == key[0] and stream.count:
                yield i, stream
                break


def _spread(file: _Payloads, payload: int, n: int) -> Int64:
    """Return the times of n samples spread evenly over a payload [ns]."""
    start, end = int(file.starts_ns[payload]), int(file.ends_ns[payload])
    out: Int64 = start + ((end - start) * np.arange(n, dtype=np.int64) + n // 2) // max(n, 1)
    return out


# --- meaning ---------------------------------------------------------------------------------


def _axes(stream: gpmf.Stream) -> tuple[tuple[int, float], ...] | None:
    """Return which column holds X, Y and Z, and with which sign; None for streams without."""
    if stream.key == "GRAV":
        return gpmf.axis_signs(GRAVITY_AXES)
    stored = stream.properties.get("ORIN")
    if isinstance(stored, str):
        return gpmf.axis_signs(stored)
    if stream.key not in ("ACCL", "GYRO"):
        return None
    by_model = (axes for model, axes in STORED_AXES.items() if model in stream.device)
    return gpmf.axis_signs(next(by_model, HERO5_AXES))


def _columns(stream: gpmf.Stream) -> tuple[Column, ...]:
    if stream.key in ("GPS5", "GPS9"):
        return PLACE
    n = stream.values().shape[1]
    units = [UNITS.get(u.strip(), u.strip()) for u in stream.units] or ["1"]
    units = units * n if len(units) == 1 else units + ["1"] * n
    names = tuple(f"c{i}" for i in range(n)) if n > 1 else (stream.key.lower(),)
    if _axes(stream) and n == 3:
        names = ("x", "y", "z")
    elif stream.key in ("CORI", "IORI"):
        names = QUATERNION
    return tuple(Column(name, unit) for name, unit in zip(names, units, strict=False))


def _values(stream: gpmf.Stream) -> Float64:
    values = stream.values()
    if stream.key == "GPS5":
        return np.column_stack([values, np.tile(_quality(stream), (len(values), 1))])
    if stream.key == "GPS9":
        return values[:, [0, 1, 2, 3, 4, 8, 7]]
    axes = _axes(stream)
    if axes is None or values.shape[1] != 3:
        return values
    return np.column_stack([values[:, column] * sign for column, sign in axes])


def _quality(stream: gpmf.Stream) -> tuple[float, float]:
    """Return fix and dilution of a GPS5 payload; NaN where it does not say."""
    fix, dilution = (stream.properties.get(k) for k in ("GPSF", "GPSP"))
    return (
        float(fix) if isinstance(fix, (int, float)) else np.nan,
        dilution / 100 if isinstance(dilution, (int, float)) else np.nan,
    )


# --- wall clock ------------------------------------------------------------------------------


def _gps9_utc(values: Float64) -> Int64:
    """Return UTC [ns] from days since 2000 and seconds of the day."""
    days, seconds = values[:, 5].astype(np.int64), np.rint(values[:, 6] * 1000).astype(np.int64)
    return EPOCH_2000_NS + days * DAY_NS + seconds * 1_000_000


def _gps_utc(files: Sequence[_Payloads]) -> tuple[UtcEstimate | None, list[Problem]]:
    """Estimate UTC from payloads spread over the recording."""
    told = list(_gps_times(files))
    pairs = [(t, utc) for t, utc, _ in told if utc is not None and _plausible(utc)]
    agreed = _agreeing(pairs)
    problems = [_garbage(len(told) - len(agreed), len(told))] if len(agreed) < len(told) else []
    if not agreed:
        return None, problems
    device, utc = agreed[len(agreed) // 2]
    sigma_s = GPS9_SIGMA_S if all(source == "GPS9" for _, _, source in told) else GPSU_SIGMA_S
    return UtcEstimate(device, utc, sigma_s, "gps"), problems


def _gps_times(files: Sequence[_Payloads]) -> Iterator[tuple[int, int | None, str]]:
    """Yield ``(device ns, UTC ns or None, source)`` of some payloads that have a good fix."""
    share = -(-UTC_PAYLOADS // max(len(files), 1))
    for file in files:
        n = len(file.offsets)
        some = min(share, n)
        for i, data in file.read([k * n // some for k in range(some)]):
            told = _payload_utc(data)
            if told is not None:
                yield int(file.starts_ns[i]), told[1], told[0]


def _plausible(utc_ns: int) -> bool:
    return PLAUSIBLE_NS[0] < utc_ns < PLAUSIBLE_NS[1]


def _payload_utc(data: bytes) -> tuple[str, int | None] | None:
    """Return source and UTC of a payload's first sample; None without a good fix."""
    for stream in gpmf.find_streams(data, "GPS9"):
        good = _locked(_values(stream))
        if len(good) and good[0]:
            return "GPS9", int(_gps9_utc(stream.values()[:1])[0])
    for stream in gpmf.find_streams(data, "GPS5"):
        good = _locked(_values(stream))
        if len(good) and good[0] and "GPSU" in stream.properties:
            return "GPSU", gpmf.parse_utc(str(stream.properties["GPSU"]))
    return None


def _locked(values: Float64) -> NDArray[np.bool_]:
    locked: NDArray[np.bool_] = (values[:, FIX] >= LOCKED) & (values[:, DILUTION] < PRECISE)
    return locked


def _agreeing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs near the median offset, in order of offset; none if most are not."""
    if not pairs:
        return []
    ordered = sorted(pairs, key=lambda p: p[1] - p[0])
    middle = ordered[len(ordered) // 2]
    offset = middle[1] - middle[0]
    near = [p for p in ordered if abs(p[1] - p[0] - offset) <= SAME_CLOCK_S * 1e9]
    return near if 2 * len(near) > len(pairs) else []


def _garbage(garbage: int, asked: int) -> Problem:
    return Problem(
        "gps_time_garbage",
        f"{garbage} of {asked} GPS times make no sense and were ignored",
        "gps",
    )


def _creation_utc(chapter: Chapter) -> UtcEstimate | None:
    """Take the time that the camera was set to: local, and as good as whoever set it."""
    local = chapter.movie.creation_utc_s
    if local is None:
        return None
    ahead = chapter.identity.utc_offset_min
    utc_ns = (local - 60 * (ahead or 0)) * 10**9
    return UtcEstimate(0, utc_ns, ZONE_SIGMA_S if ahead is None else CLOCK_SIGMA_S, "creation_time")
