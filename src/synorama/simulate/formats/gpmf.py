"""Encode GPMF, GoPro's metadata format: what the camera measured, one payload a second.

Source of the format: GoPro's gpmf-parser, ``docs/README.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["device", "integer", "item", "letter", "numbers", "stream", "text"]

HEADER = struct.Struct(">4scBH")
MOST_SAMPLES = 0xFFFF
TYPES = {"s": ">i2", "S": ">u2", "l": ">i4", "L": ">u4", "J": ">u8", "f": ">f4", "B": ">u1"}


def item(key: str, kind: str, size: int, data: bytes) -> bytes:
    """Return a key, its samples of ``size`` bytes each, and padding to four bytes."""
    header = HEADER.pack(key.encode(), kind.encode("latin1"), size, len(data) // size)
    return header + data + bytes(-len(data) % 4)


def text(key: str, value: str) -> bytes:
    """Return an item that is a text."""
    return item(key, "c", 1, value.encode("latin1"))


def letter(key: str, value: str) -> bytes:
    """Return an item that is four letters."""
    return item(key, "F", 4, value.encode())


def integer(key: str, value: int, kind: str = "L") -> bytes:
    """Return an item that is one number."""
    return numbers(key, kind, [value])


def numbers(key: str, kind: str, values: Sequence[Any] | NDArray[Any]) -> bytes:
    """Return an item of numbers: ``(N,)``, or ``(N, k)`` for samples of k columns."""
    array = np.asarray(values, TYPES[kind])
    width = array.shape[1] if array.ndim == 2 else 1
    return item(key, kind, array.itemsize * width, array.tobytes())


def stream(*items: bytes) -> bytes:
    """Return a stream; its last item is the data, the others describe it."""
    return _nest("STRM", items)


def device(number: int, name: str, *items: bytes) -> bytes:
    """Return a device with its own items and its streams."""
    return _nest("DEVC", (integer("DVID", number), text("DVNM", name), *items))


def _nest(key: str, items: Sequence[bytes]) -> bytes:
    data = b"".join(items)
    size = 4
    while len(data) // size > MOST_SAMPLES:
        size *= 2
        data += bytes(-len(data) % size)
    return HEADER.pack(key.encode(), b"\0", size, len(data) // size) + data
