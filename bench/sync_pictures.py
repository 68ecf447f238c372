"""Pictures of how sounds are aligned, for the documentation: a stack, and what is left over.

``python -m bench.sync --pictures docs/explanation/pictures`` draws them; it needs matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from tests.sync.sounds import dropped, heard, room, speech

from synorama.media.audio import MonoSound
from synorama.records import RecordingClock
from synorama.sync import align
from synorama.sync.lines import Line
from synorama.sync.windows import Windowing, correlate_windows

mpl.use("Agg")
Float64 = NDArray[np.float64]
SHOWN_MS = 8.0
REVERB = 1.7  # amplitude of the reverberation over that of the direct sound
DROP_S, DROPPED_S = 330.0, 0.04


def wandering(t: Float64) -> Float64:
    """Return 20 ppm, and a slow wander of a millisecond."""
    return np.asarray(2.0 + t * (1 + 20e-6) + 1e-3 * np.sin(np.pi * t / 500))


def pair() -> tuple[MonoSound, MonoSound]:
    """Return ten minutes of talk, heard at two places of a reverberant room."""
    talk = speech(620, 1)
    clock = dropped(wandering, DROP_S, DROPPED_S)
    there = room(talk, 3, reverb=REVERB)
    return (
        heard(room(talk, 2, reverb=REVERB), wander_free, 600, snr_db=0, name="a", seed=1),
        heard(there, clock, 590, snr_db=-3, name="b", seed=2),
    )


def wander_free(t: Float64) -> Float64:
    """Return the reference's own clock, which is the truth."""
    return t


def stack(axes: Any, sounds: tuple[MonoSound, MonoSound]) -> None:
    """Draw single windows, and their sum along the true line."""
    line = Line(float(wandering(np.array([60.0]))[0] - 60.0), 26e-6, 60.0)
    centres = np.linspace(20, 100, 90)
    rows = correlate_windows(*sounds, line, centres, Windowing(1.5, 0.02))
    lag_ms = (np.arange(rows.curves.shape[1]) - rows.half) / rows.rate_hz * 1e3
    shown = np.abs(lag_ms) < SHOWN_MS
    extent = (-SHOWN_MS, SHOWN_MS, float(centres[-1]), float(centres[0]))
    axes[0].imshow(
        rows.curves[:, shown], aspect="auto", extent=extent, cmap="Greys", vmin=2, vmax=8
    )
    peaks, _ = rows.peaks()
    off_ms = (peaks - rows.lags_s) * 1e3
    axes[0].plot(off_ms, rows.times_s, "r.", ms=3)
    axes[0].set(xlim=(-SHOWN_MS, SHOWN_MS), ylabel="window's time [s]")
    wrong = np.mean(np.abs(off_ms) > 0.3)
    axes[0].set_title(
        f"90 windows of 1.5 s; red: highest peak, off by more than 0.3 ms in {wrong:.0%}",
        fontsize=9,
    )
    total = np.clip(rows.curves, -3, 12).mean(axis=0)
    axes[1].plot(lag_ms[shown], total[shown], "k", lw=0.8)
    axes[1].set(xlabel="lag beside the line [ms]", ylabel="their mean")


def residuals(axes: Any, sounds: tuple[MonoSound, MonoSound]) -> None:
    """Draw by how much the clock departs from a straight line, and what the windows leave over."""
    found = align(*sounds)
    t = found.window_times_ns / 1e9
    truth = dropped(wandering, DROP_S, DROPPED_S)
    # The line, and what was lost: what is left is the wander.
    line = 2.0 + (t + DROPPED_S * (t >= DROP_S)) * (1 + 20e-6)
    got = RecordingClock("b", found.maps, "sound", None).apply(found.window_times_ns) / 1e9
    axes[0].plot(t, (truth(t) - line) * 1e3, "0.7", lw=5, label="true clock")
    axes[0].plot(t, (got - line) * 1e3, "k", lw=1, label="clock found")
    axes[0].set(ylabel="beside 20 ppm [ms]")
    axes[0].legend(fontsize=8, loc="lower center")
    axes[0].set_title(
        "A clock that wanders by 1 ms and loses 40 ms where the dashed line is", fontsize=9
    )
    for axis in axes:
        axis.axvline(DROP_S, color="k", lw=0.8, ls="--")
    axes[1].plot(t, found.residuals_ns / 1e3, "k.", ms=3)
    axes[1].plot(t, (got - truth(t)) * 1e6, "r", lw=1, label="true error")
    axes[1].set(xlabel="time [s]", ylabel="left over [us]", ylim=(-100, 100))
    axes[1].legend(fontsize=8)


def draw(folder: Path) -> None:
    """Write both pictures."""
    import matplotlib.pyplot as plt

    sounds = pair()
    for name, drawn, heights in (
        ("sync-stack.png", stack, (2, 1)),
        ("sync-residuals.png", residuals, (1, 1)),
    ):
        figure, axes = plt.subplots(
            2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=heights, layout="constrained"
        )
        drawn(axes, sounds)
        figure.savefig(folder / name, dpi=90)
        plt.close(figure)
