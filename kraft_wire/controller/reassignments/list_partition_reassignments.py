"""Serve ListPartitionReassignments (46), version 0: say which partitions are being moved. KIP-455.

Kafka requires DESCRIBE on the cluster. Rules: ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.metadata.partitions.rare_lists import RareKey
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

Key = TypeVar("Key")

PARTITIONS_PER_PIECE: Final = 2_000
"""The partitions that are looked at in one step."""


def handle(
    state: ControllerState, request: ListPartitionReassignmentsRequest, version: int, context: Context
) -> Result:
    """List those of the named partitions that are being reassigned; without topics, all that are."""
    metadata = state.metadata
    if request.topics is None:
        return Result.of_work(_Listing(metadata.partitions.rare_keys(), _reassigning), state, context)
    return Result.of_work(_Listing(_named(metadata, request.topics), _as_named), state, context)


def _reassigning(metadata: MetadataState, keys: Sequence[RareKey]) -> Sequence[PartitionRef]:
    return metadata.partitions.reassigning(keys)


def _as_named(metadata: MetadataState, refs: Sequence[PartitionRef]) -> Sequence[PartitionRef]:
    return refs


def _named(metadata: MetadataState, topics: Iterable[ListPartitionReassignmentsTopics]) -> list[PartitionRef]:
    refs = []
    for named in topics:
        topic = metadata.topics.by_name(named.name)
        if topic is not None:
            refs += [PartitionRef(topic.id, index) for index in named.partition_indexes]
    return refs


class _Listing(Generic[Key]):
    """The partitions of one request, and how those are found that may have to be listed. Each is listed as it
    is in its step."""

    def __init__(
        self, keys: Sequence[Key], find: Callable[[MetadataState, Sequence[Key]], Sequence[PartitionRef]]
    ) -> None:
        self.key = WorkKey(WorkKind.LIST_REASSIGNMENTS)
        self._keys = keys
        self._find = find
        self._done = 0
        self._topics: dict[str, OngoingTopicReassignment] = {}

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """List the next partitions."""
        end = self._done + PARTITIONS_PER_PIECE
        for ref in self._find(state.metadata, self._keys[self._done : end]):
            self._list(state.metadata, ref)
        self._done = end
        if end < len(self._keys):
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
