"""Machine Perception Services (MPS) output of Aria glasses: find it, read it lazily.

`find_mps` gives the output folders of a VRS file, `mps_tracks` the tracks of such a folder,
`mps_summary` what the services report of themselves. Raw files are opened read-only.
"""

from __future__ import annotations

from synorama.capture.mps.find import SERVICES, find_mps, mappings_left
from synorama.capture.mps.tracks import mps_points, mps_summary, mps_tracks

__all__ = ["SERVICES", "find_mps", "mappings_left", "mps_points", "mps_summary", "mps_tracks"]
