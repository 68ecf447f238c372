"""From a rough line to a clock: correlograms are stacked before any peak is taken.

A single window often peaks at an echo (four in ten in a furnished room). The sum of all windows'
correlograms, shifted along a trial line, peaks at the direct sound; the windows then only refine
it. A slow wander of the clocks is followed by a path through stacks of 45 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.lines import Line, RobustFit, Spline, fit_line, mad, smooth
from synorama.sync.smoothing import moving_mean
from synorama.sync.windows import Correlograms, Windowing, correlate_windows, parabola

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Fine", "refine"]

WINDOW_S = 1.5
WINDOWS = 420
MAX_SLOPE = 220e-6
DEVICE_SLOPE = 100e-6  # what clocks of devices differ by; more must stand out
CLEAR_Z, CLEAR_SECOND = 9.0, 0.7
SLOPES = 161
STACKS = 6  # rough peaks that are looked at closely
GUARD = 16  # samples around a rough peak that belong to it
LEAST_HEIGHT = 4.0
HEIGHT_SHARE = 0.45  # of the window's highest peak
POLARITY_CLEAR = 3.0
NEAR_S = 0.0006  # windows are refined this close to the stack's line
RIVAL = 0.6  # of the highest peak
ECHO_S = 0.008  # later, an echo that strong is none
BLOCK_S = 45.0
WANDER_S = 0.004
LOCAL_SLOPES = (-8e-6, -4e-6, 0.0, 4e-6, 8e-6)  # beside the line, for a block
UNHEARD_S = 60.0
LEAST_BEND_WINDOWS = 20
BEND_Z = 5.0
BEND_SECOND = 0.7
BEND_SHARE = 0.3
KNOT_S = 12.0
KNOT_WINDOWS = 3
MAX_BEND = 60e-6  # a crystal's rate changes less; lags of people who walk change more
LEAST_WANDER_S = 60e-6
LOW, HIGH = -3.0, 12.0  # one window must not outvote the others


@dataclass(frozen=True, slots=True, eq=False)
class Fine:
    """One segment's clock.

    Parameters
    ----------
    span_s
        First and last moment on the other's time.
    line, spline
        The lag, and its bends where the clocks wander.
    sigma_s, slope_sigma
        Formal errors of the lag at the line's anchor, and of the slope.
    scatter_s
        Robust spread of the windows.
    stack_z, second, repeats
        How far the stack's peak stands out; the next peak's height over it; and that of the next
        one too far away for an echo, near 1 for hum.
    rivals_s
        How far the farthest peak lies that is nearly as high: which is the direct sound's?
    inverted
        Whether the microphones have opposite polarity.
    times_s, residuals_s
        The windows that made it, and what they leave over.
    """

    span_s: tuple[float, float]
    line: Line
    spline: Spline | None
    sigma_s: float
    slope_sigma: float
    scatter_s: float
    stack_z: float
    second: float
    repeats: float
    rivals_s: float
    inverted: bool
    times_s: Float64
    residuals_s: Float64

    def lag(self, t_s: Float64) -> Float64:
        """Return the lag [s] at times of the other."""
        straight = self.line(t_s)
        return straight if self.spline is None else straight + self.spline(t_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Stack:
    """The best trial line: where it peaks, relative to the rough line."""

    height: float
    lag_s: float
    slope: float
    curve: Float32


def refine(
    reference: MonoSound,
    other: MonoSound,
    rough: Line,
    span_s: tuple[float, float],
    tolerance_s: float,
) -> Fine | None:
    """Refine a rough line over a span; None where too few windows fit into it."""
    rows = _rows(reference, other, rough, span_s, tolerance_s)
    if rows.count < 4:
        return None
    inverted, best = _upright(rows, rough, tolerance_s)
    rows = rows.inverted() if inverted else rows
    start = _start(rows, rough, best, tolerance_s)
    wander = _wander(rows, start, span_s)
    times, lags, heights = _followed(rows, rough, start, wander, span_s, tolerance_s)
    stack = _along(rows, start, wander)
    stack_z, second, repeats = _quality(stack, rows.rate_hz)
    fit = _fit(times, lags, heights, start)
    if abs(fit.line.slope) > DEVICE_SLOPE and not _stands_out(stack_z, second):
        fit = _held(fit, times, lags)
    spline = _bend(times, lags, heights, fit, span_s)
    bent = _bent(fit, spline, times)
    return Fine(
        span_s, fit.line, spline, bent.sigma_s, bent.slope_sigma, bent.scatter_s,
        stack_z, second, repeats, _rivals_s(stack, rows.rate_hz), inverted, times,
        bent.residuals_s,
    )  # fmt: skip


def _bent(fit: RobustFit, spline: Spline | None, times: Float64) -> RobustFit:
    """Return the fit as it is with its bends: less is left over, by more parameters."""
    if spline is None:
        return fit
    shrink = spline.scatter_s / fit.scatter_s
    return replace(
        fit,
        residuals_s=fit.residuals_s - spline(times),
        scatter_s=spline.scatter_s,
        sigma_s=fit.sigma_s * shrink * float(np.sqrt(max(1.0, spline.freedom))),
        slope_sigma=fit.slope_sigma * shrink,
    )


def _start(rows: Correlograms, rough: Line, stack: _Stack, tolerance_s: float) -> Line:
    """Return the stack's line; where it is no device's and does not stand out, one that may be.

    People who walk while they talk make lags that run like a clock of some hundreds of ppm.
    """
    middle = float(rows.times_s.mean())
    line = Line(rough(middle) + stack.lag_s, rough.slope + stack.slope, middle)
    z, second, _ = _quality(_along(rows, line, None), rows.rate_hz)
    if abs(line.slope) <= DEVICE_SLOPE or _stands_out(z, second):
        return line
    likely = Line(rough(middle), float(np.clip(rough.slope, -DEVICE_SLOPE, DEVICE_SLOPE)), middle)
    stack = _best_stack(rows, likely, tolerance_s, DEVICE_SLOPE)
    return Line(likely.lag_s + stack.lag_s, likely.slope + stack.slope, middle)


def _stands_out(z: float, second: float) -> bool:
    return z >= CLEAR_Z and second < CLEAR_SECOND


def _rows(
    reference: MonoSound,
    other: MonoSound,
    rough: Line,
    span_s: tuple[float, float],
    tolerance_s: float,
) -> Correlograms:
    overlap, reach = span_s[1] - span_s[0], 0.03 + 2 * tolerance_s
    width = float(np.clip(overlap / 10, 0.8, WINDOW_S))
    count = int(np.clip((overlap - width) / (0.6 * width), 6, WINDOWS))
    margin = width / 2 + reach
    centres = np.linspace(span_s[0] + margin, span_s[1] - margin, count)
    return correlate_windows(reference, other, rough, centres, Windowing(width, reach))


def _upright(rows: Correlograms, rough: Line, tolerance_s: float) -> tuple[bool, _Stack]:
    """Tell whether the microphones have opposite polarity, and return the best stack.

    Echoes of either sign may be stronger than the direct sound in single windows: unless these
    are clear, the stacks decide.
    """
    up = np.clip(rows.curves.max(axis=1) - 5, 0, None).sum()
    down = np.clip(-rows.curves.min(axis=1) - 5, 0, None).sum()
    stacks = [
        (inverted, _best_stack(rows.inverted() if inverted else rows, rough, tolerance_s))
        for inverted, share in ((False, up), (True, down))
        if share >= max(up, down) / POLARITY_CLEAR
    ]
    return max(stacks, key=lambda s: s[1].height)


# --- stacking --------------------------------------------------------------------------------


def _best_stack(
    rows: Correlograms, rough: Line, tolerance_s: float, max_slope: float = MAX_SLOPE
) -> _Stack:
    """Search (lag, slope) roughly, then closely around the best rough peaks."""
    offsets = rows.lags_s - rough(rows.times_s)
    reach = max(float(np.ptp(rows.times_s)) / 2, 1.0)
    slopes, step = _trial_slopes(rough.slope, reach, tolerance_s, rows.rate_hz, max_slope)
    close = int(np.clip(2 * step * reach * rows.rate_hz * 1.5, 5, 41)) | 1
    t = rows.times_s - rows.times_s.mean()
    best: _Stack | None = None
    for lag, slope in _rough_peaks(rows, offsets, slopes):
        around = np.linspace(-step, step, close)
        curves = _slant(_clipped(rows), offsets - lag - slope * t, t, around, rows.rate_hz)
        i, k = np.unravel_index(int(np.argmax(curves)), curves.shape)
        found = _Stack(
            float(curves[i, k]),
            lag + float(k - rows.half) / rows.rate_hz,
            slope + float(around[i]),
            curves[i],
        )
        if best is None or found.height > best.height:
            best = found
    assert best is not None  # there is always a highest value
    return best


def _trial_slopes(
    rough: float, reach_s: float, tolerance_s: float, rate_hz: int, max_slope: float
) -> tuple[Float64, float]:
    """Return slopes to try, relative to the rough one, and the step between them."""
    limit = min(max(3 * tolerance_s / reach_s, 2e-6), 5e-4)
    step = 3.0 / rate_hz / reach_s
    count = int(np.ceil(limit / step))
    slopes = np.arange(-count, count + 1) * step
    slopes = slopes[np.abs(slopes + rough) < max_slope]
    thin = max(1, -(-len(slopes) // SLOPES))
    slopes = slopes[::thin]
    return (slopes, step * thin) if len(slopes) else (np.zeros(1), step)


def _rough_peaks(
    rows: Correlograms, offsets_s: Float64, slopes: Float64
) -> list[tuple[float, float]]:
    """Return ``(lag, slope)`` of the highest distinct peaks of smoothed stacks."""
    t = rows.times_s - rows.times_s.mean()
    smooth = moving_mean(_clipped(rows), 3)
    curves = _slant(smooth, offsets_s, t, slopes, rows.rate_hz)
    found: list[tuple[float, float, float]] = []
    for slope, curve in zip(slopes, curves, strict=True):
        for _ in range(2):
            k = int(np.argmax(curve))
            found.append((float(curve[k]), (k - rows.half) / rows.rate_hz, float(slope)))
            curve[max(0, k - GUARD) : k + GUARD + 1] = -np.inf
    found.sort(reverse=True)
    return _distinct(found, float(np.ptp(rows.times_s)) / 2)


def _distinct(found: list[tuple[float, float, float]], reach_s: float) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for _, lag, slope in found:
        if all(abs(lag - a) > 0.0008 or abs(slope - b) * reach_s > 0.002 for a, b in out):
            out.append((lag, slope))
        if len(out) == STACKS:
            break
    return out


def _slant(
    curves: Float32, offsets_s: Float64, t: Float64, slopes: Float64, rate_hz: int
) -> Float32:
    """Sum the curves along lines: ``(S, L)``, one row a slope."""
    length = curves.shape[1]
    out = np.zeros((len(slopes), length), np.float32)
    shifts = np.rint((slopes[:, None] * t - offsets_s) * rate_hz).astype(np.int64)
    for total, shift in zip(out, shifts, strict=True):
        for curve, s in zip(curves, shift, strict=True):
            if 0 <= s < length:
                total[: length - s] += curve[s:]
            elif -length < s < 0:
                total[-s:] += curve[: length + s]
    return out


def _along(rows: Correlograms, line: Line, wander: Spline | None) -> Float32:
    """Stack along the line and its wander."""
    lag = line(rows.times_s) + (wander(rows.times_s) if wander else 0.0)
    padded = np.pad(_clipped(rows), ((0, 0), (rows.half, rows.half)))
    return _around(padded, rows.lags_s, lag, rows.half, rows.rate_hz)


def _clipped(rows: Correlograms) -> Float32:
    return np.clip(rows.curves, LOW, HIGH)


def _quality(curve: Float32, rate_hz: int) -> tuple[float, float, float]:
    """Return the peak's robust z-score, and over its height the next ones', near and far."""
    middle = float(np.median(curve))
    spread = float(1.4826 * np.median(np.abs(curve - middle))) + 1e-9
    k = int(np.argmax(curve))
    height = float(curve[k]) - middle
    away = np.abs(np.arange(len(curve)) - k)
    next_ones = (curve[away > least].max(initial=middle) for least in (8, ECHO_S * rate_hz))
    second, repeats = ((float(v) - middle) / (height + 1e-9) for v in next_ones)
    return height / spread, second, repeats


def _rivals_s(curve: Float32, rate_hz: int) -> float:
    height = curve - np.median(curve)
    k = int(np.argmax(height))
    return float(np.abs(np.flatnonzero(height >= RIVAL * height[k]) - k).max()) / rate_hz


# --- wander ----------------------------------------------------------------------------------


def _followed(
    rows: Correlograms,
    rough: Line,
    line: Line,
    wander: Spline | None,
    span_s: tuple[float, float],
    tolerance_s: float,
) -> tuple[Float64, Float64, Float64]:
    """Return times, lags and heights of the windows along the line, its wander and its bends.

    Where a clock changes its rate for good, nothing is heard near the line from then on, or until
    then: such a stretch has a line of its own, which meets the others.
    """
    peaks = [_local_peaks(rows, line, wander)]
    edges = np.array([span_s[0], *peaks[0][0], span_s[1]])
    for k in np.flatnonzero(np.diff(edges) > UNHEARD_S):
        unheard = rows.between(edges[k], edges[k + 1])
        own = _line_of_its_own(unheard, rough, tolerance_s)
        joints = edges[k : k + 2][(edges[k : k + 2] != span_s[0]) & (edges[k : k + 2] != span_s[1])]
        if own is not None and (np.abs(own(joints) - line(joints)) < WANDER_S).all():
            found = _local_peaks(unheard, own, None)
            peaks += [found] if len(found[0]) > BEND_SHARE * unheard.count else []
    times, lags, heights = (np.concatenate(column) for column in zip(*peaks, strict=True))
    order = np.argsort(times)
    return times[order], lags[order], heights[order]


def _line_of_its_own(rows: Correlograms, rough: Line, tolerance_s: float) -> Line | None:
    if rows.count < LEAST_BEND_WINDOWS:
        return None
    stack = _best_stack(rows, rough, tolerance_s)
    z, second, _ = _quality(stack.curve, rows.rate_hz)
    if z < BEND_Z or second > BEND_SECOND:
        return None
    anchor = float(rows.times_s.mean())
    return Line(rough(anchor) + stack.lag_s, rough.slope + stack.slope, anchor)


def _wander(rows: Correlograms, line: Line, span_s: tuple[float, float]) -> Spline | None:
    """Return the slow deviation from the line: the best path through stacks of 45 s (Viterbi)."""
    blocks = int((span_s[1] - span_s[0]) // BLOCK_S)
    if blocks < 3:
        return None
    half = int(WANDER_S * rows.rate_hz)
    stacks = _block_stacks(rows, line, span_s, blocks, half)
    path = _best_path(stacks)
    lags = (path - half) / rows.rate_hz
    if np.ptp(lags) < 3 / rows.rate_hz:
        return None
    edges = np.linspace(span_s[0], span_s[1], blocks + 1)
    return Spline((edges[:-1] + edges[1:]) / 2, lags, 0.0)


def _block_stacks(
    rows: Correlograms, line: Line, span_s: tuple[float, float], blocks: int, half: int
) -> Float32:
    """Return each block's stack along the best of several local slopes, ``(blocks, lags)``."""
    out = np.zeros((blocks, 2 * half + 1), np.float32)
    curves = np.pad(_clipped(rows), ((0, 0), (half, half)))
    edges = np.linspace(*span_s, blocks + 1)
    block = np.clip(np.searchsorted(edges, rows.times_s, side="right") - 1, 0, blocks - 1)
    for b in range(blocks):
        mine = block == b
        t = rows.times_s[mine]
        for slope in LOCAL_SLOPES:
            lag = line(t) + slope * (t - (edges[b] + edges[b + 1]) / 2)
            stack = _around(curves[mine], rows.lags_s[mine], lag, half, rows.rate_hz)
            np.maximum(out[b], stack, out=out[b])
    return moving_mean(out, 3)


def _around(
    padded: Float32, lags_s: Float64, centre_s: Float64, half: int, rate_hz: int
) -> Float32:
    """Sum curves, padded by ``half``, around a lag for each."""
    total = np.zeros(2 * half + 1, np.float32)
    at = np.rint((centre_s - lags_s) * rate_hz).astype(np.int64) + padded.shape[1] // 2
    for curve, k in zip(padded, at, strict=True):
        if half <= k < len(curve) - half:
            total += curve[k - half : k + half + 1]
    return total


def _best_path(stacks: Float32) -> NDArray[np.int64]:
    """Return one index a row: high values, at the price of every step sideways."""
    steps = np.arange(stacks.shape[1])
    price = 0.02 * float(stacks.max(axis=1).mean())
    cost = price * np.abs(steps[:, None] - steps[None, :]).astype(np.float32)
    value, back = stacks[0], []
    for row in stacks[1:]:
        reached = value[None, :] - cost
        best = reached.argmax(axis=1)
        back.append(best)
        value = reached[steps, best] + row
    path = [int(value.argmax())]
    for best in reversed(back):
        path.append(int(best[path[-1]]))
    return np.array(path[::-1], np.int64)


# --- single windows --------------------------------------------------------------------------


def _local_peaks(
    rows: Correlograms, line: Line, wander: Spline | None
) -> tuple[Float64, Float64, Float64]:
    """Return times, lags and heights of the windows that peak where the stack does."""
    lag = line(rows.times_s) + (wander(rows.times_s) if wander else 0.0)
    centre = ((lag - rows.lags_s) * rows.rate_hz + rows.half).astype(np.int64)
    near = int(NEAR_S * rows.rate_hz) + 1
    times, lags, heights = [], [], []
    for curve, k, t, lag0 in zip(rows.curves, centre, rows.times_s, rows.lags_s, strict=True):
        lo, hi = max(1, k - near), min(len(curve) - 1, k + near + 1)
        if hi - lo < 3:
            continue
        j = lo + int(np.argmax(curve[lo:hi]))
        if curve[j] > LEAST_HEIGHT and curve[j] >= HEIGHT_SHARE * curve.max():
            at = j + float(parabola(curve[j - 1], curve[j], curve[j + 1]))
            times.append(t)
            lags.append(lag0 + (at - rows.half) / rows.rate_hz)
            heights.append(float(curve[j]))
    return np.array(times), np.array(lags), np.array(heights)


def _fit(times: Float64, lags: Float64, heights: Float64, start: Line) -> RobustFit:
    """Fit the windows; the stack's own line, a millisecond uncertain, where they are few."""
    if len(times) >= 5:
        return fit_line(times, lags, heights - 3, start.at_s)
    return RobustFit(start, lags - start(times), 1e-3, 1e-3, 1e-4)


def _held(fit: RobustFit, times: Float64, lags: Float64) -> RobustFit:
    """Return the fit with the rate that a device may have at most: nothing tells which it has."""
    slope = float(np.clip(fit.line.slope, -DEVICE_SLOPE, DEVICE_SLOPE))
    left = lags - slope * (times - fit.line.at_s)
    lag = float(np.median(left)) if len(left) else fit.line.lag_s
    scatter = max(mad(left - lag), fit.scatter_s) if len(left) else fit.scatter_s
    sigma = scatter / np.sqrt(max(3.0, 0.5 * len(times)))
    line = Line(lag, slope, fit.line.at_s)
    return RobustFit(
        line, left - lag, scatter, float(sigma), max(DEVICE_SLOPE / 2, fit.slope_sigma)
    )


def _bend(
    times: Float64, lags: Float64, heights: Float64, fit: RobustFit, span_s: tuple[float, float]
) -> Spline | None:
    """Return the bends of a long recording, where they are real."""
    if span_s[1] - span_s[0] <= 150 or len(times) <= 40:
        return None
    overlap = span_s[1] - span_s[0]
    spacing = max(KNOT_S, KNOT_WINDOWS * overlap / len(times))
    knots = np.linspace(*span_s, round(overlap / spacing) + 1)
    spline = smooth(times, fit.residuals_s, heights - 3, knots, max_bend=MAX_BEND)
    real = np.ptp(spline.lag_s) > LEAST_WANDER_S and spline.scatter_s < 0.9 * fit.scatter_s
    return spline if real else None
