"""What a room, a source of sound and the microphones of a device are to the acoustics.

Places are functions of session time, so that whatever moves people can move these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Protocol

import numpy as np

from synorama.simulate.sound.clips import GRID_HZ, Dry
from synorama.timebase import ClockMap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

    Place = Callable[[Int64], Float64]
    Poses = Callable[[Int64], Float64]

__all__ = [
    "DECAY_60_DB",
    "IMAGE_ORDER",
    "LONGEST_M",
    "SPEED_M_S",
    "Ears",
    "Hears",
    "RoomBox",
    "Source",
    "fixed",
    "fixed_ears",
    "heading",
    "tone_taps",
    "worn",
    "worn_ears",
]

SPEED_M_S = 343.0
DECAY_60_DB = float(np.log(1e6))  # energy falls by e to this in one reverberation time
IMAGE_ORDER = 2
LONGEST_M = 85.0  # way of a reflection that has its own delay
HEAD_CENTRE_CPF_M = (0.0, 0.0, -0.09)


class Hears(Protocol):
    """What the writers of devices ask for sound."""

    def heard(
        self, clock: ClockMap, rate_hz: float, first_ns: int, start: int, count: int
    ) -> Float32:
        """Sample the sound on a device's clock.

        Parameters
        ----------
        clock
            ``C_session_device``.
        rate_hz
            Samples per second of the device's clock.
        first_ns
            Device time of sample 0.
        start, count
            Which samples. They should span less than what the clock's knots are apart.

        Returns
        -------
        ``(count, M)`` float32, of full scale 1.0; ``(count,)`` if there is one microphone only.
        """
        ...


@dataclass(frozen=True, slots=True)
class RoomBox:
    """A room as sound sees it: a box with walls that all reflect alike.

    Parameters
    ----------
    low_m, high_m
        Opposite corners in frame ``world``.
    rt60_s
        Reverberation time: when sound has fallen by 60 dB.
    """

    low_m: tuple[float, float, float]
    high_m: tuple[float, float, float]
    rt60_s: float

    def __post_init__(self) -> None:
        if not all(a < b for a, b in zip(self.low_m, self.high_m, strict=True)):
            raise ValueError(f"the room has no inside: {self.low_m} to {self.high_m}")
        if not 0.05 <= self.rt60_s <= 1.5:
            raise ValueError(f"reverberation takes 0.05 to 1.5 s, not {self.rt60_s}")
        if self.longest_m > LONGEST_M:
            raise ValueError(f"the room is too large: {self.size_m} m")

    @classmethod
    def of_size(cls, size_m: tuple[float, float, float], rt60_s: float) -> RoomBox:
        """Return a room whose floor has its middle at the origin."""
        width, depth, height = size_m
        return cls((-width / 2, -depth / 2, 0.0), (width / 2, depth / 2, height), rt60_s)

    @property
    def size_m(self) -> Float64:
        """``(3,)`` width, depth, height."""
        return np.subtract(self.high_m, self.low_m)

    @property
    def longest_m(self) -> float:
        """Longest way of a reflection that has its own delay."""
        return float(np.linalg.norm(self.size_m)) * (IMAGE_ORDER + 1)

    @property
    def volume_m3(self) -> float:
        """Volume of the box."""
        return float(np.prod(self.size_m))

    @property
    def free_path_m(self) -> float:
        """Mean way of sound between two walls, ``4 V / S``."""
        x, y, z = self.size_m
        return 4 * self.volume_m3 / float(2 * (x * y + y * z + z * x))

    @property
    def reflected(self) -> float:
        """Amplitude that a wall gives back, so that sound decays in time (Eyring)."""
        return float(np.exp(-DECAY_60_DB * self.free_path_m / (2 * SPEED_M_S * self.rt60_s)))

    def images(self) -> tuple[Float64, Float64, Float64]:
        """Return signs ``(I, 3)``, offsets ``(I, 3)`` [m] and gains ``(I,)`` of the images.

        Of a source at ``x`` they lie at ``sign * x + offset``. The first is the source itself.
        """
        span = range(-IMAGE_ORDER, IMAGE_ORDER + 1)
        cells = [c for c in product(span, repeat=3) if np.abs(c).sum() <= IMAGE_ORDER]
        cell = np.array(sorted(cells, key=lambda c: int(np.abs(c).sum())))
        odd = cell % 2
        sign = 1.0 - 2.0 * odd
        offset = (cell + odd) * self.size_m + 2 * odd * np.array(self.low_m)
        return sign, offset, self.reflected ** np.abs(cell).sum(axis=1).astype(float)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Something that sounds.

    Parameters
    ----------
    name
        Also for the truth.
    place
        Session times ``(N,)`` [ns] to positions ``(N, 3)`` [m] in ``world``.
    dry
        What it gives off at 1 m.
    level
        Factor on that.
    facing
        Session times to unit vectors ``(N, 3)`` into which it sounds most, if it does.
    behind
        Amplitude to the opposite side, as a share.
    reflects
        Whether the first reflections have delays of their own. A steady noise does without, at
        less cost, as nobody can tell.
    """

    name: str
    place: Place
    dry: Dry
    level: float = 1.0
    facing: Place | None = None
    behind: float = 0.5
    reflects: bool = True

    @property
    def all_around(self) -> float:
        """Amplitude that goes into the room as a whole, root of the mean square."""
        if self.facing is None:
            return self.level
        return self.level * float(np.sqrt((1 + self.behind + self.behind**2) / 3))


@dataclass(frozen=True, slots=True, eq=False)
class Ears:
    """The microphones of one device.

    Parameters
    ----------
    places
        Session times ``(N,)`` [ns] to positions ``(N, M, 3)`` [m] in ``world``.
    gains
        Amplitude factor of each of the M microphones.
    centre
        Session times to the middle of the head ``(N, 3)`` that keeps off what comes from behind.
    shadowed
        Amplitude of what comes from straight behind the head, as a share.
    tone
        Taps of the device's filter, odd in number and symmetric: it moves nothing in time.
    wired
        Which microphone each channel gives; empty: each its own. Faults are planted here.
    muted
        Channels that give nothing.
    inverted
        Channels of reverse polarity.
    """

    places: Place
    gains: tuple[float, ...]
    centre: Place | None = None
    shadowed: float = 0.5
    tone: tuple[float, ...] = (1.0,)
    wired: tuple[int, ...] = ()
    muted: frozenset[int] = frozenset()
    inverted: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.tone) % 2 == 0 or not np.allclose(self.tone, self.tone[::-1]):
            raise ValueError("the filter must be symmetric, with an odd number of taps")
        channels = set(range(len(self.gains)))
        if not (set(self.wired) | self.muted | self.inverted) <= channels:
            raise ValueError(f"there are only channels 0 to {len(self.gains) - 1}")

    def channels(self, heard: Float32) -> Float32:
        """Return what the channels give of what the microphones hear ``(count, M)``."""
        signs = np.array([(c not in self.muted) * (-1.0) ** (c in self.inverted) for c in
                          range(len(self.gains))])  # fmt: skip
        wired = list(self.wired or range(len(self.gains)))
        given: Float32 = heard[:, wired] * np.float32(signs * np.array(self.gains)[wired])
        return given


def fixed(position_m: ArrayLike) -> Place:
    """Return the place of a thing that does not move; of several, for positions ``(M, 3)``."""
    position = np.asarray(position_m, np.float64)
    return lambda t_ns: np.broadcast_to(position, (len(t_ns), *position.shape))


def fixed_ears(positions_m: ArrayLike, gain: float = 1.0) -> Ears:
    """Return the microphones ``(M, 3)`` [m] of a device that does not move."""
    positions = np.asarray(positions_m, np.float64)
    return Ears(fixed(positions), (gain,) * len(positions))


def worn(pose: Poses, point_m: ArrayLike) -> Place:
    """Return the place of a point that is fixed to a body.

    Parameters
    ----------
    pose
        Session times ``(N,)`` to ``T_world_body`` ``(N, 4, 4)``.
    point_m
        ``(3,)`` in the frame of the body.
    """
    point = np.asarray(point_m, np.float64)

    def place(t_ns: Int64) -> Float64:
        matrix = pose(t_ns)
        return np.asarray(matrix[:, :3, :3] @ point + matrix[:, :3, 3], np.float64)

    return place


def heading(pose: Poses) -> Place:
    """Return where a body's z axis points: ahead, for a head."""
    return lambda t_ns: np.asarray(pose(t_ns)[:, :3, 2], np.float64)


def worn_ears(pose: Poses, points_m: Float64, gains: Sequence[float] | None = None) -> Ears:
    """Return microphones ``(M, 3)`` [m] on a head, given in the central pupil frame as its pose."""

    def places(t_ns: Int64) -> Float64:
        matrix = pose(t_ns)
        turned = np.einsum("nij,mj->nmi", matrix[:, :3, :3], points_m)
        return np.asarray(turned + matrix[:, np.newaxis, :3, 3], np.float64)

    given = (1.0,) * len(points_m) if gains is None else tuple(gains)
    return Ears(places, given, centre=worn(pose, HEAD_CENTRE_CPF_M))


def tone_taps(bright_db: float, count: int = 33) -> tuple[float, ...]:
    """Return the filter of a device that is so much louder at 8 kHz than at 1 kHz."""
    from scipy import signal

    hz = np.array([0.0, 1_000.0, 8_000.0, GRID_HZ / 2])
    taps = signal.firwin2(
        count, hz, 10 ** (np.array([0, 0, bright_db, bright_db]) / 20), fs=GRID_HZ
    )
    return tuple(float(v) for v in (taps + taps[::-1]) / 2)
