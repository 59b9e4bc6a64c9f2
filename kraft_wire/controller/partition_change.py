"""How one partition changes: its leader, ISR, ELR, epochs and the end of a reassignment, as one record.

The rules are those of Kafka's PartitionChangeBuilder and PartitionReassignmentReplicas, and of KIP-966 for
the eligible leader replicas. Every record raises the partition epoch by one; every record whose leader is
set, even to the leader there already is, raises the leader epoch by one.

Two records differ from Kafka's on purpose. A partition that had no leader is never noted as last led by
broker -1. And a leader elected from the ELR whose ISR of one is large enough ends the ELR at once: it goes on
without those that are in it, so they stop having all that is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from kraft_wire.controller.context import VersionedRecord
from kraft_wire.metadata.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    Ids,
    Partition,
    PartitionRef,
)
from kraft_wire.metadata.version import (
    directory_assignment_supported,
    leader_epoch_bump_on_isr_shrink,
    partition_change_record_version,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

NO_RECOVERY_CHANGE: Final = -1
"""In a record: the leader recovery state (KIP-704) stays as it is."""


class Election(Enum):
    """What may be done to give the partition a leader. The present one stays while it is able to lead."""

    PREFERRED = "preferred"
    """From the ISR (the ELR where it is empty); the first replica takes over as soon as it can."""
    ONLINE = "online"
    """From the ISR (the ELR where it is empty)."""
    UNCLEAN = "unclean"
    """Where none of those can lead, any replica that can, which loses what it had not replicated."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a partition should become. None leaves that part as it is.

    ``directories`` are new log directories of single replicas. ``unclean_shutdown`` are brokers that may have
    lost what they had not written out: they can be in no ELR. ``replicas`` contain those that are being
    removed, at the end.
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
    """What a change depends on beside the partition and the goal.

    ``can_lead`` says of a broker whether it is up and has the directory of its replica online; ``min_isr`` is
    the topic's, at most its replication factor; ``default_directory`` is where a broker's new replica goes.
    """

    can_lead: Callable[[int], bool]
    default_directory: Callable[[int], Uuid]
    metadata_version: int
    elr_enabled: bool
    min_isr: int = 1


def partition_change(
    ref: PartitionRef, partition: Partition, goal: Goal, rules: Rules
) -> VersionedRecord | None:
    """The record that takes ``partition`` to ``goal`` under ``rules``; None where nothing changes."""
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
    """Whether a record changes nothing (but the partition epoch)."""
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
    """The partition as it is to become, while the steps above work on it."""

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
        """Drop what is being removed once all that is being added is in sync.

        Where the replication factor shrinks, all that stays must be in sync too, so that there are not fewer
        complete copies than before.
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
        """Members that leave an ISR smaller than min.insync.replicas still have all committed data."""
        if len(self.isr) >= rules.min_isr:
            self.elr = ()
            return
        gone = {*self.isr, *goal.unclean_shutdown}
        self.elr = tuple(sorted({*self.elr, *partition.isr} - gone))


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
        # An ISR of one that is large enough goes on without the others: they are not eligible any more.
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
    """When nothing in sync or eligible is left, the last leader is the best there is (KIP-966).

    Several members would not be "the last leader": another mode of recovery wrote them.
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
    """A removed replica must stop fetching: a new leader epoch makes the leader forget it."""
    if record.leader == NO_LEADER_CHANGE and not set(target.replicas).issuperset(partition.replicas):
        record.leader = partition.leader


def _set_elr(record: PartitionChangeRecord, target: _Target, partition: Partition, rules: Rules) -> None:
    if record.isr is not None or not rules.elr_enabled:
        target.elr = ()
    if set(target.elr) != set(partition.elr):
        record.eligible_leader_replicas = target.elr


def _set_isr(record: PartitionChangeRecord, target: _Target, partition: Partition, rules: Rules) -> None:
    """Without an ELR an ISR keeps its last member, as the only one that may come back to lead.

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
