"""Every fault by name: it is planted, the truth tells of it, and the pipeline says what it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synorama.capture.discover import discover, open_found
from synorama.errors import ForeignChapterError, MissingChapterError, UsageError
from synorama.pipeline import Outcome, Workspace, process
from synorama.simulate import simulate
from synorama.simulate.check import check_session
from synorama.simulate.faults import FAULTS
from synorama.timebase import NS_PER_S, ClockMap
from tests.simulate.measures import Written, heard

SECONDS = 12.0


def made(folder: Path, *faults: str, seconds: float = SECONDS, **asked: Any) -> Written:
    """A cheap session with faults: plain unless a room is asked for, no pictures of the room."""
    asked = {"room": None, "render": False, "mps": None, "scan": None, "seed": 3} | asked
    simulate(folder, seconds=seconds, faults=faults, **asked)
    return Written(folder)


def processed(folder: Path, fault: str, *others: str) -> tuple[Written, Outcome]:
    devices = dict.fromkeys(("leader", "helper", *FAULTS[fault].devices, *others))
    written = made(folder / "x", fault, devices=tuple(devices))
    assert written.truth["faults"][fault]["what"] == FAULTS[fault].what
    return written, process(Workspace(written.folder))


def test_all_that_a_lab_must_have_is_there() -> None:
    assert set(FAULTS) >= {
        "missing-chapter", "foreign-chapter", "unsynchronised-glasses", "other-rooms-scan",
        "scan-10cm-off", "camera-from-another-session", "muted-microphones",
        "swapped-microphones", "swapped-roles", "restarted-device", "drift-change",
        "clock-set-back", "bystander-talking", "dropped-samples", "two-servers", "radio-playing",
    }  # fmt: skip
    assert all(fault.what and len(fault.what) < 95 for fault in FAULTS.values())


def test_an_unknown_fault_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rain") as caught:
        made(tmp_path / "x", "rain")
    assert "missing-chapter" in caught.value.hint


# --- files -----------------------------------------------------------------------------------


def test_missing_chapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingChapterError, match="chapter 2") as caught:
        processed(tmp_path, "missing-chapter")
    assert "card" in caught.value.hint
    told = Written(tmp_path / "x").recording("gopro-front")
    assert [Path(f).name for f in told["files"]] == ["GX010123.MP4", "GX030123.MP4"]


def test_foreign_chapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ForeignChapterError, match="another camera"):
        processed(tmp_path, "foreign-chapter")


# --- glasses ---------------------------------------------------------------------------------


def test_unsynchronised_glasses_are_placed_by_sound_and_warned_of(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "unsynchronised-glasses")
    assert outcome.sync is not None
    assert outcome.sync.clocks["helper"].method == "sound"
    assert any("helper" in w and "no hardware time" in w for w in outcome.sync.warnings)
    assert written.recording("helper")["role"] == ""


def test_two_servers_are_warned_of(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "two-servers")
    assert outcome.sync is not None
    assert any("one server and its clients" in w for w in outcome.sync.warnings)
    assert {r["role"] for r in written.truth["recordings"]} == {"server"}
    kept = [line.held for line in check_session(written.folder) if line.what == "clock"]
    assert kept == [True, True]  # whichever of the two gives the session's clock


def test_swapped_roles_make_the_helpers_clock_the_sessions(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "swapped-roles")
    assert outcome.sync is not None
    assert written.truth["session_clock"] == "helper"
    roles = {r["name"]: r["role"] for r in written.truth["recordings"]}
    assert roles == {"leader": "client", "helper": "server"}
    assert outcome.sync.clocks["helper"].method == "reference"
    assert outcome.sync.clocks["leader"].method == "tic_sync"
    begins = written.recording("helper")["tracks"]["mic"]["first_ns"]
    assert written.clock("helper")(begins) == begins
    kept = [line.held for line in check_session(written.folder) if line.what == "clock"]
    assert kept == [True, True]


def test_a_wall_clock_that_was_set_back_moves_no_time(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "clock-set-back")
    assert outcome.sync is not None
    assert outcome.sync.clocks["helper"].method == "tic_sync"
    started = {one.id: open_found(one).start_utc for one in discover(written.folder).found}
    leader, helper = (started[name] for name in ("leader", "helper"))
    assert leader is not None
    assert helper is not None
    assert 3590 < (leader.utc_ns - helper.utc_ns) / NS_PER_S < 3610


# --- clocks of cameras -----------------------------------------------------------------------


def test_drift_changes_in_sound_and_truth(tmp_path: Path) -> None:
    spoiled = made(tmp_path / "x", "drift-change", devices=("gopro-front",))
    clean = made(tmp_path / "y", devices=("gopro-front",))
    bend = spoiled.clock("gopro-front")
    (first, middle, last), _ = bend.knots.T
    change = bend.drift_ppm(int(last) - 1) - bend.drift_ppm(int(first) + 1)
    assert change == pytest.approx(60.0, abs=0.1)
    at = int(middle * 48_000 // NS_PER_S)
    one, other = (heard(w, "gopro-front")[1][:, 0] for w in (spoiled, clean))
    before = slice(0, at - 50_000)  # sound is made in batches of about a second
    late = slice(len(one) - 24_000, len(one) - 4_000)
    alike = [float(np.corrcoef(one[part], other[part])[0, 1]) for part in (before, late)]
    assert alike[0] > 0.99  # both are coded anew
    assert alike[1] < 0.9  # 0.4 ms later by then


def test_a_restarted_camera_gives_two_recordings(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "restarted-device")
    assert outcome.sync is not None
    assert {"gopro-rear", "gopro-rear-2"} <= set(outcome.sync.clocks)
    first, second = (written.recording(f"gopro-rear{k}") for k in ("", "-2"))
    assert first["serial"] == second["serial"]
    ends = written.clock("gopro-rear")(first["tracks"]["video"]["last_ns"])
    gap_s = (written.clock("gopro-rear-2")(0) - ends) / NS_PER_S
    assert 1.4 < gap_s < 1.6
    clocks = [line for line in check_session(written.folder) if line.what == "clock"]
    assert len(clocks) == 4
    assert all(line.held for line in clocks)


def test_a_camera_that_was_restarted_for_a_moment_has_no_empty_chapter(tmp_path: Path) -> None:
    written = made(tmp_path / "x", "restarted-device", seconds=6.0, devices=("gopro-rear",))
    takes = [open_found(one) for one in discover(written.folder).found]
    told = [r["tracks"]["video"]["count"] for r in written.truth["recordings"]]
    assert sorted(take.videos[0].count for take in takes) == sorted(told)


# --- sound -----------------------------------------------------------------------------------


def test_a_muted_camera_is_not_placed(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "muted-microphones")
    assert outcome.sync is not None
    assert "silent" in outcome.sync.unsynced["gopro-rear"]
    assert np.abs(heard(written, "gopro-rear")[1]).max() < 1e-4


def test_lost_samples_let_later_sound_come_too_early(tmp_path: Path) -> None:
    spoiled = made(tmp_path / "x", "dropped-samples", devices=("webcam",))
    clean = made(tmp_path / "y", devices=("webcam",))
    drops = spoiled.truth["faults"]["dropped-samples"]["drops"]
    one, other = (heard(w, "webcam")[1][:, 0] for w in (spoiled, clean))
    lost, begin = 0, 0
    for at, more in [(d["at_sample"], d["lost_samples"]) for d in drops] + [(len(one), 0)]:
        here = slice(begin + 6_000, min(at - 6_000, len(one) - 30_000))
        there = slice(here.start + lost, here.stop + lost)
        assert np.corrcoef(one[here], other[there])[0, 1] > 0.9  # Opus codes both anew
        lost, begin = lost + more, at
    told = spoiled.recording("webcam")["tracks"]["audio"]
    jumps = ClockMap("session", "sound", np.array(told["clock"], np.int64))
    early_ns = jumps(told["last_ns"]) - spoiled.clock("webcam")(told["last_ns"])
    assert early_ns == pytest.approx(lost * NS_PER_S / 48_000, abs=30_000)


def test_two_microphones_of_the_glasses_are_swapped(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"room": "kitchen", "seconds": 4.0, "devices": ("leader",)}
    spoiled, clean = (
        made(tmp_path / "x", "swapped-microphones", **asked),
        made(tmp_path / "y", **asked),
    )
    one, other = (heard(w, "leader")[1] for w in (spoiled, clean))
    a, b = spoiled.truth["faults"]["swapped-microphones"]["channels"]

    def alike(k: int, m: int) -> float:
        return float(np.corrcoef(one[:, k], other[:, m])[0, 1])

    assert alike(a, b) > alike(a, a)
    assert alike(b, a) > alike(b, b)
    assert alike(0, 0) > 0.999


def test_a_radio_is_heard_beside_everything_else(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"room": "kitchen", "seconds": 4.0, "devices": ("webcam",)}
    with_radio = made(tmp_path / "x", "radio-playing", **asked)
    without = made(tmp_path / "y", **asked)
    one, other = (heard(w, "webcam")[1][:, 0] for w in (with_radio, without))
    assert with_radio.truth["words"] == without.truth["words"]
    assert (one - other).std() > 0.05 * other.std()


def test_a_bystander_is_told_among_the_words(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"room": "kitchen", "devices": ("webcam",)}
    written = made(tmp_path / "x", "bystander-talking", seconds=40.0, **asked)
    assert written.truth["speakers"] == ["leader", "helper", "bystander"]
    spoke = [w for w in written.truth["words"] if w["speaker"] == "bystander"]
    assert spoke
    assert "bystander" in written.recording("webcam")["acoustic"]
    # Where only the bystander speaks, the webcam hears more than where nobody does.
    times, samples = heard(written, "webcam")
    at = written.clock("webcam")(times)
    words = written.truth["words"]
    talk = {s: np.zeros(len(at), bool) for s in written.truth["speakers"]}
    for w in words:
        talk[w["speaker"]] |= (at > w["start_ns"] + 30_000_000) & (at < w["end_ns"])
    others = talk["leader"] | talk["helper"]
    alone, nobody = talk["bystander"] & ~others, ~(talk["bystander"] | others)
    assert samples[alone].std() > 2 * np.median(np.abs(samples[nobody]))


# --- what does not belong --------------------------------------------------------------------


def test_a_camera_from_another_session_is_not_placed(tmp_path: Path) -> None:
    written, outcome = processed(tmp_path, "camera-from-another-session", "gopro-front")
    assert outcome.sync is not None
    assert "belongs to this session" in outcome.sync.unsynced["gopro-rear"]
    assert {"leader", "helper", "gopro-front"} == set(outcome.sync.clocks)
    lines = {line.of: line for line in check_session(written.folder) if line.what == "clock"}
    assert lines["gopro-rear"].found == "not placed"


def test_scans_that_are_wrong_differ_as_told(tmp_path: Path) -> None:
    import pye57

    asked: dict[str, Any] = {
        "room": "kitchen", "seconds": 4.0, "scan": "stations", "devices": ("webcam",),
    }  # fmt: skip
    clean = made(tmp_path / "a", **asked)
    off = made(tmp_path / "b", "scan-10cm-off", **asked)
    other = made(tmp_path / "c", "other-rooms-scan", **asked)
    places = []
    for written in (clean, off):
        scan = pye57.E57(str(written.folder / "scan" / "room.e57"))
        places.append([scan.get_header(k).translation for k in range(scan.scan_count)])
    moved = np.linalg.norm(np.subtract(places[0], places[1]), axis=1)
    assert moved[:-1].max() < 1e-9
    assert moved[-1] == pytest.approx(0.1, abs=1e-9)
    assert clean.truth["scan"]["T_world_scan"] == off.truth["scan"]["T_world_scan"]
    assert other.truth["scan"]["T_world_scan"] is None
    clouds = [(w.folder / "scan" / "room.laz").read_bytes() for w in (clean, off, other)]
    assert len(set(clouds)) == 3


def test_a_scan_by_hand_loses_its_place_for_a_third_of_its_points(tmp_path: Path) -> None:
    import laspy

    asked: dict[str, Any] = {"room": "corridor", "seconds": 4.0, "scan": "handheld"}
    asked["devices"] = ("webcam",)
    clouds = [
        laspy.read(made(tmp_path / name, *faults, **asked).folder / "scan" / "room.laz").xyz
        for name, faults in (("a", ()), ("b", ("scan-10cm-off",)))
    ]
    moved = np.linalg.norm(clouds[0] - clouds[1], axis=1)
    third = len(moved) // 3
    assert moved[: 2 * third].max() < 1e-3
    assert np.allclose(moved[2 * third + 3 :], 0.1, atol=1e-3)


def test_faults_can_be_planted_together(tmp_path: Path) -> None:
    devices = ("leader", "helper", "gopro-rear")
    both = ("clock-set-back", "muted-microphones")
    assert set(made(tmp_path / "x", *both, devices=devices).truth["faults"]) == set(both)
