"""When each wearer speaks, told by the levels of the glasses, and from where.

A wearer's mouth is a few centimetres from the own glasses and metres from all others: of the same
speech their levels differ by 20 dB or so. Gains of devices differ as well, so levels are counted
from each recording's own floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.sync import pieces
from synorama.sync.pieces import Pieces
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Path = Callable[[Int64], Float64]

__all__ = ["OWN_WAY_M", "WINDOW_S", "Speech", "Talker", "own_speech"]

WINDOW_S = 0.25  # a walking wearer comes 0.7 ms nearer in that time; longer windows blur
HOP_S = 0.125
LOUDER_DB = 7.0
ABOVE_FLOOR_DB = 10.0
FLOOR_PERCENTILE = 10.0
RISE = 0.95  # of a first difference: speech is told from rumble by its higher tones
CELLS_HZ, BLOCK_CELLS = 100, 1 << 12
OWN_WAY_M = 0.066  # from the mouth to the first microphone, by the vendor's drawing of Gen 1
WINDOWS = 1000  # of all wearers, evenly spread: more make nothing better


@dataclass(frozen=True, slots=True, eq=False)
class Talker:
    """Somebody who wears glasses and speaks.

    Parameters
    ----------
    sound
        What the glasses heard, on their own clock.
    clock
        ``C_session_glasses``, one map a segment.
    clock_sigma_s
        One sigma of that clock; 0 for the glasses that give the session its time.
    mouth
        Session times ``(N,)`` [ns] to the mouth's positions ``(N, 3)`` [m] in the world frame,
        NaN where nobody knows; None if it is not known at all. Such glasses still tell when
        their wearer speaks, and the others do not.
    """

    sound: MonoSound
    clock: Pieces
    clock_sigma_s: float
    mouth: Path | None


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """Windows in which one wearer speaks, and no other, from a known place.

    Parameters
    ----------
    talkers
        All that were compared.
    talker
        ``(W,)`` who speaks.
    first
        ``(W,)`` first sample of the window in the talker's sound.
    first_ns
        ``(W,)`` the same moment on the session clock.
    mouth_m
        ``(W, 3)`` where the mouth is in the middle of the window.
    """

    talkers: tuple[Talker, ...]
    talker: NDArray[np.intp]
    first: Int64
    first_ns: Int64
    mouth_m: Float64

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.first)


def own_speech(talkers: Sequence[Talker]) -> Speech:
    """Find the windows in which one wearer alone speaks; it takes two pairs of glasses or more."""
    start_ns, end_ns = _common_ns(talkers)
    centres = np.arange(start_ns, end_ns, round(HOP_S * NS_PER_S), dtype=np.int64)
    first = [_first_samples(t, centres) for t in talkers]
    levels = np.array([_levels_db(t.sound, f) for t, f in zip(talkers, first, strict=True)])
    found = [_of_one(k, t, first[k], _speaks(levels, k)) for k, t in enumerate(talkers)]
    kept = _thinned(sum(len(f) for _, f, _, _ in found))
    who, begin, begin_ns, mouth = (
        np.concatenate(column)[kept] for column in zip(*found, strict=True)
    )
    return Speech(tuple(talkers), who, begin, begin_ns, mouth)


def _thinned(count: int) -> slice:
    return slice(None, None, max(1, -(-count // WINDOWS)))


def _common_ns(talkers: Sequence[Talker]) -> tuple[int, int]:
    """Return from when to when all of them recorded, on the session clock."""
    ends = []
    for talker in talkers:
        sound = talker.sound
        own = np.array([sound.start_ns, sound.time_ns(sound.duration_s)], np.int64)
        ends.append(pieces.apply(talker.clock, own))
    margin = round(WINDOW_S * NS_PER_S)
    return max(int(e[0]) for e in ends) + margin, min(int(e[1]) for e in ends) - margin


def _first_samples(talker: Talker, centres_ns: Int64) -> Int64:
    """Return the first sample of the window around each session time."""
    own = pieces.apply(pieces.inverse(talker.clock), centres_ns) - talker.sound.start_ns
    rate = talker.sound.rate_hz
    return np.asarray(np.rint(own * (rate / NS_PER_S)), np.int64) - _width(rate) // 2


def _width(rate_hz: int) -> int:
    return round(WINDOW_S * rate_hz)


def _levels_db(sound: MonoSound, first: Int64) -> Float64:
    """Return each window's level over the recording's floor [dB]; NaN where there is no sound."""
    cells = np.concatenate([[0.0], np.cumsum(_cell_powers(sound))])
    cell = sound.rate_hz // CELLS_HZ
    begin, width = np.rint(first / cell).astype(np.int64), round(WINDOW_S * CELLS_HZ)
    inside = (begin >= 0) & (begin + width < len(cells))
    at = np.where(inside, begin, 0)
    power = np.where(inside, cells[np.minimum(at + width, len(cells) - 1)] - cells[at], 0.0)
    level = np.full(len(first), np.nan)
    heard = power > 0
    level[heard] = 10 * np.log10(power[heard])
    return level - np.percentile(level[heard], FLOOR_PERCENTILE) if heard.any() else level


def _cell_powers(sound: MonoSound) -> Float64:
    """Return the power of each hundredth of a second; in blocks, as recordings are long."""
    cell = sound.rate_hz // CELLS_HZ
    whole = sound.samples[: len(sound.samples) // cell * cell].reshape(-1, cell)
    blocks = [
        _rise(whole[k : k + BLOCK_CELLS].astype(np.float32)).sum(axis=1)
        for k in range(0, len(whole), BLOCK_CELLS)
    ]
    return np.concatenate([np.zeros(0), *blocks]).astype(np.float64)


def _rise(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    squares: NDArray[np.float32] = np.square(cells[:, 1:] - np.float32(RISE) * cells[:, :-1])
    return squares


def _speaks(levels: Float64, talker: int) -> NDArray[np.bool_]:
    """Tell in which windows this one is louder than all others, and loud at all."""
    others = np.delete(levels, talker, axis=0).max(axis=0)  # NaN if any of them is
    own = levels[talker]
    return np.asarray((own > ABOVE_FLOOR_DB) & (own - others > LOUDER_DB))


def _of_one(
    number: int, talker: Talker, first: Int64, speaks: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], Int64, Int64, Float64]:
    """Return number, first samples, their session times and mouths of one wearer's windows."""
    begin = first[speaks]
    rate = talker.sound.rate_hz
    own_ns = talker.sound.start_ns + np.rint(begin * (NS_PER_S / rate)).astype(np.int64)
    begin_ns = pieces.apply(talker.clock, own_ns)
    middle_ns = begin_ns + round(WINDOW_S / 2 * NS_PER_S)
    mouth = np.full((len(begin), 3), np.nan) if talker.mouth is None else talker.mouth(middle_ns)
    known = np.isfinite(mouth).all(axis=1)
    who = np.full(int(known.sum()), number, np.intp)
    return who, begin[known], begin_ns[known], mouth[known]
