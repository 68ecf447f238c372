"""Clocks by sound, on files of the simulator's rooms: errors at start, middle, end and between.

Each seed is four rooms in the aligned setting: five minutes, a few minutes in several formats,
half an hour, and six devices. Files are aligned as ``synorama align`` does. In the room of six
devices every pair that was measured is corrupted in turn, by 40 to 500 ms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.accept import Bar
from bench.sync_pairs import (
    NOT_PLACED,
    Errors,
    Pair,
    errors_of,
    five_minutes,
    formats,
    half_hour,
    kept,
    six_devices,
    strangers,
)
from synorama.alignment import align_files
from synorama.capture import open_recording
from synorama.media.audio import MonoSound
from synorama.records import PairEvidence
from synorama.simulate.clocks import randomness
from synorama.sync import pieces
from synorama.sync.network import Hearing, Placement, place
from synorama.sync.solve import read_sound
from synorama.timebase import NS_PER_S, ClockMap

ROOMS = "SYNORAMA_BENCH_ROOMS"
BARS = (
    Bar("five_minutes_ms", "1: 5 min, SNR 30 to -10 dB, drift to 100 ppm; 6 pairs", "ms", 0.05),
    Bar("half_hour_ms", "2: 30 min, -100 ppm", "ms", 0.05),
    Bar("wander_ms", "3: wander of 1.5 ms over 30 min", "ms", 0.1),
    Bar("lost_ms", "4: 40 ms, 80 ms and 1.3 s lost, both sides of each", "ms", 0.1),
    Bar("lost_at_s", "4: moments of the losses", "s", 1.0),
    Bar("leap_ms", "4: the file's times leap by 2 s", "ms", 0.1),
    Bar(
        "formats_ms",
        "5: AAC 44.1 and 48 kHz, Opus, inverted, mono against 7 channels of int32",
        "ms",
        0.06,
    ),
    Bar("loops_ms", "8: six devices, closure of loops", "ms", 0.1),
    Bar("six_ms", "8: six devices, clocks", "ms", 0.05),
    Bar("corrupted_ms", "8: one pair corrupted, by how much others move", "ms", 0.05),
    Bar("corrupted_named", "8: the corrupted pair is the one that is named", "", 1.0, "share"),
    Bar("refused", "files of two rooms are refused", "", 1.0, "share"),
)


def measure(seed: int, folder: Path) -> Mapping[str, float]:
    place = Path(os.environ.get(ROOMS, folder))
    short = kept(place, five_minutes, seed, 300.0)
    kinds = kept(place, formats, seed, 150.0)
    straight, lost, leap, wander = kept(place, half_hour, seed, 1800.0)
    six = kept(place, six_devices, seed, 150.0)
    elsewhere = kept(place, six_devices, seed + 1, 150.0)  # one seed is one room
    losses = align(lost)
    return {
        "five_minutes_ms": max(align(p).worst_ms for p in short),
        "formats_ms": max(align(p).worst_ms for p in kinds),
        "half_hour_ms": align(straight).worst_ms,
        "wander_ms": align(wander).worst_ms,
        "lost_ms": losses.worst_ms,
        "lost_at_s": losses.jumps_s,
        "leap_ms": align(leap).worst_ms,
        "refused": float(align(strangers(short, elsewhere)) is NOT_PLACED),
        **devices(six, seed),
    }


def align(pair: Pair) -> Errors:
    """Align two files."""
    (result,) = align_files([pair.reference, pair.other]).results
    if not result.accepted:
        return NOT_PLACED
    jumps = [jump["at_s"] for jump in result.jumps()]
    return errors_of(pair, np.array(result.knots_s()), jumps)


# --- six devices ---------------------------------------------------------------------------------


def devices(pairs: Sequence[Pair], seed: int) -> dict[str, float]:
    """Place all devices of a room; then again with each pair corrupted in turn."""
    hear = Hearing(_Reader(pairs))
    known = {"reference": (ClockMap.identity("reference"),)}
    names = [p.case for p in pairs]
    placed = place(known, names, hear)
    closures = [abs(loop.closure_ns) / 1e6 for loop in placed.solution.loops]
    rng = randomness(seed, "bench corrupted")
    moved, named = [], []
    for number in range(len(placed.pairs)):
        by_ns = int(rng.choice([-1, 1]) * rng.uniform(40, 500) * 1e6)
        after = place(known, names, hear, measured=_corrupted(placed.pairs, number, by_ns))
        moved.append(max(_moved_ms(placed, after, p) for p in pairs))
        wrong = placed.pairs[number]
        found = [{c.pair.reference, c.pair.other} for c in after.solution.contradictions]
        named.append(found == [{wrong.reference, wrong.other}])
    return {
        "loops_ms": max(closures, default=float("inf")),
        "six_ms": max(_off_ms(placed, p) for p in pairs),
        "corrupted_ms": max(moved),
        "corrupted_named": float(all(named)),
    }


class _Reader:
    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._files = {"reference": pairs[0].reference} | {p.case: p.other for p in pairs}

    def __call__(self, name: str) -> MonoSound:
        return read_sound(open_recording(self._files[name]), name=name)


def _corrupted(pairs: Sequence[PairEvidence], number: int, by_ns: int) -> list[PairEvidence]:
    wrong = pairs[number]
    maps = tuple(replace(m, knots=m.knots + np.array([0, by_ns])) for m in wrong.maps)
    return [replace(wrong, maps=maps) if p is wrong else p for p in pairs]


def _clock_ns(placed: Placement, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    maps = placed.solution.clocks[pair.case]
    first, last = maps[0].range_ns[0], maps[-1].range_ns[1]
    at = np.linspace(first, last, 21).astype(np.int64)
    return at, pieces.apply(maps, at)


def _off_ms(placed: Placement, pair: Pair) -> float:
    if pair.case not in placed.solution.clocks:
        return float("inf")
    at, got = _clock_ns(placed, pair)
    return float(np.abs(got / NS_PER_S - pair.truth_s(at / NS_PER_S)).max() * 1e3)


def _moved_ms(before: Placement, after: Placement, pair: Pair) -> float:
    if pair.case not in after.solution.clocks:
        return float("inf")
    at, there = _clock_ns(before, pair)
    return float(np.abs(pieces.apply(after.solution.clocks[pair.case], at) - there).max() / 1e6)
