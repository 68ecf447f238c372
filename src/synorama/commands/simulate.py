"""``synorama simulate``: a session with known truth, or a check against it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from synorama import console
from synorama.commands.options import DryRun, Json, NoProgress
from synorama.commands.shared import EXIT_REFUSED, check_free, print_either, wants_progress

__all__ = ["simulate"]


Out = Annotated[Path, typer.Argument(help="The folder to make; with --check the session.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same session.")]
Seconds = Annotated[float, typer.Option("--seconds", help="Length of the session.")]
Size = Annotated[str, typer.Option("--size", help="small or full pictures.")]
Room = Annotated[str, typer.Option("--room", help="kitchen, symmetric, corridor or open.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="No room: one sound for all, pictures that repeat.")
]
Aligned = Annotated[
    bool, typer.Option("--aligned", help="Sound takes the same time to all devices.")
]
Fault = Annotated[
    list[str] | None, typer.Option("--fault", help="What goes wrong, by name; repeatable.")
]
Mps = Annotated[str, typer.Option("--mps", help="shared, separate, leader-only or none.")]
Scan = Annotated[str, typer.Option("--scan", help="stations, handheld or none.")]
Contrast = Annotated[float, typer.Option("--contrast", help="Of the room's textures, 1 to 0.")]
Moved = Annotated[float, typer.Option("--moved", help="Share of things moved since the scan.")]
Coverage = Annotated[float, typer.Option("--coverage", help="Share of the scan that is there.")]
Wander = Annotated[
    float, typer.Option("--wander", help="How many ms clocks come off a straight line.")
]
Barcode = Annotated[bool, typer.Option("--barcode/--no-barcode", help="Number every picture.")]
Check = Annotated[bool, typer.Option("--check", help="Compare a processed session with its truth.")]


def simulate(
    context: typer.Context,
    out: Out,
    seed: Seed = 0,
    seconds: Seconds = 60.0,
    size: Size = "small",
    room: Room = "kitchen",
    plain: Plain = False,
    aligned: Aligned = False,
    fault: Fault = None,
    mps: Mps = "shared",
    scan: Scan = "stations",
    contrast: Contrast = 1.0,
    moved: Moved = 0.15,
    coverage: Coverage = 1.0,
    wander: Wander = 0.0,
    barcode: Barcode = True,
    check: Check = False,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Make a session with known truth: a kitchen, two people, five devices; or check one."""
    from synorama.simulate import simulate, simulate_plan

    if check:
        _check_truth(out, as_json)
        return
    asked: dict[str, Any] = {
        "seed": seed,
        "seconds": seconds,
        "size": size,
        "room": None if plain else room,
        "aligned": aligned,
        "faults": tuple(fault or ()),
        "mps": None if mps == "none" else mps,
        "scan": None if scan == "none" else scan,
        "barcode": barcode,
        "contrast": contrast,
        "moved_share": moved,
        "coverage": coverage,
        "wander_ms": wander,
    }
    simulate_plan(**asked)
    check_free(out, "name another folder, or remove this one")
    if dry_run:
        plan = f"would simulate {seconds:g} s into {out}"
        print_either({"folder": str(out), **asked}, plan, as_json)
        return
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        truth = simulate(out, progress=lambda k, total: progress("simulate", k, total), **asked)
    lines = f"simulated session: {out}\nits truth: {truth}"
    print_either({"folder": str(out), "truth": str(truth)}, lines, as_json)


def _check_truth(session: Path, as_json: bool) -> None:
    from synorama.simulate.check import check_session

    lines = check_session(session)
    missed = sum(line.held is False for line in lines)
    if as_json:
        rows = [line.as_json() for line in lines]
        console.print_json({"session": str(session), "missed": missed, "lines": rows})
    else:
        marks = {True: "ok", False: "MISSED", None: ""}
        cells = [[line.what, line.of, line.found, line.bound, marks[line.held]] for line in lines]
        console.print_table(["what", "of", "against the truth", "promised", ""], cells)
    if missed:
        raise typer.Exit(EXIT_REFUSED)
