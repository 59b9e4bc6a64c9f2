"""Decide whether a request may raise this node's epoch.

Java believes anybody. Here a request only raises the epoch if that can help:

- While a leader is at work, only the leader believes, and only a known voter, which comes back with a higher
  epoch and can't follow otherwise; and only if this leader has led for ``SETTLED_MS``, so that a voter that
  lies, or somebody who claims its ids, costs one change of leader in that time. Followers keep to their
  leader. A pre-vote asks for nothing.
- Without a leader, known voters are believed.
- Others are believed only after a time without a leader: the voters that this node knows may be outdated
  (KIP-853).

Nothing depends on a raise that was refused: a node learns higher epochs from the answers to its own requests,
which go to the voters that it knows and to the bootstrap servers.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.raft.door.callers import hears_leader, is_known_voter
from kraft_wire.raft.effects import HigherEpochRefused
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState

SETTLED_MS: Final = 10_000


def take_raise(quorum: QuorumState, caller: ReplicaKey, epoch: int, *, is_pre_vote: bool = False) -> bool:
    """Whether a request of ``caller`` may raise the epoch to ``epoch``. A refusal is reported."""
    now_ms = quorum.now.monotonic_ms
    if _is_believed(quorum, caller, is_pre_vote=is_pre_vote) and quorum.raises.take(now_ms):
        return True
    if quorum.raises.may_report(now_ms):
        quorum.emit(HigherEpochRefused(caller, epoch, quorum.epoch))
    return False


def _is_believed(quorum: QuorumState, caller: ReplicaKey, *, is_pre_vote: bool) -> bool:
    if caller.id == quorum.config.node_id:
        return False  # a node sends itself no requests
    if hears_leader(quorum):
        is_for_leader = quorum.leadership is not None and not is_pre_vote
        return is_for_leader and quorum.leader_age_ms >= SETTLED_MS and is_known_voter(quorum, caller)
    return is_known_voter(quorum, caller) or is_long_without_leader(quorum)


def is_long_without_leader(quorum: QuorumState) -> bool:
    """Whether this node has had no leader for an election timeout."""
    return not hears_leader(quorum) and quorum.leaderless_ms >= quorum.config.election_timeout_ms
