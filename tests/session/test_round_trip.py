"""What goes into a part comes out of it, whatever it is."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.errors import NotASessionError
from synorama.records import (
    BLOCK_DTYPE,
    FRAME_DTYPE,
    AudioTrack,
    Column,
    FileRef,
    PairEvidence,
    PointCloud,
    PointTrack,
    Problem,
    Recording,
    RecordingClock,
    Samples,
    SampleTrack,
    SyncResult,
    TimeMapping,
    UtcEstimate,
    VideoTrack,
    Word,
)
from synorama.session import read_ingest, read_sync, write_ingest, write_sync, write_transcript
from synorama.session.guard import open_guarded
from synorama.session.words_io import read_words
from synorama.timebase import ClockMap
from tests.session.factory import camera, encode, glasses, sync_of

RELAXED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAME = st.text("abcxyz-_0189 é", min_size=1, max_size=8).filter(lambda s: s.strip() == s)
TIME = st.integers(-(2**62), 2**62)
COUNT = st.integers(0, 2**40)
REAL = st.floats(allow_nan=False, allow_infinity=False, width=64)
RATE = st.floats(0.5, 100_000)


def same(a: Any, b: Any) -> bool:
    """Compare records deeply; what is read lazily is read."""
    if isinstance(a, SampleTrack | PointTrack):
        lazy = same(a.read(), b.read())
        return lazy and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "read"
        )
    if is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
        )
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) and type(a) is type(b)


def table(draw: st.DrawFn, dtype: np.dtype[Any], rows: int) -> NDArray[Any]:
    data = draw(st.binary(min_size=rows * dtype.itemsize, max_size=rows * dtype.itemsize))
    return np.frombuffer(data, dtype)


@st.composite
def videos(draw: st.DrawFn) -> VideoTrack:
    rows = draw(st.integers(0, 4))
    in_container = draw(st.booleans())
    times = sorted(draw(st.lists(TIME, min_size=rows, max_size=rows)))
    return VideoTrack(
        name="",
        codec=draw(TEXT),
        width=draw(COUNT),
        height=draw(COUNT),
        times_ns=np.array(times, np.int64),
        index=table(draw, FRAME_DTYPE, rows),
        storage="container" if in_container else "packets",
        time_base=(draw(COUNT), draw(COUNT)),
        stream_index=draw(st.integers(0, 9)) if in_container else None,
        rotation_deg=draw(st.sampled_from([0, 90, 180, 270])),
        time_refers_to=draw(st.sampled_from(["exposure_start", "unknown"])),
        rate_hz=draw(st.none() | RATE),
        source=draw(TEXT),
        pixel_format=draw(TEXT),
    )


@st.composite
def sounds(draw: st.DrawFn) -> AudioTrack:
    rows = draw(st.integers(0, 4))
    in_container = draw(st.booleans())
    knots = [sorted(draw(st.sets(TIME, min_size=rows, max_size=rows))) for _ in range(2)]
    blocks = None if in_container else table(draw, BLOCK_DTYPE, rows)
    return AudioTrack(
        name="",
        codec=draw(TEXT),
        rate_hz=draw(RATE),
        channels=draw(st.integers(1, 8)),
        sample_count=draw(COUNT) if rows else 0,
        knots=np.array(knots, np.int64).T,
        storage="container" if in_container else "packets",
        blocks=blocks,
        muted=draw(st.none() | st.just(np.zeros(rows, bool))),
        stream_index=draw(st.integers(0, 9)) if in_container else None,
        source=draw(TEXT),
        stereo_pairs=draw(st.integers(0, 4)),
        file_firsts=tuple(draw(st.lists(COUNT, max_size=2))),
    )


@st.composite
def samples(draw: st.DrawFn) -> SampleTrack:
    rows, width = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    kind: np.dtype[Any] = np.dtype(draw(st.sampled_from(["<f4", "<f8"])))
    times = np.array(draw(st.lists(TIME, min_size=rows, max_size=rows)), np.int64)
    values = table(draw, kind, rows * width).reshape(rows, width)
    extra = {
        "flags": table(draw, np.dtype("u1"), rows),
        "json": np.array([b"{}"] * rows, "S5"),
        "uid": table(draw, np.dtype("<i8"), rows),
    }
    columns = tuple(Column(draw(TEXT), draw(TEXT)) for _ in range(width))
    result = Samples(times, values, extra)
    return SampleTrack(
        name="",
        sample_kind=draw(st.sampled_from(["samples", "pose", "gaze", "hands"])),
        columns=columns,
        count=rows,
        first_ns=draw(st.none() | TIME),
        last_ns=draw(st.none() | TIME),
        read=lambda: result,
        frame=draw(TEXT),
        rate_hz=draw(st.none() | RATE),
        source=draw(TEXT),
        location=draw(st.booleans()),
    )


@st.composite
def clouds(draw: st.DrawFn) -> PointTrack:
    rows = draw(st.integers(0, 4))
    kind = np.dtype("<f8")
    normals = table(draw, kind, rows * 3).reshape(rows, 3) if draw(st.booleans()) else None
    colours = (
        table(draw, np.dtype("u1"), rows * 3).reshape(rows, 3) if draw(st.booleans()) else None
    )
    sigma = table(draw, kind, rows) if draw(st.booleans()) else None
    cloud = PointCloud(
        draw(TEXT), table(draw, kind, rows * 3).reshape(rows, 3), normals, colours, sigma
    )
    return PointTrack("", rows, lambda: cloud, draw(TEXT), draw(TEXT))


@st.composite
def recordings(draw: st.DrawFn, folder: Path) -> Recording:
    names = draw(st.lists(NAME, unique=True, max_size=4))
    kinds = st.one_of(videos(), sounds(), samples(), clouds())
    pairs = draw(st.lists(st.tuples(TIME, TIME), max_size=3))
    files = [folder / draw(NAME) for _ in range(draw(st.integers(0, 2)))]
    digest = st.none() | st.just("ab" * 32)
    return Recording(
        id=draw(NAME),
        device=draw(TEXT),
        files=tuple(FileRef(f, draw(COUNT), draw(TIME), draw(digest)) for f in files),
        tracks={name: replace(draw(kinds), name=name) for name in names},
        model=draw(TEXT),
        serial=draw(TEXT),
        participant=draw(st.none() | TEXT),
        role=draw(st.none() | TEXT),
        calibration=draw(st.none() | st.text(max_size=5) | st.just("ü" * 70_000)),
        sync_role=draw(st.sampled_from([None, "server", "client"])),
        shared_session_id=draw(st.none() | TEXT),
        time_mappings=(TimeMapping("utc", np.array(pairs, np.int64)),) if pairs else (),
        start_utc=draw(st.none() | st.builds(UtcEstimate, TIME, TIME, REAL, TEXT)),
        take=draw(st.integers(0, 3)),
        problems=tuple(
            draw(st.lists(st.builds(Problem, TEXT, TEXT, TEXT, st.booleans()), max_size=2))
        ),
        extras=draw(st.dictionaries(TEXT, st.none() | TEXT | COUNT | REAL, max_size=3)),
    )


@RELAXED
@given(st.data())
def test_recordings_come_back_as_they_were(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        given_ = data.draw(st.lists(recordings(folder), max_size=3, unique_by=lambda r: r.id))
        (folder / "parts").mkdir()
        write_ingest(folder / "parts" / "ingest.h5", given_, include_location=True)
        back = read_ingest(folder / "parts" / "ingest.h5")
        assert same(tuple(given_), back)


@st.composite
def maps(draw: st.DrawFn) -> ClockMap:
    rows = draw(st.integers(1, 4))
    columns = [sorted(draw(st.sets(TIME, min_size=rows, max_size=rows))) for _ in range(2)]
    rate = st.floats(0.9, 1.1)
    sigma = st.floats(0, 1e9)
    return ClockMap(
        "session",
        "device",
        np.array(columns, np.int64).T,
        rate_before=draw(rate),
        rate_after=draw(rate),
        sigma_ns=draw(sigma),
        residual_rms_ns=draw(sigma),
        valid_ns=draw(st.none() | st.just((-5, 7))),
        rate_sigma_ppm=draw(sigma),
        limit_ns=draw(st.none() | COUNT),
    )


@st.composite
def results(draw: st.DrawFn) -> SyncResult:
    some = st.lists(maps(), min_size=1, max_size=3).map(tuple)
    names = draw(st.lists(NAME, unique=True, max_size=3))
    optional = st.none() | REAL
    clocks = {
        name: RecordingClock(
            name, draw(some), draw(TEXT), draw(optional), draw(optional), draw(REAL), draw(TEXT)
        )
        for name in names
    }
    pair = PairEvidence(
        draw(TEXT), draw(TEXT), draw(st.booleans()), draw(TEXT), draw(REAL), draw(REAL),
        draw(REAL), draw(COUNT), draw(st.booleans()), draw(st.none() | TIME), draw(optional),
        draw(optional), draw(st.just(()) | some), np.array([1, 2]), np.array([0.5, -0.5]),
        draw(optional), draw(optional), draw(optional),
    )  # fmt: skip
    unsynced = draw(st.dictionaries(NAME, TEXT, max_size=2))
    return SyncResult(
        draw(NAME), clocks, (pair,), unsynced, tuple(draw(st.lists(TEXT, max_size=2)))
    )


@RELAXED
@given(results())
def test_clocks_and_evidence_come_back_as_they_were(result: SyncResult) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sync.h5"
        write_sync(path, result)
        assert same(result, read_sync(path))


WORDS = st.lists(
    st.builds(
        Word,
        TEXT,
        st.none() | TIME,
        st.none() | TIME,
        st.none() | st.floats(0, 1),
        st.none() | st.text("ab", min_size=1),
        TEXT,
        TEXT,
        st.booleans(),
    ),
    max_size=5,
)


@RELAXED
@given(WORDS)
def test_words_come_back_as_they_were(words: list[Word]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "transcribe.h5"
        write_transcript(path, words)
        with open_guarded(path) as file:
            assert same(tuple(words), read_words(file["transcript"]))


def test_location_stays_out_unless_asked_for(tmp_path: Path) -> None:
    one = glasses(tmp_path)
    write_ingest(tmp_path / "i.h5", [one], include_location=False)
    without = read_ingest(tmp_path / "i.h5")[0]
    assert set(one.tracks) - set(without.tracks) == {"gps"}
    write_ingest(tmp_path / "i.h5", [one], include_location=True)
    assert same(one, read_ingest(tmp_path / "i.h5")[0])


def test_a_moved_folder_keeps_its_links(tmp_path: Path) -> None:
    (tmp_path / "a" / "raw").mkdir(parents=True)
    one = glasses(tmp_path / "a" / "raw")
    write_ingest(tmp_path / "a" / "i.h5", [one], include_location=True)
    (tmp_path / "a").rename(tmp_path / "b")
    file = read_ingest(tmp_path / "b" / "i.h5")[0].files[0]
    assert file.path == tmp_path / "b" / "raw" / "aria-1.bin"
    assert file.path.stat().st_size == file.bytes


def test_one_stage_is_not_taken_for_another(tmp_path: Path) -> None:
    one = glasses(tmp_path)
    write_sync(tmp_path / "sync.h5", sync_of(one))
    with pytest.raises(NotASessionError, match="sync"):
        read_ingest(tmp_path / "sync.h5")


def test_progress_ends_at_its_total(tmp_path: Path) -> None:
    encode(tmp_path / "v.mp4", "libx264", [0, 512], Fraction(1, 15360))
    seen: list[tuple[int, int]] = []
    write_ingest(
        tmp_path / "i.h5",
        [glasses(tmp_path, frames=3), camera([tmp_path / "v.mp4"])],
        include_location=False,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (7, 7)
    assert not (tmp_path / ".i.h5.writing").exists()
