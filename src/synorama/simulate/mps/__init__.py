"""Machine Perception Services: what they would have made of the recordings of the glasses."""

from __future__ import annotations

from synorama.simulate.mps.output import MpsOptions, MpsTruth, Worn, write_mps

__all__ = ["MpsOptions", "MpsTruth", "Worn", "write_mps"]
