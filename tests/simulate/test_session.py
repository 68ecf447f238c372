"""A simulated session against its truth, through the vendor's reader and FFmpeg's own tools."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from projectaria_tools.core import data_provider
from projectaria_tools.core.sensor_data import TimeDomain, TimeSyncMode
from projectaria_tools.core.stream_id import StreamId
from scipy.interpolate import make_interp_spline

from synorama.errors import (
    DiskFullError,
    OutputExistsError,
    OutputNotWritableError,
    UsageError,
)
from synorama.simulate import session as session_module
from synorama.simulate import simulate as simulate_lab
from synorama.simulate.formats.barcode import Stamp, read
from synorama.timebase import NS_PER_S, ClockMap

simulate = partial(simulate_lab, room=None)
SECONDS = 52.0
SETTLED_S = 45.0
RGB, MIC = StreamId("214-1"), StreamId("231-1")
DEVICE = TimeDomain.DEVICE_TIME
AS_ANY_GOPRO = "Unsupported codec with id"  # ffprobe says so of the telemetry of real files too


class Session:
    """A simulated session, opened by its truth."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth: dict[str, Any] = json.loads((folder / "truth.json").read_text())
        self.recordings: dict[str, Any] = {r["name"]: r for r in self.truth["recordings"]}

    def files(self, name: str) -> list[Path]:
        return [self.folder / f for f in self.recordings[name]["files"]]

    def clock(self, name: str) -> ClockMap:
        return ClockMap("session", name, np.array(self.recordings[name]["clock"], np.int64))

    def track(self, name: str, track: str) -> dict[str, Any]:
        told: dict[str, Any] = self.recordings[name]["tracks"][track]
        return told


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("simulate") / "session"
    assert simulate(folder, seed=11, seconds=SECONDS) == folder / "truth.json"
    return Session(folder)


def open_glasses(path: Path) -> Any:
    provider = data_provider.create_vrs_data_provider(str(path))
    assert provider is not None
    return provider


# --- the truth itself ------------------------------------------------------------------------


def test_truth_names_every_file_and_no_other(made: Session) -> None:
    told = [f for r in made.truth["recordings"] for f in r["files"]]
    there = [p.relative_to(made.folder).as_posix() for p in made.folder.rglob("*") if p.is_file()]
    assert sorted([*told, "rig.toml", "truth.json"]) == sorted(there)


def test_the_servers_clock_is_the_sessions(made: Session) -> None:
    assert made.truth["session_clock"] == "leader"
    for device_ns, session_ns in made.recordings["leader"]["clock"]:
        assert device_ns == session_ns
    assert made.recordings["leader"]["role"] == "server"
    assert made.recordings["helper"]["role"] == "client"


def test_every_clock_is_its_own(made: Session) -> None:
    drifts = {n: made.clock(n).drift_ppm(int(made.clock(n).knots[0, 0])) for n in made.recordings}
    assert len({round(d, 3) for d in drifts.values()}) == len(drifts)
    assert all(abs(d) <= 100 for d in drifts.values())
    assert abs(drifts["helper"]) > 0.01


def test_both_gopros_wrote_the_same_names(made: Session) -> None:
    front, rear = ([p.name for p in made.files(f"gopro-{k}")] for k in ("front", "rear"))
    assert front == rear == ["GX010123.MP4", "GX020123.MP4"]
    serials = {made.recordings[f"gopro-{k}"]["serial"] for k in ("front", "rear")}
    assert len(serials) == 2


# --- glasses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leader", "helper"])
def test_the_vendor_opens_the_glasses_without_a_warning(
    made: Session, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    provider = open_glasses(made.files(name)[0])
    provider.get_device_calibration()
    provider.get_image_data_by_index(RGB, 0)
    told = capfd.readouterr()
    for word in ("WARN", "ERROR", "Fail", "fail", "invalid", "missing"):
        assert word not in told.out + told.err
    assert provider.get_metadata().shared_session_id == made.truth["shared_session_id"]
    mode = provider.get_metadata().time_sync_mode.name
    assert mode == {"leader": "TicSyncServer", "helper": "TicSyncClient"}[name]
    cameras = provider.get_device_calibration().get_camera_labels()
    assert {"camera-rgb", "camera-slam-left", "camera-slam-right", "camera-et-left"} < set(cameras)


@pytest.mark.parametrize("name", ["leader", "helper"])
def test_streams_of_the_glasses_are_as_told(made: Session, name: str) -> None:
    provider = open_glasses(made.files(name)[0])
    for track, told in made.recordings[name]["tracks"].items():
        times = provider.get_timestamps_ns(StreamId(told["source"]), DEVICE)
        assert (np.diff(times) > 0).all()
        if track != "mic":
            assert (len(times), times[0], times[-1]) == (
                told["count"], told["first_ns"], told["last_ns"],
            ), track  # fmt: skip


def test_pictures_of_the_glasses_carry_their_numbers(made: Session) -> None:
    for name, track in itertools.product(("leader", "helper"), ("rgb", "slam-left", "et")):
        provider, told = open_glasses(made.files(name)[0]), made.track(name, track)
        for k in (0, 1, 33, told["count"] - 1):
            image, record = provider.get_image_data_by_index(StreamId(told["source"]), k)
            assert read(image.to_numpy_array()) == Stamp(k, told["barcode"])
            assert record.frame_number == k


def test_sound_of_the_glasses_has_a_time_for_every_sample(made: Session) -> None:
    provider, told = open_glasses(made.files("helper")[0]), made.track("helper", "mic")
    times = [
        np.array(provider.get_audio_data_by_index(MIC, k)[1].capture_timestamps_ns)
        for k in range(provider.get_num_data(MIC))
    ]
    assert {len(t) for t in times} == {4096}
    joined = np.concatenate(times)
    assert (joined[0], joined[-1], len(joined)) == (
        told["first_ns"], told["last_ns"], told["count"],
    )  # fmt: skip
    steps = np.diff(joined)
    assert set(steps.tolist()) <= {20833, 20834}
    starts = np.array(provider.get_timestamps_ns(MIC, TimeDomain.RECORD_TIME))
    assert np.abs(starts - joined[::4096]).max() <= 1000  # record times are float64 seconds
    assert provider.get_timestamps_ns(MIC, DEVICE) == joined[4095::4096].tolist()


def test_ticsync_converts_to_the_session_clock_once_settled(made: Session) -> None:
    provider, clock = open_glasses(made.files("helper")[0]), made.clock("helper")
    times = np.array(provider.get_timestamps_ns(RGB, DEVICE))
    found = np.array(
        [
            provider.convert_from_device_time_to_synctime_ns(int(t), TimeSyncMode.TIC_SYNC)
            for t in times
        ]
    )
    error = np.abs(found - clock.apply(times))
    settled = times > times[0] + round(SETTLED_S * NS_PER_S)
    assert settled.sum() > 100
    assert error[settled].max() < 2_000
    assert 300_000 < error[0] < 1_000_000
    assert error[settled].max() < error[: len(error) // 4].min()


def test_the_server_maps_no_time(made: Session) -> None:
    provider = open_glasses(made.files("leader")[0])
    assert not provider.supports_time_domain(RGB, TimeDomain.TIC_SYNC)


# --- GoPros and webcam -----------------------------------------------------------------------


def ffprobe(path: Path, *ask: str) -> tuple[dict[str, Any], list[str]]:
    if shutil.which("ffprobe") is None:
        pytest.skip("ffprobe is not installed")
    done = subprocess.run(
        ["ffprobe", "-v", "warning", "-of", "json", *ask, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    warnings = [w for w in done.stderr.splitlines() if w and not w.startswith(AS_ANY_GOPRO)]
    told: dict[str, Any] = json.loads(done.stdout)
    return told, warnings


def packets(path: Path, stream: str) -> list[dict[str, Any]]:
    told, warnings = ffprobe(path, "-select_streams", stream, "-show_packets")
    assert warnings == []
    found: list[dict[str, Any]] = told["packets"]
    return found


@pytest.mark.parametrize("name", ["gopro-front", "gopro-rear", "webcam"])
def test_ffprobe_and_ffmpeg_have_nothing_to_complain_of(made: Session, name: str) -> None:
    for path in made.files(name):
        assert ffprobe(path, "-show_streams", "-show_format")[1] == []
        command = ["ffmpeg", "-v", "warning", "-i", str(path), "-map", "0:v", "-map", "0:a"]
        done = subprocess.run([*command, "-f", "null", "-"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_gopro_file_has_the_tracks_of_a_real_one(made: Session, shared_data: Path) -> None:
    real = ffprobe(shared_data / "3_gopro/gpmf-parser/hero7.mp4", "-show_streams")[0]["streams"]
    expected = {_track_of(s) for s in real} - {("GoPro SOS", "fdsc")}
    for path in made.files("gopro-front"):
        assert {_track_of(s) for s in ffprobe(path, "-show_streams")[0]["streams"]} == expected


def _track_of(stream: dict[str, Any]) -> tuple[str, str]:
    return stream["tags"]["handler_name"].strip("\x0b\t "), stream["codec_tag_string"]


def test_chapters_share_their_date_and_count_on_in_time_code(made: Session) -> None:
    first, second = (
        ffprobe(p, "-show_streams", "-show_format")[0] for p in made.files("gopro-front")
    )
    assert first["format"]["tags"]["creation_time"] == second["format"]["tags"]["creation_time"]
    codes = [_frames_of(s["streams"][0]["tags"]["timecode"]) for s in (first, second)]
    assert codes[1] - codes[0] == int(first["streams"][0]["nb_frames"])


def _frames_of(timecode: str) -> int:
    hours, minutes, seconds, frames = map(int, timecode.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 30 + frames


@pytest.mark.parametrize("name", ["gopro-front", "gopro-rear"])
def test_frames_of_all_chapters_are_on_one_clock(made: Session, name: str) -> None:
    told, start, times = made.track(name, "video"), 0, []
    for path in made.files(name):
        found = packets(path, "v:0")
        times += [start + p["pts"] for p in found]
        start += sum(p["duration"] for p in found)
    assert times == [3003 * k for k in range(told["count"])]  # at 90 kHz
    last_ns = times[-1] * NS_PER_S // 90_000
    assert abs(last_ns - told["last_ns"]) <= 1
    assert told["first_ns"] == 0


@pytest.mark.parametrize("name", ["gopro-front", "webcam"])
def test_no_frame_of_a_camera_is_lost_or_doubled(made: Session, name: str) -> None:
    told = made.track(name, "video")
    stamps = [
        read(frame.to_ndarray(format="gray"))
        for path in made.files(name)
        for frame in _decoded(path, "video")
    ]
    assert stamps == [Stamp(k, told["barcode"]) for k in range(told["count"])]


def _decoded(path: Path, kind: str) -> list[Any]:
    with av.open(str(path)) as container:
        return list(container.decode(**{kind: 0}))


def _joined_sound(paths: list[Path]) -> NDArray[np.float32]:
    """Decode files through the one decoder of the first."""
    containers = [av.open(str(path)) for path in paths]
    decoder: Any = containers[0].streams.audio[0].codec_context
    frames = []
    for container in containers:
        for packet in container.demux(container.streams.audio[0]):
            if packet.size:
                frames += decoder.decode(packet)
    frames += decoder.decode(None)
    joined: NDArray[np.float32] = np.concatenate([f.to_ndarray() for f in frames], axis=1)
    for container in containers:
        container.close()
    return joined


def test_chapters_hold_what_one_file_would(made: Session, tmp_path: Path) -> None:
    """Cut in two, in five or not at all: the same packets, the same sound to the bit."""
    from dataclasses import replace

    from synorama.simulate.devices.gopro import GoPro, write_gopro
    from synorama.simulate.sound.plain import Hearing, Sound

    clock = made.clock("gopro-front")
    sound = Sound(made.truth["start_ns"], SECONDS, seed=11)
    camera = GoPro(
        name="x", serial="C1", clock=clock, seconds=12.0, chapters=1, number=7, width=96, height=64,
        start_epoch_s=1.5e9, barcode=1, hearing=Hearing(0.5, 0.01), seed=1,
    )  # fmt: skip
    whole = _written(tmp_path / "1", camera, sound, write_gopro)
    for chapters in (2, 5):
        cut = _written(
            tmp_path / str(chapters), replace(camera, chapters=chapters), sound, write_gopro
        )
        assert len(cut) == chapters
        for kind in ("video", "audio"):
            assert _payloads(cut, kind) == _payloads(whole, kind)
        assert np.array_equal(_joined_sound(cut), _joined_sound(whole))
        seam_s = 0.0
        for path in cut:
            sound_packets, frames = packets(path, "a:0"), packets(path, "v:0")
            first_s = float(sound_packets[0]["pts_time"])
            assert -0.0214 < first_s < 0.0214, "sound begins at most a packet from the picture"
            index = round((seam_s + first_s) * 48_000)
            assert (index + 1024) % 1024 == 0, "and lies where the uncut sound has it"
            seam_s += sum(int(p["duration"]) for p in frames) / 90_000


def _written(folder: Path, camera: Any, sound: Any, write: Any) -> list[Path]:
    folder.mkdir()
    return list(write(folder, camera, sound)[0])


def _payloads(paths: list[Path], kind: str) -> list[bytes]:
    found = []
    for path in paths:
        with av.open(str(path)) as container:
            stream = container.streams.get(**{kind: 0})[0]
            found += [bytes(p) for p in container.demux(stream) if p.size]
    return found


def test_the_webcam_has_no_duration_and_varying_frames(made: Session) -> None:
    (path,) = made.files("webcam")
    told, _ = ffprobe(path, "-show_format", "-show_streams")
    assert "duration" not in told["format"]
    video, audio = packets(path, "v:0"), packets(path, "a:0")
    steps = np.diff([p["pts"] for p in video])
    assert len(set(steps.tolist())) > 5
    assert steps.max() > 60
    expected = made.track("webcam", "video")
    assert (len(video), video[-1]["pts"] * 1_000_000) == (expected["count"], expected["last_ns"])
    assert [p["pts"] for p in audio] == [7 + 20 * k for k in range(len(audio))]


# --- one sound, many clocks ------------------------------------------------------------------


def hear(made: Session, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return device times and samples of what a recording heard."""
    if name in ("leader", "helper"):
        provider = open_glasses(made.files(name)[0])
        blocks = [
            provider.get_audio_data_by_index(MIC, k) for k in range(provider.get_num_data(MIC))
        ]
        times = np.concatenate([b[1].capture_timestamps_ns for b in blocks])
        samples = np.concatenate([np.array(b[0].data).reshape(-1, 7)[:, 2] for b in blocks])
        return times.astype(np.int64), samples / 2**31
    mono = _joined_sound(made.files(name))[0].astype(np.float64)
    first_ns = made.track(name, "audio")["first_ns"]
    times = first_ns + np.arange(len(mono)) * NS_PER_S // 48_000
    return times, mono


@pytest.fixture(scope="module")
def on_session_clock(made: Session) -> dict[str, Any]:
    heard = {}
    for name in made.recordings:
        times, samples = hear(made, name)
        at = (made.clock(name).apply(times) - made.truth["start_ns"]) / NS_PER_S
        heard[name] = (at, samples)
    return heard


@pytest.mark.parametrize("name", ["helper", "gopro-front", "gopro-rear", "webcam"])
@pytest.mark.parametrize("at_s", [5.0, 25.0, 45.0])
def test_all_hear_the_same_at_the_same_time(
    on_session_clock: dict[str, Any], name: str, at_s: float
) -> None:
    here = resampled(on_session_clock["leader"], at_s)
    there = resampled(on_session_clock[name], at_s)
    lag_s, score = lag(here, there)
    assert score > 0.9
    assert abs(lag_s) < 5e-6


def resampled(heard: tuple[Any, Any], at_s: float, lasts_s: float = 3.0) -> Any:
    at, samples = heard
    inside = (at > at_s - 0.01) & (at < at_s + lasts_s + 0.01)
    spline = make_interp_spline(at[inside], samples[inside], k=5)
    return spline(at_s + np.arange(round(lasts_s * 48_000)) / 48_000)


def lag(here: Any, there: Any) -> tuple[float, float]:
    """Return by how much ``there`` comes later [s], and the normalised peak."""
    n = 2 * len(here)
    cross = np.fft.irfft(np.fft.rfft(there, n) * np.fft.rfft(here, n).conj())
    k = int(np.argmax(cross))
    a, b, c = cross[k - 1], cross[k], cross[(k + 1) % n]
    peak = k + 0.5 * (a - c) / (a - 2 * b + c)
    score = b / np.sqrt(np.sum(here**2) * np.sum(there**2))
    return (peak - n if peak > n / 2 else peak) / 48_000, float(score)


# --- same seed, same bytes -------------------------------------------------------------------


def digests(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        simulate(tmp_path / name, seed=seed, seconds=6)
    a, b, c = (digests(tmp_path / name) for name in "abc")
    assert a == b
    assert a.pop("rig.toml") == c.pop("rig.toml")  # the same devices on another day
    assert not set(a.values()) & set(c.values())


# --- whole or not at all ---------------------------------------------------------------------


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for name in ("", "mine"):
        with pytest.raises(OutputExistsError) as caught:
            simulate(tmp_path / name, seconds=4)
        assert caught.value.hint
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritableError) as caught:
        simulate(tmp_path / "no" / "where", seconds=4)
    assert str(tmp_path / "no" / "where") in str(caught.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputNotWritableError):
        simulate(tmp_path / "x", seconds=4)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DiskFullError),
        (PermissionError(errno.EACCES, "Permission denied"), OutputNotWritableError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_nothing_half_written_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    expected: type[BaseException],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(session_module, "write_webcam", fail)
    with pytest.raises(expected):
        simulate(tmp_path / "x", seconds=4)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """On a real small disk, at several sizes, so that every kind of file is hit."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    simulate(tmp_path / "fits", seconds=4)
    sizes = [p.stat().st_size for p in (tmp_path / "fits").rglob("*.*") if p.is_file()]
    cameras = sum(size for size in sizes if size < 1_000_000)
    for size_k in ((sum(sizes) - share * cameras) // 1024 for share in (20, 0.8, 0.2)):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={int(size_k)}k", "tmpfs", str(place)]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("this system lets nobody mount a small disk")
        try:
            with pytest.raises(DiskFullError):
                simulate(place / "x", seconds=4)
            assert list(place.iterdir()) == []
        finally:
            subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("seconds", [3.9, 0, -1, float("nan"), float("inf"), 7201])
def test_lengths_without_sense_are_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(UsageError):
        simulate(tmp_path / "x", seconds=seconds)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="huge"):
        simulate(tmp_path / "x", seconds=4, size="huge")  # type: ignore[arg-type]


def test_what_a_device_records_does_not_depend_on_the_others(tmp_path: Path) -> None:
    simulate(tmp_path / "all", seconds=4)
    simulate(tmp_path / "two", seconds=4, devices=["webcam", "gopro-rear"])
    whole, part = digests(tmp_path / "all"), digests(tmp_path / "two")
    assert len(part) == 5
    own = {k: v for k, v in part.items() if k not in ("rig.toml", "truth.json")}
    assert own.items() < whole.items()
    with pytest.raises(UsageError, match="phone"):
        simulate(tmp_path / "x", seconds=4, devices=["phone"])


def test_progress_ends_at_all(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    simulate(tmp_path / "x", seconds=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 5) for k in range(6)]
    assert os.access(tmp_path / "x", os.R_OK | os.X_OK)
