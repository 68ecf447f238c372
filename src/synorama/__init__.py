"""Synorama: many devices, one session, one clock, one trustworthy file.

Importing this package loads nothing heavy; each part loads what it needs when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from synorama.session import Session

__version__ = "0.1.0"
__all__ = ["__version__", "open_session"]


def open_session(path: str | PathLike[str]) -> Session:
    """Open a session file for reading, whether its media is linked or embedded.

    Parameters
    ----------
    path
        A ``session.h5`` that ``synorama process`` wrote, or a sealed release file.

    Returns
    -------
    Session
        A context manager; every open passes the guard against hostile files.

    Raises
    ------
    synorama.errors.SessionFileError
        The file is not a session, is incomplete, or holds something unsafe.
    """
    from synorama.session import open_session as _open

    return _open(path)
