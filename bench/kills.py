"""Kill `process` and `seal` at random moments: what was finished is kept, and all is well after.

Run ``python -m bench.kills [--kills 20] [--seconds 12] [--seed 1]``. Every kill is a SIGKILL on
a fresh copy of one small simulated session; the command is then run again to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synorama.session import validate
from synorama.simulate import simulate

SYNORAMA = [sys.executable, "-m", "synorama"]
STAGES = 3


@dataclass(frozen=True)
class Killed:
    """One kill: when, what was finished then, and what became of it when run again."""

    after_s: float
    finished: tuple[str, ...]
    redone: tuple[str, ...]
    valid: bool
    raw_untouched: bool
    left_over: tuple[str, ...]

    @property
    def well(self) -> bool:
        return self.valid and self.raw_untouched and not self.redone and not self.left_over

    def row(self) -> str:
        kept = ", ".join(self.finished) or "-"
        verdict = "valid" if self.valid else "INVALID"
        spoilt = [*self.left_over, *([] if self.raw_untouched else ["RAW CHANGED"])]
        again = ", ".join(self.redone) or "-"
        return (
            f"{self.after_s:7.2f} s  {kept:24}  {again:8}  {verdict:8}  {', '.join(spoilt) or '-'}"
        )


def run(*arguments: str | Path) -> float:
    """Run a command to its end; return how long it took [s]."""
    began = time.perf_counter()
    subprocess.run([*SYNORAMA, *map(str, arguments)], check=True, capture_output=True)
    return time.perf_counter() - began


def kill(after_s: float, *arguments: str | Path) -> None:
    """Run a command and kill it, with all that it started, after a while."""
    command = [*SYNORAMA, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        time.sleep(after_s)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def raw(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all raw files."""
    files = (p for p in folder.rglob("*") if p.is_file())
    ours = (".synorama", "session.h5", ".session.h5.writing")
    return {str(p): p.read_bytes() for p in files if p.relative_to(folder).parts[0] not in ours}


def journal(folder: Path) -> tuple[str, ...]:
    """Return the stages that finished, in the order in which they did."""
    path = folder / ".synorama" / "journal.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    return tuple(json.loads(line)["stage"] for line in lines if line)


def left_over(folder: Path) -> tuple[str, ...]:
    """Return the names of half-written files."""
    return tuple(sorted(p.name for p in folder.rglob("*.writing")))


def kill_process(session: Path, place: Path, after_s: float) -> Killed:
    folder = Path(shutil.copytree(session, place / "killed"))
    before = raw(folder)
    kill(after_s, "process", folder)
    finished = journal(folder)
    run("process", folder)
    done = journal(folder)
    result = Killed(
        after_s,
        finished,
        done[STAGES:],
        not validate(folder / "session.h5", every_byte=True) and done[: len(finished)] == finished,
        raw(folder) == before,
        left_over(folder),
    )
    shutil.rmtree(folder)
    return result


def kill_seal(session: Path, place: Path, after_s: float) -> Killed:
    release = place / "release.h5"
    before = raw(session)
    kill(after_s, "seal", session, "-o", release)
    finished = ("release",) if release.exists() else ()
    if not finished:
        run("seal", session, "-o", release)
    valid = not validate(release, every_byte=True)
    result = Killed(after_s, finished, (), valid, raw(session) == before, left_over(place))
    release.unlink()
    return result


def report(title: str, kills: Sequence[Killed]) -> None:
    print(f"\n{title}: {sum(k.well for k in kills)} of {len(kills)} well")
    print(f"{'killed':>9}  {'finished before':24}  {'redone':8}  {'then':8}  left over")
    for one in sorted(kills, key=lambda k: k.after_s):
        print(one.row())


def measure(kills: int, seconds: float, seed: int) -> bool:
    """Kill both commands as often; print tables; tell whether all was well."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        place = Path(name)
        fresh = place / "fresh" / "session"
        fresh.parent.mkdir()
        simulate(fresh, seed=seed, seconds=seconds, room=None)
        whole = Path(shutil.copytree(fresh, place / "whole"))
        process_s = run("process", whole)
        seal_s = run("seal", whole, "-o", place / "release.h5")
        (place / "release.h5").unlink()
        moments = [rng.uniform(0.05, 1.05) for _ in range(2 * kills)]
        processed = [kill_process(fresh, place, m * process_s) for m in moments[:kills]]
        sealed = [kill_seal(whole, place, m * seal_s) for m in moments[kills:]]
    report(f"process ({process_s:.1f} s undisturbed)", processed)
    report(f"seal ({seal_s:.1f} s undisturbed)", sealed)
    return all(one.well for one in (*processed, *sealed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(0 if measure(options.kills, options.seconds, options.seed) else 1)


if __name__ == "__main__":
    main()
