"""Running stages: which are stale, what must be redone, what happened."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from synorama.errors import UsageError
from synorama.pipeline.objects import OBJECTS
from synorama.pipeline.refine_clock import REFINE_CLOCK, best_clocks
from synorama.pipeline.register import REGISTER
from synorama.pipeline.stages import STAGES, Progress, Stage
from synorama.pipeline.workspace import (
    Workspace,
    append_journal,
    check_request,
    locked,
    read_journal,
    writing,
)
from synorama.records import GeometryResult, ObjectRecord, Problem, Recording, SyncResult

__all__ = ["Outcome", "StageRun", "process", "status"]


@dataclass(frozen=True, slots=True)
class StageRun:
    """What happened to a stage: done now, up to date from before, or stale and not run.

    ``reason`` tells why a stage was skipped.
    """

    name: str
    state: Literal["done", "up-to-date", "stale", "skipped"]
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `process` leaves: the session file, its stages, the clocks and the places.

    ``starts_ns`` holds each recording's first device time, ``problems`` what is wrong with it;
    ``geometry`` is None where nothing was registered, ``objects`` tells of scanned things.
    """

    session: Path
    stages: tuple[StageRun, ...]
    sync: SyncResult | None
    starts_ns: Mapping[str, int | None]
    problems: Mapping[str, tuple[Problem, ...]]
    geometry: GeometryResult | None = None
    objects: tuple[ObjectRecord, ...] = ()


def process(
    work: Workspace,
    *,
    only: str | None = None,
    start: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Bring a session up to date: run the stages that are stale, in order.

    Parameters
    ----------
    only
        Run this one stage whether stale or not, and no other.
    start
        Redo from this stage on, even what is up to date.
    progress
        Called with stage name, done and total.

    Raises
    ------
    SynoramaError
        The first stage that fails; what was done before stays done.
    """
    for name in (only, start):
        _check_stage(work, name)
    if only is not None and start is not None:
        raise UsageError("'only' and 'from' contradict each other", hint="give one of the two")
    check_request(work)
    report = progress or (lambda *_: None)
    with locked(work):
        runs = [_run(work, stage, only, start, report) for stage in STAGES]
    # A stale part may be of any age.
    there = {run.name for run in runs if run.state in ("done", "up-to-date")}
    recordings = _recordings(work) if "ingest" in there else ()
    return Outcome(
        work.session,
        tuple(runs),
        _sync_result(work, there) if "sync" in there else None,
        {r.id: r.first_ns for r in recordings},
        {r.id: r.problems for r in recordings},
        _geometry(work) if REGISTER.name in there else None,
        _things(work) if OBJECTS.name in there else (),
    )


def status(work: Workspace) -> tuple[StageRun, ...]:
    """Tell for each stage whether it is up to date, without running any."""
    keys = stage_keys(work)  # first: it says in words what cannot be read
    last = read_journal(work)
    return tuple(_standing(work, stage, keys, last) for stage in STAGES)


def _standing(
    work: Workspace, stage: Stage, keys: Mapping[str, str], last: Mapping[str, Any]
) -> StageRun:
    reason = stage.skipped_because(work)
    if reason is not None:
        return StageRun(stage.name, "skipped", reason=reason)
    seconds = float(last.get(stage.name, {}).get("seconds", 0.0))
    fresh = is_fresh(work, stage, keys, last)
    return StageRun(stage.name, "up-to-date" if fresh else "stale", seconds)


def _check_stage(work: Workspace, name: str | None) -> None:
    stages = {stage.name: stage for stage in STAGES}
    if name is None:
        return
    if name not in stages:
        raise UsageError(f"there is no stage '{name}'", hint="stages are: " + ", ".join(stages))
    reason = stages[name].skipped_because(work)
    if reason is not None:
        raise UsageError(f"the stage '{name}' cannot be run: {reason}", path=work.folder)


def _run(
    work: Workspace, stage: Stage, only: str | None, start: str | None, progress: Progress
) -> StageRun:
    last = read_journal(work)
    keys = stage_keys(work)
    standing = _standing(work, stage, keys, last)
    forced = stage.name == only or (start is not None and _not_before(stage.name, start))
    done = standing.state == "up-to-date" and not forced
    if standing.state == "skipped" or done or (only is not None and stage.name != only):
        return standing
    _check_needs(work, stage, keys, last)
    return _run_now(work, stage, keys[stage.name], progress)


def _run_now(work: Workspace, stage: Stage, key: str, progress: Progress) -> StageRun:
    began, clock = time.time(), time.perf_counter()
    with writing(work):
        stage.result(work).parent.mkdir(parents=True, exist_ok=True)
        stage.run(work, progress)
        seconds = round(time.perf_counter() - clock, 3)
        line = {
            "stage": stage.name,
            "key": key,
            "version": stage.version,
            "libraries": library_versions(stage.libraries),
            "began_utc": _utc(began),
            "ended_utc": _utc(time.time()),
            "seconds": seconds,
            "bytes": stage.result(work).stat().st_size,
        }
        append_journal(work, line)
    return StageRun(stage.name, "done", seconds)


def _not_before(name: str, start: str) -> bool:
    names = [stage.name for stage in STAGES]
    return names.index(name) >= names.index(start)


def _check_needs(
    work: Workspace, stage: Stage, keys: Mapping[str, str], last: Mapping[str, Any]
) -> None:
    by_name = {s.name: s for s in STAGES}
    missing = [n for n in stage.needs if not is_fresh(work, by_name[n], keys, last)]
    if missing:
        raise UsageError(
            f"stage '{stage.name}' needs '{missing[0]}', which is not up to date",
            path=work.folder,
            hint=f"run all stages, or --only {missing[0]} first",
        )


def is_fresh(
    work: Workspace, stage: Stage, keys: Mapping[str, str], last: Mapping[str, Any]
) -> bool:
    """Tell whether the stage's last run had the present key and what it made is still there.

    A stage that is skipped is as fresh as it can be.
    """
    if stage.skipped_because(work) is not None:
        return True
    line, result = last.get(stage.name), stage.result(work)
    if line is None or line["key"] != keys[stage.name] or not result.is_file():
        return False
    return bool(result.stat().st_size == line["bytes"])


def stage_keys(work: Workspace) -> dict[str, str]:
    """Return the present key of every stage: a digest of all that its result depends on."""
    import blake3

    keys: dict[str, str] = {}
    for stage in STAGES:
        skipped = stage.skipped_because(work)
        facts = {
            "stage": [stage.name, stage.version],
            "needs": [keys[name] for name in stage.needs],
            "libraries": library_versions(stage.libraries),
            "inputs": stage.inputs(work) if skipped is None else None,
            "skipped": skipped is not None,  # not why: that may be told in other words
        }
        text = json.dumps(facts, sort_keys=True, default=str)
        keys[stage.name] = blake3.blake3(text.encode()).hexdigest()
    return keys


def library_versions(names: Sequence[str]) -> dict[str, str]:
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _sync_result(work: Workspace, there: Collection[str]) -> SyncResult:
    from synorama.session import read_sync

    if REFINE_CLOCK.name in there:
        return best_clocks(work)
    return read_sync(work.part("sync"))


def _geometry(work: Workspace) -> GeometryResult:
    from synorama.session.geometry_io import read_geometry_part

    return read_geometry_part(work.part(REGISTER.name))


def _things(work: Workspace) -> tuple[ObjectRecord, ...]:
    from synorama.session.objects_io import read_objects_part

    return read_objects_part(work.part(OBJECTS.name))


def _recordings(work: Workspace) -> tuple[Recording, ...]:
    from synorama.session import read_ingest

    return read_ingest(work.part("ingest"))
