"""The Fetch of a replica that wants the leader's log, or to learn who leads."""

from __future__ import annotations

from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.raft.door.request_checks import METADATA_PARTITION
from kraft_wire.raft.quorum_state import QuorumState

MAX_WAIT_MS: Final = 500
"""The time for which the leader may park a Fetch that it has no records for (KafkaRaftClient)."""


def fetch_request(quorum: QuorumState) -> FetchRequest:
    """Return the Fetch of what follows the flushed part of our log. It acknowledges what is before that."""
    config, log = quorum.config, quorum.log
    high_watermark = quorum.high_watermark
    return FetchRequest(
        cluster_id=config.cluster_id,
        replica_state=ReplicaState(replica_id=config.node_id),
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=0,
        max_bytes=config.fetch_max_bytes,
        topics=[
            FetchTopic(
                topic=CLUSTER_METADATA,
                topic_id=CLUSTER_METADATA_TOPIC_ID,
                partitions=[
                    FetchPartition(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=quorum.epoch,
                        fetch_offset=log.flushed_offset,
                        last_fetched_epoch=log.last_flushed_epoch,
                        replica_directory_id=config.directory_id,
                        high_watermark=-1 if high_watermark is None else high_watermark,
                    )
                ],
            )
        ],
    )
