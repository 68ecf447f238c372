"""Every refusal of Synorama: one type per cause, with words that tell the operator what to do.

The exit code of the command line belongs to the error's family: `SynoramaError.exit_code`.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import ClassVar


class SynoramaError(Exception):
    """A known error: what happened to which file, and what to do about it.

    Parameters
    ----------
    message
        What was found and, where it helps, what was expected. One sentence, plain words.
    path
        The file or folder that the error is about.
    hint
        What the operator can do now.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = None if path is None else fspath(path)
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.path, self.hint))


def _rebuild(kind: type[SynoramaError], message: str, path: str | None, hint: str) -> SynoramaError:
    """Let errors cross process boundaries with all that they say."""
    return kind(message, path=path, hint=hint)


# --- what the caller asked for (exit 2) ------------------------------------------------------


class UsageError(SynoramaError):
    """The request makes no sense as it stands."""

    exit_code = 2


class OutputExistsError(UsageError):
    """The output is there already and nobody allowed replacing it."""


class ConfigError(UsageError):
    """A ``rig.toml`` or ``session.toml`` says something that cannot be."""


# --- input files (exit 3) --------------------------------------------------------------------


class InputError(SynoramaError):
    """An input file or folder cannot be used."""

    exit_code = 3


class InputNotFoundError(InputError):
    """The path does not exist."""


class InputUnreadableError(InputError):
    """The path exists but may not be read."""


class EmptyFileError(InputError):
    """The file has no bytes."""


class UnknownFormatError(InputError):
    """No reader recognises the file."""


class CorruptFileError(InputError):
    """The file claims a format and breaks it."""


class TruncatedFileError(CorruptFileError):
    """The file ends before its content does, and nothing usable is left."""


class HostileFileError(CorruptFileError):
    """A file whose index would exhaust memory: no recorder writes such a thing."""


class NoMovieIndexError(CorruptFileError):
    """An MP4 or MOV without its ``moov`` box: the camera did not finish writing it."""


class NoMediaError(InputError):
    """The file opens but holds neither pictures nor sound."""


class NotAriaError(InputError):
    """A VRS file that no Aria glasses wrote."""


class OrphanChunkError(InputError):
    """A later chunk of a multi-chunk VRS file without its first chunk."""


class EmptyMeshError(InputError):
    """A scanned object without a single triangle."""


class MissingTextureError(InputError):
    """A scanned object whose texture or material file is not where it says."""


class MissingChunkError(InputError):
    """A multi-chunk VRS file of which a chunk is missing."""


class MissingChapterError(InputError):
    """A GoPro recording of which a chapter is missing."""


class ForeignChapterError(InputError):
    """A GoPro chapter that belongs to another recording."""


class MpsSchemaError(InputError):
    """An MPS output file whose columns no published schema has."""


class NoRecordingsError(InputError):
    """A session folder in which nothing was recorded."""


class UnsupportedPlatformError(InputError):
    """The file needs a vendor library that does not exist for this system."""


class ClockRangeError(InputError):
    """A time lies too far outside the range in which a clock is known."""


class FrameMismatchError(InputError):
    """Two transforms, or a transform and points, name different frames."""


class ClockMismatchError(InputError):
    """Two clock maps that do not meet in a common clock."""


class NoSoundError(InputError):
    """A recording has no sound where sound is needed."""


class DamagedSoundError(InputError):
    """Samples of sound that are no numbers, or of a kind that no recorder writes."""


class TranscriptFormatError(InputError):
    """A transcript file that does not say what its format promises."""


class UndecodableError(InputError):
    """A picture or a block of sound cannot be decoded from its bytes."""


class EmptyCloudError(InputError):
    """A cloud without a usable point."""


class CloudTooLargeError(InputError):
    """A cloud that does not fit into memory at the resolution asked for."""


class CloudUnitError(InputError):
    """A cloud whose size says that it is not in the unit that it is taken for."""


class FlatCloudError(InputError):
    """A cloud whose points lie in one place, on one line or in one plane: it fixes no pose."""


class UpDirectionError(InputError):
    """A cloud that stands on its head or lies on its side."""


class MirroredCloudError(InputError):
    """A cloud that is the mirror image of the other: an axis was swapped when it was written."""


# --- output (exit 3: the place, not the software, is at fault) -------------------------------


class OutputError(SynoramaError):
    """The result cannot be written where it was asked for."""

    exit_code = 3


class OutputNotWritableError(OutputError):
    """No permission to write there."""


class DiskFullError(OutputError):
    """The disk is full; nothing half-written was left."""


# --- dependencies (exit 4) -------------------------------------------------------------------


class MissingDependencyError(SynoramaError):
    """A library is needed for this and is not installed."""

    exit_code = 4


class ModelMissingError(MissingDependencyError):
    """A model of speech is needed and is not on this machine."""


class ModelDamagedError(MissingDependencyError):
    """A model's folder lacks a file, or a file of it is not whole."""


class ModelLanguageError(UsageError):
    """A language that the chosen model does not know."""


# --- results (exit 5) ------------------------------------------------------------------------


class RefusedError(SynoramaError):
    """A result was computed and is not good enough to be given out."""

    exit_code = 5


class SkewRefusedError(RefusedError):
    """A file does not tell how far a camera's pictures are off its sound."""


class CalibrationRefusedError(RefusedError):
    """Pictures of a board from which no lens can be told that is good for the whole picture."""


class SyncRefusedError(RefusedError):
    """No recording, or the reference, could be placed on the session clock."""


class RegistrationRefusedError(RefusedError):
    """Two clouds could not be brought together, and no transform is given out."""


class ClocksDisagreeError(RefusedError):
    """What two devices heard at the same time contradicts where their clocks were placed."""


# --- session files (exit 6) ------------------------------------------------------------------


class SessionFileError(SynoramaError):
    """A session file cannot be used."""

    exit_code = 6


class NotASessionError(SessionFileError):
    """The file is not a Synorama session."""


class SchemaVersionError(SessionFileError):
    """The session was written by a version whose schema this one cannot read."""


class IncompleteSessionError(SessionFileError):
    """The session file was not finished."""


class UnsafeSessionError(SessionFileError):
    """The session file holds a construction that could harm the reader."""


class DamagedSessionError(SessionFileError):
    """The bytes of the session file are not those that were written."""


class MediaMovedError(SessionFileError):
    """A linked media file is gone, or is no longer the file that was read."""


class NotInSessionError(SessionFileError):
    """A view, recording, track or time that the session does not have."""
