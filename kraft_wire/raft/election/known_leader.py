"""Learn who leads and whether it is alive, and hasten the election of its successor (KIP-595)."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.door.callers import hears_leader
from kraft_wire.raft.election import elections
from kraft_wire.raft.election.turns import RESIGNATION_STEPS, is_our_vote_needed, turn_deadline_ms, yield_ms
from kraft_wire.raft.membership.voters import Endpoints
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, Prospective, RoleState, Unattached


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
        if known is not None and endpoints:
            _look_elsewhere(quorum, endpoints)
        endpoints = endpoints or quorum.history.voters.endpoints_of(leader_id)
        if endpoints and (known is None or len(endpoints) > len(quorum.state.leader_endpoints)):
            elections.become_follower(quorum, epoch, leader_id, endpoints)
            return True
    if epoch > quorum.epoch:
        elections.become_unattached(quorum, epoch, leader_id)
    return True


def _look_elsewhere(quorum: QuorumState, endpoints: Endpoints) -> None:
    """Follow the known leader at other endpoints if this election is lost: it didn't answer where this node
    asked, and may have moved."""
    state = quorum.state
    if isinstance(state, Prospective) and state.leader_endpoints:
        # Not a transition: only where the leader is, which this node doesn't follow now.
        quorum.state = msgspec.structs.replace(state, leader_endpoints=endpoints)


def _remember_own_leadership(quorum: QuorumState, epoch: int) -> bool:
    """Learn from a peer that this node leads ``epoch``. That can be true if quorum-state was lost."""
    own, state = quorum.config.node_id, quorum.state
    if epoch > quorum.no_vote_up_to_epoch:
        return False
    if epoch > quorum.epoch:
        elections.become_unattached(quorum, epoch, own)
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


def note_not_leader(quorum: QuorumState, call: Call, error: ErrorCode) -> None:
    """Note that our leader answers that it no longer leads: it has resigned or restarted in this epoch."""
    state = quorum.state
    if (
        isinstance(state, Follower)
        and not call.is_search
        and call.epoch == state.epoch
        and call.peer.id == state.leader_id
        and error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE)
    ):
        note_leader_resigned(quorum, state)


def note_leader_resigned(quorum: QuorumState, state: Follower) -> None:
    """Start an election a little later than if the leader were dead: its EndQuorumEpoch, which names its
    successors, may be on its way."""
    following, now_ms = state.following, quorum.now.monotonic_ms
    has_resigned, following.has_resigned = following.has_resigned, True
    if following.successor_wait_ms is not None and not has_resigned:
        start_election_at(quorum, state, now_ms + following.successor_wait_ms)
    elif not following.leader_is_gone:
        due_ms = turn_deadline_ms(quorum) + RESIGNATION_STEPS * quorum.config.failover_step_ms
        start_election_at(quorum, state, min(state.deadline_ms, due_ms))


def hurry_election(quorum: QuorumState, before: RoleState) -> None:
    """Don't wait for our turn after a voter whose log is shorter than ours: it can't win with our vote.

    ``before`` is our state before its request. If that request has raised our epoch, an election is needed in
    any case. If others may elect that voter without us, it first has time to announce itself, because we
    would depose it. A node that can't do a leader's work leads only so long that the voter gets its records.
    """
    if hears_leader(quorum):
        return
    state, now_ms = quorum.state, quorum.now.monotonic_ms
    quorum.has_to_pass_records_on = not quorum.can_lead
    if isinstance(state, Follower) and state.following.leader_is_gone and not quorum.lost_elections:
        start_election_at(quorum, state, min(state.deadline_ms, now_ms))
    elif _is_free(state):
        due_ms = quorum.failover_deadline_ms() if quorum.lost_elections else now_ms
        due_ms += 0 if is_our_vote_needed(quorum, before) else yield_ms(quorum)
        # Not a transition: only the deadline is earlier.
        quorum.state = msgspec.structs.replace(state, deadline_ms=min(state.deadline_ms, due_ms))


def _is_free(state: RoleState) -> TypeGuard[Unattached]:
    """Whether a node has neither a leader nor a candidate in its epoch."""
    return isinstance(state, Unattached) and state.voted is None and state.leader_id is None


def start_election_at(quorum: QuorumState, state: Follower, deadline_ms: int) -> None:
    """Start an election at this time, because the leader is gone. Without pre-votes it may have to be
    later."""
    following = state.following
    following.leader_is_gone = True
    if not following.has_resigned:
        deadline_ms = max(deadline_ms, following.not_before_ms)
    # Not a transition: only the deadline is earlier.
    quorum.state = msgspec.structs.replace(state, deadline_ms=deadline_ms)


def note_leader_alive(quorum: QuorumState) -> None:
    """Note an answer of our leader in which it acts as the leader."""
    state = quorum.state
    if isinstance(state, Follower):
        following = state.following
        following.has_fetched = True
        following.leader_is_gone = False
        following.has_resigned = False
        following.is_first_successor = False
        following.successor_wait_ms = None
        following.last_answer_ms = quorum.now.monotonic_ms
        following.not_before_ms = 0
        quorum.has_to_pass_records_on = False
        quorum.lost_elections = 0
        quorum.state = msgspec.structs.replace(state, deadline_ms=quorum.fetch_deadline_ms())
