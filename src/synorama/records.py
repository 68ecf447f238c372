"""What was recorded: recordings, their tracks, where the bytes lie, and what sync made of them.

Pure data. Times are int64 ns. Nothing here opens a file; `synorama.media` decodes, adapters in
`synorama.capture` fill these types, `synorama.session` writes and reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from synorama.timebase import ClockMap
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = [
    "BLOCK_DTYPE",
    "FRAME_DTYPE",
    "UNKNOWN_SKEW95_NS",
    "AudioTrack",
    "CameraPose",
    "Column",
    "FileRef",
    "GeometryResult",
    "LoopClosure",
    "ObjectFileRecord",
    "ObjectPlace",
    "ObjectRecord",
    "PairEvidence",
    "PointCloud",
    "PointTrack",
    "Problem",
    "Recording",
    "RecordingClock",
    "RegistrationResult",
    "SampleTrack",
    "Samples",
    "Segment",
    "SpeakerCalibration",
    "SyncResult",
    "TimeMapping",
    "Track",
    "Transcript",
    "UtcEstimate",
    "VideoTrack",
    "Word",
    "leaps_ns",
    "picture_doubt_ns",
]

UNKNOWN_SKEW95_NS = 20_000_000
"""How far pictures may be off the sound of a camera that nobody calibrated."""

FRAME_DTYPE = np.dtype(
    [
        ("pts", "<i8"),  # container time in the track's time base; device ns for packets
        ("file", "<u2"),  # index into Recording.files
        ("offset", "<u8"),  # of the stored bytes in that file
        ("size", "<u4"),  # of the stored bytes
        ("key", "<u1"),  # 1: decodes without any earlier frame
        ("packing", "<u1"),  # 0 as it is, 1 lz4 frame, 2 zstd: how the stored bytes are packed
        ("skip", "<u4"),  # bytes before the payload once unpacked; 0 unless packed
    ]
)
"""Where each frame lies. Payload = unpack(file[offset:offset + size])[skip:]."""

BLOCK_DTYPE = np.dtype(
    [
        ("first", "<i8"),  # index of the block's first sample in the track
        ("count", "<u4"),  # samples (per channel) in the block
        ("file", "<u2"),
        ("offset", "<u8"),
        ("size", "<u4"),
        ("packing", "<u1"),
        ("skip", "<u4"),
    ]
)
"""Where each block of sound lies, for tracks stored as packets; fields as in `FRAME_DTYPE`."""

TimeReference: TypeAlias = Literal["exposure_start", "exposure_centre", "exposure_end", "unknown"]
Storage: TypeAlias = Literal["packets", "container"]
SampleKind: TypeAlias = Literal["samples", "pose", "gaze", "hands"]
SyncMode: TypeAlias = Literal["tic_sync", "subghz", "timecode", "utc"]
SyncRole: TypeAlias = Literal["server", "client", "broadcaster", "receiver"]


@dataclass(frozen=True, slots=True)
class FileRef:
    """One file of a recording, as it was when it was read.

    ``digest`` is the hex blake3 of all bytes, or None where nobody asked for it yet.
    """

    path: Path
    bytes: int
    mtime_ns: int
    digest: str | None = None

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Problem:
    """Something an operator should know, in plain words.

    ``code`` is stable and short (``gap``, ``dropped_frames``, ``no_sound``, ...); ``track`` names
    the stream, empty for the recording as a whole; ``severe`` means that data is lost or unusable.
    """

    code: str
    text: str
    track: str = ""
    severe: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class VideoTrack:
    """Pictures: when each was taken and where its bytes lie.

    Parameters
    ----------
    name
        Unique in the recording, such as ``rgb``, ``slam-left``, ``video``.
    codec
        FFmpeg's name: ``mjpeg``, ``hevc``, ``h264``, ``vp8``, ``rawvideo``...
    width, height
        Stored size [px], before rotation.
    times_ns
        ``(N,)`` device times in display order, non-decreasing.
    index
        ``(N,)`` of `FRAME_DTYPE`, in the same order.
    storage
        ``packets``: each frame's payload can be handed to the decoder as it is (from the last key
        frame on). ``container``: decode through the file's container by ``pts``.
    time_base
        Seconds per unit of ``pts``, as (numerator, denominator).
    stream_index
        The container's stream; None for packets.
    rotation_deg
        Clockwise turn that makes the picture upright: 0, 90, 180, 270.
    time_refers_to
        What moment of the exposure the times mean.
    rate_hz
        Nominal rate, None when variable or unknown.
    source
        The device's own name of the stream (VRS ``214-1``; container ``0``).
    pixel_format
        For ``rawvideo``: FFmpeg's name; empty otherwise.
    skew_ns
        Carries its times to those of the recording's sound, ``t_sound = t_picture + skew``.
    skew95_ns
        Half width of the interval that holds the skew with 95 % probability; None where nobody
        measured it.
    """

    name: str
    codec: str
    width: int
    height: int
    times_ns: Int64
    index: NDArray[np.void]
    storage: Storage
    time_base: tuple[int, int] = (1, 1_000_000_000)
    stream_index: int | None = None
    rotation_deg: int = 0
    time_refers_to: TimeReference = "unknown"
    rate_hz: float | None = None
    source: str = ""
    pixel_format: str = ""
    skew_ns: int = 0
    skew95_ns: int | None = None

    kind = "video"

    def __post_init__(self) -> None:
        _own_times(self, "times_ns", ordered=True)
        _own_table(self, "index", FRAME_DTYPE)
        if len(self.times_ns) != len(self.index):
            raise ValueError(f"{self.name}: {len(self.times_ns)} times, {len(self.index)} frames")
        if self.rotation_deg not in (0, 90, 180, 270):
            raise ValueError(f"{self.name}: rotation {self.rotation_deg} is no quarter turn")
        if (self.storage == "container") != (self.stream_index is not None):
            raise ValueError(f"{self.name}: a container track, and only it, has a stream index")

    @property
    def moments_ns(self) -> Int64:
        """``(N,)`` when each frame was taken, as the recording's sound tells the time."""
        moments: Int64 = self.times_ns + np.int64(self.skew_ns)
        return moments

    @property
    def count(self) -> int:
        """Number of frames."""
        return len(self.times_ns)

    @property
    def first_ns(self) -> int | None:
        """Device time of the first frame, None without frames."""
        return int(self.times_ns[0]) if self.count else None

    @property
    def last_ns(self) -> int | None:
        """Device time of the last frame, None without frames."""
        return int(self.times_ns[-1]) if self.count else None


@dataclass(frozen=True, slots=True, eq=False)
class AudioTrack:
    """Sound: where its bytes lie and when its samples were taken.

    Parameters
    ----------
    codec
        FFmpeg's name: ``pcm_s32le``, ``opus``, ``aac``, ...
    rate_hz
        Nominal rate. The true one follows from the knots.
    sample_count
        Samples per channel over the whole track.
    knots
        ``(K, 2)`` int64: sample index, device time ns of that sample. Both strictly increase.
        Between knots time is a straight line; a gap is two knots a sample apart.
    blocks
        ``(B,)`` of `BLOCK_DTYPE` for packets; None for a container.
    muted
        ``(B,)`` bool per block, or None where the device does not say.
    stereo_pairs
        Opus packets only: how many pairs of channels, the first ones, are coded together.
    file_firsts
        For containers of several files (chapters): index of the first sample that each file
        delivers. Sound goes on over a seam although the later file's own times are off there by
        up to a packet; a frame's index follows from its time since its file's first frame.
    """

    name: str
    codec: str
    rate_hz: float
    channels: int
    sample_count: int
    knots: Int64
    storage: Storage
    blocks: NDArray[np.void] | None = None
    muted: NDArray[np.bool_] | None = None
    stream_index: int | None = None
    source: str = ""
    stereo_pairs: int = 0
    file_firsts: tuple[int, ...] = ()

    kind = "audio"

    def __post_init__(self) -> None:
        knots = np.array(self.knots, np.int64, copy=True).reshape(-1, 2)
        if (np.diff(knots, axis=0) <= 0).any():
            raise ValueError(f"{self.name}: sample times must increase strictly")
        if self.sample_count and not len(knots):
            raise ValueError(f"{self.name}: {self.sample_count} samples and no time for any")
        knots.setflags(write=False)
        object.__setattr__(self, "knots", knots)
        if self.blocks is not None:
            _own_table(self, "blocks", BLOCK_DTYPE)
        if (self.storage == "container") != (self.stream_index is not None):
            raise ValueError(f"{self.name}: a container track, and only it, has a stream index")

    @property
    def count(self) -> int:
        """Number of samples per channel."""
        return self.sample_count

    @property
    def first_ns(self) -> int | None:
        """Device time of the first sample, None without samples."""
        return int(self.sample_times_ns(np.zeros(1, np.int64))[0]) if self.count else None

    @property
    def last_ns(self) -> int | None:
        """Device time of the last sample, None without samples."""
        last = np.array([self.sample_count - 1], np.int64)
        return int(self.sample_times_ns(last)[0]) if self.count else None

    def sample_times_ns(self, samples: Int64) -> Int64:
        """Return the device times [ns] of the samples with these indices.

        Beyond the last knot time goes on at the rate of the last two (nominal if there is one).
        """
        nominal = 1e9 / self.rate_hz
        x, y = self.knots[:, 0], self.knots[:, 1]
        if len(x) == 1:
            from_first: Int64 = y[0] + np.rint((samples - x[0]) * nominal).astype(np.int64)
            return from_first
        i = np.clip(np.searchsorted(x, samples, side="right") - 1, 0, len(x) - 2)
        step = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
        out: Int64 = y[i] + np.rint((samples - x[i]) * step).astype(np.int64)
        return out


@dataclass(frozen=True, slots=True)
class Column:
    """One column of samples: its name and unit (``m/s^2``, ``rad``, ``1``)."""

    name: str
    unit: str = "1"


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """The rows of a `SampleTrack`.

    Parameters
    ----------
    times_ns
        ``(N,)`` device times as the device wrote them; where they go back, a `Problem` says so.
    values
        ``(N, k)`` float32 or float64; NaN where the device gave no value.
    extra
        Columns that are no floats: ``(N,)`` int64, uint8 or fixed-length UTF-8 bytes (``S``).
    """

    times_ns: Int64
    values: NDArray[np.floating[Any]]
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _own_times(self, "times_ns", ordered=False)
        n = len(self.times_ns)
        if self.values.ndim != 2 or len(self.values) != n:
            raise ValueError(f"{n} times and values of shape {self.values.shape}")
        for name, column in self.extra.items():
            if column.shape != (n,):
                raise ValueError(f"column {name} has shape {column.shape}, expected ({n},)")
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))


@dataclass(frozen=True, slots=True, eq=False)
class SampleTrack:
    """Timed numbers: inertial, magnetic, pressure, location, poses, gaze, hands...

    The rows are read when `read` is called, not before; ``count``, ``first_ns`` and ``last_ns``
    are known at once.
    """

    name: str
    sample_kind: SampleKind
    columns: tuple[Column, ...]
    count: int
    first_ns: int | None
    last_ns: int | None
    read: Callable[[], Samples]
    frame: str = ""
    rate_hz: float | None = None
    source: str = ""
    location: bool = False  # tells where on Earth people were: left out unless asked for

    @property
    def kind(self) -> str:
        """``samples``, ``pose``, ``gaze`` or ``hands``."""
        return self.sample_kind


@dataclass(frozen=True, slots=True, eq=False)
class PointCloud:
    """Points of a frame.

    Parameters
    ----------
    points_m
        ``(N, 3)`` float64.
    sigma_m
        ``(N,)`` one sigma along the ray, or None.
    extra
        Further ``(N,)`` columns: ``inverse_distance_std``, ``uid``...
    """

    frame: str
    points_m: Float64
    normals: NDArray[np.floating[Any]] | None = None
    colours: NDArray[np.uint8] | None = None
    sigma_m: NDArray[np.floating[Any]] | None = None
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.points_m.ndim != 2 or self.points_m.shape[1] != 3:
            raise ValueError(f"points are (N, 3), got {self.points_m.shape}")


@dataclass(frozen=True, slots=True, eq=False)
class PointTrack:
    """A point cloud that belongs to a recording, such as MPS semi-dense points."""

    name: str
    count: int
    read: Callable[[], PointCloud]
    frame: str = ""
    source: str = ""

    kind = "points"
    first_ns: None = None
    last_ns: None = None


Track: TypeAlias = VideoTrack | AudioTrack | SampleTrack | PointTrack


@dataclass(frozen=True, slots=True, eq=False)
class TimeMapping:
    """Observations of another clock by the device: pairs of simultaneous times.

    Parameters
    ----------
    mode
        Which other clock: ``tic_sync`` (the server's device time), ``subghz``, ``timecode`` or
        ``utc``.
    pairs
        ``(N, 2)`` int64: device time ns, other clock's time ns, in order of device time.
    """

    mode: SyncMode
    pairs: Int64

    def __post_init__(self) -> None:
        pairs = np.array(self.pairs, np.int64, copy=True).reshape(-1, 2)
        pairs.setflags(write=False)
        object.__setattr__(self, "pairs", pairs)


@dataclass(frozen=True, slots=True)
class UtcEstimate:
    """Coarse wall-clock time of one device time, with an honest uncertainty.

    ``sigma_s`` one sigma; ``source`` says where it comes from (``gps``, ``creation_time``, ...).
    """

    device_ns: int
    utc_ns: int
    sigma_s: float
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One take: what one device recorded without stopping, on one clock.

    Parameters
    ----------
    id
        Neutral and unique in the session: ``aria-1``, ``gopro-front``. Also names the clock.
    device
        The reader that opened it: ``aria``, ``gopro``, ``webcam``, or a third party's.
    files
        In order; tracks refer to them by index.
    tracks
        By name, in a stable order.
    participant
        Pseudonym of the wearer, or None.
    role
        What the device does in the session (``leader``, ``front``), or None.
    calibration
        The device's own calibration as JSON text, or None.
    sync_role, shared_session_id, time_mappings
        What the device knows of other clocks.
    start_utc
        Coarse wall-clock time, or None.
    take
        Sorting key of takes of one device that was restarted; 0 for the first.
    extras
        Small further facts, as JSON-able values (recording profile, firmware...).
    """

    id: str
    device: str
    files: tuple[FileRef, ...]
    tracks: Mapping[str, Track]
    model: str = ""
    serial: str = ""
    participant: str | None = None
    role: str | None = None
    calibration: str | None = None
    sync_role: SyncRole | None = None
    shared_session_id: str | None = None
    time_mappings: tuple[TimeMapping, ...] = ()
    start_utc: UtcEstimate | None = None
    take: int = 0
    problems: tuple[Problem, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, track in self.tracks.items():
            if name != track.name:
                raise ValueError(f"track '{track.name}' is filed under '{name}'")
            if not name or "/" in name or name.startswith("."):
                raise ValueError(f"'{name}' is no track name")
        object.__setattr__(self, "tracks", MappingProxyType(dict(self.tracks)))
        object.__setattr__(self, "extras", MappingProxyType(dict(self.extras)))

    def of_kind(self, kind: str) -> Iterator[Track]:
        """Yield the tracks of a kind: ``video``, ``audio``, ``samples``, ``pose``, ..."""
        return (track for track in self.tracks.values() if track.kind == kind)

    @property
    def videos(self) -> tuple[VideoTrack, ...]:
        """Its video tracks."""
        return tuple(t for t in self.tracks.values() if isinstance(t, VideoTrack))

    @property
    def audios(self) -> tuple[AudioTrack, ...]:
        """Its sound tracks."""
        return tuple(t for t in self.tracks.values() if isinstance(t, AudioTrack))

    @property
    def first_ns(self) -> int | None:
        """Earliest device time of any timed track."""
        times = [t.first_ns for t in self.tracks.values() if t.first_ns is not None]
        return min(times, default=None)

    @property
    def last_ns(self) -> int | None:
        """Latest device time of any timed track."""
        times = [t.last_ns for t in self.tracks.values() if t.last_ns is not None]
        return max(times, default=None)


@dataclass(frozen=True, slots=True, eq=False)
class PairEvidence:
    """What two recordings' sounds say about their clocks.

    ``t_reference = offset_ns + (1 + drift_ppm / 1e6) t_other`` for the longest segment, on the
    two devices' clocks; ``maps`` holds one ``C_reference_other`` a segment, in order of time.

    Parameters
    ----------
    score, score_needed
        Raw score of the match and the least that is accepted.
    runner_up
        Score of the best other match, over the score: near 1 is ambiguous.
    windows
        How many windows agree.
    ambiguous
        Refused: it fits at more than one place. Accepted: it may be an echo, milliseconds off, or
        a recording that was played in both.
    coarse_z, likeness
        How far the place stands out when loudness is compared, in all and for each root second.
    p_match
        Probability that both are of one time and place; None where there was nothing to judge.
    window_times_ns, residuals_ns
        ``(W,)`` centre of each window on the other's clock, and what the maps leave over.
    """

    reference: str
    other: str
    accepted: bool
    reason: str
    score: float
    score_needed: float
    runner_up: float = 0.0
    windows: int = 0
    ambiguous: bool = False
    offset_ns: int | None = None
    drift_ppm: float | None = None
    sigma_ns: float | None = None
    maps: tuple[ClockMap, ...] = ()
    window_times_ns: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    residuals_ns: Float64 = field(default_factory=lambda: np.zeros(0))
    coarse_z: float | None = None
    likeness: float | None = None
    p_match: float | None = None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What an operator should know of a pair that was accepted, in words."""
        return tuple(self.reason.split("; ")[1:]) if self.accepted else ()

    @property
    def jumps(self) -> tuple[tuple[int, int], ...]:
        """``(at_ns, by_ns)`` of every break: time on the other's clock, leap of the reference."""
        pairs = zip(self.maps, self.maps[1:], strict=False)
        return tuple((b.range_ns[0], _leap(a, b)) for a, b in pairs)


def _leap(before: ClockMap, after: ClockMap) -> int:
    at = np.array([after.range_ns[0]], np.int64)
    return int(_free(after).apply(at)[0] - _free(before).apply(at)[0])


def _free(clock: ClockMap) -> ClockMap:
    return replace(clock, limit_ns=None)


@dataclass(frozen=True, slots=True, eq=False)
class RecordingClock:
    """A recording's clock on the session clock.

    Parameters
    ----------
    maps
        One ``C_session_recording`` a segment, in order of device time, valid ranges disjoint.
    method
        ``reference``, ``tic_sync``, ``subghz``, ``timecode``, ``utc``, ``sound``, ``card``,
        ``flash``, ``manual``, ``creation_time``.
    interval95_ms
        Half width of the interval that holds the true clock with 95 % probability; None: unknown.
    p_match
        Probability that the recording belongs to the session; None where nothing calibrated it.
    basis
        What the numbers rest on, in words: ``402 windows, positions unknown``.
    """

    recording: str
    maps: tuple[ClockMap, ...]
    method: str
    interval95_ms: float | None
    p_match: float | None = None
    residual_rms_ns: float = 0.0
    basis: str = ""

    def __post_init__(self) -> None:
        if not self.maps:
            raise ValueError(f"{self.recording}: a clock needs at least one map")

    def apply(self, t_ns: Int64) -> Int64:
        """Carry device times [ns] to the session clock, each through its own segment."""
        if len(self.maps) == 1:
            return self.maps[0].apply(t_ns)
        starts = np.array([m.range_ns[0] for m in self.maps[1:]], np.int64)
        segment = np.searchsorted(starts, t_ns, side="right")
        out = np.empty_like(t_ns)
        for k, clock in enumerate(self.maps):
            mine = segment == k
            out[mine] = clock.apply(t_ns[mine])
        return out


def leaps_ns(clock: RecordingClock) -> tuple[int, ...]:
    """Return by how much a clock leaps where each segment but the first begins [ns].

    A clock that follows a sound leaps where samples were lost.
    """
    pairs = zip(clock.maps, clock.maps[1:], strict=False)
    return tuple(_leap_ns(before, after, after.range_ns[0]) for before, after in pairs)


def _leap_ns(before: ClockMap, after: ClockMap, at_ns: int) -> int:
    last_ns = before.range_ns[1]  # a map carries on beyond it, where it must at its last rate
    beyond_ns = round((at_ns - last_ns) * before.rate_after)
    return int(after.apply(at_ns)) - int(before.apply(last_ns)) - beyond_ns


def picture_doubt_ns(track: VideoTrack, clock: RecordingClock) -> int:
    """Return by how much pictures may be off their recording's clock, 95 % [ns].

    Nothing where the clock was found by pictures, or where the device stamps a known moment of
    the exposure with the clock that stamps its sound; what was measured; else the default. A clock
    by sound leaps where samples were lost: the pictures may have gone on, and are then told late by
    all that was lost before them.
    """
    if clock.method in ("card", "flash"):
        return 0
    if track.time_refers_to != "unknown":
        return track.skew95_ns or 0
    skew95_ns = UNKNOWN_SKEW95_NS if track.skew95_ns is None else track.skew95_ns
    return skew95_ns + sum(abs(leap) for leap in leaps_ns(clock))


@dataclass(frozen=True, slots=True)
class LoopClosure:
    """What is left when a time is carried around a loop of recordings, at worst.

    ``recordings`` in order; from the last it goes back to the first.
    """

    recordings: tuple[str, ...]
    closure_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class SyncResult:
    """All recordings of a session on one clock, with the evidence.

    Parameters
    ----------
    reference
        The recording whose device time is the session clock.
    clocks
        By recording, for all that could be placed.
    unsynced
        By recording, why it could not be placed and what to do, in words.
    warnings
        What the operator should know: fall-backs, missing hardware time...
    loops
        How well the pairs agree with each other.
    coarse
        By recording, of some that are in ``unsynced``: a clock good to seconds or minutes, for
        those who ask for it.
    """

    reference: str
    clocks: Mapping[str, RecordingClock]
    pairs: tuple[PairEvidence, ...] = ()
    unsynced: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    loops: tuple[LoopClosure, ...] = ()
    coarse: Mapping[str, RecordingClock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class SoundTravel:
    """What a camera's clock is once the travel of sound is taken out of it, and how that is known.

    Parameters
    ----------
    recording
        Whose clock.
    accepted, reason
        Whether it is better than before, and why not, in words.
    score, score_needed
        How clearly wearers' speech is heard when it is expected, and the least that is accepted.
    runner_up
        Score of the best other clock, over the score: near 1 is ambiguous.
    windows
        How many windows of speech agree.
    clock
        The new clock; None if it was not accepted.
    position_given
        Whether somebody said where the camera stood, or sound alone had to tell.
    position_m, position_sigma_m
        Where sound says that it stood, ``(3,)`` in the world frame, and one sigma; NaN if it
        does not.
    window_times_ns, residuals_ns
        ``(W,)`` session times of the windows, and what the clock leaves over.
    losses_ns
        ``(L, 3)`` where speech says that samples were lost though the clock saw no leap: between
        which of the camera's own times, and how much. The new clock leaps there.
    """

    recording: str
    accepted: bool
    reason: str
    score: float = 0.0
    score_needed: float = 0.0
    runner_up: float = 0.0
    windows: int = 0
    clock: RecordingClock | None = None
    position_given: bool = False
    position_m: Float64 = field(default_factory=lambda: np.full(3, np.nan))
    position_sigma_m: Float64 = field(default_factory=lambda: np.full(3, np.nan))
    window_times_ns: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    residuals_ns: Float64 = field(default_factory=lambda: np.zeros(0))
    losses_ns: Int64 = field(default_factory=lambda: np.zeros((0, 3), np.int64))


RegistrationStatus: TypeAlias = Literal["accepted", "ambiguous", "degenerate", "refused"]


@dataclass(frozen=True, slots=True, eq=False)
class RegistrationResult:
    """Where one cloud lies in the frame of another, and how sure that is.

    Parameters
    ----------
    status
        ``accepted`` stands on its own; ``ambiguous`` and ``degenerate`` need a person to look;
        ``refused`` gives no transform.
    reason
        Why, in words for the operator.
    T_target_source
        ``p_target = T @ p_source``; None when refused.
    overlap
        Share of the source's points that meet the target.
    inlier_rmse_m
        Of those, point to plane [m].
    covariance
        Of a small rotation [rad] and translation [m] in the target frame about the middle of
        the overlap, shape (6, 6), rotation first; calibrated against true errors.
    weak_directions
        What the geometry does not hold, in the room's terms.
    runner_up_ratio
        Score of the best other place over that of the one given; near 1 it is ambiguous, unless
        something else decides. By pictures the scores are votes, and what the pictures show may
        speak for the place with fewer: then it is above 1.
    method
        What it is based on.
    """

    status: RegistrationStatus
    reason: str
    T_target_source: RigidTransform | None = None
    overlap: float = 0.0
    inlier_rmse_m: float = float("nan")
    covariance: Float64 | None = None
    weak_directions: tuple[str, ...] = ()
    runner_up_ratio: float = 0.0
    method: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CameraPose:
    """Where a camera of the room stood in the world frame.

    Parameters
    ----------
    recording
        Whose camera it is.
    status, reason
        As in `RegistrationResult`.
    t_device_ns
        Times on the recording's own clock, shape (K,); one for a camera that did not move.
    T_world_camera
        ``p_world = T @ p_camera`` (z forward, x right, y down), shape (K, 4, 4) [m].
    covariance
        Of one pose: small rotation [rad] and translation [m] in the world frame about the
        camera, shape (6, 6), rotation first.
    frames
        How many pictures it stands on.
    method
        What it is based on: ``given``, ``scan pictures``, ``glasses' pictures``.
    """

    recording: str
    status: RegistrationStatus
    reason: str
    t_device_ns: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    T_world_camera: Float64 = field(default_factory=lambda: np.zeros((0, 4, 4)))
    covariance: Float64 | None = None
    frames: int = 0
    method: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GeometryResult:
    """What the stage register made of a session: everything in one world frame.

    Parameters
    ----------
    world
        The recording whose MPS world frame is the session's, or empty.
    scans, wearers
        By scan id, and by recording id of other glasses: their frame in the world.
    cameras
        By recording id.
    warnings
        In words for the operator.
    """

    world: str
    scans: Mapping[str, RegistrationResult] = field(default_factory=dict)
    wearers: Mapping[str, RegistrationResult] = field(default_factory=dict)
    cameras: Mapping[str, CameraPose] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPlace:
    """Where a scanned object stands, and who says so.

    Parameters
    ----------
    by
        ``person``, or ``registration`` to the points of a scan.
    how
        In words for the operator.
    T_world_object
        None where the object's place in a scan is known, and the scan's in the world is not.
    T_scan_object
        Where it stood at the scan; None where its place was told in the world.
    sigma_m
        One sigma in the scan's frame, root mean square over its surface [m]; None where a person's
        word is all there is.
    """

    by: Literal["person", "registration"]
    how: str
    T_world_object: RigidTransform | None = None
    T_scan_object: RigidTransform | None = None
    sigma_m: float | None = None


@dataclass(frozen=True, slots=True)
class ObjectFileRecord:
    """A file of a scanned object: its name beside the main file, its size, hex blake3 of it."""

    name: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class ObjectRecord:
    """What is known of a scanned object short of its surface.

    Parameters
    ----------
    name
        Unique in the session.
    refused
        Why it could not be read, in words; empty where it was.
    unit, unit_recognised
        Of its main file's numbers, and whether its size alone tells it.
    size_m
        ``(3,)`` extent along the axes of its file [m].
    triangles
        How many its surface has.
    watertight, textured
        Whether the surface is closed, and whether it has a texture.
    files
        The main file first.
    notes
        What the operator should know.
    place
        Where it stands; None where nobody says so.
    """

    name: str
    refused: str = ""
    unit: str = ""
    unit_recognised: bool = False
    size_m: Float64 = field(default_factory=lambda: np.zeros(3))
    triangles: int = 0
    watertight: bool = False
    textured: bool = False
    files: tuple[ObjectFileRecord, ...] = ()
    notes: tuple[str, ...] = ()
    place: ObjectPlace | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word on the session clock; start and end are None, never 0, where unknown."""

    text: str
    start_ns: int | None
    end_ns: int | None
    probability: float | None = None
    speaker: str | None = None
    device: str = ""
    timing_source: str = ""
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Words that one person says in one breath.

    ``words`` are positions in the transcript's words, in their order.
    """

    start_ns: int
    end_ns: int
    speaker: str | None
    device: str
    words: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SpeakerCalibration:
    """What told apart the wearers of two devices.

    Parameters
    ----------
    devices
        The two, whose levels were compared.
    learned
        Whether the talk itself told the threshold; else it is assumed that both devices are
        equally sensitive.
    threshold_db
        Level of the first over the second above which the first's wearer speaks.
    separation_db, smaller_share
        Between the middles of the two kinds of talk, and how much of it the rarer kind is.
    offset_ms
        How much later the second device heard the same, after sync; None where it could not be
        told.
    reason
        In words for the operator.
    """

    devices: tuple[str, str]
    learned: bool
    threshold_db: float
    separation_db: float
    smaller_share: float
    offset_ms: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was said, and how it was found out.

    Parameters
    ----------
    words
        In order of their start; those without one come last.
    language
        ISO 639-1 code, empty where nothing was said.
    language_probability
        None where the language was given.
    backend, model
        What recognised it.
    facts
        Device, precision, and whatever else decided the result, as JSON-able values.
    warnings
        What the operator should know.
    """

    words: tuple[Word, ...]
    segments: tuple[Segment, ...] = ()
    language: str = ""
    language_probability: float | None = None
    backend: str = ""
    model: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibrations: tuple[SpeakerCalibration, ...] = ()
    warnings: tuple[str, ...] = ()


def _own_times(record: object, name: str, *, ordered: bool) -> None:
    """Take a read-only int64 copy of a field of times and, where asked, check its order."""
    given = np.asarray(getattr(record, name))
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"{name} must be integer nanoseconds, got {given.dtype}")
    times = np.array(given, np.int64, copy=True).reshape(-1)
    if ordered and (np.diff(times) < 0).any():
        raise ValueError(f"{name} must not go back")
    times.setflags(write=False)
    object.__setattr__(record, name, times)


def _own_table(record: object, name: str, dtype: np.dtype[Any]) -> None:
    table = np.array(getattr(record, name), copy=True)
    if table.dtype != dtype:
        raise TypeError(f"{name} has type {table.dtype}, expected {dtype}")
    table.setflags(write=False)
    object.__setattr__(record, name, table)
