"""Sealing, and all that can go wrong with it: nothing half-written is ever left."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import blake3
import h5py
import pytest

from synorama.errors import (
    DiskFullError,
    MediaMovedError,
    OutputExistsError,
    OutputNotWritableError,
    SynoramaError,
    UsageError,
)
from synorama.session import (
    SessionInfo,
    assemble,
    open_session,
    read_ingest,
    seal,
    validate,
    write_ingest,
)
from synorama.session.storage import whole_file
from tests.session.conftest import Made
from tests.session.factory import EPOCH, file_ref


def test_embedded_bytes_are_the_source(made: Made) -> None:
    seen = []
    with h5py.File(made.sealed) as file:
        assert file.attrs["sealed"] == 1
        assert file.attrs["complete"] == 1
        for one in made.recordings:
            for k, source in enumerate(one.files):
                stored = file[f"recordings/{one.id}/files/{k}"]
                data = source.path.read_bytes()
                assert stored["data"][()].tobytes() == data
                assert stored.attrs["digest"].decode() == blake3.blake3(data).hexdigest()
                assert stored["blocks"][0].tobytes() == blake3.blake3(data[: 1 << 24]).digest()
                assert stored["data"].chunks is None
                assert "path" not in stored.attrs
                seen.append(source.name)
    assert len(seen) == 5
    assert stat.S_IMODE(made.sealed.stat().st_mode) & 0o222 == 0


def test_a_disk_that_cannot_be_written_past_its_cache(
    fresh: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused when it is opened, refused by its grain, or no such thing on this system."""
    seal(fresh.linked, fresh.sealed)
    expected = h5_media(fresh.sealed)
    write = os.pwrite
    refused = 0

    def coarse(descriptor: int, piece: memoryview, at: int) -> int:
        nonlocal refused
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused += 1
            raise OSError(errno.EINVAL, "invalid argument")
        return write(descriptor, piece, at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", coarse)
        seal(fresh.linked, fresh.sealed, overwrite=True)
    assert refused
    assert h5_media(fresh.sealed) == expected
    monkeypatch.delattr(os, "O_DIRECT")
    seal(fresh.linked, fresh.sealed, overwrite=True)
    assert h5_media(fresh.sealed) == expected


def h5_media(path: Path) -> dict[str, bytes]:
    with h5py.File(path) as file:
        return {
            f"{name}/{k}": group["data"][()].tobytes()
            for name, recording in file["recordings"].items()
            for k, group in recording["files"].items()
        }


def test_blocks_of_a_larger_file(tmp_path: Path, fresh: Made) -> None:
    path = fresh.folder / "raw" / "aria-3.bin"
    with path.open("ab") as file:
        for k in range(35):
            file.write(bytes([k]) * (1 << 20))
    lost = replace(fresh.recordings[3], files=(file_ref(path),))
    write_ingest(fresh.parts["ingest"], [*fresh.recordings[:3], lost], include_location=False)
    assemble(fresh.parts, fresh.linked, SessionInfo("k"))
    seen: list[tuple[int, int]] = []
    report = seal(fresh.linked, fresh.sealed, progress=lambda d, t: seen.append((d, t)))
    data = path.read_bytes()
    with h5py.File(fresh.sealed) as file:
        blocks = file["recordings/aria-3/files/0/blocks"][()]
    assert len(blocks) == 3
    assert blocks[2].tobytes() == blake3.blake3(data[2 << 24 :]).digest()
    assert report.digests["aria-3/0"] == blake3.blake3(data).hexdigest()
    assert seen[-1] == (2 * report.media_bytes, 2 * report.media_bytes)
    assert report.bytes == fresh.sealed.stat().st_size
    assert any("location" in text for text in report.warnings)


def test_a_flipped_bit_is_found(fresh: Made) -> None:
    seal(fresh.linked, fresh.sealed)
    assert validate(fresh.sealed, every_byte=True) == ()
    with h5py.File(fresh.sealed) as file:
        media = file["recordings/gopro-1/files/1/data"]
        start, size = media.id.get_offset(), media.shape[0]
        table = file["recordings/aria-1/tracks/imu/values"].id.get_chunk_info(0)
    data = bytearray(fresh.sealed.read_bytes())
    fresh.sealed.chmod(0o644)
    rng = random.Random(5)
    for place in (rng.randrange(start, start + size), table.byte_offset + table.size // 2):
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.randrange(8)
        fresh.sealed.write_bytes(flipped)
        assert len(validate(fresh.sealed, every_byte=True)) == 1


def nothing_left(made: Made, out: Path) -> None:
    assert not out.exists()
    assert not list(out.parent.glob(".*.writing"))
    assert validate(made.linked) == () or not made.folder.exists()


def test_media_that_changed_is_refused(fresh: Made) -> None:
    path = fresh.folder / "raw" / "aria-1.bin"
    data = path.read_bytes()
    before = path.stat()
    changes: dict[str, Callable[[], object]] = {
        "gone": path.unlink,
        "longer": lambda: path.write_bytes(data + b"x"),
        "touched": lambda: os.utime(path, ns=(0, before.st_mtime_ns + 1)),
    }
    for name, change in changes.items():
        change()
        with pytest.raises(MediaMovedError, match=r"raw/aria-1\.bin"):
            seal(fresh.linked, fresh.sealed)
        assert not fresh.sealed.exists(), name
        path.write_bytes(data)
        os.utime(path, ns=(0, before.st_mtime_ns))
    nothing_left(fresh, fresh.sealed)
    seal(fresh.linked, fresh.sealed)


def test_a_digest_recognises_a_copy_and_finds_a_change(fresh: Made) -> None:
    path = fresh.folder / "raw" / "aria-1.bin"
    data = path.read_bytes()
    known = file_ref(path, blake3.blake3(data).hexdigest())
    leader = replace(fresh.recordings[0], files=(known,))
    write_ingest(fresh.parts["ingest"], [leader, *fresh.recordings[1:]], include_location=False)
    assemble(fresh.parts, fresh.linked, SessionInfo("k"))
    os.utime(path, ns=(0, 1))
    seal(fresh.linked, fresh.sealed)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(MediaMovedError, match="digest"):
        seal(fresh.linked, fresh.sealed, overwrite=True)
    assert open_session(fresh.sealed, warn=False).info.sealed  # the old one is still there


def test_an_output_is_not_replaced_unasked(fresh: Made) -> None:
    fresh.sealed.write_text("mine")
    with pytest.raises(OutputExistsError):
        seal(fresh.linked, fresh.sealed)
    with pytest.raises(OutputExistsError, match="no session"):
        seal(fresh.linked, fresh.sealed, overwrite=True)
    assert fresh.sealed.read_text() == "mine"
    fresh.sealed.unlink()
    seal(fresh.linked, fresh.sealed)
    with pytest.raises(OutputExistsError):
        seal(fresh.linked, fresh.sealed)
    seal(fresh.linked, fresh.sealed, overwrite=True)
    with pytest.raises(UsageError, match="sealed already"):
        seal(fresh.sealed, fresh.folder / "again.h5")
    with pytest.raises(UsageError):
        seal(fresh.linked, fresh.linked, overwrite=True)
    with pytest.raises(OutputNotWritableError):
        seal(fresh.linked, fresh.folder / "no" / "folder.h5")


def test_a_raw_file_is_never_replaced(fresh: Made) -> None:
    raw = [file.path for one in fresh.recordings for file in one.files]
    before = [path.read_bytes() for path in raw]
    for path in raw:
        with pytest.raises(OutputExistsError, match="no session"):
            seal(fresh.linked, path, overwrite=True)
    assert [path.read_bytes() for path in raw] == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(fresh: Made) -> None:
    fresh.folder.chmod(0o555)
    try:
        with pytest.raises(OutputNotWritableError):
            seal(fresh.linked, fresh.sealed)
    finally:
        fresh.folder.chmod(0o755)


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    out = tmp_path / "x.h5"
    with whole_file(out) as temporary:
        temporary.write_text("one")
        with pytest.raises(OutputNotWritableError, match="another process"), whole_file(out):
            pass
    assert out.read_text() == "one"


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True,
        check=False,
    ).returncode:  # fmt: skip
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=False)


def test_a_full_disk_leaves_nothing(fresh: Made, small_disk: Path) -> None:
    small = Path(small_disk)
    with pytest.raises(DiskFullError):
        seal(fresh.linked, small / "release.h5")
    assert list(small.iterdir()) == []
    rest = os.statvfs(small)
    for spare in (4096, 30_000, 60_000):
        (small / "ballast").write_bytes(bytes(rest.f_bavail * rest.f_frsize - spare))
        for attempt in (
            lambda: write_ingest(small / "i.h5", fresh.recordings, include_location=False),
            lambda: assemble(fresh.parts, small / "s.h5", SessionInfo("k")),
            lambda: seal(fresh.linked, small / "release.h5"),
        ):
            with pytest.raises(DiskFullError):
                attempt()
            assert [p.name for p in small.iterdir()] == ["ballast"]
        (small / "ballast").unlink()


SCRIPT = """
import sys
from pathlib import Path
from synorama.session import SessionInfo, assemble, read_ingest, seal, write_ingest
folder = Path(sys.argv[1])
parts = {n: folder / ".synorama" / f"{n}.h5" for n in ("ingest", "sync", "transcribe")}
recordings = read_ingest(folder / "source.h5")
print("ready", flush=True)
while True:
    write_ingest(parts["ingest"], recordings, include_location=False)
    assemble(parts, folder / "session.h5", SessionInfo("kitchen-1"))
    seal(folder / "session.h5", folder / "release.h5", overwrite=True)
"""


def test_killed_at_any_moment_what_is_there_is_whole(fresh: Made) -> None:
    shutil.copyfile(fresh.parts["ingest"], fresh.folder / "source.h5")
    write_ingest(fresh.folder / "source.h5", fresh.recordings, include_location=True)
    rng = random.Random(11)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(fresh.folder)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.01, 0.6))
            child.send_signal(signal.SIGKILL)
        read_ingest(fresh.parts["ingest"])
        assert validate(fresh.linked, every_byte=True) == ()
        assert len(list(fresh.folder.glob("**/.*.writing"))) <= 3
        if fresh.sealed.exists():
            assert validate(fresh.sealed, every_byte=True) == ()
    seal(fresh.linked, fresh.sealed, overwrite=True)  # takes over what a killed writer left
    assert not list(fresh.folder.glob(".release.h5.writing"))
    assert open_session(fresh.sealed, warn=False).frame("leader/rgb", EPOCH) is not None


def test_an_error_in_a_writer_leaves_nothing(fresh: Made) -> None:
    before = fresh.parts["ingest"].read_bytes()

    def broken() -> None:
        raise SynoramaError("no")

    with pytest.raises(SynoramaError, match="no"):
        write_ingest(
            fresh.parts["ingest"],
            fresh.recordings,
            include_location=False,
            progress=lambda *_: broken(),
        )
    assert fresh.parts["ingest"].read_bytes() == before
    assert not list(fresh.folder.glob("**/.*.writing"))
