"""Models of speech: found by name or folder, checked before they are loaded, named in full."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from synorama.errors import MissingDependencyError, ModelDamagedError, ModelMissingError

__all__ = [
    "DEFAULT_MODELS",
    "MODEL_ENVIRONMENT",
    "FoundModel",
    "Hardware",
    "choose",
    "find_model",
    "locate_model",
    "words_that_fit",
]

MODEL_ENVIRONMENT = "SYNORAMA_SPEECH_MODEL"
"""Environment variable: the model, name or folder, of a lab whose machines are offline."""

DEFAULT_MODELS = {"cuda": "large-v3-turbo", "cpu": "small"}
DEFAULT_PRECISIONS = {"cuda": "float16", "cpu": "int8"}
NEEDED = ("config.json", "model.bin", "tokenizer.json")
"""Without ``tokenizer.json`` the library would fetch another model's from the network."""
VOCABULARIES = ("vocabulary.json", "vocabulary.txt")
PROMPT_TOKENS = 223
"""What Whisper's prompt holds at most; the library cuts off the rest and says nothing."""
HOWTO = "see 'Get models onto an offline machine' in the documentation"

Processor: TypeAlias = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine: its name, its folder, and a digest of all its files."""

    name: str
    folder: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a model runs on, and why, in words."""

    processor: Processor
    precision: str
    reason: str


def choose(processor: str = "auto", precision: str = "auto") -> Hardware:
    """Return processor and precision for recognition; a GPU is taken where one works.

    Raises
    ------
    MissingDependencyError
        A GPU is asked for and there is none that CTranslate2 can use, or the precision is not
        known to the processor.
    """
    import ctranslate2

    gpus = int(ctranslate2.get_cuda_device_count())
    if processor == "cuda" and not gpus:
        raise MissingDependencyError(
            "a GPU is asked for, and CTranslate2 finds none",
            hint="leave '--device' out to use the processor, or install NVIDIA's driver",
        )
    taken: Processor = "cuda" if gpus and processor != "cpu" else "cpu"
    known = ctranslate2.get_supported_compute_types(taken)
    wanted = DEFAULT_PRECISIONS[taken] if precision == "auto" else precision
    if wanted in known:
        return Hardware(taken, wanted, _why(processor, gpus))
    if precision != "auto":
        raise MissingDependencyError(
            f"the precision '{precision}' does not exist on {taken}",
            hint="known are: " + ", ".join(sorted(known)),
        )
    return Hardware(taken, "float32", f"{_why(processor, gpus)}; no {wanted} here, so float32")


def _why(processor: str, gpus: int) -> str:
    if processor != "auto":
        return "as asked for"
    return f"{gpus} GPU(s) found" if gpus else "no GPU found, so the processor is used"


def find_model(name: str | None, processor: Processor, *, offline: bool) -> FoundModel:
    """Return a model with the digest of all its bytes; see `locate_model`."""
    found, folder = locate_model(name, processor, offline=offline)
    return FoundModel(found, folder, _digest(folder))


def locate_model(name: str | None, processor: Processor, *, offline: bool) -> tuple[str, Path]:
    """Return the name and the folder of a model.

    Parameters
    ----------
    name
        A folder, a name such as ``small``, or a repository; None for what the environment
        variable `MODEL_ENVIRONMENT` says, or else the processor's default.
    offline
        Take only what is on this machine. Otherwise a model that is missing is downloaded.

    Raises
    ------
    ModelMissingError
        It is not here, and may not or cannot be fetched.
    ModelDamagedError
        Its folder is not complete.
    """
    wanted = name or os.environ.get(MODEL_ENVIRONMENT) or DEFAULT_MODELS[processor]
    folder = Path(wanted).expanduser()
    if folder.is_dir():
        return _checked(folder.resolve().name, folder.resolve())
    if folder.is_absolute() or wanted.startswith((".", "~")):
        raise ModelMissingError("there is no such folder", path=folder, hint=HOWTO)
    return _checked(wanted, _fetched(wanted, offline))


def _fetched(name: str, offline: bool) -> Path:
    from faster_whisper.utils import download_model

    try:
        return Path(download_model(name, local_files_only=True))
    except ValueError as error:
        raise ModelMissingError(f"no model is called '{name}'", hint=_known_names()) from error
    except Exception as error:  # the hub's client has a dozen ways to say that it is not here
        if offline:
            raise _not_here(name, "downloads are off") from error
    try:
        return Path(download_model(name))
    except Exception as error:
        raise _not_here(name, "it could not be downloaded") from error


def _known_names() -> str:
    from faster_whisper.utils import available_models

    return "give a folder, or one of: " + ", ".join(available_models())


def _not_here(name: str, why: str) -> ModelMissingError:
    return ModelMissingError(
        f"the model '{name}' is not on this machine, and {why}",
        hint=f"give '--model FOLDER' or set {MODEL_ENVIRONMENT}; {HOWTO}",
    )


def _checked(name: str, folder: Path) -> tuple[str, Path]:
    missing = [n for n in NEEDED if not _has_bytes(folder / n)]
    if not any(_has_bytes(folder / n) for n in VOCABULARIES):
        missing.append(" or ".join(VOCABULARIES))
    if missing:
        raise ModelDamagedError(
            f"the model lacks {', '.join(missing)}",
            path=folder,
            hint="copy the whole folder again from where the model is complete",
        )
    try:
        json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelDamagedError(
            "its config.json cannot be read", path=folder, hint="copy the folder again"
        ) from error
    return name, folder


def _has_bytes(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def words_that_fit(folder: Path, vocabulary: Sequence[str]) -> int:
    """Return how many of the first words of a vocabulary fit into the prompt of a model."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for count in range(1, len(vocabulary) + 1):
        text = " " + ", ".join(vocabulary[:count])
        if len(tokenizer.encode(text, add_special_tokens=False).ids) > PROMPT_TOKENS:
            return count - 1
    return len(vocabulary)


def _digest(folder: Path) -> str:
    """Digest all files of a model, so that a result names exactly what made it."""
    import blake3

    whole = blake3.blake3()
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        whole.update(path.name.encode() + b"\0")
        whole.update_mmap(path)
    return str(whole.hexdigest())
