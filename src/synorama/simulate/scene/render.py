"""Pictures of a simulated session: what a camera saw of room and people at a session time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.cameras import Camera
from synorama.simulate.scene.motion import Wearer
from synorama.simulate.scene.people import Figure, Posture, make_figure
from synorama.simulate.scene.room import Moment, Room
from synorama.simulate.scene.surface import Hits, Surface, room_surface
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["Film", "Studio", "posture_of"]

GREY = np.array([0.299, 0.587, 0.114], np.float32)
LEVELS = 4096  # steps of light that are told apart before the tone curve
NOISE_BANK = 1 << 20
FIGURE_REACH_M = 1.05  # of a figure from its middle
ARMS_REACH_M = 0.5
STRIDE_HZ = 0.75


@dataclass(frozen=True, slots=True)
class Film:
    """How a camera turns light into numbers.

    Parameters
    ----------
    gain
        Exposure: light times gain 1 is white.
    exposure_s, subframes
        Length of the exposure, and how many moments of it are drawn, each with rays elsewhere in
        the pixels; 1 leaves out motion blur and smooth edges.
    vignetting
        Share of light that is lost in the corners.
    read_noise, shot_noise
        One sigma of the noise in the dark, and at white from the light itself, as shares of white.
    gamma
        Of the tone curve.
    """

    gain: float = 0.7
    exposure_s: float = 0.004
    subframes: int = 1
    vignetting: float = 0.25
    read_noise: float = 0.002
    shot_noise: float = 0.01
    gamma: float = 2.2


class Studio:
    """A room with people in it, from which pictures are taken.

    Parameters
    ----------
    room
        The room.
    people
        Who is in it; nobody for a scan.
    when
        Where the room's things stand.
    texture_px
        Side of the textures: 256 for small pictures, 512 for full-size ones.
    figure_step_ns
        How long a figure keeps its posture, for cheap pictures; 0 draws each as it is.
    """

    def __init__(
        self,
        room: Room,
        people: Sequence[Wearer] = (),
        *,
        when: Moment = "session",
        texture_px: int = 256,
        figure_step_ns: int = 0,
    ) -> None:
        self.surface: Surface = room_surface(room, when, texture_px=texture_px)
        self.people = {person.name: person for person in people}
        self.figures: dict[str, Figure] = {
            person.name: make_figure(room.seed * 10 + k, self.surface.atlas, room.lamps)
            for k, person in enumerate(people)
        }
        self._step_ns = figure_step_ns
        self._postures: dict[str, tuple[int, Posture]] = {}
        self._surfaces: dict[tuple[str, bool], Surface] = {}
        self._noise = np.random.default_rng([room.seed, 6]).standard_normal(NOISE_BANK, np.float32)
        self._lights: dict[Camera, tuple[object, Float32]] = {}
        self._still: dict[tuple[Camera, bytes, int], tuple[Float32, Float32, Hits]] = {}
        self._shifted: dict[tuple[Camera, tuple[float, float]], Float32] = {}

    # --- pictures ----------------------------------------------------------------------------

    def worn(
        self, camera: Camera, wearer: str, t_ns: int, film: Film, rng: np.random.Generator
    ) -> Picture:
        """Return what a camera of somebody's glasses saw.

        Parameters
        ----------
        camera
            Its pose on the device is that on the wearer's glasses.
        t_ns
            Session time of the middle of the exposure of the middle row.

        Returns
        -------
        ``(H, W, 3)`` uint8, or ``(H, W)`` for a camera without colours.
        """
        mount = self.people[wearer].device.attached(camera.device_camera)
        seen = np.flatnonzero(camera.rays.visible)
        light = np.zeros((camera.height * camera.width, 3), np.float32)
        delays = camera.row_delay_s(np.arange(camera.height))[
            : camera.height if camera.readout_s else 1
        ]
        for moment, shift in zip(_moments(film), _shifts(film), strict=True):
            times = t_ns + np.rint((delays + moment) * NS_PER_S).astype(np.int64)
            rays = self._directions(camera, shift)
            origins, directions = (r[seen] for r in _placed(rays, mount.pose(times)))
            hits = self.surface.cast(origins, directions, camera.rays.pixel_rad)
            middle_ns = t_ns + round(moment * NS_PER_S)
            light[seen] += self._with_people(hits, origins, directions, camera, middle_ns, wearer)
        return self._developed(light / np.float32(film.subframes), camera, film, rng)

    def fixed(
        self,
        camera: Camera,
        world_camera: Float64,
        t_ns: int,
        film: Film,
        rng: np.random.Generator,
    ) -> Picture:
        """Return what a camera that stands still saw; its room is drawn once and kept.

        Parameters
        ----------
        world_camera
            ``(4, 4)`` pose ``T_world_camera``.
        """
        step = (t_ns // self._step_ns, world_camera.tobytes(), film) if self._step_ns else None
        known = self._lights.get(camera)
        if known is None or step is None or known[0] != step:
            known = self._lights[camera] = step, self._light(camera, world_camera, t_ns, film)
        return self._developed(known[1].copy(), camera, film, rng)

    def _light(self, camera: Camera, world_camera: Float64, t_ns: int, film: Film) -> Float32:
        """Return what falls into a still camera: the same as long as people keep their posture."""
        origins, directions, hits = self._background(camera, world_camera, film)
        light = np.zeros_like(hits.colour)
        for moment in _moments(film):
            at_ns = t_ns + round(moment * NS_PER_S)
            light += self._with_people(hits, origins, directions, camera, at_ns, "")
        return np.asarray(light / np.float32(film.subframes), np.float32)

    def _background(
        self, camera: Camera, world_camera: Float64, film: Film
    ) -> tuple[Float32, Float32, Hits]:
        """Return the rays of a still camera and the room that they meet."""
        key = (camera, world_camera.tobytes(), film.subframes)
        if key not in self._still:
            colour = np.zeros((camera.height * camera.width, 3), np.float32)
            for shift in _shifts(film):
                rays = self._directions(camera, shift)
                placed = _placed(rays, world_camera[np.newaxis])
                colour += self.surface.cast(*placed, camera.rays.pixel_rad).colour
            origins, directions = _placed(camera.rays.directions, world_camera[np.newaxis])
            hits = self.surface.cast(origins, directions, camera.rays.pixel_rad)
            whole = replace(hits, colour=colour / np.float32(film.subframes))
            self._still[key] = origins, directions, whole
        return self._still[key]

    def _directions(self, camera: Camera, shift_px: tuple[float, float]) -> Float32:
        key = camera, shift_px
        if key not in self._shifted:
            shifted = camera.rays if shift_px == (0.0, 0.0) else camera.rays_at(shift_px)
            self._shifted[key] = shifted.directions
        return self._shifted[key]

    # --- people ------------------------------------------------------------------------------

    def _with_people(
        self,
        hits: Hits,
        origins: Float32,
        directions: Float32,
        camera: Camera,
        t_ns: int,
        wearer: str,
    ) -> Float32:
        """Return the colours of room and people together ``(N, 3)``."""
        colour = hits.colour.copy()
        for name in self.people:
            own = name == wearer
            near = _near(self._posture(name, t_ns), origins, directions, hits.distance_m, own=own)
            if len(near):
                surface = self._figure(name, own=own)
                seen = surface.cast(origins[near], directions[near], camera.rays.pixel_rad)
                front = seen.distance_m < hits.distance_m[near]
                colour[near[front]] = seen.colour[front]
        return np.asarray(colour, np.float32)

    def _posture(self, name: str, t_ns: int) -> Posture:
        """Return somebody's posture, the last one while it is kept."""
        step = self._step_ns or 1
        at_ns = t_ns // step * step + step // 2
        known = self._postures.get(name)
        if known is None or known[0] != at_ns:
            known = self._postures[name] = at_ns, posture_of(self.people[name], at_ns)
            self._surfaces.pop((name, False), None)
            self._surfaces.pop((name, True), None)
        return known[1]

    def _figure(self, name: str, *, own: bool) -> Surface:
        """Return somebody in the posture that was asked for last."""
        key = name, own
        if key not in self._surfaces:
            self._surfaces[key] = self.figures[name].surface(self._postures[name][1], own=own)
        return self._surfaces[key]

    # --- the sensor --------------------------------------------------------------------------

    def _developed(
        self, light: Float32, camera: Camera, film: Film, rng: np.random.Generator
    ) -> Picture:
        if not camera.colour:
            light = light @ GREY[:, np.newaxis]
        light = light.reshape(camera.height, camera.width, -1) * _window(camera, film)
        sigma = np.sqrt(film.read_noise**2 + film.shot_noise**2 * light)
        begin = int(rng.integers(NOISE_BANK))
        light += sigma * _cyclic(self._noise, begin, light.size).reshape(light.shape)
        steps = np.clip(light * LEVELS, 0, LEVELS - 1).astype(np.int32)
        curve = (np.arange(LEVELS) / (LEVELS - 1)) ** (1 / film.gamma)
        picture: Picture = np.take(np.rint(255 * curve).astype(np.uint8), steps)
        return picture if camera.colour else picture[..., 0]


def _moments(film: Film) -> list[float]:
    """Return the moments of an exposure that are drawn, against its middle [s]."""
    share = (np.arange(film.subframes) + 0.5) / film.subframes - 0.5
    return [float(s) * film.exposure_s for s in share]


def _shifts(film: Film) -> list[tuple[float, float]]:
    """Return where within the pixels rays are cast, one a moment: many soften stepped edges."""
    if film.subframes == 1:
        return [(0.0, 0.0)]
    count = np.arange(film.subframes)[:, np.newaxis]
    spread = (0.5 + count * (0.7548776662, 0.5698402910)) % 1.0  # evenly over the square, any count
    spread -= spread.mean(axis=0)
    return [(float(x), float(y)) for x, y in spread]


def _placed(rays: Float32, poses: Float64) -> tuple[Float32, Float32]:
    """Return origins and directions ``(H * W, 3)`` for one pose, or one for each row."""
    turn = poses[:, :3, :3].astype(np.float32)
    directions = rays @ turn.transpose(0, 2, 1)
    origins = np.broadcast_to(poses[:, np.newaxis, :3, 3].astype(np.float32), directions.shape)
    return origins.reshape(-1, 3), np.ascontiguousarray(directions).reshape(-1, 3)


def _window(camera: Camera, film: Film) -> Float32:
    """Return the share of light that reaches each pixel times the gain ``(H, W, 1)``."""
    rays = camera.rays
    far = 1.0 - rays.directions[..., 2]
    loss = 1.0 - film.vignetting * far / max(float(far[rays.visible].max()), 1e-6)
    share = np.where(rays.visible, film.gain * loss, 0.0)[..., np.newaxis]
    return np.asarray(share, np.float32)


def _cyclic(bank: Float32, begin: int, count: int) -> Float32:
    """Return numbers from a bank, from the beginning again where it ends."""
    if begin + count <= len(bank):
        return bank[begin : begin + count]
    return np.resize(np.concatenate([bank[begin:], bank[:begin]]), count)


def posture_of(person: Wearer, t_ns: int) -> Posture:
    """Return how somebody stands or sits at a session time [ns]."""
    body = person.body(t_ns)
    speed = float(np.linalg.norm(person.body(t_ns, 1)[:2]))
    phase = np.sin(2 * np.pi * STRIDE_HZ * t_ns / NS_PER_S)
    return Posture(
        person.head.pose(t_ns)[0], body, person.hands_m(t_ns)[0], min(speed, 1.0) * float(phase)
    )


def _near(
    posture: Posture, origins: Float32, directions: Float32, distance: Float32, *, own: bool
) -> NDArray[np.int64]:
    """Return which rays may meet a person: those through balls about figure or arms."""
    x, y, _, eyes, *_ = posture.body
    if own:
        balls = [(hand[0], ARMS_REACH_M) for hand in posture.hands]
    else:
        balls = [(np.array([x, y, eyes / 2 + 0.1]), FIGURE_REACH_M)]
    middle = origins[len(origins) // 2]  # during a read-out a camera moves by millimetres
    through = np.zeros(len(directions), bool)
    for centre, radius in balls:
        away = centre.astype(np.float32) - middle
        along = directions @ away
        least = np.sqrt(max(float(away @ away) - radius**2, 0.0))
        through |= (along > least) & (along - radius < distance)
    return np.flatnonzero(through)
