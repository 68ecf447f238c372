"""Pictures: what is drawn lies where the truth says, and the sensor does as told."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from synorama.simulate.scene.cameras import (
    Camera,
    Fisheye624,
    KannalaBrandt,
    Pinhole,
    project_moving,
)
from synorama.simulate.scene.eyes import EYE_CENTRES_CPF_M, EyeView
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import DEVICE_CPF, Wearer, plan_motion
from synorama.simulate.scene.render import Film, Studio
from synorama.simulate.scene.room import Room
from synorama.simulate.scene.trajectory import Track, Trajectory
from tests.simulate.test_cameras import ARIA

START_NS = 5_000_000_000_000
S = 1_000_000_000
PLAIN = Film(vignetting=0.0, read_noise=0.0, shot_noise=0.0, gain=0.6)

Set = tuple[Room, tuple[Wearer, Wearer], Studio]


@pytest.fixture(scope="module")
def stage() -> Set:
    room = build_room(3, "kitchen")
    people = plan_motion(room, 2, start_ns=START_NS, seconds=20.0)
    return room, people, Studio(room, people)


@pytest.fixture(scope="module")
def bare(stage: Set) -> Studio:
    """The same room with nobody in it."""
    return Studio(stage[0])


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _looking(eye: np.ndarray, at: np.ndarray, roll: float = 0.0) -> np.ndarray:
    """Return ``T_world_camera`` of a camera at a place that looks at another."""
    ahead = (at - eye) / np.linalg.norm(at - eye)
    right = np.cross(ahead, (0, 0, 1.0))
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    cos, sin = np.cos(roll), np.sin(roll)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([cos * right + sin * down, cos * down - sin * right, ahead])
    pose[:3, 3] = eye
    return pose


def _before_the_board(room: Room, away_m: float, aside_m: float, roll: float) -> np.ndarray:
    corners = room.checker_corners_m
    middle = corners.mean(axis=0)
    normal = room["checkerboard-1"].session.rotation[:, 1]
    along = room["checkerboard-1"].session.rotation[:, 0]
    return _looking(middle + away_m * normal + aside_m * along + (0, 0, 0.1), middle, roll)


def _corner_errors_px(
    camera: Camera, pose: np.ndarray, picture: np.ndarray, room: Room
) -> np.ndarray:
    grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    local = (room.checker_corners_m - pose[:3, 3]) @ pose[:3, :3]
    truth, seen = camera.lens.project(local)
    assert seen.all()
    start = truth.astype(np.float32)[:, np.newaxis].copy()
    found = cv2.cornerSubPix(grey, start, (4, 4), (-1, -1), (3, 50, 1e-4))
    errors: np.ndarray = np.linalg.norm(found[:, 0] - truth, axis=1)
    return errors


GOPRO_LENS = KannalaBrandt((330.0, 330.0), (319.5, 239.5), (0.03, -0.01, 0.002, -0.001))
WEBCAM_LENS = Pinhole((500.0, 500.0), (319.5, 239.5), (-0.1, 0.02, 0.001, -0.001, 0.0))
CAMERAS = [
    Camera("rgb", Fisheye624.of(ARIA).scaled(480 / 2880), 480, 480),
    Camera("slam", Fisheye624.of(ARIA).scaled(480 / 2880), 480, 480, colour=False),
    Camera("gopro", GOPRO_LENS, 640, 480),
    Camera("webcam", WEBCAM_LENS, 640, 480),
]


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.name)
@pytest.mark.parametrize(
    ("away_m", "aside_m", "roll"), [(0.8, 0.0, 0.0), (0.9, 0.35, 1.4), (1.0, -0.4, -0.3)]
)
def test_corners_lie_where_the_truth_says(
    stage: Set, bare: Studio, camera: Camera, away_m: float, aside_m: float, roll: float
) -> None:
    room, _, _ = stage
    pose = _before_the_board(room, away_m, aside_m, roll)
    picture = bare.fixed(camera, pose, START_NS, PLAIN, _rng())
    errors = _corner_errors_px(camera, pose, picture, room)
    assert np.median(errors) < 0.25
    assert errors.max() < 0.5
    smooth = bare.fixed(camera, pose, START_NS, replace(PLAIN, subframes=4), _rng())
    finer = _corner_errors_px(camera, pose, smooth, room)
    assert np.median(finer) < 0.1


def test_worn_camera_agrees_with_the_trajectory(stage: Set, bare: Studio) -> None:
    """A worn camera at one time and a fixed one at the same pose draw the same room."""
    _, people, studio = stage
    device_camera = np.eye(4)
    device_camera[:3, 3] = (0.01, 0.02, 0.03)
    camera = Camera("x", CAMERAS[0].lens.scaled(0.35), 168, 168, device_camera)
    t_ns = START_NS + 3 * S
    worn = studio.worn(camera, "leader", t_ns, PLAIN, _rng()).astype(int)
    pose = people[0].device.attached(device_camera).pose(t_ns)[0]
    fixed = bare.fixed(camera, pose, t_ns, PLAIN, _rng()).astype(int)
    assert (np.abs(worn - fixed).max(axis=2) < 3).mean() > 0.6


def test_rolling_shutter_draws_each_row_at_its_time(stage: Set) -> None:
    _, people, studio = stage
    lens = CAMERAS[1].lens.scaled(0.2)
    still = Camera("s", lens, 96, 96, colour=False)
    rolling = Camera("r", lens, 96, 96, colour=False, readout_s=0.2)
    turning = np.linalg.norm(
        people[0].head(START_NS + np.arange(20) * S).angular_velocity_rad_s, axis=1
    )
    t_ns = START_NS + int(turning.argmax()) * S
    picture = studio.worn(rolling, "leader", t_ns, PLAIN, _rng())
    for row in (10, 48, 85):
        at_ns = t_ns + round(float(rolling.row_delay_s(row)) * S)
        there = studio.worn(still, "leader", at_ns, PLAIN, _rng())
        agree = np.abs(picture[row].astype(int) - there[row])
        assert np.median(agree) <= 1
        if row != 48:
            wrong = studio.worn(still, "leader", t_ns, PLAIN, _rng())
            assert np.abs(picture[row].astype(int) - wrong[row]).mean() > 3 * agree.mean()


def test_corners_of_a_turning_head_lie_where_rows_were_exposed(stage: Set) -> None:
    """A head that turns by 1.2 rad/s past the board, pictures read out in 50 ms."""
    room, people, _ = stage
    at = _before_the_board(room, 0.9, 0.1, 0.0)
    yaw = float(np.arctan2(at[1, 2], at[0, 2]))
    turn = yaw + 0.3 * np.sin(4.0 * (np.arange(151) - 75) * 0.02)
    still = np.tile([*at[:3, 3], 0.0, 0.05, 0.1], (151, 1))
    still[:, 3] = turn
    head = Trajectory(Track.through(START_NS, 0.02, -1.5, still), np.eye(4))
    studio = Studio(room, (replace(people[0], head=head),))
    camera = replace(CAMERAS[1], readout_s=0.05, device_camera=DEVICE_CPF @ _flipped())
    film = replace(PLAIN, subframes=4, exposure_s=0.0)
    grey = studio.worn(camera, "leader", START_NS, film, _rng())
    pose_at = head.attached(_flipped()).pose
    truth, seen = project_moving(camera, pose_at, START_NS, room.checker_corners_m)
    frozen, _ = project_moving(CAMERAS[1], pose_at, START_NS, room.checker_corners_m)
    assert seen.all()
    start = truth.astype(np.float32)[:, np.newaxis].copy()
    found = cv2.cornerSubPix(grey, start, (4, 4), (-1, -1), (3, 50, 1e-4))[:, 0]
    assert np.linalg.norm(found - truth, axis=1).max() < 0.5
    assert np.linalg.norm(found - frozen, axis=1).max() > 1.2


def test_motion_blur_is_the_mean_over_the_exposure(stage: Set) -> None:
    _, people, studio = stage
    camera = Camera("s", CAMERAS[1].lens.scaled(0.2), 96, 96, colour=False)
    still, blurred = (replace(PLAIN, subframes=8, exposure_s=length_s) for length_s in (0.0, 0.15))
    turning = people[0].head(START_NS + np.arange(20) * S).angular_velocity_rad_s
    t_ns = START_NS + int(np.linalg.norm(turning, axis=1).argmax()) * S
    sharp, soft = (studio.worn(camera, "leader", t_ns, film, _rng()) for film in (still, blurred))
    inner = np.s_[24:72, 24:72]
    detail = [float(cv2.Laplacian(p[inner], cv2.CV_64F).std()) for p in (sharp, soft)]
    assert detail[1] < 0.8 * detail[0]


def test_people_are_drawn_when_the_rows_of_a_standing_camera_are_exposed(stage: Set) -> None:
    """Each eighth of a picture shows people as a global shutter would at that moment."""
    _, people, studio = stage
    still = Camera("s", CAMERAS[3].lens.scaled(0.2), 128, 96)
    rolling = replace(still, name="r", readout_s=0.8)
    seconds = START_NS + np.arange(2, 18) * S
    speed = np.linalg.norm(people[1].head(seconds).velocity_m_s, axis=1)
    t_ns = int(seconds[speed.argmax()])
    head = people[1].head.pose(t_ns)[0]
    pose = _looking(head[:3, 3] + (1.5, 0.4, 0.3), head[:3, 3] - (0, 0, 0.4))
    picture = studio.fixed(rolling, pose, t_ns, PLAIN, _rng()).astype(int)
    differ = 0
    for band in range(8):
        rows = slice(12 * band, 12 * band + 12)
        at_ns = t_ns + round(float(rolling.row_delay_s(12 * band + 5.5)) * S)
        assert np.array_equal(picture[rows], studio.fixed(still, pose, at_ns, PLAIN, _rng())[rows])
        frozen = studio.fixed(still, pose, t_ns, PLAIN, _rng())[rows]
        differ += not np.array_equal(picture[rows], frozen)
    assert differ >= 3


def test_blur_is_drawn_while_the_head_turns_and_only_then(stage: Set) -> None:
    _, people, studio = stage
    camera = Camera("s", CAMERAS[1].lens.scaled(0.2), 96, 96, colour=False)
    seconds = START_NS + np.arange(20) * S
    turning = np.linalg.norm(people[0].head(seconds).angular_velocity_rad_s, axis=1)
    film = replace(PLAIN, exposure_s=0.1)
    quickly, slowly = (int(seconds[k]) for k in (turning.argmax(), turning.argmin()))
    limit_px = 0.1 * float(turning.mean()) / camera.rays.pixel_rad
    for t_ns, subframes in ((quickly, 2), (slowly, 1)):
        asked, drawn = replace(film, blur_px=limit_px), replace(film, subframes=subframes)
        if subframes > 1 and turning.max() > 2 * turning.mean():
            drawn = replace(film, subframes=4)
        one, other = (studio.worn(camera, "leader", t_ns, f, _rng()) for f in (asked, drawn))
        assert np.array_equal(one, other)


def test_noise_vignetting_and_gain(stage: Set, bare: Studio) -> None:
    room, _, _ = stage
    camera = Camera("w", CAMERAS[3].lens.scaled(0.2), 128, 96)
    pose = _before_the_board(room, 1.4, 0.0, 0.0)

    def taken(seed: int, **how: float) -> np.ndarray:
        plain = {"gain": 0.6, "vignetting": 0.0, "read_noise": 0.0, "shot_noise": 0.0}
        film = Film(**{**plain, **how})  # type: ignore[arg-type]
        return bare.fixed(camera, pose, 0, film, np.random.default_rng(seed)).astype(float)

    clean = taken(1)
    assert np.array_equal(clean, taken(2))
    assert np.array_equal(taken(1, read_noise=0.01), taken(1, read_noise=0.01))
    noise = taken(1, read_noise=0.01) - taken(2, read_noise=0.01)
    assert 0.5 < noise.std() < 15
    dimmed = taken(1, vignetting=0.5)
    assert dimmed[0, 0].mean() < 0.85 * clean[0, 0].mean()
    assert dimmed[48, 64].mean() == pytest.approx(clean[48, 64].mean(), abs=2)
    assert taken(1, gain=0.3).mean() < 0.8 * clean.mean()


def test_large_pictures_have_fresh_noise_each(stage: Set, bare: Studio) -> None:
    camera = Camera("big", WEBCAM_LENS.scaled(1.1), 704, 528)
    pose = _before_the_board(stage[0], 1.4, 0.0, 0.0)
    rng, film = _rng(), replace(PLAIN, read_noise=0.01)
    first, second = (bare.fixed(camera, pose, 0, film, rng).astype(int) for _ in range(2))
    assert (first != second).mean() > 0.5


def test_the_other_is_seen(stage: Set, bare: Studio) -> None:
    _, people, studio = stage
    t_ns = START_NS + 6 * S
    head = people[1].head.pose(t_ns)[0]
    place = head[:3, 3] + 1.3 * head[:3, 2]
    camera = Camera("w", CAMERAS[3].lens.scaled(0.2), 128, 96)
    pose = _looking(place, head[:3, 3])
    with_people = studio.fixed(camera, pose, t_ns, PLAIN, _rng()).astype(int)
    without = bare.fixed(camera, pose, t_ns, PLAIN, _rng())
    differs = np.abs(with_people - without).max(axis=2) > 8
    assert differs[44:52, 60:68].mean() > 0.7
    assert differs.mean() < 0.8


def test_own_hands_are_seen_at_work(stage: Set) -> None:
    """Somewhere in 20 s the wearer's hands or arms stand before the room."""
    room, people, studio = stage
    camera = Camera("x", CAMERAS[0].lens.scaled(0.15), 72, 72, DEVICE_CPF @ _flipped())
    alone = Studio(room, people[1:])
    shares = []
    for second in range(0, 20, 2):
        t_ns = START_NS + second * S
        pose = people[0].device.attached(camera.device_camera).pose(t_ns)[0]
        worn = studio.worn(camera, "leader", t_ns, PLAIN, _rng()).astype(int)
        bare = alone.fixed(camera, pose, t_ns, PLAIN, _rng())
        shares.append(float((np.abs(worn - bare).max(axis=2)[camera.rays.visible] > 8).mean()))
    assert max(shares) > 0.02
    assert min(shares) < 0.4


def _flipped() -> np.ndarray:
    """Return a camera upright in the pupil frame (x left, y up): x right, y down."""
    return np.diag([-1.0, -1.0, 1.0, 1.0])


def test_a_figure_stands_where_its_head_is(stage: Set) -> None:
    """Glasses and eyes of the figure are drawn about the pose of the pupils."""
    _, people, studio = stage
    from synorama.simulate.scene.render import posture_of

    t_ns = START_NS + 9 * S
    surface = studio.figures["helper"].surface(posture_of(people[1], t_ns))
    head = people[1].head.pose(t_ns)[0]
    before = head[:3, 3] + 0.2 * head[:3, 2]
    origin = np.tile((before + 0.034 * head[:3, 0]).astype(np.float32), (1, 1))
    hits = surface.cast(origin, (-head[:3, 2]).astype(np.float32)[np.newaxis])
    assert hits.distance_m[0] == pytest.approx(0.2 - 0.015, abs=0.01)


def test_pictures_have_features_and_contrast_takes_them_away() -> None:
    camera = Camera("rgb", CAMERAS[0].lens.scaled(0.75), 360, 360, colour=False)
    counts = []
    for contrast in (1.0, 0.15):
        room = build_room(3, "kitchen", contrast=contrast)
        pose = _looking(np.array([-0.5, -1.0, 1.6]), np.array([0.5, 2.0, 1.0]))
        picture = Studio(room).fixed(camera, pose, 0, Film(), _rng())
        counts.append(len(cv2.SIFT.create().detect(picture)))
    assert counts[0] > 300
    assert counts[1] < 0.7 * counts[0]


def test_same_pictures_from_the_same_seed(stage: Set) -> None:
    room, people, studio = stage
    camera = Camera("x", CAMERAS[0].lens.scaled(0.2), 96, 96)
    again = Studio(room, people)
    first, second = (
        s.worn(camera, "helper", START_NS + S, Film(), _rng()) for s in (studio, again)
    )
    assert np.array_equal(first, second)


def test_eye_camera_draws_the_pupil_where_gaze_points() -> None:
    eye = EYE_CENTRES_CPF_M["left"]
    pose = _looking(np.add(eye, (0.004, -0.006, 0.035)), eye)
    camera = Camera(
        "et", KannalaBrandt((280.0, 280.0), (159.5, 119.5), (0, 0, 0, 0)), 320, 240, pose, False
    )
    view = EyeView(camera, "left")
    for gaze in ((0.0, 0.0, 1.0), (0.25, 0.0, 1.0), (-0.2, -0.2, 1.0)):
        direction = np.array(gaze) / np.linalg.norm(gaze)
        picture = view.picture(direction, _rng())
        dark = np.argwhere(picture < 40)[:, ::-1]
        local = (eye + 0.0118 * direction - pose[:3, 3]) @ pose[:3, :3]
        pupil, _ = camera.lens.project(local)
        assert np.linalg.norm(dark.mean(axis=0) - pupil) < 3.0
    shut = view.picture(np.array([0.0, 0.0, 1.0]), _rng(), closed=1.0)
    assert (shut < 40).sum() < 0.2 * len(dark)
