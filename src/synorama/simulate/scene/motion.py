"""How two people move in a room: they walk, sit, turn and work; eyes and hands follow targets.

All is decided by a seed before anything is recorded; afterwards every pose can be asked for at any
session time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.room import Room
from synorama.simulate.scene.trajectory import Track, Trajectory
from synorama.simulate.scene.walking import Act, plan_acts, positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "DEVICE_CPF",
    "MICROPHONES_CPF_M",
    "MOUTH_CPF_M",
    "SLACK_S",
    "Wearer",
    "plan_motion",
]

DEVICE_CPF = np.array(
    [
        [-0.031860137, -0.998629532, -0.041520951, 0.004952958],
        [0.793353401, 0.000000002, -0.608761350, -0.049148368],
        [0.607927062, -0.052336008, 0.792266136, -0.049185461],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
"""``T_device_cpf`` of Gen 1 glasses: the vendor's central pupil frame (x left, y up, z ahead)."""

MICROPHONES_CPF_M = np.array(
    [
        [-0.0459, -0.0279, 0.0067],
        [0.0092, 0.0102, 0.0173],
        [0.0459, -0.0279, 0.0067],
        [0.0635, 0.0120, 0.0056],
        [-0.0524, 0.0132, 0.0122],
        [0.0699, 0.0083, -0.0931],
        [-0.0698, 0.0083, -0.0931],
    ]
)
"""``(7, 3)`` microphones of Gen 1 glasses in the central pupil frame, as the vendor drew them."""

MOUTH_CPF_M = np.array([0.0, -0.075, 0.012])
"""The wearer's mouth in the central pupil frame."""

SLACK_S = 12.0  # motion is known this long before the start and after the end of the session
STEP_S = 0.02  # between the knots of all splines
EYE_HEIGHT_M = (1.52, 1.72)
NECK_M = (0.08, 0.13)  # from the neck's joint ahead and up to the eyes
SEATED_EYES_M = 0.76  # above the seat
SHOULDER_BELOW_EYES_M, SHOULDER_HALF_M = 0.27, 0.18
ARM_M = 0.55
PALM_M = 0.085
LEAN_M = {"work": 0.14, "sit": 0.05, "walk": 0.02, "stand": 0.0}
HEAD_TURN_RAD = np.deg2rad(70.0)  # most, against the body
HEAD_DOWN_RAD, HEAD_UP_RAD = np.deg2rad(48.0), np.deg2rad(25.0)
HEAD_SHARE = 0.85  # of a gaze shift; the eyes do the rest
EYE_TURN_RAD = np.deg2rad(38.0)  # most, against the head
FIXATION_S = (0.5, 2.2)
STRIDE_M = 0.68  # a step
TREMOR = np.array([0.0015, 0.0015, 0.001, 0.005, 0.005, 0.004])  # one sigma, m and rad
SOFTNESS_S = {"xy": 0.15, "height": 0.35, "body": 0.6, "head": 0.38, "hand": 0.16, "tremor": 0.09}


@dataclass(frozen=True, slots=True, eq=False)
class Wearer:
    """Somebody who wears glasses in the session.

    Parameters
    ----------
    name
        Who: the name of the recording of the glasses.
    acts
        What was done when, in seconds of the session.
    head
        Trajectory of the central pupil frame.
    body
        x, y, yaw of the trunk, height of the eyes before leaning, lean ahead [m], share of sitting.
    hands
        Left wrist, left palm, right wrist, right palm in ``world`` [m].
    gaze_target
        What is looked at, in ``world`` [m].
    """

    name: str
    acts: tuple[Act, ...]
    head: Trajectory
    body: Track
    hands: Track
    gaze_target: Track

    @property
    def device(self) -> Trajectory:
        """Trajectory of the device frame of Gen 1 glasses."""
        return self.head.attached(np.linalg.inv(DEVICE_CPF))

    def places_m(self, t_ns: ArrayLike, points_cpf_m: ArrayLike) -> Float64:
        """Return where points fixed to the head are, ``(N, K, 3)`` in ``world`` [m].

        Parameters
        ----------
        points_cpf_m
            ``(K, 3)`` in the central pupil frame, such as `MICROPHONES_CPF_M`.
        """
        pose = self.head.pose(t_ns)
        points = np.atleast_2d(np.asarray(points_cpf_m, np.float64))
        return np.asarray(points @ pose[:, :3, :3].transpose(0, 2, 1) + pose[:, None, :3, 3])

    def gaze(self, t_ns: ArrayLike) -> tuple[Float64, Float64]:
        """Return gaze as unit vectors ``(N, 3)`` in the central pupil frame, and depth [m]."""
        times = np.atleast_1d(np.asarray(t_ns, np.int64))
        pose = self.head.pose(times)
        away = self.gaze_target(times) - pose[:, :3, 3]
        local = np.einsum("nji,nj->ni", pose[:, :3, :3], away)
        depth = np.linalg.norm(local, axis=1)
        return _within_cone(local / depth[:, np.newaxis], EYE_TURN_RAD), depth

    def hands_m(self, t_ns: ArrayLike) -> Float64:
        """Return ``(N, 2, 2, 3)``: left and right; wrist and palm; in ``world`` [m]."""
        return self.hands(np.atleast_1d(np.asarray(t_ns, np.int64))).reshape(-1, 2, 2, 3)


def _within_cone(directions: Float64, most_rad: float) -> Float64:
    """Return directions turned back towards z where they lie outside a cone about it."""
    across = np.hypot(directions[:, 0], directions[:, 1])
    angle = np.minimum(np.arctan2(across, directions[:, 2]), most_rad)
    flat = directions[:, :2] * (np.sin(angle) / np.maximum(across, 1e-12))[:, np.newaxis]
    return np.column_stack([flat, np.cos(angle)])


def plan_motion(
    room: Room,
    seed: int,
    *,
    start_ns: int,
    seconds: float,
    names: tuple[str, str] = ("leader", "helper"),
) -> tuple[Wearer, Wearer]:
    """Return how two people move through a session in a room.

    Parameters
    ----------
    room
        As it stands in the session.
    seed
        Of the motion.
    start_ns, seconds
        Start of the session and its length; motion is known `SLACK_S` beyond both ends.
    """
    rngs = [np.random.default_rng([seed, 41, k]) for k in range(3)]
    plans = plan_acts(room, -SLACK_S, seconds + SLACK_S, rngs[2])
    grid = np.arange(-SLACK_S, seconds + SLACK_S + STEP_S, STEP_S)
    frames = [
        _body(plan, room, grid, float(rng.uniform(*EYE_HEIGHT_M)))
        for plan, rng in zip(plans, rngs[:2], strict=True)
    ]
    things = np.array([t.session.translation_m for t in room.objects if t.support])
    wearers = []
    for k, (name, rng) in enumerate(zip(names, rngs[:2], strict=True)):
        hands = _hands(plans[k], frames[k], grid, rng)
        mind = _Mind(plans[k], frames[k], hands, _eyes(frames[1 - k]), things)
        wearers.append(_wearer(name, start_ns, grid, mind, rng))
    return wearers[0], wearers[1]


# --- the body: columns x, y, yaw, eye height, lean, seated -----------------------------------


def _body(plan: list[Act], room: Room, grid: Float64, eye_height_m: float) -> Float64:
    """Return where trunk and eyes are, ``(N, 6)``, smoothed."""
    starts = np.array([act.start_s for act in plan])
    which = np.clip(np.searchsorted(starts, grid, side="right") - 1, 0, len(plan) - 1)
    xy = _smooth(positions(plan, grid), "xy")
    seat_m = room.seats[0].height_m + SEATED_EYES_M if room.seats else eye_height_m
    sits = np.array([act.doing == "sit" for act in plan], float)[which]
    lean = np.array([LEAN_M[act.doing] for act in plan])[which]
    height = np.where(sits > 0, seat_m, eye_height_m)
    slow = _smooth(np.column_stack([height, lean, sits]), "height")
    yaw = _smooth(_facing(plan, which, xy), "body")
    return np.column_stack([xy, yaw, slow])


def _facing(plan: list[Act], which: NDArray[np.int64], xy: Float64) -> Float64:
    """Return the trunk's direction ``(N, 1)``: that of the place, on a walk that of the way."""
    step = np.gradient(xy, axis=0) / STEP_S
    still = np.array([act.place.yaw_rad for act in plan])[which]
    walks = np.array([act.doing == "walk" for act in plan])[which]
    moving = walks & (np.hypot(*step.T) > 0.25)
    yaw = np.where(moving, np.arctan2(step[:, 1], step[:, 0]), still)
    return np.unwrap(yaw)[:, np.newaxis]


def _smooth(values: Float64, what: str) -> Float64:
    from scipy.ndimage import gaussian_filter1d

    width = SOFTNESS_S[what] / STEP_S
    return np.asarray(gaussian_filter1d(values, width, axis=0, mode="nearest"), np.float64)


def _ahead(frame: Float64) -> Float64:
    """Return the trunk's unit direction ``(N, 2)``."""
    return np.column_stack([np.cos(frame[:, 2]), np.sin(frame[:, 2])])


def _eyes(frame: Float64) -> Float64:
    """Return about where the eyes are ``(N, 3)``, before the head turns."""
    xy = frame[:, :2] + (frame[:, 4:5] + NECK_M[0]) * _ahead(frame)
    return np.column_stack([xy, frame[:, 3] - 0.25 * frame[:, 4]])


# --- eyes, head, hands -----------------------------------------------------------------------


def _wearer(
    name: str, start_ns: int, grid: Float64, mind: _Mind, rng: np.random.Generator
) -> Wearer:
    gaze = _gaze(mind, grid, rng)
    head = _head(mind.frame, gaze, rng)
    tracks = (
        Track.through(start_ns, STEP_S, float(grid[0]), values, degree=degree)
        for values, degree in ((head, 5), (mind.frame, 3), (mind.hands, 3), (gaze, 1))
    )
    head_track, *others = tracks
    return Wearer(name, tuple(mind.plan), Trajectory(head_track, np.eye(4)), *others)


@dataclass(frozen=True, slots=True, eq=False)
class _Mind:
    """What decides where somebody looks: the body, the hands, the other's eyes, things about."""

    plan: list[Act]
    frame: Float64
    hands: Float64
    other_eyes: Float64
    things: Float64

    def act_at(self, seconds: float) -> Act:
        """Return what is being done."""
        starts = np.array([act.start_s for act in self.plan])
        return self.plan[max(int(np.searchsorted(starts, seconds, side="right")) - 1, 0)]

    def sees(self, now: int, target: Float64) -> bool:
        """Return whether a target lies ahead, neither too near nor too steep."""
        frame = self.frame[now]
        away = target - _eyes(self.frame[now : now + 1])[0]
        flat = float(np.hypot(away[0], away[1]))
        ahead = float(away[:2] @ (np.cos(frame[2]), np.sin(frame[2])))
        return bool(flat > 0.45 and ahead > 0.2 * flat and abs(away[2]) < 1.3 * flat)


def _gaze(mind: _Mind, grid: Float64, rng: np.random.Generator) -> Float64:
    """Return what is looked at ``(N, 3)``: a chain of fixations."""
    targets = np.empty((len(grid), 3))
    k = 0
    while k < len(grid):
        act = mind.act_at(float(grid[k]))
        left_s = max(act.end_s - float(grid[k]), 2 * STEP_S)
        lasts = max(int(min(float(rng.uniform(*FIXATION_S)), left_s) / STEP_S), 2)
        span = slice(k, min(k + lasts, len(grid)))
        targets[span] = _fixation(mind, act, span, rng)
        k = span.stop
    return targets


def _fixation(mind: _Mind, act: Act, span: slice, rng: np.random.Generator) -> Float64:
    """Return one target over a span of time ``(n, 3)``: a face, a thing, the way or the hands."""
    walks_on = act.doing == "walk" and rng.random() < 0.7
    draw = 1.0 if walks_on else rng.random()
    if draw < 0.35 and mind.sees(span.start, mind.other_eyes[span.start]):
        return mind.other_eyes[span]
    if draw < 0.65:
        seen = [thing for thing in mind.things if mind.sees(span.start, thing)]
        if seen:
            spot = seen[int(rng.integers(len(seen)))] + (0, 0, 0.06)
            return np.tile(spot, (span.stop - span.start, 1))
    if act.doing in ("walk", "stand"):
        return _way_ahead(mind.frame[span])
    palm = 3 + 6 * int(rng.integers(2))
    return mind.hands[span, palm : palm + 3]


def _way_ahead(frame: Float64) -> Float64:
    ahead = frame[:, :2] + 2.2 * _ahead(frame)
    return np.column_stack([ahead, frame[:, 3] - 0.45])


def _head(frame: Float64, gaze: Float64, rng: np.random.Generator) -> Float64:
    """Return x, y, z, yaw, pitch, roll of the eyes' middle ``(N, 6)``."""
    away = gaze - _eyes(frame)
    yaw = np.arctan2(away[:, 1], away[:, 0]) - frame[:, 2]
    yaw = np.clip(HEAD_SHARE * ((yaw + np.pi) % (2 * np.pi) - np.pi), -HEAD_TURN_RAD, HEAD_TURN_RAD)
    down = np.arctan2(-away[:, 2], np.hypot(away[:, 0], away[:, 1]))
    pitch = np.clip(HEAD_SHARE * down, -HEAD_UP_RAD, HEAD_DOWN_RAD)
    turns = _smooth(np.column_stack([yaw, pitch]), "head")
    yaw, pitch = turns[:, 0] + frame[:, 2], turns[:, 1]
    roll = -0.08 * turns[:, 0] * np.sin(pitch)
    place = _neck(frame) + _neck_to_eyes(yaw, pitch)
    return np.column_stack([place, yaw, pitch, roll]) + _tremor(len(frame), rng)


def _neck(frame: Float64) -> Float64:
    """Return the joint on which the head turns ``(N, 3)``, swaying with the steps."""
    ahead = _ahead(frame)
    place = _eyes(frame)
    place[:, :2] -= NECK_M[0] * ahead
    place[:, 2] -= NECK_M[1]
    speed = np.linalg.norm(np.gradient(frame[:, :2], axis=0), axis=1) / STEP_S
    phase = np.pi * np.cumsum(speed) * STEP_S / STRIDE_M
    size = np.clip(speed / 0.9, 0, 1)
    place[:, 2] += 0.014 * size * np.cos(2 * phase)
    sway = (0.012 * size * np.sin(phase))[:, np.newaxis]
    place[:, :2] += sway * np.column_stack([-ahead[:, 1], ahead[:, 0]])
    return place


def _neck_to_eyes(yaw: Float64, pitch: Float64) -> Float64:
    along, up = NECK_M
    flat = along * np.cos(pitch) + up * np.sin(pitch)
    high = up * np.cos(pitch) - along * np.sin(pitch)
    return np.column_stack([flat * np.cos(yaw), flat * np.sin(yaw), high])


def _tremor(count: int, rng: np.random.Generator) -> Float64:
    noise = _smooth(rng.standard_normal((count, 6)), "tremor")
    return np.asarray(noise / noise.std(axis=0) * TREMOR, np.float64)


def _hands(plan: list[Act], frame: Float64, grid: Float64, rng: np.random.Generator) -> Float64:
    """Return left wrist, left palm, right wrist, right palm ``(N, 12)``."""
    starts = np.array([act.start_s for act in plan])
    which = np.clip(np.searchsorted(starts, grid, side="right") - 1, 0, len(plan) - 1)
    out = []
    for side in (1.0, -1.0):
        shoulder = _shoulder(frame, side)
        goal = _smooth(_hand_goals(plan, which, frame, side, grid, rng), "hand")
        away = goal - shoulder
        reach = np.linalg.norm(away, axis=1, keepdims=True)
        direction = away / reach
        wrist = shoulder + direction * np.minimum(reach - PALM_M, ARM_M)
        out += [wrist, wrist + PALM_M * direction]
    return np.concatenate(out, axis=1)


def _shoulder(frame: Float64, side: float) -> Float64:
    """Return the left (side 1) or right (side -1) shoulder ``(N, 3)``."""
    ahead = _ahead(frame)
    left = np.column_stack([-ahead[:, 1], ahead[:, 0]])
    xy = frame[:, :2] + 0.8 * frame[:, 4:5] * ahead + side * SHOULDER_HALF_M * left
    return np.column_stack([xy, frame[:, 3] - SHOULDER_BELOW_EYES_M - 0.25 * frame[:, 4]])


def _hand_goals(
    plan: list[Act],
    which: NDArray[np.int64],
    frame: Float64,
    side: float,
    grid: Float64,
    rng: np.random.Generator,
) -> Float64:
    """Return where a palm wants to be ``(N, 3)``, with leaps between the acts."""
    ahead = _ahead(frame)
    left = np.column_stack([-ahead[:, 1], ahead[:, 0]])
    hanging = np.add(_shoulder(frame, side), (0, 0, -0.62))
    speed = np.linalg.norm(np.gradient(frame[:, :2], axis=0), axis=1) / STEP_S
    swing = (
        side * 0.16 * np.clip(speed, 0, 1) * np.sin(np.pi * np.cumsum(speed) * STEP_S / STRIDE_M)
    )
    hanging[:, :2] += (swing + 0.06)[:, np.newaxis] * ahead + side * 0.05 * left
    busy = np.array([act.doing in ("work", "sit") for act in plan])[which]
    targets = np.array([act.place.target_m for act in plan])[which]
    wander = _reaches(grid, rng)
    at_work = np.add(targets, (0, 0, 0.03))
    at_work[:, :2] += (side * 0.11 + wander[:, :1]) * left + wander[:, 1:2] * ahead
    at_work[:, 2] += np.abs(wander[:, 2])
    return np.where(busy[:, np.newaxis], at_work, hanging)


def _reaches(grid: Float64, rng: np.random.Generator) -> Float64:
    """Return movements of a working hand ``(N, 3)`` [m]: short reaches, then rest."""
    count = int((grid[-1] - grid[0]) / 0.9) + 2
    moves = rng.normal(0.0, (0.07, 0.06, 0.05), (count, 3))
    held = np.clip(((grid - grid[0]) / 0.9).astype(int), 0, count - 1)
    return np.asarray(moves[held], np.float64)
