"""Names, version and limits of the session file: schema 1.

``docs/reference/session-file.md`` describes every group and dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "BLOCK_BYTES",
    "CHUNK_BYTES",
    "EXTRA_ROOTS",
    "LEFT_OUT_TRACKS",
    "SCHEMA",
    "SCHEMA_VERSION",
    "SEGMENT_DTYPE",
    "UTTERANCE_DTYPE",
    "WORD_DTYPE",
    "SessionInfo",
]

SCHEMA = "synorama"
SCHEMA_VERSION = 1

BLOCK_BYTES = 1 << 24
"""Embedded media carries one digest for every so many bytes."""

CHUNK_BYTES = 1 << 18
"""Tables are stored in compressed, checksummed chunks of at most so many bytes."""

EXTRA_ROOTS = ("transcript", "geometry", "labels", "verdicts")
"""Root groups that parts of later stages may bring; assembly copies them as they are."""

LEFT_OUT_TRACKS = ("semidense_observations",)
"""Tracks that stay in their files: they outweigh all other tables and hold no time of their own."""

SEGMENT_DTYPE = np.dtype(
    [
        ("first_knot", "<i8"),  # row of the segment's first knot
        ("knots", "<i8"),  # how many rows
        ("rate_before", "<f8"),
        ("rate_after", "<f8"),
        ("sigma_ns", "<f8"),
        ("residual_rms_ns", "<f8"),
        ("valid_first_ns", "<i8"),
        ("valid_last_ns", "<i8"),
        ("rate_sigma_ppm", "<f8"),
        ("limit_ns", "<i8"),  # -1: without limit
    ]
)
"""One `synorama.timebase.ClockMap` of a clock; its knots are rows of the dataset beside it."""

WORD_DTYPE = np.dtype(
    [
        ("start_ns", "<i8"),  # UNKNOWN_NS: not known
        ("end_ns", "<i8"),
        ("probability", "<f8"),  # NaN: not known
        ("overlapped", "<u1"),
        ("text", "<u4", (2,)),  # first byte and length in the dataset `bytes`
        ("speaker", "<u4", (2,)),  # length 0: not known
        ("device", "<u4", (2,)),
        ("timing_source", "<u4", (2,)),
    ]
)
"""One spoken word; its texts lie in the dataset of bytes beside the table."""

UTTERANCE_DTYPE = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("first", "<u4"),  # of its words, in the dataset `segment_words`
        ("count", "<u4"),
    ]
)
"""What one person says in one breath; its words are positions in the table of words."""

UNKNOWN_NS = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a session file says of itself.

    Parameters
    ----------
    session_id
        The laboratory's neutral name of the session.
    uuid
        Unique and stable: made from the session id and the recordings if left empty.
    epoch_utc
        UTC of session time zero in ISO 8601, or None where nothing trustworthy tells it.
    participants
        Pseudonyms; those of the recordings are added.
    consent
        What each participant agreed to, by pseudonym.
    options, software
        What the operator chose, and versions of the libraries that made the session.
    provenance
        By stage: inputs, options, version, start, end.
    clock
        Filled in by assembly: the recording whose device time is the session clock, or empty.
    verified
        Whether a person has confirmed synchronization and registration.
    sealed
        Filled in by sealing: whether the media lies inside.
    """

    session_id: str
    uuid: str = ""
    epoch_utc: str | None = None
    participants: tuple[str, ...] = ()
    consent: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    clock: str = ""
    verified: bool = False
    sealed: bool = False
