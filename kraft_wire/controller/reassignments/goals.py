"""Decide which state a partition is to get by a reassignment, or when one is cancelled. KIP-455.

A reassignment adds the new replicas to a partition, and marks those that are to be added and removed. When
the new ones are in sync, ``partition_change`` takes the old ones out, in the change of the ISR that completes
it.

Rules: ReplicationControlManager, PartitionReassignmentReplicas, PartitionReassignmentRevert. Other than
Java's controller, a reassignment that replaces another begins from the replicas before that one: those that
only it was adding are dropped at once. There, they are moved away from like others, and a replica may be left
among those that are added, so that the reassignment never ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.manual_assignment import shown, why_not_assignable
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.metadata.partitions.partition import Ids, Partition
from kraft_wire.metadata.topics import Topic
from kraft_wire.protocol.errors import ApiError, ErrorCode


def reassigned(
    view: ClusterView, partition: Partition, replicas: Sequence[int], *, may_change_factor: bool
) -> Goal:
    """Return the goal of moving a partition to these replicas, the preferred leader first.

    Raises ApiError: INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR.
    """
    problem = why_not_assignable(view.state, replicas)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the assignment {shown(replicas)} {problem}")
    if not may_change_factor:
        _check_factor(partition, replicas)
    former = _former(partition, replicas)
    removing = tuple(sorted(set(former).difference(replicas)))
    adding = tuple(sorted(set(replicas).difference(former)))
    isr = tuple(id for id in partition.isr if id in replicas or id in removing)
    return Goal(isr=isr, replicas=(*replicas, *removing), removing=removing, adding=adding)


def _former(partition: Partition, replicas: Sequence[int]) -> Ids:
    """Return the replicas from which a partition is moved: those before a reassignment that goes on. If none
    that stays were in sync then, all that there are."""
    former = _without(partition.replicas, partition.adding_replicas)
    stay_in_sync = {*former, *replicas}.intersection(partition.isr)
    return former if stay_in_sync or not partition.isr else partition.replicas


def _check_factor(partition: Partition, replicas: Sequence[int]) -> None:
    """A reassignment that goes on counts as if it were completed (KIP-860)."""
    present = len(set(partition.replicas).difference(partition.removing_replicas))
    if len(replicas) != present:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {present} replicas, the assignment {list(replicas)} has {len(replicas)}; the "
            "request doesn't allow another number",
        )


def cancelled(view: ClusterView, topic: Topic, partition: Partition) -> Goal:
    """Return the goal of giving a partition its former replicas back.

    If none of those is in sync, the first becomes the ISR: records are lost, so the topic must allow that.
    Raises ApiError: NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT.
    """
    if not partition.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition is not being reassigned")
    replicas = _without(partition.replicas, partition.adding_replicas)
    isr = _without(partition.isr, partition.adding_replicas)
    if not isr:
        isr = replicas[:1]
        if not isr:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "all replicas are being added: there are no former ones"
            )
        if not view.allows_unclean_election(topic.id):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "no former replica is in sync, and the topic doesn't allow unclean elections",
            )
    return Goal(election=view.online_election(topic.id), isr=isr, replicas=replicas, removing=(), adding=())


def _without(replicas: Ids, removed: Ids) -> Ids:
    return tuple(replica for replica in replicas if replica not in removed)
