"""Hold periodic elections: preferred ones, and unclean ones for topics that allow them.

Kafka's ReplicationControlManager.maybeBalancePartitionLeaders (every leader.imbalance.check.interval.seconds,
if auto.leader.rebalance.enable is true) and maybeElectUncleanLeaders (every
unclean.leader.election.interval.ms).
"""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.decision.work import ALL_BROKERS, WorkKey, WorkKind
from kraft_wire.controller.partitions.election_work import ElectionWork
from kraft_wire.controller.partitions.partition_change import Election


def balance_leaders(state: ControllerState, context: Context) -> Round:
    """Elect the preferred replica of partitions that have another leader or none."""
    return _elect(state, context, WorkKind.BALANCE, Election.PREFERRED)


def elect_unclean_leaders(state: ControllerState, context: Context) -> Round:
    """Elect leaders for partitions without one, if their topics have unclean.leader.election.enable."""
    return _elect(state, context, WorkKind.ELECT_UNCLEANLY, Election.UNCLEAN)


def _elect(state: ControllerState, context: Context, kind: WorkKind, election: Election) -> Round:
    """Begin the elections, unless those of the last time are still going on."""
    if not len(state.metadata.partitions) or state.is_in_work(kind, ALL_BROKERS):
        return Round()
    work = ElectionWork(WorkKey(kind, ALL_BROKERS), election)
    piece = work.decide(state, context)
    return Round(piece.records, works=piece.rest_of(work))
