"""The file under an HDF5 file that is being written: a full disk must not break the library.

HDF5 cannot close a file whose last writes fail: it keeps it half open and may crash the process
later. So it is given a file that takes every write; what the disk refused is kept in memory until
HDF5 has closed, and is then reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

__all__ = ["writable_hdf5"]

PAGE_BYTES = 4096


class _Sink:
    """A file object for h5py: seek, tell, write, read, readinto, truncate, flush."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = file.seek(0, os.SEEK_END)
        self._at = 0
        self._refused: list[tuple[int, bytes]] = []
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._end}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        size = len(data)
        if self.error is None:
            self._try_write(memoryview(data))
        if self.error is not None:
            self._refused.append((self._at, bytes(data)))
        self._at += size
        self._end = max(self._end, self._at)
        return size

    def _try_write(self, data: memoryview) -> None:
        try:
            self._file.seek(self._at)
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self.error = error

    def read(self, size: int) -> bytes:
        """Read; h5py knows a file object by this method."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        self._file.seek(self._at)
        data = self._file.read(len(view))
        view[: len(data)] = data
        view[len(data) :] = bytes(len(view) - len(data))
        for start, refused in self._refused:
            _overlay(view, self._at, start, refused)
        self._at += len(view)
        return len(view)

    def truncate(self, size: int) -> int:
        self._end = size
        try:
            return self._file.truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size

    def flush(self) -> None:
        """Nothing is held back but what the disk refused."""


def _overlay(view: memoryview, at: int, start: int, data: bytes) -> None:
    """Put the part of ``data``, which lies at ``start``, that falls into ``view`` at ``at``."""
    low, high = max(at, start), min(at + len(view), start + len(data))
    if high > low:
        view[low - at : high - at] = data[low - start : high - start]


@contextmanager
def writable_hdf5(path: Path, mode: Literal["w", "r+"] = "w") -> Iterator[Any]:
    """Yield an `h5py.File` in the schema's format (HDF5 1.10, paged) over a file that exists.

    Raises
    ------
    OSError
        What the disk refused, once HDF5 has closed the file.
    """
    import h5py

    paged = {"fs_strategy": "page", "fs_page_size": PAGE_BYTES} if mode == "w" else {}
    with path.open("r+b", buffering=0) as file:
        sink = _Sink(file)
        with h5py.File(sink, mode, libver=("v110", "v110"), **paged) as opened:
            yield opened
        if sink.error is not None:
            raise sink.error
