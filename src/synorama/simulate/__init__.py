"""Sessions with known truth, written as the files that real devices write."""

from __future__ import annotations

from synorama.simulate.session import simulate, simulate_plan

__all__ = ["simulate", "simulate_plan"]
