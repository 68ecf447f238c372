"""Gen 2 glasses in small: every stream opens and means in the vendor's reader what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from projectaria_tools.core import data_provider
from projectaria_tools.core.sensor_data import TimeDomain, TimeSyncMode
from projectaria_tools.core.stream_id import StreamId

from synorama.simulate.clocks import steady_clock
from synorama.simulate.devices.aria2 import write_glasses2
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.formats.barcode import Stamp, read
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S

SESSION_NS, DEVICE_NS = 9_000_000_000_000, 123_456_789_012
SECONDS = 4.0
DEVICE = TimeDomain.DEVICE_TIME


class Made:
    def __init__(self, path: Path, glasses: Glasses, sound: Sound) -> None:
        self.path, self.glasses, self.sound = path, glasses, sound
        self.truth: dict[str, TrackTruth] = write_glasses2(path, glasses, sound)
        self.provider: Any = data_provider.create_vrs_data_provider(str(path))
        assert self.provider is not None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    clock = steady_clock(
        "g", device_ns=DEVICE_NS, session_ns=SESSION_NS, length_ns=4 * NS_PER_S, drift_ppm=12.0
    )
    glasses = Glasses(
        name="g",
        serial="1M000000000S00",
        clock=clock,
        start_ns=DEVICE_NS,
        seconds=SECONDS,
        sync_role="client",
        shared_session_id="6f0d4a5e-0000-4000-8000-000000000000",
        start_epoch_s=1_735_725_600,
        barcode=0,
        hearing=Hearing(0.9, 0.001),
        seed=3,
        generation=2,
    )
    folder = tmp_path_factory.mktemp("gen2")
    return Made(folder / "g.vrs", glasses, Sound(SESSION_NS, SECONDS, seed=3))


def test_it_opens_without_a_warning(made: Made, capfd: pytest.CaptureFixture[str]) -> None:
    provider = data_provider.create_vrs_data_provider(str(made.path))
    assert provider is not None
    count = sum(1 for _ in provider.deliver_queued_sensor_data())
    out, err = capfd.readouterr()
    told = [line for line in (out + err).splitlines() if "CUDA" not in line]  # of this machine
    for word in ("WARN", "ERROR", "Fail", "fail"):
        assert not [line for line in told if word in line]
    streams = provider.get_all_streams()
    assert count == sum(provider.get_num_data(s) for s in streams)


def test_streams_are_as_told(made: Made) -> None:
    for name, track in made.truth.items():
        times = made.provider.get_timestamps_ns(StreamId(track.source), DEVICE)
        if name == "mic":
            assert len(times) * 320 == track.count
        elif name == "handtracking":  # the vendor keeps whole microseconds
            assert len(times) == track.count
            assert abs(times[0] - track.first_ns) < 1000
        else:
            assert (len(times), times[0], times[-1]) == (
                track.count, track.first_ns, track.last_ns,
            ), name  # fmt: skip


def test_pictures_carry_their_numbers(made: Made) -> None:
    for name, track in made.truth.items():
        if track.barcode is None:
            continue
        for k in (0, track.count - 1, 3, 13):
            image, record = made.provider.get_image_data_by_index(StreamId(track.source), k)
            assert read(image.to_numpy_array()) == Stamp(k, track.barcode), name
            assert record.frame_number == k


def test_sound_decodes_at_its_true_times(made: Made) -> None:
    stream = StreamId("231-1")
    blocks = [made.provider.get_audio_data_by_index(stream, k) for k in range(20, 150)]
    times = np.concatenate([b[1].capture_timestamps_ns for b in blocks])
    samples = np.concatenate([np.array(b[0].data).reshape(-1, 8)[:, 4] for b in blocks])
    assert np.median(np.diff(times)) == pytest.approx(62_301, abs=2)
    rate = 16_051.0
    expected = made.sound.heard(made.glasses.clock, rate, int(times[0]), 0, len(times))
    n = 2 * len(times)
    a, b = np.fft.rfft(expected, n), np.fft.rfft(samples, n)
    cross = np.fft.irfft(b * a.conj() * (np.abs(np.fft.rfftfreq(n, 1 / rate)) < 5000))
    k = int(np.argmax(cross))
    left, top, right = cross[k - 1], cross[k], cross[(k + 1) % n]
    lag = k + 0.5 * (left - right) / (left - 2 * top + right)
    assert abs(lag if lag < n / 2 else lag - n) / rate < 5e-6


def test_pictures_between_key_frames_decode_after_them(made: Made, tmp_path: Path) -> None:
    track = write_glasses2(tmp_path / "g.vrs", made.glasses, made.sound, gop=7)["rgb"]
    provider: Any = data_provider.create_vrs_data_provider(str(tmp_path / "g.vrs"))
    stream = StreamId(track.source)
    for k in (5, 12, 3, 39):
        image, _ = provider.get_image_data_by_index(stream, k)
        assert read(image.to_numpy_array()) == (k, track.barcode)


def test_what_it_computed_reads_back(made: Made) -> None:
    gaze = made.provider.get_eye_gaze_data_by_index(StreamId("373-1"), 5)
    assert gaze is not None
    hands = made.provider.get_hand_pose_data_by_index(StreamId("371-1"), 5)
    assert hands.left_hand is not None
    assert hands.right_hand is not None
    vio = made.provider.get_vio_data_by_index(StreamId("371-2"), 5)
    where = np.ravel(vio.transform_odometry_bodyimu.translation())
    assert np.linalg.norm(where[:2]) == pytest.approx(1.0, abs=1e-6)
    fast = made.provider.get_vio_high_freq_data_by_index(StreamId("371-3"), 100)
    assert np.ravel(fast.transform_odometry_device.translation())[2] == pytest.approx(1.6)


def test_the_receiver_knows_the_broadcasters_time(made: Made) -> None:
    assert made.provider.supports_time_domain(StreamId("214-1"), TimeDomain.SUBGHZ)
    t_ns = made.truth["rgb"].last_ns
    found = made.provider.convert_from_device_time_to_synctime_ns(t_ns, TimeSyncMode.SUBGHZ)
    assert abs(found - made.glasses.clock.apply(t_ns)) < 1_000_000


def test_the_broadcaster_has_no_mapping_and_says_who_it_is(made: Made, tmp_path: Path) -> None:
    glasses = replace(made.glasses, sync_role="server", seconds=1.0)
    other = Made(tmp_path / "b.vrs", glasses, made.sound)
    assert not other.provider.supports_time_domain(StreamId("214-1"), TimeDomain.SUBGHZ)
    assert '"subghz_mode":"broadcaster"' in other.provider.get_file_tags()["metadata"]


def test_the_same_seed_gives_the_same_bytes(made: Made, tmp_path: Path) -> None:
    again = Made(tmp_path / "g.vrs", made.glasses, made.sound)
    assert again.path.read_bytes() == made.path.read_bytes()
