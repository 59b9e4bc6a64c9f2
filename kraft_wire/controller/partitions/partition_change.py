"""Compute the record that changes one partition: leader, ISR, ELR, epochs and the end of a reassignment.

The rules are those of Kafka's PartitionChangeBuilder and PartitionReassignmentReplicas, and of KIP-966 for
the eligible leader replicas. Every record raises the partition epoch by one. Every record whose leader is
set, even to the present leader, raises the leader epoch by one.

Three records differ from Kafka's on purpose. The last known leader of a partition is never recorded as broker
-1, which means no leader. And if a leader is elected from the ELR and an ISR of one is large enough, the ELR
becomes empty at once: the leader commits records without the members of the ELR, so they no longer have all
committed records. And only replicas are in an ELR: one that is removed deletes its log, and may come back
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.features.metadata_version import (
    directory_assignment_supported,
    leader_epoch_bump_on_isr_shrink,
    partition_change_record_version,
)
from kraft_wire.metadata.partitions.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    Ids,
    Partition,
    PartitionRef,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

NO_RECOVERY_CHANGE: Final = -1
"""The value of a record that leaves the leader recovery state (KIP-704) unchanged."""


class Election(Enum):
    """The kind of election. The present leader stays as long as it is able to lead."""

    PREFERRED = "preferred"
    """From the ISR, or from the ELR if the ISR is empty. The first replica takes over if it can."""
    ONLINE = "online"
    """From the ISR, or from the ELR if the ISR is empty."""
    UNCLEAN = "unclean"
    """If none of those is able to lead, any replica that is. Records that it had not replicated are lost."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted state of a partition. None leaves that part unchanged.

    ``directories`` are new log directories of single replicas. ``unclean_shutdown`` are brokers that may have
    lost records that were not on stable storage: they can't be in an ELR. ``replicas`` include, at the end,
    those that are being removed.
    """

    election: Election = Election.ONLINE
    isr: Ids | None = None
    replicas: Ids | None = None
    removing: Ids | None = None
    adding: Ids | None = None
    recovery_state: int | None = None
    directories: Mapping[int, Uuid] = {}
    unclean_shutdown: Collection[int] = ()


class Rules(msgspec.Struct, frozen=True):
    """The facts on which a change depends besides the partition and the goal.

    ``can_lead`` returns whether a broker is active and the directory of its replica is online; ``min_isr`` is
    the topic's min.insync.replicas, at most its replication factor; ``default_directory`` returns the log
    directory of a new replica on a broker.
    """

    can_lead: Callable[[int], bool]
    default_directory: Callable[[int], Uuid]
    metadata_version: int
    elr_enabled: bool
    min_isr: int = 1


def partition_change(
    ref: PartitionRef, partition: Partition, goal: Goal, rules: Rules
) -> VersionedRecord | None:
    """Return the record that takes ``partition`` to ``goal`` under ``rules``, or None if nothing changes."""
    target = _Target.of(partition, goal)
    target.complete_reassignment()
    if rules.elr_enabled:
        target.move_leavers_to_elr(partition, goal, rules)
    record = PartitionChangeRecord(partition_id=ref.index, topic_id=ref.topic_id)
    _elect(record, target, partition, goal.election, rules)
    _bump_leader_epoch_for_removed_replicas(record, target, partition)
    _set_elr(record, target, partition, rules)
    _set_isr(record, target, partition, rules)
    _set_last_known_leader(record, partition, rules)
    _set_assignment(record, target, partition, goal, rules)
    if target.recovery_state != partition.leader_recovery_state:
        record.leader_recovery_state = target.recovery_state
    if is_no_op(record):
        return None
    return record, partition_change_record_version(rules.metadata_version)


def is_no_op(record: PartitionChangeRecord) -> bool:
    """Whether a record changes nothing except the partition epoch."""
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.isr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.directories is None
    )


class _Target(msgspec.Struct):
    """The partition after the change, as far as the steps of ``partition_change`` have computed it."""

    isr: Ids
    replicas: Ids
    removing: Ids
    adding: Ids
    elr: Ids
    recovery_state: int

    @classmethod
    def of(cls, partition: Partition, goal: Goal) -> _Target:
        return cls(
            partition.isr if goal.isr is None else goal.isr,
            partition.replicas if goal.replicas is None else goal.replicas,
            partition.removing_replicas if goal.removing is None else goal.removing,
            partition.adding_replicas if goal.adding is None else goal.adding,
            partition.elr,
            partition.leader_recovery_state if goal.recovery_state is None else goal.recovery_state,
        )

    def complete_reassignment(self) -> None:
        """Drop the removed replicas when all added replicas are in sync.

        If the replication factor shrinks, all remaining replicas must be in sync as well, so that there are
        not fewer complete copies than before.
        """
        if not self.removing and not self.adding:
            return
        isr = _without(self.isr, self.removing)
        replicas = _without(self.replicas, self.removing)
        if self.removing and not (isr and replicas):
            return
        awaited = replicas if len(self.adding) < len(self.removing) else ()
        if not set(isr).issuperset((*self.adding, *awaited)):
            return
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def move_leavers_to_elr(self, partition: Partition, goal: Goal, rules: Rules) -> None:
        """Add the members that leave an ISR below min.insync.replicas to the ELR.

        They have all committed records, because nothing is committed while the ISR is too small.
        """
        if len(self.isr) >= rules.min_isr:
            self.elr = ()
            return
        gone = {*self.isr, *goal.unclean_shutdown}
        self.elr = tuple(sorted({*self.elr, *partition.isr}.intersection(self.replicas) - gone))


class _Elected(NamedTuple):
    leader: int
    unclean: bool = False


def _elect(
    record: PartitionChangeRecord, target: _Target, partition: Partition, election: Election, rules: Rules
) -> None:
    elected = _election(target, partition, election, rules)
    if elected.leader == partition.leader:
        return
    record.leader = elected.leader
    if elected.leader in target.elr:
        target.isr = (elected.leader,)
        # If an ISR of one is large enough, records are committed without the others: they lose eligibility.
        target.elr = _without(target.elr, target.isr) if rules.min_isr > 1 else ()
    if elected.unclean:
        record.isr = (elected.leader,)
        if partition.leader_recovery_state != RECOVERING:
            record.leader_recovery_state = RECOVERING


def _election(target: _Target, partition: Partition, election: Election, rules: Rules) -> _Elected:
    eligible = target.isr or target.elr
    order = (partition.leader, *target.replicas)
    if election is Election.PREFERRED:
        order = (*target.replicas[:1], *order)
    for replica in order:
        if replica in eligible and rules.can_lead(replica):
            return _Elected(replica)
    if _can_elect_last_known_leader(target, partition, rules):
        return _Elected(partition.last_known_elr[0], unclean=True)
    if election is Election.UNCLEAN:
        for replica in target.replicas:
            if rules.can_lead(replica):
                return _Elected(replica, unclean=True)
    return _Elected(NO_LEADER)


def _can_elect_last_known_leader(target: _Target, partition: Partition, rules: Rules) -> bool:
    """Whether the last known leader may lead: no replica is in sync or eligible (KIP-966).

    A last known ELR of several members was written by another mode of recovery and names no leader.
    """
    return (
        rules.elr_enabled
        and not target.elr
        and not target.isr
        and len(partition.last_known_elr) == 1
        and rules.can_lead(partition.last_known_elr[0])
    )


def _bump_leader_epoch_for_removed_replicas(
    record: PartitionChangeRecord, target: _Target, partition: Partition
) -> None:
    """Raise the leader epoch if a replica is removed, so that the leader stops serving its fetches."""
    if record.leader == NO_LEADER_CHANGE and not set(target.replicas).issuperset(partition.replicas):
        record.leader = partition.leader


def _set_elr(record: PartitionChangeRecord, target: _Target, partition: Partition, rules: Rules) -> None:
    if record.isr is not None or not rules.elr_enabled:
        target.elr = ()
    if set(target.elr) != set(partition.elr):
        record.eligible_leader_replicas = target.elr


def _set_isr(record: PartitionChangeRecord, target: _Target, partition: Partition, rules: Rules) -> None:
    """Set the ISR. Without ELRs it keeps its last member, the only one that may lead later.

    Before metadata.version 3.6-IV0 brokers need a new leader epoch when the ISR shrinks (KAFKA-15021).
    """
    may_be_set = record.isr is None and bool(target.isr or rules.elr_enabled)
    if may_be_set and target.isr != partition.isr:
        record.isr = target.isr
    if (
        record.leader == NO_LEADER_CHANGE
        and record.isr is not None
        and leader_epoch_bump_on_isr_shrink(rules.metadata_version)
        and not set(record.isr).issuperset(partition.isr)
    ):
        record.leader = partition.leader


def _set_last_known_leader(record: PartitionChangeRecord, partition: Partition, rules: Rules) -> None:
    if not rules.elr_enabled:
        return
    if record.leader == NO_LEADER and partition.leader != NO_LEADER and not partition.last_known_elr:
        record.last_known_elr = (partition.leader,)
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = ()


def _set_assignment(
    record: PartitionChangeRecord, target: _Target, partition: Partition, goal: Goal, rules: Rules
) -> None:
    moved = target.replicas != partition.replicas
    if (moved or goal.directories) and directory_assignment_supported(rules.metadata_version):
        directories = _directories(target, partition, goal, rules)
        if directories != partition.directories:
            record.directories = directories
    if moved:
        record.replicas = target.replicas
    if target.removing != partition.removing_replicas:
        record.removing_replicas = target.removing
    if target.adding != partition.adding_replicas:
        record.adding_replicas = target.adding


def _directories(target: _Target, partition: Partition, goal: Goal, rules: Rules) -> tuple[Uuid, ...]:
    known = {**dict(zip(partition.replicas, partition.directories, strict=True)), **goal.directories}
    return tuple(
        known[replica] if replica in known else rules.default_directory(replica)
        for replica in target.replicas
    )


def _without(replicas: Ids, removed: Collection[int]) -> Ids:
    return tuple(replica for replica in replicas if replica not in removed)
