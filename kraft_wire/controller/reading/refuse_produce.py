"""Serve Produce (0): reject every request, because only raft writes the metadata log.

The API is served because librdkafka derives the format of a node's batches from the versions of Produce and
Fetch together, and does not fetch from a node without Produce. With acks 0 a client expects no response and
closes the connection when this one arrives; a broker closes the connection itself for the same reason. Kafka
requires WRITE on each topic.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.controller.reading import NO_OFFSET
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.errors import ErrorCode, cut_message
from kraft_wire.protocol.messages.produce_request import ProduceRequest, TopicProduceData
from kraft_wire.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraft_wire.security.authorization import AclOperation, topic_resource

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13


def handle(state: ControllerState, request: ProduceRequest, version: int, context: Context) -> Result:
    """Answer INVALID_TOPIC_EXCEPTION for the metadata log, which is internal, and "unknown" for all else."""
    return Result(
        ProduceResponse(
            responses=[_refusal(topic, *_reason(topic, version, context)) for topic in request.topic_data]
        )
    )


def _reason(topic: TopicProduceData, version: int, context: Context) -> tuple[ErrorCode, str]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    if by_id and topic.topic_id != CLUSTER_METADATA_TOPIC_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID, f"a controller has no topic {topic.topic_id}"
    name = CLUSTER_METADATA if by_id else topic.name
    if not context.may(AclOperation.WRITE, topic_resource(name)):
        error = refused(AclOperation.WRITE, topic_resource(name))
        return error.code, error.message
    if name == CLUSTER_METADATA:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"{CLUSTER_METADATA} is read only"
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, cut_message(f"a controller has no topic {name}")


def _refusal(topic: TopicProduceData, code: ErrorCode, message: str) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(
                index=partition.index, error_code=int(code), base_offset=NO_OFFSET, error_message=message
            )
            for partition in topic.partition_data
        ],
    )
