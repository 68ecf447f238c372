"""What the times of pictures say about how well they were recorded, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from synorama.records import Problem
from synorama.timebase import format_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["steady_rate_hz", "video_problems"]

NS_PER_S = 1_000_000_000
STEADY_SHARE = 0.9
STEADY_WITHIN = 0.25
ROUNDING_NS = 1_500_000  # two neighbours rounded to 1 ms
GAP_STEPS = 3
VARIABLE_GAP_NS = 2_000_000_000
VARIABLE_GAP_STEPS = 10
SEVERE_GAP_NS = NS_PER_S


def steady_rate_hz(times_ns: Int64) -> float | None:
    """Return the rate of pictures taken at even steps, None where steps vary by nature.

    Even means: nine steps in ten within a quarter (or the rounding of Matroska) of the median.
    """
    step_ns = _nominal_step(times_ns)
    if step_ns is None:
        return None
    steps = np.diff(times_ns)
    return float(NS_PER_S / steps[_is_nominal(steps, step_ns)].mean())


def _nominal_step(times_ns: Int64) -> float | None:
    steps = np.diff(times_ns)
    if len(steps) < 2:
        return None
    median = float(np.median(steps))
    share = _is_nominal(steps, median).mean()
    return median if median > 0 and share >= STEADY_SHARE else None


def _is_nominal(steps: Int64, median: float) -> NDArray[np.bool_]:
    near: NDArray[np.bool_] = np.abs(steps - median) <= max(STEADY_WITHIN * median, ROUNDING_NS)
    return near


def video_problems(times_ns: Int64, track: str) -> tuple[Problem, ...]:
    """Find gaps, dropped frames and frames that share a time.

    Parameters
    ----------
    times_ns
        ``(N,)`` in display order.
    track
        The track's name, for the problems.
    """
    steps = np.diff(times_ns)
    problems = []
    same = int((steps == 0).sum())
    if same:
        text = f"{same} frames have the same time as the frame before"
        problems.append(Problem("non_monotonic", text, track))
    step_ns = _nominal_step(times_ns)
    if step_ns is None:
        return (*problems, *_variable_gaps(times_ns, track))
    return (*problems, *_dropped(times_ns, step_ns, track), *_gaps(times_ns, step_ns, track))


def _dropped(times_ns: Int64, step_ns: float, track: str) -> tuple[Problem, ...]:
    """Say how many frames are missing one or two at a time."""
    steps = np.diff(times_ns)
    short = steps[(steps > 1.5 * step_ns + ROUNDING_NS) & (steps <= GAP_STEPS * step_ns)]
    if not len(short):
        return ()
    lost = int((np.rint(short / step_ns) - 1).sum())
    text = f"{lost} frames were dropped in {len(short)} places; the times of the others are right"
    return (Problem("dropped_frames", text, track),)


def _gaps(times_ns: Int64, step_ns: float, track: str) -> tuple[Problem, ...]:
    return _told(times_ns, GAP_STEPS * step_ns + ROUNDING_NS, track)


def _variable_gaps(times_ns: Int64, track: str) -> tuple[Problem, ...]:
    """Take only long silences for gaps: a screen that does not change sends no frames."""
    steps = np.diff(times_ns)
    if not len(steps):
        return ()
    return _told(
        times_ns, max(VARIABLE_GAP_NS, VARIABLE_GAP_STEPS * float(np.median(steps))), track
    )


def _told(times_ns: Int64, longest_ns: float, track: str) -> tuple[Problem, ...]:
    steps = np.diff(times_ns)
    found = np.flatnonzero(steps > longest_ns)
    if not len(found):
        return ()
    worst = int(found[steps[found].argmax()])
    text = (
        f"{len(found)} gaps without pictures, {_s(int(steps[found].sum()))} s in all; the longest "
        f"lasts {_s(int(steps[worst]))} s from {_s(int(times_ns[worst]))} s on"
    )
    severe = int(steps[worst]) >= SEVERE_GAP_NS
    return (Problem("gap", text, track, severe=severe),)


def _s(t_ns: int) -> str:
    """Write a time to the millisecond."""
    return format_seconds(round(t_ns / 1_000_000) * 1_000_000)
