"""Pictures and sound of a GoPro recording over all its chapters, on one clock.

The device clock: chapter k begins at the sum of the earlier chapters' video durations (exact, in
units of the video's time scale); within it, time is the container's own presentation time. Every
time is rounded to a nanosecond once.

Sound: a camera encodes **one AAC stream** and cuts it at packets. Sample index counts what one
decoder delivers that is fed the sound packets of all files in order: priming falls away only where
a container declares it (cameras never do), nothing is removed at the seams. The packet cut lies up
to a packet beside the cut of the pictures, so a later file's own sound times are off by up to that
much; the knots therefore go on at the nominal rate over a seam, and a chapter's container time is
believed again only where it is further away than two packets, which is a hole or an overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synorama.capture.container.health import steady_rate_hz
from synorama.capture.container.mp4 import Mp4Track
from synorama.capture.container.ticks import ticks_to_ns
from synorama.capture.gopro.chapters import Chapter
from synorama.errors import CorruptFileError
from synorama.records import FRAME_DTYPE, AudioTrack, Problem, VideoTrack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]

__all__ = ["chapter_starts", "device_ns", "sound_track", "video_track"]

CODECS = {
    "avc1": "h264",
    "avc3": "h264",
    "hvc1": "hevc",
    "hev1": "hevc",
    "mp4v": "mpeg4",
    "mp4a": "aac",
}
AAC_SAMPLES = 1024
SEAM_PACKETS = 2  # further away than this, sound does not continue the chapter before
TOLD_S = Fraction(1, 100)  # shorter holes are not worth a word
SEVERE_S = Fraction(1, 20)  # longer than the hole that some programs make of priming
NS_PER_S = 1_000_000_000


def chapter_starts(chapters: Sequence[Chapter]) -> tuple[Fraction, ...]:
    """Return where each chapter begins on the device clock [s], exact."""
    starts = [Fraction(0)]
    for chapter in chapters[:-1]:
        starts.append(starts[-1] + chapter.duration_s)
    return tuple(starts)


def device_ns(ticks: Int64, timescale: int, start: Fraction) -> Int64:
    """Return ``start + ticks / timescale`` [ns], rounded once."""
    base = math.lcm(timescale, start.denominator)
    shift = start.numerator * (base // start.denominator)
    return ticks_to_ns(np.asarray(ticks, np.int64) * (base // timescale) + shift, (1, base))


# --- pictures --------------------------------------------------------------------------------


def video_track(chapters: Sequence[Chapter]) -> VideoTrack:
    """Return the pictures of all chapters in display order."""
    starts = chapter_starts(chapters)
    parts = [_frames(c.pictures[1], k) for k, c in enumerate(chapters)]
    times_ns = np.concatenate(
        [
            device_ns(part["pts"], chapter.pictures[1].timescale, start)
            for part, chapter, start in zip(parts, chapters, starts, strict=True)
        ]
    )
    index, track = chapters[0].pictures
    return VideoTrack(
        name="video",
        codec=CODECS.get(track.codec_tag, track.codec_tag),
        width=track.width,
        height=track.height,
        times_ns=times_ns,
        index=np.concatenate(parts),
        storage="container",
        time_base=(1, track.timescale),
        stream_index=index,
        rotation_deg=track.rotation_deg,
        rate_hz=steady_rate_hz(times_ns),
        source=str(index),
    )


def _frames(track: Mp4Track, file: int) -> NDArray[np.void]:
    shown = np.flatnonzero(~track.discard)
    order = shown[np.argsort(track.pts[shown], kind="stable")]
    frames = np.zeros(len(order), FRAME_DTYPE)
    frames["file"] = file
    frames["pts"], frames["key"] = track.pts[order], track.keys[order]
    frames["offset"], frames["size"] = track.offsets[order], track.sizes[order]
    return frames


# --- sound -----------------------------------------------------------------------------------


def sound_track(chapters: Sequence[Chapter]) -> tuple[AudioTrack | None, list[Problem]]:
    """Return the sound of all chapters as one track; None if the camera recorded none.

    Raises
    ------
    CorruptFileError
        A damaged index puts the sound before where it already was.
    """
    if chapters[0].sound is None:
        return None, [Problem("no_sound", "the recording has no sound", severe=True)]
    index, first = chapters[0].sound
    joined = _Joined(Fraction(first.sample_rate_hz or first.timescale))
    for chapter, start in zip(chapters, chapter_starts(chapters), strict=True):
        assert chapter.sound is not None  # verified: all chapters have the same streams
        joined.add(chapter.sound[1], start, chapter.path.name)
    knots = joined.finish()
    if (np.diff(knots, axis=0) <= 0).any():
        raise CorruptFileError(
            "the times of its sound run backwards",
            path=chapters[0].path,
            hint="copy the chapters from the card again",
        )
    track = AudioTrack(
        name="audio",
        codec=CODECS.get(first.codec_tag, first.codec_tag),
        rate_hz=float(joined.rate),
        channels=first.channels,
        sample_count=joined.count,
        knots=knots,
        storage="container",
        stream_index=index,
        source=str(index),
        file_firsts=tuple(joined.firsts),
    )
    return track, joined.problems + _shorter(joined, chapters)


class _Joined:
    """Sample index -> device time over the chapters, in exact numbers until the end.

    Between breaks time runs on at the nominal rate from one anchor (sample, seconds).
    """

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self.count = 0
        self.firsts: list[int] = []
        self.problems: list[Problem] = []
        self._anchor: tuple[int, Fraction] | None = None
        self._knots: list[tuple[int, int]] = []

    def add(self, track: Mp4Track, start: Fraction, name: str) -> None:
        """Append the samples that a file delivers."""
        lengths = _packet_samples(track, self.rate)
        first = self.count - track.skip_samples + np.cumsum(lengths) - lengths
        seam = start + Fraction(int(track.pts[0]), track.timescale)
        shift = self._seam(int(first[0]), seam) - seam  # how much later than it says
        for i in _breaks(track, lengths, self.rate):
            sample, at = int(first[i]), start + Fraction(int(track.pts[i]), track.timescale)
            at += shift + self._skipped(sample)
            self._break(max(sample, self.count), at, name)
        self.firsts.append(self.count)
        self.count = max(int(first[-1] + lengths[-1]), self.count)

    def finish(self) -> Int64:
        """Return the knots, with one at the last sample."""
        if self.count and self._knots and self._knots[-1][0] < self.count - 1:
            self._knots.append((self.count - 1, _ns(self.time_s(self.count - 1))))
        return np.array(self._knots, np.int64).reshape(-1, 2)

    def time_s(self, sample: int) -> Fraction:
        """Return the device time [s] of a sample, as far as known now."""
        assert self._anchor is not None
        return self._anchor[1] + (sample - self._anchor[0]) / self.rate

    def _skipped(self, sample: int) -> Fraction:
        """Return how far into its packet a file begins to deliver."""
        return max(self.count - sample, 0) / self.rate

    def _seam(self, sample: int, says: Fraction) -> Fraction:
        """Return when a file's first packet is due: where the sound before it ends, if near."""
        if self._anchor is None:
            return says
        due = self.time_s(sample)
        near = abs(says - due) <= SEAM_PACKETS * AAC_SAMPLES / self.rate
        return due if near else says

    def _tell(self, off: Fraction, name: str) -> None:
        """Tell of a hole, or of sound that is longer than its time."""
        if abs(off) < TOLD_S:
            return
        what = "is missing" if off > 0 else "is too much"
        text = f"{abs(float(off)):.3f} s of sound {what} in, or just before, {name}"
        self.problems.append(Problem("gap", text, "audio", severe=abs(off) > SEVERE_S))

    def _break(self, sample: int, at: Fraction, name: str) -> None:
        """Let time go on from a sample, with a knot before it if it does not follow on."""
        if self._anchor is not None:
            off = at - self.time_s(sample)
            if not off:
                return
            self._tell(off, name)
            ahead = math.ceil((at - self._anchor[1]) * self.rate)
            before = min(sample, self._anchor[0] + ahead) - 1  # the last one that is earlier
            if before > self._knots[-1][0]:
                self._knots.append((before, _ns(self.time_s(before))))
        self._anchor = (sample, at)
        if not self._knots or (sample > self._knots[-1][0] and _ns(at) > self._knots[-1][1]):
            self._knots.append((sample, _ns(at)))


def _packet_samples(track: Mp4Track, rate: Fraction) -> Int64:
    """Return how many samples each packet decodes to."""
    if track.codec_tag == "mp4a":
        return np.full(track.count, AAC_SAMPLES, np.int64)
    samples = track.durations * int(rate) // track.timescale
    return samples.astype(np.int64)


def _breaks(track: Mp4Track, lengths: Int64, rate: Fraction) -> list[int]:
    """Return the packets that do not follow on the one before them; the first always."""
    if track.timescale == rate:
        follows = track.pts[:-1] + lengths[:-1]
        return [0, *(np.flatnonzero(track.pts[1:] != follows) + 1).tolist()]
    steps = np.diff(track.pts) * int(rate) - lengths[:-1] * track.timescale
    return [0, *(np.flatnonzero(np.abs(steps) > int(rate)) + 1).tolist()]  # more than one tick


def _ns(seconds: Fraction) -> int:
    scaled = 2 * seconds * NS_PER_S
    return int((scaled + 1) // 2)


def _shorter(joined: _Joined, chapters: Sequence[Chapter]) -> list[Problem]:
    """Tell where the pictures go on without sound."""
    ends = chapter_starts(chapters)[-1] + chapters[-1].duration_s
    lacking = float(ends - joined.time_s(joined.count)) if joined.count else float(ends)
    if lacking * float(joined.rate) <= SEAM_PACKETS * AAC_SAMPLES:
        return []
    text = f"the sound ends {lacking:.3f} s before the pictures do"
    return [Problem("sound_shorter", text, "audio", severe=lacking > 1)]
