"""The same song, replayed in two sessions beside different talk: each seed is one pair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.accept import Bar
from bench.sync_calibration import told
from bench.sync_material import replayed
from synorama.sync import align

BARS = (
    Bar("noticed", "7: one song in two sessions: refused or flagged", "", 1.0, "share"),
    Bar("refused", "of these: refused", "", 0.0, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Align one pair in which the same song plays."""
    pair = replayed(seed)
    evidence = align(pair.reference, pair.other)
    noticed = not evidence.accepted or evidence.ambiguous
    return told(evidence, pair) | {"noticed": noticed, "refused": float(not evidence.accepted)}
