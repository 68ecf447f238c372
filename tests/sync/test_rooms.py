"""Cameras in rooms where people walk and talk: sessions of the bar that were once not placed well.

The same measurement as ``bench/accept.py refine-clock``, which draws hundreds of others.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.acceptance.refine_clock import TRAVEL_MS, measure

ECHOES_FOR_HUM, BEYOND_THE_ROOM, HARDLY_HEARD = 25109, 25118, 25046
LOUDER_ECHOES = 25198, 27194
MOVED_ALONG_A_CORRIDOR, SOUND_TOO_SLOW, ECHO_FOR_LOSS = 35194, 35050, 25027
ONE_HEARD_BY_ECHO, ECHO_AS_LOUD = 37190, 38080
SEEDS = (
    ECHOES_FOR_HUM, BEYOND_THE_ROOM, HARDLY_HEARD, *LOUDER_ECHOES,
    MOVED_ALONG_A_CORRIDOR, SOUND_TOO_SLOW, ECHO_FOR_LOSS,
    ONE_HEARD_BY_ECHO, ECHO_AS_LOUD,
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_a_camera_is_placed_to_what_its_position_allows(seed: int, tmp_path: Path) -> None:
    got = measure(seed, tmp_path)
    assert got["placed"]
    assert all(got[f"{case}_held"] for case in ("sync", "at_5cm", "at_10cm", "unknown"))
    assert got["at_5cm_refined"]
    assert not got["made_up"]
    assert got["at_5cm_ms"] <= 0.5
    assert got["unknown_interval_ms"] <= TRAVEL_MS + 5.0
