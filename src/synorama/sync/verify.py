"""Is a candidate place true? Many short windows must agree on one line, against chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.sync.lines import Line, ransac
from synorama.sync.windows import Correlograms, Windowing, correlate_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Float64 = NDArray[np.float64]
    Bool = NDArray[np.bool_]

__all__ = ["REACH_S", "Verified", "apart", "chance_log10", "common_span", "verify"]

REACH_S = 0.25
WHITENING = 0.9
TOLERANCES_S = (0.0012, 0.010)  # near-field sound, and a room in which people walk about
WINDOWS = 60
LEAST_OVERLAP_S = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Verified:
    """What the windows say about a candidate.

    Parameters
    ----------
    line
        The line that they agree on.
    log10_p
        Decimal logarithm of the probability that as many agree by chance.
    agreeing, windows
        How many agree, of how many.
    clarity
        How far the agreeing peaks stand out, summed up.
    tolerance_s
        How closely they agree.
    coarse_z
        The candidate's own score.
    times_s, agree
        Centres of all windows, and which of them agree.
    """

    line: Line
    log10_p: float
    agreeing: int
    windows: int
    clarity: float
    tolerance_s: float
    coarse_z: float
    times_s: Float64
    agree: Bool

    @property
    def rank(self) -> float:
        """What candidates are compared by."""
        return self.clarity - 0.5 * self.log10_p + 0.3 * max(self.coarse_z - 6, 0.0)


def common_span(reference: MonoSound, other: MonoSound, line: Line) -> tuple[float, float]:
    """Return the first and last moment, on the other's time, that both sounds cover."""
    start = line(0.0)
    end = (reference.duration_s - start) / (1 + line.slope)
    return max(0.0, -start / (1 + line.slope)), min(other.duration_s, end)


def verify(
    reference: MonoSound,
    other: MonoSound,
    line: Line,
    span_s: tuple[float, float],
    coarse_z: float = 0.0,
) -> Verified | None:
    """Judge a line over a span of the other's time; None where there is too little to judge."""
    overlap = span_s[1] - span_s[0]
    if overlap < LEAST_OVERLAP_S:
        return None
    width = float(np.clip(overlap / 12, 1.0, 3.0))
    count = int(np.clip((overlap - width - 2 * REACH_S) / (width / 2) + 1, 4, WINDOWS))
    margin = width / 2 + REACH_S
    centres = np.linspace(span_s[0] + margin, span_s[1] - margin, count)
    windowing = Windowing(width, REACH_S, WHITENING)
    rows = correlate_windows(reference, other, line, centres, windowing)
    if rows.count < 4:
        return None
    narrow, wide = (_judge(rows, width, tolerance, coarse_z) for tolerance in TOLERANCES_S)
    if narrow is None or wide is None:
        return narrow or wide
    return wide if wide.log10_p < narrow.log10_p - 2 else narrow


def _judge(
    rows: Correlograms, width_s: float, tolerance_s: float, coarse_z: float
) -> Verified | None:
    lags, heights = rows.peaks()
    line = ransac(rows.times_s, lags, heights, tolerance_s)
    if line is None:
        return None
    agree = np.abs(lags - line(rows.times_s)) < tolerance_s
    share = agree.sum() / rows.count
    return Verified(
        line,
        chance_log10(
            apart(rows.times_s[agree], width_s), apart(rows.times_s, width_s), tolerance_s
        ),
        int(agree.sum()),
        rows.count,
        float(np.clip(heights[agree] - 4.5, 0, 12).sum() * share),
        tolerance_s,
        coarse_z,
        rows.times_s,
        agree,
    )


def apart(times_s: Float64, width_s: float) -> int:
    """Return how many windows do not overlap: one loud event makes its neighbours agree."""
    count, last = 0, -np.inf
    for t in times_s:
        if t - last >= 0.99 * width_s:
            count, last = count + 1, t
    return count


def chance_log10(
    agreeing: int, windows: int, tolerance_s: float, reach_s: float = REACH_S
) -> float:
    """Return log10 of the probability that windows with random peaks agree as well.

    Two windows define the line and always agree.
    """
    from scipy.special import bdtrc  # scipy.stats would cost half a second and 40 MB

    if agreeing <= 3:
        return 0.0
    p = min(0.5, tolerance_s / reach_s)
    return float(np.log10(bdtrc(agreeing - 3, windows - 2, p)))
