"""Long sound in pieces: cut where it is quiet, so that no word is cut and work can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.sound import SPEECH_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sound = NDArray[np.int16] | NDArray[np.float32]

__all__ = ["cut_windows"]

LONGEST_S = 300.0
SHORTEST_SHARE = 0.6  # a cut is looked for in the last part of what a window may hold
QUIET_S = 0.3
STEP = SPEECH_HZ // 100


def cut_windows(samples: Sound, longest_s: float = LONGEST_S) -> list[tuple[int, int]]:
    """Return ``(first, end)`` samples of windows that follow each other without a gap.

    Parameters
    ----------
    samples
        ``(N,)`` at 16 kHz.
    longest_s
        No window is longer. Each cut is in the middle of the quietest `QUIET_S` of the last part.
    """
    longest = round(longest_s * SPEECH_HZ)
    windows, first = [], 0
    while len(samples) - first > longest:
        low = first + round(SHORTEST_SHARE * longest)
        end = low + _quietest(samples[low : first + longest])
        windows.append((first, end))
        first = end
    return [*windows, (first, len(samples))]


def _quietest(samples: Sound) -> int:
    steps = len(samples) // STEP
    power = np.square(samples[: steps * STEP].astype(np.float32)).reshape(steps, STEP).mean(axis=1)
    width = min(round(QUIET_S * SPEECH_HZ / STEP), steps)
    mean = np.convolve(power, np.ones(width) / width, "valid")
    return (int(np.argmin(mean)) + width // 2) * STEP
