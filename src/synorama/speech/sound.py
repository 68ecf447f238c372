"""What one device heard, on a grid of 16 kHz of its own clock, and how that lies in the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import DamagedSoundError, NoSoundError
from synorama.media.audio import read_mono
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from synorama.media.source import MediaSource
    from synorama.records import AudioTrack, Recording, RecordingClock

    Int16 = NDArray[np.int16]
    Int64 = NDArray[np.int64]

__all__ = ["SPEECH_HZ", "DeviceSound", "from_samples", "read_device"]

SPEECH_HZ = 16_000
NS_PER_SAMPLE = NS_PER_S // SPEECH_HZ
FULL_SCALE = 32_767


@dataclass(frozen=True, slots=True, eq=False)
class DeviceSound:
    """One device's sound.

    Parameters
    ----------
    device
        The recording.
    samples
        ``(N,)`` int16 at `SPEECH_HZ`.
    start_ns
        Time of the first sample on the device's clock.
    gain
        What full scale 1 was multiplied by: levels of two devices are compared without it.
    speaker
        Who wears the device; None for a device that nobody wears.
    worn
        Whether its nearest voice is its wearer's, named or not.
    clock
        The device's clock on the session clock; None where both are one.
    warnings
        What the operator should know of this sound.
    """

    device: str
    samples: Int16
    start_ns: int = 0
    gain: float = float(FULL_SCALE)
    speaker: str | None = None
    worn: bool = False
    clock: RecordingClock | None = None
    warnings: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / SPEECH_HZ

    def session_ns(self, positions: Int64) -> Int64:
        """Return session times [ns] of samples ``(n,)``, which need not be whole."""
        device = self.start_ns + np.rint(np.asarray(positions) * NS_PER_SAMPLE).astype(np.int64)
        return device if self.clock is None else _without_limit(self.clock).apply(device)


def _without_limit(clock: RecordingClock) -> RecordingClock:
    """Sound may begin some time before the clocks were first compared."""
    return replace(clock, maps=tuple(replace(m, limit_ns=None) for m in clock.maps))


def from_samples(device: str, samples: NDArray[Any], **facts: Any) -> DeviceSound:
    """Take one channel of sound at 16 kHz as it is held in memory.

    Parameters
    ----------
    samples
        ``(N,)`` float of full scale 1, or int16.
    **facts
        Further fields of `DeviceSound`.

    Raises
    ------
    DamagedSoundError
        It is no single channel, holds NaN or infinity, or is of another kind of number.
    NoSoundError
        It is empty.
    """
    array = np.asarray(samples)
    if array.ndim != 1:
        raise DamagedSoundError(
            f"'{device}': sound of shape {array.shape}, expected one channel (N,)",
            hint="take one channel, or average them",
        )
    if not len(array):
        raise NoSoundError(f"'{device}': no sound at all", hint="check that the microphone was on")
    return DeviceSound(device, _as_int16(device, array), **facts)


def _as_int16(device: str, array: NDArray[Any]) -> Int16:
    if array.dtype == np.int16:
        return np.array(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise DamagedSoundError(
            f"'{device}': sound of type {array.dtype}, expected int16, or floats of full scale 1",
            hint="divide integers by their full scale",
        )
    if not np.isfinite(array).all():
        bad = int(np.count_nonzero(~np.isfinite(array)))
        raise DamagedSoundError(
            f"'{device}': {bad} of {len(array)} samples are no numbers",
            hint="repair what wrote them; NaN would make the words around it vanish",
        )
    if float(np.abs(array).max()) > 2.0:
        raise DamagedSoundError(
            f"'{device}': float samples up to {np.abs(array).max():.0f}, expected full scale 1",
            hint="divide by the full scale of the integers that they came from",
        )
    return np.asarray(np.rint(np.clip(array, -1, 1) * FULL_SCALE), np.int16)


def read_device(
    recording: Recording,
    *,
    sources: Sequence[Path | MediaSource] | None = None,
    speaker: str | None = None,
    worn: bool = False,
    clock: RecordingClock | None = None,
) -> DeviceSound:
    """Decode the longest sound of a recording.

    What does not decode counts as silence, and is told in the result's ``warnings``.

    Raises
    ------
    NoSoundError
        The recording has no sound.
    DamagedSoundError
        More than half of it is NaN.
    InputError
        Nothing of it decodes.
    """
    track = _longest(recording)
    sound = read_mono(sources or [f.path for f in recording.files], track, rate_hz=SPEECH_HZ)
    warnings = (*_lost(recording, track), *_not_finite(recording, track, sound.not_finite))
    return DeviceSound(
        recording.id,
        sound.samples,
        sound.start_ns,
        sound.gain or 1.0,
        speaker,
        worn,
        clock,
        warnings,
    )


def _longest(recording: Recording) -> AudioTrack:
    tracks = [t for t in recording.audios if t.sample_count]
    if not tracks:
        raise NoSoundError(
            "the recording has no sound",
            path=recording.files[0].path if recording.files else None,
            hint="record with the microphone on",
        )
    return max(tracks, key=lambda t: t.sample_count / t.rate_hz)


def _lost(recording: Recording, track: AudioTrack) -> list[str]:
    """Return what is known to be missing of a sound: words may be missing there, too."""
    known = [p for p in recording.problems if p.severe and p.track in ("", track.name)]
    return [f"{recording.id}: {p.text}" for p in known]


def _not_finite(recording: Recording, track: AudioTrack, count: int) -> list[str]:
    if not count:
        return []
    share = count / max(track.sample_count * track.channels, 1)
    if share > 0.5:
        raise DamagedSoundError(
            f"{100 * share:.0f} % of its samples are no numbers",
            path=recording.files[0].path,
            hint="export the sound again, as 16-bit PCM",
        )
    return [f"{recording.id}: {count} samples are no numbers and count as silence"]
