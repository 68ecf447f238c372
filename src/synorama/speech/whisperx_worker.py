"""WhisperX in a process of its own, in an environment that need not have Synorama.

Started as ``python whisperx_worker.py``; reads one JSON request a line from standard input and
answers each with one JSON line on what standard output was when it began. Whatever the libraries
print goes to standard error. Sound lies as float32 in a file that the request names.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATE: dict[str, Any] = {}
ALIGNERS: dict[str, Any] = {}


def main() -> int:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = {"ok": VERBS[request.pop("verb")](**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def load(
    model: str, device: str, precision: str, threads: int, align_model: str | None, offline: bool
) -> dict[str, Any]:
    """Load the recogniser; the bundled voice detector needs no download."""
    if offline:
        _forbid_downloads()
    import whisperx

    STATE["align_model"], STATE["device"], STATE["offline"] = align_model, device, offline
    STATE["model"] = whisperx.load_model(
        model,
        device,
        compute_type=precision,
        threads=threads or 4,
        vad_method="pyannote",
        language="en" if model.rstrip("/").endswith(".en") else None,
    )
    return {"version": _version(), "multilingual": STATE["model"].model.model.is_multilingual}


def _forbid_downloads() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch.hub

    torch.hub.download_url_to_file = _refused  # torchaudio has no switch of its own


def _refused(url: str, *_: Any, **__: Any) -> None:
    raise RuntimeError(f"downloads are off, and {url} is not here")


def _version() -> str:
    from importlib.metadata import version

    return version("whisperx")


def can_align(language: str) -> bool:
    """Tell whether a model that aligns the language is at hand, or may be downloaded."""
    if language not in ALIGNERS:
        try:
            ALIGNERS[language] = _aligner(language)
        except Exception:  # the hub, NLTK and torch each have their own way to say that it is not
            ALIGNERS[language] = None
    return ALIGNERS[language] is not None


def _aligner(language: str) -> Any:
    import whisperx

    _find_sentences(language)
    return whisperx.load_align_model(
        language,
        STATE["device"],
        model_dir=STATE["align_model"],
        model_cache_only=STATE["offline"],
    )


def _find_sentences(language: str) -> None:
    """Load what divides text into sentences: the alignment wants it, and looks for it late."""
    from whisperx import alignment

    data = f"tokenizers/punkt_tab/{alignment.PUNKT_LANGUAGES.get(language, 'english')}.pickle"
    try:
        alignment.nltk_load(data)
    except LookupError:
        if STATE["offline"]:
            raise
        alignment.nltk.download("punkt_tab", quiet=True)
        alignment.nltk_load(data)


def detect(sound: str) -> list[Any]:
    """Return the language of a sound and its probability, null where the model knows but one."""
    model = STATE["model"]
    if not model.model.model.is_multilingual:
        return ["en", None]
    import numpy as np
    from whisperx.audio import N_SAMPLES, log_mel_spectrogram

    samples = np.fromfile(sound, np.float32)[:N_SAMPLES]
    mel = log_mel_spectrogram(
        samples,
        n_mels=model.model.feat_kwargs.get("feature_size") or 80,
        padding=max(0, N_SAMPLES - len(samples)),
    )
    best = model.model.model.detect_language(model.model.encode(mel))[0][0]
    return [best[0][2:-2], float(best[1])]


def recognize(sound: str, language: str, vocabulary: list[str]) -> list[dict[str, Any]]:
    """Return the segments of a sound: text, times, and words where they could be aligned."""
    import dataclasses

    import numpy as np
    import whisperx

    model, samples = STATE["model"], np.fromfile(sound, np.float32)
    model.options = dataclasses.replace(model.options, hotwords=", ".join(vocabulary) or None)
    segments = model.transcribe(samples, batch_size=8, language=language)["segments"]
    if not segments or not can_align(language):
        return [dict(segment, words=[]) for segment in segments]
    aligner, metadata = ALIGNERS[language]
    aligned = whisperx.align(segments, aligner, metadata, samples, STATE["device"])
    return list(aligned["segments"])


VERBS: dict[str, Callable[..., Any]] = {
    "load": load,
    "can_align": can_align,
    "detect": detect,
    "recognize": recognize,
}


def _leave_own_folder() -> None:
    """Look for modules nowhere near this file: the whisperx.py beside it is not WhisperX."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]


if __name__ == "__main__":
    _leave_own_folder()
    sys.exit(main())
