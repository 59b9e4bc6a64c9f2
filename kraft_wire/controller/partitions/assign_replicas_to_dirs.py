"""Serve AssignReplicasToDirs (73), version 0: record the log directory of each replica of a broker. KIP-858.

If the directory of a replica is not online, the broker leaves the ISR of that partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import ItemWork
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKey, WorkKind
from kraft_wire.controller.partitions.broker_partitions import records_for_offline_replicas
from kraft_wire.controller.partitions.cluster_view import ClusterView, check_broker_epoch
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.metadata.features.metadata_version import directory_assignment_supported
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    DirectoryData as DirectoryResult,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    PartitionData as PartitionResult,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    TopicData as TopicResult,
)
from kraft_wire.protocol.uuid import Uuid


def handle(
    state: ControllerState, request: AssignReplicasToDirsRequest, version: int, context: Context
) -> Result:
    """Record the directories of the broker's replicas.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV2, and STALE_BROKER_EPOCH.
    """
    if not directory_assignment_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "replicas have log directories from metadata.version 3.7-IV2 on"
        )
    return Result.of_work(_AssignWork(request), state, context)


class _Place(msgspec.Struct, frozen=True):
    """A replica's partition and directory, and the topic of the response that gets the result."""

    result: TopicResult
    index: int
    directory: Uuid

    @property
    def ref(self) -> PartitionRef:
        """The partition."""
        return PartitionRef(self.result.topic_id, self.index)


class _AssignWork(ItemWork[_Place]):
    """The directories of one broker's replicas."""

    def __init__(self, request: AssignReplicasToDirsRequest) -> None:
        self._request = request
        self._results = [
            DirectoryResult(
                id=directory.id, topics=[TopicResult(topic_id=topic.topic_id) for topic in directory.topics]
            )
            for directory in request.directories
        ]
        places = [
            _Place(result, partition.partition_index, directory.id)
            for directory, directory_result in zip(request.directories, self._results, strict=True)
            for topic, result in zip(directory.topics, directory_result.topics, strict=True)
            for partition in topic.partitions
        ]
        super().__init__(WorkKey(WorkKind.ASSIGN, request.broker_id), places)

    def decide_items(self, state: ControllerState, items: Sequence[_Place]) -> list[VersionedRecord]:
        broker_id = self._request.broker_id
        registration = check_broker_epoch(state, broker_id, self._request.broker_epoch)
        assignment = _Assignment(ClusterView(state), broker_id)
        lost: dict[PartitionRef, None] = {}
        for place in items:
            error = assignment.assign(place.ref, place.directory)
            result = PartitionResult(partition_index=place.index, error_code=error or ErrorCode.NONE)
            place.result.partitions.append(result)
            if error is None and not registration.has_online_directory(place.directory):
                lost[place.ref] = None
        return assignment.records + records_for_offline_replicas(state, broker_id, lost)

    def response(self) -> AssignReplicasToDirsResponse:
        return AssignReplicasToDirsResponse(directories=self._results)


class _Assignment:
    """The directories of one broker, assigned one after the other."""

    def __init__(self, view: ClusterView, broker_id: int) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._broker_id = broker_id

    def assign(self, ref: PartitionRef, directory: Uuid) -> ErrorCode | None:
        metadata = self._view.state.metadata
        if metadata.topics.by_id(ref.topic_id) is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        partition = metadata.partitions.get(ref.topic_id, ref.index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._broker_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        record = self._view.change(ref, partition, Goal(directories={self._broker_id: directory}))
        if record is not None:
            self.records.append(record)
        return None
