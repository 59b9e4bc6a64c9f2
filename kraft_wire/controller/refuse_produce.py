"""Produce (0): refused, always. A controller's one topic is written by raft alone.

The API is served because librdkafka decides from the versions of Produce and Fetch together which format of
batches a node speaks, and doesn't fetch from a node without Produce. With acks 0 a client expects no answer
and gives the connection up when this one comes, as it must when a broker closes it for the same reason.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.consumer_metadata import CLUSTER_METADATA_TOPIC_ID
from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.controller.topic_names import CLUSTER_METADATA_TOPIC
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.produce_request import ProduceRequest, TopicProduceData
from kraft_wire.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
NO_OFFSET: Final = -1


def handle(state: ControllerState, request: ProduceRequest, version: int, context: Context) -> Result:
    """INVALID_TOPIC_EXCEPTION for the metadata log, which is internal; every other topic is unknown here."""
    return Result(
        ProduceResponse(responses=[_refusal(topic, *_reason(topic, version)) for topic in request.topic_data])
    )


def error_response(request: ProduceRequest, version: int, code: ErrorCode, message: str) -> ProduceResponse:
    """The code and the message for each partition."""
    return ProduceResponse(responses=[_refusal(topic, code, message) for topic in request.topic_data])


def _reason(topic: TopicProduceData, version: int) -> tuple[ErrorCode, str]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    if topic.topic_id == CLUSTER_METADATA_TOPIC_ID if by_id else topic.name == CLUSTER_METADATA_TOPIC:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"{CLUSTER_METADATA_TOPIC} is read only"
    if by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID, f"a controller has no topic {topic.topic_id}"
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"a controller has no topic {topic.name}"


def _refusal(topic: TopicProduceData, code: ErrorCode, message: str) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(
                index=partition.index,
                error_code=int(code),
                base_offset=NO_OFFSET,
                error_message=message or None,
            )
            for partition in topic.partition_data
        ],
    )
