"""CPU cost of simulated pictures, and whether rooms of many seeds can be built and walked in.

Run ``python bench/render_cost.py [--seeds 25]``. Prints CPU milliseconds per picture, people
moving, by camera; then CPU seconds per room and what the rooms hold.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from synorama.simulate.scene.cameras import Camera, Fisheye624, KannalaBrandt, Pinhole
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import plan_motion
from synorama.simulate.scene.render import Film, Studio
from synorama.simulate.scene.room import KINDS, Room

S = 1_000_000_000
START_NS = 10**12
RGB = Fisheye624(
    1220.0, 1439.5, 1439.5, (-0.026, 0.101, -0.071, 0.012, 0.002, -0.0004),
    (0.0017, -0.0016), (-0.0012, 4e-5, 0.0023, -2e-5), 1.15,
)  # fmt: skip
SLAM = Fisheye624(
    241.0, 319.5, 239.5, (-0.026, 0.101, -0.071, 0.012, 0.002, -0.0004),
    (0.0017, -0.0016), (-0.0012, 4e-5, 0.0023, -2e-5), 1.35,
)  # fmt: skip
GOPRO = KannalaBrandt((420.0, 420.0), (319.5, 179.5), (0.03, -0.01, 0.002, -0.001))
WEBCAM = Pinhole((520.0, 520.0), (319.5, 239.5), (-0.1, 0.02, 0.001, -0.001, 0.0))


@dataclass(frozen=True)
class Case:
    """A camera whose cost is measured: every how many ns it takes a picture, and how many."""

    camera: Camera
    step_ns: int
    count: int
    worn: bool = True
    film: Film = field(default_factory=Film)


def small_cases() -> list[Case]:
    """Return the cameras of a small session."""
    return [
        Case(Camera("rgb 160x160", RGB.scaled(160 / 2880), 160, 160), S // 30, 150),
        Case(Camera("rgb 128x128", RGB.scaled(128 / 2880), 128, 128), S // 30, 150),
        Case(Camera("slam 128x96", SLAM.scaled(0.2), 128, 96, colour=False), S // 10, 150),
        Case(Camera("gopro 160x90", GOPRO.scaled(0.25), 160, 90), S // 30, 300, worn=False),
        Case(Camera("webcam 160x120", WEBCAM.scaled(0.25), 160, 120), S // 30, 300, worn=False),
    ]


def full_cases() -> list[Case]:
    """Return cameras of full size."""
    blur = Film(exposure_s=0.006, subframes=4)
    rgb = RGB.scaled(1408 / 2880)
    return [
        Case(Camera("rgb 1408x1408", rgb, 1408, 1408, readout_s=0.016), S, 3),
        Case(Camera("rgb 1408x1408 blurred", rgb, 1408, 1408, readout_s=0.016), S, 2, film=blur),
        Case(Camera("slam 640x480", SLAM, 640, 480, colour=False), S, 5),
        Case(Camera("gopro 1920x1080", GOPRO.scaled(3.0), 1920, 1080), S // 30, 5, worn=False),
    ]


def measured(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def cost_ms(studio: Studio, room: Room, case: Case) -> float:
    """Return CPU milliseconds per picture, the first one left out."""
    rng = np.random.default_rng(0)
    width, depth, _ = room.size_m
    corner = np.array([width / 2 - 0.3, 0.3 - depth / 2, 1.9])
    pose = looking(corner, np.array([0.0, 0.0, 1.0]))

    def take(number: int) -> None:
        t_ns = START_NS + number * case.step_ns
        if case.worn:
            studio.worn(case.camera, "leader", t_ns, case.film, rng)
        else:
            studio.fixed(case.camera, pose, t_ns, case.film, rng)

    def take_all() -> None:
        for number in range(1, case.count + 1):
            take(number)

    take(0)
    return 1e3 * measured(take_all) / case.count


def looking(eye: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return ``T_world_camera`` of a camera that looks at a place."""
    ahead = (at - eye) / np.linalg.norm(at - eye)
    right = np.cross(ahead, (0, 0, 1.0))
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([right, np.cross(ahead, right), ahead])
    pose[:3, 3] = eye
    return pose


def pictures() -> None:
    """Print the cost of pictures."""
    room = build_room(1, "kitchen")
    people = plan_motion(room, 1, start_ns=START_NS, seconds=60.0)
    for cases, texture_px, step_ns in ((small_cases(), 256, 100_000_000), (full_cases(), 512, 0)):
        studio = Studio(room, people, texture_px=texture_px, figure_step_ns=step_ns)
        for case in cases:
            print(f"{case.camera.name:24} {cost_ms(studio, room, case):9.1f} ms CPU a picture")


def rooms(seeds: int) -> None:
    """Print what rooms of many seeds hold and cost; build, light and walk each."""
    for kind in KINDS:
        rows, spent = [], 0.0
        for seed in range(seeds):
            room = build_room(seed, kind, moved_share=0.4)
            spent += measured(lambda room=room: Studio(room, texture_px=64))  # type: ignore[misc]
            people = plan_motion(room, seed, start_ns=0, seconds=60.0)
            t_ns = np.arange(0, 60 * S, S // 20)
            gap = people[0].head(t_ns).position_m - people[1].head(t_ns).position_m
            small = sum(bool(thing.support) for thing in room.objects)
            turning = np.concatenate([p.head(t_ns).angular_velocity_rad_s for p in people])
            rows.append(
                (
                    small,
                    len(room.work_spots),
                    np.linalg.norm(gap, axis=1).min(),
                    np.rad2deg(np.percentile(np.linalg.norm(turning, axis=1), 99)),
                    max(np.linalg.norm(p.head(t_ns).velocity_m_s, axis=1).max() for p in people),
                )
            )
        table = np.array(rows)
        print(
            f"{kind:10} {seeds} seeds: small things >= {table[:, 0].min():.0f}, "
            f"work spots >= {table[:, 1].min():.0f}, heads apart >= {table[:, 2].min():.2f} m, "
            f"turning 99 % <= {table[:, 3].max():.0f} deg/s, speed <= {table[:, 4].max():.2f} m/s, "
            f"lighting {spent / seeds:.2f} s CPU"
        )


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=25, help="rooms of each kind; 0 for none")
    seeds = parser.parse_args().seeds
    pictures()
    if seeds:
        rooms(seeds)


if __name__ == "__main__":
    main()
