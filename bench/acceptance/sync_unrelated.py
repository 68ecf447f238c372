"""No common sound: each seed is one pair of another time, session or thing that repeats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.accept import Bar
from bench.sync_calibration import told
from bench.sync_material import KINDS_APART, unrelated
from synorama.sync import align

BARS = (
    Bar("refused", "7: no common sound, refused", "", 1.0, "share"),
    *(Bar(f"refused: {kind}", f"of these: {kind}", "", 1.0, "share") for kind in KINDS_APART),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Align one pair that has nothing in common."""
    pair = unrelated(seed)
    evidence = align(pair.reference, pair.other)
    refused = float(not evidence.accepted)
    return told(evidence, pair) | {"refused": refused, f"refused: {pair.kind}": refused}
