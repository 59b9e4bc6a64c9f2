"""Version ranges and their grammar: ``3``, ``1-4``, ``2+``, ``none``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

OPEN_END = 32767
_GRAMMAR = re.compile(r"(?P<low>\d+)(?:(?P<open>\+)|-(?P<high>\d+))?")


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions ``low`` to ``high``, both included; ``high`` is OPEN_END for "and all later ones"."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read the schema language's form. Raises ValueError for anything else."""
        stripped = text.strip()
        if stripped == "none":
            return NONE
        match = _GRAMMAR.fullmatch(stripped)
        if match is None:
            raise ValueError(f"{text!r} is not a version range; write 3, 1-4, 2+ or none")
        low = int(match["low"])
        high = OPEN_END if match["open"] else int(match["high"] or low)
        if max(low, high) > OPEN_END or low > high:
            raise ValueError(f"{text!r} is not a range within 0 to {OPEN_END}")
        return cls(low, high)

    @property
    def empty(self) -> bool:
        return self.low > self.high

    @property
    def open_ended(self) -> bool:
        return self.high == OPEN_END

    def contains(self, other: Versions) -> bool:
        """Whether this range contains every version of ``other``."""
        return other.empty or (self.low <= other.low and other.high <= self.high)

    def intersect(self, other: Versions) -> Versions:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Versions(low, high) if low <= high else NONE

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __str__(self) -> str:
        if self.empty:
            return "none"
        if self.open_ended:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NONE = Versions(0, -1)
ALL = Versions(0, OPEN_END)
