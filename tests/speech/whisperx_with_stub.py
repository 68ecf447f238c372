"""The WhisperX worker with an aligner that knows nothing: its real weights are a download.

It shows that the whole way to a real aligner works. Run by the Python that has WhisperX.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LABELS = "-|abcdefghijklmnopqrstuvwxyz'"
WORKER = Path(__file__).parents[2] / "src" / "synorama" / "speech" / "whisperx_worker.py"


class Sentences:
    """In place of NLTK's, whose data is a download, too."""

    def span_tokenize(self, text: str) -> Iterator[tuple[int, int]]:
        yield 0, len(text)


def load_align_model(*_: Any, **__: Any) -> Any:
    import torch

    def emissions(sound: Any, lengths: Any = None) -> Any:
        chance = torch.Generator().manual_seed(0)
        frames = sound.shape[-1] // 320
        return torch.randn(1, frames, len(LABELS), generator=chance), None

    dictionary = {letter: k for k, letter in enumerate(LABELS)}
    return emissions, {"language": "en", "dictionary": dictionary, "type": "torchaudio"}


def main() -> int:
    import whisperx
    import whisperx.alignment

    whisperx.alignment.nltk_load = lambda path: Sentences()
    whisperx.load_align_model = load_align_model
    spec = importlib.util.spec_from_file_location("whisperx_worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    return int(worker.main())


if __name__ == "__main__":
    sys.exit(main())
