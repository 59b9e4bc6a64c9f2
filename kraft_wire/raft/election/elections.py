"""Start elections, win or lose them, follow and resign (KIP-595, KIP-996).

A quorum of one voter elects itself: it starts an election as soon as it is unattached and wins by its own
vote, so it never waits for a timeout. There is one exception: after it voted for another node it waits one
election timeout.

Starting an election is harmless, because no node that hears from a leader grants a pre-vote. So, unlike in
Java, a node starts one when it starts, when its leader resigns, and when the connection to its leader breaks.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeGuard

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import BecameLeader, EpochsUsedUp, ReadyToStop
from kraft_wire.raft.election.turns import RESIGNATION_STEPS, is_our_vote_needed, turn_deadline_ms, yield_ms
from kraft_wire.raft.epoch_limits import LAST_EPOCH
from kraft_wire.raft.leader import append
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.membership import voter_records
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Following,
    Leader,
    Prospective,
    Resignation,
    Resigned,
    RoleState,
    Unattached,
)

HANDOVER_TIMEOUT_MS: Final = 2000
"""The time that a leader has, after it is asked to stop, to commit its last records and see another
leader."""

CONTESTED_ELECTION_WAIT_MS: Final = 100
"""The time that a candidate with one vote against it waits for the other voters.

They may never answer, because the leader that has to be replaced is one of them.
"""


class StopWait(Enum):
    """What a node waits for before it stops."""

    COMMIT = "the commit of its last records"
    SUCCESSOR = "another leader"
    FLUSH = "the flush of its log"


def recovered_role(config: RaftConfig, election: ElectionState | None, log: LogState) -> RoleState:
    """Return the role of a restarted node. It never leads again in an epoch that it led (KAFKA-10527)."""
    if election is None:
        return Unattached(log.last_epoch, deadline_ms=0)
    if election.leader_epoch < log.last_epoch:
        return Unattached(log.last_epoch, deadline_ms=0)
    if election.leader_id == config.node_id:
        return Resigned(election.leader_epoch, config.node_id, config.endpoints, deadline_ms=0)
    return Unattached(
        election.leader_epoch,
        deadline_ms=0,
        leader_id=election.leader_id if election.has_leader else None,
        voted=ReplicaKey(election.voted_id, election.voted_directory_id) if election.has_voted else None,
    )


def start(quorum: QuorumState) -> None:
    """Handle the start of the node.

    The epoch that was found in the log is persisted before anything is sent: the node may later lose the part
    of the log that it was found in.
    """
    if quorum.log.last_epoch > quorum.recorded_epoch:
        quorum.persist()
    if quorum.next_epoch > LAST_EPOCH:
        quorum.emit(EpochsUsedUp(quorum.epoch))
    if quorum.may_start_election:
        start_election(quorum)


# Towards leadership.


def start_election(quorum: QuorumState) -> None:
    """Become prospective: ask whether an election could be won. A sole voter becomes leader at once.

    The first successor of a leader that has resigned is a candidate at once: pre-votes protect a leader, and
    that one doesn't lead any more. Java asks for pre-votes even then.
    """
    tally = _own_vote(quorum)
    old = quorum.state
    is_first_successor = isinstance(old, Follower) and old.following.is_first_successor
    quorum.become(
        Prospective(
            quorum.epoch,
            quorum.election_deadline_ms(),
            tally,
            old.leader_id,
            old.leader_endpoints,
            old.voted,
            old.following if isinstance(old, Follower) else None,
        )
    )
    if tally.is_won or is_first_successor:
        become_candidate(quorum)


def become_candidate(quorum: QuorumState) -> None:
    """Raise the epoch and ask for votes."""
    tally = _own_vote(quorum)
    quorum.become(
        Candidate(quorum.next_epoch, quorum.election_deadline_ms(), tally, quorum.config.replica_key)
    )
    if tally.is_won:
        become_leader(quorum, tally)


def _own_vote(quorum: QuorumState) -> Tally:
    return Tally(frozenset(quorum.history.voters.ids)).with_answer(quorum.config.node_id, granted=True)


def become_leader(quorum: QuorumState, tally: Tally) -> None:
    """Lead the epoch, after the election is won."""
    config = quorum.config
    quorum.lost_elections = 0
    leadership = Leadership(
        config.node_id, quorum.log.end_offset, quorum.history.voters, quorum.now.monotonic_ms
    )
    quorum.become(Leader(quorum.epoch, config.node_id, config.endpoints, leadership))
    quorum.emit(BecameLeader(quorum.epoch, leadership.epoch_start_offset))
    append.append_control(quorum, voter_records.start_of_epoch_records(quorum, tally.granted))


# Away from leadership.


def abandon_pre_vote(quorum: QuorumState) -> None:
    """Return to the leader that was followed until now, if there was one, after a pre-vote that wasn't
    won."""
    quorum.lost_elections += 1
    old = quorum.state
    is_gone = isinstance(old, Prospective) and old.following is not None and old.following.leader_is_gone
    if is_gone or not _can_follow_again(quorum):
        _end_pre_vote(quorum, quorum.failover_deadline_ms())
    else:
        _end_pre_vote(quorum, _fetch_deadline_ms(quorum))


def _can_follow_again(quorum: QuorumState) -> bool:
    """Whether the leader of the epoch is another node, and its address is known."""
    state = quorum.state
    return state.leader_id not in (None, quorum.config.node_id) and bool(state.leader_endpoints)


def _end_pre_vote(quorum: QuorumState, deadline_ms: int) -> None:
    """Follow again or be unattached. The next election is due at ``deadline_ms``."""
    old = quorum.state
    assert isinstance(old, Prospective)  # a Candidate can't return: it has voted for itself
    if old.leader_id is None or not _can_follow_again(quorum):
        quorum.become(Unattached(old.epoch, deadline_ms, old.leader_id, old.voted))
        return
    # A new Following: this leader's earlier answers must not keep us from granting pre-votes.
    following = Following(leader_is_gone=old.following is not None and old.following.leader_is_gone)
    quorum.become(Follower(old.epoch, old.leader_id, old.leader_endpoints, deadline_ms, old.voted, following))


def yield_election(quorum: QuorumState) -> None:
    """Let another voter stand first, to which this one has granted its pre-vote.

    It happens once in an epoch, so that a voter that never wins can't delay the others for ever.
    """
    state = quorum.state
    if quorum.yielded_in_epoch == state.epoch or not isinstance(state, (Follower, Unattached, Prospective)):
        return
    quorum.yielded_in_epoch = state.epoch
    deadline_ms = quorum.now.monotonic_ms + yield_ms(quorum)
    if isinstance(state, Prospective):
        _end_pre_vote(quorum, deadline_ms)
    else:
        # Not a transition: only the deadline is later.
        quorum.state = msgspec.structs.replace(state, deadline_ms=max(state.deadline_ms, deadline_ms))


def retry_election_soon(quorum: QuorumState, wait_ms: int = 1) -> None:
    """Hasten the next election of a candidate that has lost or got a vote against it.

    The likely reason is that two candidates ran at once. The next election is due after ``wait_ms`` and a
    random delay instead of the rest of the election timeout. If a majority has rejected this candidate, the
    other one has probably won: the wait must be long enough for its announcement, or this node deposes it.
    """
    deadline_ms = min(quorum.state.deadline_ms or 0, quorum.failover_deadline_ms() + wait_ms)
    quorum.state = msgspec.structs.replace(quorum.state, deadline_ms=deadline_ms)


def become_unattached(quorum: QuorumState, epoch: int, leader_id: int | None = None) -> None:
    """Adopt a higher epoch. An election that was due stays due, so that rising epochs can't delay it for
    ever; so does the turn of a follower whose leader is gone."""
    old = quorum.state
    awaits_turn = isinstance(old, Follower) and old.following.leader_is_gone
    if awaits_turn or isinstance(old, (Unattached, Candidate, Prospective)):
        assert old.deadline_ms is not None, "these roles have a deadline"
        deadline_ms = old.deadline_ms
    elif quorum.is_only_voter:
        deadline_ms = quorum.now.monotonic_ms
    else:
        deadline_ms = quorum.election_deadline_ms()
    quorum.become(Unattached(epoch, deadline_ms, leader_id))


def become_follower(quorum: QuorumState, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
    """Follow the leader of ``epoch``, which must answer within the fetch timeout."""
    old = quorum.state
    quorum.become(
        Follower(
            epoch,
            leader_id,
            endpoints,
            _fetch_deadline_ms(quorum),
            old.voted if old.epoch == epoch else None,
            old.following if isinstance(old, Follower) and old.epoch == epoch else Following(),
        )
    )


def resign(quorum: QuorumState) -> None:
    """Stop leading, and notify the other voters."""
    assert quorum.leadership is not None
    successors = quorum.leadership.successors()
    config = quorum.config
    quorum.become(
        Resigned(
            quorum.epoch,
            config.node_id,
            config.endpoints,
            quorum.election_deadline_ms(),
            Resignation(successors, {key.id for key in successors}),
        )
    )


def _fetch_deadline_ms(quorum: QuorumState) -> int:
    return quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms


# Learning about the leader.


def learn_leader(quorum: QuorumState, epoch: int, leader_id: int | None, endpoints: Endpoints) -> bool:
    """Learn the leader of ``epoch``, which isn't below ours; ``leader_id`` is None if it is unknown.

    Returns False, with nothing changed, for an impossible leader: a second one for our epoch, or this node
    while it doesn't lead.
    """
    if leader_id == quorum.config.node_id:
        return (epoch == quorum.epoch and quorum.state.leader_id == leader_id) or _remember_own_leadership(
            quorum, epoch
        )
    known = quorum.state.leader_id if epoch == quorum.epoch else None
    if known is not None and leader_id is not None and known != leader_id:
        return False
    if leader_id is not None:
        endpoints = endpoints or quorum.history.voters.endpoints_of(leader_id)
        if endpoints and (known is None or len(endpoints) > len(quorum.state.leader_endpoints)):
            become_follower(quorum, epoch, leader_id, endpoints)
            return True
    if epoch > quorum.epoch:
        become_unattached(quorum, epoch, leader_id)
    return True


def _remember_own_leadership(quorum: QuorumState, epoch: int) -> bool:
    """Learn from a peer that this node leads ``epoch``. That can be true if quorum-state was lost."""
    own, state = quorum.config.node_id, quorum.state
    if epoch > quorum.no_vote_up_to_epoch:
        return False
    if epoch > quorum.epoch:
        become_unattached(quorum, epoch, own)
        return True
    if not isinstance(state, (Unattached, Prospective)) or state.leader_id is not None:
        return False
    # Not a transition: the same role, which now knows a leader that it can't follow.
    quorum.state = msgspec.structs.replace(state, leader_id=own)
    if isinstance(state, Unattached):
        quorum.persist()
    return True


def note_leader_gone(quorum: QuorumState, state: Follower) -> None:
    """Start an election soon instead of after the fetch timeout, because there are signs that the leader is
    gone."""
    has_yielded = state.following.leader_is_gone and quorum.yielded_in_epoch == state.epoch
    if not has_yielded:
        start_election_at(quorum, state, min(state.deadline_ms, turn_deadline_ms(quorum)))


def note_leader_resigned(quorum: QuorumState, state: Follower) -> None:
    """Start an election a little later than if the leader were dead: its EndQuorumEpoch, which names its
    successors, may be on its way."""
    if not state.following.leader_is_gone:
        due_ms = turn_deadline_ms(quorum) + RESIGNATION_STEPS * quorum.config.failover_step_ms
        start_election_at(quorum, state, min(state.deadline_ms, due_ms))


def hurry_election(quorum: QuorumState, before: RoleState) -> None:
    """Don't wait for our turn after a voter whose log is shorter than ours: it can't win with our vote.

    ``before`` is our state before its request. If that request has raised our epoch, an election is needed in
    any case. If others may elect that voter without us, it first has time to announce itself, because we
    would depose it. A leader that it ends doesn't hurry: the two could end each other again and again.
    """
    state, now_ms = quorum.state, quorum.now.monotonic_ms
    if isinstance(state, Follower) and state.following.leader_is_gone and not quorum.lost_elections:
        start_election_at(quorum, state, min(state.deadline_ms, now_ms))
    elif _is_free(state) and not isinstance(before, Leader):
        due_ms = quorum.failover_deadline_ms() if quorum.lost_elections else now_ms
        due_ms += 0 if is_our_vote_needed(quorum, before) else yield_ms(quorum)
        # Not a transition: only the deadline is earlier.
        quorum.state = msgspec.structs.replace(state, deadline_ms=min(state.deadline_ms, due_ms))


def _is_free(state: RoleState) -> TypeGuard[Unattached]:
    """Whether a node has neither a leader nor a candidate in its epoch."""
    return isinstance(state, Unattached) and state.voted is None and state.leader_id is None


def start_election_at(quorum: QuorumState, state: Follower, deadline_ms: int) -> None:
    """Start an election at this time, because the leader is gone."""
    state.following.leader_is_gone = True
    # Not a transition: only the deadline is earlier.
    quorum.state = msgspec.structs.replace(state, deadline_ms=deadline_ms)


def note_leader_alive(quorum: QuorumState) -> None:
    """Note an answer of our leader in which it acts as the leader."""
    state = quorum.state
    if isinstance(state, Follower):
        state.following.has_fetched = True
        state.following.leader_is_gone = False
        quorum.lost_elections = 0
        quorum.state = msgspec.structs.replace(state, deadline_ms=_fetch_deadline_ms(quorum))


# Deadlines and shutdown.


def role_deadline_ms(quorum: QuorumState) -> int | None:
    """Return the time until which the role waits; None if it waits for nothing."""
    state = quorum.state
    if isinstance(state, Leader):
        contact_ms = state.leadership.majority_contact_ms()
        return None if contact_ms is None else contact_ms + _check_quorum_timeout_ms(quorum)
    return state.deadline_ms if quorum.may_start_election else None


def _check_quorum_timeout_ms(quorum: QuorumState) -> int:
    return quorum.config.fetch_timeout_ms * 3 // 2


def on_deadline(quorum: QuorumState) -> None:
    """Leave the role if the event that it waits for did not happen in time."""
    due_ms = role_deadline_ms(quorum)
    if due_ms is None or due_ms > quorum.now.monotonic_ms:
        return
    match quorum.state:
        case Leader():
            resign(quorum)
        case Prospective():
            abandon_pre_vote(quorum)
        case Candidate():
            quorum.lost_elections += 1
            start_election(quorum)
        case _:
            start_election(quorum)


def shut_down(quorum: QuorumState) -> None:
    """Begin to stop: nothing more is appended, and ``stop_if_done`` completes the stop."""
    quorum.is_shutting_down = True
    if not quorum.is_only_voter:
        quorum.stop_deadline_ms = quorum.now.monotonic_ms + HANDOVER_TIMEOUT_MS


def stop_if_done(quorum: QuorumState) -> None:
    """Continue a shutdown, and stop when it is complete.

    A leader resigns when its records are committed, and stops when another node leads. Any other node stops
    when its log is flushed. If there are other voters, neither waits longer than the handover timeout.
    """
    if not quorum.is_shutting_down or quorum.is_stopped:
        return
    is_late = quorum.stop_deadline_ms is not None and quorum.now.monotonic_ms >= quorum.stop_deadline_ms
    if isinstance(quorum.state, Leader):
        if not is_late and stop_waits_for(quorum) is StopWait.COMMIT:
            return
        quorum.is_handing_over = not quorum.is_only_voter
        resign(quorum)
    if is_late or stop_waits_for(quorum) is None:
        quorum.is_stopped = True
        quorum.emit(ReadyToStop())


def stop_waits_for(quorum: QuorumState) -> StopWait | None:
    """Return what a node that is shutting down waits for; None if it may stop, or isn't shutting down."""
    if not quorum.is_shutting_down or quorum.is_stopped:
        return None
    if isinstance(quorum.state, Leader) and _is_uncommitted(quorum):
        return StopWait.COMMIT
    if _awaits_successor(quorum):
        return StopWait.SUCCESSOR
    return StopWait.FLUSH if quorum.log.flushed_offset < quorum.log.end_offset else None


def _is_uncommitted(quorum: QuorumState) -> bool:
    return quorum.high_watermark is None or quorum.high_watermark < quorum.log.end_offset


def _awaits_successor(quorum: QuorumState) -> bool:
    """Whether this node led when it was asked to stop, and no later leader is known.

    The election of the next leader may need this node's vote.
    """
    return quorum.is_handing_over and not isinstance(quorum.state, Follower)
