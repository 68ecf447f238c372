"""The public checks: our readers pass on real files, and faulty readers are found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synorama.capture.registry import readers
from synorama.errors import InputError
from synorama.records import FRAME_DTYPE, Recording, VideoTrack
from synorama.testing import check_reader
from tests.capture.test_discover import tone

REAL = (
    ("aria", "1_vrs/projectaria_tools/gen1/aria_everyday_activities_test_data/recording.vrs"),
    ("aria", "1_vrs/projectaria_tools/gen1/aria_unit_test_timecode_sequence_calib.vrs"),
    ("aria", "1_vrs/projectaria_tools/gen2/aria_gen2_unit_test_sequence_with_bluetooth.vrs"),
    ("gopro", "3_gopro/gpmf-parser/hero7.mp4"),
    ("gopro", "3_gopro/GoProX/GH010739.MP4"),
    ("webcam", "7_webcam/mediabunny/annex-b-avc.mkv"),
    ("webcam", "7_webcam/mediabunny/0.ts"),
    ("webcam", "7_webcam/mediabunny/edts.mp4"),
    ("webcam", "7_webcam/torchcodec/nasa_13013.mp4"),
    ("webcam", "7_webcam/npm_ebml/test.webm"),
    ("webcam", "4_audio/faster-whisper/jfk.flac"),
)


@pytest.mark.parametrize(("device", "name"), REAL)
def test_our_readers_pass_on_real_files(shared_data: Path, device: str, name: str) -> None:
    reader = next(r for r in readers() if r.name == device)
    check_reader(reader, shared_data / name)


def test_faulty_readers_are_found_out(tmp_path: Path) -> None:
    webcam = next(r for r in readers() if r.name == "webcam")
    path = tone(tmp_path / "a.wav")

    def greedy(_: Path) -> Recording:
        return Recording("x", "other", (), {})

    def wrong(bad: Path) -> Recording:
        if bad != path:
            raise InputError("no", path=bad)
        opened = webcam.open(bad)
        index = np.zeros(2, FRAME_DTYPE)
        index["offset"] = 10**9
        video = VideoTrack("v", "h264", 0, 4, np.array([0, 1]), index, "container", stream_index=0)
        return replace(opened, tracks={"v": video})

    with pytest.raises(AssertionError, match=r"(?s)accepted.*device is 'other'.*no file.*no track"):
        check_reader(replace(webcam, open=greedy), path)
    with pytest.raises(AssertionError, match=r"(?s)0x4.*key frame.*behind the end.*share one pts"):
        check_reader(replace(webcam, open=wrong), path)
    with pytest.raises(AssertionError, match=r"sniff\(\) does not recognise"):
        check_reader(replace(webcam, sniff=lambda _: False), path)
