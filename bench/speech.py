"""Words of real speech beside the recogniser's own library, word times, cost, and a kill.

    python -m bench.speech [PART ...] [--more FOLDER]

Needs the extras ``test-speech`` and ``dev`` and real speech, see `bench.spoken`; FOLDER holds more
of it, sounds with their English text beside them. Each part prints a table and writes
``bench/results/speech_PART.md``; speakers are measured by ``bench/accept.py speech``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import signal
from tests.speech import models
from tests.speech.talk import talk

from bench import whispercpp
from bench.accept import wilson
from bench.acceptance.speech import (
    CROSSTALK_DB,
    fixed_threshold_wrong,
    learned_threshold_wrong,
    tiny,
)
from bench.measuring import Report, run_case, write_result
from bench.speechless import KINDS, speechless
from bench.spoken import Said, edits, more_speech, noisy, packaged_speech, plain_words, real_speech
from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.voices import VOICES, load_voice
from synorama.speech import Asked, DeviceSound, WindowStore, from_samples, transcribe
from synorama.speech.embedded import FasterWhisper
from synorama.speech.heard import bare
from synorama.speech.language import full_scale
from synorama.speech.readings import Versions
from synorama.speech.sound import SPEECH_HZ

MODULE = "bench.speech"
ONE_VOICE, ONE_KIND = "one voice at a time, all", ("clean", "talk")
NOISES_DB = (10.0, 5.0, 0.0)
NOISE_SEEDS = (31, 32, 33)
SPEECHLESS_SEEDS = (100, 101, 102)
LONG_S = 1800.0
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    arguments = _arguments()
    if arguments.case:
        print(json.dumps(CASES[arguments.case](*arguments.rest)))
        return 0
    missed = 0
    for part in arguments.rest or PARTS:
        report = Report(f"Speech: {part}")
        PARTS[part](report, arguments)
        missed += report.missed
        write_result(f"speech_{part}", report.text(f"python -m bench.speech {part}"))
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case")
    parser.add_argument("--more", type=Path, help="a folder of sounds with their text beside them")
    parser.add_argument(
        "rest",
        nargs="*",
        metavar="part",
        help="words, noise, nothing, peers, starts, thresholds, cost, install",
    )
    return parser.parse_args()


# --- words ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Errors:
    """Wrong words, all words, and CPU seconds."""

    wrong: int
    count: int
    cost_s: float

    @property
    def percent(self) -> float:
        return 100 * self.wrong / self.count


Way = Callable[[FasterWhisper, Said], str]


def _ours(model: FasterWhisper, said: Said) -> str:
    sound = from_samples("a", said.samples)
    made = transcribe([sound], model, Asked(language=said.language, align=False))
    return " ".join(w.text for w in made.words)


def _library(model: FasterWhisper, said: Said, *, voice_only: bool = False, seed: int = 1) -> str:
    import ctranslate2

    ctranslate2.set_random_seed(seed)  # it samples where it is unsure
    segments, _ = model._model.transcribe(
        full_scale(said.samples), language=said.language, beam_size=5, vad_filter=voice_only
    )
    return " ".join(s.text for s in segments)


WAYS: tuple[Way, ...] = (_ours, _library, partial(_library, voice_only=True))


def _errors(model: FasterWhisper, way: Way, speech: Sequence[Said]) -> dict[str, _Errors]:
    """Return the errors of each sound by its name."""
    return {said.name: _errors_of(model, way, said) for said in speech}


def _errors_of(model: FasterWhisper, way: Way, said: Said) -> _Errors:
    began = time.process_time()
    heard = way(model, said)
    cost_s = time.process_time() - began
    words = plain_words(said.text, said.language)
    wrong = edits(words, plain_words(heard, said.language))
    return _Errors(wrong, len(words), cost_s)


def _words(report: Report, arguments: argparse.Namespace) -> None:
    more = more_speech(arguments.more) if arguments.more else ()
    speech = (*real_speech(), *packaged_speech(), *more)
    wrong: dict[str, list[str]] = {s.name: [s.name, f"{s.seconds:.1f}", s.origin] for s in speech}
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as made:
        base = FasterWhisper(str(models.find("base", Path(made))), offline=True, threads=1)
        for name, model, limit in (("tiny.en", tiny(), 8.0), ("base", base, 6.0)):
            ours = _by_kinds(report, rows, name, model, limit, speech)
            for said in speech:
                e = ours.get(said.name)
                wrong[said.name].append(f"{e.wrong} of {e.count}" if e else "")
    head = ["", "s", "words", "Synorama WER", "faster-whisper WER", "with its VAD", "CPU s/s each"]
    title = "Beside faster-whisper: same model, sounds and normaliser; wrong words; 95 % bounds"
    report.note(title, head, rows)
    head = ["sound", "s", "its text is from", "tiny.en, wrong words", "base, wrong words"]
    report.note("Each sound", head, list(wrong.values()))


def _by_kinds(
    report: Report,
    rows: list[list[str]],
    name: str,
    model: FasterWhisper,
    limit: float,
    speech: Sequence[Said],
) -> dict[str, _Errors]:
    """Measure one model on all that it understands, and judge it by one voice at a time."""
    known = [s for s in speech if s.language == "en" or not name.endswith(".en")]
    each = [_errors(model, way, known) for way in WAYS]
    groups = _groups(known)
    rows += [_row(f"{name}, {what}", group, each) for what, group in groups.items() if group]
    total = _total(each[0], groups[ONE_VOICE])
    seconds = sum(s.seconds for s in groups[ONE_VOICE])
    told = f"WER of {name}, {ONE_VOICE}: {seconds:.0f} s, {total.count} words"
    report.bar(told, total.percent, limit, "%", ".1f")
    return each[0]


def _groups(speech: Sequence[Said]) -> dict[str, list[Said]]:
    english = [s for s in speech if s.language == "en"]
    groups = {}
    for where, packaged in (("4_audio", False), ("packages", True)):
        here = [s for s in english if s.packaged == packaged]
        groups[f"{where}, read aloud"] = [s for s in here if s.kind == "clean"]
        groups[f"{where}, free talk"] = [s for s in here if s.kind == "talk"]
        groups[f"{where}, one voice at a time"] = [s for s in here if s.kind in ONE_KIND]
    return groups | {
        "read aloud, all": [s for s in english if s.kind == "clean"],
        ONE_VOICE: [s for s in english if s.kind in ONE_KIND],
        "meetings": [s for s in english if s.kind == "meeting"],
        "German": [s for s in speech if s.language == "de"],
        "from other folders": [s for s in english if s.kind == "elsewhere"],
    }


@dataclass(frozen=True)
class _Heard:
    """A sound in noise, and the errors of each way."""

    name: str
    seed: int
    snr_db: float
    each: tuple[_Errors, ...]


def _noise(report: Report, _: argparse.Namespace) -> None:
    """Compare with the library in several noises, and guesses: it samples where it is unsure."""
    speech = _groups([*real_speech(), *packaged_speech()])[ONE_VOICE]
    heard = [one for seed in NOISE_SEEDS for one in _in_noise(speech, seed)]
    ours, theirs, _voice = _totals(heard)
    what = f"WER of tiny.en over the library's, {ours.count} words at 0, 5 or 10 dB"
    report.bar(what, ours.percent - theirs.percent, 0.0, "points", ".2f")
    head = ["", "words", "Synorama", "faster-whisper", "with its VAD"]
    groups = {"all": heard}
    groups |= {f"noise of seed {n}": [h for h in heard if h.seed == n] for n in NOISE_SEEDS}
    groups |= {f"{db:.0f} dB": [h for h in heard if h.snr_db == db] for db in NOISES_DB}
    rows = [[name, *_noise_row(group)] for name, group in groups.items()]
    report.note("Reverberation, a fan, clatter: WER of tiny.en; wrong words; bounds", head, rows)
    sounds = [[h for h in heard if h.name == s.name] for s in speech]
    low, high = _difference_bounds(sounds)
    told = [["Synorama less faster-whisper", f"{low:.1f} to {high:.1f} points"]]
    report.note("The sounds drawn again 2,000 times", ["", "95 % bounds"], told)
    rows = [[group[0].name, *_noise_row(group)] for group in sounds]
    report.note("Each sound in all noises", head, rows)


def _in_noise(speech: Sequence[Said], seed: int) -> list[_Heard]:
    """Take sounds in a noise of each one's own, at levels that go round with sound and seed."""
    heard = []
    for k, said in enumerate(speech):
        snr_db = NOISES_DB[(k + seed) % len(NOISES_DB)]
        loud = noisy(said, snr_db, 1000 * seed + k)
        ways = (_ours, partial(_library, seed=seed), partial(_library, voice_only=True))
        each = tuple(_errors_of(tiny(), way, loud) for way in ways)
        print(said.name, seed, snr_db, *(e.wrong for e in each), flush=True)
        heard.append(_Heard(said.name, seed, snr_db, each))
    return heard


def _noise_row(heard: Sequence[_Heard]) -> list[str]:
    totals = _totals(heard)
    return [str(totals[0].count), *map(_percent, totals)]


def _totals(heard: Sequence[_Heard]) -> list[_Errors]:
    return [_sum(each) for each in zip(*(h.each for h in heard), strict=True)]


def _difference_bounds(sounds: Sequence[Sequence[_Heard]]) -> tuple[float, float]:
    """Return bounds of our WER less the library's: noises of one sound are not independent."""
    each = np.array([[(t.wrong, t.count) for t in _totals(group)[:2]] for group in sounds])
    rng = np.random.default_rng(0)
    drawn = each[rng.integers(0, len(each), (2000, len(each)))].sum(axis=1)
    differences = 100 * (drawn[:, 0, 0] - drawn[:, 1, 0]) / drawn[:, 0, 1]
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


# --- nothing ----------------------------------------------------------------------------------


def _nothing(report: Report, _: argparse.Namespace) -> None:
    """Count words where nobody speaks, and those of the second look if it had to judge all."""
    clips = [(kind, speechless(kind, seed)) for kind in KINDS for seed in SPEECHLESS_SEEDS]
    seconds = sum(len(samples) for _, samples in clips) / SPEECH_HZ
    rows = []
    with tempfile.TemporaryDirectory() as made:
        base = FasterWhisper(str(models.find("base", Path(made))), offline=True, threads=1)
        for name, model in (("tiny.en", tiny()), ("base", base)):
            counts = np.array([_made_up(model, kind, samples) for kind, samples in clips])
            what = f"{name}, words heard where nobody speaks, {len(clips)} sounds, {seconds:.0f} s"
            report.bar(what, float(counts[:, 0].sum()), 0.0, "", ".0f")
            rows.append([name, *(_made_up_in(column) for column in counts.T)])
    head = ["", "Synorama", "its second look at all of it", "faster-whisper with its VAD"]
    report.note(f"Words, and of {len(clips)} sounds how many have any; 95 % bounds", head, rows)
    kinds = ", ".join(KINDS)
    report.note("Kinds", ["each from three seeds, 10 to 30 s, at any level"], [[kinds]])


def _made_up(model: FasterWhisper, kind: str, samples: Any) -> list[int]:
    said = Said(kind, "nothing", "en", samples, "")
    ways = (_ours, _second_look, partial(_library, voice_only=True))
    texts = [way(model, said) for way in ways]
    counts = [len(plain_words(text, "en")) for text in texts]
    print(model.model, kind, counts, *texts[:2], flush=True)
    return counts


def _second_look(model: FasterWhisper, said: Said) -> str:
    """Return what would be believed if no voice were detected and all were worth a look."""
    samples = full_scale(said.samples)
    told = model._surely_said(Versions.of(samples), [(0, len(samples))], said.language)
    return " ".join(w.text for one in told for w in one.words)


def _made_up_in(counts: Any) -> str:
    sounds = int(np.count_nonzero(counts))
    low, high = (100 * bound for bound in wilson(sounds, len(counts)))
    return f"{counts.sum()} words; {sounds} sounds ({low:.1f} to {high:.1f} %)"


def _total(errors: dict[str, _Errors], group: Sequence[Said]) -> _Errors:
    return _sum([errors[s.name] for s in group])


def _sum(each: Sequence[_Errors]) -> _Errors:
    return _Errors(
        sum(e.wrong for e in each), sum(e.count for e in each), sum(e.cost_s for e in each)
    )


def _row(what: str, group: Sequence[Said], each: Sequence[dict[str, _Errors]]) -> list[str]:
    seconds = sum(s.seconds for s in group)
    totals = [_total(errors, group) for errors in each]
    costs = " / ".join(f"{t.cost_s / seconds:.3f}" for t in totals)
    row = [what, f"{seconds:.0f}", str(totals[0].count), *map(_percent, totals), costs]
    print(row, flush=True)
    return row


def _percent(e: _Errors) -> str:
    low, high = (100 * bound for bound in wilson(min(e.wrong, e.count), e.count))
    return f"{e.percent:.1f} % ({e.wrong}; {low:.1f} to {high:.1f})"


# --- peers ------------------------------------------------------------------------------------


def _at_hand() -> list[Said]:
    return _groups(real_speech())["4_audio, one voice at a time"]


def _peers(report: Report, _: argparse.Namespace) -> None:
    """Compare what processes of their own take, loading the model included."""
    speech = _at_hand()
    seconds = sum(s.seconds for s in speech)
    rows = []
    for name in ("Synorama", "faster-whisper"):
        used = run_case(MODULE, "recognize", name)
        rows.append(_peer(name, speech, used.said, used.cpu_s / seconds, used.peak_mb))
    found = models.find("tiny.en", Path())
    made = whispercpp.recognize(found, speech) if found else None
    if made:
        texts, cpu_s, peak_mb = made
        rows.append(_peer("whisper.cpp", speech, texts, cpu_s / seconds, peak_mb))
    head = [f"tiny.en, {seconds:.0f} s", "WER", "CPU s/s", "times real time", "peak MB"]
    report.note("One thread, beam of 5, the same weights and sounds", head, rows)


def _peer(
    name: str, speech: Sequence[Said], texts: Sequence[str], cost: float, peak_mb: float
) -> list[str]:
    wrong = count = 0
    for said, text in zip(speech, texts, strict=True):
        words = plain_words(said.text, said.language)
        wrong += edits(words, plain_words(text, said.language))
        count += len(words)
    told = f"{100 * wrong / count:.1f} % ({wrong} of {count})"
    return [name, told, f"{cost:.3f}", f"{1 / cost:.0f}", f"{peak_mb:.0f}"]


def _recognized(name: str) -> list[str]:
    way = {"Synorama": _ours, "faster-whisper": _library}[name]
    return [way(tiny(), said) for said in _at_hand()]


# --- word times -------------------------------------------------------------------------------


def _starts(report: Report, _: argparse.Namespace) -> None:
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


def _thresholds(report: Report, _: argparse.Namespace) -> None:
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


def _cost(report: Report, _: argparse.Namespace) -> None:
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
        self.vocabulary_taken = self._inner.vocabulary_taken

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


# --- a fresh install --------------------------------------------------------------------------


def _install(report: Report, _: argparse.Namespace) -> None:
    """Install into a new environment without pip's cache; its tests then have no network."""
    with tempfile.TemporaryDirectory() as folder:
        python, began = Path(folder) / "venv" / "bin" / "python", time.monotonic()
        _run(sys.executable, "-m", "venv", python.parents[1])
        _run(python, "-m", "pip", "install", "-q", "--no-cache-dir", f"{ROOT}[test-speech]")
        minutes = (time.monotonic() - began) / 60
        report.bar("fresh install with test models, no cache, by the clock", minutes, 10.0, "min")
        told = _run("unshare", "-n", python, "-m", "pytest", "-q", "tests/speech")
        report.note("Its tests of speech without a network", ["pytest"], [[told.splitlines()[-1]]])


def _run(*command: object) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


CASES: dict[str, Any] = {
    "recognize": _recognized,
    "make": _make,
    "whole": lambda folder: _transcribed_long(folder, None),
    "killed": lambda folder, store: _transcribed_long(folder, store, 8),
    "resumed": _transcribed_long,
}

PARTS = {
    "words": _words,
    "noise": _noise,
    "nothing": _nothing,
    "peers": _peers,
    "starts": _starts,
    "thresholds": _thresholds,
    "cost": _cost,
    "install": _install,
}

if __name__ == "__main__":
    sys.exit(main())
