"""What a view knows of its times: the skew of its pictures, its interval, coarse clocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from synorama.errors import NotInSessionError
from synorama.records import (
    Recording,
    SyncResult,
    UtcEstimate,
    VideoTrack,
    leaps_ns,
    picture_doubt_ns,
)
from synorama.session import open_session, seal, summarize, validate, write_ingest, write_sync
from synorama.session.assemble import assemble
from synorama.session.schema import SessionInfo
from synorama.sync.solve import coarse_clock
from synorama.timebase import ClockMap
from tests.session.conftest import Made, make_session
from tests.session.factory import EPOCH, SECOND

SKEW_NS = 23_400_000


def video(recording: Recording, name: str) -> VideoTrack:
    track = recording.tracks[name]
    assert isinstance(track, VideoTrack)
    return track


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A session whose camera has a measured skew, and whose lost glasses have a wall clock."""
    made = make_session(tmp_path_factory.mktemp("doubt") / "kitchen")
    leader, helper, gopro, lost = made.recordings
    measured = replace(video(gopro, "video"), skew_ns=SKEW_NS, skew95_ns=1_500_000)
    gopro = replace(gopro, tracks={"video": measured})
    leader = replace(leader, start_utc=UtcEstimate(EPOCH, 10**18, 1.0, "phone"))
    start = UtcEstimate(lost.first_ns or 0, 10**18 + 2 * SECOND, 60.0, "creation_time")
    lost = replace(lost, start_utc=start)
    coarse = coarse_clock(leader, lost)
    assert coarse is not None
    result = replace(made.result, coarse={lost.id: coarse})
    made = replace(made, recordings=(leader, helper, gopro, lost), result=result)
    write_ingest(made.parts["ingest"], made.recordings, include_location=False)
    write_sync(made.parts["sync"], result)
    assemble(made.parts, made.linked, SessionInfo("kitchen-1"))
    seal(made.linked, made.sealed)
    return made


@pytest.mark.parametrize("which", ["linked", "sealed"])
def test_a_measured_skew_is_in_the_times_of_the_view_and_not_in_the_devices(
    doubtful: Made, which: str
) -> None:
    path: Path = getattr(doubtful, which)
    with open_session(path, warn=False) as session:
        device = session.recording("gopro-1").tracks["video"].times_ns  # type: ignore[union-attr]
        assert np.array_equal(device, video(doubtful.recordings[2], "video").times_ns)
        expected = session.clock("gopro-1").apply(device + SKEW_NS)
        assert np.array_equal(session.times_ns("gopro-1/video"), expected)
        frame = session.frame("gopro-1/video", int(expected[7]))
        assert frame is not None
        assert frame.index == 7
        assert session.frame("gopro-1/video", int(expected[7]) - 1).index == 6  # type: ignore[union-attr]
    assert not validate(path)


def test_the_interval_of_a_view_holds_clock_and_skew(doubtful: Made, made: Made) -> None:
    with open_session(doubtful.linked, warn=False) as session:
        assert session.interval95_ms("gopro-1/video") == pytest.approx(0.5 + 1.5)
        assert session.interval95_ms("leader/rgb") == pytest.approx(0.5)
    with open_session(made.linked, warn=False) as session:
        assert session.interval95_ms("gopro-1/video") == pytest.approx(0.5 + 20)
    with h5py.File(doubtful.linked) as file:
        attributes = file["recordings/gopro-1/tracks/video"].attrs
        assert attributes["picture_skew_ns"] == SKEW_NS
        assert attributes["picture_skew95_ns"] == 1_500_000
        assert attributes["picture_interval95_ms"] == pytest.approx(2.0)
    (camera,) = [r for r in summarize(doubtful.linked)["recordings"] if r["id"] == "gopro-1"]
    assert camera["tracks"][0]["picture_interval95_ms"] == pytest.approx(2.0)


def test_a_clock_by_pictures_owes_pictures_nothing(made: Made) -> None:
    track = video(made.recordings[2], "video")
    clock = made.result.clocks["gopro-1"]
    assert picture_doubt_ns(track, clock) == 20_000_000
    for method in ("card", "flash"):
        assert picture_doubt_ns(track, replace(clock, method=method)) == 0


def test_pictures_may_have_gone_on_where_sound_was_lost(made: Made) -> None:
    track = video(made.recordings[2], "video")
    clock = made.result.clocks["gopro-1"]
    whole = clock.maps[0]
    first, last = whole.range_ns
    middle = (first + last) // 2
    until = replace(whole, valid_ns=(first, middle))
    lost = ClockMap(
        whole.target,
        whole.source,
        np.array([[t, int(whole.apply(t)) - 50_000_000] for t in (middle + 1, last)], np.int64),
        sigma_ns=0.0,
    )
    leaping = replace(clock, method="sound", maps=(until, lost))
    (leap,) = leaps_ns(leaping)
    assert leap == pytest.approx(-50_000_000, abs=1000)
    assert picture_doubt_ns(track, leaping) == 20_000_000 + abs(leap)
    stamped = replace(track, time_refers_to="exposure_centre")
    assert picture_doubt_ns(stamped, leaping) == 0


@pytest.mark.parametrize("which", ["linked", "sealed"])
def test_a_coarse_view_comes_only_to_those_who_ask(doubtful: Made, which: str) -> None:
    with open_session(getattr(doubtful, which), warn=False) as session:
        assert not any(v.startswith("aria-3") for v in session.views)
        assert "aria-3/rgb" in session.coarse_views
        at = EPOCH + 2 * SECOND
        for ask in (session.times_ns, lambda v: session.clip(at, [v])):
            with pytest.raises(NotInSessionError, match="coarse=True"):
                ask("aria-3/rgb")
        assert session.times_ns("aria-3/rgb", coarse=True)[0] == at
        (frame,) = session.clip(at, ["aria-3/rgb"], coarse=True)["aria-3/rgb"]
        assert frame is not None
        assert frame.index == 0
        assert session.interval95_ms("aria-3/rgb") == pytest.approx(1.96e3 * np.hypot(60, 1))
        with pytest.raises(NotInSessionError):
            session.clock("aria-3")


def test_coarse_clocks_survive_the_part(doubtful: Made) -> None:
    from synorama.session import read_sync

    result: SyncResult = read_sync(doubtful.parts["sync"])
    assert result.coarse["aria-3"].method == "creation_time"
    assert result.coarse["aria-3"].maps[0].sigma_ns == pytest.approx(np.hypot(60, 1) * 1e9)
    assert "aria-3" in result.unsynced
