"""What a simulated run ends with when something isn't as it has to be."""

from __future__ import annotations


class Violation(Exception):
    """An invariant doesn't hold: its name, and what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(invariant, seen)
        self.invariant = invariant
        self.seen = seen

    def __str__(self) -> str:
        return f"{self.invariant}: {self.seen}"
