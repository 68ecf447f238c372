"""Hand tracking: wrists, palms and 21 landmarks in the device frame, where the glasses see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.mps.estimate import Estimate
from synorama.simulate.mps.tables import columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["hand_results", "wrist_and_palm"]

NS_PER_US = 1000
SIDES = ("left", "right")
NOISE_M = 0.004
SEEN_RAD = np.deg2rad(75.0)  # from straight ahead, between the eyes
SEEN_M = 0.85
PALM = 20  # the last landmark
THUMB = {"left": -1.0, "right": 1.0}  # on which side, seen on the back of the hand from above
FINGERS = {  # across towards the thumb, along from the wrist, of joints and tip [m]
    "thumb": ((0.035, 0.045), (0.055, 0.075), (0.070, 0.100)),
    "index": ((0.028, 0.088), (0.032, 0.125), (0.034, 0.150), (0.035, 0.172)),
    "middle": ((0.006, 0.092), (0.007, 0.132), (0.007, 0.158), (0.007, 0.180)),
    "ring": ((-0.014, 0.086), (-0.017, 0.122), (-0.018, 0.146), (-0.019, 0.167)),
    "pinky": ((-0.032, 0.078), (-0.038, 0.105), (-0.041, 0.122), (-0.043, 0.140)),
}
CURL_M = 0.02  # of the finger tips out of the palm's plane


def _layout() -> Float64:
    """Return the landmarks of a hand ``(21, 3)``: across, along, out of the palm.

    The service's order: five tips, the wrist, two of the thumb, three of each finger, the palm.
    """
    tips = [(*joints[-1], CURL_M) for joints in FINGERS.values()]
    inner = [
        (*joint, CURL_M * k / 4)
        for joints in FINGERS.values()
        for k, joint in enumerate(joints[:-1])
    ]
    return np.array([*tips, (0.0, 0.0, 0.0), *inner, (0.0, 0.085, 0.0)])


LAYOUT = _layout()


@dataclass(frozen=True, slots=True, eq=False)
class _Hand:
    """One hand over time: in the device frame, and whether it was tracked."""

    wrist_m: Float64
    rotation: Float64  # columns across, along, out of the palm
    palm_m: Float64
    seen: Bool
    confidence: Float64

    @property
    def normal(self) -> Float64:
        return np.where(self.seen[:, np.newaxis], self.rotation[:, :, 2], 0.0)

    def told(self, values: Float64) -> Float64:
        """Return values, zero where the hand was not tracked, as the service prints them."""
        return np.where(self.seen[:, np.newaxis], values, 0.0)


def wrist_and_palm(estimate: Estimate, times_ns: Int64) -> dict[str, Any]:
    """Return the columns of ``wrist_and_palm_poses.csv``."""
    times_us = times_ns // NS_PER_US
    hands = _hands(estimate, times_us * NS_PER_US)
    columns: dict[str, Any] = {"tracking_timestamp_us": times_us}
    for side, hand in hands.items():
        columns[f"{side}_tracking_confidence"] = hand.confidence
        columns |= columns_of(f"t{{}}_{side}_wrist_device", hand.told(hand.wrist_m), 6)
        columns |= columns_of(f"t{{}}_{side}_palm_device", hand.told(hand.palm_m), 6)
    return columns | _normals(hands)


def hand_results(estimate: Estimate, times_ns: Int64) -> dict[str, Any]:
    """Return the columns of ``hand_tracking_results.csv``."""
    times_us = times_ns // NS_PER_US
    hands = _hands(estimate, times_us * NS_PER_US)
    columns: dict[str, Any] = {"tracking_timestamp_us": times_us}
    for side, hand in hands.items():
        columns[f"{side}_tracking_confidence"] = hand.confidence
        for k, place in enumerate(_landmarks(hand, THUMB[side])):
            columns |= columns_of(f"t{{}}_{side}_landmark_{k}_device", hand.told(place), 6)
    for side, hand in hands.items():
        columns |= columns_of(f"t{{}}_{side}_device_wrist", hand.told(hand.wrist_m), 6)
        columns |= columns_of(f"q{{}}_{side}_device_wrist", _quat_wxyz(hand), 6)
    return columns | _normals(hands)


def _landmarks(hand: _Hand, thumb: float) -> Float64:
    """Return ``(21, N, 3)``; the palm is where it is, the rest follows the hand's shape."""
    layout = LAYOUT * (thumb, 1.0, 1.0)
    places = hand.wrist_m + np.einsum("nij,kj->kni", hand.rotation, layout)
    places[PALM] = hand.palm_m
    return np.asarray(places, np.float64)


def _quat_wxyz(hand: _Hand) -> Float64:
    from scipy.spatial.transform import Rotation

    xyzw = Rotation.from_matrix(hand.rotation).as_quat(canonical=True)
    quat = np.roll(xyzw, 1, axis=1)
    return np.where(hand.seen[:, np.newaxis], quat, (1.0, 0.0, 0.0, 0.0))


def _normals(hands: dict[str, _Hand]) -> dict[str, Any]:
    return {
        name: values
        for side, hand in hands.items()
        for part in ("palm", "wrist")
        for name, values in columns_of(f"n{{}}_{side}_{part}_device", hand.normal, 6).items()
    }


def _hands(estimate: Estimate, device_ns: Int64) -> dict[str, _Hand]:
    session_ns = estimate.session_ns(device_ns)
    places = estimate.wearer.hands_m(session_ns)
    head = estimate.wearer.head.pose(session_ns)
    device = estimate.true_pose(device_ns)
    rng = estimate.glasses.random("mps hands")
    return {side: _hand(places[:, k], head, device, rng) for k, side in enumerate(SIDES)}


def _hand(places: Float64, head: Float64, device: Float64, rng: np.random.Generator) -> _Hand:
    count = len(places)
    noisy = places + NOISE_M * rng.standard_normal((count, 1, 3))
    local = np.einsum("nji,npj->npi", device[:, :3, :3], noisy - device[:, np.newaxis, :3, 3])
    down = -device[:, 2, :3]  # the palm faces down: world's -z seen from the device
    ahead = np.einsum("nji,nj->ni", head[:, :3, :3], places[:, 1] - head[:, :3, 3])
    far = np.linalg.norm(ahead, axis=1)
    seen = (far < SEEN_M) & (ahead[:, 2] > far * np.cos(SEEN_RAD))
    confidence = np.where(seen, np.round(1.0 - rng.beta(1.0, 25.0, count), 6), -1.0)
    return _Hand(local[:, 0], _frame(local, down), local[:, 1], seen, confidence)


def _frame(local: Float64, down: Float64) -> Float64:
    """Return rotations ``T_device_wrist``: across, along the hand, out of the palm."""
    along = local[:, 1] - local[:, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    helper = down + 0.05 * np.roll(along, 1, axis=1)  # a hanging arm points down itself
    out = helper - np.einsum("ni,ni->n", helper, along)[:, np.newaxis] * along
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return np.stack([np.cross(along, out), along, out], axis=2)
