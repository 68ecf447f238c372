from __future__ import annotations

import random
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synorama.errors import InputNotFoundError, UndecodableError
from synorama.media.source import MediaSource
from synorama.media.video import VideoDecoder, read_frames
from synorama.records import FRAME_DTYPE, Recording, VideoTrack
from tests.session.factory import (
    HEIGHT,
    WIDTH,
    barcode,
    camera,
    encode,
    glasses,
    read_barcode,
)

MILLISECOND = Fraction(1, 1000)
TICK = Fraction(1, 15360)
STEADY = [512 * k for k in range(120)]
UNSTEADY = sorted(random.Random(3).sample(range(6000), 120))


def make(folder: Path, kind: str) -> Recording:
    if kind == "b-frames":
        path = folder / "b.mp4"
        encode(
            path, "libx264", STEADY, TICK, bf="3", g="30", preset="ultrafast", x264opts="bframes=3"
        )
    elif kind == "open-gop":
        path = folder / "open.mp4"
        options = "bframes=3:open-gop=1:keyint=15:min-keyint=15:b-adapt=0:scenecut=0"
        encode(path, "libx264", STEADY, TICK, preset="veryfast", **{"x264-params": options})
    elif kind == "gop250":
        path = folder / "long.mp4"
        encode(path, "libx264", STEADY, TICK, g="250", preset="veryfast")
    elif kind == "hevc":
        path = folder / "hevc.mp4"
        encode(path, "libx265", STEADY[:60], TICK, preset="ultrafast",
               **{"x265-params": "keyint=12:bframes=3:open-gop=1:log-level=none"})  # fmt: skip
    elif kind == "fragmented":
        path = folder / "f.mp4"
        encode(path, "libx264", STEADY, TICK, g="30", preset="ultrafast")
        path = _fragmented(path, folder / "fragmented.mp4")
    else:
        path = folder / "vfr.webm"
        encode(path, "libvpx", UNSTEADY, MILLISECOND, g="40", deadline="realtime")
    return camera([path])


def _fragmented(path: Path, out: Path) -> Path:
    import av

    with (
        av.open(str(path)) as source,
        av.open(str(out), "w", options={"movflags": "frag_keyframe+empty_moov"}) as target,
    ):
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return out


@pytest.mark.parametrize("kind", ["b-frames", "open-gop", "gop250", "hevc", "fragmented", "webm"])
def test_every_frame_of_a_container_is_the_one_asked_for(tmp_path: Path, kind: str) -> None:
    recording = make(tmp_path, kind)
    track = recording.videos[0]
    assert track.count in (60, 120)
    paths = [f.path for f in recording.files]
    in_order = [read_barcode(image) for image in read_frames(paths, track)]
    assert in_order == list(range(track.count))
    anywhere = random.Random(1).choices(range(track.count), k=25)
    with VideoDecoder(paths, track) as decoder:
        assert [read_barcode(decoder.frame(i)) for i in anywhere] == anywhere


def _cut(path: Path, out: Path, at: int) -> Path:
    """Copy packets from the key frame before ``at`` [ticks], which becomes time zero."""
    import av

    with av.open(str(path)) as source, av.open(str(out), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        source.seek(at, stream=source.streams.video[0], backward=True)
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.pts is not None:
                packet.pts, packet.dts = packet.pts - at, packet.dts - at
                packet.stream = stream
                target.mux(packet)
    return out


@pytest.mark.parametrize("at", [42 * 512, 41 * 512 + 300])
def test_a_cut_file_whose_first_key_frame_is_not_shown(tmp_path: Path, at: int) -> None:
    from synorama.capture.webcam import open_media_file

    make(tmp_path, "b-frames")
    path = _cut(tmp_path / "b.mp4", tmp_path / "cut.mp4", at)
    recording = open_media_file(path)
    track = recording.videos[0]
    assert not track.index["key"][0]
    shown = list(range(42, 120))
    assert [read_barcode(image) for image in read_frames([path], track)] == shown
    for i in (70, 3, 0, 5, 40, 1):
        with VideoDecoder([path], track) as decoder:
            assert read_barcode(decoder.frame(i)) == shown[i]
    early = [p for p in recording.problems if p.code == "cut_between_frames"]
    assert len(early) == (at % 512 != 0)
    assert all(f"{(42 * 512 - at) / 15.36:.1f} ms early" in p.text for p in early)


def test_random_access_where_seeking_guesses_times(tmp_path: Path) -> None:
    """Program streams give a time to some frames only."""
    from synorama.capture.webcam import open_media_file

    path = tmp_path / "a.mpg"
    encode(path, "mpeg2video", list(range(120)), Fraction(1, 30), bf="2", g="12", qscale="2")
    track = open_media_file(path).videos[0]
    assert track.count == 120
    for i in (25, 26, 37, 60, 62, 119):
        with VideoDecoder([path], track) as decoder:
            assert read_barcode(decoder.frame(i)) == i


def test_chapters_are_one_track(tmp_path: Path) -> None:
    paths = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for path in paths:
        encode(path, "libx264", STEADY[:20], TICK, preset="ultrafast")
    track = camera(paths).videos[0]
    with VideoDecoder(paths, track) as decoder:
        seen = [read_barcode(decoder.frame(i)) for i in (3, 25, 4, 39, 19, 20)]
    assert seen == [3, 5, 4, 19, 19, 0]


def test_a_file_inside_another_is_decoded_in_place(tmp_path: Path) -> None:
    recording = make(tmp_path, "b-frames")
    data = recording.files[0].path.read_bytes()
    inside = tmp_path / "odd, na:me.h5"
    inside.write_bytes(b"x" * 4321 + data + b"y" * 777)
    source = MediaSource(inside, 4321, len(data))
    with VideoDecoder([source], recording.videos[0]) as decoder:
        assert [read_barcode(decoder.frame(i)) for i in (0, 77, 76, 119)] == [0, 77, 76, 119]


def test_packets_of_jpeg_and_raw_pictures(tmp_path: Path) -> None:
    recording = glasses(tmp_path, frames=12)
    path = recording.files[0].path
    rgb, eye = recording.videos
    with VideoDecoder([path], rgb) as decoder:
        images = [decoder.frame(i) for i in (5, 0, 11, 5)]
    assert [read_barcode(image) for image in images] == [5, 0, 11, 5]
    assert images[0].shape == (HEIGHT, WIDTH, 3)
    assert not images[0].flags.writeable
    with VideoDecoder([path], eye) as decoder:
        np.testing.assert_array_equal(decoder.frame(3), barcode(4))


def hevc_packets(folder: Path) -> tuple[Path, VideoTrack]:
    """Take the packets out of an annex-B stream, in display order."""
    import av

    source, path = folder / "raw.hevc", folder / "packets.bin"
    params = "keyint=10:bframes=0:log-level=none:repeat-headers=1"
    encode(source, "libx265", list(range(30)), Fraction(1, 30), preset="ultrafast",
           **{"x265-params": params})  # fmt: skip
    index = np.zeros(30, FRAME_DTYPE)
    with av.open(str(source)) as opened, path.open("wb") as out:
        for k, packet in enumerate(p for p in opened.demux(video=0) if p.size):
            index[k] = (k, 0, out.tell(), packet.size, packet.is_keyframe, 0, 0)
            out.write(bytes(packet))
    return path, VideoTrack("rgb", "hevc", WIDTH, HEIGHT, np.arange(30), index, "packets")


def test_packets_that_build_on_a_key_frame(tmp_path: Path) -> None:
    path, track = hevc_packets(tmp_path)
    assert 1 < int(track.index["key"].sum()) < 30
    anywhere = [29, 0, 1, 2, 9, 10, 19, 17, 18, 29, 28]
    with VideoDecoder([path], track) as decoder:
        assert [read_barcode(decoder.frame(i)) for i in anywhere] == anywhere


def test_what_cannot_be_decoded_is_said(tmp_path: Path) -> None:
    recording = glasses(tmp_path, frames=3)
    path = recording.files[0].path
    row = recording.videos[0].index[1]
    data = bytearray(path.read_bytes())
    start = int(row["offset"])
    data[start : start + int(row["size"])] = bytes(int(row["size"]))
    path.write_bytes(data)
    with VideoDecoder([path], recording.videos[0]) as decoder:
        assert read_barcode(decoder.frame(0)) == 0
        with pytest.raises(UndecodableError, match="frame 1"):
            decoder.frame(1)
        assert read_barcode(decoder.frame(2)) == 2
        with pytest.raises(IndexError):
            decoder.frame(3)


def test_a_wrong_time_stamp_gives_no_picture(tmp_path: Path) -> None:
    recording = make(tmp_path, "b-frames")
    track = recording.videos[0]
    index = track.index.copy()
    index["pts"][50] += 1
    wrong = VideoTrack(**{**_fields(track), "index": index})
    with VideoDecoder([recording.files[0].path], wrong) as decoder:
        with pytest.raises(UndecodableError, match="frame 50"):
            decoder.frame(50)
        assert read_barcode(decoder.frame(51)) == 51


def test_missing_media_and_missing_key_frames(tmp_path: Path) -> None:
    path, track = hevc_packets(tmp_path)
    headless = VideoTrack(**{**_fields(track), "times_ns": track.times_ns[1:],
                             "index": track.index[1:]})  # fmt: skip
    with VideoDecoder([path], headless) as decoder, pytest.raises(UndecodableError, match="key"):
        decoder.frame(0)
    with VideoDecoder([tmp_path / "gone"], track) as decoder, pytest.raises(InputNotFoundError):
        decoder.frame(0)


def _fields(track: VideoTrack) -> dict[str, Any]:
    return {f.name: getattr(track, f.name) for f in fields(track)}
