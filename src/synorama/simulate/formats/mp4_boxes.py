"""Give an MP4 what its muxer does not write: a camera's own user data and names of tracks.

Everything sits in ``moov``, which must be the last box of the file: it may then grow without
moving a single byte of the media.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["add_user_data", "box"]

BOX = struct.Struct(">I4s")
LONG = struct.Struct(">Q")
TIMECODE_HANDLER = b"tmcd" + bytes(12)


def box(kind: bytes, data: bytes) -> bytes:
    """Return one box."""
    return BOX.pack(BOX.size + len(data), kind) + data


def add_user_data(path: Path, user_data: bytes, timecode_handler: bytes) -> None:
    """Put boxes into the movie's ``udta`` and name the handler of the time code.

    The new name must be as long as the one that the muxer gave.
    """
    with path.open("r+b") as file:
        at = _find_movie(file)
        file.seek(at)
        movie = file.read()[BOX.size :]
        kept = b"".join(piece for piece in _pieces(movie) if piece[4:8] != b"udta")
        file.seek(at)
        file.write(box(b"moov", _named(kept, timecode_handler) + box(b"udta", user_data)))


def _find_movie(file: IO[bytes]) -> int:
    """Return where ``moov`` begins."""
    at = 0
    while True:
        file.seek(at)
        size, kind = BOX.unpack(file.read(BOX.size))
        if kind == b"moov":
            return at
        at += LONG.unpack(file.read(LONG.size))[0] if size == 1 else size


def _pieces(boxes: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(boxes):
        size = BOX.unpack_from(boxes, at)[0]
        yield boxes[at : at + size]
        at += size


def _named(movie: bytes, name: bytes) -> bytes:
    """Return the movie with another name in the handler of its time code."""
    at = movie.index(TIMECODE_HANDLER) + len(TIMECODE_HANDLER)
    end = movie.index(b"\0", at)
    if end - at != len(name):
        raise ValueError(f"the handler is called {movie[at:end]!r}, not as long as {name!r}")
    return movie[:at] + name + movie[end:]
