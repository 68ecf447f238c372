"""What is installed on this machine, what is missing, and how to get it."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the software: is it there, which version, what is it for.

    What is ``optional`` belongs to an extra: all else works without it.
    """

    name: str
    purpose: str
    present: bool
    version: str
    remedy: str
    optional: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self)


PARTS = (
    ("numpy", "numpy", "everything"),
    ("scipy", "scipy", "sync by sound"),
    ("h5py", "h5py", "the session file"),
    ("av", "av", "video and sound of every container"),
    ("soxr", "soxr", "sync by sound"),
    ("cv2", "opencv-python-headless", "pictures"),
    ("pyarrow", "pyarrow", "MPS tables"),
    ("projectaria_tools", "projectaria-tools", "calibration and decoding of Aria glasses"),
    ("zstandard", "zstandard", "packed VRS records"),
    ("lz4", "lz4", "packed VRS records"),
    ("blake3", "blake3", "digests"),
)
"""Import name, distribution, purpose."""


SPEECH = (
    ("faster_whisper", "faster-whisper", "recognising speech"),
    ("pocketsphinx", "pocketsphinx", "when each word was said"),
    ("pympi", "pympi-ling", "transcripts for ELAN"),
)
"""Parts of the extra ``speech``."""


def examine() -> tuple[Finding, ...]:
    """Import every part that Synorama uses and the third-party devices, and tell how it went."""
    return (*(_look(*part) for part in PARTS), *map(_look_speech, SPEECH), *_plugins())


def _look_speech(part: tuple[str, str, str]) -> Finding:
    found = _look(*part)
    remedy = "" if found.present else "pip install 'synorama[speech]'"
    return replace(found, remedy=remedy, optional=True)


def _look(module: str, distribution: str, purpose: str) -> Finding:
    try:
        importlib.import_module(module)
    except Exception as error:  # a library that breaks on import is as good as missing
        remedy = f"pip install {distribution} ({type(error).__name__}: {error})"
        return Finding(distribution, purpose, False, "", remedy)
    return Finding(distribution, purpose, True, _version(distribution), "")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def _plugins() -> tuple[Finding, ...]:
    from synorama.capture.registry import broken_plugins

    return tuple(
        Finding(p.name, "third-party device", False, "", f"repair or remove it ({p.why})")
        for p in broken_plugins()
    )
