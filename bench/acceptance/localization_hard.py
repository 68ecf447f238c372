"""Hard scans placed by pictures: made by hand, with a drift, of a part of a room that was changed.

What geometry alone leaves open in such rooms (``registration.py``) pictures should settle. Each
seed is a kitchen in which 40 % of the things were moved since the scan, of which half to 85 % is
there, bent by about 10 mm. The scan of the seed before is a room in which the frames were not
taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2

from bench.accept import Bar
from bench.acceptance.localization import Views, placed
from bench.localize_rooms import Lab
from synorama.geometry.landmarks import from_cloud
from synorama.geometry.localize import locate_scan

RIGHT_DEG, RIGHT_M = 0.5, 0.03  # as in the bars of registration: found

BARS = (
    Bar(
        "hard_right", "hard scans: accepted by pictures alone, 0.5 deg and 3 cm", "", 0.75, "share"
    ),
    Bar("hard_deg", "the same: rotation, median", "deg", 0.25, "median"),
    Bar("hard_m", "the same: translation, in the middle of the room, median", "m", 0.01, "median"),
    Bar("hard_wrong", "wrong ones accepted: other rooms, wrong places", "", 0.0),
    Bar("hard_2_sigma", "true error within 2 sigma", "", 0.9, "share"),
)

_before: list[Views] = []


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Measure one room."""
    cv2.setNumThreads(1)
    lab = Lab(seed, hard=True)
    landmarks = from_cloud(lab.scan_pictures(), lab.scan.points_m)
    frames = lab.glasses_frames()
    told, wrong = placed(
        lab, locate_scan(frames, landmarks, seed=seed), (RIGHT_DEG, RIGHT_M), "hard"
    )
    right = told["hard_accepted"] and not wrong
    for other in _before:
        wrong += locate_scan(frames, other, seed=seed).result.status == "accepted"
    _before[:] = [landmarks]
    if "scan_2_sigma" in told:
        told["hard_2_sigma"] = told.pop("scan_2_sigma")
    return told | {"hard_right": float(right), "hard_wrong": float(wrong)}
