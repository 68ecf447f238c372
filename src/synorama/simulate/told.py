"""What the truth tells of recordings in a room: when sound arrived, and where cameras were."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.clocks import SLACK_NS
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.lab import Device, Lab
from synorama.simulate.scene.cameras import Camera
from synorama.simulate.scene.motion import Wearer
from synorama.simulate.stage import RoomStage
from synorama.simulate.truth import RecordingTruth, TrackTruth
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Tables = dict[str, NDArray[Any]]

__all__ = ["ALL_SOUND", "everywhere", "heard_in_room", "tables_of"]

ALL_SOUND = "all"
KNOT_NS = NS_PER_S // 4  # between knots of arrival in truth.json: sound is then 0.1 ms right
TABLE_NS = NS_PER_S // 20  # between rows of the tables


def everywhere(recording: RecordingTruth) -> RecordingTruth:
    """Return the truth where sound takes no time to arrive."""
    return replace(recording, acoustic={ALL_SOUND: recording.clock.knots})


def heard_in_room(
    recording: RecordingTruth, lab: Lab, stage: RoomStage, place: str
) -> RecordingTruth:
    """Return the truth with arrival at the first microphone, and with the cameras."""
    listener = stage.listener(recording.name, place)
    emitted = _grid(lab, KNOT_NS)
    arrived = {mouth: listener.arrival_ns(mouth, emitted)[:, 0] for mouth in stage.mouths}
    device_session = recording.clock.inverse()
    knots = {m: np.column_stack([device_session(t), emitted]) for m, t in arrived.items()}
    device = lab.devices[recording.name]
    return replace(recording, acoustic=knots, cameras=_cameras(lab, stage, device, place))


def _grid(lab: Lab, step_ns: int) -> Int64:
    """Return session times of the whole session, with both ends."""
    count = max(-(-(lab.end_ns - lab.start_ns) // step_ns), 1)
    return lab.start_ns + np.arange(count + 1) * step_ns


def _cameras(lab: Lab, stage: RoomStage, device: Device, place: str) -> dict[str, Any]:
    cameras = stage.cameras(device, place)
    if isinstance(device, Glasses):
        return {
            c.name: {label: _camera(cameras[label]) for label in c.labels}
            for c in lab.asked.pictures
        }
    told = _camera(cameras["video"])
    del told["T_device_camera"]
    return {"video": {place: told | {"T_world_camera": stage.stands[place].tolist()}}}


def _camera(camera: Camera) -> dict[str, Any]:
    return {
        "model": type(camera.lens).__name__,
        "parameters": asdict(camera.lens),  # type: ignore[call-overload]
        "width": camera.width,
        "height": camera.height,
        "readout_s": camera.readout_s,
        "time_refers_to": "middle of the exposure of the middle row",
        "T_device_camera": camera.device_camera.tolist(),
    }


# --- tables ----------------------------------------------------------------------------------


def tables_of(lab: Lab, stage: RoomStage, recordings: tuple[RecordingTruth, ...]) -> Tables:
    """Return all that is true from moment to moment, by name."""
    t_ns = np.arange(lab.start_ns - SLACK_NS, lab.end_ns + SLACK_NS, TABLE_NS)
    tables: Tables = {}
    for name, wearer in stage.wearers.items():
        tables |= _wearer_tables(f"wearers/{name}", wearer, t_ns)
    for recording in recordings:
        if recording.name not in lab.elsewhere:
            tables |= _arrivals(lab, stage, recording)
            tables |= _frames(lab, stage, recording)
    return tables


def _wearer_tables(prefix: str, wearer: Wearer, t_ns: Int64) -> Tables:
    gaze, depth_m = wearer.gaze(t_ns)
    return {
        f"{prefix}/t_session_ns": t_ns,
        f"{prefix}/T_world_device": wearer.device.pose(t_ns),
        f"{prefix}/T_world_cpf": wearer.head.pose(t_ns),
        f"{prefix}/gaze_cpf": gaze,
        f"{prefix}/gaze_depth_m": depth_m,
        f"{prefix}/hands_world_m": wearer.hands_m(t_ns),
    }


def _arrivals(lab: Lab, stage: RoomStage, recording: RecordingTruth) -> Tables:
    place = lab.stand.get(recording.name, recording.name)
    listener = stage.listener(recording.name, place)
    emitted, device_session = _grid(lab, TABLE_NS), recording.clock.inverse()
    tables: Tables = {"acoustic/t_session_emitted_ns": emitted}
    for mouth in stage.mouths:
        arrived = listener.arrival_ns(mouth, emitted)
        key = f"acoustic/{recording.name}/{mouth}/t_device_arrived_ns"
        tables[key] = device_session(arrived.ravel()).reshape(arrived.shape)
    return tables


def _frames(lab: Lab, stage: RoomStage, recording: RecordingTruth) -> Tables:
    """Return the time of every picture, and the pose of its camera where that moves."""
    tables: Tables = {}
    device = lab.devices[recording.name]
    cameras = stage.cameras(device, lab.stand.get(recording.name, recording.name))
    for track, told in recording.tracks.items():
        views = recording.cameras.get(track)
        if not views or told.times_ns is None:
            continue
        prefix = f"frames/{recording.name}/{track}"
        tables |= _times(prefix, recording, told)
        if isinstance(device, Glasses):
            mount = stage.wearers[recording.name].device
            for label in views:
                pose = mount.attached(cameras[label].device_camera).pose
                session_ns = tables[f"{prefix}/t_session_ns"]
                tables[f"{prefix}/{label}/T_world_camera"] = pose(session_ns)
    return tables


def _times(prefix: str, recording: RecordingTruth, track: TrackTruth) -> Tables:
    assert track.times_ns is not None  # asked by the caller
    session_ns = recording.clock.apply(track.times_ns)
    return {f"{prefix}/t_device_ns": track.times_ns, f"{prefix}/t_session_ns": session_ns}
