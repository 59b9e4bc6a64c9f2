"""Decide who stands for election first when a leader is gone, so that two voters don't stand at once.

Turns only save time. If the first voter is dead, the others stand in their turns; if two stand at once all
the same, votes decide and the losers wait for a random time. Java's voters have no turns but wait longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.protocol.messages.vote_request import PartitionData
from kraft_wire.raft.door.callers import is_known_voter
from kraft_wire.raft.majority import majority_of
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, RoleState

SUCCESSOR_STEPS: Final = 5
"""A successor that the leader has named waits for as many steps for the one before it. It has time: the
leader that resigns still votes, and the step must be longer than a vote on a busy machine."""

RESIGNATION_STEPS: Final = 2
"""A follower that hears from its leader that it doesn't lead waits for so many steps for its
EndQuorumEpoch."""

YIELD_STEPS: Final = 3
"""A voter that yields to another one, or has lost to it, waits for so many steps for its announcement."""


def turn_of(own_id: int, voter_ids: Iterable[int], gone_id: int | None, epoch: int) -> int:
    """Return this voter's turn after the leader ``gone_id`` of ``epoch``: 0 for the first.

    All voters compute the same turns. They rotate with the epoch, so that a dead voter isn't always the
    first. A voter whose removal isn't committed stands after all others have had the time to announce
    themselves: it is only needed if nobody else can be elected, and would resign at once.
    """
    others = sorted(id for id in voter_ids if id != gone_id)
    if own_id not in others:
        return len(others) + YIELD_STEPS
    return (others.index(own_id) - epoch) % len(others)


def turn_deadline_ms(quorum: QuorumState) -> int:
    """Return when this follower stands for election, because its leader is gone: in its turn at first, at
    random after a lost election. A follower that is fetching a snapshot comes last, as its log is short."""
    if quorum.lost_elections:
        return quorum.failover_deadline_ms()
    state = quorum.state
    is_behind = isinstance(state, Follower) and state.following.snapshot is not None
    turn = len(quorum.history.voters) if is_behind else _turn(quorum, quorum.config.node_id)
    return quorum.now.monotonic_ms + turn * quorum.config.failover_step_ms


def _turn(quorum: QuorumState, node_id: int) -> int:
    return turn_of(node_id, quorum.history.voters.ids, quorum.state.leader_id, quorum.epoch)


def longest_turn_ms(quorum: QuorumState) -> int:
    """Return the longest time until a voter's turn, if its leader is gone and has named no successors."""
    return (len(quorum.history.voters) + YIELD_STEPS) * quorum.config.failover_step_ms


def yield_ms(quorum: QuorumState) -> int:
    """Return how long a voter waits for the announcement of one that is about to win, or has won."""
    return YIELD_STEPS * quorum.config.failover_step_ms


def successor_wait_ms(key: ReplicaKey, successors: Sequence[ReplicaKey], step_ms: int, max_ms: int) -> int:
    """Return how long a voter waits after EndQuorumEpoch until its election.

    The first successor doesn't wait, each further one waits ``SUCCESSOR_STEPS`` longer, and a node that isn't
    named waits ``max_ms``, like Java's. Java's further successors wait longer (KafkaRaftClient).
    """
    for position, successor in enumerate(successors):
        if successor.matches(key):
            return min(max_ms, position * SUCCESSOR_STEPS * step_ms)
    return max_ms


def goes_before_us(quorum: QuorumState, asked: PartitionData) -> bool:
    """Whether a voter that asks for a pre-vote should be elected rather than this one: its log is longer, or
    as long and its turn is earlier."""
    candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    if not is_known_voter(quorum, candidate) or has_shorter_log(quorum, asked):
        return False
    is_as_long = (asked.last_offset_epoch, asked.last_offset) == _own_end(quorum)
    return not is_as_long or _turn(quorum, asked.replica_id) < _turn(quorum, quorum.config.node_id)


def has_shorter_log(quorum: QuorumState, asked: PartitionData) -> bool:
    """Whether the log of one that asks for a vote ends before ours, so that it can't get our vote."""
    return (asked.last_offset_epoch, asked.last_offset) < _own_end(quorum)


def is_our_vote_needed(quorum: QuorumState, before: RoleState) -> bool:
    """Whether the others can't elect anybody whose log is shorter than ours.

    ``before`` is our state before such a candidate asked. If our last record is of the epoch of the leader
    that we knew then, its log isn't shorter than ours. So it doesn't vote for such a candidate either.
    """
    voter_ids = quorum.history.voters.ids
    has_our_records = before.leader_id in voter_ids and before.epoch == quorum.log.last_epoch
    is_other = before.leader_id != quorum.config.node_id
    return has_our_records and is_other and len(voter_ids) - 2 < majority_of(len(voter_ids))


def _own_end(quorum: QuorumState) -> tuple[int, int]:
    return quorum.log.last_epoch, quorum.log.end_offset
