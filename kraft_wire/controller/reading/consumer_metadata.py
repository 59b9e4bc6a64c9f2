"""Serve Metadata (3) for ordinary consumers: describe ``__cluster_metadata``, the one topic of a controller.

Java's controllers don't serve this API. Ours do, so that kcat and every client can find and read the metadata
log. The nodes are the registered controllers that have the request's listener; the leader is raft's.
Versions: 1 has null for all topics, 4 automatic creation (never done here), 10 topic ids, 13 an error at the
top. Permissions are those of KafkaApis: DESCRIBE on each topic. Without it a client does not learn whether a
topic of that name exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kraft_wire.controller.cluster.describe_cluster import controllers_on
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.metadata.topic_names import why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.authorization import AclOperation, topic_resource

FIRST_VERSION_WITH_NULL_NAMES: Final = 12


def handle(state: ControllerState, request: MetadataRequest, version: int, context: Context) -> Result:
    """Describe the controllers and the requested topics. Every topic but ``__cluster_metadata`` is unknown.

    Raises ApiError(INVALID_REQUEST) for a null name in a version whose response can't have one.
    """
    asked: Iterable[MetadataRequestTopic] = request.topics or ()
    if version < FIRST_VERSION_WITH_NULL_NAMES and any(topic.name is None for topic in asked):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the name of a topic can't be null in version {version}")
    may_describe = context.may(AclOperation.DESCRIBE, topic_resource(CLUSTER_METADATA))
    if _wants_all_topics(request, version):
        asked = [MetadataRequestTopic(name=CLUSTER_METADATA)] if may_describe else ()
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
            topics=[_topic(state, topic, reachable, context) for topic in asked],
        ),
        shown_end=state.metadata.controllers_changed_end,
    )


def _wants_all_topics(request: MetadataRequest, version: int) -> bool:
    """Whether all topics are requested: by null, and in version 0 by an empty list."""
    return request.topics is None or (version == 0 and not request.topics)


def _topic(
    state: ControllerState, asked: MetadataRequestTopic, reachable: set[int], context: Context
) -> MetadataResponseTopic:
    name = CLUSTER_METADATA if _means_by_id(asked) else asked.name
    if name is not None and not context.may(AclOperation.DESCRIBE, topic_resource(name)):
        # An id is not a secret, but the name of an id is, and so is the id of a name.
        topic_id = asked.topic_id if asked.name is None else Uuid.ZERO
        return MetadataResponseTopic(
            error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=asked.name, topic_id=topic_id
        )
    if name != CLUSTER_METADATA:
        return MetadataResponseTopic(
            error_code=int(_why_unknown(asked)), name=asked.name, topic_id=asked.topic_id
        )
    return MetadataResponseTopic(
        name=CLUSTER_METADATA,
        topic_id=CLUSTER_METADATA_TOPIC_ID,
        is_internal=True,
        partitions=[_partition(state, reachable)],
    )


def _means_by_id(asked: MetadataRequestTopic) -> bool:
    return asked.name is None and asked.topic_id == CLUSTER_METADATA_TOPIC_ID


def _why_unknown(asked: MetadataRequestTopic) -> ErrorCode:
    if asked.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if why_invalid(asked.name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _partition(state: ControllerState, reachable: set[int]) -> MetadataResponsePartition:
    """Describe the log's partition: the voters are the replicas.

    A voter without this listener is offline. A voter that the leader doesn't hear from is out of sync.
    """
    has_leader = state.leader_id in reachable
    in_sync = reachable - set(state.silent_voter_ids)
    return MetadataResponsePartition(
        error_code=int(ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=0,
        leader_id=state.leader_id if has_leader else -1,
        leader_epoch=state.epoch,
        replica_nodes=state.voter_ids,
        isr_nodes=tuple(voter for voter in state.voter_ids if voter in in_sync),
        offline_replicas=tuple(voter for voter in state.voter_ids if voter not in reachable),
    )
