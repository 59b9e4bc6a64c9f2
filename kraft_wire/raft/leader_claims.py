"""Learn from the answers of peers who leads (KafkaRaftClient's maybeHandleCommonResponse)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.door.callers import hears_leader
from kraft_wire.raft.door.epoch_limits import highest_answered, is_acceptable_answer
from kraft_wire.raft.door.request_checks import only_partition
from kraft_wire.raft.election import known_leader
from kraft_wire.raft.membership.voters import Endpoint, Endpoints
from kraft_wire.raft.named_leader import NO_LEADER
from kraft_wire.raft.outgoing import FIRST_CLAIMED_ID, Call
from kraft_wire.raft.peers import is_stranger, peer_at
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.wire.address import Address, is_possible

LEADERLESS_TIMEOUTS: Final = 10
"""The election timeouts after which nobody can be elected in our epoch, as it seems."""


class LeaderClaim(msgspec.Struct, frozen=True):
    """The error, epoch and leader that an answer names. ``leader_id`` is -1 for none."""

    error: ErrorCode
    epoch: int
    leader_id: int
    endpoints: Endpoints


class _NodeEndpoint(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def read_claim(
    quorum: QuorumState, error: int, epoch: int, leader_id: int, nodes: Iterable[_NodeEndpoint]
) -> LeaderClaim:
    """Return the claim of an answer. The leader's endpoint is on the listener that the request was sent to.
    One that can't be an address is left out."""
    endpoints = tuple(
        Endpoint(quorum.config.listener.upper(), node.host, node.port)
        for node in nodes
        if node.node_id == leader_id and is_possible(Address(node.host, node.port))
    )
    return LeaderClaim(ErrorCode.of(error), epoch, leader_id, endpoints)


def _is_acceptable(quorum: QuorumState, call: Call, claim: LeaderClaim) -> bool:
    """Whether the answer may be believed: it names a possible leader. A node that nobody but a hint has named
    can only say that it leads our epoch."""
    if is_stranger(quorum, call.peer):
        leads = claim.leader_id == FIRST_CLAIMED_ID - call.peer.id
        return leads and claim.epoch == quorum.epoch and quorum.state.leader_id is None
    return claim.leader_id >= NO_LEADER and is_acceptable_answer(claim.epoch, quorum.epoch)


def learn(quorum: QuorumState, call: Call, claim: LeaderClaim) -> bool:
    """Learn from an answer who leads. Returns whether the contents of the answer count.

    They don't count if the answer has an error or is of another epoch. An impossible epoch is ignored. One
    that is too high for one answer counts as the highest that isn't, which has no known leader, if that can
    help (``_may_climb``). A peer whose answer was of no use is not asked again for a backoff, unless it has
    told meanwhile that it leads.
    """
    if not _is_acceptable(quorum, call, claim):
        quorum.back_off(call)
        return False
    if claim.epoch > (limit := highest_answered(quorum.epoch)):
        if _may_climb(quorum, claim):
            known_leader.learn_leader(quorum, limit, None, ())
        quorum.back_off(call)
        return False
    before = quorum.state
    counts = claim.error == ErrorCode.NONE and claim.epoch == quorum.epoch == call.epoch
    leader_id = None if claim.leader_id == NO_LEADER else claim.leader_id
    if claim.epoch < quorum.epoch:
        _note_leader_behind(quorum, claim)
    is_consistent = claim.epoch < quorum.epoch or known_leader.learn_leader(
        quorum, claim.epoch, leader_id, claim.endpoints
    )
    if not is_consistent:
        counts = False
    if counts:
        quorum.outgoing.succeeded(call.peer)
    elif quorum.state is before and not call.is_search:
        quorum.back_off(call)
    return counts


def _may_climb(quorum: QuorumState, claim: LeaderClaim) -> bool:
    """Whether this node may take a step to an epoch that is far above its own. A single voter that a stranger
    took there must not end leaders. But there may be a leader, or none without that voter."""
    if hears_leader(quorum):
        return False
    is_leaderless = quorum.leaderless_ms >= LEADERLESS_TIMEOUTS * quorum.config.election_timeout_ms
    return claim.leader_id != NO_LEADER or is_leaderless


def _note_leader_behind(quorum: QuorumState, claim: LeaderClaim) -> None:
    endpoints = claim.endpoints or quorum.history.voters.endpoints_of(claim.leader_id)
    leader = peer_at(quorum, claim.leader_id, endpoints)
    if leader is not None and leader.id != quorum.config.node_id:
        quorum.leader_behind.note(leader, claim.epoch)


class _Answer(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def error_code(self) -> int: ...
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...


A = TypeVar("A", bound=_Answer)
A_co = TypeVar("A_co", bound=_Answer, covariant=True)


class _Topic(Protocol[A_co]):
    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[A_co]: ...


class _VoterResponse(Protocol[A_co]):
    """A response to Vote, BeginQuorumEpoch or EndQuorumEpoch."""

    @property
    def error_code(self) -> int: ...
    @property
    def topics(self) -> Sequence[_Topic[A_co]]: ...
    @property
    def node_endpoints(self) -> Sequence[_NodeEndpoint]: ...


def learn_from_voter(quorum: QuorumState, call: Call, response: _VoterResponse[A]) -> A | None:
    """Learn from a voter's answer who leads. Returns its partition if the contents count, else None."""
    answer = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.back_off(call)
        return None
    claim = read_claim(
        quorum, answer.error_code, answer.leader_epoch, answer.leader_id, response.node_endpoints
    )
    return answer if learn(quorum, call, claim) else None
