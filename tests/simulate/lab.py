"""A small furnished room with two wearers, shared by the tests of what is written from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import open3d
from numpy.typing import NDArray

from synorama.simulate.clocks import steady_clock
from synorama.simulate.devices.aria_calibration import GEN1, calibration_json
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.mps import Worn
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import plan_motion
from synorama.simulate.scene.room import Moment, Room
from synorama.simulate.scene.surface import Surface, room_surface
from synorama.simulate.sound.plain import Hearing
from synorama.timebase import NS_PER_S

O3D: Any = open3d  # its stubs know no numpy arrays

SEED, SECONDS = 3, 8.0
MOTION_SEED, MOTION_S = 6, 60.0
MOTION_NS = 2_000_000_000_000
START_NS = MOTION_NS + 12_500_000_000  # from here on both work with their hands for a while
CALIBRATION = calibration_json(GEN1, "1WM00000000S00", {})


@dataclass(frozen=True)
class Lab:
    room: Room
    session: Surface
    scan: Surface
    worn: tuple[Worn, Worn]


@cache
def lab() -> Lab:
    room = build_room(SEED)
    wearers = plan_motion(room, MOTION_SEED, start_ns=MOTION_NS, seconds=MOTION_S)
    worn = [
        Worn(_glasses(k), wearer, Path(wearer.name) / "rec.vrs", CALIBRATION)
        for k, wearer in enumerate(wearers)
    ]
    return Lab(room, room_surface(room), room_surface(room, "scan"), (worn[0], worn[1]))


def _glasses(number: int) -> Glasses:
    """The leader's clock is the session's; the helper's has an offset and drifts."""
    device_ns = (START_NS, 777_000_000_000)[number]
    name = ("leader", "helper")[number]
    clock = steady_clock(
        name,
        device_ns=device_ns,
        session_ns=START_NS,
        length_ns=round(SECONDS * NS_PER_S),
        drift_ppm=(0.0, 24.0)[number],
    )
    return Glasses(
        name=name,
        serial=f"1WM00000000S0{number}",
        clock=clock,
        start_ns=device_ns,
        seconds=SECONDS,
        sync_role=("server", "client")[number],
        shared_session_id="shared",
        start_epoch_s=1_735_725_600,
        barcode=4 * number,
        hearing=Hearing(0.5, 0.001),
        seed=SEED,
    )


def ray_scene(when: Moment) -> Any:
    """The room for rays and distances, through Open3D alone."""
    mesh = lab().room.mesh(when)
    scene = O3D.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(
        O3D.core.Tensor(mesh.vertices.astype(np.float32)),
        O3D.core.Tensor(mesh.triangles.astype(np.uint32)),
    )
    return scene


def distance_m(points_m: NDArray[np.float64], when: Moment) -> NDArray[np.float64]:
    """Distance of places in the room to its surfaces."""
    found = ray_scene(when).compute_distance(O3D.core.Tensor(points_m.astype(np.float32)))
    return np.asarray(found.numpy(), np.float64)
