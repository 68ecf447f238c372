"""From the sound of several devices to one transcript on the session clock.

Residual offset, levels, gate; then for each device recognition in windows and alignment; then who
spoke, each utterance once, and the transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

from synorama.errors import ClocksDisagreeError, NoSoundError
from synorama.records import SpeakerCalibration, Transcript, Word
from synorama.speech.align import Aligner
from synorama.speech.backend import Recognizer, Spoken
from synorama.speech.gate import gated
from synorama.speech.heard import HeardWord, on_session_clock, tidied
from synorama.speech.language import Language, find_language, full_scale
from synorama.speech.levels import Levels, calibrate, measure_levels
from synorama.speech.merge import segments_of, to_words, without_duplicates, without_own_overlaps
from synorama.speech.offset import MOST_NS, ResidualOffset, residual_offset
from synorama.speech.sound import SPEECH_HZ, DeviceSound
from synorama.speech.speakers import Attribution
from synorama.speech.store import WindowStore, window_key
from synorama.speech.windows import cut_windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int16 = NDArray[np.int16]

__all__ = ["Asked", "Progress", "heard_the_same", "transcribe"]

VERSION = 6
"""Raised whenever the same sound and model give other words."""

OF_RECOGNIZER = ("attention", "pocketsphinx")  # others' probabilities are of their aligner
GUESSED, ENOUGH_WORDS = 0.6, 20
"""Where the median probability of so many words is lower, two of three were wrong, or more.

Measured with tiny.en and base: speech in 0 to 5 dB of noise and German taken for English are
below it; speech of which less than half was misheard is at 0.73 or above.
"""

Progress = Callable[[int, int], None]
"""``progress(done, total)`` in seconds of sound."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for.

    Parameters
    ----------
    language
        ISO 639-1 code; None to find it out.
    vocabulary
        Words that are likely to be said, such as the names of the objects of the labels.
    align
        Whether to better the recogniser's word times by forced alignment.
    correct_offsets
        What to do where two devices heard the same more than 50 ms apart: compare their levels
        with that offset taken out, and warn; or refuse.
    """

    language: str | None = None
    vocabulary: tuple[str, ...] = ()
    align: bool = True
    correct_offsets: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Wearers:
    """What the worn devices' levels tell; the rest of the work asks here."""

    attribution: Attribution
    calibrations: tuple[SpeakerCalibration, ...]
    warnings: tuple[str, ...]

    def gated(self, sound: DeviceSound) -> Int16:
        a = self.attribution
        if not sound.worn:
            return sound.samples
        shift = a.shifts_ns.get(sound.device, 0)
        return gated(sound, a.levels, a.divides, shift)


def transcribe(
    sounds: Sequence[DeviceSound],
    recognizer: Recognizer,
    asked: Asked = Asked(),  # it is frozen
    *,
    store: WindowStore = WindowStore(),  # noqa: B008
    progress: Progress | None = None,
) -> Transcript:
    """Transcribe what one or several devices of a session heard.

    Parameters
    ----------
    sounds
        All of them are recognised. The worn ones, of which there must be two, tell who speaks.
    recognizer
        A backend with its model.
    store
        Where finished windows are kept for a run that is killed.
    progress
        Called with seconds of sound done and their total.

    Raises
    ------
    NoSoundError
        There is no sound.
    ModelLanguageError
        The model does not know the language.
    ClocksDisagreeError
        Two devices heard the same more than 50 ms apart.
    """
    if not sounds:
        raise NoSoundError("no recording has sound", hint="record with the microphones on")
    worn = [s for s in sounds if s.worn]
    wearers = _wearers(worn, asked) if len(worn) > 1 else None
    language = find_language(asked.language, sounds, recognizer)
    work = _Work(recognizer, language, asked, store)
    heard = work.run(sounds, wearers, progress or (lambda *_: None))
    return _transcript(sounds, _merged(heard, wearers), wearers, work)


def heard_the_same(sounds: Sequence[DeviceSound]) -> bool:
    """Tell whether all devices clearly heard what the first one did, within two seconds."""
    levels = measure_levels(sounds, {})
    return all(residual_offset(levels, 0, k).known for k in range(1, len(sounds)))


# --- the worn devices -------------------------------------------------------------------------


def _wearers(worn: Sequence[DeviceSound], asked: Asked) -> _Wearers:
    levels = measure_levels(worn, {})
    offsets = _offsets(levels)
    findings = _judged(levels.devices, offsets, asked.correct_offsets)
    shifts = {levels.devices[b]: -o.offset_ns for (a, b), o in offsets.items() if a == 0}
    if any(shifts.values()):
        levels = measure_levels(worn, shifts)
    divides = calibrate(levels)
    calibrations = tuple(
        divide.described(
            (levels.devices[a], levels.devices[b]),
            _known_ms(offsets.get((a, b))),
        )
        for (a, b), divide in divides.items()
    )
    doubts = [c.reason for c in calibrations if not c.learned]
    return _Wearers(Attribution(levels, divides, shifts), calibrations, (*findings, *doubts))


def _known_ms(offset: ResidualOffset | None) -> float | None:
    return offset.offset_ns / 1e6 if offset and offset.known else None


def _offsets(levels: Levels) -> dict[tuple[int, int], ResidualOffset]:
    pairs = combinations(range(len(levels.devices)), 2)
    compared = [(a, b) for a, b in pairs if levels.share_time(a, b)]
    return {(a, b): residual_offset(levels, a, b) for a, b in compared}


def _judged(
    devices: Sequence[str], offsets: Mapping[tuple[int, int], ResidualOffset], correct: bool
) -> list[str]:
    """Return what to tell of offsets, or refuse them."""
    told = []
    for (a, b), found in offsets.items():
        if not found.known:
            told.append(
                f"whether the clocks of {devices[a]} and {devices[b]} agree could not be checked "
                "by their sound: they have heard too little in common"
            )
        elif abs(found.offset_ns) > MOST_NS or found.spread_ns > 2 * MOST_NS:
            told.append(_disagreement(devices[a], devices[b], found, correct))
    return told


def _disagreement(one: str, other: str, found: ResidualOffset, correct: bool) -> str:
    text = (
        f"{other} hears the same {found.offset_ns / 1e6:+.0f} ms after {one} on the session clock "
        f"(from {found.blocks} stretches, which differ by {found.spread_ns / 1e6:.0f} ms); "
        f"at most {MOST_NS / 1e6:.0f} ms can be"
    )
    if correct:
        return f"{text}; speakers were told apart with this taken out, the words' times were not"
    raise ClocksDisagreeError(
        f"the clocks contradict the sound: {text}",
        hint="look at the sync of these two: wrong offset by hand, or a recording of another time?",
    )


# --- recognition ------------------------------------------------------------------------------


class _Work:
    """Recognises one device after the other, window by window."""

    def __init__(
        self, recognizer: Recognizer, language: Language, asked: Asked, store: WindowStore
    ) -> None:
        self.recognizer, self.language, self._asked = recognizer, language, asked
        self._store = store
        self.aligner = Aligner.for_language(language.code) if asked.align else None

    @property
    def doubts(self) -> list[str]:
        """What the operator should know of what was asked for."""
        asked = self._asked.vocabulary
        taken = self.recognizer.vocabulary_taken(asked) if asked else 0
        if taken == len(asked):
            return []
        return [
            f"the model was told the first {taken} of {len(asked)} words of the vocabulary, it has "
            f"no room for '{asked[taken]}' and what follows: put those first that matter most"
        ]

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides the words of a window besides its sound."""
        return {
            **self.recognizer.facts,
            "language": self.language.code,
            "vocabulary": list(self._asked.vocabulary),
            "alignment": "pocketsphinx" if self.aligner else "none",
            "transcriber": VERSION,
        }

    def run(
        self, sounds: Sequence[DeviceSound], wearers: _Wearers | None, progress: Progress
    ) -> list[HeardWord]:
        total = round(sum(s.seconds for s in sounds))
        heard: list[HeardWord] = []
        done = 0.0
        for sound in sounds:
            samples = wearers.gated(sound) if wearers else sound.samples
            for first, end in cut_windows(samples):
                progress(round(done), total)
                heard += on_session_clock(sound, self._window(samples[first:end]), first)
                done += (end - first) / SPEECH_HZ
        progress(total, total)
        return heard

    def _window(self, samples: Int16) -> tuple[Spoken, ...]:
        if not samples.any():
            return ()
        key = window_key(samples, self.facts)
        kept = self._store.get(key)
        if kept is None:
            kept = self._recognized(samples)
            self._store.put(key, kept)
        return kept

    def _recognized(self, samples: Int16) -> tuple[Spoken, ...]:
        found = self.recognizer.recognize(
            full_scale(samples), self.language.code, self._asked.vocabulary
        )
        spoken = tidied(found, self.language.code)
        if self.aligner is None:
            return spoken
        return self.aligner.align_all(samples, spoken)


# --- the transcript ---------------------------------------------------------------------------


def _merged(heard: Sequence[HeardWord], wearers: _Wearers | None) -> list[HeardWord]:
    if wearers is None:
        return without_own_overlaps(without_duplicates(heard, _surer))
    attribution = wearers.attribution
    named = attribution.attribute(heard)
    once = without_own_overlaps(without_duplicates(named, attribution.nearer))
    return attribution.flag_overlaps(once)


def _surer(one: HeardWord, other: HeardWord) -> bool:
    return (one.probability or 0.0) > (other.probability or 0.0)


def _transcript(
    sounds: Sequence[DeviceSound],
    heard: Sequence[HeardWord],
    wearers: _Wearers | None,
    work: _Work,
) -> Transcript:
    words = to_words(heard, {s.device: s.speaker or s.device for s in sounds})
    warnings = [text for s in sounds for text in s.warnings]
    warnings += [*work.language.warnings, *work.doubts, *(wearers.warnings if wearers else ())]
    warnings += _guesses(words, work.language.code)
    if not words:
        warnings.append("nobody was heard speaking")
    elif work.aligner is None and not any(w.timing_source == "whisperx" for w in words):
        warnings.append(
            "word times are the recogniser's own, off by a tenth of a second: "
            f"there is no forced alignment for '{work.language.code}' here"
        )
    return Transcript(
        words=words,
        segments=segments_of(words),
        language=work.language.code if words else "",
        language_probability=work.language.probability,
        backend=work.recognizer.name,
        model=work.recognizer.model,
        facts=work.facts,
        calibrations=wearers.calibrations if wearers else (),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _guesses(words: Sequence[Word], language: str) -> list[str]:
    """Tell where the recogniser itself does not believe most of what it heard."""
    known = [w.probability for w in words if w.timing_source in OF_RECOGNIZER]
    sure = [p for p in known if p is not None]
    if len(sure) < ENOUGH_WORDS or median(sure) >= GUESSED:
        return []
    return [
        f"most words are guesses: their median probability is {median(sure):.2f}, of clear speech "
        f"it is above 0.9. Listen before you use them: is '{language}' spoken, and near enough?"
    ]
