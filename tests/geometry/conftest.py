"""A painted box that the tests of pictures share: its landmarks cost seconds."""

from __future__ import annotations

import numpy as np
import pytest

from synorama.geometry.landmarks import LandmarkView, from_cloud
from tests.geometry.painted_box import PaintedBox


@pytest.fixture(scope="session")
def box() -> PaintedBox:
    return PaintedBox(3)


@pytest.fixture(scope="session")
def landmarks_in_room(box: PaintedBox) -> tuple[LandmarkView, ...]:
    """Of its panoramas, in the frame of the room."""
    return from_cloud(box.panoramas(np.eye(4)), box.cloud())
