"""Ask a quorum of raft cores to change its voters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar
from unittest import mock

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import add_raft_voter_request, update_raft_voter_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.leader import update_voter
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey, VersionRange, endpoints_of
from kraft_wire.sim.network.wire import VERSIONS
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import CLUSTER_ID, LISTENER
from tests.raft.quorum_ports import Caller

NO_CLIENT = -1
OWN_VERSIONS = VersionRange(0, 1)
_NUMBERS = count()
R = TypeVar("R", AddRaftVoterResponse, RemoveRaftVoterResponse, UpdateRaftVoterResponse)


@contextmanager
def believing() -> Iterator[None]:
    """Let leaders believe an UpdateRaftVoter without asking the voter, as Java's do."""
    with mock.patch.object(update_voter, "must_be_asked", return_value=False):
        yield


class Asked:
    """A request to a node, and its answer once there is one."""

    def __init__(self, node: QuorumNode, request: Message, version: int | None = None) -> None:
        self._node = node
        self.token = Caller(node.id, NO_CLIENT, next(_NUMBERS))
        served = VERSIONS[request.API_KEY] if version is None else version
        node.step(RpcRequest(self.token, request, served, LISTENER))

    @property
    def answers(self) -> list[Message]:
        replies = (effect for effect in self._node.effects if isinstance(effect, Reply))
        return [reply.response for reply in replies if reply.token == self.token]

    @property
    def is_answered(self) -> bool:
        return bool(self.answers)

    @property
    def error(self) -> ErrorCode:
        (answer,) = self.answers
        assert isinstance(answer, AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse)
        return ErrorCode.of(answer.error_code)

    @property
    def text(self) -> str:
        (answer,) = self.answers
        assert isinstance(answer, AddRaftVoterResponse | RemoveRaftVoterResponse)
        return answer.error_message or ""


def add_request(newcomer: QuorumNode, **fields: Any) -> AddRaftVoterRequest:
    """Return the request that adds a node of the quorum as it is configured."""
    key = newcomer.config.replica_key
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[add_raft_voter_request.Listener(name=LISTENER, host=f"node-{key.id}", port=PORT)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def remove_request(voter: QuorumNode, **fields: Any) -> RemoveRaftVoterRequest:
    """Return the request that removes a voter."""
    key = voter.config.replica_key
    request = RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=key.id, voter_directory_id=key.directory_id
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def update_request(
    voter: QuorumNode,
    epoch: int,
    *,
    port: int = PORT,
    versions: VersionRange = OWN_VERSIONS,
    **fields: Any,
) -> UpdateRaftVoterRequest:
    """Return the request of a voter that updates its entry."""
    key = voter.config.replica_key
    request = UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=epoch,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[update_raft_voter_request.Listener(name=LISTENER, host=f"node-{key.id}", port=port)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=versions.min_version, max_supported_version=versions.max_version
        ),
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def add(quorum: CoreQuorum, newcomer: int, **fields: Any) -> Asked:
    """Ask the leader to add a node, and run until it is answered."""
    asked = Asked(quorum.leader, add_request(quorum.nodes[newcomer], **fields))
    quorum.run_until(lambda: asked.is_answered)
    return asked


def remove(quorum: CoreQuorum, voter: int, **fields: Any) -> Asked:
    """Ask the leader to remove a voter, and run until it is answered."""
    asked = Asked(quorum.leader, remove_request(quorum.nodes[voter], **fields))
    quorum.run_until(lambda: asked.is_answered)
    return asked


def with_observers(voters: int, observers: int, **settings: Any) -> CoreQuorum:
    """Return a quorum whose observers have caught up with the leader."""
    return CoreQuorum(voters, observers, **settings).led()


def voters_of(node: QuorumNode) -> Sequence[int]:
    """Return the ids of the voters as a node knows them."""
    return node.running.voters.ids


def all_know(quorum: CoreQuorum, *ids: int) -> bool:
    """Whether all running nodes know these voters."""
    return all(voters_of(node) == ids for node in quorum.nodes.values() if node.is_up)


def put_new_disk(quorum: CoreQuorum, id: int, formatted: DurableState) -> QuorumNode:
    """Put a node with a new disk, and so another directory id, in the place of a voter, without starting
    it."""
    config = msgspec.structs.replace(quorum.nodes[id].config, directory_id=Uuid(bytes([77] * 16)))
    quorum.nodes[id] = QuorumNode(quorum, config, formatted)
    return quorum.nodes[id]


def with_new_disk(quorum: CoreQuorum, lost: QuorumNode) -> QuorumNode:
    """Replace the disk of a node that crashes: it comes back empty. Returns the node."""
    lost.crash()
    fresh = put_new_disk(quorum, lost.id, DurableState())
    fresh.start()
    return fresh


def endpoints(node: QuorumNode, voter: int) -> Endpoints:
    """Return the endpoints of a voter as a node knows them."""
    return node.running.voters.endpoints_of(voter)


def advertise_more(node: QuorumNode) -> None:
    """Let a node advertise one more endpoint after its next start."""
    own = endpoints_of([(LISTENER, f"node-{node.id}", PORT), ("INTERNAL", f"node-{node.id}", PORT + 1)])
    node.config = msgspec.structs.replace(node.config, endpoints=own)


def known_keys(leader: QuorumNode) -> dict[int, ReplicaKey]:
    """Return what the voters of a quorum with kraft.version 0 have told its leader, by node id."""
    leadership = leader.running._quorum.leadership
    assert leadership is not None
    return {voter.key.id: voter.key for voter in leadership.static_voters.voters}
