"""Draw random numbers and ids, seeded by the operating system."""

from __future__ import annotations

import os
import random

from kraft_wire.protocol.uuid import Uuid

RESERVED_IDS = 100
_DASH = 62
"""The six bits that URL-safe base64 writes as "-"."""


class SystemEntropy:
    """The randomness of handlers and of raft in a server. None of it is secret."""

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(32))

    def uuid(self) -> Uuid:
        """Return a random id. It is never one of the lowest hundred, which Kafka reserves, and its text never
        starts with "-", which command lines would read as an option."""
        while True:
            uuid = Uuid.from_random(self._random.randbytes(16))
            if int.from_bytes(uuid) >= RESERVED_IDS and uuid[0] >> 2 != _DASH:
                return uuid

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""
        return int(self._random.random() * bound)
