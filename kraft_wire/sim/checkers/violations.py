"""Define the error that ends a simulated run in which an invariant does not hold."""

from __future__ import annotations


class Violation(Exception):
    """An invariant that does not hold: its name, and what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(invariant, seen)
        self.invariant = invariant
        self.seen = seen

    def __str__(self) -> str:
        return f"{self.invariant}: {self.seen}"
