"""What users of other programs complained of: one test each, named after the complaint.

The sounds are as short as the property allows; ``bench/sync.py`` holds half an hour.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.io import wavfile

from synorama.alignment import align_files
from synorama.errors import NoSoundError
from synorama.media.audio import MonoSound
from tests.sync.files import check, knots, mp4, one
from tests.sync.sounds import RATE, affine, dropped, heard, room, speech

Float64 = NDArray[np.float64]
Write = Callable[[str, MonoSound], Path]
LONG_S = 205.0
PAUSE = re.compile(r"leaps somewhere from ([\d.]+) to ([\d.]+) s")


@pytest.fixture(scope="module")
def talk() -> Float64:
    return speech(LONG_S + 10, 61)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, talk: Float64) -> Path:
    """Return what one device heard of all the talk."""
    path = tmp_path_factory.mktemp("complaints") / "reference.wav"
    wavfile.write(path, RATE, heard(room(talk, 1), affine(0), LONG_S, seed=1).samples)
    return path


@pytest.fixture(scope="module")
def there(talk: Float64) -> Float64:
    """The talk, elsewhere in the room."""
    return room(talk, 2)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a sound to a file of its own."""

    def written(name: str, sound: MonoSound) -> Path:
        wavfile.write(tmp_path / name, RATE, sound.samples)
        return tmp_path / name

    return written


def minute(there: Float64, offset_s: float, ppm: float = 0.0, **how: float) -> MonoSound:
    """Return a minute, or ``seconds``, of the talk on a device's clock."""
    seconds = how.pop("seconds", 60.0)
    return heard(there, affine(offset_s, ppm), seconds, snr_db=15, seed=5, **how)  # type: ignore[arg-type]


def test_ego_view_is_five_frames_behind_the_exo_view(
    reference: Path, there: Float64, tmp_path: Path
) -> None:
    """Its sound set in five frames after its pictures: times are the pictures' as well."""
    frames_s = 9616 / 48_000  # five frames, such that the file's whole milliseconds are exact
    mp4(tmp_path / "ego.mp4", minute(there, 4.75, 20).samples, first_s=frames_s)
    check(one(reference, tmp_path / "ego.mp4"), 4.75 - frames_s * (1 + 20e-6), 20)


def test_off_by_one_frame(reference: Path, there: Float64, tmp_path: Path) -> None:
    """What an encoder puts before the first sample, here 21 ms, shifts nothing."""
    mp4(tmp_path / "b.mp4", minute(there, 4.75, 20).samples)
    check(one(reference, tmp_path / "b.mp4"), 4.75, 20)


def test_sounds_slide_apart_by_380_ms_over_44_minutes(
    reference: Path, there: Float64, write: Write
) -> None:
    """145 ppm: seen within a minute so well that after 44 of them less than 2 ms are left."""
    result = one(reference, write("b.wav", minute(there, 4.75, 145)))
    check(result, 4.75, 145)
    assert result.line is not None
    at_s = 44 * 60
    assert abs(result.line[1] - 145) * 1e-6 * at_s < 2e-3


def test_two_gopros_are_200_ms_apart_after_78_minutes(
    reference: Path, there: Float64, write: Write
) -> None:
    ppm = -0.2 / (78 * 60) * 1e6
    result = one(reference, write("b.wav", minute(there, 4.75, ppm)))
    check(result, 4.75, ppm)
    assert result.line is not None
    assert abs(result.line[1] - ppm) * 1e-6 * 78 * 60 < 4e-3


def test_a_search_limit_of_30_s_hid_the_true_offset(
    reference: Path, there: Float64, write: Write
) -> None:
    check(one(reference, write("b.wav", minute(there, 131.3, 20))), 131.3, 20)


def test_a_clip_that_starts_late_was_placed_at_the_start(
    reference: Path, there: Float64, write: Write
) -> None:
    check(one(reference, write("b.wav", minute(there, 120.0, seconds=25))), 120.0)


def test_which_file_lies_inside_which(reference: Path, there: Float64, write: Write) -> None:
    inner = write("b.wav", minute(there, 105.5, seconds=22))
    check(one(reference, inner), 105.5)
    check(one(inner, reference), -105.5)


def test_the_sign_of_the_offset(reference: Path, there: Float64, write: Write) -> None:
    """Positive where the other started later: the reference's time at its time zero."""
    late, early = write("late.wav", minute(there, 12.5)), reference
    assert one(early, late).line == pytest.approx((12.5, 0.0), abs=0.5)
    assert one(late, early).line == pytest.approx((-12.5, 0.0), abs=0.5)


def test_the_answer_was_zero_with_infinite_score(
    reference: Path, there: Float64, write: Write, tmp_path: Path
) -> None:
    """Zero where it is true, with a finite score; never because nothing was found."""
    copy = tmp_path / "copy.wav"
    copy.write_bytes(reference.read_bytes())
    same = one(reference, copy)
    check(same, 0.0, within_ms=0.001)
    assert same.score is not None
    assert np.isfinite(same.score)
    silent = one(reference, write("b.wav", MonoSound("b", 0, RATE, np.zeros(60 * RATE, np.int16))))
    assert silent.line is None
    assert silent.score == 0.0


@pytest.mark.parametrize("level", [0.0, 0.7, 30.0])
def test_a_random_match_on_silence(reference: Path, write: Write, level: float) -> None:
    noise = np.random.default_rng(8).standard_normal(60 * RATE) * level
    quiet = MonoSound("b", 0, RATE, np.rint(noise).astype(np.int16))
    result = one(reference, write("b.wav", quiet))
    assert not result.accepted
    assert result.knots_s() == []


@pytest.mark.parametrize("seed", [71, 72, 73])
def test_unrelated_clips_were_aligned_all_the_same(
    reference: Path, write: Write, seed: int
) -> None:
    stranger = heard(room(speech(50, seed), 3), affine(0), 45, seed=9)
    result = one(reference, write("b.wav", stranger))
    assert not result.accepted
    assert "needs" in result.reason


def test_repeated_music_was_placed_at_the_wrong_repetition(write: Write) -> None:
    tune = np.tile(speech(4.0, 3), 20)
    whole = heard(room(tune, 1), affine(0), 70, name="whole", seed=1)
    part = heard(room(tune, 2), affine(12.0), 30, seed=2)
    result = one(write("a.wav", whole), write("b.wav", part))
    assert not result.accepted
    assert result.ambiguous


def test_inverted_polarity_shifted_the_answer(
    reference: Path, there: Float64, write: Write
) -> None:
    check(one(reference, write("b.wav", minute(there, 7.3, -20, gain=-1.0))), 7.3, -20)


def test_a_drift_rate_that_changes_in_mid_session(
    reference: Path, there: Float64, write: Write
) -> None:
    def clock(t: Float64) -> Float64:
        return np.asarray(1.5 + t * (1 + 20e-6) - 40e-6 * np.maximum(t - 100, 0))

    table = knots(one(reference, write("b.wav", heard(there, clock, 200, seed=2))))
    at = np.arange(5.0, 196.0, 10.0)
    got = np.interp(at, table[:, 0], table[:, 1])
    assert np.abs(got - clock(at)).max() < 5e-4


def lossy(there: Float64, at_s: list[float], by_s: list[float]) -> tuple[MonoSound, Float64]:
    """Return a recording that lost sound, and its true clock between the losses."""
    clock = affine(0.5, -30)
    for at, by in zip(at_s, by_s, strict=True):
        clock = dropped(clock, at, by)
    middles = np.array([0.0, *at_s]) + np.diff([0.0, *at_s, 200.0]) / 2
    truth = np.column_stack([middles, clock(middles)])
    return heard(there, clock, 200, snr_db=10, seed=2), truth


def check_losses(found: Path, other: Path, at_s: list[float], truth: Float64) -> None:
    result = one(found, other)
    found_at = [jump["at_s"] for jump in result.jumps()]
    assert len(found_at) == len(at_s)
    told = [(float(a), float(b)) for a, b in PAUSE.findall(result.reason)]
    for at, place in zip(at_s, found_at, strict=True):  # in a pause nobody can tell
        assert abs(place - at) < 0.6 or any(a - 0.1 < at < b + 0.1 for a, b in told)
        assert abs(place - at) < 1.6
    table = knots(result)
    got = np.interp(truth[:, 0], table[:, 0], table[:, 1])
    assert np.abs(got - truth[:, 1]).max() < 1e-4


def test_only_one_of_five_segments_was_right(reference: Path, there: Float64, write: Write) -> None:
    at_s = [41.0, 80.0, 118.0, 160.0]
    sound, truth = lossy(there, at_s, [0.4, 0.05, 1.3, 0.12])
    check_losses(reference, write("b.wav", sound), at_s, truth)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_drops_on_one_track(
    reference: Path, there: Float64, write: Write, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    at_s = (np.array([60.0, 130.0]) + rng.uniform(-15, 15, 2)).tolist()
    by_s = np.exp(rng.uniform(np.log(0.02), np.log(2.0), 2)).tolist()
    sound, truth = lossy(there, at_s, by_s)
    check_losses(reference, write("b.wav", sound), at_s, truth)


def test_a_camera_without_audio_stopped_everything(
    reference: Path, there: Float64, write: Write, tmp_path: Path
) -> None:
    mute = tmp_path / "mute.mp4"
    with av.open(str(mute), "w") as container:
        video = container.add_stream("libx264", rate=25)
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        for k in range(25):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            frame.pts = k
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
    found = align_files([reference, mute, write("b.wav", minute(there, 4.75, 20))])
    silent, good = found.results
    check(good, 4.75, 20)
    assert not silent.accepted
    assert isinstance(silent.error, NoSoundError)
    assert found.failure is silent.error
    assert silent.as_dict()["error"] == "NoSoundError"


MEMORY = """
import sys
from pathlib import Path
from synorama.alignment import align_files
assert align_files([Path(sys.argv[1]), Path(sys.argv[2])]).results[0].accepted
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is asked of Linux")
def test_files_of_3_minutes_took_90_gb_of_memory(
    reference: Path, there: Float64, write: Write
) -> None:
    """The libraries themselves are most of it; ``bench/sync.py`` holds half an hour to 250 MB."""
    other = write("b.wav", minute(there, 1.0, seconds=180.0))
    command = [sys.executable, "-c", MEMORY, str(reference), str(other)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert float(done.stdout) < 180
