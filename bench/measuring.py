"""What a piece of work takes: CPU seconds and peak memory of a process that does nothing else."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process took.

    Parameters
    ----------
    cpu_s
        User and system time [s], its own children's included.
    peak_mb
        Most memory that was resident [MB], pages of mapped files included.
    own_mb
        Most of it that was its own and no file's [MB], as seen every 20 ms; None where the system
        does not tell.
    said
        What it printed as JSON.
    """

    cpu_s: float
    peak_mb: float
    own_mb: float | None
    said: Any


def run_case(module: str, case: str, *arguments: object) -> Usage:
    """Run ``python -m module --case case arguments...`` and tell what it took.

    The caller must be small: a new process begins with the peak of the one that started it.
    """
    return run_command([sys.executable, "-m", module, "--case", case, *map(str, arguments)])


def run_command(command: Sequence[str], good: Container[int] = (0,)) -> Usage:
    """Run a command that prints JSON and tell what it, and all that it started, took."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, cwd=HERE.parent)
        own = _Watched(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        own.stop()
        if child.returncode not in good:
            raise subprocess.CalledProcessError(child.returncode, command)
        out.seek(0)
        said = json.loads(out.read() or "null")
    in_mb = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss / in_mb, own.peak_mb, said)


class _Watched:
    """Looks at a process's own memory until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/status")
        self._over = threading.Event()
        self.peak_mb: float | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            try:
                lines = self._path.read_text().splitlines()
            except OSError:  # it has ended, or this system tells no such thing
                return
            for line in lines:
                if line.startswith("RssAnon:"):
                    self.peak_mb = max(self.peak_mb or 0.0, int(line.split()[1]) * 1024 / 1e6)


def child_cpu_s() -> float:
    """Return the CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- what is told ----------------------------------------------------------------------------


@dataclass
class Report:
    """Bars with what was measured, and plain tables beside them; printed as they come."""

    title: str
    bars: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missed: int = 0

    def bar(self, what: str, measured: float, limit: float, unit: str, form: str = ".2f") -> None:
        """Hold a measurement to its limit."""
        met = measured <= limit
        self.missed += not met
        told = f"{measured:{form}} {unit}".strip()
        verdict = "met" if met else "**not met**"
        self.bars.append([what, told, f"at most {limit:g} {unit}".strip(), verdict])
        print(f"{what}: {told}, at most {limit:g}: {verdict}", flush=True)

    def note(self, title: str, head: list[str], rows: list[list[str]]) -> None:
        """Add a table that is held to nothing."""
        self.notes.append(f"**{title}**\n\n{table(head, rows)}")
        print(f"\n{self.notes[-1]}", flush=True)

    def text(self, command: str) -> str:
        """Return all of it as a page."""
        bars = table(["what", "measured", "bar", ""], self.bars)
        made = f"Made by `{command}`. {machine()}."
        return "\n".join([f"# {self.title}", "", made, "", bars, *self.notes])

    @property
    def exit_code(self) -> int:
        """0 where every bar is met, else 1."""
        return 1 if self.missed else 0


def revision() -> str:
    """Name the code that is measured: the digest of the package's sources."""
    listed = subprocess.run(
        ["git", "ls-files", "-s", "--", "src"], cwd=HERE.parent, capture_output=True, check=True
    )
    done = subprocess.run(
        ["git", "hash-object", "--stdin"], input=listed.stdout, capture_output=True, check=True
    )
    return done.stdout.decode().strip()[:12]


def machine() -> str:
    """Say in a few words on what it was measured."""
    return (
        f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; sources {revision()}"
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write_result(name: str, text: str) -> None:
    """Put a result where results are kept."""
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / f"{name}.md").write_text(text, "utf-8")
