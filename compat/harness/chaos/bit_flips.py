"""Flip one bit in one of a controller's files while it doesn't run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.harness.chaos.arena import Arena
from compat.harness.chaos.faults import Fault, killed
from compat.harness.kafka.quorum import Controller
from kraft_wire.log.files import PARTITION_FOLDER

PATTERNS = {
    "the first segment": "*.log",
    "the last segment": "*.log",
    "an offset index": "*.index",
    "a time index": "*.timeindex",
    "the newest snapshot": "*.checkpoint",
    "the oldest snapshot": "*.checkpoint",
    "the epochs": "leader-epoch-checkpoint",
    "the durable floor": "durable-floor",
    "the topic id": "partition.metadata",
    "the vote": "quorum-state",
    "the identity": "../meta.properties",
}
"""Kinds of files, and the glob pattern of each in the log's folder."""

MAY_REFUSE = {"the identity"}
"""The files that no other node has a copy of: a controller may refuse to start if one is damaged."""

LAST_ONES = {"the last segment", "the newest snapshot"}


def file_of(controller: Controller, kind: str) -> Path:
    """Return a file of this kind that isn't empty."""
    partition = controller.data_folder / PARTITION_FOLDER
    found = sorted(path for path in partition.glob(PATTERNS[kind]) if path.stat().st_size)
    assert found, f"{controller.name} has no file for {kind} that isn't empty: {sorted(partition.iterdir())}"
    return found[-1 if kind in LAST_ONES else 0]


def flip_a_bit(path: Path, chance: random.Random) -> Callable[[], None]:
    """Flip a random bit of a file; return a function that flips it back."""
    data = bytearray(path.read_bytes())
    position, bit = chance.randrange(len(data)), chance.randrange(8)

    def flip() -> None:
        data[position] ^= 1 << bit
        path.write_bytes(data)

    flip()
    return flip


def flip_the_last_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damaged(chance: random.Random) -> Fault:
    """Return the fault that kills a controller and flips a random bit of a random file before its restart."""

    @contextmanager
    def fault(arena: Arena, victim: Controller) -> Iterator[None]:
        with killed(arena, victim):
            kind = chance.choice(sorted(PATTERNS.keys() - MAY_REFUSE))
            flip_a_bit(file_of(victim, kind), chance)
            yield

    return fault
