"""Serve Metadata (3) for ordinary consumers: describe ``__cluster_metadata``, the one topic of a controller.

Java's controllers don't serve this API. Ours do, so that kcat and every client can find and read the metadata
log. The nodes are the registered controllers that have the request's listener; the leader is raft's. A node
that only observes names itself alone, as the leader: its clients are to leave the controllers in peace.
Versions: 1 has null for all topics, 4 automatic creation (never done here), 10 topic ids, 13 an error at the
top. Permissions are those of KafkaApis: DESCRIBE on each topic. Without it a client does not learn whether a
topic of that name exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.cluster.describe_cluster import controllers_on
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
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
TOPICS_PER_PIECE: Final = 1_000
"""The topics of one step."""


def handle(state: ControllerState, request: MetadataRequest, version: int, context: Context) -> Result:
    """Describe the controllers and the requested topics. Every topic but ``__cluster_metadata`` is unknown.

    Raises ApiError(INVALID_REQUEST) for a null name in a version whose response can't have one.
    """
    asked: Sequence[MetadataRequestTopic] = request.topics or ()
    if version < FIRST_VERSION_WITH_NULL_NAMES and any(topic.name is None for topic in asked):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the name of a topic can't be null in version {version}")
    if _wants_all_topics(request, version):
        may_describe = context.may(AclOperation.DESCRIBE, topic_resource(CLUSTER_METADATA))
        asked = [MetadataRequestTopic(name=CLUSTER_METADATA)] if may_describe else ()
    return Result.of_work(_Description(asked, state, context), state, context)


class _Description:
    """The description of the controllers and of some topics. All that may change is described at once; names
    of unknown topics, which may be many, in pieces."""

    def __init__(
        self, asked: Sequence[MetadataRequestTopic], state: ControllerState, context: Context
    ) -> None:
        self.key = WorkKey(WorkKind.DESCRIBE_TOPICS)
        self._asked = asked
        self._context = context
        self._brokers = _nodes(state, context.listener)
        reachable = {broker.node_id for broker in self._brokers}
        self._cluster_id = state.cluster_id
        self._controller_id = state.leader_id if state.leader_id in reachable else -1
        self._shown_end = state.metadata.controllers_changed_end
        self._log = MetadataResponseTopic(
            name=CLUSTER_METADATA,
            topic_id=CLUSTER_METADATA_TOPIC_ID,
            is_internal=True,
            partitions=[_own_partition(state) if state.read_here else _partition(state, reachable)],
        )
        self._topics: list[MetadataResponseTopic] = []

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Describe the next topics."""
        start = len(self._topics)
        self._topics += [self._topic(asked) for asked in self._asked[start : start + TOPICS_PER_PIECE]]
        if len(self._topics) < len(self._asked):
            return Piece((), is_last=False)
        response = MetadataResponse(
            brokers=self._brokers,
            cluster_id=self._cluster_id,
            controller_id=self._controller_id,
            topics=self._topics,
        )
        return Piece((), is_last=True, response=response, shown_end=self._shown_end)

    def _topic(self, asked: MetadataRequestTopic) -> MetadataResponseTopic:
        name = CLUSTER_METADATA if _means_by_id(asked) else asked.name
        if name is not None and not self._context.may(AclOperation.DESCRIBE, topic_resource(name)):
            # An id is not a secret, but the name of an id is, and so is the id of a name.
            topic_id = asked.topic_id if asked.name is None else Uuid.ZERO
            return MetadataResponseTopic(
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=asked.name, topic_id=topic_id
            )
        if name != CLUSTER_METADATA:
            return MetadataResponseTopic(
                error_code=int(_why_unknown(asked)), name=asked.name, topic_id=asked.topic_id
            )
        return self._log


def _wants_all_topics(request: MetadataRequest, version: int) -> bool:
    """Whether all topics are requested: by null, and in version 0 by an empty list."""
    return request.topics is None or (version == 0 and not request.topics)


def _means_by_id(asked: MetadataRequestTopic) -> bool:
    return asked.name is None and asked.topic_id == CLUSTER_METADATA_TOPIC_ID


def _why_unknown(asked: MetadataRequestTopic) -> ErrorCode:
    if asked.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if why_invalid(asked.name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _nodes(state: ControllerState, listener: str) -> list[MetadataResponseBroker]:
    """Return the nodes that a client may ask next."""
    if state.read_here:
        host, port = state.read_here[listener]
        return [MetadataResponseBroker(node_id=state.node_id, host=host, port=port)]
    return [
        MetadataResponseBroker(node_id=node.broker_id, host=node.host, port=node.port)
        for node in controllers_on(state, listener)
    ]


def _own_partition(state: ControllerState) -> MetadataResponsePartition:
    """Describe the log's partition as a node that only observes: it is the one replica."""
    return MetadataResponsePartition(
        partition_index=0,
        leader_id=state.node_id,
        leader_epoch=state.epoch,
        replica_nodes=(state.node_id,),
        isr_nodes=(state.node_id,),
    )


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
