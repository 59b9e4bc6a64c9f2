"""``kraft-wire storage random-uuid``: an id for a new cluster."""

from __future__ import annotations

import os

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.protocol.uuid import Uuid


def storage_random_uuid() -> int:
    """Print a random id, to give a new cluster."""
    print(random_uuid())
    return EXIT_OK


def random_uuid() -> Uuid:
    """A random version 4 id whose text is no option on a command line (Kafka's Uuid.randomUuid)."""
    while str(uuid := Uuid.from_random(os.urandom(16))).startswith("-"):
        pass
    return uuid
