"""Reading by session time: the right frame, never a future one, linked and sealed alike."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import synorama
from synorama.errors import MediaMovedError, NotInSessionError
from synorama.session import Session, UnverifiedSessionWarning, open_session
from synorama.session.choose import Select
from tests.session.conftest import Made
from tests.session.factory import BLOCK, EPOCH, SECOND, SOUND_HZ, read_barcode, sound_values

VIEWS = ["leader/rgb", "aria-2/rgb", "gopro-1/video", "aria-1/eye"]


@pytest.fixture(params=["linked", "sealed"])
def session(made: Made, request: pytest.FixtureRequest) -> Session:
    return open_session(getattr(made, request.param), warn=False)


def true_times(made: Made, view: str) -> list[int]:
    """Return session times straight from the records, without the session file."""
    name, track = view.replace("leader", "aria-1").split("/")
    recording = next(r for r in made.recordings if r.id == name)
    device = recording.tracks[track].times_ns  # type: ignore[union-attr]
    return [made.result.clocks[name].maps[0].apply(int(t)) for t in device]


def number_of(view: str, index: int) -> int:
    """Return the barcode of a view's frame: the eye camera counts from one, chapters from zero."""
    return index + 1 if view.endswith("eye") else index % 45 if "gopro" in view else index


def brute(times: list[int], t: int, select: Select, tolerance: int) -> int | None:
    allowed = [(abs(x - t), x > t, -i) for i, x in enumerate(times)
               if (x <= t or select == "nearest") and abs(x - t) <= tolerance]  # fmt: skip
    return -min(allowed)[2] if allowed else None


@pytest.mark.parametrize("select", ["previous", "nearest"])
def test_clip_is_brute_force(made: Made, session: Session, select: Select) -> None:
    rng = random.Random(7)
    for _ in range(12):
        t = EPOCH + rng.randrange(-SECOND, 5 * SECOND)
        tolerance_s = rng.choice([0.0, 0.02, 0.3])
        clip = session.clip(t, VIEWS, 3, 0.37, select=select, tolerance_s=tolerance_s)
        for view in VIEWS:
            times = true_times(made, view)
            for k, frame in enumerate(clip[view]):
                at = t - (2 - k) * 370_000_000
                expected = brute(times, at, select, round(tolerance_s * 1e9))
                assert (frame.index if frame else None) == expected
                if frame is not None and expected is not None:
                    assert frame.t_ns == times[expected]
                    assert read_barcode(frame.image) == number_of(view, expected)


def test_previous_never_shows_the_future(made: Made, session: Session) -> None:
    t = true_times(made, "leader/rgb")[3]
    exact, before = session.frame("leader/rgb", t), session.frame("leader/rgb", t - 1)
    assert exact is not None
    assert before is not None
    assert (exact.index, before.index) == (3, 2)


def test_the_default_tolerance_is_one_and_a_half_frames(made: Made, session: Session) -> None:
    last = true_times(made, "leader/rgb")[-1]
    assert session.frame("leader/rgb", last + 149_000_000) is not None
    assert session.frame("leader/rgb", last + 151_000_000) is None
    assert session.frame("leader/rgb", true_times(made, "leader/rgb")[0] - 1) is None


def test_linked_and_sealed_are_the_same(made: Made) -> None:
    with open_session(made.linked, warn=False) as a, open_session(made.sealed, warn=False) as b:
        assert a.views == b.views == ("aria-1/rgb", "aria-1/eye", "aria-2/rgb", "aria-2/eye",
                                      "gopro-1/video")  # fmt: skip
        assert a.recordings == b.recordings
        assert (a.info.uuid, a.info.sealed, b.info.sealed) == (b.info.uuid, False, True)
        for view in a.views:
            np.testing.assert_array_equal(a.times_ns(view), b.times_ns(view))
            one, other = a.frame(view, EPOCH + 2 * SECOND), b.frame(view, EPOCH + 2 * SECOND)
            assert one is not None
            assert other is not None
            np.testing.assert_array_equal(one.image, other.image)
        one_, other_ = (s.audio("aria-2/mic", EPOCH, EPOCH + 2 * SECOND) for s in (a, b))
        np.testing.assert_array_equal(one_.samples, other_.samples)
        np.testing.assert_array_equal(one_.t_ns, other_.t_ns)


def test_what_it_says_of_itself(made: Made, session: Session) -> None:
    assert session.participants == ("P01", "P02")
    assert session.info.session_id == "kitchen-1"
    assert session.info.clock == "aria-1"
    assert not session.verified
    assert session.problems["aria-1"][0].code == "gap"
    text = "\n".join(session.warnings)
    assert "no person has verified" in text
    assert "aria-3: not placed: no sound" in text
    assert "fallback" in text
    assert session.clock("helper").maps[0].drift_ppm(0) == pytest.approx(40)
    with pytest.raises(NotInSessionError, match="no sound"):
        session.clock("aria-3")
    with pytest.raises(NotInSessionError, match="no view"):
        session.times_ns("aria-3/rgb")
    assert "gps" not in session.recording("leader").tracks


def test_an_unverified_session_says_so_when_it_is_opened(made: Made) -> None:
    with pytest.warns(UnverifiedSessionWarning, match="no person has verified"):
        synorama.open_session(made.linked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_session(made.linked, warn=False)


def test_sound_by_session_time(made: Made, session: Session) -> None:
    clock, track = made.result.clocks["aria-2"], made.recordings[1].audios[0]
    times = clock.apply(track.sample_times_ns(np.arange(track.sample_count)))
    truth = sound_values(track.sample_count, 2) / 2**31
    t0 = int(times[BLOCK - 100]) - 5
    got = session.audio("helper/mic", t0, t0 + 30_000_000)
    kept = (times >= t0) & (times < t0 + 30_000_000)
    assert 1400 < kept.sum() < 1500
    np.testing.assert_array_equal(got.t_ns, times[kept])
    np.testing.assert_allclose(got.samples, truth[kept], atol=1e-7)
    pieces = [session.audio("helper/mic", t0 + k * SECOND, t0 + (k + 1) * SECOND) for k in (-1, 0)]
    whole = session.audio("helper/mic", t0 - SECOND, t0 + SECOND)
    np.testing.assert_array_equal(np.concatenate([p.t_ns for p in pieces]), whole.t_ns)
    assert len(session.audio("helper/mic", 0, SECOND).t_ns) == 0
    assert abs(len(whole.t_ns) - 1 * SOUND_HZ) < SOUND_HZ


def test_samples_by_session_time(made: Made, session: Session) -> None:
    rows = session.samples("aria-1/imu", EPOCH + SECOND, EPOCH + 2 * SECOND)
    assert len(rows.times_ns) == 10
    assert rows.times_ns[0] == EPOCH + SECOND
    assert rows.values[0, 0] == 30
    assert set(rows.extra) == {"flag"}


def test_words_that_ended(session: Session) -> None:
    def texts(t0: int, t1: int) -> list[str]:
        return [w.text for w in session.words(t0, t1)]

    half = 500_000_000
    assert texts(EPOCH + half, EPOCH + 2 * SECOND + half) == ["w1", "w2"]
    assert texts(EPOCH + half - 1, EPOCH + 2 * SECOND + half - 1) == ["w0", "w1"]
    assert texts(EPOCH, EPOCH + 100 * SECOND) == ["w0", "w1", "w2", "w3", "w4", "w6", "w7"]


def test_poses_are_interpolated_and_never_extrapolated(session: Session) -> None:
    pose = session.pose("leader", EPOCH + 1_250_000_000, max_gap_s=0.2)
    assert pose is not None
    assert (pose.target, pose.source) == ("world", "aria-1/device")
    np.testing.assert_allclose(pose.translation_m, [1.25, 0, 0], atol=1e-9)
    turn = np.arctan2(pose.rotation[1, 0], pose.rotation[0, 0])
    assert turn == pytest.approx(1.25 / 2, abs=1e-9)
    assert session.pose("leader", EPOCH - 1) is None
    assert session.pose("leader", EPOCH + 3_900_000_001) is None
    assert session.pose("leader", EPOCH + 3_900_000_000) is not None
    assert session.pose("leader", EPOCH + 1_250_000_000, max_gap_s=0.05) is None
    with pytest.raises(NotInSessionError, match="closed_loop_trajectory"):
        session.pose("gopro-1", EPOCH)


@pytest.mark.parametrize("name", ["nobody", "rgb", "leader/nothing", "/", "leader/mic"])
def test_what_is_not_there(session: Session, name: str) -> None:
    with pytest.raises(NotInSessionError):
        session.frame(name, EPOCH)


def _numbers(session: Session) -> list[int]:
    frames = [session.frame(view, EPOCH + 2 * SECOND) for view in VIEWS]
    return [read_barcode(f.image) for f in frames if f is not None]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_see_the_same(made: Made, method: str) -> None:
    session = open_session(made.sealed, warn=False)
    expected = _numbers(session)  # decoders are open when the workers start
    assert len(expected) == len(VIEWS)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(_numbers, [session] * 4) == [expected] * 4
    assert _numbers(session) == expected


def _from_parent(session: Session, out: multiprocessing.Queue[list[int]]) -> None:
    out.put(_numbers(session))


def test_a_forked_child_leaves_its_parents_decoders_alone(made: Made) -> None:
    session = open_session(made.linked, warn=False)
    expected = _numbers(session)
    context = multiprocessing.get_context("fork")
    out: multiprocessing.Queue[list[int]] = context.Queue()
    child = context.Process(target=_from_parent, args=(session, out))
    child.start()
    assert out.get(timeout=60) == expected
    child.join()
    step = session.frame("gopro-1/video", EPOCH + 2 * SECOND + 33_333_333)
    assert step is not None
    assert read_barcode(step.image) == expected[2] + 1


def test_a_pickle_carries_no_tables(made: Made) -> None:
    session = open_session(made.linked, warn=False)
    data = pickle.dumps(session)
    assert len(data) < 1000
    assert pickle.loads(data).views == session.views


def test_media_that_moved(fresh: Made) -> None:
    (fresh.folder / "raw" / "aria-1.bin").rename(fresh.folder / "aria-1.bin")
    session = open_session(fresh.linked, warn=False)
    assert any("raw/aria-1.bin' is not there" in text for text in session.warnings)
    with pytest.raises(MediaMovedError, match=r"raw/aria-1\.bin"):
        session.frame("leader/rgb", EPOCH)
    assert session.frame("helper/rgb", EPOCH + 2 * SECOND) is not None
    (fresh.folder / "raw" / "aria-1.bin").write_bytes(b"other")
    with pytest.raises(MediaMovedError, match="5 bytes"):
        session.frame("leader/rgb", EPOCH)


def test_the_whole_folder_may_move(fresh: Made, tmp_path: Path) -> None:
    fresh.folder.rename(tmp_path / "elsewhere")
    session = open_session(tmp_path / "elsewhere" / "session.h5", warn=False)
    assert session.frame("leader/rgb", EPOCH) is not None
    assert not any("linked" in text for text in session.warnings)
