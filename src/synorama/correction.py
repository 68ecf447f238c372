"""A corrected transcript comes back into its session; a session's transcript goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from synorama.errors import NotInSessionError, UsageError
from synorama.pipeline.run import process
from synorama.pipeline.transcribe import corrections_path
from synorama.pipeline.workspace import Workspace
from synorama.records import Transcript, Word
from synorama.session import Session, open_session
from synorama.session.storage import whole_file
from synorama.speech.correct import Correction, corrected
from synorama.speech.formats import document, format_of, read_words, written

__all__ = [
    "Imported",
    "compare_transcript",
    "export_transcript",
    "import_transcript",
    "session_zero_ns",
]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an imported file changed: words new, changed, moved in time, and gone."""

    words: int
    added: int
    changed: int
    retimed: int
    removed: int

    def as_dict(self) -> dict[str, int]:
        """Return JSON-able values."""
        return asdict(self)


def session_zero_ns(session: Path, recording: str | None = None) -> int:
    """Return the session time that files count from.

    Parameters
    ----------
    recording
        Whose first moment is zero, for a file to go with that film; None for the earliest of all.

    Raises
    ------
    NotInSessionError
        There is no such recording, or it is not on the session clock.
    """
    with open_session(session, warn=False) as opened:
        if recording:
            return _first_ns(opened, recording)
        placed = [_first_ns(opened, name) for name in opened.recordings if _is_placed(opened, name)]
    if not placed:
        raise NotInSessionError("no recording is on the session clock", path=session)
    return min(placed)


def _is_placed(opened: Session, name: str) -> bool:
    try:
        opened.clock(name)
    except NotInSessionError:
        return False
    return opened.recording(name).first_ns is not None


def _first_ns(opened: Session, name: str) -> int:
    first = opened.recording(name).first_ns
    if first is None:
        raise NotInSessionError(f"recording '{name}' has no times", path=opened.path)
    return int(opened.clock(name).apply(np.array([first], np.int64))[0])


def _transcript(session: Path) -> Transcript:
    with open_session(session, warn=False) as opened:
        transcript = opened.transcript
    if transcript is None:
        raise NotInSessionError(
            "the session has no transcript",
            path=session,
            hint="'synorama process' makes one where a model of speech is at hand",
        )
    return transcript


def export_transcript(
    session: Path, output: Path, form: str | None = None, *, recording: str | None = None
) -> int:
    """Write a session's transcript to a file, and return how many words it has.

    Raises
    ------
    NotInSessionError
        The session has no transcript, or no such recording.
    OutputError
        It cannot be written.
    """
    name = format_of(output, form)
    transcript = _transcript(session)
    data = written(transcript, name, zero_ns=session_zero_ns(session, recording))
    with whole_file(output, overwrite=False) as temporary:
        temporary.write_bytes(data)
    return len(transcript.words)


def import_transcript(
    work: Workspace,
    path: Path,
    form: str | None = None,
    *,
    recording: str | None = None,
    by: str | None = None,
) -> Imported:
    """Bring a corrected transcript file into its session, and make the session anew with it.

    Parameters
    ----------
    recording
        Whose first moment is zero in the file, as it was exported.
    by
        Pseudonym of who corrected it.

    Raises
    ------
    TranscriptFormatError
        The file does not hold what its format promises.
    UsageError
        There is no session yet, or the file has no words.
    """
    before, made, imported = _compared(work, path, form, recording)
    _keep(work, made.transcript.words, _provenance(before, path, form, by, imported))
    process(work)
    return imported


def compare_transcript(
    work: Workspace,
    path: Path,
    form: str | None = None,
    *,
    recording: str | None = None,
    by: str | None = None,
) -> Imported:
    """Tell what `import_transcript` would change, and change nothing."""
    return _compared(work, path, form, recording)[2]


def _compared(
    work: Workspace, path: Path, form: str | None, recording: str | None
) -> tuple[Transcript, Correction, Imported]:
    session = work.session
    if not session.is_file():
        raise UsageError("there is no session yet", path=work.folder, hint="run process first")
    words = read_words(path, form, zero_ns=session_zero_ns(session, recording))
    if not words:
        raise UsageError(
            "there are no words in it", path=path, hint="export the transcript again, and edit that"
        )
    with open_session(session, warn=False) as opened:
        before = opened.transcript or Transcript(())
    made = corrected(before, words)
    imported = Imported(len(words), made.added, made.changed, made.retimed, made.removed)
    return before, made, imported


def _provenance(
    before: Transcript, path: Path, form: str | None, by: str | None, imported: Imported
) -> list[Mapping[str, Any]]:
    import blake3

    earlier = list(before.facts.get("corrections", ()))
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    facts = {
        "file": path.name,
        "digest": blake3.blake3(path.read_bytes()).hexdigest(),
        "format": format_of(path, form),
        "by": by,
        "imported_utc": now,
    }
    return [*earlier, {**facts, **imported.as_dict()}]


def _keep(work: Workspace, words: Sequence[Word], told: Sequence[Mapping[str, Any]]) -> None:
    path = corrections_path(work)
    path.parent.mkdir(parents=True, exist_ok=True)
    zero_ns = next((w.start_ns for w in words if w.start_ns is not None), 0)
    kept = document.as_document(Transcript(tuple(words)), zero_ns) | {"corrections": list(told)}
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
