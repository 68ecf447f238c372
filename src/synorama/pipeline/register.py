"""The stage register: scans and other wearers in the world frame of one pair of glasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.pipeline.ingest import INGEST
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.sync import SYNC
from synorama.pipeline.workspace import Workspace
from synorama.records import (
    CameraPose,
    GeometryResult,
    PointCloud,
    PointTrack,
    Recording,
    RegistrationResult,
    SampleTrack,
)
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.registration import Side

    Float64 = NDArray[np.float64]

__all__ = ["REGISTER"]

WORLD = "world"
PREFERRED = (".e57", ".ptx", ".laz", ".las", ".ply", ".pcd", ".xyz")
KEPT_VOXEL_M = 0.02
TRAJECTORY_ROWS = 5_000
AGREE_OVERLAP = 0.3  # of two wearers' points in one room


@dataclass(frozen=True, slots=True, eq=False)
class _Worn:
    """Glasses whose points and places the services gave."""

    id: str
    points: PointCloud
    trajectory_m: Float64 | None
    graphs: frozenset[bytes]


def scans_of(work: Workspace) -> dict[str, Path]:
    """Return the scans by id; of one scan in several formats the one that tells most."""
    best: dict[Path, Path] = {}
    for path in sorted(work.discovery.scans, key=lambda p: PREFERRED.index(p.suffix.lower())):
        best.setdefault(path.with_suffix(""), path)
    return {f"scan-{k + 1}": path for k, path in enumerate(sorted(best.values()))}


def _skipped_because(work: Workspace) -> str | None:
    glasses = [f for f in work.discovery.found if f.reader.name == "aria" and f.take.companions]
    if not glasses:
        return "no MPS output gives a world frame"
    if not work.discovery.scans and len(glasses) < 2:
        return "there is no scan, and nobody else whose frame could differ"
    return None


def _register(work: Workspace, progress: Progress) -> None:
    from synorama.session import read_ingest, read_sync
    from synorama.session.geometry_io import write_geometry_part

    recordings = read_ingest(work.part(INGEST.name))
    reference = read_sync(work.part(SYNC.name)).reference
    worn = [w for r in recordings if (w := _worn(r)) is not None]
    worn.sort(key=lambda w: w.id != reference)
    if not worn:
        empty = GeometryResult("", warnings=("no MPS output has semi-dense points",))
        write_geometry_part(work.part(REGISTER.name), empty)
        return
    scans, clouds = _scans(work, worn[0], progress)
    scans, cameras, notes = _by_pictures(work, recordings, worn[0].id, scans, clouds)
    wearers = {w.id: _wearer(w, worn[0]) for w in worn[1:]}
    told = [*notes] + [
        f"{name}: {result.status}: {result.reason}"
        for name, result in (scans | wearers).items()
        if result.status != "accepted"
    ]
    result = GeometryResult(worn[0].id, scans, wearers, cameras, tuple(told))
    write_geometry_part(work.part(REGISTER.name), result, clouds)


def _by_pictures(
    work: Workspace,
    recordings: Sequence[Recording],
    world: str,
    scans: Mapping[str, RegistrationResult],
    clouds: Mapping[str, PointCloud],
) -> tuple[dict[str, RegistrationResult], dict[str, CameraPose], list[str]]:
    """Let pictures confirm or give the places of scans, and find the cameras of the room."""
    from synorama.capture.config import find_rig, load_rig
    from synorama.errors import InputError
    from synorama.pipeline.by_pictures import improved, known_lenses

    lenses = known_lenses(load_rig(work.options.rig or find_rig(work.folder)))
    files = {name: (path, clouds[name]) for name, path in scans_of(work).items() if name in clouds}
    try:
        return improved(recordings, world, files, scans, lenses)
    except InputError as error:  # shapes alone have to do
        return dict(scans), {}, [f"pictures were not used: {in_words(error)}"]


# --- what the glasses bring ------------------------------------------------------------------


def _worn(recording: Recording) -> _Worn | None:
    points = recording.tracks.get("semidense_points")
    if not isinstance(points, PointTrack) or not points.count:
        return None
    cloud = points.read()
    graphs = cloud.extra.get("graph_uid", np.zeros(0, "S1"))
    return _Worn(
        recording.id,
        replace(cloud, frame=WORLD),
        _trajectory(recording.tracks.get("closed_loop_trajectory")),
        frozenset(np.unique(graphs).tolist()),
    )


def _trajectory(track: object) -> Float64 | None:
    if not isinstance(track, SampleTrack):
        return None
    values = track.read().values
    names = [column.name for column in track.columns]
    places = values[:, [names.index(axis) for axis in ("tx", "ty", "tz")]].astype(np.float64)
    return places[:: max(1, len(places) // TRAJECTORY_ROWS)]


# --- scans -----------------------------------------------------------------------------------


def _scans(
    work: Workspace, world: _Worn, progress: Progress
) -> tuple[dict[str, RegistrationResult], dict[str, PointCloud]]:
    from synorama.errors import InputError
    from synorama.registration import read_side

    results, clouds = {}, {}
    found = scans_of(work)
    for k, (name, path) in enumerate(found.items()):
        progress("register", k, len(found))
        try:
            side = read_side(path, name)
            clouds[name] = _kept(side.cloud)
            results[name] = _place(side, world)
        except InputError as error:
            results[name] = RegistrationResult("refused", in_words(error))
    progress("register", len(found), len(found))
    return results, {name: clouds[name] for name in results if name in clouds}


def _place(side: Side, world: _Worn) -> RegistrationResult:
    from synorama.geometry.register import RegistrationOptions, register

    options = RegistrationOptions(target_trajectory_m=world.trajectory_m, handheld=side.handheld)
    return register(side.cloud, world.points, options)


def _kept(cloud: PointCloud) -> PointCloud:
    """Return the scan as it goes into the session."""
    from synorama.geometry.voxels import VoxelGrid

    has_colours = cloud.colours is not None
    origin = np.floor(np.median(cloud.points_m, axis=0))
    grid = VoxelGrid(KEPT_VOXEL_M, origin, colours=has_colours)
    grid.add(cloud.points_m, cloud.colours)
    points, colours = grid.means()
    return PointCloud(cloud.frame, points, colours=colours)


def in_words(error: Exception) -> str:
    """Return what happened and what to do about it."""
    hint = getattr(error, "hint", "")
    message = getattr(error, "message", str(error))
    return f"{message}; {hint}" if hint else message


# --- other wearers ---------------------------------------------------------------------------


def _wearer(other: _Worn, world: _Worn) -> RegistrationResult:
    """Return the other glasses' frame in the world: known from the graph, or registered."""
    from synorama.errors import InputError
    from synorama.geometry.register import RegistrationOptions, register

    mine = replace(other.points, frame=f"{other.id}/{WORLD}")
    if other.graphs and other.graphs == world.graphs:
        return _same_frame(mine, world)
    options = RegistrationOptions(
        source_trajectory_m=other.trajectory_m, target_trajectory_m=world.trajectory_m
    )
    try:
        return register(mine, world.points, options)
    except InputError as error:
        return RegistrationResult("refused", in_words(error))


def _same_frame(mine: PointCloud, world: _Worn) -> RegistrationResult:
    """Return that both lie in one frame, as their graph ids say, if their points agree."""
    from synorama.geometry.agree import share_met

    overlap = share_met(mine, world.points)
    same = RigidTransform(WORLD, mine.frame, np.eye(4))
    if overlap < AGREE_OVERLAP:
        return RegistrationResult(
            "ambiguous",
            f"the services gave both wearers one frame, and {100 * overlap:.0f} % of their points "
            "meet: look whether they were in one room",
            same,
            overlap,
            method="graph id",
        )
    return RegistrationResult(
        "accepted", "the services gave both wearers one frame", same, overlap, method="graph id"
    )


def _inputs(work: Workspace) -> Mapping[str, Any]:
    return {name: _stamp(path) for name, path in scans_of(work).items()}


def _stamp(path: Path) -> list[Any]:
    stat = path.stat()
    return [path.name, stat.st_size, stat.st_mtime_ns]


REGISTER = Stage(
    name="register",
    version=3,
    needs=(INGEST.name, SYNC.name),
    libraries=("numpy", "scipy", "laspy", "pye57"),
    inputs=_inputs,
    run=_register,
    result=lambda work: work.part("register"),
    skipped_because=_skipped_because,
)
