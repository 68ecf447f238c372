"""A small session: glasses, a camera in two chapters, and one recording that nobody could place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from synorama.records import Recording, SyncResult, Word
from synorama.session import (
    SessionInfo,
    assemble,
    seal,
    write_ingest,
    write_sync,
    write_transcript,
)
from tests.session.factory import EPOCH, SECOND, camera, encode, glasses, sync_of

TICK = Fraction(1, 15360)


@dataclass(frozen=True)
class Made:
    """A session in a folder, and what went into it."""

    folder: Path
    recordings: tuple[Recording, ...]
    result: SyncResult
    words: tuple[Word, ...]

    @property
    def linked(self) -> Path:
        return self.folder / "session.h5"

    @property
    def sealed(self) -> Path:
        return self.folder / "release.h5"

    @property
    def parts(self) -> dict[str, Path]:
        names = ("ingest", "sync", "transcribe")
        return {name: self.folder / ".synorama" / f"{name}.h5" for name in names}


def make_session(folder: Path) -> Made:
    raw = folder / "raw"
    (folder / ".synorama").mkdir(parents=True)
    raw.mkdir()
    chapters = [raw / "GX010001.MP4", raw / "GX020001.MP4"]
    for path in chapters:
        encode(path, "libx264", [512 * k for k in range(45)], TICK, preset="veryfast", g="250")
    leader = glasses(raw, "aria-1", role="leader", participant="P01")
    helper = glasses(raw, "aria-2", first_ns=77 * SECOND, role="helper", participant="P02")
    gopro = camera(chapters, "gopro-1")
    lost = glasses(raw, "aria-3", frames=3)
    placed = sync_of(leader, helper, gopro, aria_2=40.0, gopro_1=-70.0)
    result = SyncResult(
        placed.reference, placed.clocks, unsynced={"aria-3": "no sound"}, warnings=("fallback",)
    )
    words = tuple(
        Word(f"w{k}", EPOCH + k * SECOND, None if k == 5 else EPOCH + k * SECOND + 500_000_000)
        for k in range(8)
    )
    made = Made(folder, (leader, helper, gopro, lost), result, words)
    write_ingest(made.parts["ingest"], made.recordings, include_location=False)
    write_sync(made.parts["sync"], result)
    write_transcript(made.parts["transcribe"], words)
    assemble(made.parts, made.linked, SessionInfo("kitchen-1", options={"a": 1}))
    return made


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a session that tests only read, linked and sealed."""
    one = make_session(tmp_path_factory.mktemp("sessions") / "kitchen")
    seal(one.linked, one.sealed)
    return one


@pytest.fixture
def fresh(tmp_path: Path) -> Made:
    """Return a session that a test may break."""
    return make_session(tmp_path / "kitchen")
