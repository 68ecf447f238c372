"""Project Aria glasses, first and second generation: VRS recordings, and MPS output beside them.

Stream names are the vendor's labels without their ``camera-`` prefix (``StreamIdLabelMapper.cpp``
of https://github.com/facebookresearch/projectaria_tools); times are DEVICE_TIME, the one clock
that all sensors of a pair of glasses share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture.aria.media import audio_track, video_tracks
from synorama.capture.aria.samples import count_words, sample_track
from synorama.capture.aria.tables import table_for
from synorama.capture.container.vrs import (
    VrsFile,
    first_chunk,
    open_vrs,
    read_tags,
    starts_like_vrs,
)
from synorama.capture.mps import SERVICES, find_mps, mappings_left, mps_tracks
from synorama.capture.reader import Reader, Take
from synorama.errors import InputError, NotAriaError
from synorama.records import (
    FileRef,
    Problem,
    Recording,
    SampleTrack,
    TimeMapping,
    Track,
    UtcEstimate,
    VideoTrack,
)
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from synorama.records import SyncMode, SyncRole

__all__ = ["READER", "open_aria", "sniff", "takes"]

_GENERATIONS = {"device/aria": 1, "device/oatmeal": 2}
_CAMERAS, _MICROPHONES, _TIME_MAPPINGS = (211, 214, 1201), 231, 285
_LABELS = {
    1: {
        "1201-1": "slam-left",
        "1201-2": "slam-right",
        "1202-1": "imu-right",
        "1202-2": "imu-left",
        "1203-1": "mag",
        "211-1": "et",
        "214-1": "rgb",
        "231-1": "mic",
        "247-1": "baro",
        "281-1": "gps",
        "281-2": "gps-app",
        "282-1": "wps",
        "283-1": "bluetooth",
    },
    2: {
        "1201-1": "slam-front-left",
        "1201-2": "slam-front-right",
        "1201-3": "slam-side-left",
        "1201-4": "slam-side-right",
        "1202-1": "imu-left",
        "1202-2": "imu-right",
        "1203-1": "mag",
        "211-1": "et-left",
        "211-2": "et-right",
        "214-1": "rgb",
        "231-1": "mic",
        "246-1": "temperature",
        "247-1": "baro",
        "248-1": "ppg",
        "281-1": "gps-app",
        "281-2": "gps",
        "282-1": "wps",
        "283-1": "bluetooth",
        "373-1": "eyegaze",
        "500-1": "als",
    },
}
_FLAVOR_LABELS = {
    "device/oatmeal/hand": "handtracking",
    "device/oatmeal/vio": "vio",
    "device/oatmeal/vio_high_frequency": "vio-high-frequency",
}
_SIDEWAYS = ("rgb", "slam-left", "slam-right")  # of the first generation: turn right to be upright
_SYNC_MODES: dict[str, SyncMode] = {
    "TIC_SYNC": "tic_sync",
    "SUBGHZ": "subghz",
    "TIMECODE": "timecode",
    "APP": "utc",
    "UTC": "utc",
}
_SYNC_ROLES: dict[str, SyncRole] = {
    "server": "server",
    "client": "client",
    "broadcaster": "broadcaster",
    "receiver": "receiver",
}
_GLASSES_EXIST_SINCE_S = 1_577_836_800  # 2020-01-01: an earlier clock was never set
_START_SIGMA_S = 2.0  # whole seconds, and recording starts some time after the stamp
_PHONE_SIGMA_S = 1.0
_CLOCK_SAMPLE_SIGMA_S = 0.1
_SAME_BOOT_NS = 3600 * NS_PER_S


def sniff(path: Path) -> bool:
    """Tell whether a file is (a chunk of) a VRS recording.

    VRS of other devices is recognised too, so that `open_aria` can say what is wrong with it.
    """
    return starts_like_vrs(path) or path.suffix.lower().startswith(".vrs_")


def takes(paths: Sequence[Path]) -> tuple[Take, ...]:
    """Group the chunks of each recording; glasses that were restarted give several.

    Folders of MPS output go with their recording: what arrives days later makes it anew.
    """
    chunks: dict[Path, list[Path]] = {}
    for path in sorted(paths):
        chunks.setdefault(first_chunk(path), []).append(path)
    return tuple(_take(first, found) for first, found in sorted(chunks.items()))


def _take(first: Path, found: list[Path]) -> Take:
    ordered = sorted(found, key=lambda p: (p != first, len(p.name), p.name))
    why = "one file" if len(ordered) == 1 else f"{len(ordered)} chunks of {first.name}"
    try:
        serial = read_tags(first).get("device_serial", "")
    except InputError:  # opening it says what is wrong
        serial = ""
    return Take(tuple(ordered), companions=_mps_folders(first), serial=serial, why=why)


def _mps_folders(first: Path) -> tuple[Path, ...]:
    """Return the folders that hold nothing but MPS output of a recording."""
    try:
        found = find_mps(first)
    except InputError:  # opening it says what is wrong
        return ()
    own = first.parent
    beside = [own / name for name in SERVICES if own in found and (own / name).is_dir()]
    return (*(folder for folder in found if folder != own), *beside)


def open_aria(path: Path) -> Recording:
    """Open the recording of a pair of Aria glasses that a file belongs to.

    Parameters
    ----------
    path
        The VRS file or any of its chunks.

    Returns
    -------
    Recording
        With a track for every stream that the vendor's reader lists. No picture is decoded.

    Raises
    ------
    NotAriaError
        The VRS file is not of Aria glasses.
    synorama.errors.InputError
        As `synorama.capture.container.vrs.open_vrs`.
    """
    vrs = open_vrs(path)
    glasses = _identify(vrs)
    tracks, problems = _tracks(vrs, glasses)
    mappings = tuple(_time_mappings(vrs))
    start_utc = _start_utc(glasses, tracks, mappings)
    problems += _add_mps(vrs.paths[0], tracks)
    return Recording(
        id="aria",
        device="aria",
        files=tuple(_file_ref(p) for p in vrs.paths),
        tracks=tracks,
        model=f"Aria Gen {glasses.generation}",
        serial=glasses.serial,
        calibration=glasses.calibration,
        sync_role=glasses.sync_role,
        shared_session_id=glasses.shared_session_id,
        time_mappings=mappings,
        start_utc=start_utc,
        problems=(
            *_file_problems(vrs),
            *_clock_problems(glasses, mappings),
            *problems,
        ),
        extras=_extras(vrs, glasses),
    )


READER = Reader(name="aria", suffixes=(".vrs",), sniff=sniff, open=open_aria, takes=takes)


# --- which glasses ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Glasses:
    generation: int
    serial: str
    calibration: str | None
    sync_role: SyncRole | None
    shared_session_id: str | None
    tags: Mapping[str, str]
    metadata: Mapping[str, Any]


def _identify(vrs: VrsFile) -> _Glasses:
    metadata = _json_object(vrs.tags.get("metadata", ""))
    generation = _generation(vrs)
    device, recording = _part(metadata, "device"), _part(metadata, "recording")
    return _Glasses(
        generation=generation,
        serial=vrs.tags.get("device_serial") or str(device.get("serial", "")),
        calibration=_calibration(vrs, device),
        sync_role=_sync_role(metadata, recording),
        shared_session_id=_shared_session(metadata, recording),
        tags=vrs.tags,
        metadata=metadata,
    )


def _generation(vrs: VrsFile) -> int:
    for stream in vrs.streams.values():
        family = "/".join(stream.flavor.split("/")[:2])
        if family in _GENERATIONS:
            return _GENERATIONS[family]
    maker = vrs.tags.get("device_type") or "another device"
    raise NotAriaError(
        f"this VRS file was written by {maker}, not by Aria glasses: none of its "
        f"{count_words(len(vrs.streams), 'stream')} is of Aria",
        path=vrs.paths[0],
        hint="leave the file out of the session's folder",
    )


def _calibration(vrs: VrsFile, device: Mapping[str, Any]) -> str | None:
    """Return the factory calibration as the vendor's reader takes it, as JSON text.

    It is the tag ``calib_json``; recordings without the tag carry the same text in their
    metadata or in the configuration of their streams.
    """
    if text := vrs.tags.get("calib_json"):
        return text
    if inner := device.get("calibration"):
        return inner if isinstance(inner, str) else json.dumps(inner)
    configs = (vrs.first(s) for s in vrs.streams if s.startswith(("1201-", "1202-")))
    return next((text for c in configs if (text := c.get("factory_calibration"))), None)


def _sync_role(metadata: Mapping[str, Any], recording: Mapping[str, Any]) -> SyncRole | None:
    mode = metadata.get("ticsync_mode") or recording.get("subghz_mode") or ""
    return _SYNC_ROLES.get(str(mode).lower())


def _shared_session(metadata: Mapping[str, Any], recording: Mapping[str, Any]) -> str | None:
    shared = metadata.get("shared_session_id") or recording.get("shared_session_id")
    return str(shared) if shared else None


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _part(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = metadata.get(name)
    return part if isinstance(part, dict) else {}


def _file_ref(path: Path) -> FileRef:
    stat = path.stat()
    return FileRef(path, stat.st_size, stat.st_mtime_ns)


def _extras(vrs: VrsFile, glasses: _Glasses) -> dict[str, Any]:
    recording = _part(glasses.metadata, "recording")
    profile = glasses.metadata.get("recording_profile") or recording.get("profile_name") or ""
    known = {stream for stream, _ in _readable(vrs, glasses)}
    other = [s for s in vrs.streams if s not in known and _type_of(s) != _TIME_MAPPINGS]
    return {
        "generation": glasses.generation,
        "recording_profile": str(profile),
        "firmware": glasses.tags.get("firmware_version", ""),
        "index_rebuilt": vrs.rebuilt,
        "unread_streams": other,
    }


# --- tracks ----------------------------------------------------------------------------------


def _tracks(vrs: VrsFile, glasses: _Glasses) -> tuple[dict[str, Track], list[Problem]]:
    tracks: dict[str, Track] = {}
    problems: list[Problem] = []
    for stream, name in _readable(vrs, glasses):
        made, found = _stream_tracks(vrs, glasses, stream, name)
        tracks.update({track.name: track for track in made})
        problems.extend(found)
    return tracks, problems


def _add_mps(path: Path, tracks: dict[str, Track]) -> list[Problem]:
    """Add the tracks of MPS output; of two folders with the same track the first counts."""
    problems: list[Problem] = []
    for folder in find_mps(path):
        try:
            found, said = mps_tracks(folder)
        except InputError as error:  # the glasses' own streams are whole without it
            problems.append(Problem("mps_unreadable", f"MPS output: {error}", severe=True))
            continue
        for track in found:
            tracks.setdefault(track.name, track)
        problems.extend(said)
    return problems + [_left(mapping) for mapping in mappings_left(path)]


def _left(mapping: Path) -> Problem:
    text = (
        f"{mapping.parent.name}/{mapping.name} has an entry of this file's name, but in another "
        "folder, and was left: if it is this session's, put that multi-SLAM output beside the VRS "
        "file"
    )
    return Problem("mps_left", text)


def _readable(vrs: VrsFile, glasses: _Glasses) -> Iterator[tuple[str, str]]:
    """Yield the streams that become tracks, and their names, pictures and sound first."""
    ranked = sorted(vrs.streams, key=lambda s: (not _is_media(s), *map(int, s.split("-"))))
    for stream in ranked:
        flavor = vrs.streams[stream].flavor
        if _is_media(stream) or table_for(_type_of(stream), flavor, glasses.generation):
            label = _LABELS[glasses.generation].get(stream) or _FLAVOR_LABELS.get(flavor)
            yield stream, label or f"stream-{stream}"


def _stream_tracks(
    vrs: VrsFile, glasses: _Glasses, stream: str, name: str
) -> tuple[tuple[Track, ...], tuple[Problem, ...]]:
    if _type_of(stream) in _CAMERAS:
        rotation = 90 if glasses.generation == 1 and name in _SIDEWAYS else 0
        video, exposure, problems = video_tracks(vrs, stream, name, rotation)
        return (video, exposure), problems
    if _type_of(stream) == _MICROPHONES:
        audio, problems = audio_track(vrs, stream, name)
        return (audio,), problems
    table = table_for(_type_of(stream), vrs.streams[stream].flavor, glasses.generation)
    assert table is not None, f"{stream} is listed as readable"
    samples, problems = sample_track(vrs, stream, name, table, _nominal_rate(vrs, stream))
    return (samples,), problems


def _nominal_rate(vrs: VrsFile, stream: str) -> float | None:
    config = vrs.first(stream)
    names = ("nominal_rate", "nominal_rate_hz", "sample_rate", "sample_rate_hz")
    rate = next((float(config[n]) for n in names if n in config), 0.0)
    return rate if np.isfinite(rate) and rate > 0 else None


def _is_media(stream: str) -> bool:
    return _type_of(stream) in (*_CAMERAS, _MICROPHONES)


def _type_of(stream: str) -> int:
    return int(stream.split("-")[0])


# --- other clocks ----------------------------------------------------------------------------


def _time_mappings(vrs: VrsFile) -> Iterator[TimeMapping]:
    """Yield what the glasses observed of other clocks, one mapping a stream that holds any."""
    for stream in vrs.streams:
        if _type_of(stream) != _TIME_MAPPINGS:
            continue
        mode = _SYNC_MODES.get(str(vrs.first(stream).get("mode", "")))
        records = vrs.select(stream)
        if mode is None or not len(records):
            continue
        fields = vrs.columns(stream, records)
        pairs = np.column_stack([fields["monotonic_timestamp_ns"], fields["real_timestamp_ns"]])
        yield TimeMapping(mode, pairs[np.argsort(pairs[:, 0], kind="stable")])


def _start_utc(
    glasses: _Glasses, tracks: Mapping[str, Track], mappings: Sequence[TimeMapping]
) -> UtcEstimate | None:
    """Return coarse wall-clock time from the best source there is, None if no clock was set."""
    firsts = [t.first_ns for t in tracks.values() if t.first_ns is not None]
    lasts = [t.last_ns for t in tracks.values() if t.last_ns is not None]
    if not firsts:
        return None
    candidates = (
        _utc_from_phone(mappings),
        _utc_from_sample(glasses.tags, min(firsts), max(lasts)),
        _utc_from_start(glasses, tracks, min(firsts)),
    )
    return next((c for c in candidates if c and _is_set(c.utc_ns)), None)


def _utc_from_phone(mappings: Sequence[TimeMapping]) -> UtcEstimate | None:
    notes = next((m.pairs for m in mappings if m.mode == "utc"), None)
    pairs = None if notes is None else notes[notes[:, 1] > 0]  # -1: it had not answered yet
    if pairs is None or not len(pairs):
        return None
    return UtcEstimate(int(pairs[0, 0]), int(pairs[0, 1]), _PHONE_SIGMA_S, "phone")


def _utc_from_sample(tags: Mapping[str, str], first_ns: int, last_ns: int) -> UtcEstimate | None:
    """Use simultaneous samples of the monotonic and the wall clock, if they are the glasses'.

    A converter on another computer writes its own clocks into the same tags: the monotonic
    sample then lies far from the recording.
    """
    try:
        device_ns = int(tags["monotonic_clock_sample_ns"])
        utc_ns = int(tags["realtime_clock_sample_ns"])
    except (KeyError, ValueError):
        return None
    if not first_ns - _SAME_BOOT_NS <= device_ns <= last_ns + _SAME_BOOT_NS:
        return None
    return UtcEstimate(device_ns, utc_ns, _CLOCK_SAMPLE_SIGMA_S, "clock_sample")


def _utc_from_start(
    glasses: _Glasses, tracks: Mapping[str, Track], first_ns: int
) -> UtcEstimate | None:
    """Use the start time that the recording states, in whole seconds.

    A clip that was cut from a recording still states the recording's start: its first frame
    number tells how much may lie before it, and sigma covers that.
    """
    start = _stated_start_s(glasses)
    if start is None:
        return None
    before_s = min((_frames_before_s(t, tracks) for t in tracks.values()), default=0.0)
    sigma_s = float(np.hypot(_START_SIGMA_S, before_s if np.isfinite(before_s) else 0.0))
    return UtcEstimate(first_ns, start * NS_PER_S + NS_PER_S // 2, sigma_s, "start_time")


def _stated_start_s(glasses: _Glasses) -> int | None:
    recording = _part(glasses.metadata, "recording")
    stated = (
        recording.get("start_time"),
        glasses.metadata.get("start_time"),
        glasses.tags.get("capture_time_epoch"),
    )
    value = next((v for v in stated if v), None)
    try:
        return None if value is None else int(float(value))
    except (TypeError, ValueError):
        return None


def _frames_before_s(track: Track, tracks: Mapping[str, Track]) -> float:
    """Return how much recording the first frame's number says lies before it."""
    exposure = tracks.get(f"{track.name}-exposure")
    if not isinstance(track, VideoTrack) or not isinstance(exposure, SampleTrack):
        return float("inf")
    if not track.count or not track.rate_hz:
        return float("inf")
    number = int(exposure.read().extra["frame_number"][0])
    return max(number, 0) / track.rate_hz


def _is_set(utc_ns: int) -> bool:
    return utc_ns >= _GLASSES_EXIST_SINCE_S * NS_PER_S


# --- problems --------------------------------------------------------------------------------


def _file_problems(vrs: VrsFile) -> Iterator[Problem]:
    if vrs.lost_records or (vrs.cut_bytes and vrs.closed):
        lost = f"{vrs.lost_records} records are lost" if vrs.lost_records else "its end is lost"
        yield Problem(
            "truncated",
            f"the file was cut: {lost}, {len(vrs.records)} records are kept; copy it again from "
            "the glasses",
            severe=True,
        )
    elif vrs.rebuilt:
        why = "was never closed" if not vrs.closed else "has a broken index"
        cut = f"; the last {vrs.cut_bytes} bytes hold no whole record" if vrs.cut_bytes else ""
        yield Problem(
            "index_rebuilt",
            f"the recording {why}: its {len(vrs.records)} records were found by walking "
            f"through the file{cut}",
        )


def _clock_problems(glasses: _Glasses, mappings: Sequence[TimeMapping]) -> Iterator[Problem]:
    modes = {m.mode for m in mappings}
    needed = {"client": "tic_sync", "receiver": "subghz"}.get(glasses.sync_role or "")
    if needed and needed not in modes:
        yield Problem(
            "clock_never_synchronised",
            f"the glasses were a {glasses.sync_role}, but their clock was never synchronised "
            "with the other glasses: they are placed by sound",
            severe=True,
        )
    start = _stated_start_s(glasses)
    if start is not None and not _is_set(start * NS_PER_S):
        yield Problem(
            "clock_not_set",
            "the glasses' calendar was never set, so the recording's date is unknown",
        )
