"""From the samples of a track, which a device took by its own sound clock, to a uniform grid.

Sound cards run off their nominal rate, block times jitter and recordings have holes. Between
holes the track's times are smoothed to a slowly bending line; each such run is resampled so that
sample ``k`` of the result is the sound at ``start_ns + k / rate_hz`` of the device clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import AudioTrack

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Run", "UniformGrid", "continuous_runs"]

GAP_NS = 20_000_000
AT_ONCE = 1 << 16  # samples of silence
SPARE_S = 1.0  # beyond what is expected
LEAP_NS = 2_000_000
BEND_S = 10.0  # spacing at which the smoothed line may bend
STRAIGHT_NS = 4_000.0
DENSE = 20  # knots a piece, from which on they are observations that jitter
LEAST_SHIFT = 0.02  # samples; less is not worth an interpolation
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A stretch of a track without holes.

    Parameters
    ----------
    first
        Index of its first sample.
    start_ns
        Device time of that sample.
    index, elapsed_ns
        ``(K,)`` smoothed times: samples since the first, ns since the start; K >= 2.
    """

    first: int
    start_ns: int
    index: Float64
    elapsed_ns: Float64

    @property
    def rate_hz(self) -> float:
        """The true mean rate of its samples."""
        span = float(self.elapsed_ns[-1] - self.elapsed_ns[0])
        return float(self.index[-1] - self.index[0]) / span * NS_PER_S

    def usable_hz(self, nominal_hz: float) -> float:
        """Return its rate, or the nominal one, which is cheaper to resample, if as good."""
        off = abs(self.rate_hz / nominal_hz - 1) * float(self.index[-1])
        return nominal_hz if off < LEAST_SHIFT else self.rate_hz

    @property
    def straight(self) -> bool:
        """Whether one rate describes it."""
        return len(self.index) == 2

    def index_at(self, elapsed_ns: Float64) -> Float64:
        """Return the sample indices, counted from the first, at times since the start."""
        x, y = self.elapsed_ns, self.index
        k = np.clip(np.searchsorted(x, elapsed_ns, side="right") - 1, 0, len(x) - 2)
        out: Float64 = y[k] + (elapsed_ns - x[k]) * (y[k + 1] - y[k]) / (x[k + 1] - x[k])
        return out


def continuous_runs(track: AudioTrack) -> tuple[Run, ...]:
    """Split a track where its times leap, and smooth each part."""
    knots = track.knots
    step = np.diff(knots, axis=0).astype(np.float64)
    leap = np.abs(step[:, 1] - step[:, 0] * NS_PER_S / track.rate_hz)
    # Knots a sample apart say where exactly time leaps; between distant ones it may also drift.
    allowed = np.where(step[:, 0] == 1, LEAP_NS, np.maximum(GAP_NS, 0.01 * step[:, 1]))
    breaks = np.flatnonzero(leap > allowed) + 1
    parts = np.split(knots, breaks)
    return tuple(_run(part, track.rate_hz) for part in parts)


def _run(knots: NDArray[np.int64], nominal_hz: float) -> Run:
    first, start_ns = int(knots[0, 0]), int(knots[0, 1])
    x = (knots[:, 0] - first).astype(np.float64)
    y = (knots[:, 1] - start_ns).astype(np.float64)
    if x[-1] < nominal_hz * 0.5:  # too short to tell a rate from jitter
        offset = float(np.mean(y - x * NS_PER_S / nominal_hz))
        x, y = np.array([0.0, nominal_hz]), np.array([0.0, NS_PER_S]) + offset
    else:
        x, y = _smooth(x, y, max(1, round(x[-1] / nominal_hz / BEND_S)))
    shift = round(float(y[0]))
    return Run(first, start_ns + shift, x, y - shift)


def _smooth(x: Float64, y: Float64, pieces: int) -> tuple[Float64, Float64]:
    """Fit a line that may bend at equal distances; a straight one where that is as good.

    Few knots were smoothed by who made them, and are taken as they are.
    """
    slope, intercept = np.polyfit(x, y, 1)
    off = y - (intercept + slope * x)
    if np.abs(off).max() <= STRAIGHT_NS:
        ends = np.array([0.0, x[-1]])
        return ends, intercept + slope * ends
    if len(x) < DENSE * pieces:
        return x, y
    bends = np.linspace(0.0, x[-1], pieces + 1)
    heights = _fit_bends(x, off, bends)
    if np.abs(heights).max() <= STRAIGHT_NS:
        bends, heights = bends[[0, -1]], np.zeros(2)
    return bends, intercept + slope * bends + heights


def _fit_bends(x: Float64, off: Float64, bends: Float64) -> Float64:
    """Least squares of hat functions, held together where there are few observations."""
    n = len(bends)
    place = np.interp(x, bends, np.arange(n))
    left = np.minimum(place.astype(np.int64), max(n - 2, 0))
    share = place - left
    right = np.minimum(left + 1, n - 1)
    normal = np.zeros((n, n))
    for a, wa in ((left, 1 - share), (right, share)):
        for b, wb in ((left, 1 - share), (right, share)):
            np.add.at(normal, (a, b), wa * wb)
    rhs = np.bincount(left, (1 - share) * off, n) + np.bincount(right, share * off, n)
    bend = np.diff(np.eye(n), 2, axis=0)
    stiff = 1e-3 * (bend.T @ bend) + 1e-9 * np.eye(n)
    out: Float64 = np.linalg.solve(normal + stiff, rhs)
    return out


class UniformGrid:
    """Take blocks of one channel in order and give out the sound on the grid, piece by piece."""

    def __init__(
        self, runs: tuple[Run, ...], nominal_hz: float, rate_hz: int, sample_count: int
    ) -> None:
        self.start_ns = runs[0].start_ns
        self.expected_count = _expected(runs, rate_hz, sample_count)
        self._runs = list(runs)
        self._nominal_hz = nominal_hz
        self._rate_hz = rate_hz
        self._resampler = self._next_run()
        self._given = 0

    def push(self, first: int, samples: Float32) -> Iterator[Float32]:
        """Add samples, the first of which has index ``first``; yield what is ready."""
        while self._runs and first + len(samples) > self._runs[0].first:
            cut = max(self._runs[0].first - first, 0)
            yield from self._place(self._resampler.push(samples[:cut], last=True))
            first, samples = first + cut, samples[cut:]
            self._resampler = self._next_run()
        yield from self._place(self._resampler.push(samples, last=False))

    def finish(self) -> Iterator[Float32]:
        """Yield the rest."""
        yield from self._place(self._resampler.push(np.zeros(0, np.float32), last=True))

    def _next_run(self) -> _Straight | _Bent:
        run = self._runs.pop(0)
        first_tick = (run.start_ns - self.start_ns) * self._rate_hz / NS_PER_S
        if run.straight and abs(first_tick - round(first_tick)) < LEAST_SHIFT:
            return _Straight(run.usable_hz(self._nominal_hz), round(first_tick), self._rate_hz)
        return _Bent(run, first_tick, self._nominal_hz, self._rate_hz)

    def _place(self, piece: tuple[int, Float32]) -> Iterator[Float32]:
        """Fill a hole before the piece with silence; drop what would come twice."""
        tick, samples = piece
        if not len(samples):
            return
        if tick > self._given:
            yield from _silence(tick - self._given)
        else:
            samples = samples[self._given - tick :]
        self._given = max(tick, self._given) + len(samples)
        yield samples


def _silence(count: int) -> Iterator[Float32]:
    """Yield zeros in pieces: holes may be hours long."""
    for first in range(0, count, AT_ONCE):
        yield np.zeros(min(AT_ONCE, count - first), np.float32)


def _expected(runs: tuple[Run, ...], rate_hz: int, sample_count: int) -> int:
    """Return how many samples of the grid hold so many of the track, and some to spare."""
    last = runs[-1]
    seconds = (last.start_ns - runs[0].start_ns) / NS_PER_S
    seconds += max(sample_count - last.first, 0) / last.rate_hz
    return round((max(seconds, 0.0) + SPARE_S) * rate_hz)


class _Straight:
    """A run with one rate, whose first sample lies on the grid: plain resampling."""

    def __init__(self, run_hz: float, first_tick: int, rate_hz: int) -> None:
        self._stream = _stream(run_hz, rate_hz)
        self._tick = first_tick

    def push(self, samples: Float32, *, last: bool) -> tuple[int, Float32]:
        out = self._stream.resample_chunk(samples, last=last)
        tick = self._tick
        self._tick += len(out)
        return tick, out


class _Bent:
    """A run whose rate changes or that starts off the grid.

    It is resampled to twice the grid's rate and then interpolated by cubics, which at half the
    band is exact enough.
    """

    def __init__(self, run: Run, first_tick: float, nominal_hz: float, rate_hz: int) -> None:
        self._run = run
        self._per_sample = 2 * rate_hz / nominal_hz
        self._stream = _stream(nominal_hz, 2 * rate_hz)
        self._kept = np.zeros(2, np.float32)  # two of silence before the first
        self._kept_from = -2
        self._tick = int(np.ceil(first_tick))
        self._first_tick = first_tick
        self._ns_per_tick = NS_PER_S / rate_hz

    def push(self, samples: Float32, *, last: bool) -> tuple[int, Float32]:
        fine = self._stream.resample_chunk(samples, last=last)
        tail = np.zeros(3 if last else 0, np.float32)
        self._kept = np.concatenate([self._kept, fine, tail])
        tick, at = self._tick, self._positions()
        self._tick += len(at)
        out = _cubic(self._kept, at - self._kept_from)
        self._forget()
        return tick, out

    def _at(self, ticks: Float64) -> Float64:
        elapsed = (ticks - self._first_tick) * self._ns_per_tick
        return self._run.index_at(elapsed) * self._per_sample

    def _positions(self) -> Float64:
        """Return where the next ticks lie among the fine samples, as far as these reach."""
        reach = self._kept_from + len(self._kept) - 3
        guess = max(0, int((reach - self._at(np.array([float(self._tick)]))[0]) / 2) + 64)
        at = self._at(self._tick + np.arange(guess, dtype=np.float64))
        return at[: int(np.searchsorted(at, reach))]

    def _forget(self) -> None:
        done = int(self._at(np.array([float(self._tick)]))[0]) - 2 - self._kept_from
        done = min(max(done, 0), len(self._kept))
        self._kept, self._kept_from = self._kept[done:], self._kept_from + done


def _stream(in_hz: float, out_hz: float) -> Any:
    import soxr

    return soxr.ResampleStream(in_hz, out_hz, 1, dtype="float32", quality="HQ")


def _cubic(y: Float32, at: Float64) -> Float32:
    """Interpolate by the cubic through the four neighbours (Lagrange)."""
    if not len(at):
        return np.zeros(0, np.float32)
    k = np.floor(at).astype(np.int64)
    u = (at - k).astype(np.float32)
    a, b, c, d = y[k - 1], y[k], y[k + 1], y[k + 2]
    up, um, u2 = u + 1, u - 1, u - 2
    out: Float32 = (b * up * um * u2 - c * up * u * u2) * np.float32(0.5)
    out += (d * up * u * um - a * u * um * u2) * np.float32(1 / 6)
    return out
