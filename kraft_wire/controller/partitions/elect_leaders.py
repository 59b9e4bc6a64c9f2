"""Serve ElectLeaders (43), versions 0-2: hold preferred and, since version 1, unclean elections. KIP-460.

Without a list of partitions, elections are held for all partitions that need one. The response then lists all
topics, each with the partitions that needed an election.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import Columns, Records, VersionedRecord
from kraft_wire.controller.decision.work import ALL_BROKERS, Piece, WorkKey, WorkKind
from kraft_wire.controller.partitions.cluster_view import ClusterView
from kraft_wire.controller.partitions.partition_change import Election, Goal
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition, PartitionRef
from kraft_wire.metadata.topic_removals import TopicRemovals
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kraft_wire.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.controller.partitions.elections import Elections

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
        return Result.of_work(_ElectAll(election), state, context)
    elections = _Elections(ClusterView(state), election)
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[elections.elect_named(topic.topic, index) for index in topic.partitions],
        )
        for topic in request.topic_partitions
    ]
    return Result(ElectLeadersResponse(replica_election_results=results), elections.records, atomic=False)


def _result(index: int, code: ErrorCode, message: str) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=code, error_message=message)


class _Elections:
    """The elections of one request."""

    def __init__(self, view: ClusterView, election: Election) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._election = election

    def elect_named(self, topic_name: str, index: int) -> PartitionResult:
        metadata = self._view.state.metadata
        topic = metadata.topics.by_name(topic_name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _result(index, code, f"there is no topic {topic_name}")
        partition = metadata.partitions.get(topic.id, index)
        if partition is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _result(index, code, f"topic {topic_name} has no partition {index}")
        if self._is_satisfied(partition):
            what = "its preferred leader" if self._election is Election.PREFERRED else "a leader"
            return _result(index, ErrorCode.ELECTION_NOT_NEEDED, f"{topic_name}-{index} has {what}")
        return self._elect(PartitionRef(topic.id, index), partition)

    def _is_satisfied(self, partition: Partition) -> bool:
        if self._election is Election.PREFERRED:
            return partition.leader == partition.preferred_leader
        return partition.leader != NO_LEADER

    def _elect(self, ref: PartitionRef, partition: Partition) -> PartitionResult:
        record = self._view.change(ref, partition, Goal(election=self._election))
        if record is None:
            return _failure(self._election, ref.index, partition)
        self.records.append(record)
        return _success(ref.index)


def _success(index: int) -> PartitionResult:
    return PartitionResult(partition_id=index, error_message=None)


def _failure(election: Election, index: int, partition: Partition) -> PartitionResult:
    if election is Election.PREFERRED:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return _result(index, code, f"broker {partition.preferred_leader} is not active or not in sync")
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return _result(index, code, f"none of the brokers {list(partition.replicas)} is active")


class _ElectAll:
    """The work of electing a leader for every partition without its preferred leader, or without any leader.

    The response lists all topics, with those partitions that needed an election.
    """

    def __init__(self, election: Election) -> None:
        self.key = WorkKey(WorkKind.ELECT, ALL_BROKERS)
        self._election = election
        self._slices: Elections | None = None
        self._results: dict[Uuid, list[PartitionResult]] = {}

    def decide(self, state: ControllerState, context: Context) -> Piece:
        if not len(state.metadata.partitions):
            return Piece((), is_last=True, response=self._response(state))
        if self._slices is None:
            from kraft_wire.controller.partitions.elections import Elections  # needs numpy

            self._slices = Elections(self._election, everywhere=True)
        held = self._slices.next_slice(state)
        self._note_results(state, self._slices, held.records)
        response = self._response(state) if held.is_complete else None
        return Piece(held.records, held.is_complete, response=response)

    def _note_results(self, state: ControllerState, slices: Elections, records: Records) -> None:
        elected = {ref for part in records.parts for ref in _changed(part)}
        partitions = state.metadata.partitions
        for rows in slices.considered:
            for ref in partitions.refs(rows):
                if ref in elected:
                    result = _success(ref.index)
                else:
                    partition = partitions.get(ref.topic_id, ref.index)
                    assert partition is not None, "its row was just found"
                    result = _failure(self._election, ref.index, partition)
                self._results.setdefault(ref.topic_id, []).append(result)

    def _response(self, state: ControllerState) -> ElectLeadersResponse:
        return ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(topic=topic.name, partition_result=self._results.get(topic.id, []))
                for topic in state.metadata.topics
            ]
        )


def _changed(part: Sequence[VersionedRecord] | Columns) -> Iterator[PartitionRef]:
    if not isinstance(part, Sequence):
        assert not isinstance(part, TopicRemovals), "elections remove no topics"
        yield from part.refs()
        return
    for record, _ in part:
        assert isinstance(record, PartitionChangeRecord)
        yield PartitionRef(record.topic_id, record.partition_id)
