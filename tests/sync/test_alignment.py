"""Plain files on one clock: right answers, bad input, the command. Complaints of users of other
tools have a file of their own, `test_complaints`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.io import wavfile
from scipy.signal import resample_poly

from synorama import cli
from synorama.alignment import AlignedFile, Alignment, align_files
from synorama.errors import (
    CorruptFileError,
    InputError,
    InputNotFoundError,
    UsageError,
)
from synorama.media.audio import MonoSound
from tests.sync.files import check, knots, mp4, one
from tests.sync.sounds import RATE, affine, dropped, heard, room, speech

Int16 = NDArray[np.int16]
SECONDS = 60.0


@pytest.fixture(scope="module")
def dry() -> NDArray[np.float64]:
    return speech(75, 31)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, dry: NDArray[np.float64]) -> Path:
    path = tmp_path_factory.mktemp("reference") / "reference.wav"
    sound = heard(room(dry, 1), affine(0), 70, snr_db=20, seed=1)
    wavfile.write(path, RATE, sound.samples)
    return path


@pytest.fixture(scope="module")
def there(dry: NDArray[np.float64]) -> NDArray[np.float64]:
    return room(dry, 2)


def recorded(there: NDArray[np.float64], offset_s: float, ppm: float, seconds: float) -> MonoSound:
    return heard(there, affine(offset_s, ppm), seconds, snr_db=15, seed=5)


# --- right answers -----------------------------------------------------------------------------


def test_document(reference: Path, there: NDArray[np.float64], tmp_path: Path) -> None:
    """The JSON has the fields that are promised, finite, and nothing that was not measured."""
    wavfile.write(tmp_path / "b.wav", RATE, recorded(there, 4.75, 20, 50).samples)
    found = align_files([reference, tmp_path / "b.wav"]).as_dict()
    text = json.dumps(found, allow_nan=False)
    (result,) = json.loads(text)["results"]
    assert found["reference"] == str(reference)
    assert result["file"] == str(tmp_path / "b.wav")
    assert result["accepted"] is True
    assert 0.9 < result["p_match"] < 1
    assert result["jumps"] == []
    assert result["offset_s"] == pytest.approx(4.75, abs=6e-5)
    assert len(result["knots"]) >= 2
    assert {"reason", "drift_ppm", "interval95_ms", "ambiguous"} <= set(result)


def test_distance_decides_the_interval(
    reference: Path, there: NDArray[np.float64], tmp_path: Path
) -> None:
    wavfile.write(tmp_path / "b.wav", RATE, recorded(there, 4.75, 20, 50).samples)
    paths = [reference, tmp_path / "b.wav"]
    (near,) = align_files(paths, farthest_m=0).results
    (far,) = align_files(paths, farthest_m=20).results
    assert near.interval95_ms is not None
    assert far.interval95_ms is not None
    assert near.interval95_ms < 0.1
    assert far.interval95_ms == pytest.approx(near.interval95_ms + 1.2 * 20 / 0.343)


def test_jumps(reference: Path, there: NDArray[np.float64], tmp_path: Path) -> None:
    """Knots lie on both sides of the break; offset and drift are those of the longest segment."""
    clock = dropped(affine(2.0, 30), 20.0, 0.5)
    sound = heard(there, clock, 60, snr_db=15, seed=5)
    wavfile.write(tmp_path / "b.wav", RATE, sound.samples)
    result = one(reference, tmp_path / "b.wav")
    (jump,) = result.jumps()
    assert jump["at_s"] == pytest.approx(20.0, abs=1.0)
    assert jump["by_s"] == pytest.approx(0.5, abs=1e-4)
    assert result.line is not None
    assert result.line[0] == pytest.approx(2.5, abs=1e-4)
    table = knots(result)
    assert (np.diff(table[:, 0]) > 0).all()
    at = np.array([3.0, 17.0, 23.0, 40.0, 57.0])
    got = np.interp(at, table[:, 0], table[:, 1])
    assert np.abs(got - clock(at)).max() < 6e-5


def test_sound_that_starts_after_an_hour(
    reference: Path, there: NDArray[np.float64], tmp_path: Path
) -> None:
    mp4(tmp_path / "b.mkv", recorded(there, 4.75, 0, 40).samples, first_s=3600, pictures=False)
    result = one(reference, tmp_path / "b.mkv")
    check(result, 4.75 - 3600, within_ms=1.0)  # the container's times are whole milliseconds
    assert knots(result)[0, 0] > 3590


def test_silence_of_an_hour_before_the_sound(
    there: NDArray[np.float64], dry: NDArray[np.float64], tmp_path: Path
) -> None:
    late = np.concatenate(
        [np.zeros(3600 * RATE, np.int16), recorded(room(dry, 1), 0, 0, 40).samples]
    )
    wavfile.write(tmp_path / "a.wav", RATE, late)
    wavfile.write(tmp_path / "b.wav", RATE, recorded(there, 4.75, 0, 30).samples)
    check(one(tmp_path / "a.wav", tmp_path / "b.wav"), 3604.75)


def test_a_file_that_overlaps_only_the_third(tmp_path: Path) -> None:
    talk = speech(120, 33)
    wavfile.write(tmp_path / "a.wav", RATE, heard(room(talk, 1), affine(0), 50, seed=1).samples)
    wavfile.write(tmp_path / "c.wav", RATE, heard(room(talk, 2), affine(70), 45, seed=2).samples)
    wavfile.write(tmp_path / "b.wav", RATE, heard(room(talk, 3), affine(15), 95, seed=3).samples)
    c, b = align_files([tmp_path / f"{n}.wav" for n in "acb"]).results
    check(b, 15)
    check(c, 70, within_ms=0.1)
    assert "through another" in c.reason
    assert c.interval95_ms is not None
    assert b.interval95_ms is not None
    assert c.interval95_ms > 1.9 * b.interval95_ms  # sound travels twice


# --- doubtful input that has a right answer ------------------------------------------------------


def clipped(sound: Int16) -> Int16:
    return np.clip(sound.astype(np.int32) * 25, -32768, 32767).astype(np.int16)


def with_nan(sound: Int16) -> NDArray[np.float32]:
    out = np.asarray(sound / np.float32(32768), np.float32)
    out[RATE * 10 : RATE * 12] = np.nan
    out[5000] = np.inf
    return out


def eight_khz(sound: Int16) -> Int16:
    return np.asarray(np.rint(resample_poly(sound.astype(np.float64), 1, 2)), np.int16)


def loud(sound: Int16) -> Int16:
    return np.full_like(sound, 32_767) * np.sign(sound)


def all_nan(sound: Int16) -> NDArray[np.float32]:
    return np.full(len(sound), np.nan, np.float32)


def whispered(sound: Int16) -> Int16:
    """Three steps of 16 bits."""
    return np.asarray(np.rint(sound / 500), np.int16)


def noise(sound: Int16) -> Int16:
    return np.asarray(np.rint(np.random.default_rng(3).standard_normal(len(sound))), np.int16)


Spoil = Callable[[Int16], NDArray[np.generic]]
RIGHT: dict[str, tuple[Spoil, int]] = {
    "clipping": (clipped, RATE),
    "nothing but full scale": (loud, RATE),
    "not a number here and there": (with_nan, RATE),
    "8 kHz": (eight_khz, 8000),
    "three steps": (whispered, RATE),
}
REFUSED: dict[str, tuple[Spoil, int]] = {
    "digital zero": (np.zeros_like, RATE),
    "a microphone's noise": (noise, RATE),
    "no number at all": (all_nan, RATE),
    "16 kHz that claims to be 14.7": (np.asarray, 14_700),  # no clock of any device is 8 % fast
    "16 kHz that claims to be 32": (np.asarray, 32_000),
    "half a second": (lambda sound: sound[: RATE // 2], RATE),
}


@pytest.mark.parametrize("name", RIGHT)
def test_poor_sound_has_a_right_answer(
    reference: Path,
    there: NDArray[np.float64],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    spoil, rate = RIGHT[name]
    wavfile.write(tmp_path / "b.wav", rate, spoil(recorded(there, 4.75, 20, 50).samples))
    check_command(capsys, reference, tmp_path / "b.wav", 4.75, 20)


def check_command(
    capsys: pytest.CaptureFixture[str], reference: Path, other: Path, offset_s: float, ppm: float
) -> None:
    code, out, _ = command(capsys, reference, other, "--json")
    assert code == 0
    (result,) = json.loads(out)["results"]
    table = np.array(result["knots"])
    truth = offset_s + (1 + ppm * 1e-6) * table[:, 0]
    assert np.abs(table[:, 1] - truth).max() < 6e-5
    assert result["score"] >= result["score_needed"]


def test_a_file_that_ends_early(
    reference: Path,
    there: NDArray[np.float64],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "b.wav"
    wavfile.write(path, RATE, recorded(there, 4.75, 20, 60).samples)
    path.write_bytes(path.read_bytes()[: 35 * 2 * RATE + 1])  # in the middle of a sample
    check_command(capsys, reference, path, 4.75, 20)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sound_of_this_room_is_refused(
    reference: Path,
    there: NDArray[np.float64],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """With the score that was reached and that is needed, whichever file is the reference."""
    spoil, rate = REFUSED[name]
    other = tmp_path / "b.wav"
    wavfile.write(other, rate, spoil(recorded(there, 4.75, 0, 50).samples))
    for files in ((reference, other), (other, reference)):
        code, out, err = command(capsys, *files, "--json")
        assert code == 5
        (result,) = json.loads(out)["results"]
        assert not result["accepted"]
        assert result["knots"] == []
        assert 0 <= result["score"] < result["score_needed"]
        assert f"best score {result['score']:.1f}" in result["reason"]
        assert "Traceback" not in err


def test_both_at_8_khz(reference: Path, there: NDArray[np.float64], tmp_path: Path) -> None:
    wavfile.write(tmp_path / "a.wav", 8000, eight_khz(wavfile.read(reference)[1]))
    wavfile.write(tmp_path / "b.wav", 8000, eight_khz(recorded(there, 4.75, 20, 50).samples))
    check(one(tmp_path / "a.wav", tmp_path / "b.wav"), 4.75, 20)


def test_unrelated_files_at_8_khz(reference: Path, tmp_path: Path) -> None:
    """What the empty half of the band holds must not convince."""
    wavfile.write(tmp_path / "a.wav", 8000, eight_khz(wavfile.read(reference)[1]))
    stranger = heard(room(speech(45, 98), 3), affine(0), 40, seed=9)
    wavfile.write(tmp_path / "b.wav", 8000, eight_khz(stranger.samples))
    check_refused(one(tmp_path / "a.wav", tmp_path / "b.wav"))


def test_one_file_named_twice(reference: Path, there: NDArray[np.float64], tmp_path: Path) -> None:
    wavfile.write(tmp_path / "b.wav", RATE, recorded(there, 4.75, 20, 50).samples)
    results = align_files([reference, reference, tmp_path / "b.wav", tmp_path / "b.wav"]).results
    assert results[0].line == (0.0, 0.0)
    assert "itself" in results[0].reason
    for result in results[1:]:
        check(result, 4.75, 20)


# --- what must be refused ------------------------------------------------------------------------


def check_refused(result: AlignedFile, found: Alignment | None = None) -> None:
    """It says what was reached and what is needed, and gives no number for a time."""
    assert not result.accepted
    assert result.score is not None
    assert result.score_needed is not None
    assert f"best score {result.score:.1f}, needs {result.score_needed:.1f}" in result.reason
    document = result.as_dict()
    assert document["knots"] == []
    assert document["offset_s"] is document["drift_ppm"] is document["interval95_ms"] is None
    assert found is None or found.failure is not None
    assert found is None or found.failure.exit_code == 5  # type: ignore[union-attr]


def test_unrelated_files(reference: Path, tmp_path: Path) -> None:
    sound = heard(room(speech(45, 99), 3), affine(0), 40, seed=9)
    wavfile.write(tmp_path / "b.wav", RATE, sound.samples)
    found = align_files([reference, tmp_path / "b.wav"])
    check_refused(found.results[0], found)


def test_no_samples(reference: Path, tmp_path: Path) -> None:
    wavfile.write(tmp_path / "b.wav", RATE, np.zeros(0, np.int16))
    found = align_files([reference, tmp_path / "b.wav"])
    assert not found.results[0].accepted
    assert isinstance(found.failure, InputError)
    with pytest.raises(InputError):
        align_files([tmp_path / "b.wav", reference])


def test_files_that_are_none(reference: Path, tmp_path: Path) -> None:
    (tmp_path / "garbage.wav").write_bytes(b"RIFF" + bytes(range(256)) * 8)
    found = align_files([reference, tmp_path / "garbage.wav", tmp_path / "gone.wav"])
    kinds = [type(r.error) for r in found.results]
    assert issubclass(kinds[0], InputError)
    assert kinds[1] is InputNotFoundError
    with pytest.raises(InputNotFoundError):
        align_files([tmp_path / "gone.wav", reference])


@pytest.mark.parametrize("farthest_m", [-1.0, float("nan"), float("inf")])
def test_what_makes_no_sense(reference: Path, farthest_m: float) -> None:
    with pytest.raises(UsageError):
        align_files([reference, reference], farthest_m=farthest_m)
    with pytest.raises(UsageError):
        align_files([reference])


def test_a_truncated_video_says_why(
    reference: Path, there: NDArray[np.float64], tmp_path: Path
) -> None:
    mp4(tmp_path / "b.mp4", recorded(there, 4.75, 20, 30).samples)
    path = tmp_path / "b.mp4"
    path.write_bytes(path.read_bytes()[:40_000])  # the index, at the end, is lost
    found = align_files([reference, path])
    assert isinstance(found.failure, CorruptFileError)


# --- the command -----------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = cli._run(["align", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert "internal fault" not in err
    return code, out, err


def test_the_command(
    reference: Path,
    there: NDArray[np.float64],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 0, 5 for what was not accepted, 3 for what cannot be heard; JSON in any case."""
    good, silent, none = (tmp_path / f"{n}.wav" for n in ("good", "silent", "none"))
    wavfile.write(good, RATE, recorded(there, 4.75, 20, 50).samples)
    wavfile.write(silent, RATE, np.zeros(20 * RATE, np.int16))
    none.write_bytes(b"nothing of the kind")
    for others, expected in (([good], 0), ([good, silent], 5), ([silent, none, good], 3)):
        code, out, _ = command(capsys, reference, *others, "--json")
        assert code == expected
        results = json.loads(out)["results"]
        assert [r["file"] for r in results] == [str(o) for o in others]
        assert [r["accepted"] for r in results] == [o is good for o in others]
    code, out, err = command(capsys, none, good, "--json")
    assert code == 3
    assert json.loads(out)["error"]["type"] == "UnknownFormatError"
    assert "error: " in err
    assert command(capsys, reference)[0] == 2
    assert command(capsys, reference, good, "--apart", "-1")[0] == 2


def test_the_table_prints_no_more_than_is_known(
    reference: Path,
    there: NDArray[np.float64],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wavfile.write(tmp_path / "b.wav", RATE, recorded(there, 4.7531, 20, 50).samples)
    code, out, _ = command(capsys, reference, tmp_path / "b.wav")
    assert code == 0
    assert "+4.75 " in out
    assert "28 ms" in out
    _, out, _ = command(capsys, reference, tmp_path / "b.wav", "--apart", "0")
    assert "+4.7531" in out
    wavfile.write(tmp_path / "mute.wav", RATE, np.zeros(20 * RATE, np.int16))
    code, out, _ = command(capsys, reference, tmp_path / "mute.wav")
    assert code == 5
    assert "not placed: " in out
    assert "is silent (best score 0.0, needs 6.0)" in out
