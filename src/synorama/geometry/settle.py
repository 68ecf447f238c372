"""An object that a person put about where it stood in a scan, settled on the scan's points.

The scan's points near the object are laid onto its surface, which is whole and known better than
the scan. What it stands on lies near it too: the kernel lets go of that, and only what rises above
the lowest centimetres of the object counts for whether it is there at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import RegistrationRefusedError
from synorama.geometry.confidence import Evidence, displacement_sigma_m, evidence_of
from synorama.geometry.fine import Step, refine
from synorama.geometry.objects import ScannedObject, sampled
from synorama.geometry.surface import Surface
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]

__all__ = ["Settled", "settled"]

SAMPLES = 40_000
AROUND_M = 0.10  # of the object, within which the scan's points are used
STEPS = (Step(0.03, 0.08, 20), Step(0.012, 0.04, 20), Step(0.005, 0.02, 30))
NOISE_M = 0.004
ANY_TILT_RAD = 1e3  # an object may lie on its side: no vertical is taken for granted
SMALL = 0.12  # of a room: what lengths of a room's evidence become
STANDING_M = 0.015  # above its lowest place: nearer is what it stands on
SEEN_M = 0.015
LEAST_SEEN, LEAST_SHARE_HIGH = 0.30, 0.10
FACING = -0.3  # up or sideways; the underside is seen by nobody
LEAST_HELD = 0.09  # of what is known of shifts; boxes of which two sides are seen have 0.14
FAR_M, FAR_RAD = 0.10, float(np.deg2rad(20.0))


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Where an object stood at the scan, and how sure that is.

    Parameters
    ----------
    T_scan_object
        The pose.
    seen
        Share of its surface, short of the underside and what it stands on, that the scan shows.
    sigma_m
        One sigma [m], root mean square over its surface.
    moved_m, turned_rad
        From where the person had put it.
    """

    T_scan_object: RigidTransform
    seen: float
    sigma_m: float
    moved_m: float
    turned_rad: float


def settled(thing: ScannedObject, scan_m: Float64, start: RigidTransform) -> Settled:
    """Return where an object stood at a scan, from about where a person says that it stood.

    Parameters
    ----------
    thing
        The object.
    scan_m
        ``(N, 3)`` points of the scan, z up.
    start
        ``T_scan_object``, good to a few centimetres and about ten degrees.

    Raises
    ------
    RegistrationRefusedError
        The scan does not show it there, or too few of its sides to hold it, or it is too flat to
        be told from what it lies on.
    """
    places, normals, _ = sampled(thing, SAMPLES)
    surface = Surface(places, normals, 0.0)
    near = _about(scan_m, places, start)
    variance = np.full(len(near), NOISE_M**2)
    T = refine(near, variance, surface, surface, start.inverse().matrix, STEPS, ANY_TILT_RAD)
    found = RigidTransform(start.source, start.target, T).inverse()
    moved_m, turned_rad = _apart(found, start, places.mean(axis=0))
    outward = normals if thing.watertight else None
    seen = _seen(near, places, outward, found)
    evidence = evidence_of(near, variance, surface, T, unit=SMALL, handheld=False)
    _check(thing.name, seen, moved_m, turned_rad, evidence)
    assert evidence is not None  # checked
    sigma_m = displacement_sigma_m(evidence.covariance, places)
    return Settled(found, seen, sigma_m, moved_m, turned_rad)


def _about(scan_m: Float64, places: Float64, start: RigidTransform) -> Float64:
    """Return the scan's points about the object."""
    inside = start.inverse().apply(scan_m, frame=start.target)
    low, high = places.min(axis=0) - AROUND_M, places.max(axis=0) + AROUND_M
    return np.asarray(scan_m[((inside > low) & (inside < high)).all(axis=1)], np.float64)


def _apart(found: RigidTransform, start: RigidTransform, middle: Float64) -> tuple[float, float]:
    shift = found.rotation @ middle + found.translation_m
    shift -= start.rotation @ middle + start.translation_m
    cosine = (np.trace(found.rotation.T @ start.rotation) - 1) / 2
    return float(np.linalg.norm(shift)), float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _seen(near: Float64, places: Float64, outward: Float64 | None, found: RigidTransform) -> float:
    """Return the share of the surface that the scan shows; 0 where none of it stands out."""
    from scipy.spatial import cKDTree

    placed = found.apply(places, frame=found.source)
    high = placed[:, 2] > placed[:, 2].min() + STANDING_M
    if outward is not None:  # else the underside cannot be told
        high &= outward @ found.rotation[2] > FACING
    if high.mean() < LEAST_SHARE_HIGH or not len(near):
        return 0.0
    distance, _ = cKDTree(near).query(placed[high], distance_upper_bound=SEEN_M)
    return float(np.isfinite(distance).mean())


def _check(
    name: str, seen: float, moved_m: float, turned_rad: float, evidence: Evidence | None
) -> None:
    """Refuse what the scan does not show, and what ran away from where the person put it."""
    if evidence is None or seen < LEAST_SEEN:
        raise RegistrationRefusedError(
            f"the scan shows {100 * seen:.0f} % of what stands out of '{name}' there: it was "
            "elsewhere at the scan, or is too flat or too thinly scanned to be told",
            hint="look where it stands in the scan, and give that, or leave 'refine' out",
        )
    if evidence.shares[0] < LEAST_HELD:
        raise RegistrationRefusedError(
            f"what the scan shows of '{name}' lets it slide along itself",
            hint="put it where it stands as well as you can, and leave 'refine' out",
        )
    if moved_m > FAR_M or turned_rad > FAR_RAD:
        raise RegistrationRefusedError(
            f"'{name}' went {100 * moved_m:.0f} cm and {np.degrees(turned_rad):.0f} degrees away "
            "from where it was put",
            hint="put it nearer to where it stands in the scan",
        )
