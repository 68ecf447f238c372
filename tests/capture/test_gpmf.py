"""GPMF: real payloads of many cameras, made ones of every type, and garbage."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.capture.container import gpmf
from tests.capture.gopro_files import klv, nest, stream

RAW = "3_gopro/gopro-telemetry"


def one(data: bytes, key: str) -> gpmf.Stream:
    (found,) = gpmf.find_streams(data, key)
    return found


def test_every_number_type_is_decoded_big_endian() -> None:
    cases = [
        ("b", struct.pack(">2b", -128, 5), [-128, 5]),
        ("B", struct.pack(">2B", 255, 5), [255, 5]),
        ("s", struct.pack(">2h", -300, 7), [-300, 7]),
        ("S", struct.pack(">2H", 60000, 7), [60000, 7]),
        ("l", struct.pack(">2i", -70000, 7), [-70000, 7]),
        ("L", struct.pack(">2I", 4_000_000_000, 7), [4_000_000_000, 7]),
        ("j", struct.pack(">2q", -(2**40), 7), [-(2**40), 7]),
        ("J", struct.pack(">2Q", 2**40, 7), [2**40, 7]),
        ("f", struct.pack(">2f", 1.5, -2), [1.5, -2]),
        ("d", struct.pack(">2d", 0.1, -2), [0.1, -2]),
        ("q", struct.pack(">2i", 3 << 15, -(1 << 16)), [1.5, -1]),
        ("Q", struct.pack(">2q", 3 << 31, -(1 << 32)), [1.5, -1]),
    ]
    for kind, raw, expected in cases:
        data = stream(klv("TEST", kind, len(raw) // 2, raw))
        assert one(data, "TEST").values().ravel().tolist() == expected, kind


def test_scale_units_and_description() -> None:
    data = stream(
        klv("STMP", "J", 8, struct.pack(">Q", 123456789)),
        klv("TSMP", "L", 4, struct.pack(">I", 1002)),
        klv("STNM", "c", 1, b"Accelerometer\0"),
        klv("SIUN", "c", 4, "m/s²".encode("latin1")),
        klv("SCAL", "s", 2, struct.pack(">h", 100)),
        klv("ACCL", "s", 6, struct.pack(">6h", 100, -200, 981, 50, 0, 3)),
    )
    accl = one(data, "ACCL")
    assert (accl.count, accl.total, accl.stamp_us) == (2, 1002, 123456789)
    assert (accl.name, accl.units, accl.device) == ("Accelerometer", ("m/s²",), "Test")
    np.testing.assert_array_equal(accl.values(), [[1, -2, 9.81], [0.5, 0, 0.03]])


def test_complex_type_with_array_text_and_one_scale_a_column() -> None:
    row = b"SNOW" + struct.pack(">2fSH".replace("S", "H"), 0.5, 0.25, 30, 4)
    data = stream(
        klv("TYPE", "c", 1, b"Ff[2]SS\0"),
        klv("SCAL", "l", 4, struct.pack(">5i", 1, 1, 0, 10, 1)),
        klv("DEMO", "?", 16, row * 3),
    )
    values = one(data, "DEMO").values()
    assert values.shape == (3, 5)
    assert np.isnan(values[:, 0]).all()
    np.testing.assert_array_equal(values[:, 1:], [[0.5, 0.25, 3, 4]] * 3)


def test_a_layout_that_does_not_fill_the_sample_gives_no_numbers() -> None:
    for kind, size, text in (("?", 8, b"ff[9]"), ("?", 8, b""), ("s", 3, b"s"), ("z", 4, b"z")):
        data = stream(klv("TYPE", "c", 1, text), klv("DEMO", kind, size, bytes(24)))
        assert one(data, "DEMO").values().shape == (24 // size, 0)


def test_a_list_a_sample_counts_the_lists_also_when_nested() -> None:
    face = klv("FACE", "?", 4, bytes(8))
    flat = stream(klv("TYPE", "c", 1, b"L"), face, klv("FACE", "?", 4, b""), face)
    deep = stream(
        klv("TYPE", "c", 1, b"L"),
        *(nest("FACE", klv("TICK", "L", 4, bytes(4)), face) for _ in range(3)),
    )
    assert (one(flat, "FACE").count, one(flat, "FACE").lists) == (3, True)
    assert len(one(flat, "FACE").values()) == 4
    assert one(deep, "FACE").count == 3
    assert len(one(deep, "FACE").values()) == 6


def test_streams_without_data_are_left_out() -> None:
    data = stream(klv("TICK", "L", 4, bytes(4)), klv("STNM", "c", 1, b"3A STATS\0"))
    assert [d.streams for d in gpmf.parse(data)] == [()]


def test_cut_payload_gives_the_whole_streams_before_the_cut() -> None:
    accl = nest("STRM", klv("ACCL", "s", 6, bytes(60)))
    gyro = nest("STRM", klv("GYRO", "s", 6, bytes(60)))
    data = nest("DEVC", klv("DVNM", "c", 1, b"Test"), accl, gyro)
    keys = [s.key for d in gpmf.parse(data[:-10]) for s in d.streams]
    assert keys == ["ACCL"]


def test_utc_text() -> None:
    assert gpmf.parse_utc("190506181507.500") == 1_557_166_507_500_000_000
    for garbage in (
        "",
        "000000000000.000",
        "190231000000.000",
        "19050618150 .500",
        "abc",
        "1" * 16,
    ):
        assert gpmf.parse_utc(garbage) is None


def test_axes() -> None:
    assert gpmf.axis_signs("YxZ") == ((1, -1.0), (0, 1.0), (2, 1.0))
    assert gpmf.axis_signs("ZXY") == ((1, 1.0), (2, 1.0), (0, 1.0))
    assert gpmf.axis_signs("XXY") is None
    assert gpmf.axis_signs("") is None


@given(st.binary(max_size=400))
def test_no_garbage_raises(data: bytes) -> None:
    exercise(data)
    exercise(b"DEVC\0\x01\x01\x00" + data)
    exercise(b"DEVC\0\xff\xff\xffSTRM\0\x01\x00\x80" + data)


@given(st.data())
@settings(max_examples=150)
def test_no_damage_to_a_real_layout_raises(draw: st.DataObject) -> None:
    row = struct.pack(">2f", 1, 2)
    data = bytearray(
        stream(
            klv("TYPE", "c", 1, b"ff[1]"), klv("SCAL", "l", 4, bytes(8)), klv("DEMO", "?", 8, row)
        )
        + stream(klv("GPSU", "U", 16, b"190506181507.500"), klv("GPS5", "l", 20, bytes(40)))
    )
    for _ in range(draw.draw(st.integers(1, 6))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    exercise(bytes(data[: draw.draw(st.integers(0, len(data)))]))


def exercise(data: bytes) -> None:
    gpmf.settings(data)
    for device in gpmf.parse(data):
        for s in device.streams:
            assert s.values().ndim == 2
            assert all(0 <= i.start <= i.stop <= len(data) for i in s.items)
            assert (s.name, s.units, s.total, s.texts()) is not None


def test_deep_nesting_and_long_padding_end() -> None:
    data = klv("DEMO", "L", 4, bytes(4))
    for _ in range(300):
        data = nest("DEMO", data)
    exercise(nest("DEVC", nest("STRM", data)))
    exercise(b"DEVC\0\x01\xff\xff" + bytes(1 << 16))
    exercise(b"STRM\0" * 20_000)


# --- real payloads ---------------------------------------------------------------------------


def test_every_real_file_is_read(shared_data: Path) -> None:
    for path in sorted((shared_data / RAW).glob("*.raw")):
        data = path.read_bytes()
        assert data.count(b"STRM\0") >= sum(len(d.streams) for d in gpmf.parse(data)) > 0, path.name
        for device in gpmf.parse(data):
            for s in device.streams:
                assert len(s.values()) == s.count or s.lists or s.texts(), (path.name, s.key)


def test_buffers_that_start_in_the_middle_are_read_from_the_next_stream_on(
    shared_data: Path,
) -> None:
    expected = {
        "buffer0": {"MAGN": 25, "GPS5": 19},
        "buffer1": {"GYRO": 399, "GPS5": 18},
        "buffer4": {"ATTR": 4, "SIMU": 4},
        "buffer7": {"UNIF": 10, "SROT": 30},
    }
    for path in sorted((shared_data / RAW / "buffers").iterdir()):
        found = {s.key: s.count for d in gpmf.parse(path.read_bytes()) for s in d.streams}
        assert found
        assert expected.get(path.name, {}).items() <= found.items(), path.name


def test_hero11_values_against_the_bytes(shared_data: Path) -> None:
    """The expectations are read from a hex dump of the file."""
    data = (shared_data / RAW / "hero11.raw").read_bytes()
    accl = next(gpmf.find_streams(data, "ACCL"))
    assert (accl.count, accl.total, accl.stamp_us) == (208, 0x30A05, 0x3B8309BA)
    np.testing.assert_array_equal(accl.values()[0], np.array([0x0F1E, 0x0002, 0x0278]) / 0x01A1)
    assert accl.properties["ORIN"] == "ZXY"
    gps9 = next(gpmf.find_streams(data, "GPS9"))
    assert gps9.values()[0, :2] == pytest.approx([0x1949B799 / 1e7, (0xFAD81E2D - 2**32) / 1e7])
    assert gps9.values()[0, 5:].tolist() == [0x206A, 0x02E53983 / 1000, 0xB3 / 100, 3]
    gps5 = next(gpmf.find_streams(data, "GPS5"))
    assert gps5.properties["GPSU"] == "220920132938.299"
    assert gps5.units == ("deg", "deg", "m", "m/s", "m/s")
    cori = next(gpmf.find_streams(data, "CORI"))
    np.testing.assert_allclose(np.linalg.norm(cori.values(), axis=1), 1, atol=1e-3)


def test_axes_agree_with_the_cameras_own_matrix(shared_data: Path) -> None:
    """``MTRX`` carries the stored axes (``ORIN``) to the output axes (``ORIO``)."""
    data = (shared_data / RAW / "hero7.raw").read_bytes()
    accl = next(gpmf.find_streams(data, "ACCL"))
    matrix = np.array(accl.properties["MTRX"]).reshape(3, 3)
    stored, output = (gpmf.axis_signs(str(accl.properties[k])) for k in ("ORIN", "ORIO"))
    assert stored is not None
    assert output is not None
    raw = accl.values()
    rotated = raw @ matrix.T
    for (a, sign_a), (b, sign_b) in zip(stored, output, strict=True):
        np.testing.assert_array_equal(raw[:, a] * sign_a, rotated[:, b] * sign_b)


def test_totals_go_on_from_payload_to_payload(shared_data: Path) -> None:
    """``consecutive1`` and ``2`` are two recordings: totals go on within, and start anew."""
    for name, payloads in (("consecutive1.raw", 2), ("consecutive2.raw", 3)):
        data = (shared_data / RAW / name).read_bytes()
        for key in ("ACCL", "GYRO", "SHUT", "SCEN", "GPS5"):
            found = list(gpmf.find_streams(data, key))
            assert len(found) == payloads
            assert [s.total for s in found] == np.cumsum([s.count for s in found]).tolist()


def test_settings_of_the_movie_header(shared_data: Path) -> None:
    found = gpmf.settings((shared_data / RAW / "mp4header.raw").read_bytes())
    assert found["CASN"] == "C3281325934846"
    assert found["MINF"] == "HERO7 Black"
    assert found["FMWR"] == "HD7.01.01.90.00"
