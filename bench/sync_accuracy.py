"""How exact, how sure and how cheap the alignment of sounds is, on made pairs with a known truth.

Run from the repository's root: ``python -m bench.sync_accuracy [--long]``; it prints a table.
Errors are in ms at the start, middle and end of what both recordings hold; the worst is that of
these and, where samples were dropped, of moments 2 s before and after; CPU seconds are for the
alignment alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from tests.sync.sounds import affine, dropped, heard, room, speech

from synorama.media.audio import MonoSound
from synorama.records import PairEvidence, RecordingClock
from synorama.sync import align

Float64 = NDArray[np.float64]
Clock = Callable[[Float64], Float64]


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


def cases(long: bool) -> Iterator[tuple[str, MonoSound, MonoSound, Clock]]:
    """Yield name, reference, other and the true clock."""
    seconds, table = (1830.0, LONG) if long else (340.0, SHORT)
    talk = speech(seconds, 1)
    reference = heard(room(talk, 2), affine(0), seconds - 30, name="reference", seed=1, snr_db=15)
    there = room(talk, 3)
    for name, clock, length, snr_db in table:
        yield name, reference, heard(there, clock, length, snr_db=snr_db, seed=5), clock
    other = heard(room(speech(290, 77), 3), affine(0), 285, seed=9)
    yield "no common sound", reference, other, affine(0)


def errors_ms(evidence: PairEvidence, clock: Clock) -> list[float]:
    """Return the errors at start, middle and end, and 2 s before and after each break."""
    breaks = [m.range_ns[0] for m in evidence.maps[1:]]
    first, last = evidence.maps[0].range_ns[0], evidence.maps[-1].range_ns[1]
    beside = [b + sign * 2_000_000_000 for b in breaks for sign in (-1, 1)]
    times = np.array([first, (first + last) // 2, last, *beside], np.int64)
    got = RecordingClock("other", evidence.maps, "sound", None).apply(times)
    return list(got / 1e6 - clock(times / 1e9) * 1e3)


def row(name: str, evidence: PairEvidence, clock: Clock, cpu_s: float) -> list[str]:
    """Return one line of the table."""
    score = f"{evidence.score:.1f} of {evidence.score_needed:.1f}"
    if not evidence.accepted:
        return [name, f"refused: {evidence.reason}", "", "", "", score, f"{cpu_s:.1f}"]
    errors = errors_ms(evidence, clock)
    three = " / ".join(f"{e:+.4f}" for e in errors[:3])
    jumps = ", ".join(f"{by / 1e9:.4f} s at {at / 1e9:.1f}" for at, by in evidence.jumps) or "-"
    worst, sigma = max(map(abs, errors)), (evidence.sigma_ns or 0) / 1e6
    return [name, three, f"{worst:.4f}", f"{sigma:.3f}", jumps, score, f"{cpu_s:.1f}"]


def main() -> None:
    """Print the table."""
    head = ["case", "start / middle / end", "worst", "sigma", "jumps", "score", "CPU s"]
    for cells in (head, ["---"] * len(head)):
        print("| " + " | ".join(cells) + " |")
    for name, reference, other, clock in cases("--long" in sys.argv):
        start = time.process_time()
        evidence = align(reference, other)
        cells = row(name, evidence, clock, time.process_time() - start)
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
