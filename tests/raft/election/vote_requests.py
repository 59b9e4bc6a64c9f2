"""Vote requests and their answers."""

from __future__ import annotations

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    vote_request,
    vote_response,
)
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid
from tests.raft.lone_node import (
    DIRECTORY,
    OTHER_DIRECTORY,
    LoneNode,
)


def vote(
    epoch: int,
    *,
    last: tuple[int, int] = (1, 2),
    candidate: int = 2,
    directory: Uuid = OTHER_DIRECTORY,
    pre_vote: bool = False,
    voter: int = 1,
    voter_directory: Uuid = DIRECTORY,
    cluster_id: str | None = None,
) -> VoteRequest:
    """Return a Vote of a candidate whose log ends with ``last``: epoch and end offset."""
    return VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter,
        topics=[
            vote_request.TopicData(
                topic_name="__cluster_metadata",
                partitions=[
                    vote_request.PartitionData(
                        replica_epoch=epoch,
                        replica_id=candidate,
                        replica_directory_id=directory,
                        voter_directory_id=voter_directory,
                        last_offset_epoch=last[0],
                        last_offset=last[1],
                        pre_vote=pre_vote,
                    )
                ],
            )
        ],
    )


def answer(node: LoneNode, request: Message, version: int = 2) -> vote_response.PartitionData:
    response = node.answer_to(request, version)
    assert isinstance(response, VoteResponse)
    assert VoteResponse.decode(response.encode(version), version) == response
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition
