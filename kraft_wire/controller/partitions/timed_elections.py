"""Hold periodic elections: preferred ones, and unclean ones for topics that allow them.

Kafka's ReplicationControlManager.maybeBalancePartitionLeaders (every leader.imbalance.check.interval.seconds,
if auto.leader.rebalance.enable is true) and maybeElectUncleanLeaders (every
unclean.leader.election.interval.ms).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Election, Goal

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.partition import PartitionRef

MAX_ELECTIONS_PER_ROUND = 1_000


def balance_leaders(state: ControllerState, context: Context) -> Round:
    """Elect the preferred replica of partitions that have another leader or none."""
    return _elect(ClusterView(state), state.metadata.partitions.preferred_imbalanced(), Election.PREFERRED)


def elect_unclean_leaders(state: ControllerState, context: Context) -> Round:
    """Elect leaders for partitions without one, if their topics have unclean.leader.election.enable."""
    view = ClusterView(state)
    refs = (
        ref
        for ref in state.metadata.partitions.without_leader()
        if view.allows_unclean_election(ref.topic_id)
    )
    return _elect(view, refs, Election.UNCLEAN)


def _elect(view: ClusterView, refs: Iterable[PartitionRef], election: Election) -> Round:
    goal = Goal(election=election)
    records: list[VersionedRecord] = []
    for ref in refs:
        record = view.change(ref, view.partition(ref), goal)
        if record is not None:
            records.append(record)
            if len(records) == MAX_ELECTIONS_PER_ROUND:
                return Round(records, more=True)
    return Round(records)
