"""Whom to ask, and what every answer says of the leader (KafkaRaftClient's maybeHandleCommonResponse)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.raft import elections
from kraft_wire.raft.checks import only_partition
from kraft_wire.raft.epochs import LAST_EPOCH
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.voters import Endpoint, Endpoints, Peer, endpoint_at

NO_LEADER = -1
FIRST_BOOTSTRAP_ID = -2


# Whom to ask.


def voter_peer(quorum: Quorum, voter_id: int) -> Peer | None:
    """A voter, where it listens for controllers."""
    return peer_at(quorum, voter_id, quorum.history.voters.endpoints_of(voter_id))


def ready_voter(quorum: Quorum, voter_id: int, request_type: type[Message]) -> Peer | None:
    """A voter that can be asked now."""
    peer = voter_peer(quorum, voter_id)
    if peer is None or not quorum.outgoing.is_ready(peer, request_type, quorum.now.monotonic_ms):
        return None
    return peer


def peer_at(quorum: Quorum, node_id: int, endpoints: Endpoints) -> Peer | None:
    """A node at its endpoint on our controller listener, or at any where it has none of that name."""
    endpoint = endpoint_at(endpoints, quorum.config.listener) or next(iter(endpoints), None)
    return None if endpoint is None else Peer(node_id, endpoint.host, endpoint.port)


def other_voters(quorum: Quorum) -> list[Peer]:
    """All the others that can be reached."""
    ids = (voter_id for voter_id in quorum.history.voters.ids if voter_id != quorum.config.node_id)
    return [peer for peer in (voter_peer(quorum, voter_id) for voter_id in ids) if peer is not None]


def discovery_peers(quorum: Quorum) -> list[Peer]:
    """Who may know the leader: controller.quorum.bootstrap.servers and the voters, ourselves left out."""
    own = {(endpoint.host, endpoint.port) for endpoint in quorum.config.endpoints}
    voters = other_voters(quorum)
    known = own | {(peer.host, peer.port) for peer in voters}
    servers = [
        Peer(FIRST_BOOTSTRAP_ID - number, host, port)
        for number, (host, port) in enumerate(quorum.config.bootstrap_servers)
        if (host, port) not in known
    ]
    return voters + servers


# What answers say.


class Told(msgspec.Struct, frozen=True):
    """What an answer says beside its contents: ``leader_id`` is -1 for none."""

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


def told(quorum: Quorum, error: int, epoch: int, leader_id: int, nodes: Iterable[_NodeEndpoint]) -> Told:
    """The leader's endpoint in an answer is that of the listener on which we asked."""
    endpoints = tuple(
        Endpoint(quorum.config.listener.upper(), node.host, node.port)
        for node in nodes
        if node.node_id == leader_id
    )
    return Told(ErrorCode.of(error), epoch, leader_id, endpoints)


def take_in(quorum: Quorum, call: Call, said: Told) -> bool:
    """Learn from an answer who leads. Returns whether its contents count: they don't where it has an error,
    or is of another epoch. An epoch that can't be isn't believed. A peer whose answer was of no use is left
    alone for a moment."""
    if said.epoch > LAST_EPOCH:
        quorum.leave_alone(call)
        return False
    before = quorum.state
    counts = said.error == ErrorCode.NONE and said.epoch == quorum.epoch == call.epoch
    leader_id = None if said.leader_id == NO_LEADER else said.leader_id
    is_consistent = said.epoch < quorum.epoch or elections.hear_of_leader(
        quorum, said.epoch, leader_id, said.endpoints
    )
    if not is_consistent:
        counts = False
    if counts:
        quorum.outgoing.succeeded(call.peer)
    elif quorum.state is before:
        quorum.leave_alone(call)
    return counts


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


def take_in_voter(quorum: Quorum, call: Call, response: _VoterResponse[A]) -> A | None:
    """The same for the answer of a voter: its partition where that counts."""
    answer = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or answer is None:
        quorum.leave_alone(call)
        return None
    said = told(quorum, answer.error_code, answer.leader_epoch, answer.leader_id, response.node_endpoints)
    return answer if take_in(quorum, call, said) else None
