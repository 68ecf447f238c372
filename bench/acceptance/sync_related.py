"""Pairs with common sound from 2 s on, -10 to 30 dB: accepted, exact, and as sure as they say.

Each seed is one pair of a simulated room in which direct sound reaches all microphones at once
but for one room in six, where it travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.accept import Bar
from bench.sync_calibration import told, worst_ms
from bench.sync_material import Pair, related
from synorama.records import PairEvidence
from synorama.sync import align

LEAST_S, LEAST_DB = 20.0, 0.0
EXACT_MS, GROSS_MS = 0.1, 1.0
Z95 = 1.96

BARS = (
    Bar(
        "accepted_20s", "6: overlap of 20 s or more at 0 dB or better: accepted", "", 0.95, "share"
    ),
    Bar("exact_20s", "of these: within 0.1 ms", "", 0.95, "share"),
    Bar("gross_flagged", "6: shorter: within 1 ms or flagged", "", 1.0, "share"),
    Bar("held", "95 % interval holds the error at worst, not flagged", "", 0.95, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    """Align one pair."""
    pair = related(seed)
    evidence = align(pair.reference, pair.other)
    measured = told(evidence, pair)
    if pair.kind == "room":
        return measured
    return measured | _judged(pair, evidence)


def _judged(pair: Pair, evidence: PairEvidence) -> dict[str, float]:
    long = pair.overlap_s >= LEAST_S
    judged: dict[str, float] = {}
    if long and pair.snr_db >= LEAST_DB:
        judged["accepted_20s"] = float(evidence.accepted)
    if not evidence.accepted or evidence.sigma_ns is None:
        return judged
    off_ms = worst_ms(evidence, pair)
    if "accepted_20s" in judged:
        judged["exact_20s"] = float(off_ms <= EXACT_MS)
    if not long:
        judged["gross_flagged"] = float(off_ms <= GROSS_MS or evidence.ambiguous)
    if not evidence.ambiguous:
        judged["held"] = float(off_ms <= Z95 * evidence.sigma_ns / 1e6)
    return judged
