"""MPS output as tracks: found in a folder, judged in one cheap pass, read when asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from synorama.capture.mps.calibration import read_calibration, scan_calibration
from synorama.capture.mps.find import SERVICES
from synorama.capture.mps.schema import (
    CALIBRATION_NAMES,
    ECEF_PRODUCT,
    PRODUCTS,
    SIDES,
    SLAM,
    Layout,
    Product,
    match,
)
from synorama.capture.mps.table import Scan, read_header, read_table, scan
from synorama.errors import CorruptFileError, EmptyFileError, SynoramaError
from synorama.records import PointCloud, PointTrack, Problem, Samples, SampleTrack, Track

__all__ = ["mps_points", "mps_summary", "mps_tracks"]

CALIBRATION = "online_calibration"
FAILED = ("FAIL", "ERROR")


def mps_tracks(folder: Path) -> tuple[tuple[Track, ...], tuple[Problem, ...]]:
    """Return the tracks of an MPS output folder, and what an operator should know of it.

    Every value is as the vendor wrote it, in the vendor's terms; columns that a version does not
    have are not there. Times are exact: ``tracking_timestamp_us * 1000``, device time.

    ============================= ======= ========== ============================================
    track                         kind    frame      values
    ============================= ======= ========== ============================================
    closed_loop_trajectory        pose    world      T_world_device; linear and angular velocity
                                                     in the device frame, gravity in world
    closed_loop_trajectory_ecef   pose    ecef       T_ecef_device where the service knew it
                                                     (``location``: where on Earth it was)
    open_loop_trajectory          pose    odometry   T_odometry_device; linear velocity and
                                                     gravity in odometry, angular velocity in
                                                     the device frame; drifts
    semidense_points              points  world      ``sigma_m`` is ``dist_std``; far outliers
                                                     (kilometres) are in: filter by both stds
    semidense_observations        samples            pixel of a point in the frame of a camera,
                                                     in no order of time
    general_eye_gaze,             gaze    cpf        angles and eye positions in the central
    personalized_eye_gaze                            pupil frame (CPF), not the device frame
    wrist_and_palm_poses,         hands   device     positions, normals and T_device_wrist in
    hand_tracking_results                            the device frame
    online_calibration            samples device     no values; ``extra["json"]``
    ============================= ======= ========== ============================================

    Poses are ``tx ty tz`` [m] and ``qw qx qy qz`` (quat wxyz). ``world`` is one frame only among
    rows with the same ``graph_uid`` (in ``extra``); multi-SLAM gives it to several wearers.
    ``utc_ns`` in ``extra`` is -1 where the service did not know it. A hand that was not tracked
    (confidence not above 0) is NaN, where the file has zeros; a missing gaze depth is NaN, where
    the vendor's reader says 0. Gaze with vergence has a yaw per eye and no combined one.

    An online calibration is given as it is. Up to MPS SLAM 1.1.0 its RGB camera is calibrated
    for 2880 x 2880 pixels whatever was recorded; later versions carry ``ImageSizes``. Scaling it
    to the recorded size is up to who uses it.

    Parameters
    ----------
    folder
        One of `find_mps`: with ``slam/`` (or ``trajectory/``), ``eye_gaze/``, ``hand_tracking/``,
        or the files themselves.

    Raises
    ------
    MpsSchemaError
        A file has columns that no published schema has.
    """
    tracks: list[Track] = []
    problems = list(_summaries(folder)[1])
    for product in PRODUCTS:
        for path in _chosen(folder, product.folders, product.names, product.name, problems):
            tracks.extend(_table_tracks(folder, path, product, problems))
    for path in _chosen(folder, SLAM, CALIBRATION_NAMES, CALIBRATION, problems):
        tracks.extend(_calibration_track(folder, path, problems))
    if not tracks and not problems:
        problems.append(_nothing(folder))
    return tuple(tracks), tuple(problems)


def mps_points(path: Path) -> tuple[PointTrack, SampleTrack | None]:
    """Return the points of one file, and the closed-loop trajectory if it lies beside.

    Raises
    ------
    MpsSchemaError
        The file's columns are not those of semi-dense points.
    EmptyFileError
        It holds no points.
    """
    product = next(p for p in PRODUCTS if p.kind == "points")
    track = _table_track(path, path.name, read_header(path), product, [])
    if not isinstance(track, PointTrack):
        raise EmptyFileError(
            "the file holds no points", path=path, hint="download the MPS output again"
        )
    closed = path.with_name("closed_loop_trajectory.csv")
    poses = (
        next(_table_tracks(path.parent, closed, PRODUCTS[0], []), None)
        if (closed.is_file())
        else None
    )
    return track, poses if isinstance(poses, SampleTrack) else None


def mps_summary(folder: Path) -> Mapping[str, Any]:
    """Return what the services say of their own work: their ``summary.json``, by service folder.

    The keys are ``slam`` (or ``trajectory``), ``eye_gaze``, ``hand_tracking``, and ``.`` for a
    file in the folder itself. A file that cannot be read is left out; `mps_tracks` says so.
    """
    return _summaries(folder)[0]


# --- finding ---------------------------------------------------------------------------------


def _chosen(
    folder: Path,
    services: tuple[str, ...],
    names: tuple[str, ...],
    track: str,
    problems: list[Problem],
) -> tuple[Path, ...]:
    """Return the file of a product, if there is one: the published name before deprecated ones."""
    places = [folder / service for service in (*services, ".")]
    there = [place / name for place in places for name in names if (place / name).is_file()]
    for other in there[1:]:
        text = f"{_label(folder, other)} is not used: {_label(folder, there[0])} is there too"
        problems.append(Problem("mps_superseded", text, track))
    return tuple(there[:1])


def _label(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _nothing(folder: Path) -> Problem:
    zipped = sorted(p.name for p in (*folder.glob("*.zip"), *folder.glob("*/*.zip")))
    what = f"{zipped[0]} is not unpacked yet" if zipped else "no file of a published name is there"
    return Problem("mps_empty", f"the MPS folder {folder.name} gives nothing: {what}", severe=True)


# --- tables ----------------------------------------------------------------------------------


def _table_tracks(
    folder: Path, path: Path, product: Product, problems: list[Problem]
) -> Iterator[Track]:
    label = _label(folder, path)
    try:
        header = read_header(path)
        track = _table_track(path, label, header, product, problems)
        if track is not None:
            yield track
        if product is PRODUCTS[0] and "geo_available" in header:
            located = _table_track(path, label, header, ECEF_PRODUCT, [])
            if located is not None:
                yield located
    except (EmptyFileError, CorruptFileError) as error:
        problems.append(_unusable(label, error, product.name))


def _table_track(
    path: Path, label: str, header: tuple[str, ...], product: Product, problems: list[Problem]
) -> Track | None:
    layout = match(path, header, product.schemas)
    found = scan(path, layout)
    problems.extend(_judged(found, label, product.name, ordered=product.ordered))
    if not found.rows:
        return None
    if product.kind == "points":
        points = partial(_read_points, path, layout, found.rows, product)
        return PointTrack(product.name, found.rows, points, product.frame, label)
    return SampleTrack(
        name=product.name,
        sample_kind=product.kind,
        columns=layout.columns,
        count=found.rows,
        first_ns=found.first_ns,
        last_ns=found.last_ns,
        read=partial(_read_samples, path, layout, found.rows, product),
        frame=product.frame,
        rate_hz=_mean_rate(found) if product.ordered else None,
        source=label,
        location=product.location,
    )


def _mean_rate(found: Scan) -> float | None:
    span = (found.last_ns or 0) - (found.first_ns or 0)
    return (found.rows - 1) * 1e9 / span if span > 0 and not found.backwards else None


def _read_samples(path: Path, layout: Layout, count: int, product: Product) -> Samples:
    table = read_table(path, layout, count, product.dtype)
    names = [f.name for f in layout.of("value")]
    for side in SIDES:
        confidence = f"{side}_tracking_confidence"
        if confidence in names:
            absent = ~(table.values[:, names.index(confidence)] > 0)
            for k, name in enumerate(names):
                if f"_{side}_" in name:
                    table.values[absent, k] = np.nan
    return Samples(table.times_ns, table.values, table.extra)


def _read_points(path: Path, layout: Layout, count: int, product: Product) -> PointCloud:
    table = read_table(path, layout, count, product.dtype)
    inverse_std, std = table.values[:, 3].copy(), table.values[:, 4].copy()
    return PointCloud(
        frame=product.frame,
        points_m=np.ascontiguousarray(table.values[:, :3]),
        sigma_m=std,
        extra={**table.extra, "inv_dist_std": inverse_std, "dist_std": std},
    )


# --- online calibration ----------------------------------------------------------------------


def _calibration_track(folder: Path, path: Path, problems: list[Problem]) -> Iterator[Track]:
    label = _label(folder, path)
    found = scan_calibration(path)
    problems.extend(_judged(found, label, CALIBRATION, ordered=True))
    if found.rows:
        yield SampleTrack(
            name=CALIBRATION,
            sample_kind="samples",
            columns=(),
            count=found.rows,
            first_ns=found.first_ns,
            last_ns=found.last_ns,
            read=partial(read_calibration, path, found.rows),
            frame="device",
            rate_hz=_mean_rate(found),
            source=label,
        )


# --- judging ---------------------------------------------------------------------------------


def _judged(found: Scan, label: str, track: str, *, ordered: bool) -> Iterator[Problem]:
    """Say in plain words what is wrong with a file, and what was done about it."""
    rows = found.rows
    said = (
        (found.cut or found.ends_early, "truncated", True,
         f"its end is missing; the {rows} whole rows before it are used"),
        (found.unended, "no_line_end", False,
         "its last line has no end, so its last number may be cut short and is left out"),
        (found.malformed, "bad_rows", True,
         f"{found.malformed} lines are not as long as the first one and were left out"),
        (found.timeless, "no_time", True,
         f"{found.timeless} rows have no time and were left out"),
        (found.empty, "no_value", False,
         f"{found.empty} of {rows} rows have no value; they are kept as NaN"),
        (found.implausible, "implausible", True,
         f"{found.implausible} of {rows} rows have a tracking confidence that is neither -1 nor "
         "between 0 and 1: its columns may be mixed up, do not trust it"),
        (ordered and found.backwards, "time_goes_back", True,
         f"time goes back {found.backwards} times, by up to {found.worst_ns / 1e6:.3f} ms"),
        (len(found.worlds) > 1, "several_worlds", True,
         f"its rows lie in {len(found.worlds)} world frames that nothing relates to each other: "
         "compare them only where graph_uid is the same"),
        (not rows, "no_rows", True, "it has no rows"),
    )  # fmt: skip
    return (Problem(code, f"{label}: {text}", track, bad) for it, code, bad, text in said if it)


def _unusable(label: str, error: SynoramaError, track: str) -> Problem:
    return Problem("unusable", f"{label}: {error.message}; {error.hint}", track, severe=True)


# --- summaries -------------------------------------------------------------------------------


def _summaries(folder: Path) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    summaries: dict[str, Any] = {}
    problems: list[Problem] = []
    for service in (*SERVICES, "."):
        path = folder / service / "summary.json"
        if path.is_file():
            try:
                summaries[service] = json.loads(path.read_text("utf-8-sig"))
            except (OSError, ValueError):
                text = f"{_label(folder, path)} cannot be read"
                problems.append(Problem("mps_summary_unreadable", text))
    for service, summary in summaries.items():
        problems.extend(_failures(service, summary))
    return summaries, tuple(problems)


def _failures(service: str, summary: Any) -> Iterator[Problem]:
    """Say which steps of a service did not succeed, in the service's words."""
    steps = summary.items() if isinstance(summary, dict) else ()
    for step, report in steps:
        status = str(report.get("status", "SUCCESS")) if isinstance(report, dict) else "SUCCESS"
        if status.upper() != "SUCCESS":
            words = [str(report.get("message", "")), *map(str, report.get("errors") or ())]
            why = "; ".join(word for word in words if word)
            text = f"MPS {service}: {step} ended with {status}" + (f": {why}" if why else "")
            yield Problem("mps_failed", text, severe=status.upper().startswith(FAILED))
