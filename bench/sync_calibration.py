"""How sure alignment is, against truth: fits the constants, and writes the reliability tables.

Material is measured by bench/accept.py, one pair a seed, and kept in its journals:

    python bench/accept.py sync-related --seeds 430 --first-seed 1000   to fit
    python bench/accept.py sync-related --seeds 450 --first-seed 2000
    python bench/accept.py sync-unrelated --seeds 2000 --first-seed 1000
    python -m bench.sync_calibration --fit JOURNALS

    python bench/accept.py sync-related --seeds 450 --first-seed 5000   to measure
    python bench/accept.py sync-unrelated --seeds 1000 --first-seed 5000
    python -m bench.sync_calibration JOURNALS

The second writes bench/results/sync_calibration.md and the picture of the documentation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.accept import wilson
from bench.measuring import HERE, machine, table, write_result
from bench.sync_material import Pair
from synorama.records import PairEvidence, RecordingClock
from synorama.sync.certainty import (
    MOST_SCORE,
    SIGMA_FLOOR_S,
    SURE_RUNNER_UP,
    Evidence,
    p_match,
    p_match_of_seconds,
)

Float64 = NDArray[np.float64]
Row = Mapping[str, float]

MOMENTS = 21
Z95 = 1.96
RIDGE = 0.005  # keeps weights finite where the two kinds do not overlap
P_BINS = (0.0, 0.02, 0.1, 0.3, 0.7, 0.9, 0.98, 1.0)
OVERLAPS_S = (0, 10, 20, 60, 700)
SCORES = (3, 10, 20, 40, 500)
PICTURE = HERE.parent / "docs" / "explanation" / "pictures" / "sync-reliability.png"


def told(evidence: PairEvidence, pair: Pair) -> dict[str, float]:
    """Return all that calibration needs of one pair, as numbers."""
    row = {
        "related": float(pair.clock is not None),
        "room": float(pair.kind == "room"),
        "overlap_s": pair.overlap_s,
        "snr_db": pair.snr_db,
        "accepted": float(evidence.accepted),
        "ambiguous": float(evidence.ambiguous),
        "score": evidence.score,
        "runner_up": evidence.runner_up,
    }
    optional = {"coarse_z": evidence.coarse_z, "likeness": evidence.likeness}
    row |= {name: value for name, value in optional.items() if value is not None}
    if evidence.p_match is not None:
        row["p_match"] = evidence.p_match
    if evidence.accepted and evidence.sigma_ns is not None and pair.clock is not None:
        row |= {"sigma_ms": evidence.sigma_ns / 1e6, "worst_ms": worst_ms(evidence, pair)}
    return row


def worst_ms(evidence: PairEvidence, pair: Pair) -> float:
    """Return the largest error over all that both hold."""
    assert pair.clock is not None
    at_s = np.linspace(*pair.span_s, MOMENTS)
    clock = RecordingClock("other", evidence.maps, "sound", None)
    got_ms = clock.apply(np.rint(at_s * 1e9).astype(np.int64)) / 1e6
    return float(np.abs(got_ms - pair.clock(at_s) * 1e3).max())


# --- fitting ---------------------------------------------------------------------------------


def fit(rows: Sequence[Row]) -> None:
    """Print the constants of `synorama.sync.certainty`."""
    judged = [r for r in rows if "p_match" in r]
    long = [r for r in judged if "coarse_z" in r]
    short = [r for r in judged if "coarse_z" not in r]
    for name, some, terms in (
        ("SOUND_MODEL", long, [(1.0, *_evidence(r).terms) for r in long]),
        ("SECONDS_MODEL", short, [_seconds(r) for r in short]),
    ):
        belongs = np.array([r["related"] for r in some])
        weights = _logistic(np.array(terms), belongs)
        print(f"{name} = {tuple(round(float(w), 3) for w in weights)}  # {len(some)} pairs")
    print(f"SIGMA_FACTOR: {_factor(rows):.2f} times what it is")


def _evidence(row: Row) -> Evidence:
    return Evidence(row["score"], row["likeness"], row["runner_up"])


def _seconds(row: Row) -> tuple[float, float, float]:
    return 1.0, min(row["score"], MOST_SCORE), max(row["runner_up"] - SURE_RUNNER_UP, 0.0)


def _logistic(terms: Float64, belongs: Float64) -> Float64:
    """Return the weights of a logistic regression, both kinds counting alike."""
    from scipy.optimize import minimize

    share = belongs.mean()
    weight = np.where(belongs > 0, 0.5 / share, 0.5 / (1 - share))
    sign = np.where(belongs > 0, 1.0, -1.0)

    def loss(w: Float64) -> float:
        misfit = np.logaddexp(0, -sign * (terms @ w))
        return float((weight * misfit).mean() + RIDGE * (w[1:] ** 2).mean())

    # More evidence never speaks against a match, a second place never for it.
    bounds = [(None, None), *[(0.0, None)] * (terms.shape[1] - 2), (None, 0.0)]
    found: Float64 = minimize(loss, np.zeros(terms.shape[1]), bounds=bounds).x
    return found


def _factor(rows: Iterable[Row]) -> float:
    """Return by what formal errors must be multiplied for 95 % to hold, the floor aside."""
    held = [r for r in rows if _tested(r) and r["sigma_ms"] > 1.2e3 * SIGMA_FLOOR_S]
    return float(np.quantile([r["worst_ms"] / r["sigma_ms"] / Z95 for r in held], 0.95))


def _tested(row: Row) -> bool:
    return "worst_ms" in row and not row["room"] and not row["ambiguous"]


# --- measuring -------------------------------------------------------------------------------


def reliability(rows: Sequence[Row]) -> list[list[float]]:
    """Return for each bin of p_match: its edges, mean, share that belongs, Wilson bounds, n."""
    out = []
    judged = [(_p(r), r["related"]) for r in _as_many(rows) if "p_match" in r]
    for low, high in pairwise(P_BINS):
        inside = [(p, b) for p, b in judged if low <= p < high]
        if inside:
            share = [b for _, b in inside]
            bounds = wilson(int(sum(share)), len(share))
            mean = float(np.mean([p for p, _ in inside]))
            out.append([low, high, mean, float(np.mean(share)), *bounds, len(inside)])
    return out


def _as_many(rows: Sequence[Row]) -> list[Row]:
    """Return as many pairs that belong as pairs that do not, as p_match takes it."""
    kinds = [[r for r in rows if r["related"] == kind] for kind in (1.0, 0.0)]
    count = min(len(k) for k in kinds)
    return [k[i] for k in kinds for i in np.linspace(0, len(k) - 1, count).astype(int)]


def _p(row: Row) -> float:
    if "coarse_z" in row:
        return p_match(_evidence(row))
    return p_match_of_seconds(row["score"], row["runner_up"])


def coverage(rows: Sequence[Row]) -> list[list[str]]:
    """Return how often the interval holds the error, by what is shared and by score."""
    tested = [r for r in rows if _tested(r)]
    lines = [_covered("all", tested)]
    for name, key, edges in (("overlap [s]", "overlap_s", OVERLAPS_S), ("score", "score", SCORES)):
        for low, high in pairwise(edges):
            some = [r for r in tested if low <= r[key] < high]
            lines.append(_covered(f"{name} {low} to {high}", some))
    flagged = [r for r in rows if "worst_ms" in r and not r["room"] and r["ambiguous"]]
    return [*lines, _covered("flagged as ambiguous", flagged)]


def _covered(name: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return [name, "0", "", "", ""]
    held = sum(r["worst_ms"] <= Z95 * r["sigma_ms"] for r in rows)
    low, high = wilson(held, len(rows))
    half, worst = (np.median([r[k] for r in rows]) for k in ("sigma_ms", "worst_ms"))
    share = f"{100 * held / len(rows):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    return [name, str(len(rows)), share, f"{Z95 * half:.3f}", f"{worst:.4f}"]


def draw(bins: Sequence[Sequence[float]], path: Path) -> None:
    """Draw what was said against what was."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
    axes.plot([0, 1], [0, 1], "0.7", lw=1)
    for k, (_, _, mean, share, low, high, n) in enumerate(bins):
        axes.plot([mean, mean], [low, high], "k", lw=1)
        axes.plot(mean, share, "ko", ms=5)
        axes.annotate(
            f"n = {n:.0f}",
            (mean, share),
            (6, -4 - 10 * (k % 2)),
            textcoords="offset points",
            fontsize=7,
        )
    axes.set(xlabel="p_match, mean of the bin", ylabel="share that belongs", xlim=(-0.02, 1.12))
    axes.set_title("What was said, and what was; bars: 95 % (Wilson)", fontsize=9)
    figure.savefig(path, dpi=90)


def report(rows: Sequence[Row]) -> str:
    """Return the tables as a page."""
    p_lines = [
        [f"{low:g} to {high:g}", f"{n:.0f}", f"{mean:.3f}", f"{share:.3f} ({a:.3f} to {b:.3f})"]
        for low, high, mean, share, a, b, n in reliability(rows)
    ]
    rooms = [r for r in rows if r["room"] and "worst_ms" in r]
    return "\n".join(
        [
            "# How sure alignment is",
            "",
            f"Made by `python -m bench.sync_calibration`. {machine()}.",
            "",
            f"{sum(r['related'] > 0 for r in rows)} pairs with common sound, "
            f"{sum(r['related'] == 0 for r in rows)} without.",
            "",
            "**p_match**, of as many pairs that belong as pairs that do not",
            "",
            table(["said", "n", "mean", "share that belongs (95 %)"], p_lines),
            "**95 % interval where sound reaches all at once, error at worst over the overlap**",
            "",
            table(["of", "n", "held (95 %)", "median half width [ms]", "median error [ms]"],
                  coverage(rows)),
            f"Where sound travels: {len(rooms)} pairs, error at worst "
            f"{_worst_of(rooms)} ms in 50, 90, 100 %.",
            "",
        ]
    )  # fmt: skip


def _worst_of(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    values = np.quantile([r["worst_ms"] for r in rows], [0.5, 0.9, 1.0])
    return ", ".join(f"{v:.1f}" for v in values)


def read(paths: Sequence[Path]) -> list[Row]:
    """Return the rows of journals."""
    return [
        json.loads(line)["measures"] for path in paths for line in path.read_text().splitlines()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("journals", nargs="+", type=Path, help="of bench/accept.py")
    parser.add_argument("--fit", action="store_true", help="print constants instead")
    asked = parser.parse_args()
    rows = read(asked.journals)
    if asked.fit:
        fit(rows)
        return
    draw(reliability(rows), PICTURE)
    text = report(rows)
    print(text)
    write_result("sync_calibration", text)


if __name__ == "__main__":
    main()
