"""Pictures of a simulated session: what a camera saw of room and people at a session time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.cameras import Camera
from synorama.simulate.scene.motion import Wearer
from synorama.simulate.scene.people import Figure, Posture, make_figure
from synorama.simulate.scene.room import Moment, Room
from synorama.simulate.scene.surface import Hits, Surface, room_surface
from synorama.simulate.scene.trajectory import Motion
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
BANDS = 8  # of a picture that is read out row by row: in each, people keep their posture
SUBFRAMES = (1, 2, 4)  # of moving pictures; more would hold the rays of too many shifts


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
    blur_px
        More moments are drawn, to four, where a worn camera's picture moves by more than this from
        one to the next.
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
    blur_px: float = np.inf
    vignetting: float = 0.25
    read_noise: float = 0.002
    shot_noise: float = 0.01
    gamma: float = 2.2


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Rays of a picture: origins and directions ``(N, 3)``, angle between neighbours."""

    origins: Float32
    directions: Float32
    pixel_rad: float

    def part(self, part: slice) -> _View:
        """Return some of them."""
        return replace(self, origins=self.origins[part], directions=self.directions[part])


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
        self.figure_step_ns = figure_step_ns
        self._postures: dict[str, tuple[int, Posture]] = {}
        self._surfaces: dict[tuple[str, bool], Surface] = {}
        self._noise = np.random.default_rng([room.seed, 6]).standard_normal(NOISE_BANK, np.float32)
        self._lights: dict[Camera, tuple[object, Float32]] = {}
        self._still: dict[tuple[Camera, bytes, int], tuple[_View, Hits]] = {}
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
        film = _for_motion(film, camera, mount(t_ns))
        seen = np.flatnonzero(camera.rays.visible)
        light = np.zeros((camera.height * camera.width, 3), np.float32)
        delays = camera.row_delay_s(np.arange(camera.height))[
            : camera.height if camera.readout_s else 1
        ]
        for moment, shift in zip(_moments(film), _shifts(film), strict=True):
            times = t_ns + np.rint((delays + moment) * NS_PER_S).astype(np.int64)
            origins, ways = _placed(self._directions(camera, shift), mount.pose(times))
            view = _View(origins[seen], ways[seen], camera.rays.pixel_rad)
            hits = self.surface.cast(view.origins, view.directions, view.pixel_rad)
            bands = self._bands(camera, t_ns + round(moment * NS_PER_S), seen)
            light[seen] += self._with_people(hits, view, bands, wearer)
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
        step = (
            (t_ns // self.figure_step_ns, world_camera.tobytes(), film)
            if self.figure_step_ns
            else None
        )
        known = self._lights.get(camera)
        if known is None or step is None or known[0] != step:
            known = self._lights[camera] = step, self._light(camera, world_camera, t_ns, film)
        return self._developed(known[1].copy(), camera, film, rng)

    def _light(self, camera: Camera, world_camera: Float64, t_ns: int, film: Film) -> Float32:
        """Return what falls into a still camera: the same as long as people keep their posture."""
        view, hits = self._background(camera, world_camera, film)
        light = np.zeros_like(hits.colour)
        for moment in _moments(film):
            bands = self._bands(camera, t_ns + round(moment * NS_PER_S))
            light += self._with_people(hits, view, bands, "")
        return np.asarray(light / np.float32(film.subframes), np.float32)

    def _background(self, camera: Camera, world_camera: Float64, film: Film) -> tuple[_View, Hits]:
        """Return the rays of a still camera and the room that they meet."""
        key = (camera, world_camera.tobytes(), film.subframes)
        if key not in self._still:
            colour = np.zeros((camera.height * camera.width, 3), np.float32)
            for shift in _shifts(film):
                rays = self._directions(camera, shift)
                placed = _placed(rays, world_camera[np.newaxis])
                colour += self.surface.cast(*placed, camera.rays.pixel_rad).colour
            view = _View(
                *_placed(camera.rays.directions, world_camera[np.newaxis]), camera.rays.pixel_rad
            )
            hits = self.surface.cast(view.origins, view.directions, view.pixel_rad)
            whole = replace(hits, colour=colour / np.float32(film.subframes))
            self._still[key] = view, whole
        return self._still[key]

    def _directions(self, camera: Camera, shift_px: tuple[float, float]) -> Float32:
        key = camera, shift_px
        if key not in self._shifted:
            shifted = camera.rays if shift_px == (0.0, 0.0) else camera.rays_at(shift_px)
            self._shifted[key] = shifted.directions
        return self._shifted[key]

    # --- people ------------------------------------------------------------------------------

    def _bands(
        self, camera: Camera, t_ns: int, seen: NDArray[np.int64] | None = None
    ) -> list[tuple[slice, int]]:
        """Return parts of a picture and when each is exposed [ns], by a rolling shutter.

        Parameters
        ----------
        seen
            Which pixels there are, in their order; all by default.
        """
        if not camera.readout_s or self.figure_step_ns:
            return [(slice(None), t_ns)]
        rows = np.linspace(0, camera.height, BANDS + 1).round().astype(int)
        delays = camera.row_delay_s((rows[:-1] + rows[1:] - 1) / 2)
        ends = rows * camera.width
        ends = ends if seen is None else np.searchsorted(seen, ends)
        return [
            (slice(begin, end), t_ns + round(delay * NS_PER_S))
            for (begin, end), delay in zip(pairwise(ends.tolist()), delays.tolist(), strict=True)
        ]

    def _with_people(
        self, hits: Hits, view: _View, bands: Sequence[tuple[slice, int]], wearer: str
    ) -> Float32:
        """Return the colours of room and people together ``(N, 3)``."""
        colour = hits.colour.copy()
        for part, t_ns in bands:
            for name in self.people:
                here, distance = view.part(part), hits.distance_m[part]
                self._draw(name, t_ns, here, distance, colour[part], own=name == wearer)
        return np.asarray(colour, np.float32)

    def _draw(
        self,
        name: str,
        t_ns: int,
        view: _View,
        distance_m: Float32,
        colour: Float32,
        *,
        own: bool,
    ) -> None:
        """Draw somebody over the colours of what stands behind."""
        posture = self._posture(name, t_ns)
        near = _near(posture, view.origins, view.directions, distance_m, own=own)
        if len(near):
            seen = self._figure(name, own=own).cast(
                view.origins[near], view.directions[near], view.pixel_rad
            )
            front = seen.distance_m < distance_m[near]
            colour[near[front]] = seen.colour[front]

    def _posture(self, name: str, t_ns: int) -> Posture:
        """Return somebody's posture, the last one while it is kept."""
        step = self.figure_step_ns or 1
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


def _for_motion(film: Film, camera: Camera, motion: Motion) -> Film:
    """Return the film with as many moments as blur wants while the camera turns."""
    turn_rad = film.exposure_s * float(np.linalg.norm(motion.angular_velocity_rad_s[0]))
    wanted = turn_rad / camera.rays.pixel_rad / film.blur_px
    if wanted <= film.subframes:
        return film
    return replace(film, subframes=next((n for n in SUBFRAMES if n >= wanted), SUBFRAMES[-1]))


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
