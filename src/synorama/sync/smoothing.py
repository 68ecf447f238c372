"""Means over neighbours; `scipy.ndimage` would cost more to import than to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]

__all__ = ["moving_mean"]


def moving_mean(values: Float32, width: int) -> Float32:
    """Return the mean of ``width`` values (odd) around each along the last axis.

    Beyond the ends the first and the last value go on.
    """
    half = width // 2
    around = [(0, 0)] * (values.ndim - 1) + [(half + 1, half)]
    sums = np.cumsum(np.pad(values, around, mode="edge"), axis=-1, dtype=np.float64)
    means = (sums[..., width:] - sums[..., :-width]) / width
    return means.astype(np.float32)
