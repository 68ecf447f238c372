"""``synorama calibrate --skew``: files with a known skew, and the rig that keeps it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from typer.testing import CliRunner

from synorama.calibration.rig import keep_skew
from synorama.calibration.skew import CameraSkew, calibrate_skew
from synorama.capture.config import load_rig
from synorama.capture.discover import open_found
from synorama.cli import app
from synorama.errors import ConfigError, NoMediaError, NoSoundError, UsageError
from synorama.pipeline import Workspace
from synorama.pipeline.ingest import INGEST
from synorama.sync.skew import SkewMeasurement
from tests.devices import Scene
from tests.sync.flashes import GAMMA, frame_times, lit_share, moments

CODECS = {"mp4": ("libx264", "aac"), "mov": ("libx264", "aac"), "webm": ("libvpx", "libopus")}
RATE = 48_000


def write_film(
    path: Path, fps: float, skew_s: float, *, exposure: float | None = 0.9, sound: bool = True
) -> Path:
    """Write flashes with beeps; ``exposure`` is a share of a frame, None for a made file."""
    rng = np.random.default_rng(7)
    at_s = moments(8, rng)
    if exposure is None:
        at_s = np.round(at_s * fps) / fps
    seconds = float(at_s[-1]) + 1.5
    times = frame_times(fps, seconds)
    share = lit_share(times, at_s, (exposure or 1e-3) / fps)
    if exposure is None:
        share = np.array([((t >= at_s - 1e-6) & (t < at_s + 0.12)).any() for t in times / 1e9])
    video, audio = CODECS[path.suffix[1:]]
    with av.open(str(path), "w") as out:
        pictures = out.add_stream(video, rate=Fraction(fps).limit_denominator(1001))
        pictures.width, pictures.height, pictures.pix_fmt = 160, 96, "yuv420p"
        pictures.bit_rate = 800_000
        voice = out.add_stream(audio, rate=RATE, layout="mono") if sound else None
        for frame in _pictures(share, fps, rng):
            out.mux(pictures.encode(frame))
        out.mux(pictures.encode(None))
        if voice is not None:
            for block in _beeps(at_s + skew_s, seconds, rng):
                out.mux(voice.encode(block))
            out.mux(voice.encode(None))
    return path


def _pictures(share: np.ndarray, fps: float, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    scene = rng.uniform(0.02, 0.2, (96, 160))
    for k, lit in enumerate(share):
        light = scene.copy()
        light[20:60, 40:100] += 0.6 * lit
        grey = (255 * np.clip(light, 0, 1) ** (1 / GAMMA)).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(grey, format="gray").reformat(format="yuv420p")
        frame.pts, frame.time_base = k, 1 / Fraction(fps).limit_denominator(1001)
        yield frame


def _beeps(at_s: np.ndarray, seconds: float, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    t = np.arange(int(seconds * RATE)) / RATE
    wave = rng.normal(0, 0.002, len(t))
    for a in at_s:
        on = (t >= a) & (t < a + 0.08)
        wave[on] += 0.5 * np.sin(2 * np.pi * 1000 * (t[on] - a))
    for first in range(0, len(wave), 960):
        block = wave[None, first : first + 960].astype(np.float32)
        frame = av.AudioFrame.from_ndarray(block, format="flt", layout="mono")
        frame.rate, frame.pts, frame.time_base = RATE, first, Fraction(1, RATE)
        yield frame


@pytest.mark.parametrize(
    ("suffix", "fps", "skew_s"), [("mp4", 24, 0.041), ("mov", 60, -0.083), ("webm", 30, 0.0)]
)
def test_filmed_files_of_all_kinds_tell_their_skew(
    tmp_path: Path, suffix: str, fps: float, skew_s: float
) -> None:
    found = calibrate_skew(write_film(tmp_path / f"flash.{suffix}", fps, skew_s), distance_m=0)
    assert abs(found.skew_ms - 1000 * skew_s) < 1.0
    assert found.within_ms < 6.0


@pytest.mark.parametrize(("suffix", "fps"), [("mp4", 29.97), ("mov", 25), ("webm", 60)])
def test_made_files_tell_it_too(tmp_path: Path, suffix: str, fps: float) -> None:
    path = write_film(tmp_path / f"made.{suffix}", fps, 0.030, exposure=None)
    found = calibrate_skew(path)
    assert abs(found.skew_ms - 30) < 1.0
    assert "made" in found.measured.note


def test_the_way_of_the_sound_is_taken_out(tmp_path: Path) -> None:
    path = write_film(tmp_path / "flash.mp4", 60, 0.020)
    near, far = calibrate_skew(path, distance_m=0), calibrate_skew(path, distance_m=3.43)
    assert near.skew_ms - far.skew_ms == pytest.approx(10, abs=0.001)
    assert calibrate_skew(path).within_ms > near.within_ms
    with pytest.raises(UsageError):
        calibrate_skew(path, distance_m=-1)


def test_no_sound_and_no_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSoundError):
        calibrate_skew(write_film(tmp_path / "silent.mp4", 30, 0, sound=False))
    only_sound = tmp_path / "only.wav"
    with av.open(str(only_sound), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=RATE, layout="mono")
        for block in _beeps(np.array([1.0, 2.2]), 4, np.random.default_rng(0)):
            out.mux(stream.encode(block))
        out.mux(stream.encode(None))
    with pytest.raises(NoMediaError):
        calibrate_skew(only_sound)


# --- the rig ---------------------------------------------------------------------------------

RIG = """# our cameras
[[devices]]
serial = "C1"   # the old one
name = "front"

[[devices]]
serial = "C2"
name = "side"
picture_to_sound_skew_ms = 3.0
"""


def skew(serial: str = "", model: str = "") -> CameraSkew:
    return CameraSkew("f.mp4", serial, model, SkewMeasurement(12_340_000, 1.5e6, "flash", 9), 0.0)


def test_the_rig_keeps_what_it_says_and_the_skew(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    path.write_text(RIG)
    assert keep_skew(path, skew("C1")) == "serial C1"
    assert keep_skew(path, skew("C2")) == "serial C2"
    assert keep_skew(path, skew(model="Cam X")) == "model Cam X"
    assert keep_skew(path, skew("C9")) == "serial C9"
    text = path.read_text()
    assert text.startswith("# our cameras\n")
    assert "# the old one" in text
    rig = load_rig(path)
    for number, model in (("C1", ""), ("C2", ""), ("C9", ""), ("", "Cam X"), ("?", "Cam X")):
        assert rig.skew_of(number, model) == (12_340_000, 1_500_000)
    assert rig.skew_of("?", "") is None
    assert [d.name for d in rig.devices] == ["front", "side", "camera-1"]


def test_a_new_rig_is_made_and_a_camera_without_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    with pytest.raises(UsageError, match="neither a serial"):
        keep_skew(path, skew())
    assert not path.exists()
    keep_skew(path, skew(), serial="W7")
    assert load_rig(path).skew_of("W7", "") == (12_340_000, 1_500_000)


def test_a_damaged_rig_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    for text in ("devices = [", 'devices = [{serial = "A", name = "a"}]'):
        path.write_text(text)
        with pytest.raises(ConfigError):
            keep_skew(path, skew("C1"))
        assert path.read_text() == text


def test_the_command_measures_prints_and_writes(tmp_path: Path) -> None:
    film, rig = write_film(tmp_path / "flash.mp4", 30, 0.025), tmp_path / "rig.toml"
    asked = ["calibrate", "--skew", str(film), "--serial", "W1", "--write", str(rig), "--json"]
    told = json.loads(CliRunner().invoke(app, asked).stdout)
    assert told["picture_to_sound_skew_ms"] == pytest.approx(25, abs=1)
    assert told["written"] == str(rig)
    plain = CliRunner().invoke(app, ["calibrate", "--skew", str(film), "--no-progress"]).stdout
    assert "ms later than its picture" in plain
    assert isinstance(CliRunner().invoke(app, ["calibrate"]).exception, UsageError)


def test_a_skew_in_the_rig_reaches_the_pictures_and_makes_the_session_stale(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "kitchen", seconds=4)
    scene.gopro("front", chapters=1)
    rig = tmp_path / "kitchen" / "rig.toml"
    work = Workspace(scene.folder)
    (plain,) = work.discovery.found
    before = INGEST.inputs(work)
    assert open_found(plain).videos[0].skew95_ns is None
    recording = open_found(plain)
    keep_skew(rig, skew(recording.serial))
    again = Workspace(scene.folder)
    (named,) = again.discovery.found
    track = open_found(named).videos[0]
    assert (track.skew_ns, track.skew95_ns) == (12_340_000, 1_500_000)
    assert np.array_equal(track.times_ns, recording.videos[0].times_ns)
    assert np.array_equal(track.moments_ns, track.times_ns + 12_340_000)
    assert INGEST.inputs(again) != before
