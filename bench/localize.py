"""Places by pictures in some rooms, one line a room; the bars are in ``bench/acceptance``.

    python bench/localize.py --seeds 4 --first-seed 310

Each room is measured as soon as it is there, and the table is written as far as it goes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.acceptance.localization import measure
from bench.measuring import table, write_result
from synorama.simulate.scene.room import KINDS

COLUMNS = (
    ("full_deg", "full: deg", ".3f"),
    ("full_m", "m", ".4f"),
    ("full_chance_ratio", "times chance", ".0f"),
    ("weak_status", "weak, dark, blurred", "s"),
    ("weak_deg", "deg", ".3f"),
    ("weak_m", "m", ".4f"),
    ("weak_chance_ratio", "times chance", ".0f"),
    ("camera_status", "GoPros", "s"),
    ("camera_deg", "deg", ".3f"),
    ("camera_m", "m", ".4f"),
    ("wrong", "wrong accepted", ".0f"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=310)
    asked = parser.parse_args()
    rows: list[list[str]] = []
    head = ["seed", "room", *(name for _, name, _ in COLUMNS)]
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        with tempfile.TemporaryDirectory() as folder:
            found = dict(measure(seed, Path(folder)))
        found["wrong"] = found["wrong_scans"] + found["wrong_cameras"]
        rows.append([str(seed), KINDS[seed % len(KINDS)], *_cells(found)])
        print(" | ".join(rows[-1]), flush=True)
        made = f"python bench/localize.py --seeds {len(rows)} --first-seed {asked.first_seed}"
        write_result("localize", f"# localize\n\nMade by `{made}`.\n\n{table(head, rows)}")
    return 0


def _cells(found: Mapping[str, float]) -> list[str]:
    told: dict[str, float | str] = dict(found)
    told["weak_status"] = "accepted" if found["weak_accepted"] else "not accepted"
    told["camera_status"] = f"{100 * found['camera_right']:.0f} % right"
    return [format(told[key], form) if key in told else "" for key, _, form in COLUMNS]


if __name__ == "__main__":
    sys.exit(main())
