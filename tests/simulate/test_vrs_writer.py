"""The VRS container, read back by readers that nobody here wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from projectaria_tools.core import data_provider
from projectaria_tools.core.sensor_data import TimeDomain
from projectaria_tools.core.stream_id import StreamId

from synorama.simulate.clocks import steady_clock
from synorama.simulate.devices.aria import SMALL, write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.formats.vrs_writer import DataLayout, Kind, Record, VrsStream, write_vrs
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.simulate.truth import TrackTruth
from synorama.timebase import NS_PER_S

START_NS = 4_000_000_000_123


@pytest.fixture(scope="module")
def sound() -> Sound:
    return Sound(START_NS, 4.0, seed=0)


def make(path: Path, sound: Sound, **how: Any) -> dict[str, TrackTruth]:
    clock = steady_clock(
        "g", device_ns=START_NS, session_ns=START_NS, length_ns=4 * NS_PER_S, drift_ppm=0.0
    )
    glasses = Glasses(
        name="g",
        serial="1WM00000000S09",
        clock=clock,
        start_ns=START_NS,
        seconds=4.0,
        sync_role="server",
        shared_session_id="6f0d4a5e-0000-4000-8000-000000000000",
        start_epoch_s=1_735_725_600,
        barcode=0,
        hearing=Hearing(0.7, 0.003),
        seed=0,
    )
    return write_glasses(path, glasses, sound, SMALL, **how)


def contents(path: Path) -> list[tuple[Any, ...]]:
    """All that the vendor's reader delivers, in its order."""
    provider = data_provider.create_vrs_data_provider(str(path))
    assert provider is not None
    out: list[tuple[Any, ...]] = []
    for item in provider.deliver_queued_sensor_data():
        kind = item.sensor_data_type().name
        content: Any = None
        if kind == "IMAGE":
            content = item.image_data_and_record()[0].to_numpy_array().tobytes()
        elif kind == "AUDIO":
            data, record = item.audio_data_and_record()
            content = (tuple(data.data[:50]), tuple(record.capture_timestamps_ns))
        elif kind == "IMU":
            content = tuple(item.imu_data().accel_msec2)
        times = (
            item.get_time_ns(TimeDomain.DEVICE_TIME),
            item.get_time_ns(TimeDomain.RECORD_TIME),
        )
        out.append((str(item.stream_id()), kind, times, content))
    return out


def test_packed_and_chunked_files_hold_the_same(tmp_path: Path, sound: Sound) -> None:
    make(tmp_path / "plain.vrs", sound)
    plain = contents(tmp_path / "plain.vrs")
    make(tmp_path / "packed.vrs", sound, pack=True)
    make(tmp_path / "chunks.vrs", sound, chunk_bytes=2_000_000)
    make(tmp_path / "both.vrs", sound, chunk_bytes=1_000_000, pack=True)
    counts = Counter(kind for _, kind, _, _ in plain)
    assert (counts["IMAGE"], counts["AUDIO"]) == (240, 46)
    rates = {"IMU": 7200, "BAROMETER": 200, "MAGNETOMETER": 40}  # about: each device has its own
    assert {kind: counts[kind] for kind in rates} == pytest.approx(rates, rel=0.03)
    for name in ("packed", "chunks", "both"):
        assert contents(tmp_path / f"{name}.vrs") == plain
    assert len(list(tmp_path.glob("chunks.vrs_*"))) >= 3
    packed, whole = (tmp_path / f"{n}.vrs" for n in ("packed", "plain"))
    assert packed.stat().st_size < whole.stat().st_size


def test_chunks_joined_are_the_plain_file(tmp_path: Path, sound: Sound) -> None:
    make(tmp_path / "a.vrs", sound)
    (tmp_path / "b").mkdir()
    make(tmp_path / "b" / "a.vrs", sound, chunk_bytes=1_500_000)
    parts = sorted((tmp_path / "b").iterdir(), key=lambda p: (len(p.name), p.name))
    joined = b"".join(p.read_bytes() for p in parts)
    assert joined == (tmp_path / "a.vrs").read_bytes()


def test_every_type_of_field_reads_back(tmp_path: Path) -> None:
    """Through pyvrs, which knows nothing of Aria: it believes the file's own description."""
    from pyvrs import SyncVRSReader

    layout = DataLayout(
        "flag:Bool i8:int8_t u8:uint8_t i32:int32_t u32:uint32_t i64:int64_t u64:uint64_t f:float "
        "d:double three:float[3] p:Point3Df q:Point4Dd ps:Point3Df[2] text:string "
        "longs:vector<int64_t> words:vector<string> nothing:string"
    )
    values: dict[str, Any] = {
        "flag": True, "i8": -5, "u8": 250, "i32": -(2**31), "u32": 2**32 - 1, "i64": -(2**62),
        "u64": 2**63 + 5, "f": 0.5, "d": 1e-300, "three": [1, 2, 3], "p": [4, 5, 6],
        "q": [0.1, 0.2, 0.3, 0.4], "ps": [[1, 2, 3], [4, 5, 6]], "text": "Größe",
        "longs": [1, -(2**40)], "words": ["a", "", "ß"], "nothing": "",
    }  # fmt: skip
    stream = VrsStream(
        type_id=1100, instance=1, name="Test", flavor="", serial="00ff",
        versions={Kind.STATE: 1, Kind.CONFIGURATION: 1, Kind.DATA: 3},
        layouts={Kind.DATA: layout}, tags={"colour": "blue"},
    )  # fmt: skip
    record = Record(1.5, 1100, 1, int(Kind.DATA), 3, (layout.encode(**values),))
    path = tmp_path / "types.vrs"
    assert write_vrs(path, [stream], {"place": "here"}, [iter([record])], file_id=9) == 1
    reader = SyncVRSReader(str(path))
    assert dict(reader.file_tags)["place"] == "here"
    read = next(iter(reader)).metadata_blocks[0]
    for name in ("flag", "i8", "u8", "i32", "u32", "i64", "u64", "f", "d", "text", "nothing"):
        assert read[name] == values[name], name
    for name in ("three", "p", "q", "longs", "words"):
        assert (
            list(np.ravel(read[name])) == pytest.approx(values[name])
            if name != "words"
            else (list(read[name]) == values[name])
        ), name


def test_missing_numbers_are_nan_and_unknown_fields_are_refused() -> None:
    layout = DataLayout("a:double b:int32_t")
    read = np.frombuffer(layout.encode(b=3), layout.dtype)[0]
    assert np.isnan(read["a"])
    assert read["b"] == 3
    with pytest.raises((ValueError, KeyError)):
        layout.encode(c=1)


def test_many_records_are_each_ones_bytes() -> None:
    layout = DataLayout("t:int64_t v:float[3]")
    rng = np.random.default_rng(0)
    columns = {"t": np.arange(50), "v": rng.normal(size=(50, 3))}
    singly = [layout.encode(t=columns["t"][k], v=columns["v"][k]) for k in range(50)]
    assert layout.encode_many(50, columns) == singly


def test_records_that_go_back_in_time_are_refused(tmp_path: Path) -> None:
    def record(t: float) -> Record:
        return Record(t, 1100, 1, int(Kind.DATA), 1, (b"1234",))

    backwards: Callable[[], Any] = lambda: iter([record(2.0), record(1.0)])  # noqa: E731
    with pytest.raises(ValueError, match="go back"):
        write_vrs(tmp_path / "x.vrs", [], {}, [backwards()], file_id=1)


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.vrs"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        write_vrs(path, [], {}, [], file_id=1)
    assert path.read_text() == "precious"


def test_the_vendor_sees_truth(tmp_path: Path, sound: Sound) -> None:
    truth = make(tmp_path / "g.vrs", sound)
    provider = data_provider.create_vrs_data_provider(str(tmp_path / "g.vrs"))
    assert set(truth) == {
        "rgb", "slam-left", "slam-right", "et", "imu-right", "imu-left", "mag", "baro", "mic",
    }  # fmt: skip
    for name, track in truth.items():
        stream = StreamId(track.source)
        times = provider.get_timestamps_ns(stream, TimeDomain.DEVICE_TIME)
        if name == "mic":
            first = provider.get_audio_data_by_index(stream, 0)[1].capture_timestamps_ns
            assert (len(times) * 4096, first[0], times[-1]) == (
                track.count, track.first_ns, track.last_ns,
            )  # fmt: skip
        else:
            assert (len(times), times[0], times[-1]) == (
                track.count, track.first_ns, track.last_ns,
            )  # fmt: skip
            assert (np.diff(times) > 0).all()
