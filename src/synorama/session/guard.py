"""Opening an HDF5 file that a stranger may have made.

HDF5 can read any file of the machine (external storage, external links, virtual datasets), load
code (filter plugins), and claim terabytes in a kilobyte. The guard walks hard links only, looks
at every object before any of its data is read, and refuses what a session never needs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synorama.errors import (
    DamagedSessionError,
    InputNotFoundError,
    InputUnreadableError,
    NotASessionError,
    UnsafeSessionError,
)

__all__ = ["check_structure", "open_guarded"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32"}

MAX_DEPTH = 16
MAX_OBJECTS = 200_000
MAX_ATTRIBUTES = 256
MAX_ATTRIBUTE_BYTES = 1 << 20
MAX_CHUNK_BYTES = 1 << 20  # also bounds what one chunk can inflate to: about 1 GiB
MAX_INFLATED = 1 << 28  # a table, or all of them, may be this big however well it compresses
MAX_RATIO = 100


@contextmanager
def open_guarded(path: Path) -> Iterator[Any]:
    """Yield the `h5py.File`, open for reading, once its structure has been found harmless.

    Raises
    ------
    InputNotFoundError, InputUnreadableError
        There is no such file, or it may not be read.
    NotASessionError
        The file is not HDF5.
    DamagedSessionError
        HDF5 cannot make sense of it.
    UnsafeSessionError
        It holds a construction that a session never needs.
    """
    _check_signature(path)
    with _open(path) as file:
        check_structure(file, path)
        yield file


def _check_signature(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(SIGNATURE))
    except FileNotFoundError as error:
        raise InputNotFoundError("there is no such file", path=path) from error
    except OSError as error:
        raise InputUnreadableError(
            f"the file cannot be read: {os.strerror(error.errno or 0)}", path=path
        ) from error
    if start != SIGNATURE:
        raise NotASessionError(
            "this is not an HDF5 file", path=path, hint="give a session.h5 or a sealed release"
        )


def _open(path: Path) -> Any:
    # Without this, HDF5 would look for filter plugins in folders that the environment names.
    os.environ.setdefault("HDF5_PLUGIN_PRELOAD", "::")
    import h5py

    try:
        return h5py.File(path, "r", locking="best-effort")
    except (OSError, RuntimeError) as error:
        raise DamagedSessionError(
            f"HDF5 cannot open it: {error}", path=path, hint="take the file from a copy"
        ) from error


def check_structure(file: Any, path: Path) -> int:
    """Walk all objects of an open file; return how many there are.

    Raises
    ------
    UnsafeSessionError
        Something in it could harm the reader.
    DamagedSessionError
        The walk fails.
    """
    try:
        walk = _Walk(path, file.id.get_filesize())
        walk.group(file["/"].id, "/", 0)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise DamagedSessionError(f"the structure is broken: {error}", path=path) from error
    return len(walk.seen)


@dataclass
class _Walk:
    """One walk through a file: what was seen, and what its tables claim to hold."""

    path: Path
    file_bytes: int
    seen: set[tuple[int, int]] = field(default_factory=set)
    inflated: int = 0
    stored: int = 0

    def group(self, group: Any, where: str, depth: int) -> None:
        import h5py

        if depth > MAX_DEPTH:
            self.refuse(f"groups nested more than {MAX_DEPTH} deep", where)
        if depth == 0:
            self.note(group, where)
        self.check_attributes(group, where)
        for name in group:
            inside = f"{where}{name.decode('utf-8', 'replace')[:80]}"
            if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                self.refuse("a soft or external link", inside)
            child = h5py.h5o.open(group, name)
            self.note(child, inside)
            if isinstance(child, h5py.h5g.GroupID):
                self.group(child, f"{inside}/", depth + 1)
            elif isinstance(child, h5py.h5d.DatasetID):
                self.dataset(child, inside)
            else:
                self.refuse("an object that is neither group nor dataset", inside)

    def note(self, thing: Any, where: str) -> None:
        import h5py

        info = h5py.h5o.get_info(thing)
        address = (info.fileno, info.addr)
        if address in self.seen:
            self.refuse("an object that is reachable twice", where)
        self.seen.add(address)
        if len(self.seen) > MAX_OBJECTS:
            self.refuse(f"more than {MAX_OBJECTS} objects", where)

    def dataset(self, dataset: Any, where: str) -> None:
        import h5py

        settings = dataset.get_create_plist()
        self.check_type(dataset.get_type(), where)
        self.check_attributes(dataset, where)
        self.check_filters(settings, where)
        layout = settings.get_layout()
        if settings.get_external_count():
            self.refuse("data stored in another file", where)
        if layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
            self.refuse("a virtual dataset", where)
        if layout == h5py.h5d.CHUNKED:
            self.chunked(dataset, settings, where)
        else:
            self.plain(dataset, where)

    def plain(self, dataset: Any, where: str) -> None:
        claimed = _claimed_bytes(dataset)
        if claimed > dataset.get_storage_size():
            self.refuse(f"{claimed} bytes claimed and not stored", where)
        offset = dataset.get_offset()
        if offset is not None and offset + claimed > self.file_bytes:
            self.refuse(f"{claimed} bytes claimed beyond the end of the file", where)

    def chunked(self, dataset: Any, settings: Any, where: str) -> None:
        chunk_bytes = dataset.get_type().get_size() * math.prod(settings.get_chunk())
        if chunk_bytes > MAX_CHUNK_BYTES:
            self.refuse(f"chunks of {chunk_bytes} bytes", where)
        stored = dataset.get_storage_size()
        if stored > self.file_bytes:
            self.refuse(f"{stored} bytes stored in a file of {self.file_bytes}", where)
        claimed = _claimed_bytes(dataset)
        self.check_ratio(claimed, stored, where)
        self.check_chunks(dataset, chunk_bytes, where)
        self.inflated += claimed
        self.stored += stored
        self.check_ratio(self.inflated, self.stored, where)

    def check_ratio(self, claimed: int, stored: int, where: str) -> None:
        if claimed > MAX_INFLATED and claimed > MAX_RATIO * max(1, stored):
            self.refuse(f"{claimed} bytes claimed by {stored} bytes stored", where)

    def check_chunks(self, dataset: Any, chunk_bytes: int, where: str) -> None:
        """Refuse stored chunks bigger than any compressor makes of them: they inflate further."""
        most = chunk_bytes + chunk_bytes // 100 + 64
        too_big: list[int] = []
        dataset.chunk_iter(lambda chunk: too_big.append(chunk.size) if chunk.size > most else None)
        if too_big:
            self.refuse(f"a chunk of {too_big[0]} bytes where at most {most} make sense", where)

    def check_filters(self, settings: Any, where: str) -> None:
        used = [settings.get_filter(k)[0] for k in range(settings.get_nfilters())]
        for number in used:
            if number not in FILTERS:
                self.refuse(f"filter number {number}, which a session never uses", where)
        if len(used) != len(set(used)):
            self.refuse("the same filter twice", where)

    def check_attributes(self, target: Any, where: str) -> None:
        import h5py

        count = h5py.h5a.get_num_attrs(target)
        if count > MAX_ATTRIBUTES:
            self.refuse(f"{count} attributes", where)
        for k in range(count):
            attribute = h5py.h5a.open(target, index=k)
            self.check_type(attribute.get_type(), where)
            size = attribute.get_type().get_size() * math.prod(attribute.shape)
            if size > MAX_ATTRIBUTE_BYTES:
                self.refuse(f"an attribute of {size} bytes", where)

    def check_type(self, kind: Any, where: str, depth: int = 0) -> None:
        """Allow numbers, fixed-length text and small compounds of them; no pointers of any kind."""
        import h5py

        if depth > 2:
            self.refuse("a deeply nested data type", where)
        if kind.get_class() == h5py.h5t.COMPOUND:
            for k in range(kind.get_nmembers()):
                self.check_type(kind.get_member_type(k), where, depth + 1)
        elif kind.get_class() == h5py.h5t.ARRAY:
            self.check_type(kind.get_super(), where, depth + 1)
        elif not _is_flat(kind):
            self.refuse("a data type of variable length, or a reference", where)

    def refuse(self, what: str, where: str) -> None:
        raise UnsafeSessionError(
            f"{what} at {where[:200]}: a session never holds that",
            path=self.path,
            hint="do not use this file; ask for one that synorama wrote",
        )


def _is_flat(kind: Any) -> bool:
    import h5py

    if kind.get_class() == h5py.h5t.STRING:
        return not kind.is_variable_str()
    return kind.get_class() in (h5py.h5t.INTEGER, h5py.h5t.FLOAT)


def _claimed_bytes(dataset: Any) -> int:
    return int(dataset.get_type().get_size()) * int(dataset.get_space().get_simple_extent_npoints())
