"""What a simulated GoPro says of itself and of its motion, over all chapters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
import pytest

from synorama.capture.container import gpmf as reader
from synorama.simulate.clocks import steady_clock
from synorama.simulate.devices.gopro import GoPro, write_gopro
from synorama.simulate.formats import gpmf
from synorama.simulate.formats.mp4_boxes import add_user_data, box
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S

SESSION_NS = 10**12
Written: TypeAlias = "tuple[tuple[Path, ...], dict[str, TrackTruth]]"


def camera(name: str = "front") -> GoPro:
    clock = steady_clock(
        name, device_ns=0, session_ns=SESSION_NS, length_ns=9 * NS_PER_S, drift_ppm=50.0
    )
    return GoPro(
        name=name, serial="C3501325000001", clock=clock, seconds=8.3, chapters=3, number=42,
        width=64, height=64, start_epoch_s=1_735_725_612.4, barcode=3, hearing=Hearing(0.5, 0.01),
        seed=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    sound = Sound(SESSION_NS, 9.0, seed=2)
    return write_gopro(tmp_path_factory.mktemp("gopro"), camera(), sound)


@pytest.fixture(scope="module")
def chapters(written: Written) -> list[Path]:
    return list(written[0])


def payloads(path: Path) -> list[tuple[int, int, bytes]]:
    """Time [ms], length [ms] and bytes of each payload."""
    with av.open(str(path)) as container:
        (stream,) = [s for s in container.streams if s.metadata["handler_name"] == "GoPro MET"]
        return [(p.pts, p.duration, bytes(p)) for p in container.demux(stream) if p.size]


def test_payloads_follow_each_other_over_all_chapters(chapters: list[Path]) -> None:
    for path in chapters:
        told = payloads(path)
        assert told[0][0] == 0
        for (t, lasts, _), (following, _, _) in pairwise(told):
            assert t + lasts == following


@pytest.mark.parametrize("key", ["ACCL", "GYRO"])
def test_samples_are_counted_and_stamped_through_all_chapters(written: Written, key: str) -> None:
    count, start_us = 0, 0
    for path in written[0]:
        last_end_ms = 0
        for t_ms, lasts_ms, data in payloads(path):
            (stream,) = [s for d in reader.parse(data) for s in d.streams if s.key == key]
            assert stream.stamp_us == count * 5000  # 200 a second
            assert t_ms * 1000 <= stream.stamp_us - start_us < t_ms * 1000 + 5000
            count += stream.count
            assert stream.total == count
            last_end_ms = t_ms + lasts_ms
        start_us += last_end_ms * 1000
    assert count == written[1][key.lower()].count


def test_gravity_is_where_the_camera_stands(chapters: list[Path]) -> None:
    (stream,) = [
        s for d in reader.parse(payloads(chapters[1])[0][2]) for s in d.streams if s.key == "ACCL"
    ]
    assert np.allclose(stream.values().mean(axis=0), [9.81, 0, 0], atol=0.05)
    assert stream.units == ("m/s²",)


def test_one_shutter_time_a_frame(chapters: list[Path]) -> None:
    for path in chapters:
        shutters = [
            s.count
            for _, _, data in payloads(path)
            for d in reader.parse(data)
            for s in d.streams
            if s.key == "SHUT"
        ]
        with av.open(str(path)) as container:
            assert sum(shutters) == container.streams.video[0].frames


def test_chapters_say_the_same_of_themselves_and_cameras_do_not(
    chapters: list[Path], tmp_path: Path
) -> None:
    boxes = [user_data(path) for path in chapters]
    assert boxes[0] == boxes[1] == boxes[2]
    told = reader.settings(boxes[0][b"GPMF"])
    assert (told["CASN"], told["MINF"]) == ("C3501325000001", "HERO12 Black")
    other = write_gopro(
        tmp_path, replace(camera("rear"), seconds=4.0, chapters=1), Sound(SESSION_NS, 9.0, seed=2)
    )[0]
    for key in (b"CAME", b"MUID", b"GUMI"):
        assert user_data(other[0])[key] != boxes[0][key]


def user_data(path: Path) -> dict[bytes, bytes]:
    """Read the boxes of ``moov/udta``, by eye of this test alone."""
    movie = children(path.read_bytes())[b"moov"]
    return children(children(movie)[b"udta"])


def children(data: bytes) -> dict[bytes, bytes]:
    found, at = {}, 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        found[data[at + 4 : at + 8]] = data[at + 8 : at + size]
        at += size
    return found


def test_a_handler_that_does_not_fit_is_refused(chapters: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "c.MP4"
    copy.write_bytes(chapters[0].read_bytes())
    with pytest.raises(ValueError, match="not as long"):
        add_user_data(copy, box(b"FIRM", b"1"), b"Longer than that")
    assert copy.read_bytes() == chapters[0].read_bytes()


def test_a_payload_of_many_samples_nests_in_bigger_units() -> None:
    """More than 65,535 words of four bytes do not fit the plain count."""
    values = np.arange(180_000).reshape(-1, 3) % 30_000
    data = gpmf.device(1, "X", gpmf.stream(gpmf.numbers("ACCL", "s", values)))
    (device,) = reader.parse(data)
    (stream,) = device.streams
    assert np.array_equal(stream.values(), values)
