"""The MP4 index: against FFmpeg's demuxer on random tables and edit lists, and hostile files."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synorama.capture.container.mp4 import Mp4Track, looks_like_mp4, read_movie
from synorama.capture.container.ticks import ticks_to_ns
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    HostileFileError,
    InputNotFoundError,
    NoMovieIndexError,
    SynoramaError,
)
from tests.capture.media_files import QUARTER, RawTrack, box, raw_mp4

FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
REAL = (
    "7_webcam/iscc-samples/demo.mov",
    "7_webcam/iscc-samples/demo.mp4",
    "7_webcam/mediabunny/edts.mp4",
    "7_webcam/mediabunny/multiple-aac-tracks.mp4",
    "7_webcam/torchcodec/nasa_13013.mp4",
    "3_gopro/gpmf-parser/hero7.mp4",
    "3_gopro/GoProX/GH010739.MP4",
    "3_gopro/GoProX/GL012297.LRV",
    "4_audio/facesync/sample1.MP4",
)


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "a.mp4"
    path.write_bytes(data)
    return path


def film(**changes: Any) -> RawTrack:
    track = RawTrack(sizes=[30, 20, 40, 25, 35, 20], durations=[40] * 6, keys=[0, 3])
    return replace(track, **changes)


# --- times -----------------------------------------------------------------------------------


@given(
    ticks=st.lists(st.integers(-(10**13), 10**13), min_size=1, max_size=20),
    numerator=st.sampled_from([1, 1, 1001]),
    denominator=st.integers(1, 2**32 - 1),
)
def test_ticks_become_the_nearest_nanosecond(
    ticks: list[int], numerator: int, denominator: int
) -> None:
    ticks = [t for t in ticks if abs(t * numerator // denominator) < 9 * 10**9] or [0]
    got = ticks_to_ns(np.array(ticks, np.int64), (numerator, denominator))
    for tick, ns in zip(ticks, got.tolist(), strict=True):
        exact = Fraction(tick * numerator * 10**9, denominator)
        assert abs(ns - exact) <= Fraction(1, 2)


# --- against FFmpeg's demuxer ----------------------------------------------------------------


def demuxed(path: Path) -> dict[int, list[tuple[int, ...]]]:
    found: dict[int, list[tuple[int, ...]]] = {}
    with av.open(str(path)) as container:
        for packet in container.demux():
            if packet.size:
                row = (packet.pts, packet.pos, packet.size, packet.is_keyframe, packet.is_discard)
                found.setdefault(packet.stream_index, []).append(tuple(int(v) for v in row))
    return found


def rows(track: Mp4Track) -> list[tuple[int, ...]]:
    columns = (track.pts, track.offsets, track.sizes, track.keys, track.discard)
    return [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]


def edit_lists(span_ms: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Edit lists in movie units of 1/600 s and media units of 1 ms."""
    length = st.integers(1, max(2, span_ms * 600 // 1000))
    pause = st.tuples(st.integers(1, 600), st.just(-1))
    shown = st.tuples(length, st.integers(0, span_ms))
    lead = st.lists(pause, max_size=2)
    return st.builds(
        lambda a, b: [*a, *b], lead, st.lists(st.one_of(shown, shown, pause), max_size=3)
    )


@st.composite
def films(draw: st.DrawFn) -> RawTrack:
    n = draw(st.integers(1, 30))
    durations = draw(st.lists(st.sampled_from([33, 34, 40, 100]), min_size=n, max_size=n))
    pattern = draw(st.sampled_from([None, [80, 160, 40, 0], [0, 80, -40, -80], [40, 0]]))
    keys = sorted({0, *draw(st.lists(st.integers(0, n - 1), max_size=4))})
    return RawTrack(
        sizes=draw(st.lists(st.integers(10, 60), min_size=n, max_size=n)),
        durations=durations,
        offsets=None if pattern is None else [pattern[i % len(pattern)] for i in range(n)],
        keys=draw(st.sampled_from([None, keys])),
        edits=draw(edit_lists(sum(durations))),
        per_chunk=draw(st.integers(1, 5)),
    )


@st.composite
def sounds(draw: st.DrawFn) -> RawTrack:
    n = draw(st.integers(1, 30))
    return RawTrack(
        sizes=draw(st.lists(st.integers(10, 60), min_size=n, max_size=n)),
        durations=[128] * n,
        handler=b"soun",
        tag=b"alaw",
        edits=draw(edit_lists(128 * n)),
        per_chunk=draw(st.integers(1, 5)),
    )


@FEW
@given(film=films(), sound=sounds(), fast_start=st.booleans())
def test_packets_are_those_of_ffmpeg(
    film: RawTrack, sound: RawTrack, fast_start: bool, tmp_path: Path
) -> None:
    path = write(tmp_path, raw_mp4([film, sound], fast_start=fast_start))
    wanted = demuxed(path)
    for index, track in enumerate(read_movie(path).tracks):
        assert rows(track) == wanted.get(index, [])


@pytest.mark.parametrize("name", REAL)
def test_real_tracks_of_every_kind_equal_ffprobe(name: str, shared_data: Path) -> None:
    if shutil.which("ffprobe") is None:
        pytest.skip("ffprobe is not installed: nothing independent to compare with")
    path = shared_data / name
    command = ["ffprobe", "-v", "quiet", "-of", "json", "-show_packets", "-show_streams", str(path)]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    movie = read_movie(path)
    assert [t.track_id for t in movie.tracks] == [int(s["id"], 16) for s in answer["streams"]]
    for index, track in enumerate(movie.tracks):
        packets = [p for p in answer["packets"] if p["stream_index"] == index]
        got = rows(track)
        wanted = [
            (
                p["pts"],
                int(p["pos"]),
                int(p["size"]),
                int("K" in p["flags"]),
                int("D" in p["flags"]),
            )
            for p in packets
        ]
        assert got == wanted
        seconds = np.array([float(p["pts_time"]) for p in packets])
        assert np.abs(track.presentation_ns() / 1e9 - seconds).max(initial=0) < 1e-6


# --- what the index tells --------------------------------------------------------------------


def test_edit_list_shifts_and_pauses(tmp_path: Path) -> None:
    edits = [(60, -1), (90, 80)]  # a pause of 100 ms, then 150 ms from media time 80 ms on
    path = write(tmp_path, raw_mp4([film(edits=edits, keys=None)]))
    (track,) = read_movie(path).tracks
    shown = track.presentation_ns()[~track.discard]
    assert shown.tolist() == [100_000_000, 140_000_000, 180_000_000, 220_000_000]


def test_payloads_lie_where_the_index_says(tmp_path: Path) -> None:
    source = film()
    path = write(tmp_path, raw_mp4([source, film(handler=b"meta", tag=b"gpmd", keys=None)]))
    data = path.read_bytes()
    track = read_movie(path).tracks[0]
    found = [data[o : o + s] for o, s in zip(track.offsets, track.sizes, strict=True)]
    assert found == source.payloads()


def test_facts_of_a_track(tmp_path: Path) -> None:
    path = write(tmp_path, raw_mp4([film(matrix=QUARTER)], created=2_082_844_800 + 1_700_000_000))
    movie = read_movie(path)
    (track,) = movie.tracks
    assert movie.creation_utc_s == 1_700_000_000
    assert (track.rotation_deg, track.width, track.height) == (90, 64, 48)
    assert (track.handler, track.name, track.codec_tag) == ("vide", "test", "SVQ1")
    assert track.durations.tolist() == [40] * 6
    assert not movie.fragmented
    assert not movie.truncated


def test_creation_time_unset_or_counted_from_1970(tmp_path: Path) -> None:
    assert read_movie(write(tmp_path, raw_mp4([film()]))).creation_utc_s is None
    later = raw_mp4([film()], created=1_700_000_000)
    assert read_movie(write(tmp_path, later)).creation_utc_s == 1_700_000_000


def test_user_data_of_a_gopro(shared_data: Path) -> None:
    path = shared_data / "3_gopro/gpmf-parser/hero7.mp4"
    offset, size = read_movie(path).user_data["FIRM"]
    assert path.read_bytes()[offset : offset + size] == b"HD7.01.01.70.00"


# --- bad input -------------------------------------------------------------------------------


def test_empty_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(EmptyFileError):
        read_movie(write(tmp_path, b""))
    with pytest.raises(InputNotFoundError):
        read_movie(tmp_path / "gone.mp4")
    text = write(tmp_path, b"These are the notes of Tuesday's session.")
    assert not looks_like_mp4(text)
    assert not looks_like_mp4(write(tmp_path, b"The free session was on Tuesday."))
    text = write(tmp_path, b"These are the notes of Tuesday's session.")
    with pytest.raises(CorruptFileError, match="no MP4"):
        read_movie(text)


def test_file_that_the_camera_did_not_finish(tmp_path: Path) -> None:
    unfinished = box(b"ftyp", b"mp41", bytes(8)) + struct.pack(">I4s", 0, b"mdat") + bytes(999)
    with pytest.raises(NoMovieIndexError, match="did not finish writing") as caught:
        read_movie(write(tmp_path, unfinished))
    assert "untrunc" in caught.value.hint


def test_lost_end_is_counted(tmp_path: Path) -> None:
    data = raw_mp4([film()])
    path = write(tmp_path, data[:-50])
    movie = read_movie(path)
    (track,) = movie.tracks
    assert movie.truncated
    assert (track.count, track.lost) == (4, 2)
    assert (track.offsets + track.sizes).max() <= len(data) - 50


def test_cut_inside_the_index(tmp_path: Path) -> None:
    data = raw_mp4([film()])
    with pytest.raises(CorruptFileError, match="ends inside its index"):
        read_movie(write(tmp_path, data[:200]))


@pytest.mark.parametrize("table", [b"stts", b"stsz", b"stsc", b"stco", b"ctts", b"stss", b"elst"])
def test_table_that_claims_more_than_it_has(table: bytes, tmp_path: Path) -> None:
    data = bytearray(raw_mp4([film(offsets=[0] * 6, edits=[(100, 0)])]))
    at = data.index(table) + (12 if table == b"stsz" else 8)
    data[at : at + 4] = struct.pack(">I", 0x01FFFFF0)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError, match="claims"):
            read_movie(write(tmp_path, bytes(data)))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_run_length_bomb(tmp_path: Path) -> None:
    data = bytearray(raw_mp4([film()]))
    at = data.index(b"stts") + 12
    data[at : at + 4] = struct.pack(">I", 0xFFFFFFFF)
    (track,) = read_movie(write(tmp_path, bytes(data))).tracks
    assert track.count == 6


def test_constant_size_bomb(tmp_path: Path) -> None:
    data = bytearray(raw_mp4([film()]))
    at = data.index(b"stsz") + 8
    data[at : at + 8] = struct.pack(">II", 1, 0x01FFFFFF)
    tracemalloc.start()
    try:
        (track,) = read_movie(write(tmp_path, bytes(data))).tracks
        assert track.count == 6
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_edit_list_bomb(tmp_path: Path) -> None:
    edits = [(2000, 0)] * 40_000
    n = 3_000
    many = RawTrack(sizes=[1] * n, durations=[1] * n, edits=edits, keys=[0])
    with pytest.raises(HostileFileError, match="edit list"):
        read_movie(write(tmp_path, raw_mp4([many])))


def tracks_or_none(path: Path) -> tuple[Mp4Track, ...]:
    """Any refusal is typed; any other exception fails the test."""
    try:
        return read_movie(path).tracks
    except SynoramaError:
        return ()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(places=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_bytes_never_surprise(places: list[tuple[int, int]], tmp_path: Path) -> None:
    data = bytearray(raw_mp4([film(offsets=[0, 40] * 3, edits=[(100, 0)])], fast_start=True))
    for at, value in places:
        data[at % len(data)] = value
    for track in tracks_or_none(write(tmp_path, bytes(data))):
        assert (track.offsets + track.sizes <= len(data)).all()
        assert len(track.presentation_ns()) == track.count
