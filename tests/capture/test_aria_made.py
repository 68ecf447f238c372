"""Aria recordings with known roles, clocks and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synorama.capture.aria import open_aria
from synorama.errors import MissingChunkError
from synorama.media.payload import read_payload
from synorama.records import AudioTrack, Problem, Recording, SampleTrack, VideoTrack
from tests.capture.aria_files import MIC_BLOCK, START_NS, AriaFile, sound_blocks, steady

OFFSET_NS = 7_000_000_123


def opened(made: AriaFile, folder: Path) -> Recording:
    return open_aria(made.write(folder / "a.vrs"))


def codes(recording: Recording) -> set[tuple[str, str]]:
    return {(p.code, p.track) for p in recording.problems}


def problem(recording: Recording, code: str) -> Problem:
    (found,) = (p for p in recording.problems if p.code == code)
    return found


def pairs(count: int) -> list[tuple[int, int]]:
    own = [START_NS + k * 100_000_000 for k in range(count)]
    return [(t, t + OFFSET_NS + k) for k, t in enumerate(own)]


def test_a_sound_recording_has_no_problems(tmp_path: Path) -> None:
    recording = opened(AriaFile(), tmp_path)
    assert recording.problems == ()
    assert recording.take == 0
    assert (recording.sync_role, recording.time_mappings) == (None, ())


# --- roles and clocks ------------------------------------------------------------------------


def test_client_knows_the_servers_clock(tmp_path: Path) -> None:
    metadata = {"ticsync_mode": "client", "shared_session_id": "abc"}
    made = AriaFile(metadata=metadata, mapping={"TIC_SYNC": pairs(20)})
    recording = opened(made, tmp_path)
    assert (recording.sync_role, recording.shared_session_id) == ("client", "abc")
    (mapping,) = recording.time_mappings
    assert mapping.mode == "tic_sync"
    assert mapping.pairs.tolist() == [list(pair) for pair in pairs(20)]
    assert recording.problems == ()


def test_server_needs_no_mapping(tmp_path: Path) -> None:
    recording = opened(AriaFile(metadata={"ticsync_mode": "server"}), tmp_path)
    assert recording.sync_role == "server"
    assert recording.problems == ()


@pytest.mark.parametrize("mapping", [{}, {"TIC_SYNC": []}, {"TIMECODE": pairs(3)}])
def test_client_that_never_heard_of_the_server(
    tmp_path: Path, mapping: dict[str, list[tuple[int, int]]]
) -> None:
    made = AriaFile(metadata={"ticsync_mode": "client"}, mapping=mapping)
    found = problem(opened(made, tmp_path), "clock_never_synchronised")
    assert found.severe
    assert "never synchronised" in found.text


@pytest.mark.parametrize("role", ["receiver", "broadcaster"])
def test_roles_of_the_second_generation(tmp_path: Path, role: str) -> None:
    metadata = {"recording": {"subghz_mode": role, "start_time": 1_750_000_000}}
    made = AriaFile(generation=2, metadata=metadata, mapping={"SUBGHZ": pairs(5)})
    recording = opened(made, tmp_path)
    assert (recording.model, recording.sync_role) == ("Aria Gen 2", role)
    assert [m.mode for m in recording.time_mappings] == ["subghz"]


def test_phone_time_is_utc(tmp_path: Path) -> None:
    now = 1_750_000_000_000_000_000
    recording = opened(AriaFile(mapping={"APP": [(START_NS, now)]}), tmp_path)
    assert [m.mode for m in recording.time_mappings] == ["utc"]
    assert recording.start_utc is not None
    assert (recording.start_utc.device_ns, recording.start_utc.utc_ns) == (START_NS, now)


def test_a_phone_that_answers_late_gives_utc_all_the_same(tmp_path: Path) -> None:
    now = 1_750_000_000_000_000_000
    later = START_NS + 10**9
    start = opened(AriaFile(mapping={"APP": [(START_NS, -1), (later, now)]}), tmp_path).start_utc
    assert start is not None
    assert (start.device_ns, start.utc_ns, start.source) == (later, now, "phone")


def test_a_phone_that_never_answers_gives_no_utc(tmp_path: Path) -> None:
    assert opened(AriaFile(mapping={"APP": [(START_NS, -1)]}), tmp_path).start_utc is None


def test_cameras_that_recorded_nothing_are_said(tmp_path: Path) -> None:
    found = opened(AriaFile(frames_ns=[]), tmp_path)
    assert [(p.code, p.track) for p in found.problems] == [("no_pictures", "rgb")]


def test_one_picture_is_a_picture(tmp_path: Path) -> None:
    recording = opened(AriaFile(frames_ns=steady(1, 30.0)), tmp_path)
    assert recording.tracks["rgb"].count == 1
    assert not recording.problems


def test_clock_samples_of_the_glasses_give_utc(tmp_path: Path) -> None:
    now = 1_750_000_000_000_000_000
    own = {"monotonic_clock_sample_ns": str(START_NS), "realtime_clock_sample_ns": str(now)}
    start = opened(AriaFile(tags=own), tmp_path).start_utc
    assert start is not None
    assert (start.utc_ns, start.source) == (now, "clock_sample")


def test_clock_samples_of_another_computer_do_not(tmp_path: Path) -> None:
    tags = {
        "monotonic_clock_sample_ns": str(START_NS + 10**16),
        "realtime_clock_sample_ns": "1750000078000000000",
        "capture_time_epoch": "1750000000",
    }
    start = opened(AriaFile(tags=tags), tmp_path).start_utc
    assert start is not None
    assert start.source == "start_time"
    assert abs(start.utc_ns - 1_750_000_000 * 10**9) <= start.sigma_s * 1e9


# --- pictures --------------------------------------------------------------------------------


def test_key_frames_are_those_without_an_earlier_one(tmp_path: Path) -> None:
    made = AriaFile(generation=2, key_index=[k % 10 for k in range(30)])
    rgb = opened(made, tmp_path).tracks["rgb"]
    assert isinstance(rgb, VideoTrack)
    assert rgb.codec == "hevc"
    assert np.flatnonzero(rgb.index["key"]).tolist() == [0, 10, 20]


def test_dropped_frames_are_counted(tmp_path: Path) -> None:
    times, numbers = steady(30, 30.0), list(range(30))
    del times[10:13], numbers[10:13]
    recording = opened(AriaFile(frames_ns=times, numbers=numbers), tmp_path)
    found = problem(recording, "dropped_frames")
    assert "3 frames dropped at 1 place" in found.text
    assert found.track == "rgb"


def test_frame_number_that_starts_anew_drops_nothing(tmp_path: Path) -> None:
    numbers = [*range(500, 515), *range(15)]
    assert opened(AriaFile(numbers=numbers), tmp_path).problems == ()


def test_pause_of_pictures_is_a_gap(tmp_path: Path) -> None:
    times = [t + (2_000_000_000 if k >= 15 else 0) for k, t in enumerate(steady(30, 30.0))]
    found = problem(opened(AriaFile(frames_ns=times), tmp_path), "gap")
    assert found.severe
    assert "1 gap, the longest 2033.333 ms at 0.467 s" in found.text


def test_pictures_out_of_order_are_sorted_and_said(tmp_path: Path) -> None:
    times = steady(30, 30.0)
    records = list(range(30))
    made = AriaFile(frames_ns=times, numbers=records)
    path = made.write(tmp_path / "a.vrs")
    body = bytearray(path.read_bytes())
    early, late = (t.to_bytes(8, "little") for t in (times[5], times[6]))
    swapped = body.replace(early, b"#" * 8).replace(late, early).replace(b"#" * 8, late)
    path.write_bytes(bytes(swapped))
    recording = open_aria(path)
    assert ("time_goes_back", "rgb") in codes(recording)
    rgb = recording.tracks["rgb"]
    assert isinstance(rgb, VideoTrack)
    assert rgb.times_ns.tolist() == times
    with path.open("rb") as file:
        assert read_payload(file, rgb.index[5]) == b"picture 6"


# --- sound -----------------------------------------------------------------------------------


def test_muted_microphones_are_said(tmp_path: Path) -> None:
    recording = opened(AriaFile(muted=[0, 0, 0, 0, 0, 1, 1, 0, 0, 0]), tmp_path)
    assert "20 % of the recording" in problem(recording, "muted").text
    mic = recording.tracks["mic"]
    assert isinstance(mic, AudioTrack)
    assert mic.muted is not None
    assert np.flatnonzero(mic.muted).tolist() == [5, 6]


def test_repeated_block_is_used_once(tmp_path: Path) -> None:
    blocks = sound_blocks(10)
    recording = opened(AriaFile(blocks=[*blocks[:4], *blocks[3:]]), tmp_path)
    mic = recording.tracks["mic"]
    assert isinstance(mic, AudioTrack)
    assert mic.sample_count == 10 * MIC_BLOCK
    assert ("repeated_audio", "mic") in codes(recording)


def test_lost_block_is_a_gap_and_shifts_nothing(tmp_path: Path) -> None:
    blocks = sound_blocks(10)
    recording = opened(AriaFile(blocks=[*blocks[:4], *blocks[5:]]), tmp_path)
    mic = recording.tracks["mic"]
    assert isinstance(mic, AudioTrack)
    assert "85.333 ms" in problem(recording, "gap").text
    every = mic.sample_times_ns(np.arange(mic.sample_count))
    assert np.abs(every - np.concatenate([*blocks[:4], *blocks[5:]])).max() <= 1


def test_packed_blocks_hold_the_same_sound(tmp_path: Path) -> None:
    recording = open_aria(AriaFile().write(tmp_path / "a.vrs", pack=True))
    mic = recording.tracks["mic"]
    assert isinstance(mic, AudioTrack)
    assert mic.blocks is not None
    assert (mic.blocks["packing"] == 2).all()
    with recording.files[0].path.open("rb") as file:
        for k, row in enumerate(mic.blocks):
            pcm = np.frombuffer(read_payload(file, row), "<i4")
            assert pcm.tolist() == [k] * (2 * MIC_BLOCK)


# --- samples and files -----------------------------------------------------------------------


def test_pause_of_the_inertial_sensor_is_a_gap(tmp_path: Path) -> None:
    times = steady(1000, 1000.0)
    recording = opened(AriaFile(imu_ns=[*times[:300], *times[700:]]), tmp_path)
    assert ("gap", "imu-right") in codes(recording)
    imu = recording.tracks["imu-right"]
    assert isinstance(imu, SampleTrack)
    assert imu.count == len(imu.read().times_ns) == 600


def test_chunks_are_one_recording(tmp_path: Path) -> None:
    whole = opened(AriaFile(), tmp_path)
    path = AriaFile().write(tmp_path / "b.vrs", chunk_bytes=60_000)
    recording = open_aria(path)
    assert len(recording.files) > 2
    for name, track in recording.tracks.items():
        assert (track.count, track.first_ns) == (
            whole.tracks[name].count,
            whole.tracks[name].first_ns,
        )
    rgb = recording.tracks["rgb"]
    assert isinstance(rgb, VideoTrack)
    for k, row in enumerate(rgb.index):
        with recording.files[int(row["file"])].path.open("rb") as file:
            assert read_payload(file, row) == b"picture %d" % k
    recording.files[-1].path.unlink()
    with pytest.raises(MissingChunkError):
        open_aria(path)


def test_never_closed_recording_is_whole_and_says_so(tmp_path: Path) -> None:
    path = AriaFile().write(tmp_path / "a.vrs")
    body = bytearray(path.read_bytes())
    index_at = int.from_bytes(body[24:32], "little")
    body[24:32] = bytes(8)
    path.write_bytes(bytes(body[:index_at]))
    recording = open_aria(path)
    assert codes(recording) == {("index_rebuilt", "")}
    assert "never closed" in problem(recording, "index_rebuilt").text
    assert recording.tracks["imu-right"].count == 1000
