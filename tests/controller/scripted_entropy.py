"""Randomness for tests: from a seed, or from a list."""

from __future__ import annotations

import random
from collections.abc import Iterable

from kraft_wire.protocol.uuid import Uuid


class SeededEntropy:
    """A source that gives the same sequence for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> Uuid:
        while True:
            candidate = Uuid.from_random(self._random.randbytes(16))
            if not str(candidate).startswith("-"):
                return candidate

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class ScriptedEntropy(SeededEntropy):
    """A source that gives the numbers of a list (modulo the bound), then zeros."""

    def __init__(self, draws: Iterable[int] = ()) -> None:
        super().__init__()
        self._draws = iter(draws)

    def below(self, bound: int) -> int:
        return next(self._draws, 0) % bound
