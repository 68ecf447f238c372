"""Where a session takes place: what its devices hear and see, and how they are moved.

On a `BareStage` everybody hears one sound at once and cameras show pictures that repeat. On a
`RoomStage` two people walk, talk and work in a furnished room, and sound takes time to travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.devices.aria import AriaCamera
from synorama.simulate.devices.aria_cameras import glasses_cameras
from synorama.simulate.devices.aria_streams import Glasses, Moves
from synorama.simulate.devices.gopro import GoPro
from synorama.simulate.formats.pictures import Shots
from synorama.simulate.lab import BYSTANDER, CAMERAS, GLASSES, WEBCAM, Device, Lab
from synorama.simulate.scene.cameras import Camera, KannalaBrandt, Pinhole
from synorama.simulate.scene.eyes import EyeView
from synorama.simulate.scene.layouts import build_room
from synorama.simulate.scene.motion import (
    DEVICE_CPF,
    MICROPHONES_CPF_M,
    MOUTH_CPF_M,
    Wearer,
    plan_motion,
)
from synorama.simulate.scene.render import Film, Studio
from synorama.simulate.scene.room import Room
from synorama.simulate.scene.stands import choose_stands
from synorama.simulate.scene.surface import Surface, room_surface
from synorama.simulate.sound.acoustic_scene import (
    Ears,
    Hears,
    RoomBox,
    Source,
    fixed,
    fixed_ears,
    heading,
    tone_taps,
    worn,
    worn_ears,
)
from synorama.simulate.sound.acoustics import Listener, RoomSound
from synorama.simulate.sound.dialogue import Dialogue, plan_dialogue
from synorama.simulate.sound.noises import Fan, alarm, clatter, music
from synorama.simulate.sound.plain import Sound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = ["BareStage", "RoomStage", "Stage", "stage_of"]

CAMERA_HEIGHTS_M = (1.9, 1.6, 1.25)  # of `CAMERAS`
GOPRO_FOCAL, WEBCAM_FOCAL = 0.656, 0.8125  # of the width of a picture
GOPRO_RADIAL = (0.03, -0.01, 0.002, -0.001)
WEBCAM_DISTORTION = (-0.1, 0.02, 0.001, -0.001, 0.0)
LENS_SPREAD = 0.01  # one sigma by which cameras of a model differ in focal length
GOPRO_READOUT_S, WEBCAM_READOUT_S = 0.016, 0.022  # rolling shutters, from first to last row
BLUR_PX = 1.5  # full-size pictures of worn cameras are drawn in steps of less than this
TONE_DB = (-6.0, 6.0)  # how much brighter or duller than flat a device records
GOPRO_MICROPHONES_M = (-0.03, 0.03)  # along x of the camera
FIGURE_STEP_NS = 100_000_000  # of people in small pictures
RT60_S = (0.3, 0.55)
MOUTH_LEVEL = 0.2
CLATTER_EVERY_S, ALARM_EVERY_S = 4.0, 37.0
TALKS_AFTER_S = 0.5
BYSTANDER_TALKS = 0.5  # how readily, against the wearers
MOUTH_M = 1.5  # height of somebody who stands about


class Stage(Protocol):
    """What devices perceive."""

    def hears(self, name: str, place: str) -> Hears:
        """Return what the device of that name hears where it stands."""
        ...

    def shots(self, device: Device, place: str) -> Mapping[str, Shots]:
        """Return what each camera of a device sees, by track; empty for pictures that repeat."""
        ...

    def moves(self, glasses: Glasses) -> Moves | None:
        """Return how glasses are moved, if it is known."""
        ...


def stage_of(lab: Lab, seed: int) -> BareStage | RoomStage:
    """Return the stage of a session, or of another session with the same parameters."""
    return BareStage(lab, seed) if lab.asked.room is None else RoomStage(lab, seed)


class BareStage:
    """One sound for all, at once."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self._sound = Sound(lab.start_ns, lab.asked.seconds, seed)

    def hears(self, name: str, place: str) -> Hears:
        """Return the one sound."""
        return self._sound

    def shots(self, device: Device, place: str) -> Mapping[str, Shots]:
        """Return nothing: pictures repeat."""
        return {}

    def moves(self, glasses: Glasses) -> Moves | None:
        """Return nothing: nobody knows."""
        return None


class RoomStage:
    """A furnished room, two people who wear glasses, and all that sounds.

    Parameters
    ----------
    lab
        The plan of the session.
    seed
        Of everything on the stage.
    """

    def __init__(self, lab: Lab, seed: int) -> None:
        asked = lab.asked
        self._lab, self._seed = lab, seed
        self.room: Room = build_room(
            seed, asked.room or "kitchen", contrast=asked.contrast, moved_share=asked.moved_share
        )
        self.wearers = {
            w.name: w
            for w in plan_motion(self.room, seed, start_ns=lab.start_ns, seconds=asked.seconds)
        }
        self.dialogue: Dialogue = plan_dialogue(
            seed,
            TALKS_AFTER_S,
            asked.seconds,
            lab.voices,
            talkative={BYSTANDER: BYSTANDER_TALKS},
        )
        rt60_s = randomness(seed, "reverberation").uniform(*RT60_S)
        self.sound = RoomSound(
            RoomBox.of_size(self.room.size_m, rt60_s),
            self._sources(),
            lab.start_ns,
            aligned=asked.aligned,
            seed=seed,
        )
        self.listener = lru_cache(len(lab.devices))(self._make_listener)

    # --- room and cameras --------------------------------------------------------------------

    @cached_property
    def surface(self) -> Surface:
        """The room in the session, without people."""
        return self.studio.surface

    @cached_property
    def studio(self) -> Studio:
        """The room with people, for pictures."""
        full = self._lab.asked.size == "full"
        return Studio(
            self.room,
            list(self.wearers.values()),
            texture_px=512 if full else 256,
            figure_step_ns=0 if full else FIGURE_STEP_NS,
        )

    def scanned_surface(self) -> Surface:
        """Return the room at the time of the scan."""
        return room_surface(self.room, "scan", texture_px=self.surface.atlas.side_px)

    @cached_property
    def stands(self) -> Mapping[str, Float64]:
        """``T_world_camera`` of the cameras that stand in the room."""
        t_ns = np.linspace(self._lab.start_ns, self._lab.end_ns, 40).astype(np.int64)
        people = list(self.wearers.values())
        poses = choose_stands(self.room, self.surface, people, t_ns, CAMERA_HEIGHTS_M)
        return dict(zip(CAMERAS, poses, strict=True))

    def cameras(self, device: Device, place: str) -> dict[str, Camera]:
        """Return the cameras of a device: by label for glasses, else ``video``."""
        if isinstance(device, Glasses):
            return glasses_cameras(device.serial, self._lab.asked.pictures)
        scale = 1.0 + LENS_SPREAD * float(randomness(self._seed, place, "lens").standard_normal())
        width, height = device.width, device.height
        centre = ((width - 1) / 2, (height - 1) / 2)
        lens: KannalaBrandt | Pinhole
        if isinstance(device, GoPro):
            focal = scale * GOPRO_FOCAL * width
            lens, readout_s = KannalaBrandt((focal, focal), centre, GOPRO_RADIAL), GOPRO_READOUT_S
        else:
            focal = scale * WEBCAM_FOCAL * width
            lens, readout_s = Pinhole((focal, focal), centre, WEBCAM_DISTORTION), WEBCAM_READOUT_S
        return {"video": Camera(place, lens, width, height, readout_s=readout_s)}

    # --- sound -------------------------------------------------------------------------------

    def _sources(self) -> list[Source]:
        """Return the mouths first, by the names of who speaks; then hands and things."""
        asked = self._lab.asked
        sources = [self._mouth(name) for name in self._lab.voices]
        sources += [
            Source(
                f"{name} clatter",
                partial(_hand, wearer),
                clatter(self._seed, name, 0.0, asked.seconds, every_s=CLATTER_EVERY_S),
            )
            for name, wearer in self.wearers.items()
        ]
        width, depth, _ = self.room.size_m
        corner = fixed((width / 2 - 0.3, depth / 2 - 0.3, 1.0))
        first_s = float(randomness(self._seed, "alarm").uniform(2.0, ALARM_EVERY_S))
        rings = np.arange(first_s, asked.seconds, ALARM_EVERY_S)
        return [
            *sources,
            Source("fan", corner, Fan(self._seed, "fan")),
            Source("alarm", corner, alarm(rings.tolist())),
            *self._radio(),
        ]

    def _radio(self) -> Iterator[Source]:
        if self._lab.radio:
            width, depth, _ = self.room.size_m
            place = fixed((0.4 - width / 2, 0.4 - depth / 2, 1.2))
            yield Source("radio", place, music(self._seed, 0.0, self._lab.asked.seconds))

    def _mouth(self, name: str) -> Source:
        dry = self.dialogue.dry(name)
        if name not in self.wearers:
            return Source(name, fixed(self._beside()), dry, MOUTH_LEVEL)
        head = self.wearers[name].head
        mouth = worn(head.pose, MOUTH_CPF_M.tolist())
        return Source(name, mouth, dry, MOUTH_LEVEL, heading(head.pose))

    def _beside(self) -> Sequence[float]:
        """Return where somebody stands who wears no glasses: in a free place, off the others."""
        floor = self.room.floor()
        cells = floor.origin_m + floor.cell_m * np.argwhere(floor.free)
        t_ns = np.linspace(self._lab.start_ns, self._lab.end_ns, 60).astype(np.int64)
        heads = np.concatenate([w.head(t_ns).position_m[:, :2] for w in self.wearers.values()])
        gaps = np.linalg.norm(cells[:, np.newaxis] - heads, axis=2).min(axis=1)
        x, y = (float(v) for v in cells[int(gaps.argmax())])
        return (x, y, MOUTH_M)

    def hears(self, name: str, place: str) -> Hears:
        """Return what the device hears."""
        return self.listener(name, place)

    def _make_listener(self, name: str, place: str) -> Listener:
        bright_db = float(randomness(self._seed, place, "tone").uniform(*TONE_DB))
        ears = replace(self._ears(place), tone=tone_taps(bright_db))
        if name in self._lab.ears:
            ears = self._lab.ears[name](ears)
        return self.sound.at(ears)

    def _ears(self, place: str) -> Ears:
        if place in GLASSES:
            return worn_ears(self.wearers[place].head.pose, MICROPHONES_CPF_M)
        pose = self.stands[place]
        aside = (0.0,) if place == WEBCAM else GOPRO_MICROPHONES_M
        return fixed_ears([(pose[:3, 3] + x * pose[:3, 0]).tolist() for x in aside])

    # --- pictures and motion -----------------------------------------------------------------

    def shots(self, device: Device, place: str) -> Mapping[str, Shots]:
        """Return what each camera of a device sees, by track."""
        if not self._lab.asked.rendered:
            return {}
        cameras = self.cameras(device, place)
        if isinstance(device, Glasses):
            return {c.name: self._worn_shots(device, c, cameras) for c in self._lab.asked.pictures}
        rng, film = randomness(self._seed, device.name, "film"), self._film(device)
        camera, pose, clock = cameras["video"], self.stands[place], device.clock
        return {"video": lambda t_ns: self.studio.fixed(camera, pose, clock.apply(t_ns), film, rng)}

    def _worn_shots(
        self, glasses: Glasses, camera: AriaCamera, cameras: Mapping[str, Camera]
    ) -> Shots:
        rng, film = glasses.random(f"film {camera.name}"), self._film(glasses)
        if camera.name == "et":
            views = [_eye_view(cameras[label], self._seed) for label in camera.labels]
            return lambda t_ns: self._eyes(glasses, views, t_ns, rng)
        (label,) = camera.labels
        return lambda t_ns: self.studio.worn(
            cameras[label], glasses.name, glasses.clock.apply(t_ns), film, rng
        )

    def _film(self, device: Device) -> Film:
        """Return how pictures are exposed: small ones in a moment, as each costs much."""
        if self._lab.asked.size == "small":
            return Film()
        return Film(blur_px=BLUR_PX) if isinstance(device, Glasses) else Film(subframes=2)

    def _eyes(
        self, glasses: Glasses, views: Sequence[EyeView], t_ns: int, rng: np.random.Generator
    ) -> Picture:
        gaze = self.wearers[glasses.name].gaze(glasses.clock.apply(t_ns))[0][0]
        return np.concatenate([view.picture(gaze, rng) for view in views], axis=1)

    def moves(self, glasses: Glasses) -> Moves | None:
        """Return how glasses are moved."""
        device = self.wearers[glasses.name].device
        return lambda device_ns: device(glasses.clock.apply(device_ns))

    # --- truth -------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Return what is true of the room and of what was said, as JSON-able values."""
        words = self.dialogue.words(self._lab.start_ns)
        return {
            "room": {
                "kind": self.room.kind,
                "size_m": list(self.room.size_m),
                "frame": "world",
                "contrast": self.room.contrast,
                "moved_share": self._lab.asked.moved_share,
            },
            "speakers": list(self._lab.voices),
            "words": [
                {
                    "text": w.text,
                    "speaker": w.speaker,
                    "start_ns": w.start_ns,
                    "end_ns": w.end_ns,
                    "overlapped": w.overlapped,
                }
                for w in words
            ],
        }

    @property
    def mouths(self) -> tuple[str, ...]:
        """Names of the sources that speak."""
        return tuple(self._lab.voices)


def _hand(wearer: Wearer, t_ns: Int64) -> Float64:
    """Return where the right palm is."""
    return wearer.hands_m(t_ns)[:, 1, 1]


def _eye_view(camera: Camera, seed: int) -> EyeView:
    in_cpf = np.linalg.inv(DEVICE_CPF) @ camera.device_camera
    side: Any = camera.name.rsplit("-", 1)[1]
    return EyeView(replace(camera, device_camera=in_cpf), side, seed)
