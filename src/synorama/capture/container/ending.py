"""Whether a file goes on to the end that it announces itself, for containers that announce one.

FFmpeg reads a file that was cut off as far as it goes and does not say so.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_cut_short"]

HEAD_BYTES = 4096
TAIL_BYTES = 1 << 17  # more than the longest Ogg page
EBML_SEGMENT = 0x18538067
OGG_LAST_PAGE = 4
TRANSPORT_PACKETS = (188, 192)


def is_cut_short(path: Path, container: str, decoded_samples: int) -> bool:
    """Tell whether the file ends before the end that its own header announces.

    Parameters
    ----------
    container
        FFmpeg's name of the format.
    decoded_samples
        How many samples of the first stream of sound were decoded.

    Returns
    -------
    bool
        False where the container announces nothing: live WebM, MP3, AAC, program streams.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(size - TAIL_BYTES, 0))
        tail = file.read(TAIL_BYTES)
    if container in ("wav", "avi"):
        return _riff_end(head) > size
    if container.startswith("matroska"):
        return _segment_end(head) > size
    if container == "mpegts":
        return all(size % packet for packet in TRANSPORT_PACKETS)
    if container == "ogg":
        return not _ends_with_last_page(tail)
    if container == "flac":
        return decoded_samples < _flac_samples(head)
    return False


def _riff_end(head: bytes) -> int:
    """Return where a RIFF file ends; 0 for writers that did not know (a stream, RF64)."""
    announced = int.from_bytes(head[4:8], "little")
    return announced + 8 if head[:4] == b"RIFF" and announced not in (0, 0xFFFFFFFF) else 0


def _segment_end(head: bytes) -> int:
    """Return where the first segment of a Matroska file ends, 0 where it is of unknown size."""
    _, at = _vint(head, 0, keep_marker=True)
    length, at = _vint(head, at)
    at += length
    kind, at = _vint(head, at, keep_marker=True)
    length, at = _vint(head, at)
    return at + length if kind == EBML_SEGMENT and length >= 0 else 0


def _vint(data: bytes, at: int, *, keep_marker: bool = False) -> tuple[int, int]:
    """Read an EBML number: value (-1 for unknown) and where it ends."""
    first = data[at] if at < len(data) else 0
    width = 9 - first.bit_length()
    if first == 0 or at + width > len(data):
        return -1, len(data)
    value = int.from_bytes(data[at : at + width], "big")
    if keep_marker:
        return value, at + width
    value &= (1 << 7 * width) - 1
    return (-1 if value == (1 << 7 * width) - 1 else value), at + width


def _ends_with_last_page(tail: bytes) -> bool:
    at = tail.rfind(b"OggS")
    return at >= 0 and at + 6 <= len(tail) and bool(tail[at + 5] & OGG_LAST_PAGE)


def _flac_samples(head: bytes) -> int:
    """Return the number of samples in the stream's information, 0 where it is not known."""
    return int.from_bytes(head[21:26], "big") & ((1 << 36) - 1) if head[:4] == b"fLaC" else 0
