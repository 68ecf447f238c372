"""How long `synorama --help` takes, and that it loads no heavy library and no vendor's.

    python -m bench.start_up [--write]

Prints the wall clock and CPU seconds of several runs; the best counts for the bar, since a busy
machine only ever adds to it, and the median is told beside it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from bench.measuring import Report, child_cpu_s, write_result

ROUNDS = 15
LIMIT_S = 0.4
COMMAND = [sys.executable, "-m", "synorama", "--help"]
HEAVY = {
    "av", "blake3", "cv2", "h5py", "lz4", "numpy", "projectaria_tools", "pyarrow", "pydantic",
    "pyvrs", "scipy", "soxr", "vrsbindings", "zstandard",
}  # fmt: skip


def run() -> tuple[float, float]:
    """Return wall clock and CPU seconds of one run."""
    cpu, wall = child_cpu_s(), time.perf_counter()
    subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - wall, child_cpu_s() - cpu


def loaded() -> set[str]:
    """Return the top-level packages that are imported on the way."""
    command = [sys.executable, "-X", "importtime", *COMMAND[1:]]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in told.splitlines()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write bench/results/start_up.md")
    asked = parser.parse_args()
    walls, cpus = zip(*(run() for _ in range(ROUNDS)), strict=True)
    report = Report("Start-up")
    report.bar("`synorama --help`: wall clock, best", min(walls), LIMIT_S, "s")
    report.bar("heavy libraries loaded", len(HEAVY & loaded()), 0, "", ".0f")
    rows = [
        [what, f"{min(taken):.2f}", f"{statistics.median(taken):.2f}", f"{max(taken):.2f}"]
        for what, taken in (("wall clock", walls), ("CPU", cpus))
    ]
    report.note(f"Seconds of {ROUNDS} runs", ["", "best", "median", "worst"], rows)
    if asked.write:
        write_result("start_up", report.text("python -m bench.start_up --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
