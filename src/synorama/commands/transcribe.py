"""``synorama transcribe``: plain sound or video files, or a session, to words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synorama import console
from synorama.commands.options import Json, NoProgress
from synorama.commands.shared import check_free, wants_progress, workspace
from synorama.errors import UsageError

if TYPE_CHECKING:
    from synorama.records import Segment, Transcript
    from synorama.speech import WindowStore

__all__ = ["transcribe"]


Files = Annotated[
    list[Path],
    typer.Argument(help="Sound or video files; or one session folder.", readable=False),
]
Together = Annotated[
    bool | None,
    typer.Option(
        "--together/--apart",
        help="Whether the files began at the same moment, each worn by one person: tell who "
        "speaks. By default they are if they heard the same.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", help="Name or folder; small (CPU) by default.")
]
Language = Annotated[str | None, typer.Option("--language", help="Like en; found out by default.")]
Vocabulary = Annotated[
    list[str] | None, typer.Option("--word", help="A word that is likely to be said.")
]
Backend = Annotated[str, typer.Option("--backend", help="auto, faster-whisper or whisperx.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Precision = Annotated[str, typer.Option("--precision", help="auto, int8, float16...")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="0: all.")]
Offline = Annotated[bool, typer.Option("--offline", help="Download nothing.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write a file; its name tells the format."),
]
Form = Annotated[
    str | None, typer.Option("--format", help="Of --output, where its name does not tell.")
]


def transcribe(
    context: typer.Context,
    files: Files,
    together: Together = None,
    model: Model = None,
    language: Language = None,
    vocabulary: Vocabulary = None,
    backend: Backend = "auto",
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
    offline: Offline = False,
    output: Output = None,
    form: Form = None,
    as_json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Tell what is said in sound or video files, when, and by whom."""
    from synorama.speech.backends import BackendChoice, load_recognizer
    from synorama.speech.formats import format_of
    from synorama.speech.transcribe import Asked
    from synorama.transcription import transcribe_files

    if output:
        form = format_of(output, form)
        check_free(output, "give another name, or remove that file first")
    if any(file.is_dir() for file in files):
        chosen = model or language or vocabulary or together is not None
        transcript = _session(context, files, bool(chosen), no_progress)
        _give(context, transcript, output, form, as_json)
        return
    choice = BackendChoice(backend, model, device, precision, offline, threads, language=language)
    recognizer = load_recognizer(choice)
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        transcript = transcribe_files(
            files,
            recognizer,
            Asked(language, tuple(vocabulary or ()), correct_offsets=True),
            together=together,
            store=_store(output),
            progress=lambda done, total: progress("transcribe", done, total),
        )
    _give(context, transcript, output, form, as_json)


def _session(
    context: typer.Context, files: list[Path], chosen: bool, no_progress: bool
) -> Transcript:
    """Bring the stage transcribe of a session up to date, and what it needs."""
    from synorama.pipeline import process, status
    from synorama.session import read_transcript_part

    if len(files) > 1 or chosen:
        raise UsageError(
            "a session folder is transcribed by itself, as its session.toml says",
            path=files[0],
            hint="give the folder alone; model, language and vocabulary stand under [speech]",
        )
    work = workspace(files[0], None, None, None, False)
    with console.progress_bar(shown=wants_progress(context, no_progress)) as progress:
        states = {run.name: run.state for run in status(work)}
        for stage in ("ingest", "sync", "transcribe"):
            if states[stage] != "up-to-date":
                process(work, only=stage, progress=progress)
    return read_transcript_part(work.part("transcribe"))


def _give(
    context: typer.Context,
    transcript: Transcript,
    output: Path | None,
    form: str | None,
    as_json: bool,
) -> None:
    if output and form:
        _write(transcript, output, form)
    _print(context, transcript, as_json)


def _store(output: Path | None) -> WindowStore:
    """Finished windows wait beside the output; without one nothing is left behind."""
    from synorama.speech import WindowStore as Store

    return Store(output and output.with_name(f".{output.name}.windows"))


def _write(transcript: Transcript, output: Path, form: str) -> None:
    from synorama.session.storage import whole_file
    from synorama.speech.formats import written

    data = written(transcript, form)
    with whole_file(output, overwrite=False) as temporary:
        temporary.write_bytes(data)
    _store(output).clear()


def _print(context: typer.Context, transcript: Transcript, as_json: bool) -> None:
    from synorama.speech.formats.document import as_document

    if as_json:
        console.print_json(as_document(transcript))
    else:
        console.print_lines(*(_line(s, transcript) for s in transcript.segments))
    if not context.obj["quiet"]:
        for text in transcript.warnings:
            console.warn(text)


def _line(segment: Segment, transcript: Transcript) -> str:
    text = " ".join(transcript.words[k].text for k in segment.words)
    who = segment.speaker or segment.device
    return f"{segment.start_ns / 1e9:9.2f} {segment.end_ns / 1e9:9.2f}  {who}: {text}"
