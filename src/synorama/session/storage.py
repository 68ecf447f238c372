"""How bytes reach an HDF5 file and come back: whole files, tables, attributes, texts."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synorama.errors import (
    DamagedSessionError,
    DiskFullError,
    OutputExistsError,
    OutputNotWritableError,
    SynoramaError,
)
from synorama.session.schema import CHUNK_BYTES
from synorama.session.sink import writable_hdf5

__all__ = [
    "attribute",
    "damage_named",
    "in_order",
    "new_hdf5",
    "read_json",
    "read_table",
    "read_text",
    "set_attributes",
    "set_position",
    "text_attribute",
    "whole_file",
    "write_json",
    "write_table",
    "write_text",
]


# --- files that appear whole or not at all ----------------------------------------------------


@contextmanager
def whole_file(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what was written there takes its place at the end.

    The temporary file has one fixed name and is locked while somebody writes it, so a killed
    writer leaves at most one, which the next writer takes over.

    Raises
    ------
    OutputExistsError
        ``path`` is there and may not be replaced.
    OutputNotWritableError
        No permission, no such folder, or another process is writing the same file.
    DiskFullError
        The disk is full.
    """
    _check_absent(path, overwrite)
    temporary = path.with_name(f".{path.name}.writing")
    descriptor = _open_locked(temporary, path)
    try:
        with _disk_full_named(path):
            yield temporary
            os.fsync(descriptor)
            _check_absent(path, overwrite)
            temporary.replace(path)
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _check_absent(path: Path, overwrite: bool) -> None:
    if path.is_dir() or (path.exists() and not overwrite):
        raise OutputExistsError(
            "the output is there already", path=path, hint="give another name, or --overwrite"
        )


def _open_locked(temporary: Path, path: Path) -> int:
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(path) from error
        raise OutputNotWritableError(
            f"cannot write here: {os.strerror(error.errno or 0)}",
            path=path,
            hint="choose a folder that exists and that you may write to",
        ) from error
    try:
        _lock(descriptor, temporary)
    except BlockingIOError as error:
        os.close(descriptor)
        raise OutputNotWritableError(
            "another process is writing this file", path=path, hint="wait until it has finished"
        ) from error
    os.ftruncate(descriptor, 0)
    return descriptor


def _lock(descriptor: int, temporary: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system: two writers at once are then the operator's care
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        is_ours = os.path.samestat(os.fstat(descriptor), temporary.stat())
    except FileNotFoundError:
        is_ours = False
    if not is_ours:  # the writer before us put it in place between our open and our lock
        raise BlockingIOError


@contextmanager
def _disk_full_named(path: Path) -> Iterator[None]:
    try:
        yield
    except SynoramaError:
        raise
    except OSError as error:
        if _says_disk_full(error):
            raise _disk_full(path) from error
        raise


def _says_disk_full(error: Exception) -> bool:
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)


def _disk_full(path: Path) -> DiskFullError:
    return DiskFullError(
        "the disk is full; nothing was left half-written",
        path=path,
        hint="make room, or choose another disk, and run the same command again",
    )


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder outlive a power cut."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def new_hdf5(path: Path, *, overwrite: bool = True) -> Iterator[Any]:
    """Yield an `h5py.File` that appears at ``path``, marked complete, when all went well."""
    with (
        whole_file(path, overwrite=overwrite) as temporary,
        writable_hdf5(temporary) as file,
    ):
        file.attrs["complete"] = np.uint8(0)
        yield file
        file.attrs["complete"] = np.uint8(1)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn what a damaged file makes of reading it into a `DamagedSessionError`."""
    try:
        yield
    except SynoramaError:
        raise
    except (OSError, KeyError, ValueError, RuntimeError, TypeError, IndexError) as error:
        if _says_disk_full(error):
            raise  # the fault of what is being written, not of what is read
        raise DamagedSessionError(
            f"the file does not hold what its schema promises: {error}",
            path=path,
            hint="take the file from a copy, or make it again from the recordings",
        ) from error


# --- tables -----------------------------------------------------------------------------------


def write_table(group: Any, name: str, array: NDArray[Any]) -> Any:
    """Write an array, compressed and with a checksum in every chunk."""
    if array.size == 0:
        return group.create_dataset(name, data=array)
    return group.create_dataset(
        name,
        data=array,
        chunks=_chunk_shape(array),
        compression="gzip",
        compression_opts=4,
        shuffle=True,
        fletcher32=True,
    )


def _chunk_shape(array: NDArray[Any]) -> tuple[int, ...]:
    row_bytes = max(1, array.nbytes // len(array))
    rows = max(1, min(len(array), CHUNK_BYTES // row_bytes))
    return (rows, *array.shape[1:])


def read_table(group: Any, name: str) -> NDArray[Any]:
    """Read all of a table."""
    table: NDArray[Any] = group[name][()]
    return table


def write_text(group: Any, name: str, text: str) -> None:
    """Write a text of any length as a table of its UTF-8 bytes."""
    write_table(group, name, np.frombuffer(text.encode("utf-8", "surrogateescape"), np.uint8))


def read_text(group: Any, name: str) -> str:
    """Read what `write_text` wrote."""
    return read_table(group, name).tobytes().decode("utf-8", "surrogateescape")


def write_json(group: Any, name: str, value: Any) -> None:
    """Write JSON-able facts as a text."""
    write_text(group, name, json.dumps(value, ensure_ascii=False))


def read_json(group: Any, name: str) -> Any:
    """Read what `write_json` wrote."""
    return json.loads(read_text(group, name))


# --- attributes -------------------------------------------------------------------------------


def set_attributes(target: Any, values: Mapping[str, str | int | float | bool | None]) -> None:
    """Set attributes; what is None is left out."""
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, str):
            text_attribute(target, name, value)
        elif isinstance(value, bool | np.bool_):
            target.attrs[name] = np.uint8(value)
        elif isinstance(value, int | np.integer):
            target.attrs[name] = np.int64(value)
        else:
            target.attrs[name] = np.float64(value)


def text_attribute(target: Any, name: str, text: str) -> None:
    """Set a fixed-length UTF-8 attribute."""
    import h5py

    data = text.encode("utf-8", "surrogateescape")
    target.attrs.create(name, np.array(data), dtype=h5py.string_dtype("utf-8", max(1, len(data))))


def attribute(target: Any, name: str, default: Any = None) -> Any:
    """Return an attribute as str, int or float; the default where it is absent."""
    value = target.attrs.get(name)
    if value is None:
        return default
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value.item() if isinstance(value, np.generic) else value


def set_position(group: Any, position: int) -> None:
    """Remember the group's place among its siblings, which HDF5 sorts by name."""
    group.attrs["position"] = np.int64(position)


def in_order(group: Any) -> list[tuple[str, Any]]:
    """Return the children (name, group) in the order in which they were written."""
    return sorted(group.items(), key=lambda item: attribute(item[1], "position", 0))
