"""Sessions with known truth, written as the files that real devices write."""

from __future__ import annotations

from synorama.simulate.session import simulate

__all__ = ["simulate"]
