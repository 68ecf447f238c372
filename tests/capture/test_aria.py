"""Aria recordings against the vendor's reader, and made ones with known faults."""

from __future__ import annotations

import ctypes
import functools
import json
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.capture.aria import READER, open_aria, sniff, takes
from synorama.capture.aria.media import knots_of_blocks
from synorama.errors import EmptyFileError, NotAriaError, OrphanChunkError, UnknownFormatError
from synorama.media.payload import read_payload
from synorama.records import AudioTrack, Recording, Samples, SampleTrack, Track, VideoTrack
from synorama.testing import check_reader
from tests.capture.vrs_files import rows, write_vrs

VRS = "1_vrs/projectaria_tools"
GEN1 = f"{VRS}/gen1/aria_everyday_activities_test_data/recording.vrs"
TIMECODE = f"{VRS}/gen1/aria_unit_test_timecode_sequence_calib.vrs"
GEN2 = f"{VRS}/gen2/aria_gen2_unit_test_sequence_with_bluetooth.vrs"
REAL = [GEN1, TIMECODE, GEN2]
TRUNCATED_BY_THE_VENDOR = ("handtracking", "eyegaze", "vio-high-frequency")  # to microseconds


@functools.lru_cache(maxsize=3)
def opened(path: Path) -> Recording:
    return open_aria(path)


@functools.lru_cache(maxsize=3)
def vendor(path: Path) -> Any:
    from projectaria_tools.core import data_provider

    return data_provider.create_vrs_data_provider(str(path))


def stream_id(text: str) -> Any:
    from projectaria_tools.core.stream_id import StreamId

    return StreamId(text)


def own_tracks(path: Path) -> list[Track]:
    """Return the tracks of the VRS file itself, without those of MPS output beside it."""
    tracks = opened(path).tracks.values()
    return [t for t in tracks if re.fullmatch(r"\d+-\d+", t.source)]


def vendor_times(path: Path, track: Track) -> list[int]:
    """Return the device times; for beacons the vendor has none and the record's time is one."""
    from projectaria_tools.core.sensor_data import TimeDomain

    beacon = track.name in ("bluetooth", "wps")
    domain = TimeDomain.RECORD_TIME if beacon else TimeDomain.DEVICE_TIME
    times: list[int] = vendor(path).get_timestamps_ns(stream_id(track.source), domain)
    return times


def samples(path: Path, name: str) -> Samples:
    track = opened(path).tracks[name]
    assert isinstance(track, SampleTrack)
    read = track.read()
    assert len(read.times_ns) == track.count
    assert read.values.shape[1] == len(track.columns)
    if track.count:
        assert (track.first_ns, track.last_ns) == (read.times_ns.min(), read.times_ns.max())
    return read


def column(path: Path, name: str, *columns: str) -> NDArray[Any]:
    track = opened(path).tracks[name]
    assert isinstance(track, SampleTrack)
    names = [c.name for c in track.columns]
    return samples(path, name).values[:, [names.index(c) for c in columns]]


def xyz(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{c}" for c in "xyz")


def payloads(recording: Recording, table: NDArray[np.void]) -> Iterator[bytes]:
    for row in table:
        with recording.files[int(row["file"])].path.open("rb") as file:
            yield read_payload(file, row)


# --- every stream, count and time ------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_every_stream_of_the_vendor_is_a_track(shared_data: Path, name: str) -> None:
    path = shared_data / name
    recording, provider = opened(path), vendor(path)
    by_source = {t.source: t for t in own_tracks(path) if not t.name.endswith("-exposure")}
    listed = {str(s): provider.get_label_from_stream_id(s) for s in provider.get_all_streams()}
    assert set(by_source) == set(listed)
    for source, label in listed.items():
        track = by_source[source]
        short = label.removeprefix("camera-").removesuffix("0").replace("_", "-")
        assert track.name == short
        if not isinstance(track, AudioTrack):
            assert track.count == provider.get_num_data(stream_id(source))
    assert recording.extras["unread_streams"] == []


@pytest.mark.parametrize("name", REAL)
def test_every_time_is_the_vendors(shared_data: Path, name: str) -> None:
    path = shared_data / name
    for track in own_tracks(path):
        if isinstance(track, AudioTrack) or not track.count:
            continue
        mine = (
            track.times_ns if isinstance(track, VideoTrack) else samples(path, track.name).times_ns
        )
        theirs = np.array(vendor_times(path, track), np.int64)
        if track.name in TRUNCATED_BY_THE_VENDOR:
            mine = mine // 1000 * 1000
            theirs = theirs // 1000 * 1000
        np.testing.assert_array_equal(mine, theirs, err_msg=track.name)


@pytest.mark.parametrize("name", REAL)
def test_streams_without_data_read_as_empty(shared_data: Path, name: str) -> None:
    path = shared_data / name
    for track in own_tracks(path):
        if isinstance(track, SampleTrack):
            assert samples(path, track.name).values.shape == (track.count, len(track.columns))


def test_facts_of_the_recording_stay_out_of_logs(shared_data: Path) -> None:
    track = opened(shared_data / GEN1).tracks["imu-left"]
    assert "1WM093701M1276" not in repr(track)


@pytest.mark.parametrize("name", REAL)
def test_the_readers_promises_are_kept(shared_data: Path, name: str) -> None:
    check_reader(READER, shared_data / name)


@pytest.mark.parametrize("name", [GEN1, GEN2])
def test_every_sound_sample_has_its_own_time(shared_data: Path, name: str) -> None:
    path = shared_data / name
    track = opened(path).tracks["mic"]
    assert isinstance(track, AudioTrack)
    assert track.blocks is not None
    assert len(track.blocks) == vendor(path).get_num_data(stream_id("231-1"))
    every = track.sample_times_ns(np.arange(track.sample_count))
    at = 0
    for k in range(len(track.blocks)):
        _, record = vendor(path).get_audio_data_by_index(stream_id("231-1"), k)
        theirs = np.array(record.capture_timestamps_ns)
        mine = every[at : at + len(theirs)]
        assert np.abs(mine - theirs).max() <= 1
        assert (mine[0], mine[-1]) == (theirs[0], theirs[-1])
        assert (track.blocks["first"][k], track.blocks["count"][k]) == (at, len(theirs))
        at += len(theirs)
    assert at == track.sample_count
    assert len(track.knots) <= 2 * len(track.blocks)


# --- bytes, pictures, sound ------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_pictures_decode_from_their_place_alone(shared_data: Path, name: str) -> None:
    """JPEG to the vendor's very pixels; HEVC too where no colour is converted."""
    path = shared_data / name
    for track in opened(path).videos:
        decode = _jpeg if track.codec == "mjpeg" else _hevc()
        for k, payload in enumerate(payloads(opened(path), track.index)):
            reference = vendor(path).get_image_data_by_index(stream_id(track.source), k)[0]
            theirs = reference.to_numpy_array()
            mine = decode(payload, theirs.ndim)
            assert mine.shape[:2] == (track.height, track.width)
            off = np.abs(mine.astype(int) - theirs)
            assert off.max() <= (2 if track.codec == "hevc" and theirs.ndim == 3 else 0)


def _jpeg(payload: bytes, dimensions: int) -> NDArray[np.uint8]:
    picture = cv2.imdecode(np.frombuffer(payload, np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    assert picture.ndim == dimensions
    return np.asarray(picture if dimensions == 2 else picture[..., ::-1], np.uint8)


def _hevc() -> Callable[[bytes, int], NDArray[np.uint8]]:
    context = av.CodecContext.create("hevc", "r")
    context.thread_type = "NONE"

    def decode(payload: bytes, dimensions: int) -> NDArray[np.uint8]:
        (frame,) = context.decode(av.Packet(payload))
        form = "gray" if dimensions == 2 else "rgb24"
        return np.asarray(frame.to_ndarray(format=form), np.uint8)

    return decode


def test_pcm_blocks_are_the_vendors(shared_data: Path) -> None:
    path = shared_data / GEN1
    track = opened(path).tracks["mic"]
    assert isinstance(track, AudioTrack)
    assert (track.codec, track.channels, track.rate_hz) == ("pcm_s32le", 7, 48000)
    assert track.blocks is not None
    for k, payload in enumerate(payloads(opened(path), track.blocks)):
        theirs = vendor(path).get_audio_data_by_index(stream_id("231-1"), k)[0].data
        np.testing.assert_array_equal(np.frombuffer(payload, "<i4"), theirs)


def test_opus_blocks_decode_from_their_place_alone(shared_data: Path) -> None:
    """The vendor's own decoder library on our bytes gives the vendor's samples to one step."""
    path = shared_data / GEN2
    track = opened(path).tracks["mic"]
    assert isinstance(track, AudioTrack)
    assert (track.codec, track.channels, track.rate_hz) == ("opus", 8, 16000)
    assert track.blocks is not None
    opus, n = _libopus(), track.channels
    error = ctypes.c_int(0)
    decoder = opus.opus_multistream_decoder_create(
        16000, n, n, 0, bytes(range(n)), ctypes.byref(error)
    )
    assert error.value == 0
    for k, payload in enumerate(payloads(opened(path), track.blocks)):
        count = int(track.blocks["count"][k])
        out = np.zeros((count, n), np.int16)
        place = out.ctypes.data_as(ctypes.c_void_p)
        handle = ctypes.c_void_p(decoder)
        assert opus.opus_multistream_decode(handle, payload, len(payload), place, count, 0) == count
        theirs = vendor(path).get_audio_data_by_index(stream_id("231-1"), k)[0].data
        assert np.abs(out.astype(int) - np.reshape(theirs, (-1, n))).max() <= 1


def _libopus() -> Any:
    bundled = sorted(Path(av.__file__).parents[1].glob("av.libs/libopus*"))
    if not bundled:
        pytest.skip("this build of PyAV brings no libopus of its own")
    library = ctypes.CDLL(str(bundled[0]))
    library.opus_multistream_decoder_create.restype = ctypes.c_void_p
    return library


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_exposure_and_frame_number_are_the_vendors(shared_data: Path, name: str) -> None:
    path = shared_data / name
    for track in opened(path).videos:
        mine = samples(path, f"{track.name}-exposure")
        np.testing.assert_array_equal(mine.times_ns, track.times_ns)
        for k in range(track.count):
            theirs = vendor(path).get_image_data_by_index(stream_id(track.source), k)[1]
            assert mine.extra["frame_number"][k] == theirs.frame_number
            expected = [theirs.exposure_duration, theirs.gain, theirs.temperature]
            np.testing.assert_array_equal(mine.values[k], expected)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("imu", ["imu-left", "imu-right"])
def test_imu_is_the_vendors(shared_data: Path, name: str, imu: str) -> None:
    path = shared_data / name
    source = stream_id(opened(path).tracks[imu].source)
    accel, gyro = column(path, imu, *xyz("accel")), column(path, imu, *xyz("gyro"))
    temperature = column(path, imu, "temperature")
    for k in range(len(accel)):
        theirs = vendor(path).get_imu_data_by_index(source, k)
        np.testing.assert_array_equal(accel[k], theirs.accel_msec2)
        np.testing.assert_array_equal(gyro[k], theirs.gyro_radsec)
        np.testing.assert_array_equal(temperature[k], [theirs.temperature])


@pytest.mark.parametrize("name", REAL)
def test_magnetometer_and_barometer_are_the_vendors(shared_data: Path, name: str) -> None:
    path = shared_data / name
    for k, row in enumerate(column(path, "mag", *xyz("magnetic"))):
        theirs = vendor(path).get_magnetometer_data_by_index(stream_id("1203-1"), k)
        np.testing.assert_array_equal(row, theirs.mag_tesla)
    for k, row in enumerate(column(path, "baro", "pressure", "temperature")):
        theirs = vendor(path).get_barometer_data_by_index(stream_id("247-1"), k)
        np.testing.assert_array_equal(row, [theirs.pressure, theirs.temperature])


def test_small_sensors_are_the_vendors(shared_data: Path) -> None:
    path, provider = shared_data / GEN2, vendor(shared_data / GEN2)
    read = samples(path, "temperature")
    for k, row in enumerate(read.values):
        theirs = provider.get_temperature_data_by_index(stream_id("246-1"), k)
        assert row[0] == theirs.temperature_celsius
        assert read.extra["sensor_name"][k].decode() == theirs.sensor_name
    for k, row in enumerate(samples(path, "ppg").values):
        ppg = provider.get_ppg_data_by_index(stream_id("248-1"), k)
        np.testing.assert_array_equal(row, [ppg.value, ppg.led_current_ma, ppg.integration_time_us])
    read = samples(path, "bluetooth")
    for k, row in enumerate(read.values):
        beacon = provider.get_bluetooth_data_by_index(stream_id("283-1"), k)
        np.testing.assert_array_equal(row, [beacon.tx_power, beacon.rssi, beacon.freq_mhz])
        assert read.extra["board_time_ns"][k] == beacon.board_timestamp_ns


def test_gaze_is_the_vendors(shared_data: Path) -> None:
    """The vendor gives angles in the central pupil frame; ours are vectors in the device frame."""
    path = shared_data / GEN2
    gaze = opened(path).tracks["eyegaze"]
    assert isinstance(gaze, SampleTrack)
    assert (gaze.kind, gaze.frame) == ("gaze", "device")
    calibration = vendor(path).get_device_calibration()
    device_to_cpf = calibration.get_transform_device_cpf().inverse()
    turn = device_to_cpf.rotation().to_matrix()
    origin, direction = (
        column(path, "eyegaze", *xyz("origin")),
        column(path, "eyegaze", *xyz("direction")),
    )
    point = column(path, "eyegaze", *xyz("point"))
    blink = column(path, "eyegaze", "left_blink", "right_blink")
    for k in range(gaze.count):
        theirs = vendor(path).get_eye_gaze_data_by_index(stream_id("373-1"), k)
        x, y, z = turn @ direction[k]
        assert np.arctan2(x, z) == pytest.approx(theirs.yaw, abs=2e-6)
        assert np.arctan2(y, z) == pytest.approx(theirs.pitch, abs=2e-6)
        mine = np.ravel(device_to_cpf @ origin[k])
        np.testing.assert_allclose(mine, theirs.combined_gaze_origin_in_cpf, atol=1e-6)
        assert np.isfinite(point[k]).all() == theirs.spatial_gaze_point_valid
        if theirs.spatial_gaze_point_valid:
            mine = np.ravel(device_to_cpf @ point[k])
            np.testing.assert_allclose(mine, theirs.spatial_gaze_point_in_cpf, atol=1e-5)
        assert blink[k].tolist() == [theirs.vergence.left_blink, theirs.vergence.right_blink]


def test_invalid_gaze_is_no_number(shared_data: Path) -> None:
    assert np.isnan(column(shared_data / GEN2, "eyegaze", "convergence_distance")).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_hands_are_the_vendors(shared_data: Path, side: str) -> None:
    path = shared_data / GEN2
    track = opened(path).tracks["handtracking"]
    assert isinstance(track, SampleTrack)
    assert (track.kind, track.frame) == ("hands", "device")
    names = [f"{side}_landmark{k}_{c}" for k in range(21) for c in "xyz"]
    landmarks = column(path, "handtracking", *names)
    wrist, confidence = (
        column(path, "handtracking", *xyz(f"{side}_wrist")),
        column(path, "handtracking", f"{side}_confidence"),
    )
    turn = column(path, "handtracking", *(f"{side}_wrist_quat_{c}" for c in "wxyz"))
    valid = samples(path, "handtracking").extra[f"{side}_valid"]
    for k in range(track.count):
        both = vendor(path).get_hand_pose_data_by_index(stream_id("371-1"), k)
        theirs = both.left_hand if side == "left" else both.right_hand
        assert bool(valid[k]) == (theirs is not None)
        if theirs is None:
            assert np.isnan(landmarks[k]).all()
            continue
        np.testing.assert_array_equal(
            landmarks[k].reshape(21, 3), np.array(theirs.landmark_positions_device)
        )
        assert confidence[k, 0] == np.float32(theirs.confidence)
        pose = theirs.transform_device_wrist
        np.testing.assert_array_equal(wrist[k], np.ravel(pose.translation()))
        unit = turn[k] / np.linalg.norm(turn[k])
        np.testing.assert_allclose(unit, np.ravel(pose.rotation().to_quat()), atol=2e-6)


def test_vio_is_the_vendors(shared_data: Path) -> None:
    path, provider = shared_data / GEN2, vendor(shared_data / GEN2)
    at = column(path, "vio", *xyz("t_odometry_bodyimu"))
    turn = column(path, "vio", *(f"quat_odometry_bodyimu_{c}" for c in "wxyz"))
    for k in range(len(at)):
        theirs = provider.get_vio_data_by_index(stream_id("371-2"), k)
        pose = theirs.transform_odometry_bodyimu
        np.testing.assert_allclose(at[k], np.ravel(pose.translation()), atol=1e-6)
        np.testing.assert_allclose(turn[k], np.ravel(pose.rotation().to_quat()), atol=1e-6)
        assert samples(path, "vio").extra["frame_id"][k] == theirs.frame_id
    at = column(path, "vio-high-frequency", *xyz("t_odometry_device"))
    speed = column(path, "vio-high-frequency", *xyz("velocity_odometry"))
    session = samples(path, "vio-high-frequency").extra["frontend_session_uuid"]
    for k in range(len(at)):
        fast = provider.get_vio_high_freq_data_by_index(stream_id("371-3"), k)
        pose = fast.transform_odometry_device
        np.testing.assert_allclose(at[k], np.ravel(pose.translation()), rtol=0, atol=1e-15)
        np.testing.assert_array_equal(speed[k], fast.device_linear_velocity_odometry)
        assert session[k].decode() == fast.session_uid


# --- identity and clocks ---------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_identity_is_the_vendors(shared_data: Path, name: str) -> None:
    path = shared_data / name
    recording, provider = opened(path), vendor(path)
    metadata = provider.get_metadata()
    assert recording.serial == metadata.device_serial
    assert recording.model == ("Aria Gen 2" if name == GEN2 else "Aria Gen 1")
    assert recording.extras["recording_profile"] == metadata.recording_profile
    assert recording.calibration is not None
    labels = {c["Label"] for c in json.loads(recording.calibration)["CameraCalibrations"]}
    assert labels == set(provider.get_device_calibration().get_camera_labels())
    assert [file.path for file in recording.files] == [path]


def test_pictures_of_the_first_generation_lie_on_their_side(shared_data: Path) -> None:
    gen1, gen2 = opened(shared_data / GEN1), opened(shared_data / GEN2)
    turned = {t.name: t.rotation_deg for t in gen1.videos}
    assert turned == {"et": 0, "rgb": 90, "slam-left": 90, "slam-right": 90}
    assert {t.rotation_deg for t in gen2.videos} == {0}
    assert {t.time_refers_to for t in (*gen1.videos, *gen2.videos)} == {"exposure_centre"}


def test_time_code_is_what_the_vendor_converts(shared_data: Path) -> None:
    from projectaria_tools.core.sensor_data import TimeSyncMode

    path = shared_data / TIMECODE
    mappings = {str(m.mode): m.pairs for m in opened(path).time_mappings}
    assert set(mappings) == {"utc", "timecode"}
    device, code = mappings["timecode"].T
    after = np.interp(280591693600 - device[0], device - device[0], code - code[0])
    assert code[0] + after == pytest.approx(69887424738312, abs=1)
    for mode, theirs in (("timecode", TimeSyncMode.TIME_CODE), ("utc", TimeSyncMode.UTC)):
        for own, other in mappings[mode]:
            convert = vendor(path).convert_from_device_time_to_synctime_ns
            assert convert(int(own), theirs) == other


def test_a_calendar_that_was_never_set_gives_no_date(shared_data: Path) -> None:
    recording = opened(shared_data / TIMECODE)
    assert recording.start_utc is None
    assert "clock_not_set" in {p.code for p in recording.problems}


def test_start_says_how_uncertain_it_is(shared_data: Path) -> None:
    """Both clips were cut from longer recordings: sigma covers what lay before them."""
    gen1, gen2 = opened(shared_data / GEN1).start_utc, opened(shared_data / GEN2).start_utc
    assert gen1 is not None
    assert gen2 is not None
    assert gen1.utc_ns // 10**9 == 1649265055
    assert gen2.utc_ns // 10**9 == 1750190991  # not when it was converted, 78 s later
    assert 30 < gen1.sigma_s < 32
    assert 15 < gen2.sigma_s < 17


def test_locations_are_marked(shared_data: Path) -> None:
    tracks = opened(shared_data / GEN2).tracks.values()
    marked = {t.name for t in tracks if isinstance(t, SampleTrack) and t.location}
    assert marked == {"gps", "gps-app", "wps", "bluetooth"}


def test_recording_crosses_processes(shared_data: Path) -> None:
    track = opened(shared_data / GEN1).tracks["imu-left"]
    assert isinstance(track, SampleTrack)
    again = pickle.loads(pickle.dumps(track.read))
    np.testing.assert_array_equal(again().values, samples(shared_data / GEN1, "imu-left").values)


# --- files -----------------------------------------------------------------------------------


def test_vrs_of_another_device_is_refused(shared_data: Path) -> None:
    path = shared_data / "1_vrs/vrs/sample_file.vrs"
    assert sniff(path)
    with pytest.raises(NotAriaError, match="not by Aria"):
        open_aria(path)


def test_orphan_chunk_is_refused(shared_data: Path) -> None:
    path = shared_data / "1_vrs/vrs/simulated.vrs_2"
    assert sniff(path)
    (take,) = takes([path])
    assert take.paths == (path,)
    with pytest.raises(OrphanChunkError):
        open_aria(path)


def test_empty_and_garbage_files(tmp_path: Path) -> None:
    (tmp_path / "empty.vrs").touch()
    (tmp_path / "garbage.vrs").write_bytes(b"garbage" * 100)
    assert not sniff(tmp_path / "empty.vrs")
    assert not sniff(tmp_path / "garbage.vrs")
    with pytest.raises(EmptyFileError):
        open_aria(tmp_path / "empty.vrs")
    with pytest.raises(UnknownFormatError):
        open_aria(tmp_path / "garbage.vrs")


def test_truncated_recording_keeps_and_says(shared_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.vrs"
    shutil.copyfile(shared_data / GEN1, path)
    whole = opened(shared_data / GEN1)
    with path.open("r+b") as file:
        file.truncate(2_000_000)
    cut = open_aria(path)
    (problem,) = (p for p in cut.problems if p.code == "truncated")
    assert problem.severe
    assert "are kept" in problem.text
    for track in cut.tracks.values():
        assert 0 < track.count <= whole.tracks[track.name].count
    for video in cut.videos:
        full = whole.tracks[video.name]
        assert isinstance(full, VideoTrack)
        np.testing.assert_array_equal(video.times_ns, full.times_ns[: video.count])
        assert all(payloads(cut, video.index))


def test_chunks_are_one_take_and_two_files_are_two(tmp_path: Path) -> None:
    tags = {"device_serial": "1WM0"}
    chunked = write_vrs(tmp_path / "a.vrs", rows(30), chunk_at=(10, 20), tags=tags)
    (other,) = write_vrs(tmp_path / "b.vrs", rows(5))
    first, second = READER.takes([other, *reversed(chunked)])
    assert first.paths == tuple(chunked)
    assert (first.serial, second.paths) == ("1WM0", (other,))


# --- sound times -----------------------------------------------------------------------------


@given(
    steps=st.lists(
        st.lists(st.integers(1, 200_000), min_size=1, max_size=50), min_size=1, max_size=5
    )
)
def test_knots_reproduce_any_increasing_times(steps: list[list[int]]) -> None:
    every = np.cumsum(np.concatenate([np.array(s, np.int64) for s in steps]))
    blocks = np.split(every, np.cumsum([len(s) for s in steps])[:-1])
    found = knots_of_blocks(blocks)
    track = AudioTrack(
        name="mic",
        codec="pcm_s16le",
        rate_hz=48000.0,
        channels=1,
        sample_count=len(every),
        knots=found.knots,
        storage="packets",
    )
    assert np.abs(track.sample_times_ns(np.arange(len(every))) - every).max() <= 1
    assert found.counts.tolist() == [len(s) for s in steps]


def test_steady_sound_takes_two_knots_a_block() -> None:
    blocks = [10**12 + np.rint((np.arange(4096) + 4096 * k) * 1e9 / 48000) for k in range(50)]
    found = knots_of_blocks([b.astype(np.int64) for b in blocks])
    assert len(found.knots) <= 100


def test_repeated_and_backward_blocks_are_left_out() -> None:
    one = np.arange(0, 1000, 10)
    found = knots_of_blocks([one, one, one + 1000, one + 500, one + 2000])
    assert found.kept.tolist() == [0, 2, 4]
    assert (found.repeated, found.backward) == (1, 1)


def test_blocks_that_overlap_a_little_still_increase() -> None:
    one = np.arange(0, 1000, 10)
    found = knots_of_blocks([one, one + 985])
    assert (np.diff(found.knots, axis=0) > 0).all()
    assert found.kept.tolist() == [0, 1]
