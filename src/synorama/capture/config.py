"""``rig.toml`` of a lab and ``session.toml`` of a session: what files alone cannot tell.

``rig.toml`` says what a device is, by its serial number, for all sessions of a lab::

    [[devices]]
    serial = "C3441324567890"
    name = "gopro-front"
    role = "front"
    picture_to_sound_skew_ms = 12.0
    picture_to_sound_within_ms = 1.5

    [[models]]
    model = "HERO12 Black"
    picture_to_sound_skew_ms = 10.0
    picture_to_sound_within_ms = 8.0

A skew carries the times of pictures to those of sound, ``t_sound = t_picture + skew``: it is
positive where the sound of a moment is stamped later than its picture. ``within`` is the half
width of its 95 % interval. A device's own goes before that of its model.

``session.toml`` says what is particular to one session; its paths are relative to it::

    [session]
    id = "kitchen-07"
    ignore = ["webcam/test.mp4"]

    [[recordings]]
    path = "helper/recording.vrs"
    id = "helper"
    participant = "P02"

    [[recordings]]
    path = "webcam.webm"
    position_m = [1.20, -2.05, 1.40]
    position_sigma_m = 0.05

    [[objects]]
    path = "objects/mug.obj"
    id = "mug"
    unit = "mm"
    T_scan_object = [[1, 0, 0, 0.42], [0, 1, 0, -1.3], [0, 0, 1, 0.9], [0, 0, 0, 1]]
    refine = true

    [speech]
    language = "en"
    vocabulary = ["colander", "whisk"]

A position is that of a camera that stands, in the world frame of the trajectories (MPS), and
counts where registration finds none; ``position_sigma_m`` is one sigma along each axis. An object
stands where ``T_world_object`` says, or in the frame of a scan ``T_scan_object``, which ``refine``
settles on the scan's points.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synorama.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LONGEST_OFFSET_S",
    "CameraModel",
    "Device",
    "Intrinsics",
    "ObjectEntry",
    "Position",
    "RecordingEntry",
    "Rig",
    "SessionConfig",
    "SessionEntry",
    "Skew",
    "SpeechEntry",
    "find_rig",
    "load_rig",
    "load_session_config",
    "session_toml",
]

Model = TypeVar("Model", bound="_Strict")
LONGEST_OFFSET_S = 4e9  # more than a century: any clock against any other
Offset = Annotated[float, Field(allow_inf_nan=False, ge=-LONGEST_OFFSET_S, le=LONGEST_OFFSET_S)]
UNSTATED_WITHIN_MS = 20.0  # of a skew that came without an interval: as of none
Metres = Annotated[float, Field(allow_inf_nan=False, ge=-1000, le=1000)]
Milliseconds = Annotated[float, Field(allow_inf_nan=False, ge=-2000, le=2000)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
Row = tuple[Metres, Metres, Metres, Metres]


class Skew(NamedTuple):
    """How far pictures are off their sound [ns], and half the width of its 95 % interval."""

    skew_ns: int
    within_ns: int


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Position(NamedTuple):
    """Where a camera stands in the world frame of the trajectories, and one sigma of each axis."""

    position_m: tuple[float, float, float]
    sigma_m: float


class _Skewed(_Strict):
    """What may have a skew between picture and sound."""

    picture_to_sound_skew_ms: Milliseconds | None = None
    picture_to_sound_within_ms: Annotated[Milliseconds, Field(ge=0)] | None = None

    @property
    def skew(self) -> Skew | None:
        """The skew between picture and sound, if it is known."""
        if self.picture_to_sound_skew_ms is None:
            return None
        within = self.picture_to_sound_within_ms
        within_ns = round((UNSTATED_WITHIN_MS if within is None else within) * 1e6)
        return Skew(round(self.picture_to_sound_skew_ms * 1e6), within_ns)


class Intrinsics(_Strict):
    """A camera's lens as `synorama calibrate --intrinsics` measured it, for pictures of one size.

    ``params`` are focal lengths and principal point [px], then the distortion as OpenCV has it.
    """

    model: Literal["fisheye", "pinhole"]
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    params: Annotated[tuple[float, ...], Field(min_length=8, max_length=9)]
    rms_px: Annotated[float, Field(ge=0)] | None = None


class Device(_Skewed):
    """One device of the lab, known by its serial number."""

    serial: str
    name: Name
    role: str | None = None
    intrinsics: Intrinsics | None = None


class CameraModel(_Skewed):
    """What is true of all devices of a model."""

    model: str


class Rig(_Strict):
    """The devices of a lab."""

    devices: tuple[Device, ...] = ()
    models: tuple[CameraModel, ...] = ()

    def by_serial(self, serial: str) -> Device | None:
        """Return the device with this serial number."""
        return next((d for d in self.devices if serial and d.serial == serial), None)

    def skew_of(self, serial: str, model: str) -> Skew | None:
        """Return the skew between picture and sound of a device, else of its model."""
        device = self.by_serial(serial)
        if device is not None and device.skew is not None:
            return device.skew
        return next((m.skew for m in self.models if model and m.model == model), None)


class RecordingEntry(_Strict):
    """What the operator says of one recording; ``path`` is any of its files."""

    path: str
    id: Name | None = None
    role: str | None = None
    participant: str | None = None
    offset_s: Offset | None = None
    position_m: tuple[Metres, Metres, Metres] | None = None
    position_sigma_m: Annotated[Metres, Field(gt=0)] = 0.05

    @property
    def position(self) -> Position | None:
        """Where a camera stands, if the operator says so."""
        if self.position_m is None:
            return None
        return Position(self.position_m, self.position_sigma_m)


class SessionEntry(_Strict):
    """What the operator says of the session as a whole."""

    id: Name | None = None
    ignore: tuple[str, ...] = ()


class ObjectEntry(_Strict):
    """What the operator says of a scanned object; ``path`` is its main file.

    ``T_world_object`` or ``T_scan_object``, four rows of four, says where it stands; with
    ``refine`` the latter is a start, and the points of ``scan`` say the rest.
    """

    path: str
    id: Name | None = None
    unit: Literal["m", "cm", "mm"] | None = None
    T_world_object: tuple[Row, Row, Row, Row] | None = None
    T_scan_object: tuple[Row, Row, Row, Row] | None = None
    scan: Name = "scan-1"
    refine: bool = False

    @model_validator(mode="after")
    def _one_place(self) -> ObjectEntry:
        if self.T_world_object is not None and self.T_scan_object is not None:
            raise ValueError("an object has one place: give T_world_object or T_scan_object")
        if self.refine and self.T_scan_object is None:
            raise ValueError("'refine' needs T_scan_object to start from")
        return self


class SpeechEntry(_Strict):
    """What the operator says of the session's speech.

    ``vocabulary`` holds words that are likely to be said, such as the objects of the labels.
    """

    transcribe: bool = True
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] | None = None
    vocabulary: tuple[str, ...] = ()
    model: str | None = None
    backend: Literal["auto", "faster-whisper", "whisperx"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"


class SessionConfig(_Strict):
    """The content of a ``session.toml``."""

    session: SessionEntry = SessionEntry()
    recordings: tuple[RecordingEntry, ...] = ()
    objects: tuple[ObjectEntry, ...] = ()
    speech: SpeechEntry = SpeechEntry()


def find_rig(folder: Path) -> Path | None:
    """Return the ``rig.toml`` of the session folder or of the folder that holds it."""
    places = (folder / "rig.toml", folder.resolve().parent / "rig.toml")
    return next((p for p in places if p.is_file()), None)


def load_rig(path: Path | None) -> Rig:
    """Read a ``rig.toml``; an empty rig for None.

    Raises
    ------
    ConfigError
        It cannot be read, or says something that cannot be.
    """
    rig = Rig() if path is None else _load(path, Rig)
    _refuse_twice(path, "serial", [d.serial for d in rig.devices])
    _refuse_twice(path, "name", [d.name for d in rig.devices])
    _refuse_twice(path, "model", [m.model for m in rig.models])
    return rig


def load_session_config(folder: Path) -> SessionConfig:
    """Read the folder's ``session.toml``; an empty one where there is none.

    Raises
    ------
    ConfigError
        It cannot be read, or says something that cannot be.
    """
    path = folder / "session.toml"
    if not path.is_file():
        return SessionConfig()
    config = _load(path, SessionConfig)
    _refuse_twice(path, "path", [PurePath(r.path).as_posix() for r in config.recordings])
    _refuse_twice(path, "id", [r.id for r in config.recordings if r.id])
    _refuse_twice(path, "path", [PurePath(o.path).as_posix() for o in config.objects])
    _refuse_twice(path, "id", [o.id for o in config.objects if o.id])
    _refuse_absent(path, "recording", [entry.path for entry in config.recordings])
    _refuse_absent(path, "object", [entry.path for entry in config.objects])
    return config


def _refuse_absent(path: Path, what: str, named: Sequence[str]) -> None:
    for name in named:
        if not (path.parent / name).exists():
            raise ConfigError(
                f"it names the {what} '{name}', which is not there",
                path=path,
                hint="correct the path, or remove the entry",
            )


def session_toml(session_id: str, entries: Sequence[RecordingEntry]) -> str:
    """Write a ``session.toml`` that says what was found, for the operator to complete."""
    lines = ["# Written by synorama inspect --write. Paths are relative to this file.", ""]
    lines += ["[session]", f"id = {_quoted(session_id)}", "ignore = []"]
    for entry in entries:
        lines += ["", "[[recordings]]"]
        lines += [f"{k} = {_quoted(v)}" for k, v in entry if isinstance(v, str)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Write a TOML basic string."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in plain) + '"'


def _load(path: Path, model: type[Model]) -> Model:
    try:
        return model.model_validate(_parse(path))
    except ValidationError as error:
        raise ConfigError(_first_fault(error), path=path, hint="correct the file") from error


def _parse(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        parsed: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(
            f"it is no readable TOML: {error}", path=path, hint="correct the file, or remove it"
        ) from error
    return parsed


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"])
    words = fault["msg"][:1].lower() + fault["msg"][1:]
    if fault["type"] == "string_pattern_mismatch":
        words = "only letters, digits, - and _ are allowed, and a letter or digit first"
    return f"'{where}': {words}"


def _refuse_twice(path: Path | None, what: str, values: Sequence[str]) -> None:
    double = next((v for k, v in enumerate(values) if v in values[:k]), None)
    if double is not None:
        raise ConfigError(
            f"the {what} '{double}' is given twice", path=path, hint="correct the file"
        )
