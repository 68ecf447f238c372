"""Flashes that several cameras saw: light that comes at once over much of the picture.

A flash says when, to a frame; how flashes follow each other says which is which. Offsets at which
the flashes of two cameras fall on each other are tried; at the right one at least three do, and
if they do at another one as well, as flashes at regular intervals, nothing is said. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["Flashes", "find_flashes", "match_flashes"]

GAMMA = 2.2
NOISE_LEVEL = 0.7  # stored values of 255
CLEAR = 6.0  # over what a part's brightness does anyway
SHARE = 0.3  # of the picture's parts
ONLY_ADDS = 0.8
LEAST_RISE = 4.0  # stored values, of the parts that rise
APART_NS = 250_000_000
LEAST_ALIKE = 3
MOST_ALIKE_SHARE = 0.6  # of the flashes that both could have seen
DRIFT = 150e-6
GROUP_NS = 90_000_000_000  # flashes further apart tell the drift
FLOOR_NS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Flashes:
    """When a camera saw flashes.

    Parameters
    ----------
    at_ns
        ``(N,)`` middle between the last frame before and the first with it.
    half_ns
        ``(N,)`` half of what lies between the two.
    span_ns
        ``(S, 2)`` stretches of the recording that were looked at.
    """

    at_ns: Int64
    half_ns: Float64
    span_ns: Int64


def find_flashes(times_ns: Int64, brightness: Float64) -> Flashes:
    """Find flashes in a stretch of frames.

    Parameters
    ----------
    times_ns
        ``(N,)`` times of the frames.
    brightness
        ``(N, parts)`` brightness of parts of each frame, 0 to 255.
    """
    span = np.array([[times_ns[0], times_ns[-1]]], np.int64)
    rise = np.diff(brightness, axis=0)
    noise = 1.4826 * np.median(np.abs(rise), axis=0) + NOISE_LEVEL
    up = np.where(rise > CLEAR * noise, rise, 0)
    down = np.where(-rise > CLEAR * noise, -rise, 0)
    share = (up > 0).mean(axis=1)
    net = (up.sum(axis=1) - down.sum(axis=1)) / np.maximum(up.sum(axis=1) + down.sum(axis=1), 1e-9)
    high = up.sum(axis=1) / np.maximum((up > 0).sum(axis=1), 1) > LEAST_RISE
    found: list[int] = []
    for k in np.flatnonzero((share > SHARE) & (net > ONLY_ADDS) & high):
        if not found or times_ns[k] - times_ns[found[-1]] > APART_NS:
            found.append(int(k))
    first = np.array(found, np.int64)
    gap = times_ns[first + 1] - times_ns[first]
    return Flashes(times_ns[first] + gap // 2, gap / 2.0, span)


def match_flashes(known: Flashes, mine: Flashes) -> list[tuple[int, int, float]] | str:
    """Find which flashes of two cameras are the same.

    Returns
    -------
    list or str
        For each group of flashes close in time: its middle on my clock, on the other's, and the
        half width of the interval; or in words why there is none.
    """
    if min(len(known.at_ns), len(mine.at_ns)) < LEAST_ALIKE:
        return "fewer than three flashes are seen that light up the picture"
    tried = sorted(
        (
            (_alike(known, mine, int(a - b)), int(a - b))
            for a, b in product(known.at_ns, mine.at_ns)
        ),
        key=lambda t: -len(t[0]),
    )
    best, offset = tried[0]
    if len(best) < max(LEAST_ALIKE, MOST_ALIKE_SHARE * _could_be(known, mine, offset)):
        return "the flashes that it saw are not those of a camera whose clock is known"
    rivals = [a for a, o in tried if abs(o - offset) > APART_NS]
    if rivals and len(rivals[0]) >= len(best) - 1:
        return (
            "flashes fit in more than one way: they come at regular intervals, and nothing tells "
            "which is which"
        )
    return _groups(known, mine, best)


def _alike(known: Flashes, mine: Flashes, offset_ns: int) -> list[tuple[int, int]]:
    """Return which flashes, theirs and mine, fall on each other at an offset."""
    pairs = []
    for k, t in enumerate(mine.at_ns):
        off = np.abs(known.at_ns - (t + offset_ns))
        i = int(off.argmin())
        drift = DRIFT * abs(float(t - mine.at_ns[0]))
        if off[i] <= 2 * (known.half_ns[i] + mine.half_ns[k]) + drift:
            pairs.append((i, k))
    return pairs


def _could_be(known: Flashes, mine: Flashes, offset_ns: int) -> int:
    """Return how many of the flashes fall into what both were looked at."""
    ours = _inside(mine.at_ns + offset_ns, known.span_ns)
    theirs = _inside(known.at_ns - offset_ns, mine.span_ns)
    return min(int(ours.sum()), int(theirs.sum()))


def _inside(times: Int64, spans: Int64) -> NDArray[np.bool_]:
    return np.asarray(
        ((times[:, None] >= spans[:, 0]) & (times[:, None] <= spans[:, 1])).any(axis=1)
    )


def _groups(
    known: Flashes, mine: Flashes, pairs: list[tuple[int, int]]
) -> list[tuple[int, int, float]]:
    """Join the flashes of each group: all of them hold what their intervals have in common."""
    groups: list[list[tuple[int, int]]] = []
    for i, k in pairs:
        if groups and mine.at_ns[k] - mine.at_ns[groups[-1][0][1]] < GROUP_NS:
            groups[-1].append((i, k))
        else:
            groups.append([(i, k)])
    return [_joined(known, mine, group) for group in groups if len(group) >= LEAST_ALIKE - 1]


def _joined(known: Flashes, mine: Flashes, group: list[tuple[int, int]]) -> tuple[int, int, float]:
    theirs, ours = (np.array(x) for x in zip(*group, strict=True))
    lead = known.at_ns[theirs] - mine.at_ns[ours]
    half = known.half_ns[theirs] + mine.half_ns[ours]
    low, high = int((lead - half).max()), int((lead + half).min())
    at = int(np.median(mine.at_ns[ours]))
    if low > high:  # the clocks drift apart, or a lamp lit slowly: as wide as they differ
        low, high = high, low
    drift = DRIFT * float(np.ptp(mine.at_ns[ours])) / 2
    return at, at + (low + high) // 2, max((high - low) / 2, FLOOR_NS) + drift
