"""Faults that belong to sound: clocks that wander, samples that are lost, cables mixed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.sound.acoustic_scene import Ears, Hears
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = [
    "Drop",
    "Dropping",
    "clock_after_drops",
    "inverted",
    "muted",
    "swapped",
    "wandering",
]


def muted(ears: Ears, *channels: int) -> Ears:
    """Return ears of which some channels give nothing."""
    return replace(ears, muted=ears.muted | set(channels))


def inverted(ears: Ears, *channels: int) -> Ears:
    """Return ears of which some channels have the wrong polarity."""
    return replace(ears, inverted=ears.inverted ^ set(channels))


def swapped(ears: Ears, one: int, other: int) -> Ears:
    """Return ears of which two channels give each other's microphone."""
    wired = list(ears.wired or range(len(ears.gains)))
    wired[one], wired[other] = wired[other], wired[one]
    return replace(ears, wired=tuple(wired))


def wandering(
    clock: ClockMap, rng: np.random.Generator, *, wander_ns: float, every_s: float = 20.0
) -> ClockMap:
    """Return a clock whose rate changes as a crystal's does when it gets warm or cold.

    Parameters
    ----------
    clock
        ``C_session_device`` that runs straight between its first and last knot.
    rng
        Decides how it wanders.
    wander_ns
        How far it comes off the straight line at most; it ends where the straight one does.
    every_s
        Between knots; between them the rate stays.
    """
    first, last = (int(t) for t in clock.knots[[0, -1], 0])
    source = np.linspace(first, last, max(3, round((last - first) / NS_PER_S / every_s))).round()
    walk = np.cumsum(np.cumsum(rng.standard_normal(len(source))))  # the rate walks at random
    off = walk - np.linspace(walk[0], walk[-1], len(walk))
    off *= wander_ns / np.abs(off).max()
    times = source.astype(np.int64)
    target = clock.apply(times) + np.rint(off).astype(np.int64)
    return replace(clock, knots=np.column_stack([times, target]))


@dataclass(frozen=True, slots=True)
class Drop:
    """So many samples never reached the file; sample ``at`` of the file is the first after them."""

    at: int
    lost: int


class Dropping:
    """A listener that loses samples without a word: what comes after stands too early."""

    def __init__(self, inner: Hears, drops: Sequence[Drop]) -> None:
        self._inner, self._drops = inner, sorted(drops, key=lambda drop: drop.at)

    def heard(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> Float32:
        """Sample the sound as it stands in the file; parameters as for any listener."""
        inside = [d.at for d in self._drops if start < d.at < start + count]
        cuts = [start, *inside, start + count]
        return np.concatenate(
            [
                self._inner.heard(clock, rate_hz, first_ns, a + self._lost_before(a), b - a)
                for a, b in pairwise(cuts)
            ]
        )

    def _lost_before(self, sample: int) -> int:
        return sum(drop.lost for drop in self._drops if drop.at <= sample)


def clock_after_drops(
    clock: ClockMap, rate_hz: float, first_ns: int, drops: Sequence[Drop]
) -> ClockMap:
    """Return ``C_session_device`` of sound in a file that counts the samples that are left.

    Parameters
    ----------
    clock
        ``C_session_device`` of the device, which knows of no loss.
    rate_hz, first_ns
        Samples a second, and device time of sample 0.
    drops
        What was lost.

    Returns
    -------
    The map jumps forward within 1 ns where samples are missing.
    """
    first, last = (int(t) for t in clock.knots[[0, -1], 0])
    knots, lost_ns = [(first, first)], 0
    for drop in sorted(drops, key=lambda drop: drop.at):
        at = first_ns + round(drop.at * NS_PER_S / rate_hz)
        knots.append((at - 1, at - 1 + lost_ns))
        lost_ns += round(drop.lost * NS_PER_S / rate_hz)
        knots.append((at, at + lost_ns))
    knots.append((last - lost_ns, last))
    return clock @ ClockMap(clock.source, clock.source, np.array(knots, np.int64))
