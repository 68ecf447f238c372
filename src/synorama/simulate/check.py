"""A processed session against the truth of its simulation: what is off, and by how much.

Later stages add a function to `CHECKS`; each yields lines of one table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from synorama.errors import InputError, InputNotFoundError, NotInSessionError
from synorama.records import ObjectRecord, Recording, RecordingClock
from synorama.session import Session, open_session
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Line", "check_session"]

ELSEWHERE = "camera-from-another-session"
SESSION = "session"
POSE_EVERY_NS = NS_PER_S // 2
MOST_MM, MOST_DEG = 30.0, 0.5  # a scan that is accepted is so near, all over the room
SIGMAS = 4.0  # of the services' stated error: more is a fault of ours


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was compared.

    Parameters
    ----------
    what, of
        What was compared, of which recording, track or source.
    found
        What was found, in words and numbers.
    bound
        What it was held to.
    held
        Whether it was; None where nothing is promised.
    values
        The numbers by name.
    """

    what: str
    of: str
    found: str
    bound: str
    held: bool | None
    values: Mapping[str, float | None]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "what": self.what,
            "of": self.of,
            "found": self.found,
            "bound": self.bound,
            "held": self.held,
            **self.values,
        }


def check_session(path: Path) -> tuple[Line, ...]:
    """Compare a processed session with the truth beside it.

    Parameters
    ----------
    path
        A session folder, or the ``session.h5`` in it, with ``truth.json`` beside.

    Raises
    ------
    InputNotFoundError
        There is no truth beside the session, or the session is not processed yet.
    """
    folder = path if path.is_dir() else path.parent
    file = folder / "session.h5" if path.is_dir() else path
    told = _truth(folder)
    if not file.is_file():
        raise InputNotFoundError(
            "this session is not processed yet",
            path=file,
            hint=f"run 'synorama process {folder}' first",
        )
    with open_session(file, warn=False) as session:
        case = _Case(folder, told, session)
        return tuple(line for check in CHECKS for line in check(case))


def _truth(folder: Path) -> dict[str, Any]:
    path = folder / "truth.json"
    if not path.is_file():
        raise InputNotFoundError(
            "there is no truth beside this session",
            path=path,
            hint="only simulated sessions have one: 'synorama simulate' makes them",
        )
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"this is no truth: {error}", path=path, hint="simulate again") from error
    return told


@dataclass(frozen=True)
class _Case:
    """A session, its truth, and which recording is which."""

    folder: Path
    told: Mapping[str, Any]
    session: Session

    def pairs(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the truth and the session's name of each recording that the session has."""
        by_file = {}
        for name in self.session.recordings:
            first = self.session.recording(name).files[0].path.resolve()
            by_file[first.relative_to(self.folder.resolve()).as_posix()] = name
        for told in self.told["recordings"]:
            known = [by_file[f] for f in told["files"] if f in by_file]
            if known:
                yield told, known[0]

    def true_clock(self, told: Mapping[str, Any]) -> ClockMap:
        """Return how a recording's device times become those of the session's own clock.

        Truth is told on the leader's clock; where another recording gives the session its time,
        truth is carried there.
        """
        own = ClockMap(SESSION, told["name"], np.array(told["clock"], np.int64))
        return self.leader_to_session @ own

    @cached_property
    def leader_to_session(self) -> ClockMap:
        """From the clock on which truth is told to that of the session."""
        for told, name in self.pairs():
            if self._gives_time(name):
                own = ClockMap(SESSION, SESSION, np.array(told["clock"], np.int64))
                return own.inverse()
        return ClockMap.identity(SESSION)

    def _gives_time(self, name: str) -> bool:
        try:
            return self.session.clock(name).method == "reference"
        except NotInSessionError:
            return False


# --- clocks ----------------------------------------------------------------------------------


def _clocks(case: _Case) -> Iterator[Line]:
    strangers = [fault["recording"] for n, fault in case.told["faults"].items() if n == ELSEWHERE]
    for told, name in case.pairs():
        belongs = told["name"] not in strangers
        try:
            clock = case.session.clock(name)
        except NotInSessionError:
            yield Line("clock", name, "not placed", "" if belongs else "must not be", None, {})
            continue
        if belongs:
            yield _clock(case.session.recording(name), case.true_clock(told), clock)
        else:
            yield Line("clock", name, "placed", "it belongs to another session", False, {})


def _clock(recording: Recording, true: ClockMap, clock: RecordingClock) -> Line:
    times = _spread(recording, 101)
    error_ms = (clock.apply(times) - true.apply(times)) / 1e6
    start, middle, end = error_ms[[0, 50, 100]].tolist()
    bound = clock.interval95_ms
    worst = float(np.abs(error_ms).max())
    values = {"start_ms": start, "middle_ms": middle, "end_ms": end, "worst_ms": worst}
    return Line(
        "clock",
        recording.id,
        f"{start:+.3f} {middle:+.3f} {end:+.3f} ms",
        "-" if bound is None else f"{bound:.3g} ms",
        None if bound is None else worst <= bound,
        values | {"interval95_ms": bound},
    )


def _sounds(case: _Case) -> Iterator[Line]:
    """Tell how far sound is off that has times of its own in the file, as after lost samples."""
    for told, name in case.pairs():
        for track, true in told["tracks"].items():
            try:
                clock = case.session.clock(name)
            except NotInSessionError:
                continue
            if "clock" in true:
                yield _sound(f"{track} of {name}", case.true_clock(told | true), true, clock)


def _sound(of: str, true: ClockMap, track: Mapping[str, Any], clock: RecordingClock) -> Line:
    times = np.linspace(track["first_ns"], track["last_ns"], 101).astype(np.int64)
    error_ms = np.abs(clock.apply(times) - true.apply(times)) / 1e6
    middle, worst = float(np.median(error_ms)), float(error_ms.max())
    values = {"median_ms": middle, "worst_ms": worst}
    return Line("sound", of, f"median {middle:.3f}, worst {worst:.3f} ms", "-", None, values)


def _spread(recording: Recording, count: int) -> Int64:
    assert recording.first_ns is not None  # a clock has times
    assert recording.last_ns is not None
    return np.linspace(recording.first_ns, recording.last_ns, count).astype(np.int64)


# --- arrival ---------------------------------------------------------------------------------


def _arrivals(case: _Case) -> Iterator[Line]:
    """Tell how long sound took, by the truth and by the session's clocks."""
    for told, name in case.pairs():
        try:
            clock = case.session.clock(name)
        except NotInSessionError:
            continue
        for source, knots in told["acoustic"].items():
            heard = np.array(knots, np.int64)
            heard[:, 1] = case.leader_to_session(heard[:, 1])
            yield _arrival(f"{source} at {name}", heard, clock, case.true_clock(told))


def _arrival(of: str, knots: Int64, clock: RecordingClock, true: ClockMap) -> Line:
    arrived, made = knots.T
    travel_ms = (true.apply(arrived) - made) / 1e6
    off_ms = (clock.apply(arrived) - made) / 1e6 - travel_ms
    low, high = float(travel_ms.min()), float(travel_ms.max())
    mean, spread = float(off_ms.mean()), float(off_ms.std())
    return Line(
        "arrival",
        of,
        f"{low:.2f} to {high:.2f} ms, told {mean:+.3f} ms off",
        "-",
        None,
        {"travel_least_ms": low, "travel_most_ms": high, "off_ms": mean, "off_spread_ms": spread},
    )


# --- frames ----------------------------------------------------------------------------------


def _frames(case: _Case) -> Iterator[Line]:
    for told, name in case.pairs():
        tracks = case.session.recording(name).tracks
        lost, off_ns = 0, 0
        for track, true in told["tracks"].items():
            mine = tracks.get(track)
            lost += true["count"] if mine is None else abs(mine.count - true["count"])
            if mine is not None and track != "audio" and mine.first_ns is not None:
                off_ns = max(off_ns, abs(mine.first_ns - true["first_ns"]))
        yield Line(
            "frames",
            name,
            f"{lost} lost, begin {off_ns / 1e3:.1f} us off",
            "0 lost",
            lost == 0,
            {"lost": lost, "begin_off_us": off_ns / 1e3},
        )


# --- poses -----------------------------------------------------------------------------------


def _poses(case: _Case) -> Iterator[Line]:
    services = case.told.get("mps", {})
    tables = case.folder / "truth.npz"
    if not services or not tables.is_file():
        return
    with np.load(tables) as table:
        for told, name in case.pairs():
            if services.get(told["name"], {}).get("graph_uid"):
                true_t = table[f"wearers/{told['name']}/t_session_ns"]
                true = table[f"wearers/{told['name']}/T_world_device"]
                yield from _pose(case, services[told["name"]], name, (true_t, true))


def _pose(
    case: _Case, service: Mapping[str, Any], name: str, true: tuple[Int64, Float64]
) -> Iterator[Line]:
    """Compare poses at the times of the truth's own rows, which need no interpolation there."""
    inside = (true[0] >= case.told["start_ns"]) & (true[0] <= case.told["end_ns"])
    times, poses = true[0][inside], true[1][inside]
    step = max(1, POSE_EVERY_NS // int(times[1] - times[0]))
    mps_world = np.array(service["T_mps_world"])
    errors = []
    for t_ns, pose in zip(times[::step].tolist(), poses[::step], strict=True):
        found = case.session.pose(name, t_ns)
        if found is not None:
            errors.append(np.linalg.inv(mps_world @ pose) @ found.matrix)
    if not errors:
        yield Line("pose", name, "none", "-", None, {})
        return
    place_mm, turn_deg = _sizes(np.array(errors))
    limit_mm = 1e3 * SIGMAS * float(np.linalg.norm(service["pose_error_sigma"][:3]))
    yield Line(
        "pose",
        name,
        f"{place_mm:.1f} mm, {turn_deg:.2f} deg rms",
        f"{limit_mm:.1f} mm",
        place_mm <= limit_mm,
        {"place_rms_mm": place_mm, "turn_rms_deg": turn_deg, "poses": float(len(errors))},
    )


def _sizes(errors: Float64) -> tuple[float, float]:
    """Return the root mean squares of shifts [mm] and turns [degrees] of poses ``(N, 4, 4)``."""
    place_m = np.linalg.norm(errors[:, :3, 3], axis=1)
    cosine = (np.trace(errors[:, :3, :3], axis1=1, axis2=2) - 1) / 2
    turn = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    return 1e3 * float(np.sqrt((place_m**2).mean())), float(np.sqrt((turn**2).mean()))


# --- places ----------------------------------------------------------------------------------


def _scans(case: _Case) -> Iterator[Line]:
    """Compare where the scan was put with where it is, at the corners of the room."""
    geometry, scan = case.session.geometry, case.told.get("scan")
    if geometry is None or not scan or not geometry.world:
        return
    wearer = next((told["name"] for told, name in case.pairs() if name == geometry.world), "")
    placed = np.array(scan["T_world_scan"])
    true = np.array(case.told["mps"][wearer]["T_mps_world"]) @ placed
    half = np.array(case.told["room"]["size_m"]) / 2
    corners = np.array(list(product((-1, 1), (-1, 1), (-1, 1)))) * half
    in_scan = (corners - placed[:3, 3]) @ placed[:3, :3]
    for name, found in geometry.scans.items():
        if found.T_target_source is None:
            yield Line("scan", name, found.status, "-", None, {})
            continue
        error = np.linalg.inv(true) @ found.T_target_source.matrix
        moved = in_scan @ error[:3, :3].T + error[:3, 3] - in_scan
        off_mm = 1e3 * float(np.linalg.norm(moved, axis=1).max())
        _, turn_deg = _sizes(error[np.newaxis])
        right = off_mm <= MOST_MM and turn_deg <= MOST_DEG
        yield Line(
            "scan",
            name,
            f"{found.status}: {off_mm:.1f} mm, {turn_deg:.2f} deg",
            f"{MOST_MM:.0f} mm, {MOST_DEG} deg",
            right if found.status == "accepted" else None,
            {"off_mm": off_mm, "turn_deg": turn_deg},
        )


_Check: TypeAlias = Callable[[_Case], Iterator[Line]]


def _objects(case: _Case) -> Iterator[Line]:
    """Compare the scanned things, and where they were put, with those of the room."""
    told = {thing["name"]: thing for thing in case.told.get("objects", [])}
    for record in case.session.objects:
        thing = told.pop(record.name, None)
        if thing is not None:
            yield Line("object", record.name, *_object_told(case, record, thing), {})
    for name in told:
        yield Line("object", name, "not there", "every file", False, {})


def _object_told(
    case: _Case, record: ObjectRecord, thing: Mapping[str, Any]
) -> tuple[str, str, bool]:
    """Return what was found of an object, what it is held to, and whether it held."""
    strange = {file.name for file in record.files} - set(thing["files"])
    if record.refused or strange or not record.files:
        return record.refused or "other files than its own", "every file", False
    place = record.place
    world_scan = case.told["scan"]["T_world_scan"]  # None: the scan is that of another room
    settled = place is not None and place.by == "registration" and world_scan is not None
    if not settled or place is None or place.T_scan_object is None:
        return f"{len(record.files)} files", "every file", True
    true = np.linalg.inv(np.array(world_scan)) @ np.array(thing["T_world_object_at_scan"])
    off = place.T_scan_object.matrix - true
    corners = case.session.scanned_object(record.name).mesh.corners
    off_mm = 1e3 * float(np.linalg.norm(corners @ off[:3, :3].T + off[:3, 3], axis=1).max())
    return f"{off_mm:.1f} mm in the scan", f"{MOST_MM:.0f} mm", off_mm <= MOST_MM


CHECKS: tuple[_Check, ...] = (_clocks, _sounds, _arrivals, _frames, _poses, _scans, _objects)
"""What is compared, in the order of the table."""
