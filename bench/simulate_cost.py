"""What the simulator costs: CPU seconds, peak memory and bytes, each case in its own process.

python -m bench.simulate_cost            the small session of 60 s
python -m bench.simulate_cost --full     also 5 min of two full-size glasses (about 7 GB)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SMALL_S, FULL_S = 60.0, 300.0
LIMITS = {"small": (90.0, 1500.0), "glasses": (120.0, 1500.0)}  # CPU s, MB


def small(folder: Path) -> None:
    from synorama.simulate import simulate

    simulate(folder / "session", seconds=SMALL_S)


def glasses(folder: Path) -> None:
    from synorama.simulate import simulate

    simulate(folder / "session", seconds=FULL_S, size="full", devices=("leader", "helper"))


def measure(case: str, place: Path | None) -> dict[str, float]:
    """Run one case in a process of its own and return what it took."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        command = [sys.executable, "-m", "bench.simulate_cost", "--case", case, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        taken: dict[str, float] = json.loads(done.stdout)
        taken["mb_written"] = sum(p.stat().st_size for p in Path(folder).rglob("*.*")) / 1e6
        return taken


def run_case(case: str, folder: Path) -> None:
    {"small": small, "glasses": glasses}[case](folder)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    taken = {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}
    print(json.dumps(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--place", type=Path, help="folder with room for the files")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        run_case(asked.case[0], Path(asked.case[1]))
        return
    for case in ("small", "glasses") if asked.full else ("small",):
        taken, (cpu_s, mb) = measure(case, asked.place), LIMITS[case]
        print(
            f"{case:8} {taken['cpu_s']:6.1f} CPU s (at most {cpu_s:.0f})"
            f"   {taken['peak_mb']:6.0f} MB peak (at most {mb:.0f})"
            f"   {taken['mb_written']:6.0f} MB written"
        )


if __name__ == "__main__":
    main()
