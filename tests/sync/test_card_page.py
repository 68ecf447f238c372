"""The clock card in a real browser: what it shows is read back from pictures of the screen."""

from __future__ import annotations

import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from synorama.cli import app
from synorama.errors import UsageError
from synorama.simulate.clock_card import Screen
from synorama.sync.card import CELLS, STEPS, Code, parse
from synorama.sync.card_page import card_page
from synorama.sync.card_page.server import card_server
from synorama.sync.sight import CardReader, Sighting


@contextmanager
def browser_page() -> Iterator[Any]:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    api = pytest.importorskip("playwright.sync_api")
    if browser is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            yield chromium.new_page(viewport={"width": 500, "height": 600})
        finally:
            chromium.close()


def screenshot(page: Any) -> tuple[float, Sighting | None]:
    before = page.evaluate("performance.timeOrigin + performance.now()")
    data = np.frombuffer(page.screenshot(), np.uint8)
    picture = cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return before, CardReader().read(np.asarray(picture, np.uint8))


def test_a_real_browser_shows_codes_and_light_that_agree(tmp_path: Path) -> None:
    written = tmp_path / "card.html"
    CliRunner().invoke(app, ["sync-card", "-o", str(written)], catch_exceptions=False)
    with browser_page() as page:
        page.goto(written.as_uri())
        page.wait_for_function("document.getElementById('words').textContent.length > 0")
        taken = [screenshot(page) for _ in range(8)]
    seen = [(before, s) for before, s in taken if s is not None]
    assert len(seen) >= 4
    assert len({s.code.card for _, s in seen}) == 1
    for before, s in seen:
        lit = int(s.light.argmax())
        assert s.light[lit] > 0.9
        assert lit // STEPS == s.code.side
        shown_ms = s.code.shown_ns / 1e6
        since_ms = (before - shown_ms + 5e8) % 1e9 - 5e8
        assert abs(since_ms) < 1500  # a screenshot takes its time, and no more
        assert 14.9e6 <= s.code.step_ns < 60e6


def test_the_page_needs_nothing_from_the_network() -> None:
    page = card_page()
    for fetching in ("<script src", "<link", "fetch(", "XMLHttpRequest", "import("):
        assert fetching not in page
    assert "LAYOUT */ null" not in page
    assert "Kazuhiko Arase" in page


def test_the_server_is_for_this_computer_alone() -> None:
    with card_server(0) as server:
        assert server.server_address[0] == "127.0.0.1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert urllib.request.urlopen(f"{url}/").read().decode() == card_page()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{url}/etc/passwd")
        with pytest.raises(UsageError):
            card_server(server.server_port)
        server.shutdown()


def test_the_output_is_not_replaced(tmp_path: Path) -> None:
    there = tmp_path / "card.html"
    there.write_text("mine")
    assert isinstance(
        CliRunner().invoke(app, ["sync-card", "-o", str(there)]).exception, UsageError
    )
    assert there.read_text() == "mine"
    asked = ["sync-card", "-o", str(tmp_path / "new.html"), "--dry-run"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert not (tmp_path / "new.html").exists()


def test_codes_are_read_back_and_others_are_not() -> None:
    code = Code(49, 1, 123_456_700_000, 16_700_000)
    assert parse(code.text()) == code
    assert len(code.text()) == 17
    digits = code.text()
    wrong = [digits[:k] + str((int(digits[k]) + 1) % 10) + digits[k + 1 :] for k in range(17)]
    assert all(parse(text) is None for text in wrong)
    for text in ("", "https://example.org", "1" * 16, "x" * 17, "１" * 17):
        assert parse(text) is None


def test_the_simulated_screen_shows_what_the_page_does() -> None:
    screen = Screen(refresh_hz=120)
    assert screen.step_ns == pytest.approx(2e9 / 120)
    assert CELLS == 2 * STEPS
