"""How exactly a clock card gives a camera's clock, on made views with a known truth.

Run from the repository's root: ``python -m bench.sync_card [--views N] [--write] [--picture]``.
Each view is a camera with its own rate, exposure, distance, shutter, blur and noise, that sees the
card for five seconds at a random moment; thirty of its frames, as JPEG, are read. The error is
that of the middle of the exposure of the middle row, which is what a frame's stamp means, against
the card.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from tests.sync.card_films import background, pose

from bench.measuring import HERE, Report, write_result
from synorama.simulate.clock_card import Camera, Screen, paste
from synorama.sync.sight import CardReader, Sighting
from synorama.sync.visual import CardSeen, card_seen

RATES_HZ = (20.0, 24.0, 29.97, 30.0, 60.0)
EXPOSURES_MS = (2.0, 5.0, 10.0, 20.0, 33.0)
MODULES_PX = (2.5, 3.0, 4.0, 6.0)
SCREENS_HZ = (60.0, 60.0, 90.0, 120.0)
PICTURE = HERE.parent / "docs" / "explanation" / "pictures" / "clock-card.png"
FRAMES, SECONDS = 30, 5.0
DAYS_NS = 10**15  # after which the card's clock begins anew


@dataclass(frozen=True)
class View:
    """One camera's view of a card."""

    rate_hz: float
    exposure_ms: float
    module_px: float
    row: float
    camera: Camera
    screen: Screen
    start_ns: float
    seed: int


def views(count: int, seed: int) -> list[View]:
    """Draw views that go through all rates, exposures and distances."""
    rng = np.random.default_rng(seed)
    return [_view(k, rng) for k in range(count)]


def _view(k: int, rng: np.random.Generator) -> View:
    rate = RATES_HZ[k % 5]
    exposure_ms = min(EXPOSURES_MS[k // 5 % 5], 950 / rate)
    camera = Camera(
        640, 480, exposure_ms * 1e6, float(rng.choice([0, 8e6, 16e6])),
        float(rng.uniform(0.5, 0.9)), float(rng.uniform(1, 5)), float(rng.uniform(0.6, 0.95)),
    )  # fmt: skip
    refresh = float(rng.choice(SCREENS_HZ)) * (1 + float(rng.normal(0, 30e-6)))
    screen = Screen(k % 50, 10**14, refresh, float(rng.choice([0, 2e6])))
    module_px, row = MODULES_PX[k // 25 % 4], float(rng.uniform(0.35, 0.65))
    start = float(rng.uniform(0, 1e9))
    return View(rate, exposure_ms, module_px, row, camera, screen, start, k)


def look(view: View) -> tuple[CardSeen | None, float, int]:
    """Return what was made of a view, its error [ms] and how many frames were read."""
    rng = np.random.default_rng(view.seed)
    empty = background(view.seed, view.camera)
    place = pose(view.seed, view.camera, view.module_px, row=view.row)
    reader, times, seen = CardReader(), list[int](), list[Sighting]()
    taken = np.sort(rng.choice(int(SECONDS * view.rate_hz), FRAMES, replace=False))
    for k in taken.tolist():
        stamp = round(k * 1e9 / view.rate_hz)
        picture = paste(empty, view.screen, view.camera, place, view.start_ns + stamp, rng)
        sighting = reader.read(_as_jpeg(picture))
        if sighting:
            times.append(stamp)
            seen.append(sighting)
    if not seen:
        return None, float("nan"), 0
    got = card_seen(np.array(times, np.int64), seen, round(1e9 / view.rate_hz))
    if got is None:
        return None, float("nan"), len(seen)
    true = view.screen.epoch_ns + view.start_ns + got.at_ns - view.screen.response_ns
    error = (got.card_ns - true + DAYS_NS / 2) % DAYS_NS - DAYS_NS / 2
    return got, error / 1e6, len(seen)


def draw(path: Path) -> None:
    """Write a picture of the card whose exposure spans a step of the light."""
    camera, screen = Camera(640, 480, exposure_ns=10e6), Screen()
    place = pose(6, camera, 7.0, row=0.72)
    mid_ns = 10 * screen.step_ns + 2e6
    seen = paste(background(4, camera), screen, camera, place, mid_ns, np.random.default_rng(0))
    cv2.imwrite(str(path), seen[60:440, 150:490])


def _as_jpeg(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    coded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 85])[1]
    return np.asarray(cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE), np.uint8)


def wilson(held: int, n: int) -> tuple[float, float]:
    """Return the 95 % bounds of a share."""
    z, p = 1.96, held / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


Row = tuple[View, CardSeen | None, float, int]


def line(name: str, rows: list[Row]) -> list[str]:
    """Return one line of a table: how many, errors, intervals and coverage."""
    got = [(abs(e), s.half_ns / 1e6) for _, s, e, _ in rows if s is not None]
    if not got:
        return [name, f"0 of {len(rows)}", "", "", "", ""]
    errors, halves = (np.array(x) for x in zip(*got, strict=True))
    held = int((errors <= halves).sum())
    low, high = wilson(held, len(got))
    return [
        name,
        f"{len(got)} of {len(rows)}",
        f"{np.median(errors):.2f} / {np.percentile(errors, 95):.2f} / {errors.max():.2f}",
        f"{np.median(halves):.1f} / {halves.max():.1f}",
        f"{held / len(got):.3f}",
        f"{low:.3f} to {high:.3f}",
    ]


def main() -> int:
    """Measure, print, and on request write the result down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=225)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="keep it in bench/results")
    parser.add_argument("--picture", action="store_true", help="draw the one of the docs instead")
    asked = parser.parse_args()
    if asked.picture:
        draw(PICTURE)
        return 0
    start = time.process_time()
    rows: list[Row] = [(v, *look(v)) for v in views(asked.views, asked.seed)]
    cpu_s = time.process_time() - start
    report = Report("Clock card")
    got = [(s, e, v) for v, s, e, _ in rows if s is not None]
    report.bar("true times outside their interval", sum(abs(e) > s.half_ns / 1e6 for s, e, _ in got)
               / len(got), 0.05, "", ".3f")  # fmt: skip
    frames = np.array([abs(e) * v.rate_hz / 1000 for _, e, v in got])
    report.bar("95th percentile of the error", float(np.percentile(frames, 95)), 0.25, "frames")
    head = ["views", "read", "error: median / p95 / worst [ms]", "interval: median / widest [ms]",
            "inside", "95 % bounds"]  # fmt: skip
    lines = [line("all", rows)]
    lines += [line(f"{r:g} frames/s", [x for x in rows if x[0].rate_hz == r]) for r in RATES_HZ]
    lines += [
        line(f"exposed {a:g} to {b:g} ms", [x for x in rows if a <= x[0].exposure_ms < b])
        for a, b in ((1, 4), (4, 8), (8, 15), (15, 50))
    ]
    lines += [
        line(f"{m:g} px a module", [x for x in rows if x[0].module_px == m]) for m in MODULES_PX
    ]
    read = sum(n for *_, n in rows)
    told = f"{read} of {FRAMES * len(rows)} frames read; {cpu_s:.0f} CPU s"
    report.note(f"n = {asked.views}, seed {asked.seed}; {told}", head, lines)
    if asked.write:
        write_result("sync_card", report.text("python -m bench.sync_card --write"))
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
