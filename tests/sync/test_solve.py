"""Whole sessions: every recording placed by the best that it has, or refused in words."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synorama.errors import NoRecordingsError, UsageError
from synorama.media.audio import MonoSound
from synorama.records import AudioTrack, FileRef, Recording, SyncResult, TimeMapping
from synorama.sync import synchronize
from tests.sync.sounds import RATE, affine, heard, room, speech

NS = 1_000_000_000


@pytest.fixture(scope="module")
def talk() -> NDArray[np.float64]:
    return speech(60, 21)


def recorded(folder: Path, sound: MonoSound, device: str = "webcam", **facts: Any) -> Recording:
    """Write a sound as a file and describe it."""
    path = folder / f"{sound.name}.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(sound.samples.tobytes())
    n = len(sound.samples)
    track = AudioTrack(
        "audio", "pcm_s16le", float(RATE), 1, n, np.array([[0, sound.start_ns]]), "container",
        stream_index=0,
    )  # fmt: skip
    status = path.stat()
    files = (FileRef(path, status.st_size, status.st_mtime_ns),)
    return Recording(sound.name, device, files, {"audio": track}, **facts)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, talk: NDArray[np.float64]) -> list[Recording]:
    folder = tmp_path_factory.mktemp("session")
    server = heard(room(talk, 1), affine(0), 55, name="leader", seed=1, start_ns=10**15)
    client = heard(room(talk, 2), affine(2.0), 50, name="helper", seed=2, start_ns=5 * NS)
    camera = heard(room(talk, 3), affine(4.5, 25), 45, name="gopro", snr_db=5, seed=3)
    noise = heard(room(speech(40, 99), 3), affine(0), 38, name="stranger", seed=4)
    t = 5 * NS + np.arange(50) * NS
    pairs = np.column_stack([t, t - 5 * NS + 2 * NS + 10**15])
    roles: dict[str, Any] = {"shared_session_id": "s"}
    return [
        recorded(folder, camera),
        recorded(folder, client, "aria", sync_role="client",
                 time_mappings=(TimeMapping("tic_sync", pairs),), **roles),
        recorded(folder, server, "aria", sync_role="server", **roles),
        recorded(folder, noise),
    ]  # fmt: skip


def at(result: SyncResult, name: str, t_ns: int) -> int:
    return int(result.clocks[name].apply(np.array([t_ns], np.int64))[0])


def test_session(session: list[Recording]) -> None:
    told: list[tuple[int, int]] = []
    result = synchronize(session, progress=lambda done, total: told.append((done, total)))
    assert result.reference == "leader"
    assert {n: c.method for n, c in result.clocks.items()} == {
        "gopro": "sound", "helper": "tic_sync", "leader": "reference",
    }  # fmt: skip
    assert at(result, "leader", 123) == 123
    assert abs(at(result, "helper", 25 * NS) - (10**15 + 22 * NS)) < 1_000_000
    expected = 10**15 + 4_500_000_000 + 20 * NS * 1.000025
    assert abs(at(result, "gopro", 20 * NS) - expected) < 50_000
    assert told[-1] == (4, 4)


def test_no_submillisecond_claim_without_positions(session: list[Recording]) -> None:
    clock = synchronize(session).clocks["gopro"]
    assert clock.interval95_ms is not None
    assert clock.interval95_ms > 8000 / 343
    assert clock.p_match is not None
    assert clock.p_match > 0.9
    assert "positions unknown" in clock.basis


def test_stranger_is_left_out_with_words(session: list[Recording]) -> None:
    reason = synchronize(session).unsynced["stranger"]
    for words in ("no common sound", "best score", "needs", "by hand"):
        assert words in reason


def test_offset_by_hand(session: list[Recording]) -> None:
    result = synchronize(session, manual_offsets_ns={"stranger": -77})
    assert result.clocks["stranger"].method == "manual"
    assert result.clocks["stranger"].interval95_ms is None
    assert at(result, "stranger", 1000) == 923
    assert not result.unsynced


@pytest.mark.parametrize("offsets", [{"nobody": 1}, {"leader": 1}])
def test_offsets_that_make_no_sense(session: list[Recording], offsets: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        synchronize(session, manual_offsets_ns=offsets)


def test_no_recordings() -> None:
    with pytest.raises(NoRecordingsError):
        synchronize([])


def with_facts(recording: Recording, **facts: Any) -> Recording:
    from dataclasses import replace

    return replace(recording, **facts)


def test_different_session_ids_fall_back_to_sound(session: list[Recording]) -> None:
    _, client, server, _ = session
    result = synchronize([server, with_facts(client, shared_session_id="other")])
    assert result.clocks["helper"].method == "sound"
    assert abs(at(result, "helper", 25 * NS) - (10**15 + 22 * NS)) < 100_000
    assert any("session ids differ" in w and "sound" in w for w in result.warnings)


def test_both_glasses_restarted_over_the_same_numbers(
    session: list[Recording], tmp_path: Path
) -> None:
    """The second take's client is placed by what it heard, not by the first take's clock."""
    _, client, server, _ = session
    talk = speech(60, 77)
    again = heard(room(talk, 1), affine(0), 50, name="leader-2", seed=7, start_ns=10**15)
    there = heard(room(talk, 2), affine(3.0), 45, name="helper-2", seed=8, start_ns=9 * NS)
    t = 9 * NS + np.arange(45) * NS
    mapping = TimeMapping("tic_sync", np.column_stack([t, t - 9 * NS + 3 * NS + 10**15]))
    ids: dict[str, Any] = {"shared_session_id": "s"}
    second = recorded(tmp_path, again, "aria", sync_role="server", **ids)
    its = recorded(tmp_path, there, "aria", sync_role="client", time_mappings=(mapping,), **ids)
    result = synchronize([server, client, second, its])
    assert result.reference == "leader"
    assert result.clocks["helper"].method == "sound"  # its notes fit both starts as well
    assert "helper-2" in result.unsynced  # rather than at a wrong time
    alone = synchronize([server, its])  # nothing tells of the second start but the sound
    assert alone.clocks["helper-2"].method == "tic_sync"
    (told,) = [w for w in alone.warnings if "no common sound" in w]
    assert "'helper-2'" in told
    assert "clap" in told


def test_two_servers(session: list[Recording]) -> None:
    _, client, server, _ = session
    second = with_facts(client, sync_role="server", shared_session_id="x", time_mappings=())
    result = synchronize([server, second])
    assert any("more than one recording" in w for w in result.warnings)
    assert sorted(c.method for c in result.clocks.values()) == ["reference", "sound"]


def test_glasses_that_nobody_synchronized(session: list[Recording]) -> None:
    _, client, server, _ = session
    none: dict[str, Any] = {"sync_role": None, "shared_session_id": None, "time_mappings": ()}
    result = synchronize([with_facts(server, **none), with_facts(client, **none)])
    assert sorted(c.method for c in result.clocks.values()) == ["reference", "sound"]
    assert any("no hardware time" in w and "placed by sound" in w for w in result.warnings)


def test_client_whose_server_is_missing(session: list[Recording]) -> None:
    camera, client, _, _ = session
    result = synchronize([camera, client])
    assert result.reference == "helper"
    assert result.clocks["gopro"].method == "sound"
    assert any("missing" in w for w in result.warnings)


def test_hardware_that_contradicts_sound_is_said(session: list[Recording]) -> None:
    _, client, server, _ = session
    pairs = client.time_mappings[0].pairs + np.array([0, NS // 2])
    wrong = with_facts(client, time_mappings=(TimeMapping("tic_sync", pairs),))
    assert any("disagree by 500 ms" in w for w in synchronize([server, wrong]).warnings)


def test_recording_without_sound_does_not_stop_the_others(session: list[Recording]) -> None:
    mute = Recording("mute", "webcam", (), {})
    result = synchronize([*session, mute])
    assert "no sound" in result.unsynced["mute"]
    assert "gopro" in result.clocks


def test_nothing_but_cameras(session: list[Recording]) -> None:
    result = synchronize([session[0], session[3]])
    assert result.reference == "gopro"
    assert "stranger" in result.unsynced
