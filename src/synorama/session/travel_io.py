"""What the travel of sound did to cameras' clocks: the part of stage refine-clock, and back.

The part holds all clocks as they are afterwards, in the layout of the part of stage sync, and
under ``sync/travel`` a group for each camera, with the clock that it had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synorama.records import RecordingClock, SoundTravel, SyncResult
from synorama.session.parts import new_part, open_part
from synorama.session.storage import (
    attribute,
    in_order,
    read_table,
    set_attributes,
    set_position,
    write_table,
)
from synorama.session.sync_io import read_result, write_clock, write_result

__all__ = ["PART", "read_refined", "read_travels", "write_refined", "write_travels"]

PART = "refine-clock"
PLAIN = ("accepted", "reason", "score", "score_needed", "runner_up", "windows", "position_given")
TABLES = ("position_m", "position_sigma_m", "window_times_ns", "residuals_ns", "losses_ns")


def write_refined(
    path: Path,
    sync: SyncResult,
    travels: Sequence[SoundTravel],
    before: Mapping[str, RecordingClock],
    *,
    why_not: str = "",
) -> None:
    """Write all clocks, the evidence, and the clocks before, as a part.

    Parameters
    ----------
    why_not
        Why nothing was refined, in words.
    """
    with new_part(path, PART) as file:
        root = file.create_group("sync")
        write_result(root, sync)
        set_attributes(root, {"not_refined_because": why_not})
        write_travels(root, travels, before)


def read_refined(path: Path) -> tuple[SyncResult, tuple[SoundTravel, ...]]:
    """Read the clocks and the evidence of a part."""
    with open_part(path, PART) as file:
        result = read_result(file["sync"])
        return result, read_travels(file["sync"], result.clocks)


def write_travels(
    group: Any, travels: Sequence[SoundTravel], before: Mapping[str, RecordingClock]
) -> None:
    """Write the evidence into the group ``sync``."""
    root = group.create_group("travel")
    for k, one in enumerate(travels):
        inside = root.create_group(one.recording)
        set_position(inside, k)
        set_attributes(inside, {name: getattr(one, name) for name in PLAIN})
        for name in TABLES:
            write_table(inside, name, getattr(one, name))
        write_clock(inside.create_group("before"), before[one.recording])


def read_travels(group: Any, clocks: Mapping[str, RecordingClock]) -> tuple[SoundTravel, ...]:
    """Read the evidence of a group ``sync``; accepted ones get their recordings' clocks."""
    return tuple(_read_one(name, inside, clocks) for name, inside in in_order(group["travel"]))


def _read_one(name: str, group: Any, clocks: Mapping[str, RecordingClock]) -> SoundTravel:
    facts: dict[str, Any] = {field: attribute(group, field) for field in PLAIN}
    facts |= {table: read_table(group, table) for table in TABLES if table in group}
    facts["accepted"] = bool(facts["accepted"])
    facts["position_given"] = bool(facts["position_given"])
    return SoundTravel(name, clock=clocks[name] if facts["accepted"] else None, **facts)
