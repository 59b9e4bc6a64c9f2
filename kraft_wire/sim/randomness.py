"""Derive random streams from a seed: one stream for each purpose, so that one more draw for one purpose
doesn't change the draws for any other."""

from __future__ import annotations

import random


def stream(seed: int, purpose: str) -> random.Random:
    """Return the stream of a purpose. It is the same on every machine: Python hashes a text seed with
    SHA-512."""
    return random.Random(f"{seed}/{purpose}")


class CoreRandomness:
    """The randomness of a raft core (``raft.config.Randomness``)."""

    __slots__ = ("_random",)

    def __init__(self, source: random.Random) -> None:
        self._random = source

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)
