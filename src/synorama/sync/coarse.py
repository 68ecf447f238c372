"""Where one sound may lie in another, without any limit on the offset.

The second recording is cut into chunks of a minute; each is correlated with all of the first by
FFT. The chunks' correlations are added up for several drifts, divided by the square root of the
overlap and judged against their median absolute deviation. On test recordings true places scored
38 to 93 and false ones below 14.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.features import Features
from synorama.sync.lines import Line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["Candidate", "ChunkPeak", "Coarse", "search"]

CHUNK_S = 60.0
DRIFTS = (-100e-6, -50e-6, 0.0, 50e-6, 100e-6)
PEAKS = 8  # over all chunks
CHUNK_PEAKS = 2
CANDIDATES = 16
GUARD = 15  # frames around a peak that belong to it
LEAST_OVERLAP_S = 5.0
CHUNK_Z = 6.0
SAME_S = 0.10
SAME_CHUNK_S = 0.25


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible place: the line, and how far it stands out (robust z-score)."""

    line: Line
    z: float


@dataclass(frozen=True, slots=True)
class ChunkPeak:
    """Where one chunk of the other recording seems to lie: lag at the chunk's centre."""

    centre_s: float
    lag_s: float
    z: float


@dataclass(frozen=True, slots=True)
class Coarse:
    """Candidates, best first, and each chunk's own opinion."""

    candidates: tuple[Candidate, ...]
    chunks: tuple[ChunkPeak, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Correlation of one chunk; entry ``k`` is for a start at frame ``k - (length - 1)``."""

    start: int
    length: int
    curve: Float32


def search(reference: Features, other: Features) -> Coarse:
    """Return where the other recording may lie in the reference."""
    chunks = tuple(_correlate(reference, other))
    peaks = _chunk_peaks(chunks, reference)
    whole = _whole_peaks(chunks, reference, other)
    return Coarse(tuple(_merge(whole, peaks)), peaks)


def _correlate(reference: Features, other: Features) -> Iterator[_Chunk]:
    from scipy.fft import irfft, next_fast_len, rfft

    chunk = min(other.count, int(CHUNK_S * other.rate_hz))
    pieces = max(1, round(other.count / chunk))
    chunk = -(-other.count // pieces)
    n = next_fast_len(reference.count + chunk, real=True)
    spectrum = rfft(reference.values, n, axis=1)
    for start in range(0, other.count, chunk):
        part = other.values[:, start : start + chunk]
        length = part.shape[1]
        if length < 8:
            continue
        curve = irfft((spectrum * np.conj(rfft(part, n, axis=1))).sum(axis=0), n)
        curve = np.concatenate([curve[n - (length - 1) :], curve[: reference.count]])
        yield _Chunk(start, length, curve.astype(np.float32))


def _whole_peaks(chunks: Sequence[_Chunk], reference: Features, other: Features) -> list[Candidate]:
    """Return the distinct peaks of all chunks together, over all drifts."""
    rate, middle = other.rate_hz, other.count / 2
    lags = np.arange(-(other.count - 1), reference.count)
    overlap = np.minimum(lags + other.count, reference.count) - np.maximum(lags, 0)
    scale = np.sqrt(np.maximum(overlap, LEAST_OVERLAP_S * rate))
    found: list[Candidate] = []
    for drift in DRIFTS:
        total = np.zeros(len(lags), np.float32)
        for c in chunks:
            shift = round(drift * (c.start + c.length / 2 - middle))
            _add(total, c.curve, other.count - c.length - c.start - shift)
        z = _robust_z(total / scale)
        for k in _peaks(z, PEAKS):
            line = Line(float(lags[k]) / rate, drift, middle / rate)
            found.append(Candidate(line, float(z[k])))
    return sorted(found, key=lambda c: -c.z)


def _add(total: Float32, curve: Float32, at: int) -> None:
    lo, hi = max(0, at), min(len(total), at + len(curve))
    if hi > lo:
        total[lo:hi] += curve[lo - at : hi - at]


def _chunk_peaks(chunks: Sequence[_Chunk], reference: Features) -> tuple[ChunkPeak, ...]:
    rate = reference.rate_hz
    out: list[ChunkPeak] = []
    for c in chunks:
        start = np.arange(-(c.length - 1), reference.count)
        overlap = np.minimum(start + c.length, reference.count) - np.maximum(start, 0)
        z = c.curve / np.sqrt(np.maximum(overlap, 3 * rate))
        z /= 1.4826 * np.median(np.abs(z)) + 1e-9
        centre = (c.start + c.length / 2) / rate
        out += [
            ChunkPeak(centre, float(start[k] - c.start) / rate, float(z[k]))
            for k in _peaks(z, CHUNK_PEAKS)
        ]
    return tuple(out)


def _merge(whole: Sequence[Candidate], chunks: Sequence[ChunkPeak]) -> list[Candidate]:
    """Take distinct places, those of all chunks first, then those that only a chunk sees."""
    out: list[Candidate] = []
    for c in whole:
        if len(out) < PEAKS and all(abs(c.line.lag_s - o.line.lag_s) > SAME_S for o in out):
            out.append(c)
    at = whole[0].line.at_s if whole else 0.0
    for p in sorted(chunks, key=lambda p: -p.z)[:12]:
        if p.z > CHUNK_Z and all(abs(p.lag_s - o.line.lag_s) > SAME_CHUNK_S for o in out):
            out.append(Candidate(Line(p.lag_s, 0.0, at), p.z))
    return out[:CANDIDATES]


def _robust_z(values: Float32) -> Float32:
    centred = values - np.median(values)
    out: Float32 = centred / (1.4826 * np.median(np.abs(centred)) + 1e-9)
    return out


def _peaks(curve: Float32, count: int) -> list[int]:
    """Return the indices of the highest values that lie more than the guard apart."""
    rest, out = curve.copy(), []
    for _ in range(count):
        k = int(np.argmax(rest))
        if rest[k] == -np.inf:
            break
        out.append(k)
        rest[max(0, k - GUARD) : k + GUARD + 1] = -np.inf
    return out
