"""The value of a partition. ``columns`` defines how it is stored."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.protocol.uuid import Uuid

Ids = tuple[int, ...]

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
"""The leader recovery state of a leader that was elected uncleanly and has not yet truncated its log."""


def _reserved(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


DIRECTORY_MIGRATING: Final = _reserved(0)
"""The replica has a directory, but its id is unknown (metadata from before KIP-858)."""
DIRECTORY_UNASSIGNED: Final = _reserved(1)
"""The replica has no directory yet."""
DIRECTORY_LOST: Final = _reserved(2)
"""The replica's directory is offline, and its id is unknown."""
RESERVED_DIRECTORIES: Final = 100
"""Directory ids below this number never belong to a real directory."""


def is_reserved_directory(directory: Uuid) -> bool:
    """Whether an id is one of the first hundred, which Kafka reserves for special meanings."""
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES


class PartitionRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """A partition by its topic's id and its index in the topic."""

    topic_id: Uuid
    index: int


class Partition(msgspec.Struct, frozen=True, gc=False):
    """The state of a partition (Kafka's PartitionRegistration).

    ``directories`` has one entry per entry of ``replicas``. ``leader`` is NO_LEADER if there is none. ``elr``
    and ``last_known_elr`` are those of KIP-966.
    """

    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...]
    leader_recovery_state: int = RECOVERED
    removing_replicas: Ids = ()
    adding_replicas: Ids = ()
    elr: Ids = ()
    last_known_elr: Ids = ()

    @property
    def preferred_leader(self) -> int:
        """The first replica, or NO_LEADER if there are no replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.removing_replicas or self.adding_replicas)

    def directory_of(self, broker_id: int) -> Uuid | None:
        """Return the directory of a broker's replica; None if the broker has no replica of this partition."""
        try:
            return self.directories[self.replicas.index(broker_id)]
        except ValueError:
            return None
