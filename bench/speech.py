"""Words of real speech beside the recogniser's own library, word times, cost, and a kill.

    python -m bench.speech

Needs the extra ``test-speech`` and real speech in ``../shared/data/4_audio``. Prints a table and
writes ``bench/results/speech.md``; speakers are measured by ``bench/accept.py speech``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal
from tests.speech import models
from tests.speech.talk import talk

from bench.acceptance.speech import (
    CROSSTALK_DB,
    edits,
    fixed_threshold_wrong,
    learned_threshold_wrong,
    tiny,
)
from bench.measuring import Report, run_case, write_result
from synorama.capture import open_recording
from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.voices import VOICES, load_voice
from synorama.speech import Asked, DeviceSound, WindowStore, from_samples, read_device, transcribe
from synorama.speech.embedded import FasterWhisper
from synorama.speech.heard import bare
from synorama.speech.language import full_scale
from synorama.speech.sound import SPEECH_HZ

MODULE = "bench.speech"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "4_audio"
LICENCE = """permission is hereby granted free of charge to any person obtaining a copy of this
software and associated documentation files to deal in the software without restriction including
without limitation the rights to use copy modify merge publish distribute sublicense and or sell
copies of the software and to permit persons to whom the software is furnished to do so subject to
the following conditions the above copyright notice and this permission notice shall be included in
all copies or substantial portions of the software"""
JFK = """and so my fellow americans ask not what your country can do for you ask what you can do for
your country"""
WIZARD = """he began a confused complaint against the wizard who had vanished behind the curtain on
the left"""
HORIZON = "the horizon seems extremely distant"
SAME = {"mister": "mr", "yeah": "yes", "okay": "ok", "sublicence": "sublicense", "andor": "and or"}
NOISES_DB = (10.0, 5.0, 0.0)
LONG_S = 1800.0


@dataclass(frozen=True)
class Said:
    """Real speech, and what is said in it."""

    name: str
    samples: NDArray[np.int16]
    text: str


def main() -> int:
    arguments = _arguments()
    if arguments.case:
        print(json.dumps(CASES[arguments.case](*arguments.rest)))
        return 0
    report = Report("Speech: words, times, cost")
    _words(report)
    _starts(report)
    _thresholds(report)
    _cost(report)
    write_result("speech", report.text("python -m bench.speech"))
    return report.exit_code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case")
    parser.add_argument("rest", nargs="*")
    return parser.parse_args()


# --- words ------------------------------------------------------------------------------------


@cache
def real_speech() -> list[Said]:
    return [
        *_plain(),
        *_channels("faster-whisper/stereo_diarization.wav", (WIZARD, HORIZON)),
        *_read_aloud(),
        *_cards(),
    ]


def _mono(path: Path) -> NDArray[np.int16]:
    return read_device(open_recording(path)).samples


def _plain() -> Iterator[Said]:
    yield Said("jfk", _mono(DATA / "faster-whisper" / "jfk.flac"), JFK)
    both = _mono(DATA / "faster-whisper" / "multilingual.mp3")
    yield Said("licence", both[: 30 * SPEECH_HZ], LICENCE)
    told = (DATA / "pyannote_sdist" / "sample.stm").read_text().splitlines()
    text = " ".join(line.split(" ", 5)[5] for line in told if line.strip())
    yield Said("dialogue", _mono(DATA / "pyannote_sdist" / "sample.wav"), text)


def _channels(name: str, texts: Sequence[str]) -> Iterator[Said]:
    from scipy.io import wavfile

    rate, samples = wavfile.read(DATA / name)
    for k, text in enumerate(texts):
        given = signal.resample_poly(samples[:, k].astype(float), SPEECH_HZ, rate)
        yield Said(f"stereo {k}", np.clip(given, -32_000, 32_000).astype(np.int16), text)


def _transcribed(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        text, _, name = line.rpartition("(")
        yield name.strip(" )"), text.replace("<s>", "").replace("</s>", "").strip()


def _read_aloud() -> Iterator[Said]:
    folder = DATA / "pocketsphinx_sdist" / "librivox"
    for name, text in _transcribed(folder / "transcription"):
        yield Said(name, _mono(folder / f"{name}.wav"), text.replace(" a amiable", " amiable"))


def _cards() -> Iterator[Said]:
    folder = DATA / "pocketsphinx_sdist" / "cards"
    for name, text in _transcribed(folder / "cards.transcription"):
        yield Said(f"card {name}", _mono(folder / f"{name}.wav"), text)


def plain_words(text: str) -> list[str]:
    """Return words as they are compared: numbers said, spellings alike."""
    from synorama.speech.numbers_en import spoken_forms

    words: list[str] = []
    for token in text.replace("-", " ").replace("/", " ").split():
        forms = spoken_forms(token.strip(".,;:!?'\""))
        for word in forms[0] if forms else [bare(token)]:
            words += SAME.get(word, word).split()
    return [w for w in words if w]


def noisy(said: Said, snr_db: float, seed: int) -> Said:
    """Return the speech in a room with a fan and clatter."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(0.4 * SPEECH_HZ)) / SPEECH_HZ
    room = rng.standard_normal(len(t)) * np.exp(-6.9 * t / 0.4) * 0.03
    room[0] = 1
    clean = said.samples.astype(np.float64) / 32_768
    speech = signal.fftconvolve(clean, room)[: len(clean)]
    fan = np.convolve(rng.standard_normal(len(speech)), np.ones(20) / 20, "same")
    fan /= fan.std()
    clatter = np.zeros(len(speech))
    for at in rng.integers(0, max(len(speech) - 3000, 1), max(int(len(speech) / SPEECH_HZ), 1)):
        ring = np.exp(-np.arange(3000) / 500) * np.sin(np.arange(3000) * rng.uniform(0.5, 2.5))
        clatter[at : at + 3000] += rng.uniform(2, 6) * ring[: len(clatter) - at]
    noise = fan + clatter
    noise *= speech.std() / noise.std() * 10 ** (-snr_db / 20)
    mixed = speech + noise
    return Said(said.name, np.asarray(mixed / np.abs(mixed).max() * 30_000, np.int16), said.text)


def _ours(model: FasterWhisper, said: Said) -> list[str]:
    made = transcribe([from_samples("a", said.samples)], model, Asked(language="en"))
    return plain_words(" ".join(w.text for w in made.words))


def _library(model: FasterWhisper, said: Said) -> list[str]:
    segments, _ = model._model.transcribe(full_scale(said.samples), language="en", beam_size=5)
    return plain_words(" ".join(s.text for s in segments))


def _wer(model: FasterWhisper, way: Any, speech: Sequence[Said]) -> tuple[float, float, int]:
    """Return the word error rate [%], CPU seconds a second of sound, and the number of words."""
    began, errors, count = time.process_time(), 0, 0
    for said in speech:
        words = plain_words(said.text)
        errors += edits(words, way(model, said))
        count += len(words)
    cpu_s = time.process_time() - began
    seconds = sum(len(s.samples) for s in speech) / SPEECH_HZ
    return 100 * errors / count, cpu_s / seconds, count


def _words(report: Report) -> None:
    speech = real_speech()
    with tempfile.TemporaryDirectory() as made:
        base = FasterWhisper(str(models.find("base", Path(made))), offline=True, threads=1)
        rows = []
        for name, model, limit in (("tiny.en", tiny(), 8.0), ("base", base, 6.0)):
            ours, theirs = _wer(model, _ours, speech), _wer(model, _library, speech)
            seconds = sum(len(s.samples) for s in speech) / SPEECH_HZ
            what = f"WER of {name}, {seconds:.0f} s of real speech, {ours[2]} words"
            report.bar(what, ours[0], limit, "%", ".1f")
            rows.append(_row(f"{name}, clean", ours, theirs))
    loud = [noisy(s, db, k) for k, s in enumerate(speech) for db in NOISES_DB]
    ours, theirs = _wer(tiny(), _ours, loud), _wer(tiny(), _library, loud)
    what = f"WER of tiny.en over the library's, {ours[2]} words at 0, 5 and 10 dB"
    report.bar(what, ours[0] - theirs[0], 0.0, "points", ".1f")
    rows.append(_row("tiny.en, reverberation, fan, clatter", ours, theirs))
    head = ["", "Synorama WER", "faster-whisper WER", "Synorama CPU s/s", "faster-whisper CPU s/s"]
    report.note("Beside plain faster-whisper, same model and files", head, rows)


def _row(name: str, ours: tuple[float, float, int], theirs: tuple[float, float, int]) -> list[str]:
    errors = [f"{ours[0]:.1f} %", f"{theirs[0]:.1f} %"]
    return [f"{name} (n = {ours[2]})", *errors, f"{ours[1]:.3f}", f"{theirs[1]:.3f}"]


# --- word times -------------------------------------------------------------------------------


def _starts(report: Report) -> None:
    for align, median_ms, within in ((True, 25.0, 7.0), (False, 130.0, 100.0)):
        errors = np.array(list(itertools.chain(*(_start_errors(v, align) for v in VOICES))))
        way = "forced alignment" if align else "attention alone"
        n = len(errors)
        report.bar(f"word start by {way}, median, n = {n}", np.median(errors), median_ms, "ms")
        late = 100 * float(np.mean(errors > 100))
        report.bar(f"word start by {way}, more than 100 ms off", late, within, "%", ".1f")


def _start_errors(name: str, align: bool) -> list[float]:
    voice, pieces, starts, at = load_voice(name), [], [], 0.0
    for utterance in voice.utterances[:12]:
        starts += [(w.text, at + w.start / GRID_HZ) for w in utterance.words]
        pieces += [voice.samples(utterance), np.zeros(GRID_HZ // 2, np.float32)]
        at += utterance.count / GRID_HZ + 0.5
    sound = signal.resample_poly(np.concatenate(pieces), 1, GRID_HZ // SPEECH_HZ)
    sound = sound + np.random.default_rng(0).standard_normal(len(sound)) * 1e-4
    asked = Asked(language="en", align=align)
    words = transcribe([from_samples("a", sound.astype(np.float32))], tiny(), asked).words
    errors = []
    for text, start in starts:
        same = [abs(w.start_ns / 1e9 - start) for w in words if bare(w.text) == bare(text)]  # type: ignore[operator]
        if same and min(same) < 0.5:
            errors.append(1000 * min(same))
    return errors


def _thresholds(report: Report) -> None:
    rows = []
    for crosstalk_db in CROSSTALK_DB:
        given = [talk(seed, 90, crosstalk_db=crosstalk_db) for seed in range(3000, 3004)]
        n = sum(len(g.without_overlap()) for g in given)
        fixed = float(np.mean([fixed_threshold_wrong(g) for g in given]))
        learned = float(np.mean([learned_threshold_wrong(g) for g in given]))
        rows.append(
            [f"{crosstalk_db:.0f} dB", f"{100 - fixed:.1f} %", f"{100 - learned:.1f} %", str(n)]
        )
    head = ["cross-talk", "louder device", "learned threshold", "words"]
    report.note("Right speaker of words without overlap, heard perfectly, 9 dB apart", head, rows)


# --- cost and a kill --------------------------------------------------------------------------


def _cost(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "windows"
        run_case(MODULE, "make", folder)
        used = run_case(MODULE, "whole", folder)
        report.bar("30 min, two devices, tiny.en", used.cpu_s / 60, 4.0, "CPU min")
        report.bar("its peak memory", used.peak_mb, 2000.0, "MB", ".0f")
        half = run_case(MODULE, "killed", folder, store)
        again = run_case(MODULE, "resumed", folder, store)
        redone = half.said["windows"] + again.said["windows"] - used.said["windows"]
        report.bar("windows done twice after a kill", redone, 1.0, "", ".0f")
        differs = float(again.said["digest"] != used.said["digest"])
        report.bar("words differ after a kill", differs, 0.0, "", ".0f")


def _make(folder: str) -> None:
    given = talk(77, LONG_S)
    for sound in given.sounds:
        np.save(Path(folder) / f"{sound.device}.npy", sound.samples)


def _loaded(folder: str) -> list[DeviceSound]:
    paths = sorted(Path(folder).glob("*.npy"))
    return [from_samples(p.stem, np.load(p), speaker=p.stem, worn=True) for p in paths]


class _Counted:
    """Counts windows, and stops at one as if it were killed."""

    def __init__(self, last: int | None = None) -> None:
        self._inner, self._last, self.windows = tiny(), last, 0
        self.name, self.model, self.facts = self._inner.name, self._inner.model, self._inner.facts
        self.check_language = self._inner.check_language
        self.detect_language = self._inner.detect_language

    def recognize(self, samples: Any, language: str, vocabulary: tuple[str, ...]) -> Any:
        self.windows += 1
        if self.windows == self._last:
            raise KeyboardInterrupt
        return self._inner.recognize(samples, language, vocabulary)


def _transcribed_long(folder: str, store: str | None, last: int | None = None) -> dict[str, Any]:
    import blake3

    counted = _Counted(last)
    kept = WindowStore(Path(store) if store else None)
    try:
        made = transcribe(_loaded(folder), counted, Asked(language="en"), store=kept)
    except KeyboardInterrupt:
        return {"windows": counted.windows}
    text = json.dumps([[w.text, w.start_ns, w.end_ns, w.speaker] for w in made.words])
    return {"windows": counted.windows, "digest": blake3.blake3(text.encode()).hexdigest()}


CASES: dict[str, Any] = {
    "make": _make,
    "whole": lambda folder: _transcribed_long(folder, None),
    "killed": lambda folder, store: _transcribed_long(folder, store, 8),
    "resumed": _transcribed_long,
}

if __name__ == "__main__":
    sys.exit(main())
