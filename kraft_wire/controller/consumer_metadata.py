"""Metadata (3) for ordinary consumers: the one topic a controller has, ``__cluster_metadata``.

Java's controllers don't answer this API; ours do, so that kcat and every client can find and read the
metadata log. The nodes are the registered controllers that have the request's listener; the leader is raft's.
Versions: 1 has null for "all topics", 4 automatic creation (never done here), 10 topic ids, 13 an error at
the top. Ordinary metadata needs DESCRIBE on the topic; so does this.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.controller.describe_cluster import controllers_on
from kraft_wire.controller.topic_names import CLUSTER_METADATA_TOPIC, why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.protocol.uuid import Uuid

CLUSTER_METADATA_TOPIC_ID: Final = Uuid.ONE
FIRST_VERSION_WITH_NULL_NAMES: Final = 12


def handle(state: ControllerState, request: MetadataRequest, version: int, context: Context) -> Result:
    """Describe the controllers and the topics asked for; every topic but the one is unknown.

    Raises ApiError(INVALID_REQUEST) for a null name in a version whose response has no room for it.
    """
    asked = _asked(request, version)
    if version < FIRST_VERSION_WITH_NULL_NAMES and any(topic.name is None for topic in asked):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"topics have no null names at version {version}")
    brokers = [
        MetadataResponseBroker(node_id=node.broker_id, host=node.host, port=node.port)
        for node in controllers_on(state, context.listener)
    ]
    reachable = {broker.node_id for broker in brokers}
    return Result(
        MetadataResponse(
            brokers=brokers,
            cluster_id=state.cluster_id,
            controller_id=state.leader_id if state.leader_id in reachable else -1,
            topics=[_topic(state, topic, reachable) for topic in asked],
        )
    )


def error_response(request: MetadataRequest, version: int, code: ErrorCode, message: str) -> MetadataResponse:
    """The code at the top (read from version 13 on), and for each topic by name."""
    topics = [
        MetadataResponseTopic(error_code=int(code), name=asked.name, topic_id=asked.topic_id)
        for asked in request.topics or ()
        if asked.name is not None or version >= FIRST_VERSION_WITH_NULL_NAMES
    ]
    return MetadataResponse(topics=topics, error_code=int(code))


def _asked(request: MetadataRequest, version: int) -> list[MetadataRequestTopic]:
    """Null asks for all topics; at version 0 an empty list does."""
    if request.topics is None or (version == 0 and not request.topics):
        return [MetadataRequestTopic(name=CLUSTER_METADATA_TOPIC)]
    return request.topics


def _topic(state: ControllerState, asked: MetadataRequestTopic, reachable: set[int]) -> MetadataResponseTopic:
    if not (asked.name == CLUSTER_METADATA_TOPIC or _means_by_id(asked)):
        return MetadataResponseTopic(
            error_code=int(_refusal(asked)), name=asked.name, topic_id=asked.topic_id
        )
    return MetadataResponseTopic(
        name=CLUSTER_METADATA_TOPIC,
        topic_id=CLUSTER_METADATA_TOPIC_ID,
        is_internal=True,
        partitions=[_partition(state, reachable)],
    )


def _means_by_id(asked: MetadataRequestTopic) -> bool:
    return asked.name is None and asked.topic_id == CLUSTER_METADATA_TOPIC_ID


def _refusal(asked: MetadataRequestTopic) -> ErrorCode:
    if asked.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if why_invalid(asked.name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _partition(state: ControllerState, reachable: set[int]) -> MetadataResponsePartition:
    """The voters are the replicas; one that this listener can't name is reported as offline."""
    has_leader = state.leader_id in reachable
    return MetadataResponsePartition(
        error_code=int(ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=0,
        leader_id=state.leader_id if has_leader else -1,
        leader_epoch=state.epoch,
        replica_nodes=state.voter_ids,
        isr_nodes=tuple(voter for voter in state.voter_ids if voter in reachable),
        offline_replicas=tuple(voter for voter in state.voter_ids if voter not in reachable),
    )
