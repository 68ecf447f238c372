"""Make the voices of the simulator with the Flite synthesizer; needed only to change them.

Needs Debian's ``flite`` and ``libflite1``, and a Python with numpy, soxr and av:

    python tools/make_voices.py src/synorama/simulate/sound/data/voices

Flite knows when each sound of an utterance begins and ends, as it laid them out itself; word times
are taken from there, to its frame of 5 ms. A second woman and a third man are made of the same
speakers with a shorter or longer vocal tract: spoken slower or faster, and played faster or slower.
"""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

RATE_HZ = 48_000
BEFORE_S, AFTER_S = 0.03, 0.08  # kept of the silence around an utterance
GAP_S = 0.06  # between utterances in the file
LEVEL_RMS = 0.1  # of full scale, over a whole utterance
BIT_RATE = 26_000


@dataclass(frozen=True)
class Design:
    """A voice: speaker of Flite, how much faster it is played, and how slowly it speaks."""

    name: str
    gender: str
    speaker: str
    faster: float
    slowness: float


DESIGNS = (
    Design("anna", "female", "slt", 1.0, 1.0),
    Design("berta", "female", "slt", 1.14, 1.04),
    Design("carl", "male", "rms", 1.0, 0.95),
    Design("david", "male", "awb", 1.0, 1.0),
    Design("emil", "male", "rms", 0.9, 1.0),
)


class _Wave(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("rate_hz", ctypes.c_int),
        ("count", ctypes.c_int),
        ("channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    ]


class _VoiceHead(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("features", ctypes.c_void_p)]


class Flite:
    """The synthesizer's library."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libflite.so.1", ctypes.RTLD_GLOBAL)
        for part in ("usenglish", "cmulex"):
            ctypes.CDLL(f"libflite_{part}.so.1", ctypes.RTLD_GLOBAL)
        self._lib.flite_init()
        pointer, text, real = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float
        for name, result, *arguments in (
            ("flite_synth_text", pointer, text, pointer),
            ("utt_wave", ctypes.POINTER(_Wave), pointer),
            ("utt_relation", pointer, pointer, text),
            ("relation_head", pointer, pointer),
            ("item_next", pointer, pointer),
            ("ffeature_string", text, pointer, text),
            ("ffeature_float", real, pointer, text),
            ("flite_feat_set_float", None, pointer, text, real),
        ):
            function = getattr(self._lib, name)
            function.restype, function.argtypes = result, arguments

    def voice(self, speaker: str, stretch: float) -> int:
        """Return a voice that takes so many times the usual time."""
        lib = ctypes.CDLL(f"libflite_cmu_us_{speaker}.so.1", ctypes.RTLD_GLOBAL)
        register = getattr(lib, f"register_cmu_us_{speaker}")
        register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        voice: int = register(None)
        features = ctypes.cast(voice, ctypes.POINTER(_VoiceHead))[0].features
        self._lib.flite_feat_set_float(features, b"duration_stretch", stretch)
        return voice

    def speak(self, text: str, voice: int) -> tuple[Any, int, list[tuple[str, float, float]]]:
        """Return samples, their rate, and words with start and end [s]."""
        utterance = self._lib.flite_synth_text(text.encode(), voice)
        wave = self._lib.utt_wave(utterance)[0]
        samples = np.array(wave.samples[: wave.count], np.float64) / 32_768
        words = []
        token = self._lib.relation_head(self._lib.utt_relation(utterance, b"Token"))
        first = b"daughter1.R:SylStructure.daughter1.daughter1.R:Segment.p.end"
        last = b"daughtern.R:SylStructure.daughtern.daughtern.R:Segment.end"
        while token:
            name = self._lib.ffeature_string(token, b"name").decode()
            ends = [self._lib.ffeature_float(token, path) for path in (first, last)]
            words.append((name, ends[0], ends[1]))
            token = self._lib.item_next(token)
        return samples, wave.rate_hz, words


def utterance(flite: Flite, voice: int, design: Design, text: str) -> tuple[Any, list[Any]]:
    """Return an utterance at `RATE_HZ`, and its words in samples from its start."""
    import soxr

    samples, rate_hz, words = flite.speak(text, voice)
    begin = max(0, round((words[0][1] - BEFORE_S) * rate_hz))
    end = round((words[-1][2] + AFTER_S) * rate_hz)
    played = soxr.resample(samples[begin:end], rate_hz * design.faster, RATE_HZ, "VHQ")
    played *= LEVEL_RMS / np.sqrt(np.mean(played**2))
    fade = round(0.01 * RATE_HZ)
    played[:fade] *= np.linspace(0, 1, fade)
    played[-fade:] *= np.linspace(1, 0, fade)
    scale = RATE_HZ / (rate_hz * design.faster)
    told = [[w, *(round((t * rate_hz - begin) * scale) for t in (a, b))] for w, a, b in words]
    return played, told


def write_opus(path: Path, samples: Any) -> None:
    """Write mono sound; the container tells the decoder what to skip, so nothing moves."""
    import av

    with av.open(str(path), "w", format="ogg", options={"fflags": "+bitexact"}) as out:
        stream = out.add_stream("libopus", rate=RATE_HZ, layout="mono")
        stream.bit_rate = BIT_RATE
        stream.options = {"application": "audio", "frame_duration": "20", "vbr": "on"}
        frame = av.AudioFrame.from_ndarray(
            np.float32(samples)[np.newaxis], format="flt", layout="mono"
        )
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, 0, Fraction(1, RATE_HZ)
        for packet in (*stream.encode(frame), *stream.encode(None)):
            out.mux(packet)


def make(flite: Flite, design: Design, texts: list[str], folder: Path) -> Any:
    """Write one voice and return its samples."""
    voice = flite.voice(design.speaker, design.faster * design.slowness)
    gap = np.zeros(round(GAP_S * RATE_HZ))
    pieces, told, at = [gap], [], len(gap)
    for text in texts:
        samples, words = utterance(flite, voice, design, text)
        told.append({"text": text, "start": at, "count": len(samples), "words": words})
        pieces += [samples, gap]
        at += len(samples) + len(gap)
    whole = np.concatenate(pieces)
    write_opus(folder / f"{design.name}.opus", whole)
    head = {"name": design.name, "gender": design.gender, "rate_hz": RATE_HZ}
    lines = ",\n  ".join(json.dumps(t, separators=(",", ":")) for t in told)
    body = json.dumps(head)[:-1] + f', "utterances": [\n  {lines}\n]}}\n'
    (folder / f"{design.name}.json").write_text(body, encoding="utf-8")
    return whole


def main(folder: Path) -> None:
    """Write all voices into a folder that holds ``utterances.txt``."""
    texts = (folder / "utterances.txt").read_text(encoding="utf-8").splitlines()
    flite = Flite()
    for design in DESIGNS:
        make(flite, design, texts, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
