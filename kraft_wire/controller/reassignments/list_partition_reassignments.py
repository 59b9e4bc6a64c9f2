"""Serve ListPartitionReassignments (46), version 0: say which partitions are being moved. KIP-455.

Kafka requires DESCRIBE on the cluster. Rules: ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraft_wire.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

PARTITIONS_PER_PIECE: Final = 2_000
"""The partitions that are looked at in one step."""


def handle(
    state: ControllerState, request: ListPartitionReassignmentsRequest, version: int, context: Context
) -> Result:
    """List those of the named partitions that are being reassigned; without topics, all that are."""
    metadata = state.metadata
    refs = metadata.partitions.reassigning() if request.topics is None else _named(metadata, request.topics)
    return Result.of_work(_Listing(refs), state, context)


def _named(metadata: MetadataState, topics: Iterable[ListPartitionReassignmentsTopics]) -> list[PartitionRef]:
    refs = []
    for named in topics:
        topic = metadata.topics.by_name(named.name)
        if topic is not None:
            refs += [PartitionRef(topic.id, index) for index in named.partition_indexes]
    return refs


class _Listing:
    """The partitions of one request. Each is listed as it is found in its step."""

    def __init__(self, refs: Sequence[PartitionRef]) -> None:
        self.key = WorkKey(WorkKind.LIST_REASSIGNMENTS)
        self._refs = refs
        self._done = 0
        self._topics: dict[str, OngoingTopicReassignment] = {}

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """List the next partitions."""
        end = self._done + PARTITIONS_PER_PIECE
        for ref in self._refs[self._done : end]:
            self._list(state.metadata, ref)
        self._done = end
        if end < len(self._refs):
            return Piece((), is_last=False)
        response = ListPartitionReassignmentsResponse(error_message=None, topics=list(self._topics.values()))
        return Piece((), is_last=True, response=response)

    def _list(self, metadata: MetadataState, ref: PartitionRef) -> None:
        topic = metadata.topics.by_id(ref.topic_id)
        partition = metadata.partitions.get(ref.topic_id, ref.index)
        if topic is None or partition is None or not partition.is_reassigning:
            return
        listed = self._topics.setdefault(topic.name, OngoingTopicReassignment(name=topic.name))
        listed.partitions.append(
            OngoingPartitionReassignment(
                partition_index=ref.index,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )
        )
