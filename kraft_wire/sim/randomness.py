"""Randomness derived from the seed: a stream of its own for every purpose, so that one more draw for one
purpose moves no other."""

from __future__ import annotations

import random


def stream(seed: int, purpose: str) -> random.Random:
    """The stream of a purpose. The same on every machine: a text as seed is hashed by SHA-512."""
    return random.Random(f"{seed}/{purpose}")


class CoreRandomness:
    """What a raft core draws from (``raft.config.Randomness``)."""

    __slots__ = ("_random",)

    def __init__(self, source: random.Random) -> None:
        self._random = source

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)
