"""How far corners in written pictures lie from where the truth puts them.

    python -m bench.corners --seed 7 --size full

Checkerboards hang on all walls of a room, large ones beside the room's own. Every camera of both
glasses, both GoPros and the webcam records through the product's writers; its files are read back
by the product's readers. A corner counts if geometry alone says that it can be located: the four
squares that meet there are in view, nothing and nobody stands before them (169 rays), each is at
least 6 pixels wide at its narrowest, and the picture moves by at most 3 pixels while it is
exposed. No corner is left out for what the picture then shows.

A corner is located by fitting four squares, dark and bright in turn, to the pixels about it: where
each pixel's ray meets the board is known from the truth, where the corner lies in the picture,
how soft its edges are and how it is lit are free. A corner that shows the squares the other way
round counts as infinitely far off.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synorama.capture.discover import discover, open_found
from synorama.media.video import VideoDecoder
from synorama.simulate import simulate_plan
from synorama.simulate.devices.aria import AriaCamera, write_glasses
from synorama.simulate.devices.aria_streams import Glasses, times_ns
from synorama.simulate.devices.gopro import GoPro, write_gopro
from synorama.simulate.devices.webcam import Webcam, write_webcam
from synorama.simulate.formats.barcode import strip_height
from synorama.simulate.formats.pictures import Shots
from synorama.simulate.lab import GLASSES, Device, Lab, Size
from synorama.simulate.scene.cameras import Camera, project_moving
from synorama.simulate.scene.meshes import pose as placed
from synorama.simulate.scene.render import posture_of
from synorama.simulate.scene.room import KINDS, WORLD, Room
from synorama.simulate.scene.surface import Surface
from synorama.simulate.scene.texture import CHECKER_CELLS
from synorama.simulate.stage import RoomStage
from synorama.timebase import NS_PER_S, ClockMap
from synorama.transform import RigidTransform

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

SECONDS = 20.0  # in which people walk past the boards
GLASSES_HZ = 1.0  # of the cameras of the glasses, so that few pictures need to be drawn
CAMERA_S = {"small": 1.2, "full": 0.4}  # what cameras that stand record
PICTURES = {"small": 6, "full": 4}  # drawn for each camera of the glasses, most corners first
CORNERS = 60  # of one picture, at most
BOARD_M, OWN_BOARD_M, OFF_WALL_M, HIGH_M = 1.6, 0.64, 0.03, 1.4
PLANE_M = 0.008  # of a board in its own frame, along y
LEAST_CELL_PX, MOST_BLUR_PX, EXPOSURE_NS = 6.0, 3.0, 4_000_000
CLEAR_CELLS, FIT_CELLS, FIT_PX = 0.75, 0.6, 9.0
RAYS = 13  # along each side of the four squares, to find what hides them
SHORT_M = 0.0005  # rays end so far before the board, on which something may lie flat
LEAST_SOFT = -1.0  # logarithm of half an edge [px]: an edge softer than a pixel has one middle only
GAMMA = 2.2


# --- the scene -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """A checkerboard: ``T_world_board`` and the width of a square [m]."""

    world_board: Float64
    cell_m: float

    @property
    def corners(self) -> Float64:
        """``(49, 2)`` where squares meet, in squares from the middle."""
        line = np.arange(1, CHECKER_CELLS) - CHECKER_CELLS / 2
        return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)

    def world(self, cells: Float64) -> Float64:
        """Return places ``(..., 3)`` of positions ``(..., 2)`` on the board."""
        flat = cells * self.cell_m
        local = np.stack([flat[..., 0], np.full(flat.shape[:-1], PLANE_M), flat[..., 1]], axis=-1)
        place = local @ self.world_board[:3, :3].T + self.world_board[:3, 3]
        return np.asarray(place, np.float64)

    def met(self, origins: Float64, directions: Float64) -> Float64:
        """Return where rays ``(N, 3)`` meet the board, ``(N, 2)`` in squares from its middle."""
        turn = self.world_board[:3, :3]
        start, way = (origins - self.world_board[:3, 3]) @ turn, directions @ turn
        along = (PLANE_M - start[:, 1]) / way[:, 1]
        return np.asarray((start + along[:, np.newaxis] * way)[:, [0, 2]] / self.cell_m)


def with_boards(room: Room) -> tuple[Room, list[Board]]:
    """Return the room with large boards along its walls, and all boards."""
    own = room["checkerboard-1"]
    boards = [Board(own.session.matrix, OWN_BOARD_M / CHECKER_CELLS)]
    vertices = own.mesh.vertices * (BOARD_M / OWN_BOARD_M, 1.0, BOARD_M / OWN_BOARD_M)
    things = []
    for k, matrix in enumerate(_along_walls(room)):
        name = f"target-{k}"
        there = RigidTransform(WORLD, name, matrix)
        mesh = replace(own.mesh, vertices=vertices)
        things.append(replace(own, name=name, mesh=mesh, scan=there, session=there))
        boards.append(Board(matrix, BOARD_M / CHECKER_CELLS))
    return replace(room, objects=(*room.objects, *things)), boards


def _along_walls(room: Room) -> Iterator[Float64]:
    """Yield ``T_world_board``, y into the room: as many a wall as find room side by side."""
    width, depth, _ = room.size_m
    for yaw, length, away in (
        (0.0, width, depth),
        (np.pi, width, depth),
        (np.pi / 2, depth, width),
        (-np.pi / 2, depth, width),
    ):
        count = max(1, int(length / (BOARD_M + 0.3)))
        for along in (np.arange(count) - (count - 1) / 2) * length / count:
            yield placed(0, 0, 0, yaw) @ placed(float(along), OFF_WALL_M - away / 2, HIGH_M)


@dataclass(frozen=True)
class View:
    """A camera of the session: where it is at session times, and whose glasses carry it."""

    stage: RoomStage
    camera: Camera
    pose: Callable[[Int64], Float64]
    wearer: str = ""

    def pixels(self, board: Board, cells: Float64, t_ns: int) -> tuple[Float64, NDArray[np.bool_]]:
        """Return where positions on a board ``(..., 2)`` are drawn, and which are in view."""
        flat = board.world(cells).reshape(-1, 3)
        pixels, seen = project_moving(self.camera, self.pose, t_ns, flat)
        return pixels.reshape(cells.shape), seen.reshape(cells.shape[:-1])

    def free(self, board: Board, cells: Float64, t_ns: int) -> NDArray[np.bool_]:
        """Return which positions on a board ``(N, 2)`` nothing and nobody hides."""
        eye = self.pose(np.array([t_ns]))[0, :3, 3]
        away = board.world(cells) - eye
        length = np.linalg.norm(away, axis=1, keepdims=True)
        away, eyes = away * (1 - SHORT_M / length), np.broadcast_to(eye, away.shape)
        hidden = self.stage.surface.blocked(eyes, away)
        for body in self._people(t_ns):
            hidden |= body.blocked(eyes, away)
        return ~hidden

    def _people(self, t_ns: int) -> Iterator[Surface]:
        """Yield the people as they are drawn: in small pictures they change ten times a second."""
        studio, step = self.stage.studio, self.stage.studio.figure_step_ns
        at_ns = t_ns // step * step + step // 2 if step else t_ns
        for name, person in self.stage.wearers.items():
            posture = posture_of(person, at_ns)
            yield studio.figures[name].surface(posture, own=name == self.wearer)


# --- which corners count ---------------------------------------------------------------------


def good_corners(view: View, board: Board, t_ns: int) -> list[tuple[float, float]]:
    """Return the corners of a board that can be located, by geometry alone."""
    normal = board.world_board[:3, 1]
    eye = view.pose(np.array([t_ns]))[0, :3, 3]
    if float((eye - board.world_board[:3, 3]) @ normal) < 0.1:
        return []
    line = np.linspace(-CLEAR_CELLS, CLEAR_CELLS, RAYS)
    around = board.corners[:, np.newaxis] + np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    ends = around[:, [0, RAYS - 1, -RAYS, -1]]
    pixels, seen = view.pixels(board, ends, t_ns)
    kept = seen.all(axis=1)
    if not kept.any():
        return []
    kept &= _large(view, board, t_ns) & _still(view, board, t_ns)
    top = strip_height(view.camera.height) + 1
    kept &= pixels[..., 1].min(axis=1) > top
    if kept.any():
        free = view.free(board, around[kept].reshape(-1, 2), t_ns)
        kept[kept] = free.reshape(-1, RAYS**2).all(axis=1)
    return [(float(u), float(v)) for u, v in board.corners[kept]]


def _spread(view: View, board: Board, cells: Float64, t_ns: int) -> Float64:
    """Return ``(N, 2, 2)`` pixels (rows) a square along u and v (columns)."""
    half = 0.25 * np.eye(2)
    ends = [view.pixels(board, cells + s * h, t_ns)[0] for h in half for s in (1, -1)]
    return np.stack([(ends[0] - ends[1]) / 0.5, (ends[2] - ends[3]) / 0.5], axis=-1)


def _large(view: View, board: Board, t_ns: int) -> NDArray[np.bool_]:
    narrowest = np.linalg.svd(_spread(view, board, board.corners, t_ns), compute_uv=False)[:, 1]
    return np.asarray(narrowest >= LEAST_CELL_PX)


def _still(view: View, board: Board, t_ns: int) -> NDArray[np.bool_]:
    half = EXPOSURE_NS // 2
    a, b = (view.pixels(board, board.corners, t)[0] for t in (t_ns - half, t_ns + half))
    return np.asarray(np.linalg.norm(a - b, axis=1) <= MOST_BLUR_PX)


# --- where they are --------------------------------------------------------------------------


def corner_off(
    view: View, board: Board, t_ns: int, corner: tuple[float, float], light: Float64
) -> tuple[float, float]:
    """Return how far a corner lies off in a picture [px], and how bright its first square is."""
    from scipy.optimize import least_squares

    cells = np.array([corner])
    (centre,), _ = view.pixels(board, cells, t_ns)
    spread = _spread(view, board, cells, t_ns)[0]
    inverse = np.linalg.inv(spread)
    pixels = _window(centre, min(FIT_PX, FIT_CELLS * np.linalg.svd(spread)[1][1]), light.shape)
    on_board = _on_board(view, board, t_ns, pixels) - cells
    shown = light[pixels[:, 1], pixels[:, 0]]
    softness = np.linalg.norm(inverse, axis=1)
    flat = np.column_stack([np.ones(len(pixels)), pixels - centre])

    def rest(free: Float64) -> Float64:
        edges = np.tanh((on_board - inverse @ free[:2]) / (softness * np.exp(free[2])))
        columns = np.column_stack([flat, edges.prod(axis=1)])
        best = np.linalg.lstsq(columns, shown, rcond=None)[0]
        rest.contrast = float(best[3])  # type: ignore[attr-defined]
        return np.asarray(columns @ best - shown)

    found = least_squares(rest, (0.0, 0.0, -0.5), bounds=([-4, -4, LEAST_SOFT], [4, 4, 2])).x
    rest(found)
    return float(np.hypot(*found[:2])), rest.contrast  # type: ignore[attr-defined]


def _window(centre: Float64, radius: float, shape: tuple[int, ...]) -> Int64:
    """Return the whole pixels ``(N, 2)`` about a place."""
    low, high = np.ceil(centre - radius).astype(int), np.floor(centre + radius).astype(int)
    low, high = np.maximum(low, 0), np.minimum(high, (shape[1] - 1, shape[0] - 1))
    grid = np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1))
    return np.stack(grid, axis=-1).reshape(-1, 2)


def _on_board(view: View, board: Board, t_ns: int, pixels: Int64) -> Float64:
    delays = view.camera.row_delay_s(pixels[:, 1])
    poses = view.pose(t_ns + np.rint(delays * NS_PER_S).astype(np.int64))
    rays, _ = view.camera.lens.unproject(pixels)
    return board.met(poses[:, :3, 3], np.einsum("nij,nj->ni", poses[:, :3, :3], rays))


# --- a session that is written and read ------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A plan, its stage with boards, and the folder to write to."""

    lab: Lab
    stage: RoomStage
    boards: Sequence[Board]
    folder: Path

    def views(self, device: Device) -> dict[str, View]:
        """Return the views of a device by the product's names of its tracks."""
        cameras = self.stage.cameras(device, device.name)
        if not isinstance(device, Glasses):
            still = self.stage.stands[device.name]
            fixed = lambda t_ns: np.broadcast_to(still, (len(t_ns), 4, 4))  # noqa: E731
            return {"video": View(self.stage, cameras["video"], fixed)}
        mount = self.stage.wearers[device.name].device
        return {
            c.name: View(
                self.stage,
                cameras[c.labels[0]],
                mount.attached(cameras[c.labels[0]].device_camera).pose,
                device.name,
            )
            for c in self.lab.asked.pictures
            if len(c.labels) == 1
        }

    def corners(self, view: View, t_ns: int) -> list[tuple[Board, tuple[float, float]]]:
        """Return all corners that count at a session time."""
        return [(b, c) for b in self.boards for c in good_corners(view, b, t_ns)]


class Silence:
    """What nobody hears."""

    def heard(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> NDArray[np.float32]:
        return np.zeros(count, np.float32)


def scene(seed: int, size: Size, folder: Path) -> Scene:
    """Return a session that can be written; its kind of room follows from the seed."""
    lab = simulate_plan(seed=seed, seconds=SECONDS, size=size, room=KINDS[seed % len(KINDS)])
    stage = RoomStage(lab, seed)
    stage.room, boards = with_boards(stage.room)
    return Scene(lab, stage, boards, folder)


def write(scene: Scene, device: Device) -> None:
    """Write what a device records of the boards."""
    place = scene.folder / device.name
    place.mkdir()
    shots = scene.stage.shots(device, device.name)
    if isinstance(device, Glasses):
        _write_glasses(scene, device, place, shots)
    elif isinstance(device, GoPro):
        short = replace(device, seconds=CAMERA_S[scene.lab.asked.size], chapters=1)
        write_gopro(place, short, Silence(), shots["video"])
    else:
        short_cam: Webcam = replace(device, seconds=CAMERA_S[scene.lab.asked.size])
        write_webcam(place / "recording.webm", short_cam, Silence(), shots["video"])


def _write_glasses(scene: Scene, device: Glasses, place: Path, shots: Mapping[str, Shots]) -> None:
    cameras = tuple(
        replace(c, rate_hz=GLASSES_HZ) for c in scene.lab.asked.pictures if len(c.labels) == 1
    )
    some = {c.name: _some(scene, device, c, shots[c.name]) for c in cameras}
    write_glasses(place / "recording.vrs", device, Silence(), cameras, shots=some)


def _some(scene: Scene, device: Glasses, camera: AriaCamera, shots: Shots) -> Shots:
    """Let a camera see only at the times at which most corners count; it is dark otherwise."""
    times = times_ns(device, camera.name, camera.rate_hz, 3_000 * camera.colour)
    view = scene.views(device)[camera.name]
    counts = [len(scene.corners(view, int(device.clock.apply(t)))) for t in times.tolist()]
    best = np.argsort(counts, kind="stable")[-PICTURES[scene.lab.asked.size] :]
    chosen = {int(times[k]) for k in best if counts[k]}
    shape = (camera.height, camera.width, 3)[: 3 if camera.colour else 2]
    return lambda t_ns: shots(t_ns) if t_ns in chosen else np.zeros(shape, np.uint8)


def measured(scene: Scene) -> dict[str, list[float]]:
    """Read all files back and return by device and camera how far each corner is off [px]."""
    offs: dict[str, list[float]] = {}
    for found in discover(scene.folder).found:
        recording = open_found(found)
        name = Path(recording.files[0].path).parent.name
        for track, view in scene.views(scene.lab.devices[name]).items():
            video = next(v for v in recording.videos if v.name == track)
            with VideoDecoder([f.path for f in recording.files], video) as decoder:
                offs[f"{name} {track}"] = _offs(scene, name, view, video.times_ns, decoder)
    return offs


def _offs(scene: Scene, name: str, view: View, times: Int64, decoder: VideoDecoder) -> list[float]:
    offs: list[float] = []
    frames = range(len(times)) if name in GLASSES else (0, len(times) // 2, len(times) - 1)
    for k in frames:
        picture = decoder.frame(k)
        below = picture[strip_height(len(picture)) :]
        if not below.max() > 10:  # a picture that was not drawn
            continue
        t_ns = int(scene.lab.devices[name].clock.apply(int(times[k])))
        grey = picture if picture.ndim == 2 else picture @ (0.299, 0.587, 0.114)
        light = (np.asarray(grey, np.float64) / 255) ** GAMMA
        offs += _picture_offs(scene, view, t_ns, light)
    return offs


def _picture_offs(scene: Scene, view: View, t_ns: int, light: Float64) -> list[float]:
    good = scene.corners(view, t_ns)
    offs = []
    for board, corner in good[:: -(-len(good) // CORNERS) or 1]:
        off, first = corner_off(view, board, t_ns, corner, light)
        bright = first * (-1) ** round(sum(corner))
        offs.append(off if bright < 0 else float("inf"))
    return offs


def run(seed: int, size: Size, folder: Path) -> dict[str, list[float]]:
    """Write one session and measure all its pictures."""
    made = scene(seed, size, folder)
    for device in made.lab.devices.values():
        write(made, device)
    return measured(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", choices=("small", "full"), default="small")
    asked: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        offs = run(asked.seed, asked.size, Path(folder))
    print("| camera | corners | median [px] | worst [px] |\n|---|---|---|---|")
    for name, values in offs.items():
        told = f"{np.median(values):.3f} | {max(values):.3f}" if values else "- | -"
        print(f"| {name} | {len(values)} | {told} |")


if __name__ == "__main__":
    main()
