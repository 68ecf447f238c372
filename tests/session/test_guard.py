"""Files that a stranger made to harm the reader, each refused before its data is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from synorama.errors import (
    DamagedSessionError,
    IncompleteSessionError,
    InputNotFoundError,
    NotASessionError,
    SchemaVersionError,
    SessionFileError,
    UnsafeSessionError,
)
from synorama.session import open_session, validate
from synorama.session.guard import check_structure, open_guarded
from tests.session.conftest import Made


def external_storage(file: h5py.File, folder: Path) -> None:
    file.create_dataset("secret", (4,), "u1", external=[(str(folder / "secret"), 0, 4)])


def virtual(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["d"] = np.arange(4)
    layout = h5py.VirtualLayout((4,), "i8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "d", (4,))
    file.create_virtual_dataset("v", layout)


def external_link(file: h5py.File, folder: Path) -> None:
    file["x"] = h5py.ExternalLink(str(folder / "other.h5"), "/")


def soft_link(file: h5py.File, _: Path) -> None:
    file["x"] = h5py.SoftLink("/recordings")


def alias(file: h5py.File, _: Path) -> None:
    file["x"] = file["recordings"]


def cycle(file: h5py.File, _: Path) -> None:
    file["recordings/x"] = file["/"]


def shape_bomb(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", (1 << 40,), "u1", chunks=(1 << 20,))


def late_allocation(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", (1 << 30,), "u1")


def gzip_bomb(file: h5py.File, _: Path) -> None:
    data = file.create_dataset("x", (300 << 20,), "u1", chunks=(1 << 20,), compression=9)
    for k in range(300):
        data[k << 20 : (k + 1) << 20] = 0


def big_chunks(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", data=np.zeros(8 << 20, "u1"), chunks=(8 << 20,), compression=1)


def strange_filter(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", data=np.zeros(100, "u1"), chunks=(100,), compression="lzf")


def deep(file: h5py.File, _: Path) -> None:
    file.create_group("/".join("g" * 40))


def variable_length(file: h5py.File, _: Path) -> None:
    file.create_dataset("x", data=["text"], dtype=h5py.string_dtype())


def reference(file: h5py.File, _: Path) -> None:
    file["recordings"].attrs["x"] = file["recordings"].ref


def named_type(file: h5py.File, _: Path) -> None:
    file["x"] = np.dtype("f8")


def many_attributes(file: h5py.File, _: Path) -> None:
    for k in range(300):
        file.attrs[f"a{k}"] = 1


ATTACKS = [
    external_storage, virtual, external_link, soft_link, alias, cycle, shape_bomb,
    late_allocation, gzip_bomb, big_chunks, strange_filter, deep, variable_length,
    reference, named_type, many_attributes,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.__name__)
def test_an_attack_is_refused(
    fresh: Made, tmp_path: Path, attack: Callable[[Any, Path], None]
) -> None:
    open_session(fresh.linked, warn=False)
    with h5py.File(fresh.linked, "r+", libver=("v110", "v110")) as file:
        attack(file, tmp_path)
    with pytest.raises(UnsafeSessionError) as refused:
        open_session(fresh.linked)
    assert refused.value.path == str(fresh.linked)
    assert [p.code for p in validate(fresh.linked)] == ["unsafe"]


def test_a_chunk_bigger_than_its_data_is_refused(fresh: Made) -> None:
    with h5py.File(fresh.linked, "r+", libver=("v110", "v110")) as file:
        data = file.create_dataset("x", (100,), "u1", chunks=(100,), compression=9)
        data.id.write_direct_chunk((0,), bytes(5000))
    with pytest.raises(UnsafeSessionError, match="5000 bytes"):
        open_session(fresh.linked)


def test_a_good_session_passes(made: Made) -> None:
    for path in (made.linked, made.sealed):
        with open_guarded(path) as file:
            assert check_structure(file, path) > 100
        assert validate(path, every_byte=True) == ()


def test_other_files_are_named_for_what_they_are(tmp_path: Path, fresh: Made) -> None:
    (tmp_path / "empty.h5").touch()
    (tmp_path / "text.h5").write_text("not HDF5 at all")
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["d"] = 1
    for name in ("empty", "text", "foreign"):
        with pytest.raises(NotASessionError):
            open_session(tmp_path / f"{name}.h5")
    with pytest.raises(InputNotFoundError):
        open_session(tmp_path / "none.h5")
    with pytest.raises(NotASessionError):
        open_session(tmp_path / "foreign.h5")
    for name, value, error in (
        ("complete", 0, IncompleteSessionError),
        ("schema_version", 2, SchemaVersionError),
    ):
        with h5py.File(fresh.linked, "r+") as file:
            old = file.attrs[name]
            file.attrs[name] = value
        with pytest.raises(error):
            open_session(fresh.linked)
        with h5py.File(fresh.linked, "r+") as file:
            file.attrs[name] = old


def test_a_cut_file_is_damaged_whatever_is_left(fresh: Made) -> None:
    data = fresh.linked.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        fresh.linked.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(SessionFileError):
            open_session(fresh.linked)


def test_clocks_and_times_that_do_not_belong_together(fresh: Made) -> None:
    with h5py.File(fresh.linked, "r+") as file:
        times = file["recordings/aria-2/tracks/rgb/t_ns"]
        times[3] = times[3] + 1
    assert [(p.code, p.track) for p in validate(fresh.linked)] == [("clock", "aria-2/rgb")]
    with h5py.File(fresh.linked, "r+") as file:
        knots = file["recordings/aria-2/clock/knots"]
        knots[0, 1] = knots[0, 1] + 1_000_000
    with pytest.raises(DamagedSessionError, match="another clock"):
        open_session(fresh.linked)


def test_missing_groups_are_damage(fresh: Made) -> None:
    with h5py.File(fresh.linked, "r+") as file:
        del file["recordings/aria-1/tracks/rgb/index"]
    with pytest.raises(DamagedSessionError):
        open_session(fresh.linked)


def test_an_index_beyond_its_file_is_found(fresh: Made) -> None:
    with h5py.File(fresh.linked, "r+") as file:
        rows = file["recordings/aria-1/tracks/rgb/index"]
        row = rows[5]
        row["offset"] = 1 << 40
        rows[5] = row
    assert [(p.code, p.track) for p in validate(fresh.linked)] == [("index", "aria-1/rgb")]
