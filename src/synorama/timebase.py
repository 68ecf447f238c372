"""Clocks, and the maps between them.

A clock counts int64 nanoseconds. A `ClockMap` ``C_a_b`` carries times of clock ``b`` (source) to
clock ``a`` (target): ``t_a = C_a_b(t_b)``. Between its knots a map is a straight line; beyond them
it goes on at its end rates, ever less certain, and refuses to go on for ever. Times are never
held in floating-point seconds: at the epoch a float64 second steps by 256 ns. Only differences
to a knot, which are small, are multiplied in float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from synorama.errors import ClockMismatchError, ClockRangeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["NS_PER_S", "ClockMap", "format_seconds"]

NS_PER_S = 1_000_000_000
PPM = 1e-6
ALL_TIMES = (-(2**62), 2**62)  # 146 years either way; leaves room for an offset of as much


@dataclass(frozen=True, slots=True, eq=False)
class ClockMap:
    """A piecewise-linear, strictly increasing map ``C_target_source`` between two clocks.

    Parameters
    ----------
    target, source
        Names of the clocks: ``t_target = C(t_source)``.
    knots
        ``(K, 2)`` int64 [ns], columns source and target time, both strictly increasing, K >= 1.
    rate_before, rate_after
        Target ns per source ns, before the first knot and after the last.
    sigma_ns
        One sigma of the target time inside the valid range.
    residual_rms_ns
        Root mean square of what the observations left over; 0 for an exact map.
    valid_ns
        ``(first, last)`` source times between which the map was observed. If None, the knots'
        span; of a single knot, all times: such a map is a definition and not an observation.
    rate_sigma_ppm
        One sigma of the end rates: outside the valid range sigma grows by this per unit of time.
    limit_ns
        How far outside the valid range the map may be asked; None for a map without limit.
    """

    target: str
    source: str
    knots: Int64
    rate_before: float = 1.0
    rate_after: float = 1.0
    sigma_ns: float = 0.0
    residual_rms_ns: float = 0.0
    valid_ns: tuple[int, int] | None = None
    rate_sigma_ppm: float = 0.0
    limit_ns: int | None = None

    def __post_init__(self) -> None:
        knots = np.array(self.knots, dtype=np.int64, copy=True)
        if not np.issubdtype(np.asarray(self.knots).dtype, np.integer):
            raise TypeError("knots must be integer nanoseconds")
        if knots.ndim != 2 or knots.shape[1] != 2 or len(knots) < 1:
            raise ValueError(f"knots must be (K, 2) with K >= 1, got {knots.shape}")
        if (np.diff(knots, axis=0) <= 0).any():
            raise ValueError("a clock map must increase strictly: times stand still or go back")
        for rate in (self.rate_before, self.rate_after):
            if not (np.isfinite(rate) and rate > 0):
                raise ValueError(f"end rates must be positive, got {rate}")
        if not (self.sigma_ns >= 0 and self.residual_rms_ns >= 0 and self.rate_sigma_ppm >= 0):
            raise ValueError("sigma, residual and rate sigma must not be negative")
        span = ALL_TIMES if len(knots) == 1 else (int(knots[0, 0]), int(knots[-1, 0]))
        valid = span if self.valid_ns is None else self.valid_ns
        if valid[0] > valid[1]:
            raise ValueError(f"the valid range is empty: {valid}")
        knots.setflags(write=False)
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "valid_ns", (int(valid[0]), int(valid[1])))

    # --- making ------------------------------------------------------------------------------

    @classmethod
    def identity(cls, clock: str) -> ClockMap:
        """Return the map of a clock onto itself."""
        return cls(clock, clock, np.zeros((1, 2), np.int64))

    @classmethod
    def affine(
        cls,
        target: str,
        source: str,
        *,
        offset_ns: int,
        drift_ppm: float = 0.0,
        anchor_ns: int = 0,
        **quality: object,
    ) -> ClockMap:
        """Return ``t_target = anchor + offset + (1 + drift/1e6) (t_source - anchor)``.

        Parameters
        ----------
        offset_ns
            Target minus source time at the anchor.
        drift_ppm
            Rate of target against source, minus one, in parts per million.
        anchor_ns
            Source time at which the offset holds. Take one within the recording.
        **quality
            ``sigma_ns``, ``valid_ns``, ``rate_sigma_ppm``, ``limit_ns``, ``residual_rms_ns``.
        """
        rate = 1.0 + drift_ppm * PPM
        knots = np.array([[anchor_ns, anchor_ns + offset_ns]], np.int64)
        return cls(target, source, knots, rate, rate, **quality)  # type: ignore[arg-type]

    # --- asking ------------------------------------------------------------------------------

    @overload
    def apply(self, t_ns: int) -> int: ...
    @overload
    def apply(self, t_ns: Int64) -> Int64: ...
    def apply(self, t_ns: int | Int64) -> int | Int64:
        """Carry source times [ns] to the target clock.

        Raises
        ------
        ClockRangeError
            A time lies further outside the valid range than ``limit_ns``.
        """
        times = _as_int64(t_ns)
        self._check_range(times)
        out = _interpolate(times, self.knots[:, 0], self.knots[:, 1], self._rates())
        return int(out[()]) if np.ndim(t_ns) == 0 else out

    __call__ = apply

    def inverse(self) -> ClockMap:
        """Return ``C_source_target``; there and back again is within 1 ns."""
        first, last = self.range_ns
        ends = _interpolate(
            np.array([first, last], np.int64), self.knots[:, 0], self.knots[:, 1], self._rates()
        )
        return ClockMap(
            target=self.source,
            source=self.target,
            knots=self.knots[:, ::-1],
            rate_before=1.0 / self.rate_before,
            rate_after=1.0 / self.rate_after,
            sigma_ns=self.sigma_ns,
            residual_rms_ns=self.residual_rms_ns,
            valid_ns=(int(ends[0]), int(ends[1])),
            rate_sigma_ppm=self.rate_sigma_ppm,
            limit_ns=self.limit_ns,
        )

    def __matmul__(self, inner: ClockMap) -> ClockMap:
        """Compose: ``C_a_c = C_a_b @ C_b_c``, within 2 ns of applying one after the other."""
        if self.source != inner.target:
            raise ClockMismatchError(
                f"cannot compose C_{self.target}_{self.source} with "
                f"C_{inner.target}_{inner.source}: '{self.source}' is not '{inner.target}'"
            )
        back = inner.inverse()
        outer_bends = self._bends()
        from_outer = _interpolate(
            outer_bends[:, 0], back.knots[:, 0], back.knots[:, 1], back._rates()
        )
        source = np.union1d(inner._bends()[:, 0], from_outer)
        source = source if len(source) else inner.knots[:, 0]
        middle = _interpolate(source, inner.knots[:, 0], inner.knots[:, 1], inner._rates())
        at_outer = np.searchsorted(source, from_outer)
        middle[at_outer] = outer_bends[:, 0]  # exact there, where rounding would bend the line
        target = _interpolate(middle, self.knots[:, 0], self.knots[:, 1], self._rates())
        keep = _strictly_increasing(source, target)
        return ClockMap(
            target=self.target,
            source=inner.source,
            knots=np.column_stack([source[keep], target[keep]]),
            rate_before=self.rate_before * inner.rate_before,
            rate_after=self.rate_after * inner.rate_after,
            sigma_ns=float(np.hypot(self.sigma_ns, inner.sigma_ns)),
            residual_rms_ns=float(np.hypot(self.residual_rms_ns, inner.residual_rms_ns)),
            valid_ns=_common_range(inner.range_ns, self.range_ns, back),
            rate_sigma_ppm=float(np.hypot(self.rate_sigma_ppm, inner.rate_sigma_ppm)),
            limit_ns=_smaller(self.limit_ns, inner.limit_ns),
        )

    def drift_ppm(self, t_ns: int) -> float:
        """Return the rate at source time ``t_ns``, target against source, minus one, in ppm."""
        segment = int(np.searchsorted(self.knots[:, 0], t_ns, side="right"))
        return float((self._rates()[segment] - 1.0) / PPM)

    @overload
    def sigma_at(self, t_ns: int) -> float: ...
    @overload
    def sigma_at(self, t_ns: Int64) -> Float64: ...
    def sigma_at(self, t_ns: int | Int64) -> float | Float64:
        """Return one sigma [ns] at source times; it grows outside the valid range."""
        away = self._distance(_as_int64(t_ns)).astype(np.float64)
        sigma = np.hypot(self.sigma_ns, away * self.rate_sigma_ppm * PPM)
        return float(sigma) if np.ndim(t_ns) == 0 else sigma

    @property
    def range_ns(self) -> tuple[int, int]:
        """First and last source time at which the map was observed."""
        assert self.valid_ns is not None  # __post_init__ fills it
        return self.valid_ns

    # --- inside ------------------------------------------------------------------------------

    def _bends(self) -> Int64:
        """Return the knots, or none of a map that is one straight line.

        The anchor of a straight line may lie years away; a knot there would cost precision here.
        """
        straight = len(self.knots) == 1 and self.rate_before == self.rate_after
        return self.knots[:0] if straight else self.knots

    def _rates(self) -> Float64:
        """Return the rate of each of the K + 1 segments."""
        steps = np.diff(self.knots, axis=0).astype(np.float64)
        return np.concatenate([[self.rate_before], steps[:, 1] / steps[:, 0], [self.rate_after]])

    def _distance(self, times: Int64) -> Int64:
        first, last = self.range_ns
        return np.maximum(np.maximum(first - times, times - last), 0)

    def _check_range(self, times: Int64) -> None:
        if self.limit_ns is None or times.size == 0:
            return
        away = self._distance(times)
        worst = int(away.max())
        if worst > self.limit_ns:
            first, last = self.range_ns
            t = int(times.reshape(-1)[int(away.argmax())])
            raise ClockRangeError(
                f"time {format_seconds(t)} s of clock '{self.source}' lies "
                f"{format_seconds(worst)} s outside the range in which it is known against "
                f"'{self.target}' ({format_seconds(first)} to {format_seconds(last)} s); at most "
                f"{format_seconds(self.limit_ns)} s are allowed",
                hint="check that the recording is complete and belongs to this session",
            )


def format_seconds(t_ns: int) -> str:
    """Write nanoseconds as exact decimal seconds, without trailing zeros."""
    sign, t = ("-", -t_ns) if t_ns < 0 else ("", t_ns)
    whole, rest = divmod(int(t), NS_PER_S)
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".")


def _as_int64(t_ns: int | Int64 | Iterable[int]) -> Int64:
    times = np.asarray(t_ns)
    if times.dtype == object or not np.issubdtype(times.dtype, np.integer):
        raise TypeError(f"times are integer nanoseconds, got {times.dtype}")
    return times.astype(np.int64)


def _interpolate(t: Int64, x: Int64, y: Int64, rates: Float64) -> Int64:
    """Evaluate the line through knots (x, y) that leaves them at the end rates.

    Every time is reached from the knot before it (from the first knot for times before it), and
    only the deviation from rate one is multiplied in float64: at 24 h from a knot the product of
    a rate off by 200 ppm is then still exact to 0.01 ns.
    """
    segment = np.searchsorted(x, t, side="right")
    anchor = np.maximum(segment - 1, 0)
    step = t - x[anchor]
    skew = rates - 1.0
    out: Int64 = y[anchor] + step + np.rint(step * skew[segment]).astype(np.int64)
    return out


def _strictly_increasing(source: Int64, target: Int64) -> NDArray[np.bool_]:
    """Drop knots that rounding made to coincide with the one before."""
    keep = np.ones(len(source), bool)
    keep[1:] = (np.diff(source) > 0) & (np.diff(target) > 0)
    return keep


def _common_range(
    inner: tuple[int, int], outer: tuple[int, int], back: ClockMap
) -> tuple[int, int]:
    """Intersect the valid ranges on the inner source clock."""
    ends = _interpolate(
        np.array(outer, np.int64), back.knots[:, 0], back.knots[:, 1], back._rates()
    )
    first, last = max(inner[0], int(ends[0])), min(inner[1], int(ends[1]))
    if first > last:  # no common range: nothing was ever observed through both
        middle = (first + last) // 2
        return middle, middle
    return first, last


def _smaller(a: int | None, b: int | None) -> int | None:
    return min(a, b) if a is not None and b is not None else (a if b is None else b)
