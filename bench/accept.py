"""Run a capability's bars at full size: many fresh seeds, resumable, one table at the end.

    python bench/accept.py spine --seeds 20 --first-seed 1000

Each seed's measurements are appended to a journal as soon as they are there, keyed by the version
of the code that made them; run the same command again to go on. The table is printed and written
to ``bench/results/CAPABILITY.md``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

Measures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: which measurement, how the seeds are summed up, and the limit.

    ``worst``: the largest value of all seeds is at most the limit. ``share``: the measurement is
    0 or 1, and the share of ones is at least the limit. ``median``: the median is at most it.
    ``pooled``: the sum of all seeds over the sum of the measurement ``over`` is at most the limit.
    An infinite limit is none: the row is for information.
    """

    measure: str
    what: str
    unit: str
    limit: float
    how: Literal["worst", "median", "share", "pooled"] = "worst"
    over: str = ""


class Capability(Protocol):
    """What a module of ``bench.acceptance`` offers."""

    BARS: Sequence[Bar]
    measure: Callable[[int, Path], Measures]


def main() -> int:
    arguments = _arguments()
    module = arguments.capability.replace("-", "_")
    capability = cast("Capability", importlib.import_module(f"bench.acceptance.{module}"))
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    journal = Path(arguments.journal or tempfile.gettempdir()) / f"{arguments.capability}.jsonl"
    rows = _run(capability, seeds, journal, _revision())
    table = _table(arguments.capability, capability.BARS, rows)
    print(table)
    if not arguments.no_write:
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{arguments.capability}.md").write_text(table, "utf-8")
    return 0 if all(_passed(bar, rows) for bar in capability.BARS) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("capability", help="a module of bench/acceptance")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--journal", help="folder of the journal; the temporary folder by default")
    parser.add_argument("--no-write", action="store_true", help="leave bench/results alone")
    return parser.parse_args()


def _revision() -> str:
    """Name the code that is measured: the digest of the package's sources."""
    command = ["git", "ls-files", "-s", "--", "src"]
    listed = subprocess.run(command, cwd=HERE.parent, capture_output=True, check=True)
    command = ["git", "hash-object", "--stdin"]
    done = subprocess.run(command, input=listed.stdout, capture_output=True, check=True)
    return done.stdout.decode().strip()[:12]


def _run(capability: Capability, seeds: range, journal: Path, revision: str) -> dict[int, Measures]:
    rows = _read(journal, revision)
    for seed in seeds:
        if seed in rows:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as made:
            rows[seed] = dict(capability.measure(seed, Path(made)))
        with journal.open("a", encoding="utf-8") as file:
            line = {"seed": seed, "revision": revision, "measures": rows[seed]}
            file.write(json.dumps(line) + "\n")
        print(f"seed {seed}: {time.perf_counter() - began:.0f} s {rows[seed]}", file=sys.stderr)
    return {seed: rows[seed] for seed in seeds}


def _read(journal: Path, revision: str) -> dict[int, Measures]:
    if not journal.is_file():
        return {}
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    return {x["seed"]: x["measures"] for x in lines if x["revision"] == revision}


def _values(bar: Bar, rows: Mapping[int, Measures]) -> list[float]:
    return [row[bar.measure] for row in rows.values() if bar.measure in row]


def _passed(bar: Bar, rows: Mapping[int, Measures]) -> bool:
    values = _values(bar, rows)
    if not values:
        return False
    result = _result(bar, rows)
    return result >= bar.limit if bar.how == "share" else result <= bar.limit


def _result(bar: Bar, rows: Mapping[int, Measures]) -> float:
    values = _values(bar, rows)
    if bar.how == "pooled":
        return sum(values) / max(sum(row.get(bar.over, 0.0) for row in rows.values()), 1e-9)
    if bar.how == "share":
        return sum(values) / len(values)
    return max(values) if bar.how == "worst" else sorted(values)[len(values) // 2]


def _table(name: str, bars: Sequence[Bar], rows: Mapping[int, Measures]) -> str:
    seeds = sorted(rows)
    lines = [
        f"# {name}",
        "",
        f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}. Made by "
        f"`python bench/accept.py {name} --seeds {len(seeds)} --first-seed {seeds[0]}`.",
        "",
        "| what | measured | bar | n | |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(bar, rows) for bar in bars]
    return "\n".join(lines) + "\n"


def _line(bar: Bar, rows: Mapping[int, Measures]) -> str:
    values = _values(bar, rows)
    verdict = "met" if _passed(bar, rows) else "**not met**"
    if not values:
        return f"| {bar.what} | nothing | {bar.limit:g} {bar.unit} | 0 | {verdict} |"
    told = _told(bar, rows)
    if math.isinf(bar.limit):
        return f"| {bar.what} | {told} | | {len(values)} | |"
    side = "least" if bar.how == "share" else "most"
    limit = f"{100 * bar.limit:g} %" if bar.how == "share" else f"{bar.limit:g} {bar.unit}"
    return f"| {bar.what} | {told} | at {side} {limit} | {len(values)} | {verdict} |"


def _told(bar: Bar, rows: Mapping[int, Measures]) -> str:
    result, values = _result(bar, rows), _values(bar, rows)
    if bar.how == "share":
        low, high = wilson(sum(values), len(values))
        return f"{100 * result:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    return f"{bar.how} {result:.3g} {bar.unit}"


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share."""
    z, share = 1.959964, hits / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


if __name__ == "__main__":
    sys.exit(main())
