"""Sealing: one self-contained, read-only file with the media inside, every byte accounted for."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from synorama.errors import (
    DamagedSessionError,
    DiskFullError,
    InputUnreadableError,
    MediaMovedError,
    UsageError,
)
from synorama.session.guard import open_guarded
from synorama.session.parts import Progress, check_header, check_replaceable
from synorama.session.records_io import relative_path
from synorama.session.schema import BLOCK_BYTES
from synorama.session.sink import writable_hdf5
from synorama.session.storage import (
    attribute,
    damage_named,
    in_order,
    set_attributes,
    whole_file,
)

__all__ = ["SealReport", "digest_blocks", "seal"]

BUFFER_BYTES = 1 << 20  # what is copied at a time: hashed out of the CPU's cache
ALIGNED_BYTES = 4096  # what reading past the system's cache goes by
DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class SealReport:
    """What sealing made.

    Parameters
    ----------
    path
        The sealed file.
    bytes, media_bytes
        Its size, and how much of it is media.
    digests
        Hex blake3 of every embedded file, by ``recording/number``.
    warnings
        What whoever gives the file away should know.
    """

    path: Path
    bytes: int
    media_bytes: int
    digests: dict[str, str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Media:
    """One media file to embed: where it is, what it was at ingest, where it goes."""

    group: str
    path: Path
    shown: str
    bytes: int
    mtime_ns: int
    digest: str | None
    offset: int = 0


def seal(
    session: Path, out: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> SealReport:
    """Write one self-contained, read-only file with the session's tables and its media.

    The media is read once: copied, digested as a whole and in blocks; what was written is read
    back from the disk and compared with the blocks' digests.

    Parameters
    ----------
    session
        A session file with linked media; it stays as it is.
    out
        The sealed file.
    overwrite
        Replace ``out`` if it is there and is a session file; nothing else is ever replaced.
    progress
        Called with bytes done and their total, which counts each byte twice: copy and check.

    Raises
    ------
    UsageError
        The session is sealed already, or ``out`` is the session itself.
    OutputExistsError, OutputNotWritableError, DiskFullError
        The file cannot be written; nothing is left of it.
    MediaMovedError, InputUnreadableError
        A media file is gone or is no longer the one that was ingested, or may not be read.
    DamagedSessionError
        The session is damaged, or the disk does not give back what was written.
    """
    if out.absolute() == session.absolute():
        raise UsageError("a session cannot be sealed onto itself", path=out)
    if overwrite:
        check_replaceable(out, release=True)
    with whole_file(out, overwrite=overwrite) as temporary:
        media, warnings = _write_tables(session, temporary)
        for one in media:
            _check_unchanged(one)
        total = sum(one.bytes for one in media)
        _check_space(out, total)
        written = _embed(temporary, media, _counter(progress, 2 * total))
        _finish(temporary, media, written)
        size = temporary.stat().st_size
        temporary.chmod(stat.S_IMODE(temporary.stat().st_mode) & ~0o222)
    digests = {one.group: digest for one, (digest, _) in zip(media, written, strict=True)}
    names = {group.replace("/files/", "/"): digest for group, digest in digests.items()}
    return SealReport(out, size, total, names, tuple(warnings))


def _counter(progress: Progress | None, total: int) -> Callable[[int], None]:
    done = 0

    def count(step: int) -> None:
        nonlocal done
        done += step
        if progress:
            progress(done, total)

    return count


# --- tables -----------------------------------------------------------------------------------


def _write_tables(session: Path, temporary: Path) -> tuple[list[_Media], list[str]]:
    """Copy the session's tables and set the media's places aside."""
    with open_guarded(session) as source, damage_named(session):
        check_header(source, session)
        if attribute(source, "sealed"):
            raise UsageError("the session is sealed already", path=session)
        with writable_hdf5(temporary) as target:
            for name in source:
                source.copy(name, target)
            for name, value in source.attrs.items():
                target.attrs.create(name, value, dtype=source.attrs.get_id(name).dtype)
            set_attributes(target, {"complete": False})
            return _reserve_all(target, session), _location_warnings(source)


def _location_warnings(source: Any) -> list[str]:
    return [
        f"{name}: the tables are without location, but its own files inside still hold it"
        for name, recording in in_order(source["recordings"])
        if attribute(recording, "withheld")
    ]


def _reserve_all(target: Any, session: Path) -> list[_Media]:
    media = [
        _reserve(group, f"{name}/files/{number}", session)
        for name, recording in in_order(target["recordings"])
        for number, group in recording.get("files", {}).items()
    ]
    target.flush()
    return media


def _reserve(group: Any, name: str, session: Path) -> _Media:
    """Set a place aside for a file's bytes and digests; they are written past HDF5."""
    where = attribute(group, "path")
    size, digest = attribute(group, "bytes"), attribute(group, "digest")
    path = Path(os.path.normpath(session.parent.absolute() / where))
    del group.attrs["path"]
    set_attributes(group, {"media": "embed", "digest": "0" * 2 * DIGEST_BYTES})
    offset = _reserve_dataset(group, "data", (size,))
    _reserve_dataset(group, "blocks", (-(-size // BLOCK_BYTES), DIGEST_BYTES))
    shown = relative_path(path, session.parent)
    return _Media(name, path, shown, size, attribute(group, "mtime_ns"), digest, offset)


def _reserve_dataset(group: Any, name: str, shape: tuple[int, ...]) -> int:
    import h5py

    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.CONTIGUOUS)
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple(shape)
    dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.STD_U8LE, space, dcpl=settings)
    return int(dataset.get_offset() or 0)


def _finish(temporary: Path, media: list[_Media], written: list[tuple[str, bytes]]) -> None:
    """Write the digests and the marks that say that all is there."""
    with writable_hdf5(temporary, "r+") as file:
        for one, (digest, blocks) in zip(media, written, strict=True):
            group = file["recordings"][one.group]
            set_attributes(group, {"digest": digest})
            if blocks:
                group["blocks"][...] = np.frombuffer(blocks, np.uint8).reshape(-1, DIGEST_BYTES)
        set_attributes(file, {"sealed": True, "complete": True})


# --- media ------------------------------------------------------------------------------------


def _check_space(out: Path, media_bytes: int) -> None:
    free = shutil.disk_usage(out.absolute().parent).free
    if free < media_bytes:
        raise DiskFullError(
            f"the media has {media_bytes} bytes and the disk {free} free; nothing was written",
            path=out,
            hint="make room, or choose another disk, and run the same command again",
        )


def _check_unchanged(one: _Media) -> None:
    try:
        now = one.path.stat()
    except OSError as error:
        raise MediaMovedError(
            f"the media file {one.shown} is gone",
            path=one.path,
            hint="put it back beside the session, at the same relative path",
        ) from error
    if now.st_size != one.bytes:
        raise _changed(one, f"it has {now.st_size} bytes, at ingest it had {one.bytes}")
    if now.st_mtime_ns != one.mtime_ns and one.digest is None:
        raise _changed(one, "it was modified since, and no digest tells whether its bytes are")


def _changed(one: _Media, why: str) -> MediaMovedError:
    return MediaMovedError(
        f"the media file {one.shown} is not the one that was ingested: {why}",
        path=one.path,
        hint="restore the original, or run 'synorama process' again to take the file as it is",
    )


def _embed(
    temporary: Path, media: list[_Media], count: Callable[[int], None]
) -> list[tuple[str, bytes]]:
    """Copy all media into its places; return each file's digest and its blocks' digests."""
    written = []
    for one in media:
        with _Place(temporary, one.offset) as place:
            digest, blocks = _copy(one, place, count)
        _read_back(one, blocks, temporary, count)
        written.append((digest, blocks))
    return written


def _copy(one: _Media, place: _Place, count: Callable[[int], None]) -> tuple[str, bytes]:
    import blake3

    whole = blake3.blake3()

    def put(piece: memoryview) -> None:
        whole.update(piece)
        place.write(piece)
        count(len(piece))

    with _open_media(one) as source:
        blocks = digest_blocks(source, one.bytes, put)
    if blocks is None:
        raise _changed(one, "it ended early")
    _check_unchanged(one)
    digest = str(whole.hexdigest())
    if one.digest is not None and digest != one.digest:
        raise _changed(one, "its digest differs")
    return digest, blocks


def _open_media(one: _Media) -> IO[bytes]:
    try:
        return one.path.open("rb", buffering=0)
    except PermissionError as error:
        raise InputUnreadableError(
            f"no permission to read the media file {one.shown}",
            path=one.path,
            hint="give yourself read permission",
        ) from error


class _Place:
    """Where a file's bytes go, written past the system's cache where it can.

    Nobody reads them from there, and to fill the cache with them would cost as much CPU as the
    digests do and throw out what others need. What does not fit the disk's grain, such as a
    file's last bytes, goes through the cache.
    """

    def __init__(self, path: Path, offset: int) -> None:
        self._at = offset
        self._cached = os.open(path, os.O_WRONLY)
        self._direct: int | None = None
        if hasattr(os, "O_DIRECT"):
            with suppress(OSError):  # a file system that only writes through its cache
                self._direct = os.open(path, os.O_WRONLY | os.O_DIRECT)

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, *_: object) -> None:
        """Bring all to the disk."""
        try:
            os.fsync(self._cached)
        finally:
            os.close(self._cached)
            if self._direct is not None:
                os.close(self._direct)

    def write(self, piece: memoryview) -> None:
        """Write all of a piece after what was written before."""
        while piece:
            done = self._write(piece)
            self._at, piece = self._at + done, piece[done:]

    def _write(self, piece: memoryview) -> int:
        if self._direct is not None and not (
            self._at % ALIGNED_BYTES or len(piece) % ALIGNED_BYTES
        ):
            try:
                return os.pwrite(self._direct, piece, self._at)
            except OSError as error:
                if error.errno != errno.EINVAL:  # else: a disk of a coarser grain
                    raise
        return os.pwrite(self._cached, piece, self._at)


def _read_back(one: _Media, blocks: bytes, temporary: Path, count: Callable[[int], None]) -> None:
    """Read what was written, from the disk and not from memory, and compare the digests."""
    with _open_past_cache(temporary, one.offset, one.bytes) as written:
        again = digest_blocks(written, one.bytes, lambda piece: count(len(piece)))
    if again != blocks:
        raise DamagedSessionError(
            f"the disk does not give back what was written of {one.shown}",
            path=temporary,
            hint="use another disk: this one loses data",
        )


def _open_past_cache(path: Path, offset: int, size: int) -> IO[bytes]:
    """Open a file at ``offset`` so that reading it asks the disk, where the system can do that."""
    flag = getattr(os, "O_DIRECT", 0) if offset % ALIGNED_BYTES == 0 else 0
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | flag), "rb", buffering=0)
        file.seek(offset)
        if size:
            file.readinto(mmap.mmap(-1, ALIGNED_BYTES))
    except OSError:  # a file system that only reads through its cache: empty that
        file = path.open("rb", buffering=0)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), offset, size, os.POSIX_FADV_DONTNEED)
    file.seek(offset)
    return file


def digest_blocks(
    source: IO[bytes], size: int, on_piece: Callable[[memoryview], None]
) -> bytes | None:
    """Read ``size`` bytes once and return the blake3 digests of their blocks, one after another.

    Parameters
    ----------
    source
        A file without buffer, at the first byte.
    on_piece
        Called with every piece; its memory is used again afterwards.

    Returns
    -------
    bytes or None
        32 bytes a block of 16 MiB; None if the file ends early.
    """
    import blake3

    digests = bytearray()
    buffer = memoryview(mmap.mmap(-1, BUFFER_BYTES))  # aligned, as reading past the cache asks for
    for first in range(0, size, BLOCK_BYTES):
        hasher = blake3.blake3()
        for piece in _pieces(source, min(BLOCK_BYTES, size - first), buffer):
            if not piece:
                return None
            hasher.update(piece)
            on_piece(piece)
        digests += hasher.digest()
    return bytes(digests)


def _pieces(source: IO[bytes], size: int, buffer: memoryview) -> Iterator[memoryview]:
    """Yield the next ``size`` bytes in pieces; an empty one where the file ends early."""
    left = size
    while left:
        wanted = min(-(-left // ALIGNED_BYTES) * ALIGNED_BYTES, len(buffer))
        got = min(source.readinto(buffer[:wanted]), left)  # type: ignore[attr-defined]
        yield buffer[:got]
        left -= got
