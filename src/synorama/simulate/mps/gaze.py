"""General eye gaze: yaw of each eye, common pitch and depth, with the error of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.mps.estimate import Estimate, Wander

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = ["eye_gaze"]

NS_PER_US = 1000
EYES_CPF_M = {"left": (0.0315, 0.0, 0.0), "right": (-0.0315, 0.0, 0.0)}  # as the service has them
BIAS_RAD = np.deg2rad(0.9)  # one sigma, an angle, of one wearer
SLOW_RAD, QUICK_RAD = np.deg2rad(0.6), np.deg2rad(0.35)  # one sigma an angle
VERGENCE_RAD = np.deg2rad(0.4)  # one sigma of the difference of the two eyes
INTERVAL_RAD = {"yaw": (0.026, 0.050), "pitch": (0.055, 0.086)}  # least and mean width
DEPTH_M = (0.1, 10.0)


def eye_gaze(estimate: Estimate, times_ns: Int64) -> dict[str, Any]:
    """Return the columns of ``general_eye_gaze.csv``."""
    times_us = times_ns // NS_PER_US
    rng = estimate.glasses.random("mps gaze")
    left, right, pitch = _angles(estimate, times_us * NS_PER_US, rng)
    half = {
        name: least / 2 + rng.gamma(2.0, (usual - least) / 4, len(times_us))
        for name, (least, usual) in INTERVAL_RAD.items()
    }
    angles = {"left_yaw": left, "right_yaw": right, "pitch": pitch}
    widths = {"left_yaw": half["yaw"], "right_yaw": half["yaw"], "pitch": half["pitch"]}
    return {
        "tracking_timestamp_us": times_us,
        **{f"{name}_rads_cpf": value for name, value in angles.items()},
        "depth_m": _depth_m(left, right),
        **{f"{name}_low_rads_cpf": angles[name] - widths[name] for name in angles},
        **{f"{name}_high_rads_cpf": angles[name] + widths[name] for name in angles},
        **{
            f"t{axis}_{side}_eye_cpf": np.full(len(times_us), place[k])
            for side, place in EYES_CPF_M.items()
            for k, axis in enumerate("xyz")
        },
        "session_uid": estimate.glasses.uuid("gaze"),
    }


def _angles(
    estimate: Estimate, device_ns: Int64, rng: np.random.Generator
) -> tuple[Float64, Float64, Float64]:
    """Return yaw of the left and of the right eye, and the pitch of both [rad]."""
    session_ns = estimate.session_ns(device_ns)
    direction, depth = estimate.wearer.gaze(session_ns)
    target = direction * np.maximum(depth, 0.15)[:, np.newaxis]
    seconds = (device_ns - estimate.glasses.start_ns) / 1e9
    error = rng.normal(0, BIAS_RAD, 2) + Wander.draw(rng, (SLOW_RAD, SLOW_RAD))(seconds)
    error += QUICK_RAD * rng.standard_normal(error.shape)
    apart = VERGENCE_RAD * rng.standard_normal(len(seconds)) / 2
    left, right = (
        np.arctan2(target[:, 0] - EYES_CPF_M[side][0], target[:, 2]) + error[:, 0]
        for side in ("left", "right")
    )
    pitch = np.arctan2(target[:, 1], target[:, 2]) + error[:, 1]
    return left - apart, right + apart, pitch


def _depth_m(left: Float64, right: Float64) -> Float64:
    """Return where the two rays meet, as far as the service tells."""
    base = EYES_CPF_M["left"][0] - EYES_CPF_M["right"][0]
    closing = np.maximum(np.tan(right) - np.tan(left), base / DEPTH_M[1])
    ahead = base / closing
    middle = (np.tan(left) + np.tan(right)) / 2
    return np.asarray(np.clip(ahead * np.hypot(1.0, middle), *DEPTH_M), np.float64)
