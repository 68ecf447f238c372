"""Container time units to nanoseconds, rounded once and without floating point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["ticks_to_ns"]

NS_PER_S = 1_000_000_000


def ticks_to_ns(ticks: Int64, time_base: tuple[int, int]) -> Int64:
    """Return ``ticks * numerator / denominator`` seconds as int64 ns, to nearest, halves up.

    Whole seconds and the rest are carried apart, so that neither a fine time base nor a late
    time overflows: exact for denominators below ``2**32``.

    Parameters
    ----------
    ticks
        ``(N,)`` int64 times in units of the time base.
    time_base
        Seconds per tick as (numerator, denominator).
    """
    numerator, denominator = time_base
    whole, rest = np.divmod(np.asarray(ticks, np.int64) * numerator, denominator)
    out: Int64 = whole * NS_PER_S + (2 * NS_PER_S * rest + denominator) // (2 * denominator)
    return out
