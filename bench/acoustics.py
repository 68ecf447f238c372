"""What the room's sound costs and how true it is: CPU seconds, memory, arrival, levels, decay.

python -m bench.acoustics                 60 s of two glasses and three cameras
python -m bench.acoustics --seconds 300   longer
python -m bench.acoustics --look FOLDER   also draws spectrograms there (needs matplotlib)
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.clocks import steady_clock
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import MICROPHONES_CPF_M, MOUTH_CPF_M, plan_motion
from synorama.simulate.sound.acoustic_scene import (
    Ears,
    RoomBox,
    Source,
    fixed,
    fixed_ears,
    heading,
    worn,
    worn_ears,
)
from synorama.simulate.sound.acoustics import RoomSound
from synorama.simulate.sound.clips import GRID_HZ
from synorama.simulate.sound.dialogue import plan_dialogue
from synorama.simulate.sound.noises import Fan, alarm, clatter, music
from synorama.timebase import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.simulate.sound.dialogue import Dialogue

START_NS = 10**12
RATE_HZ = 48_000.0
LIMIT_CPU_S_A_MINUTE = 25.0
MOUTH_LEVEL = 0.13


def session(
    seconds: float, *, with_music: bool
) -> tuple[RoomSound, dict[str, tuple[Ears, int]], Dialogue]:
    """Return a kitchen's sound and its devices: ears, and samples a block."""
    room = build_room(3)
    wearers = plan_motion(room, 3, start_ns=START_NS, seconds=seconds)
    talk = plan_dialogue(3, 0.5, seconds, {"leader": "anna", "helper": "carl"})
    sources = [
        Source(
            w.name,
            worn(w.head.pose, MOUTH_CPF_M),
            talk.dry(w.name),
            MOUTH_LEVEL,
            heading(w.head.pose),
        )
        for w in wearers
    ]
    sources += [
        Source(
            f"{w.name} clatter",
            lambda t, w=w: w.hands_m(t)[:, 1, 1],  # type: ignore[misc]
            clatter(3, w.name, 0.0, seconds, every_s=3.0),
        )
        for w in wearers
    ]
    width, depth, _ = room.size_m
    corner = fixed((width / 2 - 0.3, depth / 2 - 0.3, 1.0))
    sources.append(Source("fan", corner, Fan(3, "fan"), reflects=False))
    sources.append(Source("alarm", corner, alarm([20.0, 48.0])))
    if with_music:
        sources.append(Source("radio", corner, music(3, 0.0, seconds)))
    sound = RoomSound(RoomBox.of_size(room.size_m, 0.4), sources, START_NS)
    left, right, front = -width / 2 + 0.2, width / 2 - 0.2, -depth / 2 + 0.2
    cameras = {
        "gopro-front": (fixed_ears([(left, 0, 1.5), (left, 0.03, 1.5)]), 48_128),
        "gopro-rear": (fixed_ears([(right, 0, 1.8), (right, 0.03, 1.8)]), 48_128),
        "webcam": (fixed_ears([(0, front, 1.2)]), 960),
    }
    glasses = {w.name: (worn_ears(w.head.pose, MICROPHONES_CPF_M), 4096) for w in wearers}
    return sound, glasses | cameras, talk


def listen(
    sound: RoomSound, ears: Ears, block: int, seconds: float
) -> tuple[float, NDArray[np.float32]]:
    """Return CPU seconds and what the first microphone heard."""
    length_ns = round(seconds * NS_PER_S)
    clock = steady_clock("d", device_ns=0, session_ns=START_NS, length_ns=length_ns, drift_ppm=40.0)
    listener = sound.at(ears)
    began = time.process_time()
    first = []
    for start in range(0, int(seconds * RATE_HZ) - block, block):
        heard = listener.heard(clock, RATE_HZ, 0, start, block)
        first.append(heard.reshape(block, -1)[:, 0].copy())
    return time.process_time() - began, np.concatenate(first)


def levels(heard: dict[str, NDArray[np.float32]], talk: Dialogue) -> None:
    """Print how much louder each wearer is on the own glasses than on the other's."""
    for speaker, other in (("leader", "helper"), ("helper", "leader")):
        ratios, alone = [], [t for t in talk.turns if t.speaker == speaker]
        for turn in alone:
            if any(
                t.speaker != speaker and t.begin < turn.end and t.end > turn.begin
                for t in talk.turns
            ):
                continue
            span = slice(turn.begin + 2_000, turn.end)
            own, far = (np.mean(np.square(heard[name][span])) for name in (speaker, other))
            ratios.append(10 * np.log10(own / far))
        least, usual = min(ratios), np.median(ratios)
        print(f"  {speaker:8} over the other's glasses: least {least:.1f}, median {usual:.1f} dB")


def look(folder: Path, heard: dict[str, NDArray[np.float32]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(heard), 1, figsize=(14, 3 * len(heard)), sharex=True)
    for axis, (name, samples) in zip(axes, heard.items(), strict=True):
        axis.specgram(
            samples[: 30 * GRID_HZ] + 1e-9, NFFT=1024, Fs=GRID_HZ, noverlap=512, vmin=-140, vmax=-40
        )
        axis.set_title(
            f"{name}: rms {np.sqrt(np.mean(samples**2)):.4f}, peak {np.abs(samples).max():.2f}"
        )
        axis.set_ylim(0, 14_000)
    figure.tight_layout()
    figure.savefig(folder / "spectrograms.png", dpi=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--music", action="store_true")
    parser.add_argument("--look", type=Path)
    asked = parser.parse_args()
    sound, devices, talk = session(asked.seconds, with_music=asked.music)
    taken, heard = {}, {}
    for name, (ears, block) in devices.items():
        taken[name], heard[name] = listen(sound, ears, block, asked.seconds)
        print(f"  {name:12} {len(ears.gains)} ch {taken[name]:6.2f} CPU s")
    limit = LIMIT_CPU_S_A_MINUTE * asked.seconds / 60
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  together {sum(taken.values()):.1f} CPU s (at most {limit:.0f}), peak {peak:.0f} MB")
    print(f"  speech overlaps {100 * talk.overlap:.1f} % of its time")
    levels(heard, talk)
    if asked.look:
        look(asked.look, heard)


if __name__ == "__main__":
    main()
