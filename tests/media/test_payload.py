"""Payloads are found from offset, size, packing and skip alone."""

from __future__ import annotations

import io

import lz4.frame
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from synorama.errors import UndecodableError
from synorama.media.payload import PACKED_LZ4, PACKED_ZSTD, UNPACKED, read_payload
from synorama.records import FRAME_DTYPE

PACKERS = {
    UNPACKED: bytes,
    PACKED_LZ4: lz4.frame.compress,
    PACKED_ZSTD: zstandard.ZstdCompressor().compress,
}


def _row(offset: int, size: int, packing: int, skip: int) -> np.void:
    table = np.zeros(1, FRAME_DTYPE)
    table[0] = (0, 0, offset, size, 1, packing, skip)
    row = table[0]
    assert isinstance(row, np.void)
    return row


@given(
    before=st.binary(max_size=50),
    meta=st.binary(max_size=50),
    payload=st.binary(max_size=400),
    packing=st.sampled_from(sorted(PACKERS)),
)
def test_payload_is_recovered(before: bytes, meta: bytes, payload: bytes, packing: int) -> None:
    stored = PACKERS[packing](meta + payload)
    content = before + stored + b"after"
    row = _row(len(before), len(stored), packing, len(meta))
    assert read_payload(memoryview(content), row) == payload
    assert read_payload(io.BytesIO(content), row) == payload


def test_file_that_ends_too_early_is_refused() -> None:
    with pytest.raises(UndecodableError, match="ends 6 bytes before"):
        read_payload(io.BytesIO(b"abcd"), _row(0, 10, 0, 0))


@pytest.mark.parametrize("packing", [PACKED_LZ4, PACKED_ZSTD])
def test_garbage_does_not_unpack(packing: int) -> None:
    with pytest.raises(UndecodableError, match="unpack"):
        read_payload(io.BytesIO(b"garbage garbage garbage"), _row(0, 23, packing, 0))


def test_frame_that_does_not_say_its_size_unpacks() -> None:
    packer = zstandard.ZstdCompressor(write_content_size=False)
    stored = packer.compress(b"metadata and payload")
    assert read_payload(io.BytesIO(stored), _row(0, len(stored), PACKED_ZSTD, 9)) == b"and payload"


def test_bomb_is_refused() -> None:
    stored = zstandard.ZstdCompressor().compress(bytes(1 << 20))
    claimed = bytearray(stored)
    at = claimed.index((1 << 20).to_bytes(4, "little"))
    claimed[at : at + 4] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(UndecodableError, match="claim to hold"):
        read_payload(io.BytesIO(bytes(claimed)), _row(0, len(stored), PACKED_ZSTD, 0))


def test_skip_beyond_the_payload_is_refused() -> None:
    with pytest.raises(UndecodableError, match="expected"):
        read_payload(io.BytesIO(b"abcd"), _row(0, 4, 0, 5))
