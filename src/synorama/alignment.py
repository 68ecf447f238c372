"""Plain sound and video files on one clock: the content of ``synorama align``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.capture import open_recording
from synorama.errors import InputError, NoSoundError, SyncRefusedError, UsageError
from synorama.sync import pieces
from synorama.sync.network import Hearing, Placement, contradiction_words, place
from synorama.sync.pieces import Pieces
from synorama.sync.solve import FARTHEST_M, read_sound, travel_ms
from synorama.timebase import NS_PER_S, ClockMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound
    from synorama.records import Recording

    Float64 = NDArray[np.float64]

__all__ = ["FARTHEST_M", "AlignedFile", "Alignment", "align_files"]

Z95 = 1.96
BREAK_NS = 1_000  # knots on both sides of a break are this far apart
LINE_POINTS = 101
UNKNOWN_PPM = 20.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class AlignedFile:
    """Where one file lies on the reference's clock.

    Parameters
    ----------
    file
        As it was named.
    accepted, reason
        Whether it could be placed, and why not or with what doubts, in words.
    maps
        One map a segment, from the file's own media time to the reference's, both in ns.
    interval95_ms
        Half width of the interval that holds the true clock with 95 % probability.
    p_match
        Probability that the file is of the same time and place; None where nothing was heard.
    score, score_needed
        What was reached, and what is needed.
    error
        Why the file could not be heard at all.
    """

    file: str
    accepted: bool
    reason: str
    maps: Pieces = ()
    interval95_ms: float | None = None
    p_match: float | None = None
    ambiguous: bool = False
    score: float | None = None
    score_needed: float | None = None
    error: InputError | None = None

    @property
    def line(self) -> tuple[float, float] | None:
        """``(offset_s, drift_ppm)`` of the straight line closest to the longest segment."""
        if not self.maps:
            return None
        return _line(max(self.maps, key=lambda m: m.range_ns[1] - m.range_ns[0]))

    @property
    def span_s(self) -> float:
        """Length of the longest segment."""
        return max((m.range_ns[1] - m.range_ns[0] for m in self.maps), default=0) / NS_PER_S

    @property
    def knows_drift(self) -> bool:
        """Whether the sound was long enough to tell the drift."""
        return all(m.rate_sigma_ppm < UNKNOWN_PPM for m in self.maps)

    def knots_s(self) -> list[list[float]]:
        """Return ``[t_file_s, t_reference_s]`` of every knot; at a break, one on each side."""
        rows = [row for k in range(len(self.maps)) for row in self._knots_ns(k)]
        return [[file / NS_PER_S, reference / NS_PER_S] for file, reference in rows]

    def _knots_ns(self, number: int) -> list[list[int]]:
        clock = self.maps[number]
        first, last = clock.range_ns
        if number + 1 < len(self.maps):
            last = self.maps[number + 1].range_ns[0] - BREAK_NS
        inside = clock.knots[(clock.knots[:, 0] > first) & (clock.knots[:, 0] < last), 0]
        at = np.array([first, *inside, max(last, first + 1)], np.int64)
        table: list[list[int]] = np.column_stack([at, pieces.apply([clock], at)]).tolist()
        return table

    def jumps(self) -> list[dict[str, float]]:
        """Return when, on the file's own time, the reference's leaps, and by how much."""
        found = []
        for before, after in zip(self.maps, self.maps[1:], strict=False):
            at = np.array([after.range_ns[0]], np.int64)
            by = int(pieces.apply([after], at)[0] - pieces.apply([before], at)[0])
            found.append({"at_s": int(at[0]) / NS_PER_S, "by_s": by / NS_PER_S})
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        offset_s, drift_ppm = self.line or (None, None)
        return {
            "file": self.file,
            "accepted": self.accepted,
            "reason": self.reason,
            "offset_s": offset_s,
            "drift_ppm": drift_ppm,
            "knots": self.knots_s(),
            "interval95_ms": self.interval95_ms,
            "p_match": self.p_match,
            "ambiguous": self.ambiguous,
            "jumps": self.jumps(),
            "score": self.score,
            "score_needed": self.score_needed,
            "error": type(self.error).__name__ if self.error else None,
        }


@dataclass(frozen=True, slots=True)
class Alignment:
    """All files on the reference's clock.

    Parameters
    ----------
    reference
        The file whose media time is the clock, as it was named.
    farthest_m
        How far apart two microphones may have stood: what the intervals hold.
    warnings
        Pairs that contradict the others.
    """

    reference: str
    results: tuple[AlignedFile, ...]
    farthest_m: float
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values, as ``align --json`` prints them."""
        return {
            "reference": self.reference,
            "results": [r.as_dict() for r in self.results],
            "farthest_m": self.farthest_m,
            "warnings": list(self.warnings),
        }

    @property
    def failure(self) -> InputError | SyncRefusedError | None:
        """The first error of a file that cannot be heard, else what was not accepted, else None."""
        errors = [r.error for r in self.results if r.error]
        refused = [r for r in self.results if not r.accepted]
        if errors or not refused:
            return errors[0] if errors else None
        return SyncRefusedError(refused[0].reason, path=refused[0].file)


def align_files(
    paths: Sequence[Path],
    *,
    farthest_m: float = FARTHEST_M,
    progress: Progress = lambda done, total: None,
) -> Alignment:
    """Put files on the clock of the first one, by the sound that they share.

    Parameters
    ----------
    paths
        The reference, then the others: any sound or video, VRS, any chapter of a GoPro recording.
    farthest_m
        How far apart two microphones may have stood [m]. Sound takes 2.9 ms for each metre, and
        where nobody knows the positions the intervals hold that.
    progress
        Called as ``progress(done, total)``.

    Raises
    ------
    UsageError
        There are fewer than two files, or the distance is no distance.
    InputError
        The reference cannot be heard. Errors of the others are in their results.
    """
    if len(paths) < 2:
        raise UsageError("there is nothing to align with", hint="name two files or more")
    if not 0 <= farthest_m < float("inf"):
        raise UsageError(f"{farthest_m} m is no distance", hint="give metres, such as 8")
    files = _Files.open(paths)
    hear = Hearing(files.read)
    if hear(files.names[0]) is None:
        raise hear.errors[files.names[0]]
    identity = {files.names[0]: (ClockMap.identity(files.names[0]),)}
    others = [n for n in files.names[1:] if n not in files.same_as_reference]
    placed = place(identity, others, hear, tell=lambda k: progress(k, len(others)))
    results = (_result(name, files, placed, hear, farthest_m) for name in files.names[1:])
    words = (contradiction_words(c) for c in placed.solution.contradictions)
    return Alignment(str(paths[0]), tuple(results), farthest_m, tuple(words))


# --- files -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Files:
    """The files by unique name; a file may be named more than once."""

    names: tuple[str, ...]
    given: dict[str, str]
    opened: dict[str, Recording | InputError]
    same_as_reference: frozenset[str]

    @classmethod
    def open(cls, paths: Sequence[Path]) -> _Files:
        given: dict[str, str] = {}
        opened: dict[str, Recording | InputError] = {}
        for path in paths:
            name = str(path)
            while name in given:
                name += " (again)"
            given[name] = str(path)
            opened[name] = _open(path)
        first, *others = opened.items()
        if isinstance(first[1], InputError):
            raise first[1]
        same = frozenset(n for n, r in others if _same(first[1], r))
        return cls(tuple(given), given, opened, same)

    def read(self, name: str) -> MonoSound:
        recording = self.opened[name]
        if isinstance(recording, InputError):
            raise recording
        sound = read_sound(recording, name=name)
        if not len(sound.samples):
            raise NoSoundError(
                "its sound has no samples", path=self.given[name], hint="record it again"
            )
        return sound


def _open(path: Path) -> Recording | InputError:
    try:
        return open_recording(path)
    except InputError as error:
        return error


def _same(one: Recording, other: Recording | InputError) -> bool:
    if isinstance(other, InputError):
        return False
    return [f.path.resolve() for f in one.files] == [f.path.resolve() for f in other.files]


# --- results ---------------------------------------------------------------------------------


def _result(
    name: str, files: _Files, placed: Placement, hear: Hearing, farthest_m: float
) -> AlignedFile:
    given = files.given[name]
    if name in files.same_as_reference:
        return _itself(name, given, files.opened[name])
    if name in hear.errors:
        return AlignedFile(given, False, hear.errors[name].message, error=hear.errors[name])
    if name not in placed.solution.clocks:
        return _refused(name, given, placed)
    return _accepted(name, given, placed, farthest_m)


def _itself(name: str, given: str, recording: Recording | InputError) -> AlignedFile:
    assert not isinstance(recording, InputError)  # or it would not be the reference
    first = recording.first_ns or 0
    last = max(recording.last_ns or 0, first + 1)
    clock = ClockMap(name, name, np.array([[first, first], [last, last]], np.int64))
    return AlignedFile(given, True, "accepted; it is the reference itself", (clock,), 0.0, 1.0)


def _refused(name: str, given: str, placed: Placement) -> AlignedFile:
    tried = [p for p in placed.pairs if p.other == name]
    best = max(tried, key=lambda p: (p.score, p.score_needed))
    return AlignedFile(
        given,
        False,
        placed.best_reason(name),
        p_match=max((p.p_match for p in tried if p.p_match is not None), default=None),
        ambiguous=any(p.ambiguous for p in tried),
        score=best.score,
        score_needed=best.score_needed,
    )


def _accepted(name: str, given: str, placed: Placement, farthest_m: float) -> AlignedFile:
    solution = placed.solution
    maps, path = solution.clocks[name], solution.path[name]
    way_ms = len(path) * travel_ms(farthest_m)
    fit_ms = Z95 * max(m.sigma_ns for m in maps) / 1e6
    through = "; reached through another file, not the reference" if len(path) > 1 else ""
    return AlignedFile(
        given,
        True,
        path[0].reason + through,
        maps,
        way_ms + fit_ms + solution.doubt_ns(name) / 1e6,
        solution.p_match(name),
        ambiguous=any(p.ambiguous for p in path),
        score=path[0].score,
        score_needed=path[0].score_needed,
    )


def _line(clock: ClockMap) -> tuple[float, float]:
    """Return offset at time zero [s] and drift [ppm] of the straight line closest to a map."""
    first, last = clock.range_ns
    at = np.linspace(first, last, LINE_POINTS).astype(np.int64)
    lead = pieces.apply([clock], at) - at
    x, y = (at - at[0]).astype(np.float64), (lead - lead[0]).astype(np.float64)
    slope, start = np.polyfit(x, y, 1) if last > first else (clock.rate_before - 1, 0.0)
    offset_ns = int(lead[0]) + float(start) - float(slope) * int(at[0])
    return offset_ns / NS_PER_S, float(slope) * 1e6
