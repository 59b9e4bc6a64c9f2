"""BeginQuorumEpoch, by which a leader announces itself to a voter; by the answer it knows that the voter is
there."""

from __future__ import annotations

from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_request
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.raft.door.request_checks import METADATA_PARTITION, only_partition
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState


def begin_request(quorum: QuorumState, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    """Return the announcement of this leader to a voter."""
    return BeginQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.id,
        topics=[
            begin_quorum_epoch_request.TopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[
                    begin_quorum_epoch_request.PartitionData(
                        partition_index=METADATA_PARTITION,
                        voter_directory_id=voter.directory_id,
                        leader_id=quorum.config.node_id,
                        leader_epoch=quorum.epoch,
                    )
                ],
            )
        ],
        leader_endpoints=[
            begin_quorum_epoch_request.LeaderEndpoint(
                name=endpoint.listener, host=endpoint.host, port=endpoint.port
            )
            for endpoint in quorum.config.endpoints
        ],
    )


def is_from_addressee(response: BeginQuorumEpochResponse) -> bool:
    """Whether the voter that was asked has answered: any other node answers INVALID_VOTER_KEY."""
    answer = only_partition(response.topics)
    if response.error_code or answer is None:
        return False
    return answer.error_code != ErrorCode.INVALID_VOTER_KEY
