"""A laser scan of a room as it stood on another day: from stations on tripods, or by hand.

Rays are cast from where the scanner stood, so what it could not see is missing. The cloud lies in
a frame of its own. A scanner carried by hand drifts: its cloud is bent by a slow warp, from which
all that a rigid motion could explain is taken away, so that ``T_world_scan`` is the best answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.scene.meshes import pose
from synorama.simulate.scene.room import WORLD, Floor, Room
from synorama.simulate.scene.surface import Hits, Surface
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int32 = NDArray[np.int32]
    Picture = NDArray[np.uint8]

__all__ = ["SCAN", "Scan", "ScanOptions", "ScanPicture", "Station", "Warp", "make_scan"]

SCAN = "scan"
CLEAR_M = 0.55  # least distance of a tripod to furniture, where there is room
TRIPOD_M, HAND_M = (1.45, 1.7), (0.9, 1.8)  # heights of the scanner
LOWEST_RAD = np.deg2rad(-60.0)  # a scanner does not see its tripod
RANGE_M = (0.3, 40.0)
LOST_SHARE = 0.004  # pulses that do not come back
HAND_VIEWS = 60  # places from which a hand-held scanner looked
HAND_CONE = 0.45  # cosine of half its field of view
AWAY_M = 20.0  # most between the origins of room and scan, along each axis
UTM_M = (5.0e5, 5.4e6, 300.0)
GAMMA = 2.2
GAIN = 0.8
CAST_AT_ONCE = 400_000

WAVES = 4
WAVELENGTH_M = (5.0, 12.0)


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How the room was scanned.

    Parameters
    ----------
    kind
        ``stations``: from tripods, with pictures; ``handheld``: one moving cloud.
    points
        About how many, in all.
    stations
        Number of tripods.
    noise_m
        One sigma of the range.
    warp_m
        Least and greatest size (root mean square) of the warp; only hand-held scans have one.
    tilt_deg
        Most by which the scan's z is off the vertical.
    coverage
        Share of the points that is kept: the rest, on one side of the room, was not scanned.
    utm
        Whether coordinates are those of a map, millions of metres.
    panorama_px
        Width of the panoramas; pinhole pictures are half as wide. 0 for no pictures.
    """

    kind: Literal["stations", "handheld"] = "stations"
    points: int = 1_000_000
    stations: int = 3
    noise_m: float = 0.002
    warp_m: tuple[float, float] = (0.010, 0.020)
    tilt_deg: float = 0.8
    coverage: float = 1.0
    utm: bool = False
    panorama_px: int = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """A slow displacement of places in the room.

    Parameters
    ----------
    wave_rad_m, phase_rad, amplitude_m
        ``(K, 3)``, ``(K,)`` and ``(K, 3)`` of its waves.
    centre_m, shift_m, turn_rad
        The rigid motion that is taken away: turn about a centre, then shift.
    """

    wave_rad_m: Float64
    phase_rad: Float64
    amplitude_m: Float64
    centre_m: Float64 = field(default_factory=lambda: np.zeros(3))
    shift_m: Float64 = field(default_factory=lambda: np.zeros(3))
    turn_rad: Float64 = field(default_factory=lambda: np.zeros(3))

    def __call__(self, points_m: Float64) -> Float64:
        """Return displacements ``(N, 3)`` [m] of places ``(N, 3)`` in ``world``."""
        waves = np.sin(points_m @ self.wave_rad_m.T + self.phase_rad) @ self.amplitude_m
        rigid = self.shift_m + np.cross(self.turn_rad, points_m - self.centre_m)
        return np.asarray(waves - rigid, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Station:
    """What was scanned from one place, in the order of rows and columns for a tripod.

    Parameters
    ----------
    name
        Its name, also that of its frame.
    scan_station
        ``T_scan_NAME``.
    points_m
        ``(N, 3)`` float32 in the station's frame, 0 where nothing came back.
    colours, intensity
        ``(N, 3)`` uint8 and ``(N,)`` float32, 0 to 1.
    valid
        ``(N,)`` whether something came back.
    row, column
        ``(N,)`` int32 in the scanner's grid; None for a cloud without one.
    """

    name: str
    scan_station: RigidTransform
    points_m: Float32
    colours: Picture
    intensity: Float32
    valid: Bool
    row: Int32 | None = None
    column: Int32 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScanPicture:
    """A picture that the scanner took.

    Parameters
    ----------
    name
        Its name, also that of its camera's frame.
    kind
        ``spherical``: x looks into the middle of the picture, z is up. ``pinhole``: the camera
        looks along -z, y is up, x to the right. Both as E57 has it.
    scan_camera
        ``T_scan_NAME``.
    pixels
        ``(H, W, 3)`` uint8, red first.
    station
        Name of the station to which it belongs.
    focal_px
        Focal length of a pinhole; its principal point is the picture's middle.
    """

    name: str
    kind: Literal["spherical", "pinhole"]
    scan_camera: RigidTransform
    pixels: Picture
    station: str
    focal_px: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A scan and what is true of it.

    Parameters
    ----------
    world_scan
        ``T_world_scan``, true.
    stations, pictures
        What it is made of.
    warp
        Drift of a hand-held scanner: a place ``p`` in ``world`` was seen at ``p + warp(p)``.
    """

    world_scan: RigidTransform
    stations: tuple[Station, ...]
    pictures: tuple[ScanPicture, ...]
    warp: Warp | None = None

    @property
    def points_m(self) -> Float64:
        """``(N, 3)`` all points that came back, in frame ``scan``."""
        return np.concatenate(
            [s.scan_station.apply(s.points_m[s.valid], frame=s.name) for s in self.stations]
        )

    @property
    def colours(self) -> Picture:
        """``(N, 3)`` their colours."""
        return np.concatenate([s.colours[s.valid] for s in self.stations])

    @property
    def intensity(self) -> Float32:
        """``(N,)`` their intensities."""
        return np.concatenate([s.intensity[s.valid] for s in self.stations])

    @property
    def station_numbers(self) -> NDArray[np.uint16]:
        """``(N,)`` from which station each was seen, counted from 1."""
        counts = [int(s.valid.sum()) for s in self.stations]
        return np.repeat(np.arange(1, len(counts) + 1, dtype=np.uint16), counts)

    def as_json(self) -> dict[str, Any]:
        """Return what is true of it as JSON-able values."""
        return {
            "T_world_scan": self.world_scan.matrix.tolist(),
            "stations": {s.name: s.scan_station.matrix.tolist() for s in self.stations},
            "pictures": {p.name: p.scan_camera.matrix.tolist() for p in self.pictures},
            "points": int(sum(s.valid.sum() for s in self.stations)),
        }


def make_scan(room: Room, surface: Surface, seed: int, options: ScanOptions | None = None) -> Scan:
    """Return a scan of a room.

    Parameters
    ----------
    room
        The room; what stood where at the scan decides where the scanner can stand.
    surface
        ``room_surface(room, "scan")``.
    seed
        Decides everything that is random.
    options
        How it was scanned.
    """
    asked = options or ScanOptions()
    rng = randomness(seed, "scan")
    scan_world = _scan_frame(rng, asked).inverse()
    scanner = _Scanner(surface, scan_world, asked, rng)
    floor = room.floor(when="scan")
    if asked.kind == "handheld":
        places = _places(floor, HAND_VIEWS, HAND_M, rng)
        stations, warp = scanner.by_hand(places)
    else:
        places = _places(floor, asked.stations, TRIPOD_M, rng)
        stations, warp = scanner.from_tripods(places), None
    viewed = places[: asked.stations].copy()
    if warp is not None:
        viewed[:, :3, 3] += warp(viewed[:, :3, 3])
    pictures = scanner.pictures(viewed) if asked.panorama_px else ()
    return Scan(scan_world.inverse(), _covered(stations, asked, rng), pictures, warp)


# --- frames and places -----------------------------------------------------------------------


def _scan_frame(rng: np.random.Generator, asked: ScanOptions) -> RigidTransform:
    """Return ``T_world_scan``: turned about the vertical, a little tilted, somewhere else."""
    from scipy.spatial.transform import Rotation

    shift = rng.uniform(-AWAY_M, AWAY_M, 3) * (1.0, 1.0, 0.1)
    shift = shift + UTM_M if asked.utm else shift
    lean = rng.uniform(0, np.deg2rad(asked.tilt_deg))
    about = rng.uniform(0, 2 * np.pi)
    tilt = Rotation.from_rotvec(lean * np.array([np.cos(about), np.sin(about), 0.0]))
    yaw = Rotation.from_rotvec([0, 0, rng.uniform(-np.pi, np.pi)])
    matrix = np.eye(4)
    matrix[:3, :3] = (tilt * yaw).as_matrix()
    matrix[:3, 3] = shift
    return RigidTransform(SCAN, WORLD, matrix).inverse()


def _places(
    floor: Floor, count: int, height_m: tuple[float, float], rng: np.random.Generator
) -> Float64:
    """Return poses ``T_world_scanner`` ``(count, 4, 4)``, far from each other."""
    from scipy.ndimage import distance_transform_edt

    clear = distance_transform_edt(np.pad(floor.free, 1))[1:-1, 1:-1] * floor.cell_m
    cells = np.argwhere(clear >= min(CLEAR_M, 0.9 * float(clear.max())))
    spots = floor.origin_m + floor.cell_m * cells
    chosen = [spots[rng.integers(len(spots))]]
    for _ in range(count - 1):
        gap = np.min([np.linalg.norm(spots - c, axis=1) for c in chosen], axis=0)
        chosen.append(spots[int(np.argmax(gap * rng.uniform(0.85, 1.0, len(gap))))])
    heights, yaws = rng.uniform(*height_m, count), rng.uniform(-np.pi, np.pi, count)
    return np.array(
        [pose(float(x), float(y), z, w) for (x, y), z, w in zip(chosen, heights, yaws, strict=True)]
    )


def _covered(
    stations: tuple[Station, ...], asked: ScanOptions, rng: np.random.Generator
) -> tuple[Station, ...]:
    """Return the stations without what lies on the side of the room that was left out."""
    if asked.coverage >= 1.0:
        return stations
    about = rng.uniform(0, 2 * np.pi)
    way = np.array([np.cos(about), np.sin(about), 0.0])
    along = [s.scan_station.apply(s.points_m, frame=s.name) @ way for s in stations]
    seen = np.concatenate([a[s.valid] for a, s in zip(along, stations, strict=True)])
    limit = np.quantile(seen, asked.coverage)
    return tuple(
        replace(s, valid=kept, points_m=np.where(kept[:, np.newaxis], s.points_m, np.float32(0)))
        for a, s in zip(along, stations, strict=True)
        for kept in [s.valid & (a <= limit)]
    )


# --- scanning --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Scanner:
    surface: Surface
    scan_world: RigidTransform
    asked: ScanOptions
    rng: np.random.Generator

    def from_tripods(self, places: Float64) -> tuple[Station, ...]:
        """Return one station a place, each scanned along a grid of angles."""
        each = self.asked.points / len(places)
        step = np.sqrt((np.pi / 2 - LOWEST_RAD) * 2 * np.pi / each)
        azimuth = np.arange(-np.pi, np.pi, step)
        elevation = np.arange(np.pi / 2, LOWEST_RAD, -step)
        return tuple(
            self._station(f"station-{k + 1}", place, azimuth, elevation, step)
            for k, place in enumerate(places)
        )

    def _station(
        self, name: str, place: Float64, azimuth: Float64, elevation: Float64, step: float
    ) -> Station:
        column, row = (
            g.ravel().astype(np.int32)
            for g in np.meshgrid(np.arange(len(azimuth)), np.arange(len(elevation)), indexing="ij")
        )
        local = _directions(azimuth[column], elevation[row])
        hits = self._cast(place, local, step)
        ranges = hits.distance_m + self.asked.noise_m * self.rng.standard_normal(len(local))
        valid = self._came_back(hits.distance_m)
        points = np.where(valid, ranges, 0.0)[:, np.newaxis] * local
        there = RigidTransform(WORLD, name, place)
        return Station(
            name,
            self.scan_world @ there,
            points.astype(np.float32),
            np.where(valid[:, np.newaxis], _toned(hits.colour), np.uint8(0)),
            _intensity(hits, valid),
            valid,
            row,
            column,
        )

    def by_hand(self, places: Float64) -> tuple[tuple[Station, ...], Warp]:
        """Return one cloud of all places, bent by drift."""
        each = self.asked.points // len(places)
        clouds, colours, brightness = [], [], []
        for place in places:
            local = _cone(each, self.rng)
            hits = self._cast(place, local, 0.004)
            valid = self._came_back(hits.distance_m)
            ranges = hits.distance_m + self.asked.noise_m * self.rng.standard_normal(each)
            clouds.append((ranges[:, np.newaxis] * local)[valid] @ place[:3, :3].T + place[:3, 3])
            colours.append(_toned(hits.colour)[valid])
            brightness.append(_intensity(hits, valid)[valid])
        cloud = np.concatenate(clouds)
        warp = _draw_warp(cloud, self.asked.warp_m, self.rng)
        seen = self.scan_world.apply(cloud + warp(cloud), frame=WORLD)
        origin = RigidTransform(SCAN, "cloud", pose(*np.round(seen.mean(axis=0)).tolist()))
        points = origin.inverse().apply(seen, frame=SCAN).astype(np.float32)
        whole = np.ones(len(points), bool)
        station = Station(
            "cloud", origin, points, np.concatenate(colours), np.concatenate(brightness), whole
        )
        return (station,), warp

    def _cast(self, place: Float64, local: Float64, pixel_rad: float) -> Hits:
        """Return what rays of a scanner's frame met, cast in parts to bound memory."""
        directions = (local @ place[:3, :3].T).astype(np.float32)
        origin = place[:3, 3].astype(np.float32)
        parts = []
        for begin in range(0, len(directions), CAST_AT_ONCE):
            some = directions[begin : begin + CAST_AT_ONCE]
            parts.append(self.surface.cast(np.broadcast_to(origin, some.shape), some, pixel_rad))
        return Hits(
            np.concatenate([p.distance_m for p in parts]),
            np.concatenate([p.colour for p in parts]),
            np.concatenate([p.triangle for p in parts]),
        )

    def _came_back(self, distance: Float32) -> Bool:
        least, most = RANGE_M
        kept = self.rng.random(len(distance)) > LOST_SHARE
        return np.asarray(kept & (distance > least) & (distance < most), np.bool_)

    # --- pictures ----------------------------------------------------------------------------

    def pictures(self, places: Float64) -> tuple[ScanPicture, ...]:
        """Return a panorama and two pinhole pictures, ahead and back, of each place."""
        taken: list[ScanPicture] = []
        for k, place in enumerate(places):
            station = f"station-{k + 1}" if self.asked.kind == "stations" else "cloud"
            taken.append(self._panorama(f"panorama-{k + 1}", place, station))
            for name, yaw in (("ahead", 0.0), ("back", np.pi)):
                view = place @ pose(0.0, 0.0, 0.0, yaw)
                taken.append(self._pinhole(f"{name}-{k + 1}", view, station))
        return tuple(taken)

    def _panorama(self, name: str, place: Float64, station: str) -> ScanPicture:
        width = self.asked.panorama_px
        height, step = width // 2, 2 * np.pi / width
        azimuth = (width / 2 - 0.5 - np.arange(width)) * step
        elevation = (height / 2 - 0.5 - np.arange(height)) * step
        grid = np.meshgrid(azimuth, elevation)
        hits = self._cast(place, _directions(grid[0].ravel(), grid[1].ravel()), step)
        pixels = _toned(hits.colour).reshape(height, width, 3)
        there = self.scan_world @ RigidTransform(WORLD, name, place)
        return ScanPicture(name, "spherical", there, pixels, station)

    def _pinhole(self, name: str, place: Float64, station: str) -> ScanPicture:
        width = self.asked.panorama_px // 2
        height, focal = width * 3 // 4, width / 2.0  # 90 degrees wide
        x, y = np.meshgrid(np.arange(width), np.arange(height))
        across, down = (x - (width - 1) / 2) / focal, (y - (height - 1) / 2) / focal
        local = np.stack([across, -down, -np.ones_like(across)], axis=-1).reshape(-1, 3)
        local /= np.linalg.norm(local, axis=1, keepdims=True)
        camera = place @ LENS_ON_SCANNER
        hits = self._cast(camera, local, 1.0 / focal)
        pixels = _toned(hits.colour).reshape(height, width, 3)
        there = self.scan_world @ RigidTransform(WORLD, name, camera)
        return ScanPicture(name, "pinhole", there, pixels, station, focal)


LENS_ON_SCANNER = np.array([[0.0, 0, -1, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Pose of an E57 camera (x right, y up, looking along -z) that looks along the scanner's x."""


def _directions(azimuth: Float64, elevation: Float64) -> Float64:
    """Return unit vectors ``(N, 3)``: azimuth from x towards y, elevation from the level up."""
    flat = np.cos(elevation)
    return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


def _cone(count: int, rng: np.random.Generator) -> Float64:
    """Return random directions ``(count, 3)`` about a direction that is not too steep."""
    from scipy.spatial.transform import Rotation

    cosine, about = rng.uniform(HAND_CONE, 1.0, count), rng.uniform(0, 2 * np.pi, count)
    sine = np.sqrt(1.0 - cosine**2)
    local = np.column_stack([cosine, sine * np.cos(about), sine * np.sin(about)])
    pitch = float(rng.uniform(-0.9, 0.7))
    return np.asarray(Rotation.from_rotvec([0, pitch, 0]).apply(local), np.float64)


def _toned(light: Float32) -> Picture:
    """Return colours uint8 of linear light."""
    share = np.clip(GAIN * light, 0.0, 1.0) ** np.float32(1.0 / GAMMA)
    return np.asarray(np.rint(255 * share), np.uint8)


def _intensity(hits: Hits, valid: Bool) -> Float32:
    """Return brightness in the scanner's own light, 0 to 1."""
    return np.where(valid, np.clip(hits.colour[:, 0] * 0.8, 0, 1), 0).astype(np.float32)


def _draw_warp(points: Float64, size_m: tuple[float, float], rng: np.random.Generator) -> Warp:
    """Return a warp of a size drawn between two, without any rigid motion of these points."""
    way = rng.standard_normal((WAVES, 3)) * (1.0, 1.0, 0.4)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    wave = way * (2 * np.pi / rng.uniform(*WAVELENGTH_M, (WAVES, 1)))
    phase, amplitude = rng.uniform(0, 2 * np.pi, WAVES), rng.standard_normal((WAVES, 3))
    sample = points[:: max(1, len(points) // 20_000)]
    centre = sample.mean(axis=0)
    shift, turn = _rigid_part(Warp(wave, phase, amplitude)(sample), sample - centre)
    unit = Warp(wave, phase, amplitude, centre, shift, turn)
    scale = rng.uniform(*size_m) / np.sqrt((unit(sample) ** 2).sum(axis=1).mean())
    return Warp(wave, phase, scale * amplitude, centre, scale * shift, scale * turn)


def _rigid_part(displacement: Float64, arms: Float64) -> tuple[Float64, Float64]:
    """Return shift and turn (small) that explain most of displacements ``(N, 3)``."""
    turning = np.stack([np.cross(axis, arms) for axis in np.eye(3)], axis=2)
    design = np.concatenate([np.tile(np.eye(3), (len(arms), 1, 1)), turning], axis=2)
    found = np.linalg.lstsq(design.reshape(-1, 6), displacement.ravel(), rcond=None)[0]
    return found[:3], found[3:]
