"""The stage refine-clock: what the travel of sound did to cameras' clocks is taken out again.

Where both wearers walked is known from their trajectories in one world frame; where a camera
stood, from registration, from the operator, or not at all. A camera whose clock cannot be made
better keeps the one that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.errors import InputError
from synorama.media.audio import MonoSound
from synorama.records import (
    CameraPose,
    GeometryResult,
    Recording,
    RecordingClock,
    Samples,
    SampleTrack,
    SoundTravel,
    SyncResult,
)
from synorama.sync import pieces
from synorama.sync.acoustics import (
    Place,
    Speech,
    Talker,
    hear_speech,
    own_speech,
    refine_camera,
)
from synorama.sync.pieces import Pieces
from synorama.sync.solve import read_sound, unknown_positions_words
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["Refined", "refine_clocks"]

TRAJECTORY = "closed_loop_trajectory"
POSE = ("tx", "ty", "tz", "qw", "qx", "qy", "qz")
WORLD = "graph_uid"
# The wearer's mouth, 7.5 cm below the pupils and 1.2 cm before them, in the device frame, by the
# vendor's drawing of where the pupils are in it.
MOUTH_DEVICE_M = {
    "Aria Gen 1": (0.0794, -0.0565, -0.0358),
    "Aria Gen 2": (0.0616, 0.0849, 0.0109),
}
LONGEST_GAP_NS = 100_000_000
MOVED_M = 0.05
Z95 = 1.96
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """All clocks, those of cameras without the travel of sound, and how each was found.

    ``why_not`` says in words why nothing could be refined; empty if something was tried.
    """

    sync: SyncResult
    travels: tuple[SoundTravel, ...] = ()
    why_not: str = ""


def refine_clocks(
    recordings: Sequence[Recording],
    sync: SyncResult,
    *,
    geometry: GeometryResult | None = None,
    places: Mapping[str, Place] | None = None,
    progress: Progress = lambda done, total: None,
) -> Refined:
    """Take the travel of sound out of the clocks of all cameras that were placed by sound.

    Parameters
    ----------
    recordings, sync
        The session, and its clocks as hardware and sound have them.
    geometry
        What registration says: where cameras stood, and how the wearers' frames lie.
    places
        By camera, what the operator says of its position in the world frame; counts where
        registration found none.
    progress
        Called as ``progress(done, total)``.
    """
    wearers = _Wearers(sync, geometry)
    try:
        talkers = wearers.talkers(recordings)
    except InputError as error:
        return Refined(sync, why_not=error.message)
    if isinstance(talkers, str):
        return Refined(sync, why_not=talkers)
    speech = own_speech(talkers)
    cameras = [r for r in recordings if _by_sound(r, sync)]
    travels = []
    for k, camera in enumerate(cameras):
        progress(k, len(cameras))
        travels.append(_refine(camera, sync.clocks[camera.id], speech, geometry, places or {}))
    progress(len(cameras), len(cameras))
    starts_ns = {camera.id: camera.first_ns or 0 for camera in cameras}
    return Refined(_with(sync, travels, starts_ns), tuple(travels))


def _by_sound(recording: Recording, sync: SyncResult) -> bool:
    clock = sync.clocks.get(recording.id)
    by_sound_or_card = clock is not None and clock.method in ("sound", "card")
    return recording.device != "aria" and by_sound_or_card and bool(recording.audios)


def _refine(
    camera: Recording,
    clock: RecordingClock,
    speech: Speech,
    geometry: GeometryResult | None,
    places: Mapping[str, Place],
) -> SoundTravel:
    place = _place(geometry.cameras.get(camera.id) if geometry else None, places.get(camera.id))
    if isinstance(place, str):
        return SoundTravel(camera.id, False, place)
    try:
        sound = read_sound(camera, name=camera.id)
    except InputError as error:
        return SoundTravel(camera.id, False, error.message)
    found = refine_camera(hear_speech(speech, sound, clock), place)
    if _is_better(found, clock):
        return found
    return replace(found, accepted=False, reason="it would be less sure than before", clock=None)


def _is_better(found: SoundTravel, before: RecordingClock) -> bool:
    """Tell whether the new interval is the narrower one; a refused clock has none."""
    if found.clock is None or found.clock.interval95_ms is None or before.interval95_ms is None:
        return True
    return found.clock.interval95_ms < before.interval95_ms + _lost_ms(found)


def _place(pose: CameraPose | None, said: Place | None) -> Place | str | None:
    """Return where a camera stood; words if it did not stand."""
    if pose is None or pose.status != "accepted" or not len(pose.T_world_camera):
        return said
    spots = pose.T_world_camera[:, :3, 3]
    if np.ptp(spots, axis=0).max() > MOVED_M:
        return "it was moved: the way of sound to it is not one place's"
    covariance = np.eye(6) if pose.covariance is None else pose.covariance
    return Place(spots.mean(axis=0), np.asarray(covariance[3:, 3:]))


def _with(
    sync: SyncResult, travels: Sequence[SoundTravel], starts_ns: Mapping[str, int]
) -> SyncResult:
    """Return the clocks with the refined ones in their places, and warnings that fit them."""
    new = {t.recording: t.clock or _doubtful(sync.clocks[t.recording], t) for t in travels}
    result = replace(sync, clocks={**sync.clocks, **new})
    located = {t.recording for t in travels if t.position_given or np.isfinite(t.position_m).all()}
    heard = [name for name, clock in sync.clocks.items() if clock.method == "sound"]
    refined = {t.recording for t in travels if t.clock is not None}
    left = [name for name in heard if name not in refined or name not in located]
    old, said = unknown_positions_words(heard), unknown_positions_words(left)
    warnings = [said if w == old else w for w in sync.warnings if w != old or left]
    warnings += [_lost_words(t, starts_ns[t.recording]) for t in travels if len(t.losses_ns)]
    return replace(result, warnings=tuple(warnings))


def _doubtful(clock: RecordingClock, travel: SoundTravel) -> RecordingClock:
    """Return a clock that stays as it is, its interval wider by what it did not notice."""
    if clock.interval95_ms is None:
        return clock
    return replace(clock, interval95_ms=clock.interval95_ms + _lost_ms(travel))


def _lost_ms(travel: SoundTravel) -> float:
    return float(travel.losses_ns[:, 2].sum()) / 1e6


def _lost_words(travel: SoundTravel, start_ns: int) -> str:
    """Tell the operator what speech says of samples that nothing else had missed."""
    each = ", ".join(
        f"{by / 1e6:.0f} ms between {(after - start_ns) / NS_PER_S:.1f} and "
        f"{(before - start_ns) / NS_PER_S:.1f} s of it"
        for after, before, by in travel.losses_ns.tolist()
    )
    lost = f"the wearers' speech says that the sound of '{travel.recording}' lost {each}"
    if travel.clock is None:
        return f"{lost}: its clock may be off by as much, which is in its interval"
    return (
        f"{lost}: its clock follows it. Whether its pictures lost as much is in the interval of "
        "its views: compare picture and sound at a clap near the end"
    )


# --- wearers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """A wearer's mouth over session time."""

    times_ns: Int64
    mouth_m: Float64

    def __call__(self, t_ns: Int64) -> Float64:
        """Return positions ``(N, 3)``, NaN where there is no pose near."""
        after = np.clip(np.searchsorted(self.times_ns, t_ns), 1, len(self.times_ns) - 1)
        before = after - 1
        gap = self.times_ns[after] - self.times_ns[before]
        since = t_ns - self.times_ns[before]
        known = (gap <= LONGEST_GAP_NS) & (since >= 0) & (since <= gap)
        share = (since / np.maximum(gap, 1))[:, np.newaxis]
        between = self.mouth_m[before] * (1 - share) + self.mouth_m[after] * share
        return np.where(known[:, np.newaxis], between, np.nan)


@dataclass(slots=True)
class _Wearers:
    """Makes talkers of recordings; notes in which world frames their trajectories are."""

    sync: SyncResult
    geometry: GeometryResult | None
    worlds: dict[str, str] = field(default_factory=dict)

    def talkers(self, recordings: Sequence[Recording]) -> list[Talker] | str:
        """Return all glasses that heard their wearers, or why these cannot be used."""
        glasses = [
            r for r in recordings if r.device == "aria" and r.audios and r.id in self.sync.clocks
        ]
        if len(glasses) < 2:
            return "it takes the sound of two pairs of glasses to tell who speaks"
        talkers = [self._talker(r) for r in glasses]
        if all(t.mouth is None for t in talkers):
            return "no trajectory (MPS) says where a wearer was"
        if len(set(self.worlds.values())) > 1:
            names = ", ".join(f"'{name}'" for name in self.worlds)
            return (
                f"the trajectories of {names} are in different world frames: process them "
                "together (multi-SLAM), or register them to one scan"
            )
        return talkers

    def _talker(self, recording: Recording) -> Talker:
        clock = self.sync.clocks[recording.id]
        sigma_ms = (clock.interval95_ms or 0.0) / Z95
        sound: MonoSound = read_sound(recording, name=recording.id)
        return Talker(sound, clock.maps, sigma_ms / 1e3, self._path(recording, clock.maps))

    def _path(self, recording: Recording, clock: Pieces) -> _Path | None:
        track = recording.tracks.get(TRAJECTORY)
        mouth = MOUTH_DEVICE_M.get(recording.model)
        if mouth is None or not isinstance(track, SampleTrack):
            return None
        rows = track.read()
        picked = _one_world(rows)
        if not picked.any():
            return None
        names = [column.name for column in track.columns]
        poses = rows.values[picked][:, [names.index(name) for name in POSE]].astype(np.float64)
        places = self._in_world(recording.id, rows, picked, _moved(poses, np.array(mouth)))
        times = pieces.apply(clock, rows.times_ns[picked])
        order = np.argsort(times, kind="stable")
        return _Path(times[order], places[order])

    def _in_world(
        self, name: str, rows: Samples, picked: NDArray[np.bool_], places: Float64
    ) -> Float64:
        """Carry positions to the session's world where registration says how.

        Of others the frame is noted: it must be the same for all.
        """
        there = self.geometry.wearers.get(name) if self.geometry else None
        if there is not None and there.status == "accepted" and there.T_target_source is not None:
            matrix = there.T_target_source.matrix
            return np.asarray(places @ matrix[:3, :3].T + matrix[:3, 3])
        worlds = rows.extra.get(WORLD)
        self.worlds[name] = name if worlds is None else str(worlds[picked][0])
        return places


def _one_world(rows: Samples) -> NDArray[np.bool_]:
    """Return which rows are in the frame that most of them are in."""
    worlds = rows.extra.get(WORLD)
    if worlds is None or not len(worlds):
        return np.ones(len(rows.times_ns), np.bool_)
    values, counts = np.unique(worlds, return_counts=True)
    return np.asarray(worlds == values[counts.argmax()])


def _moved(poses: Float64, point_m: Float64) -> Float64:
    """Return where a point of the device is in the world, for poses ``(N, 7)``."""
    from scipy.spatial.transform import Rotation

    finite = np.isfinite(poses).all(axis=1)
    turned = np.full((len(poses), 3), np.nan)
    turn = Rotation.from_quat(np.roll(poses[finite, 3:], -1, axis=1))
    turned[finite] = turn.apply(point_m) + poses[finite, :3]
    return turned
