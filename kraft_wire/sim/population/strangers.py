"""Simulate strangers: nodes that send raft's requests to controllers and claim anything.

They may claim the ids of a voter, except in a Fetch: who acknowledges records in a voter's name can make a
leader commit what no majority has, and no rule could tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    update_raft_voter_request,
    vote_request,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import KRAFT_VERSION_RANGE, ReplicaKey, VersionRange
from kraft_wire.sim.network.connections import CLUSTER_ID, LISTENER, PORT, host_of, nowhere_of, other_host_of
from kraft_wire.sim.network.wire import VERSIONS

if TYPE_CHECKING:
    from kraft_wire.sim.machines.cluster import Cluster
    from kraft_wire.sim.machines.node import SimNode

OUTSIDER: Final = ReplicaKey(900, Uuid(bytes([200] * 16)))
EPOCHS_AHEAD: Final = (-1, 0, 0, 1, 1, 2, 16, 17, 1 << 16, 1 << 30, (1 << 31) - 1)
LAST_EPOCH_ON_THE_WIRE: Final = (1 << 31) - 1


class Strangers:
    """Strangers that don't wait for answers."""

    def __init__(self, cluster: Cluster, tokens: Iterator[int]) -> None:
        self._cluster = cluster
        self._tokens = tokens

    def ask(self, asked: SimNode, chance: random.Random, *, as_outsider: bool = False) -> bool:
        """Send one request to a running node, as long as there are faults. Returns whether it was sent. An
        outsider claims no voter's id and directory id."""
        if not asked.is_up or self._cluster.is_calm:
            return False
        claimed = _outsider(self._cluster, chance) if as_outsider else _claimed(self._cluster, chance)
        request = chance.choice(REQUESTS)(Claim(self._cluster, asked, claimed, _epoch(asked, chance)), chance)
        version = VERSIONS[request.API_KEY]
        asked.take(RpcRequest(next(self._tokens), request, version, LISTENER))
        return True


class Claim(NamedTuple):
    """Who a stranger claims to be to the node that it asks, and in which epoch."""

    cluster: Cluster
    asked: SimNode
    key: ReplicaKey
    epoch: int


Make = Callable[[Claim, random.Random], Message]


def _vote(claim: Claim, chance: random.Random) -> Message:
    partition = vote_request.PartitionData(
        replica_epoch=claim.epoch,
        replica_id=claim.key.id,
        replica_directory_id=claim.key.directory_id,
        voter_directory_id=claim.asked.config.directory_id
        if chance.random() < 0.9
        else OUTSIDER.directory_id,
        last_offset_epoch=max(0, claim.epoch - 1),
        last_offset=chance.choice((0, 1, 1 << 40)),
        pre_vote=chance.random() < 0.5,
    )
    topic = vote_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return vote_request.VoteRequest(cluster_id=_cluster_id(chance), voter_id=claim.asked.id, topics=[topic])


def _begin(claim: Claim, chance: random.Random) -> Message:
    partition = begin_quorum_epoch_request.PartitionData(
        voter_directory_id=claim.asked.config.directory_id,
        leader_id=claim.key.id,
        leader_epoch=claim.epoch,
    )
    endpoint = begin_quorum_epoch_request.LeaderEndpoint(
        name=LISTENER, host=host_of(chance.choice(list(claim.cluster.nodes))), port=PORT
    )
    topic = begin_quorum_epoch_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return begin_quorum_epoch_request.BeginQuorumEpochRequest(
        cluster_id=_cluster_id(chance), voter_id=claim.asked.id, topics=[topic], leader_endpoints=[endpoint]
    )


def _end(claim: Claim, chance: random.Random) -> Message:
    successors = [
        end_quorum_epoch_request.ReplicaInfo(key.id, key.directory_id)
        for key in (claim.key, claim.asked.config.replica_key)
    ]
    partition = end_quorum_epoch_request.PartitionData(
        leader_id=claim.key.id,
        leader_epoch=claim.epoch,
        preferred_candidates=successors,
    )
    topic = end_quorum_epoch_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return end_quorum_epoch_request.EndQuorumEpochRequest(cluster_id=_cluster_id(chance), topics=[topic])


def _fetch(claim: Claim, chance: random.Random) -> Message:
    """A Fetch with an outsider's directory id: no voter has that."""
    partition = fetch_request.FetchPartition(
        current_leader_epoch=claim.epoch,
        fetch_offset=chance.choice((0, 1, 5, 100, 1 << 40)),
        last_fetched_epoch=chance.choice((0, 1, 2, 1 << 30)),
        replica_directory_id=OUTSIDER.directory_id,
        high_watermark=chance.choice((-1, 0, 1 << 40)),
    )
    topic = fetch_request.FetchTopic(
        topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition]
    )
    return fetch_request.FetchRequest(
        cluster_id=_cluster_id(chance),
        replica_state=fetch_request.ReplicaState(replica_id=claim.key.id),
        max_wait_ms=500,
        topics=[topic],
    )


def _fetch_snapshot(claim: Claim, chance: random.Random) -> Message:
    partition = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=claim.epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(chance.choice((0, 10, 1 << 40)), 1),
        position=chance.choice((0, 1, 1 << 40)),
        replica_directory_id=OUTSIDER.directory_id,
    )
    topic = fetch_snapshot_request.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])
    return fetch_snapshot_request.FetchSnapshotRequest(
        cluster_id=_cluster_id(chance), replica_id=claim.key.id, max_bytes=100, topics=[topic]
    )


def _update_voter(claim: Claim, chance: random.Random) -> Message:
    """An address for a voter that is another node's, or nobody's; or a name that leads to the voter, which
    doesn't advertise it; other listeners and levels.

    Without pre-votes (KIP-853's draft) voters don't search each other, so there the address is right.
    """
    hosts = [nowhere_of(claim.key.id), other_host_of(claim.key.id), *map(host_of, claim.cluster.nodes)]
    host = host_of(claim.key.id) if claim.cluster.options.drafted else chance.choice(hosts)
    listeners = [LISTENER, "OTHER"][: chance.choice((1, 1, 2))]
    levels = chance.choice((KRAFT_VERSION_RANGE, VersionRange(0, 0), VersionRange(1, 9)))
    return update_raft_voter_request.UpdateRaftVoterRequest(
        cluster_id=_cluster_id(chance),
        current_leader_epoch=claim.epoch,
        voter_id=claim.key.id,
        voter_directory_id=claim.key.directory_id,
        listeners=[update_raft_voter_request.Listener(name, host, PORT) for name in listeners],
        kraft_version_feature=update_raft_voter_request.KRaftVersionFeature(
            min_supported_version=levels.min_version, max_supported_version=levels.max_version
        ),
    )


REQUESTS: Final[tuple[Make, ...]] = (_vote, _vote, _begin, _end, _fetch, _fetch_snapshot, _update_voter)


def _claimed(cluster: Cluster, chance: random.Random) -> ReplicaKey:
    """Return whom the stranger claims to be: a node of the cluster, or an outsider."""
    if chance.random() < 0.4:
        return chance.choice(list(cluster.nodes.values())).config.replica_key
    return _outsider(cluster, chance)


def _outsider(cluster: Cluster, chance: random.Random) -> ReplicaKey:
    """Return a node that isn't in the cluster. It may have the id of one that is, but not its directory
    id."""
    return OUTSIDER._replace(id=chance.choice((OUTSIDER.id, *cluster.nodes)))


def _epoch(asked: SimNode, chance: random.Random) -> int:
    """Return an epoch around that of the node that is asked, or far from it."""
    return min(asked.raft.epoch + chance.choice(EPOCHS_AHEAD), LAST_EPOCH_ON_THE_WIRE)


def _cluster_id(chance: random.Random) -> str | None:
    return chance.choice((None, CLUSTER_ID, CLUSTER_ID, CLUSTER_ID, "another"))
