"""Pairs of sounds whose clocks are known exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.media.audio import MonoSound, read_mono
from synorama.records import PairEvidence, RecordingClock
from synorama.sync import align
from synorama.sync.fine import _held
from synorama.sync.lines import Line, RobustFit
from tests.sync.sounds import RATE, affine, dropped, heard, room, speech

Clock = Callable[[NDArray[np.float64]], NDArray[np.float64]]
EPOCH = 1_764_000_000_000_000_000  # device clocks may be at the epoch: nanoseconds must survive


@pytest.fixture(scope="module")
def dry() -> NDArray[np.float64]:
    return speech(130, 1)


@pytest.fixture(scope="module")
def reference(dry: NDArray[np.float64]) -> MonoSound:
    return heard(room(dry, 2), affine(0), 110, snr_db=15, name="ref", seed=1, start_ns=EPOCH)


@pytest.fixture(scope="module")
def there(dry: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same talk, elsewhere in the room."""
    return room(dry, 3)


def errors_ms(evidence: PairEvidence, other: MonoSound, clock: Clock) -> NDArray[np.float64]:
    """Return the errors of the accepted clock at start, middle and end of what it covers."""
    assert evidence.accepted, evidence.reason
    first, last = evidence.maps[0].range_ns[0], evidence.maps[-1].range_ns[1]
    times = np.array([first, (first + last) // 2 + 777, last], np.int64)
    got = RecordingClock("other", evidence.maps, "sound", None).apply(times) - EPOCH
    truth = clock((times - other.start_ns) / 1e9)
    return np.asarray(got / 1e6 - truth * 1e3)


@pytest.mark.parametrize(
    ("offset_s", "drift_ppm", "seconds", "snr_db"),
    [
        (7.3125, -20.0, 100.0, 20.0),
        (-31.7, 80.0, 100.0, 5.0),
        (88.25, 0.0, 20.0, 10.0),  # starts late, for a short while
        (7.3, -55.0, 100.0, -8.0),
        (3.0, -180.0, 100.0, 10.0),
    ],
)
def test_offset_and_drift(
    reference: MonoSound,
    there: NDArray[np.float64],
    offset_s: float,
    drift_ppm: float,
    seconds: float,
    snr_db: float,
) -> None:
    clock = affine(offset_s, drift_ppm)
    other = heard(there, clock, seconds, snr_db=snr_db, seed=5, start_ns=3_000_000_007)
    evidence = align(reference, other)
    errors = errors_ms(evidence, other, clock)
    assert np.abs(errors).max() < 0.02
    assert evidence.drift_ppm == pytest.approx(drift_ppm, abs=1.0)
    assert evidence.sigma_ns is not None
    assert np.abs(errors).max() * 1e6 < 3 * evidence.sigma_ns
    assert evidence.offset_ns is not None
    expected = EPOCH + offset_s * 1e9 - 3_000_000_007 * (1 + drift_ppm * 1e-6)
    assert evidence.offset_ns == pytest.approx(expected, abs=1e5)


def test_sign_either_way_round(reference: MonoSound, there: NDArray[np.float64]) -> None:
    other = heard(there, affine(12.5, 30), 60, seed=6)
    there_and_back = align(other, reference).maps[0].apply(align(reference, other).maps[0](10**10))
    assert abs(there_and_back - 10**10) < 20_000


def test_drop_of_samples_makes_two_segments(
    reference: MonoSound, there: NDArray[np.float64]
) -> None:
    clock = dropped(affine(5.2, 30), 47.0, 1.3)
    other = heard(there, clock, 95, snr_db=10, seed=5)
    evidence = align(reference, other)
    assert np.abs(errors_ms(evidence, other, clock)).max() < 0.02
    ((at_ns, by_ns),) = evidence.jumps
    assert abs(at_ns - 47_000_000_000) < 1_500_000_000
    assert abs(by_ns - 1_300_000_000) < 100_000


def test_small_drop(reference: MonoSound, there: NDArray[np.float64]) -> None:
    clock = dropped(affine(5.2, -10), 50.0, 0.085)
    evidence = align(reference, heard(there, clock, 95, snr_db=10, seed=5))
    ((_, by_ns),) = evidence.jumps
    assert abs(by_ns - 85_000_000) < 100_000


@pytest.mark.parametrize(("offset_s", "by_s"), [(30.0, -25.0), (10.0, 20.0)])
def test_a_leap_of_many_seconds_may_be_a_song(
    reference: MonoSound, there: NDArray[np.float64], offset_s: float, by_s: float
) -> None:
    clock = dropped(affine(offset_s), 40.0, by_s)
    evidence = align(reference, heard(there, clock, 75, snr_db=10, seed=5))
    assert evidence.accepted
    assert evidence.ambiguous
    assert f"leaps by {by_s:.0f} s" in evidence.reason


def test_several_drops() -> None:
    """Small ones, a large one, and a last stretch of less than a minute."""
    talk = speech(240, 9)
    clock = dropped(dropped(dropped(affine(3.0, -30), 60, 0.02), 120, 2.5), 190, 0.03)
    reference = heard(room(talk, 2), affine(0), 238, name="ref", seed=1, start_ns=EPOCH)
    other = heard(room(talk, 3), clock, 230, snr_db=10, seed=2)
    evidence = align(reference, other)
    assert np.abs(errors_ms(evidence, other, clock)).max() < 0.02
    np.testing.assert_allclose([at / 1e9 for at, _ in evidence.jumps], [60, 120, 190], atol=1.5)
    leaps = [by / 1e9 for _, by in evidence.jumps]
    np.testing.assert_allclose(leaps, [0.02, 2.5, 0.03], atol=1e-4)


@pytest.mark.parametrize(("seconds", "seed"), [(20.0, 5), (50.0, 6)])
def test_drops_within_seconds(seconds: float, seed: int) -> None:
    """Stretches of six seconds are placed each by itself, and the leaps to a tenth of a second."""
    talk = speech(seconds + 4, seed)
    at = (0.33 * seconds, 0.66 * seconds)
    clock = dropped(dropped(affine(1.0, 60), at[0], 0.05), at[1], 0.25)
    reference = heard(room(talk, 2), affine(0), seconds + 2, name="ref", seed=1, start_ns=EPOCH)
    other = heard(room(talk, 3), clock, seconds, snr_db=20, seed=2)
    evidence = align(reference, other)
    np.testing.assert_allclose([a / 1e9 for a, _ in evidence.jumps], at, atol=0.15)
    np.testing.assert_allclose([by / 1e6 for _, by in evidence.jumps], [50, 250], atol=0.1)
    assert np.abs(errors_ms(evidence, other, clock)).max() < 0.1


def test_wander_is_followed() -> None:
    def clock(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(2.0 + t + 1.5e-3 * np.sin(np.pi * t / 300))

    dry = speech(310, 8)
    reference = heard(room(dry, 2), affine(0), 305, name="ref", seed=1, start_ns=EPOCH)
    other = heard(room(dry, 3), clock, 300, snr_db=10, seed=2)
    assert np.abs(errors_ms(align(reference, other), other, clock)).max() < 0.12


def test_inverted_polarity_changes_nothing(
    reference: MonoSound, there: NDArray[np.float64]
) -> None:
    clock = affine(7.3, -20)
    other = heard(there, clock, 90, seed=5)
    other = replace(other, samples=-other.samples)
    assert np.abs(errors_ms(align(reference, other), other, clock)).max() < 0.02


def test_same_input_same_answer(reference: MonoSound, there: NDArray[np.float64]) -> None:
    other = heard(there, affine(7.3, -20), 60, snr_db=0, seed=5)
    a, b = align(reference, other), align(reference, other)
    assert a.score == b.score
    np.testing.assert_array_equal(a.maps[0].knots, b.maps[0].knots)
    np.testing.assert_array_equal(a.residuals_ns, b.residuals_ns)


@pytest.mark.parametrize("seconds", [2.0, 4.0])
def test_seconds_of_sound_with_an_honest_interval(
    reference: MonoSound, there: NDArray[np.float64], seconds: float
) -> None:
    clock = affine(41.0)
    other = heard(there, clock, seconds, snr_db=15, seed=5)
    evidence = align(reference, other)
    assert np.abs(errors_ms(evidence, other, clock)).max() < 1.0
    assert evidence.sigma_ns is not None
    assert evidence.sigma_ns >= 2e6


# --- what must be refused ----------------------------------------------------------------------


def refused(evidence: PairEvidence) -> bool:
    """Tell whether it was refused with a score below what is needed, or as ambiguous."""
    assert not evidence.maps or evidence.accepted
    assert evidence.accepted or evidence.reason
    below = evidence.score < evidence.score_needed
    return not evidence.accepted and (below or evidence.ambiguous)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("seconds", [3.0, 12.0, 60.0])
def test_unrelated_talk(reference: MonoSound, seed: int, seconds: float) -> None:
    other = heard(room(speech(seconds + 1, 50 + seed), 3), affine(0), seconds, seed=60 + seed)
    assert refused(align(reference, other))


def _noise(seconds: float, seed: int, rms: float) -> MonoSound:
    noise = np.random.default_rng(seed).standard_normal(int(seconds * RATE)) * rms
    return MonoSound("other", 0, RATE, np.rint(noise).astype(np.int16))


@pytest.mark.parametrize("rms", [0.0, 0.2, 1.0, 1000.0])
@pytest.mark.parametrize("seconds", [4.0, 60.0])
def test_silence_and_noise(reference: MonoSound, rms: float, seconds: float) -> None:
    other = _noise(seconds, 3, rms)
    assert refused(align(reference, other))
    assert refused(align(other, replace(reference, name="x")))
    assert refused(align(other, replace(_noise(50, 4, rms), name="x")))


def test_mains_hum_in_both(reference: MonoSound) -> None:
    def hum(seconds: float, seed: int, phase: float) -> MonoSound:
        t = np.arange(int(seconds * RATE)) / RATE
        waves = sum(np.sin(2 * np.pi * 50 * k * (t + phase)) / k for k in range(1, 60))
        noise = np.random.default_rng(seed).standard_normal(len(t)) * 0.3
        return MonoSound(f"hum{seed}", 0, RATE, np.rint(700 * (waves + noise)).astype(np.int16))

    assert not align(hum(60, 1, 0), hum(50, 2, 0.003)).accepted


def test_repeated_music_is_ambiguous() -> None:
    bar = speech(4.0, 3)
    tune = np.tile(bar, 16)
    reference = heard(room(tune, 1), affine(0), 60, name="ref", seed=1)
    other = heard(room(tune, 2), affine(8.0), 30, seed=2)
    evidence = align(reference, other)
    assert not evidence.accepted
    assert evidence.ambiguous


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.5])
def test_too_short(reference: MonoSound, there: NDArray[np.float64], seconds: float) -> None:
    other = replace(heard(there, affine(20), 1.0), samples=np.ones(int(seconds * RATE), np.int16))
    evidence = align(reference, other)
    assert refused(evidence)
    assert "long" in evidence.reason


def test_rates_must_agree(reference: MonoSound) -> None:
    with pytest.raises(ValueError, match="rates differ"):
        align(reference, replace(reference, rate_hz=8000))


# --- real pairs --------------------------------------------------------------------------------


def listen(path: Path, name: str) -> MonoSound:
    from synorama.capture.webcam import open_media_file

    return read_mono([path], open_media_file(path).audios[0], name=name)


def test_tune_in_a_head_camera(shared_data: Path) -> None:
    folder = shared_data / "4_audio" / "facesync"
    camera = listen(folder / "sample1.MP4", "camera")
    evidence = align(camera, listen(folder / "cosan_synctune.wav", "tune"))
    assert evidence.accepted
    assert evidence.offset_ns is not None
    assert evidence.sigma_ns is not None
    assert abs(evidence.offset_ns - 15_161_200_000) < 2 * evidence.sigma_ns


def test_pulses_with_known_latency(shared_data: Path) -> None:
    folder = shared_data / "4_audio" / "google_audio-sync-kit"
    evidence = align(
        listen(folder / "latency_ref_2.wav", "ref"), listen(folder / "latency_act_2.wav", "act")
    )
    assert evidence.accepted
    assert evidence.offset_ns == pytest.approx(105_000_000, abs=300_000)


def test_endless_equal_pulses_are_ambiguous(shared_data: Path) -> None:
    folder = shared_data / "4_audio" / "google_audio-sync-kit"
    evidence = align(
        listen(folder / "latency_ref_3.wav", "ref"), listen(folder / "latency_act_3.wav", "act")
    )
    assert not evidence.accepted
    assert evidence.ambiguous


@pytest.mark.parametrize("other", ["webm", "mov"])
def test_one_recording_in_several_containers(shared_data: Path, other: str) -> None:
    folder = shared_data / "7_webcam" / "iscc-samples"
    evidence = align(listen(folder / "demo.mp4", "mp4"), listen(folder / f"demo.{other}", other))
    assert evidence.accepted
    assert evidence.offset_ns is not None
    assert abs(evidence.offset_ns) < 8_000_000
    assert abs(evidence.drift_ppm or 0) < 0.5


def test_real_sounds_of_different_places(shared_data: Path) -> None:
    files = [
        "7_webcam/iscc-samples/demo.mp4",
        "4_audio/facesync/sample1.wav",
        "4_audio/pyannote_sdist/sample.wav",
        "4_audio/faster-whisper/jfk.flac",
        "4_audio/google_audio-sync-kit/silence.wav",
        "3_gopro/gpmf-parser/hero7.mp4",
    ]
    sounds = [listen(shared_data / f, f) for f in files]
    for k, a in enumerate(sounds):
        for b in sounds[k + 1 :]:
            assert refused(align(a, b)), (a.name, b.name)


def test_a_stretch_in_which_no_window_agrees_has_a_line_all_the_same() -> None:
    """Its rate is held to a device's, whatever the rough one was."""
    none = np.zeros(0)
    held = _held(RobustFit(Line(0.5, 3e-4, 10.0), none, 1e-3, 1e-3, 1e-4), none, none)
    assert held.line == Line(0.5, 1e-4, 10.0)
    assert held.scatter_s == 1e-3
