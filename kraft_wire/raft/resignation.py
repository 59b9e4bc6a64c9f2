"""What a leader that has resigned still does: it tells the others, and waits until they know (Kafka's
ResignedState)."""

from __future__ import annotations

import msgspec

from kraft_wire.raft.voters import ReplicaKey


class Resignation(msgspec.Struct):
    """``successors`` are the other voters, best first; ``unacknowledged`` are those who haven't heard yet."""

    successors: tuple[ReplicaKey, ...] = ()
    unacknowledged: set[int] = msgspec.field(default_factory=set)
