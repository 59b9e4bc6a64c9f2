"""Serve AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers, or stop that.
KIP-455; version 1 can forbid a change of the replication factor (KIP-860).

Each partition succeeds or fails by itself. Kafka requires ALTER on the cluster. Rules:
ReplicationControlManager. Other than Java's controller, this one refuses a partition that is named twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import ItemWork
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKey, WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.reassignments.goals import cancelled, reassigned
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kraft_wire.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    state: ControllerState, request: AlterPartitionReassignmentsRequest, version: int, context: Context
) -> Result:
    """Begin, replace and cancel the reassignments that can be. The response has the errors of the others."""
    return Result.of_work(_Reassignments(request), state, context)


class _Reassignments(ItemWork[tuple[ReassignableTopicResponse, ReassignablePartition]]):
    """The partitions of one request. Each goes with the topic of the response that gets its answer."""

    def __init__(self, request: AlterPartitionReassignmentsRequest) -> None:
        self._answers = [ReassignableTopicResponse(name=topic.name) for topic in request.topics]
        super().__init__(
            WorkKey(WorkKind.REASSIGN),
            [
                (answer, target)
                for answer, topic in zip(self._answers, request.topics, strict=True)
                for target in topic.partitions
            ],
        )
        self._mentions = Counter((answer.name, target.partition_index) for answer, target in self._items)
        self._may_change_factor = request.allow_replication_factor_change

    def weight_of(self, item: tuple[ReassignableTopicResponse, ReassignablePartition]) -> int:
        """Return a weight that grows with the replicas."""
        _, target = item
        return 2 + len(target.replicas or ()) // 2

    def decide_items(
        self,
        state: ControllerState,
        items: Sequence[tuple[ReassignableTopicResponse, ReassignablePartition]],
    ) -> list[VersionedRecord]:
        view = ClusterView(state)
        records: list[VersionedRecord] = []
        for answer, target in items:
            code, message = ErrorCode.NONE, None
            try:
                record = self._change(view, answer.name, target)
                records += () if record is None else (record,)
            except ApiError as error:
                code, message = error.code, error.message
            answer.partitions.append(
                ReassignablePartitionResponse(target.partition_index, int(code), message)
            )
        return records

    def _change(
        self, view: ClusterView, topic_name: str, target: ReassignablePartition
    ) -> VersionedRecord | None:
        """Return the record that begins or cancels a reassignment; None if nothing changes."""
        metadata, index = view.state.metadata, target.partition_index
        if self._mentions[topic_name, index] > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this partition more than once")
        topic = metadata.topics.by_name(topic_name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic_name}")
        partition = metadata.partitions.get(topic.id, index)
        if partition is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic_name} has no partition {index}"
            )
        if target.replicas is None:
            goal = cancelled(view, topic, partition)
        else:
            goal = reassigned(view, partition, target.replicas, may_change_factor=self._may_change_factor)
        return view.change(PartitionRef(topic.id, index), partition, goal)

    def response(self) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=self._may_change_factor,
            error_message=None,
            responses=self._answers,
        )
