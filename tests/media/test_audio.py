"""Sound by sample index and on a uniform grid, against FFmpeg's own frames and known clicks."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.errors import (
    EmptyFileError,
    InputNotFoundError,
    NoSoundError,
    UndecodableError,
)
from synorama.media.audio import MonoSound, read_audio, read_mono
from synorama.media.audio_container import decode_frames, decode_joined
from synorama.media.resample import UniformGrid, continuous_runs
from synorama.media.source import MediaSource
from synorama.records import BLOCK_DTYPE, AudioTrack

Float32 = NDArray[np.float32]
NS = 1_000_000_000


def packets_track(
    path: Path,
    samples: NDArray[np.int32],
    rate_hz: float,
    times_ns: NDArray[np.int64],
    block: int = 4096,
) -> AudioTrack:
    """Write interleaved samples after some other bytes; one knot a block."""
    path.write_bytes(b"header" + samples.astype("<i4").tobytes())
    firsts = np.arange(0, len(samples), block)
    blocks = np.zeros(len(firsts), BLOCK_DTYPE)
    blocks["first"], blocks["count"] = firsts, np.minimum(block, len(samples) - firsts)
    step = 4 * samples.shape[1]
    blocks["offset"], blocks["size"] = 6 + firsts * step, blocks["count"] * step
    knots = np.column_stack([firsts, times_ns[firsts]])
    return AudioTrack(
        "mic", "pcm_s32le", rate_hz, samples.shape[1], len(samples), knots, "packets", blocks
    )


def chirps(t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """A smooth sound below 3 kHz, defined at all times."""
    return np.asarray(sum(np.sin(2 * np.pi * f * t_s + f) for f in (211.0, 523.7, 1009.3, 2711.9)))


def lag_of(mono: MonoSound, first_s: float, last_s: float) -> float:
    """Return by how much [s] the sound between two moments comes late, to a microsecond."""
    a, b = int(first_s * mono.rate_hz), int(last_s * mono.rate_hz)
    t = (mono.start_ns + np.arange(a, b) * NS / mono.rate_hz) / NS
    got = mono.samples[a:b].astype(float)
    trials = np.linspace(-1e-4, 1e-4, 41)
    score = np.array([np.corrcoef(got, chirps(t - x))[0, 1] for x in trials])
    fit = np.polyfit(trials * 1e4, score, 4)
    fine = np.linspace(-1, 1, 4001)
    assert score.max() > 0.995
    return float(fine[np.argmax(np.polyval(fit, fine))] * 1e-4)


def rough_lag_of(mono: MonoSound, first_s: float, last_s: float) -> float:
    """Return the same to 50 us, looking 2 ms far."""
    a, b = int(first_s * mono.rate_hz), int(last_s * mono.rate_hz)
    t = (mono.start_ns + np.arange(a, b) * NS / mono.rate_hz) / NS
    trials = np.linspace(-2e-3, 2e-3, 81)
    score = [np.corrcoef(mono.samples[a:b], chirps(t - x))[0, 1] for x in trials]
    assert max(score) > 0.99
    return float(trials[int(np.argmax(score))])


@pytest.mark.parametrize(
    ("nominal_hz", "true_hz", "jitter_ns"),
    [(48_000.0, 48_000.0, 0), (48_000.0, 47_996.2, 0), (16_000.0, 16_051.4, 0),
     (48_000.0, 48_003.0, 60_000)],
)  # fmt: skip
def test_uniform_grid_follows_the_device_clock(
    tmp_path: Path, nominal_hz: float, true_hz: float, jitter_ns: int
) -> None:
    """Rates off nominal and jittering block times end on the true time to 20 us."""
    n = int(40 * true_hz)
    times = np.rint(7_000 * NS + np.arange(n) * (NS / true_hz)).astype(np.int64)
    sound = (chirps(times / NS) * 2**27).astype(np.int32)
    noise = np.random.default_rng(1).uniform(-jitter_ns, jitter_ns, n).astype(np.int64)
    track = packets_track(tmp_path / "a.bin", sound[:, None], nominal_hz, times + noise)
    mono = read_mono([tmp_path / "a.bin"], track, name="a")
    assert abs(mono.duration_s - 40) < 0.01
    for first in (1, 18, 36):
        assert abs(lag_of(mono, first, first + 3)) < (20e-6 if jitter_ns else 3e-6)


def test_rate_that_drifts(tmp_path: Path) -> None:
    n, rate = 60 * 16_000, 16_000.0
    t = np.arange(n) / rate
    times = np.rint(NS * (5 + t + 5e-4 * np.sin(np.pi * t / 60))).astype(np.int64)
    sound = (chirps(times / NS) * 2**27).astype(np.int32)
    track = packets_track(tmp_path / "a.bin", sound[:, None], rate, times, block=320)
    mono = read_mono([tmp_path / "a.bin"], track)
    for first in (2, 15, 29, 50):
        assert abs(lag_of(mono, first, first + 2)) < 20e-6


def test_hole_is_filled_with_silence(tmp_path: Path) -> None:
    n, rate, hole = 20 * 16_000, 16_000.0, 1_234_567_891
    times = np.rint(np.arange(n) * (NS / rate)).astype(np.int64)
    times[n // 2 :] += hole
    sound = (chirps(times / NS) * 2**27).astype(np.int32)
    track = packets_track(tmp_path / "a.bin", sound[:, None], rate, times, block=320)
    mono = read_mono([tmp_path / "a.bin"], track)
    assert abs(mono.duration_s - 20 - hole / NS) < 0.001
    assert not mono.samples[int(10.05 * 16_000) : int(11.2 * 16_000)].any()
    assert abs(lag_of(mono, 2, 5)) < 3e-6
    assert abs(lag_of(mono, 13, 16)) < 5e-6


def test_microphones_apart_are_not_mixed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sound = (rng.standard_normal((48_000, 7)) * 2**24).astype(np.int32)
    sound[:, 0] = 0  # a dead one
    sound[:, 2] = -sound[:, 1]
    times = np.arange(48_000) * 62_500
    track = packets_track(tmp_path / "a.bin", sound, 16_000.0, times)
    mono = read_mono([tmp_path / "a.bin"], track)
    assert np.corrcoef(mono.samples[100:40_000], sound[100:40_000, 1])[0, 1] > 0.999


def test_sides_that_cancel(tmp_path: Path) -> None:
    left = (np.random.default_rng(0).standard_normal(48_000) * 2**24).astype(np.int32)
    track = packets_track(
        tmp_path / "a.bin", np.column_stack([left, -left]), 16_000.0, np.arange(48_000) * 62_500
    )
    assert read_mono([tmp_path / "a.bin"], track).samples.std() > 500


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 30_000), st.integers(0, 12_000))
def test_packets_by_index(tmp_path_factory: pytest.TempPathFactory, first: int, count: int) -> None:
    path = tmp_path_factory.mktemp("p") / "a.bin"
    sound = np.arange(60_000, dtype=np.int32).reshape(-1, 2) * 1000
    track = packets_track(path, sound, 16_000.0, np.arange(30_000) * 62_500)
    got = read_audio([path], track, first, count)
    expected = sound[first : first + count].astype(np.float32) / np.float32(2**31)
    np.testing.assert_array_equal(got, expected)
    whole = MediaSource(path, 2, path.stat().st_size - 2)  # the same bytes inside another file
    moved = path.with_name("b.bin")
    moved.write_bytes(b"??" + path.read_bytes())
    inside = MediaSource(moved, 2, whole.path.stat().st_size)
    np.testing.assert_array_equal(read_audio([inside], track, first, count), expected)


# --- containers --------------------------------------------------------------------------------


def encode(
    path: Path, sound: Float32, rate: int, codec: str, cuts: Sequence[int] = (), start: int = 0
) -> None:
    """Write one file; ``cuts`` are packets to leave out."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = "mono"
        packets: list[Any] = []
        for k in range(0, len(sound), 960):
            part = np.ascontiguousarray(sound[None, k : k + 960])
            frame = av.AudioFrame.from_ndarray(part, format="flt", layout="mono")
            frame.sample_rate, frame.pts = rate, k + start
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for number, packet in enumerate(packets):
            if number not in cuts:
                container.mux(packet)


def ffmpeg(source: Path, target: Path, codec: str) -> None:
    if shutil.which("ffmpeg") is None:
        pytest.skip(f"ffmpeg is not installed: nothing here writes {codec}")
    command = ["ffmpeg", "-v", "error", "-i", str(source), "-c:a", codec, str(target)]
    subprocess.run(command, check=True)


def opened(path: Path) -> AudioTrack:
    from synorama.capture.webcam import open_media_file

    return open_media_file(path).audios[0]


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.m4a", "aac"), ("a.webm", "libopus"), ("a.mkv", "aac"), ("a.flac", "flac"),
     ("a.mka", "flac"), ("a.ts", "aac"), ("a.mp3", "libmp3lame"), ("a.wav", "pcm_s16le")],
)  # fmt: skip
def test_containers_keep_time_and_index(tmp_path: Path, name: str, codec: str) -> None:
    """What was encoded at a time is found at that time; random access equals reading through."""
    sound = (0.1 * chirps(np.arange(12 * 48_000) / 48_000)).astype(np.float32)
    encode(tmp_path / name, sound, 48_000, codec)
    track = opened(tmp_path / name)
    mono = read_mono([tmp_path / name], track)
    if name in ("a.m4a", "a.flac", "a.wav"):
        assert abs(lag_of(mono, 2, 8)) < 5e-6
    elif name == "a.webm":  # times in whole milliseconds
        assert abs(rough_lag_of(mono, 2, 8)) < 7e-4
    full = read_audio([tmp_path / name], track, 0, track.sample_count)
    assert len(full) == track.sample_count
    for first in (0, 700, 200_000, track.sample_count - 3000):
        part = read_audio([tmp_path / name], track, first, 2000)
        assert np.abs(part - full[first : first + 2000]).max() < 1e-3  # AAC fills in noise


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.webm", "libvorbis"), ("a.ogg", "libvorbis"), ("a.wav", "adpcm_ms")],
)
def test_random_access_where_a_time_tells_no_index(tmp_path: Path, name: str, codec: str) -> None:
    """Clicks make Vorbis change the length of its frames; ADPCM is timed by its bytes."""
    sound = (0.001 * chirps(np.arange(12 * 48_000) / 48_000)).astype(np.float32)
    for second in range(1, 12):
        sound[second * 48_000 + second * 97 :][:300] += np.float32(0.5)
    if codec == "libvorbis":  # PyAV cannot write it
        encode(tmp_path / "plain.wav", sound, 48_000, "pcm_s16le")
        ffmpeg(tmp_path / "plain.wav", tmp_path / name, codec)
    else:
        encode(tmp_path / name, sound, 48_000, codec)
    track = opened(tmp_path / name)
    full = read_audio([tmp_path / name], track, 0, track.sample_count)
    clicks = np.flatnonzero(np.diff((np.abs(full[:, 0]) > 0.2).astype(int)) == 1)
    for first in clicks[3:]:
        part = read_audio([tmp_path / name], track, int(first) - 1000, 2000)
        assert np.abs(part - full[first - 1000 : first + 1000]).max() < 0.02


def test_dropped_packets_leave_a_hole_not_a_shift(tmp_path: Path) -> None:
    sound = (0.1 * chirps(np.arange(12 * 48_000) / 48_000)).astype(np.float32)
    encode(tmp_path / "a.mkv", sound, 48_000, "flac", cuts=range(40, 60))
    mono = read_mono([tmp_path / "a.mkv"], opened(tmp_path / "a.mkv"))
    assert abs(mono.duration_s - 12) < 0.05
    assert abs(lag_of(mono, 8, 11)) < 6e-4


@pytest.mark.parametrize(("name", "codec"), [("a.mka", "flac"), ("a.m4a", "aac")])
def test_joined_frames_are_the_frames(tmp_path: Path, name: str, codec: str) -> None:
    """Over two files, one of which is damaged: nothing is lost, moved or counted twice."""
    for k in (0, 1):
        sound = (0.1 * chirps(np.arange(150_000) / 48_000 + k)).astype(np.float32)
        encode(tmp_path / f"{k}{name}", sound, 48_000, codec)
    damaged = bytearray((tmp_path / f"0{name}").read_bytes())
    damaged[len(damaged) // 2 :][:3000] = bytes(3000)
    (tmp_path / f"0{name}").write_bytes(damaged)
    sources = [MediaSource(tmp_path / f"{k}{name}") for k in (0, 1)]
    single = np.concatenate([f.samples for f in decode_frames(sources, 0)])
    joined = list(decode_joined(sources, 0, 10_000))
    assert np.array_equal(np.concatenate(joined), single)
    assert len(joined) < 40 < len(single) // 4096


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-5, 0.5), min_size=3, max_size=6))
def test_all_pieces_have_the_same_gain(levels: list[float]) -> None:
    """However loud each second is: one factor holds for all, to the last bit of int16."""
    wave_ = np.sin(np.arange(16_000) / 5).astype(np.float32)
    sound = np.concatenate([wave_ * np.float32(10**level) for level in levels])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.wav"
        path.write_bytes(_float_wav(sound))
        mono = read_mono([path], _wav_track(len(sound)))
    due = np.clip(sound * np.float32(mono.gain), -32_767, 32_767)
    inside = slice(500, len(due) - 500)
    assert np.abs(mono.samples[inside] - due[inside]).max() < 1e-4 * np.abs(due).max() + 1.1


REAL = [
    "4_audio/facesync/sample1.MP4",
    "7_webcam/iscc-samples/demo.mp4",
    "7_webcam/iscc-samples/demo.webm",
    "7_webcam/iscc-samples/demo.mov",
    "7_webcam/torchcodec/nasa_13013.mp4",
    "7_webcam/mediabunny/0.ts",
    "7_webcam/mediabunny/edts.mp4",
    "7_webcam/npm_ebml/test.webm",
    "3_gopro/gpmf-parser/hero7.mp4",
    "4_audio/pyannote_sdist/trñ00.wav",
    "4_audio/faster-whisper/jfk.flac",
    "4_audio/faster-whisper/hotwords.mp3",
]


@pytest.mark.parametrize("name", REAL)
def test_index_means_what_ffmpeg_delivers(shared_data: Path, name: str) -> None:
    """Adapter and decoder agree on what an index is, and when each frame was taken."""
    path = shared_data / name
    try:
        track = opened(path)
    except IndexError:
        pytest.skip("no sound in it")
    total, worst = 0, 0
    with av.open(str(path)) as container:
        stream = container.streams[track.stream_index]
        for frame in container.decode(stream):
            pts_ns = round(frame.pts * stream.time_base * NS)
            said = int(track.sample_times_ns(np.array([total], np.int64))[0])
            worst = max(worst, abs(said - pts_ns))
            total += frame.samples
        tick = float(stream.time_base) * NS
    assert total == track.sample_count
    assert worst <= max(tick, 1000) + 600_000 * (tick > 1e5)
    middle = total // 2
    full = read_audio([path], track, 0, total)
    part = read_audio([path], track, middle, 3000)
    assert np.abs(part - full[middle : middle + 3000]).max() < 1e-3
    assert read_mono([path], track).start_ns == pytest.approx(track.first_ns, abs=1_000_000)


def _float_wav(sound: Float32) -> bytes:
    size = 4 * len(sound)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 3, 1,
                       16_000, 64_000, 4, 32, b"data", size)  # fmt: skip
    return head + sound.astype("<f4").tobytes()


# --- bad input ---------------------------------------------------------------------------------


def test_no_samples(tmp_path: Path) -> None:
    track = AudioTrack(
        "a", "aac", 48_000.0, 2, 0, np.zeros((0, 2), np.int64), "container", stream_index=0
    )
    with pytest.raises(NoSoundError):
        read_mono([tmp_path / "a.mp4"], track)
    assert read_audio([tmp_path / "a.mp4"], track, 0, 10).shape == (0, 2)


def _wav_track(n: int) -> AudioTrack:
    knots = np.array([[0, 0]], np.int64)
    return AudioTrack("a", "pcm_s16le", 16_000.0, 1, n, knots, "container", stream_index=0)


@pytest.mark.parametrize(
    ("content", "error"),
    [(None, InputNotFoundError), (b"", EmptyFileError), (b"\0" * 999, UndecodableError)],
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, error: type) -> None:
    if content is not None:
        (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(error) as caught:
        read_mono([tmp_path / "a.wav"], _wav_track(100))
    assert "a.wav" in str(caught.value)


def test_no_playlist_reaches_other_files(tmp_path: Path) -> None:
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\na.wav\n")
    with pytest.raises(UndecodableError):
        MediaSource(tmp_path / "list.m3u8").open()


def test_digital_silence_is_silence(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(64_000))
    mono = read_mono([tmp_path / "a.wav"], _wav_track(32_000))
    assert len(mono.samples) == 32_000
    assert not mono.samples.any()


def test_nan_counts_as_silence(tmp_path: Path) -> None:
    sound = np.sin(np.arange(32_000) / 5).astype("<f4")
    sound[1000:2000], sound[3000] = np.nan, np.inf
    (tmp_path / "a.wav").write_bytes(_float_wav(sound))
    mono = read_mono([tmp_path / "a.wav"], _wav_track(32_000))
    assert np.abs(mono.samples[1100:1900]).max() < 50
    assert mono.samples[5000:].std() > 500


def test_unknown_packets_are_refused(tmp_path: Path) -> None:
    track = packets_track(tmp_path / "a.bin", np.ones((9, 1), np.int32), 16_000.0, np.arange(9) * 9)
    from dataclasses import replace

    with pytest.raises(UndecodableError, match="nothing here decodes"):
        read_audio([tmp_path / "a.bin"], replace(track, codec="gsm"), 0, 5)


def test_source_must_make_sense() -> None:
    with pytest.raises(ValueError, match="needs a size"):
        MediaSource(Path("x"), 5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=20), st.floats(-300, 300))
def test_grid_does_not_depend_on_the_feeding(sizes: list[int], ppm: float) -> None:
    """However the sound is cut into blocks, every tick is given out once and the same."""
    n = sum(sizes)
    rate = 48_000 * (1 + ppm * 1e-6)
    knots = np.array([[0, 5], [max(n - 1, 1), 5 + round(max(n - 1, 1) * NS / rate)]])
    track = AudioTrack("a", "aac", 48_000.0, 1, n, knots, "container", stream_index=0)
    sound = np.random.default_rng(0).standard_normal(n).astype(np.float32)

    def fed(parts: list[int]) -> Float32:
        grid = UniformGrid(continuous_runs(track), 48_000.0, 16_000, n)
        out, first = [], 0
        for size in parts:
            out += list(grid.push(first, sound[first : first + size]))
            first += size
        return np.concatenate([*out, *grid.finish(), np.zeros(0, np.float32)])

    np.testing.assert_allclose(fed(sizes), fed([n]), atol=1e-5)


# --- real microphones --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("gen1/aria_everyday_activities_test_data/recording.vrs", 0),
     ("gen2/aria_gen2_unit_test_sequence_with_bluetooth.vrs", 2)],
)  # fmt: skip
def test_glasses_against_the_vendors_reader(shared_data: Path, name: str, tolerance: int) -> None:
    """PCM of Gen 1 to the bit, Opus of Gen 2 to the last bits, every channel in its place."""
    data_provider = pytest.importorskip("projectaria_tools.core.data_provider")
    from synorama.capture.aria import READER

    path = shared_data / "1_vrs" / "projectaria_tools" / name
    track = READER.open(path).audios[0]
    provider = data_provider.create_vrs_data_provider(str(path))
    stream = provider.get_stream_id_from_label("mic")
    blocks = [
        np.array(provider.get_audio_data_by_index(stream, k)[0].data, np.int64)
        for k in range(provider.get_num_data(stream))
    ]
    theirs = np.concatenate(blocks).reshape(-1, track.channels)
    full_scale = 2**31 if track.codec == "pcm_s32le" else 2**15
    for first, count in ((0, track.sample_count), (track.sample_count // 2 + 77, 900)):
        mine = read_audio([path], track, first, count) * np.float32(full_scale)
        off = np.abs(mine - theirs[first : first + count].astype(np.float32))
        assert off.max() <= tolerance
    mono = read_mono([path], track)
    assert abs(mono.start_ns - (track.first_ns or 0)) < 1_000_000
    assert abs(mono.time_ns(mono.duration_s) - (track.last_ns or 0)) < 2_000_000
