"""Randomness, from a seed that the operating system gives."""

from __future__ import annotations

import os
import random

from kraft_wire.protocol.uuid import Uuid

RESERVED_IDS = 100


class SystemEntropy:
    """What the server gives to handlers and to raft. None of it is secret."""

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(32))

    def uuid(self) -> Uuid:
        """A random id; never one of the low hundred, which Kafka reserves, and never one whose text begins
        with
        "-", which command lines would take for an option."""
        while True:
            uuid = Uuid.from_random(self._random.randbytes(16))
            if int.from_bytes(uuid) >= RESERVED_IDS and not str(uuid).startswith("-"):
                return uuid

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""
        return int(self._random.random() * bound)
