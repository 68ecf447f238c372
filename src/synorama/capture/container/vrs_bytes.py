"""The bytes of a VRS recording's chunks: mapped, gathered in bulk, unpacked as far as needed."""

from __future__ import annotations

import bisect
import itertools
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import (
    CorruptFileError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COPY_AGAIN", "Maps", "unpack_start", "unzstd"]

COPY_AGAIN = "copy the file from the device again; if it is like this there, it is lost"
_AROUND = 1 << 17  # bytes that Linux may map around a place that is read
_WINDOW_BITS = 26  # gathers give back their pages every 64 MiB of file


class Maps:
    """All chunks as one read-only range of bytes, mapped while the context lasts."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._maps: list[mmap.mmap] = []
        self._resident = 0

    def __enter__(self) -> Maps:
        self._maps = [_map(path) for path in self.paths]
        self.sizes = tuple(len(m) for m in self._maps)
        self._starts = [0, *itertools.accumulate(self.sizes[:-1])]
        self.starts = np.array(self._starts, np.int64)
        self.total = sum(self.sizes)
        return self

    def __exit__(self, *_: object) -> None:
        self._maps = []  # unmapped when the last view of them goes

    def locate(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the chunk, and the place in it, of places in the whole."""
        file = np.searchsorted(self.starts, starts, side="right") - 1
        return file, starts - self.starts[file]

    def end_of_chunk(self, end: int) -> int:
        """Return where the chunk ends that holds the byte before a place in the whole."""
        file = self._chunk_of(end - 1)
        return int(self.starts[file]) + self.sizes[file]

    def read(self, start: int, size: int) -> bytes:
        """Return bytes of the whole, which may straddle chunks; fewer at its end."""
        parts = []
        while size > 0 and start < self.total:
            file = self._chunk_of(start)
            at = start - self._starts[file]
            part = self._maps[file][at : at + size]
            self.touched(file, len(part))
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _chunk_of(self, start: int) -> int:
        return bisect.bisect_right(self._starts, start) - 1

    def read_in(self, file: int, start: int, size: int) -> memoryview:
        """Return a view of the bytes of one chunk."""
        return memoryview(self._maps[file])[start : start + size]

    def touched(self, file: int, size: int) -> None:
        """Note that bytes of a chunk were read and are not needed again.

        The system maps pages around those that are asked for, so that giving back only these
        would leave much of a large file resident: now and then all is given back.
        """
        self._resident += size + _AROUND
        if self._resident >= 1 << _WINDOW_BITS:
            _give_back(self._maps[file], 0, len(self._maps[file]))
            self._resident = 0

    def gather(self, starts: NDArray[np.int64], kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the structures of a packed type that begin at places in the whole."""
        file, at = self.locate(starts)
        if len(self._maps) == 1:
            return self.gather_in(0, at, kind)
        out = np.empty(len(starts), kind)
        for k in range(len(self._maps)):
            mine = slice(*np.searchsorted(file, [k, k + 1]))  # starts increase, so does file
            out[mine] = self.gather_in(k, at[mine], kind)
        return out

    def gather_in(self, file: int, at: NDArray[np.int64], kind: np.dtype[Any]) -> NDArray[Any]:
        """Return the structures of a packed type that begin at places in one chunk.

        One strided view has such a structure begin at every byte; picking from it copies whole
        structures. Pages are given back window by window.
        """
        out = np.empty(len(at), kind)
        if not len(at) or not kind.itemsize:
            return out
        mapped = self._maps[file]
        if int(at.max()) + kind.itemsize > len(mapped):
            raise CorruptFileError(
                "a record is shorter than its fields", path=self.paths[file], hint=COPY_AGAIN
            )
        shape = (len(mapped) - kind.itemsize + 1,)
        everywhere = np.ndarray(shape, np.dtype(("V", kind.itemsize)), mapped, strides=(1,))
        raw = out.view(everywhere.dtype)
        borders = np.flatnonzero(np.diff(at >> _WINDOW_BITS)) + 1
        for lo, hi in zip([0, *borders], [*borders, len(at)], strict=True):
            raw[lo:hi] = everywhere[at[lo:hi]]
            _give_back(mapped, int(at[lo:hi].min()), int(at[lo:hi].max()) + kind.itemsize)
        return out


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise EmptyFileError(
            "the file is empty (0 bytes)",
            path=path,
            hint="the device did not write it, or a copy failed: copy it again from the device",
        ) from error
    except PermissionError as error:
        raise InputUnreadableError(
            "no permission to read this file", path=path, hint="give yourself read permission"
        ) from error
    except FileNotFoundError as error:
        raise InputNotFoundError(
            "the file was here and is gone", path=path, hint="put it back where it was"
        ) from error


def _give_back(mapped: mmap.mmap, start: int, stop: int) -> None:
    """Tell the system that these pages are not needed now: they stay cached, not resident."""
    if hasattr(mmap, "MADV_DONTNEED"):
        page = start - start % mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, page, stop - page)


def unpack_start(stored: memoryview, packing: int, size: int) -> bytes:
    """Return the first bytes of a packed body; fewer if it does not unpack."""
    try:
        return unzstd(stored, size) if packing == 2 else _unlz4(stored, size)
    except (ValueError, RuntimeError, EOFError):
        return b""


def unzstd(stored: bytes | memoryview, size: int) -> bytes:
    """Return the first bytes of one or more zstd frames.

    Raises
    ------
    ValueError
        The bytes are no zstd frame.
    """
    import zstandard

    try:
        reader = zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True)
        return reader.read(size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _unlz4(stored: bytes | memoryview, size: int) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.LZ4FrameDecompressor().decompress(bytes(stored), size))
