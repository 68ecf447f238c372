"""The command line answers at once: no heavy library, and no vendor's, is loaded to show help."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "av", "blake3", "cv2", "h5py", "lz4", "numpy", "projectaria_tools", "pyarrow", "pydantic",
    "pyvrs", "scipy", "soxr", "vrsbindings", "zstandard",
}  # fmt: skip


def test_help_loads_no_heavy_library() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "synorama", "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    loaded = {name.partition(".")[0] for name in told}
    assert "typer" in loaded  # it was listened to
    assert not loaded & HEAVY
