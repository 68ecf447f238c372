"""Sound stored as packets, such as the microphones in VRS files: PCM and Opus blocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from synorama.errors import UndecodableError
from synorama.media.audio_container import to_float
from synorama.media.payload import read_payload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.source import MediaSource
    from synorama.records import AudioTrack

    Float32 = NDArray[np.float32]

__all__ = ["decode_blocks", "decode_packet_span"]

OPUS_HZ = 48_000  # what every Opus decoder works at
OPUS_PREROLL_S = 0.2  # the decoder has converged after 80 ms (RFC 7845, section 4.6)
SPEAKER_ORDER = {  # Vorbis I, section 4.3.9, against FFmpeg's channel layouts
    3: (0, 2, 1),
    5: (0, 2, 1, 3, 4),
    6: (0, 2, 1, 5, 3, 4),
    7: (0, 2, 1, 6, 5, 3, 4),
    8: (0, 2, 1, 7, 5, 6, 3, 4),
}
PCM_DTYPES = {
    "pcm_u8": "u1",
    "pcm_s16le": "<i2",
    "pcm_s32le": "<i4",
    "pcm_f32le": "<f4",
}


def decode_blocks(
    sources: Sequence[MediaSource], track: AudioTrack, first_block: int = 0
) -> Iterator[tuple[int, Float32]]:
    """Yield ``(sample index, samples (n, channels) float32)`` block by block.

    Raises
    ------
    UndecodableError
        A codec that packets are not known to have, or a block that does not decode.
    """
    assert track.blocks is not None  # packets always have blocks
    decode = _block_decoder(track, sources[0])
    with ExitStack() as opened:
        files = [opened.enter_context(s.path.open("rb")) for s in sources]
        for row in track.blocks[first_block:]:
            k = int(row["file"])
            samples = decode(_payload(files[k], sources[k], row), sources[k])
            yield int(row["first"]), _fit(samples, int(row["count"]))


def decode_packet_span(
    sources: Sequence[MediaSource], track: AudioTrack, first: int, count: int
) -> Float32:
    """Decode the samples ``first .. first + count``; ``(count, channels)`` float32."""
    assert track.blocks is not None
    out = np.zeros((count, track.channels), np.float32)
    preroll = round(OPUS_PREROLL_S * track.rate_hz) if track.codec == "opus" else 0
    start = np.searchsorted(track.blocks["first"], first - preroll, side="right") - 1
    for index, samples in decode_blocks(sources, track, max(int(start), 0)):
        if index >= first + count:
            break
        lo, hi = max(index, first), min(index + len(samples), first + count)
        if hi > lo:
            out[lo - first : hi - first] = samples[lo - index : hi - index]
    return out


def _payload(file: BinaryIO, source: MediaSource, row: np.void) -> bytes:
    placed = row.copy()
    placed["offset"] += source.offset
    return read_payload(file, placed)


def _block_decoder(track: AudioTrack, source: MediaSource) -> Any:
    if track.codec == "opus":
        return _OpusDecoder(track)
    if track.codec in PCM_DTYPES:
        return _PcmDecoder(track)
    raise UndecodableError(
        f"track '{track.name}' holds packets of '{track.codec}', which nothing here decodes",
        path=source.path,
        hint=f"known are opus, {', '.join(PCM_DTYPES)}",
    )


class _PcmDecoder:
    """Interleaved samples."""

    def __init__(self, track: AudioTrack) -> None:
        self._dtype = np.dtype(PCM_DTYPES[track.codec])
        self._channels = track.channels

    def __call__(self, payload: bytes, source: MediaSource) -> Float32:
        step = self._dtype.itemsize * self._channels
        whole = len(payload) // step * step
        samples = np.frombuffer(payload[:whole], self._dtype).reshape(-1, self._channels)
        if self._dtype.kind == "f":
            return samples.astype(np.float32)
        zero = 128.0 if self._dtype.kind == "u" else 0.0
        full = np.float32(2 ** (8 * self._dtype.itemsize - 1))
        scaled: Float32 = (samples.astype(np.float32) - np.float32(zero)) / full
        return scaled


class _OpusDecoder:
    """One multistream decoder for all packets.

    libopus works at 48 kHz and what a device recorded at a lower rate has nothing above it, so
    every k-th sample is the device's own; against the vendor's decoder these differ by less than
    the last bits. (FFmpeg's own ``opus`` decoder crashes PyAV with eight channels.)
    """

    def __init__(self, track: AudioTrack) -> None:
        import av

        self._context: Any = av.CodecContext.create("libopus", "r")
        self._context.extradata = _opus_head(track.channels, track.stereo_pairs)
        self._step = max(1, round(OPUS_HZ / track.rate_hz))

    def __call__(self, payload: bytes, source: MediaSource) -> Float32:
        import av

        try:
            frames = self._context.decode(av.Packet(payload))
        except av.FFmpegError as error:
            raise UndecodableError(
                f"a block of Opus sound does not decode: {error}",
                path=source.path,
                hint="restore the file from its original",
            ) from error
        return np.concatenate([to_float(frame) for frame in frames])[:: self._step]


def _opus_head(channels: int, pairs: int) -> bytes:
    """Return an identification header (RFC 7845, section 5.1) that keeps channels in order.

    FFmpeg takes any 3 to 8 channels for loudspeakers and puts them into its own order; the table
    says into which, and the channel mapping undoes it.
    """
    order = SPEAKER_ORDER.get(channels, tuple(range(channels)))
    mapping = [order.index(k) for k in range(channels)]
    head = struct.pack("<8sBBHIhB", b"OpusHead", 1, channels, 0, OPUS_HZ, 0, 255)
    return head + bytes([channels - pairs, pairs, *mapping])


def _fit(samples: Float32, count: int) -> Float32:
    """Pad with silence, or cut, to the count that the recording states."""
    if len(samples) >= count:
        return samples[:count]
    return np.pad(samples, ((0, count - len(samples)), (0, 0)))
