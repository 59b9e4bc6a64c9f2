"""Decide whether a request may raise this node's epoch.

Java believes anybody. Here a request only raises the epoch if that can help:

- While this node hears a leader, nobody is believed. If a known voter is said to be in a higher epoch, the
  leader asks that voter, with BeginQuorumEpoch at the address in its own voter set: only the answer counts.
  This is how a voter gets in that comes back with a higher epoch. Followers keep to their leader.
- Without a leader, known voters are believed: an election must not take longer. But a node that has just
  started doesn't know yet whether there is a leader. It asks a voter that is said to be in a higher epoch,
  and only the answer counts, too.
- Others are believed only after a time without a leader: the voters that this node knows may be outdated
  (KIP-853). Before that they get no vote either. Their raises are counted apart from those of voters, and are
  fewer, because each ends an election of this node.

A refused raise loses nothing: a node learns higher epochs from the answers to its own requests, which go to
the voters that it knows and to the bootstrap servers. A raise that was believed can't be taken back: an
observer that took a forged one follows nobody until the quorum reaches that epoch.
"""

from __future__ import annotations

from kraft_wire.raft.door.callers import hears_leader, is_known_voter
from kraft_wire.raft.door.raises import Raises
from kraft_wire.raft.effects import HigherEpochRefused
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState


def take_raise(quorum: QuorumState, caller: ReplicaKey, epoch: int) -> bool:
    """Whether a request of ``caller`` may raise the epoch to ``epoch``. A refusal is reported."""
    now_ms = quorum.now.monotonic_ms
    if is_believed(quorum, caller) and _raises(quorum, caller).take(now_ms):
        return True
    if quorum.refused_raises.take(now_ms):
        quorum.emit(HigherEpochRefused(caller, epoch, quorum.epoch))
    return False


def ask_caller(quorum: QuorumState, caller: ReplicaKey, epoch: int) -> None:
    """Ask a known voter that isn't believed for its epoch. Followers keep to their leader."""
    if not is_known_voter(quorum, caller):
        return
    now_ms = quorum.now.monotonic_ms
    if quorum.leadership is not None:
        quorum.leadership.ask(caller.id, now_ms)
    elif is_looking_for_leader(quorum):
        quorum.hints.add(caller.id, epoch, (), now_ms, is_voter=True)


def may_raise(quorum: QuorumState, caller: ReplicaKey) -> bool:
    """Whether a request of this caller could raise the epoch now."""
    return is_believed(quorum, caller) and _raises(quorum, caller).has_room(quorum.now.monotonic_ms)


def _raises(quorum: QuorumState, caller: ReplicaKey) -> Raises:
    return quorum.raises if is_known_voter(quorum, caller) else quorum.raises_of_others


def is_believed(quorum: QuorumState, caller: ReplicaKey) -> bool:
    """Whether a request of this caller may raise the epoch now."""
    if caller.id == quorum.config.node_id or hears_leader(quorum):
        return False  # a node sends itself no requests
    if is_known_voter(quorum, caller):
        return not is_looking_for_leader(quorum)
    return is_long_without_leader(quorum)


def is_looking_for_leader(quorum: QuorumState) -> bool:
    """Whether this node has heard no leader since it started, less than an election timeout ago."""
    return not quorum.has_heard_leader and not is_long_without_leader(quorum)


def is_long_without_leader(quorum: QuorumState) -> bool:
    """Whether this node has had no leader for an election timeout."""
    return not hears_leader(quorum) and quorum.leaderless_ms >= quorum.config.election_timeout_ms
