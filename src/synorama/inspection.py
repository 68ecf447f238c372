"""What is in recordings, in plain facts and plain words: the content of ``synorama inspect``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synorama.errors import InputError, SynoramaError
from synorama.records import (
    AudioTrack,
    FileRef,
    Problem,
    Recording,
    SampleTrack,
    Track,
    VideoTrack,
)

__all__ = ["Check", "describe", "field_checks", "problem_texts", "with_digests"]

AUDIBLE_RMS = 10 ** (-70 / 20)
LISTEN_S = 2.0
FIELD_SIGMA_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One check before the participants leave: what was looked at, and how it came out."""

    name: str
    passed: bool
    text: str


def describe(recording: Recording) -> dict[str, Any]:
    """Return the facts of a recording as JSON-able values, as ``inspect --json`` prints them."""
    return {
        "id": recording.id,
        "device": recording.device,
        "model": recording.model,
        "role": recording.role,
        "participant": recording.participant,
        "clock": clock_in_words(recording),
        "files": [{"name": f.name, "bytes": f.bytes, "digest": f.digest} for f in recording.files],
        "tracks": [_describe_track(track) for track in recording.tracks.values()],
        "problems": problem_texts(recording.problems),
    }


def clock_in_words(recording: Recording) -> str:
    """Say what the recording's clock knows of other clocks."""
    names = {
        "server": "TICSync server",
        "client": "TICSync client",
        "broadcaster": "SubGHz broadcaster",
        "receiver": "SubGHz receiver",
    }
    role = names.get(recording.sync_role or "", "")
    others = {"tic_sync": "TICSync", "subghz": "SubGHz", "timecode": "time code", "utc": "UTC"}
    known = [
        others[m.mode] for m in recording.time_mappings if m.mode in ("timecode", "utc") or not role
    ]
    return ", ".join(([role] if role else []) + known) or "own"


def problem_texts(problems: Iterable[Problem]) -> list[str]:
    """Return problems in plain words, each with the track that it is about."""
    return [f"{p.track}: {p.text}" if p.track else p.text for p in problems]


def _describe_track(track: Track) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": track.name,
        "kind": track.kind,
        "codec": None,
        "count": track.count,
        "first_ns": track.first_ns,
        "last_ns": track.last_ns,
        "rate_hz": None,
        "width": None,
        "height": None,
        "channels": None,
    }
    if isinstance(track, VideoTrack):
        facts |= {"codec": track.codec, "width": track.width, "height": track.height}
    if isinstance(track, AudioTrack):
        facts |= {"codec": track.codec, "channels": track.channels}
    if isinstance(track, VideoTrack | AudioTrack | SampleTrack):
        facts["rate_hz"] = measured_rate_hz(track)
    return facts


def measured_rate_hz(track: VideoTrack | AudioTrack | SampleTrack) -> float | None:
    """Return steps per second between first and last time, rounded; None for less than two."""
    if track.count < 2 or track.first_ns is None or track.last_ns is None:
        return None
    seconds = (track.last_ns - track.first_ns) / 1e9
    return round((track.count - 1) / seconds, 4) if seconds > 0 else None


def with_digests(recording: Recording) -> Recording:
    """Return the recording with the blake3 digest of every file, which reads all its bytes."""
    return replace(recording, files=tuple(_with_digest(f) for f in recording.files))


def _with_digest(file: FileRef) -> FileRef:
    import blake3

    digest = blake3.blake3()
    digest.update_mmap(file.path)
    return replace(file, digest=digest.hexdigest())


# --- before the participants leave -----------------------------------------------------------


def field_checks(recordings: Sequence[Recording], failed: Iterable[SynoramaError]) -> list[Check]:
    """Check what can still be mended by recording again, while everybody is there.

    Parameters
    ----------
    recordings
        All recordings of the session.
    failed
        The errors of files that could not be opened.
    """
    glasses = [r for r in recordings if r.device == "aria"]
    checks = [_all_open(failed), *(_complete(r) for r in recordings)]
    if len(glasses) > 1:
        checks += [_same_session(glasses), _one_server(glasses), _same_profile(glasses)]
    checks += [_settled(r) for r in glasses if r.sync_role in ("client", "receiver")]
    checks += [_audible(r) for r in recordings]
    checks += _overlapping(recordings)
    return checks


def _all_open(failed: Iterable[SynoramaError]) -> Check:
    texts = [str(error) for error in failed]
    return Check("files", not texts, "; ".join(texts) or "every file can be opened")


def _complete(recording: Recording) -> Check:
    severe = problem_texts(p for p in recording.problems if p.severe)
    return Check(f"{recording.id}: data", not severe, "; ".join(severe) or "complete")


def _same_session(glasses: Sequence[Recording]) -> Check:
    ids = {r.shared_session_id for r in glasses}
    if ids == {None}:
        return Check("shared session", False, "the glasses were not started as one session")
    if len(ids) > 1:
        return Check("shared session", False, "the glasses name different shared sessions")
    return Check("shared session", True, "the glasses name the same shared session")


def _one_server(glasses: Sequence[Recording]) -> Check:
    leads = [r.id for r in glasses if r.sync_role in ("server", "broadcaster")]
    if len(leads) == 1:
        return Check("hardware time", True, f"{leads[0]} gives the time")
    found = "none of the glasses gives" if not leads else ", ".join(leads) + " all give"
    return Check("hardware time", False, f"{found} the time, and exactly one must")


def _same_profile(glasses: Sequence[Recording]) -> Check:
    profiles = {str(r.extras.get("recording_profile", "unknown")) for r in glasses}
    text = "recording profile " + ", ".join(sorted(profiles))
    return Check("profile", len(profiles) == 1, text)


def _settled(recording: Recording) -> Check:
    from synorama.sync.hardware import LEAST_SETTLED_S, SETTLE_S, fit_mapping

    name = f"{recording.id}: hardware clock"
    shared = [m for m in recording.time_mappings if m.mode in ("tic_sync", "subghz")]
    clock = fit_mapping(shared[0], "session", recording.id) if shared else None
    if clock is None:
        return Check(name, False, "the clock was never synchronised")
    pairs, sigma = shared[0].pairs, max(m.sigma_ns for m in clock.maps)
    seconds = (int(pairs[-1, 0]) - int(pairs[0, 0])) / 1e9
    needed = SETTLE_S + LEAST_SETTLED_S
    if shared[0].mode == "tic_sync" and seconds < needed:
        text = f"synchronised for {seconds:.0f} s only; it needs {needed:.0f} s to settle"
        return Check(name, False, text)
    text = f"known to {sigma / 1e6:.3f} ms (one sigma) over {seconds:.0f} s"
    return Check(name, sigma <= FIELD_SIGMA_NS, text)


def _audible(recording: Recording) -> Check:
    name = f"{recording.id}: microphone"
    if not recording.audios:
        return Check(name, False, "it recorded no sound, and can be placed by sound only with it")
    track = recording.audios[0]
    try:
        loudest = max(_level(recording, track, share) for share in (0.1, 0.5, 0.9))
    except InputError as error:
        return Check(name, False, f"its sound cannot be heard: {error.message}")
    if loudest < AUDIBLE_RMS:
        return Check(name, False, "silent wherever it was listened to: muted or broken")
    return Check(name, True, f"audible, {20 * _log10(loudest):.0f} dB of full scale")


def _log10(x: float) -> float:
    import math

    return math.log10(x)


def _level(recording: Recording, track: AudioTrack, share: float) -> float:
    """Return the root mean square of the loudest channel of two seconds at a share of the way."""
    import numpy as np

    from synorama.media.audio import read_audio
    from synorama.media.source import MediaSource

    count = min(int(LISTEN_S * track.rate_hz), track.sample_count)
    first = int(share * (track.sample_count - count))
    sources = [MediaSource(f.path) for f in recording.files]
    sound = read_audio(sources, track, first, count)
    if not sound.size:  # a damaged header may leave a track without channels
        return 0.0
    return float(np.sqrt(np.mean(sound.astype(np.float64) ** 2, axis=0)).max())


def _overlapping(recordings: Sequence[Recording]) -> list[Check]:
    """Compare coarse wall-clock times: enough to notice a camera that was started an hour late."""
    spans = [span for r in recordings if (span := _utc_span(r)) is not None]
    if len(spans) < 2:
        return []
    late = max(start for start, _, _ in spans)
    early = min(end for _, end, _ in spans)
    slack = max(sigma for _, _, sigma in spans)
    if early > late:
        return [Check("overlap", True, f"all recordings share {(early - late):.0f} s")]
    text = f"some recordings miss each other by {late - early:.0f} s"
    if late - early <= 2 * slack:
        text += f", but wall clocks are known to {slack:.0f} s only"
    return [Check("overlap", late - early <= 2 * slack, text)]


def _utc_span(recording: Recording) -> tuple[float, float, float] | None:
    utc, first, last = recording.start_utc, recording.first_ns, recording.last_ns
    if utc is None or first is None or last is None:
        return None
    shift = utc.utc_ns - utc.device_ns
    return (first + shift) / 1e9, (last + shift) / 1e9, utc.sigma_s
