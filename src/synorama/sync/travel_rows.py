"""A camera's sound against what each wearer said, window by window.

Cross-correlated with the sound at the mouth, the camera's sound shows how long the speech took
and over which ways: the direct one, and echoes after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.audio import MonoSound
from synorama.sync import pieces
from synorama.sync.own_voice import OWN_WAY_M, WINDOW_S, Speech
from synorama.sync.pieces import Pieces
from synorama.sync.windows import parabola, whitened
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]

__all__ = ["Rows", "correlate_speech"]

REACH_S = 0.09  # a room's longest way, and what the clock of sync may be off
STAY_M, STAY_S = 0.2, 5.0  # windows of one wearer at one place, one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One correlation curve a window, in units of its own root mean square.

    Parameters
    ----------
    origin_ns
        Session time from which ``times_s`` count.
    talker
        ``(R,)`` who speaks.
    stay
        ``(R,)`` number of the stay at one place that the window belongs to.
    times_s
        ``(R,)`` middle of the window.
    mouth_m
        ``(R, 3)`` where the mouth is.
    lags_s
        ``(R,)`` by how much the middle of the curve comes after the sound at the glasses, on the
        camera's rough clock.
    curves
        ``(R, L)`` float32; one step is one sample of lag.
    rate_hz
        Samples per second.
    """

    origin_ns: int
    talker: NDArray[np.intp]
    stay: NDArray[np.intp]
    times_s: Float64
    mouth_m: Float64
    lags_s: Float64
    curves: Float32
    rate_hz: int

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.times_s)

    @property
    def stays(self) -> int:
        """Number of stays: windows of one stay are no independent witnesses."""
        return len(np.unique(self.stay))

    @property
    def half(self) -> int:
        """Index of the middle of the curves."""
        return int(self.curves.shape[1] // 2)

    def travel_s(self, place_m: Float64, speed_m_s: float) -> Float64:
        """Return how much later speech reaches a place than the wearer's own glasses, ``(R,)``."""
        way = np.linalg.norm(self.mouth_m - place_m, axis=1)
        return np.asarray((way - OWN_WAY_M) / speed_m_s, np.float64)

    def peaks(self, expected_s: Float64, around_s: float) -> tuple[Float64, Float64]:
        """Return the highest peak near each expected lag: its lag [s] and its height."""
        at, height = self._highest(expected_s, -around_s, around_s)
        row = np.arange(self.count)
        bend = parabola(self.curves[row, at - 1], self.curves[row, at], self.curves[row, at + 1])
        lag = self.lags_s + (at + np.clip(bend, -1, 1) - self.half) / self.rate_hz
        return np.where(height > 0, lag, expected_s), height

    def highest(self, expected_s: Float64, low_s: float, high_s: float) -> Float64:
        """Return how high each curve reaches between two lags, given relative to the expected."""
        return self._highest(expected_s, low_s, high_s)[1]

    def _highest(
        self, expected_s: Float64, low_s: float, high_s: float
    ) -> tuple[NDArray[np.int64], Float64]:
        """Return index and height; height 0 where the curve does not reach so far."""
        middle = np.rint((expected_s - self.lags_s) * self.rate_hz).astype(np.int64) + self.half
        span = np.arange(round(low_s * self.rate_hz), round(high_s * self.rate_hz) + 1)
        at = middle[:, np.newaxis] + span
        inside = (at >= 1) & (at < self.curves.shape[1] - 1)
        at = np.where(inside, at, 1)
        heights = np.where(inside, np.take_along_axis(self.curves, at, axis=1), 0.0)
        best = heights.argmax(axis=1)
        row = np.arange(self.count)
        return at[row, best], np.maximum(heights[row, best], 0.0).astype(np.float64)

    def within(self, first_ns: int, last_ns: int) -> Rows:
        """Return those whose windows lie between two session times."""
        t_ns = self.origin_ns + np.rint(self.times_s * NS_PER_S).astype(np.int64)
        return self._only((t_ns >= first_ns) & (t_ns <= last_ns))

    def _only(self, wanted: Bool) -> Rows:
        names = ("talker", "stay", "times_s", "mouth_m", "lags_s", "curves")
        return replace(self, **{name: getattr(self, name)[wanted] for name in names})


def correlate_speech(speech: Speech, camera: MonoSound, rough: Pieces) -> Rows:
    """Correlate the camera's sound with all windows of speech that it may have heard.

    Parameters
    ----------
    rough
        ``C_session_camera`` to within `REACH_S`, travel of sound included; without bends.
    """
    rate = camera.rate_hz
    reach, width = round(REACH_S * rate), round(WINDOW_S * rate)
    own_ns = pieces.apply(pieces.inverse(rough), speech.first_ns) - camera.start_ns
    begin = np.rint(own_ns * (rate / NS_PER_S)).astype(np.int64)
    inside = (begin >= reach) & (begin + width + reach <= len(camera.samples))
    kept, curves = [], []
    for w in np.flatnonzero(inside).tolist():
        b = _cut(speech.talkers[speech.talker[w]].sound, int(speech.first[w]), width)
        a = _cut(camera, int(begin[w]) - reach, width + 2 * reach)
        if np.count_nonzero(a[::11]) * 2 > len(a[::11]):
            kept.append(w)
            curves.append(whitened(a, b, 2 * reach + 1, rate, 1.0))
    return _rows(speech, camera, rough, begin, np.array(kept, np.intp), curves)


def _cut(sound: MonoSound, first: int, count: int) -> NDArray[np.int16]:
    return sound.samples[first : first + count]


def _rows(
    speech: Speech,
    camera: MonoSound,
    rough: Pieces,
    begin: NDArray[np.int64],
    kept: NDArray[np.intp],
    curves: list[Float32],
) -> Rows:
    rate, reach = camera.rate_hz, round(REACH_S * camera.rate_hz)
    at_ns = camera.start_ns + np.rint(begin[kept] * (NS_PER_S / rate)).astype(np.int64)
    first_ns = speech.first_ns[kept]
    origin = int(first_ns[0]) if len(kept) else 0
    times = (first_ns - origin) / NS_PER_S + WINDOW_S / 2
    talker, mouth = speech.talker[kept], speech.mouth_m[kept]
    return Rows(
        origin_ns=origin,
        talker=talker,
        stay=_stays(talker, times, mouth),
        times_s=times,
        mouth_m=mouth,
        lags_s=(pieces.apply(rough, at_ns) - first_ns) / NS_PER_S,
        curves=np.array(curves, np.float32).reshape(len(kept), 2 * reach + 1),
        rate_hz=rate,
    )


def _stays(talker: NDArray[np.intp], times: Float64, mouth: Float64) -> NDArray[np.intp]:
    """Return the number of each window's stay: new where the mouth moved, or after a time."""
    stay = np.zeros(len(times), np.intp)
    number = -1
    for who in np.unique(talker):
        mine = np.flatnonzero(talker == who)
        begun = -1
        for k in mine[np.argsort(times[mine])].tolist():
            moved = begun < 0 or np.linalg.norm(mouth[k] - mouth[begun]) > STAY_M
            if moved or times[k] - times[begun] > STAY_S:
                begun, number = k, number + 1
            stay[k] = number
    return stay
