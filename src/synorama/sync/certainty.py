"""How sure a match of two sounds is: the probability that they belong together, and the interval.

Both are calibrated on simulated pairs of which the truth is known, 880 with common sound and 2,000
without. `python -m bench.sync_calibration --fit` prints constants, and without that flag measures
how often they hold on other pairs (see docs/explanation/sync.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

__all__ = [
    "SECONDS_MODEL",
    "SIGMA_FACTOR",
    "SIGMA_FLOOR_S",
    "SOUND_MODEL",
    "Evidence",
    "likeness",
    "p_match",
    "p_match_of_seconds",
]

SIGMA_FACTOR = 1.0
"""95 % of true errors lie within 1.96 times the formal ones times this; the fit gave 0.83."""
SIGMA_FLOOR_S = 15e-6
"""What codecs and microphones add, which two ideal sounds do not show."""

MOST_CERTAIN = 0.999  # no more than some hundreds of unrelated pairs can tell
MOST_SCORE, MOST_LIKE = 15.0, 4.0  # beyond, nothing grows surer
SURE_RUNNER_UP = 0.3  # a second place this low says nothing
LEAST_OVERLAP_S = 5.0

SOUND_MODEL = (-4.668, 0.162, 1.849, -0.73)
"""Constant, and what score, likeness and runner-up (times the score) add to the log odds."""
SECONDS_MODEL = (1.817, 0.167, -5.378)
"""The same for sounds of seconds: constant, score, runner-up (as it is)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a match.

    Parameters
    ----------
    score
        Minus the decimal logarithm of the probability that as many windows agree by chance.
    likeness
        How alike the recordings' loudness rises and falls: `likeness`.
    runner_up
        The next best place over the best.
    """

    score: float
    likeness: float
    runner_up: float

    @property
    def terms(self) -> tuple[float, float, float]:
        """What enters the log odds: two places that many windows agree on are one that repeats."""
        score = min(self.score, MOST_SCORE)
        rival = max(self.runner_up - SURE_RUNNER_UP, 0.0)
        return score, min(max(self.likeness, 0.0), MOST_LIKE), rival * score


def likeness(coarse_z: float, overlap_s: float) -> float:
    """Return how alike the loudness of two recordings rises and falls, however long they are.

    It is how far the place stands out when loudness is compared band by band (``coarse_z``), for
    each root second of what they share. One room mostly gives 3.2 and more unless noise drowns
    it; one song that is played in two rooms, each with sounds of its own, seldom as much.
    """
    return coarse_z / sqrt(max(overlap_s, LEAST_OVERLAP_S))


def p_match(evidence: Evidence) -> float:
    """Return the probability that two recordings are of one time and place.

    As many pairs that belong together as pairs that do not are taken to be compared.
    """
    return _probability((1.0, *evidence.terms), SOUND_MODEL)


def p_match_of_seconds(score: float, runner_up: float) -> float:
    """Return that probability where one of the two is a few seconds long."""
    terms = (1.0, min(score, MOST_SCORE), max(runner_up - SURE_RUNNER_UP, 0.0))
    return _probability(terms, SECONDS_MODEL)


def _probability(terms: tuple[float, ...], weights: tuple[float, ...]) -> float:
    odds = sum(w * t for w, t in zip(weights, terms, strict=True))
    p = 1 / (1 + exp(-odds)) if odds > -30 else 0.0
    return min(max(p, 1 - MOST_CERTAIN), MOST_CERTAIN)
