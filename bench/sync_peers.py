"""Other programs that align recordings, each in an environment of its own, on the same files.

Each is asked through its own functions for what it is made for: the time of the reference at the
other file's time 0, and the drift where it knows of one. What it does afterwards (cutting videos,
drawing) is left out. A peer that says itself that its answer is not to be trusted has refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.measuring import Usage, run_command

Float64 = NDArray[np.float64]

BEGIN = "import json, sys, warnings\nwarnings.simplefilter('ignore')\none, other = sys.argv[1:3]\n"
END = "\nprint(file=sys.__stdout__)\nprint(json.dumps(told), file=sys.__stdout__)\n"
QUIET = "sys.stdout = open('/dev/null', 'w')\n"

POLYSYNC = """
from polysync import audio
from polysync.sync import SR, SyncError, compute_sync
import tempfile, pathlib
with tempfile.TemporaryDirectory() as folder:
    sounds = []
    for k, path in enumerate((one, other)):
        pcm = pathlib.Path(folder) / f"{k}.pcm"
        audio.extract_pcm(path, pcm, SR)
        sounds.append(audio.read_pcm(pcm))
    lengths = [audio.media_duration(path) for path in (one, other)]
    try:
        found = compute_sync(*sounds, *lengths)
        middle = found.delta_seconds - found.drift_slope * lengths[1] / 2
        told = {"offset_s": middle, "drift": found.drift_slope}
    except SyncError as error:
        told = {"refused": str(error)}
"""
OFFSET_FINDER = """
from audio_offset_finder.audio_offset_finder import find_offset_between_files
found = find_offset_between_files(one, other, trim=None)
told = {"offset_s": float(found["time_offset"])}
if found["standard_score"] < 10:  # below which its documentation does not trust it
    told = {"refused": f"score {found['standard_score']:.1f}, 10 is good"}
"""
SKELLY = """
import pathlib, tempfile
import librosa
from skelly_synchronize.core_processes.correlation_functions import cross_correlate
from skelly_synchronize.core_processes.video_functions.ffmpeg_functions import (
    extract_audio_from_video_ffmpeg,
)
with tempfile.TemporaryDirectory() as folder:
    sounds = []
    for k, path in enumerate((one, other)):
        wav = pathlib.Path(folder) / f"{k}.wav"
        extract_audio_from_video_ffmpeg(file_pathstring=path, output_file_path=wav)
        sounds.append(librosa.load(path=wav, sr=None))
(a, rate), (b, _) = sounds
told = {"offset_s": float(cross_correlate(a, b)) / rate}
"""
AUDALIGN = """
import os
import audalign
recognizer = audalign.CorrelationRecognizer()
recognizer.config.multiprocessing = False
found = audalign.align_files(one, other, recognizer=recognizer)
if found:
    shift = {os.path.basename(k): v for k, v in found.items() if isinstance(v, (int, float))}
    told = {"offset_s": shift[os.path.basename(other)] - shift[os.path.basename(one)]}
else:
    told = {"refused": "no alignment"}
"""
SYNCSTART = """
import matplotlib
matplotlib.use = lambda *args, **kwargs: None  # it asks for a window even where it shows none
sys.argv = ["syncstart", one, other, "-s", "-q", "-t", "60"]  # longer ones take all memory
import syncstart
file, seconds = syncstart.file_offset()
told = {"offset_s": float(seconds) if file == one else -float(seconds)}
"""
"""What each program is asked, in its own words; it prints one line of JSON."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program: what pip installs, and how it is asked."""

    name: str
    requirement: str
    script: str
    beside: tuple[str, ...] = ()


PEERS = (
    Peer("polysync", "polysync==0.3.0", POLYSYNC),
    Peer("audio-offset-finder", "audio-offset-finder==0.5.5", OFFSET_FINDER),
    Peer("skelly-synchronize", "skelly-synchronize==2025.4.1037", SKELLY),
    Peer("audalign", "audalign==1.3.1", AUDALIGN),
    Peer("syncstart", "syncstart==1.1.1", SYNCSTART, ("scipy",)),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a program said: a line, ``t_reference = offset + (1 + drift) t``, or why not."""

    usage: Usage | None
    offset_s: float = 0.0
    drift: float = 0.0
    refused: str = ""

    def knots_s(self, seconds: float) -> Float64:
        """Return the line as two knots."""
        at = np.array([0.0, seconds])
        return np.column_stack([at, self.offset_s + at * (1 + self.drift)])


def install(peer: Peer, folder: Path) -> str:
    """Make a peer's environment, unless it is there; return why it cannot be had, or nothing."""
    home, done = folder / peer.name, folder / f"{peer.name}.json"
    if done.is_file():
        said: Mapping[str, str] = json.loads(done.read_text("utf-8"))
        if said["requirement"] == peer.requirement:
            return said["failed"]
    venv.create(home, with_pip=True, clear=True)
    command = [str(_python(home)), "-m", "pip", "install", "-q", peer.requirement, *peer.beside]
    ended = subprocess.run(command, capture_output=True, text=True)
    lines = ended.stderr.strip().splitlines() or ["pip said nothing"]
    failed = lines[-1][:200] if ended.returncode else ""
    done.write_text(json.dumps({"requirement": peer.requirement, "failed": failed}), "utf-8")
    return failed


def ask(peer: Peer, folder: Path, reference: Path, other: Path) -> Told:
    """Let a peer align two files, in a process of its own."""
    script = BEGIN + QUIET + peer.script + END
    command = [str(_python(folder / peer.name)), "-c", script, str(reference), str(other)]
    try:
        used = run_command(command)
    except subprocess.CalledProcessError as error:
        return Told(None, refused=f"it ended with code {error.returncode}")
    return Told(used, **used.said)


def _python(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


if __name__ == "__main__":  # for a look at one pair
    for one in PEERS:
        print(one.name, install(one, Path(sys.argv[1])))
        print(ask(one, Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
