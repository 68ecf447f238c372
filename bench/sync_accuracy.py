"""How exact, how sure and how cheap the alignment of sounds is, on made pairs with a known truth.

Run from the repository's root: ``python -m bench.sync_accuracy [--long] [--write]``. Errors are in
ms at the start, middle and end of what both recordings hold; the worst is that of these and, where
samples were dropped, of moments 2 s before and after; CPU seconds are for the alignment alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.sync.sounds import affine, dropped, heard, room, speech

from bench.measuring import Report, write_result
from synorama.media.audio import MonoSound
from synorama.records import PairEvidence, RecordingClock
from synorama.sync import align

Float64 = NDArray[np.float64]
Clock = Callable[[Float64], Float64]
LIMIT_MS = 0.05
LIMITS_MS = {"30 min, wander 1.5 ms": 0.1, "4 s": 1.0}


def wandering(t: Float64) -> Float64:
    """A half sine of 1.5 ms over half an hour, beside 20 ppm."""
    return np.asarray(7.3 + t * (1 + 20e-6) + 1.5e-3 * np.sin(np.pi * t / 1800))


SHORT: tuple[tuple[str, Clock, float, float], ...] = (
    ("5 min, -20 ppm, SNR 20 dB", affine(7.3, -20), 290, 20),
    ("5 min, -55 ppm, SNR -10 dB", affine(7.3, -55), 290, -10),
    ("5 min, 1.3 s dropped", dropped(affine(5.2, 30), 140, 1.3), 290, 10),
    ("5 min, three drops", dropped(dropped(dropped(affine(3, -30), 80, 0.02), 150, 2.5), 220, 0.1),
     285, 10),
    ("1 min, starts at 200 s", affine(200.123, 40), 60, 5),
    ("4 s", affine(100.5), 4, 10),
)  # fmt: skip
LONG: tuple[tuple[str, Clock, float, float], ...] = (
    ("30 min, -100 ppm", affine(7.3, -100), 1790, 10),
    ("30 min, wander 1.5 ms", wandering, 1790, 10),
    (
        "30 min, 40 ms, 80 ms, 1.3 s dropped",
        dropped(dropped(dropped(affine(4.1, 25), 400, 0.04), 900, 0.08), 1300, 1.3),
        1780,
        10,
    ),
)


def cases(
    seconds: float, table: tuple[tuple[str, Clock, float, float], ...]
) -> Iterator[tuple[str, MonoSound, MonoSound, Clock]]:
    """Yield name, reference, other and the true clock."""
    talk = speech(seconds, 1)
    reference = heard(room(talk, 2), affine(0), seconds - 30, name="reference", seed=1, snr_db=15)
    there = room(talk, 3)
    for name, clock, length, snr_db in table:
        yield name, reference, heard(there, clock, length, snr_db=snr_db, seed=5), clock
    other = heard(room(speech(290, 77), 3), affine(0), 285, seed=9)
    yield f"no common sound, {seconds / 60:.0f} min", reference, other, affine(0)


def errors_ms(evidence: PairEvidence, clock: Clock) -> list[float]:
    """Return the errors at start, middle and end, and 2 s before and after each break."""
    breaks = [m.range_ns[0] for m in evidence.maps[1:]]
    first, last = evidence.maps[0].range_ns[0], evidence.maps[-1].range_ns[1]
    beside = [b + sign * 2_000_000_000 for b in breaks for sign in (-1, 1)]
    times = np.array([first, (first + last) // 2, last, *beside], np.int64)
    got = RecordingClock("other", evidence.maps, "sound", None).apply(times)
    return list(got / 1e6 - clock(times / 1e9) * 1e3)


def row(name: str, evidence: PairEvidence, errors: list[float], cpu_s: float) -> list[str]:
    """Return one line of the table."""
    score = f"{evidence.score:.1f} of {evidence.score_needed:.1f}"
    if not evidence.accepted:
        return [name, f"refused: {evidence.reason}", "", "", score, f"{cpu_s:.1f}"]
    three = " / ".join(f"{e:+.4f}" for e in errors[:3])
    jumps = ", ".join(f"{by / 1e9:.4f} s at {at / 1e9:.1f}" for at, by in evidence.jumps) or "-"
    sigma = f"{(evidence.sigma_ns or 0) / 1e6:.3f}"
    return [name, three, sigma, jumps, score, f"{cpu_s:.1f}"]


def measure(report: Report, name: str, reference: MonoSound, other: MonoSound, clock: Clock) -> Any:
    """Align one pair, hold its errors to the bar, and return its line of the table."""
    start = time.process_time()
    evidence = align(reference, other)
    cpu_s = time.process_time() - start
    errors = errors_ms(evidence, clock) if evidence.accepted else []
    if name.startswith("no common"):
        report.bar(f"{name}: score", evidence.score, evidence.score_needed, "", ".1f")
    else:
        worst = max(map(abs, errors), default=float("inf"))
        report.bar(f"{name}: worst error", worst, LIMITS_MS.get(name, LIMIT_MS), "ms", ".4f")
    return row(name, evidence, errors, cpu_s)


def main() -> int:
    """Measure, print, and on request write the result down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="half an hour as well")
    parser.add_argument("--write", action="store_true", help="keep it in bench/results")
    asked = parser.parse_args()
    report = Report("Alignment of sounds")
    lines = [measure(report, *case) for case in cases(340.0, SHORT)]
    if asked.long:
        lines += [measure(report, *case) for case in cases(1830.0, LONG)]
    head = ["case", "start / middle / end [ms]", "sigma [ms]", "jumps", "score", "CPU s"]
    report.note("Each case", head, lines)
    if asked.write:
        long = " --long" if asked.long else ""
        write_result("sync_accuracy", report.text(f"python -m bench.sync_accuracy{long} --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
