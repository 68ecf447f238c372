"""The VRS container reader against made files, damage, and the vendor's reader."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synorama.capture.container.vrs import (
    CONFIGURATION,
    VrsFile,
    chunk_paths,
    first_chunk,
    open_vrs,
    read_tags,
)
from synorama.capture.container.vrs_layout import parse_layout, split_strings
from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputError,
    InputNotFoundError,
    MissingChunkError,
    OrphanChunkError,
    TruncatedFileError,
    UnknownFormatError,
)
from synorama.media.payload import read_payload
from tests.capture.vrs_files import Row, rows, write_vrs

IMU = "1202-1"
IN_FOLDER = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

number = st.floats(width=32, allow_nan=False)
records = st.lists(
    st.builds(
        Row,
        time_s=st.floats(0, 1e6),
        count=st.integers(-(2**63), 2**63 - 1),
        axes=st.tuples(number, number, number),
        label=st.text(max_size=6).filter(lambda s: "\0" not in s),
        ticks=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(tuple),
        payload=st.binary(max_size=30),
        packing=st.sampled_from([0, 1, 2]),
    ),
    min_size=1,
    max_size=12,
).map(lambda found: sorted(found, key=lambda r: r.time_s))
indexes = st.sampled_from(["end", "front", "none", "split", "stale"])


def payloads(vrs: VrsFile) -> list[bytes]:
    out = []
    for row in vrs.payloads(IMU, vrs.select(IMU)):
        with vrs.paths[int(row["file"])].open("rb") as file:
            out.append(read_payload(file, row))
    return out


def counts(vrs: VrsFile) -> list[int]:
    column: list[int] = vrs.columns(IMU, vrs.select(IMU), ["count"])["count"].tolist()
    return column


@IN_FOLDER
@given(written=records, index=indexes, data=st.data())
def test_everything_written_is_read(
    tmp_path: Path, written: list[Row], index: str, data: st.DataObject
) -> None:
    borders = data.draw(st.sets(st.integers(1, max(1, len(written) - 1)), max_size=2))
    for old in tmp_path.iterdir():
        old.unlink()
    chunk_at = sorted(b for b in borders if b < len(written))
    paths = write_vrs(tmp_path / "x.vrs", written, index=index, chunk_at=chunk_at)
    vrs = open_vrs(paths[-1])
    assert vrs.paths == tuple(paths)
    assert vrs.rebuilt == (index in ("none", "stale"))
    assert vrs.lost_records == vrs.cut_bytes == 0
    mine = vrs.select(IMU)
    fields = vrs.columns(IMU, mine)
    assert mine["time_s"].tolist() == [r.time_s for r in written]
    assert fields["count"].tolist() == [r.count for r in written]
    assert fields["axes"].tolist() == [list(r.axes) for r in written]
    assert [t.decode() for t in vrs.texts(IMU, mine, "label")] == [r.label for r in written]
    assert [tuple(v) for v in vrs.vectors(IMU, mine, "ticks")] == [r.ticks for r in written]
    assert payloads(vrs) == [r.payload for r in written]
    assert vrs.first(IMU, CONFIGURATION)["nominal_rate"] == 1000.0


def test_stream_without_records_has_empty_columns(tmp_path: Path) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", [])
    vrs = open_vrs(path)
    fields = vrs.columns(IMU, vrs.select(IMU))
    assert fields["count"].shape == (0,)
    assert fields["axes"].shape == (0, 3)


@IN_FOLDER
@given(keep=st.floats(0, 1), index=indexes, packing=st.sampled_from([0, 2]))
def test_what_a_cut_file_still_holds_is_kept(
    tmp_path: Path, keep: float, index: str, packing: int
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    written = rows(30, packing=packing)
    paths = write_vrs(tmp_path / "x.vrs", written, index=index)
    whole = paths[-1].read_bytes()
    size = int(keep * len(whole))
    paths[-1].write_bytes(whole[:size])
    held = whole[:size].count(b"row ") if not packing else 0
    try:
        vrs = open_vrs(paths[0])
    except MissingChunkError:
        return  # cut exactly between two records: a whole chunk is missing, it says
    except InputError as error:
        event(type(error).__name__)
        assert held == 0, "records were there and were not kept"
        return
    n = len(vrs.select(IMU))
    assert counts(vrs) == list(range(n))
    assert payloads(vrs) == [b"payload"] * n
    if n < 30:
        assert vrs.lost_records or vrs.rebuilt or vrs.cut_bytes
    stored = vrs.records["offset"] + vrs.records["size"]
    assert int(stored.max()) <= size


def test_lost_records_are_counted(tmp_path: Path) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(30), index="front")
    body = path.read_bytes()
    path.write_bytes(body[:-10])
    vrs = open_vrs(path)
    assert (len(vrs.select(IMU)), vrs.lost_records, vrs.rebuilt) == (29, 1, False)
    assert vrs.cut_bytes > 0


@pytest.mark.parametrize("at", [40, 200, 700])
def test_damage_in_the_middle_ends_the_walk(tmp_path: Path, at: int) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(30))
    body = bytearray(path.read_bytes())
    start = body.index(b"row 20") - 100
    body[start : start + 60] = b"\xff" * 60
    path.write_bytes(bytes(body))
    vrs = open_vrs(path)
    assert vrs.rebuilt
    assert counts(vrs) == list(range(len(vrs.select(IMU))))
    assert 15 <= len(vrs.select(IMU)) <= 20
    assert vrs.cut_bytes > at


def test_raw_file_is_not_touched(tmp_path: Path) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(30), index="none")
    before, stat = hashlib.sha256(path.read_bytes()).digest(), path.stat()
    path.chmod(0o400)
    counts(open_vrs(path))
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert path.stat().st_mtime_ns == stat.st_mtime_ns


# --- chunks ----------------------------------------------------------------------------------


def test_any_chunk_opens_the_recording(tmp_path: Path) -> None:
    paths = write_vrs(tmp_path / "x.vrs", rows(30), chunk_at=(10, 20))
    for path in paths:
        assert first_chunk(path) == paths[0]
        assert counts(open_vrs(path)) == list(range(30))


def test_first_chunk_may_be_numbered_zero(tmp_path: Path) -> None:
    first, second = write_vrs(tmp_path / "x.vrs", rows(30), chunk_at=(10,))
    first.rename(tmp_path / "x.vrs_0")
    assert counts(open_vrs(second)) == list(range(30))
    assert chunk_paths(second) == (tmp_path / "x.vrs_0", second)


@pytest.mark.parametrize("index", ["end", "front"])
@pytest.mark.parametrize("missing", [1, 2])
def test_missing_chunk_is_named(tmp_path: Path, index: str, missing: int) -> None:
    paths = write_vrs(tmp_path / "x.vrs", rows(30), chunk_at=(10, 20), index=index)
    paths[missing].unlink()
    with pytest.raises(MissingChunkError) as caught:
        open_vrs(paths[0])
    assert f"x.vrs_{missing}" in f"{caught.value}{caught.value.hint}"


def test_split_head_without_its_records(tmp_path: Path) -> None:
    head, rest = write_vrs(tmp_path / "x.vrs", rows(30), index="split")
    rest.unlink()
    with pytest.raises((MissingChunkError, TruncatedFileError)):
        open_vrs(head)


def test_chunk_without_its_first_is_an_orphan(tmp_path: Path) -> None:
    first, second = write_vrs(tmp_path / "x.vrs", rows(30), chunk_at=(10,))
    first.unlink()
    with pytest.raises(OrphanChunkError, match=r"first chunk x\.vrs"):
        open_vrs(second)


def test_stray_file_with_a_chunks_name_is_left_out(tmp_path: Path) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(30))
    (tmp_path / "x.vrs_1").write_bytes(b"something else entirely" * 10)
    assert open_vrs(path).paths == (path,)


def test_begun_and_empty_last_chunk_is_left_out(tmp_path: Path) -> None:
    first, _ = write_vrs(tmp_path / "x.vrs", rows(30), index="none", chunk_at=(10,))
    (tmp_path / "x.vrs_2").touch()
    assert counts(open_vrs(first)) == list(range(30))


def test_parts_that_cut_records_are_refused(tmp_path: Path) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(30))
    body = path.read_bytes()
    middle = body.index(b"row 15") + 2
    path.write_bytes(body[:middle])
    (tmp_path / "x.vrs_1").write_bytes(body[middle:])
    with pytest.raises(CorruptFileError, match="begins in one chunk and ends in the next"):
        open_vrs(path)


# --- bad input -------------------------------------------------------------------------------


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        open_vrs(tmp_path / "x.vrs")


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.vrs").touch()
    with pytest.raises(EmptyFileError):
        open_vrs(tmp_path / "x.vrs")


def test_garbage(tmp_path: Path) -> None:
    (tmp_path / "x.vrs").write_bytes(np.random.default_rng(1).bytes(5000))
    with pytest.raises(UnknownFormatError, match="no VRS file"):
        open_vrs(tmp_path / "x.vrs")


@pytest.mark.parametrize("size", [20, 79, 90, 300])
def test_cut_before_the_first_record(tmp_path: Path, size: int) -> None:
    (path,) = write_vrs(tmp_path / "x.vrs", rows(3))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(TruncatedFileError):
        open_vrs(path)


@IN_FOLDER
@given(at=st.integers(0, 3000), value=st.integers(0, 255))
def test_a_flipped_byte_never_breaks_the_reader(tmp_path: Path, at: int, value: int) -> None:
    path = tmp_path / "x.vrs"
    write_vrs(path, rows(10, packing=2))
    body = bytearray(path.read_bytes())
    body[at % len(body)] = value
    path.write_bytes(bytes(body))
    try:
        vrs = open_vrs(path)
        mine = vrs.select(IMU)
        vrs.columns(IMU, mine)
        vrs.payloads(IMU, mine)
    except (InputError, KeyError):  # KeyError: the flip renamed the stream
        pass


def test_layout_that_makes_no_sense() -> None:
    with pytest.raises(CorruptFileError):
        parse_layout('{"data_layout":[{"name":"x","type":"DataPieceValue<quux>","offset":0}]}')
    with pytest.raises(CorruptFileError):
        parse_layout("not json")
    with pytest.raises(CorruptFileError):
        split_strings(b"\x02\x00\x00\x00\xff\x00\x00\x00ab")


def test_layout_of_matrices_and_lists() -> None:
    layout = parse_layout(
        '{"data_layout":[{"name":"m","type":"DataPieceValue<Matrix3Dd>","offset":0},'
        '{"name":"p","type":"DataPieceArray<Point3Df>","size":21,"offset":72},'
        '{"name":"s","type":"DataPieceVector<string>","index":0}]}'
    )
    assert layout.fixed["m"].shape == (3, 3)
    assert layout.fixed["p"].shape == (21, 3)
    assert layout.fixed.itemsize == 72 + 252 + 8
    assert split_strings(b"\x02\0\0\0\x01\0\0\0a\x02\0\0\0bc") == ["a", "bc"]


# --- against the vendor's reader -------------------------------------------------------------


def vendor(path: Path) -> Any:
    import vrsbindings
    from pyvrs import SyncVRSReader

    reader = SyncVRSReader(str(path))
    reader.set_image_conversion(vrsbindings.ImageConversion.OFF)
    return reader


def assert_same_records(vrs: VrsFile, reader: Any) -> None:
    assert len(vrs.records) == reader.n_records
    for mine, theirs in zip(vrs.records, reader, strict=True):
        assert f"{mine['type']}-{mine['instance']}" == theirs.stream_id
        assert float(mine["time_s"]) == theirs.timestamp
        assert int(mine["version"]) == theirs.format_version


REAL = sorted(
    f"1_vrs/{name}"
    for name in (
        "projectaria_tools/gen1/aria_everyday_activities_test_data/recording.vrs",
        "projectaria_tools/gen1/aria_unit_test_timecode_sequence_calib.vrs",
        "projectaria_tools/gen2/aria_gen2_unit_test_sequence_with_bluetooth.vrs",
        "vrs/sample_file.vrs",
    )
)


@pytest.mark.parametrize("name", REAL)
def test_real_file_has_the_vendors_records_and_bytes(shared_data: Path, name: str) -> None:
    path = shared_data / name
    vrs, reader = open_vrs(path), vendor(path)
    assert_same_records(vrs, reader)
    assert dict(vrs.tags) == dict(reader.file_tags) == dict(read_tags(path))
    with path.open("rb") as file:
        for stream in vrs.streams:
            mine = vrs.select(stream)
            theirs = reader.filtered_by_fields(stream_ids={stream}, record_types={"data"})
            assert len(theirs) == len(mine)
            for row, record in zip(vrs.payloads(stream, mine), theirs, strict=True):
                for block in _stored_blocks(record):
                    assert read_payload(file, row) == np.asarray(block).tobytes()


def _stored_blocks(record: Any) -> list[Any]:
    """Return what the vendor's reader hands out as it is stored: it resizes Opus packets."""
    packed = any("opus" in str(spec) for spec in record.audio_specs)
    return [*record.image_blocks, *([] if packed else record.audio_blocks)]


@pytest.mark.parametrize("name", REAL)
def test_real_file_has_the_vendors_fields(shared_data: Path, name: str) -> None:
    path = shared_data / name
    vrs, reader = open_vrs(path), vendor(path)
    for stream in vrs.streams:
        mine = vrs.select(stream)
        fields = vrs.columns(stream, mine)
        theirs = reader.filtered_by_fields(stream_ids={stream}, record_types={"data"})
        for k, record in enumerate(theirs):
            for block in record.metadata_blocks:
                assert_same_fields(fields, dict(block), k)


def assert_same_fields(fields: dict[str, NDArray[Any]], theirs: dict[str, Any], k: int) -> None:
    for name, value in theirs.items():
        if name not in fields or isinstance(value, str):
            continue
        mine = fields[name][k]
        flat = np.array(value, dtype=mine.dtype).reshape(np.shape(mine))
        np.testing.assert_array_equal(mine, flat, err_msg=name)


@pytest.mark.parametrize("index", ["end", "front", "none", "split"])
def test_made_files_open_in_the_vendors_reader(tmp_path: Path, index: str) -> None:
    paths = write_vrs(tmp_path / "x.vrs", rows(30, packing=2), index=index, chunk_at=(10, 20))
    assert_same_records(open_vrs(paths[0]), vendor(paths[0]))


@pytest.mark.parametrize("size", [60_000, 1_000_000, 1_900_000, 1_989_000])
def test_cut_real_file_keeps_what_the_vendor_keeps(
    shared_data: Path, tmp_path: Path, size: int
) -> None:
    name = "1_vrs/projectaria_tools/gen2/aria_gen2_unit_test_sequence_with_bluetooth.vrs"
    path = tmp_path / "cut.vrs"
    shutil.copyfile(shared_data / name, path)
    with path.open("r+b") as file:
        file.truncate(size)
    if size < 100_000:
        with pytest.raises(TruncatedFileError):
            open_vrs(path)
        return
    vrs = open_vrs(path)
    assert_same_records(vrs, vendor(path))
    assert vrs.lost_records == 997 - len(vrs.records) > 0


def test_orphan_chunk_of_a_real_recording(shared_data: Path) -> None:
    with pytest.raises(OrphanChunkError, match=r"simulated\.vrs"):
        open_vrs(shared_data / "1_vrs/vrs/simulated.vrs_2")
