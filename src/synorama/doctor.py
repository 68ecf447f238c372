"""What is installed on this machine, what is missing, and how to get it."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the software: is it there, which version, what is it for."""

    name: str
    purpose: str
    present: bool
    version: str
    remedy: str

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


def examine() -> tuple[Finding, ...]:
    """Import every part that Synorama uses and the third-party devices, and tell how it went."""
    return (*(_look(*part) for part in PARTS), *_plugins())


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
