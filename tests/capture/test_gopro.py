"""GoPro recordings: real files against ffprobe and their bytes, made ones against their truth."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.capture.container import gpmf
from synorama.capture.gopro import READER, telemetry
from synorama.capture.gopro.chapters import TimeCode
from synorama.capture.gopro.names import parse_name
from synorama.errors import (
    CorruptFileError,
    ForeignChapterError,
    InputError,
    MissingChapterError,
    NoMediaError,
    NoMovieIndexError,
)
from synorama.media.audio import read_audio
from synorama.records import AudioTrack, Recording, SampleTrack, VideoTrack
from synorama.testing import check_reader
from tests.capture import gopro_files as made
from tests.capture.gopro_files import FPS, Gps, Plan, Telemetry

HERO7 = "3_gopro/gpmf-parser/hero7.mp4"
PREVIEW = "3_gopro/GoProX/GL012297.LRV"
STRIPPED = "3_gopro/GoProX/GH010739.MP4"
NO_IDS = Plan(camera=None, media=None, serial="")


def video(recording: Recording) -> VideoTrack:
    track = recording.tracks["video"]
    assert isinstance(track, VideoTrack)
    return track


def audio(recording: Recording) -> AudioTrack:
    track = recording.tracks["audio"]
    assert isinstance(track, AudioTrack)
    return track


def samples(recording: Recording, name: str) -> SampleTrack:
    track = recording.tracks[name]
    assert isinstance(track, SampleTrack)
    return track


def codes(recording: Recording) -> list[str]:
    return [p.code for p in recording.problems]


def files(recording: Recording) -> list[Path]:
    return [f.path for f in recording.files]


def exact_ns(seconds: Fraction) -> int:
    """To nearest, halves up."""
    return int((2 * seconds * 10**9 + 1) // 2)


def test_a_film_cut_between_two_frames_is_said(tmp_path: Path) -> None:
    """Copied from 20.5 frames on, without encoding anew: an edit hides what comes before."""
    whole = made.write_whole(tmp_path / "whole.MP4", made.encode(b_frames=True))
    path = tmp_path / "GX010123.MP4"
    with av.open(str(whole)) as source, av.open(str(path), "w", format="mp4") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.pts is not None and packet.dts is not None and packet.time_base:
                at = round(20.5 / FPS / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts - at, packet.dts - at, stream
                out.mux(packet)
    assert "cut_between_frames" not in codes(READER.open(whole))
    (said,) = (p for p in READER.open(path).problems if p.code == "cut_between_frames")
    assert said.severe
    assert "16.7 ms early" in said.text


# --- real files against ffprobe and against their bytes --------------------------------------


def probe(path: Path, stream: str) -> list[Mapping[str, str]]:
    if shutil.which("ffprobe") is None:
        pytest.skip("ffprobe is not installed")
    done = subprocess.run(
        ["ffprobe", "-v", "quiet", "-of", "json", "-show_packets", "-select_streams", stream,
         "-show_entries", "packet=pts,dts,pos,size,flags,duration", str(path)],
        capture_output=True, check=True,
    )  # fmt: skip
    packets: list[Mapping[str, str]] = json.loads(done.stdout)["packets"]
    return packets


@pytest.mark.parametrize("name", [HERO7, PREVIEW, STRIPPED])
def test_real_frames_equal_ffprobe(shared_data: Path, name: str) -> None:
    path = shared_data / name
    track = video(READER.open(path))
    told = sorted(probe(path, "v:0"), key=lambda p: int(p["pts"]))
    assert track.count == len(told)
    base = Fraction(*track.time_base)
    for t, frame, packet in zip(track.times_ns, track.index, told, strict=True):
        assert int(t) == exact_ns(int(packet["pts"]) * base)
        assert (frame["pts"], frame["offset"], frame["size"]) == (
            int(packet["pts"]), int(packet["pos"]), int(packet["size"]),
        )  # fmt: skip
        assert bool(frame["key"]) == packet["flags"].startswith("K")


@pytest.mark.parametrize("name", [HERO7, PREVIEW, STRIPPED])
def test_real_sound_equals_decoder(shared_data: Path, name: str) -> None:
    path = shared_data / name
    track = audio(READER.open(path))
    index = 0
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            assert frame.pts is not None
            at = int(track.sample_times_ns(np.array([index]))[0])
            assert abs(at - exact_ns(frame.pts * Fraction(1, 48_000))) <= 1
            index += frame.samples
    assert track.count == index


@pytest.mark.parametrize("name", [HERO7, PREVIEW])
def test_real_telemetry_equals_the_bytes(shared_data: Path, name: str) -> None:
    """Count, time and every value of the accelerometer, read by searching the raw bytes."""
    path = shared_data / name
    read = samples(READER.open(path), "accl").read()
    told = probe(path, "d:1")
    data = path.read_bytes()
    box = data.index(b"stts", data.index(b"stsd", data.rindex(b"gpmd") - 20))
    runs = struct.iter_unpack(
        ">II", data[box + 12 : box - 4 + struct.unpack_from(">I", data, box - 4)[0]]
    )
    table = [lasts for count, lasts in runs for _ in range(count)]
    at = 0
    for packet in told:
        start, size = int(packet["pos"]), int(packet["size"])
        payload = data[start : start + size]
        where = payload.index(b"ACCLs\x06")
        n = struct.unpack_from(">H", payload, where + 6)[0]
        scale = struct.unpack_from(">h", payload, payload.index(b"SCALs\x02\x00\x01") + 8)[0]
        raw = np.frombuffer(payload, ">i2", 3 * n, where + 8).reshape(-1, 3) / scale
        stored = payload[payload.index(b"ORINc") + 8 :][:3]
        columns = [stored.upper().index(axis) for axis in b"XYZ"]
        signs = [1 if chr(stored[c]).isupper() else -1 for c in columns]
        np.testing.assert_array_equal(read.values[at : at + n], raw[:, columns] * signs)
        lasts = table.pop(0) * 10**6  # ffprobe stretches the last one to the movie's end
        due = int(packet["pts"]) * 10**6 + lasts * np.arange(n) / n
        assert np.abs(read.times_ns[at : at + n] - due).max() <= 0.5
        at += n
    assert at == len(read.times_ns)


def test_real_gravity_points_against_what_the_accelerometer_feels(shared_data: Path) -> None:
    recording = READER.open(shared_data / PREVIEW)
    felt = samples(recording, "accl").read().values.mean(axis=0)
    gravity = samples(recording, "grav").read().values.mean(axis=0)
    cosine = felt @ gravity / np.linalg.norm(felt) / np.linalg.norm(gravity)
    assert cosine < -0.95


@pytest.mark.parametrize("name", [HERO7, PREVIEW])
def test_every_real_track_holds_what_it_announces(shared_data: Path, name: str) -> None:
    recording = READER.open(shared_data / name)
    for track in recording.of_kind("samples"):
        assert isinstance(track, SampleTrack)
        read = track.read()
        assert len(read.times_ns) == len(read.values) == track.count
        assert (int(read.times_ns[0]), int(read.times_ns[-1])) == (track.first_ns, track.last_ns)
        assert (np.diff(read.times_ns) >= 0).all()
        assert read.values.shape[1] == len(track.columns)
        assert np.isfinite(read.values).all()
    assert [t.name for t in recording.of_kind("samples") if getattr(t, "location", False)] == [
        "gps"
    ]


def test_hero7_place_wall_clock_and_time_code(shared_data: Path) -> None:
    recording = READER.open(shared_data / HERO7)
    assert (recording.model, recording.serial) == ("HERO7 Black", "C3281324500963")
    place = samples(recording, "gps").read().values
    np.testing.assert_allclose(place[0, :2], [33.1268, -117.3274], atol=1e-3)
    start = recording.start_utc
    assert start is not None
    assert (start.source, start.sigma_s) == ("gps", 1.5)
    begins_s = (start.utc_ns - start.device_ns) / 1e9
    camera_s = 1_557_141_208 + 7 * 3600  # creation_time, written in Californian summer time
    assert begins_s - camera_s == pytest.approx(99, abs=2)
    code = recording.extras["timecode"]
    assert code["text"] == "11:12:47:22"
    by_code_s = code["time_of_day_ns"] / 1e9
    assert by_code_s == pytest.approx(11 * 3600 + 13 * 60 + 28, abs=1.1)


@pytest.mark.parametrize("name", ["hero5", "hero6+ble", "hero7", "hero11", "Fusion", "karma"])
def test_payloads_of_many_models(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Real payloads in a made film: tracks of every model, places marked as such."""
    data = (shared_data / f"3_gopro/gopro-telemetry/{name}.raw").read_bytes()
    cuts = [m.start() for m in re.finditer(b"DEVC", data)]
    if name in ("karma", "hero6+ble"):  # the second device is in the same payload
        cuts = cuts[:1]
    payloads = [data[a:b] for a, b in zip(cuts, [*cuts[1:], len(data)], strict=True)]
    monkeypatch.setattr(made, "payload", lambda index, *_: payloads[index])
    frames = range(30 * len(payloads))
    plan = Plan(serial="", sound=False)
    path = made.write(tmp_path / "GX010001.MP4", made.encode(600), plan, frames, range(0))
    recording = READER.open(path)
    tracks = {t.name: t for t in recording.of_kind("samples")}
    assert {"accl", "gyro", "shutter"} <= tracks.keys()
    for track in tracks.values():
        assert isinstance(track, SampleTrack)
        read = track.read()
        assert read.values.shape == (track.count, len(track.columns))
        assert track.location == (track.name[:3] in ("gps", "gpr", "glp", "bpo"))


def test_real_clip_without_telemetry_opens_and_says_so(shared_data: Path) -> None:
    recording = READER.open(shared_data / STRIPPED)
    assert video(recording).count == 4
    assert "no_telemetry" in codes(recording)
    assert "gap" in codes(recording)
    assert recording.start_utc is None


def test_real_preview_alone_is_a_recording_and_says_what_it_is(shared_data: Path) -> None:
    path = shared_data / PREVIEW
    assert "preview" in codes(READER.open(path))
    assert not READER.sniff(path.with_name("GX012299.THM"))  # its film is not there


@pytest.mark.parametrize("name", [HERO7, PREVIEW, STRIPPED])
def test_real_files_pass_the_public_checks(shared_data: Path, name: str) -> None:
    check_reader(READER, shared_data / name)


# --- chapters against the unsplit original ---------------------------------------------------


@pytest.mark.parametrize("b_frames", [False, True])
@pytest.mark.parametrize("chapters", [1, 3, 4])
def test_every_frame_of_every_chapter(tmp_path: Path, chapters: int, b_frames: bool) -> None:
    master = made.encode(b_frames=b_frames)
    paths = made.write_chapters(tmp_path, master, chapters=chapters)
    recording = READER.open(paths[-1])
    track = video(recording)
    assert files(recording) == paths
    assert recording.problems == ()
    expected = [exact_ns(k / FPS) for k in range(len(master.video))]
    assert track.times_ns.tolist() == expected  # exact, so well within a microsecond
    stored = {p.pts: p.data for p in master.video}
    for k, frame in enumerate(track.index):
        with paths[int(frame["file"])].open("rb") as file:
            file.seek(int(frame["offset"]))
            assert file.read(int(frame["size"])) == stored[k]
    assert np.flatnonzero(track.index["key"]).tolist() == list(range(0, 120, made.GOP))
    assert track.rate_hz == pytest.approx(float(FPS))


@pytest.mark.parametrize("priming", [False, True])
def test_sound_over_all_chapters_is_the_unsplit_sound(tmp_path: Path, priming: bool) -> None:
    master, plan = made.encode(), Plan(declare_priming=priming)
    whole = READER.open(made.write_whole(tmp_path / "whole" / "GX010123.MP4", master, plan))
    split = READER.open(made.write_chapters(tmp_path / "split", master, plan)[0])
    expected = decode(files(whole))
    assert audio(split).count == audio(whole).count == len(expected)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_array_equal(decode(files(split)), expected)
    n = np.arange(len(expected))
    np.testing.assert_array_equal(audio(split).sample_times_ns(n), audio(whole).sample_times_ns(n))
    assert audio(split).knots[0].tolist() == [0, 0]
    np.testing.assert_allclose(audio(split).sample_times_ns(n), n * 1e9 / 48_000, atol=1)


def decode(paths: list[Path]) -> NDArray[np.float32]:
    """Decode as the rule says: packets of all files through one decoder."""
    decoder: Any = None
    parts = []
    containers = [av.open(str(p)) for p in paths]
    for container in containers:
        decoder = decoder or container.streams.audio[0].codec_context
        for packet in container.demux(audio=0):
            if packet.size:
                parts += [frame.to_ndarray() for frame in decoder.decode(packet)]
    parts += [frame.to_ndarray() for frame in decoder.decode(None)]
    joined: NDArray[np.float32] = np.concatenate(parts, axis=1).T
    return joined


def test_the_decoder_of_the_product_agrees_at_the_seams(tmp_path: Path) -> None:
    recording = READER.open(made.write_chapters(tmp_path, made.encode())[0])
    track, paths = audio(recording), files(recording)
    expected = decode(paths)
    np.testing.assert_array_equal(read_audio(paths, track, 0, track.count), expected)
    for seam in track.file_firsts[1:]:
        for first in (seam - 700, seam - 1, seam, seam + 5000):
            got = read_audio(paths, track, first, 1500)
            np.testing.assert_allclose(got, expected[first : first + 1500], atol=1e-6)


def test_frames_and_sound_are_all_accounted_for_at_the_seams(tmp_path: Path) -> None:
    master = made.encode()
    recording = READER.open(made.write_chapters(tmp_path, master)[0])
    track = audio(recording)
    frames = np.bincount(video(recording).index["file"])
    assert frames.tolist() == [c["frames"] for c in recording.extras["chapters"]] == [30, 30, 60]
    assert track.count == len(master.audio) * made.AAC
    assert track.file_firsts == tuple(
        r.start * made.AAC for r in made.sound_cuts(made.cuts(120, 3), len(master.audio))
    )


def test_telemetry_goes_on_over_the_seams(tmp_path: Path) -> None:
    recording = READER.open(made.write_chapters(tmp_path, made.encode())[1])
    read = samples(recording, "accl").read()
    counter = np.arange(len(read.values))
    np.testing.assert_allclose(read.values[:, 2] * 100, counter)  # ORIN ZXY: Z is stored first
    np.testing.assert_allclose(
        read.values[:, :2] * 100, np.column_stack([counter + 1, counter + 2])
    )
    assert samples(recording, "accl").count == len(counter) == 800
    due = counter * (1.001e9 / 200)
    assert np.abs(read.times_ns - due).max() < 1e6  # the table counts milliseconds
    exposure = samples(recording, "shutter").read()
    np.testing.assert_allclose(exposure.values[:, 0], 1 / (100 + np.arange(120)), rtol=1e-6)


def test_payloads_are_read_when_a_track_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made.write_whole(tmp_path / "GX010123.MP4", made.encode(600))
    read: list[int] = []
    original = telemetry._Payloads.read

    def spy(self: Any, which: Any = None) -> Any:
        for i, data in original(self, which):
            read.append(i)
            yield i, data

    monkeypatch.setattr(telemetry, "UTC_PAYLOADS", 1)
    monkeypatch.setattr(telemetry._Payloads, "read", spy)
    recording = READER.open(path)
    assert set(read) == {0, 19}
    samples(recording, "accl").read()
    assert set(read) == set(range(20))


# --- which files are one recording -----------------------------------------------------------


def test_two_cameras_with_the_same_names_are_two_recordings(tmp_path: Path) -> None:
    master = made.encode()
    other = Plan(camera=made.OTHER_CAMERA, serial="C3461300000002", timecode="11:12:40:00")
    front = made.write_chapters(tmp_path / "front", master)
    rear = made.write_chapters(tmp_path / "rear", master, other)
    takes = READER.takes([*rear, *front])
    assert [t.paths for t in takes] == [tuple(front), tuple(rear)]
    assert [t.serial for t in takes] == ["C3461300000001", "C3461300000002"]
    assert [files(READER.open(t.paths[0])) for t in takes] == [front, rear]


def test_two_cameras_in_one_folder_under_prefixes_are_two_recordings(tmp_path: Path) -> None:
    master = made.encode(60)
    one = made.write_chapters(tmp_path, master, chapters=2, names="front-GX{chapter:02d}0001.MP4")
    two = made.write_chapters(tmp_path, master, chapters=2, names="GH{chapter:02d}0001.MP4")
    three = made.write_chapters(tmp_path, master, chapters=2, names="GX{chapter:02d}0001.MP4")
    takes = READER.takes(sorted([*one, *two, *three]))
    assert sorted(t.paths for t in takes) == sorted(map(tuple, (one, two, three)))


def test_companions_go_with_their_film(tmp_path: Path) -> None:
    film = made.write_chapters(tmp_path, made.encode(60), chapters=2)
    preview = made.write_chapters(
        tmp_path, made.encode(60, 32), chapters=2, names="GL{chapter:02d}0123.LRV"
    )
    thumbnail = tmp_path / "GX010123.THM"
    thumbnail.write_bytes(b"\xff\xd8\xff\xe0")
    sound = tmp_path / "GX010123.WAV"
    sound.write_bytes(b"RIFF")
    everything = [*preview, *film, thumbnail, sound]
    assert all(READER.sniff(p) for p in everything)
    (take,) = READER.takes(everything)
    assert take.paths == tuple(film)
    assert set(take.companions) == {*preview, thumbnail, sound}
    assert READER.takes(film) == (take,)
    with pytest.raises(NoMediaError):
        READER.open(thumbnail)
    assert files(READER.open(film[0])) == film
    (left,) = READER.takes(preview)
    assert left.paths == tuple(preview)
    assert codes(READER.open(preview[0])) == ["preview"]


def test_old_names_and_loops(tmp_path: Path) -> None:
    master = made.encode(60)
    first = made.write_chapters(
        tmp_path / "old", master, chapters=2, names="GP{chapter:02d}0123.MP4"
    )
    second = first[1]
    first[0].rename(tmp_path / "old" / "GOPR0123.MP4")
    second.rename(first[0])
    assert [p.name for p in files(READER.open(first[0]))] == ["GOPR0123.MP4", "GP010123.MP4"]
    (tmp_path / "old" / "GOPR0123.MP4").unlink()
    with pytest.raises(MissingChapterError, match="chapter GOPR"):
        READER.open(first[0])
    loop = made.write_chapters(
        tmp_path / "loop", master, chapters=2, names="GXAA{chapter:04d}.MP4", first=7
    )
    later = made.write_chapters(
        tmp_path / "loop", master, chapters=2, names="GXAA{chapter:04d}.MP4", first=20
    )
    assert files(READER.open(loop[1])) == loop
    assert [t.paths for t in READER.takes([*loop, *later])] == [tuple(loop), tuple(later)]


@pytest.mark.parametrize(("gone", "words"), [(1, "chapter 2"), (0, "chapter 1")])
def test_missing_chapter(tmp_path: Path, gone: int, words: str) -> None:
    paths = made.write_chapters(tmp_path / "session" / "front", made.encode())
    paths[gone].unlink()
    with pytest.raises(MissingChapterError, match=words) as raised:
        READER.open(paths[2])
    assert "card" in raised.value.hint


def test_chapter_in_the_wrong_folder_is_pointed_at(tmp_path: Path) -> None:
    paths = made.write_chapters(tmp_path / "front", made.encode())
    (tmp_path / "rear").mkdir()
    moved = paths[1].rename(tmp_path / "rear" / paths[1].name)
    for path in (paths[0], moved):
        with pytest.raises(MissingChapterError) as raised:
            READER.open(path)
    with pytest.raises(MissingChapterError) as raised:
        READER.open(paths[0])
    assert "rear/GX020123.MP4" in raised.value.hint


def foreign(tmp_path: Path, plan: Plan, master: made.Master | None = None, **known: Any) -> str:
    """Put a middle chapter of another recording among ours; return the refusal."""
    ours = made.write_chapters(tmp_path, made.encode(), replace(Plan(), **known))
    theirs = made.write_chapters(tmp_path / "other", master or made.encode(), plan)
    theirs[1].replace(ours[1])
    with pytest.raises(ForeignChapterError) as raised:
        READER.open(ours[0])
    assert raised.value.path == str(ours[1])
    return raised.value.message


def test_chapter_of_another_camera(tmp_path: Path) -> None:
    plan = Plan(camera=made.OTHER_CAMERA, serial="C3461300000002")
    assert "another camera" in foreign(tmp_path, plan)


def test_chapter_in_another_format(tmp_path: Path) -> None:
    assert "picture size" in foreign(tmp_path, Plan(), made.encode(width=96))
    assert "sound" in foreign(tmp_path / "quiet", Plan(sound=False))


def test_chapter_of_another_recording_by_media_id(tmp_path: Path) -> None:
    plan = Plan(media=b"another-media-id", timecode="15:00:00:00", telemetry=None)
    assert "media id" in foreign(tmp_path, plan)

    unknown: dict[str, Any] = {"timecode": None, "telemetry": None}
    plan = replace(Plan(media=b"another-media-id"), **unknown)
    assert "media id" in foreign(tmp_path / "untimed", plan, **unknown)


def test_running_totals_prove_a_chapter_that_nothing_else_does(tmp_path: Path) -> None:
    ours = made.write_chapters(tmp_path, made.encode())
    plan = Plan(media=b"another-media-id", timecode="15:00:00:00")
    made.write_chapters(tmp_path / "other", made.encode(), plan)[1].replace(ours[1])
    assert codes(READER.open(ours[0])) == ["timecode_jump", "timecode_jump"]


def test_chapter_of_another_recording_by_time_code(tmp_path: Path) -> None:
    plan = replace(NO_IDS, timecode="15:00:00:00", telemetry=None)
    ids: dict[str, Any] = {"camera": None, "media": None, "serial": "", "telemetry": None}
    assert "time code" in foreign(tmp_path, plan, **ids)


def test_cameras_without_serial_or_ids(tmp_path: Path) -> None:
    paths = made.write_chapters(tmp_path, made.encode(), NO_IDS)
    recording = READER.open(paths[0])
    assert (recording.serial, files(recording)) == ("", paths)
    plain = replace(NO_IDS, timecode=None, telemetry=None)
    paths = made.write_chapters(tmp_path / "plain", made.encode(), plain)
    assert files(READER.open(paths[0])) == paths


def test_one_shared_id_is_enough(tmp_path: Path) -> None:
    """HERO7 gives every chapter a ``MUID`` of its own and shares ``GUMI``."""
    master = made.encode()
    blocks = made.sound_cuts(made.cuts(120, 3), len(master.audio))
    for k, frames in enumerate(made.cuts(120, 3)):
        plan = Plan(media=b"media-of-file-%02d" % k, global_id=b"g" * 16, telemetry=None)
        path = tmp_path / f"GX{k + 1:02d}0123.MP4"
        made.write(path, master, replace(plan, timecode=f"1{k}:00:00:00"), frames, blocks[k])
    recording = READER.open(path)
    assert video(recording).count == 120
    assert codes(recording).count("timecode_jump") == 2


def test_a_media_id_that_is_only_the_cameras_identifies_no_recording(tmp_path: Path) -> None:
    message = foreign(
        tmp_path,
        Plan(media=bytes(16), timecode="15:00:00:00", telemetry=None),
        media=bytes(16),
        telemetry=None,
    )
    assert "time code" in message


def test_times_that_go_back_over_a_seam(tmp_path: Path) -> None:
    """A program moved the frames of chapter 2 to the front: the clock would run backwards."""
    master = made.encode(b_frames=True)
    paths = made.write_chapters(tmp_path, master, chapters=2)
    data = paths[0].read_bytes()
    at = data.index(b"elst")  # B-frames without an edit list begin two frames late
    paths[0].write_bytes(data[:at] + b"free" + data[at + 4 :])
    with pytest.raises(ForeignChapterError, match="before the last"):
        READER.open(paths[0])


def test_cut_off_chapter_before_others_is_refused(tmp_path: Path) -> None:
    """With the index in front a cut file still opens, but where the next begins is unknown."""
    paths = made.write_chapters(tmp_path, made.encode(), chapters=2)
    with av.open(str(paths[0])) as old:
        front = tmp_path / "front.mp4"
        with av.open(str(front), "w", options={"movflags": "faststart"}) as new:
            to = new.add_stream_from_template(old.streams.video[0])
            sound = new.add_stream_from_template(old.streams.audio[0])
            for packet in old.demux(video=0, audio=0):
                if packet.size:
                    packet.stream = to if packet.stream.type == "video" else sound
                    new.mux(packet)
    paths[0].write_bytes(front.read_bytes()[:-20_000])
    with pytest.raises(CorruptFileError, match="cut off"):
        READER.open(paths[1])


# --- what an operator should know ------------------------------------------------------------


def with_timecodes(folder: Path, *shown: str) -> Recording:
    master = made.encode()
    spans = made.cuts(120, len(shown))
    blocks = made.sound_cuts(spans, len(master.audio))
    for k, (code, frames) in enumerate(zip(shown, spans, strict=True)):
        path = folder / f"GX{k + 1:02d}0123.MP4"
        made.write(path, master, Plan(timecode=code), frames, blocks[k])
    return READER.open(path)


def test_frames_lost_at_a_seam_and_jumps_of_the_time_code(tmp_path: Path) -> None:
    lost = with_timecodes(tmp_path / "a", "10:00:00:00", "10:00:02:05")
    (problem,) = lost.problems
    assert (problem.code, problem.severe) == ("frames_lost", True)
    assert "5 frames" in problem.text
    assert codes(with_timecodes(tmp_path / "b", "10:00:00:00", "10:09:02:00")) == ["timecode_jump"]
    assert codes(with_timecodes(tmp_path / "c", "10:00:00:00", "10:00:02:00")) == []
    assert codes(with_timecodes(tmp_path / "d", "10:00:00:00", "10:00:00:00")) == []
    assert codes(with_timecodes(tmp_path / "e", "23:59:59:00", "00:00:01:00")) == []


def test_hole_in_the_sound_at_a_seam(tmp_path: Path) -> None:
    """Five packets are missing at the end of chapter 1: the later sound stays where it belongs."""
    master = made.encode()
    spans = made.cuts(120, 2)
    a, b = made.sound_cuts(spans, len(master.audio))
    made.write(tmp_path / "GX010123.MP4", master, Plan(), spans[0], range(a.start, a.stop - 5))
    path = made.write(tmp_path / "GX020123.MP4", master, made.continued(Plan(), 60), spans[1], b)
    recording = READER.open(path)
    track = audio(recording)
    assert codes(recording) == ["gap"]
    seam = (a.stop - 5) * made.AAC
    assert track.count == (len(master.audio) - 5) * made.AAC
    before, after = track.sample_times_ns(np.array([seam - 1, seam])).tolist()
    assert before == exact_ns(Fraction(seam - 1, 48_000))
    assert after == exact_ns(60 / FPS)


def test_sound_longer_than_pictures_keeps_times_in_order(tmp_path: Path) -> None:
    master = made.encode()
    spans = made.cuts(120, 2)
    _, b = made.sound_cuts(spans, len(master.audio))
    made.write(tmp_path / "GX010123.MP4", master, Plan(), spans[0], range(b.start + 8))
    path = made.write(tmp_path / "GX020123.MP4", master, made.continued(Plan(), 60), spans[1], b)
    recording = READER.open(path)
    track = audio(recording)
    assert codes(recording) == ["gap"]
    times = track.sample_times_ns(np.arange(track.count))
    assert (np.diff(times) >= 0).all()
    assert times[(b.start + 8) * made.AAC] == exact_ns(60 / FPS)


def test_sound_shorter_than_pictures_and_no_sound(tmp_path: Path) -> None:
    master = made.encode()
    short = made.write(tmp_path / "GX010001.MP4", master, Plan(), range(120), range(100))
    assert codes(READER.open(short)) == ["sound_shorter"]
    silent = made.write_whole(tmp_path / "GX010002.MP4", master, Plan(sound=False))
    assert codes(READER.open(silent)) == ["no_sound"]


def test_telemetry_that_says_nothing(tmp_path: Path) -> None:
    """Other makers' cameras use the same kind of track for something else."""
    path = made.write_whole(tmp_path / "GX010123.MP4", made.encode(60))
    path.write_bytes(path.read_bytes().replace(b"DEVC\0", b"JUNK\0").replace(b"STRM\0", b"JUNK\0"))
    recording = READER.open(path)
    assert codes(recording) == ["no_telemetry"]
    assert list(recording.of_kind("samples")) == []


def test_file_without_index(tmp_path: Path) -> None:
    path = made.write_whole(tmp_path / "GX010123.MP4", made.encode(60))
    path.write_bytes(path.read_bytes()[:5000])
    assert READER.sniff(path)
    with pytest.raises(NoMovieIndexError):
        READER.open(path)


# --- wall clock and time code ----------------------------------------------------------------


def start_of(tmp_path: Path, gps: Gps | None, **more: Any) -> tuple[Recording, int, float, str]:
    plan = Plan(telemetry=Telemetry(gps=gps), **more)
    recording = READER.open(made.write_whole(tmp_path / "GX010123.MP4", made.encode(), plan))
    start = recording.start_utc
    assert start is not None
    return recording, start.utc_ns - start.device_ns, start.sigma_s, start.source


def test_utc_from_gps(tmp_path: Path) -> None:
    noon_ns = 1_714_564_800 * 10**9
    for nine, sigma in ((False, 1.5), (True, 0.2)):
        recording, start, sigma_s, source = start_of(tmp_path, Gps(nine=nine))
        assert abs(start - noon_ns) < 10_000_000  # GPS9 is made once a second, stored every 1.001
        assert (sigma_s, source, recording.problems) == (sigma, "gps", ())
    track = samples(recording, "gps")
    assert track.location
    assert track.read().extra["utc_ns"][0] == noon_ns


@pytest.mark.parametrize("text", ["000000000000.000", "garbagegarbage!!", "990101000000.000"])
def test_garbage_gps_time_is_ignored_and_told(tmp_path: Path, text: str) -> None:
    recording, _, sigma_s, source = start_of(tmp_path, Gps(utc=text))
    assert (source, sigma_s) == ("creation_time", 27_000.0)
    assert codes(recording) == ["gps_time_garbage"]


@pytest.mark.parametrize("gps", [Gps(fix=0), Gps(dilution=9999), None])
def test_gps_without_a_fix_is_not_believed(tmp_path: Path, gps: Gps | None) -> None:
    recording, _, _, source = start_of(tmp_path, gps)
    assert source == "creation_time"
    assert recording.problems == ()


@given(st.integers(0, 24 * 3600 * 60), st.sampled_from([(30, 1001), (60, 1001)]))
def test_drop_frame_text_follows_the_clock(frames: int, rate: tuple[int, int]) -> None:
    """Drop-frame labels stay within two frames of the wall clock, as SMPTE 12M wants."""
    code = TimeCode(frames, Fraction(rate[0] * 1000, rate[1]), drop_frame=True)
    hours, minutes, rest = code.text.split(":")
    seconds, frame = rest.split(";")
    shown = (int(hours) * 60 + int(minutes)) * 60 + int(seconds) + int(frame) / rate[0]
    off = (shown - float(code.seconds) + 43_200) % 86_400 - 43_200
    assert abs(off) < 0.25  # two frames, and 86 ms a day
    assert not (int(frame) < rate[0] // 15 and int(seconds) == 0 and int(minutes) % 10)


@pytest.mark.parametrize("shown", ["11:12:47:22", "11:12:47;22"])
def test_time_code_text_is_what_players_show(tmp_path: Path, shown: str) -> None:
    path = made.write_whole(tmp_path / "GX010123.MP4", made.encode(60), Plan(timecode=shown))
    assert READER.open(path).extras["timecode"]["text"] == shown


# --- names and recognising -------------------------------------------------------------------


@given(st.integers(1, 99), st.integers(0, 9999), st.sampled_from(["", "front-", "a b_"]))
def test_names(chapter: int, number: int, before: str) -> None:
    film = parse_name(Path(f"{before}GX{chapter:02d}{number:04d}.MP4"))
    preview = parse_name(Path(f"{before}gl{chapter:02d}{number:04d}.lrv"))
    assert film is not None
    assert preview is not None
    assert (film.chapter, film.first, film.preview) == (chapter, 1, False)
    assert (preview.number, preview.preview) == (film.number, True)
    assert preview.series != film.series


def test_other_names() -> None:
    assert all(
        parse_name(Path(n)) is None
        for n in ("video.mp4", "aGX010123.MP4", "GX01012.MP4", "GX0101234.MP4", "GX010123x.MP4")
    )
    first, second = parse_name(Path("GOPR0123.MP4")), parse_name(Path("GP010123.MP4"))
    assert first is not None
    assert second is not None
    assert (first.chapter, second.chapter, first.series) == (0, 1, second.series)


@given(st.binary(max_size=300), st.sampled_from(["GX010123.MP4", "film.mp4", "GX010123.THM"]))
def test_sniff_never_raises(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    for content in (data, b"\0\0\0\x08ftyp" + data):
        path.write_bytes(content)
        READER.sniff(path)


@example([(1636, 0)])  # puts the last sound before the first
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=5))
@settings(max_examples=60)
def test_damage_is_refused_in_words_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damage"
    plan = Plan(telemetry=Telemetry(gps=Gps()))
    path = made.write_whole(folder / "GX010123.MP4", made.encode(60), plan)
    data = bytearray(path.read_bytes())
    index = data.rindex(b"moov") - 8
    for at, value in damage:
        data[index + at % (len(data) - index)] = value
    path.write_bytes(data)
    try:
        recording = READER.open(path)
    except InputError:
        return
    for track in recording.of_kind("samples"):
        assert isinstance(track, SampleTrack)
        track.read()


def test_renamed_gopro_is_recognised_and_others_are_not(tmp_path: Path, shared_data: Path) -> None:
    assert READER.sniff(made.write_whole(tmp_path / "film.mp4", made.encode(60)))
    anonymous = Plan(handlers=False, telemetry=None)
    assert not READER.sniff(made.write_whole(tmp_path / "other.mp4", made.encode(60), anonymous))
    assert not READER.sniff(shared_data / "7_webcam/iscc-samples/demo.mp4")
    assert not READER.sniff(tmp_path / "nothing.mp4")


def test_made_chapters_pass_the_public_checks(tmp_path: Path) -> None:
    check_reader(READER, made.write_chapters(tmp_path, made.encode())[0])


def test_made_payloads_are_what_they_claim() -> None:
    data = made.payload(2, range(60, 90), Telemetry(gps=Gps(nine=True)))
    found = {s.key: (s.count, s.total) for d in gpmf.parse(data) for s in d.streams}
    assert found == {"ACCL": (200, 600), "SHUT": (30, 90), "GPS9": (10, 30)}
