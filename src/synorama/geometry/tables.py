"""Rows of numbers in text files, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from synorama.errors import CorruptFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["numbers", "row_blocks"]

SEPARATORS = bytes.maketrans(b",;\t", b"   ")


def row_blocks(file: BinaryIO, size: int, count: int | None = None) -> Iterator[list[bytes]]:
    """Yield at most ``size`` lines at once, ``count`` in all, or up to the file's end."""
    left = count
    while left is None or left > 0:
        lines = list(islice(file, size if left is None else min(size, left)))
        if not lines:
            return
        left = None if left is None else left - len(lines)
        yield lines


def numbers(lines: list[bytes], path: Path, columns: int) -> Float64:
    """Return rows of so many numbers ``(N, columns)``; empty lines do not count.

    Raises
    ------
    CorruptFileError
        A row holds something else, or another count.
    """
    text = b"".join(lines).translate(SEPARATORS).decode("latin-1")
    words = text.split()
    try:
        flat = np.array(words, np.float64)
    except ValueError as error:
        raise CorruptFileError(
            f"a row of points holds no number: {error}", path=path, hint="export it again"
        ) from error
    if len(flat) % columns:
        raise CorruptFileError(
            f"its rows do not all hold {columns} numbers", path=path, hint="export it again"
        )
    return flat.reshape(-1, columns)
