"""Where the bytes of a media file lie: a file of its own, or a part of another file.

A sealed session holds media files unmodified and contiguous, so FFmpeg's ``subfile`` protocol
decodes them in place and packets are found by adding an offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.errors import (
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    UndecodableError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MediaSource", "as_sources"]

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,wav,w64,flac,mp3,aac,ogg,asf,flv,aiff,"
    "caf,au,amr,amrnb,amrwb,ac3,eac3,mxf,ivf,dv,wv,tta,ape,mpc,mpc8,rm,nut,gxf"
)
OPTIONS = {"protocol_whitelist": "file,subfile", "format_whitelist": FORMATS}
"""No playlists and no network: opening a file reads this file only."""


@dataclass(frozen=True, slots=True)
class MediaSource:
    """A media file, or the part of a file that holds one.

    Parameters
    ----------
    path
        The file on disk.
    offset
        Where the media's first byte lies in it.
    size
        How many bytes the media has; None for all to the end of the file.
    """

    path: Path
    offset: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        if self.offset < 0 or (self.size is not None and self.size < 0):
            raise ValueError(f"offset {self.offset} and size {self.size} must not be negative")
        if self.offset and self.size is None:
            raise ValueError("a part of a file needs a size")

    @property
    def url(self) -> str:
        """What FFmpeg opens. The path is absolute, so that no colon in it names a protocol."""
        path = str(self.path.absolute())
        if self.size is None:
            return path
        return f"subfile,,start,{self.offset},end,{self.offset + self.size},,:{path}"

    def open(self) -> Any:
        """Open the media with PyAV; use as a context manager.

        Returns
        -------
        av.container.InputContainer

        Raises
        ------
        InputNotFoundError, InputUnreadableError, EmptyFileError, UndecodableError
        """
        import av

        if self.size == 0 or (self.path.is_file() and self.path.stat().st_size == 0):
            raise EmptyFileError("the file has no bytes", path=self.path, hint="record it again")
        try:
            return av.open(self.url, options=OPTIONS, metadata_errors="replace")
        except FileNotFoundError as error:
            raise InputNotFoundError(
                "the media file is gone", path=self.path, hint="put it back where it was"
            ) from error
        except PermissionError as error:
            raise InputUnreadableError(
                "no permission to read it", path=self.path, hint="allow reading the file"
            ) from error
        except (av.FFmpegError, OSError, ValueError) as error:
            raise UndecodableError(
                f"FFmpeg cannot open it: {error}",
                path=self.path,
                hint="play the file; if no player can, restore it from its original",
            ) from error


def as_sources(files: Sequence[Path | MediaSource]) -> tuple[MediaSource, ...]:
    """Return the files as sources; a plain path is a whole file."""
    return tuple(f if isinstance(f, MediaSource) else MediaSource(Path(f)) for f in files)
