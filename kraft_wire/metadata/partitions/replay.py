"""Replay the records that create and change partitions (rules:
org.apache.kafka.metadata.PartitionRegistration)."""

from __future__ import annotations

from typing import Final

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_MIGRATING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    Ids,
    Partition,
)
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.topics import Topics
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.uuid import Uuid

_RECOVERY_STATE_UNCHANGED: Final = -1
_MAX_GAP: Final = 1_000_000
"""The largest distance of a new partition's index from the topic's last one: snapshots are not always in
order."""


class PartitionReplay:
    """Applies PartitionRecord, PartitionChangeRecord and ClearElrRecord."""

    def __init__(self, topics: Topics, partitions: Partitions) -> None:
        self._topics = topics
        self._partitions = partitions

    def partition(self, record: PartitionRecord, offset: int) -> None:
        """Create a partition, or replace all of its fields."""
        topic = self._topics.rows(record.topic_id)
        index = record.partition_id
        if not 0 <= index <= topic.extent + _MAX_GAP:
            raise Contradiction(f"index {index} is out of range: {topic.name!r} has {topic.count} partitions")
        if record.leader < NO_LEADER:
            raise Contradiction(f"{topic.name}-{index} cannot have leader {record.leader}")
        new = Partition(
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            _directories(record.replicas, record.directories),
            _recovery_state(record.leader_recovery_state),
            record.removing_replicas,
            record.adding_replicas,
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
        )
        self._partitions.place(topic, index, new)

    def change(self, record: PartitionChangeRecord, offset: int) -> None:
        """Change some fields of a partition. A field that is None, or a leader of -2, stays as it is.

        A record that names a leader raises the leader epoch, even if the leader is the same. Every change
        raises the partition epoch.
        """
        topic = self._topics.rows(record.topic_id)
        index = record.partition_id
        old = self._partitions.read(topic, index)
        if old is None:
            raise Contradiction(f"{topic.name!r} has no partition {index}")
        if record.leader < NO_LEADER_CHANGE:
            raise Contradiction(f"{topic.name}-{index} cannot have leader {record.leader}")
        same_leader = record.leader == NO_LEADER_CHANGE
        state = record.leader_recovery_state
        replicas = _or(record.replicas, old.replicas)
        new = Partition(
            replicas,
            _or(record.isr, old.isr),
            old.leader if same_leader else record.leader,
            old.leader_epoch if same_leader else old.leader_epoch + 1,
            old.partition_epoch + 1,
            _directories(replicas, old.directories if record.directories is None else record.directories),
            old.leader_recovery_state if state == _RECOVERY_STATE_UNCHANGED else _recovery_state(state),
            _or(record.removing_replicas, old.removing_replicas),
            _or(record.adding_replicas, old.adding_replicas),
            _or(record.eligible_leader_replicas, old.elr),
            _or(record.last_known_elr, old.last_known_elr),
        )
        self._partitions.change(topic, index, old, new)

    def clear_elr(self, record: ClearElrRecord, offset: int) -> None:
        """Clear the eligible leader replicas of one topic, or of all topics if no name is given."""
        self._partitions.clear_elr(
            self._topics.rows_by_name(record.topic_name) if record.topic_name else None
        )


def _or(changed: Ids | None, old: Ids) -> Ids:
    return old if changed is None else changed


def _directories(replicas: Ids, directories: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    """Return the directory of each replica. If the record has none, each is "migrating"."""
    if directories.count(DIRECTORY_MIGRATING) == len(directories):
        return (DIRECTORY_MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise Contradiction(f"{len(directories)} directories are given for {len(replicas)} replicas")
    return directories


def _recovery_state(state: int) -> int:
    if state not in (RECOVERED, RECOVERING):
        raise Contradiction(f"leader recovery state {state} doesn't exist")
    return state
