"""The tables and documents of the services' output folders, as they lie on disk."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Columns", "columns_of", "write_json", "write_table"]

Columns = Mapping[str, Any]
"""Arrays, or one text for all rows, by the name of the column."""

COMPRESSION = 4
XYZ = ("x", "y", "z")


def columns_of(pattern: str, values: NDArray[np.float64], decimals: int) -> dict[str, Any]:
    """Return the columns of values ``(N, 3)`` or of quaternions wxyz ``(N, 4)``.

    Parameters
    ----------
    pattern
        Name of a column with ``{}`` for the axis.
    decimals
        Digits after the point, as the services print them.
    """
    axes = XYZ if values.shape[1] == len(XYZ) else ("w", *XYZ)
    rounded = np.round(values, decimals) + 0.0  # no minus zero
    named = {pattern.format(axis): rounded[:, k] for k, axis in enumerate(axes)}
    return {pattern.format(a): named[pattern.format(a)] for a in (*XYZ, "w") if a in axes}


def write_table(path: Path, columns: Columns) -> int:
    """Write a table, compressed where the name ends in ``.gz``; return the number of rows."""
    import pyarrow as pa
    from pyarrow import csv

    count = next(len(c) for c in columns.values() if not isinstance(c, str))
    arrays = [
        pa.array([c] * count if isinstance(c, str) else np.asarray(c)) for c in columns.values()
    ]
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with ExitStack() as stack:
        file = stack.enter_context(path.open("xb"))
        out: IO[bytes] | gzip.GzipFile = file
        if path.suffix == ".gz":
            out = stack.enter_context(gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0))
        out.write((",".join(columns) + "\n").encode())
        csv.write_csv(pa.Table.from_arrays(arrays, names=list(columns)), out, options)
    return count


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document such as ``summary.json``."""
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
