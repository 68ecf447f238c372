"""A coarse look at all pictures of a track: how bright each part of each picture is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.media.source import MediaSource
from synorama.media.video import read_frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.records import VideoTrack

    Float32 = NDArray[np.float32]

__all__ = ["PARTS_HIGH", "PARTS_WIDE", "brightness"]

PARTS_HIGH, PARTS_WIDE = 18, 32


def brightness(
    files: Sequence[Path | MediaSource],
    track: VideoTrack,
    *,
    first: int = 0,
    count: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Float32:
    """Return the mean of each part of each picture.

    Parameters
    ----------
    files
        All files of the recording, in its order.
    track
        The camera.
    first, count
        Which frames; all from the first on by default.
    progress
        Called as ``progress(done, total)``.

    Returns
    -------
    ndarray
        ``(N, PARTS_HIGH * PARTS_WIDE)`` stored values, 0 to 255.
    """
    import cv2

    rest = track.count - first
    total = rest if count is None else min(count, rest)
    out = np.zeros((total, PARTS_HIGH * PARTS_WIDE), np.float32)
    for k, picture in enumerate(read_frames(files, track, first, total)):
        progress(k, total)
        grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        small = cv2.resize(grey, (PARTS_WIDE, PARTS_HIGH), interpolation=cv2.INTER_AREA)
        out[k] = small.reshape(-1)
    return out
