"""Discovery: which files are one recording, what they are called, and what is refused."""

from __future__ import annotations

import wave
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synorama.capture import open_recording
from synorama.capture.config import (
    RecordingEntry,
    load_rig,
    load_session_config,
    session_toml,
)
from synorama.capture.discover import discover, open_found
from synorama.capture.registry import broken_plugins, readers
from synorama.errors import (
    ConfigError,
    EmptyFileError,
    InputNotFoundError,
    InputUnreadableError,
    NoRecordingsError,
    UnknownFormatError,
)


def tone(path: Path, seconds: float = 0.5) -> Path:
    """Write a short sound: the smallest thing that is a recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\x00\x10" * int(8000 * seconds))
    return path


def test_names_are_neutral_and_stable(tmp_path: Path) -> None:
    for name in ("b/Anna on the left.wav", "a/x.wav", ".hidden/y.wav", "a/.z.wav"):
        tone(tmp_path / name)
    found = discover(tmp_path).found
    assert [(f.id, f.path.name) for f in found] == [
        ("webcam-1", "x.wav"),
        ("webcam-2", "Anna on the left.wav"),
    ]
    assert open_found(found[1]).id == "webcam-2"


def test_session_toml_names_recordings_and_leaves_out_what_it_ignores(tmp_path: Path) -> None:
    tone(tmp_path / "a.wav")
    tone(tmp_path / "b.wav")
    tone(tmp_path / "test.wav")
    (tmp_path / "session.toml").write_text(
        '[session]\nid = "kitchen-07"\nignore = ["test.wav"]\n'
        '[[recordings]]\npath = "b.wav"\nid = "front"\nrole = "view"\nparticipant = "P01"\n'
        "offset_s = 1.5\n"
    )
    discovery = discover(tmp_path)
    assert discovery.session_id == "kitchen-07"
    assert [f.id for f in discovery.found] == ["webcam-1", "front"]
    front = discovery.found[1]
    assert (front.role, front.participant, front.offset_s) == ("view", "P01", 1.5)
    assert [p.name for p in discovery.ignored] == ["test.wav"]


def test_scans_and_objects_are_kept_aside(tmp_path: Path) -> None:
    tone(tmp_path / "a.wav")
    tone(tmp_path / "scan" / "note.wav")
    for name in ("scan/room.e57", "scan/room.txt", "objects/cup.obj", "room.e57"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    discovery = discover(tmp_path)
    assert [p.name for p in discovery.scans] == ["room.e57"]
    assert [p.name for p in discovery.objects] == ["cup.obj"]
    assert [f.path.name for f in discovery.found] == ["a.wav"]


def test_files_that_nobody_can_read_are_told_and_do_not_vanish(tmp_path: Path) -> None:
    tone(tmp_path / "a.wav")
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "garbage.vrs").write_bytes(bytes(range(256)) * 40)
    unread = {Path(str(e.path)).name: type(e) for e in discover(tmp_path).unread}
    assert unread == {"empty.mp4": EmptyFileError, "garbage.vrs": UnknownFormatError}


def test_what_is_no_session_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        discover(tmp_path / "nowhere")
    with pytest.raises(NoRecordingsError, match="none of its 0 files"):
        discover(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(NoRecordingsError, match="none of its 1 files"):
        discover(tmp_path)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        open_recording(tmp_path / "nothing.mp4")
    with pytest.raises(UnknownFormatError, match="folder"):
        open_recording(tmp_path)
    (tmp_path / "empty.wav").touch()
    with pytest.raises(EmptyFileError):
        open_recording(tmp_path / "empty.wav")


def test_an_unreadable_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tone(tmp_path / "a.wav")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything, whatever its mode
    with pytest.raises(InputUnreadableError, match="permission"):
        open_recording(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[recordings]]\npath = 'a.wav'\nname = 'x'\n", "recordings.0.name"),
        ("[[recordings]]\npath = 'gone.wav'\n", "gone.wav"),
        ("[[recordings]]\npath = 'a.wav'\nid = '../x'\n", "recordings.0.id"),
        ("[[recordings]]\npath = 'a.wav'\n[[recordings]]\npath = 'a.wav'\n", "twice"),
        ("[[recordings]]\npath = 'notes.txt'\n", "no recording"),
        ("[session]\nignore = ['nope*']\n", "nope"),
        ("[session\n", "TOML"),
        ("\xff", "TOML"),
    ],
)
def test_a_session_toml_that_cannot_be_is_refused(tmp_path: Path, text: str, why: str) -> None:
    tone(tmp_path / "a.wav")
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "session.toml").write_bytes(text.encode("latin1"))
    with pytest.raises(ConfigError, match=why):
        discover(tmp_path)


def test_a_rig_names_a_device_by_its_serial(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    path.write_text('[[devices]]\nserial = "C1"\nname = "gopro-front"\nrole = "front"\n')
    device = load_rig(path).by_serial("C1")
    assert device is not None
    assert (device.name, device.role) == ("gopro-front", "front")
    assert load_rig(path).by_serial("") is None
    path.write_text(path.read_text() * 2)
    with pytest.raises(ConfigError, match="twice"):
        load_rig(path)


names = st.text(min_size=1, max_size=20).filter(lambda s: "/" not in s and "\0" not in s)


@given(st.lists(names, min_size=1, max_size=4, unique=True))
def test_a_written_session_toml_reads_back(paths: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        kept = []
        for k, name in enumerate(paths):
            try:
                (folder / name).touch(exist_ok=False)
            except (OSError, UnicodeEncodeError):
                continue  # no file can have this name here
            kept.append(RecordingEntry(path=name, id=f"cam-{k}"))
        (folder / "session.toml").write_text(session_toml("s-1", kept), "utf-8")
        config = load_session_config(folder)
        assert config.session.id == "s-1"
        assert list(config.recordings) == kept


def test_readers_are_there_and_the_generic_one_comes_last() -> None:
    assert [r.name for r in readers()] == ["aria", "gopro", "webcam"]
    assert broken_plugins() == ()
