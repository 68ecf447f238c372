"""From points that a person clicked in both clouds to the transform between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import CloudUnitError, FlatCloudError, InputError, MirroredCloudError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["transform_from_pairs"]

FEWEST = 3
LINE_SHARE = 0.05
SCALE_OFF = 0.4  # of the logarithm: no two units are nearer
MOST_OFF_M = 0.3


def transform_from_pairs(source_m: Float64, target_m: Float64) -> Float64:
    """Return the rigid ``T_target_source`` ``(4, 4)`` that fits pairs of points best.

    K. S. Arun et al., "Least-squares fitting of two 3-D point sets", PAMI 1987.

    Parameters
    ----------
    source_m, target_m
        ``(N, 3)`` [m], the same places in order.

    Raises
    ------
    InputError
        Fewer than three pairs, or a pair that does not fit the others.
    FlatCloudError
        They lie on one line.
    CloudUnitError
        The distances differ: another unit.
    MirroredCloudError
        They fit only mirrored.
    """
    if len(source_m) < FEWEST or source_m.shape != target_m.shape:
        raise InputError(
            f"{len(source_m)} pairs of points, and {FEWEST} are the least",
            hint="click three corners that are far apart, in both clouds in the same order",
        )
    a, b = source_m - source_m.mean(axis=0), target_m - target_m.mean(axis=0)
    _check_spread(a, b)
    u, _, v = np.linalg.svd(b.T @ a)
    sign = np.linalg.det(u @ v)
    turn = u @ np.diag([1.0, 1.0, sign]) @ v
    off = np.linalg.norm(b - a @ turn.T, axis=1)
    if off.max() > MOST_OFF_M:
        mirrored = np.linalg.norm(b - a @ (u @ v).T, axis=1).max()
        if sign < 0 and mirrored < MOST_OFF_M:
            raise MirroredCloudError(
                "the pairs fit only when one cloud is mirrored",
                hint="export the scan again with right-handed axes",
            )
        raise InputError(
            f"pair {int(off.argmax()) + 1} is {off.max():.2f} m off what the others say",
            hint="click it again, or leave it out",
        )
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turn, target_m.mean(axis=0) - turn @ source_m.mean(axis=0)
    return T


def _check_spread(a: Float64, b: Float64) -> None:
    spreads = [np.linalg.svd(p, compute_uv=False) for p in (a, b)]
    if any(s[1] < LINE_SHARE * s[0] or s[0] == 0 for s in spreads):
        raise FlatCloudError(
            "the pairs lie on one line, about which the cloud may turn",
            hint="click a point off that line too",
        )
    scale = float(spreads[1][0] / spreads[0][0])
    if abs(np.log(scale)) > SCALE_OFF:
        raise CloudUnitError(
            f"distances in the target are {scale:.4g} times those in the source",
            hint="give the unit, such as --source-unit mm",
        )
