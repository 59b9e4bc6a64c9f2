"""Ask the leader to change this node's own entry among the voters (KIP-853, KIP-1186; KafkaRaftClient).

A voter whose entry is out of date sends UpdateRaftVoter. With kraft.version 0 every voter sends it once to
each new leader. With controller.quorum.auto.join.enable, a controller that is no voter joins: it sends
RemoveRaftVoter for its earlier directory, if that is a voter and not in use, then AddRaftVoter. A follower
does this once in a fetch timeout at most, and not before the first one is over.
"""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import add_raft_voter_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.raft.effects import JoinRefused, UpdateRefused
from kraft_wire.raft.events import Failure
from kraft_wire.raft.follower import earlier_directory
from kraft_wire.raft.leader_claims import LeaderClaim, learn
from kraft_wire.raft.membership.own_entry import is_stale, update_request
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.peers import peer_at
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower
from kraft_wire.wire.address import Address, is_possible

EXPECTED_ERRORS = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
"""The answers after which a node that wants to change its entry only has to try again, or needn't."""

MANY_VAIN_JOINS = 5
"""Ten seconds with the default fetch timeout."""
MANY_VAIN_UPDATES = 10
"""A voter that has moved needs about five."""


def send_if_due(quorum: QuorumState, state: Follower) -> None:
    """Send the request that is due, if one is."""
    if quorum.now.monotonic_ms < state.following.next_membership_ms:
        return
    request = _wanted_request(quorum, state)
    leader = peer_at(quorum, state.leader_id, state.leader_endpoints)
    if request is None or leader is None:
        return
    if not quorum.outgoing.is_ready(leader, type(request), quorum.now.monotonic_ms):
        return
    quorum.send(leader, request)
    if isinstance(request, RemoveRaftVoterRequest):
        state.following.earlier_directory = None  # it is asked for again before another removal
    state.following.next_membership_ms = quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms


def next_deadline_ms(quorum: QuorumState, state: Follower) -> int | None:
    """Return when the next request may be due; None while it waits for the leader to be free."""
    next_ms = state.following.next_membership_ms
    return next_ms if next_ms > quorum.now.monotonic_ms else None


def _wanted_request(quorum: QuorumState, state: Follower) -> Message | None:
    """Return the request that would correct this node's entry among the voters; None if it is right."""
    config, voters = quorum.config, quorum.history.voters
    is_dynamic = quorum.history.kraft_version >= 1
    if quorum.is_voter:
        is_wrong = is_stale(quorum) and quorum.are_voters_committed  # only then may it change again
        is_due = is_wrong if is_dynamic else not state.following.has_updated_leader
        return update_request(quorum, quorum.epoch) if is_due else None
    if not (is_dynamic and config.auto_join):
        return None
    earlier = voters.get(config.node_id)
    if earlier is None:
        return _add_request(quorum)
    last_fetch = state.following.earlier_directory
    if last_fetch is None or last_fetch.replica != earlier.key or not last_fetch.is_gone:
        return earlier_directory.QUESTION
    return RemoveRaftVoterRequest(
        cluster_id=config.cluster_id,
        voter_id=earlier.key.id,
        voter_directory_id=earlier.key.directory_id,
    )


def _add_request(quorum: QuorumState) -> AddRaftVoterRequest:
    """Return the request to join. Its answer doesn't wait for the commit, which may need this very node."""
    config = quorum.config
    return AddRaftVoterRequest(
        cluster_id=config.cluster_id,
        timeout_ms=config.request_timeout_ms,
        voter_id=config.node_id,
        voter_directory_id=config.directory_id,
        listeners=[
            add_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
            for each in config.endpoints
        ],
        ack_when_committed=False,
    )


# Answers. A request without success is sent again after a fetch timeout.


def handle_update_response(quorum: QuorumState, call: Call, response: UpdateRaftVoterResponse) -> None:
    """Note that the leader knows this voter, or learn who leads."""
    leader = response.current_leader
    error = ErrorCode.of(response.error_code)
    if leader.leader_epoch > quorum.epoch:
        endpoints = (Endpoint(quorum.config.listener.upper(), leader.host, leader.port),)
        known = endpoints if is_possible(Address(leader.host, leader.port)) else ()
        learn(quorum, call, LeaderClaim(error, leader.leader_epoch, leader.leader_id, known))
    elif error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        _note_updated(quorum)
    elif error not in EXPECTED_ERRORS or _is_vain_update(quorum):
        quorum.emit(UpdateRefused(call.peer.id, error))


def handle_update_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Note that a leader of an old release can't know more of this voter."""
    if failure is Failure.UNSUPPORTED:
        _note_updated(quorum)


def _note_updated(quorum: QuorumState) -> None:
    if isinstance(quorum.state, Follower):
        quorum.state.following.has_updated_leader = True
        quorum.state.following.vain_updates = 0


def _is_vain_update(quorum: QuorumState) -> bool:
    """Whether this is one of many answers in a row that ask to try again."""
    if not isinstance(quorum.state, Follower):
        return False
    quorum.state.following.vain_updates += 1
    return quorum.state.following.vain_updates >= MANY_VAIN_UPDATES


def handle_join_response(
    quorum: QuorumState, call: Call, response: AddRaftVoterResponse | RemoveRaftVoterResponse
) -> None:
    """Report an answer that an operator has to act on: also one that only asks to try again, if it comes
    again and again."""
    error = ErrorCode.of(response.error_code)
    if error in EXPECTED_ERRORS and not _comes_again(quorum, error):
        return
    quorum.emit(JoinRefused(call.peer.id, error, response.error_message or ""))


def _comes_again(quorum: QuorumState, error: ErrorCode) -> bool:
    """Whether this is one of many answers in a row that ask to try again."""
    if not isinstance(quorum.state, Follower):
        return False
    following = quorum.state.following
    following.vain_joins = 0 if error is ErrorCode.NONE else following.vain_joins + 1
    return following.vain_joins >= MANY_VAIN_JOINS


def handle_join_failed(quorum: QuorumState, call: Call, failure: Failure) -> None:
    """Report a leader that can't change its voters."""
    if failure in (Failure.UNSUPPORTED, Failure.UNSENDABLE):
        quorum.emit(JoinRefused(call.peer.id, ErrorCode.UNSUPPORTED_VERSION, failure.value))
