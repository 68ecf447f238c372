"""Clocks by the clock card: silent cameras, truth known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from synorama.capture import open_recording
from synorama.records import Recording, UtcEstimate
from synorama.simulate.clock_card import Camera, Screen, paste
from synorama.simulate.devices.aria import SMALL, write_glasses
from synorama.simulate.devices.aria_streams import Glasses
from synorama.simulate.sound.plain import Hearing, Sound
from synorama.sync import synchronize
from synorama.sync.visual import CardSeen, Shown, cards_seen, clock_by_card
from synorama.timebase import ClockMap
from tests.sync.card_films import Filming, Picture, background, film, pose
from tests.sync.flashes import frame_times, lit_share

S = 1_000_000_000
LEFT = Filming(0.4, ppm=30, fps=30)
RIGHT = Filming(1.37, ppm=-45, fps=24, card_px=4.2)
FLASHES_S = np.array([2.2, 4.4, 6.9, 7.8, 10.2])
SEEING = {"left": LEFT, "right": RIGHT}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    folder = tmp_path_factory.mktemp("films")
    screen = Screen()
    made = {
        n: film(folder / f"{n}.mp4", f, screen, seed=k) for k, (n, f) in enumerate(SEEING.items())
    }
    for name in ("blind", "empty"):
        made[name] = film(folder / f"{name}.mp4", replace(LEFT, shown_s=(), seconds=3), screen)
    return {name: replace(open_recording(path), id=name) for name, path in made.items()}


def true_offset_ns(t_ns: int) -> float:
    """Return left's time minus right's at a time of right's."""
    true = RIGHT.true_ns(t_ns)
    return (true - LEFT.start_s * 1e9) / (1 + LEFT.ppm * 1e-6) - t_ns


def test_the_card_is_seen_at_start_and_end(films: dict[str, Recording]) -> None:
    seen = cards_seen([films["left"].files[0].path], films["left"].videos[0])
    assert [s.card for s in seen] == [7, 7]
    assert seen[0].at_ns < 5 * S < seen[1].at_ns
    for s in seen:
        true = Screen().epoch_ns + LEFT.true_ns(s.at_ns)
        off = (s.card_ns - true + 5 * 10**14) % 10**15 - 5 * 10**14
        assert abs(off) <= s.half_ns < 8e6


def test_silent_cameras_are_placed_by_the_card(films: dict[str, Recording]) -> None:
    result = synchronize([films["left"], films["right"]])
    clock = result.clocks["right"]
    assert clock.method == "card"
    assert clock.interval95_ms is not None
    assert clock.interval95_ms < 1000 / RIGHT.fps  # a fraction of a frame
    for t_s in (1, 6, 12):
        got = int(clock.apply(np.array([t_s * S], np.int64))[0]) - t_s * S
        assert abs(got - true_offset_ns(t_s * S)) / 1e6 <= clock.interval95_ms


def test_a_camera_that_saw_no_card_is_told(films: dict[str, Recording]) -> None:
    result = synchronize([films["empty"], films["blind"]])
    assert "no clock card" in result.unsynced["blind"]
    assert "blind" not in result.clocks


def test_wall_clocks_place_coarsely_and_only_for_those_who_ask(films: dict[str, Recording]) -> None:
    empty = replace(films["empty"], start_utc=UtcEstimate(0, 1_000 * S, 1.0, "gps"))
    blind = replace(films["blind"], start_utc=UtcEstimate(0, 1_130 * S, 60.0, "creation_time"))
    result = synchronize([empty, blind])
    assert "blind" not in result.clocks
    clock = result.coarse["blind"]
    assert clock.method == "creation_time"
    assert int(clock.apply(np.array([0], np.int64))[0]) == 130 * S
    assert clock.interval95_ms == pytest.approx(1.96e3 * np.hypot(60, 1))
    assert "give or take 118 s" in result.unsynced["blind"]


def test_a_clock_in_an_unknown_time_zone_places_nothing(films: dict[str, Recording]) -> None:
    empty = replace(films["empty"], start_utc=UtcEstimate(0, 1_000 * S, 1.0, "gps"))
    blind = replace(films["blind"], start_utc=UtcEstimate(0, 1_130 * S, 27_000.0, "creation_time"))
    assert synchronize([empty, blind]).coarse == {}


def flashing(path: Path, fps: int, start_s: float) -> Recording:
    """Film a dim room in which a lamp flashes, with a camera that began at this true time."""
    times = frame_times(fps, 14)
    share = lit_share(times, FLASHES_S - start_s, 0.5 / fps, lasts_s=0.2)
    scene = np.random.default_rng(3).uniform(30, 90, (96, 128))
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for k, lit in enumerate(share):
            grey = np.clip(scene + 120 * lit, 0, 255).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = k, Fraction(1, fps)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return replace(open_recording(path), id=path.stem)


def test_silent_cameras_are_placed_by_flashes_that_both_saw(tmp_path: Path) -> None:
    one, other = flashing(tmp_path / "one.mp4", 30, 0), flashing(tmp_path / "other.mp4", 25, 1.3)
    clock = synchronize([one, other]).clocks["other"]
    assert clock.method == "flash"
    assert clock.interval95_ms is not None
    got = int(clock.apply(np.array([6 * S], np.int64))[0])
    assert abs(got - 7.3 * S) / 1e6 <= clock.interval95_ms < 60


def wearing(folder: Path, screen: Screen) -> Recording:
    """Film the card with glasses: sideways, at 10 Hz, in single JPEG pictures of a VRS file."""
    start_ns, seconds = 400 * S, 6.0
    camera = replace(SMALL[0], width=480, height=480, rate_hz=10.0)
    eye = Camera(480, 480, exposure_ns=4e6, readout_ns=5e6)
    turned = np.array([[0, -1, 480], [1, 0, 0], [0, 0, 1.0]]) @ pose(5, eye, 5.5)
    rng, empty = np.random.default_rng(0), background(8, eye)

    def shot(t_ns: int) -> Picture:
        true_ns = t_ns - start_ns + 0.4 * S
        picture = paste(empty, screen, eye, turned, true_ns, rng)
        return np.repeat(picture[..., None], 3, axis=2)

    clock = ClockMap.affine("session", "glasses", offset_ns=0, anchor_ns=start_ns)
    worn = Glasses(
        name="glasses", serial="1WM00000000001", clock=clock, start_ns=start_ns, seconds=seconds,
        sync_role="server", shared_session_id="6f1c0d8e-0000-4000-8000-000000000001",
        start_epoch_s=1_735_725_600, barcode=None, hearing=Hearing(0.8, 0.003), seed=1,
    )  # fmt: skip
    path = folder / "glasses.vrs"
    write_glasses(path, worn, Sound(start_ns, seconds, 3), (camera,), shots={"rgb": shot})
    return replace(open_recording(path), id="glasses")


def test_a_silent_camera_is_placed_on_the_clock_of_glasses_that_saw_the_card(
    films: dict[str, Recording], tmp_path: Path
) -> None:
    result = synchronize([wearing(tmp_path, Screen()), films["left"]])
    assert result.reference == "glasses"
    clock = result.clocks["left"]
    assert clock.method == "card"
    assert clock.interval95_ms is not None
    got = int(clock.apply(np.array([2 * S], np.int64))[0])
    true = LEFT.true_ns(2 * S) - 0.4 * S + 400 * S
    assert abs(got - true) / 1e6 <= clock.interval95_ms < 1000 / LEFT.fps


# --- joining, without pictures ---------------------------------------------------------------

DAY = 86_400 * S


def shown(session_s: float, *, card: int = 1, half_ms: float = 1.0, epoch_s: float = 5e4) -> Shown:
    return Shown(card, round((session_s + epoch_s) * 1e9), round(session_s * 1e9), half_ms * 1e6)


def seen(device_s: float, session_s: float, **kw: float) -> CardSeen:
    at = round(device_s * 1e9)
    epoch_s = kw.get("epoch_s", 5e4)
    return CardSeen(1, at, round((session_s + epoch_s) * 1e9), kw.get("half_ms", 1.0) * 1e6, 50)


def test_two_cards_tell_the_drift() -> None:
    known = [shown(10), shown(1800)]
    clock = clock_by_card(known, [seen(5, 12), seen(5 + 1788 / 1.00005, 1800)], "c", (0, 1850 * S))
    assert not isinstance(clock, str)
    assert clock.map.drift_ppm(900 * S) == pytest.approx(50, abs=0.01)
    assert 1.4 < clock.interval95_ms < 4.5


def test_one_card_leaves_the_drift_open_and_says_so() -> None:
    clock = clock_by_card([shown(10)], [seen(5, 12)], "c", (0, 1800 * S))
    assert not isinstance(clock, str)
    assert "drift unknown" in clock.basis
    assert clock.interval95_ms > 1795 * 60e-3


def test_another_card_a_late_one_and_none_are_refused() -> None:
    for known, mine in (
        ([shown(10, card=2)], [seen(5, 12)]),
        ([shown(10)], [seen(3000, 3012)]),
        ([shown(10)], []),
    ):
        assert isinstance(clock_by_card(known, mine, "c", (0, 3100 * S)), str)


def test_cards_that_contradict_each_other_are_refused() -> None:
    known = [shown(10), shown(1800)]
    told = clock_by_card(known, [seen(5, 12), seen(1793, 1803)], "c", (0, 1800 * S))
    assert isinstance(told, str)
    assert "contradict" in told


def test_a_phone_that_slept_between_start_and_end_does_no_harm() -> None:
    slept = 5e4 - 40.0  # its clock stood still for 40 s
    known = [shown(10), shown(1800, epoch_s=slept)]
    mine = [seen(5, 12), seen(1795, 1802, epoch_s=slept)]
    clock = clock_by_card(known, mine, "c", (0, 1800 * S))
    assert not isinstance(clock, str)
    for t in (5, 1795):
        assert abs(clock.map.apply(t * S) - (t + 7) * S) < 1e6
