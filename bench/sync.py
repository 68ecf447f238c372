"""Clocks by sound: the peers beside ours on the same files, what each costs, and the pictures.

python -m bench.sync --rooms FOLDER --peers FOLDER     the table and the bars of cost
python -m bench.sync --pictures docs/explanation/pictures    a stack and what is left over

Rooms and the peers' environments are made where they are not there yet and kept, so that a run
that was broken off goes on. CPU seconds and peak memory are those of one process and all that it
starts, from files to result, with the start of Python and all imports. The bars of accuracy over
many seeds are those of ``python bench/accept.py sync``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.measuring import Report, Usage, revision, run_case, run_command, write_result
from bench.sync_peers import PEERS, Peer, ask, install

Float64 = NDArray[np.float64]
OURS, FLOOR = "synorama", "decoding and resampling alone"
AGAIN = (OURS, FLOOR, "polysync", "skelly-synchronize")  # what the bars compare, in turns
MODULE = "bench.sync"
LIMITS = {"polysync": 0.8, "skelly-synchronize": 0.25, FLOOR: 2.5}
PEAK_MB = 250.0


@dataclass(frozen=True, slots=True)
class Case:
    """A pair as it stands in the table: files by name, and how to compare with the truth."""

    name: str
    reference: Path
    other: Path
    room: str
    number: int


def main() -> int:
    """Make what is missing, measure, print, and on request write the result down."""
    asked = _arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that spin would count against peers
    if asked.case:
        print(json.dumps(CASES[asked.case](asked)))
        return 0
    if asked.pictures:
        from bench.sync_pictures import draw

        draw(asked.pictures)
        return 0
    report = Report("Clocks by sound, beside other programs")
    peers = list(_peers(report, asked.peers))
    cases = _cases(asked.rooms, asked.seed, asked.minutes)
    bench = _Bench(asked.rooms / f"told-{asked.seed}.jsonl", asked.peers, peers, revision())
    if not asked.noted:
        bench.run(cases, asked.repeat)
    _cost(report, bench.noted(), next(c for c in cases if c.room == "half_hour"))
    told = [a for c in cases for a in bench.noted() if (a.case, a.turn) == (c.name, 0)]
    rows = [_row(next(c for c in cases if c.name == a.case), a) for a in told if a.program != FLOOR]
    report.note(
        f"Errors, seed {asked.seed}; pairs that a program was not run on are left out", HEAD, rows
    )
    if asked.write:
        write_result(
            "sync_peers",
            report.text(f"python -m bench.sync --seed {asked.seed} --write"),
        )
    return report.exit_code


HEAD = ["case", "program", "start / middle / end [ms]", "worst [ms]", "CPU s", "peak MB", "sources"]


def _arguments() -> argparse.Namespace:
    beside = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="length of the long room")
    parser.add_argument("--repeat", type=int, default=3, help="how often costs are measured")
    parser.add_argument("--rooms", type=Path, default=beside / "synorama-rooms")
    parser.add_argument("--peers", type=Path, default=beside / "synorama-peers")
    parser.add_argument("--pictures", type=Path, help="only draw the pictures, into this folder")
    parser.add_argument("--noted", action="store_true", help="run nothing, tell what is noted")
    parser.add_argument("--write", action="store_true", help="keep it in bench/results")
    parser.add_argument("--case", choices=sorted(CASES), help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def _peers(report: Report, folder: Path) -> Iterator[Peer]:
    """Yield those that install; tell why of the others."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = {p.requirement: install(p, folder) for p in PEERS}
    left_out = [[name, why] for name, why in failed.items() if why]
    if left_out:
        report.note("Left out", ["program", "why"], left_out)
    yield from (p for p in PEERS if not failed[p.requirement])


# --- errors --------------------------------------------------------------------------------------


def _cases(rooms: Path, seed: int, minutes: float) -> list[Case]:
    """Make the rooms that are not there, in a process of its own: this one must stay small."""
    made = run_case(MODULE, "rooms", "--rooms", rooms, "--seed", seed, "--minutes", minutes).said
    return [Case(c["name"], Path(c["reference"]), Path(c["other"]), *c["key"]) for c in made]


def _make_rooms(asked: argparse.Namespace) -> list[dict[str, object]]:
    from bench.sync_pairs import five_minutes, half_hour, kept, six_devices

    short = kept(asked.rooms, five_minutes, asked.seed, 300.0)
    long = kept(asked.rooms, half_hour, asked.seed, 60 * asked.minutes)
    chosen = [("five_minutes", k, p) for k, p in enumerate(short) if "-10 dB" in p.case][:1]
    chosen += [("half_hour", k, pair) for k, pair in enumerate(long)]
    table: list[dict[str, object]] = [
        {"name": p.case, "reference": str(p.reference), "other": str(p.other), "key": [room, k]}
        for room, k, p in chosen
    ]
    elsewhere = kept(asked.rooms, six_devices, asked.seed + 1, 150.0)  # one seed is one room
    apart = {"reference": str(short[0].reference), "other": str(elsewhere[0].other)}
    return [*table, {"name": "no common sound", "key": ["", 0], **apart}]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said of a pair: knots of a clock, or why it gives none; and what it took."""

    case: str
    program: str
    turn: int
    sources: str
    knots_s: list[list[float]]
    refused: str
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class _Bench:
    """Runs programs on pairs, and notes what they said: a run that was broken off goes on.

    What peers said once is kept; what things cost is measured anew for other sources, peers too.
    """

    journal: Path
    folder: Path
    peers: Sequence[Peer]
    sources: str

    @property
    def programs(self) -> list[str]:
        return [OURS, *(p.name for p in self.peers)]

    def run(self, cases: Sequence[Case], repeat: int) -> None:
        """Ask every program for every pair; what the bars of cost compare, again, in turns."""
        long = next(c for c in cases if c.room == "half_hour")
        for case in cases:
            for name in self.programs:
                self._ask(case, name, 0)
        for turn in range(1, repeat + 1):
            for name in AGAIN:
                self._ask(long, name, turn)

    def noted(self) -> list[Answer]:
        """Return what is noted; of several runs of the same, the last."""
        lines = self.journal.read_text("utf-8").splitlines() if self.journal.is_file() else []
        told = [Answer(*key, *said) for key, said in map(json.loads, lines)]
        return list({(a.case, a.program, a.turn): a for a in told}.values())

    def _ask(self, case: Case, program: str, turn: int) -> None:
        sources = self.sources if program == OURS or turn else ""
        key = [case.name, program, turn, sources]
        if any([a.case, a.program, a.turn, a.sources] == key for a in self.noted()):
            return
        said = self._run(case, program)
        with self.journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, said]) + "\n")
        print(*key[:3], said[1] or said[0][0], *said[2:], file=sys.stderr)

    def _run(self, case: Case, program: str) -> list[Any]:
        """Return knots, why there are none, CPU seconds and peak memory."""
        if program == OURS:
            used = _align(case)
            (result,) = used.said["results"]
            refused = "" if result["accepted"] else result["reason"]
            return [result["knots"], refused, used.cpu_s, used.peak_mb]
        if program == FLOOR:
            used = run_case(MODULE, "floor", case.reference, case.other)
            return [[], "it does nothing else", used.cpu_s, used.peak_mb]
        peer = next(p for p in self.peers if p.name == program)
        told = ask(peer, self.folder, case.reference, case.other)
        usage = told.usage or Usage(0.0, 0.0, None, None)
        return [told.knots_s(1e4).tolist(), told.refused, usage.cpu_s, usage.peak_mb]


def _align(case: Case) -> Usage:
    files = [str(case.reference), str(case.other)]
    return run_command(
        [sys.executable, "-m", "synorama", "align", "--json", "--no-progress", *files], (0, 5)
    )


def _row(case: Case, answer: Answer) -> list[str]:
    head = [answer.case, answer.program]
    cost = [f"{answer.cpu_s:.1f}", f"{answer.peak_mb:.0f}", answer.sources or "-"]
    if answer.refused:
        return [*head, f"refused: {answer.refused}", "-", *cost]
    if not case.room:
        return [*head, "**accepted**", "-", *cost]
    three, worst = _errors(case, answer.knots_s)
    return [*head, " / ".join(f"{e:.3f}" for e in three), f"{worst:.3f}", *cost]


def _errors(case: Case, knots_s: list[list[float]]) -> tuple[list[float], float]:
    from bench.sync_pairs import errors_of, load  # after all measuring, as they are large

    pair, table = load(case.other.parent)[case.number], np.array(knots_s)
    if len(table) == 2:  # a line has no ends: it is held to what both files hold
        table = _within(table, pair.common_s())
    found = errors_of(pair, table)
    return list(found.three_ms), found.worst_ms


def _within(knots: Float64, span_s: tuple[float, float]) -> Float64:
    at = np.array(span_s)
    rate = np.diff(knots[:, 1])[0] / np.diff(knots[:, 0])[0]
    return np.column_stack([at, knots[0, 1] + (at - knots[0, 0]) * rate])


# --- cost ----------------------------------------------------------------------------------------


def _cost(report: Report, noted: Sequence[Answer], case: Case) -> None:
    """Hold the long pair's cost to the bars."""
    mine = [a for a in noted if a.case == case.name and bool(a.turn) == (a.program in AGAIN)]
    told = {name: [a for a in mine if a.program == name] for name in {a.program for a in mine}}
    cpu_s = {name: statistics.median(a.cpu_s for a in answers) for name, answers in told.items()}
    for name, share in LIMITS.items():
        if name in cpu_s:
            report.bar(f"CPU over that of {name}", cpu_s[OURS] / cpu_s[name], share, "", ".2f")
    report.bar("peak memory", max(a.peak_mb for a in told[OURS]), PEAK_MB, "MB", ".0f")
    rows = [
        [name, f"{cpu_s[name]:.1f}", f"{max(a.peak_mb for a in answers):.0f}", str(len(answers))]
        for name, answers in sorted(told.items(), key=lambda item: cpu_s[item[0]])
    ]
    report.note(f"Cost of: {case.name}", ["program", "CPU s", "peak MB", "n"], rows)


def _floor(asked: argparse.Namespace) -> float:
    """Decode both files and resample them to 16 kHz: what any program must do."""
    import av
    import soxr

    total = 0.0
    for path in asked.files:
        with av.open(path) as container:
            stream = container.streams.audio[0]
            resampler = soxr.ResampleStream(stream.rate, 16_000, 1, dtype="float32", quality="HQ")
            held: list[NDArray[np.float32]] = []
            for frame in container.decode(stream):
                held.append(frame.to_ndarray()[0])
                if len(held) == 64:
                    total += float(resampler.resample_chunk(np.concatenate(held))[0])
                    held.clear()
    return total


CASES: dict[str, Callable[[argparse.Namespace], object]] = {"rooms": _make_rooms, "floor": _floor}


if __name__ == "__main__":
    raise SystemExit(main())
