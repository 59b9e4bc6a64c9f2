"""Translate the drafted Vote (52), versions 0 and 1. A pre-vote can't be expressed: KIP-996 came later."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.messages import vote_request as own_request
from kraft_wire.protocol.messages import vote_response as own_response
from kraft_wire.raft.drafted.alike import alike, all_alike
from kraft_wire.raft.membership.kip_853 import vote_request, vote_response
from kraft_wire.wire.dialect import Form


def _read_request(drafted: vote_request.VoteRequest, version: int) -> own_request.VoteRequest:
    topics = [
        own_request.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                alike(
                    own_request.PartitionData,
                    asked,
                    replica_epoch=asked.candidate_epoch,
                    replica_id=asked.candidate_id,
                    replica_directory_id=asked.candidate_uuid,
                    voter_directory_id=asked.voter_uuid,
                )
                for asked in topic.partitions
            ],
        )
        for topic in drafted.topics
    ]
    return alike(own_request.VoteRequest, drafted, topics=topics)


def _write_request(own: own_request.VoteRequest) -> vote_request.VoteRequest:
    if any(asked.pre_vote for topic in own.topics for asked in topic.partitions):
        raise UnsupportedVersion("VoteRequest", 1, "KIP-853's draft has no pre-votes")
    topics = [
        vote_request.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                alike(
                    vote_request.PartitionData,
                    asked,
                    candidate_epoch=asked.replica_epoch,
                    candidate_id=asked.replica_id,
                    candidate_uuid=asked.replica_directory_id,
                    voter_uuid=asked.voter_directory_id,
                )
                for asked in topic.partitions
            ],
        )
        for topic in own.topics
    ]
    return alike(vote_request.VoteRequest, own, topics=topics)


def _read_response(drafted: vote_response.VoteResponse) -> own_response.VoteResponse:
    topics = [
        own_response.TopicData(
            topic_name=topic.topic_name, partitions=all_alike(own_response.PartitionData, topic.partitions)
        )
        for topic in drafted.topics
    ]
    nodes = all_alike(own_response.NodeEndpoint, drafted.node_endpoints)
    return alike(own_response.VoteResponse, drafted, topics=topics, node_endpoints=nodes)


def _write_response(own: own_response.VoteResponse) -> vote_response.VoteResponse:
    topics = [
        vote_response.TopicData(
            topic_name=topic.topic_name, partitions=all_alike(vote_response.PartitionData, topic.partitions)
        )
        for topic in own.topics
    ]
    nodes = all_alike(vote_response.NodeEndpoint, own.node_endpoints)
    return alike(vote_response.VoteResponse, own, topics=topics, node_endpoints=nodes)


VOTE: Final = Form(
    key=own_request.VoteRequest.API_KEY,
    own_key=own_request.VoteRequest.API_KEY,
    own_versions={0: 0, 1: 1},
    request_class=vote_request.VoteRequest,
    response_class=vote_response.VoteResponse,
    read_request=_read_request,
    write_request=_write_request,
    read_response=_read_response,
    write_response=_write_response,
)
