"""How loud each device heard speech, frame by frame on the session clock, and who is nearest.

A mouth is a hand's breadth from its wearer's glasses and a metre or more from everybody else's, so
the ratio of the two levels tells who speaks. Where it divides is learned from the talk itself:
gains, hair and ways to wear glasses shift it by many decibels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from synorama.records import SpeakerCalibration
from synorama.speech.sound import SPEECH_HZ, DeviceSound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Bool = NDArray[np.bool_]
    Int64 = NDArray[np.int64]

__all__ = ["FRAME_NS", "Divide", "Levels", "calibrate", "measure_levels"]

FRAME_NS = 10_000_000
HOP = SPEECH_HZ // 100
WINDOW_FRAMES = 3  # of which a level is the mean
BAND_HZ = (300.0, 3800.0)
PIECE = 60 * SPEECH_HZ
FLOOR_PERCENTILE = 10
ACTIVE_DB = 8.0  # above the noise floor
LEAST_POWER = 1e-12
SMOOTH_FRAMES = 21  # over which ratios are taken to learn from and to gate
ENOUGH_FRAMES = 300  # 3 s of speech
LEAST_SEPARATION_DB, LEAST_SHARE, LEAST_CLARITY = 5.0, 0.08, 2.0
ASSUMED_HALF_DB = 6.0
ALONE_SHARE, ALONE_SPREADS = 0.12, 1.5  # of separation; around its middle is one person's talk
ITERATIONS = 80


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Levels of several devices on one grid of the session clock.

    Parameters
    ----------
    devices
        Their names, in order.
    start_ns
        Session time of the first frame; frame ``k`` covers `FRAME_NS` from
        ``start_ns + k * FRAME_NS`` on.
    power
        ``(D, F)`` in the band of speech, full scale 1, noise floor subtracted; NaN where a
        device did not record.
    active
        ``(D, F)`` whether it is clearly above the noise.
    """

    devices: tuple[str, ...]
    start_ns: int
    power: Float64
    active: Bool

    @property
    def frames(self) -> int:
        """How many frames."""
        return int(self.power.shape[1])

    def share_time(self, a: int, b: int) -> bool:
        """Tell whether two devices recorded at the same time long enough to be compared."""
        both = np.isfinite(self.power[a]) & np.isfinite(self.power[b])
        return int(both.sum()) >= ENOUGH_FRAMES

    def span(self, start_ns: int, end_ns: int) -> slice:
        """Return the frames of a stretch of session time, three or more where there are so many."""
        first = int((start_ns - self.start_ns) // FRAME_NS)
        last = max(int(-((self.start_ns - end_ns) // FRAME_NS)), first + 3)
        return slice(max(first, 0), max(min(last, self.frames), 0))

    def ratio_db(self, a: int, b: int, frames: slice) -> float:
        """Return the level of device ``a`` over ``b``, together over some frames; NaN for none."""
        both = np.isfinite(self.power[a, frames]) & np.isfinite(self.power[b, frames])
        if not both.any():
            return float("nan")
        one, other = self.power[a, frames][both].sum(), self.power[b, frames][both].sum()
        return float(10 * np.log10(one / other))

    def smooth_ratio_db(self, a: int, b: int) -> Float64:
        """Return ``(F,)`` the level of ``a`` over ``b`` around each frame; NaN where unknown."""
        return 10 * np.log10(_smoothed(self.power[a]) / _smoothed(self.power[b]))


def _smoothed(power: Float64) -> Float64:
    from scipy.ndimage import uniform_filter1d

    known = np.isfinite(power)
    total = uniform_filter1d(np.where(known, power, 0.0), SMOOTH_FRAMES, mode="constant")
    share = uniform_filter1d(known.astype(np.float64), SMOOTH_FRAMES, mode="constant")
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(share > 0, np.maximum(total, LEAST_POWER) / share, np.nan)
    return np.where(known, mean, np.nan)


def measure_levels(sounds: Sequence[DeviceSound], shifts_ns: Mapping[str, int]) -> Levels:
    """Return the levels of the devices on a common grid.

    Parameters
    ----------
    shifts_ns
        By device: what to add to the session times that its clock gives.
    """
    times = [_frame_times(sound) + shifts_ns.get(sound.device, 0) for sound in sounds]
    start = min(int(t[0]) for t in times)
    count = int((max(int(t[-1]) for t in times) - start) // FRAME_NS) + 1
    rows = [_on_grid(_frame_power(s), t, start, count) for s, t in zip(sounds, times, strict=True)]
    floored = [_above_floor(row) for row in rows]
    return Levels(
        tuple(s.device for s in sounds),
        start,
        np.stack([power for power, _ in floored]),
        np.stack([active for _, active in floored]),
    )


def _frame_times(sound: DeviceSound) -> Int64:
    """Return session times of the middles of a device's frames."""
    count = max(len(sound.samples) // HOP, 1)
    times = sound.session_ns(np.arange(count, dtype=np.int64) * HOP + HOP // 2)
    return np.maximum.accumulate(times)  # a clock that jumps back hears some moments twice


def _frame_power(sound: DeviceSound) -> Float64:
    """Return ``(F,)`` mean square in the band of speech, of full scale 1, a frame each."""
    from scipy import signal

    taps = signal.butter(4, BAND_HZ, "bandpass", fs=SPEECH_HZ, output="sos")
    state = np.zeros((len(taps), 2))
    frames = []
    for first in range(0, max(len(sound.samples) // HOP, 1) * HOP, PIECE):
        piece = sound.samples[first : first + PIECE].astype(np.float64) / sound.gain
        heard, state = signal.sosfilt(taps, piece, zi=state)
        whole = len(heard) // HOP * HOP
        frames.append(np.square(heard[:whole]).reshape(-1, HOP).mean(axis=1))
    power = np.concatenate(frames) if frames else np.zeros(1)
    kernel = np.ones(WINDOW_FRAMES) / WINDOW_FRAMES
    return np.convolve(power, kernel, "same") if len(power) >= WINDOW_FRAMES else power


def _on_grid(power: Float64, times: Int64, start: int, count: int) -> Float64:
    """Take for each frame of the common grid the device's frame that is nearest in time."""
    grid = start + np.arange(count, dtype=np.int64) * FRAME_NS + FRAME_NS // 2
    after = np.clip(np.searchsorted(times, grid), 1, max(len(times) - 1, 1))
    after = np.minimum(after, len(times) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(grid - times[before] < times[after] - grid, before, after)
    known = np.abs(times[nearest] - grid) <= 2 * FRAME_NS
    return np.where(known, power[np.minimum(nearest, len(power) - 1)], np.nan)


def _above_floor(power: Float64) -> tuple[Float64, Bool]:
    """Subtract the noise floor; a tenth of it is left, so that ratios stay finite."""
    sounding = power[np.isfinite(power) & (power > LEAST_POWER)]
    floor = float(np.percentile(sounding, FLOOR_PERCENTILE)) if len(sounding) else LEAST_POWER
    floor = max(floor, LEAST_POWER)
    with np.errstate(invalid="ignore"):
        active = power > floor * 10 ** (ACTIVE_DB / 10)
    return np.maximum(power - floor, 0.1 * floor), active


# --- learning where it divides ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Divide:
    """Where the level of one device over another divides their wearers.

    Parameters
    ----------
    threshold_db
        Above it the first one's wearer speaks.
    middles_db, spreads_db
        Of the talk of the second one's wearer, and of the first one's.
    learned
        Whether the talk told it.
    smaller_share
        Of the two kinds of talk, how much is the rarer kind.
    """

    threshold_db: float
    middles_db: tuple[float, float]
    spreads_db: tuple[float, float]
    learned: bool
    smaller_share: float

    @property
    def separation_db(self) -> float:
        """How far apart the two kinds of talk are."""
        return self.middles_db[1] - self.middles_db[0]

    def other_alone_db(self, is_first: bool) -> float:
        """Return how far beyond the threshold [dB] one device hears but the other one's wearer.

        Between there and the threshold both talk, and a device hears its own wearer best.
        """
        if not self.learned:
            return 0.0
        other = 0 if is_first else 1
        reach = max(ALONE_SHARE * self.separation_db, ALONE_SPREADS * self.spreads_db[other])
        return max(abs(self.threshold_db - self.middles_db[other]) - reach, 0.0)

    def described(self, devices: tuple[str, str], offset_ms: float | None) -> SpeakerCalibration:
        """Return it as the transcript keeps it, with its reason in words."""
        return SpeakerCalibration(
            devices,
            self.learned,
            self.threshold_db,
            self.separation_db,
            self.smaller_share,
            offset_ms,
            _reason(self, devices),
        )


def _reason(divide: Divide, devices: tuple[str, str]) -> str:
    if divide.learned:
        return f"two kinds of talk, {divide.separation_db:.0f} dB apart"
    return (
        f"the levels of {devices[0]} and {devices[1]} do not show two kinds of talk (only one "
        "person talked, or both devices heard both alike), so both are taken to be equally "
        "sensitive: check who spoke"
    )


def calibrate(levels: Levels) -> dict[tuple[int, int], Divide]:
    """Learn for each pair of devices that recorded at once where their levels divide."""
    return {
        (a, b): _calibrated(levels, a, b)
        for a, b in combinations(range(len(levels.devices)), 2)
        if levels.share_time(a, b)
    }


def _calibrated(levels: Levels, a: int, b: int) -> Divide:
    ratio = levels.smooth_ratio_db(a, b)
    talk = ratio[(levels.active[a] | levels.active[b]) & np.isfinite(ratio)]
    if len(talk) < ENOUGH_FRAMES:
        return _assumed(0.0)
    middles, spreads, shares = _two_kinds(talk)
    smaller = float(shares.min())
    clarity = np.sqrt(2) * (middles[1] - middles[0]) / float(np.hypot(*spreads))
    if (
        middles[1] - middles[0] < LEAST_SEPARATION_DB
        or smaller < LEAST_SHARE
        or clarity < LEAST_CLARITY
    ):
        return _assumed(smaller)
    threshold = (middles[0] * spreads[1] + middles[1] * spreads[0]) / float(spreads.sum())
    return Divide(
        float(threshold),
        (float(middles[0]), float(middles[1])),
        (float(spreads[0]), float(spreads[1])),
        True,
        smaller,
    )


def _assumed(smaller_share: float) -> Divide:
    half = ASSUMED_HALF_DB
    return Divide(0.0, (-half, half), (half / 2, half / 2), False, smaller_share)


def _two_kinds(values: Float64) -> tuple[Float64, Float64, Float64]:
    """Fit two normal distributions, and an even one between for where both people talk.

    Without the third, talk at once would draw one of the two into the middle. By expectation
    maximisation; returns middles, spreads and shares of the two.
    """
    middles = np.percentile(values, [15, 85]).astype(np.float64)
    spreads, shares = np.array([3.0, 3.0]), np.array([0.45, 0.45, 0.1])
    for _ in range(ITERATIONS):
        likely = shares * _densities(values, middles, spreads) + 1e-12
        mine = likely / likely.sum(axis=1, keepdims=True)
        weight, kinds = mine.sum(axis=0) + 1e-9, mine[:, :2]
        middles = (kinds * values[:, np.newaxis]).sum(axis=0) / weight[:2]
        variance = (kinds * np.square(values[:, np.newaxis] - middles)).sum(axis=0) / weight[:2]
        spreads, shares = np.maximum(np.sqrt(variance), 1.0), weight / weight.sum()
    order = np.argsort(middles)
    return middles[order], spreads[order], shares[order] / shares[order].sum()


def _densities(values: Float64, middles: Float64, spreads: Float64) -> Float64:
    """Return ``(N, 3)`` densities of one person's talk, of the other's, and of both at once."""
    away = (values[:, np.newaxis] - middles) / spreads
    normal = np.exp(-0.5 * np.square(away)) / (spreads * np.sqrt(2 * np.pi))
    between = (values > middles.min()) & (values < middles.max())
    even = between / max(float(np.ptp(middles)), 1.0)
    return np.column_stack([normal, even])
