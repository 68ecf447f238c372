"""What was measured, kept in the lab's ``rig.toml`` beside all that it says already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from synorama.capture.config import load_rig
from synorama.errors import ConfigError, UsageError
from synorama.session.storage import whole_file

if TYPE_CHECKING:
    from synorama.calibration.lens import CameraLens
    from synorama.calibration.skew import CameraSkew

__all__ = ["keep_lens", "keep_skew"]


def keep_skew(path: Path, found: CameraSkew, *, serial: str | None = None) -> str:
    """Write a skew into a ``rig.toml``, made if it is not there, as a whole or not at all.

    What it says already stays, comments too. The skew goes to the device with the serial number;
    where nobody knows that, to the model.

    Parameters
    ----------
    serial
        The camera's number, where its file does not tell it.

    Returns
    -------
    str
        Whose it became, in words.

    Raises
    ------
    UsageError
        Neither serial number nor model is known.
    ConfigError
        The file says something that cannot be.
    OutputError
        It cannot be written.
    """
    import tomlkit

    number = serial or found.serial
    if not (number or found.model):
        raise UsageError(
            "the file tells neither a serial number nor a model to keep the skew under",
            path=path,
            hint="give the camera's with --serial",
        )
    if path.exists():
        load_rig(path)  # or it says what is wrong with it
    document = tomlkit.parse(path.read_text("utf-8") if path.exists() else "")
    key, value = ("serial", number) if number else ("model", found.model)
    entry = _entry(document, "devices" if number else "models", key, value, path)
    entry["picture_to_sound_skew_ms"] = round(found.skew_ms, 2)
    entry["picture_to_sound_within_ms"] = round(found.within_ms, 2)
    with whole_file(path) as temporary:
        temporary.write_text(tomlkit.dumps(document), "utf-8")
    return f"{key} {value}"


def keep_lens(path: Path, found: CameraLens, *, serial: str | None = None) -> str:
    """Write a lens into a ``rig.toml`` under the camera's serial number; as `keep_skew` does.

    A lens belongs to one camera, never to a model.

    Raises
    ------
    UsageError
        No serial number is known.
    ConfigError
        The file says something that cannot be.
    OutputError
        It cannot be written.
    """
    import tomlkit

    number = serial or found.serial
    if not number:
        raise UsageError(
            "the files do not tell the serial number of the camera to keep its lens under",
            path=path,
            hint="give the camera's with --serial",
        )
    if path.exists():
        load_rig(path)
    document = tomlkit.parse(path.read_text("utf-8") if path.exists() else "")
    entry = _entry(document, "devices", "serial", number, path)
    lens = found.fitted.lens
    table = tomlkit.table()
    table["model"], table["width"], table["height"] = lens.model, lens.width, lens.height
    table["params"] = [round(float(value), 8) for value in lens.params]
    table["rms_px"] = round(found.fitted.rms_px, 3)
    entry["intrinsics"] = table
    with whole_file(path) as temporary:
        temporary.write_text(tomlkit.dumps(document), "utf-8")
    return f"serial {number}"


def _entry(document: Any, table: str, key: str, value: str, path: Path) -> Any:
    """Return the entry of a device or a model, a new one where there is none."""
    import tomlkit

    entries = document.setdefault(table, tomlkit.aot())
    found = next((e for e in entries if e.get(key) == value), None)
    if found is not None:
        return found
    if not isinstance(entries, tomlkit.items.AoT):
        raise ConfigError(
            f"'{table}' is written on one line, to which nothing can be added",
            path=path,
            hint=f"write each of them under a heading [[{table}]]",
        )
    new = tomlkit.table()
    new[key] = value
    if table == "devices":
        new["name"] = _free_name(entries)
    entries.append(new)
    return entries[-1]


def _free_name(entries: Any) -> str:
    used = {e.get("name") for e in entries}
    return next(n for n in (f"camera-{k}" for k in range(1, 10_000)) if n not in used)
