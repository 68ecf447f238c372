"""The documentation cannot drift: every command in it runs, and every command is in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from synorama.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for m in BLOCK.finditer(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--run-documentation"):
        pytest.skip("takes minutes; CI runs it with --run-documentation")
    for language, text in blocks(page):
        head = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
        done = subprocess.run([*head, text], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def test_every_verb_and_option_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    for name, command in commands().items():
        assert f"## `{name}" in text, f"{name} is missing"
        section = text.split(f"## `{name}")[1].split("\n## ")[0]
        options = [o for p in command.params for o in p.opts if o.startswith("--")]
        missing = [o for o in options if f"`{o}" not in section and o != "--help"]
        assert not missing, f"{name}: {missing}"
