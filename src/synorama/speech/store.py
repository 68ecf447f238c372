"""Windows that were recognised, kept until the whole is done, so that a killed run goes on."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.errors import DiskFullError
from synorama.speech.backend import Spoken, SpokenWord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int16 = NDArray[np.int16]

__all__ = ["WindowStore", "window_key"]


def window_key(samples: Int16, facts: Mapping[str, Any]) -> str:
    """Return a digest of the sound and of all that decides what is recognised in it."""
    import blake3

    text = json.dumps(facts, sort_keys=True, default=str)
    return blake3.blake3(samples.tobytes() + text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class WindowStore:
    """A folder with one small file a window; None keeps nothing."""

    folder: Path | None = None

    def get(self, key: str) -> tuple[Spoken, ...] | None:
        """Return what was recognised, or None where it was not, or its file is damaged."""
        if self.folder is None:
            return None
        try:
            told = json.loads((self.folder / f"{key}.json").read_text("utf-8"))
            return tuple(_spoken(one) for one in told)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, spoken: Sequence[Spoken]) -> None:
        """Keep a window, whole or not at all.

        Raises
        ------
        DiskFullError
        """
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.folder / f".{key}.writing"
            with temporary.open("w", encoding="utf-8") as file:
                json.dump([asdict(one) for one in spoken], file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.folder / f"{key}.json")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _full(self.folder) from error
            raise

    def clear(self) -> None:
        """Forget all windows: what was said is in the transcript now, and nowhere else."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()


def _full(folder: Path) -> DiskFullError:
    return DiskFullError(
        "the disk is full; the windows that were recognised are kept",
        path=folder,
        hint="make room and run the same command again: it goes on where it stopped",
    )


def _spoken(told: Mapping[str, Any]) -> Spoken:
    words = tuple(SpokenWord(**word) for word in told["words"])
    return Spoken(float(told["start_s"]), float(told["end_s"]), words)
