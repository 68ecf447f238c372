"""Online calibration of MPS: one JSON document a line, of every published version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from synorama.capture.mps.table import NS_PER_US, Scan, open_input
from synorama.errors import CorruptFileError, MpsSchemaError
from synorama.records import Samples

__all__ = ["read_calibration", "scan_calibration"]

KEYS = ("tracking_timestamp_us", "utc_timestamp_ns", "CameraCalibrations", "ImuCalibrations")
OPTIONAL = ("ImageSizes", "ReadoutTimesSec")  # since MPS SLAM 1.1.0


def scan_calibration(path: Path) -> Scan:
    """Read the times of an online calibration file, and whether its lines are whole.

    Raises
    ------
    MpsSchemaError
        A line is JSON but no online calibration.
    """
    found = Scan()
    for time_ns, _, _ in _records(path, found):
        if found.last_ns is not None and time_ns < found.last_ns:
            found.backwards += 1
            found.worst_ns = max(found.worst_ns, found.last_ns - time_ns)
        found.rows += 1
        found.first_ns = time_ns if found.first_ns is None else min(found.first_ns, time_ns)
        found.last_ns = time_ns if found.last_ns is None else max(found.last_ns, time_ns)
    return found


def read_calibration(path: Path, count: int) -> Samples:
    """Read an online calibration file; its documents stand in ``extra["json"]``, unchanged."""
    records = list(_records(path, Scan()))
    if len(records) != count:
        raise CorruptFileError("the MPS file changed while in use", path=path, hint="run it again")
    return Samples(
        times_ns=np.array([time for time, _, _ in records], np.int64),
        values=np.zeros((count, 0)),
        extra={
            "utc_ns": np.array([utc for _, utc, _ in records], np.int64),
            "json": np.array([line for _, _, line in records], "S"),
        },
    )


def _records(path: Path, found: Scan) -> Iterator[tuple[int, int, bytes]]:
    """Yield device time, UTC (-1: unknown) and document of every whole line."""
    with open_input(path) as file:
        for line in file:
            text = line.strip()
            document = _parsed(text)
            if document is not None:
                _check(path, document)
                yield (
                    int(document["tracking_timestamp_us"]) * NS_PER_US,
                    int(document["utc_timestamp_ns"]),
                    text,
                )
            elif text and line.endswith(b"\n"):
                found.malformed += 1
            elif text:
                found.cut = True


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _check(path: Path, document: dict[str, Any]) -> None:
    unknown = document.keys() - {*KEYS, *OPTIONAL}
    missing = [key for key in KEYS if key not in document]
    if missing or unknown:
        raise MpsSchemaError(
            "its entries are those of no published online calibration: "
            f"found {', '.join(sorted(document))}; expected {', '.join(KEYS)}; "
            f"optional {', '.join(OPTIONAL)}",
            path=path,
            hint="download the MPS output again; if a newer MPS version wrote it, move this file "
            "out of the MPS folder to go on without it",
        )
