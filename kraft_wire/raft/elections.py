"""Becoming leader, and ceasing to be it.

A quorum of one elects itself: it stands as soon as it is unattached, wins its own vote, and so never waits
for a timeout, except when it has just voted for somebody else, whom it leaves one election timeout.
"""

from __future__ import annotations

from kraft_wire.log.files import ElectionState
from kraft_wire.raft import append, membership
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import BecameLeader, ReadyToStop
from kraft_wire.raft.leadership import Leadership
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    RoleState,
    Unattached,
)
from kraft_wire.raft.voters import Endpoints, ReplicaKey

EPOCHS_SKIPPED_WITHOUT_QUORUM_STATE = 1000
"""A log without quorum-state: how many epochs this node may have led or voted in without a trace. Leading one
of them again could put two different records at one (epoch, offset)."""


def recovered_role(config: RaftConfig, election: ElectionState | None, log: LogState) -> RoleState:
    """The role that a restarted node is in. It never leads on in an epoch that it led (KAFKA-10527)."""
    if election is None:
        skipped = EPOCHS_SKIPPED_WITHOUT_QUORUM_STATE if log.end_offset else 0
        return Unattached(log.last_epoch + skipped, deadline_ms=0)
    if election.leader_epoch < log.last_epoch:
        return Unattached(log.last_epoch, deadline_ms=0)
    if election.leader_id == config.node_id:
        return Resigned(election.leader_epoch, config.node_id, config.endpoints)
    return Unattached(
        election.leader_epoch,
        deadline_ms=0,
        leader_id=election.leader_id if election.has_leader else None,
        voted=ReplicaKey(election.voted_id, election.voted_directory_id) if election.has_voted else None,
    )


# Forward.


def stand(quorum: Quorum) -> None:
    """Find out whether an election could be won; a sole voter knows."""
    tally = _own_vote(quorum)
    old = quorum.state
    quorum.become(
        Prospective(
            quorum.epoch,
            quorum.election_deadline_ms(),
            tally,
            old.leader_id,
            old.leader_endpoints,
            old.voted,
        )
    )
    if tally.is_won:
        _campaign(quorum)


def _campaign(quorum: Quorum) -> None:
    tally = _own_vote(quorum)
    quorum.become(
        Candidate(quorum.epoch + 1, quorum.election_deadline_ms(), tally, quorum.config.replica_key)
    )
    if tally.is_won:
        _lead(quorum, tally)


def _own_vote(quorum: Quorum) -> Tally:
    return Tally(frozenset(quorum.history.voters.ids)).with_grant(quorum.config.node_id)


def _lead(quorum: Quorum, tally: Tally) -> None:
    config = quorum.config
    leadership = Leadership(config.node_id, quorum.log.end_offset, quorum.history.voters)
    quorum.become(Leader(quorum.epoch, config.node_id, config.endpoints, leadership))
    quorum.emit(BecameLeader(quorum.epoch, leadership.epoch_start_offset))
    append.append_control(quorum, membership.start_of_epoch_records(quorum, tally.granted))


# Back.


def become_unattached(quorum: Quorum, epoch: int, leader_id: int | None = None) -> None:
    """A higher epoch exists. An election that was due stays due: rising epochs must not put it off for
    ever."""
    old = quorum.state
    if isinstance(old, (Unattached, Candidate, Prospective)):
        deadline_ms = old.deadline_ms
    elif quorum.is_only_voter:
        deadline_ms = quorum.now.monotonic_ms
    else:
        deadline_ms = quorum.election_deadline_ms()
    quorum.become(Unattached(epoch, deadline_ms, leader_id))


def become_follower(quorum: Quorum, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
    """Somebody else leads ``epoch``; it must be heard of within the fetch timeout."""
    old = quorum.state
    quorum.become(
        Follower(
            epoch,
            leader_id,
            endpoints,
            quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms,
            old.voted if old.epoch == epoch else None,
        )
    )


# By the clock, and at the end.


def on_deadline(quorum: Quorum) -> None:
    """What the role was waiting for did not happen in time: stand for election."""
    deadline_ms = quorum.state.deadline_ms
    if deadline_ms is None or deadline_ms > quorum.now.monotonic_ms or quorum.is_shutting_down:
        return
    stand(quorum)


def shut_down(quorum: Quorum) -> None:
    """Begin to stop: nothing more is appended; ``maybe_stop`` ends it."""
    quorum.is_shutting_down = True


def maybe_stop(quorum: Quorum) -> None:
    """Resign once everything that was appended is flushed, and with that, in a quorum of one, committed."""
    if not quorum.is_shutting_down or quorum.is_stopped:
        return
    if isinstance(quorum.state, Leader):
        if quorum.log.flushed_offset < quorum.log.end_offset:
            return
        quorum.become(Resigned(quorum.epoch, quorum.config.node_id, quorum.config.endpoints))
    quorum.is_stopped = True
    quorum.emit(ReadyToStop())
