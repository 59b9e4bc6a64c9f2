"""``kraft-wire storage random-uuid``: an id for a new cluster."""

from __future__ import annotations

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.server.entropy import SystemEntropy


def storage_random_uuid() -> int:
    """Print a random id, to give a new cluster."""
    print(SystemEntropy().uuid())
    return EXIT_OK
