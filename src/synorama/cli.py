"""The command line: its verbs, and the one place where known errors are rendered."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from synorama import __version__, console
from synorama.commands.align import align
from synorama.commands.calibrate import calibrate
from synorama.commands.doctor import doctor
from synorama.commands.import_words import export_words, import_words
from synorama.commands.inspect import inspect
from synorama.commands.process import process, sync
from synorama.commands.register import register
from synorama.commands.seal import seal
from synorama.commands.show import show
from synorama.commands.simulate import simulate
from synorama.commands.status import status
from synorama.commands.sync_card import sync_card
from synorama.commands.transcribe import transcribe
from synorama.commands.validate import validate
from synorama.errors import MissingDependencyError, SynoramaError, UsageError

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    help="Many devices, one session, one clock, one trustworthy file.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS = (
    inspect,
    status,
    show,
    validate,
    doctor,
    process,
    sync,
    align,
    register,
    transcribe,
    seal,
    calibrate,
    sync_card,
    simulate,
)
"""In the order of the help."""

for verb in VERBS:
    app.command()(verb)
app.command("export")(export_words)
app.command("import")(import_words)  # the plain name is a word of the language


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print_lines(f"synorama {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print version."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show where an unexpected fault happened.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no warnings.")] = False,
) -> None:
    context.obj = {"verbose": verbose, "quiet": quiet}


def main() -> None:
    """Run the command line; the only place where known errors end and exit codes are chosen."""
    for stream in (sys.stdout, sys.stderr):  # names of files need not be valid in any encoding
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="synorama", standalone_mode=False)
        sys.stdout.flush()
    except SynoramaError as error:
        return _refuse(error, arguments)
    except TyperException as error:
        return _misused(error, arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more
        return 0
    except ImportError as error:
        return _refuse(_missing(error), arguments)
    except Exception as error:
        return _fault(error, arguments)
    if code == INTERRUPTED:  # which typer returns and says nothing
        return _interrupted(arguments)
    return code if isinstance(code, int) else 0


def _print_refusal(arguments: list[str], document: dict[str, Any]) -> None:
    if "--json" in arguments:
        console.print_json(document)


def _refuse(error: SynoramaError, arguments: list[str]) -> int:
    _print_refusal(arguments, console.error_document(error))
    console.print_error(error)
    return error.exit_code


def _misused(error: TyperException, arguments: list[str]) -> int:
    error.show()  # type: ignore[attr-defined]  # all that typer raises itself can
    _print_refusal(arguments, console.error_document(UsageError(error.format_message())))
    return UsageError.exit_code


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"the library '{error.name}' is needed for this and cannot be loaded: {error}",
        hint="'synorama doctor' says how to get it",
    )


def _interrupted(arguments: list[str]) -> int:
    text = "interrupted; what is done stays done, run the same command to go on"
    _print_refusal(arguments, _document("Interrupted", text))
    sys.stderr.write(text + "\n")
    return INTERRUPTED


def _fault(error: Exception, arguments: list[str]) -> int:
    """Own up to a fault of ours: short by default, with the way there under ``-v``."""
    import traceback

    if "-v" in arguments or "--verbose" in arguments:
        traceback.print_exception(error)
    text, hint = f"{type(error).__name__}: {error}", "run again with 'synorama -v ...' and report"
    sys.stderr.write(f"internal fault: {text}\n  hint: {hint} what it prints\n")
    with suppress(OSError):  # which may be the very fault
        _print_refusal(arguments, _document("InternalFault", text, hint + " what it prints"))
    return 1


def _document(kind: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, "path": None, "hint": hint}}
