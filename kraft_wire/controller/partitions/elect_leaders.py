"""Serve ElectLeaders (43), versions 0-2: hold preferred and, since version 1, unclean elections. KIP-460.

Without a list of partitions, elections are held for all partitions that need one. The response then lists all
topics, each with the partitions that needed an election.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import ItemWork
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import ALL_BROKERS, WorkKey, WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.election_results import failure, refusal, success
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition, PartitionRef
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def handle(state: ControllerState, request: ElectLeadersRequest, version: int, context: Context) -> Result:
    """Elect leaders. Raises ApiError(INVALID_REQUEST) for an unknown type of election."""
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"election type {request.election_type} is unknown; 0 is preferred, 1 is unclean",
        )
    if request.topic_partitions is None:
        from kraft_wire.controller.partitions.elect_all import ElectAll  # needs numpy

        return Result.of_work(ElectAll(election), state, context)
    return Result.of_work(_ElectNamed(election, request.topic_partitions), state, context)


class _ElectNamed(ItemWork[tuple[ReplicaElectionResult, int]]):
    """The elections of the partitions that a request names. Each goes with the topic of the response."""

    def __init__(self, election: Election, topics: Sequence[TopicPartitions]) -> None:
        results = [ReplicaElectionResult(topic=topic.topic) for topic in topics]
        partitions = [
            (result, index)
            for result, topic in zip(results, topics, strict=True)
            for index in topic.partitions
        ]
        super().__init__(WorkKey(WorkKind.ELECT, ALL_BROKERS), partitions)
        self._results = results
        self._election = election

    def decide_items(
        self, state: ControllerState, items: Sequence[tuple[ReplicaElectionResult, int]]
    ) -> list[VersionedRecord]:
        elections = _Elections(ClusterView(state), self._election)
        for result, index in items:
            result.partition_result.append(elections.elect_named(result.topic, index))
        return elections.records

    def response(self) -> ElectLeadersResponse:
        return ElectLeadersResponse(replica_election_results=self._results)


class _Elections:
    """Elections of named partitions, one after the other."""

    def __init__(self, view: ClusterView, election: Election) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._election = election

    def elect_named(self, topic_name: str, index: int) -> PartitionResult:
        metadata = self._view.state.metadata
        topic = metadata.topics.by_name(topic_name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return refusal(index, code, f"there is no topic {topic_name}")
        partition = metadata.partitions.get(topic.id, index)
        if partition is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return refusal(index, code, f"topic {topic_name} has no partition {index}")
        if self._is_satisfied(partition):
            what = "its preferred leader" if self._election is Election.PREFERRED else "a leader"
            return refusal(index, ErrorCode.ELECTION_NOT_NEEDED, f"{topic_name}-{index} has {what}")
        return self._elect(PartitionRef(topic.id, index), partition)

    def _is_satisfied(self, partition: Partition) -> bool:
        if self._election is Election.PREFERRED:
            return partition.leader == partition.preferred_leader
        return partition.leader != NO_LEADER

    def _elect(self, ref: PartitionRef, partition: Partition) -> PartitionResult:
        record = self._view.change(ref, partition, Goal(election=self._election))
        if record is None:
            return failure(ref.index, self._election, partition.replicas)
        self.records.append(record)
        return success(ref.index)
