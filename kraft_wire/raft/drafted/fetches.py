"""Translate the drafted Fetch (1), versions 4 to 14. Version 14 has the replica's uuid and the leader's
endpoint, as Kafka's version 17 has; the others are Kafka's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.protocol.messages import fetch_request as own_request
from kraft_wire.protocol.messages import fetch_response as own_response
from kraft_wire.raft.drafted.alike import alike, all_alike
from kraft_wire.raft.drafted.leaders import nodes_of, with_end_point
from kraft_wire.raft.membership.kip_853 import fetch_request, fetch_response
from kraft_wire.wire.dialect import Form

DRAFTED_VERSION: Final = 14
OWN_VERSION: Final = 17


def _read_request(drafted: fetch_request.FetchRequest, version: int) -> own_request.FetchRequest:
    topics = [
        alike(
            own_request.FetchTopic,
            topic,
            partitions=[
                alike(own_request.FetchPartition, asked, replica_directory_id=asked.replica_uuid)
                for asked in topic.partitions
            ],
        )
        for topic in drafted.topics
    ]
    forgotten = all_alike(own_request.ForgottenTopic, drafted.forgotten_topics_data)
    request = alike(own_request.FetchRequest, drafted, topics=topics, forgotten_topics_data=forgotten)
    if version == DRAFTED_VERSION:
        request.replica_id = -1
        request.replica_state = own_request.ReplicaState(replica_id=drafted.replica_id)
    return request


def _write_request(own: own_request.FetchRequest) -> fetch_request.FetchRequest:
    topics = [
        alike(
            fetch_request.FetchTopic,
            topic,
            partitions=[
                alike(fetch_request.FetchPartition, asked, replica_uuid=asked.replica_directory_id)
                for asked in topic.partitions
            ],
        )
        for topic in own.topics
    ]
    forgotten = all_alike(fetch_request.ForgottenTopic, own.forgotten_topics_data)
    return alike(
        fetch_request.FetchRequest,
        own,
        replica_id=own.replica_state.replica_id,
        topics=topics,
        forgotten_topics_data=forgotten,
    )


def _read_response(drafted: fetch_response.FetchResponse) -> own_response.FetchResponse:
    topics = [
        alike(
            own_response.FetchableTopicResponse,
            topic,
            partitions=[_read_answer(answer) for answer in topic.partitions],
        )
        for topic in drafted.responses
    ]
    leaders = [answer.current_leader for topic in drafted.responses for answer in topic.partitions]
    nodes = nodes_of(own_response.NodeEndpoint, leaders)
    return alike(own_response.FetchResponse, drafted, responses=topics, node_endpoints=nodes)


def _read_answer(answer: fetch_response.PartitionData) -> own_response.PartitionData:
    aborted = answer.aborted_transactions
    return alike(
        own_response.PartitionData,
        answer,
        current_leader=alike(own_response.LeaderIdAndEpoch, answer.current_leader),
        diverging_epoch=alike(own_response.EpochEndOffset, answer.diverging_epoch),
        snapshot_id=alike(own_response.SnapshotId, answer.snapshot_id),
        aborted_transactions=(
            None if aborted is None else all_alike(own_response.AbortedTransaction, aborted)
        ),
    )


def _write_response(own: own_response.FetchResponse) -> fetch_response.FetchResponse:
    topics = [
        alike(
            fetch_response.FetchableTopicResponse,
            topic,
            partitions=[_write_answer(answer, own.node_endpoints) for answer in topic.partitions],
        )
        for topic in own.responses
    ]
    return alike(fetch_response.FetchResponse, own, responses=topics)


def _write_answer(
    answer: own_response.PartitionData, nodes: Sequence[own_response.NodeEndpoint]
) -> fetch_response.PartitionData:
    aborted = answer.aborted_transactions
    return alike(
        fetch_response.PartitionData,
        answer,
        current_leader=with_end_point(alike(fetch_response.CurrentLeader, answer.current_leader), nodes),
        diverging_epoch=alike(fetch_response.EpochEndOffset, answer.diverging_epoch),
        snapshot_id=alike(fetch_response.SnapshotId, answer.snapshot_id),
        aborted_transactions=(
            None if aborted is None else all_alike(fetch_response.AbortedTransaction, aborted)
        ),
    )


FETCH: Final = Form(
    key=own_request.FetchRequest.API_KEY,
    own_key=own_request.FetchRequest.API_KEY,
    own_versions={
        **{version: version for version in range(4, DRAFTED_VERSION)},
        DRAFTED_VERSION: OWN_VERSION,
    },
    request_class=fetch_request.FetchRequest,
    response_class=fetch_response.FetchResponse,
    read_request=_read_request,
    write_request=_write_request,
    read_response=_read_response,
    write_response=_write_response,
)
