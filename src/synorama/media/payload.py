"""The bytes of one picture or one block of sound, from where they lie in a file.

Payload = unpack(file[offset:offset + size])[skip:], with the fields of one row of
`synorama.records.FRAME_DTYPE` or `synorama.records.BLOCK_DTYPE`. Nothing but these fields and the
file's bytes is needed: the file may be the device's own or a session that holds its bytes.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from synorama.errors import UndecodableError

__all__ = ["PACKED_LZ4", "PACKED_ZSTD", "UNPACKED", "read_payload"]

UNPACKED, PACKED_LZ4, PACKED_ZSTD = 0, 1, 2
LARGEST_PAYLOAD = 1 << 29  # a full uncompressed 4K picture has 2**25 bytes


def read_payload(file: BinaryIO | memoryview, row: np.void) -> bytes:
    """Return the payload that a row of a frame or block table points to.

    Parameters
    ----------
    file
        The file that ``row["file"]`` means: open for binary reading, or its bytes.
    row
        One row of a table of `FRAME_DTYPE` or `BLOCK_DTYPE`.

    Raises
    ------
    UndecodableError
        The file ends within the stored bytes, they do not unpack, or nothing is left of them.
    """
    stored = _stored(file, int(row["offset"]), int(row["size"]))
    skip = int(row["skip"])
    payload = _unpack(stored, int(row["packing"]))
    if skip > len(payload):
        raise UndecodableError(f"{len(payload)} bytes where more than {skip} were expected")
    return payload[skip:]


def _stored(file: BinaryIO | memoryview, offset: int, size: int) -> bytes:
    if isinstance(file, memoryview):
        stored = bytes(file[offset : offset + size])
    else:
        file.seek(offset)
        stored = file.read(size)
    if len(stored) != size:
        raise UndecodableError(
            f"the file ends {size - len(stored)} bytes before the end of the "
            f"{size} bytes at offset {offset}",
            path=_name(file),
            hint="the file was cut after it was read: compare it with the original",
        )
    return stored


def _unpack(stored: bytes, packing: int) -> bytes:
    if packing == UNPACKED:
        return stored
    try:
        payload = _unzstd(stored) if packing == PACKED_ZSTD else _unlz4(stored)
    except (RuntimeError, EOFError, ValueError) as error:
        raise UndecodableError(f"the stored bytes do not unpack: {error}") from error
    if len(payload) > LARGEST_PAYLOAD:
        raise UndecodableError(f"the stored bytes unpack to more than {LARGEST_PAYLOAD} bytes")
    return payload


def _unzstd(stored: bytes) -> bytes:
    import zstandard

    try:
        size = zstandard.frame_content_size(stored)
        if size > LARGEST_PAYLOAD:
            raise ValueError(f"they claim to hold {size} bytes")
        unpacker = zstandard.ZstdDecompressor()
        if size >= 0:
            return unpacker.decompress(stored)
        with unpacker.stream_reader(stored) as reader:  # the frame does not say its size
            return reader.read(LARGEST_PAYLOAD + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _unlz4(stored: bytes) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.LZ4FrameDecompressor().decompress(stored, LARGEST_PAYLOAD + 1))


def _name(file: BinaryIO | memoryview) -> str | None:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else None
