"""The stages transcribe, what was said and by whom, and words, what a person made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.capture.config import SpeechEntry, load_session_config
from synorama.pipeline.stage import Progress, Stage
from synorama.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from synorama.records import Transcript
    from synorama.speech.backends import BackendChoice

__all__ = ["CORRECTIONS", "TRANSCRIBE", "WORDS", "corrections_path"]

CORRECTIONS = "corrections/words.json"


def corrections_path(work: Workspace) -> Path:
    """Return where the words that a person brought back are kept."""
    return work.own / CORRECTIONS


def _asked(work: Workspace) -> SpeechEntry:
    return load_session_config(work.folder).speech


def _choice(work: Workspace) -> BackendChoice:
    """Return the backend; a stage downloads nothing, so that no session waits for a network."""
    from synorama.speech.backends import BackendChoice

    entry = _asked(work)
    return BackendChoice(
        backend=entry.backend,
        model=entry.model,
        processor=entry.device,
        offline=True,
        language=entry.language,
    )


def _not_transcribed_because(work: Workspace) -> str | None:
    if not _asked(work).transcribe:
        return "session.toml says so"
    from synorama.speech.backends import unavailable_because

    return unavailable_because(_choice(work))


def _inputs(work: Workspace) -> Any:
    """Return what was asked for, and the model by its name and the sizes of its files."""
    if _not_transcribed_because(work) is not None:
        return None
    from synorama.speech.backends import model_folder

    folder = model_folder(_choice(work))
    files = sorted((p.name, p.stat().st_size) for p in folder.iterdir() if p.is_file())
    return [_asked(work).model_dump(), folder.name, files]


def _transcribe(work: Workspace, progress: Progress) -> None:
    from synorama.session import read_ingest, read_sync, write_transcript
    from synorama.speech import WindowStore
    from synorama.speech.backends import load_recognizer
    from synorama.speech.transcribe import Asked
    from synorama.transcription import transcribe_session

    entry, store = _asked(work), WindowStore(work.own / "windows")
    transcript = transcribe_session(
        read_ingest(work.part("ingest")),
        read_sync(work.part("sync")).clocks,
        load_recognizer(_choice(work)),
        Asked(entry.language, entry.vocabulary),
        store=store,
        progress=lambda done, total: progress("transcribe", done, total),
    )
    write_transcript(work.part("transcribe"), transcript)
    store.clear()


TRANSCRIBE = Stage(
    name="transcribe",
    version=4,
    needs=("ingest", "sync"),
    libraries=("faster-whisper", "ctranslate2", "pocketsphinx", "av"),
    inputs=_inputs,
    run=_transcribe,
    result=lambda work: work.part("transcribe"),
    skipped_because=_not_transcribed_because,
)


# --- words: what a person corrected is never lost to a new transcription ----------------------


def _no_words_because(work: Workspace) -> str | None:
    if corrections_path(work).is_file():
        return None
    return None if _not_transcribed_because(work) is None else "nothing is transcribed"


def _words(work: Workspace, progress: Progress) -> None:
    from synorama.session import write_transcript

    progress("words", 0, 1)
    write_transcript(work.part("words"), _with_corrections(work), stage="words")
    progress("words", 1, 1)


def _with_corrections(work: Workspace) -> Transcript:
    from synorama.records import Transcript
    from synorama.session import read_transcript_part

    heard = Transcript(())
    if _not_transcribed_because(work) is None:
        heard = read_transcript_part(work.part("transcribe"))
    path = corrections_path(work)
    return _corrected(heard, path) if path.is_file() else heard


def _corrected(heard: Transcript, path: Path) -> Transcript:
    from dataclasses import replace

    from synorama.speech.correct import corrected
    from synorama.speech.formats import read_words

    kept = json.loads(path.read_text("utf-8"))
    made = corrected(heard, read_words(path, "json", zero_ns=kept["zero_ns"]))
    facts = {**made.transcript.facts, "corrections": kept["corrections"]}
    return replace(made.transcript, facts=facts)


def _stamp(work: Workspace) -> Any:
    path = corrections_path(work)
    return [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else None


WORDS = Stage(
    name="words",
    version=1,
    needs=("transcribe",),
    libraries=(),
    inputs=_stamp,
    run=_words,
    result=lambda work: work.part("words"),
    skipped_because=_no_words_because,
)
