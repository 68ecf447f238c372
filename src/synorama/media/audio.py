"""Sound of a recording: exact samples by index, and one channel on a uniform grid.

An `AudioTrack` states the device time of every sample index. What an index means is settled
here, for adapters and readers alike: it counts the samples that the decoder delivers, in order,
over all files of the recording. For containers FFmpeg delivers them after removing priming and
padding (see `synorama.media.audio_container`); the knots of the track say where they belong, and
agree with the presentation times of the decoded frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import CorruptFileError, NoSoundError
from synorama.media.audio_container import decode_joined, decode_span
from synorama.media.audio_packets import decode_blocks, decode_packet_span
from synorama.media.resample import Run, UniformGrid, continuous_runs
from synorama.media.source import MediaSource, as_sources

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import AudioTrack

    Float32 = NDArray[np.float32]

__all__ = ["MonoSound", "read_audio", "read_mono"]

NS_PER_S = 1_000_000_000
LOUDNESS = 1000.0  # root mean square that a `MonoSound` is scaled to
FULL = 32_767
QUIETEST, LOUDEST = 1e-12, 64.0  # of full scale; beyond, it is silence, or damage
LONGEST_HOLE_S = 4 * 3600  # silence of this length still fits into memory
FEED = 1 << 16  # samples that go through the resampler at a time


@dataclass(frozen=True, slots=True, eq=False)
class MonoSound:
    """One channel of sound on a uniform grid of its device's clock.

    Parameters
    ----------
    name
        The recording, which also names the clock.
    start_ns
        Device time of the first sample; sample ``k`` is at ``start_ns + k / rate_hz``.
    rate_hz
        Rate of the grid.
    samples
        ``(N,)`` int16, scaled to a common loudness; holes are zeros.
    gain
        What full scale 1 was multiplied by.
    not_finite
        How many of the decoded samples were NaN or infinite, and count as silence.
    """

    name: str
    start_ns: int
    rate_hz: int
    samples: NDArray[np.int16]
    gain: float = 1.0
    not_finite: int = 0

    @property
    def duration_s(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate_hz

    def time_ns(self, since_start_s: float) -> int:
        """Return the device time [ns] of a moment given in seconds since the first sample."""
        return self.start_ns + round(since_start_s * NS_PER_S)


def read_audio(
    files: Sequence[Path | MediaSource], track: AudioTrack, first: int, count: int
) -> Float32:
    """Decode the samples ``first .. first + count`` of a track.

    Parameters
    ----------
    files
        All files of the recording, in its order.
    track
        One of the recording's sound tracks.
    first, count
        Sample indices; what lies outside the track is left out.

    Returns
    -------
    ndarray
        ``(n, channels)`` float32, full scale 1; n is ``count`` but for the ends of the track.

    Raises
    ------
    UndecodableError
        The bytes do not decode.
    """
    first, end = max(first, 0), min(first + count, track.sample_count)
    if end <= first:
        return np.zeros((0, track.channels), np.float32)
    read = decode_span if track.storage == "container" else decode_packet_span
    return _finite(read(as_sources(files), track, first, end - first))


def read_mono(
    files: Sequence[Path | MediaSource],
    track: AudioTrack,
    *,
    name: str = "",
    rate_hz: int = 16_000,
) -> MonoSound:
    """Decode a whole track once, streaming, to one channel on a uniform grid.

    Stereo is averaged (one side is taken where the sides cancel); of more microphones, which lie
    apart and would blur each other, the first that works is taken. NaN counts as silence.

    Parameters
    ----------
    files
        All files of the recording, in its order.
    name
        Name of the recording's clock.
    rate_hz
        Rate of the grid.

    Raises
    ------
    NoSoundError
        The track has no samples.
    UndecodableError
        Nothing of it decodes.
    CorruptFileError
        Its times leap by hours.
    """
    sources = as_sources(files)
    if not track.sample_count:
        raise NoSoundError(
            f"track '{track.name}' has no samples",
            path=sources[0].path if sources else None,
            hint="check that the microphone was on",
        )
    runs = continuous_runs(track)
    _check_holes(track, runs, sources)
    grid = UniformGrid(runs, track.rate_hz, rate_hz, track.sample_count)
    made, mixer = _Staging(grid.expected_count), _Mixer()
    for first, block in _fed(_decoded(sources, track)):
        for piece in grid.push(first, mixer(block)):
            made.add(piece)
    for piece in grid.finish():
        made.add(piece)
    gain = made.gain
    return MonoSound(name, grid.start_ns, rate_hz, made.as_int16(gain), gain, mixer.not_finite)


def _check_holes(track: AudioTrack, runs: Sequence[Run], sources: Sequence[MediaSource]) -> None:
    """Refuse times that leap by more than anybody pauses: their silence would fill the memory."""
    starts = [int(run.start_ns) for run in runs]
    hole_s = (max(starts) - min(starts)) / NS_PER_S - track.sample_count / track.rate_hz
    if hole_s > LONGEST_HOLE_S:
        raise CorruptFileError(
            f"the times of its sound leap by {hole_s:.0f} s: they are damaged",
            path=sources[0].path,
            hint="copy the file from the device again",
        )


def _decoded(sources: tuple[MediaSource, ...], track: AudioTrack) -> Iterator[tuple[int, Float32]]:
    """Yield ``(sample index, (n, channels))`` in order."""
    if track.storage == "packets":
        yield from decode_blocks(sources, track)
        return
    assert track.stream_index is not None  # the record checks it
    index = 0
    for samples in decode_joined(sources, track.stream_index, FEED):
        yield index, samples
        index += len(samples)


class _Mixer:
    """Mixes blocks down to one channel; how is decided at the first that is not silent.

    ``not_finite`` counts the samples that were no numbers.
    """

    def __init__(self) -> None:
        self._weights: Float32 | None = None
        self.not_finite = 0

    def __call__(self, block: Float32) -> Float32:
        samples = _finite(block)
        if samples is not block:
            self.not_finite += int(np.count_nonzero(~np.isfinite(block)))
        if self._weights is None or len(self._weights) != samples.shape[1]:
            self._weights = _mix(samples)
        if self._weights is None:
            return np.zeros(len(samples), np.float32)
        if samples.shape[1] == 1:
            return samples[:, 0]
        return np.asarray(samples @ self._weights, np.float32)


def _finite(samples: Float32) -> Float32:
    """Return the samples with NaN and infinity as silence."""
    if np.isfinite(samples).all():
        return samples
    return np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)


def _mix(samples: Float32) -> Float32 | None:
    """Return the channels' weights, or None as long as there is nothing to hear."""
    channels = samples.shape[1]
    power = np.mean(np.square(samples), axis=0) if len(samples) else np.zeros(channels)
    if not power.any():
        return None
    weights = np.zeros(channels, np.float32)
    if channels <= 2:
        weights[:] = 1 / channels
        cancels = float(np.mean(np.square(samples @ weights))) < 0.02 * float(power.mean())
        if not cancels:
            return weights
        weights[:] = 0
    working = power >= 0.1 * np.median(power[power > 0])
    weights[int(np.argmax(working))] = 1
    return weights


def _fed(blocks: Iterator[tuple[int, Float32]]) -> Iterator[tuple[int, Float32]]:
    """Join blocks that follow each other to pieces large enough to be worth resampling."""
    held: list[Float32] = []
    start = length = 0
    for first, samples in blocks:
        other = bool(held) and samples.shape[1] != held[-1].shape[1]
        if held and (other or first != start + length or length >= FEED):
            yield start, _joined(held)
            held, length = [], 0
        if not held:
            start = first
        held.append(samples)
        length += len(samples)
    if held:
        yield start, _joined(held)


def _joined(blocks: Sequence[Float32]) -> Float32:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


class _Staging:
    """Holds sound as int16, each piece at its own level, until the loudness of all is known.

    Then it is brought to the common loudness where it lies: half an hour is 58 MB, and there is
    never more than one copy.
    """

    def __init__(self, expected_count: int) -> None:
        self._held = np.empty(expected_count, np.int16)
        self._pieces: list[tuple[int, float]] = []  # where each ends, and what it was multiplied by
        self._count, self._power, self._loud = 0, 0.0, 0

    def add(self, piece: Float32) -> None:
        """Append a piece."""
        end = self._count + len(piece)
        if end > len(self._held):  # the track holds more than it told
            self._held = np.concatenate([self._held[: self._count], np.empty(end, np.int16)])
        loud = np.clip(piece, -LOUDEST, LOUDEST)
        level = FULL / float(np.abs(loud).max(initial=QUIETEST))
        self._power += float(np.square(loud).sum())
        self._loud += int(np.count_nonzero(loud))
        loud *= np.float32(level)
        self._held[self._count : end] = np.rint(loud, out=loud)
        self._pieces.append((end, level))
        self._count = end

    @property
    def gain(self) -> float:
        """Factor that brings what is held to the common loudness; 0 for silence."""
        return LOUDNESS / float(np.sqrt(self._power / self._loud)) if self._power > 0 else 0.0

    def as_int16(self, gain: float) -> NDArray[np.int16]:
        """Return all of it, multiplied; nothing can be added afterwards."""
        out, first = self._held[: self._count], 0
        for end, level in self._pieces:
            loud = out[first:end] * np.float32(gain / level)
            np.clip(loud, -FULL, FULL, out=loud)
            out[first:end] = np.rint(loud, out=loud)
            first = end
        out.setflags(write=False)
        return out
