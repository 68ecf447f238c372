"""What the simulator costs: CPU seconds, peak memory and bytes, each case in its own process.

    python -m bench.simulate_cost            the small session of 60 s
    python -m bench.simulate_cost --full     also 5 min of two full-size glasses (8 GB of disk)

`--write` writes bench/results/simulate_cost.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from bench.measuring import Report, run_case, write_result

MODULE = "bench.simulate_cost"
PEAK_MB = 1500.0
LIMITS_S = {"small": 90.0, "glasses": 120.0}
TITLES = {"small": "small session, 60 s", "glasses": "two full-size glasses, 300 s"}


def small(folder: Path) -> None:
    from synorama.simulate import simulate

    simulate(folder / "session", seconds=60.0)


def glasses(folder: Path) -> None:
    from synorama.simulate import simulate

    simulate(
        folder / "session", seconds=300.0, size="full", room=None, devices=("leader", "helper")
    )


def run_here(case: str, folder: str) -> None:
    {"small": small, "glasses": glasses}[case](Path(folder))
    print(json.dumps(sum(p.stat().st_size for p in Path(folder).rglob("*.*")) / 1e6))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--place", type=Path, help="folder with room for the files")
    parser.add_argument("--write", action="store_true", help="write bench/results/simulate_cost.md")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        run_here(*asked.case)
        return 0
    report = Report("The simulator")
    for case in LIMITS_S if asked.full else ("small",):
        with tempfile.TemporaryDirectory(dir=asked.place) as folder:
            run = run_case(MODULE, case, folder)
        report.bar(f"{TITLES[case]}: CPU", run.cpu_s, LIMITS_S[case], "s", ".1f")
        report.bar(f"{TITLES[case]}: peak memory", run.peak_mb, PEAK_MB, "MB", ".0f")
        print(f"{run.said:.0f} MB written")
    if asked.write:
        flags = " --full" if asked.full else ""
        write_result("simulate_cost", report.text(f"python -m {MODULE}{flags} --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
