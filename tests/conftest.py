"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine, so that a change is judged by itself; machines may be slow.
# `pytest --hypothesis-profile=search` looks for new ones; what it finds is kept beside a test by
# `@example`.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("fixed"), derandomize=False)
settings.load_profile("fixed")

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real recordings that are not part of this repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip("real recordings (../shared/data) are not beside this checkout")
    return SHARED_DATA


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the documentation's own commands be run, which takes minutes."""
    parser.addoption("--run-documentation", action="store_true", help="run the docs' commands")


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated session of twelve seconds; tests only read it, or copy it."""
    from synorama.simulate import simulate

    folder = tmp_path_factory.mktemp("simulated") / "session"
    simulate(folder, seed=3, seconds=12.0, room=None)
    return folder
