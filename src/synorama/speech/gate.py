"""What a device heard of others is turned down before recognition, so that it hears its wearer.

Else every utterance is recognised on every device, and where two speak at once the recogniser of
one device follows now this voice and now that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from synorama.speech.levels import FRAME_NS, Divide, Levels
from synorama.speech.sound import SPEECH_HZ, DeviceSound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Int16 = NDArray[np.int16]

__all__ = ["gated", "others_talk"]

OWN_REACH = 31  # frames around own speech that stay open: 150 ms before and after
RAMP = 5
CLOSED = 0.01
MEDIAN = 9
CHUNK = 60 * SPEECH_HZ


def others_talk(levels: Levels, divides: Mapping[tuple[int, int], Divide], device: int) -> Bool:
    """Return ``(F,)`` in which frames somebody else's wearer clearly dominates a device."""
    from scipy.ndimage import median_filter

    other = np.zeros(levels.frames, bool)
    for (a, b), divide in divides.items():
        if device not in (a, b) or not divide.learned:
            continue
        ratio = median_filter(levels.smooth_ratio_db(a, b), MEDIAN)
        active = levels.active[a] | levels.active[b]
        with np.errstate(invalid="ignore"):
            other |= active & _other_alone(ratio, divide, device == a)
    return other


def _other_alone(ratio: NDArray[np.float64], divide: Divide, is_first: bool) -> Bool:
    beyond = ratio - divide.threshold_db if is_first else divide.threshold_db - ratio
    return beyond < -divide.other_alone_db(is_first)


def gated(
    sound: DeviceSound,
    levels: Levels,
    divides: Mapping[tuple[int, int], Divide],
    shift_ns: int,
) -> Int16:
    """Return the device's samples with others' talk turned down by 40 dB."""
    device = levels.devices.index(sound.device)
    other = others_talk(levels, divides, device)
    if not other.any():
        return sound.samples
    own = levels.active[device] & ~other
    near_own = np.convolve(own.astype(np.float64), np.ones(OWN_REACH), "same") > 0
    gain = np.where(near_own | ~other, 1.0, CLOSED)
    gain = np.convolve(np.pad(gain, RAMP // 2, mode="edge"), np.ones(RAMP) / RAMP, "valid")
    return _turned_down(sound, gain, levels.start_ns - shift_ns)


def _turned_down(sound: DeviceSound, gain: NDArray[np.float64], start_ns: int) -> Int16:
    """Apply gains of the session's frames to the device's samples."""
    out = np.empty_like(sound.samples)
    for first in range(0, len(out), CHUNK):
        positions = np.arange(first, min(first + CHUNK, len(out)), 16, dtype=np.int64)
        frames = (sound.session_ns(positions) - start_ns) // FRAME_NS
        of_frames = gain[np.clip(frames, 0, len(gain) - 1)]
        piece = sound.samples[first : first + CHUNK]
        by = np.repeat(of_frames, 16)[: len(piece)]
        out[first : first + CHUNK] = np.rint(piece * by).astype(np.int16)
    return out
