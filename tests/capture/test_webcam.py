"""Any video or sound file: times against ffprobe and against a flash and a beep."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from synorama.capture.container import scan as scan_module
from synorama.capture.container.scan import scan
from synorama.capture.container.ticks import ticks_to_ns
from synorama.capture.webcam import READER
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputNotFoundError,
    NoMediaError,
    NoMovieIndexError,
)
from synorama.media.audio_container import decode_frames
from synorama.media.source import MediaSource
from synorama.records import AudioTrack, Recording, VideoTrack
from tests.capture.media_files import (
    Codecs,
    RawTrack,
    Scene,
    beep_sample,
    box,
    flash_index,
    mux,
    raw_mp4,
)

B_FRAMES = {"bf": "2", "g": "25", "b_strategy": "0"}
UNEVEN = (0, 31, 70, 92, 150, 400, 433, 800, 801, 1200, 1600, 1612, 1700, 2000, 2020, 2500, 2900)
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}

CASES: dict[str, tuple[str, Scene, Codecs]] = {
    "plain": ("a.mp4", Scene(), Codecs()),
    "b-frames": ("a.mp4", Scene(), Codecs(video_options=B_FRAMES)),
    "no-edit-list": (
        "a.mp4",
        Scene(),
        Codecs(video_options=B_FRAMES, container_options={"use_editlist": "0"}),
    ),
    "negative-offsets": (
        "a.mp4",
        Scene(),
        Codecs(video_options=B_FRAMES, container_options={"movflags": "negative_cts_offsets"}),
    ),
    "fragmented": ("a.mp4", Scene(), Codecs(container_options=FRAGMENTS)),
    "fragmented-b-frames": (
        "a.mp4",
        Scene(),
        Codecs(video_options=B_FRAMES, container_options=FRAGMENTS),
    ),
    "fragmented-delayed-moov": (
        "a.mp4",
        Scene(),
        Codecs(video_options=B_FRAMES, container_options={"movflags": "frag_keyframe+delay_moov"}),
    ),
    "variable-rate": ("a.mp4", Scene(times_ms=UNEVEN), Codecs(video_options=B_FRAMES)),
    "variable-rate-mkv": ("a.mkv", Scene(times_ms=UNEVEN), Codecs(video_options=B_FRAMES)),
    "first-frame-late": (
        "a.mp4",
        Scene(times_ms=tuple(range(1400, 3000, 40))),
        Codecs(video_options=B_FRAMES),
    ),
    "mov-pcm": ("a.mov", Scene(), Codecs(audio="pcm_s16le")),
    "mp4-opus": ("a.mp4", Scene(), Codecs(audio="libopus")),
    "mp4-mp3": ("a.mp4", Scene(), Codecs(audio="libmp3lame")),
    "mkv-aac": ("a.mkv", Scene(), Codecs(video_options=B_FRAMES)),
    "mkv-opus": ("a.mkv", Scene(), Codecs(audio="libopus")),
    "mkv-flac": ("a.mkv", Scene(), Codecs(audio="flac")),
    "webm-vp8-opus": (
        "a.webm",
        Scene(),
        Codecs("libvpx", "libopus", {"deadline": "realtime", "cpu-used": "8"}),
    ),
    "webm-vp9-opus": (
        "a.webm",
        Scene(),
        Codecs("libvpx-vp9", "libopus", {"deadline": "realtime", "cpu-used": "8"}),
    ),
    "ts": ("a.ts", Scene(), Codecs(video_options=B_FRAMES)),
    "ts-wraps": (
        "a.ts",
        Scene(),
        Codecs(video_options=B_FRAMES, container_options={"output_ts_offset": "95441.2"}),
    ),
    "avi": ("a.avi", Scene(), Codecs("mpeg4", "pcm_s16le")),
}


# Versions of FFmpeg disagree with each other on these: only the truth can tell.
DISPUTED = {"avi-h264": ("a.avi", Scene(), Codecs("libx264", "pcm_s16le", {"bf": "0"}))}


def opened(path: Path) -> Recording:
    assert READER.sniff(path)
    return READER.open(path)


def video_of(recording: Recording) -> VideoTrack:
    track = recording.tracks["video"]
    assert isinstance(track, VideoTrack)
    return track


def audio_of(recording: Recording) -> AudioTrack:
    track = recording.tracks["audio"]
    assert isinstance(track, AudioTrack)
    return track


def decoded_samples(path: Path, index: int) -> int:
    """Count what the decoder of the rest of the package delivers."""
    return sum(len(frame.samples) for frame in decode_frames([MediaSource(path)], index))


# --- truth: a flash and a beep that begin together -------------------------------------------


@pytest.mark.parametrize("case", [*CASES, *DISPUTED])
def test_flash_and_beep_meet(case: str, tmp_path: Path) -> None:
    name, scene, codecs = (CASES | DISPUTED)[case]
    path = mux(tmp_path / name, scene, codecs)
    recording = opened(path)
    video, audio = video_of(recording), audio_of(recording)
    assert video.count == len(scene.picture_times_ms())
    assert audio.sample_count == decoded_samples(path, audio.stream_index or 0)
    flash_ns = int(video.times_ns[flash_index(path)])
    beep = np.array([round(beep_sample(path, scene))], np.int64)
    beep_ns = int(audio.sample_times_ns(beep)[0])
    assert abs(beep_ns - flash_ns) < 1_000_000, f"{(beep_ns - flash_ns) / 1e6:.3f} ms apart"


@pytest.mark.parametrize("case", [*CASES, *DISPUTED])
def test_picture_times_are_those_muxed(case: str, tmp_path: Path) -> None:
    name, scene, codecs = (CASES | DISPUTED)[case]
    video = video_of(opened(mux(tmp_path / name, scene, codecs)))
    wanted = np.array(scene.picture_times_ms()) * 1_000_000
    got = video.times_ns - video.times_ns[0]
    assert np.abs(got - (wanted - wanted[0])).max() <= 1_000_000


# --- truth: ffprobe on real and muxed files --------------------------------------------------

REAL = (
    "7_webcam/iscc-samples/demo.mov",
    "7_webcam/iscc-samples/demo.mp4",
    "7_webcam/iscc-samples/demo.webm",
    "7_webcam/mediabunny/0.ts",
    "7_webcam/mediabunny/annex-b-avc.mkv",
    "7_webcam/mediabunny/edts.mp4",
    "7_webcam/mediabunny/frames.webm",
    "7_webcam/mediabunny/multiple-aac-tracks.mp4",
    "7_webcam/mediabunny/rotate-buck-bunny.mp4",
    "7_webcam/npm_ebml/test.webm",
    "7_webcam/torchcodec/nasa_13013.mp4",
    "3_gopro/gpmf-parser/hero7.mp4",
    "3_gopro/GoProX/GH010739.MP4",
    "3_gopro/GoProX/GL012297.LRV",
    "4_audio/facesync/sample1.MP4",
    "4_audio/facesync/sample1.wav",
    "4_audio/facesync/cosan_synctune.wav",
    "4_audio/faster-whisper/hotwords.mp3",
    "4_audio/faster-whisper/jfk.flac",
    "4_audio/faster-whisper/multilingual.mp3",
    "4_audio/faster-whisper/stereo_diarization.wav",
    "4_audio/google_audio-sync-kit/latency_act_2.wav",
    "4_audio/pyannote_sdist/dev00.flac",
    "4_audio/pyannote_sdist/empty.wav",
    "4_audio/pyannote_sdist/trñ00.wav",
)
PLAIN_BYTES = ("mov", "flac", "mp3")  # containers in which an offset is the payload's


def probed(path: Path) -> dict[str, Any]:
    """Everything ffprobe says of a file's streams, packets and frames."""
    if shutil.which("ffprobe") is None:
        pytest.skip("ffprobe is not installed: nothing independent to compare with")
    command = ["ffprobe", "-v", "quiet", "-of", "json", "-show_data_hash", "md5"]
    command += ["-show_streams", "-show_packets", "-show_frames", str(path)]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    mixed = answer.pop("packets_and_frames", [])
    answer["packets"] = [e for e in mixed if e["type"] == "packet"]
    answer["frames"] = [e for e in mixed if e["type"] == "frame"]
    return dict(answer)


def of_stream(entries: list[dict[str, Any]], index: int) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["stream_index"] == index]


def check_pictures(track: VideoTrack, frames: list[dict[str, Any]]) -> None:
    ticks = np.array(sorted(frame["best_effort_timestamp"] for frame in frames), np.int64)
    np.testing.assert_array_equal(track.index["pts"], ticks)
    np.testing.assert_array_equal(track.times_ns, ticks_to_ns(ticks, track.time_base))


def check_sound(track: AudioTrack, frames: list[dict[str, Any]], time_base: str) -> None:
    """Every decoded frame begins where the knots say, but for the container's rounding."""
    numerator, denominator = (int(part) for part in time_base.split("/"))
    within_ns = max(numerator * 1_250_000_000 // denominator, 1)  # as knots are fitted
    ticks = np.array([frame["best_effort_timestamp"] for frame in frames], np.int64)
    times_ns = ticks_to_ns(ticks, (numerator, denominator))
    # FFmpeg before 6 leaves the priming of AAC in Matroska and fragments in; PyAV's takes it out.
    assert track.first_ns is not None
    heard = times_ns >= track.first_ns - within_ns
    assert (~heard).sum() <= 1
    counts = np.array([frame["nb_samples"] for frame in frames], np.int64)[heard]
    times_ns = times_ns[heard]
    assert track.sample_count == counts.sum()
    got = track.sample_times_ns(np.cumsum(counts) - counts)
    assert np.abs(got - times_ns).max() <= within_ns


def check_packets(path: Path, answer: dict[str, Any]) -> None:
    found = scan(path)
    for stream in found.streams:
        packets = found.packets[stream.index]
        wanted = of_stream(answer["packets"], stream.index)
        if found.container == "wav":  # versions of FFmpeg cut it into packets of other sizes
            assert sum(int(p["size"]) for p in wanted) == packets.sizes.sum()
            assert int(wanted[0]["pos"]) == packets.offsets[0]
            continue
        assert [int(p["size"]) for p in wanted] == packets.sizes.tolist()
        stamps = [p.get("pts", p.get("dts")) for p in wanted]
        assert stamps == packets.pts.tolist()
        assert ["D" in p["flags"] for p in wanted] == packets.discard.tolist() or (
            stream.codec == "vp8"
        )
        if found.container.split(",")[0] in PLAIN_BYTES:
            data = path.read_bytes()
            for p, offset, size in zip(wanted, packets.offsets, packets.sizes, strict=True):
                digest = hashlib.md5(data[offset : offset + size], usedforsecurity=False)
                assert p["data_hash"] == f"MD5:{digest.hexdigest()}"


def check_against_ffprobe(path: Path) -> None:
    answer = probed(path)
    recording = opened(path)
    bases = {stream["index"]: stream["time_base"] for stream in answer["streams"]}
    kinds = [s["codec_type"] for s in answer["streams"]]
    assert len(recording.videos) == kinds.count("video")
    assert len(recording.audios) == kinds.count("audio")
    for video in recording.videos:
        check_pictures(video, of_stream(answer["frames"], int(video.source)))
    for audio in recording.audios:
        frames = of_stream(answer["frames"], int(audio.source))
        check_sound(audio, frames, bases[int(audio.source)])
    check_packets(path, answer)


@pytest.mark.parametrize("name", REAL)
def test_real_file_equals_ffprobe(name: str, shared_data: Path) -> None:
    check_against_ffprobe(shared_data / name)


@pytest.mark.parametrize("case", CASES)
def test_muxed_file_equals_ffprobe(case: str, tmp_path: Path) -> None:
    name, scene, codecs = CASES[case]
    check_against_ffprobe(mux(tmp_path / name, scene, codecs))


# --- what else a file can be -----------------------------------------------------------------


def test_rotation_and_late_first_frame(shared_data: Path) -> None:
    recording = opened(shared_data / "7_webcam/mediabunny/rotate-buck-bunny.mp4")
    video = video_of(recording)
    assert video.rotation_deg == 90
    assert video.first_ns == 83_333_333
    assert (video.width, video.height) == (1920, 1080)


def test_sound_after_the_hole_is_placed_by_its_time(tmp_path: Path) -> None:
    name, scene, codecs = CASES["fragmented"]
    audio = audio_of(opened(mux(tmp_path / name, scene, codecs)))
    assert audio.knots[1, 0] + 1 == audio.knots[2, 0] == 1024
    assert audio.knots[2, 1] - audio.knots[1, 1] > 20_000_000


def test_only_the_index_of_an_mp4_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    path = mux(tmp_path / "a.mp4", Scene(), Codecs(video_options=B_FRAMES))

    def refuse(*_: object) -> None:
        raise AssertionError("the whole file was demuxed")

    monkeypatch.setattr("synorama.capture.container.scan.demux", refuse)
    assert video_of(opened(path)).count == 75


def test_an_index_that_ffmpeg_reads_otherwise_is_not_trusted(
    tmp_path: Path, monkeypatch: Any
) -> None:
    path = mux(tmp_path / "a.mp4", Scene(), Codecs(video_options=B_FRAMES))
    truth = video_of(opened(path)).times_ns
    original = scan_module._agrees
    asked = []

    def disagree(entries: Any, track: Any) -> bool:
        asked.append(original(entries, track))
        return False

    monkeypatch.setattr(scan_module, "_agrees", disagree)
    np.testing.assert_array_equal(video_of(opened(path)).times_ns, truth)
    assert asked == [True]


def test_cover_art_is_no_picture_track(tmp_path: Path) -> None:
    path = tmp_path / "song.m4a"
    mux(tmp_path / "plain.m4a", Scene(), Codecs(video="", container="mp4"))
    with (
        av.open(str(tmp_path / "plain.m4a")) as source,
        av.open(str(path), "w", format="mp4") as out,
    ):
        sound = out.add_stream_from_template(source.streams.audio[0])
        art = out.add_stream("mjpeg", rate=1)
        art.width, art.height, art.pix_fmt = 16, 16, "yuvj420p"
        art.disposition = av.stream.Disposition.attached_pic
        black = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
        out.mux(art.encode(black))
        out.mux(art.encode(None))
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = sound
                out.mux(packet)
    assert list(opened(path).tracks) == ["audio"]


def test_creation_time_is_not_believed_to_the_hour(shared_data: Path) -> None:
    start = opened(shared_data / "3_gopro/gpmf-parser/hero7.mp4").start_utc
    assert start is not None
    assert start.sigma_s >= 43_200
    assert start.utc_ns == 1_557_141_208 * 1_000_000_000


def test_no_place_or_person_is_taken_over(shared_data: Path) -> None:
    recording = opened(shared_data / "3_gopro/gpmf-parser/hero7.mp4")
    assert "33.12" not in repr(recording.extras) + recording.model + recording.serial


def test_missing_sound_is_said(tmp_path: Path) -> None:
    recording = opened(mux(tmp_path / "a.mp4", Scene(), Codecs(audio="")))
    assert [p.code for p in recording.problems] == ["no_sound"]


def test_gap_and_dropped_frames_are_said(tmp_path: Path) -> None:
    times = [40 * k for k in range(100) if k != 20 and k not in range(50, 60)]
    recording = opened(mux(tmp_path / "a.mp4", Scene(seconds=4, times_ms=tuple(times)), Codecs()))
    said = {p.code: p.text for p in recording.problems}
    assert said["dropped_frames"].startswith("1 frames were dropped in 1 places")
    assert "0.44 s" in said["gap"]
    assert "from 1.96 s on" in said["gap"]


@pytest.mark.parametrize(("codec", "reordered"), [("libx264", "2"), ("libx264", "0"),
                                                  ("mpeg4", "2")])  # fmt: skip
def test_avi_with_an_unknown_order_is_said(codec: str, reordered: str, tmp_path: Path) -> None:
    """AVI has no presentation times; of MPEG-4 FFmpeg knows them all the same."""
    options = {"bf": reordered, "g": "25"}
    recording = opened(mux(tmp_path / "a.avi", Scene(), Codecs(codec, "", options)))
    said = "order_unknown" in {p.code for p in recording.problems}
    assert said == (codec == "libx264" and reordered != "0")


def test_late_start_is_said(tmp_path: Path) -> None:
    name, scene, codecs = CASES["first-frame-late"]
    codes = [p.code for p in opened(mux(tmp_path / name, scene, codecs)).problems]
    assert codes == ["late_start"]


# --- bad input -------------------------------------------------------------------------------


def damaged(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["a.mp4", "a.webm", "a.wav"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    path = damaged(tmp_path, name, b"")
    assert not READER.sniff(path)
    with pytest.raises(EmptyFileError, match="empty"):
        READER.open(path)


@pytest.mark.parametrize("name", ["a.mp4", "a.webm", "a.mkv", "a.ts", "a.wav", "a.mp3"])
@pytest.mark.parametrize("content", [b"Dear lab,\n" * 400, bytes(range(7, 256)) * 40])
def test_text_or_garbage_under_a_false_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = damaged(tmp_path, name, content)
    assert not READER.sniff(path)
    with pytest.raises(CorruptFileError) as caught:
        READER.open(path)
    assert caught.value.path == str(path)
    assert caught.value.hint


def test_no_such_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        READER.open(tmp_path / "gone.mp4")
    assert not READER.sniff(tmp_path)


def test_mp4_without_moov_tells_what_to_do(tmp_path: Path) -> None:
    path = damaged(tmp_path, "a.mp4", box(b"ftyp", b"isom", bytes(4)) + box(b"mdat", bytes(5000)))
    with pytest.raises(NoMovieIndexError, match="did not finish writing") as caught:
        READER.open(path)
    assert "untrunc" in caught.value.hint


def test_playlists_are_never_followed(tmp_path: Path) -> None:
    mux(tmp_path / "secret.ts", Scene(), Codecs())
    playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\nsecret.ts\n#EXT-X-ENDLIST\n"
    for name, text in (("a.mp4", playlist), ("b.ts", "ffconcat version 1.0\nfile secret.ts\n")):
        with pytest.raises(CorruptFileError):
            READER.open(damaged(tmp_path, name, text.encode()))


def test_nothing_but_subtitles(tmp_path: Path) -> None:
    path = damaged(tmp_path, "a.mp4", raw_mp4([RawTrack([9], [100], b"text", tag=b"tx3g")]))
    with pytest.raises(NoMediaError, match="neither pictures nor sound"):
        READER.open(path)


def test_truncated_fragments_keep_the_usable_part(tmp_path: Path) -> None:
    name, scene, codecs = CASES["fragmented"]
    whole = mux(tmp_path / name, scene, codecs)
    full = video_of(opened(whole)).times_ns
    cut = damaged(tmp_path, "cut.mp4", whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    recording = opened(cut)
    kept = video_of(recording).times_ns
    assert 0 < len(kept) < len(full)
    np.testing.assert_array_equal(kept, full[: len(kept)])
    assert any(p.code == "truncated" and p.severe for p in recording.problems)


def test_truncated_fast_start_mp4_keeps_the_usable_part(tmp_path: Path) -> None:
    options = {"movflags": "faststart"}
    whole = mux(tmp_path / "a.mp4", Scene(), Codecs(container_options=options))
    full = video_of(opened(whole)).times_ns
    cut = damaged(tmp_path, "cut.mp4", whole.read_bytes()[: whole.stat().st_size * 7 // 10])
    recording = opened(cut)
    kept = video_of(recording).times_ns
    assert 0 < len(kept) < len(full)
    assert np.isin(kept, full).all()
    assert "truncated" in [p.code for p in recording.problems]


@pytest.mark.parametrize("case", ["mkv-opus", "webm-vp8-opus", "ts", "avi"])
def test_truncated_others_keep_the_usable_part(tmp_path: Path, case: str) -> None:
    name, scene, codecs = CASES[case]
    whole = mux(tmp_path / name, scene, codecs)
    full = video_of(opened(whole)).times_ns
    cut = damaged(
        tmp_path, f"cut{whole.suffix}", whole.read_bytes()[: whole.stat().st_size // 376 * 188 + 50]
    )
    recording = opened(cut)
    kept = video_of(recording).times_ns
    assert 0 < len(kept) < len(full)
    np.testing.assert_array_equal(kept[:-1], full[: len(kept) - 1])
    assert "truncated" in [p.code for p in recording.problems]


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = mux(tmp_path / "a.mp4", Scene(), Codecs())
    before = path.read_bytes(), path.stat().st_mtime_ns
    path.chmod(0o400)
    opened(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg"])
def test_truncated_sound_is_said(tmp_path: Path, name: str) -> None:
    codec = {".wav": "pcm_s16le", ".flac": "flac", ".ogg": "libopus"}[Path(name).suffix]
    whole = mux(tmp_path / name, Scene(), Codecs(video="", audio=codec))
    assert opened(whole).problems == ()
    cut = damaged(
        tmp_path, f"cut{whole.suffix}", whole.read_bytes()[: whole.stat().st_size * 9 // 10]
    )
    recording = opened(cut)
    assert 0 < audio_of(recording).sample_count < audio_of(opened(whole)).sample_count
    assert audio_of(recording).sample_count == decoded_samples(cut, 0)
    assert "truncated" in [p.code for p in recording.problems]
