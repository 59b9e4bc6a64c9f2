"""Forge the requests that controllers send each other, under any name and with any epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages import begin_quorum_epoch_request as begin_request
from kraft_wire.protocol.messages import end_quorum_epoch_request as end_request
from kraft_wire.protocol.messages import fetch_request, fetch_snapshot_request, vote_request
from kraft_wire.protocol.messages import update_raft_voter_request as update_request
from kraft_wire.raft.membership.voters import ReplicaKey

ANYBODY: Final = ReplicaKey(-1)
"""The addressee of a request that names none."""
FIRST_FETCH_WITH_REPLICA_STATE: Final = 15


def vote(
    epoch: int,
    candidate: ReplicaKey,
    last: tuple[int, int],
    *,
    voter: ReplicaKey = ANYBODY,
    pre_vote: bool = False,
    cluster_id: str | None = None,
) -> vote_request.VoteRequest:
    """Return the Vote of a candidate; ``last`` are the epoch and the end offset of its log."""
    asked = vote_request.PartitionData(
        replica_epoch=epoch,
        replica_id=candidate.id,
        replica_directory_id=candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    topic = vote_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[asked])
    return vote_request.VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=[topic])


def begin(
    epoch: int,
    leader_id: int,
    ports: Sequence[int],
    *,
    voter: ReplicaKey = ANYBODY,
    cluster_id: str | None = None,
) -> begin_request.BeginQuorumEpochRequest:
    """Return the BeginQuorumEpoch of a leader that listens on these ports of loopback."""
    asked = begin_request.PartitionData(
        voter_directory_id=voter.directory_id, leader_id=leader_id, leader_epoch=epoch
    )
    return begin_request.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[begin_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[asked])],
        leader_endpoints=[
            begin_request.LeaderEndpoint(name=name, host="127.0.0.1", port=port)
            for name, port in zip(("CONTROLLER", "OTHER"), ports, strict=False)
        ],
    )


def end(
    epoch: int,
    leader_id: int,
    successors: Sequence[ReplicaKey],
    *,
    version: int = 1,
    cluster_id: str | None = None,
) -> end_request.EndQuorumEpochRequest:
    """Return the EndQuorumEpoch of a leader that prefers these successors, in this order."""
    asked = end_request.PartitionData(
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_successors=() if version else tuple(key.id for key in successors),
        preferred_candidates=[
            end_request.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in successors
        ]
        if version
        else [],
    )
    topic = end_request.TopicData(topic_name=CLUSTER_METADATA, partitions=[asked])
    return end_request.EndQuorumEpochRequest(cluster_id=cluster_id, topics=[topic])


def fetch(
    epoch: int,
    replica: ReplicaKey,
    offset: int,
    last_fetched_epoch: int,
    *,
    version: int,
    max_wait_ms: int = 0,
    high_watermark: int = -1,
    cluster_id: str | None = None,
) -> fetch_request.FetchRequest:
    """Return the Fetch of a replica, at a version from 12 on."""
    partition = fetch_request.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        replica_directory_id=replica.directory_id,
        high_watermark=high_watermark,
    )
    topic = fetch_request.FetchTopic(
        topic=CLUSTER_METADATA, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition]
    )
    has_state = version >= FIRST_FETCH_WITH_REPLICA_STATE
    return fetch_request.FetchRequest(
        cluster_id=cluster_id,
        replica_id=-1 if has_state else replica.id,
        replica_state=fetch_request.ReplicaState(replica_id=replica.id if has_state else -1),
        max_wait_ms=max_wait_ms,
        max_bytes=4096,
        topics=[topic],
    )


def fetch_snapshot(
    epoch: int, replica: ReplicaKey, snapshot: SnapshotId, position: int, *, cluster_id: str | None = None
) -> fetch_snapshot_request.FetchSnapshotRequest:
    """Return the FetchSnapshot of a replica, from a position of a snapshot on."""
    partition = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(snapshot.end_offset, snapshot.epoch),
        position=position,
        replica_directory_id=replica.directory_id,
    )
    topic = fetch_snapshot_request.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])
    return fetch_snapshot_request.FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=replica.id, max_bytes=4096, topics=[topic]
    )


def update(epoch: int, voter: ReplicaKey, port: int) -> update_request.UpdateRaftVoterRequest:
    """Return the UpdateRaftVoter of a voter that is at this port of loopback now."""
    return update_request.UpdateRaftVoterRequest(
        cluster_id=None,
        current_leader_epoch=epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=[update_request.Listener(name="CONTROLLER", host="127.0.0.1", port=port)],
        kraft_version_feature=update_request.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )
