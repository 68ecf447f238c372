"""Devices of one small session, each with a chosen clock, role and length, hearing one sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from synorama.simulate.clocks import steady_clock
from synorama.simulate.devices.aria import SMALL, write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.devices.gopro import GoPro, write_gopro
from synorama.simulate.devices.webcam import Webcam, write_webcam
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.timebase import ClockMap

START_NS = 400_000_000_000
EPOCH_S = 1_735_725_600
HEARING = Hearing(0.8, 0.003)
CAMERA = next(camera for camera in SMALL if camera.name == "et")


@dataclass(frozen=True)
class Scene:
    """A session on the clock that starts at `START_NS`; devices may start late and stop early."""

    folder: Path
    seconds: float = 12.0
    seed: int = 4

    @cached_property
    def sound(self) -> Sound:
        return Sound(START_NS, self.seconds, self.seed)

    def clock(
        self, name: str, device_ns: int, late_s: float, seconds: float, drift_ppm: float
    ) -> ClockMap:
        return steady_clock(
            name,
            device_ns=device_ns,
            session_ns=START_NS + round(late_s * 1e9),
            length_ns=round(seconds * 1e9),
            drift_ppm=drift_ppm,
        )

    def glasses(
        self,
        name: str,
        role: Literal["server", "client"] = "server",
        *,
        device_ns: int = START_NS,
        late_s: float = 0.0,
        seconds: float | None = None,
        drift_ppm: float = 0.0,
        shared_session_id: str = "6f1c0d8e-0000-4000-8000-000000000001",
        chunk_bytes: int | None = None,
    ) -> ClockMap:
        """Write ``name/recording.vrs``; return its true ``C_session_device``."""
        seconds = seconds or self.seconds - late_s
        clock = self.clock(name, device_ns, late_s, seconds, drift_ppm)
        (self.folder / name).mkdir(parents=True)
        path = self.folder / name / "recording.vrs"
        made = Glasses(
            name=name, serial=f"1WM{name:>12}".replace(" ", "0"), clock=clock, start_ns=device_ns,
            seconds=seconds, sync_role=role, shared_session_id=shared_session_id,
            start_epoch_s=EPOCH_S + round(late_s), barcode=0, hearing=HEARING, seed=self.seed,
        )  # fmt: skip
        write_glasses(path, made, self.sound, (CAMERA,), chunk_bytes=chunk_bytes)
        return clock

    def webcam(self, name: str, *, late_s: float = 0.0, seconds: float | None = None) -> ClockMap:
        """Write ``name.webm``; return its true ``C_session_device``."""
        seconds = seconds or self.seconds - late_s
        clock = self.clock(name, 0, late_s, seconds, 40.0)
        made = Webcam(name, clock, seconds, 64, 48, 9, HEARING, self.seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_webcam(self.folder / f"{name}.webm", made, self.sound)
        return clock

    def gopro(
        self, name: str, *, number: int = 123, chapters: int = 2, serial: str = "C35013250000091"
    ) -> ClockMap:
        """Write ``name/GX01NNNN.MP4`` and on; return its true ``C_session_device``."""
        clock = self.clock(name, 0, 0.5, self.seconds, -20.0)
        made = GoPro(
            name=name, serial=serial, clock=clock, seconds=self.seconds, chapters=chapters,
            number=number, width=64, height=48, start_epoch_s=EPOCH_S, barcode=8, hearing=HEARING,
            seed=self.seed + number,
        )  # fmt: skip
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        write_gopro(self.folder / name, made, self.sound)
        return clock
