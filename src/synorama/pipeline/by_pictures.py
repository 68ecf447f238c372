"""Scans and cameras placed by pictures: frames of the glasses and of cameras, chosen and posed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import SynoramaError
from synorama.geometry.cameras import CameraPictures, LocatedCamera, locate_camera, usual_lens
from synorama.geometry.landmarks import LandmarkView, from_cloud, from_motion, moved
from synorama.geometry.lenses import Lens, lens_of_aria
from synorama.geometry.localize import Localization, locate_scan
from synorama.geometry.views import PosedPicture, spread_frames
from synorama.media.video import VideoDecoder
from synorama.records import (
    CameraPose,
    PointCloud,
    Recording,
    RegistrationResult,
    SampleTrack,
    VideoTrack,
)
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.capture.config import Rig

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "agreed",
    "camera_pictures",
    "glasses_frames",
    "improved",
    "known_lenses",
    "place_cameras",
    "read_scan_pictures",
]

TRAJECTORY, CALIBRATION = "closed_loop_trajectory", "online_calibration"
PICTURES = ("rgb", "camera-rgb")  # track, and label of its calibration
FRAMES = 20
CAMERA_FRAMES = 5
POSE_GAP_NS = 5_000_000
TURN_OVER_NS = 20_000_000
SAME_DEG, SAME_M = 1.5, 0.06  # two ways of registration agree, each being as sure as that


def glasses_frames(recording: Recording, count: int = FRAMES) -> list[PosedPicture]:
    """Return calm frames from all over a wearer's recording, posed in the services' world.

    Parameters
    ----------
    recording
        Glasses with MPS output.
    count
        How many at most; none where pictures, trajectory or calibration are missing.
    """
    track, poses = recording.tracks.get(PICTURES[0]), recording.tracks.get(TRAJECTORY)
    if not isinstance(track, VideoTrack) or not isinstance(poses, SampleTrack) or not track.count:
        return []
    camera = _calibrated(recording, PICTURES[1])
    if camera is None:
        return []
    number, places, turning = _posed(track, poses, _mount(camera))
    if not len(number):
        return []
    lens = lens_of_aria(camera, (track.width, track.height))
    chosen = spread_frames(places, turning, count)
    with VideoDecoder([f.path for f in recording.files], track) as decoder:
        return [
            PosedPicture(
                f"{recording.id}/{number[k]}", decoder.frame(int(number[k])), lens, places[k]
            )
            for k in chosen
        ]


def _calibrated(recording: Recording, label: str) -> Mapping[str, Any] | None:
    """Return a camera's calibration: that of the services, else that of the factory."""
    texts: list[str | bytes] = []
    track = recording.tracks.get(CALIBRATION)
    if isinstance(track, SampleTrack) and track.count:
        rows = track.read().extra["json"]
        texts.append(bytes(rows[len(rows) // 2]))
    if recording.calibration:
        texts.append(recording.calibration)
    for text in texts:
        cameras = json.loads(text).get("CameraCalibrations", [])
        found = next((c for c in cameras if c.get("Label") == label), None)
        if found is not None:
            return dict(found)
    return None


def _mount(camera: Mapping[str, Any]) -> Float64:
    """Return ``T_device_camera`` of a calibration's entry."""
    place = camera["T_Device_Camera"]
    w, xyz = place["UnitQuaternion"]
    pose = RigidTransform.from_quat_wxyz("device", "camera", (w, *xyz), place["Translation"])
    return np.array(pose.matrix)


def _posed(track: VideoTrack, poses: SampleTrack, mount: Float64) -> tuple[Int64, Float64, Float64]:
    """Return frames whose pose is known, their poses ``(N, 4, 4)`` and turning [rad/s]."""
    rows = poses.read()
    names = [column.name for column in poses.columns]
    values = rows.values[:, [names.index(n) for n in ("tx", "ty", "tz", "qx", "qy", "qz", "qw")]]
    at = np.clip(np.searchsorted(rows.times_ns, track.times_ns), 0, len(rows.times_ns) - 1)
    known = np.abs(rows.times_ns[at] - track.times_ns) <= POSE_GAP_NS
    known &= np.isfinite(values[at]).all(axis=1)
    number = np.flatnonzero(known)
    device = _matrices(values[at[number]])
    later = np.searchsorted(rows.times_ns, rows.times_ns[at[number]] + TURN_OVER_NS)
    later = np.clip(later, 0, len(rows.times_ns) - 1)
    then = _matrices(values[later])
    cosine = (np.einsum("nij,nij->n", device[:, :3, :3], then[:, :3, :3]) - 1) / 2
    turning = np.arccos(np.clip(cosine, -1, 1)) / (TURN_OVER_NS / 1e9)
    return number, device @ mount, turning


def _matrices(values: NDArray[np.floating[Any]]) -> Float64:
    from scipy.spatial.transform import Rotation

    whole = np.tile(np.eye(4), (len(values), 1, 1))
    if len(values):
        whole[:, :3, :3] = Rotation.from_quat(values[:, 3:]).as_matrix()
        whole[:, :3, 3] = values[:, :3]
    return whole


# --- two ways of one registration ------------------------------------------------------------


def agreed(geometry: RegistrationResult, pictures: Localization) -> RegistrationResult:
    """Return one result of two ways: by the shape of the room, and by pictures of it.

    Where both say where the scan lies and agree, either makes up for the other's doubt. Where
    both are accepted and disagree, both are shown and neither is given out.

    Parameters
    ----------
    geometry
        By the clouds' shapes.
    pictures
        By the glasses' frames.
    """
    seen = pictures.result
    if seen.T_target_source is None:
        return geometry
    if geometry.T_target_source is None:
        return seen
    deg, metres = _between(geometry.T_target_source, seen.T_target_source)
    if deg <= SAME_DEG and metres <= SAME_M:
        reason = f"shape and pictures agree to {deg:.2f} deg and {100 * metres:.1f} cm; "
        return _with(geometry, "accepted", reason + seen.reason)
    if seen.status == "accepted" and geometry.status != "accepted":
        return seen
    if seen.status != "accepted":
        return geometry
    words = f"shape and pictures disagree by {deg:.1f} deg and {100 * metres:.0f} cm: "
    both = f"{words}shape: {geometry.reason}; pictures: {seen.reason}"
    return RegistrationResult("refused", both, method="shape and pictures")


def _between(one: RigidTransform, two: RigidTransform) -> tuple[float, float]:
    """Return degrees and metres between two places of a scan, at the scan seen from the world."""
    turn = one.rotation.T @ two.rotation
    deg = float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))))
    middle = -one.rotation.T @ one.translation_m  # the world's origin lies in the room
    gap = (one.rotation - two.rotation) @ middle + one.translation_m - two.translation_m
    return deg, float(np.linalg.norm(gap))


def _with(result: RegistrationResult, status: Any, reason: str) -> RegistrationResult:
    return replace(result, status=status, reason=reason, method="shape and pictures")


def improved(
    recordings: Sequence[Recording],
    world: str,
    scans: Mapping[str, tuple[Path, PointCloud]],
    results: Mapping[str, RegistrationResult],
    lenses: Mapping[str, Lens] | None = None,
) -> tuple[dict[str, RegistrationResult], dict[str, CameraPose], list[str]]:
    """Return scans whose place pictures confirm, refuse or give, and the cameras of the room.

    Parameters
    ----------
    recordings
        Of the session.
    world
        Id of the glasses whose world frame is the session's.
    scans
        File and points of each scan.
    results
        Where each lies by its shape.
    lenses
        Calibrated lenses by serial number.

    Returns
    -------
    Results by scan, poses of cameras by recording, and words for the operator.
    """
    wearer = next(r for r in recordings if r.id == world)
    frames = glasses_frames(wearer)
    placed, views, notes = dict(results), {}, list[str]()
    for name, (path, cloud) in scans.items():
        pictures, left_out = read_scan_pictures(path)
        notes += left_out
        if not pictures or not frames:
            continue
        views[name] = from_cloud(pictures, cloud.points_m)
        found = locate_scan(frames, views[name], world="world", scan=name)
        placed[name] = agreed(results[name], found)
    cameras = [r for r in recordings if r.device != "aria"]
    sure = [(views[name], placed[name]) for name in views]
    located = place_cameras(cameras, frames, sure, lenses)
    return placed, {name: one.pose for name, one in located.items()}, notes


def known_lenses(rig: Rig) -> dict[str, Lens]:
    """Return the lenses by serial number that a lab has measured."""
    found = {}
    for device in rig.devices:
        if (told := device.intrinsics) is not None:
            found[device.serial] = Lens(told.model, told.width, told.height, np.array(told.params))
    return found


# --- cameras of the room ---------------------------------------------------------------------


def camera_pictures(
    recording: Recording, known: Lens | None = None, count: int = CAMERA_FRAMES
) -> CameraPictures | None:
    """Return pictures from all over a camera's recording, with its lens.

    Parameters
    ----------
    recording
        A GoPro or a webcam.
    known
        Its calibrated lens, for pictures of any size of the same shape.
    count
        How many pictures.
    """
    track = max(recording.videos, key=lambda t: t.width * t.height, default=None)
    if track is None or not track.count:
        return None
    numbers = np.unique(np.linspace(0, track.count - 1, count + 2)[1:-1].astype(np.int64))
    with VideoDecoder([f.path for f in recording.files], track) as decoder:
        pictures = [decoder.frame(int(k)) for k in numbers]
    fits = known is not None and known.width * track.height == known.height * track.width
    if known is not None and fits:
        lens = known.resized(track.width / known.width)
    else:
        lens = usual_lens(recording.device, track.width, track.height)
    times = track.times_ns[numbers]
    return CameraPictures(recording.id, times, pictures, lens, fits, recording.device)


def place_cameras(
    cameras: Sequence[Recording],
    frames: Sequence[PosedPicture],
    scans: Sequence[tuple[Sequence[LandmarkView], RegistrationResult]] = (),
    lenses: Mapping[str, Lens] | None = None,
) -> dict[str, LocatedCamera]:
    """Return where cameras stood in the world of the glasses, by recording.

    Parameters
    ----------
    cameras
        Recordings of GoPros and webcams.
    frames
        Of the glasses, from `glasses_frames`.
    scans
        Landmarks of each scan, in its frame, and where it lies; only accepted ones are used.
    lenses
        Calibrated lenses by serial number.
    """
    landmarks = [*from_motion(frames)]
    for views, result in scans:
        if result.status == "accepted" and result.T_target_source is not None:
            landmarks += moved(views, result.T_target_source.matrix)
    return {r.id: _placed(r, landmarks, (lenses or {}).get(r.serial)) for r in cameras}


def _placed(
    recording: Recording, landmarks: Sequence[LandmarkView], lens: Lens | None
) -> LocatedCamera:
    try:
        pictures = camera_pictures(recording, lens)
    except SynoramaError as error:  # one camera that does not decode stops no session
        return _unplaced(recording, f"its pictures do not decode: {error.message}")
    if pictures is None:
        return _unplaced(recording, "it has no pictures")
    return locate_camera(pictures, landmarks)


def _unplaced(recording: Recording, reason: str) -> LocatedCamera:
    pose = CameraPose(recording.id, "refused", reason)
    return LocatedCamera(pose, usual_lens(recording.device, 1920, 1080))


def read_scan_pictures(path: Path) -> tuple[list[PosedPicture], list[str]]:
    """Return the posed pictures of a scan file, and words on those that are not used."""
    from synorama.geometry.cloud import open_cloud
    from synorama.geometry.scan_pictures import posed_pictures

    return posed_pictures(open_cloud(path).pictures)
