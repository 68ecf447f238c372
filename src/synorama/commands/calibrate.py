"""``synorama calibrate``: what is measured once for a camera and kept in ``rig.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synorama import console
from synorama.commands.options import DryRun, Json, NoProgress
from synorama.commands.shared import wants_progress
from synorama.errors import UsageError

if TYPE_CHECKING:
    from synorama.calibration.skew import CameraSkew

__all__ = ["calibrate"]


def calibrate(
    context: typer.Context,
    skew: Annotated[
        Path | None,
        typer.Option(
            "--skew",
            help="A recording with flashes and beeps, or claps: picture against sound.",
            readable=False,
        ),
    ] = None,
    intrinsics: Annotated[
        list[Path] | None,
        typer.Option(
            "--intrinsics",
            help="A recording or pictures of a ChArUco board, once for each file: the lens.",
            readable=False,
        ),
    ] = None,
    board: Annotated[
        str, typer.Option("--board", help="COLUMNSxROWS:SQUARE_MM:MARKER_MM:MARKERS.")
    ] = "7x5:40:30:4X4_50",
    distance: Annotated[
        float | None,
        typer.Option("--distance", help="Metres from the camera to what flashed or clapped."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="The rig.toml that keeps the result.", readable=False),
    ] = None,
    serial: Annotated[
        str | None,
        typer.Option("--serial", help="The camera's, where its file does not tell it."),
    ] = None,
    as_json: Json = False,
    no_progress: NoProgress = False,
    dry_run: DryRun = False,
) -> None:
    """Measure a camera: its lens, or how far its pictures are off its sound."""
    from synorama.calibration.rig import keep_skew
    from synorama.calibration.skew import calibrate_skew

    rig = None if dry_run else write
    if (skew is None) == (not intrinsics):
        raise UsageError("one thing to measure must be named", hint="give --skew or --intrinsics")
    if intrinsics:
        shown = wants_progress(context, no_progress)
        _measure_lens(intrinsics, board, rig, serial, as_json=as_json, shown=shown)
        return
    assert skew is not None  # as checked above
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        found = calibrate_skew(
            skew, distance_m=distance, progress=lambda k, n: progress("calibrate", k, n)
        )
    kept = keep_skew(write, found, serial=serial) if write and not dry_run else None
    if as_json:
        console.print_json(found.as_dict() | {"written": str(write) if kept else None})
    else:
        _print_skew(found, kept, write)
        if found.measured.note and not context.obj["quiet"]:
            console.warn(found.measured.note)


def _measure_lens(
    paths: list[Path],
    board: str,
    rig: Path | None,
    serial: str | None,
    *,
    as_json: bool,
    shown: bool,
) -> None:
    from synorama.calibration.lens import calibrate_lens
    from synorama.calibration.rig import keep_lens
    from synorama.geometry.intrinsics import Board

    with console.progress_bar(shown=shown) as progress:
        found = calibrate_lens(
            paths, Board.parse(board), progress=lambda k, n: progress("calibrate", k, n)
        )
    kept = keep_lens(rig, found, serial=serial) if rig else None
    if as_json:
        console.print_json(found.as_dict() | {"written": str(rig) if kept else None})
        return
    fitted = found.fitted
    console.print_lines(
        f"{fitted.lens.model} lens, focal length {fitted.lens.params[0]:.1f} px at "
        f"{fitted.lens.width}x{fitted.lens.height}",
        f"corners lie {fitted.rms_px:.2f} px from where it draws them, in {fitted.views} pictures; "
        f"the board covered {100 * fitted.coverage:.0f} % of the picture",
    )
    if kept:
        console.print_lines(f"written to {rig} for {kept}")


def _print_skew(found: CameraSkew, kept: str | None, rig: Path | None) -> None:
    later = "later" if found.skew_ms >= 0 else "earlier"
    what = {"flash": "flashes with beeps", "clap": "claps"}[found.measured.method]
    dropped = f", {found.measured.dropped} left out" if found.measured.dropped else ""
    console.print_lines(
        f"the sound of a moment is stamped {abs(found.skew_ms):.1f} ms {later} than its picture, "
        f"within {console.interval_text(found.within_ms)}",
        f"by {found.measured.events} {what}{dropped}",
    )
    if kept:
        console.print_lines(f"written to {rig} for {kept}")
