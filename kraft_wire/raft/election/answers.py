"""The fields that the answers to Vote, BeginQuorumEpoch and EndQuorumEpoch have in common."""

from __future__ import annotations

from typing import TypedDict

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.door.request_checks import METADATA_PARTITION
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.named_leader import NamedLeader, named_leader
from kraft_wire.raft.quorum_state import QuorumState

FIRST_WITH_ENDPOINTS = 1


def is_for_us(quorum: QuorumState, voter_id: int, addressee: ReplicaKey) -> bool:
    """Whether the request is for this replica. A request without a voter id is for any node."""
    return voter_id < 0 or addressee.matches(quorum.config.replica_key)


class PartitionFields(TypedDict):
    partition_index: int
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int


def partition_fields(quorum: QuorumState, rpc: RpcRequest, error: ErrorCode) -> PartitionFields:
    """Return the fields that the partition has in all three responses."""
    return {
        "partition_index": METADATA_PARTITION,
        "error_code": error,
        "leader_id": _leader(quorum, rpc).id,
        "leader_epoch": quorum.epoch,
    }


class NodeAddress(TypedDict):
    node_id: int
    host: str
    port: int


def leader_addresses(quorum: QuorumState, rpc: RpcRequest) -> list[NodeAddress]:
    """Return the leader's address if it is known and the response's version has a field for it."""
    leader = _leader(quorum, rpc)
    if leader.endpoint is None:
        return []
    return [{"node_id": leader.id, "host": leader.endpoint.host, "port": leader.endpoint.port}]


def _leader(quorum: QuorumState, rpc: RpcRequest) -> NamedLeader:
    return named_leader(quorum, rpc.listener, has_endpoints=rpc.version >= FIRST_WITH_ENDPOINTS)
